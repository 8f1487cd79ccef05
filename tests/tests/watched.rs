//! The whole system under a real Prometheus while things go wrong: every query of every dashboard returns data, and the alerts that
//! should fire do. Run by `deploy/prometheus/e2e.sh`; skipped where no Prometheus is named.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::net::SocketAddr;
use std::path::Path;

use proto::id::{Partition, Sid};
use proto::member::Role;
use serde_json::Value;
use talaria_tests::callback::Mood;
use talaria_tests::model::{Progress, Step};
use talaria_tests::prometheus::{Prometheus, TOOLS};
use talaria_tests::webhook::WebhookClient;
use talaria_tests::{Process, Setup, World};

const SERVICE: &str = env!("CARGO_BIN_EXE_service");

fn setup() -> Setup {
    Setup::default()
        .set("agent.timeout", "4s")
        .set("agent.timeout_warning", "2s")
        .set("agent.notify_interval", "1s")
        .set("scheduler.attempts", 2)
        .set("ingress.delivery_limit", "2s")
}

/// What runs, and what watches it.
struct Watched {
    world: World,
    prometheus: Prometheus,
    schedulers: Vec<Process>,
    workers: Vec<Process>,
    ingress: Process,
}

impl Watched {
    async fn start(prometheus: Prometheus) -> Self {
        let world = World::new(setup()).await;
        let schedulers = vec![
            world.spawn(Role::Scheduler, SERVICE).await,
            world.spawn(Role::Scheduler, SERVICE).await,
        ];
        let workers = vec![world.spawn(Role::Worker, SERVICE).await];
        let ingress = world.spawn(Role::Ingress, SERVICE).await;
        let watched = Self { world, prometheus, schedulers, workers, ingress };
        watched.scrape();
        watched.prometheus.sees("count(up == 1) == 4").await;
        watched
    }

    fn scrape(&self) {
        let services = self.schedulers.iter().chain(&self.workers).chain([&self.ingress]);
        self.prometheus.scrape(&services.map(Process::address).collect::<Vec<_>>());
    }

    fn door(&self) -> SocketAddr {
        self.ingress.address()
    }

    async fn hire(&mut self) {
        let worker = self.world.spawn(Role::Worker, SERVICE).await;
        self.workers.push(worker);
        self.scrape();
    }

    /// Ordinary use: answers, tools, an interrupt, a stop, a duplicate.
    async fn use_it(&self) {
        let model = &self.world.model;
        model.on("tool", [Step::terminal("echo hi"), Step::Say("done".into())]);
        model.on("long", [Step::Hold("working".into())]);
        model.on("longer", [Step::Hold("working".into())]);
        let chat = self.world.chat(self.door(), "busy");
        for text in ["hello", "tool"] {
            let id = chat.say(text).await;
            chat.reply_to(&id).await;
        }
        chat.say("long").await;
        model.call("long", 1, Progress::Open).await;
        let id = chat.say("instead").await;
        chat.reply_to(&id).await;
        chat.say("longer").await;
        model.call("longer", 1, Progress::Open).await;
        chat.say("/stop").await;
        model.call("longer", 1, Progress::Closed).await;
        let client = WebhookClient::new(self.door());
        client.message("twice", "c2", "hello").await;
        client.message("twice", "c2", "hello").await;
        self.prometheus
            .sees("talaria_scheduler_interrupt_seconds_count{step=\"stopped\"} >= 1")
            .await;
        self.prometheus.sees("sum(talaria_worker_interrupt_seen_seconds_count) >= 1").await;
    }

    async fn a_record_cannot_be_read(&self) {
        let subject = proto::subject::inbox(Partition::new(0), Sid::new(1));
        let stream = self.world.nats.jetstream().await;
        stream.publish(subject, "no record".into()).await.unwrap().await.unwrap();
        self.prometheus.fires("TalariaMessageLost").await;
    }

    async fn the_provider_fails(&self) {
        for number in 0..8 {
            let text = format!("refuse {number}");
            self.world.model.on(&text, [Step::Fail(400)]);
            let chat = self.world.chat(self.door(), &format!("refused{number}"));
            let id = chat.say(&text).await;
            chat.reply_to(&id).await;
        }
        self.prometheus.fires("TalariaModelErrors").await;
    }

    async fn turns_stand_still(&self) {
        for number in 0..6 {
            let text = format!("hang {number}");
            self.world.model.on(&text, [Step::Hold("one word".into())]);
            self.world.chat(self.door(), &format!("hung{number}")).say(&text).await;
        }
        self.prometheus
            .sees("sum(talaria_scheduler_turns_running{state=\"streaming\"}) >= 6")
            .await;
        self.prometheus
            .sees("sum(talaria_scheduler_slow_turns_total{stage=\"warned\"}) >= 6")
            .await;
        self.prometheus.fires("TalariaTurnsTimedOut").await;
    }

    async fn workers_die(&mut self) {
        self.world.model.on("deadly", [Step::Hold("oh".into())]);
        let chat = self.world.chat(self.door(), "deadly");
        let id = chat.say("deadly").await;
        // Killed at once, before the turn would time out.
        self.world.model.call("deadly", 1, Progress::Open).await;
        self.workers[0].kill9().await;
        self.hire().await;
        self.world.model.call("deadly", 2, Progress::Open).await;
        self.workers[1].kill9().await;
        self.prometheus.fires("TalariaEvictions").await;
        self.prometheus.fires("TalariaTurnsParked").await;
        self.prometheus.fires("TalariaTargetDown").await;
        assert!(self.world.chat(self.door(), "deadly").answered(&id).await.taken);
    }

    async fn turns_wait_for_a_worker(&mut self) {
        let chats: Vec<_> = (0..12)
            .map(|number| self.world.chat(self.ingress.address(), &format!("waits{number}")))
            .collect();
        for chat in &chats {
            chat.say("hello").await;
        }
        self.prometheus
            .sees("sum(min_over_time(talaria_scheduler_sessions{phase=\"starting\"}[2s])) >= 12")
            .await;
        drop(chats);
        self.hire().await;
        self.prometheus.fires("TalariaDispatchSlow").await;
    }

    async fn the_platform_is_broken(&self) {
        self.world.callbacks.be(Mood::Broken);
        for number in 0..4 {
            self.world.chat(self.door(), &format!("dead{number}")).say("hello").await;
        }
        self.prometheus.fires("TalariaDeliveriesDead").await;
        self.world.callbacks.be(Mood::Fine);
    }

    /// All queries of all dashboards.
    async fn the_dashboards_show_something(&self) {
        let mut empty = Vec::new();
        let queries = dashboard_queries();
        assert!(queries.len() > 80, "only {} queries", queries.len());
        for (title, expression) in &queries {
            let expression = expression.replace("$__rate_interval", "30s");
            match self.prometheus.query(&expression).await {
                Ok(result) if result.is_empty() => empty.push(format!("{title}: {expression}")),
                Ok(_) => {}
                Err(error) => empty.push(format!("{title}: {expression}: {error}")),
            }
        }
        assert!(empty.is_empty(), "nothing to show:\n{}", empty.join("\n"));
    }

    async fn schedulers_die(&mut self) {
        self.world.model.on("orphan", [Step::Hold("oh".into())]);
        self.world.chat(self.door(), "orphan").say("orphan").await;
        self.world.model.call("orphan", 1, Progress::Open).await;
        for scheduler in &mut self.schedulers {
            scheduler.kill9().await;
        }
        self.prometheus.fires("TalariaPartitionUnowned").await;
        self.prometheus.fires("TalariaHeartbeatsUnanswered").await;
    }

    async fn the_broker_dies(&mut self) {
        self.world.nats.kill().await;
        self.prometheus.fires("TalariaBrokerDisconnected").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
async fn what_goes_wrong_is_seen() {
    let Some(prometheus) = Prometheus::start().await else {
        eprintln!("skipped: {TOOLS} names no Prometheus; deploy/prometheus/e2e.sh does");
        return;
    };
    let mut watched = Watched::start(prometheus).await;
    watched.use_it().await;
    watched.a_record_cannot_be_read().await;
    watched.the_provider_fails().await;
    watched.turns_stand_still().await;
    watched.workers_die().await;
    watched.turns_wait_for_a_worker().await;
    watched.the_platform_is_broken().await;
    watched.the_dashboards_show_something().await;
    watched.schedulers_die().await;
    watched.the_broker_dies().await;
}

fn dashboard_queries() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/grafana/dashboards");
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let board: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for panel in board["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let title = format!("{}: {}", board["title"], panel["title"]);
                found.push((title, target["expr"].as_str().unwrap().to_owned()));
            }
        }
    }
    found
}
