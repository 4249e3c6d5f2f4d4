//! `fathom man`: manual pages, made from the same definitions as `--help`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap_mangen::Man;
use fathom_model::Exit;

use super::{Global, groups, write_named};
use crate::out;

/// Write the manual pages of all commands into a folder, or print the first one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom man | man -l -
  fathom man /usr/local/share/man/man1")]
pub struct Args {
    /// Folder for fathom.1, fathom-quick.1, …; without it, fathom.1 goes to stdout
    dir: Option<PathBuf>,
}

pub fn run(_global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut command = super::options::command();
    command.build();
    let Some(dir) = &args.dir else {
        out::line(page(&command)?.trim_end());
        return Ok(Exit::Success);
    };
    fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    write_pages(&command, dir)?;
    Ok(Exit::Success)
}

/// Writes the page of a command and of all commands below it.
fn write_pages(command: &clap::Command, dir: &Path) -> anyhow::Result<()> {
    let path = dir.join(format!("{}.1", page_name(command)));
    write_named(&path, page(command)?)?;
    for below in command.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            write_pages(below, dir)?;
        }
    }
    Ok(())
}

/// `fathom-job-check` for `fathom job check`.
fn page_name(command: &clap::Command) -> String {
    command
        .get_display_name()
        .unwrap_or(command.get_name())
        .to_owned()
}

fn page(command: &clap::Command) -> anyhow::Result<String> {
    let man = Man::new(command.clone()).title(page_name(command).to_uppercase());
    let mut roff = Vec::new();
    man.render_title(&mut roff)?;
    man.render_name_section(&mut roff)?;
    man.render_synopsis_section(&mut roff)?;
    man.render_description_section(&mut roff)?;
    man.render_options_section(&mut roff)?;
    if command.get_name() == "fathom" {
        closing_sections(&groups::text(command, 80), &mut roff)?;
    } else if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut roff)?;
    }
    if let Some(text) = command.get_after_help() {
        closing_sections(&text.to_string(), &mut roff)?;
    }
    Ok(String::from_utf8(roff)?)
}

/// The text after the options as sections: a line that ends with a colon at the
/// left margin is a heading, what stands below keeps its lines. Text before the
/// first heading are notes.
fn closing_sections(text: &str, roff: &mut impl io::Write) -> io::Result<()> {
    let heading = |line: &str| {
        let title = line
            .strip_suffix(':')
            .filter(|title| !title.starts_with(' '));
        title.map(str::to_uppercase)
    };
    if text
        .lines()
        .next()
        .is_some_and(|line| heading(line).is_none())
    {
        writeln!(roff, ".SH NOTES")?;
    }
    for line in text.lines() {
        match heading(line) {
            Some(title) => writeln!(roff, ".fi\n.SH {title}\n.nf")?,
            None => writeln!(roff, "{}", escape(line.strip_prefix("  ").unwrap_or(line)))?,
        }
    }
    writeln!(roff, ".fi")
}

/// A line that means nothing to roff (groff_char(7): `\-` is the ASCII minus).
fn escape(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    match escaped.starts_with(['.', '\'']) {
        true => format!("\\&{escaped}"),
        false => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines() {
        let mut roff = Vec::new();
        closing_sections("Examples:\n  fathom -q\n  .x\\", &mut roff).unwrap();
        let roff = String::from_utf8(roff).unwrap();
        assert_eq!(roff, ".fi\n.SH EXAMPLES\n.nf\nfathom \\-q\n\\&.x\\e\n.fi\n");
        let mut roff = Vec::new();
        closing_sections("A word.", &mut roff).unwrap();
        assert_eq!(roff, b".SH NOTES\nA word.\n.fi\n");
    }
}
