//! One symbol, as lists and JSON documents show it.

use fathom_kconfig::{Config, Item, NodeId, SymbolId};
use serde::Serialize;

/// A symbol and its value.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SymbolValue {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub value: String,
    /// Absent for symbols without one.
    pub prompt: Option<String>,
    /// The titles of the menus around it.
    pub menu: Vec<String>,
    /// Whether it can be set now.
    pub visible: bool,
    /// Whether it is not what the defaults alone would make it.
    pub changed: bool,
    /// Whether `.config` does not say what it is to be.
    pub new: bool,
}

impl SymbolValue {
    /// The entry of a symbol.
    pub fn of(config: &Config, id: SymbolId) -> Self {
        let symbol = config.tree().symbol(id);
        let node = node_of(config, id);
        Self {
            name: symbol.name.clone(),
            kind: symbol.kind.as_str(),
            value: config.text(id).to_owned(),
            prompt: node.and_then(|node| prompt(config, node)),
            menu: node.map_or_else(Vec::new, |node| menus(config, node)),
            visible: config.visibility(id) > fathom_kconfig::Tri::N,
            changed: config.is_told(id),
            new: config.user_value(id).is_none() && config.can_change(id),
        }
    }
}

/// Where a symbol is shown, else where it is defined first.
pub fn node_of(config: &Config, id: SymbolId) -> Option<NodeId> {
    let nodes = &config.tree().symbol(id).nodes;
    let shown = nodes.iter().find(|&&node| config.is_visible(node));
    shown.or(nodes.first()).copied()
}

/// What a node shows.
pub fn prompt(config: &Config, node: NodeId) -> Option<String> {
    let prompt = config.tree().node(node).prompt.as_ref()?;
    Some(prompt.text.clone())
}

/// The titles of the menus that a node stands in, the main menu left out.
pub fn menus(config: &Config, node: NodeId) -> Vec<String> {
    let tree = config.tree();
    config
        .path(node)
        .into_iter()
        .skip(1)
        .filter(|&node| tree.node(node).item == Item::Menu)
        .filter_map(|node| prompt(config, node))
        .collect()
}

/// The prompt of a symbol, behind that of its choice; empty without one.
pub fn about(config: &Config, id: SymbolId) -> String {
    let tree = config.tree();
    let prompt = node_of(config, id).and_then(|node| prompt(config, node));
    match (tree.symbol(id).choice, prompt) {
        (Some(choice), Some(prompt)) => format!("{}: {prompt}", tree.choice_name(choice)),
        (_, prompt) => prompt.unwrap_or_default(),
    }
}
