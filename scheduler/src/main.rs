//! The scheduler's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    node::process::service(
        "talaria-scheduler",
        "Talaria's scheduler: decides who may run",
        |node, listen| async move {
            node::health::serve(&node, listen).await?;
            talaria_scheduler::run(node).await
        },
    )
}
