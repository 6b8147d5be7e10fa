//! What an execution chooses from, and how far its choices have come.

use num_bigint::BigUint;

/// Marks the components of the crash state under a recording.
pub const BELOW: u32 = 1 << 31;

/// The versions that a component can have.
#[derive(Debug, Clone)]
pub struct Options {
    /// The one that is left when every piece is lost.
    pub nothing_kept: u32,
    /// Of each version: how many states of the component it stands for.
    pub weights: Vec<BigUint>,
}

impl Options {
    /// The version in a reference: everything kept (0) or nothing kept (1).
    pub fn reference(&self, reference: usize) -> u32 {
        [0, self.nothing_kept][reference]
    }
}

/// What a walk that has not covered everything has covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// All states that deviate in at most so many components from everything kept; none if not even that one.
    pub all_kept: Option<u32>,
    /// The same for nothing kept.
    pub none_kept: Option<u32>,
    /// Random states that were drawn, each of which is covered.
    pub samples: u64,
}

/// Where the one that is `wanted` stands.
pub(crate) fn position<T>(all: &[T], wanted: impl FnMut(&T) -> bool) -> u32 {
    all.iter().position(wanted).expect("it is one of them") as u32
}
