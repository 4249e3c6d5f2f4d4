//! The values of a tree: what the user has set, and what follows.

use std::sync::Arc;

use crate::expr::{ExprId, Tri};
use crate::number::{self, NumberBase};
use crate::order::Vertex;
use crate::tree::{ChoiceId, Item, NodeId, SymbolId, SymbolKind, Tree};

mod values;

/// What a symbol has and what the user wants it to have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SymbolState {
    /// What the user has set, in the form of its type.
    user: Option<String>,
    visibility: Tri,
    /// For texts and numbers always `n`.
    tri: Tri,
    pub(crate) text: String,
    /// Whether it stands in a `.config`.
    written: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ChoiceState {
    user_mode: Option<Tri>,
    user_selection: Option<SymbolId>,
    visibility: Tri,
    mode: Tri,
    selection: Option<SymbolId>,
}

/// Why a value cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The tree does not define the symbol.
    #[error("{name} is not defined{}", suggestion.as_ref().map(|s| format!("; did you mean {s}?")).unwrap_or_default())]
    Undefined {
        /// As it was asked for.
        name: String,
        /// A name that is nearly the same.
        suggestion: Option<String>,
    },
    /// The type does not have the value.
    #[error("{value:?} is no value for {name}, {}", .kind.with_article())]
    Invalid {
        /// The symbol.
        name: String,
        /// Its type.
        kind: SymbolKind,
        /// What was to be set.
        value: String,
    },
}

/// The values of all symbols of a tree. Always up to date: setting one value
/// changes at once whatever rests on it.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) tree: Arc<Tree>,
    pub(crate) exprs: Vec<Tri>,
    pub(crate) symbols: Vec<SymbolState>,
    choices: Vec<ChoiceState>,
}

impl Config {
    /// Every symbol at its default.
    #[must_use]
    pub fn new(tree: Arc<Tree>) -> Self {
        let mut config = Self {
            exprs: vec![Tri::N; tree.exprs.len()],
            symbols: vec![SymbolState::default(); tree.symbols.len()],
            choices: vec![ChoiceState::default(); tree.choices.len()],
            tree,
        };
        config.compute_all();
        config
    }

    /// The tree that the values belong to.
    #[must_use]
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// The value as text: `n`, `m`, `y` for a bool or tristate.
    #[must_use]
    pub fn text(&self, id: SymbolId) -> &str {
        &self.symbols[id.index()].text
    }

    /// The value in a condition; `n` for texts and numbers.
    #[must_use]
    pub fn tri(&self, id: SymbolId) -> Tri {
        self.symbols[id.index()].tri
    }

    /// The value of a symbol by its name, if it is defined.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        Some(self.text(self.tree.find(name)?))
    }

    /// Whether a symbol of this name is defined and `y` or `m`.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.tree.find(name).is_some_and(|id| self.tri(id) > Tri::N)
    }

    /// How far the user may set a symbol: `n` not at all.
    #[must_use]
    pub fn visibility(&self, id: SymbolId) -> Tri {
        self.symbols[id.index()].visibility
    }

    /// What the user has set, whether or not it has an effect.
    #[must_use]
    pub fn user_value(&self, id: SymbolId) -> Option<&str> {
        self.symbols[id.index()].user.as_deref()
    }

    /// The value of an expression.
    #[must_use]
    pub fn value(&self, id: ExprId) -> Tri {
        self.exprs[id.0 as usize]
    }

    /// Whether a symbol stands in a `.config`.
    #[must_use]
    pub fn is_written(&self, id: SymbolId) -> bool {
        self.symbols[id.index()].written
    }

    /// The type as it works now: a tristate is a bool where modules are off and
    /// in a choice that is `y`.
    #[must_use]
    pub fn kind(&self, id: SymbolId) -> SymbolKind {
        let symbol = self.tree.symbol(id);
        let in_choice = symbol
            .choice
            .is_some_and(|choice| self.mode(choice) == Tri::Y);
        match symbol.kind {
            SymbolKind::Tristate if in_choice || !self.modules_on() => SymbolKind::Bool,
            kind => kind,
        }
    }

    /// The type of a choice as it works now.
    #[must_use]
    pub fn choice_kind(&self, id: ChoiceId) -> SymbolKind {
        match self.tree.choice(id).kind {
            SymbolKind::Tristate if !self.modules_on() => SymbolKind::Bool,
            kind => kind,
        }
    }

    /// Whether modules are on.
    #[must_use]
    pub fn modules_on(&self) -> bool {
        self.tri(self.tree.modules()) > Tri::N
    }

    /// How far a choice is on: `y` means that one member is `y`.
    #[must_use]
    pub fn mode(&self, id: ChoiceId) -> Tri {
        self.choices[id.index()].mode
    }

    /// The member of a choice that is on.
    #[must_use]
    pub fn selection(&self, id: ChoiceId) -> Option<SymbolId> {
        self.choices[id.index()].selection
    }

    /// The member that the user has picked, whether or not it can be on.
    #[must_use]
    pub fn user_selection(&self, id: ChoiceId) -> Option<SymbolId> {
        self.choices[id.index()].user_selection
    }

    /// How far the user may set a choice.
    #[must_use]
    pub fn choice_visibility(&self, id: ChoiceId) -> Tri {
        self.choices[id.index()].visibility
    }

    /// Whether a node is shown: its prompt's condition holds, and for symbols
    /// and choices the user may set them.
    #[must_use]
    pub fn is_visible(&self, id: NodeId) -> bool {
        let node = self.tree.node(id);
        let Some(prompt) = &node.prompt else {
            return false;
        };
        let own = self.value(prompt.condition) > Tri::N;
        own && match node.item {
            Item::Symbol(symbol) => self.visibility(symbol) > Tri::N,
            Item::Choice(choice) => self.choice_visibility(choice) > Tri::N,
            Item::Menu => self.value(node.visible) > Tri::N,
            Item::Comment | Item::If => true,
        }
    }

    /// The values that the user may give a bool or tristate now, from `n` up;
    /// none for texts and numbers. A member of a choice that is on can only
    /// become `y`: it goes off when another one is picked.
    #[must_use]
    pub fn assignable(&self, id: SymbolId) -> Vec<Tri> {
        let symbol = self.tree.symbol(id);
        let visibility = self.visibility(id);
        if !symbol.kind.is_logical() || visibility == Tri::N {
            return Vec::new();
        }
        if visibility == Tri::Y && symbol.choice.is_some() {
            return vec![Tri::Y];
        }
        let least = self.value(symbol.reverse);
        let implied = self.value(symbol.weak_reverse) == Tri::Y;
        let whole = self.kind(id) == SymbolKind::Bool || implied;
        [Tri::N, Tri::M, Tri::Y]
            .into_iter()
            .filter(|&value| match value {
                Tri::N => least == Tri::N,
                Tri::M => !whole && least <= Tri::M,
                Tri::Y => visibility == Tri::Y || least == Tri::Y || whole,
            })
            .collect()
    }

    /// The modes that the user may give a choice now.
    #[must_use]
    pub fn choice_assignable(&self, id: ChoiceId) -> Vec<Tri> {
        let optional = self.tree.choice(id).optional;
        let is_bool = self.choice_kind(id) == SymbolKind::Bool;
        [Tri::N, Tri::M, Tri::Y]
            .into_iter()
            .filter(|&mode| match mode {
                Tri::N => optional,
                Tri::M => !is_bool,
                Tri::Y => true,
            })
            .filter(|&mode| {
                self.choice_visibility(id) > Tri::N && mode <= self.choice_visibility(id)
            })
            .collect()
    }

    /// Sets what the user wants. Setting a member of a choice to `y` picks it.
    /// Says whether the symbol now has that value: what is not visible or is
    /// selected keeps the wish, and takes it once it can.
    ///
    /// # Errors
    /// When the symbol's type does not have the value.
    pub fn set(&mut self, id: SymbolId, value: &str) -> Result<bool, SetError> {
        self.check(id, value)?;
        let symbol = self.tree.symbol(id);
        let mut changed = vec![Vertex::Value(id)];
        if let (Some(choice), "y") = (symbol.choice, value) {
            self.choices[choice.index()].user_selection = Some(id);
            changed.push(Vertex::Selection(choice));
        }
        self.symbols[id.index()].user = Some(value.to_owned());
        self.update(&changed);
        Ok(self.text(id) == value)
    }

    /// Whether the symbol's type has the value.
    pub(crate) fn check(&self, id: SymbolId, value: &str) -> Result<(), SetError> {
        let symbol = self.tree.symbol(id);
        let valid = match symbol.kind {
            SymbolKind::Unknown => false,
            SymbolKind::Bool => matches!(value, "n" | "y"),
            SymbolKind::Tristate => matches!(value, "n" | "m" | "y"),
            // A .config holds one line for each.
            SymbolKind::String => !value.contains('\n'),
            SymbolKind::Int => number::parse(value, NumberBase::Decimal).is_some(),
            SymbolKind::Hex => {
                number::parse(value, NumberBase::Hex).is_some_and(|number| number >= 0)
            }
        };
        if !valid || symbol.constant {
            let (name, kind) = (symbol.name.clone(), symbol.kind);
            return Err(SetError::Invalid {
                name,
                kind,
                value: value.to_owned(),
            });
        }
        Ok(())
    }

    /// [`set`](Self::set) by name; `CONFIG_` before it is allowed.
    ///
    /// # Errors
    /// When the symbol is not defined or its type does not have the value.
    pub fn set_by_name(&mut self, name: &str, value: &str) -> Result<bool, SetError> {
        let id = self.tree.named(name)?;
        self.set(id, value)
    }

    /// Sets a choice's mode.
    ///
    /// # Errors
    /// When its type does not have the mode.
    pub fn set_mode(&mut self, id: ChoiceId, mode: Tri) -> Result<bool, SetError> {
        let kind = self.tree.choice(id).kind;
        let valid = kind == SymbolKind::Tristate || kind == SymbolKind::Bool && mode != Tri::M;
        if !valid {
            let (name, value) = (self.tree.choice_name(id), mode.as_str().to_owned());
            return Err(SetError::Invalid { name, kind, value });
        }
        self.choices[id.index()].user_mode = Some(mode);
        self.update(&[Vertex::Mode(id)]);
        Ok(self.mode(id) == mode)
    }

    /// The mode that the user has set, whether or not it has an effect.
    pub(crate) fn user_mode(&self, id: ChoiceId) -> Option<Tri> {
        self.choices[id.index()].user_mode
    }

    /// Forgets what the user has set for a symbol; it goes back to its default.
    pub fn unset(&mut self, id: SymbolId) {
        self.symbols[id.index()].user = None;
        let mut changed = vec![Vertex::Value(id)];
        if let Some(choice) = self.tree.symbol(id).choice {
            let state = &mut self.choices[choice.index()];
            if state.user_selection == Some(id) {
                state.user_selection = None;
                changed.push(Vertex::Selection(choice));
            }
        }
        self.update(&changed);
    }

    /// Forgets everything the user has set.
    pub fn reset(&mut self) {
        for state in &mut self.symbols {
            state.user = None;
        }
        for state in &mut self.choices {
            (state.user_mode, state.user_selection) = (None, None);
        }
        self.compute_all();
    }
}
