//! What needs a device that is there: `purge` and `prio` on a loop device.

use fathom_testkit::{LoopDevice, skip};

use super::play::Play;

/// Runs on a loop device of 1 MiB; the transcript calls it loop.
fn on_a_loop_device(test: &str, snapshot: &str, run: impl Fn(&mut Play, &str)) {
    match LoopDevice::new(1 << 20) {
        Ok(disk) => {
            let mut play = Play::new();
            play.called_loop(disk.path());
            run(&mut play, disk.path().to_str().unwrap());
            play.ends_as(snapshot);
        }
        Err(reason) => skip(test, &reason),
    }
}

#[test]
fn a_purge_of_a_loop_device() {
    on_a_loop_device("a_purge_of_a_loop_device", "purge", |play, path| {
        // Every block: fewer are drawn by lot.
        let words = format!("--destroy {path}=1MiB --samples 512");
        play.run(&format!("purge {path} --list"));
        play.run(&format!("purge {path} --list --json"));
        play.run(&format!("purge {path} --samples 512 --dry-run"));
        play.run(&format!("purge {path} --samples 512 --dry-run --json"));
        play.run(&format!("purge {path} {words}"));
        play.run(&format!(
            "purge {path} {words} --method overwrite --json --runs second"
        ));
        play.run("show");
        play.tree("fathom-runs");
        play.texts("fathom-runs", "/loop");
        play.texts("fathom-runs", "purge.json");
        play.events("fathom-runs");
        play.events("second");
    });
}

#[test]
fn priorities_on_a_loop_device() {
    on_a_loop_device("priorities_on_a_loop_device", "prio", |play, path| {
        let words = "--baseline --bs 4k --ramptime 0 --runtime 1 --engine fio --qds '1 2'";
        play.run(&format!("prio --dev {path} {words} --outdir out"));
        play.run(&format!("prio --dev {path} {words} --outdir out"));
        play.run(&format!(
            "prio --dev {path} {words} --outdir again --json --runs second"
        ));
        play.run("prio show");
        play.run("prio show --json");
        play.run("prio restore");
        play.tree("out");
        play.texts("out", "");
        play.tree("fathom-runs");
        play.texts("fathom-runs", ".fio");
        play.events("fathom-runs");
    });
}
