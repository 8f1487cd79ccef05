//! The command line: what can be typed, and what is run for it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use node::exit::Exit;
use node::process;

use crate::access::{channels, pair, poison};
use crate::{
    bench, config, console, cron, data, deliveries, doctor, explain, init, nats_server,
    permissions, platforms, status, up,
};

const AFTER_HELP: &str = "\
Begin with `talaria up` (or `cargo up` in the source folder): it runs everything and prints the address of a chat page.

Every setting can be given in talaria.toml, as TALARIA__SECTION__KEY, or as a flag, the later one winning; `talaria config`
shows what applies and where it came from.

Exit codes: 0 clean, 1 failure, 2 weaker than promised (doctor), 64 usage, 69 broker unreachable, 75 restart wanted, 78 bad configuration.";

/// Runs AI agents behind chat platforms: messages in, replies out, on one machine or many.
#[derive(Parser, Debug)]
#[command(name = "talaria", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the whole system on this machine, until Ctrl-C
    Up(up::UpArgs),
    /// Show the settings that apply, and where each came from
    Config(config::ConfigArgs),
    /// Measure this machine: added latency, turns per second, memory per turn
    Bench(bench::BenchArgs),
    /// Show, make and end what is done at set times
    Cron(cron::CronArgs),
    /// Say what became of a message, and why
    Explain(explain::ExplainArgs),
    /// Create the streams, buckets and pools that are missing on the broker
    Init(init::InitArgs),
    /// Print what each service may do on the broker, as configuration of nats-server
    Permissions,
    /// Let people in who ask, or shut them out
    Pair(pair::PairArgs),
    /// List the chats that messages came from, and the home channels
    Channels(channels::ChannelsArgs),
    /// List what could not be delivered, or send it again
    Deliveries(deliveries::DeliveriesArgs),
    /// Show what each platform can do
    Platforms(platforms::PlatformsArgs),
    /// Show what came from platforms and could not be read
    Poison(poison::PoisonArgs),
    /// Say what runs, who decides, and what waits
    Status(status::StatusArgs),
    /// Check that everything works and is as safe as promised, and say how to mend what is not
    Doctor(doctor::DoctorArgs),
    /// Obtain nats-server and print where it is
    Nats(NatsArgs),
}

#[derive(Args, Debug)]
struct NatsArgs {
    /// Folder of the data; downloads go to its `tools`
    #[arg(long, value_name = "DIR", default_value = data::DEFAULT)]
    data: PathBuf,
}

/// The `main` of the binary.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return process::usage(&error),
    };
    let Some(command) = cli.command else {
        let shown = Cli::command().print_long_help().map_err(anyhow::Error::from);
        return process::finish(shown);
    };
    process::finish(process::block_on(async {
        match command {
            Command::Up(args) => Box::pin(up::run(args)).await,
            Command::Config(args) => config::run(&args),
            Command::Deliveries(args) => Box::pin(deliveries::run(&args)).await,
            Command::Platforms(args) => platforms::run(&args),
            Command::Bench(args) => bench::run(&args).await,
            Command::Cron(args) => cron::run(args).await,
            Command::Explain(args) => explain::run(&args).await,
            Command::Init(args) => init::run(&args).await,
            Command::Permissions => Ok(console::say(&permissions::text())?),
            Command::Pair(args) => Box::pin(pair::run(&args)).await,
            Command::Channels(args) => Box::pin(channels::run(&args)).await,
            Command::Poison(args) => Box::pin(poison::run(&args)).await,
            Command::Status(args) => Box::pin(status::run(&args)).await,
            Command::Doctor(args) => Box::pin(doctor::run(&args)).await,
            Command::Nats(args) => nats(args).await,
        }
    }))
}

async fn nats(args: NatsArgs) -> anyhow::Result<()> {
    let binary = nats_server::obtain(&args.data.join("tools"))
        .await
        .map_err(|error| anyhow::Error::new(error).context(Exit::Unavailable))?;
    Ok(console::say(&binary.path.display().to_string())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
