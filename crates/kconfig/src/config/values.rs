//! How values follow from each other: visibility, defaults, selects, choices,
//! ranges.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Config;
use crate::expr::{Expr, ExprId, Tri};
use crate::number::{self, NumberBase};
use crate::order::Vertex;
use crate::tree::{ChoiceId, NodeId, SymbolId, SymbolKind, Tree};

impl Config {
    pub(super) fn compute_all(&mut self) {
        let tree = Arc::clone(&self.tree);
        for (id, symbol) in tree.symbols.iter().enumerate() {
            // Constants and undefined symbols are called what they are worth.
            let constant = Tri::from_text(&symbol.name).filter(|_| symbol.constant);
            let state = &mut self.symbols[id];
            state.tri = constant.unwrap_or_default();
            state.text.clone_from(&symbol.name);
        }
        for &vertex in &tree.order.sequence {
            self.compute(&tree, tree.order.vertex(vertex));
        }
    }

    /// Computes these anew, and whatever rests on those that have changed.
    pub(super) fn update(&mut self, changed: &[Vertex]) {
        let tree = Arc::clone(&self.tree);
        let order = &tree.order;
        let rank = |vertex: u32| order.rank[vertex as usize];
        let mut open: BTreeSet<u32> = changed.iter().map(|&v| rank(order.number(v))).collect();
        while let Some(next) = open.pop_first() {
            let vertex = order.sequence[next as usize];
            if self.compute(&tree, order.vertex(vertex)) {
                open.extend(order.dependents(vertex).iter().map(|&vertex| rank(vertex)));
            }
        }
    }

    /// Computes one value; says whether it has changed.
    fn compute(&mut self, tree: &Tree, vertex: Vertex) -> bool {
        match vertex {
            Vertex::Expr(id) => {
                let value = self.expr_value(tree, id);
                std::mem::replace(&mut self.exprs[id.0 as usize], value) != value
            }
            Vertex::Visibility(id) => {
                let value = self.find_visibility(tree, id);
                std::mem::replace(&mut self.symbols[id.index()].visibility, value) != value
            }
            Vertex::Value(id) => {
                if tree.symbol(id).nodes.is_empty() {
                    return false;
                }
                let (tri, text, written) = self.find_value(tree, id);
                let written = written && !tree.symbol(id).transitional;
                let state = &mut self.symbols[id.index()];
                let changed = (state.tri, &state.text) != (tri, &text);
                (state.tri, state.text, state.written) = (tri, text, written);
                changed
            }
            Vertex::Mode(id) => {
                let (visibility, mode) = self.find_mode(tree, id);
                let state = &mut self.choices[id.index()];
                let changed = (state.visibility, state.mode) != (visibility, mode);
                (state.visibility, state.mode) = (visibility, mode);
                changed
            }
            Vertex::Selection(id) => {
                let value = self.find_selection(tree, id);
                std::mem::replace(&mut self.choices[id.index()].selection, value) != value
            }
        }
    }

    pub(crate) fn expr_value(&self, tree: &Tree, id: ExprId) -> Tri {
        match tree.expr(id) {
            Expr::Symbol(symbol) => self.tri(*symbol),
            Expr::Choice(choice) => self.mode(*choice),
            Expr::Modules => self.tri(tree.modules()),
            Expr::Not(inner) => self.value(*inner).negated(),
            Expr::IsNo(inner) => Tri::from_bool(self.value(*inner) == Tri::N),
            Expr::And(parts) => parts
                .iter()
                .map(|&part| self.value(part))
                .min()
                .unwrap_or(Tri::Y),
            Expr::Or(parts) => parts
                .iter()
                .map(|&part| self.value(part))
                .max()
                .unwrap_or(Tri::N),
            Expr::Compare(relation, left, right) => {
                Tri::from_bool(relation.holds(self.order_of(tree, *left, *right)))
            }
        }
    }

    /// Two string symbols are compared as texts, anything else (a string symbol
    /// with a constant, too) as numbers where both are numbers.
    fn order_of(&self, tree: &Tree, left: SymbolId, right: SymbolId) -> std::cmp::Ordering {
        let is_text = |id| tree.symbol(id).kind == SymbolKind::String;
        if !(is_text(left) && is_text(right)) {
            let number = |id| self.number(tree, id);
            if let (Some(left), Some(right)) = (number(left), number(right)) {
                return left.cmp(&right);
            }
        }
        self.text(left).cmp(self.text(right))
    }

    fn number(&self, tree: &Tree, id: SymbolId) -> Option<i128> {
        let base = match tree.symbol(id).kind {
            SymbolKind::Bool | SymbolKind::Tristate => return Some(self.tri(id).number()),
            SymbolKind::Int => NumberBase::Decimal,
            SymbolKind::Hex => NumberBase::Hex,
            SymbolKind::String | SymbolKind::Unknown => NumberBase::ByPrefix,
        };
        number::parse(self.text(id), base)
    }

    /// The most that any of the prompts allows.
    fn prompts(&self, tree: &Tree, nodes: &[NodeId]) -> Tri {
        let prompts = nodes
            .iter()
            .filter_map(|&node| tree.node(node).prompt.as_ref());
        prompts
            .map(|prompt| self.value(prompt.condition))
            .max()
            .unwrap_or(Tri::N)
    }

    fn find_visibility(&self, tree: &Tree, id: SymbolId) -> Tri {
        let symbol = tree.symbol(id);
        let visibility = self.prompts(tree, &symbol.nodes);
        if let Some(choice) = symbol.choice {
            let is_tristate = symbol.kind == SymbolKind::Tristate;
            let mode = self.mode(choice);
            let in_tristate = tree.choice(choice).kind == SymbolKind::Tristate;
            // A bool in a choice of tristates is there only while one is picked.
            if in_tristate && !is_tristate && mode != Tri::Y {
                return Tri::N;
            }
            // What can only be a module cannot be the one that is picked.
            if is_tristate && visibility == Tri::M && mode == Tri::Y {
                return Tri::N;
            }
        }
        match visibility {
            Tri::M if self.kind(id) != SymbolKind::Tristate => Tri::Y,
            visibility => visibility,
        }
    }

    fn find_mode(&self, tree: &Tree, id: ChoiceId) -> (Tri, Tri) {
        let choice = tree.choice(id);
        let is_tristate = self.choice_kind(id) == SymbolKind::Tristate;
        let promote = |value| {
            if value == Tri::M && !is_tristate {
                Tri::Y
            } else {
                value
            }
        };
        let visibility = promote(self.prompts(tree, &choice.nodes));
        let least = if choice.optional { Tri::N } else { Tri::M };
        let wanted = self.choices[id.index()]
            .user_mode
            .unwrap_or(Tri::N)
            .max(least);
        (visibility, promote(wanted.min(visibility)))
    }

    fn find_selection(&self, tree: &Tree, id: ChoiceId) -> Option<SymbolId> {
        let state = &self.choices[id.index()];
        if state.mode != Tri::Y {
            return None;
        }
        let picked = state
            .user_selection
            .filter(|&member| self.visibility(member) > Tri::N);
        picked.or_else(|| self.default_selection_in(tree, id))
    }

    /// The member that would be on if the user had picked none.
    pub(crate) fn default_selection(&self, id: ChoiceId) -> Option<SymbolId> {
        self.default_selection_in(&self.tree, id)
    }

    fn default_selection_in(&self, tree: &Tree, id: ChoiceId) -> Option<SymbolId> {
        let choice = tree.choice(id);
        let visible = |member: &SymbolId| self.visibility(*member) > Tri::N;
        let defaults = choice
            .defaults
            .iter()
            .filter(|default| self.value(default.condition) > Tri::N);
        let mut defaults = defaults.filter_map(|default| match tree.expr(default.value) {
            Expr::Symbol(member) => Some(*member),
            _ => None,
        });
        defaults
            .find(visible)
            .or_else(|| choice.members.iter().copied().find(visible))
    }

    fn find_value(&self, tree: &Tree, id: SymbolId) -> (Tri, String, bool) {
        let symbol = tree.symbol(id);
        match symbol.kind {
            SymbolKind::Unknown => (Tri::N, symbol.name.clone(), false),
            SymbolKind::Bool | SymbolKind::Tristate => {
                let (tri, written) = self.find_tri(tree, id);
                (tri, tri.as_str().to_owned(), written)
            }
            SymbolKind::String => {
                let state = &self.symbols[id.index()];
                let visible = self.reach(tree, id) > Tri::N;
                let user = state.user.as_deref().filter(|_| visible);
                let default = user.or_else(|| self.default_text(id));
                let written = (visible || default.is_some()) && !symbol.from_environment;
                (Tri::N, default.unwrap_or_default().to_owned(), written)
            }
            SymbolKind::Int | SymbolKind::Hex => {
                let (text, written) = self.find_number(tree, id);
                (Tri::N, text, written)
            }
        }
    }

    /// The value of the first default whose condition holds.
    pub(crate) fn default_text(&self, id: SymbolId) -> Option<&str> {
        let defaults = self.tree.symbol(id).defaults.iter();
        let mut met = defaults.filter(|default| self.value(default.condition) > Tri::N);
        match self.tree.expr(met.next()?.value) {
            Expr::Symbol(value) => Some(self.text(*value)),
            _ => None,
        }
    }

    /// What the defaults give a bool or tristate: `None` when none is met.
    pub(crate) fn default_tri(&self, id: SymbolId) -> Option<Tri> {
        let defaults = self.tree.symbol(id).defaults.iter();
        let mut met = defaults.filter(|default| self.value(default.condition) > Tri::N);
        met.next()
            .map(|default| self.value(default.value).min(self.value(default.condition)))
    }

    /// How far the user's value counts: a transitional symbol's always does.
    fn reach(&self, tree: &Tree, id: SymbolId) -> Tri {
        match tree.symbol(id).transitional {
            true => Tri::Y,
            false => self.visibility(id),
        }
    }

    fn find_tri(&self, tree: &Tree, id: SymbolId) -> (Tri, bool) {
        let symbol = tree.symbol(id);
        let state = &self.symbols[id.index()];
        let reach = self.reach(tree, id);
        let mut written = reach > Tri::N;
        let user = state
            .user
            .as_deref()
            .and_then(Tri::from_text)
            .filter(|_| written);
        if let Some(choice) = symbol.choice {
            let picked = self.selection(choice) == Some(id);
            let value = match state.visibility {
                Tri::Y => Tri::from_bool(picked),
                _ if user > Some(Tri::N) => Tri::M,
                _ => Tri::N,
            };
            return (value, written);
        }
        let mut value = Tri::N;
        if let Some(user) = user {
            value = user.min(reach);
        } else {
            if let Some(default) = self.default_tri(id) {
                value = default;
                written |= default > Tri::N;
            }
            let implied = self.value(symbol.weak_reverse);
            if implied > Tri::N && self.value(symbol.depends) > Tri::N {
                value = value.max(implied);
                written = true;
            }
        }
        let selected = self.value(symbol.reverse);
        if selected > Tri::N {
            value = value.max(selected);
            written = true;
        }
        let whole = self.kind(id) == SymbolKind::Bool || self.value(symbol.weak_reverse) == Tri::Y;
        if value == Tri::M && whole {
            value = Tri::Y;
        }
        (value, written)
    }

    /// The range that counts now: the first whose condition holds. A bound that
    /// is no number counts as 0.
    #[must_use]
    pub fn range(&self, id: SymbolId) -> Option<(i128, i128)> {
        let symbol = self.tree.symbol(id);
        let base = base_of(symbol.kind)?;
        let range = symbol
            .ranges
            .iter()
            .find(|range| self.value(range.condition) > Tri::N)?;
        let bound = |id| number::parse(self.text(id), base).unwrap_or(0);
        Some((bound(range.low), bound(range.high)))
    }

    fn find_number(&self, tree: &Tree, id: SymbolId) -> (String, bool) {
        let state = &self.symbols[id.index()];
        let base = base_of(tree.symbol(id).kind).unwrap_or(NumberBase::Decimal);
        let range = self.range(id);
        let visible = self.reach(tree, id) > Tri::N;
        if let Some(user) = state.user.as_deref().filter(|_| visible) {
            let number = number::parse(user, base).unwrap_or(0);
            if range.is_none_or(|(low, high)| (low..=high).contains(&number)) {
                return (user.to_owned(), true);
            }
        }
        let default = self.default_text(id);
        let written = visible || default.is_some();
        let text = default.unwrap_or_default();
        if let Some((low, high)) = range {
            let number = number::parse(text, base).unwrap_or(0);
            if number < low {
                return (number::write(low, base), written);
            }
            if number > high {
                return (number::write(high, base), written);
            }
        }
        (text.to_owned(), written)
    }
}
fn base_of(kind: SymbolKind) -> Option<NumberBase> {
    match kind {
        SymbolKind::Int => Some(NumberBase::Decimal),
        SymbolKind::Hex => Some(NumberBase::Hex),
        _ => None,
    }
}
