//! Points that fail, devices that stall and vanish, time that runs out.

use std::time::Duration;

use fathom_campaign::run::{Begin, Came};
use fathom_model::RunStatus;

use crate::support::{Campaign, begun, progress};

#[test]
fn a_failed_point_is_a_row_with_its_reason_and_the_campaign_goes_on() {
    let mut campaign = Campaign::on("[fail]\nin_flight = 64\nerrno = 11");
    let finish = campaign.run().unwrap();
    assert_eq!(finish.status, RunStatus::Failed);
    let told = progress(&finish.dir);
    let counts = told.counts();
    assert_eq!((counts.done, counts.failed), (12, 4));
    let reasons = told.measurements().filter_map(|(_, came)| match came {
        Some(Came::Failed(reason)) => Some(reason),
        _ => None,
    });
    assert!(
        reasons
            .into_iter()
            .all(|why| why.contains("Resource temporarily"))
    );
    assert!(campaign.dir.path().join("logs/runs/END").exists());
    assert_eq!(campaign.left(), 0, "not tried again unasked");
    campaign.options.retry_failed = true;
    assert_eq!(
        campaign.todo(),
        ["a 64 #1", "a 128 #1", "b 64 #1", "b 128 #1"]
    );
    // It has been mended.
    std::fs::write(campaign.options.sim.as_ref().unwrap(), "").unwrap();
    assert_eq!(campaign.run().unwrap().status, RunStatus::Complete);
    assert_eq!(progress(&finish.dir).counts().done, 16);
}

#[test]
fn a_device_that_vanishes_ends_the_campaign() {
    let mut campaign = Campaign::on("vanish_after_s = 10");
    let finish = campaign.run().unwrap();
    assert_eq!(finish.status, RunStatus::Failed);
    assert!(finish.stopped.unwrap().contains("is gone"));
    let counts = progress(&finish.dir).counts();
    assert_eq!((counts.done, counts.failed, counts.left), (3, 1, 12));
    assert!(!campaign.dir.path().join("logs/runs/END").exists());
    // It is back.
    campaign.options.sim = None;
    campaign.options.retry_failed = true;
    campaign.begin(Begin::Resume);
    assert_eq!(campaign.run().unwrap().status, RunStatus::Complete);
}

#[test]
fn a_device_that_stalls_costs_its_point_and_no_more() {
    let mut campaign = Campaign::on("[stall]\nafter_s = 10\nfor_s = 100000");
    let finish = campaign.run().unwrap();
    let counts = progress(&finish.dir).counts();
    assert_eq!((counts.done, counts.failed), (3, 13));
    campaign.plan.settings.point_limit = Some(Duration::from_secs(6));
    campaign.begin(Begin::Again);
    let finish = campaign.run().unwrap();
    let told = progress(&finish.dir);
    let last = told.measurements().last().unwrap().1;
    let Some(Came::Failed(reason)) = last else {
        panic!("{last:?}")
    };
    assert_eq!(reason, "the time limit of 6 s was reached");
}

#[test]
fn no_point_begins_that_would_end_after_the_time_limit() {
    let mut campaign = Campaign::on("");
    campaign.plan.settings.campaign_limit = Some(Duration::from_secs(20));
    let finish = campaign.run().unwrap();
    assert_eq!(
        (finish.status, finish.no_time),
        (RunStatus::Interrupted, 10)
    );
    assert_eq!(begun(&finish.dir).len(), 6);
    let told = progress(&finish.dir);
    assert_eq!(told.counts().skipped, 10);
    let last = told.measurements().last().unwrap().1;
    assert!(matches!(last, Some(Came::Skipped(reason)) if reason.contains("limit of 20")));
    assert!(!campaign.dir.path().join("logs/runs/END").exists());
    // Each start has the time anew.
    campaign.begin(Begin::Resume);
    assert_eq!(campaign.run().unwrap().no_time, 4);
    assert_eq!(campaign.run().unwrap().status, RunStatus::Complete);
}
