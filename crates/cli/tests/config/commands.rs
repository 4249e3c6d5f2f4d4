//! The commands without the menu.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::support::Campaign;

#[test]
fn a_folder_without_a_campaign_is_told_what_to_do() {
    let campaign = Campaign::new();
    let empty = tempfile::tempdir().unwrap();
    let at = empty.path().to_str().unwrap();
    let (code, said) = campaign.fails(&["-C", at, "show"]);
    assert_eq!(code, 5);
    assert!(said.contains(at) && said.contains("fathom init"), "{said}");
    // And from elsewhere the campaign is found.
    let here = campaign.path().to_str().unwrap().to_owned();
    let mut command = campaign.command(&["get", "DUT_BLOCKSIZE", "-C", &here]);
    let output = command.current_dir(empty.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4k\n");
}

#[test]
fn a_mistake_in_the_tree_is_told_with_its_place() {
    let campaign = Campaign::new();
    campaign.write("Kconfig", "config A\n\tbool \"A\"\nsource \"gone\"\n");
    let (code, said) = campaign.fails(&["show"]);
    assert_eq!(code, 3);
    assert!(
        said.contains("Kconfig:3:") && said.contains("gone"),
        "{said}"
    );
}

#[test]
fn set_says_what_changed_and_what_follows() {
    let campaign = Campaign::new();
    let values = ["PURGE_SES_2=y", "CONFIG_DUT_RUNTIME=\"30s\"", "REPEAT=2"];
    let said = campaign.says(&["set", values[0], values[1], values[2]]);
    let expected = "\
PURGE_SES_2: n → y
DUT_RUNTIME: \"4m\" → \"30s\"
REPEAT: 1 → 2
in consequence:
  PURGE_SES_1: y → n
  REPEAT_INTERLEAVED: y (new)
  REPEAT_IN_A_ROW: n (new)
.config written
";
    assert_eq!(said, expected);
    assert_eq!(
        campaign.says(&["get", "DUT_RUNTIME", "PURGE_SES_1"]),
        "30s\nn\n"
    );
    assert_eq!(
        campaign.says(&["set", "REPEAT=2"]),
        ".config is as it was\n"
    );
    let change = campaign.json(&["set", "REPEAT=1"]);
    assert_eq!(change["schema"], "fathom.config-change/1");
    assert_eq!(change["written"], true);
    assert_eq!(change["changes"][0]["name"], "REPEAT");
    assert_eq!(change["changes"][0]["asked"], true);
    assert_eq!(change["changes"][1]["to"], serde_json::Value::Null);
}

#[test]
fn set_takes_values_in_any_order() {
    let campaign = Campaign::new();
    campaign.says(&["set", "DEBUG_QUICK_DEFAULTS=y", "DEBUG=y"]);
    assert_eq!(campaign.says(&["get", "DUT_RUNTIME"]), "1s\n");
}

#[test]
fn set_refuses_with_the_reason_and_writes_nothing() {
    let campaign = Campaign::new();
    campaign.says(&["olddefconfig"]);
    let before = campaign.file(".config");
    for (arg, reason) in [
        (
            "SNIA_IOPS_JOBS=8",
            "SNIA_IOPS_JOBS cannot be set: it needs SNIA_IOPS (now n) and SNIA_TESTS (now n)",
        ),
        ("REPEAT=0", "REPEAT=0 is not in the range 1 to 1000"),
        ("REPEAT=many", "\"many\" is no value for REPEAT, an int"),
        ("PURGING=maybe", "\"maybe\" is no value for PURGING, a bool"),
        (
            "PURGE_SES_1=n",
            "pick another of it: PURGE_SES_0, PURGE_SES_2",
        ),
        ("SELECT_PURGE_SES=n", "it has no prompt"),
        ("DUT_RUNTME=1s", "did you mean DUT_RUNTIME?"),
    ] {
        let (code, said) = campaign.fails(&["set", "DUT_BLOCKSIZE=8k", arg]);
        assert_eq!(code, 3, "{arg}: {said}");
        assert!(said.contains(reason), "{arg}: {said}");
    }
    assert_eq!(campaign.fails(&["set", "REPEAT"]).0, 2);
    assert_eq!(campaign.file(".config"), before);
}

#[test]
fn set_says_which_values_stay_although_their_default_changed() {
    let campaign = Campaign::new();
    campaign.says(&["olddefconfig"]);
    let output = campaign.config(&["set", "ENTERPRISE_SSD_TESTING=n"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("DUT_IOSIZE stays \"100%\"; its default is now \"75%\""),
        "{said}"
    );
    assert!(
        said.contains("fathom config unset PRECONDITION_IODEPTH PRECONDITION_NUMJOBS DUT_IOSIZE"),
        "{said}"
    );
    let said = campaign.says(&["unset", "DUT_IOSIZE"]);
    assert!(
        said.starts_with("DUT_IOSIZE: \"100%\" → \"75%\"\n"),
        "{said}"
    );
}

#[test]
fn the_old_config_is_kept_and_a_write_is_whole() {
    let campaign = Campaign::new();
    campaign.says(&["olddefconfig"]);
    let first = campaign.file(".config");
    fs::set_permissions(
        campaign.path().join(".config"),
        fs::Permissions::from_mode(0o640),
    )
    .unwrap();
    campaign.says(&["set", "REPEAT=3"]);
    assert_eq!(campaign.file(".config.old"), first);
    assert!(campaign.file(".config").contains("CONFIG_REPEAT=3\n"));
    let mode = fs::metadata(campaign.path().join(".config"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640, "the permissions are those of before");
    // Without a change nothing is written, .config.old included.
    campaign.says(&["olddefconfig"]);
    assert_eq!(campaign.file(".config.old"), first);
    campaign.says(&["allnoconfig"]);
    assert_eq!(
        campaign.names(),
        [".config", ".config.old", "Kconfig", "kconfig"]
    );
    // A link stays one.
    fs::rename(
        campaign.path().join(".config"),
        campaign.path().join("real"),
    )
    .unwrap();
    std::os::unix::fs::symlink("real", campaign.path().join(".config")).unwrap();
    campaign.says(&["set", "REPEAT=4"]);
    assert!(
        fs::symlink_metadata(campaign.path().join(".config"))
            .unwrap()
            .is_symlink()
    );
    assert!(campaign.file("real").contains("CONFIG_REPEAT=4\n"));
}

#[test]
fn a_folder_that_cannot_be_written_keeps_what_it_has() {
    let campaign = Campaign::new();
    campaign.says(&["olddefconfig"]);
    let before = campaign.file(".config");
    // A folder in the way of the old file: root may write everywhere else.
    fs::create_dir_all(campaign.path().join(".config.old/x")).unwrap();
    let (code, said) = campaign.fails(&["set", "REPEAT=3"]);
    assert_eq!(code, 1);
    assert!(said.contains("cannot write .config"), "{said}");
    assert_eq!(campaign.file(".config"), before);
    assert_eq!(campaign.names().len(), 4, "nothing is left over");
}

#[test]
fn bad_lines_are_errors_and_unknown_symbols_are_warnings_with_their_lines() {
    let campaign = Campaign::new();
    campaign.write(
        ".config",
        "CONFIG_REPEAT=3\nCONFIG_OF_TOMORROW=y\n# CONFIG_GONE is not set\n",
    );
    let output = campaign.config(&["olddefconfig"]);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("warning: .config:2:1: OF_TOMORROW is not defined"),
        "{said}"
    );
    assert!(
        said.contains("warning: .config:3:1: GONE is not defined"),
        "{said}"
    );
    assert!(
        campaign.file(".config.old").contains("OF_TOMORROW"),
        "never lost"
    );
    campaign.write(
        ".config",
        "CONFIG_REPEAT=3\n\nrubbish\nCONFIG_PURGING=perhaps\n",
    );
    let (code, said) = campaign.fails(&["olddefconfig"]);
    assert_eq!(code, 3);
    assert!(
        said.contains(".config:3:1: neither a value nor a comment: rubbish"),
        "{said}"
    );
    assert!(
        said.contains(".config:4:1: perhaps is no value for PURGING, a bool"),
        "{said}"
    );
    assert!(
        campaign.file(".config").contains("rubbish"),
        "it was not touched"
    );
    // What replaces the file need not read it.
    campaign.says(&["alldefconfig"]);
    assert!(!campaign.file(".config").contains("rubbish"));
}

#[test]
fn the_environment_names_the_device() {
    let campaign = Campaign::new();
    let mut command = campaign.command(&["olddefconfig"]);
    assert!(
        command
            .env("DEV", "/dev/sdz")
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!(campaign.says(&["get", "DUT_FILENAME"]), "/dev/sdz\n");
}

#[test]
fn show_lists_what_can_be_set_and_marks_what_differs() {
    let campaign = Campaign::new();
    campaign.says(&["set", "DUT_RUNTIME=30s"]);
    let said = campaign.says(&["show"]);
    assert!(said.contains("Device Under Test configuration\n"), "{said}");
    assert!(said.contains("* DUT_RUNTIME"), "{said}");
    assert!(said.contains("  DUT_BLOCKSIZE"), "{said}");
    assert!(!said.contains("SNIA_IOPS_JOBS"), "it cannot be set");
    assert!(campaign.says(&["show", "--all"]).contains("SNIA_IOPS_JOBS"));
    assert_eq!(
        campaign.says(&["show", "--changed"]),
        "Device Under Test configuration\n* DUT_RUNTIME  \"30s\"  Runtime of a point\n"
    );
    let shown = campaign.json(&["show", "--changed"]);
    let symbol = &shown["symbols"][0];
    assert_eq!(symbol["name"], "DUT_RUNTIME");
    assert_eq!(symbol["value"], "30s");
    assert_eq!(symbol["type"], "string");
    assert_eq!(symbol["menu"][0], "Device Under Test configuration");
    assert_eq!(shown["symbols"].as_array().unwrap().len(), 1);
}

#[test]
fn explain_and_search_find_and_say_why() {
    let campaign = Campaign::new();
    let said = campaign.says(&["explain", "CONFIG_IODEPTH_BATCH"]);
    assert!(said.contains("DUT_IODEPTH_EXTRA_PARAMS (now n)"), "{said}");
    assert!(said.contains("DUT_NUMJOBS_RANGE (now y)"), "{said}");
    assert!(said.contains("kconfig/performance.kconfig, line"), "{said}");
    let member = campaign.says(&["explain", "PURGE_SES_2"]);
    assert!(
        member.contains("PURGING_NVME (now y)") && !member.contains('<'),
        "{member}"
    );
    let found = campaign.json(&["search", "runtime"]);
    let names: Vec<&str> = found["symbols"]
        .as_array()
        .unwrap()
        .iter()
        .map(|symbol| symbol["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"DUT_RUNTIME"), "{names:?}");
    assert_eq!(campaign.fails(&["search", "no such thing at all"]).0, 1);
}

#[test]
fn oldconfig_asks_only_for_what_is_new_also_from_a_pipe() {
    let campaign = Campaign::new();
    campaign.says(&["olddefconfig"]);
    let all = campaign.file(".config");
    let without: String = all
        .lines()
        .filter(|line| !line.contains("CONFIG_REPEAT=") && !line.contains("GRAPHS_PNG"))
        .map(|line| format!("{line}\n"))
        .collect();
    campaign.write(".config", &without);
    let listed = campaign.says(&["listnewconfig"]);
    assert_eq!(listed, "CONFIG_REPEAT=1\nCONFIG_GRAPHS_PNG=n\n");
    // A wrong answer and a question first; then one answer asks for more.
    let output = campaign.answer(&["oldconfig"], "0\n?\n5\nREPEAT_IN_A_ROW\ny\n");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("0 is not in the range 1 to 1000"), "{said}");
    assert!(said.contains("Interleaved (REPEAT_INTERLEAVED)"), "{said}");
    assert!(!said.contains("DUT_RUNTIME"), "{said}");
    assert_eq!(
        campaign.says(&["get", "REPEAT", "REPEAT_IN_A_ROW", "GRAPHS_PNG"]),
        "5\ny\ny\n"
    );
    // Too few answers: nothing is written.
    campaign.write(".config", &without);
    let output = campaign.answer(&["oldconfig"], "5\n");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(campaign.file(".config"), without);
}

#[test]
fn defconfigs_of_the_folder_come_before_the_shipped_ones() {
    let campaign = Campaign::new();
    let listed = campaign.says(&["defconfig"]);
    assert!(
        listed.contains("survey-10min      Ten minutes of reads"),
        "{listed}"
    );
    fs::create_dir(campaign.path().join("defconfigs")).unwrap();
    campaign.write("defconfigs/ours", "# Our drives\nCONFIG_REPEAT=7\n");
    campaign.write("defconfigs/survey-10min", "CONFIG_REPEAT=8\n");
    let listed = campaign.says(&["defconfig"]);
    assert!(listed.contains("ours              Our drives"), "{listed}");
    assert!(!listed.contains("Ten minutes"), "{listed}");
    for (name, repeat) in [
        ("ours", "7\n"),
        ("survey-10min", "8\n"),
        ("all-tests", "1\n"),
    ] {
        campaign.says(&["defconfig", name]);
        assert_eq!(campaign.says(&["get", "REPEAT"]), repeat);
    }
    let (code, said) = campaign.fails(&["defconfig", "none"]);
    assert_eq!(code, 3);
    assert!(said.contains("debug-quick"), "{said}");
    campaign.write("defconfigs/wrong", "CONFIG_REPEAT=x\n");
    let (code, said) = campaign.fails(&["defconfig", "wrong"]);
    assert_eq!(code, 3);
    assert!(said.contains("defconfigs/wrong:1:1"), "{said}");
}

#[test]
fn random_values_follow_from_their_seed() {
    let campaign = Campaign::new();
    campaign.says(&["randconfig", "--seed", "7"]);
    let first = campaign.file(".config");
    campaign.says(&["randconfig", "--seed", "8"]);
    assert_ne!(campaign.file(".config"), first);
    campaign.says(&["randconfig", "--seed", "7"]);
    assert_eq!(campaign.file(".config"), first);
    let output = campaign.config(&["randconfig"]);
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("seed "));
}

#[test]
fn without_a_terminal_and_a_command_it_says_what_to_do() {
    let campaign = Campaign::new();
    let (code, said) = campaign.fails(&[]);
    assert_eq!(code, 2);
    assert!(
        said.contains("terminal") && said.contains("fathom config --help"),
        "{said}"
    );
}
