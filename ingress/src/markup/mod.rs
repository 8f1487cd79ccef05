//! Text as platforms want it: the agent's Markdown is parsed once into a tree, cut into pages that fit, and written in the
//! platform's dialect.
//!
//! ```text
//! Markdown --parse--> blocks --pages--> pages of blocks --write--> Telegram HTML | mrkdwn | Discord | HTML | plain
//! ```
//!
//! Cutting works on the tree: each page is complete in itself, whatever it is written in. Text is never lost by it, and the
//! time it takes is bounded by the length of the text.

mod cut;
mod pages;
mod parse;
mod table;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use self::pages::{Page, Pages};

/// How a platform marks text up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// No marks at all.
    Plain,
    /// The few tags of HTML that Telegram knows.
    TelegramHtml,
    /// What Slack calls mrkdwn.
    Mrkdwn,
    /// The Markdown of Discord.
    Discord,
    /// HTML for a page or a mail: of Matrix's list of tags.
    Html,
}

impl Dialect {
    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::TelegramHtml => "Telegram HTML",
            Self::Mrkdwn => "mrkdwn",
            Self::Discord => "Discord Markdown",
            Self::Html => "HTML",
        }
    }
}

/// How a run of text looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    bold: bool,
    italic: bool,
    strike: bool,
    code: bool,
    link: Option<Arc<str>>,
}

/// A run of text of one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    text: String,
    style: Style,
}

/// What stands before an item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Bullet,
    Number(u64),
    Task {
        done: bool,
    },
    /// Nothing: the item began on an earlier page.
    Continued,
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    marker: Marker,
    blocks: Vec<Block>,
}

/// A piece of a text, as high as a paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Paragraph(Vec<Span>),
    Heading(u8, Vec<Span>),
    Code {
        lang: String,
        text: String,
    },
    Quote(Vec<Self>),
    List(Vec<Item>),
    /// Rows of cells; the first is the head.
    Table(Vec<Vec<Vec<Span>>>),
    Rule,
}
