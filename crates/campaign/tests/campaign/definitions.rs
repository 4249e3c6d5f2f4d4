//! Tests, profiles and templates of the user's own, and what is wrong with them.

use super::Campaign;

/// The one of docs/CAMPAIGNS.md, step by step.
const BLOCK_SIZES: &str = r#"format = "fathom.test/1"
about = "block size"
when = "BLOCK_SIZES"
template = "performance.fio"
profiles = ["randread", "randwrite"]
path = "{{ profile }}/{{ n }}-bs{{ bs }}-{{ numjobs }}j-{{ iodepth }}qd-{{ rw }}"

[[axes]]
option = "bs"
from = "512"
to = "1M"

[options]
numjobs = 4
iodepth = 32
"#;

const SYMBOL: &str =
    "config BLOCK_SIZES\n\tbool \"0101: block size\"\n\thelp\n\t  Random I/O over block sizes.\n";

fn with_block_sizes() -> Campaign {
    let campaign = Campaign::new("survey-10min");
    campaign.write("tests/0101-block-size.toml", BLOCK_SIZES);
    campaign.write("tests/0101-block-size.kconfig", SYMBOL);
    campaign
}

#[test]
fn a_test_of_the_users_own_is_configured_and_planned() {
    let campaign = with_block_sizes();
    assert_eq!(campaign.plan().steps.len(), 18);
    let text = campaign.read(".config");
    let text = text.replace("# CONFIG_GUARD is not set", "CONFIG_GUARD=y");
    campaign.write(".config", &format!("{text}CONFIG_BLOCK_SIZES=y\n"));
    let plan = campaign.try_plan(&["0101-block-size"]).unwrap();
    let names: Vec<&str> = plan
        .steps
        .iter()
        .map(|step| step.job_file.to_str().unwrap())
        .collect();
    assert_eq!(names.len(), 12);
    assert_eq!(
        names[0],
        "0101-block-size/0004-randread/0001-bs512-4j-32qd-randread.ini"
    );
    assert_eq!(
        names[11],
        "0101-block-size/0004-randread/0012-bs1M-4j-32qd-randread.ini"
    );
    let point = &plan.steps[1].point;
    assert_eq!((&*point.x, point.x_value()), ("bs", Some(1024)));
    assert!(plan.steps[1].guarded);
    insta::assert_snapshot!("block_size", plan.steps[1].job_text);
}

#[test]
fn lists_flags_and_options_for_one_profile() {
    let campaign = Campaign::new("survey-10min");
    campaign.write(
        "tests/0102-mixes.toml",
        r#"format = "fathom.test/1"
template = "performance.fio"
phase = "sequential"
profiles = ["randread"]
path = "{{ rw }}/{{ n }}-{{ rwmixread }}-{{ iodepth }}"
x = "rwmixread"

[[axes]]
option = "rwmixread"
values = "100, 70,0"

[[axes]]
option = "iodepth"
values = [4, 1]

[options]
bs = "{{ DUT_BLOCKSIZE }}"
numjobs = 1
rw = "randrw"
randrepeat = false
serialize_overlap = true

[for.randread]
numjobs = "{{ iodepth }}"
"#,
    );
    let plan = campaign.try_plan(&["0102-mixes"]).unwrap();
    let ids: Vec<&str> = plan.steps.iter().map(|step| &*step.point.id).collect();
    assert_eq!(
        ids,
        [
            "0102-mixes/randrw/0001-100-4",
            "0102-mixes/randrw/0002-100-1",
            "0102-mixes/randrw/0003-70-4",
            "0102-mixes/randrw/0004-70-1",
            "0102-mixes/randrw/0005-0-4",
            "0102-mixes/randrw/0006-0-1",
        ]
    );
    insta::assert_snapshot!("mixes", plan.steps[2].job_text);
    assert_eq!(plan.steps[2].point.settings["serialize_overlap"], "1");
}

const TEST: &str = "tests/0101-block-size.toml";
const PROFILE: &str = "profiles/0004-randread.toml";
const TEMPLATE: &str = "templates/performance.fio";

/// Each mistake: in which file, what is changed into what, and what is said.
const MISTAKES: &[(&str, &str, &str, &str)] = &[
    (
        TEST,
        "about =",
        "abuot =",
        "tests/0101-block-size.toml:2: unknown field `abuot`",
    ),
    (
        TEST,
        "= \"block size\"",
        "= block size",
        "tests/0101-block-size.toml:2: ",
    ),
    (
        TEST,
        "test/1",
        "test/2",
        "toml:1: the format is \"fathom.test/2\"; this Fathom reads",
    ),
    (
        TEST,
        "when = \"BLOCK_SIZES\"",
        "when = \"BLOK_SIZES\"",
        "toml:3: BLOK_SIZES: BLOK_SIZES is not defined; did you mean BLOCK_SIZES?",
    ),
    (
        TEST,
        "when = \"BLOCK_SIZES\"",
        "when = \"BLOCK_SIZES &&\"",
        "toml:3: BLOCK_SIZES &&: expected a symbol",
    ),
    (
        TEST,
        "performance.fio",
        "performence.fio",
        "toml:4: there is no templates/performence.fio; did you mean performance.fio?",
    ),
    (
        TEST,
        "\"randwrite\"]",
        "\"randwrit\"]",
        "toml:5: there is no profile randwrit; did you mean randwrite?",
    ),
    (
        TEST,
        "{{ bs }}-",
        "{{ sb }}-",
        "toml:6: {{ sb }} is no option of the test or its profiles, and no word; did you mean bs?",
    ),
    (
        TEST,
        "{{ bs }}-",
        "{{ bs -",
        "toml:6: {{ bs -{{ numjobs }} holds no name",
    ),
    (
        TEST,
        "}}qd-{{ rw }}",
        "}}qd-{{ rw",
        "toml:6: {{ without its }}",
    ),
    (
        TEST,
        "{{ n }}-bs{{ bs }}",
        "all",
        "toml:6: two points have the path",
    ),
    (
        TEST,
        "/{{ n }}",
        "-{{ n }}",
        "toml:6: a path has a folder (the series) and a file",
    ),
    (
        TEST,
        "option = \"bs\"",
        "option = \"blocksiz\"",
        "toml:9: fio has no option blocksiz; did you mean blocksize?",
    ),
    (
        TEST,
        "from = \"512\"\n",
        "",
        "toml:9: an axis has either from and to (doubling), or values",
    ),
    (
        TEST,
        "\"512\"",
        "\"some\"",
        "toml:10: \"some\" is no number above 0",
    ),
    (
        TEST,
        "\"1M\"",
        "\"256\"",
        "toml:11: the axis ends with 256, before it begins with 512",
    ),
    (
        TEST,
        "to = \"1M\"",
        "to = \"{{ DUT_MAX }}\"",
        "toml:11: Kconfig defines no symbol DUT_MAX",
    ),
    (
        TEST,
        "to = \"1M\"",
        "to = \"{{ DUT_IODEPTH_BATCH_SUBMIT_MAX }}\"",
        "toml:11: DUT_IODEPTH_BATCH_SUBMIT_MAX has no value: it depends on DUT_IODEPTH_BATCH_SUBMIT_RANGE && DUT_IODEPTH_EXTRA_PARAMS",
    ),
    (
        TEST,
        "numjobs = 4",
        "numjbos = 4",
        "toml:14: fio has no option numjbos; did you mean numjobs?",
    ),
    (TEST, "numjobs = 4", "numjobs = 4.5", "toml:14: "),
    (
        TEST,
        "numjobs = 4",
        "direct = 0",
        "templates/performance.fio:10: sets direct itself, and so does tests/0101-block-size.toml:14",
    ),
    (
        TEST,
        "numjobs = 4\n",
        "",
        "templates/performance.fio:5: {{ numjobs }} is no option",
    ),
    (
        TEST,
        "iodepth = 32",
        "iodepth = 32\nbs = 4",
        "toml:16: bs is one of the axes",
    ),
    (
        TEST,
        "iodepth = 32",
        "iodepth = \"1/2\"",
        "toml:6: \"0001-bs512-4j-1/2qd-randread\" cannot be the name of a file",
    ),
    (
        TEST,
        "iodepth = 32",
        "iodepth = 32\n\n[for.randrad]\nbs = 1",
        "toml:17: there is no profile randrad; did you mean randread?",
    ),
    (
        TEST,
        "[[axes]]",
        "x = \"iodepth\"\n[[axes]]",
        "toml:8: x is iodepth, which is not one of the axes",
    ),
    (
        PROFILE,
        "phase = \"random\"",
        "phase = \"rnd\"",
        "profiles/0004-randread.toml:4: unknown variant `rnd`",
    ),
    (
        PROFILE,
        "phase = \"random\"\n",
        "",
        "profiles/0004-randread.toml:1: missing field `phase`",
    ),
    (
        PROFILE,
        "\"PROFILE_RANDREAD\"",
        "\"PROFILE_READ\"",
        "profiles/0004-randread.toml:3: PROFILE_READ: PROFILE_READ is not defined",
    ),
    (
        TEMPLATE,
        "iodepth={{ iodepth }}",
        "iodepth={{ iodepht }}",
        "performance.fio:17: {{ iodepht }} is no option of the test or its profiles, and no word; did you mean iodepth?",
    ),
    (
        TEMPLATE,
        "iodepth={{ iodepth }}",
        "iodepth={{ numjobs }}",
        "performance.fio:17: sets iodepth itself, and so does tests/0001-basic-tests.toml:10",
    ),
    (
        TEMPLATE,
        "{{ DUT_IOSIZE }}",
        "{{ DUT_SIZE }}",
        "templates/performance.fio:16: Kconfig defines no symbol DUT_SIZE; did you mean DUT_IOSIZE?",
    ),
    (
        TEMPLATE,
        "{{ profile.options }}\n",
        "",
        "templates/performance.fio has no place for rw",
    ),
    (
        TEMPLATE,
        "[{{ rw }}]",
        "[{{ rw }]",
        "templates/performance.fio:26: {{ without its }}",
    ),
    (
        TEMPLATE,
        "ramp_time=",
        "x={{ test.options }}",
        "stands for lines: it needs a line of its own",
    ),
    (
        TEMPLATE,
        "name={{ bs }}",
        "name={{ n }}",
        "templates/performance.fio:5: {{ n }} counts files and folders",
    ),
];

#[test]
fn every_mistake_is_told_with_file_and_line() {
    let mut wrong = Vec::new();
    for (file, from, to, expected) in MISTAKES {
        let campaign = with_block_sizes();
        let text = campaign.read(".config");
        campaign.write(".config", &format!("{text}CONFIG_BLOCK_SIZES=y\n"));
        campaign.change(file, from, to);
        let fault = campaign.fault();
        if !fault.contains(expected) {
            wrong.push(format!("{from} → {to}:\n{fault}\nnot: {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Also in what the configuration leaves out.
#[test]
fn all_mistakes_are_told_at_once() {
    let campaign = with_block_sizes();
    campaign.change("tests/0101-block-size.toml", "{{ bs }}", "{{ sb }}");
    campaign.change(
        "tests/0002-iobatch.toml",
        "DUT_NUMJOBS_MAX",
        "DUT_NUMJOBS_MOST",
    );
    let fault = campaign.fault();
    assert_eq!(fault.lines().count(), 2, "{fault}");
    campaign.change("tests/0101-block-size.toml", "numjobs = 4", "numjobs = [");
    campaign.change("tests/0002-iobatch.toml", "format = ", "fromat = ");
    let fault = campaign.fault();
    assert_eq!(fault.lines().count(), 2, "{fault}");
}

#[test]
fn endless_axes_are_refused() {
    let campaign = with_block_sizes();
    let text = campaign.read(".config");
    campaign.write(".config", &format!("{text}CONFIG_BLOCK_SIZES=y\n"));
    let many: Vec<String> = (1..400).map(|n| n.to_string()).collect();
    let list = format!("values = [{}]", many.join(", "));
    campaign.change(
        "tests/0101-block-size.toml",
        "from = \"512\"\nto = \"1M\"",
        &format!("{list}\n[[axes]]\noption = \"rate_iops\"\n{list}"),
    );
    let fault = campaign.fault();
    assert!(fault.contains("these axes make 159201 points"), "{fault}");
}

#[test]
fn an_empty_folder_of_tests_is_no_mistake() {
    let campaign = Campaign::new("survey-10min");
    std::fs::remove_dir_all(campaign.path().join("tests")).unwrap();
    assert!(campaign.plan().steps.is_empty());
}
