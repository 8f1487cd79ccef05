//! What ingress counts: every series exists from the start, and no label holds an id.

use std::time::Duration;

use node::identities::Requested;
use node::metric::{Maker, doubling};
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use crate::gate::{Refused, Unheeded};

/// Why a delivery is tried again: the platform asked for a pause.
const ASKED: &str = "asked_to_wait";
/// Why a delivery is tried again: it failed.
const FAILED: &str = "failed";

/// The instruments. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    messages: IntCounterVec,
    deliveries: IntCounterVec,
    delivery: HistogramVec,
    retries: IntCounterVec,
    drafts: IntCounterVec,
    refused: IntCounterVec,
    unheeded: IntCounterVec,
    pairings: IntCounterVec,
    poison: IntCounterVec,
    /// Which state each account is in.
    pub(crate) accounts: IntGaugeVec,
    /// How many event streams (chat page, streaming API) are open.
    pub(crate) streams: IntGauge,
    /// How long a message took from its arrival to its durable acknowledgement.
    pub(crate) accept: Histogram,
}

/// What became of a message at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Stored.
    Accepted,
    /// Stored before.
    Duplicate,
    /// Its sender may not, or its proof is missing.
    Refused,
    /// It cannot be understood.
    Invalid,
    /// It could not be stored.
    Unavailable,
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The platform has it.
    Delivered,
    /// Given up.
    Dead,
    /// The platform had it already.
    Repeated,
}

/// Why something was refused, as a label.
const REFUSED: &[(&str, Refused)] = &[
    ("revoked", Refused::Revoked),
    ("nameless", Refused::Nameless),
    ("unknown", Refused::Unknown),
    ("command", Refused::Command),
];

/// Why something was not for the agent, as a label.
const UNHEEDED: &[(&str, Unheeded)] = &[
    ("not_addressed", Unheeded::NotAddressed),
    ("other_channel", Unheeded::OtherChannel),
    ("bot", Unheeded::Bot),
];

/// What someone unknown was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// Their code.
    Code,
    /// That too many others wait.
    TooMany,
    /// Nothing: they were told a moment ago.
    AlreadyTold,
    /// Nothing: the platform is locked.
    Locked,
}

impl Pairing {
    const ALL: [Self; 4] = [Self::Code, Self::TooMany, Self::AlreadyTold, Self::Locked];

    const fn label(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::TooMany => "too_many",
            Self::AlreadyTold => "already_told",
            Self::Locked => "locked",
        }
    }
}

impl From<&Requested> for Pairing {
    fn from(requested: &Requested) -> Self {
        match requested {
            Requested::Code(_) => Self::Code,
            Requested::TooMany => Self::TooMany,
            Requested::AlreadyTold => Self::AlreadyTold,
            Requested::Locked => Self::Locked,
        }
    }
}

impl Arrival {
    const ALL: [Self; 5] =
        [Self::Accepted, Self::Duplicate, Self::Refused, Self::Invalid, Self::Unavailable];

    const fn label(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Refused => "refused",
            Self::Invalid => "invalid",
            Self::Unavailable => "unavailable",
        }
    }
}

impl Departure {
    const ALL: [Self; 3] = [Self::Delivered, Self::Dead, Self::Repeated];

    const fn label(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Dead => "dead",
            Self::Repeated => "repeated",
        }
    }
}

impl Metrics {
    /// Makes the instruments and registers them. A registry that has them already (two of us in one process) keeps the first
    /// ones; ours then count unseen.
    ///
    /// # Panics
    /// Never: the names are valid.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        Self::register(registry).expect("the names and labels are valid")
    }

    fn register(registry: &Registry) -> prometheus::Result<Self> {
        let make = Maker(registry);
        let counter = |name: &str, help: &str, labels: &[&str]| {
            make.made(IntCounterVec::new(Opts::new(name, help), labels)?)
        };
        let accounts = Opts::new(
            "talaria_ingress_account",
            "Accounts of this process: 1 for the state that each is in, 0 for the others",
        );
        let delivery = HistogramOpts::new(
            "talaria_ingress_delivery_seconds",
            "Time from when something to deliver was stored until its delivery ended, by the clocks of broker and ingress",
        )
        .buckets(doubling(0.002, 20)?);
        Ok(Self {
            messages: counter(
                "talaria_ingress_messages_total",
                "Messages that came to the door, by what became of them",
                &["platform", "result"],
            )?,
            deliveries: counter(
                "talaria_ingress_deliveries_total",
                "Deliveries to platforms, by how they ended; repeated means that the platform had it already",
                &["platform", "result"],
            )?,
            delivery: make.made(HistogramVec::new(delivery, &["platform"])?)?,
            retries: counter(
                "talaria_ingress_delivery_retries_total",
                "Tries of deliveries that have to be repeated, by why: the platform asked to wait, or it failed",
                &["platform", "cause"],
            )?,
            drafts: counter(
                "talaria_ingress_drafts_total",
                "Pieces of streamed text handed to adapters",
                &["platform"],
            )?,
            refused: counter(
                "talaria_ingress_refused_total",
                "What people did who may not, by why",
                &["platform", "reason"],
            )?,
            unheeded: counter(
                "talaria_ingress_unheeded_total",
                "What was not for the agent, by why",
                &["platform", "reason"],
            )?,
            pairings: counter(
                "talaria_ingress_pairings_total",
                "Unknown people who asked to be let in, by what they were told",
                &["platform", "result"],
            )?,
            poison: counter(
                "talaria_ingress_poison_total",
                "Things from platforms that could not be read and were set aside",
                &["platform"],
            )?,
            accounts: make.made(IntGaugeVec::new(accounts, &["platform", "account", "state"])?)?,
            streams: make.gauge(
                "talaria_ingress_streams_open",
                "Event streams (chat page, streaming API) that are open",
            )?,
            accept: make.histogram(
                "talaria_ingress_accept_seconds",
                "Time from a message's arrival to its durable acknowledgement",
                doubling(0.000_25, 16)?,
            )?,
        })
    }

    /// Makes all series of a platform appear.
    pub(crate) fn announce(&self, platform: &str) {
        for arrival in Arrival::ALL {
            self.messages.with_label_values(&[platform, arrival.label()]).inc_by(0);
        }
        for departure in Departure::ALL {
            self.deliveries.with_label_values(&[platform, departure.label()]).inc_by(0);
        }
        for cause in [ASKED, FAILED] {
            self.retries.with_label_values(&[platform, cause]).inc_by(0);
        }
        self.drafts.with_label_values(&[platform]).inc_by(0);
        self.poison.with_label_values(&[platform]).inc_by(0);
        for (why, _) in REFUSED {
            self.refused.with_label_values(&[platform, why]).inc_by(0);
        }
        for (why, _) in UNHEEDED {
            self.unheeded.with_label_values(&[platform, why]).inc_by(0);
        }
        for pairing in Pairing::ALL {
            self.pairings.with_label_values(&[platform, pairing.label()]).inc_by(0);
        }
        drop(self.delivery.with_label_values(&[platform]));
    }

    pub(crate) fn arrived(&self, platform: &str, arrival: Arrival) {
        self.messages.with_label_values(&[platform, arrival.label()]).inc();
    }

    pub(crate) fn refused(&self, platform: &str, why: Refused) {
        self.arrived(platform, Arrival::Refused);
        self.refused.with_label_values(&[platform, label(REFUSED, why)]).inc();
    }

    pub(crate) fn unheeded(&self, platform: &str, why: Unheeded) {
        self.unheeded.with_label_values(&[platform, label(UNHEEDED, why)]).inc();
    }

    pub(crate) fn paired(&self, platform: &str, pairing: Pairing) {
        self.pairings.with_label_values(&[platform, pairing.label()]).inc();
    }

    pub(crate) fn poisoned(&self, platform: &str) {
        self.poison.with_label_values(&[platform]).inc();
    }

    /// A delivery has ended, so long after it was stored.
    pub(crate) fn departed(&self, platform: &str, departure: Departure, after: Duration) {
        self.deliveries.with_label_values(&[platform, departure.label()]).inc();
        self.delivery.with_label_values(&[platform]).observe(after.as_secs_f64());
    }

    /// A delivery has to be tried again; `asked` says whether the platform asked for a pause.
    pub(crate) fn retried(&self, platform: &str, asked: bool) {
        let cause = if asked { ASKED } else { FAILED };
        self.retries.with_label_values(&[platform, cause]).inc();
    }

    pub(crate) fn drafted(&self, platform: &str) {
        self.drafts.with_label_values(&[platform]).inc();
    }
}

fn label<T: PartialEq>(labels: &[(&'static str, T)], value: T) -> &'static str {
    labels.iter().find(|(_, known)| *known == value).map_or("other", |(label, _)| label)
}

/// Counts an open stream for as long as it exists.
#[derive(Debug)]
pub(crate) struct OpenStream(IntGauge);

impl OpenStream {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        metrics.streams.inc();
        Self(metrics.streams.clone())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}
