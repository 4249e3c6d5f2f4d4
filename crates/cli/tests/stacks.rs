//! What lies under a path: reads from stacks of file systems and devices, by both engines,
//! get the verdict that each stack calls for.

use std::any::Any;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_testkit::{LoopDevice, Mounted, ProgramUnderTest, SmallFs, data, program, skip};
use serde_json::Value;

const BYTES: usize = 8 << 20;

/// A file of data on a stack, which is dropped from the top down.
struct StackUnderTest {
    file: PathBuf,
    _held: Vec<Box<dyn Any>>,
}

/// The verdict on reads that a stack calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// The files lie in memory.
    InMemory,
    /// The page cache answered.
    Cached,
    /// Neither.
    Storage,
}

/// A stack, how its line begins (`N` for the number of a loop device), and the verdicts on
/// buffered reads with a warm cache and on direct reads.
type Row = (
    &'static str,
    fn() -> Result<StackUnderTest, String>,
    &'static str,
    Told,
    Told,
);

const ALL: [Row; 7] = [
    ("tmpfs", on_tmpfs, "tmpfs", Told::InMemory, Told::InMemory),
    (
        "overlay on tmpfs",
        on_overlay_of_tmpfs,
        "overlay → tmpfs",
        Told::InMemory,
        Told::InMemory,
    ),
    (
        "overlay on ext4",
        on_overlay_of_ext4,
        "overlay → ext4 → loopN",
        Told::Cached,
        Told::Storage,
    ),
    (
        "btrfs on three devices",
        on_btrfs,
        "btrfs → loopN",
        Told::Cached,
        Told::Storage,
    ),
    (
        "ntfs-3g",
        on_ntfs,
        "fuseblk → loopN",
        Told::Cached,
        Told::Cached,
    ),
    (
        "ext4 on a loop device",
        on_ext4,
        "ext4 → loopN",
        Told::Cached,
        Told::Storage,
    ),
    (
        "ext4 on a loop device in memory",
        on_ext4_in_memory,
        "ext4 → loopN",
        Told::InMemory,
        Told::InMemory,
    ),
];

/// Writes the file in a folder, and has it on its storage.
fn filled(folder: &Path, held: Vec<Box<dyn Any>>) -> Result<StackUnderTest, String> {
    let file = folder.join("data");
    fs::write(&file, data(BYTES)).map_err(|e| e.to_string())?;
    rustix::fs::syncfs(fs::File::open(&file).unwrap()).unwrap();
    Ok(StackUnderTest { file, _held: held })
}

fn overlay_in(folder: &Path) -> Result<Mounted, String> {
    for name in ["lower", "upper", "work"] {
        fs::create_dir(folder.join(name)).map_err(|e| e.to_string())?;
    }
    let at = |name: &str| folder.join(name).display().to_string();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower"),
        at("upper"),
        at("work")
    );
    Mounted::new(&["-t", "overlay", "overlay", "-o", &options])
}

fn tmpfs() -> Result<Mounted, String> {
    Mounted::new(&["-t", "tmpfs", "none"])
}

fn on_tmpfs() -> Result<StackUnderTest, String> {
    let memory = tmpfs()?;
    let folder = memory.path().to_owned();
    filled(&folder, vec![Box::new(memory)])
}

fn on_overlay_of_tmpfs() -> Result<StackUnderTest, String> {
    let memory = tmpfs()?;
    let over = overlay_in(memory.path())?;
    let folder = over.path().to_owned();
    filled(&folder, vec![Box::new(over), Box::new(memory)])
}

fn on_overlay_of_ext4() -> Result<StackUnderTest, String> {
    let ext4 = SmallFs::new(64 << 20, "")?;
    let over = overlay_in(ext4.path())?;
    let folder = over.path().to_owned();
    filled(&folder, vec![Box::new(over), Box::new(ext4)])
}

fn on_btrfs() -> Result<StackUnderTest, String> {
    let devices: Vec<LoopDevice> = (0..3)
        .map(|_| LoopDevice::new(256 << 20))
        .collect::<Result<_, _>>()?;
    let mut make = Command::new(program("mkfs.btrfs")?);
    make.args(["-q", "-f", "-d", "raid0", "-m", "raid1"]);
    make.args(devices.iter().map(LoopDevice::path));
    let made = make.output().map_err(|e| e.to_string())?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned());
    }
    let mut arguments = vec!["-t".to_owned(), "btrfs".to_owned(), "-o".to_owned()];
    let members: Vec<String> = (devices.iter())
        .map(|device| format!("device={}", device.path().display()))
        .collect();
    arguments.extend([members.join(","), devices[0].path().display().to_string()]);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mounted = Mounted::new(&words)?;
    let folder = mounted.path().to_owned();
    filled(&folder, vec![Box::new(mounted), Box::new(devices)])
}

fn on_ntfs() -> Result<StackUnderTest, String> {
    let device = LoopDevice::new(64 << 20)?;
    let path = device.path().display().to_string();
    let mut make = Command::new(program("mkfs.ntfs")?);
    let made = make.args(["-q", "-F", "-Q", &path]).output();
    let made = made.map_err(|e| e.to_string())?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned());
    }
    program("ntfs-3g")?;
    let mounted = Mounted::new(&["-t", "ntfs-3g", &path])?;
    let folder = mounted.path().to_owned();
    filled(&folder, vec![Box::new(mounted), Box::new(device)])
}

fn on_ext4() -> Result<StackUnderTest, String> {
    let ext4 = SmallFs::new(64 << 20, "")?;
    let folder = ext4.path().to_owned();
    filled(&folder, vec![Box::new(ext4)])
}

fn on_ext4_in_memory() -> Result<StackUnderTest, String> {
    let memory = tmpfs()?;
    let image = memory.path().join("image");
    let file = fs::File::create(&image).map_err(|e| e.to_string())?;
    file.set_len(64 << 20).map_err(|e| e.to_string())?;
    let ext4 = SmallFs::on(LoopDevice::over(&image)?, "")?;
    let folder = ext4.path().to_owned();
    filled(&folder, vec![Box::new(ext4), Box::new(memory)])
}

/// The verdict on a run of reads.
fn told(bench: &ProgramUnderTest, engine: &str, file: &Path, options: &str) -> (Told, Value) {
    let job = format!(
        "[job]\nfilename={}\nrw=randread\nbs=4k\nsize={BYTES}\nioengine=psync\ntime_based\nruntime=1500ms\n{options}\n",
        file.display()
    );
    let job = bench.file("job.fio", &job);
    let words = ["job", "run", job.to_str().unwrap(), "-q", "--json"];
    let output = bench.good(&[&words[..], &["--engine", engine]].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reasons = document["verdict"]["reasons"].as_array().unwrap();
    let is = |kind: &str| {
        let mut found = reasons.iter().filter(|it| it["kind"] == kind);
        found.any(|it| it["level"] == "invalid")
    };
    let told = match (is("in_memory"), is("cached_reads")) {
        (true, _) => Told::InMemory,
        (false, true) => Told::Cached,
        (false, false) => Told::Storage,
    };
    (told, document)
}

/// Whether a line begins like this, with `N` for the numbers of loop devices.
fn is_line(found: &str, wanted: &str) -> bool {
    let mut told = String::new();
    for c in found.chars() {
        match c.is_ascii_digit() {
            true if told.ends_with("loop") => told.push('N'),
            true if told.ends_with("loopN") => {}
            _ => told.push(c),
        }
    }
    told.starts_with(wanted)
}

#[test]
fn reads_are_told_for_what_they_are_on_every_stack() {
    let test = "reads_are_told_for_what_they_are_on_every_stack";
    for (name, make, line, warm, direct) in ALL {
        let stack = match make() {
            Ok(stack) => stack,
            Err(reason) => {
                skip(test, &format!("{name}: {reason}"));
                continue;
            }
        };
        let bench = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
        for engine in ["native", "fio"] {
            fs::read(&stack.file).unwrap();
            let (found, document) = told(&bench, engine, &stack.file, "direct=0\ninvalidate=0");
            assert_eq!(found, warm, "{name}, {engine}, buffered: {document:#}");
            let shown = String::from_utf8(bench.good(&["show"]).stdout).unwrap();
            let shown: String = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            let its = shown.split("stack ").nth(1).unwrap_or(&shown);
            assert!(is_line(its, line) || line == "tmpfs", "{name}: {shown}");
            let (found, document) = told(&bench, engine, &stack.file, "direct=1");
            assert_eq!(found, direct, "{name}, {engine}, direct: {document:#}");
        }
    }
}
