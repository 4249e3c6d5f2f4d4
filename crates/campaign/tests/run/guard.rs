//! Series that only get worse.

use fathom_flow::PointOutcome;
use fathom_model::{Event, RunStatus};
use fathom_record::Record;

use crate::run::support::{Campaign, begun, progress};

/// Best at a depth of 8, then worse with each doubling.
const WORSE: &str = "parallel = 8\nbeyond_percent = 30\n";

#[test]
fn a_series_that_got_worse_at_two_points_in_a_row_is_ended() {
    let mut campaign = Campaign::on(WORSE).guarded();
    let finish = campaign.run().unwrap();
    assert_eq!(finish.status, RunStatus::Complete);
    let expected = |series: &str| [1, 2, 4, 8, 16, 32].map(|depth| format!("{series} {depth} #1"));
    assert_eq!(begun(&finish.dir), [expected("a"), expected("b")].concat());
    let told = progress(&finish.dir);
    assert_eq!((told.counts().done, told.counts().skipped), (12, 4));
    let Some(PointOutcome::Skipped(reason)) = told.measurements().last().unwrap().1 else {
        panic!()
    };
    assert!(reason.contains("the guard ended the series"), "{reason}");
    assert_eq!(
        campaign.left(),
        0,
        "what the guard left out is not left to do"
    );
    campaign.plan.settings.guard = None;
    assert_eq!(
        campaign.todo(),
        ["a 64 #1", "a 128 #1", "b 64 #1", "b 128 #1"]
    );
    campaign.run().unwrap();
    assert_eq!(progress(&finish.dir).counts().done, 16);
}

#[test]
fn a_series_that_is_not_guarded_is_measured_whole() {
    let mut campaign = Campaign::on(WORSE).guarded();
    for step in &mut campaign.plan.steps {
        step.guarded = step.point.series == "b";
    }
    let counts = progress(&campaign.run().unwrap().dir).counts();
    assert_eq!((counts.done, counts.skipped), (14, 2));
}

#[test]
fn a_guard_goes_on_after_a_stop_as_if_there_had_been_none() {
    let mut campaign = Campaign::on(WORSE).guarded();
    // Between the two points that end the series.
    let dir = campaign.run_until(6).dir;
    assert_eq!(campaign.left(), 11);
    campaign.run().unwrap();
    assert_eq!(progress(&dir).counts().skipped, 4);
    let record = Record::open(&dir).unwrap();
    let skipped = |event: &Event| matches!(event, Event::Skipped { .. });
    let told = record.entries.iter().filter(|e| skipped(&e.event)).count();
    assert_eq!(told, 4);
    campaign.run().unwrap();
    let record = Record::open(&dir).unwrap();
    let again = record.entries.iter().filter(|e| skipped(&e.event)).count();
    assert_eq!(again, told, "told once");
}

#[test]
fn the_first_pass_of_interleaved_repetitions_decides_for_all() {
    let mut campaign = Campaign::on(WORSE).guarded();
    campaign.steps(&["a"], &[1, 2, 3]);
    let dir = campaign.run().unwrap().dir;
    let begun = begun(&dir);
    let depths = [1, 2, 4, 8, 16, 32];
    let expected = [1, 2, 3].map(|pass| depths.map(|depth| format!("a {depth} #{pass}")));
    assert_eq!(begun, expected.concat());
    assert_eq!(progress(&dir).counts().skipped, 6);
}

#[test]
fn repetitions_in_a_row_are_judged_together() {
    let mut campaign = Campaign::on(WORSE).guarded();
    campaign.steps(&["a"], &[1, 2, 3]);
    campaign.in_a_row();
    let dir = campaign.run().unwrap().dir;
    let begun = begun(&dir);
    assert_eq!(begun[..4], ["a 1 #1", "a 1 #2", "a 1 #3", "a 2 #1"]);
    assert_eq!(begun.len(), 18);
    assert_eq!(begun.last().unwrap(), "a 32 #3");
}

#[test]
fn a_device_that_grows_slower_with_time_does_not_look_like_its_knee() {
    // Half as fast after each 10 s: every point is worse than the one before
    // only once more depth gains nothing.
    let drift = "parallel = 4096\nnoise_percent = 0\n";
    let campaign = Campaign::on(drift).guarded();
    assert_eq!(progress(&campaign.run().unwrap().dir).counts().skipped, 0);
}

/// Flat from a depth of 8 on: what lies beyond it, or below what is too little, is left out.
const FLAT: &str = "parallel = 8\nnoise_percent = 0\n";
const SEARCHED: [u32; 8] = [128, 1, 8, 2, 32, 4, 16, 64];

#[test]
fn a_search_for_the_knee_measures_only_what_it_needs() {
    let mut campaign = Campaign::on(FLAT).searching(&["a", "b"], &SEARCHED, &[1]);
    let finish = campaign.run().unwrap();
    let expected = |series: &str| [128, 1, 8, 2, 4].map(|depth| format!("{series} {depth} #1"));
    assert_eq!(begun(&finish.dir), [expected("a"), expected("b")].concat());
    let told = progress(&finish.dir);
    assert_eq!((told.counts().done, told.counts().skipped), (10, 6));
    assert_eq!(
        campaign.left(),
        0,
        "what it does not need is not left to do"
    );
    campaign.plan.settings.guard = None;
    campaign.run().unwrap();
    assert_eq!(progress(&finish.dir).counts().done, 16);
}

#[test]
fn a_search_goes_on_after_a_stop_as_if_there_had_been_none() {
    let whole = Campaign::on(FLAT).searching(&["a"], &SEARCHED, &[1, 2]);
    let expected = begun(&whole.run().unwrap().dir);
    assert_eq!(expected.len(), 10, "{expected:?}");
    for stop in 1..10 {
        let mut campaign = Campaign::on(FLAT).searching(&["a"], &SEARCHED, &[1, 2]);
        let dir = campaign.run_until(stop).dir;
        campaign.run().unwrap();
        let mut begun = begun(&dir);
        begun.dedup();
        assert_eq!(begun, expected, "stopped at {stop}");
    }
}
