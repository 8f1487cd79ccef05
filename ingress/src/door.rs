//! The front door: connections in, with limits on their number, their headers and their patience.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::StreamExt;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// How many connections may be open at once.
const CONNECTIONS_MAX: usize = 8192;
/// How long a client may take to send its headers.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// How large the headers may be, in bytes.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// How long a client may take to send its body.
const BODY_TIME: Duration = Duration::from_secs(15);
/// How much of an oversized body is read and thrown away, so that its sender gets to read our answer.
const DISCARD_MAX: usize = 8 * 1024 * 1024;
/// How long open connections may take to end when the process stops.
const FINISH: Duration = Duration::from_secs(3);

/// Serves until `stop`, then lets requests in hand end, for a moment.
pub(crate) async fn serve(listener: TcpListener, app: Router, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = stop.cancelled() => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (app, stop) = (app.clone(), stop.clone());
                connections.spawn(async move {
                    connection(stream, app, stop).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: others must end first.
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    let deadline = Instant::now() + FINISH;
    while let Ok(Some(_)) = timeout_at(deadline, connections.join_next()).await {}
}

async fn connection(stream: TcpStream, app: Router, stop: CancellationToken) {
    // Small pieces of text must not wait for each other.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(app);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.as_mut().await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection broke");
    }
}

/// A body that was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// It is larger than allowed.
    #[error("the body is larger than {limit} bytes")]
    TooLarge {
        /// What is allowed.
        limit: usize,
    },
    /// It did not come in time.
    #[error("the body did not come in time")]
    Slow,
    /// The connection broke.
    #[error("the body did not come whole")]
    Broken,
}

impl BodyError {
    /// The status that says so.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read_body(body: Body, limit: usize) -> Result<Bytes, BodyError> {
    let mut pieces = body.into_data_stream();
    let read = async {
        let mut whole = Vec::new();
        let mut size = 0;
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|_| BodyError::Broken)?;
            size += piece.len();
            if size <= limit {
                whole.extend_from_slice(&piece);
            } else {
                whole = Vec::new();
            }
            if size > limit.saturating_add(DISCARD_MAX) {
                break;
            }
        }
        if size > limit { Err(BodyError::TooLarge { limit }) } else { Ok(whole.into()) }
    };
    timeout(BODY_TIME, read).await.unwrap_or(Err(BodyError::Slow))
}

/// Whether a request says that its body is JSON. A form of another site cannot say so without asking first.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = kind.map(|kind| kind.split(';').next().unwrap_or(kind).trim());
    essence.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_may_be_as_large_as_allowed_and_no_larger() {
        let read = |size: usize| read_body(Body::from(vec![b'x'; size]), 10);
        assert_eq!(read(10).await.unwrap().len(), 10);
        assert_eq!(read(11).await, Err(BodyError::TooLarge { limit: 10 }));
        assert_eq!(read(DISCARD_MAX + 100).await, Err(BodyError::TooLarge { limit: 10 }));
    }

    #[test]
    fn json_is_recognised_by_its_type() {
        let with = |kind: &str| {
            is_json(&HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())]))
        };
        assert!(with("application/json"));
        assert!(with("Application/JSON; charset=utf-8"));
        assert!(!with("text/plain"));
        assert!(!with("application/x-www-form-urlencoded"));
        assert!(!is_json(&HeaderMap::new()));
    }
}
