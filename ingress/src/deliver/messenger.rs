//! Shows things as messages of a platform: cut into pages, each sent once and then edited, with every step recorded before it
//! is taken, so that whoever goes on with it knows what is there.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use node::settings::Duplicates;
use proto::delivery::{End, Line, Shown};
use proto::event::Address;
use proto::id::{OutboundId, TurnId};
use proto::outbound::{Draft, Kind, Outbound};
use sha2::{Digest, Sha256};

use crate::adapter::{
    Adapter, Button, DeliverError, Messages, Post, Press, Refusal, Repeats, Scope, SendError,
};
use crate::deliver::ledger::{Ledger, begun};
use crate::deliver::pace::Pace;
use crate::deliver::silence;
use crate::markup::{Page, Pages};

/// How long to keep quiet when the platform says "too many" without saying for how long.
const QUIET: Duration = Duration::from_secs(5);
/// How long to wait when the platform does not let us in: a person must do something.
const LOCKED_OUT: Duration = Duration::from_secs(60);
/// What stands before a message that may have arrived already.
const LABEL: &str = "(may be a duplicate) ";
/// How many running turns' drafts are remembered.
const DRAFTS_MAX: u64 = 10_000;
/// How many chats that have moved are remembered.
const MOVED_MAX: u64 = 1_000;

/// What shows the messages of one account. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Messenger {
    adapter: Arc<dyn Adapter>,
    can: Messages,
    pages: Pages,
    ledger: Ledger,
    account: Arc<Pace>,
    duplicates: Duplicates,
    /// What is on the screen of running turns.
    drafts: Cache<TurnId, Arc<Line>>,
    /// Where chats have moved to.
    moved: Cache<String, String>,
}

/// Messages to be shown.
struct Letter<'a> {
    /// Under which id it is recorded, and its keys are made.
    id: &'a OutboundId,
    to: Address,
    reply_to: Option<&'a str>,
    pages: Vec<Page>,
    /// Under the last page.
    buttons: Vec<Button>,
}

impl Messenger {
    /// None if the platform's limit is too small for any text.
    pub(crate) fn new(
        adapter: Arc<dyn Adapter>,
        mut can: Messages,
        ledger: Ledger,
        duplicates: Duplicates,
    ) -> Option<Self> {
        let account = Arc::new(Pace::new(can.rates.account));
        if can.repeats == Repeats::Never {
            can.text.max = can.text.max.saturating_sub(LABEL.len());
        }
        Some(Self {
            adapter,
            can,
            pages: Pages::new(can.dialect, can.text)?,
            ledger,
            account,
            duplicates,
            drafts: Cache::new(DRAFTS_MAX),
            moved: Cache::new(MOVED_MAX),
        })
    }

    pub(crate) const fn can(&self) -> &Messages {
        &self.can
    }

    /// Shows that the agent writes, if that costs nobody a turn.
    pub(crate) async fn typing(&self, to: &Address, chat: &Pace) {
        if !chat.is_free() || !self.account.is_free() {
            return;
        }
        let mut to = to.clone();
        self.follow(&mut to);
        if let Err(error) = self.adapter.typing(&to).await {
            self.heed(&error, chat);
            tracing::debug!(why = error.why(), "no sign of writing was shown");
        }
    }

    /// Shows one thing, and records that it is shown.
    pub(crate) async fn deliver(
        &self,
        outbound: &Outbound,
        tries: u32,
        chat: &Pace,
    ) -> Result<(), DeliverError> {
        if outbound.kind == Kind::Closed {
            self.forget(outbound);
            return Ok(());
        }
        let mut line = self.begin(outbound).await?;
        let silent = outbound.kind == Kind::Reply && silence::is_silence(&outbound.text);
        let pages = match outbound.kind {
            Kind::Closed => Vec::new(),
            Kind::Reply if silent => Vec::new(),
            Kind::Reply | Kind::Notice | Kind::Ack | Kind::Question => {
                self.pages.of(&outbound.text)
            }
        };
        let mut letter = Letter {
            id: &outbound.id,
            to: outbound.address.clone(),
            reply_to: outbound.reply_to.as_deref().filter(|_| self.can.replies),
            pages,
            buttons: self.buttons(outbound),
        };
        self.show(&mut letter, &mut line, true, chat).await?;
        line.end = Some(End::Delivered);
        (line.outbound, line.why) = (None, None);
        line.tries = tries;
        self.ledger.write(&outbound.id, &line).await;
        self.forget(outbound);
        Ok(())
    }

    /// Shows the text so far of a running turn.
    pub(crate) async fn draft(&self, draft: &Draft, chat: &Pace) -> Result<(), DeliverError> {
        if silence::may_become_silence(&draft.text) {
            return Ok(());
        }
        let turn = draft.of.turn;
        let id = draft_id(turn);
        let known = match self.drafts.get(&turn) {
            Some(line) => Some(Line::clone(&line)),
            None => self.stored(&id).await?,
        };
        let mut line = known.unwrap_or_else(|| Line {
            platform: draft.address.platform.clone(),
            account: draft.address.account.clone(),
            at_ms: node::clock::wall_ms(),
            ..Line::default()
        });
        if line.pending.is_some() {
            // A message of this turn may be there that we do not know: what would be edited is unclear. The reply comes.
            return Ok(());
        }
        let mut letter = Letter {
            id: &id,
            to: draft.address.clone(),
            reply_to: Some(draft.reply_to.as_str()).filter(|_| self.can.replies),
            pages: self.pages.of_draft(&draft.text),
            buttons: Vec::new(),
        };
        let shown = self.show(&mut letter, &mut line, false, chat).await;
        self.drafts.insert(turn, Arc::new(line));
        shown
    }

    /// Where a thing begins: where an earlier try stopped, or with the messages whose place it takes.
    async fn begin(&self, outbound: &Outbound) -> Result<Line, DeliverError> {
        if let Some(line) = self.stored(&outbound.id).await? {
            return Ok(line);
        }
        let earlier = match (outbound.kind, outbound.turn, &outbound.replaces) {
            _ if !self.can.edit => None,
            (_, _, Some(replaced)) => self.unsure(replaced).await?,
            (Kind::Reply, Some(turn), None) => match self.drafts.get(&turn) {
                Some(line) => Some(Line::clone(&line)),
                None => self.unsure(&draft_id(turn)).await?,
            },
            _ => None,
        };
        let messages = earlier.map(|line| line.messages).unwrap_or_default();
        Ok(Line { messages, ..begun(outbound) })
    }

    async fn stored(&self, id: &OutboundId) -> Result<Option<Line>, DeliverError> {
        self.ledger.line(id).await.map_err(|error| DeliverError::Retry {
            after: None,
            why: format!("the ledger does not answer: {error}"),
        })
    }

    /// A stored line whose messages may say something else by now: edits of drafts are not recorded.
    async fn unsure(&self, id: &OutboundId) -> Result<Option<Line>, DeliverError> {
        let mut line = self.stored(id).await?;
        line.iter_mut().flat_map(|line| &mut line.messages).for_each(|shown| shown.content.clear());
        Ok(line)
    }

    fn forget(&self, outbound: &Outbound) {
        if let (Kind::Reply | Kind::Closed, Some(turn)) = (outbound.kind, outbound.turn) {
            self.drafts.invalidate(&turn);
        }
    }

    fn buttons(&self, outbound: &Outbound) -> Vec<Button> {
        match (outbound.kind, outbound.ask) {
            (Kind::Question, Some(ask)) if self.can.buttons => vec![
                Button { label: "Approve", press: Press::Approve(ask) },
                Button { label: "Deny", press: Press::Deny(ask) },
            ],
            _ => Vec::new(),
        }
    }

    /// Brings what the platform shows in line with the pages of a letter: what is there is edited, what is missing is sent, what
    /// is too much is taken away.
    async fn show(
        &self,
        letter: &mut Letter<'_>,
        line: &mut Line,
        last: bool,
        chat: &Pace,
    ) -> Result<(), DeliverError> {
        self.follow(&mut letter.to);
        let pages = std::mem::take(&mut letter.pages);
        for (index, page) in pages.iter().enumerate() {
            let buttons = letter.buttons.clone();
            let buttons = if index + 1 == pages.len() { buttons.as_slice() } else { &[] };
            let content = hash(&page.markup, buttons.len());
            if line.messages.get(index).is_some_and(|shown| shown.content == content) {
                continue;
            }
            let edited = match line.messages.get(index).map(|shown| shown.id.clone()) {
                Some(message) => self.edit(letter, &message, page, buttons, chat).await?,
                None => false,
            };
            if !edited {
                let id = self.send(letter, line, (index, page), buttons, chat).await?;
                line.messages.truncate(index);
                line.messages.push(Shown { id, content: String::new() });
            }
            if let Some(shown) = line.messages.get_mut(index) {
                shown.content = content;
            }
            line.pending = None;
            // A draft's edits need no record: whoever finds its messages edits them anyway.
            if !edited || (last && index + 1 < pages.len()) {
                self.ledger.write(letter.id, line).await;
            }
        }
        if last && line.messages.len() > pages.len() {
            self.take_away(letter, line, pages.len(), chat).await?;
        }
        Ok(())
    }

    /// Changes a message. False if it cannot be changed any more.
    async fn edit(
        &self,
        letter: &mut Letter<'_>,
        message: &str,
        page: &Page,
        buttons: &[Button],
        chat: &Pace,
    ) -> Result<bool, DeliverError> {
        let mut plain = false;
        loop {
            self.turn(chat).await;
            let post = Post {
                to: &letter.to,
                reply_to: None,
                markup: (!plain).then_some(page.markup.as_str()),
                plain: &page.plain,
                buttons,
                files: &[],
                key: "",
            };
            let Err(error) = self.adapter.edit(message, &post).await else { return Ok(true) };
            match error {
                SendError::Refused { reason: Refusal::Markup, why } if !plain => {
                    tracing::warn!("the platform refuses our markup, plain text is sent: {why}");
                    plain = true;
                }
                SendError::Refused { reason: Refusal::Message, why } => {
                    tracing::debug!("a message cannot be changed, a new one is sent: {why}");
                    return Ok(false);
                }
                SendError::Refused { reason: Refusal::Moved(to), .. } if letter.to.chat != to => {
                    self.move_to(&mut letter.to, to);
                }
                // An edit can be repeated: whether it happened does not matter.
                error @ (SendError::Flood { .. }
                | SendError::Failed { .. }
                | SendError::Unknown { .. }
                | SendError::Refused { .. }) => return Err(self.meaning(error, chat)),
            }
        }
    }

    /// Sends one page, and returns its message's id.
    async fn send(
        &self,
        letter: &mut Letter<'_>,
        line: &mut Line,
        (index, page): (usize, &Page),
        buttons: &[Button],
        chat: &Pace,
    ) -> Result<String, DeliverError> {
        let key = hash(&letter.id.to_string(), index);
        let mut label = "";
        if line.pending.as_ref() == Some(&key) {
            match self.resolve(letter, &key, chat).await? {
                Resolved::Arrived(id) => return Ok(id),
                Resolved::SendAgain { marked } => label = if marked { LABEL } else { "" },
            }
        }
        line.pending = Some(key.clone());
        self.ledger.write(letter.id, line).await;
        let markup = format!("{label}{}", page.markup);
        let text = format!("{label}{}", page.plain);
        let mut plain = false;
        loop {
            self.turn(chat).await;
            let post = Post {
                to: &letter.to,
                reply_to: letter.reply_to.filter(|_| index == 0),
                markup: (!plain).then_some(markup.as_str()),
                plain: &text,
                buttons,
                files: &[],
                key: &key,
            };
            let error = match self.adapter.send(&post).await {
                Ok(id) => return Ok(id),
                Err(error) => error,
            };
            match error {
                SendError::Refused { reason: Refusal::Markup, why } if !plain => {
                    tracing::warn!("the platform refuses our markup, plain text is sent: {why}");
                    plain = true;
                }
                SendError::Refused { reason: Refusal::Message, .. }
                    if letter.reply_to.is_some() =>
                {
                    // What it answers is gone; the answer stands alone.
                    letter.reply_to = None;
                }
                SendError::Refused { reason: Refusal::Moved(to), .. } if letter.to.chat != to => {
                    self.move_to(&mut letter.to, to);
                }
                error @ (SendError::Flood { .. }
                | SendError::Failed { .. }
                | SendError::Unknown { .. }
                | SendError::Refused { .. }) => {
                    if !matches!(error, SendError::Unknown { .. }) {
                        line.pending = None;
                        self.ledger.write(letter.id, line).await;
                    }
                    return Err(self.meaning(error, chat));
                }
            }
        }
    }

    /// Finds out what became of a send whose answer was lost.
    async fn resolve(
        &self,
        letter: &Letter<'_>,
        key: &str,
        chat: &Pace,
    ) -> Result<Resolved, DeliverError> {
        match (self.can.repeats, self.duplicates) {
            (Repeats::Key, _) => Ok(Resolved::SendAgain { marked: false }),
            (Repeats::LookUp, _) => {
                self.turn(chat).await;
                let found = self.adapter.find(&letter.to, key).await;
                let found = found.map_err(|error| self.meaning(error, chat))?;
                Ok(found.map_or(Resolved::SendAgain { marked: false }, Resolved::Arrived))
            }
            (Repeats::Never, Duplicates::Label) => Ok(Resolved::SendAgain { marked: true }),
            (Repeats::Never, Duplicates::Repeat) => Ok(Resolved::SendAgain { marked: false }),
            (Repeats::Never, Duplicates::Withhold) => Err(DeliverError::Dead {
                why: "it may have arrived, and is not repeated (ingress.duplicates)".into(),
            }),
        }
    }

    async fn take_away(
        &self,
        letter: &Letter<'_>,
        line: &mut Line,
        from: usize,
        chat: &Pace,
    ) -> Result<(), DeliverError> {
        while let Some(shown) = line.messages.get(from) {
            if self.can.delete {
                self.turn(chat).await;
                match self.adapter.delete(&letter.to, &shown.id).await {
                    Ok(()) => {}
                    Err(SendError::Refused { why, .. }) => {
                        tracing::debug!("a message stays that should be gone: {why}");
                    }
                    Err(error) => return Err(self.meaning(error, chat)),
                }
            }
            line.messages.remove(from);
        }
        Ok(())
    }

    /// Waits until the chat's and the account's pace allow a call.
    async fn turn(&self, chat: &Pace) {
        chat.turn().await;
        self.account.turn().await;
    }

    fn follow(&self, to: &mut Address) {
        if let Some(moved) = self.moved.get(&to.chat) {
            to.chat = moved;
        }
    }

    fn move_to(&self, to: &mut Address, chat: String) {
        tracing::info!("a chat has moved to another id; what goes there follows");
        self.moved.insert(std::mem::replace(&mut to.chat, chat.clone()), chat);
    }

    /// Keeps the silence that an error asks for, and returns how long it is.
    fn heed(&self, error: &SendError, chat: &Pace) -> Option<Duration> {
        let SendError::Flood { after, scope, .. } = error else { return None };
        let time = after.unwrap_or(QUIET);
        match scope {
            Scope::Chat => chat.hush(time),
            Scope::Account => self.account.hush(time),
        }
        Some(time)
    }

    /// What a failed call means for the delivery.
    fn meaning(&self, error: SendError, chat: &Pace) -> DeliverError {
        let after = self.heed(&error, chat);
        match error {
            SendError::Flood { why, .. }
            | SendError::Failed { why }
            | SendError::Unknown { why } => DeliverError::Retry { after, why },
            SendError::Refused { reason: Refusal::Account, why } => {
                DeliverError::Retry { after: Some(LOCKED_OUT), why }
            }
            SendError::Refused { reason: Refusal::Chat, why } => DeliverError::Gone { why },
            SendError::Refused { why, .. } => DeliverError::Dead { why },
        }
    }
}

enum Resolved {
    Arrived(String),
    SendAgain { marked: bool },
}

/// Under which id the drafts of a turn are recorded.
fn draft_id(turn: TurnId) -> OutboundId {
    OutboundId::of_turn(turn, "draft")
}

/// 32 hex digits of a text and a number.
fn hash(text: &str, number: usize) -> String {
    let mut hash = Sha256::new();
    hash.update((number as u64).to_be_bytes());
    hash.update(text.as_bytes());
    hex::encode(&hash.finalize()[..16])
}
