//! What has to be looked at when a system call ends, by its effect in the table of system calls.

use postcrash_stopped::system_calls::{effect_of, is_flush, Effect};

/// What a step is called that is no call: what was stored through mappings.
pub const STORE: &str = "store";

/// What has to be looked at when a call of this kind ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: the call changes neither names nor contents.
    Harmless,
    /// The content of the file behind this argument, which is a descriptor.
    Content(usize),
    /// Names, and the contents of files that have another size.
    Names,
    /// The file behind this argument, a descriptor, is made durable.
    Flush(usize),
    /// All that is mapped in the range of memory that the first two arguments give is made durable.
    FlushMemory,
    /// Everything is made durable; with an argument, a descriptor, all of the file system behind it.
    FlushAll(Option<usize>),
    /// The program writes output.
    Outputs,
    /// A file may be mapped: stores to it are no system calls.
    Map,
    /// Anything. It is not known what the call does.
    Unknown,
}

/// The kind of the call with this number and these arguments.
pub fn kind_of(number: i64, arguments: &[u64; 6]) -> Kind {
    match effect_of(number) {
        Effect::Harmless => Kind::Harmless,
        Effect::Write(file) | Effect::Resize(file) => Kind::Content(file),
        Effect::Open(flags) => flags.map_or(Kind::Names, |place| opening(arguments[place])),
        Effect::Names | Effect::Truncate => Kind::Names,
        Effect::Flush(file) => Kind::Flush(file),
        Effect::FlushMemory if is_flush(number, arguments) => Kind::FlushMemory,
        Effect::FlushMemory => Kind::Harmless,
        Effect::FlushAll(file) => Kind::FlushAll(file),
        Effect::Map => Kind::Map,
        Effect::WriteBack(_) | Effect::SetAttribute | Effect::Other => Kind::Unknown,
    }
}

/// Whether a call writes, so that it waits for the disk if its file was opened with O_DSYNC.
pub fn is_write(number: i64) -> bool {
    matches!(effect_of(number), Effect::Write(_))
}

/// Whether a call may last until another thread does something.
pub fn may_last(number: i64) -> bool {
    matches!(number, libc::SYS_splice | libc::SYS_sendfile)
}

/// Whether this write waits for the disk, whatever its file's flags are.
pub fn writes_through(number: i64, arguments: &[u64; 6]) -> bool {
    number == libc::SYS_pwritev2 && arguments[5] & (libc::RWF_DSYNC | libc::RWF_SYNC) as u64 != 0
}

/// Whether a call gives a file or directory an extended attribute.
pub fn sets_attribute(number: i64) -> bool {
    effect_of(number) == Effect::SetAttribute
}

/// Where a write begins, if its arguments say so.
pub fn offset(number: i64, arguments: &[u64; 6]) -> Option<u64> {
    let is_given = matches!(number, libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2);
    (is_given && arguments[3] != u64::MAX).then_some(arguments[3])
}

/// Whether a call opens a file, which may be one without a name.
pub fn opens(number: i64) -> bool {
    matches!(effect_of(number), Effect::Open(_))
}

/// Whether a call opens a file to write to it. The flags of openat2 lie in memory.
pub fn opens_to_write(number: i64, arguments: &[u64; 6]) -> bool {
    match effect_of(number) {
        Effect::Open(Some(place)) => arguments[place] & libc::O_ACCMODE as u64 != libc::O_RDONLY as u64,
        Effect::Open(None) => true,
        _ => number == libc::SYS_creat,
    }
}

fn opening(flags: u64) -> Kind {
    let changing = libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE;
    if flags & changing as u64 == 0 {
        Kind::Harmless
    } else {
        Kind::Names
    }
}
