//! Nothing writes to a device that is in use or was not named.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use fathom_testkit::{LoopDevice, SmallFs, require, skip};

use crate::running::support::{Campaign, stderr};

const SIZE: u64 = 16 << 20;

/// `fathom run` on `dut` is refused with these words, also when the device is
/// named, and also by a dry run; no record is begun.
fn is_refused(dut: &Path, words: &str) {
    let campaign = Campaign::new(dut, 1, "50ms");
    let size = fs::read_to_string(
        Path::new("/sys/class/block")
            .join(dut.file_name().unwrap())
            .join("size"),
    );
    let sectors: u64 = size.map_or(0, |text| text.trim().parse().unwrap());
    let word = format!("{}={}", dut.display(), sectors * 512);
    for args in [
        &["run", "--engine", "native", "--destroy", &word][..],
        &["run", "--engine", "native", "--destroy", &word, "--dry-run"],
        &["run", "--engine", "native"],
    ] {
        let output = campaign.run(args);
        assert_eq!(output.status.code(), Some(4), "{args:?}: {output:?}");
        let told = stderr(&output);
        assert!(told.contains(words), "{args:?}: {told}");
        // What would run can be looked at all the same.
        let shows = String::from_utf8_lossy(&output.stdout).contains("# 1/");
        assert_eq!(shows, args.contains(&"--dry-run"), "{args:?}");
    }
    assert!(campaign.records().is_empty());
}

#[test]
fn devices_in_use_are_refused() {
    let mounted = require!(SmallFs::new(SIZE, ""));
    is_refused(mounted.device(), "is mounted on");

    let below = LoopDevice::new(SIZE).unwrap();
    let above = LoopDevice::over(below.path()).unwrap();
    is_refused(below.path(), "is behind loop device");
    drop(above);

    let table = LoopDevice::new(SIZE).unwrap();
    let mut image = fs::OpenOptions::new()
        .write(true)
        .open(table.behind())
        .unwrap();
    // A protective MBR: one partition of type EEh, and the signature (UEFI 5.2.3).
    let mut sector = [0u8; 512];
    sector[446 + 4] = 0xee;
    sector[446 + 8] = 1;
    sector[446 + 12] = 255;
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    image.write_all(&sector).unwrap();
    image.sync_all().unwrap();
    is_refused(table.path(), "carries");

    let swap = LoopDevice::new(SIZE).unwrap();
    let on = |program: &str| Command::new(program).arg(swap.path()).output();
    let made = on("mkswap").is_ok_and(|made| made.status.success());
    if !made || !on("swapon").is_ok_and(|on| on.status.success()) {
        return skip(
            "devices_in_use_are_refused (swap)",
            "no swap can be made here",
        );
    }
    is_refused(swap.path(), "in use as swap");
    on("swapoff").unwrap();
}

#[test]
fn a_device_that_was_not_named_is_refused_and_told_how() {
    let disk = require!(LoopDevice::new(SIZE));
    is_refused_without_a_word(&disk);
}

fn is_refused_without_a_word(disk: &LoopDevice) {
    let campaign = Campaign::new(disk.path(), 1, "50ms");
    let output = campaign.run(&["run", "--engine", "native"]);
    assert_eq!(output.status.code(), Some(4));
    let told = stderr(&output);
    let word = format!("{}=16MiB", disk.path().display());
    assert!(told.contains(&format!("add --destroy {word}")), "{told}");
    assert!(told.contains("CONFIG_DESTROY_CONFIRM"), "{told}");
    // In the configuration it holds without a flag.
    campaign.good(&["config", "set", &format!("DESTROY_CONFIRM={word}")]);
    campaign.good(&["run", "--engine", "native", "--only", "randwrite", "-q"]);
}

#[test]
fn a_mistyped_device_is_never_made() {
    let dut = Path::new("/dev/fathom-no-such-device");
    is_refused(dut, "there is no such device");
    assert!(!dut.exists());
}

/// Somebody mounts it between two points.
#[test]
fn a_device_that_comes_into_use_ends_the_campaign() {
    let disk = require!(LoopDevice::new(SIZE));
    let campaign = Campaign::new(disk.path(), 16, "200ms");
    let word = format!("{}=16MiB", disk.path().display());
    let child = campaign.start(&["run", "--engine", "native", "--destroy", &word, "-q"]);
    crate::running::support::await_that("a point is done", || !campaign.done().is_empty());
    let above = LoopDevice::over(disk.path()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let failures: Vec<String> = campaign
        .events()
        .iter()
        .filter(|event| event["event"] == "failure")
        .map(|event| event["message"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        failures[0].contains("is behind loop device"),
        "{failures:?}"
    );
    drop(above);
    campaign.good(&["resume", "--destroy", &word, "-q"]);
    assert_eq!(campaign.status()["left"], 0);
}

/// `--again` beside a run, and a job beside a campaign, once wrote to the same
/// device at the same time.
#[test]
fn a_device_that_is_measured_already_is_refused() {
    let device = require!(LoopDevice::new(SIZE));
    let _hold = fathom_device::Hold::of([device.path()]).unwrap();
    let campaign = Campaign::new(device.path(), 1, "50ms");
    let word = format!("{}={SIZE}", device.path().display());
    let job = ["--name=a", "--rw=write", "--bs=4k"];
    let filename = format!("--filename={}", device.path().display());
    let native = ["--engine", "native", "--destroy", &word];
    let run = [&["run"], &native[..]].concat();
    let job_run = [&["job", "run"], &native[..], &["--", &filename], &job].concat();
    let reads = [&run[..], &["--only", "randread"]].concat();
    for args in [run, reads, job_run] {
        let output = campaign.run(&args);
        assert_eq!(output.status.code(), Some(4), "{args:?}: {output:?}");
        let told = stderr(&output);
        assert!(told.contains("is locked by another program"), "{told}");
    }
    assert!(campaign.records().is_empty());
}
