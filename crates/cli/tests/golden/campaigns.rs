//! Campaigns: what they plan, do, tell, log and leave.

use super::play::Play;

#[test]
fn a_campaign() {
    let mut play = Play::new();
    play.campaign("c");
    let sim = "--engine sim --sim sim.toml";
    play.run("plan -C c");
    play.run("plan -C c --json --write-speed 100M");
    play.run("gen -C c");
    play.run(&format!("run -C c {sim} --dry-run"));
    play.run(&format!("run -C c {sim} --dry-run --json"));
    play.run(&format!("run -C c {sim}"));
    for command in ["status", "status --json", "watch --json", "plan"] {
        play.run(&format!("{command} -C c"));
    }
    play.run(&format!("run -C c {sim}"));
    let runs = "--runs c/fathom-runs";
    play.run(&format!("show {runs}"));
    play.run(&format!("show {runs} --json"));
    for form in ["ssv", "csv", "json"] {
        play.run(&format!("export {form} {runs}"));
    }
    play.run(&format!("graph {runs} --format svg"));
    play.tree("c");
    play.texts("c/logs", "");
    for ending in [
        "1qd-write.ini",
        "plan.jsonl",
        ".ssv",
        ".csv",
        "settle-seq.fio",
    ] {
        play.texts("c", ending);
    }
    play.events("c/fathom-runs");
    play.ends_as("campaign");
}

#[test]
fn the_guard_repetitions_and_points_that_fail() {
    let mut play = Play::new();
    play.campaign("c");
    play.set(
        "c",
        "GUARD=y STEADY_STATE_PROVISIONING=n DUT_TEST_MAX_IODEPTH=512 PROFILE_SEQREAD=n \
         PROFILE_SEQWRITE=n",
    );
    play.device(
        "knee.toml",
        "beyond_percent = 40\nparallel = 4\n[fail]\nafter_s = 0\nin_flight = 2\n",
    );
    play.run("run -C c --engine sim --sim knee.toml --only '*randread*' --repeat 2");
    play.device("knee.toml", "beyond_percent = 40\nparallel = 4\n");
    play.run("resume -C c --sim knee.toml --retry-failed --only '*randread*'");
    play.run("status -C c --json");
    play.run("run -C c --engine sim --sim knee.toml --only '*randwrite*' --runs again");
    play.texts("c/logs", "");
    play.events("c/fathom-runs");
    play.events("c/again");
    play.ends_as("campaign-guard");
}

#[test]
fn a_campaign_at_its_limits() {
    let mut play = Play::new();
    play.campaign("c");
    let sim = "--engine sim --sim sim.toml";
    play.run("plan -C c --json --max-time 12s --write-speed 1M");
    play.run(&format!("run -C c {sim} --max-time 12s"));
    play.run("status -C c --json");
    play.run("resume -C c --max-written 1k --over-budget refuse");
    play.run("resume -C c --max-written 4G");
    play.run("status -C c");
    play.texts("c/logs", "");
    play.events("c/fathom-runs");
    play.ends_as("campaign-limits");
}

/// Purge, waiting, fills, loads until steady and SNIA's tests before the points.
#[test]
fn a_campaign_with_everything_before_its_points() {
    let mut play = Play::new();
    play.campaign("c");
    play.set(
        "c",
        "PURGING=y ENERGIZED_TIME=1m SNIA_TESTS=y SNIA_WSAT=y PROFILE_SEQWRITE=n",
    );
    play.run("plan -C c");
    play.run("run -C c --engine sim --sim sim.toml --dry-run --json");
    play.run("run -C c --engine sim --sim sim.toml");
    play.run("status -C c --json");
    play.texts("c/logs", "");
    play.events("c/fathom-runs");
    play.ends_as("campaign-prepared");
}
