//! The commands that change a conversation, as turns of their own: `/retry`, `/undo`, `/compress`, `/model`, `/resume`. Each may
//! be carried out again by a later attempt, and then does only what is missing.

use std::sync::Arc;

use proto::command::{Conversation, Name, Parsed};
use proto::id::{Seq, TurnId};
use proto::transcript::{Body, Entry};

use super::compress::Compressed;
use super::prepare::{self, Seat, Wanted};
use super::{Ending, Halt, Summary, Turn};
use crate::models;
use crate::transcript::Log;

const NOT_STORED: &str =
    "I no longer have the command that I should carry out. Please send it again.";
const NOTHING: &str = "There is nothing to take back in this conversation.";
const NO_EARLIER: &str = "There is no earlier conversation to go back to.";
const BACK: &str =
    "We are back in the earlier conversation. /resume again returns to the other one.";
const SHORT_ENOUGH: &str = "The conversation is short enough as it is.";
/// The most turns that one `/undo` takes back.
const UNDO_MAX: usize = 50;
/// How much of what was taken back is shown.
const ECHO_BYTES: usize = 200;

type Done = Result<(Ending, Summary), Halt>;

/// Carries out the command that the turn's input holds.
pub(super) async fn run(turn: &Turn) -> Done {
    let events = prepare::messages(turn, &turn.order.inputs).await?;
    let Some(event) = events.first() else {
        return Ok((Ending::Failed(NOT_STORED.into()), Summary::default()));
    };
    let Parsed::Command(command) = event.parsed() else { return said(NOT_STORED) };
    let Name::Conversation(name) = command.spec.name else { return said(NOT_STORED) };
    match name {
        Conversation::Retry => retry(turn).await,
        Conversation::Undo => undo(turn, command.args).await,
        Conversation::Compress => compress(turn).await,
        Conversation::Model => model(turn, command.args).await,
        Conversation::Resume => resume(turn).await,
    }
}

fn said(reply: impl Into<String>) -> Done {
    Ok((Ending::Completed, Summary { reply: reply.into(), ..Summary::default() }))
}

/// The session's conversation, taken for this turn.
async fn opened(turn: &Turn) -> Result<(Seat, Log), Halt> {
    let kept = turn.shared.shelf.take(turn.order.of.sid);
    let seat = prepare::seat(turn, kept.as_ref(), &Wanted::Current).await?;
    let log = prepare::conversation(turn, &seat, kept).await?;
    Ok((seat, log))
}

/// Forgets the last turn and answers its message again.
async fn retry(turn: &Turn) -> Done {
    let (seat, mut log) = opened(turn).await?;
    let own = turn.order.of.turn;
    let inputs = match taken_back(log.entries(), own) {
        Some(inputs) => inputs,
        None => {
            let Some((last, inputs)) = last_turn(log.entries(), own) else {
                return said(NOTHING);
            };
            log.append(Body::Withdrawn { turn: last, inputs: inputs.clone() }).await?;
            inputs
        }
    };
    let events = prepare::messages(turn, &inputs).await?;
    let (last, entries) = log.into_parts();
    let kept = Some(seat.clone().keep(last, entries));
    match prepare::answering(turn, seat, kept, &events, &inputs).await? {
        Ok(agent) => agent.finish().await,
        Err(ending) => Ok((ending, Summary::default())),
    }
}

/// Forgets the last turn, or several.
async fn undo(turn: &Turn, args: &str) -> Done {
    let wanted = if args.is_empty() { Ok(1) } else { args.parse::<usize>() };
    let Ok(wanted @ 1..=UNDO_MAX) = wanted else {
        return said(format!(
            "How many turns? Write /undo, or /undo and a number up to {UNDO_MAX}."
        ));
    };
    let (seat, mut log) = opened(turn).await?;
    let own = turn.order.of.turn;
    let mut echo = Vec::new();
    while forgotten_by(log.entries(), own) < wanted {
        let Some((last, inputs)) = last_turn(log.entries(), own) else { break };
        echo.extend(words_of(log.entries(), last));
        log.append(Body::Withdrawn { turn: last, inputs }).await?;
    }
    let count = forgotten_by(log.entries(), own);
    let (last, entries) = log.into_parts();
    turn.shared.shelf.put(turn.order.of.sid, seat.keep(last, entries));
    if count == 0 {
        return said(NOTHING);
    }
    echo.reverse();
    said(format!("Taken back ({count}):\n{}", crate::text::shorten(echo.join("\n"), ECHO_BYTES)))
}

async fn compress(turn: &Turn) -> Done {
    let (seat, log) = opened(turn).await?;
    let mut agent = prepare::bare(turn, seat, log);
    let before = agent.log.entries().len();
    let compressed = Box::pin(agent.compress()).await?;
    let after = agent.log.entries().len();
    let summary = agent.put_away();
    match compressed {
        Compressed::Stopped(stop) => Ok((Ending::Stopped(stop), summary)),
        Compressed::AsItWas => said(SHORT_ENOUGH),
        Compressed::Shorter => {
            let reply =
                format!("The conversation is shorter now: {after} entries instead of {before}.");
            Ok((Ending::Completed, Summary { reply, ..summary }))
        }
    }
}

async fn model(turn: &Turn, args: &str) -> Done {
    let wanted = match args {
        "" => Wanted::Current,
        "default" => Wanted::Model(None),
        name => match turn.shared.find_model(name) {
            Ok(_) => Wanted::Model(Some(name.to_owned())),
            Err(error) => return said(format!("That model cannot be used: {error:#}")),
        },
    };
    let seat = prepare::seat(turn, None, &wanted).await?;
    // The next turn reads the conversation anew; this one has not looked at it.
    turn.shared.shelf.take(turn.order.of.sid);
    let own = models::chosen(&turn.shared.node.settings.model)
        .unwrap_or_else(|_| "its worker's model".into());
    said(match &seat.profile().model {
        Some(name) => {
            format!("This session is answered by {name}. /model default goes back to {own}.")
        }
        None => format!(
            "This session is answered by {own}. /model openai:NAME or anthropic:NAME chooses another."
        ),
    })
}

async fn resume(turn: &Turn) -> Done {
    turn.shared.shelf.take(turn.order.of.sid);
    let seat = prepare::seat(turn, None, &Wanted::Previous).await?;
    said(if seat.profile().previous.is_some() { BACK } else { NO_EARLIER })
}

/// The inputs of the turn that an earlier attempt of `own` took back.
fn taken_back(entries: &[Arc<Entry>], own: TurnId) -> Option<Vec<Seq>> {
    entries.iter().rev().filter(|entry| entry.turn == own).find_map(|entry| {
        if let Body::Withdrawn { inputs, .. } = &entry.body { Some(inputs.clone()) } else { None }
    })
}

/// How many turns `own` has taken back.
fn forgotten_by(entries: &[Arc<Entry>], own: TurnId) -> usize {
    let by_us =
        |entry: &&Arc<Entry>| entry.turn == own && matches!(entry.body, Body::Withdrawn { .. });
    entries.iter().filter(by_us).count()
}

/// The newest turn before `own` that answered a person, and what it answered.
fn last_turn(entries: &[Arc<Entry>], own: TurnId) -> Option<(TurnId, Vec<Seq>)> {
    let newest =
        entries.iter().rev().find(|entry| entry.turn != own && request(entry).is_some())?.turn;
    entries
        .iter()
        .filter(|entry| entry.turn == newest)
        .find_map(|entry| Some((newest, request(entry)?.0.to_vec())))
}

fn words_of(entries: &[Arc<Entry>], turn: TurnId) -> Option<String> {
    entries
        .iter()
        .filter(|entry| entry.turn == turn)
        .find_map(|entry| Some(request(entry)?.1.to_owned()))
}

/// A person's words that came through the log.
fn request(entry: &Entry) -> Option<(&[Seq], &str)> {
    if let Body::User { inputs, text } = &entry.body
        && !inputs.is_empty()
    {
        return Some((inputs, text));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::tests::{entry, of, says, user};

    #[test]
    fn the_last_turn_is_found_whatever_came_after_it() {
        let entries = [
            entry(of(1, 1), user(1, "first")),
            entry(of(1, 1), says("a", &[])),
            entry(of(5, 1), user(5, "second")),
            entry(of(5, 1), user(7, "a hint")),
            entry(of(5, 2), Body::Resumed),
            entry(of(5, 2), says("b", &[])),
            entry(of(9, 1), Body::Withdrawn { turn: TurnId::new(8), inputs: vec![Seq::new(8)] }),
        ];
        let own = TurnId::new(9);
        assert_eq!(last_turn(&entries, own), Some((TurnId::new(5), vec![Seq::new(5)])));
        assert_eq!(words_of(&entries, TurnId::new(5)).as_deref(), Some("second"));
        assert_eq!(taken_back(&entries, own), Some(vec![Seq::new(8)]));
        assert_eq!((forgotten_by(&entries, own), forgotten_by(&entries, TurnId::new(5))), (1, 0));
        assert_eq!(last_turn(&entries[6..], own), None);
    }
}
