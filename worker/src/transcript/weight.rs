//! About how many tokens an entry takes: four ASCII characters are one, any other character is one, and each entry has a little
//! around it. That is near enough for prose, code and Chinese; where the provider has counted, its number is used instead.

use proto::event::Media;
use proto::transcript::{Body, Entry};

/// What stands around an entry.
const AROUND: u64 = 8;
/// A picture, as most providers count it.
const PICTURE: u64 = 1500;

/// The tokens of an entry.
pub(crate) fn tokens(entry: &Entry) -> u64 {
    AROUND
        + match &entry.body {
            Body::System { text } | Body::User { text, .. } => of_text(text),
            Body::Assistant { text, calls, .. } => {
                let call = |call: &proto::transcript::ToolCall| {
                    AROUND + of_text(&call.name) + of_text(&call.arguments)
                };
                of_text(text) + calls.iter().map(call).sum::<u64>()
            }
            Body::Result { output, .. } => of_text(output),
            Body::Attached { media } => media.iter().map(of_media).sum(),
            Body::Compressed { entries } => entries.iter().map(tokens).sum(),
            Body::Resumed | Body::Withdrawn { .. } => 0,
        }
}

fn of_text(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let other = text.chars().filter(|c| !c.is_ascii()).count();
    u64::try_from(ascii / 4 + other).unwrap_or(u64::MAX)
}

const fn of_media(_: &Media) -> u64 {
    PICTURE
}

#[cfg(test)]
mod tests {
    use super::super::opening::tests::{entry, of, user};
    use super::*;

    #[test]
    fn prose_and_chinese_count_about_right() {
        let count = |text: &str| tokens(&entry(of(1, 1), user(1, text))) - AROUND;
        assert_eq!(count(&"word ".repeat(80)), 100);
        assert_eq!(count("\u{4f60}\u{597d}"), 2);
    }
}
