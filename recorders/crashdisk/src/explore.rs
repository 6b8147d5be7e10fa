//! Exploring: every crash state of a recording, recovered by a real kernel.

use std::collections::{BTreeMap, HashMap};

use num_bigint::BigUint;
use postcrash_core::explore::{BruteForce, Explorer, Fixed};
use postcrash_core::interval::{Cursor, Interval};
use postcrash_core::view::Content;
use postcrash_core::walk::{Limits, Space, Walk};
use postcrash_wire::{Command, Recover};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::budget::{Budget, Share};
use crate::contents::settle;
use crate::control::{Casualty, Event, Explore, IntervalReport, Outcome, Reached};
use crate::disk::{StateDisk, HELD_COMPONENTS_MIN};
use crate::guest::GuestError;
use crate::machine::Machine;
use crate::random::Random;
use crate::source::Source;
use crate::trust::Trust;

/// A progress event is sent every so many recoveries.
const PROGRESS_EVERY: u64 = 64;

/// Component and version.
type Choices = Vec<(u32, u32)>;
/// What one recovery gave: the agent's report, or how the guests were lost.
type Result1 = Result<Vec<u8>, Casualty>;

/// Explore the whole recording.
///
/// Pass after pass, each crash interval that is not done gets an equal share of the budget that is left, so that a large
/// one does not starve the others and gets what they leave.
pub fn explore(machine: &mut Machine, job: &Explore) -> Result<(), GuestError> {
    let source = Source::open(&job.recording, &job.base, &job.model)?;
    let mut trust = Trust::new(&source, &job.recover);
    trust.establish(machine)?;
    let mut campaign = Campaign { machine, trust, job, budget: Budget::new(job) };
    let mut explorations = begin(job, &source);
    while !explorations.is_empty() {
        let mut waiting = explorations.len();
        let mut cursor = Cursor::new(&source.recording, &source.base, source.model);
        while let Some(interval) = cursor.next_interval() {
            let Some(exploration) = explorations.get_mut(&interval.index) else { continue };
            let share = campaign.budget.share(waiting);
            waiting -= 1;
            let done = campaign.advance(exploration, &interval, cursor.content(), &share)?;
            let spent = campaign.budget.spent();
            if done || spent.is_some() {
                let exploration = explorations.remove(&interval.index).expect("it was found");
                let report = campaign.finish(exploration, &interval, cursor.content(), spent.filter(|_| !done))?;
                Event::Interval(report).emit();
            }
        }
    }
    let (recoveries, seconds) = (campaign.budget.recoveries(), campaign.budget.seconds());
    campaign.trust.confirm(campaign.machine)?;
    let memory_kib = machine.guest()?.memory_kib()?;
    Event::Explored { recoveries, seconds, memory_kib }.emit();
    Ok(())
}

/// The explorations that the job asks for, by crash interval.
fn begin(job: &Explore, source: &Source) -> BTreeMap<u32, Exploration> {
    let mut cursor = Cursor::new(&source.recording, &source.base, source.model);
    let intervals = std::iter::from_fn(|| cursor.next_interval());
    let wanted = intervals.filter(|interval| job.intervals.as_ref().is_none_or(|all| all.contains(&interval.index)));
    wanted.map(|interval| (interval.index, Exploration::new(job, &interval))).collect()
}

/// Recover one crash state; components that `choices` leaves open keep all they can.
pub fn execute(
    machine: &mut Machine,
    source: &Source,
    index: u32,
    choices: Vec<(u32, u32)>,
    recover: &Recover,
) -> Result<(), GuestError> {
    let mut cursor = Cursor::new(&source.recording, &source.base, source.model);
    let interval = std::iter::from_fn(|| cursor.next_interval()).find(|interval| interval.index == index);
    let interval = interval.ok_or_else(|| GuestError::Input(format!("the recording has no crash interval {index}")))?;
    let out_of_range = |&&(c, v): &&(u32, u32)| {
        interval.components.get(c as usize).is_none_or(|component| v as usize >= component.versions.len())
    };
    if let Some(&(component, version)) = choices.iter().find(out_of_range) {
        return Err(GuestError::Input(format!(
            "crash interval {index} has no version {version} of component {component}"
        )));
    }
    let mut explorer = Fixed::new(choices, |_, _| 0);
    explorer.next_execution();
    let mut trust = Trust::new(source, recover);
    let result = run_state(machine, &mut trust, &interval, cursor.content(), &mut explorer)?;
    let (observation, casualty) = report(result);
    Event::Executed { observation, choices: explorer.choices(), casualty }.emit();
    Ok(())
}

/// Run one state; where the guest is lost, once more in a new one.
fn run_state(
    machine: &mut Machine,
    trust: &mut Trust<'_>,
    interval: &Interval,
    content: Content<'_>,
    explorer: &mut dyn Explorer,
) -> Result<Result1, GuestError> {
    let command = Command::Recover(trust.recover.clone());
    let mut casualty = None;
    for _ in 0..2 {
        trust.establish(machine)?;
        let mut disk = StateDisk::new(content, interval, explorer);
        match machine.guest()?.run(&command, &mut disk) {
            Ok(bytes) => return Ok(Ok(disk.report.take().unwrap_or(bytes))),
            Err(GuestError::Lost { what, console }) => {
                let choices = explorer.choices();
                let (index, copy) = (interval.index, Casualty { what: what.clone(), console: console.clone() });
                Event::LostGuest { interval: index, choices, what, console }.emit();
                casualty = Some(copy);
            }
            Err(other) => return Err(other),
        }
    }
    Ok(Err(casualty.expect("two guests were lost")))
}

fn report(result: Result1) -> (Value, Option<Casualty>) {
    match result {
        Ok(bytes) => (parse(&bytes), None),
        Err(casualty) => (Value::Null, Some(casualty)),
    }
}

fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| Value::String(format!("unreadable observation: {e}")))
}

/// An outcome while its states are being counted.
struct Tally {
    result: Result1,
    states: BigUint,
    recoveries: u64,
    choices: Vec<(u32, u32)>,
    lost: Vec<u32>,
}

/// How far one crash interval is.
struct Exploration {
    explorer: Box<dyn Explorer>,
    tallies: Tallies,
    sample: Sample,
    recoveries: u64,
    /// Whether a first run is still to show which reads the guest waits for.
    cold: bool,
}

impl Exploration {
    fn new(job: &Explore, interval: &Interval) -> Exploration {
        Exploration {
            explorer: explorer(job, interval),
            tallies: Tallies::default(),
            sample: Sample::new(job, interval.index),
            recoveries: 0,
            cold: interval.components.len() > HELD_COMPONENTS_MIN && !job.brute_force,
        }
    }
}

fn explorer(job: &Explore, interval: &Interval) -> Box<dyn Explorer> {
    if job.brute_force {
        let versions = interval.components.iter().map(|component| component.versions.len() as u32);
        return Box::new(BruteForce::new(versions.collect()));
    }
    let seed = job.seed ^ u64::from(interval.index);
    Box::new(Walk::new(Space::of(interval), &Limits { bound: job.bound, samples: job.samples, seed }))
}

struct Campaign<'a> {
    machine: &'a mut Machine,
    trust: Trust<'a>,
    job: &'a Explore,
    budget: Budget,
}

impl Campaign<'_> {
    /// Explore until the share is spent or nothing is left to run; whether nothing is.
    fn advance(
        &mut self,
        exploration: &mut Exploration,
        interval: &Interval,
        content: Content<'_>,
        share: &Share,
    ) -> Result<bool, GuestError> {
        if interval.too_large.is_some() {
            return Ok(true);
        }
        while self.budget.has(share) {
            if std::mem::take(&mut exploration.cold) {
                let _unjudged = self.run(&mut Fixed::new(Vec::new(), |_, _| 0), interval, content)?;
            } else if exploration.explorer.next_execution() {
                let result = self.run(exploration.explorer.as_mut(), interval, content)?;
                let choices = exploration.explorer.choices();
                exploration.sample.offer(&choices, &result);
                exploration.tallies.add(interval, choices, result);
            } else {
                return Ok(true);
            }
            exploration.recoveries += 1;
        }
        Ok(false)
    }

    fn run(
        &mut self,
        explorer: &mut dyn Explorer,
        interval: &Interval,
        content: Content<'_>,
    ) -> Result<Result1, GuestError> {
        let result = run_state(self.machine, &mut self.trust, interval, content, explorer)?;
        self.budget.count();
        if self.budget.recoveries() % PROGRESS_EVERY == 0 {
            Event::Progress { recoveries: self.budget.recoveries() }.emit();
        }
        Ok(result)
    }

    /// Run the sample again and report; `spent` is what the interval had to stop for, if it had to.
    fn finish(
        &mut self,
        mut exploration: Exploration,
        interval: &Interval,
        content: Content<'_>,
        spent: Option<&str>,
    ) -> Result<IntervalReport, GuestError> {
        let whole = exploration.tallies.covered == interval.states();
        let reached = exploration.explorer.reached().filter(|_| !whole && interval.too_large.is_none());
        let seed = self.job.seed;
        let reached = reached.map(|r| {
            let (all_kept, none_kept, samples) = (r.all_kept, r.none_kept, r.samples);
            Reached { all_kept, none_kept, samples, seed }
        });
        let too_large = interval.too_large.as_ref().map(ToString::to_string);
        let why = || spent.unwrap_or("no more was asked for").into();
        let left_out = (!whole).then(|| too_large.unwrap_or_else(why));
        let recoveries = exploration.recoveries;
        let rechecks = self.recheck(interval, content, exploration.sample)?;
        Ok(exploration.tallies.report(interval, recoveries, rechecks, left_out, reached))
    }

    /// Run a sample again in another order, with everything that was not read set at random.
    fn recheck(&mut self, interval: &Interval, content: Content<'_>, sample: Sample) -> Result<u64, GuestError> {
        let mut random = sample.random;
        let count = sample.kept.len() as u64;
        for (choices, first) in sample.kept.into_iter().rev() {
            let mut explorer = Fixed::new(choices.clone(), |_, versions| random.below(u64::from(versions)) as u32);
            explorer.next_execution();
            let second = run_state(self.machine, &mut self.trust, interval, content, &mut explorer)?;
            let (mut first, mut second) = (parse(&first), report(second).0);
            // One may have settled what the other left open: compare under the choices of both.
            settle(&mut first, &explorer.choices().into_iter().collect());
            settle(&mut second, &choices.iter().copied().collect());
            if first != second {
                Event::Nondeterministic { interval: interval.index, choices, first, second }.emit();
            }
        }
        Ok(count)
    }
}

/// A seeded reservoir of executions to run again.
struct Sample {
    random: Random,
    share: f64,
    kept: Vec<(Choices, Vec<u8>)>,
}

impl Sample {
    fn new(job: &Explore, interval: u32) -> Sample {
        Sample { random: Random::new(job.seed ^ u64::from(interval)), share: job.recheck_share, kept: Vec::new() }
    }

    fn offer(&mut self, choices: &[(u32, u32)], result: &Result1) {
        if let Ok(bytes) = result {
            if self.random.unit() < self.share {
                self.kept.push((choices.to_vec(), bytes.clone()));
            }
        }
    }
}

/// Distinct outcomes of an interval.
#[derive(Default)]
struct Tallies {
    by_digest: HashMap<Vec<u8>, usize>,
    all: Vec<Tally>,
    executions: Vec<(Choices, usize)>,
    covered: BigUint,
}

impl Tallies {
    fn add(&mut self, interval: &Interval, choices: Vec<(u32, u32)>, result: Result1) {
        let states = interval.covered(&choices);
        let lost = interval.lost(&choices);
        self.covered += &states;
        let digest = match &result {
            Ok(bytes) => Sha256::digest(bytes).to_vec(),
            Err(casualty) => casualty.what.clone().into_bytes(),
        };
        let number = *self.by_digest.entry(digest).or_insert(self.all.len());
        self.executions.push((choices.clone(), number));
        match self.all.get_mut(number) {
            None => {
                self.all.push(Tally { result, states, recoveries: 1, choices, lost });
            }
            Some(known) => {
                known.states += states;
                known.recoveries += 1;
                if (lost.len(), &lost) < (known.lost.len(), &known.lost) {
                    (known.choices, known.lost) = (choices, lost);
                }
            }
        }
    }

    fn report(
        self,
        interval: &Interval,
        recoveries: u64,
        rechecks: u64,
        left_out: Option<String>,
        reached: Option<Reached>,
    ) -> IntervalReport {
        let outcome = |tally: Tally| {
            let (observation, casualty) = report(tally.result);
            let (states, recoveries) = (tally.states.to_string(), tally.recoveries);
            Outcome { observation, states, recoveries, choices: tally.choices, lost: tally.lost, casualty }
        };
        IntervalReport {
            index: interval.index,
            before_event: interval.event,
            started: interval.started,
            returned: interval.returned,
            pieces: interval.pieces.len(),
            components: interval.components.len(),
            states: interval.states().to_string(),
            covered: self.covered.to_string(),
            contents: interval.contents().to_string(),
            recoveries,
            rechecks,
            outcomes: self.all.into_iter().map(outcome).collect(),
            executions: self.executions,
            left_out,
            reached,
        }
    }
}
