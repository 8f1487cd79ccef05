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
    /// Who answers.
    pub(super) model: &'a str,
    /// The data folder.
    pub(super) data: &'a Path,
    /// The broker, in a few words.
    pub(super) broker: &'a str,
}

/// The words.
pub(super) fn text(facts: &Facts<'_>) -> String {
    let Facts { address, settings, model, data, broker } = facts;
    let base = format!("http://{}", visitable(*address));
    let token = settings.ingress.token.expose();
    let model = described(model);
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

/// Who answers, and for the one that only plays, how to get a real one.
fn described(model: &str) -> String {
    if model != "scripted" {
        return model.to_owned();
    }
    "scripted: built in, for trying things out; it understands nothing\n\
     \x20        For a real one set OPENAI_API_KEY or ANTHROPIC_API_KEY, or OPENAI_BASE_URL for a server of your own,\n\
     \x20        and start again; --model openai:NAME or anthropic:NAME chooses which."
        .to_owned()
}

#[cfg(test)]
mod tests {
    use node::settings::Secret;

    use super::*;

    fn shown(address: &str, model: &str) -> String {
        let mut settings = Settings::default();
        settings.ingress.token = Secret::new("secret".into());
        let facts = Facts {
            address: address.parse().unwrap(),
            settings: &settings,
            model,
            data: Path::new("/data"),
            broker: "nats-server 2.15.1",
        };
        text(&facts)
    }

    #[test]
    fn the_address_can_be_opened_as_it_is_printed() {
        assert!(shown("127.0.0.1:8420", "x").contains("http://127.0.0.1:8420/?token=secret\n"));
        assert!(shown("0.0.0.0:80", "x").contains("http://127.0.0.1:80/?token=secret\n"));
        assert!(shown("[::]:80", "x").contains("http://[::1]:80/?token=secret\n"));
    }

    #[test]
    fn only_the_scripted_model_asks_for_a_key() {
        assert!(shown("127.0.0.1:1", "scripted").contains("OPENAI_API_KEY"));
        let real = shown("127.0.0.1:1", "openai:gpt");
        assert!(real.contains("openai:gpt") && !real.contains("OPENAI_API_KEY"), "{real}");
    }
}
