//! Beginning a rolling restart: the plan is stored once, and from then on every process knows when it is its turn.

use bytes::Bytes;
use node::bus::{Stored, Write, WriteError};
use proto::codec;
use proto::outbound::Outbound;
use proto::rollout::Rollout;
use proto::subject;
use proto::topology::FLEET;

use super::Owner;

/// Stores the plan, unless it is stored or another rollout is under way, and completes the answer that announces it.
pub(crate) async fn begin(owner: &Owner, mut outbound: Outbound) -> anyhow::Result<Outbound> {
    let key = subject::bucket_subject(FLEET, subject::rollout_key());
    let stream = format!("KV_{FLEET}");
    let members: Vec<_> = node::members::list(&owner.bus).await?.into_values().collect();
    let turns: u32 = members.iter().map(|member| member.turns).sum();
    let processes = members.len();
    let rollout = Rollout::new(members, outbound.clone());
    loop {
        let stored = owner.bus.last(&stream, &key).await?;
        let expect = Some(stored.as_ref().map_or(0, |stored| stored.sequence));
        if let Some(stored) = stored.filter(Stored::is_value)
            && let Ok(current) = codec::decode::<Rollout>(&stored.payload)
        {
            if current.notice.id == outbound.id {
                break;
            }
            outbound.text = "A restart is under way already.".into();
            return Ok(outbound);
        }
        let payload = Bytes::from(codec::encode(&rollout));
        match owner.bus.write(key.clone(), payload, Write { expect, ..Write::default() }).await {
            Ok(_) => {
                tracing::info!(processes, "a rolling restart begins");
                break;
            }
            // Reading back tells who won.
            Err(WriteError::Refused | WriteError::Unknown) => {}
            Err(error @ WriteError::TooLarge) => return Err(error.into()),
        }
    }
    outbound.text += &match turns {
        1 => " 1 turn runs.".to_owned(),
        turns => format!(" {turns} turns run."),
    };
    Ok(outbound)
}
