//! What stands against provisioning: told for all drives together, before
//! anything is touched.

use std::fs;

use fathom_testkit::{LoopDevice, SmallFs, require, skip};

use crate::provision::support::{DRIVE_BYTES, Drives, Lab, stderr, with};

#[test]
fn drives_that_are_not_named_are_all_told_with_the_command_that_names_them() {
    let drives = require!(Drives::new(4));
    let lab = Lab::new();
    lab.gentle();
    let paths = drives.paths();
    let first = format!("{}=32MiB", paths[0]);
    let mut args = vec!["provision"];
    args.extend(paths.iter().map(String::as_str));
    args.extend(["--workload", "seq", "--engine", "native"]);
    args.extend(["--destroy", &first, "--destroy", "typo"]);
    let output = lab.run(&args);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(
        told.contains("--destroy typo: it names none of these drives"),
        "{told}"
    );
    let pasted = told.lines().last().unwrap().trim();
    for path in &paths[1..] {
        assert!(
            pasted.contains(&format!("--destroy {path}=32MiB")),
            "{told}"
        );
    }
    assert!(
        !pasted.contains("typo") && pasted.matches(&first).count() == 1,
        "{told}"
    );
    assert!(lab.records().is_empty() && !lab.path().join("logs").exists());
    // What is printed is what works.
    let words: Vec<&str> = pasted.split(' ').skip(1).collect();
    lab.good(&words);
}

#[test]
fn one_drive_in_use_keeps_all_from_being_touched() {
    let name = "one_drive_in_use_keeps_all_from_being_touched";
    let (free, mounted) = match (LoopDevice::new(DRIVE_BYTES), SmallFs::new(DRIVE_BYTES, "")) {
        (Ok(free), Ok(mounted)) => (free, mounted),
        (Err(reason), _) | (_, Err(reason)) => return skip(name, &reason),
    };
    let lab = Lab::new();
    let [free_path, used] = [free.path(), mounted.device()].map(|path| path.to_str().unwrap());
    let words = [free_path, used].map(|path| format!("{path}=32MiB"));
    let args = ["provision", free_path, used, "--engine", "native"];
    let args = [&args[..], &["--destroy", &words[0], "--destroy", &words[1]]].concat();
    let output = lab.run(&args);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(told.contains("is mounted on"), "{told}");
    let content = fs::read(free.behind()).unwrap();
    assert!(
        content.iter().all(|byte| *byte == 0),
        "the free one is as it was"
    );
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_do() {
    let lab = Lab::new();
    let file = lab.path().join("file");
    fs::write(&file, "x").unwrap();
    let file = file.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["/dev/nvme98n1"], 3, "does not exist"),
        (&[file], 3, "is no block device"),
        (&["--all", "nvme", "/dev/sda"], 2, "cannot be used with"),
        (&["/dev/sda", "--sim", "x.toml"], 2, "--engine sim"),
        (&["--resume"], 5, "nothing to resume"),
        (
            &["/dev/sda", "--purge", "blkdiscard", "--no-purge"],
            2,
            "cannot be used with",
        ),
    ];
    for (args, code, words) in cases {
        let output = lab.run(&[&["provision"], args].concat());
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {told}");
        assert!(told.contains(words), "{args:?}: {told}");
    }
    let mut nowhere = lab.command(&["provision"]);
    let output = nowhere.current_dir("/").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("--all nvme"));
}

#[test]
fn one_device_by_two_names_is_refused() {
    let device = require!(LoopDevice::new(DRIVE_BYTES));
    let lab = Lab::new();
    let link = lab.path().join("link");
    std::os::unix::fs::symlink(device.path(), &link).unwrap();
    let paths = [device.path(), &link].map(|path| path.to_str().unwrap());
    let output = lab.run(&["provision", paths[0], paths[1]]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("are one device"));
}

#[test]
fn the_drives_of_a_kind_are_told_with_what_keeps_each_from_it() {
    let lab = Lab::new();
    // Whatever this machine has: nothing of it is confirmed, nothing happens.
    for kind in ["nvme", "scsi", "ata"] {
        let output = lab.run(&["provision", "--all", kind]);
        assert!(matches!(output.status.code(), Some(4 | 5)), "{output:?}");
        assert!(lab.records().is_empty());
    }
}

#[test]
fn the_words_of_the_configuration_name_several_drives() {
    let drives = require!(Drives::new(2));
    let lab = Lab::new();
    lab.gentle();
    let paths = drives.paths();
    let words: Vec<String> = paths.iter().map(|path| format!("{path}=32MiB")).collect();
    let setting = format!("DESTROY_CONFIRM={}", words.join(", "));
    lab.good(&["config", "set", &setting]);
    let args = ["provision".to_owned()];
    let mut args = with(&args, &["--engine", "native", "--workload", "seq"]);
    args.extend(paths.iter().map(String::as_str));
    lab.good(&args);
}
