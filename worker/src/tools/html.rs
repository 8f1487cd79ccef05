//! HTML to readable text, simply: tags go, what separates becomes a line, scripts and styles disappear.

/// Elements whose content is not for readers.
const HIDDEN: [&str; 6] = ["script", "style", "noscript", "template", "svg", "head"];
/// Elements that begin a new line.
const BLOCKS: [&str; 22] = [
    "p",
    "div",
    "br",
    "li",
    "ul",
    "ol",
    "tr",
    "table",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "section",
    "article",
    "header",
    "footer",
    "nav",
    "pre",
    "blockquote",
    "hr",
];

/// The text of a page.
pub(super) fn text(html: &str) -> String {
    let mut out = String::with_capacity(html.len() / 4);
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        out += &rest[..at];
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let Some(end) = rest.find('>') else { break };
        let tag = &rest[1..end];
        rest = &rest[end + 1..];
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        if !tag.starts_with('/') && !tag.ends_with('/') && HIDDEN.contains(&name.as_str()) {
            rest = after_close(rest, &name);
        } else if BLOCKS.contains(&name.as_str()) {
            out.push('\n');
        } else if matches!(name.as_str(), "td" | "th") {
            out.push(' ');
        }
    }
    if !rest.starts_with('<') {
        out += rest;
    }
    tidy(&unescape(&out))
}

/// What follows the end tag of an element.
fn after_close<'a>(html: &'a str, name: &str) -> &'a str {
    let mut rest = html;
    while let Some(at) = rest.find("</") {
        rest = &rest[at + 2..];
        let found = rest.get(..name.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(name));
        if found {
            return rest.find('>').map_or("", |end| &rest[end + 1..]);
        }
    }
    ""
}

/// One space between words, at most one empty line between paragraphs.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    for line in text.lines() {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            gap = !out.is_empty();
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
            if gap {
                out.push('\n');
            }
        }
        gap = false;
        out += &line;
    }
    out
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out += &rest[..at];
        rest = &rest[at + 1..];
        let end = rest.bytes().take(10).position(|byte| byte == b';');
        match end.and_then(|end| Some((entity(&rest[..end])?, end))) {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => out.push('&'),
        }
    }
    out + rest
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "mdash" => '—',
        "ndash" => '–',
        "hellip" => '…',
        "copy" => '©',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn readers_see_words_and_lines() {
        let html = "<html><head><title>x</title><style>p{}</style></head><body><!-- <p>no</p> -->\
                    <h1>A &amp; B</h1><p>one   <b>two</b>&nbsp;three<br>four</p><script>if (a < b) {}</script>\
                    <ul><li>x</li><li>&#x41;&#66;</li></ul>&unknown; 1 < 2";
        assert_eq!(text(html), "A & B\n\none two three\nfour\n\nx\n\nAB\n\n&unknown; 1");
        assert_eq!(text("plain"), "plain");
        assert_eq!(text("<p>é</p><svg/>ü<script>never closed"), "é\nü");
    }
}
