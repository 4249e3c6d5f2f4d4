//! The commands as people look for them: the groups of `fathom --help` and of the manual.

use clap::Command;
use fathom_sheet::style::wrap;

use super::kinds;
use crate::out::{self, ColorChoice};

/// The heading of the commands that run something, which have a table of their own.
const MEASURE: &str = "Measure";
/// Headings and commands, in the order in which they are needed. A build may be without
/// some of them.
const GROUPS: [(&str, &str); 7] = [
    (MEASURE, ""),
    (
        "Campaigns and plan files",
        "init config gen check plan run resume status watch",
    ),
    ("Prepare a drive", "purge provision ledger"),
    (
        "Look and compare",
        "runs show explain compare history steady graph report serve-runs baseline query export import demo",
    ),
    ("fio's logs", "lat plot"),
    ("Many machines", "serve cluster"),
    (
        "This machine",
        "doctor engines restore schema completions man",
    ),
];

/// What `fathom` alone says.
const FIRST: &str = "\
fathom quick here /mnt/disk   how fast is this file system? 26 tests, nothing to configure
fathom job run FILE.fio       run a fio job file, and keep what happened
fathom init DIR               a campaign: what a drive does over depths, jobs and mixes
fathom doctor                 what works on this machine, and what is missing
fathom --help                 all commands";

/// Lines are no longer than this, on wider terminals too.
const COLUMNS_MAX: usize = 100;

/// The command with its help by groups; alone it says only how to begin.
pub fn grouped(command: Command) -> Command {
    let mut words = std::env::args_os().skip(1).peekable();
    if words.peek().is_none() {
        return command.override_help(FIRST);
    }
    // The list is for help alone: nothing else need wait until it is made.
    if !words.any(|word| ["-h", "--help", "help"].iter().any(|help| word == *help)) {
        return command;
    }
    let window = out::style(ColorChoice::Auto).width;
    let columns = window.map_or(COLUMNS_MAX, |width| usize::from(width).min(COLUMNS_MAX));
    let list = text(&command, columns);
    // Colours as clap's own headings have.
    let styles = command.get_styles();
    let heading = styles.get_header();
    let list: String = list
        .lines()
        .map(|line| match line.strip_suffix(':') {
            Some(_) if !line.starts_with(' ') => format!("{heading}{line}{heading:#}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let options = format!("{heading}Options:{heading:#}");
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\n{options}\n{{options}}{{after-help}}"
    ))
}

fn groups() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    GROUPS.into_iter().map(|(heading, names)| match heading {
        MEASURE => (heading, kinds::names().collect()),
        _ => (heading, names.split(' ').collect()),
    })
}

/// Headings with a colon, and below each a line for every command.
pub fn text(command: &Command, columns: usize) -> String {
    let names = groups().flat_map(|(_, names)| names);
    let indent = 2 + names.map(str::len).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for (heading, names) in groups() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("{heading}:\n"));
        for command in names.iter().filter_map(|it| command.find_subcommand(it)) {
            let about = command.get_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let lines = wrap(&about, columns.saturating_sub(indent).max(20));
            for (n, line) in lines.iter().enumerate() {
                let name = if n == 0 { command.get_name() } else { "" };
                let width = indent - 2;
                text.push_str(&format!("  {name:width$}{line}\n"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cmd::Cli;

    #[test]
    fn every_command_stands_in_one_group() {
        let command = Cli::command();
        let grouped: Vec<&str> = groups().flat_map(|(_, names)| names).collect();
        for command in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            let name = command.get_name();
            let groups = grouped.iter().filter(|it| **it == name).count();
            assert_eq!(
                groups, 1,
                "{name} stands in {groups} groups of cmd/groups.rs"
            );
        }
        assert_eq!(FIRST.lines().count(), 5);
        assert!(
            FIRST
                .lines()
                .all(|line| line.chars().count() <= COLUMNS_MAX)
        );
    }

    #[test]
    fn the_list_fits_the_window() {
        for columns in [50, 80, 100] {
            let text = text(&Cli::command(), columns);
            let wide = text.lines().find(|line| line.chars().count() > columns);
            assert_eq!(wide, None, "{columns} columns");
        }
    }
}
