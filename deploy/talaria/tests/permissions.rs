//! The broker's permissions in the chart are those of the code, and cover every stream and bucket.

use std::path::Path;

use proto::member::Role;
use proto::permission::{self, Permissions, User};
use proto::topology;
use talaria::permissions;

/// The one copy: the chart's, which Compose mounts too.
const FILE: &str = "../kubernetes/chart/files/nats-permissions.conf";

#[test]
fn the_charts_permissions_are_those_of_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let text = permissions::text();
    if std::env::var_os("GOLDEN").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == text,
        "{} is not what the code needs; write it with: GOLDEN=write cargo test -p talaria --test permissions",
        file.display()
    );
}

#[test]
fn each_stream_and_bucket_is_written_by_some_service() {
    let keep = node::settings::Streams::default().retentions();
    let buckets = topology::buckets(keep).into_iter().map(|spec| {
        let key = match spec.name {
            topology::LEASES => "a.b",
            topology::JOBS => "a.b.c",
            topology::MEMBERS => "worker.a",
            topology::FLEET => proto::subject::rollout_key(),
            topology::IDENTITIES => "request.a.b",
            _ => "a",
        };
        (spec.name, proto::subject::bucket_subject(spec.name, key))
    });
    let streams = topology::streams(keep)
        .into_iter()
        .map(|spec| (spec.name, spec.subjects.replace('*', "a")));
    for (name, subject) in streams.chain(buckets) {
        let may = |user: &User| {
            let Permissions { publish, .. } = permission::of(*user);
            publish.iter().any(|allowed| allows(allowed, &subject))
        };
        let writers: Vec<_> =
            User::ALL.iter().filter(|user| **user != User::Operator && may(user)).collect();
        assert!(
            !writers.is_empty(),
            "no service may write {name}: add it to proto/src/permission.rs"
        );
    }
}

#[test]
fn what_scales_a_pool_watches_its_consumer() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kubernetes/prod/manifests.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let consumer = proto::subject::pool_consumer("default");
    assert!(text.contains(&format!("stream: {}\n        consumer: {consumer}\n", topology::TURNS)));
}

#[test]
fn only_the_scheduler_writes_leases_orders_and_receipts() {
    for subject in ["$KV.leases.1.a", "$KV.leases.checkpoint.1", "turn.default.a", "event.a"] {
        for user in User::ALL {
            let publish = permission::of(user).publish;
            let may = publish.iter().any(|allowed| allows(allowed, subject));
            assert_eq!(may, user == User::Service(Role::Scheduler), "{user} and {subject}");
        }
    }
}

#[test]
fn only_an_operator_approves_people_and_no_worker_speaks_to_them() {
    let may = |user, subject: &str| {
        permission::of(user).publish.iter().any(|allowed| allows(allowed, subject))
    };
    for user in User::ALL {
        let approves =
            may(user, &proto::subject::bucket_subject(topology::IDENTITIES, "person.web.a"));
        assert_eq!(approves, user == User::Operator, "{user}");
    }
    assert!(!may(User::Service(Role::Worker), "outbox.web.a.b"));
}

#[test]
fn no_service_may_do_anything_general() {
    for user in User::ALL.into_iter().filter(|user| *user != User::Operator) {
        let Permissions { publish, subscribe, .. } = permission::of(user);
        for subject in
            ["$JS.API.STREAM.CREATE.X", "$JS.API.STREAM.DELETE.INBOX", "$SYS.x", "_INBOX.x", "x"]
        {
            assert!(!publish.iter().any(|allowed| allows(allowed, subject)), "{user}: {subject}");
        }
        for subject in
            ["inbox.1.a", "outbox.a.b.c", "_INBOX.x", "_INBOX_talaria-init.x", "$KV.leases.1.a"]
        {
            assert!(!subscribe.iter().any(|allowed| allows(allowed, subject)), "{user}: {subject}");
        }
    }
}

/// Whether a subject is within what is allowed, as the broker would say.
fn allows(allowed: &str, subject: &str) -> bool {
    let mut subject = subject.split('.');
    for token in allowed.split('.') {
        match (token, subject.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (token, Some(found)) if token == found => {}
            _ => return false,
        }
    }
    subject.next().is_none()
}
