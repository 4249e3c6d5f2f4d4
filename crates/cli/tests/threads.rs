//! Where no thread is to be had: an error that names the limit, and no panic.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use fathom_model::FailureKind;
use fathom_testkit::{ProgramUnderTest, program, require, root, skip};
use tempfile::TempDir;

/// A user that has no processes: the limit counts all of one user's.
const NOBODYS_UID: &str = "54321";

/// Commands of every kind that need a thread.
const COMMANDS: [&[&str]; 4] = [
    &[
        "job",
        "run",
        "--engine",
        "native",
        "--",
        "--name=a",
        "--ioengine=null",
        "--rw=read",
        "--size=1m",
    ],
    &[
        "job",
        "run",
        "--engine",
        "fio",
        "--",
        "--name=a",
        "--ioengine=null",
        "--rw=read",
        "--size=1m",
    ],
    &["status", "--host", "nosuch.invalid"],
    &["quick", "here", "."],
];

/// Fathom under limits, in a folder of its own.
struct Limited {
    dir: TempDir,
}

impl Limited {
    fn new() -> Self {
        let dir = TempDir::with_prefix("fathom-threads-").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        // The program may stand where that user may not go.
        let built = Path::new(env!("CARGO_BIN_EXE_fathom"));
        let fathom = dir.path().join("fathom");
        if fs::hard_link(built, &fathom).is_err() {
            fs::copy(built, &fathom).unwrap();
        }
        Self { dir }
    }

    /// As a user who may have so many processes and threads.
    fn processes(&self, most: u32) -> Result<Command, String> {
        root()?;
        program("prlimit")?;
        let mut command = Command::new(program("setpriv")?);
        let ids = ["--reuid", NOBODYS_UID, "--regid", NOBODYS_UID];
        command.args(ids).args(["--clear-groups", "prlimit"]);
        command.arg(format!("--nproc={most}"));
        Ok(self.here(command))
    }

    /// With so much address space.
    fn address_space(&self, mib: u32) -> Result<Command, String> {
        let mut command = Command::new(program("prlimit")?);
        command.arg(format!("--as={}", u64::from(mib) << 20));
        Ok(self.here(command))
    }

    fn here(&self, mut command: Command) -> Command {
        let dir = self.dir.path();
        command.arg(dir.join("fathom")).current_dir(dir);
        command.env("HOME", dir).env("TMPDIR", dir);
        command
    }
}

fn stderr(ended: &Output) -> String {
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

#[test]
fn where_no_thread_can_be_had_the_limit_is_named() {
    let limited = Limited::new();
    for args in COMMANDS {
        let ended = match limited.processes(1) {
            Ok(mut command) => command.args(args).output().unwrap(),
            Err(reason) => return skip("where_no_thread_can_be_had", &reason),
        };
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(5), "{args:?}: {said}");
        assert!(
            said.contains("no thread can be started"),
            "{args:?}: {said}"
        );
        assert!(said.contains("ulimit -u"), "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
    }
}

/// The kernel's signal for it would end the program without a word.
#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_is_told() {
    require!(program("prlimit"));
    let fathom = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    let job = ["--name=a", "--ioengine=null", "--rw=read", "--size=1m"];
    let run = ["job", "run", "--engine", "native", "--"];
    let run = [&run[..], &job].concat();
    fathom.good(&run);
    let page = ["report", "-o", "page.html"];
    for (args, exit) in [(&run[..], 6), (&page[..], 1)] {
        let asked = fathom.command(args);
        let mut command = Command::new("prlimit");
        command
            .arg("--fsize=100")
            .arg(asked.get_program())
            .args(asked.get_args())
            .current_dir(fathom.path());
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(exit), "{args:?}: {ended:?}");
        assert!(said.contains("File too large"), "{args:?}: {said}");
    }
}

/// The stack of a thread is the largest piece that a program asks for early: where
/// its own pieces fit and no stack does, is found by giving it more and more.
#[test]
fn where_no_thread_fits_into_the_address_space_the_limit_is_named() {
    let limited = Limited::new();
    let first = match limited.address_space(1) {
        Ok(_) => (1..).map(|step| step * 8).find(|&mib| {
            let mut command = limited.address_space(mib).unwrap();
            command.arg("--version").output().unwrap().status.success()
        }),
        Err(reason) => return skip("where_no_thread_fits_into_the_address_space", &reason),
    };
    let first = first.unwrap().saturating_sub(8);
    for args in COMMANDS {
        let mut named = 0;
        for mib in first..first + 24 {
            let mut command = limited.address_space(mib).unwrap();
            let ended = command.args(args).output().unwrap();
            let said = stderr(&ended);
            assert!(!said.contains("panicked"), "{mib} MiB: {args:?}: {said}");
            if said.contains("no thread can be started") {
                assert_eq!(ended.status.code(), Some(5), "{args:?}: {said}");
                let limit = format!("ulimit -v (address space: {mib} MiB)");
                assert!(said.contains(&limit), "{args:?}: {said}");
                named += 1;
            } else if named > 0 {
                break;
            }
        }
        assert!(named > 0, "{args:?}: from {first} MiB on");
    }
}

/// A run that has begun fails: some of its jobs have no thread.
#[test]
fn jobs_without_a_thread_fail_their_run_with_the_limit() {
    let limited = Limited::new();
    let mut command = require!(limited.address_space(160));
    let args = [
        "job",
        "run",
        "-q",
        "--engine",
        "native",
        "--",
        "--numjobs=256",
    ];
    let job = ["--name=a", "--ioengine=null", "--rw=read", "--size=1m"];
    let ended = command.args(args).args(job).output().unwrap();
    let said = stderr(&ended) + &String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let told = "no thread can be started: Resource temporarily unavailable\n  \
                to do: raise what limits it here: ulimit -v (address space: 160 MiB)";
    assert!(said.contains(told) && !said.contains("panicked"), "{said}");
}

/// fio waits for ever for jobs that it could not start.
#[test]
fn jobs_that_fio_cannot_start_are_told_with_the_limits() {
    let limited = Limited::new();
    for (how, told) in [
        ("--thread", "fio could not start a thread for each job: "),
        ("--thread=0", "fio could not start a process for each job: "),
    ] {
        let mut command = require!(limited.processes(40));
        let args = ["job", "run", "-q", "--engine", "fio", "--", "--name=a", how];
        let job = ["--ioengine=null", "--rw=read", "--size=1m", "--numjobs=128"];
        let ended = command.args(args).args(job).output().unwrap();
        let said = stderr(&ended) + &String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.status.code(), Some(1), "{how}: {said}");
        assert!(said.contains(told), "{how}: {said}");
        let advice = FailureKind::NoThread.advice();
        assert!(
            said.contains(advice) && !said.contains("killer"),
            "{how}: {said}"
        );
    }
}
