//! Every wait for another machine: it ends at a signal whatever the machine does,
//! and takes no more of what it says than is bounded. The machine is played by a
//! program `ssh`.

use std::os::unix::fs::PermissionsExt as _;

use fathom_testkit::{signal, signal_until_it_ends};

use super::*;

/// Plays ssh. `$PLAYED`: what it does. It tells that it is waited for by making
/// `$THERE`, and keeps its arguments in `$LOG`.
const PLAYED_SSH: &str = r#"#!/bin/sh
echo "$@" >> "$LOG"
there() { : > "$THERE"; }
connected() {
    case "$*" in *"exit 0'"*) for a; do case $a in ControlPath=*) : > "${a#ControlPath=}";; esac; done; exit 0;; esac
}
case "$PLAYED" in
silent) there; exec sleep 600;;
banner) echo Welcome >&2; echo; there; exec sleep 600;;
flood) there; exec yes 'Connection to bench is being prepared' >&2;;
children) there; sleep 600 & wait;;
silent_later) connected "$@"; there; exec sleep 600;;
lines_later) connected "$@"; there; exec yes "$LINE";;
esac
"#;

/// A folder with the played ssh, and what a command left of it.
struct Played {
    bench: Bench,
    job: String,
}

impl Played {
    fn new() -> Self {
        let bench = Bench::new();
        let job = bench.job(&null_job(1));
        let ssh = bench.0.path().join("ssh");
        fs::write(&ssh, PLAYED_SSH).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        Self { bench, job }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.bench.0.path().join(name)
    }

    fn start(&self, args: &[&str], played: &str, line: &str) -> Child {
        for name in ["there", "log"] {
            let _ = fs::remove_file(self.path(name));
        }
        let args = args
            .iter()
            .map(|&arg| if arg == "JOB" { &self.job } else { arg });
        Command::new(env!("CARGO_BIN_EXE_fathom"))
            .args(args)
            .current_dir(self.bench.0.path())
            .env("FATHOM_SSH", self.path("ssh"))
            .env("XDG_STATE_HOME", self.bench.state())
            .env("PLAYED", played)
            .env("LINE", line)
            .env("THERE", self.path("there"))
            .env("LOG", self.path("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Processes that the played ssh left.
    fn processes(&self) -> Vec<String> {
        let mark = format!("LOG={}", self.path("log").display());
        let of_ours = |pid: &fs::DirEntry| {
            let environ = fs::read(pid.path().join("environ")).unwrap_or_default();
            environ
                .split(|&byte| byte == 0)
                .any(|one| one == mark.as_bytes())
        };
        let all = fs::read_dir("/proc").unwrap().flatten().filter(of_ours);
        all.map(|pid| fs::read_to_string(pid.path().join("cmdline")).unwrap_or_default())
            .collect()
    }

    /// Nothing is left of it: no process, no folder of a connection.
    fn nothing_left(&self, what: &str) {
        await_that(&format!("{what}: nothing runs on"), || {
            self.processes().is_empty()
        });
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        for word in log.split_whitespace() {
            if let Some(socket) = word.strip_prefix("ControlPath=") {
                let folder = Path::new(socket).parent().unwrap();
                assert!(!folder.exists(), "{what}: {} is left", folder.display());
            }
        }
    }

    fn record_bytes(&self) -> u64 {
        fn size(path: &Path) -> u64 {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries
                .map(|entry| match entry.file_type().unwrap().is_dir() {
                    true => size(&entry.path()),
                    false => entry.metadata().unwrap().len(),
                })
                .sum()
        }
        size(&self.path("fathom-runs"))
    }
}

/// Waits for the end of a program that ends by itself: sooner than any deadline
/// of a connection would end it.
fn ended(mut child: Child, what: &str) -> (Option<i32>, String) {
    let began = Instant::now();
    let mut stderr = child.stderr.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let out = thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()).unwrap());
    let err = thread::spawn(move || {
        let mut said = Vec::new();
        std::io::Read::read_to_end(&mut stderr, &mut said).unwrap();
        said
    });
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if began.elapsed() > Duration::from_secs(40) {
            child.kill().unwrap();
            panic!("{what}: it does not end");
        }
        thread::sleep(Duration::from_millis(20));
    };
    let said = err.join().unwrap();
    let printed = out.join().unwrap();
    assert!(
        said.len() + (printed as usize) < 24 << 20,
        "{what}: {printed} bytes"
    );
    (code, String::from_utf8_lossy(&said).into_owned())
}

/// Every command that waits for other machines over ssh.
const COMMANDS: [&[&str]; 9] = [
    &["job", "run", "JOB", "--hosts", "h1,h2"],
    &["quick", "--hosts", "h1,h2"],
    &["quick", "--hosts", "h1,h2", "/x", "cleanup"],
    &[
        "prio",
        "--dev",
        "/dev/sdx",
        "--baseline",
        "--hosts",
        "h1,h2",
    ],
    &["quick", "user@h1"],
    &["quick", "user@h1", "/x", "cleanup"],
    &["status", "--host", "user@h1", "-C", "/x"],
    &["watch", "--host", "user@h1", "-C", "/x"],
    &["resume", "--host", "user@h1", "-C", "/x"],
];

#[test]
fn every_wait_for_another_machine_ends_at_a_signal() {
    thread::scope(|scope| {
        for (nth, args) in COMMANDS.into_iter().enumerate() {
            scope.spawn(move || {
                let played = Played::new();
                let ways = ["silent", "banner", "flood", "children", "silent_later"];
                for (way, signal_name) in
                    ways.iter().zip(["-INT", "-TERM"].iter().cycle().skip(nth))
                {
                    // Only where nobody can be asked has ssh a group of its own.
                    let is_alone = args.contains(&"--hosts");
                    if *way == "children" && !is_alone {
                        continue;
                    }
                    let what = format!("{args:?} {way} {signal_name}");
                    let run = played.start(args, way, "");
                    await_that(&what, || played.path("there").exists());
                    // A run there is told of the first two.
                    let has_begun = (args[0], *way) == ("resume", "silent_later");
                    let (code, said) = if has_begun {
                        let ended = signal_until_it_ends(run, signal_name);
                        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
                        assert!(said.contains("fathom watch --host user@h1"), "{said}");
                        (ended.status.code(), said)
                    } else {
                        signal(&run, signal_name);
                        ended(run, &what)
                    };
                    assert_eq!(code, Some(130), "{what}: {said}");
                    played.nothing_left(&what);
                    assert!(played.record_bytes() < 1 << 20, "{what}");
                }
            });
        }
    });
}

/// What ends by itself: more than any answer is long.
#[test]
fn a_machine_that_floods_is_heard_no_further() {
    let sample = r#"{"wire":"event","happened":{"t":1,"event":"sample","t_ms":1,"span_ms":1,"job":0,"dir":"read","ios":1,"bytes":1}}"#;
    let played = Played::new();
    for (args, line, words) in [
        (COMMANDS[0], sample, "more samples than its intervals"),
        (COMMANDS[4], "noise", "says far more than was asked for"),
        (COMMANDS[5], "noise", "says far more than was asked for"),
        (COMMANDS[6], "noise", "says far more than was asked for"),
        (
            COMMANDS[7],
            "fathom-is-there",
            "says far more than was asked for",
        ),
    ] {
        let what = format!("{args:?}");
        let run = played.start(args, "lines_later", line);
        let (code, said) = ended(run, &what);
        assert!(matches!(code, Some(1 | 5)), "{what}: {code:?} {said}");
        assert!(said.contains(words), "{what}: {said}");
        played.nothing_left(&what);
        assert!(played.record_bytes() < 1 << 20, "{what}");
    }
}

/// What is no line of Fathom's, and texts without end, are not kept; a machine
/// that sends nothing else is as silent as one that sends nothing.
#[test]
fn what_a_machine_chatters_is_not_kept() {
    let played = Played::new();
    let long = format!(r#"{{"wire":"text","text":"{}"}}"#, "x".repeat(1 << 10));
    for line in ["noise", &long] {
        let run = played.start(COMMANDS[0], "lines_later", line);
        await_that("it is heard", || played.path("there").exists());
        signal(&run, "-INT");
        let (code, said) = ended(run, line);
        assert_eq!(code, Some(130), "{said}");
        played.nothing_left(line);
        assert!(played.record_bytes() < 4 << 20, "{}", played.record_bytes());
    }
}
