//! Which time a document of fio is about.

use std::time::Duration;

/// A reader that has not looked for so long was stopped, or the machine was busy:
/// it looks several times a second.
const STOPPED: Duration = Duration::from_millis(500);

/// Dates documents as they arrive; those that waited for a reader that was stopped, by
/// what fio says of the time between them.
#[derive(Debug, Default)]
pub struct Arrivals {
    looked: Duration,
    /// Time of the last document and fio's own clock in it.
    last: Option<(Duration, u64)>,
    behind: bool,
}

impl Arrivals {
    /// The reader looks, so long after the run's start.
    pub fn look(&mut self, at: Duration) {
        self.behind |= at.saturating_sub(self.looked) > STOPPED;
        self.looked = at;
    }

    /// When the document was written that has been read `at`, and says `clock_ms`.
    pub fn date(&mut self, at: Duration, clock_ms: Option<u64>) -> Duration {
        self.look(at);
        let after = self.last.zip(clock_ms).and_then(|((last, before), now)| {
            // A clock that was set meanwhile says nothing.
            let by_clock = last + Duration::from_millis(now.checked_sub(before)?);
            (by_clock <= at).then_some(by_clock)
        });
        let written = match after {
            Some(written) if self.behind => written,
            _ => at,
        };
        self.behind &= at - written > STOPPED;
        self.last = clock_ms.map(|now| (written, now));
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK_MS: u64 = 1_795_266_165_000;

    /// The dates of documents that are read and written at these ms.
    fn dates(documents: &[(u64, u64)]) -> Vec<u64> {
        let mut arrivals = Arrivals::default();
        let mut looked = 0;
        let mut dates = Vec::new();
        for &(read, written) in documents {
            // Until the reader is stopped it looks all the time.
            let last_look = if read - looked > 2000 {
                looked + 100
            } else {
                read
            };
            for at in (looked..last_look).step_by(100) {
                arrivals.look(Duration::from_millis(at));
            }
            looked = read;
            let at = Duration::from_millis(read);
            dates.push(arrivals.date(at, Some(CLOCK_MS + written)).as_millis() as u64);
        }
        dates
    }

    #[test]
    fn documents_that_waited_for_a_stopped_reader_are_dated_when_they_were_written() {
        let stopped = [
            (1010, 1000),
            (2010, 2000),
            (6500, 3000),
            (6501, 4000),
            (6502, 6400),
            (7010, 7000),
        ];
        assert_eq!(dates(&stopped), [1010, 2010, 3010, 4010, 6410, 7010]);
    }

    #[test]
    fn a_clock_that_is_set_changes_no_date() {
        let back = [(1000, 1000), (2000, 2000), (3000, 500), (4000, 1500)];
        assert_eq!(dates(&back), [1000, 2000, 3000, 4000]);
        let forth = [(1000, 1000), (2000, 9000), (3000, 10_000)];
        assert_eq!(dates(&forth), [1000, 2000, 3000]);
        let back_while_stopped = [(1000, 1000), (6000, 400), (6001, 1400), (7000, 2400)];
        assert!(dates(&back_while_stopped).is_sorted());
    }

    #[test]
    fn documents_without_a_time_are_dated_as_they_arrive() {
        let mut arrivals = Arrivals::default();
        for ms in [1000, 9000, 9001] {
            let at = Duration::from_millis(ms);
            assert_eq!(arrivals.date(at, None), at);
        }
    }
}
