//! What a menuconfig shows: the rows of a menu, a search, and why an entry is
//! what it is.

use crate::config::Config;
use crate::expr::{Expr, ExprId, Tri};
use crate::tree::{Item, NodeId, SymbolId, SymbolKind, Tree};

/// One line of a menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MenuRow {
    /// The node it shows.
    pub node: NodeId,
    /// How many entries of the same menu it stands under.
    pub indent: usize,
    /// What stands before the prompt: `[*]`, `<M>`, `(32)`, `-*-`, `(X)`; empty
    /// for menus and comments.
    pub value: String,
    /// The prompt; the name of a symbol without one.
    pub text: String,
    /// Whether it can be entered: a menu, a choice, a menuconfig that is on.
    pub enters: bool,
    /// Whether the user could see it; rows that are not are there only on demand.
    pub visible: bool,
}

/// A symbol that was found, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The symbol.
    pub symbol: SymbolId,
    /// Where it is shown now, else where it is defined first.
    pub node: NodeId,
}

/// A part of a condition and what it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionPart {
    /// As it could be written.
    pub text: String,
    /// Its value now.
    pub value: Tri,
}

/// Why a symbol is what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What its prompts need, one list for each prompt; all parts of a list
    /// must hold. Empty when there is no prompt.
    pub prompts: Vec<Vec<ConditionPart>>,
    /// What it depends on.
    pub depends: Vec<ConditionPart>,
    /// The symbols that select it now, and how far.
    pub selected_by: Vec<(SymbolId, Tri)>,
    /// The symbols that imply it now, and how far.
    pub implied_by: Vec<(SymbolId, Tri)>,
    /// The default that counts now, as written.
    pub default: Option<ConditionPart>,
}

impl Explanation {
    /// The parts of the prompts' conditions that keep the symbol hidden.
    pub fn missing(&self) -> impl Iterator<Item = &ConditionPart> {
        self.prompts
            .iter()
            .flatten()
            .filter(|part| part.value == Tri::N)
    }
}

impl Config {
    /// The lines of a menu: what stands under `menu`, entries that depend on
    /// each other indented. With `hidden` also what the user cannot see now.
    #[must_use]
    pub fn rows(&self, menu: NodeId, hidden: bool) -> Vec<MenuRow> {
        let mut rows = Vec::new();
        self.add_rows(menu, 0, hidden, &mut rows);
        rows
    }

    fn add_rows(&self, parent: NodeId, indent: usize, hidden: bool, rows: &mut Vec<MenuRow>) {
        let tree = self.tree();
        for &id in &tree.node(parent).children {
            let node = tree.node(id);
            let visible = self.is_visible(id);
            let named = node.prompt.is_some() || matches!(node.item, Item::Symbol(_));
            let shown = visible || hidden && named;
            if shown {
                rows.push(self.row(id, indent, visible));
            }
            let is_menu = matches!(node.item, Item::Menu | Item::Choice(_)) || node.is_menuconfig;
            // A hidden entry can have entries under it that are not.
            if !is_menu || !shown && matches!(node.item, Item::Symbol(_)) {
                self.add_rows(id, indent + usize::from(shown), hidden, rows);
            }
        }
    }

    fn row(&self, id: NodeId, indent: usize, visible: bool) -> MenuRow {
        let tree = self.tree();
        let node = tree.node(id);
        let (value, name, enters) = match node.item {
            Item::Symbol(symbol) => {
                let on = self.tri(symbol) > Tri::N;
                let enters = node.is_menuconfig && on && !node.children.is_empty();
                (self.mark(symbol), tree.symbol(symbol).name.clone(), enters)
            }
            Item::Choice(choice) => {
                let selected = self
                    .selection(choice)
                    .and_then(|member| self.prompt_of(member));
                let value = match (self.mode(choice), selected) {
                    (Tri::Y, Some(text)) => format!("({text})"),
                    (Tri::M, _) => "<M>".to_owned(),
                    _ => "< >".to_owned(),
                };
                (value, tree.choice_name(choice), self.mode(choice) > Tri::N)
            }
            Item::Menu => (String::new(), String::new(), true),
            Item::Comment | Item::If => (String::new(), String::new(), false),
        };
        let text = node
            .prompt
            .as_ref()
            .map_or(name, |prompt| prompt.text.clone());
        MenuRow {
            node: id,
            indent,
            value,
            text,
            enters,
            visible,
        }
    }

    fn prompt_of(&self, id: SymbolId) -> Option<String> {
        let nodes = &self.tree().symbol(id).nodes;
        nodes
            .iter()
            .find_map(|&node| Some(self.tree().node(node).prompt.as_ref()?.text.clone()))
    }

    /// The value as the menus of the kernel show it.
    fn mark(&self, id: SymbolId) -> String {
        let symbol = self.tree().symbol(id);
        if !symbol.kind.is_logical() {
            return format!("({})", self.text(id));
        }
        if symbol
            .choice
            .is_some_and(|choice| self.mode(choice) == Tri::Y)
        {
            let picked = self.tri(id) == Tri::Y;
            return if picked { "(X)" } else { "( )" }.to_owned();
        }
        let letter = match self.tri(id) {
            Tri::N => ' ',
            Tri::M => 'M',
            Tri::Y => '*',
        };
        let assignable = self.assignable(id);
        match assignable.len() {
            0 | 1 => format!("-{letter}-"),
            _ if self.kind(id) == SymbolKind::Tristate && assignable.contains(&Tri::M) => {
                // Braces where n is not possible.
                let free = assignable.contains(&Tri::N);
                if free {
                    format!("<{letter}>")
                } else {
                    format!("{{{letter}}}")
                }
            }
            _ => format!("[{letter}]"),
        }
    }

    /// The symbols whose name, prompt, help or menus hold every word of `query`, upper
    /// or lower case, `CONFIG_` before a name left out. Best hits first: the
    /// very name, names that begin so, names, prompts (a choice's counts for its
    /// members), help texts, the titles of the menus around.
    #[must_use]
    pub fn search(&self, query: &str) -> Vec<Hit> {
        let tree = self.tree();
        let prefix = tree.prefix().to_lowercase();
        let words: Vec<String> = query
            .split_whitespace()
            .map(|word| word.to_lowercase())
            .map(|word| word.strip_prefix(&prefix).unwrap_or(&word).to_owned())
            .filter(|word| !word.is_empty())
            .collect();
        if words.is_empty() {
            return Vec::new();
        }
        let mut hits: Vec<(usize, Hit)> = tree
            .symbols()
            .iter()
            .filter_map(|&id| {
                let ranks = words.iter().map(|word| tree.rank(id, word));
                let rank = ranks.collect::<Option<Vec<_>>>()?.into_iter().max()?;
                let node = self
                    .shown_node(id)
                    .or_else(|| tree.symbol(id).nodes.first().copied())?;
                Some((rank, Hit { symbol: id, node }))
            })
            .collect();
        // Stable: equal hits stay in the order of the menu.
        hits.sort_by_key(|&(rank, _)| rank);
        hits.into_iter().map(|(_, hit)| hit).collect()
    }

    /// Why a symbol is visible or not, on or not.
    #[must_use]
    pub fn explain(&self, id: SymbolId) -> Explanation {
        let tree = self.tree();
        let symbol = tree.symbol(id);
        let prompts = symbol
            .nodes
            .iter()
            .filter_map(|&node| tree.node(node).prompt.as_ref());
        let active = |by: &[crate::SelectedBy]| -> Vec<(SymbolId, Tri)> {
            let all = by.iter().map(|by| (by.selector, self.value(by.value)));
            all.filter(|&(_, value)| value > Tri::N).collect()
        };
        let mut met = symbol
            .defaults
            .iter()
            .filter(|d| self.value(d.condition) > Tri::N);
        Explanation {
            prompts: prompts
                .map(|prompt| self.conditions(prompt.condition))
                .collect(),
            depends: self.conditions(symbol.depends),
            selected_by: active(&symbol.selected_by),
            implied_by: active(&symbol.implied_by),
            default: met.next().map(|default| self.part(default.value)),
        }
    }

    fn part(&self, id: ExprId) -> ConditionPart {
        ConditionPart {
            text: self.tree().expr_text(id),
            value: self.value(id),
        }
    }

    /// The parts of a condition that must all hold, each once, and what they are
    /// now; none for a condition that always holds.
    #[must_use]
    pub fn conditions(&self, condition: ExprId) -> Vec<ConditionPart> {
        let (mut open, mut parts) = (vec![condition], Vec::new());
        while let Some(id) = open.pop() {
            match self.tree().expr(id) {
                Expr::And(inner) => open.extend(inner.iter().rev()),
                Expr::Symbol(symbol) if *symbol == SymbolId::Y => {}
                // A choice that nobody has turned off is there when its prompt is.
                Expr::Choice(choice)
                    if self.mode(*choice) > Tri::N || self.choice_visibility(*choice) == Tri::N =>
                {
                    let nodes = self.tree().choice(*choice).nodes.iter();
                    let mut prompts =
                        nodes.filter_map(|&node| self.tree().node(node).prompt.as_ref());
                    open.extend(prompts.next().map(|prompt| prompt.condition));
                }
                _ => {
                    let part = self.part(id);
                    if !parts.contains(&part) {
                        parts.push(part);
                    }
                }
            }
        }
        parts
    }

    /// The menus that a node stands in, from the root down, itself not included.
    #[must_use]
    pub fn path(&self, id: NodeId) -> Vec<NodeId> {
        let tree = self.tree();
        let (mut at, mut path) = (id, Vec::new());
        while at != tree.root() {
            at = tree.node(at).parent;
            path.push(at);
        }
        path.reverse();
        path
    }
}

impl Tree {
    /// How well a word fits a symbol: 0 is best.
    fn rank(&self, id: SymbolId, word: &str) -> Option<usize> {
        let symbol = self.symbol(id);
        let name = symbol.name.to_lowercase();
        let nodes = || symbol.nodes.iter().map(|&node| self.node(node));
        let in_prompt = |node: &crate::MenuNode| {
            node.prompt
                .as_ref()
                .is_some_and(|prompt| prompt.text.to_lowercase().contains(word))
        };
        let choice = || symbol.choice.iter().flat_map(|&id| &self.choice(id).nodes);
        let in_menus = |node: &crate::MenuNode| {
            let parents =
                std::iter::successors(Some(node.parent), |&id| Some(self.node(id).parent));
            parents
                .take_while(|&id| id != self.root())
                .any(|id| in_prompt(self.node(id)))
        };
        let in_help = |node: &crate::MenuNode| {
            node.help
                .as_ref()
                .is_some_and(|help| help.to_lowercase().contains(word))
        };
        let fits = [
            name == word,
            name.starts_with(word),
            name.contains(word),
            nodes().any(in_prompt) || choice().any(|&node| in_prompt(self.node(node))),
            nodes().any(in_help),
            nodes().any(in_menus),
        ];
        fits.into_iter().position(|fits| fits)
    }
}
