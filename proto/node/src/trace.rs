//! Trace contexts in message headers (W3C Trace Context), so that one message is one trace over all services.

use async_nats::HeaderMap;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

struct Into<'a>(&'a mut HeaderMap);

impl Injector for Into<'_> {
    fn set(&mut self, key: &str, value: String) {
        if !value.is_empty() {
            self.0.insert(key, value);
        }
    }
}

struct From<'a>(&'a HeaderMap);

impl Extractor for From<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(async_nats::HeaderValue::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(key, _)| key.as_ref()).collect()
    }
}

/// Adds the current span to the headers of a message that it sends.
pub fn inject(headers: &mut HeaderMap) {
    let span = Span::current();
    if !span.is_disabled() {
        TraceContextPropagator::new().inject_context(&span.context(), &mut Into(headers));
    }
}

/// Makes a span the child of the one that sent a message.
pub fn continue_from(span: &Span, headers: Option<&HeaderMap>) {
    if let Some(headers) = headers.filter(|_| !span.is_disabled()) {
        // A span that no exporter listens to cannot have a parent; nothing is lost by that.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&From(headers)));
    }
}
