//! Cuts a block in two where it is too long for the room that is left.

use std::collections::VecDeque;

use unicode_segmentation::UnicodeSegmentation;

use super::parse::push_span;
use super::table::aligned;
use super::{Block, Item, Marker, Span, Style};

/// How much room blocks would take on a page of their own, in the platform's units. Never less than their characters.
pub(super) type Size<'a> = &'a dyn Fn(&[Block]) -> usize;

/// How far beyond a cut the text is looked at for the end of a grapheme cluster, in characters.
const CLUSTER: usize = 64;

/// The part of a block that fits into the room, and what is left of it. None if it cannot be cut so that a part fits.
pub(super) fn cut(block: &Block, room: usize, size: Size<'_>) -> Option<(Block, Block)> {
    match block {
        Block::Paragraph(spans) => {
            let (head, tail) = cut_spans(spans, room, &|spans| size(&[Block::Paragraph(spans)]))?;
            Some((Block::Paragraph(head), Block::Paragraph(tail)))
        }
        Block::Heading(level, spans) => {
            let whole = |spans| size(&[Block::Heading(*level, spans)]);
            let (head, tail) = cut_spans(spans, room, &whole)?;
            Some((Block::Heading(*level, head), Block::Heading(*level, tail)))
        }
        Block::Code { lang, text } => cut_code(lang, text, room, size),
        Block::Quote(blocks) => {
            let whole = |blocks: &[Block]| size(&[Block::Quote(blocks.to_vec())]);
            let (head, tail) = cut_blocks(blocks, room, size, &whole)?;
            Some((Block::Quote(head), Block::Quote(tail)))
        }
        Block::List(items) => cut_list(items, room, size),
        Block::Table(rows) => cut_table(rows, room, size),
        Block::Rule => None,
    }
}

/// The largest number up to `most` that fits; nothing always does.
fn largest(most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// Where the first `most` characters of a text end, each.
fn ends(text: &str, most: usize) -> Vec<usize> {
    text.char_indices().map(|(at, c)| at + c.len_utf8()).take(most).collect()
}

fn cut_spans(
    spans: &[Span],
    room: usize,
    size: &dyn Fn(Vec<Span>) -> usize,
) -> Option<(Vec<Span>, Vec<Span>)> {
    // What lies beyond the room in characters lies beyond it in any unit.
    let chars = spans.iter().flat_map(|span| span.text.chars());
    let text: String = chars.take(room + CLUSTER).collect();
    let ends = ends(&text, room);
    let fitting = largest(ends.len(), |count| size(head_of(spans, ends[count - 1])) <= room);
    let most = *ends.get(fitting.checked_sub(1)?)?;
    let at = nice(&text, most, spans);
    let (head, tail) = (head_of(spans, at), tail_of(spans, at));
    // Fitting need not grow evenly with the text: a link that is cut is written out twice.
    (!tail.is_empty() && size(head.clone()) <= room).then_some((head, tail))
}

fn head_of(spans: &[Span], at: usize) -> Vec<Span> {
    let (mut head, mut begin) = (Vec::new(), 0);
    for span in spans {
        let text = span.text[..span.text.len().min(at - begin)].to_owned();
        begin += span.text.len();
        push_span(&mut head, Span { text, style: span.style.clone() });
        if begin >= at {
            break;
        }
    }
    head
}

fn tail_of(spans: &[Span], at: usize) -> Vec<Span> {
    let (mut tail, mut begin) = (Vec::new(), 0);
    for span in spans {
        let from = at.saturating_sub(begin).min(span.text.len());
        begin += span.text.len();
        push_span(
            &mut tail,
            Span { text: span.text[from..].to_owned(), style: span.style.clone() },
        );
    }
    tail
}

/// The best place to cut at or before `most`: after a line, after a word, at worst between two letters.
fn nice(text: &str, most: usize, spans: &[Span]) -> usize {
    let head = &text[..most];
    let late = |at: &usize| *at > most / 2;
    if let Some(at) = head.rfind('\n').map(|at| at + 1).filter(late) {
        return at;
    }
    let mut spaces = head.rmatch_indices(' ').map(|(at, _)| at + 1).take_while(late);
    let last = spaces.next();
    if let Some(at) = last.into_iter().chain(spaces).find(|at| !is_code(spans, *at)) {
        return at;
    }
    last.unwrap_or_else(|| between_clusters(text, most))
}

/// Whether a place is inside a run of code.
fn is_code(spans: &[Span], at: usize) -> bool {
    let mut end = 0;
    let inside = spans.iter().find(|span| {
        end += span.text.len();
        at < end
    });
    inside.is_some_and(|span| span.style.code)
}

/// The last place between two grapheme clusters at or before `most`; `most` itself where one cluster is longer than that.
fn between_clusters(text: &str, most: usize) -> usize {
    let starts = text.grapheme_indices(true).map(|(at, _)| at);
    let ends = starts.skip(1).chain([text.len()]);
    ends.take_while(|at| *at <= most).last().unwrap_or(most)
}

fn cut_code(lang: &str, text: &str, room: usize, size: Size<'_>) -> Option<(Block, Block)> {
    let code = |text: &str| Block::Code { lang: lang.to_owned(), text: text.to_owned() };
    let ends = ends(text, room);
    let fitting = largest(ends.len(), |count| size(&[code(&text[..ends[count - 1]])]) <= room);
    let most = *ends.get(fitting.checked_sub(1)?)?;
    if most >= text.len() {
        return None;
    }
    // A line that ends where the room ends has fitted.
    let line = text[..most].rfind('\n').filter(|at| *at > 0);
    let (head, tail) = if text[most..].starts_with('\n') {
        (&text[..most], &text[most + 1..])
    } else if let Some(at) = line {
        (&text[..at], &text[at + 1..])
    } else {
        let near = text[most..].char_indices().nth(CLUSTER).map_or(text.len(), |(at, _)| most + at);
        text.split_at(between_clusters(&text[..near], most))
    };
    Some((code(head), code(tail)))
}

fn cut_blocks(
    blocks: &[Block],
    room: usize,
    size: Size<'_>,
    whole: &dyn Fn(&[Block]) -> usize,
) -> Option<(Vec<Block>, Vec<Block>)> {
    let fitting = largest(blocks.len().min(room), |count| whole(&blocks[..count]) <= room);
    let mut head = blocks[..fitting].to_vec();
    let mut tail = blocks[fitting..].to_vec();
    let next = tail.first()?;
    // How much room what is around the next block takes is found out with a part of it that is as large as can be.
    if let Some((part, _)) = cut(next, room, size) {
        let mut tried = head.clone();
        tried.push(part.clone());
        let around = whole(&tried).saturating_sub(size(&[part]));
        if let Some((part, rest)) = cut(next, room.saturating_sub(around), size) {
            head.push(part);
            if whole(&head) <= room {
                tail[0] = rest;
            } else {
                head.pop();
            }
        }
    }
    (!head.is_empty()).then_some((head, tail))
}

fn cut_list(items: &[Item], room: usize, size: Size<'_>) -> Option<(Block, Block)> {
    let list = |items: &[Item]| size(&[Block::List(items.to_vec())]);
    let fitting = largest(items.len().min(room), |count| list(&items[..count]) <= room);
    let mut head = items[..fitting].to_vec();
    let mut tail = items[fitting..].to_vec();
    let next = tail.first()?;
    let with = |blocks: &[Block]| {
        let last = Item { marker: next.marker, blocks: blocks.to_vec() };
        let items: Vec<Item> = items[..fitting].iter().cloned().chain([last]).collect();
        list(&items)
    };
    if let Some((part, rest)) = cut_blocks(&next.blocks, room, size, &with) {
        head.push(Item { marker: next.marker, blocks: part });
        tail[0] = Item { marker: Marker::Continued, blocks: rest };
    }
    (!head.is_empty()).then_some((Block::List(head), Block::List(tail)))
}

fn cut_table(rows: &[Vec<Vec<Span>>], room: usize, size: Size<'_>) -> Option<(Block, Block)> {
    let table = |rows: &[Vec<Vec<Span>>]| Block::Table(rows.to_vec());
    let fitting = largest(rows.len().min(room), |count| size(&[table(&rows[..count])]) <= room);
    // A head alone says nothing.
    (fitting > 1 && fitting < rows.len())
        .then(|| (table(&rows[..fitting]), table(&rows[fitting..])))
}

/// A block that cannot be cut and does not fit, as blocks with less around their text. Each step leaves less, and the last is
/// bare text, which can always be cut.
pub(super) fn loosen(block: Block) -> VecDeque<Block> {
    match block {
        Block::Quote(blocks) => blocks.into(),
        Block::List(items) => items.into_iter().flat_map(|item| item.blocks).collect(),
        Block::Table(rows) => [Block::Code { lang: String::new(), text: aligned(&rows) }].into(),
        Block::Code { lang, text } if lang.is_empty() => [Block::Paragraph(bare(text))].into(),
        Block::Code { text, .. } => [Block::Code { lang: String::new(), text }].into(),
        Block::Paragraph(spans) | Block::Heading(_, spans) => {
            let text = spans.iter().map(|span| match &span.style.link {
                Some(link) if **link != *span.text => format!("{} ({link})", span.text),
                Some(_) | None => span.text.clone(),
            });
            [Block::Paragraph(bare(text.collect()))].into()
        }
        Block::Rule => VecDeque::new(),
    }
}

fn bare(text: String) -> Vec<Span> {
    vec![Span { text, style: Style::default() }]
}
