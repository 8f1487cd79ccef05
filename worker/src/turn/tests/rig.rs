//! Turns without a scheduler: a real broker, a worker's shared parts, and the controls in the test's hands.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};

use node::Node;
use node::settings::Settings;
use proto::codec;
use proto::event::MessageEvent;
use proto::id::{Attempt, Seq, TurnId};
use proto::inbox::Inbox;
use proto::session::{ChatKind, SessionKey, SessionParts};
use proto::subject;
use proto::transcript::{Body, Entry, Profile};
use proto::turn::{Control, News, StopReason, TurnKind, TurnOrder, TurnRef};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::activity::{Gauge, Tracker};
use crate::fence::tests::lasting;
use crate::models::Model;
use crate::shared::Shared;
use crate::tools::Tool;
use crate::transcript::Log;
use crate::turn::{Budget, Counts, Turn, Wishes, prompt};

pub(super) struct Rig {
    pub(super) shared: Arc<Shared>,
    _server: Child,
    _folder: tempfile::TempDir,
}

/// Where a nats-server may be: named by the environment, on the path, or where the workspace keeps its own.
fn binary() -> Option<PathBuf> {
    let named = std::env::var_os("TALARIA_NATS_SERVER").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.talaria/tools");
    let kept = std::fs::read_dir(tools).into_iter().flatten().flatten().map(|entry| entry.path());
    let kept = kept.flat_map(|path| [path.join("nats-server"), path]);
    named.into_iter().chain(on_path).chain(kept).find(|path| {
        path.is_file()
            && path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("nats-server"))
    })
}

impl Rig {
    /// None, with a word to who runs the tests, where there is no nats-server.
    pub(super) async fn start(
        model: Arc<dyn Model>,
        (tools, change): (Vec<Arc<dyn Tool>>, impl FnOnce(&mut Settings)),
    ) -> Option<Self> {
        let Some(binary) = binary() else {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"skipped: no nats-server on the path\n",
            );
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let server = Command::new(binary)
            .args(["-a", "127.0.0.1", "-p", "-1", "-js", "-sd"])
            .arg(folder.path())
            .arg("--ports_file_dir")
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut settings = Settings::default();
        settings.nats.url = url(folder.path(), server.id().unwrap()).await;
        settings.worker.workspace = folder.path().join("workspace");
        change(&mut settings);
        let node = Node::connect(settings, "test", CancellationToken::new()).await.unwrap();
        let mut shared = Shared::new(node, model).unwrap();
        shared.tools.add(tools);
        Some(Self { shared: Arc::new(shared), _server: server, _folder: folder })
    }

    /// A person writes in a chat.
    pub(super) async fn say(&self, chat: &str, text: &str) -> Asked<'_> {
        let mut event = prompt::tests::event(ChatKind::Dm, text);
        let parts = SessionParts {
            platform: "test",
            kind: ChatKind::Dm,
            chat,
            thread: None,
            participant: None,
        };
        event.session = SessionKey::new(parts);
        let seq = self.publish(&event).await;
        Asked { rig: self, event, seq }
    }

    pub(super) async fn publish(&self, event: &MessageEvent) -> Seq {
        let (bus, sid) = (&self.shared.node.bus, event.session.sid());
        let subject = subject::inbox(bus.partition_of(sid), sid);
        let payload = codec::encode(&Inbox::Message(Box::new(event.clone())));
        Seq::new(
            bus.write(subject, payload.into(), node::bus::Write::default()).await.unwrap().sequence,
        )
    }
}

/// A message that waits for its turn.
pub(super) struct Asked<'a> {
    rig: &'a Rig,
    pub(super) event: MessageEvent,
    pub(super) seq: Seq,
}

impl Asked<'_> {
    /// A turn that answers it.
    pub(super) fn turn(&self, attempt: u64) -> (Turn, Hands) {
        let shared = Arc::clone(&self.rig.shared);
        let of = TurnRef {
            sid: self.event.session.sid(),
            turn: TurnId::from(self.seq),
            attempt: Attempt::new(attempt),
        };
        let order = serde_json::json!({
            "of": of,
            "session": self.event.session,
            "kind": TurnKind::Chat,
            "inputs": [self.seq],
            "address": self.event.address,
        });
        let order: TurnOrder = serde_json::from_value(order).unwrap();
        let max = shared.node.settings.agent.max_iterations;
        let (tracker, gauge) = Tracker::new(max, Arc::default());
        let wishes = watch::Sender::new(Wishes::default());
        let (cut, fence) = (CancellationToken::new(), lasting());
        let hands =
            Hands { of, wishes: wishes.clone(), cut: cut.clone(), fence: fence.clone(), gauge };
        let wishes = wishes.subscribe();
        let (budget, counts) = (Budget::new(max), Counts::default());
        let speaker = OnceLock::new();
        (Turn { shared, order, fence, wishes, cut, tracker, budget, counts, speaker }, hands)
    }

    /// What the conversation holds.
    pub(super) async fn transcript(&self) -> Vec<Body> {
        self.log().await.0.entries().iter().map(|entry| entry.body.clone()).collect()
    }

    /// All entries, as they are stored.
    pub(super) async fn stored(&self) -> Vec<Body> {
        self.log().await.1.iter().map(|entry| entry.body.clone()).collect()
    }

    async fn log(&self) -> (Log, Vec<Arc<Entry>>) {
        let (bus, sid) = (&self.rig.shared.node.bus, self.event.session.sid());
        let key = subject::bucket_subject(proto::topology::SESSIONS, &sid.to_string());
        let profile = bus.last("KV_sessions", &key).await.unwrap().unwrap();
        let profile: Profile = codec::decode(&profile.payload).unwrap();
        let of = TurnRef { sid, turn: TurnId::from(self.seq), attempt: Attempt::FIRST };
        let who = (of, self.rig.shared.node.id);
        let mut log = Log::known(bus, &lasting(), who, profile.conversation, (0, Vec::new()));
        let stored = log.catch_up().await.unwrap();
        (log, stored)
    }

    /// The last thing that was reported.
    pub(super) async fn news(&self) -> News {
        let (bus, sid) = (&self.rig.shared.node.bus, self.event.session.sid());
        let subject = subject::inbox(bus.partition_of(sid), sid);
        let stored = bus.last(proto::topology::INBOX, &subject).await.unwrap().unwrap();
        let Inbox::Report(report) = codec::decode(&stored.payload).unwrap() else {
            panic!("a report")
        };
        report.news
    }
}

/// What a test can do to a running turn.
#[derive(Clone)]
pub(super) struct Hands {
    pub(super) of: TurnRef,
    pub(super) wishes: watch::Sender<Wishes>,
    pub(super) cut: CancellationToken,
    pub(super) fence: crate::fence::Fence,
    pub(super) gauge: Gauge,
}

impl Hands {
    /// As the runner does it.
    pub(super) fn control(&self, control: &Control) {
        self.wishes.send_if_modified(|wishes| wishes.apply(control));
        if matches!(control, Control::Interrupt { .. }) {
            self.cut.cancel();
        }
    }

    pub(super) fn interrupt(&self) {
        self.control(&Control::Interrupt { of: self.of, reason: StopReason::Stop });
    }
}

async fn url(folder: &Path, pid: u32) -> String {
    let ending = format!("_{pid}.ports");
    let is_file = |path: &PathBuf| path.to_string_lossy().ends_with(&ending);
    loop {
        let mut files = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        let ports = files
            .find(is_file)
            .and_then(|file| std::fs::read(file).ok())
            .and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
        if let Some(url) = ports.as_ref().and_then(|ports| ports["nats"][0].as_str()) {
            return url.to_owned();
        }
        tokio::task::yield_now().await;
    }
}
