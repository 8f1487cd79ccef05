//! From the tree to a dialect. What is written is legal whatever the text says: text is escaped, marks are opened and closed
//! around each run.

use std::fmt::Write as _;

use super::table::aligned;
use super::{Block, Dialect, Item, Marker, Span, Style};

/// Keeps marks apart from what they must not touch, in dialects that have no way to escape. It is not visible.
const APART: char = '\u{200b}';

/// Writes blocks, with an empty line between them.
pub(super) fn write(dialect: Dialect, blocks: &[Block]) -> String {
    let mut writer = Writer { dialect, out: String::new(), indent: 0, quoted: false };
    writer.blocks(blocks);
    writer.out
}

/// What people read of a text in a dialect whose marks do not count.
pub(super) fn visible(dialect: Dialect, markup: &str) -> String {
    match dialect {
        Dialect::TelegramHtml | Dialect::Html => stripped(markup),
        Dialect::Plain | Dialect::Mrkdwn | Dialect::Discord => markup.to_owned(),
    }
}

fn stripped(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        out += &rest[..at];
        rest = &rest[at..];
        let end = rest.find(if rest.starts_with('<') { '>' } else { ';' });
        let Some(end) = end else { break };
        match &rest[..=end] {
            "&lt;" => out.push('<'),
            "&gt;" => out.push('>'),
            "&amp;" => out.push('&'),
            "&quot;" => out.push('"'),
            _ => {}
        }
        rest = &rest[end + 1..];
    }
    out + rest
}

struct Writer {
    dialect: Dialect,
    out: String,
    /// How far lines are moved in, in spaces.
    indent: usize,
    /// Whether we are inside a quotation already.
    quoted: bool,
}

impl Writer {
    fn blocks(&mut self, blocks: &[Block]) {
        for (index, block) in blocks.iter().enumerate() {
            if index > 0 && self.dialect != Dialect::Html {
                self.out.push_str("\n\n");
            }
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(spans) => self.paragraph(spans),
            Block::Heading(level, spans) => self.heading(*level, spans),
            Block::Code { lang, text } => self.code(lang, text),
            Block::Quote(blocks) => self.quote(blocks),
            Block::List(items) => self.list(items),
            Block::Table(rows) if self.dialect == Dialect::Html => self.table(rows),
            Block::Table(rows) => self.code("", &aligned(rows)),
            Block::Rule if self.dialect == Dialect::Html => self.out.push_str("<hr>"),
            Block::Rule => self.out.push_str("———"),
        }
    }

    fn paragraph(&mut self, spans: &[Span]) {
        if self.dialect == Dialect::Html {
            self.out.push_str("<p>");
            self.spans(spans);
            self.out.push_str("</p>");
        } else {
            self.move_in();
            self.spans(spans);
        }
    }

    fn move_in(&mut self) {
        for _ in 0..self.indent {
            self.out.push(' ');
        }
    }

    fn heading(&mut self, level: u8, spans: &[Span]) {
        match self.dialect {
            Dialect::Html => {
                let _ = write!(self.out, "<h{level}>");
                self.spans(spans);
                let _ = write!(self.out, "</h{level}>");
            }
            Dialect::Discord if self.indent == 0 && level <= 3 => {
                // A heading of Discord is one line.
                let hashes = "#".repeat(usize::from(level));
                let lines = one_line(spans);
                let _ = write!(self.out, "{hashes} ");
                self.spans(&lines);
            }
            Dialect::Plain | Dialect::TelegramHtml | Dialect::Mrkdwn | Dialect::Discord => {
                let bold = |span: &Span| Span {
                    text: span.text.clone(),
                    style: Style { bold: true, ..span.style.clone() },
                };
                self.move_in();
                self.spans(&spans.iter().map(bold).collect::<Vec<_>>());
            }
        }
    }

    fn code(&mut self, lang: &str, text: &str) {
        match self.dialect {
            Dialect::Plain => self.out.push_str(text),
            Dialect::TelegramHtml | Dialect::Html => {
                // An empty element is no element for Telegram.
                let text = if text.is_empty() { " " } else { text };
                self.out.push_str("<pre>");
                let wrapped = !lang.is_empty() || self.dialect == Dialect::Html;
                if wrapped && lang.is_empty() {
                    self.out.push_str("<code>");
                } else if wrapped {
                    let _ = write!(self.out, "<code class=\"language-{lang}\">");
                }
                escape_html(&mut self.out, text);
                self.out.push_str(if wrapped { "</code></pre>" } else { "</pre>" });
            }
            Dialect::Mrkdwn | Dialect::Discord => {
                let lang = if self.dialect == Dialect::Discord { lang } else { "" };
                // A fence inside would end ours.
                let text = text.replace("```", &format!("`{APART}`{APART}`"));
                let text = if text.ends_with('`') { format!("{text}{APART}") } else { text };
                let _ = writeln!(self.out, "```{lang}");
                if self.dialect == Dialect::Mrkdwn {
                    escape_slack(&mut self.out, &text);
                } else {
                    self.out.push_str(&text);
                }
                self.out.push_str("\n```");
            }
        }
    }

    fn quote(&mut self, blocks: &[Block]) {
        match self.dialect {
            Dialect::Html => {
                self.out.push_str("<blockquote>");
                self.blocks(blocks);
                self.out.push_str("</blockquote>");
            }
            // Telegram does not quote inside a quotation.
            Dialect::TelegramHtml if self.quoted => self.blocks(blocks),
            Dialect::TelegramHtml => {
                self.quoted = true;
                self.out.push_str("<blockquote>");
                self.blocks(blocks);
                self.out.push_str("</blockquote>");
                self.quoted = false;
            }
            Dialect::Discord | Dialect::Mrkdwn if self.quoted => self.blocks(blocks),
            Dialect::Plain | Dialect::Mrkdwn | Dialect::Discord => {
                let mut inside =
                    Self { dialect: self.dialect, out: String::new(), indent: 0, quoted: true };
                inside.blocks(blocks);
                for (index, line) in inside.out.split('\n').enumerate() {
                    if index > 0 {
                        self.out.push('\n');
                    }
                    self.out.push_str("> ");
                    self.out.push_str(line);
                }
            }
        }
    }

    fn list(&mut self, items: &[Item]) {
        if self.dialect == Dialect::Html {
            return self.html_list(items);
        }
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push('\n');
            }
            let mark = match item.marker {
                Marker::Bullet => "• ".to_owned(),
                Marker::Number(number) if self.dialect == Dialect::Discord => {
                    format!("{number}\\. ")
                }
                Marker::Number(number) => format!("{number}. "),
                Marker::Task { done: true } => "☑ ".to_owned(),
                Marker::Task { done: false } => "☐ ".to_owned(),
                Marker::Continued => String::new(),
            };
            self.move_in();
            self.out.push_str(&mark);
            for (index, block) in item.blocks.iter().enumerate() {
                let inline =
                    index == 0 && matches!(block, Block::Paragraph(_) | Block::Heading(..));
                if index > 0 || (!inline && !mark.is_empty()) {
                    self.out.push('\n');
                }
                let before = self.indent;
                match block {
                    Block::Paragraph(spans) | Block::Heading(_, spans) if inline => {
                        self.indent += 2;
                        self.spans(spans);
                    }
                    Block::Paragraph(_)
                    | Block::Heading(..)
                    | Block::Code { .. }
                    | Block::Quote(_)
                    | Block::List(_)
                    | Block::Table(_)
                    | Block::Rule => {
                        self.indent += 2;
                        self.block(block);
                    }
                }
                self.indent = before;
            }
        }
    }

    fn html_list(&mut self, items: &[Item]) {
        let first = items.iter().find_map(|item| match item.marker {
            Marker::Number(number) => Some(number),
            Marker::Bullet | Marker::Task { .. } | Marker::Continued => None,
        });
        let _ = match first {
            None => write!(self.out, "<ul>"),
            Some(1) => write!(self.out, "<ol>"),
            Some(number) => write!(self.out, "<ol start=\"{number}\">"),
        };
        for item in items {
            self.out.push_str("<li>");
            if let Marker::Task { done } = item.marker {
                self.out.push_str(if done { "☑ " } else { "☐ " });
            }
            match item.blocks.as_slice() {
                [Block::Paragraph(spans), rest @ ..] => {
                    self.spans(spans);
                    self.blocks(rest);
                }
                blocks => self.blocks(blocks),
            }
            self.out.push_str("</li>");
        }
        self.out.push_str(if first.is_some() { "</ol>" } else { "</ul>" });
    }

    fn table(&mut self, rows: &[Vec<Vec<Span>>]) {
        self.out.push_str("<table>");
        for (index, row) in rows.iter().enumerate() {
            let cell = if index == 0 { "th" } else { "td" };
            self.out.push_str("<tr>");
            for spans in row {
                let _ = write!(self.out, "<{cell}>");
                self.spans(spans);
                let _ = write!(self.out, "</{cell}>");
            }
            self.out.push_str("</tr>");
        }
        self.out.push_str("</table>");
    }

    fn spans(&mut self, spans: &[Span]) {
        for span in spans {
            match self.dialect {
                Dialect::TelegramHtml | Dialect::Html => self.html_span(span),
                Dialect::Mrkdwn | Dialect::Discord => self.marked_span(span),
                Dialect::Plain => {
                    self.lines(&span.text, |out, line| out.push_str(line));
                    if let Some(link) = &span.style.link
                        && **link != *span.text
                    {
                        let _ = write!(self.out, " ({link})");
                    }
                }
            }
        }
    }

    /// Writes text line by line, moved in where the lines stand.
    fn lines(&mut self, text: &str, put: impl Fn(&mut String, &str)) {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.out.push_str(if self.dialect == Dialect::Html { "<br>" } else { "\n" });
                if self.dialect != Dialect::Html {
                    self.move_in();
                }
            }
            put(&mut self.out, line);
        }
    }

    fn html_span(&mut self, span: &Span) {
        let Style { bold, italic, strike, code, link } = &span.style;
        let telegram = self.dialect == Dialect::TelegramHtml;
        // Telegram takes no other look together with code.
        let alone = telegram && *code;
        let (known, unknown) = match link {
            Some(link) if is_address(link) && !alone => (Some(link), None),
            Some(link) if **link != *span.text => (None, Some(link)),
            Some(_) | None => (None, None),
        };
        let names =
            if telegram { ["b", "i", "s", "code"] } else { ["strong", "em", "del", "code"] };
        let on = [*bold && !alone, *italic && !alone, *strike && !alone, *code];
        let tags = || names.iter().zip(on).filter(|(_, on)| *on).map(|(name, _)| name);
        if let Some(link) = known {
            self.out.push_str("<a href=\"");
            escape_html(&mut self.out, link);
            self.out.push_str("\">");
        }
        for tag in tags() {
            let _ = write!(self.out, "<{tag}>");
        }
        self.lines(&span.text, escape_html);
        for tag in tags().rev() {
            let _ = write!(self.out, "</{tag}>");
        }
        if known.is_some() {
            self.out.push_str("</a>");
        }
        if let Some(link) = unknown {
            self.out.push_str(" (");
            escape_html(&mut self.out, link);
            self.out.push(')');
        }
    }

    /// A run between marks, which must touch a word inside and must not touch one outside.
    fn marked_span(&mut self, span: &Span) {
        let slack = self.dialect == Dialect::Mrkdwn;
        let Style { bold, italic, strike, code, link } = &span.style;
        let text = &span.text;
        let inner = text.trim();
        if inner.is_empty() {
            return self.lines(text, |out, line| out.push_str(line));
        }
        let (before, after) =
            (&text[..text.len() - text.trim_start().len()], &text[text.trim_end().len()..]);
        self.lines(before, |out, line| out.push_str(line));
        let marks: Vec<&str> = [
            (*bold, if slack { "*" } else { "**" }),
            (*italic, "_"),
            (*strike, if slack { "~" } else { "~~" }),
        ]
        .into_iter()
        .filter_map(|(on, mark)| on.then_some(mark))
        .collect();
        let marked = !marks.is_empty() || *code;
        if marked && self.out.chars().last().is_some_and(|c| !c.is_whitespace()) {
            self.out.push(APART);
        }
        let known = link
            .as_ref()
            .filter(|link| is_address(link) && !link.contains([' ', '|', '>', ')', '\n']));
        if let (Some(link), true) = (known, slack) {
            self.out.push('<');
            escape_slack(&mut self.out, link);
            self.out.push('|');
        } else if known.is_some() {
            self.out.push('[');
        }
        marks.iter().for_each(|mark| self.out.push_str(mark));
        if *code {
            // A code run has one line and no backtick of its own.
            let plain = inner.replace('`', "'").replace('\n', " ");
            self.out.push('`');
            if slack {
                escape_slack(&mut self.out, &plain);
            } else {
                self.out.push_str(&plain);
            }
            self.out.push('`');
        } else if slack {
            self.lines(inner, slack_text);
        } else {
            self.lines(inner, discord_text);
        }
        marks.iter().rev().for_each(|mark| self.out.push_str(mark));
        match (link, known) {
            (_, Some(_)) if slack => self.out.push('>'),
            (_, Some(link)) => {
                let _ = write!(self.out, "]({link})");
            }
            (Some(link), None) if **link != *inner => {
                let mut shown = String::new();
                if slack {
                    slack_text(&mut shown, link)
                } else {
                    discord_text(&mut shown, link)
                }
                let _ = write!(self.out, " ({shown})");
            }
            (_, None) => {}
        }
        if marked && after.is_empty() {
            self.out.push(APART);
        }
        self.lines(after, |out, line| out.push_str(line));
    }
}

fn one_line(spans: &[Span]) -> Vec<Span> {
    let joined =
        |span: &Span| Span { text: span.text.replace('\n', " "), style: span.style.clone() };
    spans.iter().map(joined).collect()
}

/// Whether a link is one that people may be sent to; anything else is shown beside its text.
fn is_address(link: &str) -> bool {
    ["https://", "http://", "mailto:", "tg://"].iter().any(|scheme| {
        link.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

fn escape_html(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
}

fn escape_slack(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            _ => out.push(c),
        }
    }
}

/// Slack cannot escape its marks: one that could begin something is kept apart from what follows.
fn slack_text(out: &mut String, text: &str) {
    let mut last = ' ';
    for c in text.chars() {
        escape_slack(out, c.encode_utf8(&mut [0; 4]));
        if c == '`' || (matches!(c, '*' | '_' | '~') && !last.is_alphanumeric()) {
            out.push(APART);
        }
        last = c;
    }
}

fn discord_text(out: &mut String, text: &str) {
    let begins = text.trim_start();
    for (at, c) in text.char_indices() {
        let first = text.len() - at == begins.len();
        let special = matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '[' | ']' | '<')
            || (first && matches!(c, '#' | '>' | '-' | '+'));
        if special {
            out.push('\\');
        }
        out.push(c);
    }
}
