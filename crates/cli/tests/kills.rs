//! A run that is killed and goes on measures what one left in peace measures, of each
//! kind, and everything that is made of its record says the same: no period counts twice.
//! What kill -9 leaves of a record is its log up to any byte: that is cut here at random
//! places, once, twice or five times, and some runs are killed indeed: 200 times over all
//! kinds. Drives are simulated, and change all the time; of runs that know no simulation
//! every step stands once.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use fathom_testkit::{LoopDevice, ProgramUnderTest, require};
use serde_json::{Value, json};

mod ended;
mod views;
use ended::ended;
use views::Views;

/// How a kind of run is tried.
struct Trial {
    /// Places at which its log is cut.
    cuts: usize,
    /// Runs that are killed.
    kills: u32,
    /// Whether figures are the same each time.
    has_figures: bool,
}

const SIMULATED: Trial = Trial {
    cuts: 15,
    kills: 2,
    has_figures: true,
};
/// Faster when new, slower with the years, never the same twice.
const DRIVE: &str = "format = \"fathom-sim-device\"\nversion = 1\nnoise_percent = 3\n\
     wander_percent = 0.2\ndrift_percent_per_hour = -5\nbandwidth_mib = 3000\ncapacity_gib = 3\n\
     [settle]\nfresh_percent = 150\nseconds = 4\n";
const JOB: &str = "[a]\nrw=randrw\nfilename=x\nsize=1g\nbs=4k\ntime_based\nruntime=3\n";
const FILL: &str = "[fill]\nrw=write\nfilename=x\nsize=1g\nbs=1m\n";

/// A folder with a drive and job files; of a campaign, where there is one.
fn program(is_campaign: bool) -> ProgramUnderTest {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    if is_campaign {
        let settings = ["DUT_TEST_MAX_IODEPTH=2", "DUT_RUNTIME=2s"];
        program.good(&["init", "."]);
        program.good(&["config", "defconfig", "debug-quick"]);
        program.good(&[&["config", "set"][..], &settings].concat());
    }
    program.file("sim.toml", DRIVE);
    program.file("a.fio", JOB);
    program.file("b.fio", &JOB.replace("[a]", "[b]"));
    program.file("fill.fio", FILL);
    program
}

/// A kind of run in a folder, which has run once without a kill.
struct Peaceful<'k> {
    trial: Trial,
    program: ProgramUnderTest,
    args: Vec<&'k str>,
    record: PathBuf,
    log: String,
    ended: Vec<Value>,
    document: Value,
    /// What it said at its end.
    told: String,
    /// Of a run whose figures are the same each time.
    views: Option<Views>,
}

impl<'k> Peaceful<'k> {
    fn run(program: ProgramUnderTest, args: &[&'k str], trial: Trial) -> Self {
        let args = [args, &["-q"]].concat();
        let told = program.good(&args);
        let record = program.records().remove(0);
        let log = fs::read_to_string(record.join("events.jsonl")).unwrap();
        // A log that is closed would stand in segments.
        assert!(!record.join("events").exists(), "{} bytes", log.len());
        let ended = ended(&log, trial.has_figures);
        assert!(ended.len() > 3, "{args:?}: {log}");
        let document = document(&program, &record, trial.has_figures);
        let views = trial
            .has_figures
            .then(|| Views::of_whole(&program, &record));
        Self {
            document,
            told: views::results_of(&told),
            views,
            trial,
            program,
            args,
            record,
            log,
            ended,
        }
    }

    /// Cuts its log, and goes on from there.
    fn survives_cuts(&self) {
        let jobs = self.program.path().join("jobs");
        copy(&self.record.join("jobs"), &jobs);
        // Without the first line there is no record.
        let from = self.log.find('\n').unwrap() + 1;
        let path = self.record.join("events.jsonl");
        let mut places = RandomPlaces::default();
        for nth in 0..self.trial.cuts {
            let part = nth as f64 + places.next();
            let cut = from + ((self.log.len() - from) as f64 * part) as usize / self.trial.cuts;
            fs::write(&path, &self.log[..cut]).unwrap();
            for folder in ["jobs", "raw"] {
                let _ = fs::remove_dir_all(self.record.join(folder));
            }
            copy(&jobs, &self.record.join("jobs"));
            self.goes_on(&format!("cut at byte {cut}"));
            // Cut again in what it did since.
            for again in 1..[1, 2, 5][nth % 3] {
                let log = fs::read_to_string(&path).unwrap();
                let cut = cut + ((log.len() - cut) as f64 * places.next()) as usize;
                fs::write(&path, &log[..cut.max(from)]).unwrap();
                self.goes_on(&format!("cut {again} times more, at byte {cut}"));
            }
            // Some of each number of cuts: they take a second.
            if let Some(views) = self.views.as_ref().filter(|_| nth % 5 == 1) {
                views.are_those_of(&self.program, &self.record, &format!("cut at byte {cut}"));
            }
        }
    }

    /// Kills it, and goes on from there.
    fn survives_kills(&self) {
        let kills = self.trial.kills;
        let runs = self.record.parent().unwrap();
        fs::remove_dir_all(runs).unwrap();
        let started = Instant::now();
        self.program.good(&self.args);
        let took = started.elapsed();
        for nth in 0..kills {
            // It may have been killed before it made anything.
            let _ = fs::remove_dir_all(runs);
            let mut child = self.program.start(&self.args);
            std::thread::sleep(took * nth / kills);
            child.kill().unwrap();
            child.wait().unwrap();
            let record = self.program.records().pop();
            match record.map(|record| record.join("plan.jsonl").exists()) {
                None => {}
                Some(true) => self.goes_on(&format!("kill {nth}")),
                // It begins, where its record says enough, or says that it cannot go on.
                Some(false) => {
                    let resumed = self.program.run(&["resume", "-q"]);
                    let told = String::from_utf8_lossy(&resumed.stderr);
                    match resumed.status.success() {
                        true => self.goes_on(&format!("kill {nth}, which left no plan")),
                        // The header may not have been written yet.
                        false => assert!(
                            told.contains("stopped before its first step")
                                || told.contains("there are no runs")
                                || told.contains("was killed as it began"),
                            "{told}"
                        ),
                    }
                }
            }
        }
    }

    fn goes_on(&self, after: &str) {
        let record = self.program.records().remove(0);
        let id = record.file_name().unwrap().to_str().unwrap();
        let told = self.program.good(&["resume", id, "-q"]);
        if self.trial.has_figures {
            assert_eq!(
                views::results_of(&told),
                self.told,
                "{:?}, {after}",
                self.args
            );
        }
        let log = fs::read_to_string(record.join("events.jsonl")).unwrap();
        let ended = ended(&log, self.trial.has_figures);
        let first = (0..)
            .zip(&ended)
            .zip(&self.ended)
            .find(|((_, a), b)| a != b);
        assert!(
            ended == self.ended,
            "{:?}, {after}: {} instead of {} ends, first {first:#?}",
            self.args,
            ended.len(),
            self.ended.len()
        );
        let document = document(&self.program, &record, self.trial.has_figures);
        assert_eq!(document, self.document, "{:?}, {after}", self.args);
    }
}

/// Shares of a length, from 0 to 1: other ones in each run where `FATHOM_TEST_SEED` says so.
struct RandomPlaces(u64);

impl Default for RandomPlaces {
    fn default() -> Self {
        let seed = std::env::var("FATHOM_TEST_SEED");
        Self(seed.map_or(26, |seed| seed.parse().unwrap()))
    }
}

impl RandomPlaces {
    fn next(&mut self) -> f64 {
        self.0 += 1;
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        (hasher.finish() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What a run has measured as `fathom show` tells it: each job of each step once, and the
/// sums of the groups.
fn document(program: &ProgramUnderTest, record: &Path, has_figures: bool) -> Value {
    let id = record.file_name().unwrap().to_str().unwrap();
    let shown = program.good(&["show", id, "--json"]).stdout;
    let doc: Value = serde_json::from_slice(&shown).unwrap();
    let figures = |of: &Value| -> Vec<Value> {
        let each = ["read", "write", "trim"].into_iter();
        each.map(|dir| match (of[dir].is_object(), has_figures) {
            (true, true) => json!([of[dir]["total_ios"], of[dir]["io_bytes"], of[dir]["iops"]]),
            (is_there, _) => json!(is_there),
        })
        .collect()
    };
    let all = |list: &Value, name: &str| -> Vec<Value> {
        let each = list.as_array().into_iter().flatten();
        each.map(|it| json!([it["step"], it[name], figures(it)]))
            .collect()
    };
    json!({
        "jobs": all(&doc["jobs"], "name"),
        "groups": all(&doc["groups"], "group"),
        "from_samples": doc["from_samples"],
        "failures": doc["failures"],
        "answer": answer(program, id, has_figures),
    })
}

/// What `fathom query` makes of its samples, steps, figures, percentiles and verdicts.
fn answer(program: &ProgramUnderTest, id: &str, has_figures: bool) -> Value {
    const STEPS: &str = "select 'steps' as what, count(*) as n, 0 as one, 0 as two from steps \
        where counts = 1 and coalesce(outcome, '') <> 'skipped'";
    const FIGURES: &str = "union all select 'samples', count(*), sum(ios), sum(bytes) from samples \
        union all select 'figures', count(*), round(sum(iops), 3), round(sum(iops_low), 3) from figures \
        union all select 'percentiles', count(*), sum(ns), 0 from percentiles \
        union all select 'verdicts', count(*), 0, 0 from verdicts";
    let more = if has_figures { FIGURES } else { "" };
    let sql = format!("{STEPS} {more}");
    let told = program.good(&["query", &sql, id, "--format", "json"]);
    serde_json::from_slice(&told.stdout).unwrap()
}

pub(crate) fn copy(from: &Path, to: &Path) {
    let Ok(entries) = fs::read_dir(from) else {
        return;
    };
    fs::create_dir_all(to).unwrap();
    for entry in entries.flatten() {
        let path = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &path),
            false => fs::copy(entry.path(), path).map(drop).unwrap(),
        }
    }
}

fn survives(program: ProgramUnderTest, args: &[&str], trial: Trial) {
    let peaceful = Peaceful::run(program, args, trial);
    peaceful.survives_cuts();
    if peaceful.trial.kills > 0 {
        peaceful.survives_kills();
    }
}

const SIM: [&str; 4] = ["--engine", "sim", "--sim", "sim.toml"];

#[test]
fn job_files_survive_kills() {
    let args = [&["job", "run", "a.fio", "fill.fio", "b.fio"][..], &SIM].concat();
    survives(program(false), &args, SIMULATED);
}

#[test]
fn a_soak_survives_kills() {
    let args = ["soak", "a.fio", "--hours", "0.01", "--period", "12s"];
    survives(program(false), &[&args[..], &SIM].concat(), SIMULATED);
}

#[test]
fn a_search_survives_kills() {
    let find = ["find", "a.fio", "--knee", "--to", "8"];
    let args = [&find[..], &["--look", "6s", "--probe", "12s"], &SIM].concat();
    survives(program(false), &args, SIMULATED);
}

#[test]
fn a_comparison_survives_kills() {
    let ab = ["ab", "a.fio", "--b", "a.iodepth=2", "--each", "3s"];
    let args = [&ab[..], &["--seed", "1", "--pairs", "8"], &SIM].concat();
    survives(program(false), &args, SIMULATED);
}

#[test]
fn a_search_whose_probes_end_early_survives_kills() {
    let find = ["find", "a.fio", "--p99", "1s", "--closed", "--to", "4"];
    let args = [&find[..], &["--probe", "24s"], &SIM].concat();
    survives(program(false), &args, SIMULATED);
}

/// How plan files of these tests begin: with something that is switched.
const SWITCHED: &str = r#"
engine = "sim"
sim = "sim.toml"
[target]
path = "/dev/nvme9n1"
[[step]]
name = "on"
command = "true"
undo = "true"
"#;

#[test]
fn a_plan_file_survives_kills() {
    let program = program(false);
    let text = r#"
[[step]]
job = "a.fio"
[[step]]
job = "fill.fio"
[[step]]
purge = "auto"
[[step]]
job = "b.fio"
"#;
    program.file("study.toml", &format!("{SWITCHED}{text}"));
    survives(program, &["run", "study.toml"], SIMULATED);
}

#[test]
fn campaigns_in_a_plan_file_survive_kills() {
    let program = program(true);
    let text = r#"
[[step]]
for = { round = [1, 2] }
[[step.step]]
name = "ready-${round}"
precondition = "random"
config = "."
no-purge = true
[[step.step]]
name = "all-${round}"
campaign = "."
only = ["*-randread"]
[[step]]
job = "b.fio"
"#;
    program.file("study.toml", &format!("{SWITCHED}{text}"));
    survives(program, &["run", "study.toml"], SIMULATED);
}

#[test]
fn a_test_of_snia_survives_kills() {
    let args = ["snia", "iops", "/dev/nvme9n1", "--debug", "--blocks", "4k"];
    let args = [&args[..], &["--mixes", "65/35,0/100"], &SIM].concat();
    survives(program(false), &args, SIMULATED);
}

#[test]
fn a_drive_that_is_provisioned_survives_kills() {
    let args = ["provision", "/dev/nvme9n1"];
    survives(program(true), &[&args[..], &SIM].concat(), SIMULATED);
}

#[test]
fn a_campaign_survives_kills() {
    survives(program(true), &[&["run"][..], &SIM].concat(), SIMULATED);
}

/// What stands behind a stage that a limit has stopped is no part of it: a device that is
/// killed later is not taken back to before that stage.
#[test]
fn a_device_lives_on_behind_a_stage_that_a_limit_stopped() {
    let program = program(true);
    let profiles = ["SEQWRITE", "RANDWRITE", "RANDWRITE_70_30", "RANDWRITE_97_3"];
    let off = profiles.map(|profile| format!("PROFILE_{profile}=n"));
    let off = off.each_ref().map(String::as_str);
    let tests = ["STEADY_STATE_PROVISIONING=n", "SNIA_TESTS=y", "SNIA_IOPS=y"];
    program.good(&[&["config", "set"][..], &tests, &off].concat());
    let limit = ["--max-written", "8G", "-q"];
    let stopped = program.run(&[&["run"][..], &SIM, &limit].concat());
    // It was not all done.
    assert_eq!(stopped.status.code(), Some(1), "{stopped:?}");
    let record = program.records().remove(0);
    let path = record.join("events.jsonl");
    let log = fs::read_to_string(&path).unwrap();
    let stop = log
        .find("\"end\":\"interrupted\"")
        .expect("a stage was stopped");
    let points = log[stop..].matches("\"event\":\"finished\"").count();
    assert!(points > 3, "{log}");
    let whole = ended(&log, true);
    for part in 1..8 {
        fs::write(&path, &log[..stop + (log.len() - stop) * part / 8]).unwrap();
        let id = record.file_name().unwrap().to_str().unwrap();
        let on = program.run(&[&["resume", id][..], &limit].concat());
        assert_eq!(on.status.code(), Some(1), "{on:?}");
        let log = fs::read_to_string(&path).unwrap();
        assert!(ended(&log, true) == whole, "{part} of 8: {log}");
    }
}

/// Three tests that take no time.
fn tiny_group(program: &ProgramUnderTest) {
    let test = |name: &str, rw: &str| {
        format!(
            "  {{ name = \"{name}\", files = 1, engine = \"sync\", depth = 1, bs = \"64k\", rw = \"{rw}\", init = true }},\n"
        )
    };
    let text = format!(
        "format = \"fathom-quick-group\"\nversion = 1\nname = \"tiny\"\nsize = \"1M\"\nruntime_s = 1\n[[series]]\ntests = [\n{}{}{}]\n",
        test("writes", "write"),
        test("again", "randwrite"),
        test("reads", "read")
    );
    program.file("tiny.toml", &text);
}

const MEASURED: Trial = Trial {
    cuts: 9,
    kills: 2,
    has_figures: false,
};

/// Whose steps take a second at least.
const SLOW: Trial = Trial {
    cuts: 4,
    kills: 0,
    has_figures: false,
};

#[test]
fn a_quick_series_survives_kills() {
    let program = program(false);
    tiny_group(&program);
    let args = ["quick", "here", ".", "--group", "tiny.toml"];
    let args = [&args[..], &["--engine", "native", "--no-baseline"]].concat();
    survives(program, &args, MEASURED);
}

#[test]
fn a_quick_series_in_a_plan_file_survives_kills() {
    let program = program(false);
    tiny_group(&program);
    let text = "engine = \"native\"\nassert = [\"series/reads.read.iops > 1\"]\n\
         [[step]]\nname = \"series\"\nquick = \".\"\ngroup = \"./tiny.toml\"\n\
         [[step]]\nname = \"again\"\nquick = \".\"\ngroup = \"./tiny.toml\"\n\
         [[step]]\nname = \"mine\"\njob = \"\"\"\n[mine]\nrw=write\nsize=1m\nfilename=f\n\"\"\"\n";
    program.file("study.toml", text);
    let shown = program.good(&["plan", "study.toml"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("stb-testdir") && shown.contains("[reads]"),
        "{shown}"
    );
    survives(program, &["run", "study.toml"], MEASURED);
}

#[test]
fn priorities_survive_kills() {
    let disk = require!(LoopDevice::new(1 << 20));
    let dev = disk.path().to_str().unwrap();
    let args = ["prio", "--dev", dev, "--baseline", "--bs", "4k"];
    let times = ["--ramptime", "0", "--runtime", "1", "--qds", "1 2"];
    let args = [&args[..], &times, &["--engine", "native"]].concat();
    survives(program(false), &args, SLOW);
    // The same as a step of a plan file, behind another.
    let program = program(false);
    let text = format!(
        "engine = \"native\"\nassert = [\"prio/baseline/2.read.iops > 1\"]\n\
         [target]\npath = \"{dev}\"\n\
         [[step]]\njob = \"\"\"\n[mine]\nrw=read\nsize=1m\n\"\"\"\n\
         [[step]]\nprio = \"baseline\"\nbs = \"4k\"\nramptime = 0\nruntime = 1\nqds = [1, 2]\n"
    );
    program.file("study.toml", &text);
    survives(program, &["run", "study.toml"], SLOW);
}
