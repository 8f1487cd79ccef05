//! What an agent says when it wants to say nothing: such a reply is not shown.

/// The markers, in small letters.
const MARKERS: [&str; 9] = [
    "[silent]",
    "silent",
    "*silent*",
    "*(silent)*",
    "no_reply",
    "no reply",
    "(no response)",
    "🔇",
    "...",
];

/// Whether a reply says that there is none.
pub(crate) fn is_silence(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    text.is_empty() || MARKERS.contains(&text.as_str())
}

/// Whether a text that still grows may turn out to be one of these.
pub(crate) fn may_become_silence(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    MARKERS.iter().any(|marker| marker.starts_with(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_marker_alone_is_silence() {
        for text in ["", " ", "[SILENT]", "No_Reply\n", "NO REPLY", "🔇", "..."] {
            assert!(is_silence(text), "{text:?}");
        }
        for text in ["silently", "[SILENT] but", "no reply was sent", "....", "ok"] {
            assert!(!is_silence(text), "{text:?}");
        }
    }

    #[test]
    fn the_beginning_of_a_marker_is_held_back() {
        assert!(may_become_silence("[SI"));
        assert!(may_become_silence("no"));
        assert!(!may_become_silence("not"));
        assert!(!may_become_silence("Hello"));
    }
}
