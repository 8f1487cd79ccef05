//! `web_search`: asks a search service that the operator chose.

use std::time::Duration;

use anyhow::Context;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use node::settings::{SearchKind, WebSearch as Settings};
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Effort, Output, Tool, arguments};
use crate::models::ToolSpec;

/// How long a search may take.
const LIMIT: Duration = Duration::from_secs(20);
/// How many results are shown when nothing is said.
const COUNT: usize = 5;
/// The most that are shown.
const COUNT_MAX: usize = 20;

/// The tool.
pub(super) struct WebSearch {
    http: reqwest::Client,
    settings: Settings,
    url: Url,
}

#[derive(Deserialize)]
struct Call {
    query: String,
    #[serde(default)]
    count: Option<usize>,
}

impl WebSearch {
    /// None where no service is chosen.
    pub(super) fn new(settings: &Settings) -> anyhow::Result<Option<Self>> {
        let default = match settings.kind {
            SearchKind::Searxng => "",
            SearchKind::Brave => "https://api.search.brave.com/res/v1/web/search",
            SearchKind::Tavily => "https://api.tavily.com/search",
        };
        let url = if settings.url.is_empty() { default } else { &settings.url };
        if url.is_empty()
            || (settings.kind != SearchKind::Searxng && settings.key.given().is_none())
        {
            return Ok(None);
        }
        let url = url.parse().with_context(|| format!("bad worker.search.url {url:?}"))?;
        let http = crate::http::builder().timeout(LIMIT).build().context("no HTTP client")?;
        Ok(Some(Self { http, settings: settings.clone(), url }))
    }

    async fn search(&self, call: &Value) -> Output {
        let call: Call = match arguments(call) {
            Ok(call) => call,
            Err(output) => return output,
        };
        let count = call.count.unwrap_or(COUNT).clamp(1, COUNT_MAX);
        match self.ask(&call.query, count).await {
            Ok(answer) => Output::done(shown(&answer, count)),
            Err(error) => Output::failed(error.without_url()),
        }
    }

    async fn ask(&self, query: &str, count: usize) -> reqwest::Result<Value> {
        let key = self.settings.key.expose();
        let mut url = self.url.clone();
        let request = match self.settings.kind {
            SearchKind::Searxng => {
                url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
                self.http.get(url)
            }
            SearchKind::Brave => {
                let wanted = count.to_string();
                url.query_pairs_mut().append_pair("q", query).append_pair("count", &wanted);
                self.http.get(url).header("X-Subscription-Token", key)
            }
            SearchKind::Tavily => {
                let body = json!({ "query": query, "max_results": count });
                self.http.post(url).bearer_auth(key).json(&body)
            }
        };
        request.send().await?.error_for_status()?.json().await
    }
}

/// The results as text, whichever service they are from.
fn shown(answer: &Value, count: usize) -> String {
    let results = answer["results"].as_array().or_else(|| answer["web"]["results"].as_array());
    let lines: Vec<String> = results
        .into_iter()
        .flatten()
        .take(count)
        .map(|result| {
            let text = |key: &str| result[key].as_str().unwrap_or_default();
            let about =
                if text("content").is_empty() { text("description") } else { text("content") };
            format!("{}\n{}\n{}", text("title"), text("url"), crate::text::start(about, 500))
        })
        .collect();
    if lines.is_empty() { "[nothing found]".into() } else { lines.join("\n\n") }
}

impl Tool for WebSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "web_search".into(),
            description:
                "Searches the web and returns titles, addresses and a few words of each result."
                    .into(),
            parameters: json!({ "type": "object", "required": ["query"], "properties": {
                "query": { "type": "string" },
                "count": { "type": "integer", "description": "how many; 5 if left out" },
            }}),
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn limit(&self, _call: &Value) -> Option<Duration> {
        Some(LIMIT)
    }

    fn summary(&self, call: &Value) -> String {
        call["query"].as_str().unwrap_or_default().to_owned()
    }

    fn run<'a>(&'a self, call: &'a Value, effort: &'a Effort) -> BoxFuture<'a, Output> {
        effort.until_cut(self.search(call)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use axum::extract::Query;
    use axum::routing::{get, post};
    use axum::{Json, Router};
    use node::settings::Secret;

    use super::super::tests::effort;
    use super::*;

    #[test]
    fn each_service_is_asked_in_its_way() {
        node::process::block_on(async {
            let result = json!({ "title": "T", "url": "http://u", "content": "about" });
            let (one, two, three) = (result.clone(), result.clone(), result);
            let searxng = move |Query(query): Query<HashMap<String, String>>| async move {
                assert_eq!((query["q"].as_str(), query["format"].as_str()), ("a b", "json"));
                Json(json!({ "results": [one.clone(), one] }))
            };
            let brave = || async move { Json(json!({ "web": { "results": [two] } })) };
            let tavily = |Json(body): Json<Value>| async move {
                assert_eq!(body["query"], "a b");
                Json(json!({ "results": [three] }))
            };
            let app = Router::new()
                .route("/searxng", get(searxng))
                .route("/brave", get(brave))
                .route("/tavily", post(tavily));
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            let base = format!("http://{}", listener.local_addr()?);
            tokio::spawn(async move { axum::serve(listener, app).await });
            for (kind, path) in [
                (SearchKind::Searxng, "searxng"),
                (SearchKind::Brave, "brave"),
                (SearchKind::Tavily, "tavily"),
            ] {
                let settings =
                    Settings { kind, url: format!("{base}/{path}"), key: Secret::new("k".into()) };
                let tool = WebSearch::new(&settings)?.unwrap();
                let output = tool.run(&json!({ "query": "a b", "count": 1 }), &effort()).await;
                assert_eq!(output, Output::done("T\nhttp://u\nabout"), "{kind:?}");
            }
            assert!(WebSearch::new(&Settings::default())?.is_none());
            Ok(())
        })
        .unwrap();
    }
}
