//! What somebody meant whose command line is wrong: tips below the error, with a command
//! to type.

use std::path::Path;

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words of other programs, and of everyday life, with the command that does it here.
const WORDS: &str = "\
list: fathom runs
ls: fathom runs
results: fathom show
latest: fathom show
test: fathom quick here DIR
bench: fathom quick here DIR
benchmark: fathom quick here DIR
measure: fathom quick here DIR
start: fathom job run FILE.fio
fio: fathom job run FILE.fio
exec: fathom job run FILE.fio
chart: fathom graph
graphs: fathom graph
html: fathom report
csv: fathom export csv
latency: fathom lat FILE_lat.1.log
logs: fathom plot PREFIX
erase: fathom purge DEVICE
wipe: fathom purge DEVICE
sanitize: fathom purge DEVICE
format: fathom purge DEVICE
precondition: fathom provision DEVICE
prepare: fathom provision DEVICE
menuconfig: fathom config menu
defconfig: fathom config defconfig NAME
info: fathom doctor
server: fathom serve
kubernetes: fathom cluster seq
stop: fathom resume goes on with what Ctrl-C has stopped";

/// The error with a tip of what to type.
pub fn with_tip(mut error: clap::Error, root: &Command) -> clap::Error {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return error;
    }
    let words = super::command_line();
    let (path, command) = deepest(root, &words);
    // It names the hidden ones, too.
    error.remove(ContextKind::ValidSubcommand);
    let mut tips = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        _ => Vec::new(),
    };
    let tip = match (instead(&error, &path), error.kind()) {
        (Some(instead), _) => {
            // clap's nearest word is a guess by letters, and would stand above it.
            error.remove(ContextKind::SuggestedSubcommand);
            tips.clear();
            format!("did you mean: {instead}")
        }
        (None, ErrorKind::UnknownArgument) if path == "fathom job run" => {
            tips.clear();
            "options of fio stand behind --: fathom job run -- --name=a --rw=randread --size=64m"
                .to_owned()
        }
        (None, ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) => {
            tips.clear();
            format!("'{path} --help' lists what there is")
        }
        (None, _) => format!("for example: {}", example(command, &path, named(&error))),
    };
    tips.push(StyledStr::from(tip));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    error
}

/// The argument that an error is about, as in `--host <USER@HOST>`.
fn named(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => Some(argument),
        _ => None,
    }
}

/// The command that words lead to, and how it is called.
fn deepest<'c>(root: &'c Command, words: &[String]) -> (String, &'c Command) {
    let mut at = (root.get_name().to_owned(), root);
    for word in words.iter().skip(1).take_while(|word| *word != "--") {
        if let Some(below) = at.1.find_subcommand(word) {
            at = (format!("{} {}", at.0, below.get_name()), below);
        }
    }
    at
}

/// The first of the command's examples that has the option, without its explanation;
/// one that is made of the option's name where none has it.
fn example(command: &Command, path: &str, option: Option<&str>) -> String {
    let option = option.filter(|it| it.starts_with("--"));
    let text = command.get_after_help().map(ToString::to_string);
    let text = text.unwrap_or_default();
    let examples = text.split("Examples:\n").nth(1).unwrap_or_default();
    let mut calls = examples
        .lines()
        .map(|line| line.trim().split("  ").next().unwrap_or_default())
        .filter(|line| line.starts_with(path));
    match option {
        Some(option) => {
            let name = option.split([' ', '=']).next().unwrap_or(option);
            let has_it = |call: &&str| call.split([' ', '=']).any(|word| word == name);
            let plain: String = option.chars().filter(|c| !"<>".contains(*c)).collect();
            let made = || format!("{path} {plain}");
            calls.find(has_it).map_or_else(made, str::to_owned)
        }
        None => calls.next().unwrap_or(path).to_owned(),
    }
}

/// What was meant by a word that is no command, or no argument of it.
fn instead(error: &clap::Error, path: &str) -> Option<String> {
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        _ => return None,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else {
        return None;
    };
    match path {
        "fathom" => known(word).or_else(|| by_file(word)),
        "fathom job" if is_of(word, "fio") => Some(format!("fathom job run {word}")),
        "fathom check" if is_of(word, "fio") => Some(format!("fathom job check {word}")),
        "fathom check" if is_of(word, "toml") => Some(format!("fathom plan {word}")),
        "fathom gen" if is_of(word, "fio") => Some(format!("fathom job show {word}")),
        _ => None,
    }
}

fn known(word: &str) -> Option<String> {
    let mut lines = WORDS.lines().filter_map(|line| line.split_once(": "));
    lines.find_map(|(known, instead)| (known == word).then(|| instead.to_owned()))
}

/// Whether a file's name ends so.
pub fn is_of(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it == ending)
}

/// What is done with a file, folder or device of this name.
fn by_file(name: &str) -> Option<String> {
    let path = Path::new(name);
    let has = |file: &str| path.join(file).exists();
    let is_log = name.ends_with(".log") || name.ends_with(".log.gz");
    Some(match () {
        () if is_of(name, "fio") => format!("fathom job run {name}"),
        () if is_of(name, "toml") => format!("fathom run {name}"),
        () if is_log => format!("fathom lat {name}"),
        () if is_of(name, "json") => format!("fathom import {name}"),
        () if has(fathom_record::EVENTS) => format!("fathom show {name}"),
        () if has("Kconfig") => format!("fathom plan -C {name}"),
        () if path.is_dir() => format!("fathom quick here {name}"),
        () if name.starts_with("/dev/") => format!(
            "fathom job run -- --name=a --filename={name} --rw=randread --runtime=10s --time_based"
        ),
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cmd::Cli;

    #[test]
    fn what_is_meant_instead_is_a_command() {
        let root = Cli::command();
        for (word, instead) in WORDS.lines().filter_map(|line| line.split_once(": ")) {
            assert!(root.find_subcommand(word).is_none(), "{word} is a command");
            let words: Vec<String> = instead.split(' ').map(str::to_owned).collect();
            let (path, _) = deepest(&root, &words);
            assert_ne!(path, "fathom", "{instead}");
        }
    }

    /// Every command, with the words that call it.
    fn all(root: &Command) -> Vec<(String, Command)> {
        let mut open = vec![(root.get_name().to_owned(), root.clone())];
        let mut found = Vec::new();
        while let Some((path, command)) = open.pop() {
            for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
                open.push((format!("{path} {}", below.get_name()), below.clone()));
            }
            found.push((path, command));
        }
        found
    }

    #[test]
    fn every_command_has_an_example_that_its_errors_show() {
        for (path, command) in all(&Cli::command()) {
            let found = example(&command, &path, None);
            assert!(found.starts_with(&path), "{path}: {found}");
            let text = command.get_after_help().unwrap().to_string();
            assert!(text.contains(&found), "{path}: {found}");
        }
    }

    /// The calls of `fathom` in a page: in backquotes, and lines of its code.
    fn calls(page: &str) -> Vec<String> {
        let quoted = page.split('`').skip(1).step_by(2).map(str::to_owned);
        let lines = page.lines().map(|line| line.trim().to_owned());
        quoted
            .chain(lines)
            .filter(|call| call.starts_with("fathom ") && !call.contains('\n'))
            .collect()
    }

    #[test]
    fn what_people_of_other_tools_are_told_to_type_exists() {
        let mut root = Cli::command();
        root.build();
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/coming-from");
        let (mut checked, mut wrong) = (0, Vec::new());
        for page in std::fs::read_dir(docs).unwrap() {
            let page = page.unwrap().path();
            for call in calls(&std::fs::read_to_string(&page).unwrap()) {
                let words: Vec<String> = call.split_whitespace().map(str::to_owned).collect();
                let (path, command) = deepest(&root, &words);
                let place = format!("{}: {call}", page.display());
                if path == "fathom" {
                    wrong.push(format!("{place}: no such command"));
                }
                let own = words.iter().take_while(|word| *word != "--");
                for option in own.filter_map(|word| word.strip_prefix("--")) {
                    let option = option.split('=').next().unwrap();
                    let mut all = command.get_arguments();
                    let is_known = all.any(|arg| {
                        let aliases = arg.get_visible_aliases().unwrap_or_default();
                        arg.get_long() == Some(option) || aliases.contains(&option)
                    });
                    if !is_known {
                        wrong.push(format!("{place}: no --{option}"));
                    }
                }
                checked += 1;
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(checked > 30, "{checked}");
    }
}
