//! Our services as child processes of tests: which one is the name under which this is started. The three binaries belong to
//! other packages, which cargo does not build for our tests.

use std::process::ExitCode;

use anyhow::Context;
use node::process::service;
use tokio::net::TcpListener;

fn main() -> ExitCode {
    let name = std::env::args().next().unwrap_or_default();
    match name.as_str() {
        "talaria-scheduler" => {
            service("talaria-scheduler", "under test", |node, listen| async move {
                node::health::serve(&node, listen).await?;
                scheduler::run(node).await
            })
        }
        "talaria-worker" => service("talaria-worker", "under test", |node, listen| async move {
            node::health::serve(&node, listen).await?;
            worker::run(node).await
        }),
        "talaria-ingress" => service("talaria-ingress", "under test", |node, listen| async move {
            let listener = TcpListener::bind(listen).await.context("cannot listen")?;
            ingress::run(node, listener).await
        }),
        _ => {
            node::process::finish(Err(anyhow::anyhow!("started as {name:?}, which is no service")))
        }
    }
}
