//! What a strict provider checks in a request: that it streams, that every message has a role and fitting content, and that
//! each tool call is followed at once by exactly one result.

use std::collections::BTreeSet;

use serde_json::Value;

/// Checks a request.
pub(super) fn check(request: &Value) -> Result<(), String> {
    if request["stream"] != true {
        return Err("this server only streams".into());
    }
    if request["model"].as_str().is_none_or(str::is_empty) {
        return Err("model is missing".into());
    }
    let messages = request["messages"].as_array().ok_or("messages is not a list")?;
    let last = messages.last().ok_or("messages is empty")?;
    if last["role"] != "user" && last["role"] != "tool" {
        return Err(format!("the last message is from {}", last["role"]));
    }
    pairs(messages)
}

fn pairs(messages: &[Value]) -> Result<(), String> {
    let mut open = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let call = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(call) {
                return Err(format!("message {index} is a result of {call:?}, which is not open"));
            }
            if !message["content"].is_string() {
                return Err(format!("message {index} is a result without content"));
            }
            continue;
        }
        if let Some(call) = open.first() {
            return Err(format!("message {index} comes before the result of {call:?}"));
        }
        match role {
            "system" | "developer" | "user" if has_content(message) => {}
            "assistant" => open = calls(message, index)?,
            _ => return Err(format!("message {index} has role {role:?} or no content")),
        }
    }
    match open.first() {
        Some(call) => Err(format!("the call {call:?} has no result")),
        None => Ok(()),
    }
}

fn has_content(message: &Value) -> bool {
    message["content"].is_string() || message["content"].is_array()
}

fn calls(message: &Value, index: usize) -> Result<BTreeSet<String>, String> {
    let Some(calls) = message.get("tool_calls").and_then(Value::as_array) else {
        let fine = message["content"].as_str().is_some_and(|text| !text.is_empty());
        return if fine {
            Ok(BTreeSet::new())
        } else {
            Err(format!("message {index} has neither content nor calls"))
        };
    };
    let mut open = BTreeSet::new();
    for call in calls {
        let id = call["id"].as_str().unwrap_or_default().to_owned();
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        if serde_json::from_str::<Value>(arguments).is_err() {
            return Err(format!("the arguments of {id:?} are not JSON"));
        }
        if id.is_empty() || call["function"]["name"].as_str().is_none_or(str::is_empty) {
            return Err(format!("message {index} has a call without id or name"));
        }
        if !open.insert(id.clone()) {
            return Err(format!("message {index} has two calls {id:?}"));
        }
    }
    if open.is_empty() {
        Err(format!("message {index} has an empty list of calls"))
    } else {
        Ok(open)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(messages: Value) -> Value {
        json!({ "model": "m", "stream": true, "messages": messages })
    }

    fn call(id: &str) -> Value {
        json!({ "role": "assistant", "tool_calls": [
            { "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } }
        ]})
    }

    fn result(id: &str) -> Value {
        json!({ "role": "tool", "tool_call_id": id, "content": "" })
    }

    fn user() -> Value {
        json!({ "role": "user", "content": "hello" })
    }

    #[test]
    fn paired_calls_pass() {
        check(&request(json!([user(), call("1"), result("1"), user()]))).unwrap();
    }

    #[test]
    fn anything_else_does_not() {
        for messages in [
            json!([]),
            json!([user(), call("1")]),
            json!([user(), call("1"), user()]),
            json!([user(), result("1")]),
            json!([user(), call("1"), result("2")]),
            json!([user(), call("1"), result("1"), result("1")]),
            json!([user(), { "role": "assistant", "content": "" }, user()]),
            json!([user(), { "role": "assistant", "content": "hi" }]),
        ] {
            assert!(check(&request(messages.clone())).is_err(), "{messages}");
        }
    }
}
