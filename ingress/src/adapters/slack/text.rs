//! The text of Slack's messages, in the words that people see: its escapes and its links in angle brackets, and our own name.

use proto::command::{Parsed, parse};

/// What a message says, and whether it mentions this user.
pub(super) fn read(text: &str, me: &str) -> (String, bool) {
    let (mut said, mut mentioned) = (String::with_capacity(text.len()), false);
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        unescape(&mut said, &rest[..at]);
        rest = &rest[at..];
        let Some(end) = rest.find('>') else { break };
        let inside = &rest[1..end];
        rest = &rest[end + 1..];
        let (what, label) = match inside.split_once('|') {
            Some((what, label)) => (what, Some(label)),
            None => (inside, None),
        };
        if what.strip_prefix('@') == Some(me) {
            mentioned = true;
            // What stood around it stands together now.
            if said.is_empty() || said.ends_with(' ') {
                rest = rest.strip_prefix(' ').unwrap_or(rest);
            }
            continue;
        }
        link(&mut said, what, label);
    }
    unescape(&mut said, rest);
    let said = if mentioned { said.trim().to_owned() } else { said };
    (command(said), mentioned)
}

/// What stands in angle brackets.
fn link(said: &mut String, what: &str, label: Option<&str>) {
    let (mark, name) = match what.chars().next() {
        Some('@') => ("@", &what[1..]),
        Some('#') => ("#", &what[1..]),
        // `<!here>`, `<!subteam^S012|@team>`, `<!date^…|yesterday>`: the label, where there is one, is what people see.
        Some('!') => ("@", what[1..].split('^').next().unwrap_or_default()),
        _ => {
            unescape(said, what);
            let shown = what.strip_prefix("mailto:").unwrap_or(what);
            if let Some(label) = label.filter(|label| *label != shown && !shown.ends_with(label)) {
                said.push_str(" (");
                unescape(said, label);
                said.push(')');
            }
            return;
        }
    };
    if let Some(label) = label {
        let has_mark = label.starts_with(mark) || what.starts_with("!date");
        said.push_str(if has_mark { "" } else { mark });
        unescape(said, label);
    } else {
        said.push_str(mark);
        unescape(said, name);
    }
}

fn unescape(said: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        said.push_str(&rest[..at]);
        rest = &rest[at..];
        let escapes = [("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&')];
        let found = escapes.iter().find(|(escape, _)| rest.starts_with(escape));
        let (length, c) = found.map_or((1, '&'), |(escape, c)| (escape.len(), *c));
        said.push(c);
        rest = &rest[length..];
    }
    said.push_str(rest);
}

/// Slack keeps what begins with a slash to itself, so that commands are typed with `!` as well: `!stop` is `/stop`.
fn command(text: String) -> String {
    let as_command = text.trim_start().strip_prefix('!').map(|rest| format!("/{rest}"));
    match as_command {
        Some(slashed) if matches!(parse(&slashed), Parsed::Command(_)) => slashed,
        Some(_) | None => text,
    }
}

/// Text as Slack must be given it.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(text: &str, expected: &str) {
        assert_eq!(read(text, "U0ME"), (expected.to_owned(), text.contains("U0ME")), "{text}");
    }

    #[test]
    fn people_read_neither_escapes_nor_brackets() {
        says("a &lt;b&gt; &amp;amp; c & d", "a <b> &amp; c & d");
        says("see <https://a.b/c?d=1&amp;e=2>", "see https://a.b/c?d=1&e=2");
        says("see <https://a.b/c|the page>", "see https://a.b/c (the page)");
        says("<http://a.b|a.b>", "http://a.b");
        says("<#C01|general> and <#C02>", "#general and #C02");
        says("<@U01|ada> and <@U02>", "@ada and @U02");
        says("<!here> <!subteam^S1|@team> <!date^1^{date}|today>", "@here @team today");
        says("an open < bracket", "an open < bracket");
    }

    #[test]
    fn our_own_name_is_taken_out() {
        says("<@U0ME> hello", "hello");
        says("<@U0ME|talaria>  hello <@U0ME>", "hello");
        says("hey <@U0ME> you", "hey you");
        says("<@U0ME> /stop", "/stop");
    }

    #[test]
    fn commands_may_be_typed_with_another_mark() {
        says("!stop", "/stop");
        says("<@U0ME> !queue more", "/queue more");
        says("!important", "!important");
        says("! stop", "! stop");
    }
}
