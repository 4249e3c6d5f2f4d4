//! What the configuration and the command line say of how points are run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_analysis::guard::GuardRule;
use fathom_campaign::plan::{CampaignStep, ResolvedCampaign, plan};
use fathom_engines::EngineName;
use fathom_flow::RunOptions;
use fathom_flow::budget::Speed;
use fathom_model::DevicePhase;
use fathom_prepare::precondition::ActiveRange;
use fathom_prepare::settings::{Care, GuardPolicy, Overrides, RunSettings};

use super::{Campaign, no_env};

#[test]
fn settings_come_from_the_configuration() {
    let campaign = Campaign::new("survey-10min");
    campaign.change(
        ".config",
        "CONFIG_POINT_TIMEOUT=\"\"",
        "CONFIG_POINT_TIMEOUT=\"90s\"",
    );
    campaign.change(
        ".config",
        "CONFIG_CAMPAIGN_TIMEOUT=\"\"",
        "CONFIG_CAMPAIGN_TIMEOUT=\"8h\"",
    );
    campaign.change(
        ".config",
        "CONFIG_DESTROY_CONFIRM=\"\"",
        "CONFIG_DESTROY_CONFIRM=\"/dev/loop3=512MiB\"",
    );
    campaign.change(".config", "# CONFIG_GUARD is not set", "CONFIG_GUARD=y");
    assert_eq!(
        campaign.plan().settings,
        RunSettings {
            options: RunOptions {
                engine: Some(EngineName::Auto),
                destroy: vec!["/dev/loop3=512MiB".to_owned()],
                max_time: Some(Duration::from_secs(8 * 3600)),
                ..RunOptions::default()
            },
            interval: Duration::from_secs(1),
            point_limit: Some(Duration::from_secs(90)),
            guard: Some(GuardPolicy::Worse(GuardRule {
                points: 2,
                noise_percent: 5
            })),
            progress_logs: true,
            care: Care::default(),
        }
    );
    campaign.change(
        ".config",
        "CONFIG_POINT_TIMEOUT=\"90s\"",
        "CONFIG_POINT_TIMEOUT=\"1 hour\"",
    );
    let fault = campaign.fault();
    assert!(
        fault.starts_with("CONFIG_POINT_TIMEOUT=\"1 hour\": "),
        "{fault}"
    );
}

#[test]
fn the_command_line_goes_over_the_configuration() {
    let campaign = Campaign::new("survey-10min");
    let overrides = Overrides {
        options: RunOptions {
            engine: Some(EngineName::Native),
            destroy: vec!["S123".to_owned()],
            ..RunOptions::default()
        },
        point_limit: Some(Duration::from_secs(5)),
        guard: Some(false),
        ..Overrides::default()
    };
    let plan = plan(&campaign.folder(), &no_env, &[], &overrides).unwrap();
    assert_eq!(plan.settings.options.engine, Some(EngineName::Native));
    assert_eq!(plan.settings.options.destroy, ["S123"]);
    assert_eq!(plan.settings.point_limit, Some(Duration::from_secs(5)));
    assert_eq!(plan.settings.guard, None);
    assert!(plan.steps.iter().all(|step| !step.guarded));
}

#[test]
fn a_search_for_the_knee_begins_at_the_ends() {
    let campaign = Campaign::new("survey-10min");
    let depths = |plan: &ResolvedCampaign| -> Vec<String> {
        let first = &plan.steps[0].point.series;
        let its = plan.steps.iter().filter(|step| step.point.series == *first);
        its.map(|step| step.point.settings["iodepth"].clone())
            .collect()
    };
    let ascending = depths(&campaign.plan());
    campaign.change(
        ".config",
        "# CONFIG_SEARCH_KNEE is not set",
        "CONFIG_SEARCH_KNEE=y",
    );
    let plan = campaign.plan();
    assert_eq!(plan.settings.guard, Some(GuardPolicy::NotForKnee));
    let mut searched = depths(&plan);
    assert_eq!(
        searched[..2],
        [ascending[ascending.len() - 1].clone(), ascending[0].clone()]
    );
    searched.sort_by_key(|depth| depth.parse::<u32>().unwrap());
    assert_eq!(searched, ascending);
}

#[test]
fn a_series_can_go_without_the_guard() {
    let campaign = Campaign::new("survey-10min");
    assert_eq!(
        campaign.plan().settings.guard,
        None,
        "nothing is left out unasked"
    );
    let on = "CONFIG_GUARD=y\nCONFIG_GUARD_BASIC_TESTS=y";
    campaign.change(".config", "# CONFIG_GUARD is not set", on);
    assert!(campaign.plan().steps.iter().all(|step| step.guarded));
    campaign.change(
        ".config",
        "CONFIG_GUARD_BASIC_TESTS=y",
        "# CONFIG_GUARD_BASIC_TESTS is not set",
    );
    let plan = campaign.plan();
    assert!(plan.settings.guard.is_some());
    assert!(plan.steps.iter().all(|step| !step.guarded));
}

/// Whoever writes DEV=… before a command means that device, whatever the
/// configuration says.
#[test]
fn dev_names_the_device_and_the_plan_says_so() {
    let campaign = Campaign::new("survey-10min");
    let env = |name: &str| (name == "DEV").then(|| "/dev/loop77".to_owned());
    let planned = plan(&campaign.folder(), &env, &[], &Overrides::default()).unwrap();
    assert_eq!(planned.dut, Path::new("/dev/loop77"));
    assert!(
        planned.steps[0]
            .job_text
            .contains("\nfilename=/dev/loop77\n")
    );
    assert_eq!(
        planned.notes,
        ["DEV names /dev/loop77; the DUT_FILENAME of the configuration, /dev/nvme0n1, is not used"]
    );
    let overrides = Overrides {
        dut: Some(PathBuf::from("/dev/loop78")),
        ..Overrides::default()
    };
    let planned = plan(&campaign.folder(), &env, &[], &overrides).unwrap();
    assert_eq!(planned.dut, Path::new("/dev/loop78"));
    let empty = |name: &str| (name == "DEV").then(String::new);
    let planned = plan(&campaign.folder(), &empty, &[], &Overrides::default()).unwrap();
    assert_eq!(planned.dut, Path::new("/dev/nvme0n1"));
    assert!(planned.notes.is_empty());
}

#[test]
fn the_state_of_the_device_is_part_of_the_plan() {
    let plan = Campaign::new("all-tests").plan();
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
    let tests: Vec<&str> = plan
        .snia
        .tests
        .iter()
        .map(|(test, ..)| test.name())
        .collect();
    assert_eq!(tests, ["iops"]);
    assert!(plan.snia.purge.is_some());
    let preparation = &plan.preparation;
    assert!(preparation.on && preparation.energize && preparation.purge.is_some());
    assert_eq!(preparation.provision, None);
    let settings = preparation.precondition.as_ref().unwrap();
    assert_eq!(
        (settings.numjobs, settings.iodepth, settings.loops),
        (4, 32, 2)
    );
    assert_eq!(settings.steady.as_ref().unwrap().rounds, 5);

    let plan = Campaign::new("provision-seq").plan();
    assert!(plan.steps.is_empty());
    assert!(plan.notes[0].contains("nothing is measured"));
    assert_eq!(plan.preparation.provision, Some(DevicePhase::Sequential));
    assert_eq!(plan.phases(), [DevicePhase::Sequential]);
    let plan = Campaign::new("provision-random").plan();
    assert_eq!(plan.phases(), [DevicePhase::Random]);

    let plan = Campaign::new("debug-quick").plan();
    assert!(plan.preparation.purge.is_none());
    let settings = plan.preparation.precondition.unwrap();
    assert_eq!(settings.loops, 1);
    assert_eq!(settings.range, ActiveRange::Bytes(4096 << 10));
    let window = settings.steady.unwrap().window();
    assert_eq!(window, Duration::from_secs(1));

    let plan = Campaign::new("survey-10min").plan();
    assert!(!plan.preparation.on && !plan.preparation.is_something());
}

#[test]
fn limits_that_are_no_share_are_refused() {
    let campaign = Campaign::new("provision-seq");
    let text = campaign.read(".config");
    let wrong = text.replace(
        "CONFIG_BW_WD_SS_SLOPE=\"10%\"",
        "CONFIG_BW_WD_SS_SLOPE=\"10\"",
    );
    campaign.write(".config", &wrong);
    let fault = campaign.fault();
    assert!(fault.contains("CONFIG_BW_WD_SS_SLOPE=\"10\""), "{fault}");
    assert!(fault.contains("in percent"), "{fault}");
}

#[test]
fn what_is_written_is_bounded_by_the_speed() {
    let campaign = Campaign::new("all-tests");
    let plan = campaign.try_plan(&["0001-basic-tests"]).unwrap();
    let cost = CampaignStep::cost(&plan.steps, None);
    assert_eq!((cost.steps, cost.unbounded, cost.write_bytes), (78, 52, 0));
    assert_eq!(cost.duration, Duration::from_secs(78 * 240));
    let cost = CampaignStep::cost(&plan.steps, Some(Speed::Said(1_000_000)));
    assert_eq!(cost.unbounded, 0);
    // Two profiles that only write, 30 % and 3 % of two others.
    let expected = (13.0 * 240.0 * 1e6 * (1.0 + 1.0 + 0.3 + 0.03)) as u64;
    assert!(cost.write_bytes.abs_diff(expected) < 100, "{cost:?}");
}

#[test]
fn a_config_that_is_wrong_is_refused_with_its_line() {
    let campaign = Campaign::new("survey-10min");
    let text = campaign.read(".config");
    campaign.write(".config", &format!("CONFIG_REPEAT=many\nnonsense\n{text}"));
    let fault = campaign.fault();
    assert!(
        fault.contains(".config:1:1: many is no value for REPEAT"),
        "{fault}"
    );
    assert!(
        fault.contains(".config:2:1: neither a value nor a comment"),
        "{fault}"
    );
    std::fs::remove_file(campaign.path().join(".config")).unwrap();
    let fault = campaign.fault();
    assert!(fault.contains("has no .config"), "{fault}");
    assert!(fault.contains("survey-10min"), "{fault}");
}
