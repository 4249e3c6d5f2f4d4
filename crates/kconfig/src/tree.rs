//! The parsed tree: symbols, choices, and the nodes of the menu they stand in.

use std::collections::HashMap;

use crate::config::SetError;
use crate::error::{Position, Warning};
use crate::expr::{Arena, Expr, ExprId};
use crate::order::EvalOrder;

/// A symbol's number in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub(crate) u32);

/// A choice's number in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChoiceId(pub(crate) u32);

/// A menu node's number in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl SymbolId {
    pub(crate) const N: Self = Self(0);
    pub(crate) const M: Self = Self(1);
    pub(crate) const Y: Self = Self(2);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ChoiceId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The type of a symbol or choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SymbolKind {
    /// No type was given: its value is its own name.
    #[default]
    Unknown,
    /// `y` or `n`.
    Bool,
    /// `y`, `m` or `n`; a bool where modules are off.
    Tristate,
    /// Any text.
    String,
    /// A decimal number.
    Int,
    /// A hexadecimal number, with or without `0x`.
    Hex,
}

impl SymbolKind {
    /// The word of the language for it; `unknown` where there is none.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Bool => "bool",
            Self::Tristate => "tristate",
            Self::String => "string",
            Self::Int => "int",
            Self::Hex => "hex",
        }
    }

    /// The same with its article, for messages.
    pub(crate) const fn with_article(self) -> &'static str {
        match self {
            Self::Unknown => "a symbol without a type",
            Self::Bool => "a bool",
            Self::Tristate => "a tristate",
            Self::String => "a string",
            Self::Int => "an int",
            Self::Hex => "a hex",
        }
    }

    /// Whether its values are `y`, `m`, `n`.
    #[must_use]
    pub const fn is_logical(self) -> bool {
        matches!(self, Self::Bool | Self::Tristate)
    }

    /// Whether its values are numbers.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Hex)
    }
}

/// What a node shows, and when.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The line in the menu.
    pub text: String,
    /// Own condition, those of the menus around it, and `visible if`.
    pub condition: ExprId,
}

/// A value with its condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Default {
    /// For a bool or tristate any expression, else a symbol or constant.
    pub value: ExprId,
    /// When it counts.
    pub condition: ExprId,
}

/// The bounds of a number, both included, with their condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRange {
    /// The least value: a symbol or constant.
    pub low: SymbolId,
    /// The greatest value.
    pub high: SymbolId,
    /// When it counts.
    pub condition: ExprId,
}

/// A `select` or `imply` and its condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Select {
    /// What is selected or implied.
    pub target: SymbolId,
    /// When.
    pub condition: ExprId,
}

/// Who selects or implies a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectedBy {
    /// The symbol with the `select` or `imply`.
    pub selector: SymbolId,
    /// Its condition.
    pub condition: ExprId,
    /// Both joined: how much is asked for.
    pub value: ExprId,
}

/// A symbol: all its definitions taken together.
#[derive(Debug, Clone)]
pub struct Symbol {
    /// As written, without `CONFIG_`.
    pub name: String,
    /// A quoted value, or `n`, `m`, `y`.
    pub constant: bool,
    /// The type, before modules are considered.
    pub kind: SymbolKind,
    /// Where it is defined, in order; none for constants and undefined symbols.
    pub nodes: Vec<NodeId>,
    /// The choice it is a member of.
    pub choice: Option<ChoiceId>,
    /// The `default`s of all definitions; the first whose condition holds counts.
    pub defaults: Vec<Default>,
    /// The `range`s of all definitions; the first whose condition holds counts.
    pub ranges: Vec<ValueRange>,
    /// Who selects it.
    pub selected_by: Vec<SelectedBy>,
    /// Who implies it.
    pub implied_by: Vec<SelectedBy>,
    /// `depends on` of all definitions joined with `||`, menus included.
    pub depends: ExprId,
    /// `selected_by` as one expression.
    pub(crate) reverse: ExprId,
    /// `implied_by` as one expression.
    pub(crate) weak_reverse: ExprId,
    /// `option allnoconfig_y`: stays on in allnoconfig.
    pub allnoconfig_y: bool,
    /// Read from a `.config` for others to default to, and never written.
    pub transitional: bool,
    /// `option env="X"`: its value comes from the environment.
    pub from_environment: bool,
}

/// A choice: one of its members is `y`.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The name of a named choice.
    pub name: Option<String>,
    /// The type, before modules are considered.
    pub kind: SymbolKind,
    /// It may be off altogether.
    pub optional: bool,
    /// Where it is defined, in order.
    pub nodes: Vec<NodeId>,
    /// Its members, in menu order.
    pub members: Vec<SymbolId>,
    /// Which member is on by default.
    pub defaults: Vec<Default>,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// `config` or `menuconfig`.
    Symbol(SymbolId),
    /// `choice`.
    Choice(ChoiceId),
    /// `menu`, and the root.
    Menu,
    /// `comment`.
    Comment,
    /// `if`; none is left in a finished tree.
    If,
}

/// One place in the menu tree.
#[derive(Debug, Clone)]
pub struct MenuNode {
    /// What stands here.
    pub item: Item,
    /// Where it is written.
    pub position: Position,
    /// The node it is shown under; the root is its own.
    pub parent: NodeId,
    /// What is shown under it, in order.
    pub children: Vec<NodeId>,
    /// What it shows; without, it is never shown.
    pub prompt: Option<Prompt>,
    /// Its help text, without the indentation; lines end with `\n`, the last has none.
    pub help: Option<String>,
    /// `depends on` joined with what the menus around it depend on.
    pub depends: ExprId,
    /// `visible if` of a menu.
    pub visible: ExprId,
    /// Written `menuconfig`: shown as a menu of its own.
    pub is_menuconfig: bool,
    pub(crate) defaults: Vec<Default>,
    pub(crate) ranges: Vec<ValueRange>,
    pub(crate) selects: Vec<Select>,
    pub(crate) implies: Vec<Select>,
}

impl MenuNode {
    /// What this definition selects.
    #[must_use]
    pub fn selects(&self) -> &[Select] {
        &self.selects
    }

    /// What this definition implies.
    #[must_use]
    pub fn implies(&self) -> &[Select] {
        &self.implies
    }

    /// The defaults of this definition alone.
    #[must_use]
    pub fn defaults(&self) -> &[Default] {
        &self.defaults
    }

    /// The ranges of this definition alone.
    #[must_use]
    pub fn ranges(&self) -> &[ValueRange] {
        &self.ranges
    }
}

/// A Kconfig tree, read and checked. Values are in a [`Config`](crate::Config).
#[derive(Debug, Clone)]
pub struct Tree {
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) nodes: Vec<MenuNode>,
    pub(crate) exprs: Arena,
    pub(crate) by_name: HashMap<String, SymbolId>,
    pub(crate) constants: HashMap<String, SymbolId>,
    /// Symbols with a definition, in the order of their first one.
    pub(crate) defined: Vec<SymbolId>,
    pub(crate) modules: SymbolId,
    pub(crate) order: EvalOrder,
    pub(crate) prefix: String,
    pub(crate) files: Vec<String>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) messages: Vec<String>,
}

impl Tree {
    pub(crate) fn empty(prefix: &str) -> Self {
        let mut tree = Self {
            symbols: Vec::new(),
            choices: Vec::new(),
            nodes: Vec::new(),
            exprs: Arena::new(),
            by_name: HashMap::new(),
            constants: HashMap::new(),
            defined: Vec::new(),
            modules: SymbolId::N,
            order: EvalOrder::default(),
            prefix: prefix.to_owned(),
            files: Vec::new(),
            warnings: Vec::new(),
            messages: Vec::new(),
        };
        for name in ["n", "m", "y"] {
            let id = tree.constant_named(name);
            tree.symbols[id.index()].kind = SymbolKind::Tristate;
        }
        tree.modules = tree.symbol_named("MODULES");
        tree
    }

    fn add_symbol(&mut self, name: &str, constant: bool) -> SymbolId {
        let id =
            u32::try_from(self.symbols.len()).expect("the limit on input keeps ids in 32 bits");
        self.symbols.push(Symbol {
            name: name.to_owned(),
            constant,
            kind: SymbolKind::Unknown,
            nodes: Vec::new(),
            choice: None,
            defaults: Vec::new(),
            ranges: Vec::new(),
            selected_by: Vec::new(),
            implied_by: Vec::new(),
            depends: Arena::N,
            reverse: Arena::N,
            weak_reverse: Arena::N,
            allnoconfig_y: false,
            transitional: false,
            from_environment: false,
        });
        SymbolId(id)
    }

    pub(crate) fn symbol_named(&mut self, name: &str) -> SymbolId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = self.add_symbol(name, false);
        self.by_name.insert(name.to_owned(), id);
        id
    }

    pub(crate) fn constant_named(&mut self, name: &str) -> SymbolId {
        if let Some(&id) = self.constants.get(name) {
            return id;
        }
        let id = self.add_symbol(name, true);
        self.constants.insert(name.to_owned(), id);
        id
    }

    pub(crate) fn add_node(&mut self, item: Item, position: Position, parent: NodeId) -> NodeId {
        let id = u32::try_from(self.nodes.len()).expect("the limit on input keeps ids in 32 bits");
        self.nodes.push(MenuNode {
            item,
            position,
            parent,
            children: Vec::new(),
            prompt: None,
            help: None,
            depends: Arena::Y,
            visible: Arena::Y,
            is_menuconfig: false,
            defaults: Vec::new(),
            ranges: Vec::new(),
            selects: Vec::new(),
            implies: Vec::new(),
        });
        NodeId(id)
    }

    /// The node everything else stands under; its prompt is the main menu's.
    #[must_use]
    pub fn root(&self) -> NodeId {
        NodeId(0)
    }

    /// The main menu's title.
    #[must_use]
    pub fn title(&self) -> &str {
        let prompt = self.node(self.root()).prompt.as_ref();
        prompt.map_or("Main menu", |prompt| &prompt.text)
    }

    /// One node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &MenuNode {
        &self.nodes[id.index()]
    }

    /// One symbol.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.index()]
    }

    /// One choice.
    #[must_use]
    pub fn choice(&self, id: ChoiceId) -> &Choice {
        &self.choices[id.index()]
    }

    /// One expression.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        self.exprs.get(id)
    }

    /// The symbol of this name (without `CONFIG_`) that some entry defines.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<SymbolId> {
        let id = *self.by_name.get(name)?;
        (!self.symbol(id).nodes.is_empty()).then_some(id)
    }

    /// [`find`](Self::find) as a person writes it: `CONFIG_` before the name is
    /// allowed.
    ///
    /// # Errors
    /// When no entry defines the symbol; with a name that is nearly the same.
    pub fn named(&self, name: &str) -> Result<SymbolId, SetError> {
        let bare = name.strip_prefix(&*self.prefix).unwrap_or(name);
        self.find(name).or_else(|| self.find(bare)).ok_or_else(|| {
            let names = self.symbols().iter().map(|&id| &*self.symbol(id).name);
            SetError::Undefined {
                name: name.to_owned(),
                suggestion: crate::error::nearest(bare, names).map(str::to_owned),
            }
        })
    }

    /// The defined symbols, in the order of their first definition.
    #[must_use]
    pub fn symbols(&self) -> &[SymbolId] {
        &self.defined
    }

    /// The choices, in the order of their first definition.
    pub fn choices(&self) -> impl Iterator<Item = ChoiceId> + use<> {
        (0..u32::try_from(self.choices.len()).unwrap_or(u32::MAX)).map(ChoiceId)
    }

    /// The named choice.
    #[must_use]
    pub fn find_choice(&self, name: &str) -> Option<ChoiceId> {
        self.choices()
            .find(|&id| self.choice(id).name.as_deref() == Some(name))
    }

    /// The symbol that says whether modules are on: the one marked `modules`,
    /// else `MODULES`, which need not be defined.
    #[must_use]
    pub fn modules(&self) -> SymbolId {
        self.modules
    }

    /// What stands before the names in a `.config`: `CONFIG_`.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Every file that was read, in order; one that is sourced twice is there twice.
    #[must_use]
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// What is doubtful in the files, though it could be read.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What `$(info,…)` said.
    #[must_use]
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    /// A choice's name, else its prompt, else where it stands.
    #[must_use]
    pub fn choice_name(&self, id: ChoiceId) -> String {
        let choice = self.choice(id);
        let prompt = choice
            .nodes
            .iter()
            .find_map(|&node| Some(self.node(node).prompt.as_ref()?.text.clone()));
        let place = || {
            choice
                .nodes
                .first()
                .map(|&node| self.node(node).position.to_string())
        };
        choice
            .name
            .clone()
            .or(prompt)
            .or_else(place)
            .unwrap_or_default()
    }
}
