//! Points that fail, devices that stall and vanish, time that runs out.

use std::time::Duration;

use fathom_campaign::run::RunStart;
use fathom_flow::PointOutcome;
use fathom_flow::budget::Over;
use fathom_model::{Event, RunStatus};
use fathom_prepare::precondition::{PreconditionMethod, PreconditionSettings};

use crate::run::support::{Campaign, begun, progress};

#[test]
fn a_failed_point_is_a_row_with_its_reason_and_the_campaign_goes_on() {
    let mut campaign = Campaign::on("[fail]\nin_flight = 64\nerrno = 11");
    let finish = campaign.run().unwrap();
    assert_eq!(finish.status, RunStatus::Failed);
    let told = progress(&finish.dir);
    let counts = told.counts();
    assert_eq!((counts.done, counts.failed), (12, 4));
    let reasons = told.measurements().filter_map(|(_, came)| match came {
        Some(PointOutcome::Failed(reason)) => Some(reason),
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
    std::fs::write(campaign.plan.settings.options.sim(0).unwrap(), "").unwrap();
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
    campaign.plan.settings.options.sim.clear();
    campaign.options.retry_failed = true;
    campaign.begin(RunStart::Resume);
    assert_eq!(campaign.run().unwrap().status, RunStatus::Complete);
}

#[test]
fn a_device_that_stalls_costs_its_point_and_no_more() {
    let mut campaign = Campaign::on("[stall]\nafter_s = 10\nfor_s = 100000");
    let finish = campaign.run().unwrap();
    let counts = progress(&finish.dir).counts();
    assert_eq!((counts.done, counts.failed), (3, 13));
    campaign.plan.settings.point_limit = Some(Duration::from_secs(6));
    campaign.begin(RunStart::Again);
    let finish = campaign.run().unwrap();
    let told = progress(&finish.dir);
    let last = told.measurements().last().unwrap().1;
    let Some(PointOutcome::Failed(reason)) = last else {
        panic!("{last:?}")
    };
    assert_eq!(reason, "the time limit of 6 s was reached");
}

#[test]
fn no_point_begins_that_would_end_after_the_time_limit() {
    let mut campaign = Campaign::on("");
    campaign.plan.settings.options.max_time = Some(Duration::from_secs(20));
    let finish = campaign.run().unwrap();
    assert_eq!(
        (finish.status, finish.no_room),
        (RunStatus::Interrupted, 10)
    );
    assert_eq!(begun(&finish.dir).len(), 6);
    let told = progress(&finish.dir);
    // They are still to come, and take their time.
    let counts = told.counts();
    assert_eq!((counts.done, counts.skipped, counts.left), (6, 0, 10));
    assert!(told.left_ms().unwrap() >= 10 * 3000, "{:?}", told.left_ms());
    let last = told.measurements().last().unwrap().1;
    assert!(
        matches!(last, Some(PointOutcome::Postponed(reason)) if reason.contains("limit of 20"))
    );
    assert!(!campaign.dir.path().join("logs/runs/END").exists());
    // Each start has the time anew.
    campaign.begin(RunStart::Resume);
    assert_eq!(campaign.run().unwrap().no_room, 4);
    assert_eq!(campaign.run().unwrap().status, RunStatus::Complete);
}

/// The campaign writes; its points go by time.
fn writing() -> Campaign {
    let mut campaign = Campaign::on("");
    for step in &mut campaign.plan.steps {
        step.job_text = step.job_text.replace("randread", "randwrite");
        step.write_share = 1.0;
        step.write_bytes = None;
    }
    campaign
}

fn written(dir: &std::path::Path) -> u64 {
    let record = fathom_record::Record::open(dir).unwrap();
    let mut moved = fathom_flow::ledger::BytesWritten::default();
    record
        .entries
        .iter()
        .for_each(|entry| moved.take(&entry.event));
    moved.bytes()
}

#[test]
fn a_run_stops_cleanly_once_it_has_written_what_it_may() {
    let mut campaign = writing();
    let whole = campaign.run().unwrap();
    let all = written(&whole.dir);
    assert!(all > 0);
    campaign.begin(RunStart::Again);
    let limit = all / 3;
    campaign.plan.settings.options.max_written = Some(limit);
    let finish = campaign.run().unwrap();
    assert_eq!(finish.status, RunStatus::Interrupted);
    assert_eq!((finish.no_room, finish.stopped), (1, None));
    assert!(finish.spent.unwrap().contains("would have written more"));
    // Within an interval before the limit.
    let first = written(&finish.dir);
    assert!(first <= limit && first > limit / 2, "{first} of {all}");
    let told = progress(&finish.dir);
    assert_eq!(told.counts().skipped, 0);
    assert!(told.counts().done > 0 && told.counts().left > 0);
    // The limit is of all starts together.
    campaign.begin(RunStart::Resume);
    let finish = campaign.run().unwrap();
    assert_eq!(written(&finish.dir), first);
    let told = progress(&finish.dir);
    let last = told.measurements().last().unwrap().1;
    assert!(
        matches!(last, Some(PointOutcome::Postponed(reason)) if reason.contains("that it may"))
    );
    // What was cut is measured once it may be.
    campaign.plan.settings.options.max_written = None;
    assert_eq!(campaign.run().unwrap().status, RunStatus::Complete);
}

#[test]
fn a_plan_that_wants_more_than_it_may_is_cut_or_refused_and_says_what_is_left_out() {
    let mut campaign = writing();
    for step in &mut campaign.plan.steps {
        step.write_bytes = Some(1 << 30);
    }
    campaign.plan.settings.options.max_written = Some(3 << 30);
    campaign.plan.settings.care.endurance_bytes = Some(1 << 40);
    let ready = campaign.ready().unwrap();
    let cut = ready.cut().unwrap();
    assert!(
        cut.starts_with("13 of 16 points do not fit into 3 GiB written: "),
        "{cut}"
    );
    assert!(cut.ends_with("10 more"), "{cut}");
    let costs = ready.costs();
    assert!(
        costs.contains("writes 3 GiB at most; of the rated endurance: 0.29 % of the 1.0"),
        "{costs}"
    );
    campaign.plan.settings.care.over = Over::Refuse;
    let refused = campaign.run().unwrap_err();
    assert_eq!(refused.exit(), fathom_model::Exit::Refused);
    assert!(
        refused.to_string().contains("--over-budget cut"),
        "{refused}"
    );
    campaign.plan.settings.options.max_written = Some(16 << 30);
    assert_eq!(campaign.ready().unwrap().cut(), None);
}

#[test]
fn the_device_is_not_made_ready_for_a_point_that_there_is_no_room_for() {
    let mut campaign = Campaign::on("");
    let dut = campaign.plan.dut.clone();
    campaign.plan.preparation.precondition = Some(PreconditionSettings::usual(
        PreconditionMethod::SantaClara,
        dut,
    ));
    campaign.plan.settings.options.max_time = Some(Duration::from_secs(2));
    let finish = campaign.run().unwrap();
    assert_eq!((finish.no_room, finish.spent), (16, None));
    let told = progress(&finish.dir);
    assert_eq!(told.counts().left, 16);
    assert!(told.stages().history().stages().is_empty());
}

#[test]
fn logs_that_cannot_be_written_end_with_a_note_and_the_campaign_goes_on() {
    let campaign = Campaign::on("");
    std::fs::write(campaign.dir.path().join("logs"), "a file").unwrap();
    let finish = campaign.run().unwrap();
    assert_eq!(finish.status, RunStatus::Complete);
    let record = fathom_record::Record::open(&finish.dir).unwrap();
    let notes = record.entries.iter().filter(|entry| {
        matches!(&entry.event, Event::Note { text } if text.contains("the progress logs end here"))
    });
    assert_eq!(notes.count(), 1);
}
