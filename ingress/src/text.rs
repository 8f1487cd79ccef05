//! Text that grows piece by piece, where pieces may be lost: the drafts of a turn, and what is left to say at its end.

/// How much streamed text is kept, in bytes: more than any answer, and a bound on a turn that never ends.
const BYTES_MAX: usize = 1024 * 1024;
/// How many bytes at the end of what was shown must be the beginning of the reply, for the reply to count as shown so far.
const OVERLAP_MIN: usize = 8;
/// How long an overlap is looked for: bounds the time that the search takes.
const OVERLAP_MAX: usize = 16 * 1024;

/// The text of one attempt as far as it is known without a gap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growing(String);

impl Growing {
    /// Takes a piece that begins at `offset`. One that begins before the end of what is known takes the place of what was said
    /// from there on: the model was asked again. After a lost piece nothing can be placed until then. Returns where the text is
    /// new from, if it changed.
    pub(crate) fn push(&mut self, offset: u64, piece: &str) -> Option<usize> {
        let from = usize::try_from(offset).ok()?;
        let known = self.0.get(from..)?;
        if known == piece || from + piece.len() > BYTES_MAX {
            return None;
        }
        self.0.truncate(from);
        self.0.push_str(piece);
        Some(from)
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is left to say of a reply after `shown` was shown: all of it or its end, nothing twice. What was shown may be more
/// than the reply (words before a tool call), less (lost pieces), or the words of an attempt that died.
pub(crate) fn rest_of(reply: &str, shown: &str) -> String {
    if let Some(rest) = reply.strip_prefix(shown) {
        return rest.to_owned();
    }
    if shown.trim_end().ends_with(reply.trim_end()) {
        return String::new();
    }
    let longest = reply.len().min(shown.len()).min(OVERLAP_MAX);
    let overlap = (OVERLAP_MIN..=longest)
        .rev()
        .filter(|&n| reply.is_char_boundary(n))
        .find(|&n| shown.as_bytes().ends_with(&reply.as_bytes()[..n]));
    match overlap {
        Some(n) => reply[n..].to_owned(),
        None => format!("\n\n{reply}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_by_their_offsets() {
        let mut text = Growing::default();
        assert_eq!(text.push(0, "Hel"), Some(0));
        assert_eq!(text.push(3, "lo "), Some(3));
        assert_eq!(text.push(3, "lo "), None, "a repeated piece changes nothing");
        assert_eq!(text.push(6, "wörld"), Some(6));
        assert_eq!(text.as_str(), "Hello wörld");
    }

    #[test]
    fn a_piece_from_further_back_takes_the_place_of_what_was_said() {
        let mut text = Growing::default();
        text.push(0, "Let me see. One, tw");
        assert_eq!(text.push(12, "Five"), Some(12));
        assert_eq!(text.push(16, "."), Some(16));
        assert_eq!(text.as_str(), "Let me see. Five.");
        assert_eq!(text.push(0, ""), Some(0), "also all of it");
        assert_eq!(text.as_str(), "");
    }

    #[test]
    fn after_a_gap_nothing_is_added_until_the_model_is_asked_again() {
        let mut text = Growing::default();
        text.push(0, "one ");
        assert_eq!(text.push(8, "three "), None);
        assert_eq!(text.push(14, "four "), None);
        assert_eq!(text.as_str(), "one ");
        assert_eq!(text.push(2, "ce"), Some(2));
        assert_eq!(text.push(4, " more"), Some(4));
        assert_eq!(text.as_str(), "once more");
    }

    #[test]
    fn a_piece_that_splits_a_character_breaks_the_text_and_nothing_else() {
        let mut text = Growing::default();
        text.push(0, "é");
        assert_eq!(text.push(1, "e"), None);
        assert_eq!(text.as_str(), "é");
    }

    #[test]
    fn the_rest_of_a_reply_is_what_was_not_shown() {
        assert_eq!(rest_of("Hello world", ""), "Hello world");
        assert_eq!(rest_of("Hello world", "Hello "), "world");
        assert_eq!(rest_of("Hello world", "Hello world"), "");
        assert_eq!(rest_of("It is five.", "Let me see.\n\nIt is five."), "");
        assert_eq!(rest_of("The answer is five.", "Let me see.\n\nThe answer"), " is five.");
        assert_eq!(rest_of("Something else.", "Words of an attempt"), "\n\nSomething else.");
        assert_eq!(rest_of("a b", "the last letter is a"), "\n\na b", "one letter is chance");
    }

    proptest::proptest! {
        #[test]
        fn a_text_is_what_its_pieces_say_last(
            pieces in proptest::collection::vec((0usize..40, ".{0,9}"), 0..20),
        ) {
            let mut whole = Growing::default();
            let mut naive = String::new();
            let mut shown = String::new();
            for (at, piece) in pieces {
                let bounds: Vec<usize> =
                    naive.char_indices().map(|(at, _)| at).chain([naive.len()]).collect();
                let at = bounds[at.min(bounds.len() - 1)];
                naive.replace_range(at.., &piece);
                if let Some(from) = whole.push(at as u64, &piece) {
                    shown.replace_range(from.., &whole.as_str()[from..]);
                }
            }
            proptest::prop_assert_eq!(whole.as_str(), &naive);
            proptest::prop_assert_eq!(shown, naive);
        }

        #[test]
        fn what_was_shown_and_the_rest_are_the_reply(text in ".{0,60}", cut in 0usize..60) {
            let shown: String = text.chars().take(cut).collect();
            proptest::prop_assert_eq!(format!("{shown}{}", rest_of(&text, &shown)), text);
        }
    }
}
