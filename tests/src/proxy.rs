//! A TCP proxy between one of our processes and the broker: it can cut, freeze and slow down what goes through it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// What it does with what goes through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Passes it on.
    Fine,
    /// Passes each piece on so much later.
    Slow(Duration),
    /// Keeps connections open and passes nothing on, until it does something else.
    Frozen,
    /// Closes connections, and takes no new ones.
    Cut,
}

/// The proxy; it ends with its value.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    line: watch::Sender<Line>,
    _serving: AbortOnDropHandle<()>,
}

impl Proxy {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (line, lines) = watch::channel(Line::Fine);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connection(client, to, lines.clone()));
            }
        });
        Self { address, line, _serving: AbortOnDropHandle::new(serving) }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Chooses what it does from now on.
    pub fn be(&self, line: Line) {
        self.line.send_replace(line);
    }
}

async fn connection(client: TcpStream, to: SocketAddr, lines: watch::Receiver<Line>) {
    if *lines.borrow() == Line::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect(to).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let mut cut = lines.clone();
    tokio::select! {
        () = pass(client_in, server_out, lines.clone()) => {}
        () = pass(server_in, client_out, lines) => {}
        _ = cut.wait_for(|line| *line == Line::Cut) => {}
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut lines: watch::Receiver<Line>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(length) = from.read(&mut buffer).await else { return };
        if length == 0 || lines.wait_for(|line| *line != Line::Frozen).await.is_err() {
            return;
        }
        let line = *lines.borrow();
        if let Line::Slow(by) = line {
            tokio::time::sleep(by).await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
