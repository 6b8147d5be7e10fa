//! Explorers decide which version of a component an execution sees when it reads it.
//!
//! A recovery is a function of what it reads. An execution asks for the version of a component the first time that it
//! reads the component. A component that it never asks for has not mattered, so one execution stands for all crash
//! states that agree on the choices made.

use std::collections::BTreeMap;

use crate::choice::{Choice, Options, Reach};

/// A strategy. Call `next_execution`, then `choose` as the guest reads. Repeat until `next_execution` is false.
pub trait Explorer {
    /// Prepare the next execution; false when there is none left.
    fn next_execution(&mut self) -> bool;
    /// The version of `component`, one of its `options`, in this execution. The answer stays the same within the
    /// execution.
    fn choose(&mut self, component: u32, options: &dyn Fn() -> Options) -> u32;
    /// The version of `component` if this execution has chosen it already.
    fn chosen(&self, component: u32) -> Option<u32>;
    /// The choices that this execution made or was given. They are what it stands for.
    fn choices(&self) -> Vec<Choice>;
    /// What the strategy has covered. None for a strategy that does not go by distance.
    fn reached(&mut self) -> Option<Reach> {
        None
    }
}

/// Every content of the interval, one by one, read or not. This is brute force, against which [`crate::walk`] is
/// tested.
pub struct BruteForce {
    versions: Vec<u32>,
    chosen: Vec<u32>,
    started: bool,
}

impl BruteForce {
    /// `versions`: how many versions each component has.
    pub fn new(versions: Vec<u32>) -> Self {
        BruteForce { chosen: vec![0; versions.len()], versions, started: false }
    }
}

impl Explorer for BruteForce {
    fn next_execution(&mut self) -> bool {
        if !self.started {
            self.started = true;
            return true;
        }
        for (chosen, &versions) in self.chosen.iter_mut().zip(&self.versions) {
            *chosen += 1;
            if *chosen < versions {
                return true;
            }
            *chosen = 0;
        }
        false
    }

    fn choose(&mut self, component: u32, _options: &dyn Fn() -> Options) -> u32 {
        self.chosen[component as usize]
    }

    fn chosen(&self, component: u32) -> Option<u32> {
        Some(self.chosen[component as usize])
    }

    fn choices(&self) -> Vec<Choice> {
        (0..).zip(self.chosen.iter().copied()).map(Choice::from).collect()
    }
}

/// One given state. Components that are not named follow `rest`, or keep all they can.
pub struct FixedChoices<F> {
    choices: BTreeMap<u32, u32>,
    rest: F,
    pending: bool,
}

impl<F: FnMut(u32, u32) -> u32> FixedChoices<F> {
    /// `rest` gives the version of a component that `choices` does not name. It is called with the component and its
    /// number of versions.
    pub fn new(choices: Vec<Choice>, rest: F) -> Self {
        let choices = choices.into_iter().map(|choice| (choice.component, choice.version)).collect();
        FixedChoices { choices, rest, pending: true }
    }
}

impl<F: FnMut(u32, u32) -> u32> Explorer for FixedChoices<F> {
    fn next_execution(&mut self) -> bool {
        std::mem::take(&mut self.pending)
    }

    fn choose(&mut self, component: u32, options: &dyn Fn() -> Options) -> u32 {
        if let Some(known) = self.chosen(component) {
            return known;
        }
        let version = (self.rest)(component, options().weights.len() as u32);
        self.choices.insert(component, version);
        version
    }

    fn chosen(&self, component: u32) -> Option<u32> {
        self.choices.get(&component).copied()
    }

    fn choices(&self) -> Vec<Choice> {
        self.choices.iter().map(|(&component, &version)| Choice { component, version }).collect()
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::*;
    use crate::walk::{Limits, Walk};
    use std::collections::BTreeSet;

    /// Run `program` under `explorer`; returns each execution's choices and result.
    fn run<R>(
        mut explorer: impl Explorer,
        mut program: impl FnMut(&mut dyn FnMut(u32) -> u32) -> R,
    ) -> Vec<(Vec<Choice>, R)> {
        let mut results = Vec::new();
        while explorer.next_execution() {
            let result = program(&mut |component| {
                let weights = vec![BigUint::from(1u32); 2 + component as usize % 2];
                explorer.choose(component, &|| Options { nothing_kept: 1, weights: weights.clone() })
            });
            results.push((explorer.choices(), result));
        }
        results
    }

    #[test]
    fn the_walk_covers_each_state_once_and_agrees_with_brute_force() {
        let program = |read: &mut dyn FnMut(u32) -> u32| {
            let header = read(0);
            if header == 0 {
                read(1) * 10
            } else {
                read(2) + read(3)
            }
        };
        let versions = [2, 3, 2, 3];
        let lazy = run(Walk::new(&Limits::default()), program);
        let brute = run(BruteForce::new(versions.to_vec()), program);
        let outcomes = |runs: &[(Vec<Choice>, u32)]| runs.iter().map(|run| run.1).collect::<BTreeSet<_>>();
        assert_eq!(outcomes(&lazy), outcomes(&brute));
        assert_eq!((lazy.len(), brute.len()), (9, 36));
        for (all, outcome) in &brute {
            let agreeing: Vec<_> = lazy.iter().filter(|(some, _)| some.iter().all(|c| all.contains(c))).collect();
            assert_eq!(agreeing.len(), 1);
            assert_eq!(agreeing[0].1, *outcome);
        }
    }

    #[test]
    fn a_fixed_state_runs_once() {
        let choice = |component, version| Choice { component, version };
        let runs = run(FixedChoices::new(vec![choice(1, 2)], |_, versions| versions - 1), |read| (read(1), read(2)));
        assert_eq!(runs, [(vec![choice(1, 2), choice(2, 1)], (2, 1))]);
    }
}
