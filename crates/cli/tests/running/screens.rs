//! What a person sees: the screen of a run, status and watch, here and over ssh.

use std::path::{Path, PathBuf};
use std::process::Child;

use fathom_testkit::{LoopDevice, Sshd, Tmux, require, signal_until_it_ends, skip};

use crate::running::support::{Campaign, await_that, signal, stderr};

const RUN: [&str; 5] = ["run", "--engine", "sim", "--sim", "sim.toml"];

#[test]
fn the_screen_shows_the_campaign_the_point_and_what_happened() {
    let device = "pace_ms = 30\n[fail]\nin_flight = 2048\n";
    let campaign = Campaign::simulated(device);
    campaign.good(&["config", "set", "DUT_RUNTIME=10s"]);
    let fathom = env!("CARGO_BIN_EXE_fathom");
    let command = format!("{fathom} {} ; sleep 60", RUN.join(" "));
    let tmux = require!(Tmux::start(100, 30, campaign.path(), &command));
    // All at once: what happened goes off the screen again.
    let screen = tmux.wait_until("a failed point is shown", |screen| {
        let words = ["2 failed", "✓ ", "✗ ", "/78  ", " left"];
        words.iter().all(|words| screen.contains(words))
    });
    let marked = |line: &str| line.ends_with("sim  SIMULATION: no device is measured");
    assert!(screen.lines().any(marked), "{screen}");
    tmux.press(&["C-c"]);
    let screen = tmux.wait_for("fathom resume continues");
    assert!(screen.contains("interrupted"), "{screen}");
    assert!(
        !screen.contains("━━  ━━"),
        "nothing of the screen is left: {screen}"
    );
}

#[test]
fn lines_of_the_screen_keep_to_a_window_that_became_narrower() {
    let campaign = Campaign::simulated("pace_ms = 100\n");
    campaign.good(&["config", "set", "DUT_RUNTIME=10s"]);
    let fathom = env!("CARGO_BIN_EXE_fathom");
    let command = format!("{fathom} {} ; sleep 60", RUN.join(" "));
    let tmux = require!(Tmux::start(120, 30, campaign.path(), &command));
    tmux.wait_for("✓ 0001-basic-tests/0001-seqwrite");
    tmux.resize(80, 30);
    let short = |line: &str| line.contains("✓ …") && line.contains("clat");
    tmux.wait_until("names are shortened", |screen| screen.lines().any(short));
}

/// Starts a run in a narrow window and `watch` in another; gives what they show.
fn live_and_watched(dir: &Path, run: &str, words: &[&str]) -> Result<[(Tmux, String); 2], String> {
    let fathom = env!("CARGO_BIN_EXE_fathom");
    let shown = |command: &str| {
        let command = format!("HOME=. XDG_STATE_HOME=. {fathom} {command}; sleep 60");
        let tmux = Tmux::start(50, 40, dir, &command)?;
        let all = |screen: &str| words.iter().all(|words| screen.contains(words));
        let screen = tmux.wait_until(&words.join(", "), all);
        Ok::<_, String>((tmux, screen))
    };
    Ok([shown(run)?, shown("watch")?])
}

#[test]
fn a_snia_test_shows_the_same_to_who_runs_and_who_watches_it() {
    let dir = tempfile::tempdir().unwrap();
    let sim = "format = \"fathom-sim-device\"\nversion = 1\npace_ms = 30\n";
    std::fs::write(dir.path().join("sim.toml"), sim).unwrap();
    let run =
        "snia latency /dev/nothing --debug --cell 3s --histogram 40m --engine sim --sim sim.toml";
    let words = [
        "snia latency (simulated) on /dev/nothing, sim\nSIMULATION: no device is measured\n",
        "  4/5  ",
        " left at least\n",
        "\nnot a SNIA test, not certified or endorsed by\nSNIA.\n",
        "\n0/100 4k ",
        " (data ",
        "\nsteady\n",
        "\nstage 5 of 5: Latency: histogram of 0/100 4k for …\n",
        "\nlatency/histogram/0-100/4k  ",
        "\nwrite ",
        " ✓ Latency: round 2  ",
    ];
    if let Err(reason) = live_and_watched(dir.path(), run, &words) {
        skip(
            "a_snia_test_shows_the_same_to_who_runs_and_who_watches_it",
            &reason,
        );
    }
}

#[test]
fn priorities_show_the_same_to_who_runs_and_who_watches_them() {
    let disk = require!(LoopDevice::new(16 << 20));
    let dir = tempfile::tempdir().unwrap();
    let dev = disk.path().display();
    let run = format!(
        "prio --dev {dev} --baseline --bs 4k --ramptime 0 --runtime 600 --qds '1 2' --engine native --outdir out"
    );
    let device = format!(" on {dev}, native\n");
    let words = [&device, "  0/2  ", "\nbaseline/1\n", "s left\n", "\nread "];
    let [(live, screen), _watch] = require!(live_and_watched(dir.path(), &run, &words));
    // Its lines stay above.
    let lines = "Running baseline workload\n  QD=1...\nprio-";
    assert!(screen.contains(lines), "{screen}");
    live.press(&["C-c"]);
    let screen = live.wait_for("QD 1 was interrupted");
    assert!(
        !screen.contains('━'),
        "nothing of the screen is left: {screen}"
    );
}

#[test]
fn status_and_watch_follow_a_run_from_another_terminal() {
    let campaign = Campaign::simulated("pace_ms = 30\n");
    let none = campaign.run(&["status"]);
    assert_eq!(none.status.code(), Some(5));
    let mut run = campaign.start(&RUN);
    await_that("a point is done", || !campaign.done().is_empty());
    // It waits for those who look at it.
    signal(&run, "-STOP");
    let status = campaign.status();
    assert_eq!(status["status"], "running");
    assert_eq!(status["simulated"], true);
    assert!(status["left_ms"].as_u64().unwrap() > 0 && status["last"]["iops"].is_f64());
    let sum: u64 = ["done", "failed", "skipped", "left"]
        .map(|part| status[part].as_u64().unwrap())
        .iter()
        .sum();
    assert_eq!(sum, 78);
    let watch = campaign.start(&["watch"]);
    let files = PathBuf::from(format!("/proc/{}/fd", watch.id()));
    await_that("watch reads the record", || {
        let links = files.read_dir().unwrap().flatten();
        let mut links = links.flat_map(|link| std::fs::read_link(link.path()));
        links.any(|file| file.ends_with("events.jsonl"))
    });
    signal(&run, "-CONT");
    let watch = watch.wait_with_output().unwrap();
    assert!(watch.status.success(), "{watch:?}");
    assert!(run.wait().unwrap().success());
    let lines = crate::running::support::stderr(&watch);
    assert!(lines.contains("78/78  ✓ "), "{lines}");
    let end = String::from_utf8_lossy(&watch.stdout).into_owned();
    assert!(
        end.contains("status    complete") && end.contains("78 of 78"),
        "{end}"
    );
    // Afterwards, by name, from another folder.
    let record = campaign.records().pop().unwrap();
    let record = record.file_name().unwrap().to_str().unwrap();
    let folder = campaign.path().to_str().unwrap();
    let mut elsewhere = campaign.command(&["status", "-C", folder, record, "--json"]);
    let output = elsewhere.current_dir("/").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn status_and_watch_of_another_host() {
    let sshd = require!(Sshd::new(&[]));
    let campaign = Campaign::simulated("");
    campaign.good(&RUN);
    let folder = campaign.path().to_str().unwrap();
    let runs = campaign.path().join("fathom-runs");
    let there = |args: &[&str], program: &str| {
        let host = ["--host", sshd.host(), "--program", program, "--json"];
        let mut command = campaign.command(&[args, &host].concat());
        command
            .env("FATHOM_SSH", sshd.command())
            .current_dir(Path::new("/"));
        command.output().unwrap()
    };
    let fathom = env!("CARGO_BIN_EXE_fathom");
    let document = |args: &[&str]| -> serde_json::Value {
        let output = there(args, fathom);
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    for verb in ["status", "watch"] {
        let doc = document(&[verb, "-C", folder]);
        assert_eq!(
            (&doc["status"], &doc["done"]),
            (&"complete".into(), &78.into())
        );
    }
    let listed = document(&["--runs", runs.to_str().unwrap(), "runs"]);
    assert_eq!(listed["runs"][0]["status"], "complete");
    assert_eq!(
        document(&["restore", "--list"])["schema"],
        "fathom.restore/1"
    );
    for verb in ["status", "resume"] {
        let missing = there(&[verb], "/no/such/fathom");
        assert_eq!(missing.status.code(), Some(5), "{missing:?}");
        assert!(stderr(&missing).contains("--program"));
    }
}

/// A campaign that was interrupted, and a host that is this machine.
fn interrupted_there() -> Result<(Sshd, Campaign), String> {
    let sshd = Sshd::new(&[])?;
    let campaign = Campaign::simulated("pace_ms = 30\n");
    let run = campaign.start(&RUN);
    await_that("a point is done", || !campaign.done().is_empty());
    signal_until_it_ends(run, "-INT");
    Ok((sshd, campaign))
}

/// Goes on with it on that host, and waits until it does.
fn resumed_there(sshd: &Sshd, campaign: &Campaign, more: &[&str]) -> Child {
    let folder = campaign.path().to_str().unwrap();
    let runs = campaign.path().join("fathom-runs");
    let program = env!("CARGO_BIN_EXE_fathom");
    let args = ["resume", "--host", sshd.host(), "--program", program];
    let of = ["-C", folder, "--runs", runs.to_str().unwrap()];
    let resumes = || {
        let events = campaign.events();
        let resumed = events.iter().filter(|it| it["event"] == "resumed");
        resumed.count()
    };
    let before = resumes();
    let mut command = campaign.command(&[&args[..], &of, more].concat());
    let child = command.env("FATHOM_SSH", sshd.command()).spawn().unwrap();
    await_that("it goes on", || resumes() > before);
    child
}

#[test]
fn a_run_that_is_resumed_on_another_host_is_told_of_signals_and_tells_its_end() {
    let (sshd, campaign) = require!(interrupted_there());
    let stopped = signal_until_it_ends(resumed_there(&sshd, &campaign, &[]), "-INT");
    assert_eq!(stopped.status.code(), Some(130), "{stopped:?}");
    let told = String::from_utf8_lossy(&stopped.stdout);
    assert!(told.contains("fathom resume continues"), "{stopped:?}");
    assert_eq!(campaign.status()["status"], "interrupted");
    let whole = resumed_there(&sshd, &campaign, &["--json"]).wait_with_output();
    let whole = whole.unwrap();
    assert!(whole.status.success(), "{whole:?}");
    let document: serde_json::Value = serde_json::from_slice(&whole.stdout).unwrap();
    assert_eq!(document["status"], "complete");
}

#[test]
fn a_run_that_is_resumed_on_another_host_goes_on_when_the_connection_is_lost() {
    for hangs_up in [false, true] {
        let (sshd, campaign) = require!(interrupted_there());
        let run = resumed_there(&sshd, &campaign, &[]);
        match hangs_up {
            // The terminal here is gone.
            true => signal(&run, "-HUP"),
            false => sshd.kill_sessions(),
        }
        let lost = run.wait_with_output().unwrap();
        if !hangs_up {
            assert_eq!(lost.status.code(), Some(5), "{lost:?}");
            let told = stderr(&lost);
            assert!(told.contains("to do: fathom watch --host bench1"), "{told}");
        }
        await_that("it ends there", || campaign.status()["status"] != "running");
        assert_eq!(campaign.status()["status"], "complete");
    }
}
