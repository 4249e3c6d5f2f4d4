//! A long campaign takes no more memory at its end than at its begin.

use std::cell::Cell;
use std::fs;

use fathom_flow::progress::Progress;
use fathom_model::{Event, RunStatus};

use crate::run::support::Campaign;

/// Memory of this process in KiB.
fn resident_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Set for the process that is measured: this one has the memory of other tests, too.
const ALONE: &str = "FATHOM_TEST_ALONE";

#[test]
fn thousands_of_points_take_no_more_memory_than_a_thousand() {
    if std::env::var_os(ALONE).is_some() {
        return measure();
    }
    let alone = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "run::many::thousands_of_points_take_no_more_memory_than_a_thousand",
        ])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&alone.stdout);
    assert!(
        alone.status.success() && told.contains("1 passed"),
        "{alone:?}"
    );
}

fn measure() {
    let mut campaign = Campaign::on("");
    campaign.plan.settings.interval = std::time::Duration::from_secs(3);
    campaign.plan.settings.progress_logs = false;
    campaign.many(2_000);
    let ready = fathom_campaign::run::ready(
        &campaign.plan,
        &campaign.runs_dir(),
        campaign.options.clone(),
    );
    let progress = Cell::new(None);
    let mut begun = |dir: &std::path::Path| progress.set(Some(Progress::open(dir).unwrap().0));
    let (mut steps, mut early, mut late) = (0, None, None);
    let mut all = Vec::new();
    let mut observer = |event: &Event| {
        let mut so_far = progress.take().unwrap();
        so_far.take(0, event);
        progress.set(Some(so_far));
        if matches!(event, Event::Step { .. }) {
            steps += 1;
            if steps % 250 == 0 {
                all.push(resident_kib());
            }
            match steps {
                500 => early = resident_kib(),
                2000 => late = resident_kib(),
                _ => {}
            }
        }
    };
    let finish = ready
        .unwrap()
        .run(&campaign.control, &mut begun, &mut observer)
        .unwrap();
    assert_eq!((finish.status, steps), (RunStatus::Complete, 2000));
    if let (Some(early), Some(late)) = (early, late) {
        // What is kept of a measurement: an id, a few numbers, in two ledgers.
        let kib_per_point = (late.saturating_sub(early)) as f64 / 1500.0;
        assert!(kib_per_point < 1.5, "KiB every 250 points: {all:?}");
    }
}
