//! What a person reads in the terminal: results on standard output, progress on standard error. The only place that prints.

use std::io::{self, Write};

/// Prints a result.
///
/// # Errors
/// When standard output is closed.
pub fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Prints a line of progress.
pub fn note(line: &str) {
    // With nobody there to read it, the work still goes on.
    let _ = writeln!(io::stderr().lock(), "{line}");
}
