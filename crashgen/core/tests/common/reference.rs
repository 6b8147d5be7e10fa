//! The rules of the device models, read naively.
//!
//! This file shares no code with the core. It knows no intervals: at any instant it looks through the whole log for
//! what is stable. Then it tries every assignment of the pieces in flight for every set of PREFLUSH writes under way
//! whose flush may be done. For models that keep order it tries every prefix of all pieces.

use std::collections::{BTreeMap, BTreeSet};

use super::{Disk, Request, Step, SECTORS};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Free,
    Submission,
    Completion,
}

/// A device model as its description defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    pub name: &'static str,
    /// Sectors of the atomic unit.
    unit: usize,
    order: Order,
    honest: bool,
}

const fn model(name: &'static str, unit: usize, order: Order) -> Model {
    Model { name, unit, order, honest: true }
}

const fn lying(name: &'static str, unit: usize) -> Model {
    Model { name, unit, order: Order::Free, honest: false }
}

pub const MODELS: &[Model] = &[
    model("cache", 8, Order::Free),
    model("torn", 1, Order::Free),
    model("cache:2048", 4, Order::Free),
    model("cache:8192", 16, Order::Free),
    model("ordered", 8, Order::Submission),
    model("ordered:1024", 2, Order::Submission),
    lying("lying", 8),
    lying("lying:512", 1),
    model("prefix", usize::MAX, Order::Completion),
];

/// A piece of a write or discard.
pub struct Piece {
    request: u32,
    /// What each of its sectors shows.
    shows: Vec<(usize, u8)>,
}

/// For each disk content: how many crash states give it, and the fewest pieces lost in one that does.
pub type Space = BTreeMap<Disk, (u64, Vec<usize>)>;

fn count(space: &mut Space, disk: Disk, lost: Vec<usize>) {
    let (count, fewest) = space.entry(disk).or_insert((0, lost.clone()));
    *count += 1;
    if lost.len() < fewest.len() {
        *fewest = lost;
    }
}

pub struct Reference<'a> {
    pub steps: &'a [Step],
    pub model: Model,
}

impl Reference<'_> {
    pub fn find(&self, wanted: impl Fn(&Step) -> bool) -> Option<usize> {
        self.steps.iter().position(wanted)
    }

    fn request(&self, id: u32) -> &Request {
        let of = |step: &&Step| matches!(step, Step::Submit(other, _) if *other == id);
        match self.steps.iter().find(of) {
            Some(Step::Submit(_, request)) => request,
            _ => panic!("request {id} is never submitted"),
        }
    }

    fn submitted(&self, id: u32) -> usize {
        self.find(|step| matches!(step, Step::Submit(other, _) if *other == id)).expect("submitted")
    }

    /// The step at which `id` completed, if that was before `now`.
    fn completed(&self, id: u32, now: usize) -> Option<usize> {
        self.find(|step| *step == Step::Complete(id)).filter(|&at| at < now)
    }

    fn submitted_before(&self, now: usize) -> Vec<u32> {
        let id = |step: &Step| if let Step::Submit(id, _) = step { Some(*id) } else { None };
        self.steps[..now].iter().filter_map(id).collect()
    }

    fn is_preflush(&self, id: u32) -> bool {
        matches!(self.request(id), Request::Write { preflush: true, .. })
    }

    /// PREFLUSH writes under way.
    fn held(&self, now: usize) -> Vec<u32> {
        let mut all = self.submitted_before(now);
        all.retain(|&id| self.model.honest && self.is_preflush(id) && self.completed(id, now).is_none());
        all
    }

    /// Whether `id` is stable at `now` if the flushes in the writes `flushed` are done.
    fn is_stable(&self, id: u32, now: usize, flushed: &[u32]) -> bool {
        let Some(completed) = self.completed(id, now) else { return false };
        let set_up = self.find(|step| *step == Step::Durable).filter(|&at| at < now);
        if set_up.is_some_and(|end| completed < end) {
            return true;
        }
        if !self.model.honest {
            return false;
        }
        let is_flush = |&id: &u32| *self.request(id) == Request::Flush || self.is_preflush(id);
        let is_done = |&id: &u32| self.completed(id, now).is_some() || flushed.contains(&id);
        let mut flushes = self.submitted_before(now).into_iter().filter(is_flush).filter(is_done);
        let fua = matches!(self.request(id), Request::Write { fua: true, .. });
        fua || flushes.any(|flush| self.submitted(flush) > completed)
    }

    /// Every piece submitted so far, each of one unit, in the order in which they persist. If there is no order, as
    /// submitted.
    pub fn pieces(&self, now: usize) -> Vec<Piece> {
        let mut requests = self.submitted_before(now);
        if self.model.order == Order::Completion {
            requests.retain(|&id| self.completed(id, now).is_some());
            requests.sort_by_key(|&id| self.completed(id, now));
        }
        let mut pieces = Vec::new();
        for request in requests {
            let shows: Vec<(usize, u8)> = match self.request(request) {
                Request::Flush => continue,
                Request::Write { sector, letters, .. } => (*sector..).zip(letters.iter().copied()).collect(),
                Request::Zero { sector, sectors, .. } => (*sector..sector + sectors).map(|s| (s, b'0')).collect(),
            };
            for unit in 0..SECTORS.div_ceil(self.model.unit) {
                let shows: Vec<(usize, u8)> =
                    shows.iter().copied().filter(|(s, _)| s / self.model.unit == unit).collect();
                if !shows.is_empty() {
                    pieces.push(Piece { request, shows });
                }
            }
        }
        pieces
    }

    /// The disk with the `pieces` that are `kept`, each over those before it.
    pub fn shown(pieces: &[Piece], kept: &[bool]) -> Disk {
        let mut disk: Disk = [b'.'; SECTORS];
        for (piece, _) in pieces.iter().zip(kept).filter(|(_, kept)| **kept) {
            piece.shows.iter().for_each(|&(sector, letter)| disk[sector] = letter);
        }
        disk
    }

    /// How many requests are `kept` only in part. A request with pieces that had to be kept (`forced`) is not counted.
    pub fn torn(pieces: &[Piece], forced: &[bool], kept: &[bool]) -> usize {
        let requests: BTreeSet<u32> = pieces.iter().map(|piece| piece.request).collect();
        let of = |request: u32| (0..pieces.len()).filter(move |&i| pieces[i].request == request && !forced[i]);
        requests.into_iter().filter(|&r| of(r).any(|i| kept[i]) && of(r).any(|i| !kept[i])).count()
    }

    /// What the disk can show at `now` if exactly the PREFLUSH writes `flushed` under way have had their flush.
    fn space(&self, now: usize, flushed: &[u32]) -> Space {
        let waiting: Vec<u32> = self.held(now).into_iter().filter(|id| !flushed.contains(id)).collect();
        let mut pieces = self.pieces(now);
        pieces.retain(|piece| !waiting.contains(&piece.request));
        let stable: Vec<bool> = pieces.iter().map(|p| self.is_stable(p.request, now, flushed)).collect();
        let open: Vec<usize> = (0..pieces.len()).filter(|&i| !stable[i]).collect();
        let mut space = Space::new();
        for lost in 0..1u64 << open.len() {
            let mut kept = vec![true; pieces.len()];
            open.iter().enumerate().for_each(|(bit, &i)| kept[i] = lost >> bit & 1 == 0);
            let lost = (0..pieces.len()).filter(|&i| !kept[i]).collect();
            count(&mut space, Self::shown(&pieces, &kept), lost);
        }
        space
    }

    /// What the disk can show at `now` if exactly a prefix of all pieces is kept.
    fn prefixes(&self, now: usize) -> Space {
        let pieces = self.pieces(now);
        let held = self.held(now);
        let allowed = |kept: usize, flushed: &[u32]| {
            let waits = |piece: &Piece| held.contains(&piece.request) && !flushed.contains(&piece.request);
            let is_stable = |piece: &Piece| self.is_stable(piece.request, now, flushed);
            !pieces[..kept].iter().any(waits) && !pieces[kept..].iter().any(is_stable)
        };
        let mut space = Space::new();
        for kept in 0..=pieces.len() {
            if subsets(&held).iter().any(|flushed| allowed(kept, flushed)) {
                let shown = Self::shown(&pieces, &[vec![true; kept], vec![false; pieces.len() - kept]].concat());
                count(&mut space, shown, (kept..pieces.len()).collect());
            }
        }
        space
    }

    /// One space if pieces are kept in order; otherwise one for each set of PREFLUSH writes under way.
    pub fn spaces(&self, now: usize) -> Vec<Space> {
        match self.model.order {
            Order::Free => subsets(&self.held(now)).iter().map(|flushed| self.space(now, flushed)).collect(),
            Order::Submission | Order::Completion => vec![self.prefixes(now)],
        }
    }

    /// Which of the pieces at `now` every crash keeps.
    pub fn forced(&self, pieces: &[Piece], now: usize) -> Vec<bool> {
        let stable: Vec<bool> = pieces.iter().map(|piece| self.is_stable(piece.request, now, &[])).collect();
        match self.model.order {
            Order::Free => stable,
            _ => (0..stable.len()).map(|i| stable[i..].contains(&true)).collect(),
        }
    }

    fn forced_count(&self, now: usize) -> usize {
        self.forced(&self.pieces(now), now).into_iter().filter(|&forced| forced).count()
    }

    /// Pieces in flight just before step `now`, whether they wait for a flush or not.
    pub fn in_flight(&self, now: usize) -> usize {
        self.pieces(now).len() - self.forced_count(now)
    }

    /// How many operations had started, and how many had returned, at `now`.
    pub fn marks(&self, now: usize) -> (u32, u32) {
        let count = |wanted: fn(&Step) -> bool| self.steps[..now].iter().filter(|step| wanted(step)).count() as u32;
        (count(|step| matches!(step, Step::Started(_))), count(|step| matches!(step, Step::Returned(_))))
    }

    /// The instants just before something becomes stable after the set-up, those just before an operation starts or
    /// returns, and the end.
    pub fn judged(&self) -> Vec<usize> {
        let Some(durable) = self.find(|step| *step == Step::Durable) else { return Vec::new() };
        let end = self.steps.len();
        let is_judged = |&now: &usize| {
            self.forced_count(now) != self.forced_count(now + 1) || self.marks(now) != self.marks(now + 1)
        };
        (durable + 1..end).filter(is_judged).chain([end]).collect()
    }
}

fn subsets(ids: &[u32]) -> Vec<Vec<u32>> {
    let chosen = |mask: u32| ids.iter().enumerate().filter(move |(i, _)| mask >> i & 1 == 1).map(|(_, &id)| id);
    (0..1 << ids.len()).map(|mask| chosen(mask).collect()).collect()
}
