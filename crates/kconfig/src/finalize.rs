//! From what stands in the files to what it means: conditions of menus reach
//! their entries, entries that depend on the one before move under it, `if`s
//! dissolve, symbols collect what their definitions say.

use crate::error::{Error, Position, Warning, WarningKind};
use crate::expr::{Arena, Expr, ExprId, Relation};
use crate::limits::{MAX_IMPLICIT_DEPTH, MAX_IMPLICIT_PARTS};
use crate::tree::{ChoiceId, Item, NodeId, SelectedBy, SymbolId, SymbolKind, Tree};

impl Tree {
    /// Finishes a tree whose nodes have just been read.
    pub(crate) fn finalize(mut self) -> Result<Self, Error> {
        let root = self.root();
        self.container(root, Arena::Y);
        for id in 0..self.symbols.len() {
            let reverse = values(&self.symbols[id].selected_by);
            let weak = values(&self.symbols[id].implied_by);
            let nodes = self.symbols[id].nodes.iter();
            let depends = nodes.map(|node| self.nodes[node.index()].depends).collect();
            self.symbols[id].reverse = self.exprs.any(reverse);
            self.symbols[id].weak_reverse = self.exprs.any(weak);
            self.symbols[id].depends = self.exprs.any(depends);
        }
        self.check_values()?;
        self.order = crate::order::EvalOrder::new(&self)?;
        self.look_for_doubts();
        Ok(self)
    }

    /// Finishes a node and, where it is a symbol, moves under it those of `rest`
    /// that depend on it.
    fn finish(
        &mut self,
        node: NodeId,
        rest: &mut std::iter::Peekable<std::vec::IntoIter<NodeId>>,
        visible: ExprId,
        depth: usize,
    ) {
        let Item::Symbol(symbol) = self.nodes[node.index()].item else {
            return self.container(node, visible);
        };
        self.collect(symbol, node);
        let mut below = Vec::new();
        let may_nest = depth < MAX_IMPLICIT_DEPTH;
        while let Some(next) = rest.next_if(|&next| may_nest && self.belongs_under(next, symbol)) {
            self.finish(next, rest, visible, depth + 1);
            below.push(next);
        }
        self.nodes[node.index()].children = below;
        self.settle(node);
    }

    /// Finishes a menu, choice, `if` or comment and everything in it.
    fn container(&mut self, node: NodeId, visible: ExprId) {
        let visible = match self.nodes[node.index()].item {
            Item::Menu => self.exprs.and(visible, self.nodes[node.index()].visible),
            _ => visible,
        };
        self.pass_on(node, visible);
        let children = std::mem::take(&mut self.nodes[node.index()].children);
        let mut rest = children.into_iter().peekable();
        let mut kept = Vec::new();
        while let Some(child) = rest.next() {
            self.finish(child, &mut rest, visible, 0);
            kept.push(child);
        }
        self.nodes[node.index()].children = kept;
        self.settle(node);
        if let Item::Choice(choice) = self.nodes[node.index()].item {
            self.finish_choice(choice, node);
        }
    }

    /// Passes a container's conditions on to its children. The members of a
    /// choice depend on the choice itself: its mode limits them.
    fn pass_on(&mut self, parent: NodeId, visible: ExprId) {
        let above = match self.nodes[parent.index()].item {
            Item::Choice(choice) => self.exprs.add(Expr::Choice(choice)),
            _ => self.nodes[parent.index()].depends,
        };
        for child in self.nodes[parent.index()].children.clone() {
            let node = &mut self.nodes[child.index()];
            let exprs = &mut self.exprs;
            node.depends = exprs.and(node.depends, above);
            let depends = node.depends;
            let is_entry = matches!(node.item, Item::Symbol(_) | Item::Choice(_));
            if let Some(prompt) = &mut node.prompt {
                if is_entry {
                    prompt.condition = exprs.and(prompt.condition, visible);
                }
                prompt.condition = exprs.and(prompt.condition, depends);
            }
            for default in &mut node.defaults {
                default.condition = exprs.and(default.condition, depends);
            }
            for range in &mut node.ranges {
                range.condition = exprs.and(range.condition, depends);
            }
            for select in node.selects.iter_mut().chain(&mut node.implies) {
                select.condition = exprs.and(select.condition, depends);
            }
        }
    }

    /// Gives a symbol what one of its definitions says.
    fn collect(&mut self, symbol: SymbolId, node: NodeId) {
        let node = self.nodes[node.index()].clone();
        let own = &mut self.symbols[symbol.index()];
        own.defaults.extend(node.defaults);
        own.ranges.extend(node.ranges);
        let value = self.exprs.add(Expr::Symbol(symbol));
        for (selects, imply) in [(node.selects, false), (node.implies, true)] {
            for select in selects {
                let value = self.exprs.and(value, select.condition);
                let by = SelectedBy {
                    selector: symbol,
                    condition: select.condition,
                    value,
                };
                let target = &mut self.symbols[select.target.index()];
                let list = if imply {
                    &mut target.implied_by
                } else {
                    &mut target.selected_by
                };
                list.push(by);
            }
        }
    }

    /// Whether a node moves under the symbol before it: its prompt, or without
    /// one its entry, can only be there while the symbol is on.
    fn belongs_under(&self, node: NodeId, symbol: SymbolId) -> bool {
        let node = &self.nodes[node.index()];
        let condition = node
            .prompt
            .as_ref()
            .map_or(node.depends, |prompt| prompt.condition);
        let mut open = vec![condition];
        for _ in 0..MAX_IMPLICIT_PARTS {
            let Some(id) = open.pop() else {
                return false;
            };
            match self.exprs.get(id) {
                Expr::Symbol(other) if *other == symbol => return true,
                Expr::And(parts) => open.extend(parts),
                Expr::Compare(relation, left, right) => {
                    let other = match symbol {
                        _ if symbol == *left => *right,
                        _ if symbol == *right => *left,
                        _ => continue,
                    };
                    let wants_on = match relation {
                        Relation::Equal => other == SymbolId::Y || other == SymbolId::M,
                        Relation::Unequal => other == SymbolId::N,
                        _ => false,
                    };
                    if wants_on {
                        return true;
                    }
                }
                _ => {}
            }
        }
        false
    }

    /// Makes the children final: those of `if`s, and of entries that are never
    /// shown, stand beside them; `if`s vanish.
    fn settle(&mut self, parent: NodeId) {
        let children = std::mem::take(&mut self.nodes[parent.index()].children);
        let mut kept = Vec::with_capacity(children.len());
        for child in children {
            let node = &mut self.nodes[child.index()];
            let lifted = match node.prompt {
                None => std::mem::take(&mut node.children),
                Some(_) => Vec::new(),
            };
            if node.item != Item::If {
                kept.push(child);
            }
            kept.extend(lifted);
        }
        for child in &kept {
            self.nodes[child.index()].parent = parent;
        }
        self.nodes[parent.index()].children = kept;
    }

    /// Finds the members of a choice and joins types.
    fn finish_choice(&mut self, id: ChoiceId, node: NodeId) {
        let defaults = self.nodes[node.index()].defaults.clone();
        self.choices[id.index()].defaults.extend(defaults);
        for child in self.nodes[node.index()].children.clone() {
            let Item::Symbol(member) = self.nodes[child.index()].item else {
                continue;
            };
            if let Some(other) = self.symbols[member.index()].choice {
                // Two choices that both decide a value could not both be kept.
                if other != id {
                    let name = &self.symbols[member.index()].name;
                    let message = format!("{name} is a member of another choice and stays in that");
                    self.doubt(self.nodes[child.index()].position.clone(), message);
                }
                continue;
            }
            self.symbols[member.index()].choice = Some(id);
            self.choices[id.index()].members.push(member);
        }
        let choice = &mut self.choices[id.index()];
        if choice.kind == SymbolKind::Unknown {
            let kinds = choice
                .members
                .iter()
                .map(|member| self.symbols[member.index()].kind);
            choice.kind = kinds
                .into_iter()
                .find(|&kind| kind != SymbolKind::Unknown)
                .unwrap_or_default();
        }
        for member in &choice.members {
            let kind = &mut self.symbols[member.index()].kind;
            if *kind == SymbolKind::Unknown {
                *kind = choice.kind;
            }
        }
    }

    pub(crate) fn doubt(&mut self, position: Position, message: String) {
        let kind = WarningKind::Tree;
        self.warnings.push(Warning {
            kind,
            position: Some(position),
            message,
        });
    }

    /// Texts and numbers, and choices, have a symbol as default, not an expression.
    fn check_values(&self) -> Result<(), Error> {
        for node in &self.nodes {
            let (what, simple) = match node.item {
                Item::Symbol(id) => {
                    let symbol = self.symbol(id);
                    let kind = symbol.kind;
                    let is_text = kind == SymbolKind::String || kind.is_number();
                    (
                        format!("{}, {},", symbol.name, kind.with_article()),
                        is_text,
                    )
                }
                Item::Choice(_) => ("a choice".to_owned(), true),
                _ => continue,
            };
            let is_symbol = |id: ExprId| matches!(self.expr(id), Expr::Symbol(_));
            if simple && !node.defaults.iter().all(|default| is_symbol(default.value)) {
                let message = format!("{what} can have only a symbol or a constant as default");
                return Err(Error::syntax(node.position.clone(), message));
            }
        }
        Ok(())
    }
}

fn values(by: &[SelectedBy]) -> Vec<ExprId> {
    by.iter().map(|by| by.value).collect()
}
