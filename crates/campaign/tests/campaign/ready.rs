//! The configurations that are ready keep what their first lines promise.

use std::time::Duration;

use fathom_prepare::shipped;

use super::Campaign;

#[test]
fn a_survey_takes_ten_minutes_and_writes_nothing() {
    let plan = Campaign::new("survey-10min").plan();
    assert_eq!(plan.steps.len(), 18);
    let took: Option<Duration> = plan.steps.iter().map(|step| step.duration).sum();
    let minutes = took.unwrap().as_secs_f64() / 60.0;
    // Starting an engine costs up to a second a point.
    assert!((9.3..=9.8).contains(&minutes), "{minutes} min");
    assert!(plan.steps.iter().all(|step| step.write_bytes == Some(0)));
}

#[test]
fn all_tests_are_the_full_matrix_and_a_second_drive_is_another_device() {
    let all = Campaign::new("all-tests").plan();
    let second = Campaign::new("nvme2n1-all").plan();
    assert_eq!(all.steps.len(), second.steps.len());
    assert!(all.steps.len() >= 702);
    assert_eq!(second.dut.to_str(), Some("/dev/nvme2n1"));
}

#[test]
fn debugging_is_quick() {
    let plan = Campaign::new("debug-quick").plan();
    let second = Some(Duration::from_secs(1));
    assert!(plan.steps.iter().all(|step| step.duration == second));
}

#[test]
fn provisioning_measures_nothing() {
    for name in ["provision-seq", "provision-random"] {
        let campaign = Campaign::new(name);
        let config = campaign.folder().config(&super::no_env).unwrap();
        assert!(config.is_on("FORCE_PRECONDITION") && config.is_on("PRECONDITIONING"));
        assert_eq!(
            config.is_on("PROVISION_SC_SEQUENTIAL"),
            name == "provision-seq"
        );
        for test in [
            "SNIA_TESTS",
            "BASIC_TESTS",
            "IODEPTH_BATCH",
            "MAX_IOBATCH_JOBS",
        ] {
            assert!(!config.is_on(test), "{name}: {test}");
        }
    }
    assert_eq!(shipped::defconfigs().count(), 6, "each is looked at here");
}
