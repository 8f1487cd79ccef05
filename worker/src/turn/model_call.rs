//! One model call: streamed to the person as it comes, cancelled by dropping it, tried again where that can help.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use node::trace;
use proto::activity::State;
use proto::subject;
use tracing::Instrument;

use super::compress::Compressed;
use super::spoken::{Spoken, Stage};
use super::work::Work;
use super::{Halt, Stop, Turn};
use crate::activity::Tracker;
use crate::fence::Lost;
use crate::models::{Answer, Calls, Message, ModelError, Request, Sign, Words};
use crate::transcript::rendered;

/// How often a call is tried before its error is told.
const TRIES_MAX: u32 = 5;
/// The longest pause that is taken where another model could go on.
const PAUSE_BEFORE_FALLBACK: Duration = Duration::from_secs(5);
/// The longest pause that a provider may ask for; beyond it the person is told at once.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// What the model is told when it may make no more calls.
const SUM_UP: &str = "[You have used all your steps for this turn. Without calling tools, say briefly what was done and what \
                      is left to do.]";

/// How a call went.
pub(super) enum Called {
    /// The model answered.
    Answered(Answer),
    /// It was stopped.
    Stopped(Stop),
    /// It failed, for good.
    Failed(ModelError),
}

/// What a streaming call came to.
enum Streamed {
    Done(Result<Answer, ModelError>),
    Cut,
}

impl Work<'_> {
    /// Asks the model, and whoever stands behind it, as often as is sensible.
    pub(super) async fn call_model(&mut self, calls: Calls) -> Result<Called, Halt> {
        let mut is_shorter = false;
        loop {
            let error = match self.call_patiently(calls).await? {
                Called::Failed(error) => error,
                done @ (Called::Answered(_) | Called::Stopped(_)) => return Ok(done),
            };
            if error == ModelError::ContextTooLong && !is_shorter {
                is_shorter = true;
                match Box::pin(self.compress()).await? {
                    Compressed::Shorter => continue,
                    Compressed::Stopped(stop) => return Ok(Called::Stopped(stop)),
                    Compressed::AsItWas => {}
                }
            }
            let Some(next) = self.model.fallback() else { return Ok(Called::Failed(error)) };
            tracing::warn!(%error, "another model goes on");
            self.turn.shared.metrics.fallbacks.inc();
            self.spoken.take_back();
            self.model = next;
        }
    }

    /// Asks one model; waits and asks again where that can help.
    async fn call_patiently(&mut self, calls: Calls) -> Result<Called, Halt> {
        let patience =
            if self.model.fallback().is_some() { PAUSE_BEFORE_FALLBACK } else { PAUSE_MAX };
        let quota = self.turn.shared.node.settings.agent.quota_timeout.limit();
        let mut waited = Duration::ZERO;
        for tries in 0.. {
            self.spoken.begin();
            let error = match self.try_call(calls, tries).await? {
                Streamed::Cut => return Ok(Called::Stopped(self.why_cut())),
                Streamed::Done(Ok(answer)) => return Ok(Called::Answered(answer)),
                Streamed::Done(Err(error)) => error,
            };
            self.turn.shared.metrics.model_errors.with_label_values(&[error.label()]).inc();
            tracing::warn!(%error, tries, "a model call failed");
            let within = |pause: &Duration| quota.is_none_or(|limit| waited + *pause <= limit);
            let pause = error.pause(tries).filter(|pause| *pause <= patience).filter(within);
            let Some(pause) = pause.filter(|_| tries + 1 < TRIES_MAX) else {
                return Ok(Called::Failed(error));
            };
            waited += pause;
            self.spoken.take_back();
            self.tracker.enter(State::WaitingForQuota, &error.to_string());
            tokio::select! {
                () = self.cut.cancelled() => return Ok(Called::Stopped(self.why_cut())),
                () = tokio::time::sleep(scattered(pause)) => {}
            }
            if let Some(stop) = self.turn.stopped() {
                return Ok(Called::Stopped(stop));
            }
        }
        unreachable!("the last try returns")
    }

    fn why_cut(&self) -> Stop {
        self.turn.stopped().unwrap_or(Stop::HandBack)
    }

    async fn try_call(&mut self, calls: Calls, tries: u32) -> Result<Streamed, Halt> {
        let span = tracing::info_span!(
            "model_call",
            otel.kind = "client",
            iteration = self.iteration,
            tries,
        );
        let (provider, name) = (self.model.provider(), self.model.name().to_owned());
        let max_tokens = i64::from(self.turn.shared.node.settings.model.max_tokens);
        trace::describe(
            &span,
            format!("chat {name}"),
            [
                ("gen_ai.operation.name", "chat".into()),
                ("gen_ai.provider.name", provider.into()),
                ("gen_ai.request.model", name.into()),
                ("gen_ai.request.max_tokens", max_tokens.into()),
                ("gen_ai.conversation.id", self.turn.order.of.sid.to_string().into()),
            ],
        );
        let started = Instant::now();
        self.turn.fence.check()?;
        self.tracker.enter(State::WaitingForModel, "");
        let streamed = self.stream(calls, started).instrument(span.clone()).await?;
        note(&span, &streamed);
        self.turn.shared.metrics.model_call.observe(started.elapsed().as_secs_f64());
        self.turn.fence.check()?;
        let Streamed::Done(Ok(answer)) = streamed else { return Ok(streamed) };
        self.tracker.touch();
        self.room.measure(answer.usage, self.log.entries());
        self.usage.input += answer.usage.input;
        self.usage.output += answer.usage.output;
        let tokens = &self.turn.shared.metrics.tokens;
        tokens.with_label_values(&["input"]).inc_by(answer.usage.input);
        tokens.with_label_values(&["output"]).inc_by(answer.usage.output);
        // A model that does not stream says everything at the end.
        let rest = answer.text.strip_prefix(self.spoken.segment()).unwrap_or_default().to_owned();
        self.spoken.push(&rest);
        show(self.turn, self.stage.as_ref(), &mut self.spoken).await?;
        if self.spoken.segment().is_empty() && answer.calls.is_empty() {
            return Ok(Streamed::Done(Err(ModelError::Empty)));
        }
        Ok(Streamed::Done(Ok(answer)))
    }

    /// Runs the call and passes its words on. The call is part of this future, so that dropping either ends both.
    async fn stream(&mut self, calls: Calls, started: Instant) -> Result<Streamed, Lost> {
        let (turn, tracker) = (self.turn, &self.tracker);
        let mut first = Some(started);
        let (words, mut signs) = Words::channel();
        self.album.fetch(&*self.model, self.log.entries(), turn).await;
        let (mut messages, attached) = rendered(self.log.entries());
        if calls == Calls::Forbidden {
            messages.push(Message::User(SUM_UP));
        }
        let request = Request {
            messages,
            images: self.album.of(&attached),
            tools: &self.specs,
            calls,
            max_tokens: turn.shared.node.settings.model.max_tokens,
        };
        let mut call: BoxFuture<'_, _> = self.model.call(request, words);
        let streamed = loop {
            tokio::select! {
                biased;
                () = self.cut.cancelled() => break Streamed::Cut,
                Some(sign) = signs.recv() => hear((turn, tracker), &mut self.spoken, &mut first, sign),
                outcome = &mut call => break Streamed::Done(outcome),
                () = self.spoken.due(), if self.stage.is_some() && turn.shared.node.bus.is_connected() => {
                    show(turn, self.stage.as_ref(), &mut self.spoken).await?;
                }
            }
        };
        drop(call);
        while let Ok(sign) = signs.try_recv() {
            hear((turn, tracker), &mut self.spoken, &mut first, sign);
        }
        Ok(streamed)
    }
}

/// Says in the trace how a call went.
fn note(span: &tracing::Span, streamed: &Streamed) {
    let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    match streamed {
        Streamed::Done(Ok(answer)) => {
            trace::attribute(span, "gen_ai.usage.input_tokens", count(answer.usage.input));
            trace::attribute(span, "gen_ai.usage.output_tokens", count(answer.usage.output));
        }
        Streamed::Done(Err(error)) => trace::attribute(span, "error.type", error.label()),
        Streamed::Cut => trace::attribute(span, "error.type", "interrupted"),
    }
}

/// A pause, up to a quarter longer: many turns that wait for one provider should not all come back at once.
fn scattered(pause: Duration) -> Duration {
    let [byte] = node::process::random::<1>();
    pause + pause.mul_f64(f64::from(byte) / 1020.0)
}

/// Shows what has not been shown. While the broker is away it is kept, to be shown later.
pub(super) async fn show(
    turn: &Turn,
    stage: Option<&Stage>,
    spoken: &mut Spoken,
) -> Result<(), Lost> {
    turn.fence.check()?;
    let Some(stage) = stage.filter(|_| turn.shared.node.bus.is_connected()) else { return Ok(()) };
    if let Some(draft) = spoken.draft(stage) {
        let subject = subject::draft(&stage.address.platform, &stage.address.account);
        turn.shared.node.bus.tell(subject, &draft).await;
    }
    Ok(())
}

/// Takes a sign of the model in. `first` is when the call began, until the first word has come.
fn hear(
    (turn, tracker): (&Turn, &Tracker),
    spoken: &mut Spoken,
    first: &mut Option<Instant>,
    sign: Sign,
) {
    match sign {
        Sign::Text(text) => {
            if let Some(started) = first.take() {
                let metrics = &turn.shared.metrics;
                metrics.first_token.observe(started.elapsed().as_secs_f64());
            }
            tracker.streaming();
            spoken.push(&text);
        }
        Sign::Busy => tracker.touch(),
    }
}
