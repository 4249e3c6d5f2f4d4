//! What a shell offers behind `fathom …` and the tab key: what the command line itself
//! knows, and the runs, baselines, tests, engines and devices that are there now.
//!
//! A shell calls `fathom` with the words so far and [`VARIABLE`] set
//! ([`clap_complete::env`]); the scripts of `fathom completions` do so.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use fathom_campaign::{Folder, folder};
use fathom_device::Sys;
use fathom_device::purge::PurgeMethod;
use fathom_engine_fio::inventory;
use fathom_engine_fio::version::Program;
use fathom_prepare::settings::Overrides;
use fathom_prepare::shipped;
use fathom_suites::quick::{self, SeriesGroup};

use fathom_model::text;

use super::RUNS;
use super::campaign::CampaignArgs;
use super::quick::{shelf, xdg};

/// Names the shell that asks.
pub const VARIABLE: &str = "FATHOM_COMPLETE";

/// A value, and what is said of it.
type Candidate = (String, Option<String>);

/// The command (empty for any), the argument's name in its definition or its value's in
/// the help, and where the values come from.
type Row = (&'static str, &'static str, fn() -> Vec<Candidate>);

/// What is offered. No value of `--destroy`: who confirms types it.
const VALUES: [Row; 16] = [
    ("", "RUN", runs),
    ("", "DEV", devices),
    ("", "DEVICE", devices),
    ("prio", "dev", devices),
    ("", "PART", parts),
    ("", "GROUP", groups),
    ("", "baseline", baselines),
    ("", "METHOD", purge_methods),
    ("purge", "method", purge_methods),
    ("quick", "TEST|cleanup", quick_tests),
    ("", "ENGINE[,OPTION]", io_engines),
    ("", "ioengine", io_engines),
    ("init", "defconfig", shipped_defconfigs),
    ("defconfig", "name", defconfigs),
    ("show", "name", baselines),
    ("remove", "name", baselines),
];

/// Answers a shell, when one asks.
pub fn entry() -> Option<ExitCode> {
    let complete = CompleteEnv::with_factory(offered).var(VARIABLE);
    let here = std::env::current_dir().ok();
    match complete.try_complete(std::env::args_os(), here.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// The command line with the values of its arguments, and nothing in it that no help tells.
fn offered() -> Command {
    let command = super::options::command();
    let hidden = command.get_subcommands().filter(|it| it.is_hide_set());
    let hidden: Vec<String> = hidden.map(|it| it.get_name().to_owned()).collect();
    let command = hidden.iter().enumerate().fold(command, |command, (n, it)| {
        command.mut_subcommand(it, |_| {
            Command::new(PLACEHOLDERS[n % PLACEHOLDERS.len()]).hide(true)
        })
    });
    command.mut_subcommands(with_values)
}

/// What nobody types: a hidden name is offered where nothing else begins so.
const PLACEHOLDERS: [&str; 16] = [
    "\u{1}a", "\u{1}b", "\u{1}c", "\u{1}d", "\u{1}e", "\u{1}f", "\u{1}g", "\u{1}h", "\u{1}i",
    "\u{1}j", "\u{1}k", "\u{1}l", "\u{1}m", "\u{1}n", "\u{1}o", "\u{1}p",
];

fn with_values(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let mut hidden = 0;
    let command = command.mut_args(|arg| {
        if arg.is_hide_set() && arg.get_long().is_some() {
            hidden += 1;
            return arg.long(PLACEHOLDERS[(hidden - 1) % PLACEHOLDERS.len()]);
        }
        let found = VALUES.iter().find(|it| is_of(&arg, &name, it));
        match found {
            Some(&(_, _, values)) => arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
                let known = matching(values(), typed);
                // Most of them may be a path as well.
                match known.is_empty() && typed.to_string_lossy().contains('/') {
                    true => PathCompleter::any().complete(typed),
                    false => known,
                }
            })),
            None => arg,
        }
    });
    command.mut_subcommands(with_values)
}

fn is_of(arg: &Arg, command: &str, row: &Row) -> bool {
    let called = |name: &str| {
        let values = arg.get_value_names().unwrap_or_default();
        arg.get_id() == name || values.iter().any(|it| it == name)
    };
    (row.0.is_empty() || row.0 == command) && called(row.1)
}

/// Those that begin as what is typed does, as the shell is to write them.
fn matching(values: Vec<Candidate>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let plain = typed.replace('\\', "");
    let fitting = values
        .into_iter()
        .filter(|(value, _)| value.starts_with(&plain) && !value.contains(text::is_hidden));
    let numbered = fitting.enumerate().map(|(n, (value, about))| {
        let candidate = CompletionCandidate::new(quoted(&value)).display_order(Some(n));
        candidate.help(about.map(|about| text::line(&about).into_owned().into()))
    });
    numbered.collect()
}

/// bash takes what is offered as if it was typed; the other shells quote it themselves.
fn quoted(value: &str) -> String {
    if !is_bash() {
        return value.to_owned();
    }
    let is_plain = |c: char| c.is_alphanumeric() || "-_./,=:@%+".contains(c);
    let escaped = |c| [(!is_plain(c)).then_some('\\'), Some(c)];
    value.chars().flat_map(escaped).flatten().collect()
}

/// The script of bash tells how its completion was called; no other does.
fn is_bash() -> bool {
    std::env::var_os("_CLAP_COMPLETE_COMP_TYPE").is_some()
}

/// What stands behind an option among the words so far.
fn given(option: &str) -> Option<String> {
    let words: Vec<String> = super::command_line();
    let mut pairs = words.iter().zip(words.iter().skip(1));
    let separate = pairs.find_map(|(name, value)| (name == option).then(|| value.clone()));
    let joined = |word: &String| Some(word.strip_prefix(option)?.strip_prefix('=')?.to_owned());
    separate.or_else(|| words.iter().find_map(joined))
}

fn runs() -> Vec<Candidate> {
    let dir = given("--runs").map_or_else(|| PathBuf::from(RUNS), PathBuf::from);
    let dir = match given("-C") {
        Some(campaign) => Path::new(&campaign).join(dir),
        None => dir,
    };
    let runs = fathom_record::list(&dir).unwrap_or_default();
    let about = |summary: &fathom_record::RunSummary| match summary.status {
        Some(status) => format!("{} {}, {status}", summary.command, summary.name),
        None => format!("{} {}", summary.command, summary.name),
    };
    let offer = |run: fathom_record::ListedRun| (run.id, run.summary.as_ref().ok().map(about));
    runs.into_iter().rev().map(offer).collect()
}

/// Those that hold something; partitions are no drives.
fn devices() -> Vec<Candidate> {
    let disks = Sys::live().disks().into_iter();
    let disks = disks.filter(|disk| disk.size_bytes() > 0);
    let offers = disks.map(|disk| {
        let size = fathom_model::units::bytes(disk.size_bytes() as f64);
        let model = disk.text("device/model").unwrap_or_default();
        let about = format!("{size} {}", model.trim());
        (
            disk.dev_path().display().to_string(),
            Some(about.trim_end().to_owned()),
        )
    });
    offers.collect()
}

/// Tests, folders and series of the campaign here.
fn parts() -> Vec<Candidate> {
    let campaign = CampaignArgs {
        dir: given("-C").map_or_else(|| PathBuf::from("."), PathBuf::from),
        only: Vec::new(),
    };
    let Ok(plan) = campaign.plan(&Overrides::default()) else {
        return Vec::new();
    };
    let mut parts = BTreeSet::new();
    for step in &plan.steps {
        let path = Path::new(&step.point.series);
        let above = path.ancestors().filter(|it| *it != Path::new(""));
        parts.extend(above.map(|it| it.display().to_string()));
    }
    plain(parts)
}

fn groups() -> Vec<Candidate> {
    plain(quick::known(xdg::groups_dir().as_deref()))
}

fn quick_tests() -> Vec<Candidate> {
    let group = given("--group").unwrap_or_else(|| quick::DEFAULT_GROUP.to_owned());
    let Ok(group) = SeriesGroup::find(&group, xdg::groups_dir().as_deref()) else {
        return Vec::new();
    };
    let tests = group.series.into_iter().flat_map(|series| series.tests);
    plain(tests.map(|test| test.name).chain(["cleanup".to_owned()]))
}

fn baselines() -> Vec<Candidate> {
    let all = shelf().list().unwrap_or_default();
    all.into_iter()
        .map(|one| (one.name, Some(one.about)))
        .collect()
}

fn purge_methods() -> Vec<Candidate> {
    let all = PurgeMethod::all().map(|method| method.to_string());
    plain(["auto".to_owned()].into_iter().chain(all))
}

fn defconfigs() -> Vec<Candidate> {
    let dir = given("-C").unwrap_or_else(|| ".".to_owned());
    let folder = Folder::open(Path::new(&dir));
    let all = folder.and_then(|folder| folder.all_defconfigs());
    let offer = |one: &folder::Defconfig| (one.name.clone(), Some(one.about().to_owned()));
    all.unwrap_or_default().iter().map(offer).collect()
}

fn shipped_defconfigs() -> Vec<Candidate> {
    plain(shipped::defconfigs().map(|(name, _)| name.to_owned()))
}

/// fio's, where it is installed, and those of the native engine.
fn io_engines() -> Vec<Candidate> {
    let of_fio = Program::find(None).ok();
    let of_fio = of_fio.and_then(|fio| inventory::engine_names(&fio).ok());
    let own = fathom_engine_native::io_engines().map(str::to_owned);
    let all: BTreeSet<String> = of_fio.unwrap_or_default().into_iter().chain(own).collect();
    plain(all)
}

fn plain(values: impl IntoIterator<Item = String>) -> Vec<Candidate> {
    values.into_iter().map(|value| (value, None)).collect()
}

/// So that what is offered can be tested without a shell.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_an_argument() {
        let root = super::super::options::command();
        let mut open: Vec<Command> = root.get_subcommands().cloned().collect();
        let mut unused: Vec<_> = VALUES.iter().collect();
        while let Some(command) = open.pop() {
            for arg in command.get_arguments() {
                unused.retain(|row| !is_of(arg, command.get_name(), row));
            }
            open.extend(command.get_subcommands().cloned());
        }
        let unused: Vec<_> = unused.iter().map(|row| (row.0, row.1)).collect();
        assert!(unused.is_empty(), "no such argument: {unused:?}");
    }
}
