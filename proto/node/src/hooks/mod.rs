//! Hooks: an operator's programs and addresses that hear of what happens. What they are told they are told in order, beside the
//! work and never in its way; only about commands are they asked, and then for a moment. An error of a hook breaks nothing.

mod call;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use prometheus::{IntCounterVec, Registry};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use self::call::Place;
use crate::exit::Exit;
use crate::metric::Maker;
use crate::settings::{self, OnError};

/// How many events one hook may be behind; what comes then is dropped, and counted.
const BEHIND_MAX: usize = 1024;
/// The events, beside those of commands.
const EVENTS: [&str; 7] = [
    "gateway:startup",
    "session:start",
    "session:end",
    "session:reset",
    "agent:start",
    "agent:step",
    "agent:end",
];
/// The kind of event that is about commands.
const COMMAND: &str = "command:";

/// What the hooks say of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is carried out, in this form.
    Allowed {
        /// The whole text, with the slash.
        text: String,
    },
    /// It is not.
    Denied {
        /// What the person is told.
        message: String,
    },
}

/// All hooks. Cheap to clone.
#[derive(Clone, Default)]
pub struct Hooks(Arc<[Hook]>);

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|hook| &hook.bell.name)).finish()
    }
}

struct Hook {
    bell: Arc<Bell>,
    queue: mpsc::Sender<Job>,
}

/// One hook, as it is called.
struct Bell {
    name: String,
    settings: settings::Hook,
    place: Place,
    calls: IntCounterVec,
}

enum Job {
    Tell(Value),
    Flush(oneshot::Sender<()>),
}

/// An answer about a command. `handled` is a denial that is none: the hook has done what was wanted.
#[derive(Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
enum Answer {
    Allow,
    Deny {
        #[serde(default)]
        message: Option<String>,
    },
    Handled {
        #[serde(default)]
        message: Option<String>,
    },
    Rewrite {
        text: String,
    },
}

impl Hooks {
    /// The hooks of the settings, each with a task of its own that tells it what happens.
    ///
    /// # Errors
    /// When one of them cannot be used as it is set: exit 78.
    pub fn start(
        settings: &BTreeMap<String, settings::Hook>,
        metrics: &Registry,
    ) -> anyhow::Result<Self> {
        let calls = Maker(metrics).counters(
            "talaria_hook_calls_total",
            "Events that were passed to hooks, by how it went",
            "outcome",
            &["ok", "failed", "dropped"],
        )?;
        let hook = |(name, settings): (&String, &settings::Hook)| {
            let place = checked(settings)
                .with_context(|| format!("bad hooks.{name}"))
                .context(Exit::Configuration)?;
            let bell = Bell {
                name: name.clone(),
                settings: settings.clone(),
                place,
                calls: calls.clone(),
            };
            let bell = Arc::new(bell);
            let (queue, jobs) = mpsc::channel(BEHIND_MAX);
            tokio::spawn(tell_in_order(Arc::clone(&bell), jobs));
            Ok(Hook { bell, queue })
        };
        Ok(Self(settings.iter().map(hook).collect::<anyhow::Result<_>>()?))
    }

    /// Whether anyone hears of this.
    #[must_use]
    pub fn hear(&self, event: &str) -> bool {
        self.0.iter().any(|hook| hook.bell.hears(event))
    }

    /// Tells whoever hears of it. `about` is an object; nothing waits for the hooks.
    pub fn tell(&self, event: &str, about: impl FnOnce() -> Value) {
        if !self.hear(event) {
            return;
        }
        let message = message(event, about());
        for hook in self.0.iter().filter(|hook| hook.bell.hears(event)) {
            if hook.queue.try_send(Job::Tell(message.clone())).is_err() {
                hook.bell.calls.with_label_values(&["dropped"]).inc();
                tracing::warn!(hook = hook.bell.name, event, "a hook is too far behind to be told");
            }
        }
    }

    /// Asks about a command, in the order of the hooks' names. `word` is its name and `text` all that was written; `about` says
    /// of whom it comes. The first that denies decides; one that rewrites hands the new form on to the next.
    pub async fn judge(&self, word: &str, text: String, about: &Value) -> Verdict {
        let event = format!("{COMMAND}{word}");
        let mut text = text;
        for hook in self.0.iter().filter(|hook| hook.bell.hears(&event)) {
            let mut asked = message(&event, about.clone());
            asked["text"] = text.as_str().into();
            match hook.bell.ask(&asked).await {
                Ok(None | Some(Answer::Allow)) => {}
                Ok(Some(Answer::Rewrite { text: other })) => text = other,
                Ok(Some(Answer::Deny { message } | Answer::Handled { message })) => {
                    let message = message.unwrap_or_else(|| "This command is not allowed.".into());
                    return Verdict::Denied { message };
                }
                Err(()) if hook.bell.settings.on_error == OnError::Deny => {
                    let message =
                        "Whoever should allow this command cannot be asked at the moment.";
                    return Verdict::Denied { message: message.into() };
                }
                Err(()) => {}
            }
        }
        Verdict::Allowed { text }
    }

    /// Waits until everything that was told has arrived, for so long at most.
    pub async fn flush(&self, limit: Duration) {
        let all = async {
            for hook in &*self.0 {
                let (done, told) = oneshot::channel();
                if hook.queue.send(Job::Flush(done)).await.is_ok() {
                    let _ = told.await;
                }
            }
        };
        if tokio::time::timeout(limit, all).await.is_err() {
            tracing::warn!("some hooks were not told everything");
        }
    }
}

/// Checks what is set, and says where the hook is.
fn checked(settings: &settings::Hook) -> anyhow::Result<Place> {
    if settings.events.is_empty() {
        bail!("events is empty; there are {} and command:<name>", EVENTS.join(", "));
    }
    for pattern in &settings.events {
        let known = EVENTS.iter().any(|event| is_heard(pattern, event));
        if !known && !pattern.starts_with(COMMAND) {
            bail!("no event {pattern:?}; there are {} and command:<name>", EVENTS.join(", "));
        }
    }
    Place::of(settings)
}

/// Whether a pattern of the settings means an event.
fn is_heard(pattern: &str, event: &str) -> bool {
    pattern == event || pattern.strip_suffix('*').is_some_and(|start| event.starts_with(start))
}

fn message(event: &str, about: Value) -> Value {
    let mut message = json!({ "event": event });
    if let (Some(all), Value::Object(about)) = (message.as_object_mut(), about) {
        all.extend(about);
    }
    message
}

async fn tell_in_order(bell: Arc<Bell>, mut jobs: mpsc::Receiver<Job>) {
    while let Some(job) = jobs.recv().await {
        match job {
            Job::Tell(message) => drop(bell.call(&message).await),
            // Whoever waits may have given up.
            Job::Flush(done) => drop(done.send(())),
        }
    }
}

impl Bell {
    fn hears(&self, event: &str) -> bool {
        self.settings.events.iter().any(|pattern| is_heard(pattern, event))
    }

    /// Calls the hook; what goes wrong is said here, once.
    async fn call(&self, message: &Value) -> Result<Value, ()> {
        let outcome = self.place.call(&self.settings, message).await;
        let label = if outcome.is_ok() { "ok" } else { "failed" };
        self.calls.with_label_values(&[label]).inc();
        outcome.map_err(|error| {
            tracing::warn!(hook = self.name, event = %message["event"], "a hook failed: {error:#}");
        })
    }

    async fn ask(&self, message: &Value) -> Result<Option<Answer>, ()> {
        let answer = self.call(message).await?;
        if answer.is_null() {
            return Ok(None);
        }
        Answer::deserialize(&answer).map(Some).map_err(|error| {
            tracing::warn!(hook = self.name, "a hook's answer has no decision: {error}");
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Span;

    fn script(events: &[&str], script: &str) -> settings::Hook {
        settings::Hook {
            events: events.iter().map(|event| (*event).to_owned()).collect(),
            command: "sh".into(),
            args: vec!["-c".into(), script.into()],
            ..settings::Hook::default()
        }
    }

    fn hooks(all: Vec<settings::Hook>) -> Hooks {
        let named = all.into_iter().enumerate().map(|(at, hook)| (format!("h{at}"), hook));
        Hooks::start(&named.collect(), &Registry::new()).unwrap()
    }

    async fn judged(all: Vec<settings::Hook>) -> Verdict {
        let about = json!({ "platform": "test", "user_id": "u1" });
        hooks(all).judge("model", "/model gpt".into(), &about).await
    }

    fn allowed(text: &str) -> Verdict {
        Verdict::Allowed { text: text.into() }
    }

    fn denied(message: &str) -> Verdict {
        Verdict::Denied { message: message.into() }
    }

    #[tokio::test]
    async fn a_command_is_allowed_denied_or_rewritten() {
        let rewrite = r#"cat > /dev/null; echo '{"decision":"rewrite","text":"/model small"}'"#;
        let deny_small =
            r#"grep -q small && echo '{"decision":"deny","message":"not small"}'; true"#;
        assert_eq!(judged(vec![]).await, allowed("/model gpt"));
        assert_eq!(judged(vec![script(&["command:*"], "true")]).await, allowed("/model gpt"));
        assert_eq!(
            judged(vec![script(&["command:model"], rewrite)]).await,
            allowed("/model small")
        );
        assert_eq!(
            judged(vec![script(&["*"], rewrite), script(&["command:*"], deny_small)]).await,
            denied("not small"),
            "the next one sees what the one before has made of it"
        );
        assert_eq!(judged(vec![script(&["command:new"], "exit 1")]).await, allowed("/model gpt"));
    }

    #[tokio::test]
    async fn a_hook_that_fails_or_hangs_breaks_nothing_unless_it_is_to_deny() {
        let strict = |hook| settings::Hook { on_error: OnError::Deny, ..hook };
        let slow = settings::Hook {
            timeout: Span::from(Duration::from_millis(50)),
            ..script(&["command:*"], "sleep 600")
        };
        for broken in [script(&["*"], "exit 3"), script(&["*"], "echo no json"), slow] {
            assert_eq!(judged(vec![broken.clone()]).await, allowed("/model gpt"));
            let verdict = judged(vec![strict(broken)]).await;
            assert!(matches!(verdict, Verdict::Denied { .. }), "{verdict:?}");
        }
    }

    #[tokio::test]
    async fn what_is_told_arrives_in_order_with_what_it_is_about() {
        let folder = std::env::temp_dir().join(format!("talaria-hooks-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("heard");
        let hook = script(&["agent:*"], &format!("cat >> {0}; echo >> {0}", file.display()));
        let hooks = hooks(vec![hook]);
        for number in 0..3 {
            hooks.tell("agent:step", || json!({ "iteration": number }));
        }
        hooks.tell("session:start", || unreachable!("no one hears of it"));
        hooks.flush(Duration::from_secs(30)).await;
        let heard = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<Value> =
            heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        std::fs::remove_dir_all(folder).unwrap();
        let expected = |number: u64| json!({ "event": "agent:step", "iteration": number });
        assert_eq!(lines, [expected(0), expected(1), expected(2)]);
    }

    #[test]
    fn settings_that_cannot_be_meant_are_errors() {
        let good = script(&["agent:end"], "true");
        let bad = [
            settings::Hook { events: vec![], ..good.clone() },
            settings::Hook { events: vec!["agent:stop".into()], ..good.clone() },
            settings::Hook { command: String::new(), ..good.clone() },
            settings::Hook { url: "http://localhost".into(), ..good.clone() },
            settings::Hook { command: String::new(), url: "ftp://x".into(), ..good.clone() },
        ];
        for hook in bad {
            assert!(checked(&hook).is_err(), "{hook:?}");
        }
        assert!(checked(&good).is_ok());
    }
}
