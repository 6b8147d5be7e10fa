//! The walk visits crash states by their distance from everything kept or from nothing kept, and random ones in
//! between.
//!
//! The executions that were run form a tree of decisions. Each execution starts at an open end of the tree, keeps the
//! versions on the way there, and extends the tree with what else it reads. So no crash state is covered twice,
//! whatever the order in which executions read. A state whose way ends at an execution that has been run need not be
//! run. If the space is small enough, every end is reached at last, and then the order makes no difference.
//!
//! A state *deviates* in each component whose version is not the one of the reference: everything kept (version 0), or
//! nothing kept. Every branch knows how far its nearest open end is from each reference. At the root this number says
//! that all states nearer than that are covered.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use num_bigint::BigUint;

use crate::choice::{position, Choice, Options, Reach};
use crate::explore::Explorer;

/// A distance greater than that of any state.
const FAR: u32 = u32::MAX;

/// The version that a random state has in a component. It is drawn when it is asked for, and each crash state is as
/// likely as any other. `sample` is the number of the state among those that `seed` gives.
pub fn drawn(seed: u64, sample: u64, component: u32, options: &Options) -> u32 {
    let mut hasher = DefaultHasher::new();
    (seed, sample, component).hash(&mut hasher);
    let mut random = fastrand::Rng::with_seed(hasher.finish());
    let drawn = below(&options.weights.iter().sum(), &mut random);
    let mut end = BigUint::ZERO;
    let holds = |weight: &BigUint| {
        end += weight;
        drawn < end
    };
    position(&options.weights, holds)
}

/// What a walk may do. Without a limit it goes on until everything is covered.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// States that deviate in more components than this from both references are not run, except as samples.
    pub bound: Option<u32>,
    /// How many random states are drawn. If only this is given, only random states are run. If only a bound is given,
    /// none are drawn.
    pub samples: Option<u64>,
    pub seed: u64,
}

/// Where the next execution goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// To the state that is nearest to everything kept (0) or nothing kept (1).
    Near(usize),
    /// To a random state.
    Random,
}

const AIMS: [Aim; 3] = [Aim::Near(0), Aim::Near(1), Aim::Random];

/// What a slot of the tree holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// No execution has reached this slot.
    Open,
    /// Everything below this slot is covered.
    Done,
    Branch(u32),
}

struct Branch {
    component: u32,
    options: Options,
    /// The slot of version 0. The slots of the other versions follow it.
    first: usize,
    /// For each reference, how many more deviations there are from here to the nearest open end.
    nearest: [u32; 2],
}

/// One decision on the way to the place of the execution.
struct Step {
    slot: usize,
    branch: u32,
    version: u32,
}

/// Explores in turn near everything kept, near nothing kept, and at random.
pub struct Walk {
    bound: Option<u32>,
    samples_max: u64,
    seed: u64,
    /// Slot 0 is the root's.
    slots: Vec<Slot>,
    branches: Vec<Branch>,
    turn: usize,
    /// How many random states have been drawn so far. This is also the number of the last one.
    samples: u64,
    aim: Aim,
    path: Vec<Step>,
    /// The slot where the path ends.
    end: usize,
    /// The versions on the path, by component.
    chosen: HashMap<u32, u32>,
    running: bool,
}

impl Walk {
    pub fn new(limits: &Limits) -> Walk {
        let (bound, samples_max) = match (limits.bound, limits.samples) {
            (None, None) => (Some(FAR - 1), u64::MAX),
            (bound, samples) => (bound.map(|bound| bound.min(FAR - 1)), samples.unwrap_or(0)),
        };
        Walk {
            chosen: HashMap::new(),
            bound,
            samples_max,
            seed: limits.seed,
            slots: vec![Slot::Open],
            branches: Vec::new(),
            turn: 0,
            samples: 0,
            aim: AIMS[0],
            path: Vec::new(),
            end: 0,
            running: false,
        }
    }

    /// The version that the aim asks for in a component.
    fn aimed_at(&self, component: u32, options: &Options) -> u32 {
        match self.aim {
            Aim::Near(reference) => options.reference(reference),
            Aim::Random => drawn(self.seed, self.samples, component, options),
        }
    }

    fn nearest(&self, slot: usize, reference: usize) -> u32 {
        match self.slots[slot] {
            Slot::Open => 0,
            Slot::Done => FAR,
            Slot::Branch(branch) => self.branches[branch as usize].nearest[reference],
        }
    }

    /// The version that leads from a branch to the open end nearest to a reference, and how far that end is.
    fn towards(&self, reference: usize, branch: u32) -> (u32, u32) {
        let Branch { first, ref options, .. } = self.branches[branch as usize];
        let same = options.reference(reference);
        let far = |version: u32| {
            let rest = self.nearest(first + version as usize, reference);
            rest.saturating_add(u32::from(version != same))
        };
        let versions = 0..options.weights.len() as u32;
        versions.map(|version| (version, far(version))).min_by_key(|&(_, far)| far).expect("a component has versions")
    }

    fn has_more(&self, aim: Aim) -> bool {
        match aim {
            Aim::Near(reference) => self.bound.is_some_and(|bound| self.nearest(0, reference) <= bound),
            Aim::Random => self.samples < self.samples_max && self.slots[0] != Slot::Done,
        }
    }

    /// Go to an open end. False if the way leads to an execution that has been run.
    fn start(&mut self, aim: Aim) -> bool {
        self.aim = aim;
        self.path.clear();
        self.chosen.clear();
        self.end = 0;
        if aim == Aim::Random {
            self.samples += 1;
        }
        while let Slot::Branch(branch) = self.slots[self.end] {
            let version = match aim {
                Aim::Near(reference) => self.towards(reference, branch).0,
                Aim::Random => {
                    let Branch { component, ref options, .. } = self.branches[branch as usize];
                    self.aimed_at(component, options)
                }
            };
            self.step(branch, version);
        }
        self.slots[self.end] == Slot::Open
    }

    fn step(&mut self, branch: u32, version: u32) {
        let Branch { component, first, .. } = self.branches[branch as usize];
        self.path.push(Step { slot: self.end, branch, version });
        self.chosen.insert(component, version);
        self.end = first + version as usize;
    }

    /// End the execution: every state that agrees with its choices is covered.
    fn close(&mut self) {
        if !std::mem::take(&mut self.running) {
            return;
        }
        self.slots[self.end] = Slot::Done;
        for at in (0..self.path.len()).rev() {
            let Step { slot, branch, .. } = self.path[at];
            let nearest = [0, 1].map(|reference| self.towards(reference, branch).1);
            self.branches[branch as usize].nearest = nearest;
            if nearest[0] == FAR {
                self.slots[slot] = Slot::Done;
            }
        }
    }
}

impl Explorer for Walk {
    fn next_execution(&mut self) -> bool {
        self.close();
        while AIMS.iter().any(|&aim| self.has_more(aim)) {
            let aim = AIMS[self.turn % AIMS.len()];
            self.turn += 1;
            if self.has_more(aim) && self.start(aim) {
                self.running = true;
                return true;
            }
        }
        false
    }

    fn choose(&mut self, component: u32, options: &dyn Fn() -> Options) -> u32 {
        if let Some(known) = self.chosen(component) {
            return known;
        }
        let options = options();
        let version = self.aimed_at(component, &options);
        let (branch, first) = (self.branches.len() as u32, self.slots.len());
        self.slots.resize(first + options.weights.len(), Slot::Open);
        self.branches.push(Branch { component, options, first, nearest: [0, 0] });
        self.slots[self.end] = Slot::Branch(branch);
        self.step(branch, version);
        version
    }

    fn chosen(&self, component: u32) -> Option<u32> {
        self.chosen.get(&component).copied()
    }

    fn choices(&self) -> Vec<Choice> {
        let component = |step: &Step| self.branches[step.branch as usize].component;
        self.path.iter().map(|step| Choice { component: component(step), version: step.version }).collect()
    }

    fn reached(&mut self) -> Option<Reach> {
        self.close();
        let covered = |reference| self.nearest(0, reference).checked_sub(1);
        Some(Reach { all_kept: covered(0), none_kept: covered(1), samples: self.samples })
    }
}

/// A random number below `bound`. Each one is equally likely.
fn below(bound: &BigUint, random: &mut fastrand::Rng) -> BigUint {
    let bits = bound.bits();
    loop {
        let digits = (0..bits.div_ceil(32)).map(|_| random.u32(..)).collect();
        let drawn = BigUint::new(digits) >> (bits.div_ceil(32) * 32 - bits);
        if drawn < *bound {
            return drawn;
        }
    }
}
