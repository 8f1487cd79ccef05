//! An OTLP receiver as a collector has one (gRPC): keeps every span that it is sent.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::wait::watched;

/// One span.
#[derive(Clone, Debug)]
pub struct Span {
    /// The service that it is of.
    pub service: String,
    /// The trace that it is part of, in hexadecimal.
    pub trace: String,
    /// Its id.
    pub id: String,
    /// The span that it is in; empty for the first of a trace.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// Its attributes, as text.
    pub attributes: BTreeMap<String, String>,
}

/// The receiver; it ends with its value.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    spans: watch::Receiver<Vec<Span>>,
    _serving: AbortOnDropHandle<()>,
}

impl Collector {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// When there is none.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (sender, spans) = watch::channel(Vec::new());
        let service = TraceServiceServer::new(Keeper(sender));
        let serving = tokio::spawn(async move {
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(TcpIncoming::from(listener))
                .await
                .expect("the collector serves");
        });
        Self { address, spans, _serving: AbortOnDropHandle::new(serving) }
    }

    /// What processes must have in their environment to export here, soon.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        vec![
            ("OTEL_EXPORTER_OTLP_ENDPOINT".into(), format!("http://{}", self.address)),
            ("OTEL_BSP_SCHEDULE_DELAY".into(), "100".into()),
        ]
    }

    /// Waits until the spans have an answer.
    pub async fn wait_for<T>(&self, what: &str, look: impl FnMut(&Vec<Span>) -> Option<T>) -> T {
        watched(what, self.spans.clone(), look).await
    }
}

struct Keeper(watch::Sender<Vec<Span>>);

#[tonic::async_trait]
impl TraceService for Keeper {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for resource in request.into_inner().resource_spans {
            let about = resource.resource.map(|resource| texts(resource.attributes));
            let service = about.and_then(|about| about.get("service.name").cloned());
            let service = service.unwrap_or_default();
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            let spans = spans.map(|span| Span {
                service: service.clone(),
                trace: hex::encode(span.trace_id),
                id: hex::encode(span.span_id),
                parent: hex::encode(span.parent_span_id),
                name: span.name,
                attributes: texts(span.attributes),
            });
            self.0.send_modify(|kept| kept.extend(spans));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes.into_iter().map(|one| (one.key, text(one.value))).collect()
}
