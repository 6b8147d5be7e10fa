//! Broken versions of this program, which a checker must find. They exist in the program xsync-canary only.

/// A promise that is broken, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// The first output is released before its commit.
    EarlyOutput,
    /// An output is released by a commit that was running when it arrived.
    RunningCommit,
    /// Descriptors that xsync inherits are passed on to the command.
    InheritedPipe,
    /// Sockets of the outside can be reached by their path names.
    UnixSocket,
    /// The outside's /tmp is the box's /tmp.
    BoundFolder,
    /// The outside's System V shared memory is the box's.
    SharedMemory,
}

#[cfg(feature = "canaries")]
const NAMES: [(&str, Canary); 6] = [
    ("early-output", Canary::EarlyOutput),
    ("running-commit", Canary::RunningCommit),
    ("inherited-pipe", Canary::InheritedPipe),
    ("unix-socket", Canary::UnixSocket),
    ("bound-folder", Canary::BoundFolder),
    ("shared-memory", Canary::SharedMemory),
];

/// Whether this promise is broken: never in the program that people use.
#[cfg(not(feature = "canaries"))]
pub const fn is(_: Canary) -> bool {
    false
}

/// Whether this promise is broken: the one that the variable XSYNC_CANARY names. Without it none is.
///
/// # Panics
/// If there is no promise of that name.
#[cfg(feature = "canaries")]
pub fn is(canary: Canary) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<Canary>> = std::sync::LazyLock::new(|| {
        let name = std::env::var("XSYNC_CANARY").ok()?;
        let found = NAMES.iter().find(|(known, _)| *known == name).map(|(_, canary)| *canary);
        Some(found.unwrap_or_else(|| panic!("XSYNC_CANARY={name}: there are {:?}", NAMES.map(|(known, _)| known))))
    });
    *CHOSEN == Some(canary)
}
