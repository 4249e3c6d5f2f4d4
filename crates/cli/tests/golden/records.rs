//! Records of version 1, as they were made by the first Fathom: read and gone on with
//! as on that day.

use std::fs;
use std::path::Path;

use super::play::{Play, SIM, recorded};

/// The records of a kind in a folder, with the paths of this one.
fn at_hand(play: &Play, kind: &str) {
    let runs = play.path().join(kind).join("fathom-runs");
    // On the machine, and with the Fathom, that they began with.
    let kernel = |name| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap();
        text.trim().to_owned()
    };
    let here = [
        ("DIR", play.path().to_str().unwrap().to_owned()),
        ("KERNEL", kernel("osrelease")),
        ("HOSTNAME", kernel("hostname")),
        ("VERSION", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    copy(&recorded(kind), &runs, &here);
    // Those that were slow enough to be killed are so no more.
    for folder in ["", kind] {
        for name in ["sim.toml", "slow.toml", "device.toml"] {
            fs::write(play.path().join(folder).join(name), SIM).unwrap();
        }
    }
}

fn copy(from: &Path, to: &Path, here: &[(&str, String)]) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to, here);
        } else {
            let text = fs::read_to_string(from).unwrap();
            let text = here
                .iter()
                .fold(text, |text, (word, own)| text.replace(word, own));
            fs::write(to, text).unwrap();
        }
    }
}

/// Everything that reads them.
fn is_shown(play: &mut Play, kind: &str) {
    let runs = format!("--runs {kind}/fathom-runs");
    play.run(&format!("runs {runs}"));
    play.run(&format!("runs {runs} --json"));
    let mut records: Vec<String> = fs::read_dir(recorded(kind))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    records.sort();
    for record in records {
        for form in ["", "--json", "--samples", "--samples=csv"] {
            play.run(&format!("show {record} {runs} {form}"));
        }
    }
}

#[test]
fn records_of_job_runs_that_ended_and_that_were_killed() {
    let mut play = Play::new();
    at_hand(&play, "jobs");
    is_shown(&mut play, "jobs");
    play.events("jobs/fathom-runs");
    play.ends_as("records-jobs");
}

#[test]
fn records_of_several_machines() {
    let mut play = Play::new();
    at_hand(&play, "hosts");
    is_shown(&mut play, "hosts");
    play.events("hosts/fathom-runs");
    play.ends_as("records-hosts");
}

#[test]
fn records_of_a_quick_series() {
    let mut play = Play::new();
    at_hand(&play, "quick");
    is_shown(&mut play, "quick");
    play.events("quick/fathom-runs");
    for format in ["normal", "terse", "json"] {
        play.run(&format!(
            "show --runs quick/fathom-runs --output-format {format}"
        ));
    }
    play.ends_as("records-quick");
}

#[test]
fn records_of_a_purge_and_of_priorities() {
    let mut play = Play::new();
    at_hand(&play, "drive");
    is_shown(&mut play, "drive");
    play.events("drive/fathom-runs");
    play.run("prio show --runs drive/fathom-runs");
    play.run("prio show --runs drive/fathom-runs --json");
    play.ends_as("records-drive");
}

/// A campaign that ended before its end, and goes on.
fn goes_on(kind: &str) {
    let mut play = Play::new();
    play.campaign(kind);
    at_hand(&play, kind);
    is_shown(&mut play, kind);
    play.run(&format!("status -C {kind}"));
    play.run(&format!("status -C {kind} --json"));
    play.run(&format!("watch -C {kind} --json"));
    play.run(&format!("resume -C {kind} --dry-run"));
    play.run(&format!("resume -C {kind}"));
    play.run(&format!("status -C {kind} --json"));
    play.run(&format!("resume -C {kind}"));
    play.texts(&format!("{kind}/logs"), "");
    play.events(&format!("{kind}/fathom-runs"));
    play.ends_as(&format!("records-{kind}"));
}

#[test]
fn a_campaign_that_was_killed_in_a_point_goes_on() {
    goes_on("killed");
}

#[test]
fn a_campaign_that_came_to_its_limit_goes_on() {
    goes_on("limited");
}

#[test]
fn drives_that_were_killed_in_a_stage_go_on() {
    let mut play = Play::new();
    play.campaign("drives");
    play.set("drives", "DUT_IOSIZE=400m");
    at_hand(&play, "drives");
    is_shown(&mut play, "drives");
    play.run_of_many("provision --resume -C drives");
    play.run("provision --resume -C drives --json -q");
    play.events("drives/fathom-runs");
    play.ends_as("records-drives");
}

#[test]
fn a_test_of_snia_that_was_killed_in_a_stage_goes_on() {
    let mut play = Play::new();
    at_hand(&play, "snia");
    is_shown(&mut play, "snia");
    play.run("snia show --runs snia/fathom-runs --json");
    play.run("snia resume --runs snia/fathom-runs");
    play.run("snia show --runs snia/fathom-runs --json");
    play.run("snia resume --runs snia/fathom-runs");
    play.events("snia/fathom-runs");
    play.ends_as("records-snia");
}
