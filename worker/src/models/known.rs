//! What is known of models by their names: how much they read, and whether they see pictures. A wrong guess does no harm: what is
//! too long is compressed when the provider says so.

/// What is assumed of a model that is not known.
const CONTEXT: u64 = 128_000;

/// Beginnings of names, the longer ones first, with how many tokens those models read.
const CONTEXTS: [(&str, u64); 12] = [
    ("gpt-4.1", 1_000_000),
    ("gpt-5", 272_000),
    ("gpt-4o", 128_000),
    ("gpt-4", 8_192),
    ("gpt-3.5", 16_385),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("claude", 200_000),
    ("gemini", 1_000_000),
    ("grok", 256_000),
    ("deepseek", 128_000),
];

/// Beginnings of names of models that see.
const SEEING: [&str; 11] = [
    "gpt-4o", "gpt-4.1", "gpt-5", "o1", "o3", "o4", "claude", "gemini", "pixtral", "llava",
    "grok-4",
];

/// How many tokens a model reads.
pub(super) fn context(model: &str) -> u64 {
    let name = base(model);
    CONTEXTS
        .iter()
        .find(|(begin, _)| name.starts_with(begin))
        .map_or(CONTEXT, |(_, tokens)| *tokens)
}

/// Whether a model sees pictures.
pub(super) fn sees(model: &str) -> bool {
    let name = base(model);
    SEEING.iter().any(|begin| name.starts_with(begin))
        || name.contains("-vl")
        || name.contains("vision")
}

/// The name without the vendor in front (`openai/gpt-5`).
fn base(model: &str) -> String {
    model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell() {
        assert_eq!(context("anthropic/Claude-sonnet-4-5"), 200_000);
        assert_eq!(context("gpt-4-turbo"), 8_192);
        assert_eq!(context("gpt-4o-mini"), 128_000);
        assert_eq!(context("mine"), CONTEXT);
        assert!(sees("qwen2.5-vl-7b") && sees("gpt-5-mini") && !sees("gpt-3.5-turbo"));
    }
}
