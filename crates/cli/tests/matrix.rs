//! Every kind of run with every option of its command: new, dry, resumed, as a step of a
//! plan file and on a host. An option takes effect or is refused by its name. Effects are
//! looked for in the record, in files, exit codes and the form of what is printed, not in
//! messages. Kinds and options are found in the help texts, so new ones are included.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use fathom_testkit::{Lab, require};
use serde_json::Value;

use crate::command_line::{commands, help};

mod kinds;
mod marks;
mod values;
use kinds::{KindOfRun, Place};
use marks::{Effect, Marks};

const STUDY: [&str; 2] = ["run", "study.toml"];
/// Cells in which an option has no visible effect, and the reason. The list is exact.
const SILENT: &str = include_str!("matrix/silent.txt");

/// The commands that run something: those that tell of it while it goes on, and that can
/// say what they would do.
fn kinds() -> Vec<Vec<String>> {
    let mut found = commands();
    found.retain(|command| {
        let is_here = command
            .first()
            .is_some_and(|it| it != "cluster" && it != "resume");
        let options = options(command);
        let has = |name: &str| options.iter().any(|it| it == name);
        let is_new = command.last().is_none_or(|it| it != "resume");
        is_here && is_new && has("dry-run") && has("notify")
    });
    found
}

/// The options of a command, without their dashes, as its help has them.
fn options(command: &[String]) -> Vec<String> {
    let text = help(command);
    let text = text.split("\nExamples:\n").next().unwrap();
    let mut found = Vec::new();
    for line in text.lines() {
        let at = line.trim_start();
        let after = match line.len() - at.len() {
            2 => at
                .get(4..)
                .filter(|_| at.starts_with('-') && at[2..].starts_with(", ")),
            6 => Some(at),
            _ => None,
        };
        let name = after.and_then(|it| it.strip_prefix("--"));
        let name = name.map(|it| it.split([' ', '=', '[', '.']).next().unwrap());
        let dotted = after.is_some_and(|it| it.starts_with("--p99."));
        found.extend(
            name.filter(|it| *it != "help" && !dotted)
                .map(str::to_owned),
        );
    }
    // Tests of screens cover what --quiet leaves out.
    found.retain(|it| it != "quiet");
    found.sort();
    found.dedup();
    found
}

/// Holds what was silent against the list, of some ways to run.
fn judge(ways: &[&str], silent: &BTreeSet<String>) {
    let cells = SILENT.lines().filter_map(|line| line.strip_prefix("  "));
    let is_of_way = |cell: &&str| ways.contains(&cell.split(' ').next().unwrap_or_default());
    let known: BTreeSet<String> = cells.filter(is_of_way).map(str::to_owned).collect();
    let new: Vec<_> = silent.difference(&known).collect();
    // How far a run comes that a limit ends on a host, chance has a part in.
    let is_exact = |cell: &&String| !cell.starts_with("host ");
    let gone: Vec<_> = known.difference(silent).filter(is_exact).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "without effect: {new:#?}\nno longer: {gone:#?}"
    );
}

/// Goes through all kinds, several at once: they mostly wait. Gives what was silent.
fn each_kind(
    kind: &(dyn Fn(&[String]) -> Option<KindOfRun> + Sync),
    tried: &(dyn Fn(&mut KindOfRun, &mut Vec<String>) + Sync),
) -> BTreeSet<String> {
    let open = Mutex::new(kinds());
    let silent = Mutex::new(BTreeSet::new());
    let next = || open.lock().unwrap().pop();
    let work = || {
        while let Some(command) = next() {
            let mut found = Vec::new();
            if let Some(mut kind) = kind(&command) {
                tried(&mut kind, &mut found);
            }
            silent.lock().unwrap().extend(found);
        }
    };
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(work);
        }
    });
    silent.into_inner().unwrap()
}

/// Tries each option of each kind, which says in which ways it was silent.
fn each_cell(
    kind: &(dyn Fn(&[String]) -> Option<KindOfRun> + Sync),
    tried: &(dyn Fn(&mut KindOfRun, &str, &mut Vec<&'static str>) + Sync),
) -> BTreeSet<String> {
    each_kind(kind, &|kind, silent| {
        for option in kind.options.clone() {
            let mut ways = Vec::new();
            tried(kind, &option, &mut ways);
            silent.extend(
                ways.iter()
                    .map(|way| format!("{way} {} --{option}", kind.name)),
            );
        }
    })
}

/// Each option in a new run. In a dry one what is refused there is refused, too, and
/// nothing is done; cut in the middle the run goes on with the options of its start.
#[test]
fn an_option_takes_effect_or_is_refused_in_new_dry_and_resumed_runs() {
    let silent = each_cell(&KindOfRun::of, &|kind, option, silent| {
        let words = kind.words(&kind.tried(option));
        let place = Place::new(kind);
        let before = place.files();
        let dry = place.run(&[&words[..], &["--dry-run".to_owned()]].concat());
        if place.files() != before {
            silent.push("dry");
        }
        if kind.is_long() {
            return;
        }
        let without = kind.marks_without("new", &|kind, place| place.run(&kind.words(&[])));
        let output = place.run(&words);
        let whole = Marks::of(&place, &output);
        let effect = whole.against(&without, option, &output);
        if effect == Effect::None {
            silent.push("new");
        }
        let record = place.records().pop();
        if record.is_none()
            && !["dry-run", "list", "runs"].contains(&option)
            && dry.status.code() != output.status.code()
        {
            silent.push("dry");
        }
        if let (Effect::InRecord, Some(0), Some(record)) = (effect, output.status.code(), record) {
            marks::cut(&record);
            let resume = ["resume", "-q", record.to_str().unwrap()].map(str::to_owned);
            let resumed = place.run(&[&resume[..], &kind.confirmed()].concat());
            if Marks::of(&place, &resumed).record != whole.record {
                silent.push("kept");
            }
        }
    });
    judge(&["new", "dry", "kept"], &silent);
}

/// The options of `fathom resume`, with what each kind has left behind a kill.
#[test]
fn an_option_of_resume_takes_effect_or_is_refused() {
    let resume = ["resume".to_owned()];
    let given = options(&resume);
    let silent = each_kind(&KindOfRun::of, &|kind, silent| {
        if kind.is_long() {
            return;
        }
        let killed = Place::new(kind);
        let _ = killed.run(&kind.words(&[]));
        marks::cut(&killed.records().pop().unwrap());
        let confirmed = kind.confirmed();
        let on = |place: &Place, args: &[String]| {
            let record = place.records().pop().unwrap();
            let id = record.file_name().unwrap().to_str().unwrap().to_owned();
            let confirmed: &[String] = match args.first().is_some_and(|it| it == "--destroy") {
                true => &[],
                false => &confirmed,
            };
            place.run(&[&resume[..], confirmed, args, &[id]].concat())
        };
        let without = kind.marks_without("resume", &|_, place| {
            place.be(&killed);
            on(place, &[])
        });
        for option in &given {
            let place = Place::new(kind);
            place.be(&killed);
            let output = on(&place, &values::of(&["resume"], option));
            let told = String::from_utf8_lossy(&output.stderr);
            let is_refused =
                matches!(output.status.code(), Some(2..=5)) && told.contains(option.as_str());
            let marks = Marks::of(&place, &output);
            if !is_refused && marks.against(&without, option, &output) == Effect::None {
                silent.push(format!("resume {} --{option}", kind.name));
            }
        }
    });
    judge(&["resume"], &silent);
}

/// A key of a step, or of the whole file, with the name of the option.
#[test]
fn a_key_of_a_plan_file_takes_effect_or_is_refused() {
    let silent = each_cell(&KindOfRun::of, &|kind, option, silent| {
        let key = values::toml(option, &kind.tried(option));
        let Some(plan) = kind.plan.clone() else {
            kind.has_no_step();
            return;
        };
        let without = kind.marks_without("plan", &|_, place| {
            place.file("study.toml", &plan);
            place.run(&STUDY.map(str::to_owned))
        });
        let effect = kind.plans_with(&key).into_iter().map(|text| {
            let place = Place::new(kind);
            place.file("study.toml", &text);
            let output = place.run(&STUDY.map(str::to_owned));
            Marks::of(&place, &output).against(&without, option, &output)
        });
        let is_silent = |effect: Option<Effect>| effect == Some(Effect::None);
        if is_silent(effect.into_iter().find(|effect| *effect != Effect::Refused)) {
            silent.push("plan");
        }
    });
    judge(&["plan"], &silent);
}

#[test]
fn an_option_takes_effect_on_a_host_or_is_refused() {
    let lab = require!(Lab::new(1, &[]));
    let hosts = ["--hosts", "m1"].map(str::to_owned);
    let silent = each_cell(&KindOfRun::on_hosts, &|kind, option, silent| {
        if option == "hosts" {
            return;
        }
        let without = kind.marks_without("host", &|kind, place| {
            place.run_on(&lab, &[&kind.words(&[])[..], &hosts].concat())
        });
        let place = Place::new(kind);
        let words = kind.words(&kind.tried(option));
        let output = place.run_on(&lab, &[&words[..], &hosts].concat());
        if Marks::of(&place, &output).against(&without, option, &output) == Effect::None {
            silent.push("host");
        }
    });
    judge(&["host"], &silent);
}

/// No command falls back to another engine if the user names a fio: `quick` once used the
/// native one.
#[test]
fn a_fio_that_is_named_and_not_there_is_told_by_each_kind() {
    let silent = each_kind(&KindOfRun::of_any_engine, &|kind, silent| {
        for more in [&[][..], &["--dry-run".to_owned()]] {
            let place = Place::new(kind);
            let before = place.files();
            let output = place.run_with(&[("FATHOM_FIO", "/nowhere/fio")], &kind.words(more));
            let told = String::from_utf8_lossy(&output.stderr);
            let is_told = output.status.code() == Some(5) && told.contains("/nowhere/fio");
            if !is_told || place.files() != before {
                silent.push(format!("{} {more:?}: {output:?}", kind.name));
            }
        }
    });
    assert!(silent.is_empty(), "{silent:#?}");
}

/// Killed, and gone on with from another shell: from another folder, with another home, and
/// with other values of the variables that its texts name.
#[test]
fn a_run_goes_on_as_it_was_started_whoever_goes_on_with_it() {
    let silent = each_kind(&KindOfRun::of, &|kind, silent| {
        if kind.is_long() {
            return;
        }
        let study = kind.plan.clone();
        for plan in [None, study.as_deref()]
            .iter()
            .take(1 + usize::from(study.is_some()))
        {
            let place = Place::new(kind);
            place.name_by_variable();
            let words = match plan {
                Some(plan) => {
                    place.file("study.toml", plan);
                    STUDY.map(str::to_owned).to_vec()
                }
                None => kind.words(&[]),
            };
            let began = [("MYF", "scratch"), ("DEV", "/dev/nvme7n1")];
            let output = place.run_with(&began, &words);
            assert!(output.status.success(), "{}: {output:#?}", kind.name);
            let whole = Marks::of(&place, &output);
            let record = place.records().pop().unwrap();
            marks::cut(&record);
            let elsewhere = tempfile::tempdir().unwrap();
            let resume = ["resume", "-q", record.to_str().unwrap()].map(str::to_owned);
            let mut command = place.command(&[&resume[..], &kind.confirmed()].concat());
            command.current_dir(elsewhere.path());
            command.env("HOME", elsewhere.path());
            command.env("XDG_STATE_HOME", elsewhere.path().join("state"));
            command.env("PATH", "/usr/bin:/bin");
            command.envs([("MYF", "precious"), ("DEV", "/dev/nvme6n1")]);
            let resumed = command.output().unwrap();
            let told = String::from_utf8_lossy(&resumed.stderr);
            let is_left = fs::read_dir(elsewhere.path()).unwrap().next().is_some();
            let goes_on = resumed.status.code() == whole.code
                && told.contains("HOME")
                && Marks::of(&place, &resumed).record == whole.record;
            if is_left || !goes_on {
                let by = if plan.is_some() { "plan" } else { "command" };
                silent.push(format!("{by} {}: {resumed:?}", kind.name));
            }
        }
    });
    assert!(silent.is_empty(), "{silent:#?}");
}

/// What stands against writing to a device is told to programs by its kind.
#[test]
fn a_refusal_is_a_document_of_what_was_found() {
    let silent = each_kind(&KindOfRun::of_any_engine, &|kind, silent| {
        // These only read.
        let is_reader = ["prio", "tune"].contains(&&*kind.name);
        let Some(device) = kind
            .named_device()
            .filter(|_| !is_reader)
            .map(Path::to_owned)
        else {
            return;
        };
        let made = Command::new("mkfs.ext4").arg("-q").arg(&device).status();
        assert!(made.unwrap().success());
        let output = Place::new(kind).run(&kind.words(&["--json".to_owned()]));
        let document = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let finding = &document["findings"][0];
        let is_told = document["schema"] == "fathom.refusal/1"
            && finding["kind"] == "signature"
            && finding["path"] == device.to_str().unwrap()
            && finding["to_do"]
                .as_str()
                .is_some_and(|it| it.starts_with("wipefs"));
        if output.status.code() != Some(4) || !is_told {
            silent.push(format!("{}: {output:?}", kind.name));
        }
    });
    assert!(silent.is_empty(), "{silent:#?}");
}
