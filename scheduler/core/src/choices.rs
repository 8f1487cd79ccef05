//! The commands by which people choose how their session behaves, and those that look beyond it.

use proto::event::BusyMode;
use proto::id::OutboundId;
use proto::lease::{Effect, Waiting};
use proto::outbound::Kind;
use proto::receipt::Decided;

use crate::session::Step;
use crate::wording;

/// How many background sessions one chat remembers.
const BACKGROUND_MAX: usize = 8;

impl Step<'_> {
    /// `/busy [mode|default]`
    pub(crate) fn busy(&mut self, args: &str, channel: Option<BusyMode>) -> String {
        let default = channel.unwrap_or(self.policy.busy_mode);
        match args.trim() {
            "" => {}
            word if word.eq_ignore_ascii_case("default") => self.lease().choices.busy = None,
            word => match BusyMode::named(word) {
                Some(mode) => self.lease().choices.busy = Some(mode),
                None => return wording::no_such_mode(word),
            },
        }
        wording::busy_mode(self.session.lease.choices.busy, default)
    }

    /// `/yolo [on|off]`
    pub(crate) fn yolo(&mut self, args: &str) -> String {
        let yolo = &mut self.lease().choices.yolo;
        *yolo = match args.trim() {
            "on" => true,
            "off" => false,
            _ => !*yolo,
        };
        wording::yolo(*yolo)
    }

    /// `/background`: a session of its own, with the same people in the same chat.
    pub(crate) fn background(&mut self, waiting: &Waiting) -> Decided {
        let session = self.session.lease.session.background(waiting.seq);
        let known = &mut self.lease().background;
        if known.len() >= BACKGROUND_MAX {
            known.remove(0);
        }
        known.push(session.clone());
        self.lease().effects.push(Effect::Spawn { seq: waiting.seq, session });
        self.say(waiting.seq, Kind::Ack, &waiting.origin, wording::background());
        Decided::Background
    }

    /// `/restart`: what runs is handed over and goes on afterwards. Ingress has checked that the sender may.
    pub(crate) fn restart(&mut self, waiting: &Waiting) -> Decided {
        let id = OutboundId::of_input(waiting.seq, "ack");
        let outbound = self.outbound(id, Kind::Notice, &waiting.origin, wording::restarting());
        self.lease().effects.push(Effect::Restart { outbound });
        Decided::Done
    }

    /// `/agents`: this session, and what runs beside it.
    pub(crate) fn agents(&mut self, waiting: &Waiting, now_ms: u64) -> Decided {
        let text = format!("This conversation: {}", self.session.status(self.now, now_ms, None));
        let id = OutboundId::of_input(waiting.seq, "ack");
        let outbound = self.outbound(id, Kind::Notice, &waiting.origin, text);
        let sessions = self.session.lease.background.clone();
        self.lease().effects.push(Effect::Roster { outbound, sessions });
        Decided::Done
    }
}
