//! The walk against brute force, on random programs that read a few components.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use num_bigint::BigUint;
use postcrash_core::choice::{Choice, Options, Reach};
use postcrash_core::explore::Explorer;
use postcrash_core::walk::{drawn, Limits, Walk};
use proptest::prelude::*;

const CASES: u32 = 400;

/// A version for each component.
type State = Vec<u32>;

/// A program that reads components. Which ones it reads depends on what it has read.
#[derive(Debug, Clone)]
struct Program {
    /// For each component the version with nothing kept, and the weight of each version.
    components: Vec<(u32, Vec<u32>)>,
    seed: u64,
    /// Read other components in between. They are different in each execution and do not matter.
    noisy: bool,
}

/// The version of each component, as far as it is known, and what the program saw.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Execution {
    choices: Vec<Choice>,
    seen: Vec<u32>,
}

impl Program {
    fn options(&self, component: usize) -> Options {
        let (nothing_kept, all) = &self.components[component];
        Options { nothing_kept: *nothing_kept, weights: all.iter().map(|&weight| BigUint::from(weight)).collect() }
    }

    fn states(&self) -> Vec<State> {
        let mut all = vec![Vec::new()];
        for (_, weights) in &self.components {
            let versions = 0..weights.len() as u32;
            all = all.iter().flat_map(|s: &State| versions.clone().map(|v| [&s[..], &[v]].concat())).collect();
        }
        all
    }

    /// How many components of a state deviate from each reference.
    fn deviations(&self, state: &[u32]) -> [u32; 2] {
        let kept = state.iter().filter(|&&version| version != 0).count();
        let nothing = self.components.iter().zip(state).filter(|((nothing, _), version)| nothing != *version).count();
        [kept as u32, nothing as u32]
    }

    fn weight(&self, choices: &[Choice]) -> u64 {
        let chosen = |c: u32| choices.iter().find(|choice| choice.component == c).map(|choice| choice.version as usize);
        let weights = (0..).zip(&self.components).map(|(c, (_, all))| match chosen(c) {
            Some(version) => u64::from(all[version]),
            None => all.iter().map(|&weight| u64::from(weight)).sum(),
        });
        weights.product()
    }

    fn run(&self, number: usize, choose: &mut dyn FnMut(u32) -> u32) -> Vec<u32> {
        let count = self.components.len();
        let mut read = |component: usize| choose(component as u32);
        let mut seen = Vec::new();
        while seen.len() < count {
            if self.noisy {
                let noise = hash((self.seed, number, seen.len())) % (3 * count);
                if noise < count {
                    read(noise);
                }
            }
            let component = hash((self.seed, &seen)) % (count + 1);
            if component == count {
                break;
            }
            seen.push(read(component));
        }
        seen
    }

    /// Run at most `executions_max` executions.
    fn walk(&self, limits: &Limits, executions_max: usize) -> (Vec<Execution>, Reach) {
        let mut walk = Walk::new(limits);
        let (mut executions, contents) = (Vec::new(), self.states().len());
        while executions.len() < executions_max && walk.next_execution() {
            let mut choose = |component| walk.choose(component, &|| self.options(component as usize));
            let seen = self.run(executions.len(), &mut choose);
            executions.push(Execution { choices: walk.choices(), seen });
            assert!(executions.len() <= contents, "more executions than contents");
        }
        let reached = walk.reached().expect("a walk goes by distance");
        (executions, reached)
    }

    fn run_on(&self, state: &[u32]) -> Vec<u32> {
        self.run(0, &mut |component| state[component as usize])
    }

    /// Check that each state is covered at most once, with the right outcome, and that the claims are exact. Returns
    /// the states that are covered.
    fn check(&self, executions: &[Execution], reached: &Reach) -> BTreeSet<State> {
        let mut covered = BTreeSet::new();
        for state in self.states() {
            let agreeing: Vec<_> = executions.iter().filter(|execution| agrees(&execution.choices, &state)).collect();
            assert!(agreeing.len() <= 1, "{state:?} is covered twice");
            if let Some(execution) = agreeing.first() {
                assert_eq!(execution.seen, self.run_on(&state), "{state:?}");
                covered.insert(state);
            }
        }
        let every: Vec<_> = self.states();
        for (reference, claimed) in [reached.all_kept, reached.none_kept].into_iter().enumerate() {
            let open = every.iter().filter(|state| !covered.contains(*state));
            let nearest = open.map(|state| self.deviations(state)[reference]).min();
            assert_eq!(claimed, nearest.map_or(Some(u32::MAX - 1), |nearest| nearest.checked_sub(1)));
        }
        let counted: u64 = executions.iter().map(|execution| self.weight(&execution.choices)).sum();
        let whole =
            |state: &State| self.weight(&(0..).zip(state.iter().copied()).map(Choice::from).collect::<Vec<_>>());
        assert_eq!(counted, covered.iter().map(whole).sum::<u64>());
        covered
    }

    fn drawn(&self, seed: u64, count: u64) -> Vec<State> {
        let version = |sample, component| drawn(seed, sample, component as u32, &self.options(component));
        (1..=count).map(|sample| (0..self.components.len()).map(|c| version(sample, c)).collect()).collect()
    }

    /// The fewest deviations from a reference among the states that an execution stands for.
    fn distance(&self, choices: &[Choice]) -> u32 {
        let from = |same: &dyn Fn(u32) -> u32| choices.iter().filter(|c| c.version != same(c.component)).count();
        from(&|_| 0).min(from(&|component| self.components[component as usize].0)) as u32
    }
}

fn agrees(choices: &[Choice], state: &[u32]) -> bool {
    choices.iter().all(|choice| state[choice.component as usize] == choice.version)
}

fn hash(value: impl Hash) -> usize {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish() as usize
}

fn component() -> impl Strategy<Value = (u32, Vec<u32>)> {
    let weights = prop::collection::vec(1..5u32, 2..4);
    weights.prop_flat_map(|weights| (0..weights.len() as u32, Just(weights)))
}

fn program() -> impl Strategy<Value = Program> {
    let parts = (prop::collection::vec(component(), 1..7), any::<u64>(), any::<bool>());
    parts.prop_map(|(components, seed, noisy)| Program { components, seed, noisy })
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn without_a_limit_each_state_is_covered_once(program in program(), seed in any::<u64>()) {
        let (executions, reached) = program.walk(&Limits { seed, ..Limits::default() }, usize::MAX);
        assert_eq!(program.check(&executions, &reached).len(), program.states().len());
        let outcomes: BTreeSet<_> = program.states().iter().map(|state| program.run_on(state)).collect();
        if !program.noisy {
            assert_eq!(executions.len(), outcomes.len(), "one execution for each way through the program");
        }
    }

    #[test]
    fn wherever_it_stops_what_it_claims_is_exact(program in program(), seed in any::<u64>(), stop in 0..40usize) {
        let limits = Limits { seed, ..Limits::default() };
        let (executions, reached) = program.walk(&limits, stop);
        let covered = program.check(&executions, &reached);
        assert!(program.drawn(seed, reached.samples).iter().all(|state| covered.contains(state)));
        assert_eq!(program.walk(&limits, stop), (executions, reached), "the same seed gives the same walk");
    }

    #[test]
    fn a_bound_is_kept_and_reached(program in program(), bound in prop_oneof![0..4u32, Just(u32::MAX)]) {
        let (executions, reached) = program.walk(&Limits { bound: Some(bound), ..Limits::default() }, usize::MAX);
        let covered = program.check(&executions, &reached);
        let near = |state: &&State| program.deviations(state).iter().any(|&deviations| deviations <= bound);
        assert!(program.states().iter().filter(near).all(|state| covered.contains(state)));
        assert!(executions.iter().all(|execution| program.distance(&execution.choices) <= bound));
        assert_eq!(reached.samples, 0);
    }

    #[test]
    fn samples_are_the_states_drawn_and_run_once(program in program(), samples in 0..30u64, seed in any::<u64>()) {
        let limits = Limits { bound: None, samples: Some(samples), seed };
        let (executions, reached) = program.walk(&limits, usize::MAX);
        let covered = program.check(&executions, &reached);
        let drawn = program.drawn(seed, samples);
        assert!(drawn.iter().all(|state| covered.contains(state)));
        assert!(executions.iter().all(|run| drawn.iter().any(|state| agrees(&run.choices, state))));
        assert!(reached.samples == samples || covered.len() == program.states().len());
    }

    #[test]
    fn a_bound_and_samples_are_both_run(program in program(), bound in 0..2u32, samples in 0..9u64) {
        let limits = Limits { bound: Some(bound), samples: Some(samples), seed: 5 };
        let (executions, reached) = program.walk(&limits, usize::MAX);
        let covered = program.check(&executions, &reached);
        let drawn = program.drawn(5, samples);
        let wanted = |state: &State| {
            drawn.contains(state) || program.deviations(state).iter().any(|&deviations| deviations <= bound)
        };
        assert!(program.states().iter().filter(|state| wanted(state)).all(|state| covered.contains(state)));
        let asked = |run: &Execution| {
            program.distance(&run.choices) <= bound || drawn.iter().any(|state| agrees(&run.choices, state))
        };
        assert!(executions.iter().all(asked));
    }
}

#[test]
fn every_crash_state_is_as_likely_as_any_other() {
    const DRAWS: usize = 24_000;
    let huge: BigUint = BigUint::from(1u32) << 100;
    let weights = [vec![huge.clone(), &huge + &huge], vec![1u32.into(), 3u32.into(), 2u32.into()]];
    let options = weights.map(|weights| Options { nothing_kept: 0, weights });
    let mut counts = [[0.0; 3]; 2];
    for sample in 0..DRAWS as u64 {
        let [first, second] = [0, 1].map(|component| drawn(1, sample, component, &options[component as usize]));
        counts[first as usize][second as usize] += 1.0;
    }
    for (count, share) in counts.as_flattened().iter().zip([1.0, 3.0, 2.0, 2.0, 6.0, 4.0]) {
        let (expected, chance) = (DRAWS as f64 * share / 18.0, share / 18.0);
        let deviation = (expected * (1.0 - chance)).sqrt();
        assert!((count - expected).abs() < 5.0 * deviation, "{counts:?}");
    }
}
