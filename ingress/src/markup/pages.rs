//! The pages of a text: each fits into one message of the platform, and is written in its dialect and plain.

use std::collections::VecDeque;

use super::cut::{cut, loosen};
use super::parse::{parse, push_span};
use super::write::{visible, write};
use super::{Block, Dialect, Span, Style};
use crate::adapter::TextLimit;

/// The smallest limit that can be worked with.
const LIMIT_MIN: usize = 64;
/// What is kept free on each page for its number, with what a dialect puts around it.
const NUMBER: usize = 24;
/// A page that is fuller than this part of it is left alone rather than begun to be filled with a block that would be cut.
const FULL: usize = 2;

/// A message's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// In the platform's dialect.
    pub(crate) markup: String,
    /// Without marks. Fits as well.
    pub(crate) plain: String,
}

/// How texts are made into pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pages {
    dialect: Dialect,
    limit: TextLimit,
}

impl Pages {
    /// None if so little fits into a message that no text can be divided.
    pub(crate) fn new(dialect: Dialect, limit: TextLimit) -> Option<Self> {
        (limit.max >= LIMIT_MIN).then_some(Self { dialect, limit })
    }

    /// The pages of a text, with their numbers where there are several. No page for a text without content.
    pub(crate) fn of(self, text: &str) -> Vec<Page> {
        self.made(text, true)
    }

    /// The pages of a text that is not whole yet: cut as they will be when it is, but without numbers.
    pub(crate) fn of_draft(self, text: &str) -> Vec<Page> {
        self.made(text, false)
    }

    fn made(self, text: &str, numbered: bool) -> Vec<Page> {
        let blocks = parse(text);
        if blocks.is_empty() {
            return Vec::new();
        }
        if self.size(&blocks) <= self.limit.max {
            return vec![self.page(&blocks)];
        }
        let mut pages = self.divided(blocks);
        let count = pages.len();
        for (index, blocks) in pages.iter_mut().enumerate().filter(|_| numbered) {
            number(blocks, index + 1, count);
        }
        pages.iter().map(|blocks| self.page(blocks)).collect()
    }

    fn page(self, blocks: &[Block]) -> Page {
        Page { markup: write(self.dialect, blocks), plain: write(Dialect::Plain, blocks) }
    }

    /// The room that blocks take: whichever is larger of the two forms in which they may be sent.
    fn size(self, blocks: &[Block]) -> usize {
        let Page { markup, plain } = self.page(blocks);
        let markup = if self.limit.counts_markup { markup } else { visible(self.dialect, &markup) };
        self.limit.unit.count(&markup).max(self.limit.unit.count(&plain))
    }

    fn divided(self, blocks: Vec<Block>) -> Vec<Vec<Block>> {
        let room = self.limit.max - NUMBER;
        let size = |blocks: &[Block]| self.size(blocks);
        let (mut pages, mut page, mut used) = (Vec::new(), Vec::new(), 0);
        let mut left: VecDeque<Block> = blocks.into();
        while let Some(block) = left.pop_front() {
            let gap = if page.is_empty() { 0 } else { 2 };
            let free = room.saturating_sub(used + gap);
            let needed =
                if is_larger(&block, room) { room + 1 } else { size(std::slice::from_ref(&block)) };
            if needed <= free {
                used += gap + needed;
                page.push(block);
                continue;
            }
            let wait = used > room / FULL && needed <= room;
            match (!wait).then(|| cut(&block, free, &size)).flatten() {
                Some((head, tail)) => {
                    page.push(head);
                    left.push_front(tail);
                }
                None if page.is_empty() => {
                    loosen(block).into_iter().rev().for_each(|block| left.push_front(block));
                    continue;
                }
                None => left.push_front(block),
            }
            pages.push(std::mem::take(&mut page));
            used = 0;
        }
        if !page.is_empty() {
            pages.push(page);
        }
        pages
    }
}

/// Whether a block is certainly larger than the room, which is cheaper to see than how large it is.
fn is_larger(block: &Block, room: usize) -> bool {
    let of = |spans: &[Span]| spans.iter().map(|span| span.text.len()).sum::<usize>() / 4 > room;
    match block {
        Block::Paragraph(spans) | Block::Heading(_, spans) => of(spans),
        Block::Code { text, .. } => text.len() / 4 > room,
        Block::Quote(blocks) => {
            blocks.len() > room || blocks.iter().any(|block| is_larger(block, room))
        }
        Block::List(items) => {
            items.len() > room
                || items.iter().any(|item| item.blocks.iter().any(|block| is_larger(block, room)))
        }
        Block::Table(rows) => rows.len() > room,
        Block::Rule => false,
    }
}

fn number(blocks: &mut Vec<Block>, index: usize, count: usize) {
    let span = |text| Span { text, style: Style::default() };
    if let Some(Block::Paragraph(spans)) = blocks.last_mut() {
        return push_span(spans, span(format!(" ({index}/{count})")));
    }
    blocks.push(Block::Paragraph(vec![span(format!("({index}/{count})"))]));
}
