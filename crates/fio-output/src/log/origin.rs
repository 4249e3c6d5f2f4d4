//! What the times of a log are counted from.
//!
//! fio counts from the start of a job, behind its ramp and startdelay
//! (`libfio.c`, `reset_all_stats`; `backend.c`, `run_threads`; fio 3.33 begins
//! such logs at 0). With `log_unix_epoch` or `log_alternate_epoch` it adds what a
//! clock said then: a date, or with `CLOCK_MONOTONIC` the time since boot. No
//! column says so; the first time and how long the log is do.

use fathom_model::LogEntry;

use super::Collect;

/// Below this first time a log's times are never those of a clock.
pub const CLOCK_FROM_MS: u64 = 600_000;
/// From this first time on they are since 1970: a day of September 2001, and no
/// job takes 31 years.
pub const SINCE_1970_MS: u64 = 1_000_000_000_000;
/// First times in ms, and how many times the span of the log they must be to
/// count as a clock's.
///
/// - 10 min: logs that tools have put behind a ramp or startdelay stay as they
///   are, as nobody waits 100 times as long as he measures.
/// - A day: nobody waits that long, and longer than he measures.
/// - Since 1970: always.
const CLOCKS: [(u64, u64); 3] = [(CLOCK_FROM_MS, 100), (86_400_000, 1), (SINCE_1970_MS, 0)];
/// A log of windows must span this many ms, as the first time is the end of a
/// window: one window of an hour is not an hour after boot.
const WINDOWS_SPAN_MS: u64 = 1000;

/// What times are counted from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimeOrigin {
    /// From 0, or from the first line where that has the time of a clock.
    #[default]
    Told,
    /// From 0.
    Zero,
    /// From the first line.
    First,
}

/// The same once the first line is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstTime {
    /// From this time.
    At(u64),
    /// From 0 or this time: the span of the log tells.
    Open(u64),
}

impl TimeOrigin {
    pub(super) fn begin(self, first_ms: u64) -> FirstTime {
        match self {
            Self::Zero => FirstTime::At(0),
            Self::First => FirstTime::At(first_ms),
            Self::Told if is_clock(first_ms, u64::MAX, false) => FirstTime::At(first_ms),
            Self::Told if first_ms >= CLOCK_FROM_MS => FirstTime::Open(first_ms),
            Self::Told => FirstTime::At(0),
        }
    }
}

impl FirstTime {
    /// The origin of a log whose latest time is this.
    pub fn told(self, last_ms: u64, windows: bool) -> u64 {
        match self {
            Self::At(origin_ms) => origin_ms,
            Self::Open(first_ms) => {
                let span_ms = last_ms.saturating_sub(first_ms);
                if is_clock(first_ms, span_ms, windows) {
                    first_ms
                } else {
                    0
                }
            }
        }
    }
}

/// Whether a log whose lines are from `first_ms` on has the times of a clock.
fn is_clock(first_ms: u64, span_ms: u64, windows: bool) -> bool {
    let (_, times) = match CLOCKS.iter().rfind(|(from, _)| first_ms >= *from) {
        Some(clock) => *clock,
        None => return false,
    };
    let enough = !windows || times == 0 || span_ms >= WINDOWS_SPAN_MS;
    enough && first_ms >= span_ms.saturating_mul(times)
}

/// Counts both ways, until the span of the log is known.
pub struct Both<C> {
    pub zero: C,
    pub first: C,
    pub first_ms: u64,
    pub last_ms: u64,
}

impl<C: Collect> Collect for Both<C> {
    fn add(&mut self, entry: &LogEntry) {
        self.last_ms = self.last_ms.max(entry.time_ms);
        self.zero.add(entry);
        let time_ms = entry.time_ms.saturating_sub(self.first_ms);
        self.first.add(&LogEntry { time_ms, ..*entry });
    }

    fn end(&mut self) {
        self.zero.end();
        self.first.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_times_that_count_as_a_clocks() {
        let origin = |first_ms, span_ms, windows| {
            let begin = TimeOrigin::Told.begin(first_ms);
            begin.told(first_ms + span_ms, windows) > 0
        };
        let (minute, day) = (60_000, 86_400_000);
        // Behind a ramp or a startdelay, or stalled.
        assert!(!origin(5, 1, false));
        assert!(!origin(9 * minute, 0, false));
        assert!(!origin(60 * minute, minute, false));
        assert!(!origin(day, 2 * day, false));
        // After boot, after 1970.
        assert!(origin(1_471_754, 1000, false));
        assert!(origin(100 * minute, minute, false));
        assert!(origin(10 * day, 3 * day, true));
        assert!(origin(1_000_000_000_000, 0, true));
        // One window of an hour, of reads and of writes.
        assert!(!origin(60 * minute, 3, true));
        assert!(origin(1_471_754, 1000, true));
    }

    #[test]
    fn what_is_asked_for_goes_first() {
        assert_eq!(TimeOrigin::First.begin(7), FirstTime::At(7));
        assert_eq!(TimeOrigin::Zero.begin(1 << 50), FirstTime::At(0));
    }
}
