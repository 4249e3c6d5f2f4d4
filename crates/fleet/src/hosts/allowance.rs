//! What a machine may send: as much as an honest one does, and no more. Text is
//! cut, records are counted against the time that has passed, files leave room
//! on the disk. No honest run is ever cut, however long it is.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use fathom_device::bounded::{Bounded, BoundedFiles, LEFT_OUT};
use fathom_model::Event;

use super::wire::Wire;

/// Most jobs of a step; fio itself takes 4096 unless it is told otherwise.
const JOBS_MAX: usize = 1 << 16;
/// Intervals that are allowed beside those that have passed: a machine that was
/// held up tells them all at once.
const INTERVALS_SPARE: u64 = 100;
/// Records of other kinds that are allowed at once, and one more for so many ms:
/// a campaign that goes on tells at once which points it leaves out.
const OTHERS_SPARE: u64 = 50_000;
const OTHERS_EVERY_MS: u64 = 10;
/// Longest record, of those that may come at any time: a sample with a histogram.
const RECORD_BYTES_MAX: usize = 256 << 10;
/// Bytes of results that are allowed at once, and for each job and interval.
const RESULTS_BYTES: u64 = 256 << 20;
const RESULTS_BYTES_PER_JOB: u64 = 256 << 10;

/// Whether something is taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Allowed {
    /// It is.
    Yes,
    /// It is left out, as it was told before.
    LeftOut,
    /// It is left out, and this is to be told.
    FirstLeftOut(String),
    /// No honest machine sends so much.
    TooMuch(String),
}

/// What one machine has sent, and may send.
#[derive(Debug)]
pub struct Allowance {
    began: Instant,
    interval_ms: u64,
    texts: Bounded,
    jobs: u64,
    steps: u64,
    intervals: u64,
    samples: u64,
    others: u64,
    results_bytes: u64,
    files: BoundedFiles,
}

impl Allowance {
    /// Of a machine that tells its samples every `interval`.
    pub fn new(interval: Duration) -> Self {
        let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        Self {
            began: Instant::now(),
            interval_ms: interval_ms.max(1),
            texts: Bounded::default(),
            jobs: 1,
            steps: 0,
            intervals: 0,
            samples: 0,
            others: 0,
            results_bytes: 0,
            files: BoundedFiles::default(),
        }
    }

    /// Takes what a line of so many bytes says.
    pub fn take(&mut self, wire: &Wire, bytes: usize) -> Allowed {
        let elapsed = u64::try_from(self.began.elapsed().as_millis());
        self.take_at(elapsed.unwrap_or(u64::MAX), wire, bytes)
    }

    fn take_at(&mut self, elapsed_ms: u64, wire: &Wire, bytes: usize) -> Allowed {
        let event = match wire {
            Wire::Event { happened } => &**happened,
            Wire::Text { text } | Wire::Refused { message: text, .. } => return self.text(text),
            // By the bytes: when they are kept.
            Wire::File { .. } => return self.others(elapsed_ms),
            Wire::Header { .. } => return self.results(elapsed_ms, bytes),
            Wire::Here { .. }
            | Wire::Clock { .. }
            | Wire::Gate { .. }
            | Wire::Began { .. }
            | Wire::CannotRun => return self.others(elapsed_ms),
        };
        match event {
            Event::Note { text } | Event::Preparing { what: text } => return self.text(text),
            Event::Failure(failure) => return self.text(&failure.message),
            Event::Finished { .. } | Event::Status { .. } | Event::Hosts { .. } => {
                return self.results(elapsed_ms, bytes);
            }
            Event::Jobs { names, .. } if names.len() > JOBS_MAX => {
                return Allowed::TooMuch(format!("{} jobs in one step", names.len()));
            }
            Event::Jobs { names, .. } => self.jobs = self.jobs.max(names.len() as u64),
            Event::Step { .. } => self.steps += 1,
            Event::Sample(_) | Event::Evidence(_) | Event::Interval { .. } => {
                if bytes > RECORD_BYTES_MAX {
                    return Allowed::TooMuch(format!("a sample of {bytes} bytes"));
                }
                return self.sampled(elapsed_ms, event);
            }
            _ => {}
        }
        self.others(elapsed_ms)
    }

    fn text(&mut self, text: &str) -> Allowed {
        match self.texts.fit(text.as_bytes()) {
            (_, true) => Allowed::FirstLeftOut(LEFT_OUT.to_owned()),
            (fits, false) if fits.len() == text.len() => Allowed::Yes,
            _ => Allowed::LeftOut,
        }
    }

    /// Intervals that can have ended: each step may end with a part of one.
    fn intervals_max(&self, elapsed_ms: u64) -> u64 {
        elapsed_ms / self.interval_ms + INTERVALS_SPARE + 4 * self.steps
    }

    fn sampled(&mut self, elapsed_ms: u64, event: &Event) -> Allowed {
        let most = self.intervals_max(elapsed_ms);
        let (count, most) = match event {
            Event::Sample(_) | Event::Evidence(_) => {
                self.samples += 1;
                // Reads, writes, trims, and all of them; what the machine did; and that at
                // the begin and the end of a step.
                let each = 4 * self.jobs + 1;
                (self.samples, most.saturating_mul(each) + 2 * self.steps)
            }
            _ => {
                self.intervals += 1;
                (self.intervals, most)
            }
        };
        self.within(count, most, "samples")
    }

    fn others(&mut self, elapsed_ms: u64) -> Allowed {
        self.others += 1;
        let most = OTHERS_SPARE + elapsed_ms / OTHERS_EVERY_MS;
        self.within(self.others, most, "messages")
    }

    fn results(&mut self, elapsed_ms: u64, bytes: usize) -> Allowed {
        self.results_bytes = self.results_bytes.saturating_add(bytes as u64);
        let of_jobs = self.jobs.saturating_mul(RESULTS_BYTES_PER_JOB);
        let grown = self.intervals_max(elapsed_ms).saturating_mul(of_jobs);
        let most = RESULTS_BYTES.saturating_add(grown);
        self.within(self.results_bytes, most, "bytes of results")
    }

    fn within(&self, count: u64, most: u64, what: &str) -> Allowed {
        match count > most {
            true => Allowed::TooMuch(format!(
                "more {what} than its intervals of {} ms allow ({count})",
                self.interval_ms
            )),
            false => Allowed::Yes,
        }
    }

    /// Whether so many bytes of a file may be kept at `path`.
    ///
    /// # Errors
    /// When the disk would be full by it.
    pub fn file(&mut self, path: &Path, bytes: usize) -> io::Result<()> {
        self.files.take(path, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::{Direction, Sample};

    fn happened(event: Event) -> Wire {
        let happened = Box::new(event);
        Wire::Event { happened }
    }

    fn sample() -> Wire {
        happened(Event::Sample(Sample {
            t_ms: 1,
            span_ms: 1,
            job: 0,
            dir: Direction::Read,
            ios: 1,
            bytes: 1,
            clat: None,
            lat: None,
        }))
    }

    fn interval() -> Wire {
        happened(Event::Interval {
            t_ms: 1,
            remaining_ms: None,
        })
    }

    /// How many it takes at one moment.
    fn taken(allowance: &mut Allowance, wire: &Wire) -> usize {
        let take = |_: &usize| allowance.take_at(0, wire, 100) == Allowed::Yes;
        (0..10_000_000).take_while(take).count()
    }

    #[test]
    fn an_honest_run_of_a_month_is_never_cut() {
        let mut allowance = Allowance::new(Duration::from_secs(60));
        let names = vec!["a".to_owned(); 8];
        let hosts = Vec::new();
        let jobs = happened(Event::Jobs { names, hosts });
        assert_eq!(allowance.take_at(0, &jobs, 100), Allowed::Yes);
        for minute in 1..=30 * 24 * 60_u64 {
            // Held up for an hour, it tells all of it at the end.
            let told_ms = minute.div_ceil(60) * 3_600_000;
            for _ in 0..8 * 2 {
                assert_eq!(allowance.take_at(told_ms, &sample(), 9_000), Allowed::Yes);
            }
            assert_eq!(allowance.take_at(told_ms, &interval(), 80), Allowed::Yes);
        }
    }

    #[test]
    fn a_machine_makes_no_more_records_than_its_interval_allows() {
        let mut allowance = Allowance::new(Duration::from_secs(1));
        assert_eq!(taken(&mut allowance, &sample()), 500);
        assert_eq!(taken(&mut allowance, &interval()), 100);
        assert_eq!(
            allowance.take_at(1000, &interval(), 80),
            Allowed::TooMuch("more samples than its intervals of 1000 ms allow (102)".into())
        );
        let other = happened(Event::EngineStarted {
            engine: "fio".into(),
            version: None,
            argv: Vec::new(),
            pid: None,
        });
        assert_eq!(taken(&mut allowance, &other), 50_000);
        let names = vec![String::new(); JOBS_MAX + 1];
        let hosts = Vec::new();
        let jobs = happened(Event::Jobs { names, hosts });
        let told = allowance.take_at(0, &jobs, 100);
        assert!(matches!(told, Allowed::TooMuch(_)), "{told:?}");
    }

    #[test]
    fn text_is_taken_up_to_a_mebibyte_and_then_left_out() {
        let mut allowance = Allowance::new(Duration::from_secs(1));
        let text = Wire::Text {
            text: "x".repeat(1 << 19),
        };
        let said: Vec<Allowed> = (0..4).map(|_| allowance.take_at(0, &text, 0)).collect();
        let told = Allowed::FirstLeftOut(LEFT_OUT.into());
        let expected = [Allowed::Yes, Allowed::Yes, told, Allowed::LeftOut];
        assert_eq!(said, expected);
    }
}
