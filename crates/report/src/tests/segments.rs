//! A record in segments says what one in a single file says.

use fathom_model::{Direction, Event, Histogram, Host, ReasonKind, RunDocument, RunStatus, Sample};
use fathom_record::{Entries, Header, Writer};
use serde_json::Value;

use fathom_document::{read, read_entries};

fn sample(t_ms: u64, job: u32, dir: Direction, stalls: bool) -> Event {
    let mut clat = Histogram::new();
    for i in 0..20 {
        clat.add(50_000 + (t_ms * 31 + i * 7_919) % 900_000, 1 + i % 3);
    }
    if stalls {
        clat.add(1_000_000_000, 1);
    }
    let ios = if stalls { 1 } else { 100 + t_ms / 100 % 7 };
    Event::Sample(Sample {
        t_ms,
        span_ms: 999 + t_ms / 1_000 % 3,
        job,
        dir,
        ios,
        bytes: ios * 4_096,
        clat: Some(clat),
        lat: None,
    })
}

/// Two steps of several jobs, here or on hosts of which one is not always seen.
fn write(dir: &std::path::Path, segment_bytes: u64, on_hosts: bool) -> std::path::PathBuf {
    let header = Header {
        started_ms: 1_000,
        ..Header::new("x", "job run")
    };
    let mut writer = Writer::create(dir, &header).unwrap();
    writer.set_segment_bytes(segment_bytes);
    let mut append = |event| writer.append(&event).unwrap();
    for step in 1..=2 {
        let name = format!("s{step}");
        append(Event::Step {
            step,
            of: 2,
            name,
            point: None,
        });
        append(Event::EngineStarted {
            engine: "fio".into(),
            version: Some("fio-3.33".into()),
            argv: Vec::new(),
            pid: None,
        });
        let hosts = |on: bool| match on {
            true => vec!["a".to_owned(), "b".to_owned()],
            false => Vec::new(),
        };
        append(Event::Jobs {
            names: vec!["j".into(), "j".into()],
            hosts: hosts(on_hosts),
        });
        for n in 1..=300u64 {
            let t_ms = (u64::from(step) * 400 + n) * 1_000;
            for dir in [Direction::Read, Direction::Write] {
                append(sample(t_ms, 0, dir, n == 77));
                if !(n % 50 == 3 || (on_hosts && n > 250)) {
                    append(sample(t_ms, 1, dir, false));
                }
            }
            let remaining_ms = None;
            append(Event::Interval { t_ms, remaining_ms });
        }
        if on_hosts {
            let host = |name: &str| Host {
                name: name.into(),
                ..Host::default()
            };
            let hosts = vec![host("a"), host("b")];
            append(Event::Hosts { hosts });
        }
    }
    writer.finish(RunStatus::Complete).unwrap()
}

/// Floating-point sums depend on their order in the last digits.
fn same(a: &Value, b: &Value, place: &str) {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!(
                (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
                "{place}: {a} {b}"
            );
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{place}");
            let pairs = a.iter().zip(b).enumerate();
            pairs.for_each(|(n, (a, b))| same(a, b, &format!("{place}[{n}]")));
        }
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{place}");
            a.iter()
                .for_each(|(key, a)| same(a, &b[key], &format!("{place}.{key}")));
        }
        (a, b) => assert_eq!(a, b, "{place}"),
    }
}

/// Without the numbers of how a rate went: of closed segments rows of many intervals tell.
fn value(doc: &RunDocument) -> Value {
    let mut doc = doc.clone();
    let of_intervals = [ReasonKind::LevelShift, ReasonKind::StillChanging];
    let results = doc
        .jobs
        .iter_mut()
        .flat_map(|job| [&mut job.read, &mut job.write]);
    let verdicts = results.flatten().filter_map(|it| it.verdict.as_mut());
    let reasons = verdicts.flat_map(|verdict| &mut verdict.reasons);
    for reason in reasons.filter(|reason| of_intervals.contains(&reason.kind)) {
        reason.sentence.clear();
        reason.evidence.clear();
    }
    doc.verdict = None;
    doc.notes
        .retain(|note| !of_intervals.iter().any(|kind| note.contains(kind.to_do())));
    serde_json::to_value(doc).unwrap()
}

#[test]
fn figures_of_the_digest_are_those_of_the_samples() {
    for on_hosts in [false, true] {
        let runs = tempfile::tempdir().unwrap();
        let dir = write(runs.path(), 40_000, on_hosts);
        assert!(dir.join("events/000003.jsonl.zst").exists());
        let summed = read(&dir).unwrap();
        let single = read_entries(Entries::open(&dir).unwrap());
        assert!(!single.jobs.is_empty() && single.from_samples);
        same(&value(&summed), &value(&single), "");
        // Without its digest it is read from the segments.
        std::fs::remove_file(dir.join("events/digest.jsonl")).unwrap();
        assert_eq!(read(&dir).unwrap(), single);
    }
}

#[test]
fn a_stall_of_one_interval_is_in_the_curve_of_a_digest() {
    let runs = tempfile::tempdir().unwrap();
    let dir = write(runs.path(), 1 << 20, false);
    let mut parts = Entries::summed(&dir).unwrap();
    let mut rows = Vec::new();
    while let Some(part) = parts.next_part() {
        if let fathom_record::RecordPart::Sums(sums) = part.unwrap() {
            let of_job = sums.tracks.into_iter().filter(|track| track.job == Some(0));
            let reads = of_job.filter(|track| track.dir == Direction::Read);
            rows.extend(reads.flat_map(|track| track.rows));
        }
    }
    let stalls: Vec<_> = rows.iter().filter(|row| row.ios == 1).collect();
    let times: Vec<u64> = stalls.iter().map(|row| row.t_ms).collect();
    assert_eq!(times, [477_000, 877_000]);
    assert!(rows.len() < 120, "{}", rows.len());
    let ios: u64 = rows.iter().map(|row| row.ios).sum();
    let expected: u64 = (1..=2u64)
        .flat_map(|step| (1..=300).map(move |n| (step * 400 + n, n)))
        .map(|(second, n)| if n == 77 { 1 } else { 100 + second * 10 % 7 })
        .sum();
    assert_eq!(ios, expected);
    assert!(rows.windows(2).all(|pair| pair[0].t_ms < pair[1].t_ms));
}
