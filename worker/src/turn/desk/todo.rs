//! `todo`: the list of what is to be done. It lives in the conversation: each call gives the whole list, and its result shows it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::object;
use crate::tools::{Output, arguments};

/// How long a list may be.
const ITEMS_MAX: usize = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Done,
    Dropped,
}

#[derive(Deserialize)]
struct Item {
    text: String,
    status: Status,
}

#[derive(Deserialize)]
struct Call {
    items: Vec<Item>,
}

pub(super) fn schema() -> (&'static str, Value) {
    let item = object(
        &["text", "status"],
        json!({
            "text": { "type": "string" },
            "status": { "type": "string", "enum": ["pending", "in_progress", "done", "dropped"] },
        }),
    );
    let items = json!({ "items": { "type": "array", "items": item } });
    (
        "Keeps the list of steps of a longer task. Give the whole list each time.",
        object(&["items"], items),
    )
}

pub(super) fn write(call: &Value) -> Output {
    let Call { items } = match arguments(call) {
        Ok(call) => call,
        Err(output) => return output,
    };
    if items.len() > ITEMS_MAX {
        return Output::failed(format_args!("at most {ITEMS_MAX} items"));
    }
    let line = |item: &Item| {
        let mark = match item.status {
            Status::Pending => "[ ]",
            Status::InProgress => "[>]",
            Status::Done => "[x]",
            Status::Dropped => "[-]",
        };
        format!("{mark} {}", item.text)
    };
    Output::done(items.iter().map(line).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use proto::transcript::CallStatus;

    use super::*;

    #[test]
    fn the_list_is_shown_as_it_was_given() {
        let items =
            json!([{ "text": "a", "status": "done" }, { "text": "b", "status": "in_progress" }]);
        assert_eq!(write(&json!({ "items": items })).text, "[x] a\n[>] b");
        assert_eq!(write(&json!({ "items": [{ "text": "a" }] })).status, CallStatus::Failed);
    }
}
