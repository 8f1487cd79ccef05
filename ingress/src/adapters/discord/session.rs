//! A session of the gateway, without I/O: what is said to begin or resume it, what each frame means, and how far we are.
//!
//! The place in the session moves on only when an event is stored: after a break, Discord sends again what was not.

use proto::account::Cursor;
use serde::Deserialize;
use serde_json::{Value, json};

/// What the bot wants to hear of: servers, messages there and in private, and what they say.
const INTENTS: u64 = 1 | 1 << 9 | 1 << 12 | 1 << 15;

/// A frame of the gateway.
#[derive(Debug, Deserialize)]
pub(super) struct Frame {
    pub(super) op: u8,
    #[serde(default)]
    pub(super) d: Value,
    #[serde(default)]
    pub(super) s: Option<u64>,
    #[serde(default)]
    pub(super) t: Option<String>,
}

/// What follows from a frame.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Nothing.
    Nothing,
    /// The session is there.
    Up,
    /// A heartbeat is wanted at once.
    Beat,
    /// Our heartbeat was heard.
    Heard,
    /// Something happened; it is to be stored.
    Take { name: String, data: Value, seq: Option<u64> },
    /// The connection must be made again.
    Again,
}

/// A session, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Its id, and where it is resumed.
    resume: Option<(String, String)>,
    /// The last event that is stored.
    seq: Option<u64>,
}

impl Session {
    /// One that goes on from where someone else has come to.
    pub(super) fn restored(cursor: Option<Cursor>) -> Self {
        cursor.map_or_else(Self::default, |Cursor { session, url, seq }| Self {
            resume: Some((session, url)),
            seq: Some(seq),
        })
    }

    /// How far it has come; none if there is nothing to go on with.
    pub(super) fn cursor(&self) -> Option<Cursor> {
        let ((session, url), seq) = self.resume.clone().zip(self.seq)?;
        Some(Cursor { session, url, seq })
    }

    /// Where to connect, if there is something to be resumed.
    pub(super) fn url(&self) -> Option<&str> {
        self.resume.as_ref().map(|(_, url)| url.as_str())
    }

    /// What is said first.
    pub(super) fn begin(&self, token: &str) -> Value {
        if let (Some((id, _)), Some(seq)) = (&self.resume, self.seq) {
            return json!({ "op": 6, "d": { "token": token, "session_id": id, "seq": seq } });
        }
        let properties =
            json!({ "os": std::env::consts::OS, "browser": "talaria", "device": "talaria" });
        json!({ "op": 2, "d": { "token": token, "intents": INTENTS, "properties": properties } })
    }

    pub(super) fn beat(&self) -> Value {
        json!({ "op": 1, "d": self.seq })
    }

    /// What a frame means.
    pub(super) fn hear(&mut self, frame: Frame) -> Next {
        let Frame { op, d, s, t } = frame;
        match (op, t.as_deref()) {
            (0, Some("READY")) => {
                let text = |name: &str| d[name].as_str().map(str::to_owned);
                self.resume = text("session_id").zip(text("resume_gateway_url"));
                self.seq = s;
                Next::Up
            }
            (0, Some("RESUMED")) => {
                self.stored(s);
                Next::Up
            }
            (0, Some(name)) => Next::Take { name: name.to_owned(), data: d, seq: s },
            (1, _) => Next::Beat,
            (7, _) => Next::Again,
            (9, _) => {
                if d != Value::Bool(true) {
                    self.forget();
                }
                Next::Again
            }
            (11, _) => Next::Heard,
            _ => Next::Nothing,
        }
    }

    /// An event is stored.
    pub(super) fn stored(&mut self, seq: Option<u64>) {
        self.seq = seq.or(self.seq);
    }

    /// What the end of a connection means: an error needs a person.
    pub(super) fn closed(&mut self, code: u16) -> Result<(), &'static str> {
        match code {
            4004 => Err("Discord does not know the bot's token; check it and start again"),
            4010 | 4011 => Err("the bot is in too many servers for one connection"),
            4012 => Err("Discord does not speak this version of the gateway any more"),
            4013 | 4014 => Err(
                "the bot may not read messages: turn on the Message Content Intent in its settings, and start again",
            ),
            // Our place in the session is none, or the session is over.
            1000 | 1001 | 4003 | 4007 | 4009 => {
                self.forget();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(value: Value) -> Frame {
        serde_json::from_value(value).unwrap()
    }

    fn ready() -> Session {
        let mut session = Session::default();
        let data = json!({ "session_id": "abc", "resume_gateway_url": "wss://x", "user": {} });
        let next = session.hear(frame(json!({ "op": 0, "t": "READY", "s": 1, "d": data })));
        assert_eq!(next, Next::Up);
        session
    }

    #[test]
    fn what_is_not_stored_is_asked_for_again() {
        let mut session = ready();
        assert_eq!(session.url(), Some("wss://x"));
        let event = json!({ "op": 0, "t": "MESSAGE_CREATE", "s": 2, "d": {} });
        assert!(matches!(session.hear(frame(event)), Next::Take { seq: Some(2), .. }));
        assert_eq!(session.begin("t")["d"]["seq"], 1);
        session.stored(Some(2));
        assert_eq!(session.begin("t")["op"], 6);
        assert_eq!(session.begin("t")["d"]["seq"], 2);
        assert_eq!(session.beat(), json!({ "op": 1, "d": 2 }));
        let next = Session::restored(session.cursor());
        assert_eq!(next.begin("t"), session.begin("t"));
    }

    #[test]
    fn an_invalid_session_begins_anew_unless_it_can_be_resumed() {
        let mut session = ready();
        assert_eq!(session.hear(frame(json!({ "op": 9, "d": true }))), Next::Again);
        assert_eq!(session.begin("t")["op"], 6);
        assert_eq!(session.hear(frame(json!({ "op": 9, "d": false }))), Next::Again);
        assert_eq!((session.begin("t")["op"].clone(), session.url()), (json!(2), None));
    }

    #[test]
    fn some_ends_need_a_person_and_most_are_resumed() {
        for code in [4004, 4010, 4011, 4012, 4013, 4014] {
            assert!(ready().closed(code).is_err());
        }
        for (code, op) in [(4000, 6), (4008, 6), (1006, 6), (4007, 2), (4009, 2), (1000, 2)] {
            let mut session = ready();
            session.closed(code).unwrap();
            assert_eq!(session.begin("t")["op"], op, "{code}");
        }
    }
}
