//! The operator's binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    talaria::cli::main()
}
