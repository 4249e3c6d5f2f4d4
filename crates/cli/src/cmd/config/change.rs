//! What differs between two sets of values.

use std::path::PathBuf;

use fathom_kconfig::{Config, SymbolId, SymbolKind};
use fathom_sheet::style::{Style, Tone};
use serde::Serialize;

/// What `--json` prints of a command that writes `.config`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Document {
    /// `fathom.config-change/1`
    pub schema: &'static str,
    pub config: PathBuf,
    /// Whether the file was written: it was not when nothing changed.
    pub written: bool,
    pub changes: Vec<Change>,
    pub warnings: Vec<String>,
}

/// One symbol whose line in `.config` has changed.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Change {
    pub name: String,
    /// `null` where it did not stand in `.config`.
    pub from: Option<String>,
    /// `null` where it no longer does.
    pub to: Option<String>,
    /// Whether it was asked for; the others follow.
    pub asked: bool,
    #[serde(skip)]
    kind: SymbolKind,
}

/// What has changed, what was `asked` for first.
pub fn between(before: &Config, after: &Config, asked: &[SymbolId]) -> Vec<Change> {
    let tree = after.tree();
    let value = |config: &Config, id| config.is_written(id).then(|| config.text(id).to_owned());
    let change = |&id: &SymbolId| Change {
        name: tree.symbol(id).name.clone(),
        from: value(before, id),
        to: value(after, id),
        asked: asked.contains(&id),
        kind: tree.symbol(id).kind,
    };
    let all = tree.symbols().iter().map(change);
    let mut changes: Vec<Change> = all.filter(|change| change.from != change.to).collect();
    changes.sort_by_key(|change| !change.asked);
    changes
}

/// The changes as lines.
pub fn list(changes: &[Change], style: Style) -> String {
    let mut text = String::new();
    let mut follows = false;
    for change in changes {
        if !change.asked && !std::mem::replace(&mut follows, true) {
            text += &style.paint(Tone::Faint, "in consequence:");
            text.push('\n');
        }
        let shown = |value: &String| quoted(change.kind, value);
        let indent = if change.asked { "" } else { "  " };
        let name = &change.name;
        let (from, to) = (
            change.from.as_ref().map(shown),
            change.to.as_ref().map(shown),
        );
        text += &match (from, to) {
            (Some(from), Some(to)) => format!("{indent}{name}: {from} → {to}\n"),
            (None, Some(to)) => format!("{indent}{name}: {to} (new)\n"),
            (Some(from), None) => format!("{indent}{name}: {from} → gone\n"),
            (None, None) => continue,
        };
    }
    text
}

/// A value with quotes where its type is text.
pub fn quoted(kind: SymbolKind, value: &str) -> String {
    match kind {
        SymbolKind::String => format!("\"{value}\""),
        _ => value.to_owned(),
    }
}
