//! Tests after SNIA's specification within a campaign.

use std::fs;

use fathom_analysis::snia::{DriveClass, NOTICE, SniaTest};
use fathom_campaign::run::RunStart;
use fathom_model::{Event, Exit, RunStatus};
use fathom_record::Record;
use fathom_suites::snia::{SniaChoices, SniaConfig};

use crate::run::support::Campaign;

fn with_tests() -> Campaign {
    let mut campaign = Campaign::on("");
    let short = SniaChoices {
        mixes: Some("100/0,65/35,0/100".into()),
        blocks: Some("1024k,64k,4k".into()),
        ..SniaChoices::debug()
    };
    campaign.plan.snia = SniaConfig {
        tests: vec![
            (SniaTest::Iops, DriveClass::Enterprise, short.clone()),
            (SniaTest::Latency, DriveClass::Enterprise, short),
        ],
        ioengine: "libaio".into(),
        purge: None,
    };
    campaign
}

fn stages(record: &Record) -> Vec<String> {
    let stages = record
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Stage { stage } => Some(stage.id.clone()),
            _ => None,
        });
    stages.collect()
}

#[test]
fn the_tests_come_first_with_their_logs_and_the_points_follow() {
    let campaign = with_tests();
    let finish = campaign.run().unwrap();
    assert_eq!(finish.status, RunStatus::Complete);
    let record = Record::open(&finish.dir).unwrap();
    let stages = stages(&record);
    assert_eq!(stages[0], "iops/purge");
    assert_eq!(stages.last().unwrap(), "latency/histogram");
    assert_eq!(record.header.facts["snia"].as_array().unwrap().len(), 2);
    let told = |text: &str| {
        let is = |event: &Event| matches!(event, Event::Note { text: told } if told == text);
        record.entries.iter().any(|entry| is(&entry.event))
    };
    assert!(told(NOTICE));
    let last = record
        .entries
        .iter()
        .rev()
        .find_map(|entry| match &entry.event {
            Event::Step { point, .. } => point.as_ref().map(|point| point.series.clone()),
            _ => None,
        });
    assert_eq!(last.as_deref(), Some("b"), "points come behind the tests");
    let log = fs::read_to_string(campaign.dir.path().join("logs/snia/iops/nothing")).unwrap();
    let actions: Vec<&str> = log.lines().map(|l| l.split('|').next().unwrap()).collect();
    assert_eq!(
        actions,
        [
            "Start SNIA test",
            "Purge start",
            "Purge finished",
            "Start SNIA rounds",
            "Finished SNIA rounds",
            "Finished SNIA test"
        ]
    );
    assert!(log.lines().last().unwrap().ends_with("|OK"));
    assert_eq!(campaign.left(), 0);
}

#[test]
fn a_campaign_that_was_stopped_in_a_test_goes_on_there() {
    let mut campaign = with_tests();
    // The first steps are those of the fill and of the first rounds.
    let first = campaign.run_until(8);
    assert_eq!(first.status, RunStatus::Interrupted);
    let second = campaign.begin(RunStart::Resume).run().unwrap();
    assert_eq!(second.status, RunStatus::Complete);
    assert_eq!(second.dir, first.dir);
    let stages = stages(&Record::open(&second.dir).unwrap());
    let begun = |id: &str| stages.iter().filter(|stage| *stage == id).count();
    assert_eq!(
        (begun("iops/purge"), begun("iops/fill-1")),
        (1, 1),
        "{stages:?}"
    );
    assert_eq!(begun("iops/round-01"), 2, "{stages:?}");
}

#[test]
fn tests_that_were_configured_otherwise_do_not_go_on_in_the_record() {
    let mut campaign = with_tests();
    campaign.run().unwrap();
    campaign.plan.snia.tests[0].2.max_rounds = Some(7);
    let refused = campaign.run().unwrap_err();
    assert_eq!(refused.exit(), Exit::Refused);
    assert!(refused.to_string().contains("--again"), "{refused}");
}
