//! Over ssh, against a real sshd on a loopback port.

use std::fs;

use fathom_testkit::{SmallFs, Sshd, require, skip};
use serde_json::Value;

use crate::quick::support::{
    Ended, Place, SECOND, await_that, btrfs, programs_without, script, signal,
};

const BOTH_MODES: [&str; 2] = ["self", "fio"];

/// A machine at the other end, seen from a place.
struct There {
    place: Place,
    server: Sshd,
}

impl There {
    /// An sshd whose sessions have this temporary folder, which must be empty
    /// again when they end, and `environment` besides.
    fn new(place: Place, environment: &[(&str, &str)]) -> Result<Self, String> {
        let tmp = place.path().join("tmp");
        let _ = fs::create_dir(&tmp);
        let home = place.path().join("home").display().to_string();
        let mut all = vec![("TMPDIR", tmp.to_str().unwrap()), ("HOME", home.as_str())];
        all.retain(|(name, _)| !environment.iter().any(|(other, _)| other == name));
        all.extend(environment);
        let server = Sshd::new(&all)?;
        let place = place.set("FATHOM_SSH", server.command());
        Ok(Self { place, server })
    }

    fn quick<'a>(&'a self, target: &'a str, mode: &'a str) -> Vec<&'a str> {
        let group = ["--group", "small.toml", "--remote-mode", mode];
        [&["quick", self.server.host(), target][..], &group].concat()
    }

    /// Nothing of Fathom or fio is left over there.
    fn wait_for_nothing_left(&self) {
        await_that("no fio is left", || !self.place.fio_runs());
        let tmp = self.place.path().join("tmp");
        await_that("the temporary folder is empty", || {
            fs::read_dir(&tmp).unwrap().next().is_none()
        });
    }
}

/// The machine, or a skip of the test `name`.
macro_rules! there_or_skip {
    ($name:literal, $place:expr, $environment:expr) => {
        match There::new($place, $environment) {
            Ok(there) => there,
            Err(reason) => return skip($name, &reason),
        }
    };
}

#[test]
fn both_modes_print_the_same_lines_and_bring_the_record_home() {
    let mut printed = Vec::new();
    for mode in BOTH_MODES {
        let there = there_or_skip!(
            "both_modes_print_the_same_lines_and_bring_the_record_home",
            Place::new(),
            &[]
        );
        let place = &there.place;
        let target = place.target();
        let ended = place.run(&there.quick(&target, mode)).code(0);
        let head = format!("Running tests in \"{}\" on ", place.test_folder().display());
        let ended = ended
            .says(&head)
            .says("Tests complete on ")
            .says("engine   fio-");
        printed.push(ended.series().split_off(1));
        let record = &place.records()[0];
        assert!(record.join("jobs/02.fio").exists());
        assert!(
            fs::metadata(record.join("raw/02/fio.out")).unwrap().len() > 0,
            "{mode}"
        );
        let header: Value = serde_json::from_str(place.log().lines().next().unwrap()).unwrap();
        assert_eq!(header["environment"]["os"], "Linux");
        assert!(
            header["environment"]["targets"][0]["file_system"]["kind"].is_string(),
            "{mode}"
        );
        let group = header["facts"]["quick"]["group"].as_str().unwrap();
        assert!(group.starts_with("small (/"), "{group}");
        there.wait_for_nothing_left();
        assert!(place.test_folder().join("CACHEDIR.TAG").exists());
        // One test again, then away with the files.
        let again = there.quick(&target, mode);
        let again = [&again[..3], &[SECOND], &again[3..]].concat();
        place
            .run(&again)
            .code(0)
            .says("&& fio --name='")
            .says("2 files, rnd 4k writes: ");
        let host = there.server.host();
        let removed = format!("Removed \"{}\" on {host}.", place.test_folder().display());
        place
            .run(&["quick", host, &target, "cleanup"])
            .code(0)
            .says(&removed);
        assert!(!place.test_folder().exists());
        place
            .run(&again)
            .code(5)
            .complains("Test directory must pre-exist");
    }
    assert_eq!(printed[0], printed[1]);
    assert_eq!(printed[0][2], "2 files, rnd 4k writes: N write iops");
}

#[test]
fn the_home_directory_is_the_other_machines() {
    let there = there_or_skip!(
        "the_home_directory_is_the_other_machines",
        Place::new(),
        &[]
    );
    let host = there.server.host();
    let folder = there.place.path().join("home/stb-testdir");
    let args = [
        "quick",
        host,
        "--group",
        "small.toml",
        "--json",
        "--remote-mode",
        "fio",
    ];
    let document = there.place.run(&args).code(0).json();
    assert_eq!(document["status"], "complete");
    assert_eq!(document["quick"]["folder"], folder.to_str().unwrap());
    there
        .place
        .run(&["quick", host, "cleanup"])
        .code(0)
        .says("Removed ");
    assert!(!folder.exists());
    // What does not carry the tag stays, there as here.
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("thesis.txt"), "years of work").unwrap();
    there
        .place
        .run(&["quick", host, "cleanup"])
        .code(4)
        .complains("CACHEDIR.TAG");
    there.place.run(&args).code(4).complains("CACHEDIR.TAG");
    assert!(folder.join("thesis.txt").exists());
}

#[test]
fn a_refused_key_is_said_by_ssh_and_by_us() {
    let there = there_or_skip!("a_refused_key_is_said_by_ssh_and_by_us", Place::new(), &[]);
    let command = there.server.command_of_a_stranger();
    let place = Place::new().set("FATHOM_SSH", command);
    let ended = place.run(&["quick", there.server.host()]).code(5);
    ended
        .complains("Permission denied")
        .complains("no connection to bench1");
    let place = Place::new().set("FATHOM_SSH", "/nonexistent/ssh");
    place
        .run(&["quick", "bench1"])
        .code(5)
        .complains("install an ssh client or check FATHOM_SSH");
}

#[test]
fn a_host_without_fio_and_root_is_told_so() {
    let place = Place::new();
    let farm = programs_without(&place, &["fio", "apt-get", "dnf", "yum", "pkg", "id"]);
    script(&farm, "id", "echo 1000");
    let path = farm.display().to_string();
    let there = there_or_skip!(
        "a_host_without_fio_and_root_is_told_so",
        place,
        &[("PATH", &path)]
    );
    let target = there.place.target();
    let fio = there.quick(&target, "fio");
    there
        .place
        .run(&fio)
        .code(5)
        .complains("only root can install it");
    let native = [&fio[..], &["--engine", "native"]].concat();
    there
        .place
        .run(&native)
        .code(5)
        .complains("--remote-mode self sends it");
    for mode in BOTH_MODES {
        let options = ["--no-install", "--engine", "fio"];
        let args = [&there.quick(&target, mode)[..], &options].concat();
        there
            .place
            .run(&args)
            .code(5)
            .complains("--no-install forbids");
        there.wait_for_nothing_left();
    }
    assert!(there.place.records().is_empty() && !there.place.test_folder().exists());
    // Fathom brings an engine of its own along, and nothing is installed for it.
    there
        .place
        .run(&there.quick(&target, "self"))
        .code(0)
        .complains("the native engine runs the tests")
        .says("engine   native-");
    there.wait_for_nothing_left();
    // And where it is asked for by name; the record comes home with its files.
    let itself = there.quick(&target, "self");
    there
        .place
        .run(&[&itself[..], &["--engine", "native"]].concat())
        .code(0)
        .says("engine   native-")
        .says("2 files, rnd 4k writes: ");
    there.wait_for_nothing_left();
    let record = there.place.records().pop().unwrap();
    let log = fs::read_to_string(record.join("events.jsonl")).unwrap();
    assert!(
        log.contains("\"finished\"") && log.contains("native-"),
        "{log}"
    );
    assert!(record.join("jobs/02.fio").exists());
    // Root may install it, with what the machine has.
    script(&farm, "id", "echo 0");
    script(
        &farm,
        "yum",
        "ln -s /usr/bin/fio \"${0%/*}/fio\"; echo yum was asked",
    );
    there
        .place
        .run(&fio)
        .code(0)
        .complains("installing it")
        .complains("yum was asked");
}

#[test]
fn a_host_without_room_is_told_so() {
    let small = require!(SmallFs::new(32 << 20, ""));
    let there = there_or_skip!("a_host_without_room_is_told_so", Place::new(), &[]);
    let at = small.path().to_str().unwrap();
    for mode in BOTH_MODES {
        let args = ["quick", there.server.host(), at, "--remote-mode", mode];
        there.place.run(&args).code(4).complains("no room in ");
        let nowhere = [
            "quick",
            there.server.host(),
            "/nowhere",
            "--remote-mode",
            mode,
        ];
        there.place.run(&nowhere).code(3).complains("/nowhere");
    }
    assert!(!small.path().join("stb-testdir").exists());
}

#[test]
fn another_system_is_driven_by_its_own_fio() {
    let place = Place::new();
    let farm = programs_without(&place, &["uname"]);
    script(
        &farm,
        "uname",
        "case $1 in -s) echo FreeBSD;; -m) echo amd64;; -n) echo beastie;; *) echo 14.1;; esac",
    );
    let path = farm.display().to_string();
    let there = there_or_skip!(
        "another_system_is_driven_by_its_own_fio",
        place,
        &[("PATH", &path)]
    );
    let target = there.place.target();
    let ended = there.place.run(&there.quick(&target, "auto")).code(0);
    ended
        .complains("driving its own fio instead")
        .says("on beastie @ ")
        .says("2 files, rnd 4k readwrites, native aio: skipped (no native aio on FreeBSD)");
    let refused = there.place.run(&there.quick(&target, "self")).code(5);
    refused.complains("--remote-mode fio needs no fathom there");
}

#[test]
fn a_host_that_cannot_start_fathom_is_driven_by_its_own_fio() {
    let there = there_or_skip!(
        "a_host_that_cannot_start_fathom_is_driven_by_its_own_fio",
        Place::new(),
        &[("TMPDIR", "/nonexistent")]
    );
    let target = there.place.target();
    let ended = there.place.run(&there.quick(&target, "auto")).code(0);
    ended
        .complains("driving its own fio instead")
        .says("2 files, rnd 4k writes: ");
}

#[test]
fn a_limit_ends_the_series_there_too() {
    for mode in BOTH_MODES {
        let there = there_or_skip!("a_limit_ends_the_series_there_too", Place::new(), &[]);
        let target = there.place.target();
        let args = [&there.quick(&target, mode)[..], &["--max-written", "1M"]].concat();
        let ended = there.place.run(&args).code(1);
        ended.complains("than the 1 MiB that may be");
        assert!(there.place.log().contains("\"interrupted\""), "{mode}");
        there.wait_for_nothing_left();
    }
}

#[test]
fn an_interrupt_ends_the_other_side_too() {
    for mode in BOTH_MODES {
        let there = there_or_skip!("an_interrupt_ends_the_other_side_too", Place::new(), &[]);
        let target = there.place.target();
        let args = [&there.quick(&target, mode)[..], &["--runtime", "600"]].concat();
        let child = there.place.start(&args);
        there.place.wait_for_second("");
        await_that("fio runs", || there.place.fio_runs());
        signal(&child, "-INT");
        let ended = Ended::of(child.wait_with_output().unwrap()).code(130);
        ended
            .says("(interrupted)")
            .says("Interrupted on ")
            .says("2 files, seq 64k writes: ");
        there.wait_for_nothing_left();
        assert!(there.place.log().contains("\"interrupted\""), "{mode}");
    }
}

#[test]
fn a_lost_connection_keeps_what_was_measured() {
    for mode in BOTH_MODES {
        let there = there_or_skip!(
            "a_lost_connection_keeps_what_was_measured",
            Place::new(),
            &[]
        );
        let target = there.place.target();
        let args = [&there.quick(&target, mode)[..], &["--runtime", "600"]].concat();
        let child = there.place.start(&args);
        there.place.wait_for_second("");
        await_that("fio runs", || there.place.fio_runs());
        there.server.kill_sessions();
        let ended = Ended::of(child.wait_with_output().unwrap()).code(1);
        let ended =
            ended.complains("the connection to bench1 was lost; what was measured until then");
        ended.says("2 files, seq 64k writes: ");
        there.wait_for_nothing_left();
        let log = there.place.log();
        assert!(
            log.contains("\"finished\"") && log.contains("was lost"),
            "{mode}: {log}"
        );
    }
}

#[test]
fn a_kill_of_fathom_ends_the_other_side_too() {
    for mode in BOTH_MODES {
        let there = there_or_skip!(
            "a_kill_of_fathom_ends_the_other_side_too",
            Place::new(),
            &[]
        );
        let target = there.place.target();
        let args = [&there.quick(&target, mode)[..], &["--runtime", "600"]].concat();
        let mut child = there.place.start(&args);
        there.place.wait_for_second("");
        await_that("fio runs", || there.place.fio_runs());
        signal(&child, "-KILL");
        child.wait().unwrap();
        there.wait_for_nothing_left();
    }
}

#[test]
fn test_files_are_made_without_copy_on_write_there() {
    for mode in BOTH_MODES {
        let btrfs = require!(btrfs());
        let there = require!(There::new(Place::new(), &[]));
        let at = btrfs.path().to_str().unwrap();
        let quick = there.quick(at, mode);
        let nocow = [&quick[..], &["--nocow"]].concat();
        there.place.run(&nocow).code(0);
        let file = btrfs.path().join("stb-testdir/2files.1");
        let ended = there.place.run(&["doctor", file.to_str().unwrap()]);
        ended.says("nocow");
        let cleanup = ["quick", there.server.host(), at, "cleanup"];
        there.place.run(&cleanup).code(0);
        there.place.run(&quick).code(0);
        let ended = there.place.run(&nocow).code(4);
        ended.complains("holds test files that are copied on write");
    }
}
