//! What is approved without asking: what the operator allows everyone, and what a person has approved for good (`/approve always`).
//! The latter is kept beside what is noted about the person, and holds for that person only.

use std::collections::BTreeSet;

use node::bus::{Write, WriteError};
use proto::codec;
use proto::subject;
use proto::topology::MEMORY;
use serde::{Deserialize, Serialize};

use super::Turn;
use super::desk::person;
use crate::fence::Lost;
use crate::transcript::patiently;

/// How often an approval is stored again when another turn wrote at the same time.
const TRIES: usize = 5;

/// What a person has approved for good (`memory` bucket, key `<person>.approved`).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Grants {
    approved: BTreeSet<String>,
}

impl Turn {
    /// Whether the like of this need not be asked about.
    pub(super) async fn is_approved(&self, rule: &str) -> Result<bool, Lost> {
        if self.shared.node.settings.agent.approved.iter().any(|known| known == rule) {
            return Ok(true);
        }
        let Some(key) = self.key_of_grants().await? else { return Ok(false) };
        Ok(self.grants(&key).await?.0.approved.contains(rule))
    }

    /// Remembers that it was approved for good. If that cannot be stored, it is asked about again, which is no harm.
    pub(super) async fn approve_always(&self, rule: &str) -> Result<(), Lost> {
        let Some(key) = self.key_of_grants().await? else { return Ok(()) };
        for _ in 0..TRIES {
            let (mut grants, revision) = self.grants(&key).await?;
            if !grants.approved.insert(rule.to_owned()) {
                return Ok(());
            }
            self.fence.check()?;
            let write = Write { expect: Some(revision), ..Write::default() };
            let payload = codec::encode(&grants).into();
            match self.shared.node.bus.write(key.clone(), payload, write).await {
                Ok(_) => return Ok(()),
                Err(WriteError::TooLarge) => break,
                // If it was stored, the next look says so.
                Err(WriteError::Refused | WriteError::Unknown) => {}
            }
        }
        tracing::warn!(rule, "an approval for good was not stored");
        Ok(())
    }

    async fn key_of_grants(&self) -> Result<Option<String>, Lost> {
        let Some(seq) = self.order.inputs.last() else { return Ok(None) };
        let event = self.input(*seq).await?;
        let person = event.as_ref().map(person);
        Ok(person.map(|person| subject::bucket_subject(MEMORY, &format!("{person}.approved"))))
    }

    async fn grants(&self, key: &str) -> Result<(Grants, u64), Lost> {
        let stream = format!("KV_{MEMORY}");
        let found = patiently(&self.fence, || self.shared.node.bus.last(&stream, key)).await?;
        let Some(found) = found else { return Ok((Grants::default(), 0)) };
        let grants = if found.is_value() { codec::decode(&found.payload).ok() } else { None };
        Ok((grants.unwrap_or_default(), found.sequence))
    }
}
