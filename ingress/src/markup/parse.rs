//! From Markdown to the tree. Anything is legal Markdown, so this never fails; what has no place in the tree stays as text.

use std::sync::Arc;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::{Block, Item, Marker, Span, Style};

/// How deep quotes and lists may stand inside each other; what is deeper stands beside. Bounds every walk through the tree.
const DEPTH_MAX: usize = 4;
/// The longest name of a language that a code block keeps, in bytes.
const LANG_MAX: usize = 32;

/// Parses a text.
pub(super) fn parse(text: &str) -> Vec<Block> {
    let options =
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut builder = Builder::default();
    for event in Parser::new_ext(text, options) {
        builder.event(event);
    }
    builder.finish()
}

/// A container that is still open, with what it holds so far.
enum Open {
    Quote(Vec<Block>),
    List {
        next: Option<u64>,
        items: Vec<Item>,
    },
    Item(Marker, Vec<Block>),
    /// Too deep to be a container: its content goes to the one around it.
    Through,
}

/// What text is collected for.
enum Leaf {
    Paragraph,
    Heading(u8),
    Code(String),
    Cell,
}

#[derive(Default)]
struct Builder {
    done: Vec<Block>,
    open: Vec<Open>,
    leaf: Option<Leaf>,
    spans: Vec<Span>,
    rows: Vec<Vec<Vec<Span>>>,
    bold: usize,
    italic: usize,
    strike: usize,
    links: Vec<Arc<str>>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.text(&text, false);
            }
            Event::Code(text) => self.text(&text, true),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, true),
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]"), false),
            // People who write to chats mean the lines that they see.
            Event::SoftBreak | Event::HardBreak => self.text("\n", false),
            Event::Rule => self.push(Block::Rule),
            Event::TaskListMarker(done) => {
                if let Some(Open::Item(marker, _)) = self.open.last_mut() {
                    *marker = Marker::Task { done };
                }
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin(Leaf::Paragraph),
            Tag::Heading { level, .. } => self.begin(Leaf::Heading(level as u8)),
            Tag::CodeBlock(kind) => {
                let lang = match kind {
                    CodeBlockKind::Fenced(info) => language(&info),
                    CodeBlockKind::Indented => String::new(),
                };
                self.begin(Leaf::Code(lang));
            }
            Tag::BlockQuote(_) => self.enter(Open::Quote(Vec::new())),
            Tag::List(next) => self.enter(Open::List { next, items: Vec::new() }),
            Tag::Item => {
                let marker = match self.open.last_mut() {
                    Some(Open::List { next: Some(number), .. }) => {
                        let marker = Marker::Number(*number);
                        *number = number.saturating_add(1);
                        marker
                    }
                    _ => Marker::Bullet,
                };
                self.enter(Open::Item(marker, Vec::new()));
            }
            Tag::TableHead | Tag::TableRow => {
                self.flush();
                self.rows.push(Vec::new());
            }
            Tag::TableCell => self.begin(Leaf::Cell),
            Tag::Strong => self.bold += 1,
            Tag::Emphasis => self.italic += 1,
            Tag::Strikethrough => self.strike += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.as_ref().into());
            }
            Tag::Table(_)
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.flush(),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Strikethrough => self.strike = self.strike.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => {
                self.links.pop();
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => self.leave(),
            TagEnd::Table => {
                let rows = std::mem::take(&mut self.rows);
                self.push(Block::Table(rows));
            }
            TagEnd::TableCell => {
                let spans = self.take_spans();
                self.leaf = None;
                if let Some(row) = self.rows.last_mut() {
                    row.push(spans);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {}
            TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::CodeBlock
            | TagEnd::HtmlBlock
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => self.flush(),
        }
    }

    fn begin(&mut self, leaf: Leaf) {
        self.flush();
        self.leaf = Some(leaf);
    }

    fn text(&mut self, text: &str, code: bool) {
        // The text of a tight list's item has no paragraph around it.
        if self.leaf.is_none() {
            self.leaf = Some(Leaf::Paragraph);
        }
        let style = if matches!(self.leaf, Some(Leaf::Code(_))) {
            Style::default()
        } else {
            Style {
                bold: self.bold > 0,
                italic: self.italic > 0,
                strike: self.strike > 0,
                code,
                link: self.links.last().cloned(),
            }
        };
        push_span(&mut self.spans, Span { text: text.to_owned(), style });
    }

    fn take_spans(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }

    /// Ends the leaf that is open, if one is.
    fn flush(&mut self) {
        let mut spans = self.take_spans();
        let Some(leaf) = self.leaf.take() else { return };
        let block = match leaf {
            Leaf::Code(lang) => {
                let mut text: String = spans.into_iter().map(|span| span.text).collect();
                if text.ends_with('\n') {
                    text.pop();
                }
                Block::Code { lang, text }
            }
            Leaf::Paragraph | Leaf::Cell | Leaf::Heading(_) => {
                trim_end(&mut spans);
                if spans.is_empty() {
                    return;
                }
                match leaf {
                    Leaf::Heading(level) => Block::Heading(level, spans),
                    Leaf::Paragraph | Leaf::Cell | Leaf::Code(_) => Block::Paragraph(spans),
                }
            }
        };
        self.place(block);
    }

    fn push(&mut self, block: Block) {
        self.flush();
        self.place(block);
    }

    fn place(&mut self, block: Block) {
        for open in self.open.iter_mut().rev() {
            match open {
                Open::Quote(blocks) | Open::Item(_, blocks) => return blocks.push(block),
                Open::List { items, .. } => {
                    return items.push(Item { marker: Marker::Continued, blocks: vec![block] });
                }
                Open::Through => {}
            }
        }
        self.done.push(block);
    }

    fn enter(&mut self, open: Open) {
        self.flush();
        let deep = self.open.len() >= DEPTH_MAX * 2;
        // An item needs its list, and a list that went through has none.
        let homeless =
            matches!(open, Open::Item(..)) && !matches!(self.open.last(), Some(Open::List { .. }));
        self.open.push(if deep || homeless { Open::Through } else { open });
    }

    fn leave(&mut self) {
        self.flush();
        match self.open.pop() {
            Some(Open::Quote(blocks)) if !blocks.is_empty() => self.place(Block::Quote(blocks)),
            Some(Open::List { items, .. }) if !items.is_empty() => self.place(Block::List(items)),
            Some(Open::Item(marker, blocks)) => {
                if let Some(Open::List { items, .. }) = self.open.last_mut() {
                    items.push(Item { marker, blocks });
                }
            }
            Some(Open::Quote(_) | Open::List { .. } | Open::Through) | None => {}
        }
    }

    fn finish(mut self) -> Vec<Block> {
        self.flush();
        while !self.open.is_empty() {
            self.leave();
        }
        self.done
    }
}

/// Adds a span, to the last one if both look the same.
pub(super) fn push_span(spans: &mut Vec<Span>, span: Span) {
    match spans.last_mut() {
        _ if span.text.is_empty() => {}
        Some(last) if last.style == span.style => last.text += &span.text,
        _ => spans.push(span),
    }
}

fn trim_end(spans: &mut Vec<Span>) {
    while let Some(last) = spans.last_mut() {
        last.text.truncate(last.text.trim_end().len());
        if !last.text.is_empty() {
            return;
        }
        spans.pop();
    }
}

/// The language of a fence: its first word, of plain letters.
fn language(info: &str) -> String {
    let legal = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '_' | '#' | '.');
    info.trim_start().chars().take_while(legal).take(LANG_MAX).collect()
}
