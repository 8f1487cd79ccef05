//! Stories of albums and pictures in a row: one turn, in the first one's place, whatever the session does meanwhile.

use proto::event::{BusyMode, MediaKind};
use proto::id::Epoch;
use proto::lease::Effect;
use proto::outbound::Kind;
use proto::receipt::{Decided, Fate, QueueReason};
use proto::turn::Outcome;
use scheduler_core::{Input, Session};

use crate::kit::{Story, W1, media};

const ALBUM: Option<&str> = Some("x");

#[test]
fn the_parts_of_an_album_are_one_turn() {
    let mut story = Story::new();
    story.shows("u", ALBUM).was(Decided::Collecting).after(500).shows("u", ALBUM);
    story.was(Decided::Merged).after(500).shows("u", ALBUM).sends(&[]).is("collecting 1&2&3");
    story.after(799).is("collecting 1&2&3").after(1).is("starting 1.1").sends(&["order"]);
    assert_eq!(story.inputs(), [1, 2, 3]);
    story.claims(W1, 1, 1).finishes(W1, 1, 1, Outcome::Completed).is("idle");
    story.sends(&["reply to m1", "closed m2", "closed m3"]);
    story.settles(1, Fate::Answered).settles(2, Fate::Merged).settles(3, Fate::Merged);
}

#[test]
fn what_is_merged_is_closed_where_it_came_from_also_when_another_leads_then() {
    let mut story = Story::new();
    for account in ["one", "two", "three", "two"] {
        story.writes(|event| {
            (event.mode, event.text) = (Some(BusyMode::Collect), account.into());
            event.address.account = account.into();
        });
    }
    let closed = |story: &Story| -> Vec<String> {
        let of = |effect: &Effect| {
            let Effect::Send { outbound } = effect else { return None };
            (outbound.kind == Kind::Closed).then(|| outbound.address.account.clone())
        };
        story.effects.iter().filter_map(of).collect()
    };
    story.withdraws(1);
    assert_eq!(closed(&story), ["one"]);
    story.after(400).claims(W1, 2, 1).finishes(W1, 2, 1, Outcome::Completed);
    assert_eq!(closed(&story), ["three", "two"]);
    story.settles(2, Fate::Answered).settles(3, Fate::Merged).settles(4, Fate::Merged);
}

#[test]
fn an_album_is_waited_for_at_most_so_long() {
    let mut story = Story::new();
    for _ in 0..7 {
        story.shows("u", ALBUM).after(700);
    }
    story.is("collecting 1&2&3&4&5&6&7").shows("u", ALBUM).after(100).is("starting 1.1");
}

#[test]
fn the_deadline_of_a_window_is_the_time_to_look_again() {
    let mut story = Story::new();
    story.shows("u", ALBUM);
    assert_eq!(story.session.deadline(&story.policy), Some(story.now.after(800)));
    story.after(300).shows("u", ALBUM);
    assert_eq!(story.session.deadline(&story.policy), Some(story.now.after(800)));
}

#[test]
fn parts_that_come_while_the_turn_starts_or_runs_wait_together_and_silently() {
    let mut story = Story::new();
    story.shows("u", ALBUM).after(800).shows("u", ALBUM).is("starting 1.1 + 2");
    story.was(Decided::Queued { reason: QueueReason::Burst }).sends(&[]);
    story.claims(W1, 1, 1).shows("u", ALBUM).was(Decided::Merged).is("running 1.1 + 2&3");
    assert_eq!(story.told(), [], "nothing is interrupted");
    story.finishes(W1, 1, 1, Outcome::Completed).is("starting 2.1");
    assert_eq!(story.inputs(), [2, 3]);
}

#[test]
fn an_album_is_joined_where_it_waits_also_past_another_message() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).shows("u", ALBUM).says("/queue b").shows("u", ALBUM);
    story.is("running 1.1 + 2&4 3").shows("u", Some("y")).is("running 1.1 + 2&4 3 5");
}

#[test]
fn pictures_without_an_album_join_only_what_their_sender_sent_last() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).shows("u", None).shows("u", None).is("running 1.1 + 2&3");
    story.says("/queue and this:").shows("u", None).is("running 1.1 + 2&3 4 5");
    story.says_as("v", "/queue hm").shows("u", None).is("running 1.1 + 2&3 4 5&7 6");
}

#[test]
fn another_senders_picture_never_joins() {
    let mut story = Story::new();
    story.shows("u", ALBUM).shows("v", ALBUM).is("collecting 1 + 2").shows("v", ALBUM);
    story.is("collecting 1 + 2&3").shows("u", None).is("collecting 1 + 2&3 4");
}

#[test]
fn a_text_in_the_middle_of_an_album_is_a_turn_of_its_own_after_it() {
    let mut story = Story::new();
    story.shows("u", ALBUM).says("b").was(Decided::Queued { reason: QueueReason::Burst });
    story.shows("u", ALBUM).is("collecting 1&3 + 2").after(800).is("starting 1.1 + 2");
    assert_eq!(story.inputs(), [1, 3]);
}

#[test]
fn stop_drops_an_album_at_once() {
    let mut story = Story::new();
    story.shows("u", ALBUM).shows("u", ALBUM).says("/stop").is("idle").sends_like("Stopped.");
    story.settles(1, Fate::Cleared).settles(2, Fate::Cleared).after(5_000).is("idle").sends(&[]);
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).shows("u", ALBUM).shows("u", ALBUM).says("/stop");
    story.settles(2, Fate::Cleared).settles(3, Fate::Cleared);
}

#[test]
fn new_and_a_hangup_end_a_collection_too() {
    let mut story = Story::new();
    story.shows("u", ALBUM).says("/new").is("starting 2.1").settles(1, Fate::Cleared);
    let mut story = Story::new();
    story.shows("u", ALBUM).hangs_up(1).is("idle").settles(1, Fate::Withdrawn);
}

#[test]
fn a_takeover_in_the_middle_waits_anew_and_loses_nothing() {
    let mut story = Story::new();
    story.shows("u", ALBUM).after(500).shows("u", ALBUM).after(700);
    story.session = Session::restore(story.session.lease.clone(), story.now);
    story.input(&Input::Adopt(Epoch::new(2))).is("collecting 1&2").shows("u", ALBUM);
    story.after(799).is("collecting 1&2&3").after(1).is("starting 1.1");
    assert_eq!(story.inputs(), [1, 2, 3]);
}

#[test]
fn a_part_that_comes_again_changes_nothing() {
    let mut story = Story::new();
    story.shows("u", ALBUM).shows("u", ALBUM);
    let mut event = crate::kit::event(2, "");
    event.media = vec![media(MediaKind::Photo, ALBUM)];
    let again = Input::Message { seq: proto::id::Seq::new(2), event: Box::new(event) };
    story.input(&again).is("collecting 1&2");
}

#[test]
fn an_album_whose_caption_is_queue_is_still_one_turn() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).writes(|event| {
        event.text = "/queue look at these".into();
        event.media = vec![media(MediaKind::Photo, ALBUM)];
    });
    story.shows("u", ALBUM).is("running 1.1 + 2&3");
    let mut story = Story::new();
    story.writes(|event| {
        event.text = "/interrupt with these".into();
        event.media = vec![media(MediaKind::Photo, ALBUM)];
    });
    story.shows("u", ALBUM).is("collecting 1&2");
}

#[test]
fn an_album_of_more_than_fits_into_one_turn_becomes_two() {
    let mut story = Story::new();
    story.says("a");
    for _ in 0..34 {
        story.shows("u", ALBUM);
    }
    assert_eq!(story.session.lease.queue.len(), 2);
}

#[test]
fn pictures_are_not_refused_by_a_mode_that_takes_no_words() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).says("/busy reject").shows("u", None).is("running 1.1 + 3");
    assert_eq!(BusyMode::named("reject"), Some(BusyMode::Reject));
}

#[test]
fn a_collection_that_is_behind_a_turn_starts_without_a_window() {
    let mut story = Story::new();
    story.says("a").claims(W1, 1, 1).shows("u", ALBUM);
    story
        .finishes(W1, 1, 1, Outcome::Completed)
        .is("starting 2.1")
        .sends(&["reply to m1", "order"]);
}
