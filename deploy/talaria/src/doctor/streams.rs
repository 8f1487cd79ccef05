//! The streams: whether they are as the settings say, and on how many servers they are.

use std::collections::BTreeSet;

use async_nats::jetstream::stream::Info;
use node::bus::Bus;
use node::settings::Settings;
use node::topology;

use super::Finding;

/// On how many servers a stream must be for the loss of one to lose nothing.
const REPLICAS: usize = 3;

/// What was found.
pub(super) struct Look {
    pub(super) findings: Vec<Finding>,
    /// Into how many parts the sessions are divided; none if the streams do not exist or differ from the settings.
    pub(super) partitions: Option<u16>,
}

/// Looks at all of them.
pub(super) async fn look(settings: &Settings, bus: &Bus) -> Look {
    let infos = match topology::inspect(bus, &settings.streams).await {
        Ok(infos) => infos,
        Err(error) => {
            let why = format!("{:#}", anyhow::Error::new(error));
            let mend =
                "start a service once, which creates them; or make settings and broker agree";
            return Look {
                findings: vec![Finding::broken("streams", why, mend)],
                partitions: None,
            };
        }
    };
    let partitions = settings.streams.partitions;
    let fine = format!("all {} are as the settings say; {partitions} partitions", infos.len());
    let findings = vec![Finding::fine("streams", fine), replicas(&infos), placement(&infos)];
    Look { findings, partitions: Some(partitions) }
}

fn replicas(infos: &[Info]) -> Finding {
    let few: Vec<_> = infos.iter().filter(|info| info.config.num_replicas < REPLICAS).collect();
    if let Some(info) = few.first() {
        return Finding::weaker(
            "replicas",
            format!(
                "{} of {} streams have {} of {REPLICAS} copies: losing one server's disk loses what it holds",
                few.len(),
                infos.len(),
                info.config.num_replicas,
            ),
            "run three NATS servers, set streams.replicas = 3, and `nats stream edit --replicas 3` what exists",
        );
    }
    let others = |info: &&Info| {
        let behind = info.cluster.iter().flat_map(|cluster| &cluster.replicas);
        behind.into_iter().any(|copy| copy.offline || !copy.current)
    };
    let behind: Vec<_> = infos.iter().filter(others).map(|info| info.config.name.clone()).collect();
    if behind.is_empty() {
        Finding::fine("replicas", format!("{REPLICAS} or more copies of each stream, all current"))
    } else {
        Finding::weaker(
            "replicas",
            format!("copies of {} are behind or away", behind.join(", ")),
            "bring the missing NATS server back; it catches up by itself",
        )
    }
}

fn placement(infos: &[Info]) -> Finding {
    let servers: BTreeSet<&str> = infos
        .iter()
        .filter_map(|info| info.cluster.as_ref())
        .flat_map(|cluster| {
            cluster
                .leader
                .as_deref()
                .into_iter()
                .chain(cluster.replicas.iter().map(|copy| &*copy.name))
        })
        .collect();
    let servers: Vec<_> = servers.into_iter().collect();
    match servers.as_slice() {
        [] => Finding::weaker(
            "placement",
            "everything is on one server that is no cluster",
            "run three NATS servers as a cluster, on three machines",
        ),
        [one] => Finding::weaker(
            "placement",
            format!("everything is on {one}"),
            "run three NATS servers as a cluster, on three machines",
        ),
        many => Finding::fine(
            "placement",
            format!(
                "on {}; that these are different machines is the operator's to see",
                many.join(", ")
            ),
        ),
    }
}
