//! What the shipped definitions give.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fathom_campaign::plan::{ResolvedCampaign, plan};
use fathom_jobfile::JobFile;
use fathom_model::DevicePhase;
use fathom_prepare::settings::{MeasureOrder, Overrides};

use super::{Campaign, no_env};

/// How many steps each test has.
fn per_test(plan: &ResolvedCampaign) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for step in &plan.steps {
        let test = step.point.id.split('/').next().unwrap();
        *counts.entry(test).or_default() += 1;
    }
    counts
}

#[test]
fn the_full_matrix_has_702_points() {
    let plan = Campaign::new("all-tests").plan();
    let counts: Vec<(&str, usize)> = per_test(&plan).into_iter().collect();
    assert_eq!(
        counts,
        [
            ("0001-basic-tests", 78),
            ("0002-iobatch", 336),
            ("0003-maxiobatch-single-job", 78),
            ("0004-maxiobatch-jobs", 210),
        ]
    );
    assert_eq!(plan.steps.len(), 702);
    let ids: BTreeSet<&str> = plan.steps.iter().map(|step| &*step.point.id).collect();
    assert_eq!(ids.len(), 702);
}

/// The folders and files of a recorded campaign of fio-tests.
#[test]
fn folders_and_files_are_called_as_fio_tests_calls_them() {
    let tests = [
        (
            "0001-basic-tests",
            [
                ("0001-seqwrite", "write"),
                ("0002-seqread", "read"),
                ("0003-randwrite", "randwrite"),
                ("0004-randread", "randread"),
                ("0005-randwrite-70-30", "randrw"),
                ("0006-randwrite-97-3", "randrw"),
            ],
        ),
        (
            "0003-maxiobatch-single-job",
            [
                ("0001-maxiobatch-write", "write"),
                ("0002-maxiobatch-read", "read"),
                ("0003-maxiobatch-randwrite", "randwrite"),
                ("0004-maxiobatch-randread", "randread"),
                ("0005-maxiobatch-randwrite-70-30", "randrw"),
                ("0006-maxiobatch-randwrite-97-3", "randrw"),
            ],
        ),
    ];
    let mut expected = BTreeSet::new();
    for (test, folders) in tests {
        for (folder, rw) in folders {
            for n in 0..13 {
                let (number, depth) = (n + 1, 1 << n);
                expected.insert(format!(
                    "{test}/{folder}/{number:04}-bs4k-1j-{depth}qd-{rw}.ini"
                ));
            }
        }
    }
    let plan = Campaign::new("all-tests").plan();
    let files = plan
        .steps
        .iter()
        .map(|step| step.job_file.to_str().unwrap());
    let single = |file: &&str| file.starts_with("0001-") || file.starts_with("0003-");
    let found: BTreeSet<String> = files.clone().filter(single).map(str::to_owned).collect();
    assert_eq!(found, expected);
    for file in [
        "0002-iobatch/0001-iobatch-write/0001-32iobs-write/0007-bs4k-32iobs-64j-128qd-write.ini",
        "0002-iobatch/0005-iobatch-randwrite-70-30/0008-4096iobs-randrw/0001-bs4k-4096iobs-1j-128qd-randrw.ini",
        "0004-maxiobatch-jobs/0005-maxiobatch-randwrite-70-30/0001-256qd-randrw/0001-bs4k-1j-256qd-randrw.ini",
        "0004-maxiobatch-jobs/0002-maxiobatch-read/0005-4096qd-read/0007-bs4k-64j-4096qd-read.ini",
    ] {
        assert!(files.clone().any(|own| own == file), "{file} is missing");
    }
}

#[test]
fn one_file_of_each_kind() {
    let plan = Campaign::new("all-tests").plan();
    for (name, id) in [
        (
            "basic",
            "0001-basic-tests/0004-randread/0001-bs4k-1j-1qd-randread",
        ),
        (
            "iobatch",
            "0002-iobatch/0003-iobatch-randwrite/0002-64iobs-randwrite/0003-bs4k-64iobs-4j-128qd-randwrite",
        ),
        (
            "single",
            "0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30/0010-bs4k-1j-512qd-randrw",
        ),
        (
            "jobs",
            "0004-maxiobatch-jobs/0001-maxiobatch-write/0001-256qd-write/0007-bs4k-64j-256qd-write",
        ),
        (
            "jobs_70_30",
            "0004-maxiobatch-jobs/0005-maxiobatch-randwrite-70-30/0001-256qd-randrw/0001-bs4k-1j-256qd-randrw",
        ),
    ] {
        let step = plan.steps.iter().find(|step| step.point.id == id).unwrap();
        insta::assert_snapshot!(name, step.job_text);
    }
}

/// Every option of a point stands in its job file, for the record has the point.
#[test]
fn every_file_parses_and_says_what_its_point_says() {
    let plan = Campaign::new("all-tests").plan();
    for step in &plan.steps {
        let checked = JobFile::parse(&step.job_text, &step.job_file, &no_env);
        assert_eq!(checked.diagnostics, [], "{}", step.job_text);
        let [job] = &checked.file.jobs()[..] else {
            panic!("not one job: {}", step.job_text);
        };
        for (option, value) in &step.point.settings {
            let own = job.option(option).unwrap();
            assert_eq!(own.value.as_deref(), Some(&**value), "{option}");
        }
        let x = step.point.x_value().unwrap();
        assert!(step.point.id.contains(&match &*step.point.x {
            "iodepth" => format!("-{x}qd-"),
            _ => format!("-{x}j-"),
        }));
    }
}

#[test]
fn batches_follow_their_test() {
    let plan = Campaign::new("all-tests").plan();
    for step in &plan.steps {
        let number = |option: &str| step.point.number(option).unwrap();
        let batches = [
            number("iodepth_batch_submit"),
            number("iodepth_batch_complete_min"),
            number("iodepth_batch_complete_max"),
        ];
        let submit = batches[0];
        let id = &step.point.id;
        let expected = match &id[..4] {
            "0001" => [1, 1, 1],
            "0002" => [submit, 1, 4096],
            "0004" if id.contains("-70-30/") => [4096, 4096, 4096],
            _ => [4096, 1, 4096],
        };
        assert_eq!(batches, expected, "{id}");
        if id.starts_with("0002") {
            assert_eq!(number("iodepth"), 128);
            assert!(id.contains(&format!("-{submit}iobs-")));
        }
    }
}

#[test]
fn sizes_and_times_come_from_the_configuration() {
    let campaign = Campaign::new("all-tests");
    let has = |plan: &fathom_campaign::plan::ResolvedCampaign, line: &str| {
        let text = &plan.steps[0].job_text;
        assert!(text.lines().any(|own| own == line), "no {line} in {text}");
    };
    let plan = campaign.plan();
    has(&plan, "size=100%");
    has(&plan, "runtime=4m");
    has(&plan, "ramp_time=0s");
    campaign.change(
        ".config",
        "CONFIG_DUT_IOSIZE=\"100%\"",
        "CONFIG_DUT_IOSIZE=\"75%\"",
    );
    campaign.change(
        ".config",
        "CONFIG_DUT_RAMP_TIME=\"0s\"",
        "CONFIG_DUT_RAMP_TIME=\"10s\"",
    );
    campaign.change(
        ".config",
        "CONFIG_DUT_IOENGINE=\"libaio\"",
        "CONFIG_DUT_IOENGINE=\"io_uring\"",
    );
    let plan = campaign.plan();
    has(&plan, "size=75%");
    has(&plan, "ramp_time=10s");
    has(&plan, "ioengine=io_uring");
    assert_eq!(plan.steps[0].duration, Some(Duration::from_secs(250)));
    let share = |profile: &str| {
        let of = |step: &&fathom_campaign::plan::CampaignStep| step.point.series.ends_with(profile);
        plan.steps.iter().find(of).unwrap().write_share
    };
    assert_eq!(share("0001-basic-tests/0001-seqwrite"), 1.0);
    assert_eq!(share("0001-basic-tests/0004-randread"), 0.0);
    assert_eq!(share("0001-basic-tests/0005-randwrite-70-30"), 0.3);
    let reads = plan.steps.iter().filter(|step| step.write_share == 0.0);
    assert!(reads.into_iter().all(|step| step.write_bytes == Some(0)));
}

#[test]
fn sequential_work_goes_before_random_work() {
    let plan = Campaign::new("all-tests").plan();
    let phases: Vec<DevicePhase> = plan.steps.iter().map(|step| step.phase).collect();
    assert!(phases.is_sorted());
    for step in &plan.steps {
        let random = step.point.settings["rw"].starts_with("rand");
        assert_eq!(
            step.phase == DevicePhase::Random,
            random,
            "{}",
            step.point.id
        );
    }
}

#[test]
fn repetitions_are_interleaved_or_follow_each_other() {
    let campaign = Campaign::new("survey-10min");
    let steps = |order| {
        let overrides = Overrides {
            repeat: Some(2),
            order,
            ..Overrides::default()
        };
        let plan = plan(&campaign.folder(), &no_env, &[], &overrides).unwrap();
        let first: Vec<(u64, u32)> = plan.steps[..18]
            .iter()
            .map(|step| (step.point.x_value().unwrap(), step.point.repetition))
            .collect();
        assert_eq!(plan.steps.len(), 36);
        first
    };
    let interleaved = steps(None);
    assert_eq!(interleaved[..2], [(1, 1), (2, 1)]);
    assert_eq!(interleaved[8..10], [(256, 1), (1, 2)]);
    let in_a_row = steps(Some(MeasureOrder::InARow));
    assert_eq!(in_a_row[..3], [(1, 1), (1, 2), (2, 1)]);
}

#[test]
fn a_part_of_a_campaign_is_planned() {
    let campaign = Campaign::new("all-tests");
    let count = |only: &[&str]| campaign.try_plan(only).unwrap().steps.len();
    assert_eq!(count(&["0001-basic-tests"]), 78);
    assert_eq!(count(&["0001-basic-tests/0003-randwrite"]), 13);
    assert_eq!(
        count(&["0001-basic-tests", "0003-maxiobatch-single-job"]),
        156
    );
    assert_eq!(count(&["seqwrite"]), 13 + 56 + 13 + 35);
    assert_eq!(count(&["0004-*/*/0001-256qd-*"]), 42);
    let wrong = campaign
        .try_plan(&["0009-nothing"])
        .unwrap_err()
        .to_string();
    assert!(
        wrong.starts_with("nothing in this campaign is called 0009-nothing; there are 90 series"),
        "{wrong}"
    );
}

/// fio takes a colon in a list of names for the end of a name.
#[test]
fn colons_in_the_name_of_a_device_are_its_own() {
    let campaign = Campaign::new("survey-10min");
    let device = "/dev/disk/by-path/pci-0000:01:00.0-nvme-1";
    let overrides = Overrides {
        dut: Some(device.into()),
        ..Overrides::default()
    };
    let plan = plan(&campaign.folder(), &no_env, &[], &overrides).unwrap();
    assert_eq!(plan.dut, std::path::Path::new(device));
    let step = &plan.steps[0];
    let line = "\nfilename=/dev/disk/by-path/pci-0000\\:01\\:00.0-nvme-1\n";
    assert!(step.job_text.contains(line), "{}", step.job_text);
    let checked = JobFile::parse(&step.job_text, &step.job_file, &no_env);
    let targets = fathom_jobfile::targets(&checked.file.jobs()[0]);
    assert_eq!(targets[0].path, plan.dut);
}
