//! Cutting text without cutting a character.

/// At most the first `bytes` of a text.
#[must_use]
pub(crate) fn start(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// At most the last `bytes` of a text.
#[must_use]
pub(crate) fn end(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// The beginning and the end of a text that is longer than `bytes`, with a note in between that says what is missing.
#[must_use]
pub(crate) fn shorten(text: String, bytes: usize) -> String {
    if text.len() <= bytes {
        return text;
    }
    let (head, tail) = (start(&text, bytes / 2), end(&text, bytes / 2));
    let missing = text.len() - head.len() - tail.len();
    format!("{head}\n[… {missing} bytes left out …]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_stay_whole() {
        assert_eq!(start("aéb", 2), "a");
        assert_eq!(end("aéb", 2), "b");
        assert_eq!(shorten("é".repeat(10), 8), "éé\n[… 12 bytes left out …]\néé");
        assert_eq!(shorten("short".into(), 8), "short");
    }
}
