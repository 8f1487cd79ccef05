//! Trace contexts in message headers (W3C Trace Context), so that one message is one trace over all services.

use async_nats::HeaderMap;
pub use opentelemetry::Value;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{TraceContextExt, TraceId};
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
        show_id(span);
    }
}

/// Shows the id of a span's trace in the logs, in the span's field `trace_id`. Without an exporter there is no trace.
pub fn show_id(span: &Span) {
    let id = span.context().span().span_context().trace_id();
    if id != TraceId::INVALID {
        span.record("trace_id", tracing::field::display(id));
    }
}

/// Says what a span is in the terms of OpenTelemetry's conventions: its name in the trace, and attributes. Logs stay as they are.
pub fn describe<const N: usize>(span: &Span, name: String, attributes: [(&'static str, Value); N]) {
    if span.is_disabled() {
        return;
    }
    for (key, value) in attributes {
        span.set_attribute(key, value);
    }
    span.context().span().update_name(name);
}

/// Adds an attribute to a span that is described.
pub fn attribute(span: &Span, key: &'static str, value: impl std::convert::Into<Value>) {
    if !span.is_disabled() {
        span.set_attribute(key, value);
    }
}
