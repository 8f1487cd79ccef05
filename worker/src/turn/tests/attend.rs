//! What comes along with a message: voice notes, pictures, documents, and what the person points at.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body as Content, Bytes};
use axum::response::Response;
use futures_util::future::BoxFuture;
use node::settings::Settings;
use proto::event::{Media, MediaKind};
use proto::transcript::Body;
use tokio::sync::mpsc;

use super::client;
use super::events::Events;
use super::provider::{Form, Provider, Step};
use super::rig::Rig;
use crate::metrics::Ended;
use crate::models::{Answer, Model, ModelError, Request, Words};

/// A model that cannot see.
struct Blind(Arc<dyn Model>);

impl Model for Blind {
    fn call<'a>(
        &'a self,
        request: Request<'a>,
        words: Words,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.0.call(request, words)
    }
}

/// A speech service: hears "buy milk" in everything, or never answers; says "sound". Returns its address and what it is sent.
async fn speech(answers: bool) -> (String, mpsc::UnboundedReceiver<(String, Bytes)>) {
    let (sender, heard) = mpsc::unbounded_channel();
    let answer = move |uri: axum::http::Uri, body: Bytes| {
        let sender = sender.clone();
        async move {
            let _ = sender.send((uri.path().to_owned(), body));
            if !answers {
                std::future::pending::<()>().await;
            }
            let text =
                if uri.path().ends_with("speech") { "sound" } else { r#"{"text":"buy milk"}"# };
            Ok::<_, Infallible>(Response::new(Content::from(text)))
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    (url, heard)
}

async fn rig(speech: &str) -> Option<(Rig, Provider)> {
    let script = |said: &str, calls: usize| {
        let call =
            |name: &'static str, arguments| Step { words: vec![], calls: vec![(name, arguments)] };
        let words = |words: &'static str| Step { words: vec![words], calls: vec![] };
        match (said, calls) {
            (said, _) if said.contains("what colour") => words("it is black"),
            (said, _) if said.starts_with("Describe") => words("a cat"),
            (said, 0) if said.contains("use your eyes") => call(
                "look_at_picture",
                serde_json::json!({ "picture": "cat.png", "question": "what colour is it?" }),
            ),
            (said, 0) if said.contains("speak") => call(
                "text_to_speech",
                serde_json::json!({ "text": "hello", "path": "out/hello.mp3" }),
            ),
            _ => words("I see."),
        }
    };
    let provider = Provider::start(Arc::new(script), Events::default()).await;
    let set = |settings: &mut Settings| {
        settings.worker.speech.url = speech.to_owned();
        settings.worker.vision_model = "openai:gpt-5".into();
        settings.model.openai_base_url.clone_from(&provider.base_url);
    };
    let model = Arc::new(Blind(client(&provider, Form::OpenAi)));
    let rig = Rig::start(model, (vec![], set)).await?;
    Some((rig, provider))
}

fn media(kind: MediaKind, url: &str, name: &str) -> Media {
    Media { url: url.into(), kind, mime: None, name: Some(name.into()), group: None }
}

fn said(bodies: &[Body]) -> String {
    let text =
        |body: &Body| if let Body::User { text, .. } = body { Some(text.clone()) } else { None };
    bodies.iter().filter_map(text).next_back().unwrap()
}

#[test]
fn what_comes_along_is_made_into_words() {
    node::process::block_on(async {
        let (url, mut heard) = speech(true).await;
        let Some((rig, provider)) = rig(&url).await else { return Ok(()) };
        let mut asked = rig.say("m", "look at all this").await;
        asked.event.media = vec![
            media(MediaKind::Voice, "data:audio/ogg;base64,T2dnUw==", "note.ogg"),
            media(MediaKind::Photo, "data:image/png;base64,iVBORw0KGgo=", "cat.png"),
            media(MediaKind::Document, "data:text/plain;base64,aGVsbG8=", "hello.txt"),
            media(MediaKind::Document, "data:text/plain;base64,/////w==", "odd.txt"),
            media(MediaKind::Document, "data:application/zip;base64,UEs=", "all.zip"),
        ];
        asked.seq = rig.publish(&asked.event).await;
        assert_eq!(asked.turn(1).0.run().await, Ended::Completed);
        let text = said(&asked.transcript().await);
        for part in [
            "[the voice note says: \"buy milk\"]",
            "[the photo shows: a cat]",
            "[contents of hello.txt]\nhello\n[end of hello.txt]",
            "[odd.txt could not be read: it is not text]",
            "[document all.zip]",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let (path, body) = heard.recv().await.unwrap();
        let body = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(path, "/v1/audio/transcriptions");
        assert!(body.contains("OggS") && body.contains("whisper-1") && body.contains("note.ogg"));
        assert_eq!(provider.refusals(), Vec::<String>::new());
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_stop_is_not_kept_waiting_by_a_transcription_and_what_was_said_is_kept() {
    node::process::block_on(async {
        let (url, mut heard) = speech(false).await;
        let Some((rig, provider)) = rig(&url).await else { return Ok(()) };
        let mut asked = rig.say("m", "listen").await;
        asked.event.media =
            vec![media(MediaKind::Voice, "data:audio/ogg;base64,T2dnUw==", "n.ogg")];
        asked.seq = rig.publish(&asked.event).await;
        let (turn, hands) = asked.turn(1);
        let gauge = hands.gauge.clone();
        let stop = async {
            heard.recv().await.unwrap();
            assert_eq!(gauge.read().last_activity_desc, "transcribing a voice note");
            hands.interrupt();
        };
        let both = async { tokio::join!(turn.run(), stop) };
        let (ended, ()) = tokio::time::timeout(Duration::from_secs(10), both).await?;
        assert_eq!(ended, Ended::Interrupted);
        assert!(said(&asked.transcript().await).starts_with("listen\n[voice note n.ogg]"));
        assert!(provider.requests().is_empty(), "the model was not asked");
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_a_person_points_at_is_read_by_the_rules_of_the_tools() {
    node::process::block_on(async {
        let Some((rig, _provider)) = rig("").await else { return Ok(()) };
        let folder = rig.shared.node.settings.worker.workspace.clone();
        std::fs::write(folder.join("notes.txt"), "one\ntwo\nthree\n")?;
        let text = "compare @file:notes.txt:2-2 with @file:../outside and @file:.env and @url:http://127.0.0.1:1/";
        let asked = rig.say("r", text).await;
        assert_eq!(asked.turn(1).0.run().await, Ended::Completed);
        let text = said(&asked.transcript().await);
        assert!(text.contains("[@file:notes.txt:2-2]\ntwo\n"), "{text}");
        assert!(!text.contains("\none\n"), "{text}");
        assert!(text.contains("outside the workspace") && text.contains("are not read"), "{text}");
        assert!(text.contains("[@url:http://127.0.0.1:1/: error:"), "{text}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_agent_looks_at_pictures_and_speaks() {
    node::process::block_on(async {
        let (url, _heard) = speech(true).await;
        let Some((rig, provider)) = rig(&url).await else { return Ok(()) };
        let folder = rig.shared.node.settings.worker.workspace.clone();
        std::fs::write(folder.join("cat.png"), [0x89, b'P', b'N', b'G', 0, 0])?;
        for (text, result) in [("use your eyes", "it is black"), ("speak", "5 bytes of MP3")] {
            let asked = rig.say("t", text).await;
            assert_eq!(asked.turn(1).0.run().await, Ended::Completed);
            let bodies = asked.transcript().await;
            let found = bodies
                .iter()
                .any(|body| matches!(body, Body::Result { output, .. } if output.contains(result)));
            assert!(found, "{text}: {bodies:?}");
        }
        assert_eq!(std::fs::read(folder.join("out/hello.mp3"))?, b"sound");
        assert_eq!(provider.refusals(), Vec::<String>::new());
        Ok(())
    })
    .unwrap();
}
