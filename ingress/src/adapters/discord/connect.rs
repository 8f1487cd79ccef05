//! The connection of a bot to the gateway: it is made again, and its session resumed, for as long as that can help.

use std::time::Duration;

use node::process::random;
use proto::command::REGISTRY;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, timeout};

use super::bookmark::Bookmark;
use super::call::Body;
use super::session::{Frame, Next, Session};
use super::{Bot, Inner};
use crate::adapter::{ConnectError, Link, Refusal, SendError};
use crate::socket::{Heard, Socket};

/// How long to wait before something is tried again that could not be stored.
const STORE_AGAIN: Duration = Duration::from_secs(1);
/// How long the gateway may take to say hello.
const HELLO: Duration = Duration::from_secs(15);
/// The pauses before a session is resumed: the first, and the longest.
const AGAIN_FIRST: Duration = Duration::from_millis(500);
const AGAIN_LAST: Duration = Duration::from_secs(30);
/// How often resuming is tried before it counts as a failure, and how often beginning anew.
const TRIES: u32 = 12;
const TRIES_ANEW: u32 = 3;
/// A close code that lets a session be resumed, and the one that ends it.
const RESUMABLE: u16 = 4000;
const NORMAL: u16 = 1000;
/// How many commands a bot may have, and how long their descriptions may be.
const COMMANDS_MAX: usize = 100;
const DESCRIPTION_MAX: usize = 100;

#[derive(Deserialize)]
struct Gateway {
    url: String,
    #[serde(default)]
    session_start_limit: StartLimit,
}

#[derive(Default, Deserialize)]
struct StartLimit {
    #[serde(default)]
    remaining: Option<u64>,
    /// Milliseconds.
    #[serde(default)]
    reset_after: u64,
}

/// A session, and where it is kept how far it has come.
struct Course {
    session: Session,
    bookmark: Bookmark,
    /// Whether the last connection was up.
    was_up: bool,
}

impl Course {
    async fn save(&mut self) {
        self.bookmark.save(self.session.cursor()).await;
    }
}

/// Holds the connection until `link.stop`, or until it cannot be made again.
pub(super) async fn run(inner: &Inner, account: &str, link: &Link) -> Result<(), ConnectError> {
    let bot = inner.bot(account).map_err(ConnectError::of)?;
    let (bookmark, cursor) = Bookmark::open(bot.bus.clone(), bot.settings.token.expose()).await;
    let mut course = Course { session: Session::restored(cursor), bookmark, was_up: false };
    let work = async {
        let me = bot.me().await.map_err(of)?;
        tracing::info!(account, bot = %me.username, "connecting to Discord");
        if let Err(error) = bot.announce_commands().await {
            tracing::warn!("Discord does not show the bot's commands: {error}");
        }
        keep(bot, link, &mut course).await
    };
    let outcome = tokio::select! {
        outcome = work => outcome,
        () = link.stop.cancelled() => Ok(()),
    };
    course.save().await;
    outcome
}

/// A refused token needs a person, who must know which.
fn of(error: SendError) -> ConnectError {
    match error {
        SendError::Refused { reason: Refusal::Account, why } => {
            ConnectError::Fatal { why: format!("{why}; check the bot's token and start again") }
        }
        error @ (SendError::Flood { .. }
        | SendError::Failed { .. }
        | SendError::Unknown { .. }
        | SendError::Refused { .. }) => ConnectError::of(error),
    }
}

/// One connection after another, with one session for as long as Discord keeps it.
async fn keep(bot: &Bot, link: &Link, course: &mut Course) -> Result<(), ConnectError> {
    let mut failures = 0;
    loop {
        course.was_up = false;
        let ended = connection(bot, link, course).await?;
        failures = if course.was_up { 0 } else { failures + 1 };
        let most = if course.session.url().is_some() { TRIES } else { TRIES_ANEW };
        if failures >= most {
            return Err(ConnectError::Retry { after: None, why: ended });
        }
        link.trouble(ended);
        let pause = AGAIN_FIRST.saturating_mul(2_u32.saturating_pow(failures)).min(AGAIN_LAST);
        sleep(pause).await;
    }
}

/// One connection. Returns why it ended.
async fn connection(bot: &Bot, link: &Link, course: &mut Course) -> Result<String, ConnectError> {
    let base = match course.session.url() {
        Some(url) => url.to_owned(),
        None => gateway(bot).await?,
    };
    let url = format!("{}/?v=10&encoding=json", base.trim_end_matches('/'));
    let mut socket = match Socket::connect(&bot.sockets, &url).await {
        Ok(socket) => socket,
        Err(why) => return Ok(why),
    };
    let ended = talk(bot, link, course, &mut socket).await;
    let code = if ended.is_ok() { RESUMABLE } else { NORMAL };
    socket.close(code).await;
    ended
}

async fn gateway(bot: &Bot) -> Result<String, ConnectError> {
    let Gateway { url, session_start_limit } =
        bot.api().map_err(of)?.get("gateway/bot").await.map_err(of)?;
    if session_start_limit.remaining == Some(0) {
        let after = Some(Duration::from_millis(session_start_limit.reset_after));
        let why = "Discord allows no more new sessions today".into();
        return Err(ConnectError::Retry { after, why });
    }
    Ok(url)
}

/// Says hello, and then listens. Returns why that ended; an error means that trying again does not help.
async fn talk(
    bot: &Bot,
    link: &Link,
    course: &mut Course,
    socket: &mut Socket,
) -> Result<String, ConnectError> {
    let mut pulse = match hello(socket).await {
        Ok(pulse) => pulse,
        Err(why) => return Ok(why.into()),
    };
    let begin = course.session.begin(bot.settings.token.expose());
    if let Err(why) = socket.send(begin.to_string()).await {
        return Ok(why);
    }
    let mut heard = true;
    loop {
        let text = tokio::select! {
            _ = pulse.tick() => {
                if !std::mem::replace(&mut heard, false) {
                    return Ok("the gateway does not hear us any more".into());
                }
                if let Err(why) = socket.send(course.session.beat().to_string()).await {
                    return Ok(why);
                }
                course.save().await;
                continue;
            }
            message = socket.next() => match message {
                Heard::Text(text) => text,
                Heard::Broken(why) => return Ok(why),
                Heard::Closed { code, why } => {
                    let fatal = |why: &str| ConnectError::Fatal { why: why.into() };
                    course.session.closed(code).map_err(fatal)?;
                    return Ok(format!("the gateway has closed the connection: {code} {why}"));
                }
            },
        };
        let Ok(frame) = serde_json::from_str::<Frame>(&text) else {
            tracing::warn!("the gateway says something that cannot be read");
            continue;
        };
        match course.session.hear(frame) {
            Next::Nothing => {}
            Next::Heard => heard = true,
            Next::Again => return Ok("the gateway wants a new connection".into()),
            Next::Up => {
                course.was_up = true;
                link.up();
                course.save().await;
            }
            Next::Beat => {
                if let Err(why) = socket.send(course.session.beat().to_string()).await {
                    return Ok(why);
                }
            }
            Next::Take { name, data, seq } => {
                let taking = take(bot, link, &name, &data);
                if let Err(why) = while_beating(taking, &mut pulse, socket, &course.session).await {
                    return Ok(why);
                }
                course.session.stored(seq);
                if course.bookmark.is_due() {
                    course.save().await;
                }
                // What Discord has said in the meantime is not read yet.
                heard = true;
            }
        }
    }
}

/// Hears how often the gateway wants a heartbeat.
async fn hello(socket: &mut Socket) -> Result<Interval, &'static str> {
    let hello = match timeout(HELLO, socket.next()).await {
        Ok(Heard::Text(text)) => serde_json::from_str::<Frame>(&text).ok(),
        Ok(Heard::Closed { .. } | Heard::Broken(_)) | Err(_) => None,
    };
    let every = hello.filter(|hello| hello.op == 10);
    let every = every.and_then(|hello| hello.d["heartbeat_interval"].as_u64());
    let every = every.filter(|every| *every > 0).ok_or("the gateway does not say hello")?;
    let every = Duration::from_millis(every);
    // The first at any time within it, so that not all bots come at one moment.
    let [random] = random::<1>();
    let mut pulse = interval_at(Instant::now() + every.mul_f64(f64::from(random) / 256.0), every);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Ok(pulse)
}

/// Takes an event, however long that takes.
async fn take(bot: &Bot, link: &Link, name: &str, data: &Value) {
    let mut troubled = false;
    while let Err(error) = Box::pin(bot.take(name, data)).await {
        troubled = true;
        link.trouble(format!("messages are not taken: {error}"));
        sleep(STORE_AGAIN).await;
    }
    if troubled {
        link.up();
    }
}

/// Shows signs of life while something is done.
async fn while_beating(
    work: impl Future<Output = ()>,
    pulse: &mut Interval,
    socket: &mut Socket,
    session: &Session,
) -> Result<(), String> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            () = work.as_mut() => return Ok(()),
            _ = pulse.tick() => socket.send(session.beat().to_string()).await?,
        }
    }
}

impl Bot {
    /// Puts our commands into Discord's menu.
    async fn announce_commands(&self) -> Result<(), SendError> {
        #[derive(Deserialize)]
        struct Application {
            id: String,
        }
        let api = self.api()?;
        let application: Application = api.get("applications/@me").await?;
        let shown = REGISTRY.iter().filter(|spec| !spec.help.is_empty());
        let commands: Vec<Value> = shown
            .take(COMMANDS_MAX)
            .map(|spec| {
                let help: String = spec.help.chars().take(DESCRIPTION_MAX).collect();
                let option = json!({ "type": 3, "name": "words", "description": "what follows the command" });
                json!({ "name": spec.words[0], "type": 1, "description": help, "options": [option] })
            })
            .collect();
        let path = format!("applications/{}/commands", application.id);
        let commands = Value::from(commands);
        api.call::<Value>(Method::PUT, &path, Body::Json(&commands)).await.map(drop)
    }
}
