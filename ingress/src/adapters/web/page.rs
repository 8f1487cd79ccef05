//! The page itself: plain files inside the binary, and the headers that let them do nothing else.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use crate::problem::Problem;

const INDEX: &str = include_str!("../../page/index.html");
/// The page's scripts, in the order in which it loads them.
const SCRIPTS: [(&str, &str); 4] = [
    ("markdown.js", include_str!("../../page/markdown.js")),
    ("page.js", include_str!("../../page/page.js")),
    ("own.js", include_str!("../../page/own.js")),
    ("menu.js", include_str!("../../page/menu.js")),
];
const STYLE: &str = include_str!("../../page/page.css");
const CLOSED: &str = include_str!("../../page/closed.html");

/// Everything is refused but the page's own script, style and server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // The address may hold the token for a moment: it is told to no one.
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

/// The chat page.
pub(crate) fn index() -> Response {
    (HEADERS, Html(INDEX)).into_response()
}

/// The page that says how to get in.
pub(crate) fn closed() -> Response {
    (StatusCode::UNAUTHORIZED, HEADERS, Html(CLOSED)).into_response()
}

/// One of the page's scripts.
pub(crate) async fn script(Path(name): Path<String>) -> Response {
    match SCRIPTS.into_iter().find(|(known, _)| *known == name) {
        Some((_, text)) => asset("text/javascript; charset=utf-8", text),
        None => {
            Problem::new(StatusCode::NOT_FOUND, "there is nothing at this address").into_response()
        }
    }
}

/// The page's style.
pub(crate) async fn style() -> Response {
    asset("text/css; charset=utf-8", STYLE)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    (HEADERS, [(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Whether a request comes from our own page, as far as browsers say: no other site may speak in the person's name.
pub(crate) fn is_own(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = headers.get("sec-fetch-site")
        && site != "same-origin"
        && site != "none"
    {
        return false;
    }
    let Some(origin) = text(header::ORIGIN) else { return true };
    let host = text(header::HOST).unwrap_or_default();
    origin.split_once("://").is_some_and(|(_, origin)| !host.is_empty() && origin == host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn another_site_is_not_our_own() {
        let host = ("host", "127.0.0.1:8080");
        assert!(is_own(&headers(&[host])));
        assert!(is_own(&headers(&[host, ("origin", "http://127.0.0.1:8080")])));
        assert!(is_own(&headers(&[host, ("sec-fetch-site", "same-origin")])));
        assert!(!is_own(&headers(&[host, ("origin", "http://127.0.0.1:9090")])));
        assert!(!is_own(&headers(&[host, ("origin", "https://evil.example")])));
        assert!(!is_own(&headers(&[host, ("origin", "null")])));
        assert!(!is_own(&headers(&[host, ("sec-fetch-site", "cross-site")])));
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let scripts = SCRIPTS.into_iter().map(|(_, text)| text);
        for text in [INDEX, STYLE, CLOSED].into_iter().chain(scripts) {
            assert!(!text.contains("https://") && !text.contains("innerHTML"), "{text}");
        }
        assert!(!INDEX.contains("<script>") && !INDEX.contains("style="));
        let places = SCRIPTS.map(|(name, _)| INDEX.find(&format!("src=\"/web/{name}\"")));
        assert!(places.iter().all(Option::is_some) && places.is_sorted());
    }
}
