//! latency_target: the deepest queue that keeps a latency (io_u.c, lat_target_check).

use std::time::Duration;

use crate::native::clock::TickClock;
use crate::native::job::LatencyOptions;

/// The search of one worker; times in ticks.
#[derive(Debug)]
pub(super) struct DepthSearch {
    target: u64,
    window: u64,
    percent: f64,
    goes_on: bool,
    most: usize,
    depth: usize,
    low: usize,
    high: usize,
    stable: u32,
    /// The depth was found and is measured for one more window.
    found: bool,
    began: u64,
    ios: u64,
    late: u64,
}

/// What follows from a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchStep {
    GoOn,
    /// The queue is to run empty first.
    Shallower,
    /// The figures begin anew, once the queue is empty.
    Found,
    Over,
    /// One I/O at a time is too many.
    Missed,
}

/// A queue of one that is not kept any better was steady so often.
const STABLE: u32 = 3;

impl DepthSearch {
    /// `None` without a target.
    pub(super) fn new(options: &LatencyOptions, most: usize, clock: &TickClock) -> Option<Self> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Some(Self {
            target: clock.ticks(ns(options.target?)),
            window: clock.ticks(ns(options.window)),
            percent: options.percent,
            goes_on: options.goes_on,
            most,
            depth: 1,
            low: 1,
            high: most,
            stable: 0,
            found: false,
            began: 0,
            ios: 0,
            late: 0,
        })
    }

    /// Ticks that no I/O should take longer.
    pub(super) fn target(&self) -> u64 {
        self.target
    }

    /// How many I/Os may be under way now.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// A new window begins.
    pub(super) fn start(&mut self, now: u64) {
        (self.began, self.ios, self.late) = (now, 0, 0);
    }

    /// Counts an I/O that took so long. Where all must keep the target one that does
    /// not is enough.
    pub(super) fn completed(&mut self, took: u64, now: u64) -> SearchStep {
        self.ios += 1;
        if took <= self.target {
            return SearchStep::GoOn;
        }
        self.late += 1;
        match (self.percent >= 100.0, self.depth) {
            (false, _) => SearchStep::GoOn,
            (true, 1) => SearchStep::Missed,
            (true, _) => self.go_down(now),
        }
    }

    /// Looks at a window that is over.
    pub(super) fn look(&mut self, now: u64) -> SearchStep {
        if now.saturating_sub(self.began) < self.window {
            return SearchStep::GoOn;
        }
        let kept = (self.ios - self.late) as f64 * 100.0 / self.ios as f64;
        // Nothing done in a window keeps no target.
        if kept >= self.percent {
            self.go_up(now)
        } else if self.depth > 1 {
            self.go_down(now)
        } else {
            SearchStep::GoOn
        }
    }

    fn go_down(&mut self, now: u64) -> SearchStep {
        self.high = self.depth;
        if self.depth == self.low {
            self.low = self.low.saturating_sub(1);
        }
        self.depth = usize::midpoint(self.depth, self.low).max(1);
        self.stable = 0;
        self.start(now);
        SearchStep::Shallower
    }

    fn go_up(&mut self, now: u64) -> SearchStep {
        let before = self.depth;
        self.low = self.depth;
        if self.depth + 1 == self.high {
            self.stable += 1;
            if self.stable >= STABLE {
                self.high += 1;
                self.stable = 0;
            }
        }
        // Without a failure so far it doubles, else it goes half the way up.
        let next = match self.high == self.most {
            true => self.depth * 2,
            false => usize::midpoint(self.depth, self.high),
        };
        self.depth = next.min(self.most);
        self.start(now);
        if self.goes_on || self.depth != before {
            return SearchStep::GoOn;
        }
        if std::mem::replace(&mut self.found, true) {
            SearchStep::Over
        } else {
            SearchStep::Found
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::clock::ClockAnchor;

    /// Searches on a device whose latency is its depth in ms; the steps, and the depth.
    fn search(target_ms: u64, percent: f64, most: usize) -> (Vec<SearchStep>, usize) {
        let clock = ClockAnchor::now().clock();
        let options = LatencyOptions {
            target: Some(Duration::from_millis(target_ms)),
            window: Duration::from_millis(100),
            percent,
            goes_on: false,
        };
        let mut search = DepthSearch::new(&options, most, &clock).unwrap();
        let ms = clock.ticks(1_000_000);
        let (mut now, mut steps) = (0, Vec::new());
        search.start(now);
        for _ in 0..200 {
            let took = search.depth() as u64 * ms;
            now += 11 * ms;
            let step = match search.completed(took, now) {
                SearchStep::GoOn => search.look(now),
                step => step,
            };
            steps.push(step);
            if matches!(step, SearchStep::Over | SearchStep::Missed) {
                break;
            }
        }
        steps.retain(|step| *step != SearchStep::GoOn);
        (steps, search.depth())
    }

    #[test]
    fn the_deepest_queue_that_keeps_the_target_is_found() {
        use SearchStep::{Found, Missed, Over, Shallower};
        assert_eq!(search(1000, 100.0, 16), (vec![Found, Over], 16));
        assert_eq!(search(1000, 50.0, 1), (vec![Found, Over], 1));
        let (steps, depth) = search(10, 100.0, 64);
        assert_eq!(
            (steps.contains(&Shallower), steps.last(), depth),
            (true, Some(&Over), 10)
        );
        assert_eq!(search(0, 100.0, 8).0, [Missed]);
        // A share of them may be late: no I/O fails the search by itself.
        assert_eq!(search(0, 90.0, 8), (vec![], 1));
    }
}
