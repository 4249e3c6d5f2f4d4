//! `.config` files: reading, writing, and the short form that holds only what
//! differs from the defaults.

use std::collections::HashSet;

use crate::config::Config;
use crate::error::{Position, Warning, WarningKind};
use crate::expr::{Tri, escape};
use crate::tree::{Item, NodeId, SymbolId, SymbolKind};

/// The comment that the kernel's own tools write first.
#[must_use]
pub fn kernel_header(title: &str) -> String {
    format!("#\n# Automatically generated file; DO NOT EDIT.\n# {title}\n#\n")
}

/// The text between the quotes at the beginning of a value, without its
/// escapes; what follows the second quote is not looked at.
fn unquote(value: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = value.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => return Some(text),
            '\\' => text.push(chars.next()?),
            c => text.push(c),
        }
    }
}

/// One line of a `.config`.
enum ConfigLine<'l> {
    Set(&'l str, &'l str),
    NotSet(&'l str),
    Comment,
    Malformed,
}

fn read_line<'l>(line: &'l str, prefix: &str) -> ConfigLine<'l> {
    if let Some(rest) = line.strip_prefix(prefix)
        && let Some((name, value)) = rest.split_once('=').filter(|(name, _)| !name.is_empty())
    {
        return ConfigLine::Set(name, value);
    }
    let comment = line
        .strip_prefix("# ")
        .and_then(|rest| rest.strip_prefix(prefix));
    if let Some((name, rest)) = comment.and_then(|rest| rest.split_once(' '))
        && rest.starts_with("is not set")
        && !name.is_empty()
    {
        return ConfigLine::NotSet(name);
    }
    match line.trim_start().chars().next() {
        None | Some('#') => ConfigLine::Comment,
        Some(_) => ConfigLine::Malformed,
    }
}

impl Config {
    /// Takes the values of a `.config`; what it does not name goes back to its
    /// default. `name` is what warnings call the file.
    pub fn read(&mut self, text: &str, name: &str) -> Vec<Warning> {
        self.reset();
        self.merge(text, name)
    }

    /// Takes the values of a `.config` and leaves what it does not name.
    pub fn merge(&mut self, text: &str, name: &str) -> Vec<Warning> {
        let mut reading = DotConfigReader {
            config: self,
            file: name.into(),
            line: 0,
            seen: HashSet::new(),
            warnings: Vec::new(),
        };
        for line in text.lines() {
            reading.line += 1;
            reading.line(line.trim_end());
        }
        reading.warnings
    }

    /// The whole `.config`: every symbol that is visible or has a value, in the
    /// order and with the comments of the menu, after `header`.
    #[must_use]
    pub fn write(&self, header: &str) -> String {
        let mut writing = Writing {
            config: self,
            out: header.to_owned(),
            done: vec![false; self.tree().symbols.len()],
            after_end: false,
        };
        writing.below(self.tree().root());
        writing.out
    }

    /// The short `.config`: only what the defaults would not give.
    #[must_use]
    pub fn write_min(&self, header: &str) -> String {
        let mut out = header.to_owned();
        for &id in self.tree().symbols() {
            if self.is_told(id) {
                out.push_str(&self.line(id));
            }
        }
        out
    }

    /// Whether the short form names a symbol: it is not what the defaults alone
    /// would make it.
    #[must_use]
    pub fn is_told(&self, id: SymbolId) -> bool {
        let symbol = self.tree().symbol(id);
        let fixed = self.visibility(id) <= self.value(symbol.reverse);
        if symbol.choice.is_none() && fixed || self.text(id) == self.untouched(id) {
            return false;
        }
        // Picked without being told, unless the choice might as well be off or
        // the member a module.
        let goes_without_saying = symbol.choice.is_some_and(|choice| {
            !self.tree().choice(choice).optional
                && symbol.kind == SymbolKind::Bool
                && self.default_selection(choice) == Some(id)
                && self.tri(id) == Tri::Y
        });
        !goes_without_saying
    }

    /// What a symbol would be if the user had not set it, all else as it is.
    fn untouched(&self, id: SymbolId) -> String {
        let symbol = self.tree().symbol(id);
        if !symbol.kind.is_logical() {
            return match symbol.kind {
                SymbolKind::Unknown => String::new(),
                _ => self.default_text(id).unwrap_or_default().to_owned(),
            };
        }
        let mut value = Tri::N;
        if symbol.choice.is_none() {
            value = self
                .default_tri(id)
                .unwrap_or(Tri::N)
                .max(self.value(symbol.reverse))
                .max(self.value(symbol.weak_reverse));
            if value == Tri::M && self.kind(id) == SymbolKind::Bool {
                value = Tri::Y;
            }
        }
        value.as_str().to_owned()
    }

    /// A symbol's line in a `.config`, with its end; empty when it has none.
    #[must_use]
    pub fn line(&self, id: SymbolId) -> String {
        if !self.is_written(id) {
            return String::new();
        }
        let (prefix, name) = (self.tree().prefix(), &self.tree().symbol(id).name);
        let value = self.text(id);
        match self.tree().symbol(id).kind {
            SymbolKind::Bool | SymbolKind::Tristate if value == "n" => {
                format!("# {prefix}{name} is not set\n")
            }
            SymbolKind::String => format!("{prefix}{name}=\"{}\"\n", escape(value)),
            _ => format!("{prefix}{name}={value}\n"),
        }
    }
}

struct DotConfigReader<'c> {
    config: &'c mut Config,
    file: std::sync::Arc<str>,
    line: u32,
    seen: HashSet<SymbolId>,
    warnings: Vec<Warning>,
}

impl DotConfigReader<'_> {
    fn warn(&mut self, kind: WarningKind, message: String) {
        let position = Position {
            file: self.file.clone(),
            line: self.line,
            column: 1,
        };
        self.warnings.push(Warning {
            kind,
            position: Some(position),
            message,
        });
    }

    fn find(&mut self, name: &str) -> Option<SymbolId> {
        let tree = self.config.tree();
        let found = tree.find(name);
        if found.is_none() {
            let names = tree
                .symbols()
                .iter()
                .map(|&id| tree.symbol(id).name.as_str());
            let near = crate::error::nearest(name, names);
            let near = near
                .map(|near| format!("; did you mean {near}?"))
                .unwrap_or_default();
            self.warn(
                WarningKind::Undefined,
                format!("{name} is not defined: ignored{near}"),
            );
        }
        found
    }

    fn line(&mut self, line: &str) {
        let prefix = self.config.tree().prefix().to_owned();
        match read_line(line, &prefix) {
            ConfigLine::Set(name, value) => {
                if let Some(id) = self.find(name) {
                    self.set(id, value);
                }
            }
            ConfigLine::NotSet(name) => {
                if let Some(id) = self.find(name)
                    && self.config.tree().symbol(id).kind.is_logical()
                {
                    self.assign(id, "n");
                }
            }
            ConfigLine::Comment => {}
            ConfigLine::Malformed => {
                self.warn(
                    WarningKind::Malformed,
                    format!("neither a value nor a comment: {line}"),
                );
            }
        }
    }

    fn set(&mut self, id: SymbolId, value: &str) {
        let tree = std::sync::Arc::clone(self.config.tree());
        let symbol = tree.symbol(id);
        if symbol.kind.is_logical() {
            // The first letter decides, as in the kernel's tools.
            let first = value.get(..1).and_then(Tri::from_text);
            let Some(tri) =
                first.filter(|&tri| tri != Tri::M || symbol.kind == SymbolKind::Tristate)
            else {
                return self.invalid(id, value);
            };
            // The members' values say what mode their choice is in.
            if let (Some(choice), true) = (symbol.choice, tri != Tri::N) {
                if self
                    .config
                    .user_mode(choice)
                    .is_some_and(|mode| mode != tri)
                {
                    let message =
                        format!("{}: the choice has members set to y and to m", symbol.name);
                    self.warn(WarningKind::AssignedTwice, message);
                }
                // A bool choice has no mode m; its members have been refused above.
                let _ = self.config.set_mode(choice, tri);
            }
            return self.assign(id, tri.as_str());
        }
        if symbol.kind == SymbolKind::String {
            return match unquote(value) {
                Some(text) => self.assign(id, &text),
                None => self.invalid(id, value),
            };
        }
        self.assign(id, value);
    }

    fn invalid(&mut self, id: SymbolId, value: &str) {
        let tree = self.config.tree();
        let (name, kind) = (&tree.symbol(id).name, tree.symbol(id).kind.with_article());
        let message = format!("{value} is no value for {name}, {kind}");
        self.warn(WarningKind::InvalidValue, message);
    }

    fn assign(&mut self, id: SymbolId, value: &str) {
        let name = self.config.tree().symbol(id).name.clone();
        let before = self.config.user_value(id).map(str::to_owned);
        if !self.seen.insert(id) {
            let before = before.unwrap_or_default();
            let message = format!("{name} was set to {before} above and is now set to {value}");
            self.warn(WarningKind::AssignedTwice, message);
        }
        if self.config.set(id, value).is_err() {
            self.invalid(id, value);
        }
    }
}

struct Writing<'c> {
    config: &'c Config,
    out: String,
    done: Vec<bool>,
    /// The last line said that a menu ends.
    after_end: bool,
}

impl Writing<'_> {
    /// Writes what stands below a node. The parser bounds the depth.
    fn below(&mut self, id: NodeId) {
        let tree = self.config.tree();
        for &child in &tree.node(id).children {
            self.node(child);
            self.below(child);
            let node = tree.node(child);
            if node.item == Item::Menu && !node.children.is_empty() && self.is_there(child) {
                let text = node.prompt.as_ref().map_or("", |prompt| &prompt.text);
                self.out.push_str(&format!("# end of {text}\n"));
                self.after_end = true;
            }
        }
    }

    fn is_there(&self, id: NodeId) -> bool {
        let node = self.config.tree().node(id);
        let visible = node.item != Item::Menu || self.config.value(node.visible) > Tri::N;
        self.config.value(node.depends) > Tri::N && visible
    }

    fn node(&mut self, id: NodeId) {
        let node = self.config.tree().node(id);
        match node.item {
            Item::Symbol(symbol) => {
                if std::mem::replace(&mut self.done[symbol.index()], true) {
                    return;
                }
                let line = self.config.line(symbol);
                if !line.is_empty() && std::mem::take(&mut self.after_end) {
                    self.out.push('\n');
                }
                self.out.push_str(&line);
            }
            Item::Menu | Item::Comment if self.is_there(id) => {
                let text = node.prompt.as_ref().map_or("", |prompt| &prompt.text);
                self.out.push_str(&format!("\n#\n# {text}\n#\n"));
                self.after_end = false;
            }
            _ => {}
        }
    }
}
