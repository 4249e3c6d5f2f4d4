//! The options that every command takes that runs something, and why some take some of
//! them not.

use std::error::Error as _;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use fathom_flow::RunOptions;
use fathom_model::Exit;

use super::metrics::Exporter;
use super::not_offered::{not_offered, why_not};
use super::require::Requirement;
use super::{Cli, ExitError, groups, meant, notify};

/// What kinds of runs take of the options of a command that is for several kinds; `*`: those
/// of every run, but for those that are not offered. What is
/// not among these is refused by name where it is given; options of every command, and of
/// everything that measures, are taken by all.
const TAKEN: &str = "\
run FILE.toml: dry-run * hosts min-hosts allow-same-host
plan FILE.toml:
resume quick: C dry-run * hosts min-hosts allow-same-host
resume prio: C dry-run * hosts min-hosts allow-same-host
resume job run: C dry-run * hosts min-hosts allow-same-host
resume snia: C dry-run *
resume provision: C dry-run * over-budget endurance-tbw
resume purge: C dry-run *";

/// What was given on the command line, of the options that not every kind of run takes.
#[derive(Debug, Clone, Default)]
pub struct GivenOptions(Vec<String>);

impl GivenOptions {
    fn of(command: &Command, matches: &ArgMatches) -> Self {
        if let Some((name, below)) = matches.subcommand() {
            let command = command.find_subcommand(name);
            return command.map_or_else(Self::default, |it| Self::of(it, below));
        }
        let is_given = |arg: &&Arg| {
            let id = arg.get_id().as_str();
            let by_whom = matches
                .try_contains_id(id)
                .ok()
                .and_then(|_| matches.value_source(id));
            by_whom == Some(ValueSource::CommandLine)
        };
        let is_anybodys = |arg: &&Arg| {
            let long = arg.get_long().unwrap_or_default();
            arg.is_global_set() || arg.is_positional() || MEASURING.contains(&long)
        };
        let given = command.get_arguments().filter(is_given);
        let name = |arg: &Arg| {
            let short = || arg.get_short().map(String::from);
            arg.get_long().map(str::to_owned).or_else(short)
        };
        Self(
            given
                .filter(|arg| !is_anybodys(arg))
                .filter_map(name)
                .collect(),
        )
    }

    /// Refuses what `kind` of [`TAKEN`] does not take.
    ///
    /// # Errors
    /// The first such option, by its name; `what` is how people call the kind.
    pub fn must_be_of(&self, kind: &str, what: &str) -> Result<(), ExitError> {
        let taken = TAKEN.lines().find_map(|line| {
            let (of, options) = line.split_once(':')?;
            (of == kind).then(|| options.split_whitespace().collect::<Vec<_>>())
        });
        let taken = taken.unwrap_or_default();
        let command = kind.strip_prefix("resume ").unwrap_or(kind);
        let runs = RunOptions::command();
        let is_of_run = |name: &str| {
            let mut all = runs.get_arguments();
            taken.contains(&"*") && all.any(|arg| arg.get_long() == Some(name))
        };
        let is_taken = |name: &str| {
            taken.contains(&name) || is_of_run(name) && why_not(command, name).is_none()
        };
        match self.0.iter().find(|given| !is_taken(given)) {
            None => Ok(()),
            Some(option) => {
                let dashes = if option.chars().count() == 1 {
                    "-"
                } else {
                    "--"
                };
                let why = why_not(command, option);
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                let message =
                    format!("{what} takes no {dashes}{option}{why}\n  to do: leave it out");
                Err(ExitError::new(Exit::Usage, message))
            }
        }
    }
}

/// Options of everything that measures, read from the whole command line.
const MEASURING: [&str; 5] = [
    "require",
    "notify",
    "metrics",
    "metrics-file",
    "no-export-check",
];

/// The whole command line. An option that a command does not take is hidden, and says why.
pub fn command() -> Command {
    let mut command = groups::grouped(Cli::command());
    for (name, options, why) in not_offered() {
        let leaves = match &*name {
            "snia" => &["snia iops", "snia throughput", "snia latency", "snia wsat"][..],
            "cluster" => &["cluster seq", "cluster rand", "cluster job"],
            name => &[name],
        };
        for leaf in leaves {
            command = below(command, leaf, &|it| explained(it, &options, why));
        }
    }
    command
}

/// Reads the command line.
///
/// # Errors
/// What is wrong with it, or the help that was asked for.
pub fn parse() -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let matches = matches.map_err(|error| {
        let told = error
            .source()
            .and_then(|it| it.downcast_ref::<NotOffered>());
        let told = told.map(|it| clap::Error::raw(ErrorKind::ArgumentConflict, format!("{it}\n")));
        told.unwrap_or_else(|| meant::with_tip(error, &command))
    })?;
    let read = Cli::from_arg_matches(&matches);
    let mut cli = read.map_err(|error| meant::with_tip(error.format(&mut command), &command))?;
    cli.global.requirement = Requirement::of(&matches);
    cli.global.notify = notify::asked(&matches);
    cli.global.metrics = Exporter::of(&matches);
    cli.global.given = GivenOptions::of(&command, &matches);
    super::measuring::take_exports(&matches)?;
    Ok(cli)
}

/// Changes the command of this path; a build may be without it.
fn below(command: Command, path: &str, change: &dyn Fn(Command) -> Command) -> Command {
    let (name, rest) = path.split_once(' ').unwrap_or((path, ""));
    match command.find_subcommand(name) {
        Some(_) if rest.is_empty() => command.mut_subcommand(name, change),
        Some(_) => command.mut_subcommand(name, |it| below(it, rest, change)),
        None => command,
    }
}

/// Why there is no such option.
#[derive(Debug, Clone, thiserror::Error)]
#[error("there is no --{0} here: {1}")]
struct NotOffered(&'static str, &'static str);

/// The command, in which these options are read only to say why there are none.
fn explained(command: Command, options: &[&'static str], why: &'static str) -> Command {
    options.iter().fold(command, |command, &option| {
        let refuse = move |_: &str| Err::<String, _>(NotOffered(option, why));
        let is_it = |arg: &&Arg| arg.get_long() == Some(option);
        let known = command.get_arguments().find(is_it);
        // A flag keeps its parser: its command refuses it.
        if known.is_some_and(|arg| matches!(arg.get_action(), ArgAction::SetTrue)) {
            return command;
        }
        match known.map(|arg| arg.get_id().clone()) {
            Some(id) => command.mut_arg(id, |arg| arg.value_parser(refuse).hide(true)),
            None => command.arg(
                Arg::new(option)
                    .long(option)
                    .hide(true)
                    .num_args(0..=1)
                    .default_missing_value("")
                    .value_parser(refuse),
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::kinds::KINDS;

    /// The commands that run something beside those of [`KINDS`], and where they are in the
    /// definitions.
    const COMMANDS: [(&str, &str); 5] = [
        ("run", "run"),
        ("run FILE.toml", "run"),
        ("provision", "provision"),
        ("purge", "purge"),
        ("cluster", "cluster seq"),
    ];
    /// What all of them take with one meaning, or say why not.
    fn options() -> Vec<String> {
        let runs = RunOptions::command();
        let of_runs = runs.get_arguments().filter_map(|arg| arg.get_long());
        let before = ["dry-run", "json", "hosts"].into_iter();
        let all = before
            .chain(of_runs)
            .chain(["require", "notify", "metrics"]);
        all.map(str::to_owned).collect()
    }
    const BEGIN: &str = "<!-- options: made by a test -->\n";
    const END: &str = "<!-- options: end -->\n";

    /// Whether a command has an option that people are told of.
    fn is_offered(root: &Command, path: &str, option: &str) -> bool {
        let step = |at: &Command, name: &str| at.find_subcommand(name).cloned();
        let command = path
            .split(' ')
            .try_fold(root.clone(), |at, it| step(&at, it));
        let command = command.unwrap_or_else(|| panic!("there is no fathom {path}"));
        let mut all = root.get_arguments().chain(command.get_arguments());
        all.any(|arg| arg.get_long() == Some(option) && !arg.is_hide_set())
    }

    fn table() -> String {
        let root = command();
        let options = options();
        let heads: Vec<String> = options
            .iter()
            .map(|option| format!("`--{option}`"))
            .collect();
        let heads = heads.join(" | ");
        let mut text = format!(
            "| command | {heads} |\n|---{}|\n",
            "|---".repeat(options.len())
        );
        let kinds = KINDS.iter().filter_map(|kind| kind.command);
        // The tests of SNIA's specification have one row.
        let kinds = kinds.map(|path| (path.strip_suffix(" iops").unwrap_or(path), path));
        for (name, path) in kinds.chain(COMMANDS) {
            let cells: Vec<&str> = options
                .iter()
                .map(|option| {
                    let (is_offered, why) =
                        (is_offered(&root, path, option), why_not(name, option));
                    match (is_offered, why) {
                        (true, None) => "✓",
                        (false, None) => panic!("NOT_OFFERED: why has {name} no --{option}?"),
                        (true, Some(_)) if name == path => panic!("{name} has --{option}"),
                        (_, Some(_)) => "–",
                    }
                })
                .collect();
            text += &format!("| `{name}` | {} |\n", cells.join(" | "));
        }
        text += "\n";
        for (name, options, why) in not_offered() {
            let options: Vec<String> = options.iter().map(|it| format!("`--{it}`")).collect();
            text += &format!("- `{name}`, {}: {why}.\n", options.join(" and "));
        }
        text
    }

    /// A command that has one of the same name would be given the other's values.
    #[test]
    fn no_command_has_an_option_that_all_have() {
        let root = Cli::command();
        let of_all: Vec<_> = root
            .get_arguments()
            .filter(|it| it.is_global_set())
            .collect();
        let mut open: Vec<&Command> = root.get_subcommands().collect();
        while let Some(command) = open.pop() {
            for own in command.get_arguments() {
                let same = |it: &&&clap::Arg| {
                    it.get_id() == own.get_id()
                        || (it.get_long().is_some() && it.get_long() == own.get_long())
                };
                let found = of_all.iter().find(same);
                assert!(found.is_none(), "{}: {own}", command.get_name());
            }
            open.extend(command.get_subcommands());
        }
    }

    #[test]
    fn every_command_takes_every_option_or_says_why_not() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ARCHITECTURE.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let current = format!("{before}{BEGIN}{}{END}{after}", table());
        if std::env::var_os("FATHOM_BLESS").is_some() {
            std::fs::write(path, &current).unwrap();
        }
        assert!(
            text == current || std::env::var_os("FATHOM_BLESS").is_some(),
            "docs/ARCHITECTURE.md is not current: run this test with FATHOM_BLESS=1"
        );
    }
}
