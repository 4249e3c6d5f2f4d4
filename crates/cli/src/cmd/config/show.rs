//! `fathom config show`, `get`, `search` and `listnewconfig`.

use std::path::PathBuf;

use fathom_campaign::folder;
use fathom_kconfig::{SymbolId, Tri};
use fathom_model::Exit;
use fathom_sheet::style::Tone;
use serde::Serialize;

use super::entry::{self, SymbolValue};
use super::{ConfigSession, change};
use crate::out;

/// Show the values that count
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A * marks what differs from the default.

Examples:
  fathom config show
  fathom config show --changed
  fathom config show --json | jq -r '.symbols[] | select(.changed) | .name'")]
pub struct Args {
    /// Only what differs from the defaults
    #[arg(long)]
    changed: bool,
    /// Also what cannot be set now
    #[arg(long, conflicts_with = "changed")]
    all: bool,
}

/// Print the values of symbols, one a line
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom config get DUT_FILENAME
  fathom config get CONFIG_PURGING")]
pub struct Get {
    /// The symbols; CONFIG_ before the name may be left out
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// Search names, prompts and help texts
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom config search runtime
  fathom config search steady limit      what has both words")]
pub struct SymbolSearch {
    /// Words that must all be there
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
}

/// List the symbols that .config does not have yet, at their defaults
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom config listnewconfig")]
pub struct New {}

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document<'s> {
    /// `fathom.config/1`
    schema: &'static str,
    config: PathBuf,
    symbols: Vec<SymbolValue>,
    warnings: &'s [String],
}

fn document(session: &ConfigSession, symbols: &[SymbolId]) -> anyhow::Result<Exit> {
    let entries = symbols
        .iter()
        .map(|&id| SymbolValue::of(&session.config, id));
    out::json(&Document {
        schema: "fathom.config/1",
        config: session.folder.file(folder::CONFIG),
        symbols: entries.collect(),
        warnings: &session.warnings,
    })?;
    Ok(Exit::Success)
}

/// Shows the values by menu.
pub fn run(session: &ConfigSession, args: &Args) -> anyhow::Result<Exit> {
    let config = &session.config;
    let wanted = |id: SymbolId| match (args.all, args.changed) {
        (true, _) => true,
        (_, true) => config.is_told(id),
        _ => config.visibility(id) > Tri::N,
    };
    let all = config.tree().symbols().iter().copied();
    let symbols: Vec<SymbolId> = all.filter(|&id| wanted(id)).collect();
    if session.global.json {
        return document(session, &symbols);
    }
    if !session.existed && !session.global.quiet {
        let path = session.folder.file(folder::CONFIG);
        out::note(format_args!(
            "There is no {} yet: these are the defaults.",
            path.display()
        ));
    }
    if symbols.is_empty() {
        out::note("Everything is at its default.");
    }
    list(session, &symbols);
    Ok(Exit::Success)
}

/// The symbols under the titles of their menus; of a choice what is picked.
fn list(session: &ConfigSession, symbols: &[SymbolId]) {
    let (config, style) = (&session.config, out::style(session.global.color));
    let tree = config.tree();
    let is_shown = |id: &SymbolId| {
        tree.symbol(*id)
            .choice
            .is_none_or(|choice| config.selection(choice).is_none_or(|picked| picked == *id))
    };
    let shown: Vec<SymbolId> = symbols.iter().copied().filter(is_shown).collect();
    let width = |of: fn(&ConfigSession, SymbolId) -> String| {
        let widths = shown.iter().map(|&id| of(session, id).chars().count());
        // Long values move their own line only.
        widths.filter(|&width| width <= 36).max().unwrap_or(0)
    };
    let (names, values) = (width(name), width(value));
    let mut menu = Vec::new();
    for (n, &id) in shown.iter().enumerate() {
        let entry = SymbolValue::of(config, id);
        if entry.menu != menu {
            menu.clone_from(&entry.menu);
            if n > 0 {
                out::line("");
            }
            out::line(style.paint(Tone::Strong, &menu.join(" › ")));
        }
        let mark = if entry.changed { "*" } else { " " };
        let mark = style.paint(Tone::Good, mark);
        let (name, value) = (name(session, id), value(session, id));
        let about = style.paint(Tone::Faint, &entry::about(config, id));
        out::line(
            format_args!("{mark} {name:names$}  {value:values$}  {about}")
                .to_string()
                .trim_end(),
        );
    }
}

fn name(session: &ConfigSession, id: SymbolId) -> String {
    session.config.tree().symbol(id).name.clone()
}

fn value(session: &ConfigSession, id: SymbolId) -> String {
    change::quoted(
        session.config.tree().symbol(id).kind,
        session.config.text(id),
    )
}

/// Prints values.
pub fn get(session: &ConfigSession, args: &Get) -> anyhow::Result<Exit> {
    let symbols = session.symbols(&args.names)?;
    if session.global.json {
        return document(session, &symbols);
    }
    for id in symbols {
        out::line(session.config.text(id));
    }
    Ok(Exit::Success)
}

/// Lists what is found, best first.
pub fn search(session: &ConfigSession, args: &SymbolSearch) -> anyhow::Result<Exit> {
    let hits = session.config.search(&args.words.join(" "));
    let symbols: Vec<SymbolId> = hits.into_iter().map(|hit| hit.symbol).collect();
    if session.global.json {
        return document(session, &symbols);
    }
    if symbols.is_empty() {
        out::note(format_args!(
            "nothing is found for {}",
            args.words.join(" ")
        ));
        return Ok(Exit::Failed);
    }
    let width = symbols.iter().map(|&id| name(session, id).len()).max();
    let width = width.unwrap_or(0);
    for id in symbols {
        let entry = SymbolValue::of(&session.config, id);
        let mut place = entry.menu.clone();
        place.push(entry::about(&session.config, id));
        out::line(format_args!("{:width$}  {}", entry.name, place.join(" › ")));
    }
    Ok(Exit::Success)
}

/// Lists what `.config` does not say.
pub fn new(session: &ConfigSession) -> anyhow::Result<Exit> {
    let symbols = session.config.new_symbols();
    if session.global.json {
        return document(session, &symbols);
    }
    for id in symbols {
        out::line(session.config.assignment(id));
    }
    Ok(Exit::Success)
}
