//! The files of a campaign: unpacked, generated, removed, checked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_campaign::check::check;
use fathom_campaign::folder::{Init, init};
use fathom_campaign::generate::{GENERATED, clean, generate};
use fathom_campaign::{CampaignError, Only};
use fathom_engine_fio::version::Program;
use fathom_prepare::shipped;

use super::{Campaign, no_env};

/// A file that is forgotten in the list would be missing in every campaign.
#[test]
fn everything_in_campaigns_is_shipped() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns");
    let mut expected = BTreeSet::from(["Kconfig".to_owned()]);
    for (folder, to) in [
        ("kconfig", "kconfig/"),
        ("tests", "tests/"),
        ("profiles", "profiles/"),
        ("templates", "templates/"),
        ("configs", "defconfigs/"),
        ("folder", ""),
    ] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let name = name.replace("gitignore", ".gitignore");
            expected.insert(format!("{to}{name}"));
        }
    }
    let shipped = shipped::FILES.iter().map(|(name, _)| (*name).to_owned());
    assert_eq!(shipped.collect::<BTreeSet<String>>(), expected);
}

#[test]
fn init_overwrites_nothing() {
    let campaign = Campaign::new("survey-10min");
    let again = |force| {
        let wanted = Init {
            force,
            defconfig: Some("all-tests".to_owned()),
        };
        init(&campaign.path(), &wanted, &no_env)
    };
    let refused = again(false).unwrap_err();
    assert!(matches!(refused, CampaignError::NotEmpty(_)), "{refused}");
    campaign.write("README.md", "mine\n");
    fs::remove_file(campaign.path().join("Makefile")).unwrap();
    let config = campaign.read(".config");
    let done = again(true).unwrap();
    assert_eq!(done.written, [campaign.path().join("Makefile")]);
    let kept = [
        campaign.path().join("README.md"),
        campaign.path().join(".config"),
    ];
    assert_eq!(done.kept, kept);
    assert_eq!(campaign.read("README.md"), "mine\n");
    assert_eq!(campaign.read(".config"), config);
}

#[test]
fn an_unknown_defconfig_leaves_no_folder_behind() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = Init {
        force: false,
        defconfig: Some("nvme".to_owned()),
    };
    let path = dir.path().join("campaign");
    let error = init(&path, &wanted, &no_env).unwrap_err();
    assert!(error.to_string().contains("survey-10min"), "{error}");
    assert!(!path.exists());
}

fn job_files(campaign: &Campaign) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![campaign.path()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "ini") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn generation_writes_what_is_asked_for_and_removes_what_is_not() {
    let campaign = Campaign::new("all-tests");
    let done = generate(&campaign.plan(), &[], false).unwrap();
    assert_eq!((done.files, done.written), (708, 708));
    assert_eq!(job_files(&campaign).len(), 708);
    let plan = campaign.plan();
    // 702 points, and 6 job files of pre-conditioning.
    let step = &plan.steps[400];
    assert_eq!(campaign.read(&step.job_file), step.job_text);
    let again = generate(&plan, &[], false).unwrap();
    assert_eq!((again.files, again.written), (708, 0));
    // Results beside the job files are not Fathom's to remove.
    campaign.write("0002-iobatch/0001-iobatch-write/notes", "mine");
    campaign.change(
        ".config",
        "CONFIG_IODEPTH_BATCH=y",
        "# CONFIG_IODEPTH_BATCH is not set",
    );
    campaign.change(
        ".config",
        "CONFIG_DUT_TEST_MAX_IODEPTH=\"4096\"",
        "CONFIG_DUT_TEST_MAX_IODEPTH=\"2048\"",
    );
    let fewer = generate(&campaign.plan(), &[], false).unwrap();
    assert_eq!((fewer.files, fewer.written), (708 - 336 - 12, 0));
    assert_eq!(fewer.removed.len(), 336 + 12);
    assert_eq!(job_files(&campaign).len(), fewer.files);
    let left: Vec<_> = fs::read_dir(campaign.path().join("0002-iobatch"))
        .unwrap()
        .collect();
    assert_eq!(
        left.len(),
        1,
        "empty folders are gone, the one with notes stays"
    );
    let gone = clean(&campaign.path(), &[]).unwrap();
    assert_eq!(gone.removed.len(), fewer.files);
    assert!(job_files(&campaign).is_empty());
    assert!(!campaign.path().join(GENERATED).exists());
    assert!(!campaign.path().join("0001-basic-tests").exists());
}

#[test]
fn a_part_leaves_the_others_alone() {
    let campaign = Campaign::new("debug-quick");
    generate(&campaign.plan(), &[], false).unwrap();
    campaign.change(
        ".config",
        "CONFIG_DUT_TEST_MAX_IODEPTH=\"4096\"",
        "CONFIG_DUT_TEST_MAX_IODEPTH=\"64\"",
    );
    let only = [Only::new("0001-basic-tests/0004-randread")];
    let plan = campaign
        .try_plan(&["0001-basic-tests/0004-randread"])
        .unwrap();
    let done = generate(&plan, &only, false).unwrap();
    assert_eq!((done.files, done.removed.len()), (7, 6));
    assert_eq!(job_files(&campaign).len(), 84 - 6);
    let done = generate(&campaign.plan(), &[], false).unwrap();
    assert_eq!((done.files, done.removed.len()), (48, 30));
}

#[test]
fn what_was_written_by_hand_is_not_overwritten() {
    let campaign = Campaign::new("debug-quick");
    generate(&campaign.plan(), &[], false).unwrap();
    let file = "0001-basic-tests/0004-randread/0003-bs4k-1j-4qd-randread.ini";
    campaign.change(file, "direct=1", "direct=0");
    campaign.change(
        ".config",
        "CONFIG_DUT_BLOCKSIZE=\"4k\"",
        "CONFIG_DUT_BLOCKSIZE=\"8k\"",
    );
    // It is not asked for any more: it stays, and is told.
    let done = generate(&campaign.plan(), &[], false).unwrap();
    assert_eq!(done.kept, [campaign.path().join(file)]);
    assert!(campaign.read(file).contains("direct=0"));
    // It is asked for again: nothing is written at all.
    campaign.change(
        ".config",
        "CONFIG_DUT_BLOCKSIZE=\"8k\"",
        "CONFIG_DUT_BLOCKSIZE=\"4k\"",
    );
    let before = job_files(&campaign);
    let refused = generate(&campaign.plan(), &[], false).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("0003-bs4k-1j-4qd-randread.ini"),
        "{refused}"
    );
    assert_eq!(job_files(&campaign), before);
    generate(&campaign.plan(), &[], true).unwrap();
    assert!(!campaign.read(file).contains("direct=0"));
}

/// The list names old and new files while they change.
#[test]
fn a_generation_that_was_cut_short_is_gone_on_with() {
    let campaign = Campaign::new("debug-quick");
    generate(&campaign.plan(), &[], false).unwrap();
    let old = campaign.read(GENERATED);
    campaign.change(
        ".config",
        "CONFIG_DUT_IOENGINE=\"libaio\"",
        "CONFIG_DUT_IOENGINE=\"psync\"",
    );
    generate(&campaign.plan(), &[], false).unwrap();
    // As a kill would leave it: half of the files new, the list with both.
    let new = campaign.read(GENERATED);
    let both = format!("{new}{}", old.split_once('\n').unwrap().1);
    campaign.write(GENERATED, &both);
    campaign.change(
        ".config",
        "CONFIG_DUT_IOENGINE=\"psync\"",
        "CONFIG_DUT_IOENGINE=\"mmap\"",
    );
    let done = generate(&campaign.plan(), &[], false).unwrap();
    assert_eq!(done.written, 84);
    assert_eq!(campaign.read(GENERATED).lines().count(), 85);
}

#[test]
fn a_check_finds_missing_old_and_wrong_files() {
    let campaign = Campaign::new("debug-quick");
    let messages = |campaign: &Campaign| {
        let report = check(&campaign.plan(), &[], None).unwrap();
        assert!(!report.dut_there);
        let told = report.problems.iter().map(|problem| {
            let message = &problem.diagnostic.message;
            format!("{} {message}", problem.files)
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(
        messages(&campaign),
        ["84 is missing: `fathom gen` makes it"]
    );
    generate(&campaign.plan(), &[], false).unwrap();
    assert!(messages(&campaign).is_empty());
    // A mistake in a template comes with every file that is made of it, once.
    campaign.change(
        "templates/performance.fio",
        "direct=1",
        "direct=1\nrefil_buffers",
    );
    generate(&campaign.plan(), &[], false).unwrap();
    let told = messages(&campaign);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("78 unknown option refil_buffers"),
        "{told:?}"
    );
    campaign.change("templates/performance.fio", "\nrefil_buffers", "");
    campaign.change(
        ".config",
        "CONFIG_PROFILE_SEQREAD=y",
        "# CONFIG_PROFILE_SEQREAD is not set",
    );
    let told = messages(&campaign);
    assert!(
        told.iter()
            .any(|told| told.starts_with("65 is not what the configuration gives")),
        "{told:?}"
    );
    assert!(
        told.iter().any(|told| told.starts_with("13 is left over")),
        "{told:?}"
    );
}

#[test]
fn fio_takes_the_files_and_says_which_it_does_not() {
    let Ok(fio) = Program::find(None) else {
        return fathom_testkit::skip("fio_takes_the_files", "fio is not installed");
    };
    let campaign = Campaign::new("debug-quick");
    generate(&campaign.plan(), &[], false).unwrap();
    let report = check(&campaign.plan(), &[], Some(&fio)).unwrap();
    assert_eq!(report.problems, []);
    let file = "0001-basic-tests/0004-randread/0003-bs4k-1j-4qd-randread.ini";
    campaign.change(file, "norandommap", "no_such_option=1");
    let report = check(&campaign.plan(), &[], Some(&fio)).unwrap();
    let by_fio: Vec<&Path> = report
        .problems
        .iter()
        .filter(|problem| problem.diagnostic.message.starts_with("fio: "))
        .map(|problem| &*problem.diagnostic.path)
        .collect();
    assert_eq!(by_fio, [campaign.path().join(file)]);
}
