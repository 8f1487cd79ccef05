//! Stories of asks: decided by id, by the right person, once.

use crate::kit::{Story, W1, W2, ask, media};
use proto::activity::State;
use proto::event::{Address, BusyMode, MediaKind};
use proto::id::Seq;
use proto::lease::Effect;
use proto::receipt::{Decided, Fate, QueueReason, Refusal};
use proto::turn::{Control, Decision, News, Outcome};

#[test]
fn an_ask_is_decided_once_by_id_and_never_interrupts() {
    let mut story = Story::new();
    story.says("/approve").sends(&["Nothing waits for a decision."]);
    story.says("a").claims(W1, 2, 1).asks(W1, 2, 1, 1).asks(W1, 2, 1, 2).sends(&["rm -rf?"]);
    story.says("wait, what?").is("running 2.1 + 5").sends_like("A decision is open");
    story.says("/approve 2-1-2").is("running 2.1 + 5");
    let answer =
        Control::Answer { of: story.of(2, 1), ask: ask(2, 1, 2), decision: Decision::Approved };
    assert_eq!(story.told(), [answer]);
    story.says("/approve 2-1-2").sends_like("no longer open");
    story.says("/deny not that").sends(&["Denied."]);
    let reason = Some("not that".into());
    let answer = Control::Answer {
        of: story.of(2, 1),
        ask: ask(2, 1, 1),
        decision: Decision::Denied { reason },
    };
    assert_eq!(story.told(), [answer]);
    story.says("/approve").sends(&["Nothing waits for a decision."]);
}

#[test]
fn a_new_attempt_closes_the_asks_of_the_one_before() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).asks(W1, 1, 1, 1).after(15_000).claims(W2, 1, 2);
    story
        .says("/approve")
        .sends_like("Nothing waits")
        .says("/approve 1-1-1")
        .sends_like("no longer open");
    story.asks(W2, 1, 2, 1).says("/approve 1-1-1").sends_like("no longer open");
}

fn asking(count: u32) -> Story {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1);
    for number in 1..=count {
        story.asks(W1, 1, 1, number);
    }
    story
}

fn answers(story: &Story) -> Vec<u32> {
    let of = |control: Control| match control {
        Control::Answer { ask, .. } => ask.number,
        Control::Interrupt { .. } | Control::Abandon { .. } | Control::Steer { .. } => {
            panic!("only answers: {control:?}")
        }
    };
    story.told().into_iter().map(of).collect()
}

#[test]
fn all_open_asks_are_decided_at_once_if_that_is_said() {
    let mut story = asking(3);
    story.says("/approve all").sends(&["Approved, all 3."]).is("running 1.1");
    assert_eq!(answers(&story), [1, 2, 3]);
    let mut story = asking(2);
    story.says("/deny all too risky").sends(&["Denied, all 2."]);
    assert_eq!(answers(&story), [1, 2]);
}

#[test]
fn only_the_person_whose_turn_it_is_decides() {
    let mut story = asking(1);
    story.says_as("someone", "/approve").sends_like("Only the person").says_as("someone", "/deny");
    story.sends_like("Only the person").is("running 1.1");
    assert_eq!(story.told(), []);
    story.says("/approve").sends(&["Approved."]);
}

#[test]
fn a_late_doubled_or_mistyped_decision_changes_nothing() {
    let mut story = asking(2);
    story.says("/approve 1-1-1").says("/deny 1-1-1").sends_like("no longer open");
    story.says("/approve yes").sends_like("is not the id of a question");
    story.reports(W1, 1, 1, News::AskClosed { ask: ask(1, 1, 2) });
    story.says("/approve 1-1-2").sends_like("no longer open");
    story.says("/approve").sends(&["Nothing waits for a decision."]);
    assert_eq!(story.told(), []);
}

#[test]
fn a_decision_that_comes_while_the_turn_stops_or_starts_decides_nothing() {
    let mut story = asking(1);
    story.says("/stop").says("/approve").sends(&["Nothing waits for a decision."]);
    assert_eq!(story.told(), []);
    let mut story = asking(1);
    story.after(15_000).is("starting 1.2").says("/approve").sends_like("Nothing waits");
}

#[test]
fn an_answer_is_repeated_until_the_worker_says_that_it_has_it() {
    let mut story = asking(1);
    story.says("/approve").beats(W1, 1, 1, Default::default());
    assert!(format!("{:?}", story.signals).contains("Answer"));
    story.reports(W1, 1, 1, News::AskClosed { ask: ask(1, 1, 1) });
    story.beats(W1, 1, 1, Default::default());
    assert!(!format!("{:?}", story.signals).contains("Answer"));
}

#[test]
fn yolo_approves_whatever_is_asked_until_it_is_taken_back() {
    let mut story = Story::new();
    story.says("/yolo on").sends_like("approved without asking you");
    story.says("a").claims(W1, 2, 1).asks(W1, 2, 1, 1).sends(&[]);
    let approved =
        Control::Answer { of: story.of(2, 1), ask: ask(2, 1, 1), decision: Decision::Approved };
    assert_eq!(story.told(), [approved]);
    story.says("/yolo off").asks(W1, 2, 1, 2).sends(&["rm -rf?"]).says("/yolo");
    story.sends_like("approved without asking you");
}

#[test]
fn what_is_approved_for_the_session_is_not_asked_again_until_it_is_reset() {
    for (word, said) in [
        ("session", "Approved, and the like of it in this session, until /new."),
        ("always", "Approved, and the like of it from you, from now on."),
    ] {
        let mut story = Story::new();
        story.says("a").claims(W1, 1, 1).asks_by_rule(W1, (1, 1, 1), Some("deletes"));
        story.says(&format!("/approve {word}")).sends(&[said]);
        let [Control::Answer { decision: Decision::ApprovedFor { .. }, .. }] = &story.told()[..]
        else {
            panic!("an approval for more than this once")
        };
        story.asks_by_rule(W1, (1, 1, 2), Some("deletes")).sends(&[]);
        let id = ask(1, 1, 2);
        let approved =
            Control::Answer { of: story.of(1, 1), ask: id, decision: Decision::Approved };
        assert_eq!(story.told(), [approved]);
        story.asks_by_rule(W1, (1, 1, 3), Some("reboots")).sends(&["rm -rf?"]);
        story.says("/approve once all").sends(&["Approved."]);
        story.asks(W1, 1, 1, 4).sends(&["rm -rf?"]).says("/approve session").sends(&["Approved."]);
        story.asks(W1, 1, 1, 5).sends(&["rm -rf?"]);
        story.says("/new");
        assert!(story.session.lease.choices.approved.is_empty());
    }
}

#[test]
fn what_is_said_in_another_chat_is_sent_there_and_not_after_a_stop() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1);
    let mut address = story.turn().origin.address.clone();
    address.chat = "elsewhere".into();
    let said = |number, address: &Address| News::Said {
        number,
        address: address.clone(),
        text: "hello there".into(),
    };
    story.reports(W1, 1, 1, said(1, &address));
    let sent: Vec<_> = story
        .session
        .lease
        .effects
        .iter()
        .filter_map(|effect| {
            let Effect::Reply { outbound, .. } = effect else { return None };
            Some((outbound.address.chat.as_str(), &outbound.reply_to))
        })
        .collect();
    assert_eq!(sent, [("elsewhere", &None)]);
    story.says("/stop").reports(W1, 1, 1, said(2, &address));
    let is_reply = |effect: &Effect| matches!(effect, Effect::Reply { .. });
    assert!(!story.session.lease.effects.iter().any(is_reply));
}

#[test]
fn words_decide_nothing_in_every_mode_and_are_kept_by_it() {
    for mode in BusyMode::ALL {
        let mut story = asking(1);
        let (state, decision) = if mode == BusyMode::Reject {
            ("running 1.1", Decided::Refused { reason: Refusal::Busy })
        } else {
            ("running 1.1 + 3", Decided::Queued { reason: QueueReason::Asking })
        };
        story.says_in(mode, "yes").is(state).was(decision);
        assert_eq!(story.told(), []);
        assert_eq!(story.turn().asks[0].id, ask(1, 1, 1));
    }
}

fn wondering() -> Story {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).wonders(W1, 1, 1, 1).sends(&["which one?"]);
    story
}

/// The answer that the worker is told, by the place of its words.
fn answer(story: &Story, seq: u64) -> Control {
    let decision = Decision::Answered { seq: Seq::new(seq) };
    Control::Answer { of: story.of(1, 1), ask: ask(1, 1, 1), decision }
}

#[test]
fn the_next_words_answer_a_question_in_every_mode_and_only_once() {
    for mode in BusyMode::ALL {
        let mut story = wondering();
        story.says_in(mode, "the blue one").is("running 1.1").was(Decided::Answering).sends(&[]);
        assert_eq!(story.told(), [answer(&story, 3)]);
        story.says_in(BusyMode::Queue, "and then").is("running 1.1 + 4");
    }
}

#[test]
fn only_plain_words_of_the_person_who_is_asked_answer() {
    let mut story = wondering();
    story.says_as("someone", "me too").is("running 1.1 + 3");
    story
        .says("/queue later")
        .is("running 1.1 + 3 4")
        .says("/status")
        .sends_like("your next message");
    story.writes(|event| event.media = vec![media(MediaKind::Voice, None)]);
    story.is("running 1.1 + 3 4 6");
    assert_eq!(story.told(), []);
    story
        .says("/yolo")
        .wonders(W1, 1, 1, 2)
        .sends(&["which one?"])
        .says("/deny")
        .sends(&["Denied."]);
}

#[test]
fn an_answer_that_is_seen_goes_without_saying_and_reaches_its_end() {
    let mut story = wondering();
    story.says("blue").beats_with(W1, (1, 1), State::Streaming, &[3]);
    story.sends(&["closed m3"]).settles(3, Fate::Steered);
}

#[test]
fn an_answer_whose_worker_dies_is_a_hint_to_the_next_attempt() {
    let mut story = wondering();
    story.says("blue").after(15_000).claims(W2, 1, 2);
    assert_eq!(story.told(), [Control::Steer { of: story.of(1, 2), seq: Seq::new(3) }]);
    story.finishes(W2, 1, 2, Outcome::Completed).is("starting 3.1").is_open(3);
}

#[test]
fn a_decision_that_says_its_reason_passes_it_on_cut_to_a_sensible_length() {
    let mut story = asking(1);
    story.says(&format!("/deny {}", "long ".repeat(200)));
    let [Control::Answer { decision: Decision::Denied { reason: Some(reason) }, .. }] =
        &story.told()[..]
    else {
        panic!("{:?}", story.told())
    };
    assert_eq!(reason.chars().count(), 280);
}
