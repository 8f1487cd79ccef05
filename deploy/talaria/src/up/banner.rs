//! What `up` prints when the system is ready: where to go, who answers, where the data is, how to stop.

use std::net::SocketAddr;
use std::path::Path;

use node::settings::Settings;

/// What there is to say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    /// Where the front door is.
    pub(super) address: SocketAddr,
    /// The settings.
    pub(super) settings: &'a Settings,
    /// The data folder.
    pub(super) data: &'a Path,
    /// The broker, in a few words.
    pub(super) broker: &'a str,
}

/// The words.
pub(super) fn text(facts: &Facts<'_>) -> String {
    let Facts { address, settings, data, broker } = facts;
    let base = format!("http://{}", visitable(*address));
    let token = settings.ingress.token.expose();
    let model = model(settings);
    let workspace = settings.worker.workspace.display();
    format!(
        "\n\
         Talaria is ready.\n\n\
         \x20 Chat   {base}/?token={token}\n\
         \x20 API    {base}/v1   (OpenAI-compatible; the token is the key)\n\
         \x20        curl {base}/v1/chat/completions -H 'Authorization: Bearer {token}' \\\n\
         \x20          -H 'Content-Type: application/json' \\\n\
         \x20          -d '{{\"model\":\"talaria\",\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}'\n\
         \x20 Model  {model}\n\
         \x20 Files  {workspace}   (where the agent's tools work)\n\
         \x20 Data   {data}   ({broker})\n\n\
         Whoever has the token can use the agent and its tools. Ctrl-C stops; the next start goes on from here.\n",
        data = data.display(),
    )
}

/// The address that a browser on this machine can open.
fn visitable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let host = if address.is_ipv4() {
        std::net::Ipv4Addr::LOCALHOST.into()
    } else {
        std::net::Ipv6Addr::LOCALHOST.into()
    };
    SocketAddr::new(host, address.port())
}

fn model(settings: &Settings) -> String {
    let _ = settings;
    String::new()
}
