//! What a turn does when its model cannot answer, and what a model is shown.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proto::activity::State;
use proto::event::{Media, MediaKind};
use proto::turn::{News, Outcome};

use super::events::Events;
use super::provider::{Form, Provider, Step};
use super::rig::Rig;
use super::{client, client_of};
use crate::metrics::Ended;
use crate::models::{Answer, Model, ModelError, Request, Words};

/// Fails always, and has another behind it.
struct Broken(ModelError, Option<Arc<dyn Model>>);

impl Model for Broken {
    fn call<'a>(
        &'a self,
        _request: Request<'a>,
        words: Words,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        words.say("half an answer that is taken back");
        async { Err(self.0.clone()) }.boxed()
    }

    fn fallback(&self) -> Option<Arc<dyn Model>> {
        self.1.clone()
    }
}

#[test]
fn the_next_model_answers_when_the_first_cannot() {
    node::process::block_on(async {
        let script = |_: &str, _| Step { words: vec!["From the second."], calls: vec![] };
        let provider = Provider::start(Arc::new(script), Events::default()).await;
        let second = client(&provider, Form::OpenAi);
        let auth = ModelError::Auth { message: "no".into() };
        let quota = ModelError::Quota { retry_after: Some(Duration::from_secs(60)) };
        let middle: Arc<dyn Model> = Arc::new(Broken(quota, Some(second)));
        let first = Arc::new(Broken(auth, Some(middle)));
        let Some(rig) = Rig::start(first, (vec![], |_: &mut _| {})).await else { return Ok(()) };
        let asked = rig.say("f", "hi").await;
        assert_eq!(asked.turn(1).0.run().await, Ended::Completed);
        let News::Finished { reply, .. } = asked.news().await else { panic!("finished") };
        assert_eq!(reply, "From the second.");
        assert_eq!(rig.shared.metrics.fallbacks.get(), 2);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_wait_for_quota_shows_and_ends_with_a_stop() {
    node::process::block_on(async {
        let quota = ModelError::Quota { retry_after: Some(Duration::from_secs(200)) };
        let model = Arc::new(Broken(quota, None));
        let Some(rig) = Rig::start(model, (vec![], |_: &mut _| {})).await else { return Ok(()) };
        let (turn, hands) = rig.say("q", "hi").await.turn(1);
        let watch = async {
            while hands.gauge.read().state != State::WaitingForQuota {
                tokio::task::yield_now().await;
            }
            hands.interrupt();
        };
        let run = tokio::time::timeout(Duration::from_secs(10), turn.run());
        let (ended, ()) = tokio::join!(run, watch);
        assert_eq!(ended.unwrap(), Ended::Interrupted);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_refused_key_is_told_in_a_sentence() {
    node::process::block_on(async {
        let model = Arc::new(Broken(ModelError::Auth { message: "sk-1".into() }, None));
        let Some(rig) = Rig::start(model, (vec![], |_: &mut _| {})).await else { return Ok(()) };
        let asked = rig.say("k", "hi").await;
        assert_eq!(asked.turn(1).0.run().await, Ended::Failed);
        let News::Finished { reply, outcome, .. } = asked.news().await else { panic!("finished") };
        assert_eq!(outcome, Outcome::Failed);
        assert!(reply.contains("API key") && !reply.contains("sk-1"), "{reply}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn pictures_are_seen_now_and_in_the_next_turn_and_bad_ones_are_left_out() {
    node::process::block_on(async {
        let script = |_: &str, _| Step { words: vec!["I see."], calls: vec![] };
        let provider = Provider::start(Arc::new(script), Events::default()).await;
        for (form, sign) in [(Form::OpenAi, "image_url\""), (Form::Anthropic, "media_type\"")] {
            let model = client_of(&provider, form, 0);
            let Some(rig) = Rig::start(model, (vec![], |_: &mut _| {})).await else {
                return Ok(());
            };
            let mut asked = rig.say("p", "look").await;
            let photo = |url: &str| Media {
                url: url.into(),
                kind: MediaKind::Photo,
                mime: None,
                name: None,
                group: None,
            };
            asked.event.media =
                vec![photo("data:image/png;base64,iVBORw0KGgo="), photo("http://127.0.0.1:1/x")];
            asked.seq = rig.publish(&asked.event).await;
            assert_eq!(asked.turn(1).0.run().await, Ended::Completed);
            rig.shared.shelf.take(asked.event.session.sid());
            assert_eq!(rig.say("p", "and?").await.turn(1).0.run().await, Ended::Completed);
            let requests = provider.requests();
            for request in requests.iter().rev().take(2) {
                let text = request["messages"].to_string();
                assert_eq!(text.matches("iVBORw0KGgo=").count(), 1, "{text}");
                assert!(
                    text.contains(sign) && text.contains("[photo: http://127.0.0.1:1/x]"),
                    "{text}"
                );
            }
        }
        assert_eq!(provider.refusals(), Vec::<String>::new());
        Ok(())
    })
    .unwrap();
}
