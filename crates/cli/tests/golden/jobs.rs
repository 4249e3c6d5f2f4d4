//! `job run`, `quick` and their documents.

use super::play::Play;

#[test]
fn job_runs() {
    let mut play = Play::new();
    let sim = "--engine sim --sim sim.toml";
    play.run(&format!("job run two.fio one.fio {sim} --dry-run"));
    play.run(&format!("job run two.fio one.fio {sim} --dry-run --json"));
    play.run("job run two.fio --engine fio --set ioengine=psync --dry-run");
    play.run(&format!(
        "job run one.fio {sim} --interval 500ms --name one"
    ));
    play.run(&format!("job run one.fio {sim} -q --json --name quiet"));
    play.run(&format!("job run two.fio one.fio {sim} --name several"));
    play.run(&format!(
        "job run one.fio {sim} --section alone --set runtime=2 -q --name set"
    ));
    play.run(&format!("job run one.fio {sim} --timeout 3s --name cut"));
    play.run(&format!("job run {sim} --name words -- --name=w --rw=read --filename=/dev/nvme9n1 --time_based --runtime=2"));
    play.tree("fathom-runs");
    play.texts("fathom-runs", ".fio");
    play.events("fathom-runs");
    play.ends_as("job-run");
}

/// What every simulated device does to a run.
#[test]
fn devices_that_fail() {
    let mut play = Play::new();
    for (name, how) in [
        ("fails", "[fail]\nafter_s = 2\n"),
        (
            "fails-in-flight",
            "[fail]\nafter_s = 0\nin_flight = 5\nerrno = 28\n",
        ),
        ("stalls", "[stall]\nafter_s = 2\nfor_s = 2\n"),
        ("hangs", "[stall]\nafter_s = 2\n"),
        ("vanishes", "vanish_after_s = 2\n"),
        (
            "settles",
            "noise_percent = 2\nseed = 7\n[settle]\nfresh_percent = 300\nseconds = 2\n",
        ),
        (
            "drifts",
            "drift_percent_per_hour = -50\nwander_percent = 3\n",
        ),
        ("swings", "[swing]\npercent = 20\nseconds = 4\n"),
        (
            "slow",
            "latency_us = 4000\nparallel = 1\nbandwidth_mib = 3\nbeyond_percent = 10\n",
        ),
    ] {
        let file = format!("{name}.toml");
        play.device(&file, how);
        play.run(&format!(
            "job run two.fio one.fio --engine sim --sim {file} --name {name} --timeout 30s"
        ));
    }
    play.events("fathom-runs");
    play.ends_as("devices");
}

#[test]
fn a_quick_series() {
    let mut play = Play::new();
    std::fs::create_dir(play.path().join("target")).unwrap();
    let series = "here target --group group.toml --engine fio";
    play.run("quick list --group group.toml");
    play.run("quick list --group group.toml --json");
    play.run(&format!("quick {series} --runs first"));
    play.run("baseline save mine --runs first quick");
    // Else every test had 100 %.
    let saved = ".local/share/fathom/baselines/mine.toml";
    let text = std::fs::read_to_string(play.path().join(saved)).unwrap();
    play.file(
        saved,
        &text.replace("1400", "1234").replace("6000", "99999"),
    );
    play.run(&format!("quick {series} --runs second --baseline mine,hdd"));
    play.run(&format!(
        "quick {series} --runs third --baseline mine --json"
    ));
    let (before, after) = (play.record("first"), play.record("second"));
    play.run(&format!("quick compare {before} {after}"));
    play.run(&format!("quick compare {before} {after} --json"));
    play.run("quick here target cleanup");
    play.tree("second");
    play.texts("second", ".fio");
    play.events("second");
    play.ends_as("quick");
}

/// What a machine of several would be told.
#[test]
fn dry_runs_of_several_machines() {
    let mut play = Play::new();
    let hosts = "--hosts m1,m2 --engine native --dry-run";
    play.run(&format!("job run null.fio one.fio {hosts}"));
    play.run(&format!("job run null.fio one.fio {hosts} --json"));
    play.campaign("campaign");
    play.run(&format!("run -C campaign {hosts} --only '*seqread*'"));
    play.run(&format!(
        "run -C campaign {hosts} --only '*seqread*' --json"
    ));
    play.ends_as("hosts-dry-run");
}
