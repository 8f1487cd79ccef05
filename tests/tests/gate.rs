//! The gate of a platform that has no adapter here: what adapters may rely on, with a broker and no agent.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use ingress::gate::{
    Arrival, Attention, Deed, Gate, Gates, Outcome, Place, Refused, Sender, Unheeded,
};
use ingress::metrics::Metrics;
use ingress::publish::Publisher;
use node::bucket::{self, Found};
use node::{Node, channels, identities};
use proto::codec;
use proto::event::MessageEvent;
use proto::inbox::Inbox;
use proto::outbound::Outbound;
use proto::poison::Poison;
use proto::session::ChatKind;
use proto::topology::{IDENTITIES, INBOX, OUTBOX, POISON};
use serde_json::json;
use talaria_tests::wait::eventually;
use talaria_tests::{Setup, World};
use tokio_util::sync::CancellationToken;

const PLATFORM: &str = "telegram";

/// A replica of ingress, as far as its gate is concerned.
async fn gate(world: &World) -> (Node, Gate) {
    let stop = CancellationToken::new();
    let node = Node::connect(world.settings(), "test-gate", stop).await.unwrap();
    let metrics = Metrics::new(&node.metrics);
    let publisher = Publisher::new(node.bus.clone(), metrics.clone());
    let gate = Gates::new(node.clone(), publisher, metrics).open(PLATFORM, "main");
    (node, gate)
}

async fn world() -> World {
    World::new(
        Setup::default()
            .set("access.platform.telegram.allowed_users", json!(["7", 8]))
            .set("access.platform.telegram.admins", json!(["8"]))
            .set("access.platform.telegram.user_commands", "stop, sethome"),
    )
    .await
}

fn group(id: &str, chat: &str, text: &str) -> Arrival {
    Arrival {
        id: id.into(),
        deed: Deed::Wrote,
        place: Place {
            chat: chat.into(),
            kind: ChatKind::Group,
            name: Some("The Room".into()),
            ..Place::default()
        },
        sender: Sender { id: "7".into(), ..Sender::default() },
        attention: Attention { mentioned: true, replied: false },
        text: text.into(),
        media: Vec::new(),
        reply_to: None,
        history: Vec::new(),
    }
}

async fn event(node: &Node, outcome: &Outcome) -> MessageEvent {
    let (Outcome::Stored(seq) | Outcome::Duplicate(seq)) = outcome else { panic!("{outcome:?}") };
    let stored = node.bus.message(INBOX, seq.get()).await.unwrap().unwrap();
    match codec::decode(&stored.payload).unwrap() {
        Inbox::Message(event) => *event,
        other @ (Inbox::Refused { .. }
        | Inbox::Edit(_)
        | Inbox::Withdrawal { .. }
        | Inbox::Report(_)
        | Inbox::Hangup { .. }) => panic!("{other:?}"),
    }
}

/// What waits to be delivered, in order.
async fn outbox(node: &Node) -> Vec<Outbound> {
    let mut found = Vec::new();
    for sequence in 1.. {
        let Some(stored) = node.bus.message(OUTBOX, sequence).await.unwrap() else { break };
        found.push(codec::decode(&stored.payload).unwrap());
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn one_message_is_taken_once_by_whichever_replica_and_event() {
    let world = world().await;
    let ((node, one), (_, two)) = (gate(&world).await, gate(&world).await);
    // The same message at the same instant at two replicas.
    let (a, b) =
        tokio::join!(one.admit(group("1", "-5", "hello")), two.admit(group("1", "-5", "hello")));
    let outcomes = [a.unwrap(), b.unwrap()];
    let stored = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Stored(_))).count();
    assert_eq!(stored, 1, "{outcomes:?}");

    // A mention and the plain message beside it are one: whichever comes first.
    let plain = Arrival { attention: Attention::default(), ..group("2", "-5", "@us hello") };
    assert_eq!(one.admit(plain.clone()).await.unwrap(), Outcome::Unheeded(Unheeded::NotAddressed));
    assert!(matches!(one.admit(group("2", "-5", "@us hello")).await.unwrap(), Outcome::Stored(_)));
    assert!(matches!(
        two.admit(group("2", "-5", "@us hello")).await.unwrap(),
        Outcome::Duplicate(_)
    ));
    assert_eq!(two.admit(plain).await.unwrap(), Outcome::Unheeded(Unheeded::NotAddressed));

    // After a restart, too. The same id in another chat is another message.
    let (_, later) = gate(&world).await;
    assert!(matches!(later.admit(group("1", "-5", "hello")).await.unwrap(), Outcome::Duplicate(_)));
    assert!(matches!(later.admit(group("1", "-6", "hello")).await.unwrap(), Outcome::Stored(_)));
    assert_eq!(world.nats.count(INBOX).await, Some(3));
    assert!(outbox(&node).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_moves_keeps_its_conversations_however_often() {
    let world = world().await;
    let ((node, gate), (_, other)) = (gate(&world).await, gate(&world).await);
    let before = event(&node, &gate.admit(group("1", "-5", "hello")).await.unwrap()).await;
    gate.moved("-5", "-1005").await.unwrap();
    gate.moved("-5", "-1005").await.unwrap();
    let after = event(&node, &other.admit(group("1", "-1005", "hello")).await.unwrap()).await;
    assert_eq!(after.session, before.session);
    assert_eq!(after.address.chat, "-1005", "answers go where the group is now");
    other.moved("-1005", "-2005").await.unwrap();
    let again = event(&node, &gate.admit(group("1", "-2005", "hello")).await.unwrap()).await;
    assert_eq!(again.session, before.session);
    assert_eq!(before.session.to_string(), "telegram/main:group:-5:@:7");
}

#[tokio::test(flavor = "multi_thread")]
async fn chats_are_found_by_name_and_one_can_be_home() {
    let world = world().await;
    let (node, gate) = gate(&world).await;
    channels::find(&node.bus, "telegram").await.unwrap_err();
    channels::find(&node.bus, "telegram:the room").await.unwrap_err();
    gate.admit(group("1", "-5", "hello")).await.unwrap();
    let address = channels::find(&node.bus, "telegram:the room").await.unwrap();
    assert_eq!((address.chat.as_str(), address.account.as_str()), ("-5", "main"));
    assert_eq!(channels::find(&node.bus, "telegram:-5").await.unwrap(), address);

    let renamed = |id: &str| {
        let mut arrival = group(id, "-5", "hello");
        arrival.place.name = Some("Another Room".into());
        arrival
    };
    gate.admit(renamed("2")).await.unwrap();
    channels::find(&node.bus, "telegram:the room").await.unwrap_err();
    channels::find(&node.bus, "telegram:another").await.unwrap();

    assert_eq!(gate.admit(group("3", "-5", "/sethome")).await.unwrap(), Outcome::Done);
    assert_eq!(gate.admit(group("3", "-5", "/sethome")).await.unwrap(), Outcome::Done);
    assert_eq!(channels::find(&node.bus, "telegram").await.unwrap(), address);
    let said = outbox(&node).await;
    assert_eq!(said.len(), 1, "said once: {said:#?}");
    assert!(said[0].text.contains("home channel of telegram"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_use_a_command_is_told_and_strangers_in_groups_are_not() {
    let world = world().await;
    let (node, gate) = gate(&world).await;
    assert_eq!(
        gate.admit(group("1", "-5", "/model x")).await.unwrap(),
        Outcome::Refused(Refused::Command)
    );
    let by = |sender: &str, id: &str, text: &str| {
        let sender = Sender { id: sender.into(), ..Sender::default() };
        Arrival { sender, ..group(id, "-5", text) }
    };
    assert!(matches!(gate.admit(by("8", "2", "/model x")).await.unwrap(), Outcome::Stored(_)));
    assert_eq!(
        gate.admit(by("9", "3", "hello")).await.unwrap(),
        Outcome::Refused(Refused::Unknown)
    );
    let nameless = gate.admit(by("", "4", "hello")).await.unwrap();
    assert_eq!(nameless, Outcome::Refused(Refused::Nameless));
    let said = outbox(&node).await;
    assert_eq!(said.len(), 1, "{said:#?}");
    assert!(said[0].text.contains("You may use /stop, "), "{}", said[0].text);
    assert_eq!(world.nats.count(INBOX).await, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_forgotten_by_the_broker_and_can_be_given_anew() {
    let world = world().await;
    let (node, _) = gate(&world).await;
    let (bus, key) = (&node.bus, "request.telegram.x");
    let second = Some(std::time::Duration::from_secs(1));
    bucket::put(bus, IDENTITIES, key, &1, 0, second).await.unwrap();
    // Of two who write at once, one succeeds.
    let error = bucket::put(bus, IDENTITIES, key, &2, 0, second).await.unwrap_err();
    assert!(matches!(error, bucket::PutError::Overtaken), "{error}");
    let revision = eventually("the record expires", || async {
        let (found, revision) = bucket::read::<u8>(bus, IDENTITIES, key).await.unwrap();
        (found == Found::Nothing).then_some(revision)
    })
    .await;
    let revision = bucket::put(bus, IDENTITIES, key, &3, revision, None).await.unwrap();
    bucket::take(bus, IDENTITIES, key, revision).await.unwrap();
    bucket::take(bus, IDENTITIES, key, revision).await.unwrap_err();
    assert!(bucket::all::<u8>(bus, IDENTITIES, "request.>").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_cannot_be_read_lets_nobody_in_and_blocks_nobody_else() {
    let world = world().await;
    let (node, gate) = gate(&world).await;
    let key = proto::subject::person_key(PLATFORM, "7");
    let subject = proto::subject::bucket_subject(IDENTITIES, &key);
    let write = node::bus::Write::default();
    node.bus.write(subject, "of a later version".into(), write).await.unwrap();
    let refused = gate.admit(group("1", "-5", "hello")).await.unwrap();
    assert_eq!(refused, Outcome::Refused(Refused::Revoked));
    let other = Sender { id: "8".into(), ..Sender::default() };
    let other = gate.admit(Arrival { sender: other, ..group("2", "-5", "hello") }).await.unwrap();
    assert!(matches!(other, Outcome::Stored(_)), "{other:?}");
    identities::revoke(&node.bus, PLATFORM, "9").await.unwrap();
    let people = identities::people(&node.bus, Some(PLATFORM)).await.unwrap();
    assert_eq!(people.len(), 1, "what cannot be read is left out: {people:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_set_aside_once_and_what_comes_after_it_passes() {
    let world = world().await;
    let (node, gate) = gate(&world).await;
    let what = b"{\"update_id\": \xff nonsense";
    gate.set_aside(what, "it is not JSON").await.unwrap();
    gate.set_aside(what, "it is not JSON").await.unwrap();
    assert!(matches!(gate.admit(group("1", "-5", "hello")).await.unwrap(), Outcome::Stored(_)));
    let kept = bucket::all::<Poison>(&node.bus, POISON, ">").await.unwrap();
    assert_eq!(kept.len(), 1);
    let poison = &kept[0].record;
    assert_eq!((poison.account.as_str(), poison.size), ("main", what.len()));
    assert!(poison.what.contains("nonsense") && poison.why == "it is not JSON");
    let counted = node.metrics.gather();
    let poison = counted.iter().find(|family| family.name() == "talaria_ingress_poison_total");
    let count = poison.unwrap().get_metric()[0].get_counter().get_value();
    assert!((count - 1.0).abs() < f64::EPSILON, "{count}");
}
