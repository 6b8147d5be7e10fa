//! What the system calls of a program do to the target: a note when one begins, and one when it ends.
//!
//! Notes are for people who look at a crash. Nothing is judged by them. So a call that is not known here has none, nor has one
//! whose file cannot be told without waiting for the program.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use postcrash_stopped::system_calls::Part::{Bytes, BytesAt, File, Flags, Mapped, Path, PathAt};
use postcrash_stopped::system_calls::{is_flush, path_start, system_call, Effect, SystemCall};
use postcrash_stopped::unfollowed::{only_writes, Starts, OUTPUT_OUTSIDE_CALLS};
use postcrash_stopped::{former, mappings, read, registers};
use postcrash_wire::message::{Message, NO_RESULT};
use postcrash_wire::units::PAGE_BYTES;

use crate::left_out::LeftOut;
use crate::{HOST, MOUNT_POINT};

/// So many calls of one run are noted.
const CALLS_MAX: usize = 4096;
/// So many flushes are noted besides. Runs are compared by these.
const FLUSHES_MAX: usize = 1 << 16;
/// Bit of an entry of /proc/PID/pagemap: the page is in memory.
const PRESENT: u64 = 1 << 63;
/// Stands in the notes where calls are no longer noted.
const NO_MORE: &str = "of later calls only flushes are noted";
/// Ends the note of a flush that is not made.
const NOT_MADE: &str = ", left out";
/// The longest path that is read, in bytes, and the longest that is shown, in characters.
const PATH_BYTES_MAX: usize = libc::PATH_MAX as usize;
const SHOWN_MAX: usize = 200;
/// The code segment of 32-bit programs, whose calls have other numbers.
const CODE_32: u64 = 0x23;

const OPENINGS: [(i32, &str); 5] = [
    (libc::O_CREAT, "O_CREAT"),
    (libc::O_EXCL, "O_EXCL"),
    (libc::O_TRUNC, "O_TRUNC"),
    (libc::O_APPEND, "O_APPEND"),
    (libc::O_DIRECT, "O_DIRECT"),
];

/// The threads of a program, and which of them are in a call that was noted.
#[derive(Default)]
pub struct Calls {
    /// The device number of the target.
    device: u64,
    /// By thread: its number, and whether it is in a call.
    threads: HashMap<libc::pid_t, (u32, bool)>,
    /// Threads that stopped last where a call begins of which there is nothing to note.
    unnoted: HashSet<libc::pid_t>,
    /// How many threads have had a number.
    numbers: u32,
    noted: usize,
    /// How many flushes have been noted.
    flushes: usize,
    left_out: LeftOut,
    starts: Starts,
    /// Threads that are in a call which can write a line.
    writing: HashSet<libc::pid_t>,
    /// Why the program cannot be followed.
    refused: Option<&'static str>,
}

impl Calls {
    pub fn of_target(left_out: LeftOut) -> io::Result<Calls> {
        Ok(Calls { device: fs::metadata(MOUNT_POINT)?.dev(), left_out, ..Calls::default() })
    }

    /// What there is to note of a thread that has stopped where a system call begins or ends. A flush that is left out is
    /// kept from the kernel.
    pub fn stopped(&mut self, thread: libc::pid_t) -> io::Result<Option<Message>> {
        self.writing.remove(&thread);
        if self.unnoted.remove(&thread) {
            if self.starts.is_starting(thread) {
                let result = registers(thread).map_or(0, |found| found.rax as i64);
                self.refused = self.refused.or(self.starts.ends(thread, result));
            }
            return Ok(None);
        }
        let Ok(registers) = registers(thread) else { return Ok(None) };
        let result = self.left_out.ends(thread, registers.rax as i64)?;
        if let Some((number, calling @ true)) = self.threads.get_mut(&thread) {
            *calling = false;
            return Ok(Some(Message::CallEnded { thread: *number, result }));
        }
        let begins = result == -i64::from(libc::ENOSYS);
        let number = registers.orig_rax as i64;
        let given = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
        if begins {
            self.unnoted.insert(thread);
            self.refused = self.refused.or(self.starts.begins(thread, number, &given));
            if only_writes(number) {
                self.writing.insert(thread);
            }
        }
        let is_flush = is_flush(number, &given);
        if !begins || registers.cs == CODE_32 || (self.noted > CALLS_MAX && !is_flush) {
            return Ok(None);
        }
        let Some(mut call) = shown(thread, number, &given, self.device) else { return Ok(None) };
        self.unnoted.remove(&thread);
        if is_flush && self.left_out.begins(thread)? {
            call += NOT_MADE;
        }
        Ok(self.noted(thread, call, is_flush))
    }

    /// The note of a call that begins, if there is room for one. Flushes have room of their own.
    fn noted(&mut self, thread: libc::pid_t, call: String, is_flush: bool) -> Option<Message> {
        let (count, most) = if is_flush { (&mut self.flushes, FLUSHES_MAX) } else { (&mut self.noted, CALLS_MAX) };
        *count += 1;
        if *count > most {
            let is_first = !is_flush && *count == most + 1;
            return is_first.then(|| Message::Called { thread: 0, program: String::new(), call: NO_MORE.to_owned() });
        }
        let (number, calling) = self.threads.entry(thread).or_insert_with(|| {
            self.numbers += 1;
            (self.numbers, false)
        });
        *calling = true;
        let program = fs::read(format!("/proc/{thread}/comm")).unwrap_or_default();
        let program = String::from_utf8_lossy(&program).trim_end().to_owned();
        Some(Message::Called { thread: *number, program, call })
    }

    /// A thread has started another one, or a process, which is stopped at its calls as well.
    pub fn started(&mut self, thread: libc::pid_t) {
        self.starts.confirm(thread);
    }

    /// Something was said since the last stop.
    pub fn output_received(&mut self) {
        if self.writing.is_empty() {
            self.refused = self.refused.or(Some(OUTPUT_OUTSIDE_CALLS));
        }
    }

    /// Why the program cannot be followed, if so.
    pub fn refused(&self) -> Option<&'static str> {
        self.refused
    }

    /// Why not all flushes were left out that were to be.
    pub fn objection(&self) -> Option<String> {
        self.left_out.objection()
    }

    /// A thread has ended, or runs another program from now on. Its call, if it is in one, does not return.
    pub fn ended(&mut self, thread: libc::pid_t) -> Option<Message> {
        self.left_out.ended(thread);
        self.starts.ended(thread);
        self.writing.remove(&thread);
        self.unnoted.remove(&thread);
        let (number, calling) = self.threads.remove(&thread)?;
        calling.then_some(Message::CallEnded { thread: number, result: NO_RESULT })
    }

    /// A thread runs another program, and has the id of its process for that. What becomes of the calls of both ids.
    pub fn executed(&mut self, thread: libc::pid_t) -> Vec<Message> {
        let threads = [thread, former(thread)];
        threads.into_iter().filter_map(|thread| self.ended(thread)).collect()
    }

    /// All threads have ended.
    pub fn all_ended(&mut self) -> Vec<Message> {
        let threads: Vec<_> = self.threads.keys().copied().collect();
        let mut notes: Vec<_> = threads.into_iter().filter_map(|thread| self.ended(thread)).collect();
        if self.noted > CALLS_MAX {
            notes.push(Message::CallEnded { thread: 0, result: NO_RESULT });
        }
        notes
    }
}

/// The call as text, if it can change names, sizes or contents of the target, or makes them durable.
fn shown(thread: libc::pid_t, number: i64, given: &[u64; 6], target: u64) -> Option<String> {
    let call = system_call(number).filter(|call| is_noted(call, given))?;
    // Whether one of the call's files is on the target. A call without files is about everything.
    let mut concerns = !call.names_a_file();
    let mut seen = |(name, device): (String, Option<u64>)| {
        concerns |= device == Some(target);
        quoted(&name)
    };
    let mut texts = Vec::new();
    for part in call.parts {
        texts.push(match *part {
            File(at) => seen(file(thread, given[at])?),
            Path(at) => seen(path(thread, libc::AT_FDCWD, given[at])?),
            PathAt(folder, at) => seen(path(thread, given[folder] as i32, given[at])?),
            Mapped(at, bytes) => seen((mapped_file(thread, given[at], given[bytes])?, Some(target))),
            Bytes(at) => format!("{} bytes", given[at]),
            BytesAt(at, offset) => format!("{} bytes at {}", given[at], given[offset]),
            Flags(at) => opening(given[at] as i32)?,
        });
    }
    concerns.then(|| format!("{}({})", call.name(), texts.join(", ")))
}

/// Whether a call is noted, by its arguments. To look up the names of its files takes time.
fn is_noted(call: &SystemCall, given: &[u64; 6]) -> bool {
    match call.effect {
        Effect::Harmless | Effect::SetAttribute | Effect::Other => false,
        // Most of them move bytes between pipes.
        Effect::Write(_) => call.number != libc::SYS_splice,
        // Most files are opened to be read.
        Effect::Open(flags) => flags.is_some_and(|place| opening(given[place] as i32).is_some()),
        // Only what is stored through a shared mapping gets into the file.
        Effect::Map => given[2] & libc::PROT_WRITE as u64 != 0 && given[3] & libc::MAP_SHARED as u64 != 0,
        // With MS_ASYNC it does nothing.
        Effect::FlushMemory => is_flush(call.number, given),
        _ => true,
    }
}

/// How a file is opened, if this can change it or make it.
fn opening(flags: i32) -> Option<String> {
    let made = libc::O_CREAT | libc::O_TRUNC;
    if flags & made == 0 && flags & libc::O_TMPFILE != libc::O_TMPFILE {
        return None;
    }
    let mode = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => "O_RDONLY",
        libc::O_WRONLY => "O_WRONLY",
        _ => "O_RDWR",
    };
    let mut words: Vec<_> = OPENINGS.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, word)| *word).collect();
    words.insert(0, mode);
    words.extend((flags & libc::O_TMPFILE == libc::O_TMPFILE).then_some("O_TMPFILE"));
    match flags & libc::O_SYNC {
        libc::O_SYNC => words.push("O_SYNC"),
        libc::O_DSYNC => words.push("O_DSYNC"),
        _ => {}
    }
    Some(words.join("|"))
}

fn quoted(path: &str) -> String {
    let shown: String = path.chars().take(SHOWN_MAX).collect();
    format!("{shown:?}")
}

/// The file behind a descriptor: its name, and the number of its device.
fn file(thread: libc::pid_t, number: u64) -> Option<(String, Option<u64>)> {
    let place = format!("/proc/{thread}/fd/{}", number as i32);
    Some((in_target(&link(&place)?), device(&place)))
}

/// The file that a call names: its name, and the number of the device that its folder is on.
fn path(thread: libc::pid_t, folder: i32, address: u64) -> Option<(String, Option<u64>)> {
    let named = string(thread, address)?;
    let start = path_start(folder, named.as_bytes());
    let parent = named.trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent);
    let found = device(&format!("/proc/{thread}/{start}/{parent}"));
    let start = if start == "root" { String::new() } else { link(&format!("/proc/{thread}/{start}"))? };
    Some((in_target(&format!("{start}/{named}")), found))
}

/// The path, in the target, of the first file of it that is mapped, shared, from an address on. A call with such a range has
/// nothing to do with private mappings.
fn mapped_file(thread: libc::pid_t, address: u64, bytes: u64) -> Option<String> {
    let is_in_target = |path: &str| {
        [MOUNT_POINT, &format!("{HOST}{MOUNT_POINT}")].iter().any(|root| std::path::Path::new(path).starts_with(root))
    };
    let addresses = address..address.saturating_add(bytes.max(1));
    let mut shared = mappings(thread).ok()?.into_iter().filter(|part| part.shared_bytes(&addresses).is_some());
    shared.find(|part| is_in_target(&part.path)).map(|part| in_target(&part.path))
}

fn device(place: &str) -> Option<u64> {
    fs::metadata(place).ok().map(|found| found.dev())
}

fn link(place: &str) -> Option<String> {
    Some(fs::read_link(place).ok()?.to_string_lossy().into_owned())
}

/// What a path is called in the target, without `.` and empty names. What lies elsewhere keeps its path.
///
/// The program has the target at its mount point. A path that the kernel tells may start at the agent's root instead.
fn in_target(path: &str) -> String {
    let names: Vec<_> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    let whole = format!("/{}", names.join("/"));
    let seen = whole.strip_prefix(HOST).unwrap_or(&whole);
    match seen.strip_prefix(MOUNT_POINT) {
        Some("") => ".".to_owned(),
        Some(inside) if inside.starts_with('/') => inside[1..].to_owned(),
        _ => whole,
    }
}

/// The text at an address of a thread's memory, up to its zero byte. None if it lies on a page that is not there: to read it
/// might take until the program goes on.
fn string(thread: libc::pid_t, address: u64) -> Option<String> {
    let mut text = Vec::new();
    while text.len() < PATH_BYTES_MAX {
        let at = address.checked_add(text.len() as u64)?;
        let part = within_page(thread, at, PAGE_BYTES - at % PAGE_BYTES)?;
        if let Some(end) = part.iter().position(|&byte| byte == 0) {
            text.extend_from_slice(&part[..end]);
            return Some(String::from_utf8_lossy(&text).into_owned());
        }
        text.extend_from_slice(&part);
    }
    None
}

/// The bytes of one page of a thread's memory, from an address on.
fn within_page(thread: libc::pid_t, address: u64, length: u64) -> Option<Vec<u8>> {
    let mut entry = [0; 8];
    let pages = fs::File::open(format!("/proc/{thread}/pagemap")).ok()?;
    pages.read_exact_at(&mut entry, address / PAGE_BYTES * 8).ok()?;
    if u64::from_le_bytes(entry) & PRESENT == 0 {
        return None;
    }
    read(thread, address, length as usize).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_as_the_target_has_them() {
        for (path, shown) in [
            (format!("{MOUNT_POINT}/a/b"), "a/b"),
            (format!("{HOST}{MOUNT_POINT}//a/./b"), "a/b"),
            (format!("/{MOUNT_POINT}/a"), "a"),
            (MOUNT_POINT.to_owned(), "."),
            (format!("{HOST}{MOUNT_POINT}"), "."),
            ("/srv/f".to_owned(), "/srv/f"),
            ("/mntx/f".to_owned(), "/mntx/f"),
        ] {
            assert_eq!(in_target(&path), shown);
        }
    }

    #[test]
    fn opening_is_noted_where_it_changes_something() {
        assert_eq!(opening(libc::O_RDWR), None);
        assert_eq!(
            opening(libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC).as_deref(),
            Some("O_WRONLY|O_CREAT|O_TRUNC")
        );
        assert_eq!(opening(libc::O_RDWR | libc::O_CREAT | libc::O_SYNC).as_deref(), Some("O_RDWR|O_CREAT|O_SYNC"));
        assert_eq!(opening(libc::O_WRONLY | libc::O_TMPFILE).as_deref(), Some("O_WRONLY|O_TMPFILE"));
    }

    #[test]
    fn a_path_is_read_from_memory_that_is_there() {
        let here = std::process::id() as libc::pid_t;
        let text = std::ffi::CString::new("some/where").expect("no zero");
        assert_eq!(string(here, text.as_ptr() as u64).as_deref(), Some("some/where"));
        assert_eq!(string(here, 16), None);
        // SAFETY: new memory that nobody has touched, so that it has no page; and one page that is touched, without an end.
        let (untouched, endless) = unsafe {
            let place = libc::mmap(
                std::ptr::null_mut(),
                3 * PAGE_BYTES as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(place, libc::MAP_FAILED);
            std::ptr::write_bytes(place.cast::<u8>(), b'x', PAGE_BYTES as usize);
            (place as u64 + PAGE_BYTES, place as u64)
        };
        assert_eq!(string(here, untouched), None);
        assert_eq!(string(here, endless), None, "the second page is not there");
    }

    #[test]
    fn a_call_of_a_thread_that_ends_does_not_return() {
        let threads = HashMap::from([(7, (1, true)), (8, (2, false))]);
        let mut calls = Calls { threads, ..Calls::default() };
        assert_eq!(calls.ended(8), None);
        assert_eq!(calls.all_ended(), [Message::CallEnded { thread: 1, result: NO_RESULT }]);
        assert_eq!(calls.all_ended(), []);
    }

    #[test]
    fn a_line_that_nobody_writes_is_why_a_program_is_refused() {
        let mut calls = Calls::default();
        calls.writing.insert(7);
        calls.output_received();
        assert_eq!(calls.refused(), None);
        assert_eq!(calls.ended(7), None);
        calls.output_received();
        assert_eq!(calls.refused(), Some(OUTPUT_OUTSIDE_CALLS));
    }
}
