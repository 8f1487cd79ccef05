//! `talaria status`: what runs, who decides, and what waits, read from the broker.

use std::fmt::Write as _;

use anyhow::Context;
use clap::Args;
use futures_util::TryStreamExt;
use node::bus::Bus;
use node::exit::Exit;
use node::members::{self, Members};
use node::process::CommonArgs;
use node::settings::Flags;
use node::topology;
use proto::id::Partition;
use proto::member::Role;
use proto::topology::{OUTBOX, TURNS};
use serde::Serialize;

use crate::{console, doctor};

/// The command's flags.
#[derive(Args, Debug)]
pub struct StatusArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Status {
    members: Vec<Line>,
    partitions: u16,
    /// Those without an owner that answers.
    unowned: Vec<Partition>,
    turns_running: u32,
    queues: Vec<Queue>,
}

/// One process.
#[derive(Debug, Serialize)]
struct Line {
    role: Role,
    id: String,
    slot: Option<String>,
    turns: u32,
    /// How many partitions a scheduler should own, by who is alive.
    partitions: Option<usize>,
}

/// One queue: a pool's turn orders, or an account's deliveries.
#[derive(Debug, Serialize)]
struct Queue {
    stream: &'static str,
    name: String,
    pending: u64,
    in_hand: usize,
    readers: usize,
}

/// Prints it.
///
/// # Errors
/// When the broker cannot be reached (exit 69), or its streams are not those of the settings (78).
pub async fn run(args: &StatusArgs) -> anyhow::Result<()> {
    let settings = args.common.load(Flags::default())?.settings;
    let bus = Bus::connect(&settings.nats, "status")
        .await
        .map_err(|error| anyhow::Error::new(error).context(Exit::Unavailable))?;
    topology::inspect(&bus, &settings.streams).await.context(Exit::Configuration)?;
    let bus = bus.with_partitions(settings.streams.partitions);
    let status = look(&bus).await?;
    if args.json {
        return Ok(console::say(&serde_json::to_string_pretty(&status)?)?);
    }
    Ok(console::say(&status.text())?)
}

async fn look(bus: &Bus) -> anyhow::Result<Status> {
    let (members, answering) = tokio::join!(doctor::members(bus), doctor::answering(bus));
    let unowned = Partition::all(bus.partitions()).filter(|one| !answering.contains(one)).collect();
    let mut queues = Vec::new();
    for stream in [TURNS, OUTBOX] {
        let handle = bus.stream().get_stream(stream).await.context("a queue cannot be read")?;
        let consumers: Vec<_> = handle.consumers().try_collect().await.context("its readers")?;
        queues.extend(consumers.into_iter().map(|consumer| Queue {
            stream,
            name: consumer.name,
            pending: consumer.num_pending,
            in_hand: consumer.num_ack_pending,
            readers: consumer.num_waiting,
        }));
    }
    let turns_running = members.values().map(|member| member.turns).sum();
    let partitions = bus.partitions();
    Ok(Status { members: lines(&members, partitions), partitions, unowned, turns_running, queues })
}

fn lines(members: &Members, partitions: u16) -> Vec<Line> {
    let schedulers: Vec<_> =
        members::of_role(members, Role::Scheduler).map(|member| member.id).collect();
    let owned = |id| {
        let ours = |partition: &Partition| scheduler::owner(*partition, &schedulers) == Some(id);
        Partition::all(partitions).filter(ours).count()
    };
    let mut lines: Vec<_> = members
        .values()
        .map(|member| Line {
            role: member.role,
            id: member.id.to_string(),
            slot: member.slot.clone(),
            turns: member.turns,
            partitions: (member.role == Role::Scheduler).then(|| owned(member.id)),
        })
        .collect();
    lines.sort_by_key(|line| line.role);
    lines
}

impl Status {
    fn text(&self) -> String {
        let mut text = String::new();
        if self.members.is_empty() {
            text += "nobody is alive\n";
        }
        for Line { role, id, slot, turns, partitions } in &self.members {
            let _ = write!(text, "{:<10} {id}", role.to_string());
            if let Some(slot) = slot {
                let _ = write!(text, " in {slot}");
            }
            match (partitions, role) {
                (Some(partitions), _) => {
                    let _ = writeln!(text, "  {partitions} partitions");
                }
                (None, Role::Worker) => {
                    let _ = writeln!(text, "  {turns} turns");
                }
                (None, Role::Ingress | Role::Scheduler) => text.push('\n'),
            }
        }
        let owned = usize::from(self.partitions) - self.unowned.len();
        let _ = writeln!(
            text,
            "\n{owned} of {} partitions have an owner that answers",
            self.partitions
        );
        let _ = writeln!(text, "{} turns run", self.turns_running);
        for Queue { stream, name, pending, in_hand, readers } in &self.queues {
            let reader = if *readers == 0 && *in_hand == 0 { ", no reader" } else { "" };
            let _ = writeln!(text, "{stream} {name}: {pending} wait, {in_hand} in hand{reader}");
        }
        text
    }
}
