//! A turn that another agent carries out: any program that speaks the Agent Client Protocol. Its words are our drafts, what it does
//! is our activity, its requests for permission are our questions, and a stop is told to it before it is enforced.

mod connection;
mod program;

use std::time::Duration;

use agent_client_protocol::v1::schema::{
    PermissionOptionKind, RequestPermissionOutcome, RequestPermissionResponse,
    SelectedPermissionOutcome, StopReason,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use node::settings::Acp;
use proto::activity::State;
use proto::transcript::{Body, External, Profile};
use proto::turn::{AskKind, Decision};
use tokio::sync::mpsc;

use self::connection::{Heard, Permission, Told};
use self::program::Program;
use super::agent::Agent;
use super::model_call::show;
use super::work::Work;
use super::{Ending, Halt, Stop, approval};
use crate::models::ModelError;

/// How long the program may take to end its turn after it was told to.
const GRACE: Duration = Duration::from_secs(2);
/// How much of the conversation so far it is told, bytes.
const BEFORE_BYTES_MAX: usize = 30 * 1024;
const NOT_THERE: &str = "I cannot answer: the agent that works for me cannot be started. Whoever runs this system should check \
                         agent.acp.";
const BROKEN: &str = "The agent that works for me broke off. Please try again.";

/// The agent, as it is started.
fn command_line(settings: &Acp) -> String {
    let words = std::iter::once(&settings.command).chain(&settings.args);
    words.map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// How the program's turn came to an end.
enum End {
    Itself(Result<StopReason, agent_client_protocol::Error>),
    Killed,
}

/// Another agent that carries the turn out.
pub(super) struct AcpAgent<'a>(pub(super) &'a Acp);

impl Agent for AcpAgent<'_> {
    fn carry_out<'a>(&'a self, work: &'a mut Work<'_>) -> BoxFuture<'a, Result<Ending, Halt>> {
        work.run_external(self.0).boxed()
    }
}

impl Work<'_> {
    /// Has the program carry the turn out.
    pub(super) async fn run_external(&mut self, settings: &Acp) -> Result<Ending, Halt> {
        if let Some(stop) = self.turn.stopped() {
            return Ok(Ending::Stopped(stop));
        }
        self.turn.fence.check()?;
        let folder = &self.turn.shared.node.settings.worker.workspace;
        let started = folder.canonicalize().and_then(|folder| Program::start(settings, &folder));
        let mut program = match started {
            Ok(program) => program,
            Err(error) => {
                tracing::error!(%error, "the external agent cannot be started");
                return Ok(Ending::Failed(NOT_THERE.into()));
            }
        };
        self.iteration = 1;
        self.spoken.begin();
        self.tracker.enter(State::WaitingForModel, &settings.command);
        // Until it says something, nothing is known of its progress.
        self.tracker.unknown();
        let (sender, mut heard) = mpsc::unbounded_channel();
        let talk = connection::prompt(&mut program, self.told(settings), self.cut.clone(), sender);
        let mut talk = Box::pin(talk);
        let cut = self.cut.clone();
        let late = async move {
            cut.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::pin!(late);
        let end = loop {
            tokio::select! {
                biased;
                () = &mut late => break End::Killed,
                Some(heard) = heard.recv() => self.heard(settings, heard).await?,
                outcome = &mut talk => break End::Itself(outcome),
                () = self.spoken.due(), if self.turn.shared.node.bus.is_connected() => {
                    show(self.turn, self.stage.as_ref(), &mut self.spoken).await?;
                }
            }
        };
        drop(talk);
        while let Ok(more) = heard.try_recv() {
            self.heard(settings, more).await?;
        }
        drop(program);
        self.turn.fence.check()?;
        self.concluded(end).await
    }

    async fn concluded(&mut self, end: End) -> Result<Ending, Halt> {
        if self.cut.is_cancelled() || matches!(end, End::Killed) {
            let stop = self.turn.stopped().unwrap_or(Stop::HandBack);
            return self.cut_off(stop).await;
        }
        let why = match end {
            End::Itself(Ok(StopReason::Refusal)) => ModelError::Declined.for_people(),
            End::Itself(Ok(_)) if !self.spoken.segment().is_empty() => {
                show(self.turn, self.stage.as_ref(), &mut self.spoken).await?;
                let text = self.spoken.segment().to_owned();
                self.log
                    .append(Body::Assistant { text, calls: Vec::new(), partial: false })
                    .await?;
                return Ok(Ending::Completed);
            }
            End::Itself(Ok(_)) => ModelError::Empty.for_people(),
            End::Itself(Err(error)) => {
                tracing::error!(%error, "the external agent broke off");
                BROKEN.into()
            }
            End::Killed => BROKEN.into(),
        };
        self.store_partial().await?;
        Ok(Ending::Failed(why))
    }

    /// What the program is told: the person's words, and to a session that does not know it the conversation so far.
    fn told(&self, settings: &Acp) -> Told {
        let mut lines = Vec::new();
        for entry in self.log.entries() {
            if let Body::User { text, .. } = &entry.body {
                lines.push(format!("PERSON: {text}"));
            } else if let Body::Assistant { text, .. } = &entry.body {
                lines.push(format!("YOU: {text}"));
            }
        }
        let last = lines.pop().unwrap_or_default();
        let news = last.strip_prefix("PERSON: ").unwrap_or(&last).to_owned();
        let all = if lines.is_empty() {
            news.clone()
        } else {
            let before = lines.join("\n\n");
            let before = crate::text::end(&before, BEFORE_BYTES_MAX);
            format!("[The conversation so far]\n{before}\n\n[Now]\n{news}")
        };
        Told { session: self.known_session(settings), news, all }
    }

    /// The program's session that knows the conversation up to this turn.
    fn known_session(&self, settings: &Acp) -> Option<String> {
        let profile = self.seat.as_ref()?.profile();
        let known = profile.external.as_ref()?;
        let own = self.turn.order.of.turn;
        let before = self.log.entries().iter().rev().find(|entry| entry.turn != own)?.turn;
        let is_it = known.agent == command_line(settings)
            && known.conversation == profile.conversation
            && known.turn == before;
        is_it.then(|| known.session.clone())
    }

    /// Remembers the program's session for the next turn.
    async fn keep_session(&mut self, settings: &Acp, session: String) -> Result<(), Halt> {
        let turn = self.turn;
        let Some(seat) = &mut self.seat else { return Ok(()) };
        let note = |profile: &mut Profile| {
            profile.external = Some(External {
                agent: command_line(settings),
                session,
                conversation: profile.conversation,
                turn: turn.order.of.turn,
            });
        };
        Ok(seat.note(turn, note).await?)
    }

    async fn heard(&mut self, settings: &Acp, heard: Heard) -> Result<(), Halt> {
        self.tracker.known();
        match heard {
            Heard::Words(words) => {
                self.tracker.streaming();
                self.spoken.push(&words);
            }
            Heard::Busy => self.tracker.touch(),
            Heard::Tool(title) => self.tracker.tool("acp", &title, None),
            Heard::Asked(permission) => self.permit(*permission).await?,
            Heard::Session(session) => self.keep_session(settings, session).await?,
        }
        Ok(())
    }

    /// Puts a request for permission to the person.
    async fn permit(&self, permission: Permission) -> Result<(), Halt> {
        let Permission { title, options, responder } = permission;
        // Whether it asks about the like of it again is the agent's own business.
        let lasts = options.iter().any(|option| option.kind == PermissionOptionKind::AllowAlways);
        let replies = if lasts { "/approve, /approve always" } else { "/approve" };
        let question = approval::Question {
            about: &title,
            kind: AskKind::Approval,
            text: format!("The agent wants to do this: {title}\n\nReply {replies} or /deny."),
            rule: None,
        };
        let wanted = match self.ask(question).await? {
            approval::Heard::Decision(Decision::Approved) => {
                [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
            }
            approval::Heard::Decision(Decision::ApprovedFor { .. }) => {
                [PermissionOptionKind::AllowAlways, PermissionOptionKind::AllowOnce]
            }
            approval::Heard::Decision(Decision::Denied { .. } | Decision::Answered { .. })
            | approval::Heard::Nothing
            | approval::Heard::Stop(_) => {
                [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]
            }
        };
        let found =
            wanted.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind));
        let outcome = match found {
            Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
                option.option_id.clone(),
            )),
            None => RequestPermissionOutcome::Cancelled,
        };
        if let Err(error) = responder.respond(RequestPermissionResponse::new(outcome)) {
            tracing::debug!(%error, "the external agent no longer waits for permission");
        }
        self.tracker.enter(State::WaitingForModel, "");
        Ok(())
    }
}
