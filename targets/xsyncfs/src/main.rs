use std::process::ExitCode;

fn main() -> ExitCode {
    xsync::cli::main()
}
