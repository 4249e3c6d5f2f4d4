//! flow: jobs of one id share out their I/Os by weight (flow.c).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The I/Os of all jobs of one id, and their weights together.
#[derive(Debug, Default)]
pub(in crate::native) struct FlowGroup {
    ios: AtomicU64,
    weight: AtomicU64,
}

/// One job's part of it.
#[derive(Debug)]
pub(in crate::native) struct FlowShare {
    group: Arc<FlowGroup>,
    weight: u64,
    ios: u64,
    /// It is ahead, and sleeps once nothing is under way.
    is_to_sleep: bool,
}

/// How soon a job that is ahead looks again, where it does not say.
const AGAIN: Duration = Duration::from_micros(20);

impl FlowShare {
    /// Counts as running from now on, until it is dropped.
    pub(in crate::native) fn join(group: &Arc<FlowGroup>, weight: u32) -> Self {
        group.weight.fetch_add(weight.into(), Relaxed);
        Self {
            group: Arc::clone(group),
            weight: weight.into(),
            ios: 0,
            is_to_sleep: false,
        }
    }

    /// Whether an I/O may begin beside those under way, and then counts; else how long it
    /// waits, `None`: until those are over, which comes before a sleep (`io_u_quiesce`).
    pub(super) fn begin(&mut self, sleep: Duration, busy: usize) -> Result<(), Option<Duration>> {
        if !self.is_to_sleep {
            // One more than there are, as in fio: the first job's first I/O is not all of them.
            let all = self.group.ios.load(Relaxed) + 1;
            let weights = self.group.weight.load(Relaxed);
            if self.ios * weights <= self.weight * all {
                self.group.ios.fetch_add(1, Relaxed);
                self.ios += 1;
                return Ok(());
            }
            if sleep.is_zero() {
                return Err(Some(AGAIN));
            }
        }
        self.is_to_sleep = busy > 0;
        Err((busy == 0).then_some(sleep))
    }

    /// Whether the queue runs empty for a sleep.
    pub(super) fn is_to_sleep(&self) -> bool {
        self.is_to_sleep
    }

    /// The I/O that was to begin waits.
    pub(super) fn put_off(&mut self) {
        self.group.ios.fetch_sub(1, Relaxed);
        self.ios -= 1;
    }
}

/// Whoever is through no longer holds the others back.
impl Drop for FlowShare {
    fn drop(&mut self) {
        self.group.ios.fetch_sub(self.ios, Relaxed);
        self.group.weight.fetch_sub(self.weight, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ios_are_shared_by_weight_and_by_whoever_is_left() {
        let group = Arc::new(FlowGroup::default());
        let mut shares = [1, 8].map(|weight| FlowShare::join(&group, weight));
        let mut done = [0u32; 2];
        for turn in 0..9000 {
            let place = turn % 2;
            done[place] += u32::from(shares[place].begin(Duration::ZERO, 0).is_ok());
        }
        let ratio = f64::from(done[1]) / f64::from(done[0]);
        assert!((7.9..8.1).contains(&ratio), "{done:?}");
        let [mut one, other] = shares;
        let sleep = Duration::from_millis(1);
        while one.begin(sleep, 0).is_ok() {}
        // What is under way comes back before it sleeps, whatever the others do meanwhile.
        assert_eq!(one.begin(sleep, 2), Err(None));
        drop(other);
        assert!(one.begin(sleep, 1) == Err(None) && one.is_to_sleep());
        assert!(one.begin(sleep, 0) == Err(Some(sleep)) && !one.is_to_sleep());
        assert!((0..100).all(|_| one.begin(sleep, 1).is_ok()));
    }
}
