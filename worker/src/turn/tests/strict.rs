//! What a strict provider checks of a conversation before it answers, in both forms.

use std::collections::BTreeSet;

use serde_json::Value;

/// The roles and call ids of a request in the OpenAI form.
pub(super) fn openai(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("no messages")?;
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Err(format!("{at}: a result without a call: {id}"));
            }
            continue;
        }
        if !open.is_empty() {
            return Err(format!("{at}: no result for {open:?}"));
        }
        let calls = message["tool_calls"].as_array();
        let is_blank = message["content"].as_str().is_none_or(str::is_empty)
            && message["content"].as_array().is_none_or(Vec::is_empty);
        match (role, calls) {
            ("system", None) if at == 0 && !is_blank => {}
            ("user", None) if !is_blank => {}
            ("assistant", None) if !is_blank => {}
            ("assistant", Some(calls)) if !calls.is_empty() => {
                let ids = calls.iter().filter_map(|call| call["id"].as_str());
                open = ids.collect();
                if open.len() != calls.len() {
                    return Err(format!("{at}: two calls of one id"));
                }
            }
            _ => return Err(format!("{at}: not allowed here: {message}")),
        }
    }
    let last = messages.last().map(|message| &message["role"]);
    match last.and_then(Value::as_str) {
        Some("user" | "tool") if open.is_empty() => Ok(()),
        last => Err(format!("ends with {last:?}, open {open:?}")),
    }
}

/// The same in the Anthropic form, where roles alternate and results begin the answer to their calls.
pub(super) fn anthropic(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("no messages")?;
    let mut calls: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let wanted = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != wanted {
            return Err(format!("{at}: not {wanted}"));
        }
        let blocks = message["content"].as_array().ok_or("no blocks")?;
        if blocks.is_empty() {
            return Err(format!("{at}: empty"));
        }
        let of = |kind: &'static str, key: &'static str| {
            blocks
                .iter()
                .filter(move |block| block["type"] == kind)
                .filter_map(move |block| block[key].as_str())
        };
        let results: Vec<&str> = of("tool_result", "tool_use_id").collect();
        let leads = blocks.iter().take(results.len()).all(|block| block["type"] == "tool_result");
        let answered: BTreeSet<&str> = results.iter().copied().collect();
        if answered != calls || answered.len() != results.len() || !leads {
            return Err(format!("{at}: results {results:?} for calls {calls:?}"));
        }
        if of("text", "text").any(|text| text.trim().is_empty()) {
            return Err(format!("{at}: empty text"));
        }
        let made: Vec<&str> = of("tool_use", "id").collect();
        calls = made.iter().copied().collect();
        if calls.len() != made.len() || (wanted == "user" && !made.is_empty()) {
            return Err(format!("{at}: calls {made:?}"));
        }
    }
    let marks = body.to_string().matches("cache_control").count();
    if marks > 4 {
        return Err(format!("{marks} cache marks"));
    }
    if calls.is_empty() && messages.len() % 2 == 1 { Ok(()) } else { Err("ends badly".into()) }
}

#[cfg(test)]
mod checks {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_refuses_what_providers_refuse() {
        let call = json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "a" }] });
        let user = json!({ "role": "user", "content": "hi" });
        let result = json!({ "role": "tool", "tool_call_id": "a", "content": "x" });
        let ok = |messages: &[&Value]| openai(&json!({ "messages": messages })).is_ok();
        assert!(ok(&[&user, &call, &result]));
        assert!(!ok(&[&user, &call, &user]));
        assert!(!ok(&[&user, &call, &result, &result]));
        assert!(!ok(&[&user, &call]));
        let said = |role: &str, block: Value| json!({ "role": role, "content": [block] });
        let text = json!({ "type": "text", "text": "hi" });
        let used = json!({ "type": "tool_use", "id": "a" });
        let answered = json!({ "type": "tool_result", "tool_use_id": "a" });
        let ok = |messages: &[Value]| anthropic(&json!({ "messages": messages })).is_ok();
        let (one, two) = (said("user", text.clone()), said("assistant", used));
        assert!(ok(&[one.clone(), two.clone(), said("user", answered)]));
        assert!(!ok(&[one.clone(), two, said("user", text)]));
        assert!(!ok(&[one.clone(), one]));
    }
}
