//! The wire, and nothing else: what Talaria's services say to each other over NATS.
//!
//! | subject or key | message | from | to | delivery |
//! |---|---|---|---|---|
//! | `inbox.<p>.<sid>` | [`Inbox`](inbox::Inbox) | ingress, worker | scheduler | stream `INBOX`, in order |
//! | `leases/<p>.<sid>` | [`Lease`](lease::Lease) | scheduler | scheduler | bucket, compare-and-set |
//! | `leases/checkpoint.<p>` | [`Checkpoint`](lease::Checkpoint) | scheduler | scheduler | bucket, compare-and-set |
//! | `turn.<pool>.<sid>` | [`TurnOrder`](turn::TurnOrder) | scheduler | worker | stream `TURNS`, work queue |
//! | `scheduler.<p>.claim` | [`Claim`](turn::Claim), [`ClaimReply`](turn::ClaimReply) | worker | scheduler | request |
//! | `scheduler.<p>.beat` | [`Beat`](turn::Beat), [`BeatReply`](turn::BeatReply) | worker | scheduler | request |
//! | `worker.<id>.control` | [`Control`](turn::Control) | scheduler | worker | volatile, repeated after a heartbeat |
//! | `worker.<id>.activity` | [`Sid`](id::Sid), [`Activity`](activity::Activity) | scheduler | worker | request |
//! | `fleet/restart` | [`Rollout`](rollout::Rollout) | scheduler, all | all | bucket, compare-and-set |
//! | `transcript.<sid>.<conversation>` | [`Entry`](transcript::Entry) | worker | worker | stream `TRANSCRIPT`, fenced |
//! | `sessions/<sid>` | [`Profile`](transcript::Profile) | worker | worker, ingress | bucket, compare-and-set |
//! | `outbox.<platform>.<account>.<sid>` | [`Outbound`](outbound::Outbound) | scheduler | ingress | stream `OUTBOX`, work queue |
//! | `draft.<platform>.<account>` | [`Draft`](outbound::Draft) | worker | ingress | volatile |
//! | `deliveries/<outbound id>` | [`Line`](delivery::Line) | ingress | ingress, operator | bucket, expires |
//! | `accounts/<hash>` | [`Holder`](account::Holder) | ingress | ingress | bucket, compare-and-set |
//! | `media.<platform>.<account>` | [`Ask`](media::Ask), [`Answer`](media::Answer) | worker | ingress | request |
//! | `event.<sid>` | [`Receipt`](receipt::Receipt) | scheduler | anyone | stream `EVENTS`, best effort |
//! | `identities/person.<platform>.<hash>`, `request.…`, `failures.<platform>` | [`Person`](identity::Person), [`Request`](identity::Request), [`Failures`](identity::Failures) | ingress, operator | ingress, worker | bucket, compare-and-set |
//! | `identities/rules.<platform>.<account>` | [`Rules`](access::Rules) | ingress | worker | bucket |
//! | `channels/chat.<platform>.<account>.<hash>`, `moved.…`, `home.<platform>` | [`Channel`](channel::Channel), [`Moved`](channel::Moved), [`Home`](channel::Home) | ingress | anyone | bucket |
//! | `poison/<platform>.<account>.<hash>` | [`Poison`](poison::Poison) | ingress | operator | bucket, expires |
//! | `jobs/<p>.<sid>.<job>` | [`Job`](job::Job) | scheduler | scheduler | bucket, compare-and-set |
//! | `scheduler.jobs` | [`JobRequest`](job::JobRequest), [`JobReply`](job::JobReply) | worker, operator | scheduler | request |
//! | `members/<role>.<id>` | [`Member`](member::Member) | all | all | bucket, expires |
//!
//! `<p>` is [`Partition::of`](id::Partition::of) the session id, `<sid>` the hash of the [`SessionKey`](session::SessionKey).

pub mod access;
pub mod account;
pub mod activity;
pub mod channel;
pub mod codec;
pub mod command;
pub mod delivery;
pub mod event;
pub mod id;
pub mod identity;
pub mod inbox;
pub mod job;
pub mod lease;
pub mod media;
pub mod member;
pub mod outbound;
pub mod permission;
pub mod poison;
pub mod receipt;
pub mod rollout;
pub mod session;
pub mod subject;
pub mod topology;
pub mod transcript;
pub mod turn;
