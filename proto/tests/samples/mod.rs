//! One example of each kind of message, with every field set.

mod jobs;

use proto::access::{Admission, Grounds};
use proto::activity::{Activity, State};
use proto::event::{Address, BusyMode, Line, Media, MediaKind, MessageEvent, Quote, Speaker, User};
use proto::id::{AskId, Attempt, ConversationId, Epoch, OutboundId, ProcessId, Seq, Sid, TurnId};
use proto::inbox::Inbox;
use proto::lease::{
    Aside, Ask, Burst, Checkpoint, Choices, Effect, Last, Lease, More, Origin, Phase, Turn, Waiting,
};
use proto::member::{Member, Role};
use proto::outbound::{Draft, Kind, Outbound};
use proto::receipt::{Decided, End, Fact, Fate, QueueReason, Receipt, Refusal, Stage, StateName};
use proto::rollout::Rollout;
use proto::session::{ChatKind, SessionKey, SessionParts};
use proto::transcript::{Body, CallStatus, Entry, External, Profile, ToolCall};
use proto::turn::{
    AskKind, Beat, BeatReply, BeatTurn, Claim, ClaimReply, Control, Decision, Denial, News,
    Outcome, Scope, StopReason, TurnKind, TurnOrder, TurnRef, TurnReport, Usage,
};
use talaria_proto as proto;

use crate::frozen;

const WORKER: ProcessId = ProcessId::new(0xcd);
const ATTEMPT: Attempt = Attempt::FIRST;

fn of() -> TurnRef {
    TurnRef { sid: Sid::new(0xab), turn: TurnId::new(1), attempt: ATTEMPT }
}

fn ask() -> AskId {
    AskId { turn: TurnId::new(1), attempt: ATTEMPT, number: 2 }
}

fn session() -> SessionKey {
    SessionKey::new(SessionParts {
        platform: "telegram",
        kind: ChatKind::Group,
        chat: "-100:7",
        thread: Some("t1"),
        participant: Some("u@1"),
    })
}

fn address() -> Address {
    Address {
        platform: "telegram".into(),
        account: "bot".into(),
        chat: "-100:7".into(),
        kind: ChatKind::Group,
        thread: Some("t1".into()),
    }
}

fn user() -> User {
    User { id: "u@1".into(), name: Some("Ada".into()) }
}

fn event() -> MessageEvent {
    MessageEvent {
        id: "m1".into(),
        session: session(),
        address: address(),
        user: user(),
        text: "look at this".into(),
        media: vec![Media {
            url: "https://example.org/a.jpg".into(),
            kind: MediaKind::Photo,
            mime: Some("image/jpeg".into()),
            name: Some("a.jpg".into()),
            group: Some("album".into()),
        }],
        reply_to: Some(Quote { id: "m0".into(), text: Some("what?".into()) }),
        mode: Some(BusyMode::Queue),
        history: vec![Line { speaker: Speaker::Assistant, text: "hello".into() }],
        admission: Admission {
            grounds: Grounds::Paired,
            aliases: vec!["u2".into()],
            shared: true,
            prompt: Some("Be brief.".into()),
            model: Some("openai:small".into()),
        },
        accepted_at_ms: 1_700_000_000_000,
    }
}

fn origin() -> Origin {
    Origin { address: address(), message: "m1".into(), user: user() }
}

fn waiting() -> Waiting {
    Waiting {
        seq: Seq::new(5),
        edited: None,
        more: Vec::new(),
        burst: Burst::Single,
        kind: TurnKind::Chat,
        origin: origin(),
        accepted_at_ms: 2,
        answers: true,
    }
}

fn more() -> Vec<More> {
    vec![More { seq: Seq::new(6), message: "m2".into(), address: Some(address()) }]
}

/// What waits with everything that can belong to it.
fn gathered(burst: Burst) -> Waiting {
    Waiting { edited: Some(Seq::new(7)), more: more(), burst, ..waiting() }
}

fn turn() -> Turn {
    Turn {
        id: TurnId::new(1),
        attempt: ATTEMPT,
        kind: TurnKind::Reset,
        inputs: vec![Seq::new(1), Seq::new(2)],
        origin: origin(),
        depth: 1,
        crashes: 1,
        accepted_at_ms: 1,
        fresh: false,
        forget: Vec::new(),
        more: Vec::new(),
        steers: vec![waiting()],
        asks: vec![Ask { id: ask(), kind: AskKind::Question, rule: Some("deletes".into()) }],
        answers: vec![(ask(), Decision::Denied { reason: Some("no".into()) })],
        notices: 1,
        warned: true,
        extended_ms: 60_000,
    }
}

fn outbound(kind: Kind) -> Outbound {
    Outbound {
        id: OutboundId::of_turn(TurnId::new(1), "reply"),
        session: session(),
        address: address(),
        reply_to: Some("m1".into()),
        turn: Some(TurnId::new(1)),
        attempt: Some(ATTEMPT),
        kind,
        text: "words".into(),
        ask: Some(ask()),
        replaces: (kind == Kind::Notice).then(|| OutboundId::of_turn(TurnId::new(1), "first")),
    }
}

fn lease(phase: Phase, effects: Vec<Effect>) -> Lease {
    let (epoch, seen) = (Epoch::new(3), Seq::new(9));
    Lease {
        session: session(),
        epoch,
        seen,
        phase,
        queue: vec![waiting()],
        effects,
        choices: Choices::default(),
        suspended: false,
        forget: vec![TurnId::new(7)],
        last: None,
        background: Vec::new(),
    }
}

pub(crate) fn claim() -> Claim {
    Claim { of: of(), worker: WORKER }
}

fn report(news: News) -> Inbox {
    Inbox::Report(TurnReport { of: of(), worker: WORKER, news })
}

#[test]
fn inputs() {
    frozen("inbox-message", &Inbox::Message(Box::new(event())));
    frozen("inbox-edit", &Inbox::Edit(Box::new(event())));
    frozen("inbox-refused", &Inbox::Refused { event: Box::new(event()), text: "not today".into() });
    frozen(
        "inbox-withdrawal",
        &Inbox::Withdrawal { session: session(), message: "m1".into(), user: user() },
    );
    frozen("inbox-hangup", &Inbox::Hangup { session: session(), message: "m1".into() });
    let usage = Usage { input: 10, output: 20 };
    let (outcome, reply, steered) = (Outcome::Completed, "words".into(), vec![Seq::new(5)]);
    frozen("inbox-finished", &report(News::Finished { outcome, reply, steered, usage }));
    frozen(
        "inbox-asked",
        &report(News::Asked {
            ask: ask(),
            text: "may I?".into(),
            kind: AskKind::Question,
            rule: Some("deletes".into()),
        }),
    );
    frozen(
        "inbox-said",
        &report(News::Said { number: 1, address: address(), text: "words".into() }),
    );
    frozen("inbox-ask-closed", &report(News::AskClosed { ask: ask() }));
    frozen("inbox-handed-back", &report(News::HandedBack));
}

#[test]
fn leases() {
    let outbound = || outbound(Kind::Reply);
    frozen("lease-idle", &lease(Phase::Idle, vec![Effect::Send { outbound: outbound() }]));
    frozen("lease-starting", &lease(Phase::Starting { turn: turn() }, vec![Effect::Order]));
    let reply = Effect::Reply { report: Seq::new(8), outbound: outbound() };
    frozen("lease-running", &lease(Phase::Running { turn: turn(), worker: WORKER }, vec![reply]));
    let stopping = Phase::Stopping { turn: turn(), worker: WORKER, why: StopReason::Message };
    frozen("lease-stopping", &lease(stopping, Vec::new()));
}

#[test]
fn leases_that_gather_and_remember() {
    let album = gathered(Burst::Album("album".into()));
    frozen("lease-collecting", &lease(Phase::Collecting { waiting: album }, Vec::new()));
    let turn = Turn {
        fresh: true,
        forget: vec![TurnId::new(8)],
        more: more(),
        kind: TurnKind::Command,
        ..turn()
    };
    let decision = Decided::Queued { reason: QueueReason::Burst };
    let chosen = Lease {
        queue: vec![gathered(Burst::Photos), gathered(Burst::Collected)],
        choices: Choices {
            busy: Some(BusyMode::Rollback),
            yolo: true,
            approved: ["deletes".to_owned()].into(),
        },
        suspended: true,
        last: Some(Last { message: "m1".into(), decision }),
        background: vec![session().background(Seq::new(4))],
        ..lease(Phase::Starting { turn }, Vec::new())
    };
    frozen("lease-chosen", &chosen);
    let spawned = session().background(Seq::new(4));
    let spawn = Effect::Spawn { seq: Seq::new(4), session: spawned.clone() };
    let roster = Effect::Roster { outbound: outbound(Kind::Notice), sessions: vec![spawned] };
    frozen("lease-background", &lease(Phase::Idle, vec![spawn, roster]));
}

#[test]
fn turns() {
    frozen(
        "turn-order",
        &TurnOrder {
            of: of(),
            session: session(),
            kind: TurnKind::Chat,
            inputs: vec![Seq::new(1)],
            address: address(),
            fresh: true,
            forget: vec![TurnId::new(8)],
        },
    );
    frozen("claim", &claim());
    frozen("claim-granted", &ClaimReply::Granted { epoch: Epoch::new(3) });
    frozen("claim-denied", &ClaimReply::Denied { reason: Denial::Superseded });
}

#[test]
fn heartbeats() {
    let activity = Activity {
        state: State::RunningTool,
        last_activity_desc: "cargo test".into(),
        last_activity_at_ms: 1_700_000_000_000,
        current_tool: Some("terminal".into()),
        since_activity_ms: 5,
        deadline_ms: Some(600_000),
        api_call_count: 2,
        max_iterations: 90,
        budget_used: 5,
        budget_max: 90,
    };
    let (steers, seen) = (vec![Seq::new(5)], vec![Seq::new(4)]);
    let activity = Some(activity);
    let turn = BeatTurn { of: of(), activity, steers, seen, answers: vec![ask()] };
    frozen("beat", &Beat { worker: WORKER, turns: vec![turn] });
    frozen(
        "beat-reply",
        &BeatReply {
            epoch: Epoch::new(3),
            kept: vec![of()],
            lost: vec![of()],
            controls: vec![
                Control::Interrupt { of: of(), reason: StopReason::Stop },
                Control::Abandon { of: of() },
                Control::Steer { of: of(), seq: Seq::new(5) },
                Control::Answer { of: of(), ask: ask(), decision: Decision::Approved },
                Control::Answer {
                    of: of(),
                    ask: ask(),
                    decision: Decision::ApprovedFor { scope: Scope::Always },
                },
                Control::Answer {
                    of: of(),
                    ask: ask(),
                    decision: Decision::Answered { seq: Seq::new(6) },
                },
            ],
        },
    );
}

#[test]
fn conversations() {
    let entry = |body| Entry { turn: TurnId::new(1), attempt: ATTEMPT, body };
    frozen("entry-system", &entry(Body::System { text: "be kind".into() }));
    let inputs = vec![Seq::new(1)];
    frozen("entry-user", &entry(Body::User { inputs, text: "hello".into() }));
    let call = ToolCall { id: "c1".into(), name: "terminal".into(), arguments: "{}".into() };
    let (text, calls) = ("let me see".into(), vec![call]);
    frozen("entry-assistant", &entry(Body::Assistant { text, calls, partial: true }));
    let (output, status) = ("done".into(), CallStatus::Done);
    let inputs = vec![Seq::new(7)];
    frozen("entry-result", &entry(Body::Result { call: "c1".into(), output, status, inputs }));
    frozen("entry-resumed", &entry(Body::Resumed));
    frozen("entry-attached", &entry(Body::Attached { media: event().media }));
    let (turn, inputs) = (TurnId::new(1), vec![Seq::new(1)]);
    frozen("entry-withdrawn", &entry(Body::Withdrawn { turn, inputs }));
    let entries = vec![entry(Body::System { text: "be kind".into() })];
    frozen("entry-compressed", &entry(Body::Compressed { entries }));
    let profile = Profile {
        conversation: ConversationId::new(3),
        turn: TurnId::new(3),
        attempt: ATTEMPT,
        previous: None,
        model: None,
        external: None,
    };
    frozen("profile", &Profile { conversation: ConversationId::new(1), turn, ..profile.clone() });
    let (previous, model) = (Some(ConversationId::new(1)), Some("large".into()));
    frozen("profile-chosen", &Profile { previous, model, ..profile.clone() });
    let external = External {
        agent: "agent --acp".into(),
        session: "s1".into(),
        conversation: profile.conversation,
        turn: profile.turn,
    };
    frozen("profile-external", &Profile { external: Some(external), ..profile });
}

#[test]
fn deliveries() {
    for (name, kind) in [
        ("outbound-reply", Kind::Reply),
        ("outbound-notice", Kind::Notice),
        ("outbound-ack", Kind::Ack),
        ("outbound-question", Kind::Question),
        ("outbound-closed", Kind::Closed),
    ] {
        frozen(name, &outbound(kind));
    }
    frozen(
        "draft",
        &Draft {
            of: of(),
            session: session(),
            address: address(),
            reply_to: "m1".into(),
            offset: 3,
            text: "words".into(),
        },
    );
}

#[test]
fn receipts() {
    let receipt = |fact| Receipt { session: session(), facts: vec![fact] };
    let (turn, attempt) = (TurnId::new(1), ATTEMPT);
    let decision = Decided::Queued { reason: QueueReason::Depth };
    frozen(
        "receipt-decided",
        &receipt(Fact::Decided { seq: Seq::new(1), message: "m1".into(), decision }),
    );
    let state = StateName::Running;
    frozen("receipt-state", &receipt(Fact::State { state, turn: Some(turn), queued: 2 }));
    frozen("receipt-claimed", &receipt(Fact::Claimed { turn, attempt, worker: WORKER }));
    let end = End::Reported { outcome: Outcome::Interrupted };
    frozen("receipt-ended", &receipt(Fact::Ended { turn, attempt, end }));
    frozen("receipt-slow", &receipt(Fact::Slow { turn, attempt, stage: Stage::Warned }));
    frozen("receipt-retried", &receipt(Fact::Retried { turn, attempt, handed_back: true }));
    let (message, fate) = ("m1".into(), Fate::Merged);
    frozen("receipt-settled", &receipt(Fact::Settled { message, fate, turn: Some(turn) }));
}

#[test]
fn members() {
    let slot = Some("worker-0".into());
    let member = Member { role: Role::Worker, id: WORKER, slot, turns: 2 };
    frozen("member", &member);
    frozen("rollout", &Rollout::new([member], outbound(Kind::Notice)));
    let aside = vec![Aside { sid: of().sid, first: Seq::new(7) }];
    let (epoch, cursor) = (Epoch::new(3), Seq::new(9));
    frozen("checkpoint", &Checkpoint { epoch, cursor, settled: 12, aside });
}

/// Words that people's programs may look for in receipts: each in its place, so that none is renamed unseen.
#[test]
fn vocabulary() {
    let queued = |reason| Decided::Queued { reason };
    frozen(
        "vocabulary-decided",
        &vec![
            Decided::Started,
            queued(QueueReason::Asked),
            queued(QueueReason::Starting),
            queued(QueueReason::Stopping),
            queued(QueueReason::Depth),
            queued(QueueReason::Delegating),
            queued(QueueReason::Compressing),
            queued(QueueReason::Asking),
            queued(QueueReason::NotSteered),
            queued(QueueReason::Burst),
            Decided::Interrupted,
            Decided::RolledBack,
            Decided::Steered,
            Decided::Answering,
            Decided::Merged,
            Decided::Collecting,
            Decided::Background,
            Decided::Done,
            Decided::Edited,
            Decided::Withdrawn,
            Decided::TooLate,
            Decided::Refused { reason: Refusal::Full },
            Decided::Refused { reason: Refusal::Busy },
            Decided::Refused { reason: Refusal::NotNow },
            Decided::Refused { reason: Refusal::Forbidden },
        ],
    );
    frozen(
        "vocabulary-fates",
        &vec![
            Fate::Answered,
            Fate::Interrupted,
            Fate::Merged,
            Fate::Steered,
            Fate::Cleared,
            Fate::Withdrawn,
            Fate::Refused,
            Fate::Done,
            Fate::Parked,
        ],
    );
    frozen("vocabulary-modes", &BusyMode::ALL.to_vec());
}
