//! The processes, each behind a proxy of its own, and what can happen to them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use nix::sys::signal::Signal;
use proto::member::Role;
use talaria_tests::process::Place;
use talaria_tests::proxy::{Line, Proxy};
use talaria_tests::{Process, World};

const ROLES: [Role; 5] =
    [Role::Scheduler, Role::Scheduler, Role::Worker, Role::Worker, Role::Ingress];

/// A process, and the way to its broker.
struct Post {
    role: Role,
    place: Place,
    proxy: Proxy,
    process: Process,
}

pub(crate) struct Fleet {
    service: &'static str,
    posts: Vec<Post>,
    door: SocketAddr,
    dice: Dice,
}

impl Fleet {
    pub(crate) async fn start(world: &World, service: &'static str, seed: u64) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let door = listener.local_addr().unwrap();
        drop(listener);
        let mut posts = Vec::new();
        for (number, role) in ROLES.into_iter().enumerate() {
            let proxy = Proxy::start(world.nats.address()).await;
            let place = Place {
                listen: (role == Role::Ingress).then_some(door),
                nats: Some(proxy.address()),
                slot: (role == Role::Worker).then(|| format!("worker-{number}")),
                environment: Vec::new(),
            };
            let process = world.spawn_at(role, service, &place);
            posts.push(Post { role, place, proxy, process });
        }
        for post in &mut posts {
            post.process.ready().await;
        }
        Self { service, posts, door, dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1) }
    }

    /// Where messages go.
    pub(crate) const fn door(&self) -> SocketAddr {
        self.door
    }

    /// Lets something happen, and says what.
    pub(crate) async fn strike(&mut self, world: &mut World) -> String {
        tokio::time::sleep(Duration::from_millis(self.dice.below(400))).await;
        let at = usize::try_from(self.dice.below(5)).unwrap();
        // Some are shorter than a lease and some are longer.
        let long = Duration::from_millis(200 + self.dice.below(3000));
        let name = format!("{} {at}", self.posts[at].role);
        // One that could not reach its broker when it was started has ended; its supervisor starts it again.
        if self.posts[at].process.has_ended().is_some() {
            self.begin_again(world, at);
        }
        match self.dice.below(8) {
            0 | 1 => {
                self.posts[at].process.send(Signal::SIGKILL);
                self.posts[at].process.exit_code().await;
                self.begin_again(world, at);
                format!("killed {name}")
            }
            2 => {
                self.posts[at].process.send(Signal::SIGSTOP);
                tokio::time::sleep(long).await;
                self.posts[at].process.send(Signal::SIGCONT);
                format!("froze {name} for {long:?}")
            }
            3 => {
                self.posts[at].process.send(Signal::SIGTERM);
                self.posts[at].process.exit_code().await;
                self.begin_again(world, at);
                format!("stopped {name}")
            }
            4 => self.line(at, Line::Cut, long, format!("cut {name} off for {long:?}")).await,
            5 => {
                self.line(at, Line::Frozen, long, format!("froze the line of {name} for {long:?}"))
                    .await
            }
            6 => {
                let by = Duration::from_millis(5 + self.dice.below(100));
                self.line(at, Line::Slow(by), long, format!("slowed {name} by {by:?} for {long:?}"))
                    .await
            }
            _ => {
                world.nats.kill().await;
                tokio::time::sleep(long / 4).await;
                world.nats.restart().await;
                "killed the broker".to_owned()
            }
        }
    }

    async fn line(&self, at: usize, line: Line, long: Duration, what: String) -> String {
        self.posts[at].proxy.be(line);
        tokio::time::sleep(long).await;
        self.posts[at].proxy.be(Line::Fine);
        what
    }

    fn begin_again(&mut self, world: &World, at: usize) {
        let post = &mut self.posts[at];
        post.process = world.spawn_at(post.role, self.service, &post.place);
    }

    /// Whoever has ended because it could not start is started again, as a supervisor would, until all are ready.
    pub(crate) async fn heal(&mut self, world: &World) {
        for at in 0..self.posts.len() {
            self.posts[at].proxy.be(Line::Fine);
            let url = format!("http://{}/readyz", self.posts[at].process.address());
            let client = talaria_tests::http::client();
            let end = tokio::time::Instant::now() + talaria_tests::wait::DEADLINE;
            let is_ready = async |url: &str| {
                client.get(url).send().await.is_ok_and(|answer| answer.status().is_success())
            };
            let mut url = url;
            while !is_ready(&url).await {
                assert!(
                    tokio::time::Instant::now() < end,
                    "{} {at} is not ready",
                    self.posts[at].role
                );
                if self.posts[at].process.has_ended().is_some() {
                    self.begin_again(world, at);
                    url = format!("http://{}/readyz", self.posts[at].process.address());
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Stops all, the scheduler last.
    pub(crate) async fn stop(mut self) {
        self.posts.reverse();
        for post in &mut self.posts {
            post.process.terminate().await;
        }
    }
}

/// A generator of numbers that gives the same ones for the same seed (xorshift64*).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}
