//! A run that is killed at any moment leaves a record that can be read and that
//! lacks nothing that was acknowledged.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fathom_model::{Direction, Event, Histogram, RunStatus, Sample};
use fathom_record::{Header, Record, Writer, list};

const RUNS: &str = "FATHOM_TEST_CRASH_RUNS";
const SAMPLES_PER_INTERVAL: u64 = 5;
const KILLS: u64 = 25;

fn sample(t_ms: u64) -> Event {
    let mut clat = Histogram::new();
    for i in 0..40 {
        clat.add(80_000 + i * 3_000, 1 + i);
    }
    Event::Sample(Sample {
        t_ms,
        span_ms: 1,
        job: 0,
        dir: Direction::Read,
        ios: 8,
        bytes: 32_768,
        clat: Some(clat),
        lat: None,
    })
}

/// Not a test of its own: the process that [`a_killed_run_reads_back`] kills.
/// Appends the number of every interval to `acknowledged` once the record has taken it.
#[test]
fn child_writes_until_it_is_killed() {
    let Some(runs) = std::env::var_os(RUNS).map(PathBuf::from) else {
        return;
    };
    let mut acknowledged = OpenOptions::new()
        .append(true)
        .create(true)
        .open(runs.join("acknowledged"))
        .unwrap();
    let mut writer = Writer::create(&runs, &Header::new("crash", "test")).unwrap();
    for t_ms in 0u64.. {
        for _ in 0..SAMPLES_PER_INTERVAL {
            writer.append(&sample(t_ms)).unwrap();
        }
        let remaining_ms = None;
        writer
            .append(&Event::Interval { t_ms, remaining_ms })
            .unwrap();
        acknowledged.write_all(&t_ms.to_le_bytes()).unwrap();
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(runs: &Path) -> Killed {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_writes_until_it_is_killed"])
        .env(RUNS, runs)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Killed(child)
}

fn last_acknowledged(runs: &Path) -> Option<u64> {
    let bytes = fs::read(runs.join("acknowledged")).unwrap_or_default();
    let last = bytes.chunks_exact(8).next_back()?;
    Some(u64::from_le_bytes(last.try_into().unwrap()))
}

#[test]
fn a_killed_run_reads_back() {
    for round in 0..KILLS {
        let runs = tempfile::tempdir().unwrap();
        let child = start(runs.path());
        let began = Instant::now();
        while last_acknowledged(runs.path()).is_none() {
            assert!(began.elapsed() < Duration::from_secs(120), "no child");
            std::thread::sleep(Duration::from_millis(1));
        }
        let listed = list(runs.path()).unwrap();
        let running = listed[0].summary.as_ref().unwrap();
        assert_eq!((running.status, running.ended_ms), (None, None));
        // Moments spread over many writes: a prime step avoids a rhythm.
        std::thread::sleep(Duration::from_micros(round * 1_733 % 20_011));
        drop(child);

        let listed = list(runs.path()).unwrap();
        let summary = listed[0].summary.as_ref().unwrap();
        assert_eq!(summary.status, Some(RunStatus::Interrupted));
        let record = Record::open(&runs.path().join(&summary.id)).unwrap();
        assert_eq!(record.status(), Some(RunStatus::Interrupted));
        check(&record, last_acknowledged(runs.path()).unwrap());
    }
}

/// Whole intervals, in order, up to the last acknowledged one or the next.
fn check(record: &Record, acknowledged: u64) {
    let mut next = 0;
    let mut samples = 0;
    for entry in &record.entries {
        match &entry.event {
            Event::Sample(sample) => {
                assert_eq!(sample.t_ms, next);
                samples += 1;
            }
            Event::Interval { t_ms, .. } => {
                assert_eq!((*t_ms, samples), (next, SAMPLES_PER_INTERVAL));
                (next, samples) = (next + 1, 0);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(
        next > acknowledged,
        "{acknowledged} was acknowledged, {next} intervals read"
    );
}
