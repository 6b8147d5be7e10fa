//! Exploring: every crash state of a recording, recovered by a real kernel.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use num_bigint::BigUint;
use postcrash_core::choice::{by_component, Choice};
use postcrash_core::cursor::Cursor;
use postcrash_core::device::DeviceModel;
use postcrash_core::explore::{BruteForce, Explorer, FixedChoices};
use postcrash_core::ground::Ground;
use postcrash_core::interval::Interval;
use postcrash_core::recording::Recording;
use postcrash_core::space::Space;
use postcrash_core::walk::{Limits, Walk};
use postcrash_wire::{Command, Recover};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::control::{Explore, HarnessEvent, IntervalReport, Outcome, ReachReport, RecoveredState};
use crate::disk::contents::settle;
use crate::disk::memo::Footprint;
use crate::disk::random::Random;
use crate::disk::{holds_reads, StateDisk};
use crate::error::{Casualty, GuestError};
use crate::guest::machine::Machine;
use crate::guest::process::peak_memory_kib;
use crate::jobs::budget::{Budget, Share};
use crate::jobs::kernel_log::{agree, is_whole};
use crate::jobs::recovery;
use crate::jobs::source::Source;
use crate::jobs::trust::Trust;

/// A progress event is sent after this many recoveries.
const PROGRESS_EVERY: u64 = 64;

/// What one recovery gave: the agent's report, or how the guests were lost.
type RecoveryResult = Result<Vec<u8>, Casualty>;

/// Explore the whole recording.
pub fn explore(machine: &mut Machine, job: &Explore) -> Result<(), GuestError> {
    let source = Source::open(&job.recording, &job.base, &job.model)?;
    machine.have_disks(&source.recording.disks().sizes());
    let mut trust = Trust::new(&source, &job.recover);
    trust.establish(machine)?;
    machine.recoveries.begin();
    let budget = Budget::new(job);
    let whole = budget.whole();
    let mut campaign = Campaign { machine, trust, job, model: source.model, budget };
    campaign.recording(&source.recording, &source.base, None, &whole)?;
    let (recoveries, seconds) = (campaign.budget.recoveries(), campaign.budget.seconds());
    campaign.trust.confirm(campaign.machine)?;
    let memory_kib = machine.guest()?.memory_kib()?;
    let disk_memory_kib = peak_memory_kib(std::process::id())?;
    HarnessEvent::Explored { recoveries, seconds, memory_kib, disk_memory_kib }.emit();
    Ok(())
}

/// Recover one crash state. Components that `choices` leaves open keep all they can.
pub fn execute(
    machine: &mut Machine,
    source: &Source,
    index: u32,
    choices: Vec<Choice>,
    recover: &Recover,
) -> Result<(), GuestError> {
    machine.have_disks(&source.recording.disks().sizes());
    let mut cursor = Cursor::new(&source.recording, &source.base, source.model);
    let interval = std::iter::from_fn(|| cursor.next_interval()).find(|interval| interval.index == index);
    let interval = interval.ok_or_else(|| GuestError::Input(format!("the recording has no crash interval {index}")))?;
    let out_of_range = |choice: &&Choice| {
        let component = interval.components.get(choice.component as usize);
        component.is_none_or(|component| choice.version as usize >= component.versions.len())
    };
    if let Some(Choice { component, version }) = choices.iter().find(out_of_range) {
        return Err(GuestError::Input(format!(
            "crash interval {index} has no version {version} of component {component}"
        )));
    }
    let space = Space { content: cursor.content(), interval: &interval };
    let (mut result, mut chosen) = run_fixed(machine, source, space, choices.clone(), recover)?;
    // A single state is worth a complete log. A new guest's kernel has said nothing yet. Where it takes long to start
    // one, the agent waits until the kernel may say everything again.
    if result.as_ref().is_ok_and(|report| !is_whole(report)) {
        machine.dismiss_if_quick();
        let recover = Recover { whole_log: true, ..recover.clone() };
        (result, chosen) = run_fixed(machine, source, space, choices, &recover)?;
    }
    let (observation, casualty) = report(result);
    HarnessEvent::Executed { observation, choices: chosen, casualty }.emit();
    Ok(())
}

/// Run the state that `choices` name. Returns what was chosen, too.
fn run_fixed(
    machine: &mut Machine,
    source: &Source,
    space: Space<'_>,
    choices: Vec<Choice>,
    recover: &Recover,
) -> Result<(RecoveryResult, Vec<Choice>), GuestError> {
    let mut explorer = FixedChoices::new(choices, |_, _| 0);
    explorer.next_execution();
    let mut trust = Trust::new(source, recover);
    let (result, _) = run_state(machine, &mut trust, space, &mut explorer, Keep::Nothing)?;
    Ok((result, explorer.choices()))
}

/// What is kept of a recovery besides its result.
#[derive(Clone, Copy)]
enum Keep<'a> {
    Nothing,
    /// What the recovery read and showed is remembered.
    Footprint,
    /// What the recovery wrote is recorded in this file.
    Recording(&'a Path),
}

/// Run one state. If the guest is lost, run it once more in a new one. Returns a recording unless guests were lost.
fn run_state(
    machine: &mut Machine,
    trust: &mut Trust<'_>,
    space: Space<'_>,
    explorer: &mut dyn Explorer,
    keep: Keep<'_>,
) -> Result<(RecoveryResult, Option<Recording>), GuestError> {
    let scratch = if let Keep::Recording(scratch) = keep { Some(scratch) } else { None };
    let command = Command::Recover(trust.recover.clone());
    let mut casualty = None;
    for _ in 0..2 {
        trust.establish(machine)?;
        trust.source.release_pages();
        let disks = trust.source.recording.disks().sizes();
        let log = scratch.map(|scratch| recovery::begin(scratch, &disks, space)).transpose()?;
        let footprint = matches!(keep, Keep::Footprint).then(Footprint::default);
        let overlay = trust.source.overlay(trust.recover)?;
        let mut disk = StateDisk::new(space, explorer, overlay, log, footprint);
        match machine.guest()?.run(&command, &mut disk) {
            Ok(bytes) => {
                let report = disk.report.take().unwrap_or(bytes);
                let recording = disk.log.take().zip(scratch).map(|(log, scratch)| recovery::recording(log, scratch));
                // A state that has cost a guest is not remembered, and neither is one whose log may lack lines. They
                // are run each time.
                if let Some(footprint) = disk.footprint.take().filter(|_| casualty.is_none() && is_whole(&report)) {
                    machine.recoveries.remember(trust.recover, space, explorer, footprint);
                }
                return Ok((Ok(report), recording.transpose()?));
            }
            Err(GuestError::Lost(lost)) => {
                let (interval, choices) = (space.interval.index, explorer.choices());
                HarnessEvent::LostGuest { interval, choices, casualty: lost.clone() }.emit();
                casualty = Some(lost);
            }
            Err(other) => return Err(other),
        }
    }
    Ok((Err(casualty.expect("two guests were lost")), None))
}

fn report(result: RecoveryResult) -> (Value, Option<Casualty>) {
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
    result: RecoveryResult,
    states: BigUint,
    executions: u64,
    choices: Vec<Choice>,
    lost: Vec<u32>,
}

/// The state of one crash interval's exploration.
struct IntervalExploration {
    explorer: Box<dyn Explorer>,
    tallies: Tallies,
    sample: Sample,
    recoveries: u64,
    remembered: u64,
    /// The first run, which shows for which reads the guest waits, is still to come. It is needed only if a state must
    /// be run.
    cold: bool,
    /// What recoveries wrote. It is kept if crashes within them are wanted.
    recordings: Vec<(RecoveredState, Recording)>,
}

impl IntervalExploration {
    fn new(job: &Explore, interval: &Interval) -> IntervalExploration {
        IntervalExploration {
            explorer: explorer(job, interval),
            tallies: Tallies::default(),
            sample: Sample::new(job, interval.index),
            recoveries: 0,
            remembered: 0,
            cold: holds_reads(interval) && !job.brute_force,
            recordings: Vec::new(),
        }
    }

    /// Count an execution that has ended, unless all its states belong to the next crash interval.
    fn add(&mut self, space: Space<'_>, result: RecoveryResult, recording: Option<Recording>) {
        let choices = self.explorer.choices();
        if space.covered(&choices) == BigUint::ZERO {
            return;
        }
        if let (Some(recording), Ok(bytes)) = (recording, &result) {
            let (interval, observation) = (space.interval.index, parse(bytes));
            let instants = space.interval.instants.clone();
            let crashed = RecoveredState { interval, instants, choices: choices.clone(), observation };
            self.recordings.push((crashed, recording));
        }
        self.sample.offer(&choices, &result);
        self.tallies.add(space, choices, result);
    }
}

fn explorer(job: &Explore, interval: &Interval) -> Box<dyn Explorer> {
    if job.brute_force {
        let versions = interval.components.iter().map(|component| component.versions.len() as u32);
        return Box::new(BruteForce::new(versions.collect()));
    }
    let seed = job.seed ^ u64::from(interval.index);
    Box::new(Walk::new(&Limits { bound: job.bound, samples: job.samples, seed }))
}

struct Campaign<'a> {
    machine: &'a mut Machine,
    trust: Trust<'a>,
    job: &'a Explore,
    model: &'static dyn DeviceModel,
    budget: Budget,
}

impl Campaign<'_> {
    /// Explore a recording made on `ground`: the recording of the run, or of the recovery of the crash state `within`.
    ///
    /// In each pass, each crash interval that is not done gets an equal share of the budget that remains. So a large
    /// interval does not starve the others, and it gets what they leave.
    fn recording(
        &mut self,
        recording: &Recording,
        ground: &dyn Ground,
        within: Option<&RecoveredState>,
        limit: &Share,
    ) -> Result<(), GuestError> {
        let mut explorations = self.begin(Cursor::new(recording, ground, self.model), within);
        while !explorations.is_empty() {
            let mut waiting = explorations.len();
            let mut cursor = Cursor::new(recording, ground, self.model);
            while let Some(interval) = cursor.next_interval() {
                let Some(exploration) = explorations.get_mut(&interval.index) else { continue };
                let space = Space { content: cursor.content(), interval: &interval };
                let share = self.budget.part(limit, waiting);
                waiting -= 1;
                let done = self.advance(exploration, space, within, &share)?;
                let spent = self.budget.spent(limit);
                if done || spent.is_some() {
                    let exploration = explorations.remove(&interval.index).expect("it was found");
                    let share = self.budget.part(limit, explorations.len() + 1);
                    self.finish(exploration, space, within, spent.filter(|_| !done), &share)?;
                }
            }
        }
        Ok(())
    }

    /// The explorations that the job asks for, by crash interval.
    fn begin(&self, mut cursor: Cursor<'_>, within: Option<&RecoveredState>) -> BTreeMap<u32, IntervalExploration> {
        let intervals = std::iter::from_fn(|| cursor.next_interval());
        let requested = self.job.intervals.as_ref().filter(|_| within.is_none());
        let wanted = intervals.filter(|interval| requested.is_none_or(|all| all.contains(&interval.index)));
        wanted.map(|interval| (interval.index, IntervalExploration::new(self.job, &interval))).collect()
    }

    /// Explore until the share is spent or nothing is left to run. Returns whether nothing is left.
    fn advance(
        &mut self,
        exploration: &mut IntervalExploration,
        space: Space<'_>,
        within: Option<&RecoveredState>,
        share: &Share,
    ) -> Result<bool, GuestError> {
        if space.interval.too_large.is_some() {
            return Ok(true);
        }
        self.machine.recoveries.enter();
        let scratch = (within.is_none() && self.job.depth > 1).then(|| self.machine.scratch());
        while self.budget.has(share) {
            let (recoveries, remembered) = (self.budget.recoveries(), self.budget.remembered());
            if exploration.explorer.next_execution() {
                let remember = if self.job.memo { Keep::Footprint } else { Keep::Nothing };
                let keep = scratch.as_deref().map_or(remember, Keep::Recording);
                let IntervalExploration { explorer, cold, .. } = &mut *exploration;
                let (result, recording) = self.run(explorer.as_mut(), cold, space, keep)?;
                exploration.add(space, result, recording);
            } else {
                return Ok(true);
            }
            exploration.recoveries += self.budget.recoveries() - recoveries;
            exploration.remembered += self.budget.remembered() - remembered;
        }
        Ok(false)
    }

    /// Run a state, or use the remembered recovery of a state that agrees with it on everything that was read.
    ///
    /// The first state of a crash interval that is run is run twice. The first of the two is the warm-up: it shows
    /// which reads nobody waits for.
    fn run(
        &mut self,
        explorer: &mut dyn Explorer,
        cold: &mut bool,
        space: Space<'_>,
        keep: Keep<'_>,
    ) -> Result<(RecoveryResult, Option<Recording>), GuestError> {
        let known = match keep {
            Keep::Footprint => self.machine.recall(&self.job.recover, space, explorer),
            Keep::Nothing | Keep::Recording(_) => None,
        };
        self.budget.count(known.is_some());
        if self.budget.executions() % PROGRESS_EVERY == 0 {
            HarnessEvent::Progress { recoveries: self.budget.recoveries() }.emit();
        }
        if let Some(bytes) = known {
            return Ok((Ok(bytes), None));
        }
        if std::mem::take(cold) {
            // The warm-up run also answers read-ahead. If it were remembered, later runs would decide components that
            // nobody waits for.
            self.budget.count_unjudged();
            let mut all_kept = FixedChoices::new(Vec::new(), |_, _| 0);
            let _unjudged = run_state(self.machine, &mut self.trust, space, &mut all_kept, Keep::Nothing)?;
        }
        run_state(self.machine, &mut self.trust, space, explorer, keep)
    }

    /// Explore the crashes within the recoveries, run the sample again and report. `spent` says which limit stopped the
    /// interval, if one did.
    fn finish(
        &mut self,
        mut exploration: IntervalExploration,
        space: Space<'_>,
        within: Option<&RecoveredState>,
        spent: Option<&str>,
        limit: &Share,
    ) -> Result<(), GuestError> {
        let recordings = std::mem::take(&mut exploration.recordings);
        let count = recordings.len();
        for (number, (crashed, recording)) in recordings.into_iter().enumerate() {
            let share = self.budget.part(limit, count - number);
            self.recording(&recording, &crashed.ground(space), Some(&crashed), &share)?;
        }
        let rechecks = self.recheck(space, exploration.sample)?;
        let whole = exploration.tallies.covered == space.states();
        let too_large = space.interval.too_large.as_ref().map(ToString::to_string);
        let reached = exploration.explorer.reached().filter(|_| !whole && too_large.is_none());
        let why = || spent.unwrap_or("no more was asked for").into();
        let extent = ExplorationTotals {
            recoveries: exploration.recoveries,
            remembered: exploration.remembered,
            rechecks,
            left_out: (!whole).then(|| too_large.unwrap_or_else(why)),
            reached: reached.map(|reached| ReachReport::of(&reached, self.job.seed)),
        };
        HarnessEvent::Interval(Box::new(exploration.tallies.report(space, within, extent))).emit();
        Ok(())
    }

    /// Run a sample again in another order, with everything that was not read set at random.
    fn recheck(&mut self, space: Space<'_>, sample: Sample) -> Result<u64, GuestError> {
        let mut random = sample.random;
        let count = sample.kept.len() as u64;
        for (choices, first) in sample.kept.into_iter().rev() {
            let mut explorer =
                FixedChoices::new(choices.clone(), |_, versions| random.below(u64::from(versions)) as u32);
            explorer.next_execution();
            let (second, _) = run_state(self.machine, &mut self.trust, space, &mut explorer, Keep::Nothing)?;
            let (mut first, mut second) = (parse(&first), report(second).0);
            // Each of the two may have settled what the other left open, so they are compared under the choices of
            // both.
            settle(&mut first, &by_component(&explorer.choices()));
            settle(&mut second, &by_component(&choices));
            if !agree(&first, &second) {
                HarnessEvent::Nondeterministic { interval: space.interval.index, choices, first, second }.emit();
            }
        }
        Ok(count)
    }
}

/// A seeded reservoir of executions to run again.
struct Sample {
    random: Random,
    share: f64,
    kept: Vec<(Vec<Choice>, Vec<u8>)>,
}

impl Sample {
    fn new(job: &Explore, interval: u32) -> Sample {
        Sample { random: Random::new(job.seed ^ u64::from(interval)), share: job.recheck_share, kept: Vec::new() }
    }

    fn offer(&mut self, choices: &[Choice], result: &RecoveryResult) {
        if let Ok(bytes) = result {
            if self.random.unit() < self.share {
                self.kept.push((choices.to_vec(), bytes.clone()));
            }
        }
    }
}

/// How much of an interval was covered.
struct ExplorationTotals {
    recoveries: u64,
    remembered: u64,
    rechecks: u64,
    left_out: Option<String>,
    reached: Option<ReachReport>,
}

/// Distinct outcomes of an interval.
#[derive(Default)]
struct Tallies {
    by_digest: HashMap<Vec<u8>, usize>,
    all: Vec<Tally>,
    executions: Vec<(Vec<Choice>, usize)>,
    covered: BigUint,
}

impl Tallies {
    fn add(&mut self, space: Space<'_>, choices: Vec<Choice>, result: RecoveryResult) {
        let states = space.covered(&choices);
        let lost = space.lost(&choices);
        self.covered += &states;
        let digest = match &result {
            Ok(bytes) => Sha256::digest(bytes).to_vec(),
            Err(casualty) => casualty.what.clone().into_bytes(),
        };
        let number = *self.by_digest.entry(digest).or_insert(self.all.len());
        self.executions.push((choices.clone(), number));
        match self.all.get_mut(number) {
            None => {
                self.all.push(Tally { result, states, executions: 1, choices, lost });
            }
            Some(known) => {
                known.states += states;
                known.executions += 1;
                let simplicity = |lost: &Vec<u32>| (lost.len(), space.interval.torn(lost), lost.clone());
                if lost.len() <= known.lost.len() && simplicity(&lost) < simplicity(&known.lost) {
                    (known.choices, known.lost) = (choices, lost);
                }
            }
        }
    }

    fn report(self, space: Space<'_>, within: Option<&RecoveredState>, extent: ExplorationTotals) -> IntervalReport {
        let interval = space.interval;
        let outcome = |tally: Tally| {
            let (observation, casualty) = report(tally.result);
            let (states, executions) = (tally.states.to_string(), tally.executions);
            Outcome { observation, states, executions, choices: tally.choices, lost: tally.lost, casualty }
        };
        IntervalReport {
            index: interval.index,
            within: within.cloned(),
            instants: within.map_or(&interval.instants, |crashed| &crashed.instants).clone(),
            pieces: interval.pieces.len(),
            components: interval.components.len(),
            states: space.states().to_string(),
            covered: self.covered.to_string(),
            contents: interval.contents().to_string(),
            recoveries: extent.recoveries,
            remembered: extent.remembered,
            rechecks: extent.rechecks,
            outcomes: self.all.into_iter().map(outcome).collect(),
            executions: self.executions,
            left_out: extent.left_out,
            reached: extent.reached,
        }
    }
}
