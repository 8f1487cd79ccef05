//! `talaria doctor`: what holds, what is weaker than the promise, and how to mend it. It changes nothing but sends one message
//! of its own through the system.

mod broker;
mod canary;
mod finding;
mod provider;
mod services;
mod streams;

use clap::Args;
use node::bus::Bus;
use node::exit::Exit;
use node::process::CommonArgs;
use node::settings::{Flags, Settings};

pub use self::finding::{Finding, Grade};
pub(crate) use self::services::{answering, members};
use crate::console;

/// The command's flags.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all is as promised (or cannot be seen from here), 1 something does not work, 2 something is \
                        weaker than the promise, 69 the broker cannot be reached, 78 bad configuration."
)]
pub struct DoctorArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Monitoring address of a NATS server (its `http` port), to see how it stores; may be repeated
    #[arg(long, value_name = "URL")]
    monitor: Vec<String>,
    /// Make no call to the model provider
    #[arg(long)]
    no_model: bool,
    /// Send no message through the system
    #[arg(long)]
    no_canary: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Looks at everything, and prints what it finds.
///
/// # Errors
/// When the broker cannot be reached (exit 69), something does not work (1), or something is weaker than the promise (2).
pub async fn run(args: &DoctorArgs) -> anyhow::Result<()> {
    let settings = args.common.load(Flags::default())?.settings;
    let bus = Bus::connect(&settings.nats, "doctor")
        .await
        .map_err(|error| anyhow::Error::new(error).context(Exit::Unavailable))?;
    let findings = examine(args, &settings, &bus).await;
    let worst = findings.iter().map(|finding| finding.grade).max().unwrap_or(Grade::Fine);
    if args.json {
        let object = serde_json::json!({ "worst": worst, "findings": findings });
        console::say(&format!("{object:#}"))?;
    } else {
        let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
        console::say(&lines.join("\n"))?;
    }
    match worst {
        Grade::Fine | Grade::Unknown => Ok(()),
        Grade::Weaker => Err(Exit::Weaker.into()),
        Grade::Broken => Err(anyhow::anyhow!("something does not work; see above")),
    }
}

async fn examine(args: &DoctorArgs, settings: &Settings, bus: &Bus) -> Vec<Finding> {
    let mut findings = vec![broker::version(bus)];
    findings.extend(broker::storage(settings, &args.monitor).await);
    findings.push(broker::limits(settings, bus).await);
    findings.push(broker::clock(bus).await);
    let streams = streams::look(settings, bus).await;
    findings.extend(streams.findings);
    let members = members(bus).await;
    findings.extend(services::alive(&members));
    if let Some(bus) = streams.partitions.map(|count| bus.clone().with_partitions(count)) {
        findings.push(services::owners(&bus).await);
        findings.extend(services::consumers(&bus, settings, &members).await);
        if !args.no_canary {
            console::note("a message of the doctor's own goes through the system …");
            findings.push(canary::fly(&bus).await);
        }
    }
    if !args.no_model {
        findings.push(provider::call(settings).await);
    }
    findings
}
