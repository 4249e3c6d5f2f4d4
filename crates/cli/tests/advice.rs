//! What is told to do after a failure: each advice after the failure that it is for,
//! where no other test of that failure looks at its words.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fathom_model::FailureKind;
use fathom_testkit::{ProgramUnderTest, Sshd, free_port, require};

const JOB: &str = "[a]\nioengine=null\nrw=read\nsize=1m\n[b]\nioengine=null\nrw=read\nsize=1m\n";

/// A place with a job file and a program that plays fio: it does `instead` where fio
/// would run jobs.
struct Played {
    program: ProgramUnderTest,
    fio: String,
}

impl Played {
    fn new(instead: &str) -> Self {
        let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
        program.file("a.fio", JOB);
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *--output-format=*) {instead};; *) exec fio \"$@\";; esac\n"
        );
        let fio = program.file("fio", &script);
        fs::set_permissions(&fio, fs::Permissions::from_mode(0o755)).unwrap();
        let fio = fio.to_str().unwrap().to_owned();
        Self { program, fio }
    }

    #[track_caller]
    fn advises(&self, kind: &str, advice: &str) {
        let run = ["job", "run", "-q", "--engine", "fio", "--fio", &self.fio];
        advises(&self.program, &[&run[..], &["a.fio"]].concat(), advice);
        let shown = self.program.run(&["show", "--json"]);
        let doc: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(doc["failures"][0]["kind"], kind, "{doc}");
    }
}

/// A command that fails and says what to do.
#[track_caller]
fn advises(program: &ProgramUnderTest, args: &[&str], advice: &str) {
    let ended = program.run(args);
    assert!(!ended.status.success(), "{args:?}: {ended:?}");
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains(advice), "{args:?}: {advice}: {said}");
}

/// A signal says who sent it.
#[test]
fn a_killed_fio_is_explained_by_its_signal() {
    for (signal, advice) in [
        ("KILL", FailureKind::EngineKilled.advice()),
        ("SEGV", "that is a fault of the program or of a library"),
        (
            "HUP",
            "it was ended from outside: by a person, a service manager",
        ),
        ("XCPU", "it reached the limit on CPU time: ulimit -t"),
        (
            "XFSZ",
            "it reached the limit on the size of a file: ulimit -f",
        ),
    ] {
        Played::new(&format!("kill -{signal} $$")).advises("engine_killed", advice);
    }
}

#[test]
fn what_fio_leaves_out_leads_to_its_own_words() {
    for (instead, kind, advice) in [
        ("exit 0", "no_report", FailureKind::NoReport.advice()),
        ("fio \"$@\"; exit 3", "other", FailureKind::Other.advice()),
        (
            "exec fio --section=a \"$@\"",
            "jobs_missing",
            FailureKind::JobsMissing.advice(),
        ),
    ] {
        Played::new(instead).advises(kind, advice);
    }
}

#[test]
fn damaged_data_is_to_be_kept_whatever_reads_it() {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    let options = [
        "--name=a",
        "--bs=4k",
        "--size=64k",
        "--filename=f",
        "--verify=crc32c",
    ];
    for engine in ["native", "fio"] {
        let run = ["job", "run", "-q", "--engine", engine, "--"];
        program.good(&[&run[..], &options, &["--rw=write"]].concat());
        let file = program.path().join("f");
        let mut bytes = fs::read(&file).unwrap();
        bytes[9000] ^= 1;
        fs::write(&file, bytes).unwrap();
        let read = [&run[..], &options, &["--rw=read"]].concat();
        advises(&program, &read, FailureKind::Corrupt.advice());
    }
}

#[test]
fn a_fio_server_that_is_not_there_is_to_be_started() {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.file("a.fio", JOB);
    let nobody = format!("127.0.0.99,{}", free_port());
    let args = ["job", "run", "-q", "a.fio", "--client", &nobody];
    advises(&program, &args, FailureKind::NoServer.advice());
}

/// What to do about a connection follows from ssh's own words.
#[test]
fn a_connection_that_fails_is_explained_by_what_ssh_says() {
    let mut program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.file("a.fio", JOB);
    let ssh = program.path().join("ssh");
    program.set("FATHOM_SSH", format!("sh {}", ssh.display()));
    for (said, advice) in [
        (
            "Host key verification failed.",
            "accept it once, by hand: ssh h1",
        ),
        ("h1: Permission denied (publickey).", "ssh-copy-id h1"),
        (
            "Could not resolve hostname h1",
            "ssh's configuration, /etc/hosts, DNS",
        ),
        (
            "connect to host h1 port 22: Connection refused",
            "start sshd there",
        ),
        (
            "connect to host h1 port 22: Connection timed out",
            "that it is on, its network",
        ),
        (
            "connect to host h1 port 22: No route to host",
            "that it is on, its network",
        ),
        (
            "kex_exchange_identification: read: gone",
            "look at sshd's log there",
        ),
        ("something new", "try it by hand: ssh h1 true"),
    ] {
        program.file("ssh", &format!("echo '{said}' >&2; exit 255\n"));
        let args = ["job", "run", "-q", "a.fio", "--hosts", "h1"];
        advises(&program, &args, advice);
    }
}

#[test]
fn a_machine_under_two_names_is_to_be_named_once() {
    let sshd = require!(Sshd::new(&[]));
    let mut program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.file("a.fio", JOB);
    program.set("FATHOM_SSH", sshd.command());
    let args = ["job", "run", "-q", "a.fio", "--hosts", "door1,door2"];
    advises(&program, &args, FailureKind::SameHost.advice());
}

/// The kinds whose advice a test names: one that is new has to be provoked too.
#[test]
fn every_advice_is_looked_at_by_a_test_that_provokes_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = fs::read_to_string(root.join("crates/model/src/failure.rs")).unwrap();
    let (_, body) = source.split_once("pub enum FailureKind {").unwrap();
    let (body, _) = body.split_once("\n}").unwrap();
    let kinds = body
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','));
    let mut tests = String::new();
    for place in ["crates/cli/tests", "crates/engine-fio/tests"] {
        let mut folders = vec![root.join(place)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => tests += &fs::read_to_string(entry.path()).unwrap_or_default(),
                }
            }
        }
    }
    let looked_at = |kind: &&str| {
        let of_kind = format!("FailureKind::{kind}");
        // `failure` of the engine's tests looks at the words of its kind.
        tests.contains(&format!("{of_kind}.advice()"))
            || tests.contains(&format!("failure({of_kind})"))
    };
    // The messages of these say themselves what to do.
    let kinds = kinds.filter(|kind| !["Refused", "Unreachable"].contains(kind));
    let missing: Vec<&str> = kinds.filter(|kind| !looked_at(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
