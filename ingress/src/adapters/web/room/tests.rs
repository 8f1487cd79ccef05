//! What browsers are shown, in which order, and what those see who come back or come late.

use proto::id::{Attempt, OutboundId, Seq, Sid};
use proto::receipt::{Refusal, StateName};
use proto::session::ChatKind;

use super::*;

fn address() -> (SessionKey, Address) {
    let address = Address {
        platform: "web".into(),
        account: "a".into(),
        chat: "s".into(),
        kind: ChatKind::Dm,
        thread: None,
    };
    (session_key("s"), address)
}

fn piece(turn: u64, offset: u64, text: &str) -> Draft {
    let (session, address) = address();
    let (turn, attempt) = (TurnId::new(turn), Attempt::FIRST);
    Draft {
        of: TurnRef { sid: Sid::new(1), turn, attempt },
        session,
        address,
        reply_to: "m".into(),
        offset,
        text: text.into(),
    }
}

fn outbound(turn: u64, kind: Kind, text: &str) -> Outbound {
    let (session, address) = address();
    Outbound {
        id: OutboundId::of_turn(TurnId::new(turn), "x"),
        session,
        address,
        reply_to: None,
        turn: Some(TurnId::new(turn)),
        attempt: None,
        kind,
        text: text.into(),
        ask: None,
        replaces: None,
    }
}

fn join(room: &mut Room, last: Option<u64>) -> mpsc::Receiver<Frame> {
    let (sender, receiver) = mpsc::channel(BEHIND_MAX);
    room.join(sender, last);
    receiver
}

fn events(receiver: &mut mpsc::Receiver<Frame>) -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    while let Ok(frame) = receiver.try_recv() {
        all.push((frame.event, serde_json::from_str(&frame.data).unwrap()));
    }
    all
}

#[test]
fn a_browser_that_comes_back_gets_what_it_missed() {
    let mut room = Room::default();
    let mut first = join(&mut room, None);
    room.user("m1", "hi", TurnId::new(1));
    room.draft(&piece(1, 0, "one "));
    let seen = std::iter::from_fn(|| first.try_recv().ok()).last().unwrap().number;
    drop(first);
    room.draft(&piece(1, 4, "two"));
    room.fact(&Fact::State { state: StateName::Running, turn: None, queued: 0 });
    let mut back = join(&mut room, seen);
    let missed = events(&mut back);
    assert_eq!(missed[0], ("hello", json!({ "resumed": true })));
    assert_eq!(missed[1].0, "state");
    assert_eq!((missed[2].0, &missed[2].1["text"]), ("draft", &json!("two")));
    assert_eq!(missed.len(), 3);
}

#[test]
fn a_new_browser_gets_what_the_history_does_not_have() {
    let mut room = Room::default();
    room.user("m1", "hi", TurnId::new(1));
    room.draft(&piece(1, 0, "so "));
    room.draft(&piece(1, 3, "far"));
    room.outbound(&outbound(1, Kind::Question, "may I?"));
    room.outbound(&outbound(1, Kind::Notice, "still working"));
    let mut new = join(&mut room, None);
    let seen: Vec<_> =
        events(&mut new).into_iter().map(|(event, data)| (event, data["text"].clone())).collect();
    let expected = [
        ("hello", Value::Null),
        ("message", json!("hi")),
        ("message", json!("may I?")),
        ("draft", json!("so far")),
    ];
    assert_eq!(seen, expected);
    room.outbound(&outbound(1, Kind::Reply, "done"));
    let mut later = join(&mut room, None);
    assert_eq!(events(&mut later).len(), 1, "the history has all of it now");
}

#[test]
fn a_closed_turn_says_what_was_shown_and_forgets_its_drafts() {
    let mut room = Room::default();
    let mut browser = join(&mut room, None);
    room.draft(&piece(1, 0, "half an"));
    room.outbound(&outbound(1, Kind::Closed, ""));
    let (event, data) = events(&mut browser).pop().unwrap();
    assert_eq!((event, &data["text"]), ("closed", &json!("half an")));
    let mut back = join(&mut room, Some(0));
    let replayed: Vec<_> = events(&mut back).into_iter().map(|(event, _)| event).collect();
    assert_eq!(replayed, ["hello", "closed"]);
}

#[test]
fn what_is_kept_is_bounded_and_too_old_a_browser_begins_anew() {
    let mut room = Room::default();
    for n in 0..2 * FRAMES_MAX {
        room.user(&n.to_string(), "x", TurnId::new(1));
    }
    assert_eq!(room.log.len(), FRAMES_MAX);
    let (_, hello) = events(&mut join(&mut room, Some(1))).remove(0);
    assert_eq!(hello, json!({ "resumed": false }));
    room.user("big", &"x".repeat(BYTES_MAX), TurnId::new(1));
    assert!(room.bytes <= BYTES_MAX);
    assert_eq!(room.bytes, room.log.iter().map(|(_, frame)| frame.data.len()).sum::<usize>());
    let (_, hello) = events(&mut join(&mut room, Some(u64::MAX))).remove(0);
    assert_eq!(hello, json!({ "resumed": false }), "a number of the future is not ours");
}

#[test]
fn a_browser_that_does_not_read_is_let_go() {
    let mut room = Room::default();
    let _deaf = join(&mut room, None);
    for n in 0..BEHIND_MAX + 1 {
        room.user(&n.to_string(), "x", TurnId::new(1));
    }
    assert!(!room.is_watched());
}

fn decided(id: &str, seq: u64, decision: Decided) -> Fact {
    Fact::Decided { seq: Seq::new(seq), message: id.into(), decision }
}

fn settled(id: &str, fate: Fate) -> Fact {
    Fact::Settled { message: id.into(), fate, turn: None }
}

/// What a browser that comes anew is shown of messages.
fn newcomer_sees(room: &mut Room) -> Vec<String> {
    let shown = events(&mut join(room, None)).into_iter();
    shown
        .filter(|(event, _)| *event == "message")
        .map(|(_, data)| data["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_change_is_shown_when_it_is_decided() {
    let mut room = Room::default();
    room.user("m1", "teh", TurnId::new(1));
    let mut browser = join(&mut room, None);
    room.edit("m1".into(), "the".into());
    assert_eq!(newcomer_sees(&mut room), ["teh"]);
    room.fact(&decided("m1", 2, Decided::Edited));
    let (event, data) = events(&mut browser).pop().unwrap();
    assert_eq!((event, &data["what"], &data["text"]), ("decided", &json!("edited"), &json!("the")));
    assert_eq!(newcomer_sees(&mut room), ["the"]);

    for refused in [Decided::TooLate, Decided::Refused { reason: Refusal::NotNow }] {
        room.edit("m1".into(), "/new".into());
        room.fact(&decided("m1", 3, refused));
        let (_, data) = events(&mut browser).pop().unwrap();
        assert_eq!(data["text"], Value::Null);
        assert_eq!(newcomer_sees(&mut room), ["the"]);
    }
    assert!(room.edits.is_empty());
    assert_eq!(room.bytes, room.log.iter().map(|(_, frame)| frame.data.len()).sum::<usize>());
}

#[test]
fn a_message_without_a_turn_of_its_own_does_not_wait_for_ever() {
    for fate in [Fate::Merged, Fate::Steered, Fate::Cleared, Fate::Withdrawn, Fate::Done] {
        let mut room = Room::default();
        room.user("m1", "one", TurnId::new(1));
        room.user("m2", "two", TurnId::new(2));
        let mut browser = join(&mut room, None);
        room.fact(&settled("m2", fate));
        let (event, data) = events(&mut browser).pop().unwrap();
        assert_eq!((event, &data["id"], &data["fate"]), ("settled", &json!("m2"), &json!(fate)));
        assert_eq!(newcomer_sees(&mut room), ["one"], "{fate:?}");
    }
    let mut room = Room::default();
    room.user("m1", "one", TurnId::new(1));
    room.fact(&settled("m1", Fate::Withdrawn));
    let back = events(&mut join(&mut room, Some(0)));
    assert!(back.iter().all(|(event, _)| *event != "message"), "nobody is shown it again");
    assert_eq!(room.bytes, room.log.iter().map(|(_, frame)| frame.data.len()).sum::<usize>());
}

#[test]
fn an_answer_from_beside_is_shown_and_kept_and_disturbs_nothing() {
    let mut room = Room::default();
    let mut browser = join(&mut room, None);
    let beside = session_key("s").background(Seq::new(7));
    room.draft(&piece(1, 0, "one "));
    room.draft(&Draft { session: beside.clone(), ..piece(7, 0, "aside") });
    room.draft(&piece(1, 4, "two"));
    assert_eq!(events(&mut browser).last().unwrap().1["text"], "two");
    let reply_to = Some("m7".to_owned());
    let reply = outbound(7, Kind::Reply, "aside");
    room.outbound(&Outbound { session: beside, reply_to, ..reply });
    let (_, data) = events(&mut browser).pop().unwrap();
    assert_eq!((&data["beside"], &data["reply_to"]), (&json!(true), &json!("m7")));
    room.outbound(&outbound(1, Kind::Reply, "one two"));
    assert_eq!(newcomer_sees(&mut room), ["aside"], "the history has the other");
}

#[test]
fn a_model_that_is_asked_again_is_drawn_again() {
    let mut room = Room::default();
    let mut browser = join(&mut room, None);
    room.draft(&piece(1, 0, "one two"));
    room.draft(&piece(1, 4, "three"));
    let (_, data) = events(&mut browser).pop().unwrap();
    assert_eq!((&data["offset"], &data["text"]), (&json!(4), &json!("three")));
    let greeting = events(&mut join(&mut room, None));
    assert_eq!(greeting.last().unwrap().1["text"], "one three");
}
