//! What a person sees: the screen of a run, status and watch, here and over ssh.

use std::path::{Path, PathBuf};

use fathom_testkit::{Sshd, Tmux, skip};

use crate::running::support::{Campaign, await_that, signal};

const RUN: [&str; 5] = ["run", "--engine", "sim", "--sim", "sim.toml"];

#[test]
fn the_screen_shows_the_campaign_the_point_and_what_happened() {
    let name = "the_screen_shows_the_campaign_the_point_and_what_happened";
    let device = "pace_ms = 30\n[fail]\nin_flight = 2048\n";
    let campaign = Campaign::simulated(device);
    campaign.good(&["config", "set", "DUT_RUNTIME=10s"]);
    let fathom = env!("CARGO_BIN_EXE_fathom");
    let command = format!("{fathom} {} ; sleep 60", RUN.join(" "));
    let tmux = match Tmux::start(100, 30, campaign.path(), &command) {
        Ok(tmux) => tmux,
        Err(reason) => return skip(name, &reason),
    };
    // All at once: what happened goes off the screen again.
    let screen = tmux.wait_until("a failed point is shown", |screen| {
        let words = ["2 failed", "✓ ", "✗ ", "/78  ", " left"];
        words.iter().all(|words| screen.contains(words))
    });
    let marked = |line: &str| line.ends_with("sim  SIMULATION: no device is measured");
    assert!(screen.lines().any(marked), "{screen}");
    tmux.press(&["C-c"]);
    let screen = tmux.wait_for("fathom resume goes on");
    assert!(screen.contains("interrupted"), "{screen}");
    assert!(
        !screen.contains("━━  ━━"),
        "nothing of the screen is left: {screen}"
    );
}

#[test]
fn lines_of_the_screen_keep_to_a_window_that_became_narrower() {
    let name = "lines_of_the_screen_keep_to_a_window_that_became_narrower";
    let campaign = Campaign::simulated("pace_ms = 100\n");
    campaign.good(&["config", "set", "DUT_RUNTIME=10s"]);
    let fathom = env!("CARGO_BIN_EXE_fathom");
    let command = format!("{fathom} {} ; sleep 60", RUN.join(" "));
    let tmux = match Tmux::start(120, 30, campaign.path(), &command) {
        Ok(tmux) => tmux,
        Err(reason) => return skip(name, &reason),
    };
    tmux.wait_for("✓ 0001-basic-tests/0001-seqwrite");
    tmux.resize(80, 30);
    let short = |line: &str| line.contains("✓ …") && line.contains("clat");
    tmux.wait_until("names are shortened", |screen| screen.lines().any(short));
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
    let name = "status_and_watch_of_another_host";
    let sshd = match Sshd::new(&[]) {
        Ok(sshd) => sshd,
        Err(reason) => return skip(name, &reason),
    };
    let campaign = Campaign::simulated("");
    campaign.good(&RUN);
    let folder = campaign.path().to_str().unwrap();
    let there = |verb: &str, program: &str| {
        let args = [
            verb,
            "--host",
            sshd.host(),
            "-C",
            folder,
            "--program",
            program,
            "--json",
        ];
        let mut command = campaign.command(&args);
        command
            .env("FATHOM_SSH", sshd.command())
            .current_dir(Path::new("/"));
        command.output().unwrap()
    };
    for verb in ["status", "watch"] {
        let output = there(verb, env!("CARGO_BIN_EXE_fathom"));
        let doc: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&doc["status"], &doc["done"]),
            (&"complete".into(), &78.into())
        );
    }
    let missing = there("status", "/no/such/fathom");
    assert_eq!(missing.status.code(), Some(5), "{missing:?}");
    assert!(crate::running::support::stderr(&missing).contains("--program"));
}
