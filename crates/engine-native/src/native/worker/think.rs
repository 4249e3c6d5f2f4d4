//! thinktime: pauses between so many I/Os, or after so much time with them (backend.c,
//! handle_thinktime).

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::{Worker, data_direction};
use crate::native::backend::Op;
use crate::native::clock::TickClock;
use crate::native::job::{IoEngine, RateOptions};

/// When the next pause is due.
#[derive(Debug)]
pub(super) struct Thinking {
    /// I/Os that count, and at how many the next pause is due.
    ios: u64,
    next: u64,
    blocks: u64,
    by_issue: bool,
    /// One was handed over since the last pause.
    began: bool,
    /// Ticks from one pause to the next, whatever the I/Os; and the last one.
    every: Option<u64>,
    last: u64,
    /// The queue runs empty for it; how many I/Os counted when it became due.
    due: Option<u64>,
}

impl Thinking {
    /// `None`: there are no pauses.
    pub(super) fn new(pace: &RateOptions, clock: &TickClock) -> Option<Self> {
        if pace.think.is_zero() {
            return None;
        }
        let ticks = |time: Duration| clock.ticks(time.as_nanos().try_into().unwrap_or(u64::MAX));
        let every = Some(pace.think_every).filter(|time| !time.is_zero());
        let blocks = match (pace.think_blocks, every) {
            (Some(blocks), _) => blocks,
            (None, None) => 1,
            (None, Some(_)) => u64::MAX,
        };
        Some(Self {
            ios: 0,
            next: blocks,
            blocks,
            by_issue: pace.think_by_issue,
            began: false,
            every: every.map(|time| ticks(time.saturating_add(pace.think))),
            last: 0,
            due: None,
        })
    }

    pub(super) fn start(&mut self, now: u64) {
        self.last = now;
    }

    pub(super) fn issued(&mut self) {
        self.began = true;
        self.ios += u64::from(self.by_issue);
    }

    pub(super) fn completed(&mut self, op: Op) {
        self.ios += u64::from(!self.by_issue && data_direction(op).is_some());
    }

    /// Whether a pause is due before the next I/O.
    pub(super) fn is_due(&mut self, now: u64) -> bool {
        let by_time = self
            .every
            .is_some_and(|every| now.saturating_sub(self.last) >= every);
        if self.due.is_none() && self.began && (by_time || self.ios >= self.next) {
            self.due = Some(self.ios);
            self.last = now;
        }
        self.due.is_some()
    }

    /// It is over.
    fn end(&mut self) {
        if let Some(ios) = self.due.take() {
            self.next = ios.saturating_add(self.blocks);
        }
        self.began = false;
    }
}

impl Worker {
    /// Whether the queue runs empty for a pause, or is as full as it may be before one.
    pub(super) fn is_to_think(&self) -> bool {
        let due = |thinking: &Thinking| {
            thinking.due.is_some() || (thinking.by_issue && thinking.ios >= thinking.next)
        };
        self.thinking.as_ref().is_some_and(due)
    }

    /// A pause, of which the first part is spun; when the next I/O is due.
    pub(super) fn think(&mut self, now: u64) -> Option<u64> {
        if self.free.len() < self.depth {
            return None;
        }
        if let Some(thinking) = &mut self.thinking {
            thinking.end();
        }
        let pace = &self.job.pace;
        let spun = now.saturating_add(self.ticks(pace.think_spin.min(pace.think)));
        while self.clock.now() < spun.min(self.end) && !self.stop.load(Relaxed) {
            std::hint::spin_loop();
        }
        let burn = &self.job.burn;
        let pause = match self.job.engine {
            // What it takes is known afterwards only; its depth is 1.
            IoEngine::Cpuio if burn.sorts => burn.pause(now.saturating_sub(self.cell(0).drawn())),
            _ => self.ticks(pace.think),
        };
        if pace.forgets_think
            && let Some(pacer) = &mut self.pacer
        {
            pacer.put_off(pause);
        }
        Some(now.saturating_add(pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::clock::ClockAnchor;

    fn thinking(blocks: Option<u64>, by_issue: bool, every: u64) -> Thinking {
        let pace = RateOptions {
            think: Duration::from_millis(1),
            think_blocks: blocks,
            think_by_issue: by_issue,
            think_every: Duration::from_secs(every),
            ..RateOptions::default()
        };
        Thinking::new(&pace, &ClockAnchor::now().clock()).unwrap()
    }

    #[test]
    fn pauses_are_due_after_issues_or_completions() {
        let mut by_issue = thinking(Some(2), true, 0);
        let mut by_end = thinking(Some(2), false, 0);
        for each in [&mut by_issue, &mut by_end] {
            assert!(!each.is_due(0));
            each.issued();
            each.issued();
        }
        assert!(by_issue.is_due(0) && !by_end.is_due(0));
        by_end.completed(Op::Read);
        by_end.completed(Op::Fsync);
        assert!(!by_end.is_due(0));
        by_end.completed(Op::Write);
        assert!(by_end.is_due(0));
        // What is over meanwhile counts for the next, which has one I/O at least before it.
        by_end.completed(Op::Write);
        by_end.completed(Op::Write);
        by_end.end();
        assert!(!by_end.is_due(0));
        by_end.issued();
        assert!(by_end.is_due(0));
    }

    #[test]
    fn time_alone_asks_for_pauses_where_no_blocks_are_given() {
        let mut timed = thinking(None, false, 1);
        for _ in 0..1000 {
            timed.issued();
            timed.completed(Op::Read);
        }
        assert!(!timed.is_due(1));
        assert!(timed.is_due(u64::MAX / 2));
    }
}
