//! xsync with one promise broken, by the name in XSYNC_CANARY. A checker that does not find it cannot fail.

use std::process::ExitCode;

fn main() -> ExitCode {
    xsync::cli::main()
}
