//! Tables where a dialect has none: lines of equal columns, for a fixed-width block.

use super::Span;

/// A table as lines of equal columns.
pub(super) fn aligned(rows: &[Vec<Vec<Span>>]) -> String {
    /// Wider cells are not waited for.
    const WIDTH_MAX: usize = 40;
    let text = |spans: &[Span]| -> String {
        spans.iter().map(|span| span.text.replace('\n', " ")).collect()
    };
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|spans| text(spans)).collect()).collect();
    let columns = cells.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            let width = |row: &Vec<String>| row.get(at).map_or(0, |cell| cell.chars().count());
            cells.iter().map(width).max().unwrap_or_default().min(WIDTH_MAX)
        })
        .collect();
    let mut lines = Vec::new();
    for (index, row) in cells.iter().enumerate() {
        let padded: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        lines.push(padded.join(" | ").trim_end().to_owned());
        if index == 0 && cells.len() > 1 {
            let rule: Vec<String> =
                widths.iter().map(|width| "-".repeat((*width).max(1))).collect();
            lines.push(rule.join("-|-"));
        }
    }
    lines.join("\n")
}
