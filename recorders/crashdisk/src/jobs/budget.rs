//! What an exploration may cost, shared out between crash intervals.

use std::time::Instant;

use crate::control::Explore;

/// Recoveries and seconds. If a maximum is not given, there is no limit. Recoveries that need not be run count too.
/// Warm-up runs, which nobody judges, do not count. So what a budget covers does not depend on what is remembered.
pub struct Budget {
    recoveries_max: Option<u64>,
    seconds_max: Option<f64>,
    judged: u64,
    remembered: u64,
    unjudged: u64,
    started: Instant,
}

/// The totals at which a share of the budget is spent.
pub struct Share {
    executions: u64,
    seconds: f64,
}

impl Budget {
    pub fn new(job: &Explore) -> Budget {
        let (recoveries_max, seconds_max) = (job.recoveries_max, job.seconds_max);
        Budget { recoveries_max, seconds_max, judged: 0, remembered: 0, unjudged: 0, started: Instant::now() }
    }

    /// An execution was run, or was `remembered`.
    pub fn count(&mut self, remembered: bool) {
        *(if remembered { &mut self.remembered } else { &mut self.judged }) += 1;
    }

    /// A recovery was run that nobody judges. It takes time, but does not count as a recovery of the budget.
    pub fn count_unjudged(&mut self) {
        self.unjudged += 1;
    }

    /// How many recoveries were run, judged or not.
    pub fn recoveries(&self) -> u64 {
        self.judged + self.unjudged
    }

    /// How many recoveries were remembered instead.
    pub fn remembered(&self) -> u64 {
        self.remembered
    }

    /// How many recoveries of the budget are spent.
    pub fn executions(&self) -> u64 {
        self.judged + self.remembered
    }

    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// The whole budget.
    pub fn whole(&self) -> Share {
        Share {
            executions: self.recoveries_max.unwrap_or(u64::MAX),
            seconds: self.seconds_max.unwrap_or(f64::INFINITY),
        }
    }

    /// One of `parts` equal shares of what remains of a share. It has at least one recovery if one remains.
    pub fn part(&self, of: &Share, parts: usize) -> Share {
        let (executions, seconds) = (self.executions(), self.seconds());
        Share {
            executions: executions + of.executions.saturating_sub(executions).div_ceil(parts as u64),
            seconds: seconds + (of.seconds - seconds) / parts as f64,
        }
    }

    /// Whether anything remains of a share.
    pub fn has(&self, share: &Share) -> bool {
        self.executions() < share.executions && self.seconds() < share.seconds
    }

    /// Which limit of a share is spent, in words. None if neither is.
    pub fn spent(&self, share: &Share) -> Option<&'static str> {
        if self.executions() >= share.executions {
            return Some("the recoveries of the budget are spent");
        }
        (self.seconds() >= share.seconds).then_some("the time of the budget is spent")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(recoveries_max: u64, seconds_max: f64) -> Budget {
        let (recoveries_max, seconds_max) = (Some(recoveries_max), Some(seconds_max));
        Budget { recoveries_max, seconds_max, judged: 0, remembered: 0, unjudged: 0, started: Instant::now() }
    }

    /// Spend shares. Each part wants this many recoveries and gets shares in turn until it has them. Returns what each
    /// part got.
    fn spend(mut budget: Budget, wants: &[u64]) -> Vec<u64> {
        let mut got = vec![0; wants.len()];
        let whole = budget.whole();
        while budget.spent(&whole).is_none() && got != wants {
            let mut waiting = (0..wants.len()).filter(|&i| got[i] < wants[i]).count();
            for (got, &want) in got.iter_mut().zip(wants) {
                if *got == want {
                    continue;
                }
                let share = budget.part(&whole, waiting);
                waiting -= 1;
                while *got < want && budget.has(&share) {
                    budget.count(*got % 2 == 1);
                    *got += 1;
                }
            }
        }
        got
    }

    #[test]
    fn a_run_that_nobody_judges_spends_nothing_of_it() {
        let mut budget = budget(2, 60.0);
        let whole = budget.whole();
        budget.count(true);
        budget.count_unjudged();
        assert!(budget.has(&whole));
        budget.count(false);
        assert!(!budget.has(&whole));
        assert_eq!((budget.recoveries(), budget.remembered()), (2, 1));
    }

    #[test]
    fn the_large_do_not_starve_the_small_and_what_the_small_leave_is_used() {
        assert_eq!(spend(budget(100, 60.0), &[1000, 5, 5, 40]), [50, 5, 5, 40]);
        assert_eq!(spend(budget(5, 60.0), &[1000, 1000, 1000, 1000]), [2, 1, 1, 1]);
        assert_eq!(spend(budget(2, 60.0), &[1000, 3, 3, 3]), [1, 1, 0, 0]);
        assert_eq!(spend(budget(100, 60.0), &[10, 20, 30]), [10, 20, 30]);
        assert_eq!(spend(budget(100, 0.0), &[10, 20, 30]), [0, 0, 0]);
    }

    #[test]
    fn what_is_spent_is_told() {
        let reason = |budget: Budget| budget.spent(&budget.whole()).unwrap_or_default();
        assert_eq!(reason(budget(0, 60.0)), "the recoveries of the budget are spent");
        assert_eq!(reason(budget(1, 0.0)), "the time of the budget is spent");
        assert_eq!(reason(budget(1, 60.0)), "");
        let unlimited = Budget { recoveries_max: None, seconds_max: None, judged: 1 << 40, ..budget(0, 0.0) };
        assert!(unlimited.has(&unlimited.part(&unlimited.whole(), 1000)));
        assert_eq!(reason(unlimited), "");
    }
}
