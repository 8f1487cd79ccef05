//! Text that grows piece by piece, where pieces may be lost: the drafts of a turn, and what is left to say at its end.

/// How much streamed text is kept, in bytes: more than any answer, and a bound on a turn that never ends.
const BYTES_MAX: usize = 1024 * 1024;
/// How many bytes at the end of what was shown must be the beginning of the reply, for the reply to count as shown so far.
const OVERLAP_MIN: usize = 8;
/// How long an overlap is looked for: bounds the time that the search takes.
const OVERLAP_MAX: usize = 16 * 1024;

/// The text of one attempt as far as it is known without a gap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growing {
    text: String,
    /// A piece was lost: what follows cannot be placed.
    broken: bool,
}

impl Growing {
    /// Adds a piece that begins at `offset`, and returns what is new.
    pub(crate) fn push(&mut self, offset: u64, piece: &str) -> &str {
        let known = self.text.len();
        let skip = usize::try_from((known as u64).saturating_sub(offset)).unwrap_or(usize::MAX);
        let new = piece.get(skip.min(piece.len())..);
        match new {
            _ if self.broken => {}
            Some(_) if offset > known as u64 => self.broken = true,
            Some(new) if known + new.len() > BYTES_MAX => self.broken = true,
            Some(new) => self.text.push_str(new),
            // It overlaps in the middle of a character: not the text that we know.
            None => self.broken = true,
        }
        &self.text[known..]
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
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
        assert_eq!(text.push(0, "Hel"), "Hel");
        assert_eq!(text.push(3, "lo "), "lo ");
        assert_eq!(text.push(3, "lo "), "", "a repeated piece adds nothing");
        assert_eq!(text.push(4, "o wörld"), "wörld", "an overlapping piece adds its end");
        assert_eq!(text.as_str(), "Hello wörld");
    }

    #[test]
    fn after_a_gap_nothing_is_added() {
        let mut text = Growing::default();
        text.push(0, "one ");
        assert_eq!(text.push(8, "three "), "");
        assert_eq!(text.push(4, "two "), "", "it could be placed, but the reply will have it all");
        assert_eq!(text.as_str(), "one ");
    }

    #[test]
    fn a_piece_that_splits_a_character_breaks_the_text_and_nothing_else() {
        let mut text = Growing::default();
        text.push(0, "a");
        assert_eq!(text.push(0, "é"), "");
        assert_eq!(text.as_str(), "a");
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
        fn however_a_text_is_cut_and_repeated_it_comes_out_once(
            text in ".{0,60}",
            cuts in proptest::collection::vec((0usize..60, 0usize..20), 0..12),
        ) {
            let mut whole = Growing::default();
            let mut out = String::new();
            let bounds: Vec<usize> =
                text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            for (at, len) in cuts {
                let from = bounds[at.min(bounds.len() - 1)];
                let to = bounds[(at + len).min(bounds.len() - 1)];
                out += whole.push(from as u64, &text[from..to]);
            }
            proptest::prop_assert!(text.starts_with(&out));
            out += &rest_of(&text, &out);
            proptest::prop_assert_eq!(out, text);
        }
    }
}
