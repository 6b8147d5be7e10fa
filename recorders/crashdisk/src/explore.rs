//! Exploring: every crash state of a recording, recovered by a real kernel.

use std::collections::HashMap;
use std::time::Instant;

use num_bigint::BigUint;
use postcrash_core::explore::{BruteForce, DepthFirst, Explorer, Fixed};
use postcrash_core::interval::{Cursor, Interval};
use postcrash_core::view::Content;
use postcrash_wire::{Command, Recover};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::contents::settle;
use crate::control::{Casualty, Event, Explore, IntervalReport, Outcome};
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

/// Explore the whole recording, interval by interval.
pub fn explore(machine: &mut Machine, job: &Explore) -> Result<(), GuestError> {
    let source = Source::open(&job.recording, &job.base, &job.model)?;
    let mut trust = Trust::new(&source, &job.recover);
    trust.establish(machine)?;
    let mut campaign = Campaign { machine, trust, job, started: Instant::now(), recoveries: 0 };
    let mut cursor = Cursor::new(&source.recording, &source.base, source.model);
    while let Some(interval) = cursor.next_interval() {
        if job.intervals.as_ref().is_some_and(|wanted| !wanted.contains(&interval.index)) {
            continue;
        }
        let report = campaign.interval(&interval, cursor.content())?;
        Event::Interval(report).emit();
    }
    let (recoveries, seconds) = (campaign.recoveries, campaign.started.elapsed().as_secs_f64());
    campaign.trust.confirm(campaign.machine)?;
    let memory_kib = machine.guest()?.memory_kib()?;
    Event::Explored { recoveries, seconds, memory_kib }.emit();
    Ok(())
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

struct Campaign<'a> {
    machine: &'a mut Machine,
    trust: Trust<'a>,
    job: &'a Explore,
    started: Instant,
    recoveries: u64,
}

impl Campaign<'_> {
    fn interval(&mut self, interval: &Interval, content: Content<'_>) -> Result<IntervalReport, GuestError> {
        let before = self.recoveries;
        let mut tallies = Tallies::default();
        let mut sample = Sample::new(self.job, interval.index);
        let mut left_out = interval.too_large.as_ref().map(ToString::to_string).or_else(|| self.budget_left_out());
        let mut explorer = self.explorer(interval);
        if left_out.is_none() {
            self.warm_up(interval, content)?;
        }
        while left_out.is_none() && explorer.next_execution() {
            left_out = self.budget_left_out();
            if left_out.is_some() {
                break;
            }
            let result = run_state(self.machine, &mut self.trust, interval, content, explorer.as_mut())?;
            self.count();
            let choices = explorer.choices();
            sample.offer(&choices, &result);
            tallies.add(interval, choices, result);
        }
        let recoveries = self.recoveries - before;
        let rechecks = self.recheck(interval, content, sample)?;
        Ok(tallies.report(interval, recoveries, rechecks, left_out))
    }

    fn explorer(&self, interval: &Interval) -> Box<dyn Explorer> {
        if self.job.brute_force {
            let versions = interval.components.iter().map(|component| component.versions.len() as u32);
            return Box::new(BruteForce::new(versions.collect()));
        }
        Box::new(DepthFirst::default())
    }

    /// Where reads are held back, run one state to learn which of them the guest waits for.
    fn warm_up(&mut self, interval: &Interval, content: Content<'_>) -> Result<(), GuestError> {
        if interval.components.len() <= HELD_COMPONENTS_MIN || self.job.brute_force {
            return Ok(());
        }
        let mut explorer = Fixed::new(Vec::new(), |_, _| 0);
        explorer.next_execution();
        let _unjudged = run_state(self.machine, &mut self.trust, interval, content, &mut explorer)?;
        self.count();
        Ok(())
    }

    fn count(&mut self) {
        self.recoveries += 1;
        if self.recoveries % PROGRESS_EVERY == 0 {
            Event::Progress { recoveries: self.recoveries }.emit();
        }
    }

    fn budget_left_out(&self) -> Option<String> {
        if self.recoveries >= self.job.recoveries_max {
            return Some(format!("the budget of {} recoveries is spent", self.job.recoveries_max));
        }
        let spent = self.started.elapsed().as_secs_f64() >= self.job.seconds_max;
        spent.then(|| format!("the budget of {} s is spent", self.job.seconds_max))
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
                let simplicity = |lost: &Vec<u32>| (lost.len(), interval.torn(lost), lost.clone());
                if lost.len() <= known.lost.len() && simplicity(&lost) < simplicity(&known.lost) {
                    (known.choices, known.lost) = (choices, lost);
                }
            }
        }
    }

    fn report(self, interval: &Interval, recoveries: u64, rechecks: u64, left_out: Option<String>) -> IntervalReport {
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
        }
    }
}
