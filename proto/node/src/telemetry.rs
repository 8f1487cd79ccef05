//! Logs and traces: on at the start, flushed at the end.

use std::io::IsTerminal;

use anyhow::Context;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::exit::Exit;
use crate::settings::{LogFormat, Telemetry};

/// The environment name that turns the export of traces on.
const OTLP_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Keeps telemetry running; dropping it without [`flush`](Self::flush) may lose the last spans.
#[derive(Debug)]
#[must_use]
pub struct Guard(Option<SdkTracerProvider>);

impl Guard {
    /// Sends what has not been sent. Blocks for a few seconds at most.
    pub fn flush(self) {
        if let Some(Err(error)) = self.0.map(|provider| provider.shutdown()) {
            tracing::debug!(%error, "the last spans were not exported");
        }
    }
}

/// Starts logging to standard error, and the export of traces when `OTEL_EXPORTER_OTLP_ENDPOINT` is set. Must run inside the
/// runtime, since the exporter opens its connection there.
///
/// # Errors
/// When the log directives are not valid, or the exporter cannot be built.
pub fn start(settings: &Telemetry, service: &str) -> anyhow::Result<Guard> {
    let filter = EnvFilter::try_new(&settings.log)
        .with_context(|| format!("bad setting telemetry.log {:?}", settings.log))
        .context(Exit::Configuration)?;
    let log = match settings.log_format {
        LogFormat::Text => fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .boxed(),
        LogFormat::Json => {
            fmt::layer().with_writer(std::io::stderr).json().flatten_event(true).boxed()
        }
    };
    let provider = std::env::var_os(OTLP_ENDPOINT)
        .filter(|value| !value.is_empty())
        .map(|_| exporter(service))
        .transpose()?;
    let traces = provider.as_ref().map(|provider| {
        // Every span goes to the trace, whatever the log shows, but not those of the exporter's own connection.
        let own =
            EnvFilter::new("info,h2=off,hyper=off,tonic=off,tower=off,reqwest=off,async_nats=off");
        tracing_opentelemetry::layer().with_tracer(provider.tracer("talaria")).with_filter(own)
    });
    // A process that runs several systems (a test) has one subscriber: the first.
    let _ = tracing_subscriber::registry().with(log.with_filter(filter)).with(traces).try_init();
    Ok(Guard(provider))
}

fn exporter(service: &str) -> anyhow::Result<SdkTracerProvider> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .build()
        .context("no exporter for traces")?;
    let resource = Resource::builder().with_service_name(service.to_owned()).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}
