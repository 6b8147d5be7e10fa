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
    /// PREFLUSH writes under way have had their flush or, if flushes order and do not persist, in how many flushes all
    /// that is in front of them has persisted.
    pub instants: Vec<Instant>,
    /// What is in flight, in submission order. If pieces are kept in an order, they stand in that order, disk after disk.
    pub pieces: Vec<Piece>,
    /// The writes that had been submitted at the first instant, are not stable, and are kept in none of these states,
    /// by their events. What is submitted later is kept in none either.
    pub absent: Vec<usize>,
    /// Components with more than one version, by their first sector. The others have nothing to choose.
    pub components: Vec<Component>,
    /// Why the interval cannot be explored. None if it can.
    pub too_large: Option<TooManyVersions>,
    /// If flushes order and do not persist, those of each disk. Otherwise those of all disks together.
    pub(crate) states: Vec<DiskStates>,
}

/// How many crash states the pieces on a disk have.
pub(crate) struct DiskStates {
    /// The sector where the disk ends.
    pub end: u64,
    /// How many choices of the kept pieces there are.
    pub all: BigUint,
    /// How many of them the next stage of the disk has, too. They are counted there: they keep all that it must keep.
    pub next: BigUint,
}

/// How many of some choices of the kept pieces agree with the versions of components.
struct Agreeing {
    all: BigUint,
    chosen: BigUint,
    count: BigUint,
}

impl Agreeing {
    fn new(all: &BigUint) -> Agreeing {
        Agreeing { all: all.clone(), chosen: BigUint::one(), count: BigUint::one() }
    }

    /// Of a component's choices, as many as `weight` give the version.
    fn choose(&mut self, states: BigUint, weight: BigUint) {
        self.chosen *= states;
        self.count *= weight;
    }

    fn count(self) -> BigUint {
        self.count * (self.all / self.chosen)
    }
}

fn product(numbers: impl Iterator<Item = usize>) -> BigUint {
    let mut times: BTreeMap<usize, u32> = BTreeMap::new();
    for number in numbers {
        *times.entry(number).or_default() += 1;
    }
    times.into_iter().map(|(number, count)| BigUint::from(number).pow(count)).product()
}

impl Interval {
    /// The latest of its instants.
    pub fn latest(&self) -> Instant {
        *self.instants.last().expect("an interval has an instant")
    }

    /// How many crash states there are at each instant. A crash state is a choice of the pieces that are kept.
    pub fn states(&self) -> BigUint {
        self.states.iter().map(|disk| &disk.all - &disk.next).product()
    }

    /// How many crash states agree with `choices`.
    pub fn covered(&self, choices: &[Choice]) -> BigUint {
        let count = |disk: &DiskStates| (Agreeing::new(&disk.all), Agreeing::new(&disk.next));
        let mut counts: Vec<_> = self.states.iter().map(count).collect();
        for &Choice { component, version } in choices {
            let component = &self.components[component as usize];
            let disk = self.disk_of(component);
            let (all, next) = &mut counts[disk];
            all.choose(component.states(), component.weight(version));
            if self.states[disk].next != BigUint::ZERO {
                next.choose(component.states_next(), component.weight_next(version));
            }
        }
        counts.into_iter().map(|(all, next)| all.count() - next.count()).product()
    }

    fn disk_of(&self, component: &Component) -> usize {
        self.states.partition_point(|disk| disk.end <= component.sector)
    }

    /// How many different disk contents there are.
    pub fn contents(&self) -> BigUint {
        let disks = 0..self.states.len();
        disks
            .map(|disk| product(self.on(disk).map(|known| known.versions.len())) - self.contents_of_next(disk))
            .product()
    }

    fn on(&self, disk: usize) -> impl Iterator<Item = &Component> {
        self.components.iter().filter(move |component| self.disk_of(component) == disk)
    }

    /// How many contents of a disk only those states show that are counted with its next stage.
    fn contents_of_next(&self, disk: usize) -> BigUint {
        let DiskStates { all, next, .. } = &self.states[disk];
        // A piece that changes nothing is in no component. If it is lost, the state is counted here.
        let in_components: u32 = self.on(disk).map(Component::kept_next).sum();
        if *next == BigUint::ZERO || &(all >> in_components) != next {
            return BigUint::ZERO;
        }
        product(self.on(disk).map(Component::versions_of_next))
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
