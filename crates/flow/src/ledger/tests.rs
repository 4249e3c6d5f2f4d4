use std::fs;
use std::os::unix::fs::symlink;

use fathom_device::command::{Played, Reply};
use fathom_model::environment::{Environment, Target};
use fathom_model::{
    Direction, DirectionResult, Event, JobResult, Pattern, Results, RunStatus, Sample, Stage,
    StageKind,
};
use fathom_record::{Entries, Header, Writer};

use super::*;
use crate::device_state::ContentState;

/// A machine with two NVMe disks and a loop device; the drives answer that so
/// many units were written.
struct Machine {
    root: tempfile::TempDir,
    ledgers: Ledgers,
}

const DISK: &str = "/dev/nvme0n1";
const OTHER: &str = "/dev/nvme1n1";

fn smart(units: u64) -> Reply {
    let mut data = vec![0; 512];
    data[48..56].copy_from_slice(&units.to_le_bytes());
    Reply {
        data,
        ..Reply::default()
    }
}

impl Machine {
    fn new(units: &[u64]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (name, serial) in [("nvme0n1", "S-0"), ("nvme1n1", "S-1"), ("loop0", "")] {
            let dir = root.path().join("sys/devices").join(name);
            fs::create_dir_all(dir.join("device")).unwrap();
            fs::write(dir.join("size"), "2048\n").unwrap();
            if !serial.is_empty() {
                fs::write(dir.join("device/serial"), serial).unwrap();
                fs::write(dir.join("device/model"), "ACME").unwrap();
                fs::write(dir.join("nsid"), "1").unwrap();
            }
            fs::create_dir_all(root.path().join("sys/class/block")).unwrap();
            symlink(&dir, root.path().join("sys/class/block").join(name)).unwrap();
            fs::create_dir_all(root.path().join("sys/block").join(name)).unwrap();
            fs::create_dir_all(root.path().join("dev")).unwrap();
            fs::write(root.path().join("dev").join(name), "").unwrap();
        }
        let tape = Played::new(units.iter().map(|units| smart(*units)));
        let folder = root.path().join("state/fathom/devices");
        let ledgers = Ledgers::at(folder, Sys::recorded(root.path()), Arc::new(tape));
        Self { root, ledgers }
    }

    /// An attribute of a disk.
    fn write(&self, attribute: &str, value: &str) {
        let path = self.root.path().join("sys/devices").join(attribute);
        fs::write(path, value).unwrap();
    }

    fn deeds(&self, path: &str) -> Vec<LedgerEvent> {
        let entries = self.ledgers.entries(Path::new(path)).unwrap();
        entries.into_iter().map(|entry| entry.deed).collect()
    }

    fn begin(&self, paths: &[&str], record: &Path) -> Notes {
        let paths = paths.iter().map(Path::new);
        self.ledgers.begin(paths, "job run", Some(record))
    }

    /// A record in which these bytes were written, in a run that ended or was
    /// killed.
    fn record(&self, sampled: u64, reported: Option<u64>) -> PathBuf {
        let header = Header {
            environment: Some(Environment {
                targets: vec![Target::default()],
                ..Environment::default()
            }),
            ..Header::new("fill", "job run")
        };
        let mut writer = Writer::create(&self.root.path().join("runs"), &header).unwrap();
        for event in events(sampled, reported) {
            writer.append(&event).unwrap();
        }
        let dir = writer.dir().to_owned();
        match reported {
            Some(_) => writer.finish(RunStatus::Complete).unwrap(),
            // As a kill leaves it.
            None => {
                drop(writer);
                dir
            }
        }
    }
}

fn events(sampled: u64, reported: Option<u64>) -> Vec<Event> {
    let sample = |dir, bytes| {
        Event::Sample(Sample {
            t_ms: 1000,
            span_ms: 1000,
            job: 0,
            dir,
            ios: 1,
            bytes,
            clat: None,
            lat: None,
        })
    };
    let mut events = vec![
        Event::Step {
            step: 1,
            of: 1,
            name: "fill".into(),
            point: None,
        },
        sample(Direction::Write, sampled),
        sample(Direction::Read, 77),
    ];
    if let Some(io_bytes) = reported {
        let job = |name: &str| JobResult {
            name: name.into(),
            write: Some(DirectionResult {
                io_bytes,
                ..DirectionResult::default()
            }),
            ..JobResult::default()
        };
        events.push(Event::Finished {
            results: Box::new(Results {
                jobs: vec![job("a"), job("All clients")],
                ..Results::default()
            }),
        });
    }
    events
}

fn seen(host_written_bytes: Option<u64>) -> LedgerEvent {
    LedgerEvent::Seen {
        host_written_bytes,
        used_percent: host_written_bytes.map(|_| 0.0),
        power_on_hours: host_written_bytes.map(|_| 0),
        kernel_written_bytes: None,
        boot: None,
    }
}

fn written(bytes: u64) -> LedgerEvent {
    LedgerEvent::Written { bytes }
}

#[test]
fn a_run_is_entered_with_looks_before_and_after_and_what_it_wrote() {
    let machine = Machine::new(&[10, 30]);
    let record = Path::new("/runs/a");
    assert_eq!(machine.begin(&[DISK, DISK, "/dev/loop0"], record), [""; 0]);
    machine.ledgers.end("job run", record, 5000);
    assert_eq!(
        machine.deeds(DISK),
        [seen(Some(5_120_000)), written(5000), seen(Some(15_360_000))]
    );
    let state = machine.ledgers.state(Path::new(DISK), None).unwrap();
    assert_eq!((state.written_bytes, state.made), (5000, None));
    // Told twice it is entered once.
    machine.ledgers.end("job run", record, 5000);
    assert!(!machine.deeds(DISK)[3..].contains(&written(5000)));
    // No serial number: nothing is kept.
    assert_eq!(machine.deeds("/dev/loop0"), []);
    assert_eq!(machine.ledgers.all().unwrap().len(), 1);
}

#[test]
fn what_a_deed_has_told_is_not_told_again_and_starts_of_one_record_add_up() {
    let machine = Machine::new(&[]);
    let record = Path::new("/runs/a");
    let filled = LedgerEvent::Filled {
        pattern: Pattern::Sequential,
        bs_bytes: 131_072,
        range_percent: 100.0,
        bytes: 3000,
    };
    machine.begin(&[DISK], record);
    let disk = Path::new(DISK);
    machine
        .ledgers
        .did(disk, "run", Some(record), filled.clone());
    machine.ledgers.end("run", record, 5000);
    machine.begin(&[DISK], record);
    machine.ledgers.end("run", record, 9000);
    let mut deeds = machine.deeds(DISK);
    deeds.retain(|deed| deed.bytes().is_some());
    assert_eq!(deeds, [filled, written(2000), written(4000)]);
}

#[test]
fn devices_of_one_run_share_what_it_wrote() {
    let machine = Machine::new(&[]);
    machine.begin(&[DISK, OTHER], Path::new("/runs/a"));
    machine.ledgers.end("job run", Path::new("/runs/a"), 5000);
    assert!(machine.deeds(DISK).contains(&written(2500)));
    assert!(machine.deeds(OTHER).contains(&written(2500)));
}

#[test]
fn what_a_killed_run_wrote_is_entered_from_its_record_at_its_own_time() {
    let machine = Machine::new(&[]);
    let record = machine.record(4096, None);
    machine.begin(&[DISK], &record);
    assert_eq!(machine.ledgers.catch_up(), [""; 0]);
    let entries = machine.ledgers.entries(Path::new(DISK)).unwrap();
    let entry = entries.iter().find(|entry| entry.deed == written(4096));
    let last = Entries::open(&record).unwrap().last().unwrap().unwrap();
    assert_eq!(entry.unwrap().at_ms, last.at_ms);
    let before = machine.deeds(DISK).len();
    machine.ledgers.catch_up();
    assert_eq!(machine.deeds(DISK).len(), before);
}

/// A discard moves no byte that anybody counts: the state from before seemed to hold.
#[test]
fn a_purge_that_was_killed_or_stopped_is_no_purge_and_ends_the_state_before() {
    let disk = Path::new(DISK);
    let stage = Stage {
        id: "purge".into(),
        kind: StageKind::Purge,
        title: "purge".into(),
        round: None,
    };
    for is_over in [false, true] {
        let machine = Machine::new(&[]);
        let steady = LedgerEvent::Settled {
            pattern: Pattern::Random,
            bs_bytes: 4096,
            range_percent: 100.0,
            bytes: 3000,
            rule: "a rule".into(),
            attained: true,
        };
        machine.ledgers.did(disk, "provision", None, steady.clone());
        let header = Header::new("purge", "purge");
        let mut writer = Writer::create(&machine.root.path().join("runs"), &header).unwrap();
        let begins = Event::Stage {
            stage: Box::new(stage.clone()),
        };
        writer.append(&begins).unwrap();
        if is_over {
            let (id, end) = (stage.id.clone(), fathom_model::StageEnd::Done);
            writer.append(&Event::StageEnded { id, end }).unwrap();
        }
        let record = writer.dir().to_owned();
        machine.begin(&[DISK], &record);
        drop(writer);
        let made = machine.ledgers.state(disk, None).unwrap().made.unwrap();
        let what = "purge".to_owned();
        let expected = match is_over {
            // What it did stands in the ledger, or it did nothing.
            true => steady,
            false => LedgerEvent::Interrupted { what },
        };
        assert_eq!(made.deed, expected);
        let before = machine.deeds(DISK).len();
        machine.ledgers.catch_up();
        assert_eq!(machine.deeds(DISK).len(), before, "entered once");
    }
}

#[test]
fn a_run_that_goes_on_is_left_alone_and_one_whose_record_is_gone_is_told() {
    let machine = Machine::new(&[]);
    let header = Header::new("fill", "job run");
    let writer = Writer::create(&machine.root.path().join("runs"), &header).unwrap();
    let record = writer.dir().to_owned();
    machine.begin(&[DISK], &record);
    assert_eq!(machine.ledgers.catch_up(), [""; 0]);
    assert_eq!(machine.deeds(DISK).len(), 1);
    drop(writer);
    fs::remove_dir_all(&record).unwrap();
    let notes = machine.ledgers.catch_up();
    assert!(notes[0].contains("is not in the ledger"), "{notes:?}");
}

/// Kernel names change from boot to boot: the old name may be another drive's.
#[test]
fn a_drive_is_found_by_its_serial_number_whatever_it_is_called_now() {
    let machine = Machine::new(&[10, 77]);
    let record = machine.record(4096, None);
    machine.begin(&[DISK], &record);
    let device = |name: &str| machine.root.path().join("sys/devices").join(name);
    fs::write(device("nvme0n1").join("device/serial"), "S-1").unwrap();
    fs::write(device("nvme1n1").join("device/serial"), "S-0").unwrap();
    machine.ledgers.catch_up();
    assert_eq!(machine.deeds(DISK), [], "the ledger of the other one");
    assert_eq!(
        machine.deeds(OTHER),
        [seen(Some(5_120_000)), written(4096), seen(Some(39_424_000))]
    );
    let known = machine.ledgers.known().unwrap();
    assert_eq!(known[0].here.as_ref().unwrap().name, "nvme1n1");
    assert!(known[0].is_called("/dev/nvme1n1") && !known[0].is_called("nvme0n1"));
}

#[test]
fn the_greater_of_samples_and_report_counts_of_each_step() {
    let bytes = |events: &[Event]| {
        let mut moved = BytesWritten::default();
        events.iter().for_each(|event| moved.take(event));
        moved.bytes()
    };
    assert_eq!(bytes(&events(100, Some(300))), 300);
    assert_eq!(bytes(&events(400, Some(300))), 400);
    let twice = [events(100, Some(300)), events(50, None)].concat();
    assert_eq!(bytes(&twice), 350);
}

#[test]
fn a_ledger_that_cannot_be_written_is_a_note() {
    let machine = Machine::new(&[]);
    let folder = machine.root.path().join("state");
    fs::write(&folder, "in the way").unwrap();
    let notes = machine.begin(&[DISK], Path::new("/runs/a"));
    assert!(
        notes[0].starts_with("the device's ledger cannot be written"),
        "{notes:?}"
    );
    assert!(
        !Ledgers::none()
            .begin([Path::new(DISK)], "run", None)
            .iter()
            .any(|_| true)
    );
}

fn filled() -> LedgerEvent {
    LedgerEvent::Filled {
        pattern: Pattern::Sequential,
        bs_bytes: 131_072,
        range_percent: 100.0,
        bytes: 3000,
    }
}

/// Provisioning the first disk once made the second one "steady 0 s ago".
#[test]
fn a_serial_number_of_two_drives_says_nothing_of_either() {
    let machine = Machine::new(&[]);
    let disk = Path::new(DISK);
    machine.ledgers.did(disk, "provision", None, filled());
    assert!(machine.ledgers.state(disk, None).unwrap().made.is_some());

    machine.write("nvme1n1/device/serial", "S-0");
    for path in [DISK, OTHER] {
        let state = machine.ledgers.state(Path::new(path), None).unwrap();
        assert!(state.is_duplicate && state.made.is_none(), "{path}");
    }
    machine.begin(&[OTHER], Path::new("/runs/a"));
    machine
        .ledgers
        .did(Path::new(OTHER), "provision", None, filled());
    let duplicates = |deeds: Vec<LedgerEvent>| {
        let is_duplicate = |deed: &&LedgerEvent| **deed == LedgerEvent::Duplicate;
        deeds.iter().filter(is_duplicate).count()
    };
    assert_eq!(duplicates(machine.deeds(DISK)), 1, "noted once");

    // The other one is gone, but which of the two this is nobody knows.
    machine.write("nvme1n1/device/serial", "S-1");
    let state = machine.ledgers.state(disk, None).unwrap();
    assert!(state.is_duplicate && state.made.is_none());
    let other = machine.ledgers.state(Path::new(OTHER), None).unwrap();
    assert!(!other.is_duplicate);
}

#[test]
fn drives_with_identifiers_of_their_own_may_share_a_serial_number() {
    let machine = Machine::new(&[]);
    let disk = Path::new(DISK);
    // The ledger of an older Fathom goes on as long as no other drive may be meant.
    machine.ledgers.did(disk, "provision", None, filled());
    machine.write("nvme0n1/wwid", "eui.1");
    assert!(machine.ledgers.state(disk, None).unwrap().made.is_some());
    machine.write("nvme1n1/wwid", "eui.2");
    machine.write("nvme1n1/device/serial", "S-0");
    assert!(machine.ledgers.state(disk, None).unwrap().made.is_none());

    machine.ledgers.did(disk, "provision", None, filled());
    let state = |path| machine.ledgers.state(Path::new(path), None).unwrap();
    assert!(state(DISK).made.is_some());
    assert!(state(OTHER).made.is_none() && !state(OTHER).is_duplicate);
}

/// A drive that was swapped, or written to by another machine, is seen by what it holds.
#[test]
fn what_a_deed_left_is_noted_and_compared() {
    let machine = Machine::new(&[]);
    let disk = Path::new(DISK);
    let node = machine.root.path().join("dev/nvme0n1");
    let bytes: Vec<u8> = (0..1 << 18).flat_map(u32::to_le_bytes).collect();
    fs::write(&node, &bytes).unwrap();
    machine.ledgers.did(disk, "provision", None, filled());
    let entries = machine.ledgers.entries(disk).unwrap();
    assert_eq!(entries[0].content.len(), 64);
    let is = || machine.ledgers.state(disk, None).unwrap().content.unwrap();
    assert_eq!(is(), ContentState::Same);
    let changed: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    fs::write(&node, changed).unwrap();
    assert_eq!(is(), ContentState::Changed);
    fs::write(&node, "").unwrap();
    assert_eq!(is(), ContentState::Unverified);
}
