//! The checker: reads what the platform saw, what the model was asked and what is stored, and holds it against the invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use talaria_tests::World;
use talaria_tests::callback::Post;
use tokio::time::timeout;

use crate::load::Said;

/// How long the last answer may take after everything is whole again.
const SETTLED: Duration = Duration::from_secs(90);

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    seeds: usize,
    messages: usize,
    faults: usize,
    lost: usize,
    doubled: usize,
    repeated: usize,
    attempts: usize,
    recoveries: Vec<Duration>,
}

impl Figures {
    pub(crate) fn add(&mut self, other: Self) {
        self.seeds += 1;
        self.messages += other.messages;
        self.faults += other.faults;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.repeated += other.repeated;
        self.attempts += other.attempts;
        self.recoveries.extend(other.recoveries);
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut times = self.recoveries.clone();
        times.sort();
        let at = |part: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "an index into a list of some thousands"
            )]
            let index = (times.len() as f64 * part) as usize;
            times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
        };
        writeln!(
            f,
            "| seeds | messages | faults | lost | doubled | second attempts | delivered again under the same id | next answer after a fault p50 | p99 |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|---|")?;
        write!(
            f,
            "| {} | {} | {} | {} | {} | {} | {} | {:.2} s | {:.2} s |",
            self.seeds,
            self.messages,
            self.faults,
            self.lost,
            self.doubled,
            self.attempts,
            self.repeated,
            at(0.5).as_secs_f64(),
            at(0.99).as_secs_f64(),
        )
    }
}

/// Waits until everything that was said is answered, and checks the whole history.
pub(crate) async fn check(world: &World, seed: u64, said: &[Said], struck: &[Instant]) -> Figures {
    let missing = |posts: &[Post]| -> Vec<String> {
        let answered: BTreeSet<&str> = replies(posts).map(|post| post.text("reply_to")).collect();
        said.iter()
            .filter(|said| !answered.contains(&*said.id))
            .map(|said| said.id.clone())
            .collect()
    };
    let all = async {
        while !missing(&world.callbacks.posts()).is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let _ = timeout(SETTLED, all).await;
    let posts = world.callbacks.posts();
    let lost = missing(&posts);
    assert!(lost.is_empty(), "seed {seed}: these were accepted and never answered: {lost:?}");
    let (doubled, repeated) = each_once(seed, &posts);
    in_order(seed, said, &posts);
    world.model.assert_strict();
    let attempts = transcripts(world, seed).await;
    let times: Vec<Instant> = replies(&posts).map(|post| post.at).collect();
    let next = |fault: &Instant| times.iter().filter(|at| *at > fault).min().map(|at| *at - *fault);
    Figures {
        seeds: 1,
        messages: said.len(),
        faults: struck.len(),
        lost: lost.len(),
        doubled,
        repeated,
        attempts,
        recoveries: struck.iter().filter_map(next).collect(),
    }
}

fn replies(posts: &[Post]) -> impl Iterator<Item = &Post> {
    posts.iter().filter(|post| post.taken && post.text("kind") == "reply")
}

/// Each message has one reply. The same reply may be delivered again, under the same id, when its delivery was cut off before it
/// was recorded: that is how a platform knows it.
fn each_once(seed: u64, posts: &[Post]) -> (usize, usize) {
    let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut count = 0;
    for post in replies(posts) {
        ids.entry(post.text("reply_to")).or_default().insert(post.text("id"));
        count += 1;
    }
    let doubled: Vec<_> = ids.iter().filter(|(_, ids)| ids.len() > 1).collect();
    assert!(doubled.is_empty(), "seed {seed}: answered twice: {doubled:?}");
    (doubled.len(), count - ids.len())
}

/// In each chat the answers come in the order of the messages, each in its own chat and to its own words.
fn in_order(seed: u64, said: &[Said], posts: &[Post]) {
    let mut seen = BTreeSet::new();
    let first: Vec<&Post> =
        replies(posts).filter(|post| seen.insert(post.text("reply_to"))).collect();
    let chats: BTreeSet<&str> = said.iter().map(|said| &*said.chat).collect();
    for chat in chats {
        let asked: Vec<&Said> = said.iter().filter(|said| said.chat == chat).collect();
        let answered: Vec<&&Post> = first.iter().filter(|post| post.chat() == chat).collect();
        let ids = |of: Vec<&str>| of.join(" ");
        assert_eq!(
            ids(answered.iter().map(|post| post.text("reply_to")).collect()),
            ids(asked.iter().map(|said| &*said.id).collect()),
            "seed {seed}: the answers in {chat} are not in order"
        );
        for (said, post) in asked.iter().zip(answered) {
            let echo = format!("you said: {}", said.text);
            let text = post.text("text");
            assert!(text == echo || text == "worked", "seed {seed}: {} got {text:?}", said.id);
        }
    }
}

/// No straggler writes: in each conversation the attempts of a turn only grow, and its inputs are there once. Returns how many
/// attempts were not the first.
async fn transcripts(world: &World, seed: u64) -> usize {
    let stream = world.nats.jetstream().await.get_stream("TRANSCRIPT").await.unwrap();
    let last = stream.get_info().await.unwrap().state.last_sequence;
    let mut newest: BTreeMap<(String, u64), u64> = BTreeMap::new();
    let mut inputs = BTreeSet::new();
    for sequence in 1..=last {
        let Ok(message) = stream.get_raw_message(sequence).await else { continue };
        let entry: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
        let (turn, attempt) = (entry["turn"].as_u64(), entry["attempt"].as_u64());
        let (turn, attempt) = (turn.unwrap_or_default(), attempt.unwrap_or_default());
        let subject = message.subject.to_string();
        let before = newest.entry((subject.clone(), turn)).or_default();
        assert!(
            *before <= attempt,
            "seed {seed}: attempt {attempt} of turn {turn} wrote after attempt {before}"
        );
        *before = attempt;
        for input in entry["body"]["user"]["inputs"].as_array().into_iter().flatten() {
            let is_new = inputs.insert((subject.clone(), input.to_string()));
            assert!(is_new, "seed {seed}: input {input} is twice in {subject}");
        }
    }
    newest.values().filter(|attempt| **attempt > 1).count()
}
