//! The front door as a process of its own.

use std::process::ExitCode;

use anyhow::Context;
use tokio::net::TcpListener;

fn main() -> ExitCode {
    let about = "Takes messages from platforms into the system and delivers what comes back";
    node::process::service("talaria-ingress", about, |node, listen| async move {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("cannot listen on {listen}"))?;
        talaria_ingress::run(node, listener).await
    })
}
