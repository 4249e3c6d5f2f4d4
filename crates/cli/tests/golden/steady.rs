//! `provision` and `snia`.

use super::play::Play;

#[test]
fn drives_that_are_provisioned() {
    let mut play = Play::new();
    play.campaign("c");
    let drives = "provision /dev/nvme7n1 /dev/nvme8n1 -C c --logs out --engine sim";
    play.run(&format!("{drives} --sim sim.toml --dry-run"));
    play.run(&format!(
        "{drives} --sim sim.toml --workload mixed --dry-run --json"
    ));
    play.run_of_many(&format!("{drives} --sim sim.toml --workload mixed"));
    play.run("provision --resume -C c --json -q");
    play.device("fails.toml", "[fail]\nafter_s = 1\n");
    play.run_of_many(&format!(
        "{drives} --sim fails.toml --workload seq --method snia --json -q --runs failed"
    ));
    play.tree("out");
    play.texts("out", "");
    play.tree("c/fathom-runs");
    play.events("c/fathom-runs");
    play.events("c/failed");
    play.ends_as("provision");
}

/// A test of SNIA's kind with its plan, its run, its document and its record.
fn snia(snapshot: &str, test: &str, device: &str) {
    let mut play = Play::new();
    play.device("sim.toml", device);
    let run = format!("snia {test} /dev/nvme9n1 --debug --engine sim --sim sim.toml");
    play.run(&format!("{run} --dry-run"));
    play.run(&format!("{run} --dry-run --json"));
    play.run(&run);
    play.run("snia show");
    play.run("snia show --json");
    play.run("show");
    play.run("snia resume");
    play.tree("fathom-runs");
    play.events("fathom-runs");
    play.ends_as(snapshot);
}

#[test]
fn snia_iops() {
    snia("snia-iops", "iops --mixes 100/0,0/100 --blocks 64k,4k", "");
}

#[test]
fn snia_throughput() {
    snia("snia-throughput", "throughput", "capacity_gib = 8\n");
}

#[test]
fn snia_latency() {
    snia("snia-latency", "latency", "latency_us = 300\n");
}

#[test]
fn snia_wsat() {
    snia(
        "snia-wsat",
        "wsat",
        "[settle]\nfresh_percent = 300\nseconds = 2\n",
    );
}

#[test]
fn snia_on_a_device_that_fails() {
    snia("snia-fails", "wsat --client", "[fail]\nafter_s = 4\n");
}
