//! The answer to one request, as it forms: drafts, notices and the end come in, pieces of text and one end go out.

use proto::command::{Command, Message, Name, Parsed, Spec};
use proto::id::{Sid, TurnId};
use proto::outbound::{Draft, Kind, Outbound};
use proto::turn::TurnRef;

use crate::text::{Growing, rest_of};

/// Something that came for a request.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A piece of text.
    Draft(Draft),
    /// A delivery.
    Outbound(Outbound),
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With all there is to say.
    Said,
    /// Something else went first: another message, `/stop`, a timeout.
    Interrupted,
}

/// What news lead to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// What is to be said now.
    pub(crate) text: String,
    /// Whether that was all.
    pub(crate) end: Option<End>,
}

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What an immediate answer without a turn ends, by what was asked.
    command: Option<&'static Spec>,
    /// What was shown of the turn's text.
    shown: String,
    /// The attempt that is shown: the words of another one are not mixed in.
    of: Option<TurnRef>,
    draft: Growing,
    /// The turn that answers, with its session: that of a `/background` is not ours.
    turn: Option<(Sid, TurnId)>,
    /// Whether anything at all was said.
    spoke: bool,
    /// What the person should know if no answer comes.
    notice: Option<String>,
}

impl Answer {
    /// The answer to `text`.
    pub(crate) fn to(text: &str) -> Self {
        let command = match proto::command::parse(text) {
            Parsed::Command(Command { spec, .. }) => Some(spec),
            Parsed::Text => None,
        };
        Self {
            command,
            shown: String::new(),
            of: None,
            draft: Growing::default(),
            turn: None,
            spoke: false,
            notice: None,
        }
    }

    /// The turn that answers, as far as is known.
    pub(crate) const fn turn(&self) -> Option<(Sid, TurnId)> {
        self.turn
    }

    /// Takes news in.
    pub(crate) fn hear(&mut self, news: &News) -> Heard {
        match news {
            News::Draft(draft) => self.draft(draft),
            News::Outbound(outbound) => match (outbound.kind, outbound.turn) {
                (Kind::Reply, turn) => {
                    self.turn = turn.map(|turn| (outbound.session.sid(), turn)).or(self.turn);
                    self.reply(&outbound.text)
                }
                (Kind::Closed, _) if outbound.text.is_empty() => self.closed(),
                // It went into another message's turn, which is said instead of an answer.
                (Kind::Closed, _) => self.reply_aside(&outbound.text),
                (Kind::Question, _) => self.aside(&outbound.text),
                (Kind::Ack, None) if self.is_answered_by_ack() => self.reply(&outbound.text),
                (Kind::Notice, None) if self.command.is_some() => self.reply(&outbound.text),
                (Kind::Notice, _) => {
                    self.notice = Some(outbound.text.clone());
                    Heard::default()
                }
                // That it waits, or interrupts, is no part of the answer.
                (Kind::Ack, _) => Heard::default(),
            },
        }
    }

    /// Whether what was asked ends with its acknowledgement: no turn follows that answers here.
    fn is_answered_by_ack(&self) -> bool {
        self.command.is_some_and(|spec| match spec.name {
            Name::Message(Message::Steer) => true,
            // It runs in a session of its own, and nobody but this request can show its answer.
            Name::Message(Message::Background) => false,
            Name::Message(_) | Name::Control(_) | Name::Conversation(_) | Name::Bypass(_) => {
                !spec.leads_a_turn()
            }
        })
    }

    fn draft(&mut self, draft: &Draft) -> Heard {
        if *self.of.get_or_insert(draft.of) != draft.of {
            // Another attempt began from the transcript. What was said cannot be taken back; the reply will say the rest.
            return Heard::default();
        }
        self.turn = Some((draft.of.sid, draft.of.turn));
        if self.draft.push(draft.offset, &draft.text).is_none() {
            return Heard::default();
        }
        // Nor can it where the model was asked again and goes another way.
        let Some(new) = self.draft.as_str().strip_prefix(&self.shown) else {
            return Heard::default();
        };
        let new = new.to_owned();
        self.shown += &new;
        self.say(new, None)
    }

    fn reply(&mut self, text: &str) -> Heard {
        let rest = rest_of(text, &self.shown);
        self.say(rest, Some(End::Said))
    }

    fn closed(&mut self) -> Heard {
        let end = Some(End::Interrupted);
        match self.notice.take() {
            Some(notice) => {
                let gap = if self.spoke { "\n\n" } else { "" };
                self.say(format!("{gap}{notice}"), end)
            }
            None => Heard { text: String::new(), end },
        }
    }

    /// Says something that is not part of the turn's text.
    fn aside(&mut self, text: &str) -> Heard {
        let gap = if self.spoke { "\n\n" } else { "" };
        self.say(format!("{gap}{text}\n\n"), None)
    }

    fn say(&mut self, text: String, end: Option<End>) -> Heard {
        self.spoke |= !text.is_empty();
        Heard { text, end }
    }

    /// Says what there is instead of a turn's answer.
    fn reply_aside(&mut self, text: &str) -> Heard {
        self.say(text.to_owned(), Some(End::Said))
    }

    /// Whether anything was said.
    pub(crate) const fn spoke(&self) -> bool {
        self.spoke
    }
}

#[cfg(test)]
mod tests {
    use proto::event::Address;
    use proto::id::{Attempt, OutboundId, Sid};
    use proto::session::{ChatKind, SessionKey, SessionParts};

    use super::*;

    fn place() -> (SessionKey, Address) {
        let (platform, kind, chat) = ("api", ChatKind::Dm, "s");
        let parts = SessionParts { platform, kind, chat, thread: None, participant: None };
        let address = Address {
            platform: platform.into(),
            account: "a".into(),
            chat: chat.into(),
            kind,
            thread: None,
        };
        (SessionKey::new(parts), address)
    }

    fn draft(attempt: u64, offset: u64, text: &str) -> News {
        let (session, address) = place();
        let (turn, attempt) = (TurnId::new(1), Attempt::new(attempt));
        News::Draft(Draft {
            of: TurnRef { sid: Sid::new(1), turn, attempt },
            session,
            address,
            reply_to: "m".into(),
            offset,
            text: text.into(),
        })
    }

    fn outbound(kind: Kind, turn: Option<u64>, text: &str) -> News {
        let (session, address) = place();
        News::Outbound(Outbound {
            id: OutboundId::of_turn(TurnId::new(1), "x"),
            session,
            address,
            reply_to: Some("m".into()),
            turn: turn.map(TurnId::new),
            attempt: None,
            kind,
            text: text.into(),
            ask: None,
            replaces: None,
        })
    }

    /// What is said in all, and how it ends.
    fn story(asked: &str, news: &[News]) -> (String, Option<End>) {
        let mut answer = Answer::to(asked);
        let mut said = String::new();
        for news in news {
            let heard = answer.hear(news);
            said += &heard.text;
            if heard.end.is_some() {
                return (said, heard.end);
            }
        }
        (said, None)
    }

    #[test]
    fn drafts_and_the_reply_make_one_text() {
        let reply = outbound(Kind::Reply, Some(1), "one two three");
        let all = [draft(1, 0, "one "), draft(1, 4, "two "), draft(1, 8, "three"), reply.clone()];
        assert_eq!(story("hi", &all), ("one two three".into(), Some(End::Said)));
        let gap = [draft(1, 0, "one "), draft(1, 8, "three"), reply.clone()];
        assert_eq!(story("hi", &gap), ("one two three".into(), Some(End::Said)));
        let again = [draft(1, 0, "one "), draft(2, 0, "one two"), reply.clone()];
        assert_eq!(story("hi", &again), ("one two three".into(), Some(End::Said)));
        assert_eq!(story("hi", &[reply]), ("one two three".into(), Some(End::Said)));
    }

    #[test]
    fn an_interrupted_turn_ends_with_what_was_shown() {
        let closed = outbound(Kind::Closed, Some(1), "");
        let cut = [draft(1, 0, "one "), closed.clone()];
        assert_eq!(story("hi", &cut), ("one ".into(), Some(End::Interrupted)));
        assert_eq!(story("hi", &[closed]), (String::new(), Some(End::Interrupted)));
    }

    #[test]
    fn a_refusal_is_never_silence() {
        let refused =
            [outbound(Kind::Notice, None, "Not taken."), outbound(Kind::Closed, Some(1), "")];
        assert_eq!(story("hi", &refused), ("Not taken.".into(), Some(End::Interrupted)));
        let timeout = [
            draft(1, 0, "one"),
            outbound(Kind::Notice, Some(1), "Stopped."),
            outbound(Kind::Closed, Some(1), ""),
        ];
        assert_eq!(story("hi", &timeout), ("one\n\nStopped.".into(), Some(End::Interrupted)));
    }

    #[test]
    fn notices_beside_an_answer_are_not_part_of_it() {
        let all = [
            outbound(Kind::Ack, None, "Queued (next)."),
            outbound(Kind::Notice, Some(1), "Still working."),
            outbound(Kind::Reply, Some(1), "done"),
        ];
        assert_eq!(story("hi", &all), ("done".into(), Some(End::Said)));
        assert_eq!(story("/queue hi", &all), ("done".into(), Some(End::Said)));
    }

    #[test]
    fn commands_are_answered_by_what_the_scheduler_says() {
        let status = [outbound(Kind::Notice, None, "idle")];
        assert_eq!(story("/status", &status), ("idle".into(), Some(End::Said)));
        let stop = [outbound(Kind::Ack, None, "Stopped.")];
        assert_eq!(story("/stop", &stop), ("Stopped.".into(), Some(End::Said)));
    }

    #[test]
    fn what_runs_beside_the_session_is_waited_for() {
        let all = [
            outbound(Kind::Ack, None, "Started beside the conversation."),
            draft(1, 0, "found "),
            outbound(Kind::Reply, Some(1), "found it"),
        ];
        assert_eq!(story("/background look", &all), ("found it".into(), Some(End::Said)));
        let usage = [outbound(Kind::Notice, None, "Usage: /background <message>")];
        assert_eq!(story("/bg", &usage).1, Some(End::Said));
    }

    #[test]
    fn a_message_without_a_turn_of_its_own_ends_too() {
        let queued = outbound(Kind::Ack, None, "Passed on.");
        let end = |why| story("hi", &[queued.clone(), outbound(Kind::Closed, Some(7), why)]);
        assert_eq!(end("Taken as a hint."), ("Taken as a hint.".into(), Some(End::Said)));
        assert_eq!(end(""), (String::new(), Some(End::Interrupted)));
    }

    #[test]
    fn a_model_that_is_asked_again_is_shown_as_far_as_it_says_the_same() {
        let reply = outbound(Kind::Reply, Some(1), "one two three");
        let same = [draft(1, 0, "one tw"), draft(1, 0, "one"), draft(1, 3, " two "), reply.clone()];
        assert_eq!(story("hi", &same), ("one two three".into(), Some(End::Said)));
        let other = [draft(1, 0, "uno"), draft(1, 0, "one"), draft(1, 3, " two"), reply];
        assert_eq!(story("hi", &other), ("uno\n\none two three".into(), Some(End::Said)));
    }

    #[test]
    fn a_question_is_shown_and_the_answer_goes_on() {
        let all = [
            draft(1, 0, "I will."),
            outbound(Kind::Question, Some(1), "May I?"),
            draft(1, 7, " Done."),
            outbound(Kind::Reply, Some(1), "I will. Done."),
        ];
        assert_eq!(story("hi", &all), ("I will.\n\nMay I?\n\n Done.".into(), Some(End::Said)));
    }
}
