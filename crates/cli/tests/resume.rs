//! Runs of every command go on after a kill, put back what they switched, and keep to
//! what they were told.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fathom_testkit::{LoopDevice, ProgramUnderTest, await_that, require, signal};
use serde_json::Value;

const JOB: &str = "[a]\nrw=randread\nfilename=x\nsize=1g\nbs=4k\ntime_based\nruntime=3\n";

fn program() -> ProgramUnderTest {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.file("a.fio", JOB);
    program.file("b.fio", &JOB.replace("[a]", "[b]"));
    program
}

/// The lines of a record, also of its closed segments.
fn events(record: &Path) -> Vec<Value> {
    let mut show = Command::new(env!("CARGO_BIN_EXE_fathom"));
    let output = show
        .args(["show", "--events"])
        .arg(record)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The figures of each step that ended well, by its name.
fn figures(record: &Path) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    let (mut name, mut results) = (String::new(), Value::Null);
    for event in events(record) {
        match event["event"].as_str() {
            Some("step") => name = event["name"].as_str().unwrap().to_owned(),
            Some("finished") => results = event["results"]["jobs"].clone(),
            Some("step_ended") if event["outcome"] == "complete" => {
                all.push((name.clone(), results.take()));
            }
            _ => {}
        }
    }
    all
}

#[test]
fn a_command_is_undone_however_its_run_ends() {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    let study = |middle: &str| {
        let text = format!(
            "engine = \"native\"\n[[step]]\nname = \"switch\"\ncommand = \"touch on\"\nundo = \"rm on; echo x >> undone\"\n[[step]]\n{middle}\n"
        );
        program.file("study.toml", &text)
    };
    let undone =
        || fs::read_to_string(program.path().join("undone")).map_or(0, |text| text.len() / 2);
    let left = |list: &[&str]| {
        let output = program.good(&[&["restore", "--json"], list].concat());
        let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
        doc["left_behind"].as_array().unwrap().len()
    };
    // After a good end.
    study("command = \"test -e on\"");
    program.good(&["run", "study.toml", "-q"]);
    assert_eq!((undone(), left(&["--list"])), (1, 0));
    // After a failure.
    study("command = \"exit 3\"");
    let failed = program.run(&["run", "study.toml", "-q"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(
        said.contains("'exit 3' ended with exit status: 3"),
        "{said}"
    );
    assert_eq!((undone(), left(&["--list"])), (2, 0));
    // After a stop.
    study("command = \"touch begun; sleep 600\"");
    let begun = program.path().join("begun");
    let child = program.start(&["run", "study.toml", "-q"]);
    await_that("the command runs", || begun.exists());
    signal(&child, "-INT");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert_eq!((undone(), left(&["--list"])), (3, 0));
    // After a kill, by whoever comes next; not while it runs.
    fs::remove_file(&begun).unwrap();
    let mut child = program.start(&["run", "study.toml", "-q"]);
    await_that("the command runs", || begun.exists());
    let early = program.run(&["restore"]);
    assert_eq!(early.status.code(), Some(1), "{early:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((undone(), left(&["--list"])), (3, 1));
    assert_eq!(left(&[]), 1);
    assert_eq!((undone(), left(&["--list"])), (4, 0));
    end_sleepers(program.path());
}

/// The command of the run that was killed goes on.
fn end_sleepers(folder: &Path) {
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let cwd = fs::read_link(entry.path().join("cwd"));
        let pid = entry.file_name().to_string_lossy().parse::<u32>();
        if let (true, Ok(pid)) = (cwd.is_ok_and(|cwd| cwd == folder), pid) {
            let kill = Command::new("kill")
                .args(["-KILL", &pid.to_string()])
                .status();
            assert!(kill.unwrap().success());
        }
    }
}

#[test]
fn a_condition_that_does_not_hold_ends_with_seven() {
    let program = program();
    let study = |condition: &str| {
        let text =
            format!("engine = \"sim\"\nassert = [\"{condition}\"]\n[[step]]\njob = \"a.fio\"\n");
        program.file("study.toml", &text);
        program.run(&["run", "study.toml", "-q"])
    };
    assert_eq!(study("a.read.iops > 1").status.code(), Some(0));
    let failed = study("a.read.iops > 900M");
    assert_eq!(failed.status.code(), Some(7), "{failed:?}");
    let said = String::from_utf8_lossy(&failed.stdout);
    assert!(said.contains("does not hold"), "{said}");
    let planned = program.good(&["plan", "study.toml"]);
    let said = String::from_utf8_lossy(&planned.stderr);
    assert!(said.contains("it takes 3.0 s"), "{said}");
    let wrong = study("b.read.iops > 1");
    assert_eq!(wrong.status.code(), Some(3), "{wrong:?}");
}

/// A drive is made ready, tested and measured in one record, as often as somebody wants;
/// every reader knows it.
#[test]
fn a_plan_file_composes_what_had_commands_of_its_own() {
    let program = program();
    let text = r#"
engine = "sim"
assert = ["a-1.read.iops > 1", "cold.write.iops > 1", "b.read.iops > 1"]
[target]
path = "/dev/nvme9n1"
[[step]]
for = { round = [1, 2] }
[[step.step]]
name = "ready-${round}"
precondition = "random"
no-purge = true
[[step.step]]
name = "a-${round}"
job = "a.fio"
[[step]]
for = { name = ["cold", "warm"] }
name = "${name}"
snia = "iops"
debug = true
no-purge = true
data-limit = 0.0001
max-rounds = 5
[[step]]
job = "b.fio"
"#;
    program.file("study.toml", text);
    // A test that does not attain steady state has a result all the same.
    program.good(&["run", "study.toml", "-q"]);
    let events = events(&program.records()[0]);
    let of = |event: &&Value| event["event"] == "stage";
    let stages = events
        .iter()
        .filter(of)
        .map(|stage| stage["stage"]["id"].as_str().unwrap());
    let stages: Vec<&str> = stages.collect();
    for stage in ["ready-1", "ready-2"].map(|step| format!("{step}/settle-rand")) {
        assert!(stages.contains(&stage.as_str()), "{stages:?}");
    }
    for stage in ["cold", "warm"].map(|step| format!("{step}/iops/round-01")) {
        assert!(stages.contains(&stage.as_str()), "{stages:?}");
    }
    let report = program.good(&["snia", "report"]);
    let said = String::from_utf8_lossy(&report.stdout);
    assert!(said.contains("snia.html"), "{said}");
    let shown = program.good(&["snia", "show"]);
    let said = String::from_utf8_lossy(&shown.stdout);
    for test in ["IOPS (cold) test", "IOPS (warm) test"] {
        assert!(said.contains(test), "{said}");
    }
}

/// A folder with a configured campaign of two points, which is measured on a device that
/// was made ready.
fn with_campaign() -> ProgramUnderTest {
    let program = program();
    program.good(&["init", "camp"]);
    program.good(&["config", "-C", "camp", "defconfig", "debug-quick"]);
    configure(
        &program,
        &["DUT_TEST_MAX_IODEPTH=2", "DUT_FILENAME=/dev/nvme9n1"],
    );
    program
}

fn configure(program: &ProgramUnderTest, settings: &[&str]) {
    program.good(&[&["config", "-C", "camp", "set"], settings].concat());
}

const CAMPAIGNS: &str = r#"engine = "sim"
[target]
path = "/dev/nvme9n1"
[[step]]
campaign = "camp"
only = ["*-randread"]
assert = ["read.iops > 1", "0001-basic-tests.read.p99 < 1s", "write.iops > 1"]
[[step]]
name = "again"
campaign = "camp"
only = ["*-randread"]
repeat = 2
order = "in-a-row"
"#;

/// The files below a folder with their texts, by their paths there.
fn texts(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let name = PathBuf::from(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => {
                let below = texts(&entry.path()).into_iter();
                all.extend(below.map(|(path, text)| (name.join(path), text)));
            }
            false => _ = all.insert(name, fs::read_to_string(entry.path()).unwrap()),
        }
    }
    all
}

#[test]
fn a_campaign_in_a_plan_file_measures_what_fathom_run_measures() {
    let program = with_campaign();
    let only = [
        "run",
        "-C",
        "camp",
        "--only",
        "*-randread",
        "--engine",
        "sim",
        "-q",
    ];
    program.good(&only);
    let of_run = program.path().join("camp/fathom-runs");
    let of_run = fs::read_dir(of_run)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    program.file("study.toml", CAMPAIGNS);
    let planned = program.good(&["plan", "study.toml"]);
    let said = String::from_utf8_lossy(&planned.stderr);
    assert!(said.contains("it takes more than 10.0 s"), "{said}");
    // What made the device ready is no result: nothing was written to be measured.
    let run = program.run(&["run", "study.toml", "-q"]);
    let said = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(7), "{said}");
    for line in [
        "camp: 0001-basic-tests.read.p99 < 1s holds",
        "camp: write.iops > 1 does not hold: no write figures were measured",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let record = program.records().pop().unwrap();
    let jobs = texts(&of_run.join("jobs"));
    assert_eq!(jobs.len(), 6, "{jobs:?}");
    for step in ["camp", "again"] {
        assert_eq!(texts(&record.join("jobs").join(step)), jobs, "{step}");
    }
    let points = |record: &Path| -> Vec<String> {
        let points = events(record).into_iter();
        let points = points.filter(|event| event["event"] == "step" && event["point"].is_object());
        let name = |event: Value| event["name"].as_str().unwrap().to_owned();
        points.map(name).collect()
    };
    let of_run = points(&of_run);
    assert_eq!(of_run.len(), 2, "{of_run:?}");
    let once = of_run.iter().map(|point| format!("camp/{point}"));
    let twice = of_run.iter().flat_map(|point| [point, point]);
    let all: Vec<String> = once.chain(twice.map(|it| format!("again/{it}"))).collect();
    assert_eq!(points(&record), all);
}

#[test]
fn a_campaign_that_has_changed_does_not_go_on_in_its_record() {
    let program = with_campaign();
    program.file("study.toml", CAMPAIGNS);
    assert_eq!(
        program.run(&["run", "study.toml", "-q"]).status.code(),
        Some(7)
    );
    configure(&program, &["DUT_RUNTIME=2s"]);
    let refused = program.run(&["resume", "-q"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(
        said.contains("study.toml:5:1: camp: the campaign in") && said.contains("has changed"),
        "{said}"
    );
}

#[test]
fn what_a_plan_file_cannot_keep_of_a_campaign_is_refused_with_its_place() {
    let program = with_campaign();
    let refused = |settings: &[&str], said: &[&str]| {
        configure(&program, settings);
        let output = program.run(&["run", "study.toml"]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{told}");
        for line in said {
            assert!(told.contains(line), "{told}");
        }
        assert!(program.records().is_empty());
    };
    program.file(
        "study.toml",
        &CAMPAIGNS.replacen("*-randread", "*-randreed", 1),
    );
    refused(
        &[
            "CAMPAIGN_TIMEOUT=8h",
            "MAX_WRITTEN=2T",
            "OVER_BUDGET_REFUSE=y",
        ],
        &[
            "study.toml:6:8: only: nothing in this campaign is called *-randreed",
            "study.toml:10:12: campaign: CAMPAIGN_TIMEOUT in ",
            "study.toml:10:12: campaign: MAX_WRITTEN in ",
            "study.toml:10:12: campaign: OVER_BUDGET_REFUSE in ",
        ],
    );
    let whole = ["CAMPAIGN_TIMEOUT=", "MAX_WRITTEN=", "OVER_BUDGET_CUT=y"];
    let engine = CAMPAIGNS.replacen("engine = \"sim\"\n", "", 1);
    program.file("study.toml", &engine);
    refused(
        &[&whole[..], &["ENGINE_NATIVE=y"]].concat(),
        &["study.toml:4:1: camp: ", "is configured with ENGINE_NATIVE"],
    );
    program.file("study.toml", &format!("hosts = [\"h\"]\n{CAMPAIGNS}"));
    refused(
        &["ENGINE_AUTO=y"],
        &["study.toml:6:1: this is no step on hosts"],
    );
    let parts = CAMPAIGNS.replacen("0001-basic-tests.", "0001-basic-test.", 1);
    program.file("study.toml", &parts);
    refused(
        &["ENGINE_AUTO=y"],
        &[
            "study.toml:7:29: assert: camp has no point or series 0001-basic-test; did you mean 0001-basic-tests?",
        ],
    );
}

#[test]
fn steps_that_a_plan_file_cannot_run_here_are_refused_before_anything_runs() {
    let program = program();
    for (step, why) in [
        ("quick = \".\"", "a simulated device has none"),
        ("prio = \"baseline\"", "a simulation has none"),
    ] {
        let text = format!(
            "engine = \"sim\"\n[target]\npath = \"/dev/nvme9n1\"\n[[step]]\njob = \"a.fio\"\n[[step]]\n{step}\n"
        );
        program.file("study.toml", &text);
        let refused = program.run(&["run", "study.toml"]);
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains(why), "{said}");
        assert!(program.records().is_empty());
    }
}

#[test]
fn a_soak_tells_each_period_and_whether_they_drift() {
    let program = program();
    let args = [
        "soak", "a.fio", "--hours", "4", "--engine", "sim", "--json", "-q",
    ];
    let doc: Value = serde_json::from_slice(&program.good(&args).stdout).unwrap();
    assert_eq!(doc["schema"], "fathom.soak/1");
    assert_eq!(doc["periods"].as_array().unwrap().len(), 4);
    assert_eq!(doc["drift"]["attained"], true);
    let table = program.good(&["resume", "-q"]);
    let said = String::from_utf8_lossy(&table.stdout);
    assert!(
        said.contains("IOPS over 4 periods: does not drift"),
        "{said}"
    );
}

#[test]
fn limits_end_a_run_between_its_steps_and_resume_goes_on() {
    let program = program();
    let args = [
        "job",
        "run",
        "a.fio",
        "b.fio",
        "--engine",
        "sim",
        "--max-time",
        "4s",
        "-q",
    ];
    let cut = program.run(&args);
    assert_eq!(cut.status.code(), Some(1), "{cut:?}");
    let said = String::from_utf8_lossy(&cut.stderr);
    assert!(
        said.contains("b would end after the time limit of 4.0 s"),
        "{said}"
    );
    let record = program.records()[0].clone();
    assert_eq!(figures(&record).len(), 1);
    let id = record.file_name().unwrap().to_str().unwrap().to_owned();
    program.good(&["resume", &id, "-q"]);
    let names: Vec<String> = figures(&record).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b"]);
    // Nothing is done twice.
    let again = program.good(&["resume", &id]);
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("Nothing is left to do"), "{said}");
    assert_eq!(figures(&record).len(), 2);
}

#[test]
fn a_run_that_is_not_there_is_missing() {
    let none = program().run(&["resume", "no-such-run"]);
    assert_eq!(none.status.code(), Some(5), "{none:?}");
}

const SIM: [&str; 4] = ["--engine", "sim", "--sim", "sim.toml"];
/// So small that its log is one file.
const DRIVE: &str = "format = \"fathom-sim-device\"\nversion = 1\ncapacity_gib = 3\n\
     bandwidth_mib = 3000\n[settle]\nfresh_percent = 150\nseconds = 4\n";

/// A run that ended well, taken back to the middle of its log: as a kill leaves it.
struct Killed {
    program: ProgramUnderTest,
    log: PathBuf,
    text: String,
}

impl Killed {
    fn new(program: ProgramUnderTest, args: &[&str], part: f64) -> Self {
        program.good(&[args, &["-q"]].concat());
        let record = program.records().remove(0);
        assert!(!record.join("events").exists(), "its log is closed");
        let log = record.join("events.jsonl");
        let text = fs::read_to_string(&log).unwrap();
        let cut = (text.len() as f64 * part) as usize;
        let text = text[..cut].to_owned();
        fs::write(&log, &text).unwrap();
        Self { program, log, text }
    }

    /// Of drives that are simulated.
    fn of(args: &[&str]) -> Self {
        let program = program();
        program.file("sim.toml", DRIVE);
        Self::new(program, &[args, &SIM].concat(), 0.5)
    }

    fn resume(&self, args: &[&str]) -> Output {
        let record = self.log.parent().unwrap().file_name().unwrap();
        let id = record.to_str().unwrap();
        self.program.run(&[&["resume", id][..], args].concat())
    }

    fn is_untouched(&self) -> bool {
        fs::read_to_string(&self.log).unwrap() == self.text
    }
}

const PROVISION: [&str; 2] = ["provision", "/dev/nvme9n1"];
const SNIA: [&str; 8] = [
    "snia",
    "iops",
    "/dev/nvme9n1",
    "--debug",
    "--blocks",
    "4k",
    "--mixes",
    "65/35,0/100",
];

#[test]
fn a_dry_run_of_resume_runs_nothing_of_any_kind() {
    let kinds: [&[&str]; 5] = [
        &PROVISION,
        &SNIA,
        &["job", "run", "a.fio", "b.fio"],
        &["soak", "a.fio", "--hours", "0.01", "--period", "12s"],
        &[
            "find", "a.fio", "--knee", "--to", "4", "--look", "6s", "--probe", "12s",
        ],
    ];
    for kind in kinds {
        let killed = Killed::of(kind);
        let shown = killed.resume(&["--dry-run"]);
        assert!(shown.status.success(), "{kind:?}: {shown:?}");
        assert!(killed.is_untouched(), "{kind:?}: {shown:?}");
    }
}

#[test]
fn limits_given_to_resume_hold_for_drives_too() {
    for kind in [&PROVISION[..], &SNIA] {
        let killed = Killed::of(kind);
        let stopped = killed.resume(&["--max-time", "5s", "--max-written", "1M"]);
        assert!(!stopped.status.success(), "{kind:?}: {stopped:?}");
        let log = fs::read_to_string(&killed.log).unwrap();
        let more = &log[killed.text.len().min(log.len())..];
        assert!(!more.contains("\"event\":\"sample\""), "{kind:?}: {more}");
    }
}

/// What a first start was told holds for the others, until they are told otherwise.
#[test]
fn the_most_bytes_are_those_of_all_starts() {
    let program = program();
    program.file("sim.toml", DRIVE);
    let limited = [&PROVISION[..], &SIM, &["--max-written", "1T", "-q"]].concat();
    assert_eq!(program.run(&limited).status.code(), Some(1));
    let stopped = program.run(&["resume", "-q"]);
    let said = String::from_utf8_lossy(&stopped.stdout);
    assert_eq!(stopped.status.code(), Some(1), "{stopped:?}");
    assert!(said.contains("than the 1 TiB that may be"), "{said}");

    // What is left of this test would fit, and the rest is written already.
    let killed = Killed::of(&SNIA);
    let stopped = killed.resume(&["-q", "--max-written", "200M"]);
    let said = String::from_utf8_lossy(&stopped.stderr);
    assert_eq!(stopped.status.code(), Some(4), "{said}");
    assert!(said.contains("in all its starts"), "{said}");
}

#[test]
fn what_a_run_does_not_take_is_refused_by_name() {
    let program = program();
    program.file(
        "study.toml",
        "engine = \"sim\"\n[[step]]\njob = \"a.fio\"\n",
    );
    let refused = |args: &[&str], option: &str| {
        let output = program.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(option), "{args:?}: {said}");
    };
    let of_campaigns: [&[&str]; 11] = [
        &["--repeat", "2"],
        &["--only", "x"],
        &["--order", "in-a-row"],
        &["--no-guard"],
        &["--interval", "1s"],
        &["--point-limit", "1s"],
        &["--retry-failed"],
        &["--over-budget", "cut"],
        &["--endurance-tbw", "1"],
        &["--var", "A=1"],
        &["-C", "."],
    ];
    for options in of_campaigns {
        refused(&[&["run", "study.toml"], options].concat(), options[0]);
    }
    refused(&["run", "study.toml", "--again"], "--again");
    refused(&["plan", "study.toml", "--repeat", "2"], "--repeat");
    assert!(program.records().is_empty());
    let killed = Killed::of(&["job", "run", "a.fio", "b.fio"]);
    for options in of_campaigns.iter().filter(|options| options[0] != "-C") {
        let output = killed.resume(options);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {output:?}");
        assert!(killed.is_untouched());
    }
}

#[test]
fn the_words_of_a_plan_file_hold_for_every_start() {
    let disk = require!(LoopDevice::new(1 << 20));
    let dev = disk.path().display();
    let program = program();
    let text = |destroy: &str| {
        let job = |name: &str| {
            format!(
                "[[step]]\nname = \"{name}\"\njob = \"\"\"\n[{name}]\nrw=write\nsize=1m\n\"\"\"\n"
            )
        };
        let (a, b) = (job("a"), job("b"));
        format!("engine = \"native\"\n{destroy}\n[target]\npath = \"{dev}\"\n{a}{b}")
    };
    program.file("study.toml", &text(""));
    let refused = program.run(&["run", "study.toml", "-q"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(!said.contains("CONFIG_"), "{said}");

    program.file("study.toml", &text(&format!("destroy = [\"{dev}=1MiB\"]")));
    let killed = Killed::new(program, &["run", "study.toml"], 0.6);
    let on = killed.resume(&["-q"]);
    assert!(on.status.success(), "{on:?}");
    assert!(!killed.is_untouched());
}

#[test]
fn options_of_a_record_that_cannot_be_read_are_not_ignored() {
    let killed = Killed::of(&["job", "run", "a.fio", "b.fio"]);
    let plan = killed.log.with_file_name("plan.jsonl");
    let text = fs::read_to_string(&plan).unwrap();
    fs::write(
        &plan,
        text.replace("\"kind\":\"job\"", "\"kind\":\"of_tomorrow\""),
    )
    .unwrap();
    let output = killed.resume(&["-q"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("of_tomorrow"), "{said}");
}

#[test]
fn a_fio_that_is_named_and_not_there_is_not_replaced_by_another_engine() {
    let program = program();
    let named = program.run(&["job", "run", "a.fio", "--fio", "/nope", "-q"]);
    let mut by_variable = program.command(&["job", "run", "a.fio", "-q"]);
    let by_variable = by_variable.env("FATHOM_FIO", "/nope").output().unwrap();
    let no_fio = program.run(&["job", "run", "a.fio", "--fio", "/bin/true", "-q"]);
    for output in [named, by_variable, no_fio] {
        assert_eq!(output.status.code(), Some(5), "{output:?}");
    }
    assert!(program.records().is_empty());
}

/// What its texts name stays what it was when the run began: once another file was
/// overwritten whose name stood in the same variable by then.
#[test]
fn a_variable_that_is_set_otherwise_by_now_leads_to_no_other_file() {
    const JOB: &str = "[w]\nrw=write\nfilename=${MYF}\nsize=64k\n";
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.file("file.fio", JOB);
    let study = format!(
        "engine = \"native\"\n\
         [[step]]\nname = \"on\"\ncommand = \"echo $MYF >> done\"\nundo = \"echo $MYF >> undone\"\n\
         [[step]]\nname = \"wait\"\ncommand = \"touch reached; test -e go || sleep 600\"\n\
         [[step]]\nname = \"text\"\njob = \"\"\"\n{JOB}exec_postrun=echo $MYF >> ran\n\"\"\"\n\
         [[step]]\nname = \"file\"\njob = \"file.fio\"\n"
    );
    program.file("study.toml", &study);
    let precious = program.file("precious", "precious");
    let at = |name: &str| program.path().join(name);
    let begin = || {
        let mut command = program.command(&["run", "study.toml", "-q"]);
        let mut child = command.env("MYF", "scratch").spawn().unwrap();
        await_that("the run waits", || at("reached").exists());
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(at("reached")).unwrap();
        program.records().pop().unwrap()
    };
    let go_on = |args: &[&str]| {
        let elsewhere = tempfile::tempdir().unwrap();
        let mut command = program.command(args);
        command.current_dir(elsewhere.path()).env("MYF", "precious");
        command.output().unwrap()
    };
    let record = begin();
    program.file("go", "");
    let resumed = go_on(&["resume", record.to_str().unwrap()]);
    let told = String::from_utf8_lossy(&resumed.stderr);
    assert!(resumed.status.success(), "{resumed:?}");
    assert!(told.contains("set now: MYF"), "{told}");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert_eq!(fs::metadata(at("scratch")).unwrap().len(), 64 << 10);
    let lines = |name: &str| fs::read_to_string(at(name)).unwrap();
    assert_eq!(lines("ran"), "scratch\n");
    assert_eq!(lines("undone"), "scratch\n");
    // By whoever puts it back.
    fs::remove_file(at("go")).unwrap();
    begin();
    assert!(go_on(&["restore"]).status.success());
    assert_eq!(lines("undone"), "scratch\nscratch\n");
}

/// A link that another program has moved meanwhile.
#[test]
fn a_target_that_has_changed_since_the_start_is_refused() {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    let jobs = "[global]\nioengine=psync\nrw=write\nfilename=link\nsize=64k\n[long]\nrate=1k\n[late]\nstonewall\n";
    program.file("a.fio", jobs);
    let study = "engine = \"native\"\n[[step]]\ncommand = \"touch reached; test -e go || sleep 600\"\n[[step]]\njob = \"a.fio\"\n";
    program.file("study.toml", study);
    let at = |name: &str| program.path().join(name);
    let lead_to = |name: &str| {
        let _ = fs::remove_file(at("link"));
        std::os::unix::fs::symlink(at(name), at("link")).unwrap();
    };
    program.file("scratch", "");
    let precious = program.file("precious", "precious");
    for (args, reached) in [
        (["job", "run", "a.fio", "--engine=native"], "scratch"),
        (["run", "study.toml", "-q", "--json"], "reached"),
    ] {
        program.file("scratch", "");
        lead_to("scratch");
        let mut child = program.start(&args);
        await_that("it has begun", || {
            fs::metadata(at(reached)).is_ok_and(|meta| reached == "reached" || meta.len() > 0)
        });
        child.kill().unwrap();
        child.wait().unwrap();
        lead_to("precious");
        program.file("go", "");
        let record = program.records().pop().unwrap();
        let resume = |more: &[&str]| {
            let resume = ["resume", record.to_str().unwrap()];
            program.run(&[&resume[..], more].concat())
        };
        for more in [&["--dry-run"][..], &[]] {
            let refused = resume(more);
            let told = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(
                refused.status.code(),
                Some(4),
                "{args:?} {more:?}: {refused:?}"
            );
            assert!(told.contains("now it leads to"), "{told}");
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        lead_to("scratch");
        if reached == "reached" {
            fs::write(at("a.fio"), jobs.replace("rate=1k", "")).unwrap();
            let resumed = resume(&[]);
            assert!(resumed.status.success(), "{resumed:?}");
        }
    }
}
