//! The same job on both engines, one after the other.

use std::fs;
use std::path::Path;
use std::time::Duration;

use fathom_testkit::{FaultFs, LoopDevice, Throttle, Zram, await_that, require, skip};
use serde_json::Value;

use crate::proof::Folder;

/// The word that confirms a device without a name of its own.
fn word(device: &Path, bytes: u64) -> String {
    format!("{}={bytes}", device.display())
}

/// I/Os of a direction that the kernel has given to a device; those that it merged
/// count, too (Documentation/block/stat.rst).
fn given(device: &Path, rw: &str) -> u64 {
    let stat = Path::new("/sys/class/block").join(device.file_name().unwrap());
    let stat = fs::read_to_string(stat.join("stat")).unwrap();
    let numbers = stat
        .split_whitespace()
        .map(|word| word.parse::<u64>().unwrap());
    numbers.skip(if rw == "read" { 0 } else { 4 }).take(2).sum()
}

/// What one job tells of a direction.
struct Told {
    ios: u64,
    runtime_ms: f64,
    /// Of all I/Os together.
    waited_ms: f64,
    least_ms: f64,
}

impl Told {
    fn by(doc: &Value, rw: &str) -> Self {
        let figures = &doc["jobs"][0][rw];
        let number = |value: &Value| value.as_f64().unwrap();
        let ios = figures["total_ios"].as_u64().unwrap();
        Self {
            ios,
            runtime_ms: number(&figures["runtime_ms"]),
            waited_ms: number(&figures["lat"]["mean_ns"]) * ios as f64 / 1e6,
            least_ms: number(&figures["lat"]["min_ns"]) / 1e6,
        }
    }

    /// No more than `depth` I/Os wait at any time of the job, whose time is told in
    /// whole ms.
    fn keeps_the_depth(&self, depth: f64) {
        let most_ms = depth * (self.runtime_ms + 1.0);
        assert!(self.waited_ms <= most_ms, "{} of {most_ms}", self.waited_ms);
    }
}

/// What holds at any speed: all I/Os that an engine counts were made, none of them
/// before the limit let it, and no more than eight at a time. How near both engines
/// come to the limit and to each other is measured by `make bench-engine`.
fn limits_are_kept(device: &Path, bytes: u64, rw: &str, engine: &str) -> Result<(), String> {
    const LIMIT: u32 = 2000;
    const IOS: u64 = 2400;
    const DEPTH: f64 = 8.0;
    let throttle = Throttle::new(device, LIMIT)?;
    let folder = Folder::new();
    folder.job(&format!(
        "[j]\nrw=rand{rw}\nioengine={engine}\niodepth={DEPTH}\nbs=4k\ndirect=1\nsize={bytes}\n\
         number_ios={IOS}\nfilename={}\n",
        device.display()
    ));
    let word = word(device, bytes);
    for who in ["fio", "native"] {
        let before = given(device, rw);
        let options = ["--engine", who, "--destroy", &word];
        let (doc, code) = folder.document(&throttle.command(), &options);
        assert_eq!((code, &doc["engine"]), (0, &who.into()), "{doc}");
        let told = Told::by(&doc, rw);
        assert_eq!(told.ios, IOS, "{who}");
        // The kernel counts an I/O just after it has told that it is done.
        await_that("the device has served all", || {
            given(device, rw) >= before + IOS
        });
        if rw == "write" {
            // Whoever looks at a device before only reads.
            assert_eq!(given(device, rw), before + IOS, "{who}");
        }
        // The kernel lets I/Os go for two of its slices of 100 ms ahead, at most
        // (block/blk-throttle.c).
        let least_ms = (IOS as f64 - DEPTH) / f64::from(LIMIT) * 1000.0 - 200.0;
        assert!(told.runtime_ms > least_ms, "{who}: {} ms", told.runtime_ms);
        told.keeps_the_depth(DEPTH);
    }
    Ok(())
}

#[test]
fn both_engines_get_the_iops_of_a_throttled_loop_device() {
    const BYTES: u64 = 32 << 20;
    let ready = fathom_testkit::program("fio").and_then(|_| LoopDevice::new(BYTES));
    let done = ready.and_then(|disk| limits_are_kept(disk.path(), BYTES, "read", "libaio"));
    if let Err(reason) = done {
        skip(
            "both_engines_get_the_iops_of_a_throttled_loop_device",
            &reason,
        );
    }
}

#[test]
fn both_engines_get_the_iops_of_a_throttled_zram_device() {
    const BYTES: u64 = 32 << 20;
    let ready = fathom_testkit::program("fio").and_then(|_| Zram::new(BYTES));
    let done = ready.and_then(|disk| limits_are_kept(disk.path(), BYTES, "write", "io_uring"));
    if let Err(reason) = done {
        skip(
            "both_engines_get_the_iops_of_a_throttled_zram_device",
            &reason,
        );
    }
}

/// The file system says how long it held the I/Os: one at a time, they have waited
/// at least so long, and no longer than the job took.
#[test]
fn both_engines_find_the_latency_of_a_slow_file_system() {
    const IOS: u64 = 200;
    const DELAY_MS: f64 = 2.0;
    /// The engines read the CPU's counter, whose speed they have measured.
    const CLOCK: f64 = 0.99;
    let ready = fathom_testkit::program("fio").and_then(|_| FaultFs::new());
    let slow = require!(ready);
    let file = slow.path().join("f");
    fs::write(&file, vec![1u8; 1 << 20]).unwrap();
    let folder = Folder::new();
    for (rw, engine) in [("read", "psync"), ("write", "libaio")] {
        folder.job(&format!(
            "[j]\nrw=rand{rw}\nioengine={engine}\nbs=4k\ndirect=1\nnumber_ios={IOS}\nsize=1m\n\
             norandommap\nfilename={}\n",
            file.display()
        ));
        for who in ["fio", "native"] {
            slow.clear();
            slow.delay(Duration::from_secs_f64(DELAY_MS / 1000.0));
            let (doc, code) = folder.document(&[], &["--engine", who]);
            assert_eq!((code, &doc["engine"]), (0, &who.into()), "{doc}");
            let [reads, writes] = slow.served();
            let served = if rw == "read" { reads } else { writes };
            // libaio's I/O is over when its submission returns: lat holds both parts.
            let told = Told::by(&doc, rw);
            assert_eq!((told.ios, served.ios), (IOS, IOS), "{who} {rw}");
            let took_ms = served.took.as_secs_f64() * 1000.0;
            let of_device = format!("{who} {rw}: {} of {took_ms}", told.waited_ms);
            assert!(told.waited_ms >= CLOCK * took_ms, "{of_device}");
            assert!(told.least_ms >= CLOCK * DELAY_MS, "{who} {rw}");
            told.keeps_the_depth(1.0);
        }
    }
}

/// Bytes and I/Os of every direction of a document's first job.
fn moved(doc: &Value) -> Vec<(u64, u64)> {
    ["read", "write", "trim"]
        .map(|dir| {
            let figures = &doc["jobs"][0][dir];
            let number = |name: &str| figures[name].as_u64().unwrap_or(0);
            (number("total_ios"), number("io_bytes"))
        })
        .to_vec()
}

#[test]
fn trims_of_a_device_are_fios() {
    let test = "trims_of_a_device_are_fios";
    require!(fathom_testkit::program("fio"));
    const BYTES: u64 = 16 << 20;
    let (disk, zram) = (LoopDevice::new(BYTES), Zram::new(BYTES));
    let mut devices = Vec::new();
    for path in [
        disk.as_ref().map(LoopDevice::path),
        zram.as_ref().map(Zram::path),
    ] {
        match path {
            Ok(path) => devices.push(path),
            Err(reason) => skip(test, reason),
        }
    }
    let folder = Folder::new();
    for device in devices {
        // A number of I/Os is one of trims, whatever else trimwrite does.
        for rw in ["trim", "randtrim", "trimwrite", "trimwrite\nnumber_ios=128"] {
            let path = device.display();
            folder.job(&format!(
                "[j]\nrw={rw}\nioengine=psync\nbs=64k\ndirect=1\nsize=8m\nbuffer_pattern=0x77\nfilename={path}\n"
            ));
            let word = word(device, BYTES);
            let runs = ["fio", "native"].map(|engine| {
                // What is trimmed reads as zeros afterwards.
                fs::write(device, vec![0xff; BYTES as usize]).unwrap();
                let (doc, code) = folder.document(&[], &["--engine", engine, "--destroy", &word]);
                assert_eq!(code, 0, "{doc}");
                let content = fs::read(device).unwrap();
                let (trimmed, left) = content.split_at(8 << 20);
                let expected = if rw.starts_with("trimwrite") { 0x77 } else { 0 };
                let wrong = trimmed.iter().filter(|&&byte| byte != expected).count();
                assert_eq!(wrong, 0, "{engine} {rw} {path}");
                assert!(
                    left.iter().all(|&byte| byte == 0xff),
                    "{engine} {rw} {path}"
                );
                moved(&doc)
            });
            assert_eq!(runs[0], runs[1], "{rw} {path}");
            assert!(runs[1][2].0 > 0, "{rw} {path}: {runs:?}");
        }
    }
}

/// Which I/O is a read is drawn, so only the sums are fixed.
#[test]
fn mixes_and_splits_move_what_fio_moves() {
    require!(fathom_testkit::program("fio"));
    let jobs = [
        ("rw=randrw\nrwmixread=70\nbs=4k\nsize=4m", true, 0.7),
        ("rw=rw\nrwmixwrite=25\nbs=4k\nsize=4m", true, 0.75),
        (
            "rw=randwrite\nbssplit=4k/50:16k/30:64k/20\nsize=8m",
            false,
            0.0,
        ),
        ("rw=randread\nbsrange=4k-32k\nsize=8m", false, 1.0),
    ];
    for (options, same_ios, reads) in jobs {
        let runs = ["fio", "native"].map(|engine| {
            let folder = Folder::new();
            folder.job(&format!("[j]\nioengine=psync\nfilename=f\n{options}\n"));
            let (doc, code) = folder.document(&[], &["--engine", engine]);
            assert_eq!(code, 0, "{doc}");
            let moved = moved(&doc);
            let sum = |part: &dyn Fn(&(u64, u64)) -> u64| moved.iter().map(part).sum::<u64>();
            let (ios, bytes) = (sum(&|m| m.0), sum(&|m| m.1));
            let share = moved[0].0 as f64 / ios as f64;
            // Six standard deviations of a binomial of 1024: 0.094 at most.
            assert!((share - reads).abs() < 0.094, "{engine} {options}: {share}");
            (ios, bytes)
        });
        let [(fio_ios, fio_bytes), (ios, bytes)] = runs;
        assert_eq!(bytes, fio_bytes, "{options}");
        if same_ios {
            assert_eq!(ios, fio_ios, "{options}");
        } else {
            // Drawn sizes: as many I/Os within six standard deviations.
            let apart = (ios as f64 / fio_ios as f64 - 1.0).abs();
            assert!(apart < 0.3, "{options}: {ios} and {fio_ios}");
        }
    }
}
