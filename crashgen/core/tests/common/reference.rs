//! The rules of the device models, read naively.
//!
//! This file shares no code with the core. It knows no intervals: at any instant it looks through the whole log for
//! what is stable. Then it tries every assignment of the pieces in flight for every set of PREFLUSH writes under way
//! whose flush may be done. For models that keep order it tries every prefix of all pieces. If flushes only order, it
//! tries every assignment and looks at each flush whether it allows that.

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
    flush: Flush,
}

/// When a write is stable, or what a flush does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    Persists,
    Nothing,
    Orders,
    /// A write is stable when it completes.
    NotNeeded,
}

const fn model(name: &'static str, unit: usize, order: Order) -> Model {
    Model { name, unit, order, flush: Flush::Persists }
}

const fn free(name: &'static str, unit: usize, flush: Flush) -> Model {
    Model { name, unit, order: Order::Free, flush }
}

pub const MODELS: &[Model] = &[
    model("cache", 8, Order::Free),
    model("torn", 1, Order::Free),
    model("cache:2048", 4, Order::Free),
    model("cache:8192", 16, Order::Free),
    model("ordered", 8, Order::Submission),
    model("ordered:1024", 2, Order::Submission),
    free("lying", 8, Flush::Nothing),
    free("lying:512", 1, Flush::Nothing),
    model("prefix", usize::MAX, Order::Completion),
    free("through", 8, Flush::NotNeeded),
    free("plp", 1, Flush::NotNeeded),
    free("barrier", 8, Flush::Orders),
    free("barrier:2048", 4, Flush::Orders),
    free("barrier:512", 1, Flush::Orders),
];

/// A piece of a write or discard.
pub struct Piece {
    pub request: u32,
    /// What each of its sectors shows.
    shows: Vec<(usize, u8)>,
}

impl Piece {
    pub fn sector(&self) -> usize {
        self.shows[0].0
    }
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

impl Model {
    /// Whether the core has several crash intervals at one instant, each for other crash states.
    pub fn has_stages(&self) -> bool {
        self.flush == Flush::Orders
    }
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

    pub fn submitted(&self, id: u32) -> usize {
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

    fn is_flush(&self, id: u32) -> bool {
        *self.request(id) == Request::Flush || self.is_preflush(id)
    }

    /// Whether a crash may keep exactly the pieces that are `kept`, if flushes only order: for no flush a piece behind it
    /// is kept and one in front of it is lost.
    pub fn is_in_order(&self, pieces: &[Piece], kept: &[bool], now: usize) -> bool {
        if self.model.flush != Flush::Orders {
            return true;
        }
        let mut flushes = self.submitted_before(now);
        flushes.retain(|&id| self.is_flush(id));
        flushes.into_iter().all(|flush| {
            let completed = |id| self.completed(id, now);
            let is_before = |id| completed(id).is_some_and(|at| at < self.submitted(flush));
            let is_behind = |id| id == flush || completed(flush).is_some_and(|at| at < self.submitted(id));
            let any_kept_behind = pieces.iter().zip(kept).any(|(piece, kept)| *kept && is_behind(piece.request));
            let any_lost_before = pieces.iter().zip(kept).any(|(piece, kept)| !kept && is_before(piece.request));
            !(any_kept_behind && any_lost_before)
        })
    }

    /// PREFLUSH writes under way.
    fn held(&self, now: usize) -> Vec<u32> {
        let mut all = self.submitted_before(now);
        all.retain(|&id| {
            self.model.flush == Flush::Persists && self.is_preflush(id) && self.completed(id, now).is_none()
        });
        all
    }

    /// Whether `id` is stable at `now` if the flushes in the writes `flushed` are done.
    fn is_stable(&self, id: u32, now: usize, flushed: &[u32]) -> bool {
        let Some(completed) = self.completed(id, now) else { return false };
        let set_up = self.find(|step| *step == Step::Durable).filter(|&at| at < now);
        if set_up.is_some_and(|end| completed < end) {
            return true;
        }
        match self.model.flush {
            Flush::Persists => {}
            Flush::Nothing | Flush::Orders => return false,
            Flush::NotNeeded => return true,
        }
        let is_flush = |&id: &u32| self.is_flush(id);
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
            if self.is_in_order(&pieces, &kept, now) {
                let lost = (0..pieces.len()).filter(|&i| !kept[i]).collect();
                count(&mut space, Self::shown(&pieces, &kept), lost);
            }
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

    pub fn spaces_count(&self, now: usize) -> usize {
        match self.model.order {
            Order::Free => 1 << self.held(now).len(),
            Order::Submission | Order::Completion => 1,
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
    /// returns, and the end. If a write is stable when it completes, those at which there is nothing new since the last
    /// one are left out: no mark and no write.
    pub fn judged(&self) -> Vec<usize> {
        let Some(durable) = self.find(|step| *step == Step::Durable) else { return Vec::new() };
        let end = self.steps.len();
        let is_judged = |&now: &usize| {
            self.forced_count(now) != self.forced_count(now + 1) || self.marks(now) != self.marks(now + 1)
        };
        let mut judged: Vec<usize> = Vec::new();
        for now in (durable + 1..end).filter(is_judged).chain([end]) {
            let is_mark = now == end || self.marks(now) != self.marks(now + 1);
            let is_new = |&last: &usize| {
                let writes = |step: &Step| matches!(step, Step::Submit(_, request) if *request != Request::Flush);
                self.marks(last) != self.marks(now) || self.steps[last..now].iter().any(writes)
            };
            if is_mark || self.model.flush != Flush::NotNeeded || judged.last().is_none_or(is_new) {
                judged.push(now);
            }
        }
        judged
    }

    /// Whether an instant has all crash states of the instants before it since something became stable.
    pub fn only_grows(&self) -> bool {
        self.model.flush != Flush::NotNeeded
    }
}

fn subsets(ids: &[u32]) -> Vec<Vec<u32>> {
    let chosen = |mask: u32| ids.iter().enumerate().filter(move |(i, _)| mask >> i & 1 == 1).map(|(_, &id)| id);
    (0..1 << ids.len()).map(|mask| chosen(mask).collect()).collect()
}
