//! What came from a platform and cannot be read is set aside, so that what comes after it can pass.

use std::time::Duration;

use node::bucket::{self, Found, PutError};
use node::clock;
use proto::poison::Poison;
use proto::subject;
use proto::topology::POISON;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Arrival, Gate, Outcome};
use crate::publish::AcceptError;

/// How much of it is kept, in bytes.
const KEPT_MAX: usize = 32 * 1024;
/// How long it is tried to be kept.
const STORE: Duration = Duration::from_secs(5);
/// The pause between two tries.
const AGAIN: Duration = Duration::from_millis(200);

impl Gate {
    /// Reads something of a platform; none for what cannot be read, which is set aside.
    ///
    /// # Errors
    /// When the broker does not take it: then it must come again.
    pub async fn read<T: DeserializeOwned>(&self, raw: &Value) -> Result<Option<T>, AcceptError> {
        match T::deserialize(raw) {
            Ok(read) => Ok(Some(read)),
            Err(error) => {
                self.set_aside(raw.to_string().as_bytes(), &error.to_string()).await?;
                Ok(None)
            }
        }
    }

    /// Admits an arrival; none for what can never be taken, which is set aside as it came.
    ///
    /// # Errors
    /// When the broker does not take it: then it must come again.
    pub async fn admit_or_set_aside(
        &self,
        arrival: Arrival,
        raw: &Value,
    ) -> Result<Option<Outcome>, AcceptError> {
        match self.admit(arrival).await {
            Ok(outcome) => Ok(Some(outcome)),
            Err(error @ AcceptError::TooLarge) => {
                self.set_aside(raw.to_string().as_bytes(), &error.to_string()).await?;
                Ok(None)
            }
            Err(AcceptError::NotAllowed) => Ok(None),
            Err(error @ AcceptError::Unavailable) => Err(error),
        }
    }

    /// Sets something aside that cannot be read: counted, logged, and kept for a person, who finds it with `talaria poison`. The
    /// adapter may go on behind it. Setting the same thing aside twice is harmless.
    ///
    /// # Errors
    /// When the broker does not take it: then it must come again.
    pub async fn set_aside(&self, what: &[u8], why: &str) -> Result<(), AcceptError> {
        let inner = &self.0;
        let (platform, account) = (&inner.platform, &inner.account);
        let key = subject::poison_key(platform, account, what);
        let text = String::from_utf8_lossy(&what[..what.len().min(KEPT_MAX)]);
        let poison = Poison {
            platform: platform.clone(),
            account: account.clone(),
            why: why.to_owned(),
            what: text.into_owned(),
            size: what.len(),
            at_ms: clock::wall_ms(),
        };
        let keep = async {
            loop {
                match bucket::read::<Poison>(&inner.node.bus, POISON, &key).await {
                    Ok((Found::Nothing, revision)) => {
                        let put =
                            bucket::put(&inner.node.bus, POISON, &key, &poison, revision, None);
                        match put.await {
                            Ok(_) => return true,
                            Err(PutError::Overtaken) => return false,
                            Err(error @ PutError::Unavailable { .. }) => {
                                tracing::debug!(%error, "something unreadable is not set aside yet");
                            }
                        }
                    }
                    Ok(_) => return false,
                    Err(error) => {
                        tracing::debug!(%error, "something unreadable is not set aside yet")
                    }
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        let is_new =
            tokio::time::timeout(STORE, keep).await.map_err(|_| AcceptError::Unavailable)?;
        if is_new {
            inner.metrics.poisoned(platform);
            tracing::error!(
                platform,
                account,
                why,
                bytes = what.len(),
                "something of a platform cannot be read; it is set aside: see `talaria poison`"
            );
        }
        Ok(())
    }
}
