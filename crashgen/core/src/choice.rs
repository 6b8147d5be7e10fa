//! What an execution can choose, what it has chosen, and how much of the crash states a walk has covered.

use std::collections::HashMap;

use num_bigint::BigUint;
use serde::{Deserialize, Serialize};

/// The bit of a component's number that marks the components of the crash state under a recording.
pub const BELOW: u32 = 1 << 31;

/// A component with the version that it has in a crash state. In messages it is a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct Choice {
    pub component: u32,
    pub version: u32,
}

impl Choice {
    /// Whether the component belongs to the crash state under the recording.
    pub fn is_below(self) -> bool {
        self.component & BELOW != 0
    }
}

impl From<(u32, u32)> for Choice {
    fn from((component, version): (u32, u32)) -> Choice {
        Choice { component, version }
    }
}

impl From<Choice> for (u32, u32) {
    fn from(choice: Choice) -> (u32, u32) {
        (choice.component, choice.version)
    }
}

/// The versions that were chosen, by component.
pub fn by_component(choices: &[Choice]) -> HashMap<u32, u32> {
    choices.iter().map(|choice| (choice.component, choice.version)).collect()
}

/// The versions that a component can have.
#[derive(Debug, Clone)]
pub struct Options {
    /// The version that is left when every piece is lost.
    pub nothing_kept: u32,
    /// For each version, how many states of the component it stands for.
    pub weights: Vec<BigUint>,
}

impl Options {
    /// The version in a reference: everything kept (0) or nothing kept (1).
    pub fn reference(&self, reference: usize) -> u32 {
        [0, self.nothing_kept][reference]
    }
}

/// What a walk has covered that did not cover everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// Every state that deviates from everything kept in at most this many components is covered. None if not even
    /// everything kept is covered.
    pub all_kept: Option<u32>,
    /// The same for nothing kept.
    pub none_kept: Option<u32>,
    /// How many random states were drawn. Each of them is covered.
    pub samples: u64,
}

/// The index of the first element that is `wanted`.
pub(crate) fn position<T>(all: &[T], wanted: impl FnMut(&T) -> bool) -> u32 {
    all.iter().position(wanted).expect("it is one of them") as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_messages_a_choice_is_a_pair() {
        let choices = [Choice { component: 3, version: 1 }, Choice { component: BELOW, version: 0 }];
        let text = serde_json::to_string(&choices).expect("plain data");
        assert_eq!(text, "[[3,1],[2147483648,0]]");
        assert_eq!(serde_json::from_str::<[Choice; 2]>(&text).expect("pairs"), choices);
        serde_json::from_str::<Choice>("[3]").expect_err("no pair");
    }
}
