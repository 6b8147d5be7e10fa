//! Asks the kernel of a hanging guest by magic SysRq keys what it is doing, before the guest is killed.
//!
//! The kernel answers on the console, in an interrupt. So a kernel whose tasks are all blocked answers, and so does one
//! that loops with interrupts enabled. A kernel that does not answer in time is killed all the same.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait for the answer to one key. On a busy machine a guest that loops may not get a CPU for a second.
const ANSWER_MAX: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });
/// A console that has been silent for this long has printed everything. The guest is then idle again if it can be. This
/// matters because user-mode Linux prints no stacks while it handles an interrupt of a busy CPU.
const SILENT: Duration = Duration::from_millis(100);
const STEP: Duration = Duration::from_millis(10);
const BYTES_KEPT: u64 = 64 << 10;
const END_BYTES_KEPT: u64 = 16 << 10;

/// What the kernel prints on `console` in answer to the `keys` that `press` sends, or why there is no answer.
pub fn stacks(console: &Path, keys: &str, mut press: impl FnMut(char) -> io::Result<()>) -> String {
    match answers(console, keys, &mut press) {
        Ok(text) if text.trim().is_empty() => {
            format!("no stacks could be had: the kernel did not answer sysrq within {} s", ANSWER_MAX.as_secs())
        }
        Ok(text) => text,
        Err(error) => format!("no stacks could be had: {error}"),
    }
}

fn answers(console: &Path, keys: &str, press: &mut dyn FnMut(char) -> io::Result<()>) -> io::Result<String> {
    let console = File::open(console)?;
    let start = console.metadata()?.len();
    for key in keys.chars() {
        let before = console.metadata()?.len();
        press(key)?;
        if !settled(&console, before)? {
            break;
        }
    }
    let mut bytes = vec![0; (console.metadata()?.len() - start).min(BYTES_KEPT) as usize];
    console.read_exact_at(&mut bytes, start)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last bytes of a console, which may be as long as the guest likes. Nothing if it cannot be read.
pub fn end(console: &Path) -> String {
    let end = || {
        let console = File::open(console)?;
        let length = console.metadata()?.len();
        let mut bytes = vec![0; length.min(END_BYTES_KEPT) as usize];
        console.read_exact_at(&mut bytes, length - length.min(END_BYTES_KEPT))?;
        io::Result::Ok(bytes)
    };
    String::from_utf8_lossy(&end().unwrap_or_default()).into_owned()
}

/// Wait until the console has grown beyond `before` and is silent. Returns whether it has grown.
fn settled(console: &File, before: u64) -> io::Result<bool> {
    let start = Instant::now();
    let (mut length, mut since) = (before, start);
    while start.elapsed() < ANSWER_MAX && (length == before || since.elapsed() < SILENT) {
        std::thread::sleep(STEP);
        let now = console.metadata()?.len();
        if now != length {
            (length, since) = (now, Instant::now());
        }
    }
    Ok(length > before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn console() -> tempfile::NamedTempFile {
        let mut console = tempfile::NamedTempFile::new().expect("a file");
        write!(console, "said before; ").expect("written");
        console
    }

    #[test]
    fn what_the_kernel_says_after_the_keys_is_taken() {
        let console = console();
        let mut other = console.reopen().expect("a second handle");
        io::Seek::seek(&mut other, io::SeekFrom::End(0)).expect("at its end");
        let found = stacks(console.path(), "9wp", |key| write!(other, "<{key}>"));
        assert_eq!(found, "<9><w><p>");
    }

    #[test]
    fn a_kernel_that_does_not_answer_is_asked_once_and_said_so() {
        let (console, mut pressed) = (console(), 0);
        let found = stacks(console.path(), "9wp", |_| {
            pressed += 1;
            Ok(())
        });
        assert_eq!(
            (found.as_str(), pressed),
            ("no stacks could be had: the kernel did not answer sysrq within 1 s", 1)
        );
    }

    #[test]
    fn a_key_that_cannot_be_pressed_is_said() {
        let found = stacks(console().path(), "9wp", |_| Err(io::Error::other("no keyboard")));
        assert_eq!(found, "no stacks could be had: no keyboard");
    }

    #[test]
    fn the_end_of_a_long_console_is_kept() {
        let console = tempfile::NamedTempFile::new().expect("a console");
        assert_eq!(end(console.path()), "");
        std::fs::write(console.path(), "short").expect("written");
        assert_eq!(end(console.path()), "short");
        console.as_file().set_len(1 << 40).expect("a sparse file");
        assert_eq!(end(console.path()).len() as u64, END_BYTES_KEPT);
        assert_eq!(end(Path::new("/nowhere")), "");
    }
}
