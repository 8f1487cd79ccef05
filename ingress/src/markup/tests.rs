//! The pages of texts, held against a strict reader of each dialect: each page is legal by itself and fits, nothing is lost, and
//! the time it takes is bounded.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::write::visible;
use super::{Dialect, Page, Pages};
use crate::adapter::{TextLimit, Unit};

const ALL: [(Dialect, bool); 5] = [
    (Dialect::Plain, false),
    (Dialect::TelegramHtml, false),
    (Dialect::Mrkdwn, true),
    (Dialect::Discord, true),
    (Dialect::Html, true),
];

fn pages(dialect: Dialect, counts_markup: bool, max: usize, text: &str) -> Vec<Page> {
    let limit = TextLimit { max, unit: Unit::Utf16, counts_markup };
    let pages = Pages::new(dialect, limit).unwrap().of(text);
    for page in &pages {
        let shown =
            if counts_markup { page.markup.clone() } else { visible(dialect, &page.markup) };
        assert!(Unit::Utf16.count(&shown) <= max, "{} > {max}: {shown}", shown.len());
        assert!(Unit::Utf16.count(&page.plain) <= max, "{}", page.plain);
        legal(dialect, &page.markup).unwrap_or_else(|why| panic!("{why}: {}", page.markup));
    }
    pages
}

fn markup(dialect: Dialect, text: &str) -> String {
    let pages = pages(dialect, true, 4000, text);
    assert_eq!(pages.len(), 1);
    pages[0].markup.clone()
}

/// Whether a page is legal by itself.
fn legal(dialect: Dialect, markup: &str) -> Result<(), String> {
    match dialect {
        Dialect::Plain => Ok(()),
        Dialect::TelegramHtml => html(markup, &["b", "i", "s", "code", "pre", "a", "blockquote"]),
        Dialect::Html => html(
            markup,
            &[
                "p",
                "strong",
                "em",
                "del",
                "code",
                "pre",
                "a",
                "blockquote",
                "ul",
                "ol",
                "li",
                "table",
                "tr",
                "th",
                "td",
                "h1",
                "h2",
                "h3",
                "h4",
                "h5",
                "h6",
                "br",
                "hr",
            ],
        ),
        Dialect::Mrkdwn | Dialect::Discord => {
            let fences = markup.matches("```").count();
            if fences % 2 == 1 {
                return Err("a fence is not closed".into());
            }
            let slack = dialect == Dialect::Mrkdwn;
            let bare = |part: &str| part.replace("<http", "").replace("<mailto", "").contains('<');
            if slack && bare(markup) { Err("a bare <".into()) } else { Ok(()) }
        }
    }
}

fn html(markup: &str, tags: &[&str]) -> Result<(), String> {
    let (mut open, mut rest) = (Vec::new(), markup);
    while let Some(at) = rest.find(['<', '>', '&']) {
        rest = &rest[at..];
        if rest.starts_with('>') {
            return Err("a bare >".into());
        }
        if rest.starts_with('&') {
            let known = ["&lt;", "&gt;", "&amp;", "&quot;"];
            if !known.iter().any(|entity| rest.starts_with(entity)) {
                return Err("a bare &".into());
            }
            rest = &rest[1..];
            continue;
        }
        let end = rest.find('>').ok_or("a tag does not end")?;
        let tag = &rest[1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name.to_owned()) {
                return Err(format!("</{name}> closes nothing"));
            }
            continue;
        }
        let name = tag.split(' ').next().unwrap_or_default();
        if !tags.contains(&name) {
            return Err(format!("<{name}> is unknown"));
        }
        if name == "blockquote" && tags.len() < 10 && open.contains(&name.to_owned()) {
            return Err("nested quotations".into());
        }
        if !matches!(name, "br" | "hr") {
            open.push(name.to_owned());
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} are not closed")) }
}

/// The letters and digits of a text: what may not be lost.
fn essence(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// What people read on all pages, without the numbers of the pages.
fn read(pages: &[Page]) -> String {
    let count = pages.len();
    let without = |(index, page): (usize, &Page)| {
        let number = format!("({}/{count})", index + 1);
        page.plain.strip_suffix(&number).unwrap_or(&page.plain).to_owned()
    };
    pages.iter().enumerate().map(without).collect()
}

#[test]
fn each_dialect_marks_up_in_its_own_way() {
    let text = "# Title\n\n**bold** and *it* and ~~no~~ and `a<b` [here](https://x.org/?a=1&b=2)";
    assert_eq!(
        markup(Dialect::TelegramHtml, text),
        "<b>Title</b>\n\n<b>bold</b> and <i>it</i> and <s>no</s> and <code>a&lt;b</code> \
         <a href=\"https://x.org/?a=1&amp;b=2\">here</a>"
    );
    assert_eq!(
        markup(Dialect::Mrkdwn, text).replace('\u{200b}', ""),
        "*Title*\n\n*bold* and _it_ and ~no~ and `a&lt;b` <https://x.org/?a=1&amp;b=2|here>"
    );
    assert_eq!(
        markup(Dialect::Discord, text).replace('\u{200b}', ""),
        "# Title\n\n**bold** and _it_ and ~~no~~ and `a<b` [here](https://x.org/?a=1&b=2)"
    );
    assert_eq!(
        markup(Dialect::Html, text),
        "<h1>Title</h1><p><strong>bold</strong> and <em>it</em> and <del>no</del> and \
         <code>a&lt;b</code> <a href=\"https://x.org/?a=1&amp;b=2\">here</a></p>"
    );
    assert_eq!(
        markup(Dialect::Plain, text),
        "Title\n\nbold and it and no and a<b here (https://x.org/?a=1&b=2)"
    );
}

#[test]
fn lists_tables_and_quotes_have_their_form() {
    let text = "1. one\n   - inner\n2. two\n\n- [x] done\n\n> said\n> > before\n\n| a | b |\n|--|--|\n| 1 | 2 |";
    assert_eq!(
        markup(Dialect::TelegramHtml, text),
        "1. one\n  • inner\n2. two\n\n☑ done\n\n<blockquote>said\n\nbefore</blockquote>\n\n\
         <pre>a | b\n--|--\n1 | 2</pre>"
    );
}

#[test]
fn a_link_that_leads_elsewhere_is_written_out() {
    assert_eq!(markup(Dialect::Html, "[x](javascript:alert)"), "<p>x (javascript:alert)</p>");
    assert_eq!(markup(Dialect::TelegramHtml, "[x](file:///etc)"), "x (file:///etc)");
}

#[test]
fn a_fence_is_closed_and_opened_again_with_its_language() {
    let code = "print('😀')\n".repeat(300);
    let text = format!("{}\n\n```python\n{code}```\n\n{}", "a".repeat(1900), "z".repeat(200));
    for (dialect, counts) in ALL {
        let pages = pages(dialect, counts, 2000, &text);
        assert!(pages.len() <= 2 * text.len() / 2000 + 2);
        let with_code: Vec<_> = pages.iter().filter(|page| page.markup.contains("print")).collect();
        assert!(with_code.len() > 1);
        for page in with_code {
            match dialect {
                Dialect::Discord => assert!(page.markup.contains("```python\n"), "{}", page.markup),
                Dialect::TelegramHtml | Dialect::Html => {
                    assert!(page.markup.contains("language-python"), "{}", page.markup);
                }
                Dialect::Plain | Dialect::Mrkdwn => {}
            }
        }
        assert_eq!(essence(&read(&pages)), essence(&text.replace("python", "")));
    }
}

#[test]
fn hard_cases_of_splitting_end_and_fit() {
    let cases = [
        format!("```\n{}\n```", "x".repeat(9000)),
        "~~~\n```\ninside\n```\n~~~\n\nafter".to_owned(),
        format!("```rust\nlet unclosed = true;\n{}", "y\n".repeat(3000)),
        format!("[link](https://x.org/{})", "p".repeat(9000)),
        format!("**{}**", "bold ".repeat(3000)),
        format!("> {}", "quoted ".repeat(3000)),
        "- item\n".repeat(2000),
        format!("- {}", "one long item ".repeat(1000)),
        "> ".repeat(500) + "deep",
        "e\u{301}".repeat(5000),
        format!("e{}", "\u{301}".repeat(9000)),
        "👨‍👩‍👧‍👦".repeat(1000),
        format!("|{}|\n|--|\n|{}|", "h".repeat(5000), "c".repeat(5000)),
        "*".repeat(5000),
        "`".repeat(5000),
        "[".repeat(5000),
        "<".repeat(5000),
    ];
    let began = Instant::now();
    for text in cases {
        for (dialect, counts) in ALL {
            for max in [64, 4096] {
                pages(dialect, counts, max, &text);
            }
        }
    }
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
}

#[test]
fn a_cluster_is_not_cut() {
    let family = "👨‍👩‍👧‍👦";
    let pages = pages(Dialect::TelegramHtml, false, 100, &family.repeat(40));
    for page in &pages {
        let text = page.plain.split(" (").next().unwrap().trim_end();
        assert_eq!(text.len() % family.len(), 0, "{text}");
    }
}

#[test]
fn a_limit_that_is_too_small_is_refused_at_once() {
    for max in [0, 5, 63] {
        let limit = TextLimit { max, unit: Unit::Chars, counts_markup: true };
        assert!(Pages::new(Dialect::Plain, limit).is_none());
    }
}

#[test]
fn a_text_without_content_has_no_page() {
    for text in ["", "  \n\n ", "\n"] {
        assert!(pages(Dialect::TelegramHtml, false, 4096, text).is_empty());
    }
}

fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,30}",
        "[*_~`\\[\\]()<>#&|!\\\\>\n -]{0,8}",
        Just("```rust\n".to_owned()),
        Just("\n```\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\n- ".to_owned()),
        Just("\n1. ".to_owned()),
        Just("\n> ".to_owned()),
        Just("**bold** ".to_owned()),
        Just("[x](https://e.org/a_b) ".to_owned()),
        Just("\n| a | b |\n|--|--|\n| 1 | 2 |\n".to_owned()),
        Just("😀é漢".to_owned()),
        "\\PC{0,20}",
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_legal_fits_and_is_whole(text in markdown(), max in 64usize..300) {
        let whole = pages(Dialect::Plain, false, 1_000_000, &text);
        let whole = whole.first().map(|page| essence(&page.plain)).unwrap_or_default();
        for (dialect, counts) in ALL {
            let began = Instant::now();
            let pages = pages(dialect, counts, max, &text);
            prop_assert!(began.elapsed() < Duration::from_secs(5));
            // A link that is cut is written out on both sides, and a table's cells move: letters are never lost.
            let read = essence(&read(&pages));
            let mut left = read.chars();
            prop_assert!(
                whole.chars().filter(|c| !c.is_ascii_digit()).all(|c| left.any(|other| other == c)),
                "{dialect:?}: {whole} in {read}"
            );
        }
    }
}
