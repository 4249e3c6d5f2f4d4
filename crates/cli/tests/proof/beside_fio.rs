//! The same job on both engines, one after the other.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fathom_testkit::{FaultFs, LoopDevice, Throttle, Zram, skip};
use serde_json::Value;

use crate::proof::Folder;

/// A machine that is busy with something else disturbs a run now and then.
const TRIES: usize = 12;

/// Figures of fio and of the native engine.
type Pairs = [(f64, f64)];

/// Runs a job on fio and on the native engine, in turns, until `agree` does to what
/// each has found; else every pair of figures.
fn until_they_agree(
    folder: &Folder,
    under: &[String],
    options: &[&str],
    figure: &dyn Fn(&Value) -> f64,
    agree: &dyn Fn(&Pairs) -> bool,
) -> Result<(), Vec<(f64, f64)>> {
    // What is compared is time: one at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let [fio, native] = ["fio", "native"].map(|engine| {
            let options = [&["--engine", engine], options].concat();
            let (doc, code) = folder.document(under, &options);
            assert_eq!(code, 0, "{doc}");
            assert_eq!(doc["engine"], engine);
            figure(&doc)
        });
        seen.push((fio, native));
        if agree(&seen) {
            return Ok(());
        }
    }
    Err(seen)
}

fn within(share: f64, a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() <= share
}

/// The word that confirms a device without a name of its own.
fn word(device: &Path, bytes: u64) -> String {
    format!("{}={bytes}", device.display())
}

/// 2 % for the engines; 1 % more for the limit itself, which comes in bursts.
fn rates_agree(device: &Path, bytes: u64, rw: &str, engine: &str) -> Result<(), String> {
    const LIMIT: u32 = 2000;
    let throttle = Throttle::new(device, LIMIT)?;
    let folder = Folder::new();
    folder.job(&format!(
        "[j]\nrw=rand{rw}\nioengine={engine}\niodepth=8\nbs=4k\ndirect=1\ntime_based\n\
         ramp_time=1\nruntime=2\nfilename={}\n",
        device.display()
    ));
    let figure = |doc: &Value| doc["jobs"][0][rw]["iops"].as_f64().unwrap();
    let agree = |seen: &[(f64, f64)]| {
        seen.last().is_some_and(|&(fio, native)| {
            within(0.02, native, fio) && within(0.03, native, f64::from(LIMIT))
        })
    };
    let word = word(device, bytes);
    let options = ["--destroy", &word];
    let agreed = until_they_agree(&folder, &throttle.command(), &options, &figure, &agree);
    assert_eq!(
        agreed,
        Ok(()),
        "{}: IOPS of fio and native",
        device.display()
    );
    Ok(())
}

#[test]
fn both_engines_get_the_iops_of_a_throttled_loop_device() {
    const BYTES: u64 = 32 << 20;
    let ready = fathom_testkit::program("fio").and_then(|_| LoopDevice::new(BYTES));
    let done = ready.and_then(|disk| rates_agree(disk.path(), BYTES, "read", "libaio"));
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
    let done = ready.and_then(|disk| rates_agree(disk.path(), BYTES, "write", "io_uring"));
    if let Err(reason) = done {
        skip(
            "both_engines_get_the_iops_of_a_throttled_zram_device",
            &reason,
        );
    }
}

/// The file system takes 2.1 ms for each I/O, whoever asks.
#[test]
fn both_engines_find_the_latency_of_a_slow_file_system() {
    let test = "both_engines_find_the_latency_of_a_slow_file_system";
    let ready = fathom_testkit::program("fio").and_then(|_| FaultFs::new());
    let slow = match ready {
        Ok(slow) => slow,
        Err(reason) => return skip(test, &reason),
    };
    let file = slow.path().join("f");
    fs::write(&file, vec![1u8; 1 << 20]).unwrap();
    slow.delay(Duration::from_micros(2000));
    let folder = Folder::new();
    for (rw, engine) in [("randread", "psync"), ("randwrite", "libaio")] {
        folder.job(&format!(
            "[j]\nrw={rw}\nioengine={engine}\nbs=4k\ndirect=1\nnumber_ios=250\nsize=1m\nio_size=1m\n\
             norandommap\nfilename={}\n",
            file.display()
        ));
        let dir = rw.trim_start_matches("rand");
        // libaio's I/O is over when its submission returns: lat holds both parts.
        let figure = |doc: &Value| doc["jobs"][0][dir]["lat"]["mean_ns"].as_f64().unwrap();
        // Whatever else a machine does makes a mean larger: the least counts.
        let least = |of: &dyn Fn(&(f64, f64)) -> f64, seen: &[(f64, f64)]| {
            seen.iter().map(of).fold(f64::INFINITY, f64::min)
        };
        let agree = |seen: &[(f64, f64)]| {
            let (fio, native) = (least(&|pair| pair.0, seen), least(&|pair| pair.1, seen));
            within(0.05, native, fio) && native > 2e6
        };
        let agreed = until_they_agree(&folder, &[], &[], &figure, &agree);
        assert_eq!(agreed, Ok(()), "{rw}: mean latency of fio and native, ns");
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
    if let Err(reason) = fathom_testkit::program("fio") {
        return skip(test, &reason);
    }
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
    let test = "mixes_and_splits_move_what_fio_moves";
    if let Err(reason) = fathom_testkit::program("fio") {
        return skip(test, &reason);
    }
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
