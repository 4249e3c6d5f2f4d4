//! What lies under a path: I/O on every kind of stack, by both engines, gets the verdict
//! that the stack calls for. `FATHOM_TEST_LONG=1` runs every row, `FATHOM_TEST_LONG=ext4` those
//! of one stack, otherwise a selection in which each kind of I/O meets each engine and each
//! value of `direct`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_testkit::{ProgramUnderTest, data, is_long, skip};
use serde_json::Value;

mod places;

use crate::quick::support::SMALL_GROUP;
use places::{BYTES, Made, Place, Traits};

type Row = (&'static str, fn() -> Made);

/// Those that only the long test has every row of: loop devices on what has rows of its own.
const LOOPS: [Row; 5] = [
    ("loop on btrfs on three devices", || {
        places::on_loop(places::btrfs_of_three())
    }),
    ("loop on btrfs with zstd", || {
        places::on_loop(places::btrfs_zstd())
    }),
    ("loop on overlay on ext4", || {
        places::on_loop(places::overlay(places::ext4()))
    }),
    ("loop on overlay on tmpfs", || {
        places::on_loop(places::overlay(places::tmpfs()))
    }),
    ("loop on tmpfs", || places::on_loop(places::tmpfs())),
];

const ALL: [Row; 20] = [
    ("ext4", places::ext4),
    ("ext4 on a cached loop", places::ext4_on_cached_loop),
    ("ext4 on a loop in /dev/shm", places::ext4_in_memory),
    ("xfs", places::xfs),
    ("btrfs", places::btrfs),
    ("btrfs on three devices", places::btrfs_of_three),
    ("btrfs with zstd", places::btrfs_zstd),
    ("overlay on ext4", || places::overlay(places::ext4())),
    ("overlay on tmpfs", || places::overlay(places::tmpfs())),
    ("tmpfs", places::tmpfs),
    ("loop on the disk", || places::on_loop(places::disk())),
    ("loop on ext4", || places::on_loop(places::ext4())),
    ("loop on xfs", || places::on_loop(places::xfs())),
    ("loop on btrfs", || places::on_loop(places::btrfs())),
    ("loop on /dev/shm", || places::on_loop(places::dev_shm())),
    ("bindfs on ext4", || places::bindfs(places::ext4())),
    ("sshfs", || places::sshfs(places::disk())),
    ("ntfs-3g", places::ntfs),
    ("exfat in FUSE", places::exfat),
    ("zram", places::zram),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Io {
    WarmReads,
    ColdReads,
    UnsyncedWrites,
    SyncedWrites,
}

impl Io {
    fn is_read(self) -> bool {
        matches!(self, Self::WarmReads | Self::ColdReads)
    }
}

const IOS: [Io; 4] = [
    Io::WarmReads,
    Io::ColdReads,
    Io::UnsyncedWrites,
    Io::SyncedWrites,
];

/// A way to run it: whether direct, and the engine.
const WAYS: [(bool, &str); 4] = [
    (false, "native"),
    (true, "fio"),
    (true, "native"),
    (false, "fio"),
];

/// What the verdict must be, as far as what lies below is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// Storage was measured.
    Valid,
    /// It was not, and the result must not pass for one of storage.
    NotValid,
    /// It was something else than what was asked for.
    Invalid,
    /// What happens elsewhere is not known.
    NotJudged,
}

/// By construction, before anything is run.
fn label(place: Traits, io: Io, is_direct: bool) -> Label {
    let is_absorbed = match (io, is_direct) {
        (Io::WarmReads, true) => place.caches_reads || place.compresses,
        (Io::UnsyncedWrites, true) => place.caches_writes,
        (Io::WarmReads | Io::UnsyncedWrites, false) => true,
        _ => false,
    };
    let is_unsynced = io == Io::UnsyncedWrites && !is_direct;
    match () {
        () if place.is_memory && place.is_device => Label::NotValid,
        () if place.is_memory => Label::Invalid,
        () if place.is_remote && !is_unsynced => Label::NotJudged,
        () if is_unsynced => Label::NotValid,
        () if is_absorbed => Label::Invalid,
        // Fewer bytes are read than the file has; the data that is written may not shrink.
        () if place.compresses && io.is_read() => Label::NotValid,
        () if place.compresses => Label::NotJudged,
        () if place.compresses_below && !io.is_read() => Label::NotValid,
        () if place.is_cached_below && matches!(io, Io::WarmReads | Io::UnsyncedWrites) => {
            Label::NotValid
        }
        () => Label::Valid,
    }
}

/// The kinds of findings that say what was measured instead of storage.
const OF_STACKS: [&str; 6] = [
    "in_memory",
    "cached_reads",
    "cached_below",
    "unsynced_writes",
    "compressed",
    "nothing_read",
];

/// Those of a run that speak against it, each with its level.
pub(crate) fn findings(document: &Value) -> Vec<(&str, &str)> {
    let reasons = document["verdict"]["reasons"].as_array();
    let all = reasons.into_iter().flatten();
    let all = all.map(|it| (it["kind"].as_str().unwrap(), it["level"].as_str().unwrap()));
    all.filter(|(kind, level)| OF_STACKS.contains(kind) && *level != "valid")
        .collect()
}

fn told(document: &Value) -> Label {
    let found = findings(document);
    let levels: Vec<&str> = found.iter().map(|(_, level)| *level).collect();
    match levels.contains(&"invalid") {
        true => Label::Invalid,
        false if levels.is_empty() => Label::Valid,
        false => Label::NotValid,
    }
}

fn is_right(wanted: Label, found: Label) -> bool {
    match wanted {
        Label::NotJudged => true,
        Label::NotValid => found != Label::Valid,
        wanted => wanted == found,
    }
}

/// A place with data, of which everything is stored.
struct Filled {
    place: Place,
    file: PathBuf,
}

impl Filled {
    fn new(make: fn() -> Made) -> Result<Self, String> {
        let place = make()?;
        let file = match place.traits.is_device {
            true => place.path.clone(),
            false => place.path.join("data"),
        };
        let filled = match place.traits.compresses {
            true => vec![8; BYTES],
            false => data(BYTES),
        };
        fs::write(&file, filled).map_err(|e| format!("{}: {e}", file.display()))?;
        let filled = Self { place, file };
        filled.stored();
        Ok(filled)
    }

    fn all(&self) -> impl Iterator<Item = &Path> {
        let below = self.place.cached.iter().rev();
        std::iter::once(&self.file).chain(below).map(AsRef::as_ref)
    }

    /// Has every layer written down, the upper first.
    fn stored(&self) {
        for path in self.all() {
            let _ = fs::File::open(path).and_then(|file| file.sync_all());
        }
    }

    /// Leaves everything stored, and in the page cache of every layer or of none. The pages of
    /// a device are dropped at its last close.
    fn ready_for(&self, io: Io) -> fs::File {
        let open = fs::File::open(&self.file).unwrap();
        self.stored();
        match io {
            Io::WarmReads => {
                for path in self.all().collect::<Vec<_>>().into_iter().rev() {
                    fs::read(path).unwrap();
                }
            }
            _ => {
                self.all().for_each(forgotten);
                let devices = self.place.devices.iter();
                devices.for_each(|device| forgotten(device));
            }
        }
        open
    }

    fn run(&self, bench: &ProgramUnderTest, io: Io, (is_direct, engine): (bool, &str)) -> Value {
        let _open = self.ready_for(io);
        let how = match io {
            Io::WarmReads => "rw=randread\ninvalidate=0",
            Io::ColdReads => "rw=randread",
            Io::UnsyncedWrites => "rw=randwrite",
            Io::SyncedWrites => "rw=randwrite\nend_fsync=1",
        };
        // Each block once, for a little longer than the rules want.
        let job = format!(
            "[job]\nfilename={}\n{how}\nbs=4k\nsize={BYTES}\nrate_iops=1900\nioengine=psync\ndirect={}\n",
            self.file.display(),
            u8::from(is_direct)
        );
        let job = bench.file("job.fio", &job);
        let confirmed = format!("{}={BYTES}", self.file.display());
        let words = ["job", "run", job.to_str().unwrap(), "-q", "--json"];
        let mut words = [&words[..], &["--engine", engine]].concat();
        if self.place.traits.is_device && !io.is_read() {
            words.extend(["--destroy", &confirmed]);
        }
        let output = bench.run(&words);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
    }
}

/// What `quick` says of a place that it should not: memory for a disk, or the reverse.
fn wrong_in_quick(bench: &ProgramUnderTest, place: &Place) -> Option<String> {
    let group = bench.file("small.toml", SMALL_GROUP);
    let words = ["quick", "here", place.path.to_str().unwrap(), "--json"];
    let output = bench.run(&[&words[..], &["--group", group.to_str().unwrap()]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    let reasons = document["verdict"]["reasons"].as_array().unwrap();
    let is_memory = reasons.iter().any(|it| it["kind"] == "in_memory");
    let is_right = output.status.success() && is_memory == place.traits.is_memory;
    (!is_right).then(|| format!("quick, in memory {is_memory}: {text}"))
}

/// The page cache gives up a file or device.
fn forgotten(path: &Path) {
    let file = fs::File::open(path).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

/// What `fathom doctor PATH` says.
fn line_of(bench: &ProgramUnderTest, path: &Path) -> String {
    let output = bench.run(&["doctor", path.to_str().unwrap(), "--json"]);
    path_line(&serde_json::from_slice(&output.stdout).unwrap())
}

/// The stack of the one path in a document of `fathom doctor`.
pub(crate) fn path_line(document: &Value) -> String {
    let checks = document["checks"].as_array().unwrap();
    let mut its = checks.iter().filter(|check| check["topic"] == "paths");
    its.next().unwrap()["found"].as_str().unwrap().to_owned()
}

/// Without what differs from one machine to the next: its own disk and kernel, numbers of
/// devices, folders of the test.
fn generalized(line: &str, disk: &str) -> String {
    let line = line.replace(disk, "DISK");
    let line = line.replace(" (direct writes are buffered)", "");
    let line = line.replace(", direct writes are buffered", "");
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let (word, end) = match word.strip_suffix(',') {
            Some(word) => (word, ","),
            None => (word, ""),
        };
        let bare = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let word = match word {
            _ if word.starts_with('(') && word.contains('/') => "(…)".to_owned(),
            _ if ["loop", "zram"].contains(&bare) => format!("{bare}N"),
            _ => word.to_owned(),
        };
        words.push(word + end);
    }
    words.join(" ")
}

/// `FATHOM_TEST_LONG` may name one stack.
fn is_wanted(name: &str) -> bool {
    let asked = std::env::var("FATHOM_TEST_LONG").unwrap_or_default();
    ["", "1", name].contains(&&*asked)
}

fn ways(place: usize, io: usize) -> Vec<(bool, &'static str)> {
    match place < ALL.len() || place % IOS.len() == io {
        _ if is_long() => WAYS.to_vec(),
        true => vec![WAYS[(place + io) % WAYS.len()]],
        false => Vec::new(),
    }
}

/// Beside other tests writes are tried again: what they write and sync on the same disk counts
/// as having gone there. Alone, and of reads, the first must be right.
fn tries(io: Io) -> usize {
    match is_long() || io.is_read() {
        true => 1,
        false => 3,
    }
}

#[test]
fn io_is_told_for_what_it_is_on_every_stack() {
    let test = "io_is_told_for_what_it_is_on_every_stack";
    let bench = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    let disk = line_of(&bench, Path::new(env!("CARGO_TARGET_TMPDIR")));
    let (mut lines, mut wrong) = (String::new(), Vec::new());
    let all = ALL.into_iter().chain(LOOPS).enumerate();
    for (at, (name, make)) in all.filter(|(_, (name, _))| is_wanted(name)) {
        let filled = match Filled::new(make) {
            Ok(filled) => filled,
            Err(reason) => {
                skip(test, &format!("{name}: {reason}"));
                continue;
            }
        };
        let line = generalized(&line_of(&bench, &filled.file), &disk);
        writeln!(lines, "{name}: {line}").unwrap();
        if is_long() && !filled.place.traits.is_device {
            wrong.extend(wrong_in_quick(&bench, &filled.place).map(|it| format!("{name}: {it}")));
        }
        for (nth, io) in IOS.into_iter().enumerate() {
            for way in ways(at, nth) {
                let wanted = label(filled.place.traits, io, way.0);
                let mut document = filled.run(&bench, io, way);
                for _ in 1..tries(io) {
                    if !is_right(wanted, told(&document)) {
                        document = filled.run(&bench, io, way);
                    }
                }
                let found = told(&document);
                println!("{name}, {io:?}, {way:?}: {found:?}, wanted {wanted:?}");
                if !is_right(wanted, found) {
                    let reasons = &document["verdict"]["reasons"];
                    wrong.push(format!(
                        "{name}, {io:?}, {way:?}: {found:?}, wanted {wanted:?}: {reasons}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if lines.lines().count() > 1 {
        insta::assert_snapshot!("lines", lines);
    }
}
