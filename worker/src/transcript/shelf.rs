//! Conversations kept in memory between turns. What is kept is never trusted: the first append of the next turn proves it, because
//! the broker refuses it when anything was written since.

use std::sync::Arc;

use moka::sync::Cache;
use proto::id::Sid;
use proto::transcript::{Body, Entry, Profile};

/// How much is kept, bytes.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One session as a turn left it.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Its profile.
    pub(crate) profile: Profile,
    /// The profile's revision.
    pub(crate) revision: u64,
    /// The sequence of the conversation's last entry.
    pub(crate) last: u64,
    /// The conversation.
    pub(crate) entries: Vec<Arc<Entry>>,
}

/// All that is kept.
#[derive(Clone, Debug)]
pub(crate) struct Shelf(Cache<Sid, Arc<Kept>>);

impl Shelf {
    /// An empty one.
    pub(crate) fn new() -> Self {
        let weigh = |_: &Sid, kept: &Arc<Kept>| kept.entries.iter().map(|entry| size(entry)).sum();
        Self(Cache::builder().max_capacity(BYTES_MAX).weigher(weigh).build())
    }

    /// Takes a session down; whoever works with it puts it back.
    pub(crate) fn take(&self, sid: Sid) -> Option<Kept> {
        self.0.remove(&sid).map(Arc::unwrap_or_clone)
    }

    /// Keeps a session.
    pub(crate) fn put(&self, sid: Sid, kept: Kept) {
        self.0.insert(sid, Arc::new(kept));
    }
}

/// About how much memory an entry takes.
fn size(entry: &Entry) -> u32 {
    let text = match &entry.body {
        Body::System { text } | Body::User { text, .. } => text.len(),
        Body::Assistant { text, calls, .. } => {
            text.len() + calls.iter().map(|call| call.arguments.len() + 100).sum::<usize>()
        }
        Body::Result { output, .. } => output.len(),
        Body::Attached { media } => media.iter().map(|media| media.url.len() + 100).sum(),
        Body::Compressed { entries } => entries.iter().map(|entry| size(entry) as usize).sum(),
        Body::Resumed | Body::Withdrawn { .. } => 0,
    };
    u32::try_from(text + 200).unwrap_or(u32::MAX)
}
