//! The worker as a process of its own.

use std::process::ExitCode;

const ABOUT: &str = "Runs the turns of Talaria's agents: model calls, tools, approvals.";

fn main() -> ExitCode {
    node::process::service("talaria-worker", ABOUT, |node, listen| async move {
        node::health::serve(&node, listen).await?;
        talaria_worker::run(node).await
    })
}
