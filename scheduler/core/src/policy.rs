//! The choices of an operator that decisions depend on. All durations are milliseconds.

use proto::event::BusyMode;

/// Limits and modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// What a message does to a running turn, unless its channel says otherwise.
    pub busy_mode: BusyMode,
    /// After what silence a worker's turn is given to another.
    pub lease_ttl: u64,
    /// How long a worker may take to confirm a stop before the session goes on without it.
    pub stop_deadline: u64,
    /// After how long an order that no worker claimed is sent again.
    pub reorder: u64,
    /// At most how many messages wait.
    pub queue_limit: usize,
    /// How many turns in a row may be interrupted before messages wait instead.
    pub interrupt_depth: u8,
    /// How many attempts of a turn may die with their worker.
    pub attempts: u8,
    /// How often at most an unasked acknowledgement is sent.
    pub ack_interval: u64,
    /// After how long without progress a turn is stopped.
    pub timeout: Option<u64>,
    /// Which setting says so.
    pub timeout_setting: TimeoutSetting,
    /// After how long without progress a turn is stopped that is still being prepared.
    pub setup: Option<u64>,
    /// After how long without progress the person is warned. Means nothing without `timeout`.
    pub warning: Option<u64>,
    /// How often the person is told that a long turn still works.
    pub notify: Option<u64>,
    /// Whether what the run of a job asks is approved rather than refused.
    pub job_approve: bool,
    /// How long the parts of an album, and pictures in a row, are waited for.
    pub album: Window,
    /// How long messages are collected in the mode of that name.
    pub collect: Window,
    /// Whether `/stop` sets the conversation aside.
    pub stop_suspends: bool,
    /// What the change of a message does whose turn runs.
    pub edits: Edits,
}

/// Which setting a timeout comes from, so that whoever was timed out can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeoutSetting {
    /// `agent.timeout`
    #[default]
    Agent,
    /// `agent.platform.<name>.timeout`
    Platform,
    /// `agent.pool.<name>.timeout`
    Pool,
    /// `cron.timeout`
    Cron,
}

/// How long more is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// How long it must be quiet.
    pub quiet: u64,
    /// How long it lasts at most.
    pub most: u64,
}

/// What the change of a message does to the turn that it leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Edits {
    /// Nothing: the turn has begun with what was written.
    #[default]
    Ignore,
    /// The turn hears of it as a hint.
    Steer,
    /// The turn is stopped, and the new words are next.
    Interrupt,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            busy_mode: BusyMode::Interrupt,
            lease_ttl: 15_000,
            stop_deadline: 5_000,
            reorder: 30_000,
            queue_limit: 32,
            interrupt_depth: 3,
            attempts: 3,
            ack_interval: 30_000,
            timeout: Some(1_800_000),
            timeout_setting: TimeoutSetting::Agent,
            setup: Some(300_000),
            warning: Some(900_000),
            notify: Some(600_000),
            job_approve: false,
            album: Window { quiet: 800, most: 5_000 },
            collect: Window { quiet: 350, most: 1_000 },
            stop_suspends: true,
            edits: Edits::Ignore,
        }
    }
}
