//! Purges: on loop devices and zram for what the block layer and Fathom do, and
//! against drives played on top of a loop device for what only hardware does:
//! the exact commands, and every way in which a drive can say one thing and do
//! another.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};

use fathom_device::Sys;
use fathom_device::command::{Command, Issue, KernelDevices};
use fathom_device::purge::{Purge, PurgeError, PurgeProgress, PurgeSettings};
use fathom_device::safety::Confirmations;
use fathom_model::{Exit, ExpectedContent, Purged, Verification};
use fathom_testkit::{LoopDevice, require};
use tempfile::TempDir;

mod ata;
mod drive;
mod nvme;
mod scsi;

const SIZE: u64 = 16 << 20;

fn want(method: &str) -> PurgeSettings {
    PurgeSettings {
        choice: method.parse().unwrap(),
        samples: 64,
        ..PurgeSettings::default()
    }
}

/// The words for devices of [`SIZE`].
fn words(devices: &[&Path]) -> Confirmations {
    let word = |device: &&Path| format!("{}=16MiB", device.display());
    Confirmations(devices.iter().map(word).collect())
}

fn run(purge: &Purge, issue: &dyn Issue) -> Result<Purged, PurgeError> {
    let confirmed = words(&[&purge.capabilities.path]);
    purge.run(issue, &confirmed, &|| false, &mut |_| {})
}

/// What was found by a purge that failed its verification.
fn kept(done: Result<Purged, PurgeError>) -> Verification {
    match done {
        Err(error @ PurgeError::DataRemains { .. }) => {
            assert_eq!(error.exit(), Exit::Failed);
            assert!(
                error.to_string().contains("did not do what it promised"),
                "{error}"
            );
            let PurgeError::DataRemains { purged, .. } = error else {
                unreachable!("it was one a line ago")
            };
            purged.verification
        }
        other => panic!("{other:?}"),
    }
}

/// That not one sample was gone.
fn all_kept(seen: Verification) {
    // The first and the last block may be the samples of their strips as well.
    assert!((64..=66).contains(&seen.samples), "{seen:?}");
    assert_eq!(seen.kept, seen.samples, "{seen:?}");
}

fn on_loop(device: &LoopDevice, method: &str) -> Purge {
    Purge::new(&Sys::live(), &KernelDevices, &want(method), device.path()).unwrap()
}

#[test]
fn a_loop_device_is_discarded_and_overwritten() {
    let device = require!(LoopDevice::new(SIZE));
    for (method, promise) in [
        ("auto", ExpectedContent::Zeros),
        ("overwrite", ExpectedContent::Zeros),
        ("overwrite-random", ExpectedContent::Written),
        ("blkdiscard", ExpectedContent::Zeros),
    ] {
        let purge = on_loop(&device, method);
        purge.check(&words(&[device.path()])).unwrap();
        let mut steps = 0;
        let done = purge.run(
            &KernelDevices,
            &words(&[device.path()]),
            &|| false,
            &mut |progress| {
                steps += usize::from(matches!(progress, PurgeProgress::End { .. }));
            },
        );
        let done = done.unwrap();
        assert_eq!(steps, purge.commands().len(), "{method}");
        let seen = &done.verification;
        assert_eq!(seen.promise, promise, "{method}: {seen:?}");
        let as_promised = if promise == ExpectedContent::Zeros {
            seen.zeros
        } else {
            seen.written
        };
        assert_eq!(as_promised, seen.samples, "{method}: {seen:?}");
        // Blocks of 4 KiB of 16 MiB; two strips of 64; 1 - 0.01^(1/64).
        let percent = seen.samples as f64 * 100.0 / 4096.0;
        assert!((seen.seen_percent - percent).abs() < 0.001, "{seen:?}");
        assert_eq!(seen.stretch_bytes, SIZE / 32);
        assert!((seen.scattered_percent - 6.943).abs() < 0.001, "{seen:?}");
        let own = if method.starts_with("overwrite") {
            SIZE
        } else {
            0
        };
        assert_eq!(done.bytes_written, own + seen.samples * 4096, "{method}");
        assert_eq!((done.bytes_before, done.bytes_after), (SIZE, SIZE));
    }
    let purge = on_loop(&device, "auto");
    assert_eq!(
        (purge.method.to_string(), &purge.passed_over[..]),
        ("blkdiscard".into(), &[][..])
    );
}

#[test]
fn a_device_that_came_in_place_of_the_one_that_was_looked_at_is_not_purged() {
    let first = require!(LoopDevice::new(SIZE));
    let other = require!(LoopDevice::new(SIZE));
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("disk");
    std::os::unix::fs::symlink(first.path(), &link).unwrap();
    let purge = Purge::new(
        &Sys::live(),
        &KernelDevices,
        &want("overwrite-random"),
        &link,
    )
    .unwrap();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(other.path(), &link).unwrap();
    let told = run(&purge, &KernelDevices).unwrap_err().to_string();
    assert!(told.contains("another device than the one"), "{told}");
    let bytes = std::fs::read(other.path()).unwrap();
    assert!(bytes.iter().all(|&byte| byte == 0));
}

#[test]
fn zram_is_purged() {
    let device = require!(fathom_testkit::Zram::new(SIZE));
    for method in ["blkdiscard", "overwrite", "overwrite-random"] {
        let purge = Purge::new(&Sys::live(), &KernelDevices, &want(method), device.path()).unwrap();
        let done = run(&purge, &KernelDevices).unwrap();
        assert!(done.verification.held(), "{method}: {done:?}");
    }
}

#[test]
fn files_and_what_is_not_there_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "kept").unwrap();
    for path in [
        file.as_path(),
        dir.path(),
        Path::new("/dev/no-such-disk"),
        Path::new("/dev/null"),
    ] {
        let error = Purge::new(
            &Sys::live(),
            &KernelDevices,
            &PurgeSettings::default(),
            path,
        )
        .unwrap_err();
        assert!(matches!(error, PurgeError::NotADevice { .. }), "{error:?}");
        assert_eq!(error.exit(), Exit::Refused);
        assert!(
            error.to_string().contains("only devices are purged"),
            "{error}"
        );
    }
    assert_eq!(fs::read(&file).unwrap(), b"kept");
}

#[test]
fn a_device_that_was_not_named_or_is_in_use_is_not_touched() {
    let device = require!(LoopDevice::new(SIZE));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(device.path())
        .unwrap();
    let purge = on_loop(&device, "overwrite");
    for words in [
        Confirmations::default(),
        Confirmations(vec!["other".into()]),
    ] {
        purge.check(&words).unwrap_err();
        let done = purge.run(&KernelDevices, &words, &|| false, &mut |_| {
            panic!("something was begun")
        });
        assert!(matches!(done, Err(PurgeError::Refused(_))), "{done:?}");
    }
    // A signature of ext2: magic 53EFh at byte 1080.
    file.write_all_at(&[0x53, 0xef], 1080).unwrap();
    file.sync_all().unwrap();
    let refusal = purge.check(&words(&[device.path()])).unwrap_err();
    assert!(refusal.to_string().contains("ext2/3/4"), "{refusal}");
}

#[test]
fn an_overwrite_stops_when_it_is_told_to() {
    let device = require!(LoopDevice::new(SIZE));
    let purge = on_loop(&device, "overwrite");
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 4
    };
    let done = purge.run(&KernelDevices, &words(&[device.path()]), &stop, &mut |_| {});
    let error = done.unwrap_err();
    assert_eq!(error.exit(), Exit::Interrupted);
    // Four writes of 1 MiB of 16.
    assert!(error.to_string().contains("after 25.0 %"), "{error}");
}

/// Says that every command was done. `spares`: bytes of the device that a
/// discard leaves alone in truth; `None`: all.
struct Liar(Option<std::ops::Range<u64>>);

impl Issue for Liar {
    fn issue(
        &self,
        path: &Path,
        command: &Command,
    ) -> std::io::Result<fathom_device::command::Reply> {
        if let (Some(spared), Command::Discard { .. }) = (&self.0, command) {
            for (offset, end) in [(0, spared.start), (spared.end, SIZE)] {
                let bytes = end - offset;
                if bytes == 0 {
                    continue;
                }
                let secure = false;
                KernelDevices.issue(
                    path,
                    &Command::Discard {
                        offset,
                        bytes,
                        secure,
                    },
                )?;
            }
        }
        Ok(fathom_device::command::Reply::default())
    }
}

#[test]
fn a_purge_that_does_nothing_is_caught() {
    let device = require!(LoopDevice::new(SIZE));
    for method in ["blkdiscard", "blkdiscard-secure"] {
        let seen = kept(run(&on_loop(&device, method), &Liar(None)));
        assert_eq!(seen.broken_at[0], 0, "{method}");
        all_kept(seen);
    }
}

/// A stretch of two strips cannot be missed, wherever it lies.
#[test]
fn a_stretch_that_is_left_over_is_caught() {
    let device = require!(LoopDevice::new(SIZE));
    let stretch = SIZE / 32;
    for begin in [0, 5 * stretch + 4096, SIZE - stretch] {
        let purge = on_loop(&device, "blkdiscard");
        let seen = kept(run(&purge, &Liar(Some(begin..begin + stretch))));
        assert!((1..=4).contains(&seen.kept), "{begin}: {seen:?}");
        assert!(
            seen.broken_at
                .iter()
                .all(|at| (begin..begin + stretch).contains(at))
        );
        assert_eq!(seen.zeros, seen.samples - seen.kept);
    }
}

/// Where zeros were promised other bytes are a failure; where it was only
/// promised that the data are gone they are none.
#[test]
fn other_content_breaks_a_promise_of_zeros_only() {
    struct Scribbler;
    impl Issue for Scribbler {
        fn issue(
            &self,
            path: &Path,
            _: &Command,
        ) -> std::io::Result<fathom_device::command::Reply> {
            let file = OpenOptions::new().write(true).open(path)?;
            file.write_all_at(&vec![0x5a; SIZE as usize], 0)?;
            file.sync_all()?;
            Ok(fathom_device::command::Reply::default())
        }
    }
    let device = require!(LoopDevice::new(SIZE));
    let seen = kept(run(&on_loop(&device, "blkdiscard"), &Scribbler));
    assert_eq!(
        (seen.other, seen.kept, seen.broken_at.len()),
        (seen.samples, 0, 16),
        "{seen:?}"
    );
}

#[test]
fn a_partition_is_not_given_commands_for_the_whole_device() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = Machine::new();
    let disk = machine.disk("nvme0n1", SIZE, None);
    fs::write(disk.join("nsid"), "1\n").unwrap();
    machine.partition(&disk, "nvme0n1p1", device.path());
    for method in ["nvme-format", "ata-security-erase", "scsi-sanitize"] {
        let issue = fathom_device::command::Played::new([]);
        let error = Purge::new(&machine.sys(), &issue, &want(method), device.path()).unwrap_err();
        assert_eq!(error.exit(), Exit::Missing);
        let wanted = "acts on the whole device /dev/nvme0n1, of which nvme0n1p1 is a part";
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let issue = fathom_device::command::Played::new([]);
    let purge = Purge::new(&machine.sys(), &issue, &want("overwrite"), device.path()).unwrap();
    assert!(run(&purge, &KernelDevices).unwrap().verification.held());
}

/// A recorded tree of sysfs whose devices are loop devices in truth.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let this = Self(tempfile::tempdir().unwrap());
        for dir in [
            "sys/class/block",
            "sys/block",
            "sys/dev/block",
            "dev",
            "proc",
        ] {
            fs::create_dir_all(this.0.path().join(dir)).unwrap();
        }
        this
    }

    fn sys(&self) -> Sys {
        Sys::recorded(self.0.path())
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    /// A disk of this name with its folder; `real` is the loop device that it is.
    fn disk(&self, name: &str, size: u64, real: Option<&Path>) -> PathBuf {
        let dir = self.path(&format!("sys/devices/{name}"));
        fs::create_dir_all(dir.join("queue")).unwrap();
        fs::write(dir.join("size"), format!("{}\n", size / 512)).unwrap();
        fs::write(dir.join("queue/logical_block_size"), "512\n").unwrap();
        fs::write(dir.join("queue/discard_max_bytes"), "0\n").unwrap();
        symlink(&dir, self.path(&format!("sys/class/block/{name}"))).unwrap();
        symlink(&dir, self.path(&format!("sys/block/{name}"))).unwrap();
        if let Some(real) = real {
            self.is(&dir, real);
        }
        dir
    }

    fn partition(&self, disk: &Path, name: &str, real: &Path) {
        let dir = disk.join(name);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("partition"), "1\n").unwrap();
        fs::write(dir.join("size"), format!("{}\n", SIZE / 512)).unwrap();
        symlink(&dir, self.path(&format!("sys/class/block/{name}"))).unwrap();
        self.is(&dir, real);
    }

    /// Says which real device a folder describes.
    fn is(&self, dir: &Path, real: &Path) {
        use std::os::unix::fs::MetadataExt as _;
        let number = fs::metadata(real).unwrap().rdev();
        let number = format!("{}:{}", rustix_major(number), rustix_minor(number));
        fs::write(dir.join("dev"), format!("{number}\n")).unwrap();
        symlink(dir, self.path(&format!("sys/dev/block/{number}"))).unwrap();
        let name = real.file_name().unwrap().to_str().unwrap();
        symlink(real, self.path(&format!("dev/{name}"))).unwrap();
    }
}

/// `gnu_dev_major` and `gnu_dev_minor` for the small numbers of loop devices.
fn rustix_major(device: u64) -> u64 {
    device >> 8 & 0xfff
}

fn rustix_minor(device: u64) -> u64 {
    device & 0xff | device >> 12 & 0xfff00
}
