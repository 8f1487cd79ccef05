//! `talaria init`: creates what is missing on the broker, for installations where services may not. Doing it again changes
//! nothing.

use clap::Args;
use node::bus::Bus;
use node::exit::Exit;
use node::process::CommonArgs;
use node::settings::{Flags, Settings, Streams};
use node::topology::{self, TopologyError};

use crate::console;

/// The command's flags.
#[derive(Args, Debug)]
pub struct InitArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// A pool of workers that will take orders; may be repeated [default: worker.pool]
    #[arg(long = "pool", value_name = "NAME")]
    pools: Vec<String>,
}

/// Creates what is missing and says what there is.
///
/// # Errors
/// When the broker cannot be reached or does not let us (exit 69), or something exists that differs from the settings (78).
pub async fn run(args: &InitArgs) -> anyhow::Result<()> {
    let settings = args.common.load(Flags::default())?.settings;
    let mut pools = args.pools.clone();
    if pools.is_empty() {
        pools.push(settings.worker.pool.clone());
    }
    let bus = create(&settings, &pools).await?;
    Ok(console::say(&format!(
        "the streams and buckets are there, for {} partitions on {} broker(s), and the pools {}",
        bus.partitions(),
        settings.streams.replicas,
        pools.join(", "),
    ))?)
}

/// Creates what is missing, whatever `streams.create` says.
///
/// # Errors
/// When the broker cannot be reached or does not let us (exit 69), or something exists that differs from the settings (78).
pub async fn create(settings: &Settings, pools: &[String]) -> anyhow::Result<Bus> {
    let unavailable = |error: anyhow::Error| error.context(Exit::Unavailable);
    let bus = Bus::connect(&settings.nats, "talaria-init")
        .await
        .map_err(|error| unavailable(error.into()))?;
    let streams = Streams { create: true, ..settings.streams.clone() };
    let bus = topology::ensure(bus, &streams).await.map_err(|error| match &error {
        TopologyError::Mismatch { .. } => anyhow::Error::new(error).context(Exit::Configuration),
        TopologyError::Missing { .. } | TopologyError::Unusable { .. } => unavailable(error.into()),
    })?;
    for pool in pools {
        worker::create_pool(bus.clone(), pool).await.map_err(unavailable)?;
    }
    Ok(bus)
}
