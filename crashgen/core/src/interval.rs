//! Crash intervals: stretches of a recording in which a crash finds the same pieces in flight. `cursor.rs` finds them.

use std::collections::{BTreeMap, HashMap};

use num_bigint::BigUint;
use num_traits::One;
use serde::Serialize;

use crate::choice::Choice;
use crate::component::{Component, TooManyVersions, Versions};
use crate::piece::Piece;

/// When a crash comes, and how far the operations had got by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Instant {
    /// The crash comes just before this event of the recording. The number of events stands for a crash after the end.
    pub event: usize,
    /// How many operations (set-up included) had started, and how many had returned.
    pub started: u32,
    pub returned: u32,
}

/// The crash states of one interval, which are the same at each of its instants.
pub struct Interval {
    pub index: u32,
    /// The instants, in order, at least one. Several intervals can have the same instants: they differ in how many
    /// PREFLUSH writes under way have had their flush.
    pub instants: Vec<Instant>,
    /// What is in flight, in submission order. If pieces are kept in an order, they stand in that order, disk after disk.
    pub pieces: Vec<Piece>,
    /// Components with more than one version, by their first sector. The others have nothing to choose.
    pub components: Vec<Component>,
    /// Why the interval cannot be explored. None if it can.
    pub too_large: Option<TooManyVersions>,
    pub(crate) states: BigUint,
}

impl Interval {
    /// The latest of its instants.
    pub fn latest(&self) -> Instant {
        *self.instants.last().expect("an interval has an instant")
    }

    /// How many crash states there are at each instant. A crash state is a choice of the pieces that are kept.
    pub fn states(&self) -> BigUint {
        self.states.clone()
    }

    /// How many crash states agree with `choices`.
    pub fn covered(&self, choices: &[Choice]) -> BigUint {
        let (mut chosen, mut count) = (BigUint::one(), BigUint::one());
        for &Choice { component, version } in choices {
            let component = &self.components[component as usize];
            chosen *= component.states();
            count *= component.weight(version);
        }
        count * (&self.states / chosen)
    }

    /// How many different disk contents there are.
    pub fn contents(&self) -> BigUint {
        let mut components_with: BTreeMap<usize, u32> = BTreeMap::new();
        for component in &self.components {
            *components_with.entry(component.versions.len()).or_default() += 1;
        }
        components_with.into_iter().map(|(versions, count)| BigUint::from(versions).pow(count)).product()
    }

    pub fn component_at(&self, sector: u64) -> Option<u32> {
        let index = self.components.partition_point(|component| component.sector <= sector).checked_sub(1)?;
        self.components[index].has(sector).then_some(index as u32)
    }

    /// Whether a component decides any of these sectors. No two components have a sector in common.
    pub fn touches(&self, sector: u64, sectors: u64) -> bool {
        let next = self.components.partition_point(|component| component.sector < sector.saturating_add(sectors));
        // Of components that are runs, only the last one can. The others are one for each disk.
        let runs = self.components.first().is_some_and(|first| !matches!(first.versions, Versions::InOrder(_)));
        let candidates = if runs { next.saturating_sub(1) } else { 0 };
        self.components[candidates..next].iter().any(|component| component.touches(sector, sectors))
    }

    /// Pieces that are lost in a state with `choices`. Components without a choice keep all their pieces.
    pub fn lost(&self, choices: &[Choice]) -> Vec<u32> {
        let lost = |choice: &Choice| self.components[choice.component as usize].lost(choice.version);
        let mut lost: Vec<u32> = choices.iter().flat_map(lost).collect();
        lost.sort_unstable();
        lost
    }

    /// How many writes are kept only in part when these pieces are `lost`.
    pub fn torn(&self, lost: &[u32]) -> usize {
        let event = |index: usize| self.pieces[index].event;
        let mut writes: HashMap<usize, (usize, usize)> = HashMap::new();
        for at in lost.iter().map(|&index| index as usize) {
            // The pieces of a write are next to each other.
            let all = || {
                let before = (0..at).rev().take_while(|&other| event(other) == event(at)).count();
                before + (at..self.pieces.len()).take_while(|&other| event(other) == event(at)).count()
            };
            writes.entry(event(at)).or_insert_with(|| (all(), 0)).1 += 1;
        }
        writes.values().filter(|(all, lost)| lost < all).count()
    }
}
