//! The threads that turns run on. They are none of those that serve the broker's connection and the heartbeats: a turn that blocks
//! its thread holds up whatever the task scheduler has put behind it there, and a worker that is alive would seem dead.

use anyhow::Context;
use tokio::runtime::{Builder, Handle, Runtime};

/// The threads; they end with the value, and what still runs on them is dropped at its next await.
#[derive(Debug)]
pub(super) struct Threads {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl Threads {
    /// Starts as many as the machine has cores.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub(super) fn start() -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread().thread_name("turns").enable_all().build();
        let runtime = runtime.context("no threads for turns")?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Where to put a turn.
    pub(super) const fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Waiting for them is not allowed where tasks run.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
