use fathom_analysis::snia::SniaTest;
use fathom_engine::Control;
use fathom_flow::{Case, Ending, outlook};
use fathom_model::{Event, RunStatus};
use fathom_suites::snia::SniaChoices;

use super::support::{Place, script, setup, wanted};

/// Every test, stopped in the middle of each of its stages and resumed: the
/// stage is done anew, everything else once, and the findings tell the gap.
#[test]
fn every_test_goes_on_wherever_it_was_stopped() {
    let short = SniaChoices {
        window: Some(2),
        max_rounds: Some(3),
        fill_loops: Some(1),
        samples_a_round: Some(1),
        ..wanted()
    };
    for test in SniaTest::ALL {
        let script = script(setup(test, &short));
        let whole = Place::new("").run(&script);
        let stages = whole.stages();
        for (place, stage) in stages
            .iter()
            .enumerate()
            .filter(|(_, id)| !id.ends_with("purge"))
        {
            let place_of_records = Place::new("");
            let control = Control::default();
            let mut begun = 0;
            let first = place_of_records.go_on(&script, None, &control, &mut |event| {
                begun += usize::from(matches!(event, Event::Stage { .. }));
                if begun == place + 1 && matches!(event, Event::Interval { .. }) {
                    control.stop();
                }
            });
            assert_eq!(first.finish.status, RunStatus::Interrupted, "{stage}");
            let dir = first.finish.dir.clone();
            let second =
                place_of_records.go_on(&script, Some(dir), &Control::default(), &mut |_| {});
            assert_eq!(second.finish.ending, Some(Ending::Complete), "{stage}");
            let mut expected = stages.clone();
            expected.insert(place, stage.clone());
            assert_eq!(second.stages(), expected);
            let (once, twice) = (whole.findings(), second.findings());
            assert_eq!(
                once.parts[0].tracked[0].values,
                twice.parts[0].tracked[0].values
            );
            assert_eq!(twice.interruptions.len(), 1, "{stage}");
            assert_eq!(&twice.interruptions[0].stage, stage);
            assert!(twice.interruptions[0].within);
            assert!(
                twice
                    .deviations
                    .iter()
                    .any(|told| told.contains("no unplanned gap"))
            );
        }
    }
}

#[test]
fn the_plan_knows_the_fewest_and_the_most_rounds() {
    let script = script(setup(SniaTest::Iops, &SniaChoices::default()));
    let stages = |case| outlook(&script, &fathom_flow::History::default(), case).0;
    assert_eq!(stages(Case::Best).len(), 3 + 5);
    assert_eq!(stages(Case::Worst).len(), 3 + 25);
    // 4.7 h and 23.3 h of cells, without purge and fills.
    let hours = |case| {
        let tasks = stages(case);
        let time: std::time::Duration = tasks.iter().map(|task| task.work.least_time()).sum();
        time.as_secs_f64() / 3600.0
    };
    assert!((hours(Case::Best) - 5.0 * 56.0 / 60.0).abs() < 1e-9);
    assert!((hours(Case::Worst) - 25.0 * 56.0 / 60.0).abs() < 1e-9);
}
