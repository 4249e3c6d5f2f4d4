//! A log of several segments: whatever a kill leaves, and whatever is damaged.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fathom_model::{Direction, Event, Histogram, RunStatus, Sample};
use fathom_record::{EVENTS, Entries, Header, Record, RecordError, RecordPart, Writer};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng};

/// So short that a few intervals are one.
const SEGMENT_BYTES: u64 = 900;

fn interval(t_ms: u64) -> Event {
    let remaining_ms = None;
    Event::Interval { t_ms, remaining_ms }
}

fn sample(t_ms: u64, job: u32, dir: Direction) -> Event {
    let mut clat = Histogram::new();
    for i in 0..4 {
        clat.add(80_000 + (t_ms * 7 + i * 3_000) % 90_000, 1 + i);
    }
    Event::Sample(Sample {
        t_ms,
        span_ms: 1_000,
        job,
        dir,
        ios: 10 + t_ms / 1_000,
        bytes: 4_096 * (10 + t_ms / 1_000),
        clat: Some(clat),
        lat: None,
    })
}

fn step(step: u32) -> Event {
    let name = format!("step {step}");
    Event::Step {
        step,
        of: 2,
        name,
        point: None,
    }
}

/// Two steps of a job in two directions.
fn events(intervals: u64) -> Vec<Event> {
    let jobs = || Event::Jobs {
        names: vec!["mix".into()],
        hosts: Vec::new(),
    };
    let mut events = vec![step(1), jobs()];
    for n in 1..=intervals {
        if n == intervals / 2 {
            events.extend([step(2), jobs()]);
        }
        let t_ms = n * 1_000;
        events.push(sample(t_ms, 0, Direction::Read));
        events.push(sample(t_ms, 0, Direction::Write));
        events.push(interval(t_ms));
        if n % 5 == 0 {
            let text = format!("note {n}");
            events.push(Event::Note { text });
        }
    }
    events
}

/// The files of a record's log.
type Files = BTreeMap<String, Rc<Vec<u8>>>;

fn files(dir: &Path) -> Files {
    let mut files = Files::new();
    let closed = fs::read_dir(dir.join("events")).into_iter().flatten();
    let closed = closed.map(|file| format!("events/{}", file.unwrap().file_name().display()));
    for name in closed.chain([EVENTS.to_owned()]) {
        files.insert(name.clone(), Rc::new(fs::read(dir.join(name)).unwrap()));
    }
    files
}

fn lay_out(dir: &Path, files: &Files, there: &mut Files) {
    fs::create_dir_all(dir.join("events")).unwrap();
    there.retain(|name, _| {
        let stays = files.contains_key(name);
        if !stays {
            fs::remove_file(dir.join(name)).unwrap();
        }
        stays
    });
    for (name, bytes) in files {
        let known = there.insert(name.clone(), Rc::clone(bytes));
        if !known.is_some_and(|known| Rc::ptr_eq(&known, bytes)) {
            fs::write(dir.join(name), &**bytes).unwrap();
        }
    }
}

/// One thing that is done to the files.
#[derive(Clone)]
enum Change {
    /// A file grows up to this, from what it was.
    Grows(String, Rc<Vec<u8>>),
    /// A file is there at once.
    Appears(String, Rc<Vec<u8>>),
    Goes(String),
}

/// What a writer does to get from one state to the next, in its order.
fn changes(before: &Files, after: &Files) -> Vec<Change> {
    let grows = |name: &str, bytes: &Rc<Vec<u8>>| Change::Grows(name.to_owned(), Rc::clone(bytes));
    let mut changes = Vec::new();
    let live = &after[EVENTS];
    match live.starts_with(&before[EVENTS]) {
        true => changes.push(grows(EVENTS, live)),
        false => {
            let is_new =
                |name: &&String| name.ends_with(".jsonl.zst") && !before.contains_key(*name);
            let closed = after
                .keys()
                .find(is_new)
                .expect("it was compressed at once");
            let mut text = Vec::new();
            let mut packed = zstd::Decoder::new(&after[closed][..]).unwrap();
            packed.read_to_end(&mut text).unwrap();
            let text = Rc::new(text);
            let head = live.iter().position(|&byte| byte == b'\n').unwrap() + 1;
            let head = Rc::new(live[..head].to_vec());
            let plain = closed.trim_end_matches(".zst");
            changes.push(grows(EVENTS, &text));
            changes.push(Change::Appears(plain.to_owned(), Rc::clone(&text)));
            changes.push(grows(".events.jsonl.next", &head));
            changes.push(Change::Goes(".events.jsonl.next".to_owned()));
            changes.push(Change::Appears(EVENTS.to_owned(), head));
            changes.push(grows(EVENTS, live));
            changes.push(grows("events/.part", &after[closed]));
            changes.push(Change::Goes("events/.part".to_owned()));
            changes.push(Change::Appears(closed.clone(), Rc::clone(&after[closed])));
        }
    }
    if let Some(digest) = after.get("events/digest.jsonl") {
        changes.push(grows("events/digest.jsonl", digest));
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    changes.extend(gone.map(|name| Change::Goes(name.clone())));
    changes
}

fn apply(files: &mut Files, change: &Change) {
    match change {
        Change::Grows(name, bytes) | Change::Appears(name, bytes) => {
            files.insert(name.clone(), Rc::clone(bytes));
        }
        Change::Goes(name) => drop(files.remove(name)),
    }
}

/// Segments are compressed one at a time in a process, and these tests want theirs at once.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The states of the files after each event, and the events with the last one.
fn states(intervals: u64) -> (Vec<Files>, Vec<Event>) {
    let _alone = alone();
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), &Header::new("cut", "test")).unwrap();
    writer.set_segment_bytes(SEGMENT_BYTES);
    let dir = writer.dir().to_owned();
    let mut states = vec![files(&dir)];
    let mut events = events(intervals);
    for event in &events {
        writer.append(event).unwrap();
        if !matches!(event, Event::Sample(_)) {
            states.push(files(&dir));
        }
    }
    writer.finish(RunStatus::Complete).unwrap();
    states.push(files(&dir));
    let status = RunStatus::Complete;
    events.push(Event::Ended { status });
    (states, events)
}

fn read(dir: &Path) -> Vec<Event> {
    let entries = Entries::open(dir).unwrap();
    entries.map(|entry| entry.unwrap().event).collect()
}

/// How many I/Os, samples and other lines there are, from sums where these are.
fn summed(dir: &Path) -> (u64, u64, u64) {
    let mut entries = Entries::summed(dir).unwrap();
    let (mut ios, mut samples, mut lines) = (0, 0, 0);
    while let Some(part) = entries.next_part() {
        match part.unwrap() {
            RecordPart::Entry(entry) => {
                lines += 1;
                if let Event::Sample(sample) = entry.event {
                    (ios, samples) = (ios + sample.ios, samples + 1);
                }
            }
            RecordPart::Sums(sums) => {
                lines += sums.entries;
                for sum in sums.sums {
                    (ios, samples) = (ios + sum.ios, samples + sum.n);
                }
            }
        }
    }
    (ios, samples, lines)
}

fn count(events: &[Event]) -> (u64, u64, u64) {
    let samples = events.iter().filter_map(|event| match event {
        Event::Sample(sample) => Some(sample.ios),
        _ => None,
    });
    let samples: Vec<u64> = samples.collect();
    (
        samples.iter().sum(),
        samples.len() as u64,
        events.len() as u64,
    )
}

#[test]
fn ten_thousand_cuts_of_a_log_in_segments_leave_a_prefix() {
    let (states, events) = states(12);
    let last = states.last().unwrap();
    let packed = last.keys().filter(|name| name.ends_with(".zst")).count();
    assert!(packed > 4, "{:?}", last.keys());
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut random = move |below: usize| (rand_of(&mut rng) % below.max(1) as u64) as usize;
    let dir = tempfile::tempdir().unwrap();
    let mut there = Files::new();
    let pairs: Vec<_> = states.windows(2).collect();
    let each = 10_000usize.div_ceil(pairs.len());
    let mut cuts = 0;
    let mut acknowledged = 0;
    for pair in pairs {
        lay_out(dir.path(), &pair[0], &mut there);
        acknowledged = acknowledged.max(read(dir.path()).len());
        let steps = changes(&pair[0], &pair[1]);
        for _ in 0..each {
            let mut files = pair[0].clone();
            let at = random(steps.len());
            steps[..at]
                .iter()
                .for_each(|change| apply(&mut files, change));
            if let Change::Grows(name, bytes) = &steps[at] {
                let from = files.get(name).map_or(0, |bytes| bytes.len());
                let to = from + random(bytes.len() - from);
                files.insert(name.clone(), Rc::new(bytes[..to].to_vec()));
            }
            lay_out(dir.path(), &files, &mut there);
            let read = read(dir.path());
            assert!(
                read.len() >= acknowledged,
                "{} < {acknowledged}",
                read.len()
            );
            assert_eq!(read, events[..read.len()]);
            if cuts % 4 == 0 {
                assert_eq!(summed(dir.path()), count(&read));
            }
            cuts += 1;
        }
    }
    assert!(cuts >= 10_000);
}

fn rand_of(rng: &mut TestRng) -> u64 {
    rng.next_u64()
}

#[test]
fn a_run_that_was_killed_at_any_step_of_a_closing_goes_on() {
    let (states, events) = states(12);
    let _alone = alone();
    for pair in states
        .windows(2)
        .filter(|pair| pair[0].len() != pair[1].len())
    {
        let steps = changes(&pair[0], &pair[1]);
        let mut files = pair[0].clone();
        for change in &steps {
            apply(&mut files, change);
            let dir = tempfile::tempdir().unwrap();
            lay_out(dir.path(), &files, &mut Files::new());
            let before = read(dir.path());
            let mut writer = Writer::reopen(dir.path()).unwrap();
            writer.set_segment_bytes(SEGMENT_BYTES);
            for n in 100..110 {
                writer.append(&sample(n, 0, Direction::Read)).unwrap();
                writer.append(&interval(n)).unwrap();
            }
            writer.finish(RunStatus::Complete).unwrap();
            let after = read(dir.path());
            assert_eq!(after[..before.len()], before[..]);
            assert_eq!(before[..], events[..before.len()]);
            assert_eq!(after.len(), before.len() + 1 + 20 + 1);
            assert_eq!(summed(dir.path()), count(&after));
            let left = self::files(dir.path());
            assert!(
                left.keys()
                    .all(|name| name.ends_with(".zst") || !name.starts_with("events/0")),
                "{:?}",
                left.keys()
            );
        }
    }
}

/// A finished record of several segments.
fn finished(intervals: u64) -> (tempfile::TempDir, PathBuf, Vec<Event>) {
    let (states, events) = states(intervals);
    let runs = tempfile::tempdir().unwrap();
    let dir = runs.path().join("x");
    lay_out(&dir, states.last().unwrap(), &mut Files::new());
    (runs, dir, events)
}

proptest! {
    #![proptest_config(Config::with_cases(200))]

    #[test]
    fn a_damaged_byte_is_told_and_costs_its_segment_alone(
        file in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), flip in 1u8..,
    ) {
        thread_local! {
            static WHOLE: (Files, Vec<Event>) = {
                let (mut states, events) = states(20);
                (states.pop().unwrap(), events)
            };
        }
        let (mut files, events) = WHOLE.with(Clone::clone);
        let names: Vec<String> = files.keys().cloned().collect();
        let name = &names[file.index(names.len())];
        let mut bytes = files[name].to_vec();
        let at = at.index(bytes.len());
        // Without its last line end a log is one that a kill has cut.
        prop_assume!(name != EVENTS || at + 1 < bytes.len());
        bytes[at] ^= flip;
        let of_segment = match name.strip_suffix(".zst") {
            Some(_) => zstd::decode_all(&files[name][..]).unwrap(),
            None => files[name].to_vec(),
        };
        files.insert(name.clone(), Rc::new(bytes));
        let dir = tempfile::tempdir().unwrap();
        lay_out(dir.path(), &files, &mut Files::new());

        if name.contains("digest") {
            prop_assert_eq!(summed(dir.path()), count(&events));
            return Ok(());
        }
        let (mut good, mut told) = (Vec::new(), 0);
        for entry in Entries::open(dir.path()).unwrap() {
            match entry {
                Ok(entry) => good.push(entry.event),
                Err(RecordError::Damaged { .. }) => told += 1,
                Err(error) => panic!("{error}"),
            }
        }
        // What is compressed may be the same all the same.
        let is_same = name.ends_with(".zst") && good == events;
        prop_assert!(told > 0 || is_same, "not told: {} at {}", name, at);
        // What is given is as it was, in its order.
        let mut rest = events.iter();
        prop_assert!(good.iter().all(|event| rest.any(|of| of == event)));
        let lost = events.len() - good.len();
        let lines = of_segment.iter().filter(|&&byte| byte == b'\n').count() - 1;
        prop_assert!(lost <= lines, "{} of {}: {}", lost, lines, name);
    }
}

#[test]
fn damage_is_told_with_file_line_and_interval() {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), &Header::new("x", "test")).unwrap();
    let all = [Direction::Read, Direction::Write];
    let events = (1..=3).flat_map(|n| {
        let samples = all.map(|dir| sample(n * 1_000, 0, dir));
        samples.into_iter().chain([interval(n * 1_000)])
    });
    let events: Vec<Event> = events.collect();
    events
        .iter()
        .for_each(|event| writer.append(event).unwrap());
    let dir = writer.finish(RunStatus::Complete).unwrap();
    let log = dir.join(EVENTS);
    let text = fs::read_to_string(&log).unwrap();
    assert!(!dir.join("events").exists(), "one file");
    let told = |text: &str| {
        fs::write(&log, text).unwrap();
        let mut errors = Vec::new();
        let mut given = 0;
        for entry in Entries::open(&dir).unwrap() {
            match entry {
                Ok(_) => given += 1,
                Err(error) => errors.push(error.to_string()),
            }
        }
        assert_eq!(errors.len(), 1, "{errors:?}");
        (errors.remove(0), given)
    };
    let at = |line: u64, lines: &str| {
        let log = log.display();
        format!("{log}:{line}: damaged: {lines}, the interval that ends at 2.0 s: the check")
    };
    // Edited, lost, added: the interval's lines are 5 to 7.
    let (error, given) = told(&text.replacen("\"t_ms\":2000", "\"t_ms\":2001", 1));
    assert!(
        error.starts_with(&at(5, "lines 5 to 7 are not as written")),
        "{error}"
    );
    assert_eq!(given, events.len() + 1 - 3);
    let lines: Vec<&str> = text.lines().collect();
    let without = [&lines[..4], &lines[5..]].concat().join("\n") + "\n";
    let (error, _) = told(&without);
    assert!(
        error.starts_with(&at(5, "lines 5 to 6 are not as written")),
        "{error}"
    );
    let twice = [&lines[..5], &lines[4..]].concat().join("\n") + "\n";
    let (error, _) = told(&twice);
    assert!(
        error.starts_with(&at(5, "lines 5 to 8 are not as written")),
        "{error}"
    );
    // Everything that can be read is had.
    let mut salvaged = Entries::salvage(&dir).unwrap();
    assert_eq!(
        salvaged.by_ref().filter_map(Result::ok).count(),
        events.len() + 2
    );
    assert_eq!((salvaged.damaged.count, salvaged.damaged.first), (1, 8));
}

#[test]
fn a_segment_that_is_gone_is_told_and_the_others_are_read() {
    let (_runs, dir, events) = finished(20);
    let segment = dir.join("events/000002.jsonl.zst");
    let lines = zstd::decode_all(&fs::read(&segment).unwrap()[..]).unwrap();
    let lines = lines.iter().filter(|&&byte| byte == b'\n').count() - 1;
    fs::remove_file(&segment).unwrap();
    let entries: Vec<_> = Entries::open(&dir).unwrap().collect();
    let errors: Vec<String> = entries
        .iter()
        .filter_map(|e| Some(e.as_ref().err()?.to_string()))
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("events/000002.jsonl.zst:1: damaged: the segment is gone"));
    assert_eq!(entries.len() - 1, events.len() - lines);
    // What it added up to is known.
    assert_eq!(summed(&dir), count(&events));
    // As many as a number says that is wrong, at once.
    let log = dir.join(EVENTS);
    let text = fs::read_to_string(&log).unwrap();
    let (from, rest) = text.split_once("\"segment\":").unwrap();
    let (_, rest) = rest.split_once(',').unwrap();
    let mut head = format!("{from}\"segment\":4000000000,{rest}")
        .lines()
        .next()
        .unwrap()
        .to_owned();
    head.truncate(head.find(",\"check\"").unwrap());
    let mut wrong = (head + "}\n").into_bytes();
    fathom_record::Chain::default().seal(&mut wrong);
    fs::write(&log, wrong).unwrap();
    let told = Entries::open(&dir).unwrap().filter_map(Result::err).count();
    assert_eq!(told, 2);
    fs::write(&log, text).unwrap();
    // A segment that lacks its end.
    let first = dir.join("events/000001.jsonl.zst");
    let text = zstd::decode_all(&fs::read(&first).unwrap()[..]).unwrap();
    let end = text[..text.len() - 1]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .unwrap();
    fs::write(&first, zstd::encode_all(&text[..=end], 3).unwrap()).unwrap();
    let told = Entries::open(&dir).unwrap().filter_map(Result::err).count();
    assert_eq!(told, 2);
}

#[test]
fn a_power_cut_that_takes_the_new_log_costs_its_lines_alone() {
    let (_runs, dir, _) = finished(20);
    let all = read(&dir);
    for left in [0, 5] {
        let log = fs::read(dir.join(EVENTS)).unwrap();
        fs::write(dir.join(EVENTS), &log[..left]).unwrap();
        let entries: Vec<_> = Entries::open(&dir).unwrap().collect();
        let good = entries.into_iter().filter_map(Result::ok).count();
        assert_eq!(good, all.len() - 1);
        assert_eq!(
            Entries::open(&dir).unwrap().status,
            Some(RunStatus::Interrupted)
        );
        fs::write(dir.join(EVENTS), log).unwrap();
    }
    fs::write(dir.join(EVENTS), "").unwrap();
    let writer = Writer::reopen(&dir).unwrap();
    assert!(matches!(
        writer.resumed(),
        Some(Event::Resumed { after: None, .. })
    ));
    writer.finish(RunStatus::Complete).unwrap();
    let now = read(&dir);
    assert_eq!(now[..all.len() - 1], all[..all.len() - 1]);
    assert_eq!(now.len(), all.len() + 1);
}

#[test]
fn a_follower_misses_nothing_while_segments_are_closed() {
    let _alone = alone();
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), &Header::new("x", "test")).unwrap();
    writer.set_segment_bytes(SEGMENT_BYTES);
    let dir = writer.dir().to_owned();
    let mut often = Entries::open(&dir).unwrap();
    let mut seldom = Entries::open(&dir).unwrap();
    let take = |entries: &mut Entries, seen: &mut Vec<Event>| {
        entries.look_again().unwrap();
        seen.extend(entries.by_ref().map(|entry| entry.unwrap().event));
    };
    let (mut by_often, mut by_seldom) = (Vec::new(), Vec::new());
    let events = events(40);
    for (n, event) in events.iter().enumerate() {
        writer.append(event).unwrap();
        take(&mut often, &mut by_often);
        if n % 50 == 0 {
            take(&mut seldom, &mut by_seldom);
        }
    }
    writer.finish(RunStatus::Complete).unwrap();
    take(&mut often, &mut by_often);
    take(&mut seldom, &mut by_seldom);
    assert_eq!(by_often, by_seldom);
    assert_eq!(by_often[..events.len()], events[..]);
    assert_eq!(often.status, Some(RunStatus::Complete));
}

#[test]
fn a_record_of_version_1_is_read_and_goes_on() {
    let fixture = include_str!("fixtures/version-1.jsonl");
    let runs = tempfile::tempdir().unwrap();
    let dir = runs.path().join("x");
    fs::create_dir(&dir).unwrap();
    let log = dir.join(EVENTS);
    fs::write(&log, fixture).unwrap();
    let old = Record::open(&dir).unwrap();
    assert_eq!(old.header.version, 1);
    assert_eq!(old.status(), Some(RunStatus::Complete));
    // The end of its step is told by what stands behind it.
    assert_eq!(old.entries.len(), fixture.lines().count());
    let kinds = old.entries.iter().rev().map(|entry| &entry.event);
    assert!(matches!(
        kinds.take(2).collect::<Vec<_>>()[..],
        [Event::Ended { .. }, Event::StepEnded { .. }]
    ));
    // Cut by a kill, and damaged, as ever.
    fs::write(&log, &fixture[..fixture.len() - 10]).unwrap();
    let cut = Record::open(&dir).unwrap();
    assert_eq!(cut.entries[..], old.entries[..old.entries.len() - 2]);
    fs::write(&log, fixture.replacen("\"sample\"", "\"sam\0\0\"", 1)).unwrap();
    let before: Vec<_> = Entries::open(&dir).unwrap().collect();
    assert_eq!(before.len(), 5);
    assert!(matches!(
        &before[4],
        Err(RecordError::Damaged { line: 6, .. })
    ));

    fs::write(&log, &fixture[..fixture.len() - 10]).unwrap();
    let mut writer = Writer::reopen(&dir).unwrap();
    writer.append(&interval(9)).unwrap();
    writer.finish(RunStatus::Complete).unwrap();
    let record = Record::open(&dir).unwrap();
    let whole = old.entries.len() - 2;
    assert_eq!(record.header.version, 2);
    assert_eq!(record.header.facts, old.header.facts);
    assert_eq!(record.entries[..whole], old.entries[..whole]);
    let after = record.entries[whole..].iter().map(|entry| &entry.event);
    assert!(matches!(
        after.collect::<Vec<_>>()[..],
        [
            Event::Resumed { after: None, .. },
            Event::Interval { t_ms: 9, .. },
            Event::Ended { .. }
        ]
    ));
    let events: Vec<Event> = record
        .entries
        .into_iter()
        .map(|entry| entry.event)
        .collect();
    assert_eq!(summed(&dir), count(&events));
    // One that had ended says where its steps did, from its lines and from the digest.
    let dir = runs.path().join("y");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(EVENTS), fixture).unwrap();
    let writer = Writer::reopen(&dir).unwrap();
    writer.finish(RunStatus::Complete).unwrap();
    assert!(dir.join("events/digest.jsonl").exists());
    for entries in [Entries::open(&dir), Entries::summed(&dir)] {
        let events = entries.unwrap().map(|entry| entry.unwrap().event);
        let ends = events.filter(|event| matches!(event, Event::StepEnded { .. }));
        assert_eq!(ends.count(), 1);
    }
}

#[test]
fn segments_are_small_and_read_by_ordinary_tools() {
    let (_runs, dir, events) = finished(100);
    let first = fs::read(dir.join("events/000001.jsonl.zst")).unwrap();
    let first = String::from_utf8(zstd::decode_all(&first[..]).unwrap()).unwrap();
    for line in first.lines().skip(1) {
        serde_json::from_str::<fathom_model::Entry>(line).unwrap();
    }
    let mut raw = Entries::open(&dir).unwrap();
    let mut lines = 0;
    while let Some(line) = raw.next_raw() {
        serde_json::from_slice::<fathom_model::Entry>(line.unwrap()).unwrap();
        lines += 1;
    }
    assert_eq!(lines, events.len());
}
