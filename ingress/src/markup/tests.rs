//! The pages of texts, held against a strict reader of each dialect.
