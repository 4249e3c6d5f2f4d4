//! `fathom config explain`, and the same text in the menu: what a symbol is,
//! what it is now, and why.

use fathom_kconfig::{ChoiceId, ConditionPart, Config, Item, NodeId, SymbolId, SymbolKind, Tri};
use fathom_model::Exit;
use fathom_sheet::style;
use schemars::JsonSchema;
use serde::Serialize;

use super::entry::{self, SymbolValue};
use super::{ConfigSession, change};
use crate::out;

/// Columns where the output is no terminal.
const WIDTH: u16 = 80;
/// Columns of the words before a fact.
const LABEL: usize = 12;

/// Explain a symbol: its help, what it is now, and why
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom config explain DUT_IOSIZE
  fathom config explain CONFIG_PURGE_SES_2 --json")]
pub struct Args {
    /// The symbols; CONFIG_ before the name may be left out
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// Explains symbols.
pub fn run(session: &ConfigSession, args: &Args) -> anyhow::Result<Exit> {
    let symbols = session.symbols(&args.names)?;
    let config = &session.config;
    if session.global.json {
        out::json(&SymbolsDocument {
            schema: "fathom.config-symbols/1",
            symbols: (symbols.iter())
                .map(|&id| ExplainedSymbol::of(config, id))
                .collect(),
        })?;
        return Ok(Exit::Success);
    }
    let width = out::style(session.global.color).width.unwrap_or(WIDTH);
    for (n, &id) in symbols.iter().enumerate() {
        if n > 0 {
            out::line("");
        }
        if let Some(node) = entry::node_of(config, id) {
            lines(config, node, usize::from(width))
                .iter()
                .for_each(out::line);
        }
    }
    Ok(Exit::Success)
}

/// What `explain --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct SymbolsDocument {
    schema: &'static str,
    symbols: Vec<ExplainedSymbol>,
}

/// A symbol, and why it is what it is.
#[derive(Serialize, JsonSchema)]
struct ExplainedSymbol {
    symbol: SymbolValue,
    help: Option<String>,
    /// File and line of each definition.
    defined: Vec<String>,
    /// The parts of what it depends on.
    depends: Vec<ValuedPart>,
    /// The same of each of its prompts.
    prompts: Vec<Vec<ValuedPart>>,
    default: Option<String>,
    /// Least and most.
    range: Option<[String; 2]>,
    selected_by: Vec<String>,
    implied_by: Vec<String>,
}

/// A part of a condition, and what it is now.
#[derive(Serialize, JsonSchema)]
struct ValuedPart {
    text: String,
    /// `n`, `m` or `y`
    value: &'static str,
}

impl ExplainedSymbol {
    fn of(config: &Config, id: SymbolId) -> Self {
        let tree = config.tree();
        let explanation = config.explain(id);
        let parts = |parts: &[ConditionPart]| -> Vec<ValuedPart> {
            let one = |part: &ConditionPart| ValuedPart {
                text: part.text.clone(),
                value: part.value.as_str(),
            };
            parts.iter().map(one).collect()
        };
        let by = |by: &[(SymbolId, Tri)]| -> Vec<String> {
            let name = |(by, _): &(SymbolId, Tri)| tree.symbol(*by).name.clone();
            by.iter().map(name).collect()
        };
        let nodes = &tree.symbol(id).nodes;
        let range = config.range(id);
        Self {
            symbol: SymbolValue::of(config, id),
            help: nodes.iter().find_map(|&node| tree.node(node).help.clone()),
            defined: nodes.iter().map(|&node| place(config, node)).collect(),
            depends: parts(&explanation.depends),
            prompts: explanation.prompts.iter().map(|it| parts(it)).collect(),
            default: explanation.default.map(|default| default.text),
            range: range.map(|(low, high)| [low.to_string(), high.to_string()]),
            selected_by: by(&explanation.selected_by),
            implied_by: by(&explanation.implied_by),
        }
    }
}

/// Everything about what stands at a node, no line wider than `width`.
pub fn lines(config: &Config, node: NodeId, width: usize) -> Vec<String> {
    let tree = config.tree();
    let entry = tree.node(node);
    let mut text = WrappedText {
        lines: Vec::new(),
        width,
    };
    let prompt = entry::prompt(config, node);
    let (name, nodes) = match entry.item {
        Item::Symbol(id) => (
            Some(tree.symbol(id).name.clone()),
            tree.symbol(id).nodes.clone(),
        ),
        Item::Choice(id) => (tree.choice(id).name.clone(), tree.choice(id).nodes.clone()),
        _ => (None, vec![node]),
    };
    let title: Vec<String> = [name, prompt].into_iter().flatten().collect();
    text.paragraph("", &title.join(": "));
    text.lines.push(String::new());
    let help = nodes.iter().find_map(|&node| tree.node(node).help.clone());
    if let Some(help) = help {
        text.help(&help);
        text.lines.push(String::new());
    }
    let mut menus = entry::menus(config, node);
    menus.insert(0, tree.title().to_owned());
    match entry.item {
        Item::Symbol(id) => about_symbol(config, id, &mut text),
        Item::Choice(id) => about_choice(config, id, node, &mut text),
        _ => text.needs("Needs", config, &config.conditions(entry.depends)),
    }
    text.fact("Menu", &menus.join(" › "));
    for node in nodes {
        text.fact("Defined in", &place(config, node));
    }
    text.lines
}

/// File and line.
fn place(config: &Config, node: NodeId) -> String {
    let position = &config.tree().node(node).position;
    format!("{}, line {}", position.file, position.line)
}

fn about_symbol(config: &Config, id: SymbolId, text: &mut WrappedText) {
    let tree = config.tree();
    let symbol = tree.symbol(id);
    let kind = config.kind(id);
    let value = change::quoted(kind, config.text(id));
    let value = match value.is_empty() {
        true => "none".to_owned(),
        false => value,
    };
    let from = match (config.user_value(id), config.visibility(id)) {
        (Some(_), visibility) if visibility > Tri::N => "",
        _ => ", not set by you",
    };
    text.fact("Value", &format!("{value} ({}{from})", kind.as_str()));
    if let Some((low, high)) = config.range(id) {
        text.fact("Range", &range(kind, low, high));
    }
    let explanation = config.explain(id);
    if let Some(default) = &explanation.default {
        let whole = symbol.kind.is_logical() && default.text.contains(' ');
        let default = match whole {
            true => format!("{} (now {})", default.text, default.value),
            false => default.text.clone(),
        };
        text.fact("Default", &default);
    }
    if let Some(choice) = symbol.choice {
        text.fact("Choice", &tree.choice_name(choice));
    }
    match &explanation.prompts[..] {
        [] => text.fact("Prompt", "none: it follows from other symbols"),
        prompts => {
            for (n, parts) in prompts.iter().enumerate() {
                text.needs(if n == 0 { "Needs" } else { "or" }, config, parts);
            }
        }
    }
    for (label, by) in [
        ("EngineHandle by", &explanation.selected_by),
        ("Implied by", &explanation.implied_by),
    ] {
        let names: Vec<&str> = by.iter().map(|(by, _)| &*tree.symbol(*by).name).collect();
        if !names.is_empty() {
            text.fact(label, &names.join(", "));
        }
    }
    for &node in &symbol.nodes {
        for (label, selects) in [
            ("Selects", tree.node(node).selects()),
            ("Implies", tree.node(node).implies()),
        ] {
            for select in selects {
                text.fact(label, &tree.symbol(select.target).name);
            }
        }
    }
}

fn about_choice(config: &Config, id: ChoiceId, node: NodeId, text: &mut WrappedText) {
    let tree = config.tree();
    if let Some(picked) = config.selection(id) {
        text.fact("Value", &tree.symbol(picked).name);
    }
    let members = &tree.choice(id).members;
    let members: Vec<&str> = members.iter().map(|&id| &*tree.symbol(id).name).collect();
    text.fact("One of", &members.join(", "));
    text.needs("Needs", config, &config.conditions(tree.node(node).depends));
}

/// A range in the form of its type.
pub fn range(kind: SymbolKind, low: i128, high: i128) -> String {
    match kind {
        SymbolKind::Hex => format!("{low:#x} to {high:#x}"),
        _ => format!("{low} to {high}"),
    }
}

/// Lines that fit a width.
struct WrappedText {
    lines: Vec<String>,
    width: usize,
}

impl WrappedText {
    fn fact(&mut self, label: &str, fact: &str) {
        self.paragraph(&format!("{label:LABEL$}"), fact);
    }

    /// What must hold, a part a line.
    fn needs(&mut self, label: &str, config: &Config, parts: &[ConditionPart]) {
        let mut label = label;
        for part in parts {
            let holds = part.value > Tri::N;
            let is_symbol = config.tree().named(&part.text).is_ok();
            let now = match (is_symbol, holds) {
                (true, _) => format!(" (now {})", part.value),
                (false, true) => " (holds)".to_owned(),
                (false, false) => " (does not hold)".to_owned(),
            };
            self.fact(label, &format!("{}{now}", part.text));
            label = "";
        }
    }

    /// A help text: its paragraphs filled anew, indented lines as they are.
    fn help(&mut self, help: &str) {
        let mut open = String::new();
        for line in help.lines() {
            if line.trim().is_empty() || line.starts_with([' ', '\t']) {
                self.paragraph("", &std::mem::take(&mut open));
                self.lines.push(line.to_owned());
            } else {
                open.push(' ');
                open.push_str(line);
            }
        }
        self.paragraph("", &open);
    }

    /// Words after `label`, further lines below the first word.
    fn paragraph(&mut self, label: &str, words: &str) {
        let indent = label.chars().count();
        let room = self.width.saturating_sub(indent);
        for (n, line) in style::wrap(words, room).iter().enumerate() {
            let label = if n == 0 { label } else { "" };
            self.lines.push(format!("{label:indent$}{line}"));
        }
    }
}
