//! How each account is, for people: in readiness, in metrics, in the log when it changes.

use std::collections::BTreeMap;
use std::fmt;

use prometheus::IntGaugeVec;
use tokio::sync::watch;

/// How an account is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Another process holds it.
    Standby,
    /// It is being connected.
    Connecting,
    /// It works.
    Connected,
    /// It works, but not as it should.
    Troubled(String),
    /// It does not work, and is tried again.
    Retrying(String),
    /// It does not work, and only a person can change that.
    Paused(String),
}

impl State {
    const NAMES: [&'static str; 6] =
        ["standby", "connecting", "connected", "troubled", "retrying", "paused"];

    const fn name(&self) -> &'static str {
        match self {
            Self::Standby => Self::NAMES[0],
            Self::Connecting => Self::NAMES[1],
            Self::Connected => Self::NAMES[2],
            Self::Troubled(_) => Self::NAMES[3],
            Self::Retrying(_) => Self::NAMES[4],
            Self::Paused(_) => Self::NAMES[5],
        }
    }

    /// What is wrong, if something is.
    fn why(&self) -> Option<&str> {
        match self {
            Self::Troubled(why) | Self::Retrying(why) | Self::Paused(why) => Some(why),
            Self::Standby | Self::Connecting | Self::Connected => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why() {
            Some(why) => write!(f, "{}: {why}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}

/// The state of all accounts of this process, by `<platform>/<account>`.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    states: watch::Sender<BTreeMap<String, State>>,
    gauge: IntGaugeVec,
}

impl Board {
    pub(crate) fn new(gauge: IntGaugeVec) -> Self {
        Self { states: watch::Sender::new(BTreeMap::new()), gauge }
    }

    /// An account's place on the board.
    pub(crate) fn account(&self, platform: &'static str, account: &str) -> Status {
        Status { board: self.clone(), platform, account: account.to_owned() }
    }

    /// The accounts with which something is wrong, one a line.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let states = self.states.borrow();
        let wrong = states.iter().filter(|(_, state)| state.why().is_some());
        wrong.map(|(name, state)| format!("{name} is {state}")).collect()
    }
}

/// One account's place on the board.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    board: Board,
    platform: &'static str,
    account: String,
}

impl Status {
    /// Says how the account is.
    pub(crate) fn set(&self, state: State) {
        let name = format!("{}/{}", self.platform, self.account);
        for other in State::NAMES {
            let value = i64::from(other == state.name());
            self.board.gauge.with_label_values(&[self.platform, &self.account, other]).set(value);
        }
        self.board.states.send_if_modified(|states| {
            if states.get(&name) == Some(&state) {
                return false;
            }
            match &state {
                State::Paused(why) => tracing::error!("{name} is paused: {why}"),
                State::Retrying(why) | State::Troubled(why) => tracing::warn!("{name}: {why}"),
                State::Standby | State::Connecting | State::Connected => {
                    tracing::info!("{name} is {state}");
                }
            }
            states.insert(name.clone(), state.clone());
            true
        });
    }

    pub(crate) fn connected(&self) {
        self.set(State::Connected);
    }

    pub(crate) fn trouble(&self, why: String) {
        self.set(State::Troubled(why));
    }

    /// Whether the account works.
    pub(crate) fn is_up(&self) -> bool {
        let name = format!("{}/{}", self.platform, self.account);
        let states = self.board.states.borrow();
        matches!(states.get(&name), Some(State::Connected | State::Troubled(_)))
    }
}
