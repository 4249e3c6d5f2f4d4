//! What can be read but is probably not meant: in the files, and in a set of
//! values.

use crate::config::Config;
use crate::error::{Warning, WarningKind};
use crate::expr::{Expr, Tri};
use crate::number::{self, NumberBase};
use crate::tree::{ChoiceId, Item, NodeId, Symbol, SymbolId, SymbolKind, Tree};

impl Tree {
    /// Fills [`warnings`](Self::warnings) with what the whole tree shows.
    pub(crate) fn look_for_doubts(&mut self) {
        let mut found = Vec::new();
        for &id in &self.defined {
            self.doubts_about(id, &mut found);
        }
        for id in self.choices() {
            self.doubts_about_choice(id, &mut found);
        }
        for (node, message) in found {
            let position = self.node(node).position.clone();
            self.doubt(position, message);
        }
    }

    fn doubts_about(&self, id: SymbolId, found: &mut Vec<(NodeId, String)>) {
        let symbol = self.symbol(id);
        let name = &symbol.name;
        let mut doubt = |node: NodeId, message: String| found.push((node, message));
        let first = symbol.nodes[0];
        if symbol.kind == SymbolKind::Unknown {
            doubt(first, format!("{name} has no type"));
        }
        for &at in &symbol.nodes {
            let node = self.node(at);
            for default in &node.defaults {
                if let Some(value) = self.wrong_default(symbol, default.value) {
                    let kind = symbol.kind.with_article();
                    doubt(at, format!("{value} is no default for {name}, {kind}"));
                }
            }
            if !node.ranges.is_empty() && !symbol.kind.is_number() {
                doubt(
                    at,
                    format!("{name} has a range but is {}", symbol.kind.with_article()),
                );
            }
            for range in &node.ranges {
                for bound in [range.low, range.high] {
                    if symbol.kind.is_number() && !self.may_be_number(bound, symbol.kind) {
                        let bound = &self.symbol(bound).name;
                        doubt(at, format!("{bound} is no bound for {name}"));
                    }
                }
            }
            for (select, verb) in node
                .selects
                .iter()
                .map(|select| (select, "selects"))
                .chain(node.implies.iter().map(|imply| (imply, "implies")))
            {
                let target = self.symbol(select.target);
                if target.nodes.is_empty() {
                    doubt(
                        at,
                        format!("{name} {verb} {}, which is not defined", target.name),
                    );
                } else if !target.kind.is_logical() || !symbol.kind.is_logical() {
                    let message = format!(
                        "{name} {verb} {}: both must be bool or tristate",
                        target.name
                    );
                    doubt(at, message);
                } else if target.choice.is_some() {
                    let message = format!(
                        "{name} {verb} {}, a member of a choice: no effect",
                        target.name
                    );
                    doubt(at, message);
                }
            }
            if symbol.choice.is_some() && !node.defaults.is_empty() {
                doubt(
                    at,
                    format!("{name} is a member of a choice: its own default has no effect"),
                );
            }
            if symbol.choice.is_some() && node.prompt.is_none() {
                doubt(
                    at,
                    format!("{name} is a member of a choice but has no prompt"),
                );
            }
        }
    }

    fn doubts_about_choice(&self, id: ChoiceId, found: &mut Vec<(NodeId, String)>) {
        let choice = self.choice(id);
        let name = self.choice_name(id);
        if !choice
            .nodes
            .iter()
            .any(|&node| self.node(node).prompt.is_some())
        {
            found.push((
                choice.nodes[0],
                "the choice has no prompt: it is never shown".to_owned(),
            ));
        }
        if !matches!(
            choice.kind,
            SymbolKind::Bool | SymbolKind::Tristate | SymbolKind::Unknown
        ) {
            let kind = choice.kind.with_article();
            found.push((
                choice.nodes[0],
                format!("the choice {name} is {kind}, not a bool or tristate"),
            ));
        }
        for &at in &choice.nodes {
            for default in &self.node(at).defaults {
                if let Expr::Symbol(member) = self.expr(default.value)
                    && self.symbol(*member).choice != Some(id)
                {
                    let member = &self.symbol(*member).name;
                    let message =
                        format!("{member}, the default of the choice {name}, is not in it");
                    found.push((at, message));
                }
            }
        }
    }

    /// The default as written if it does not fit the type.
    fn wrong_default(&self, symbol: &Symbol, value: crate::ExprId) -> Option<String> {
        let Expr::Symbol(default) = self.expr(value) else {
            return None;
        };
        let default = self.symbol(*default);
        let is_value = default.constant || default.nodes.is_empty();
        let fits = match symbol.kind {
            SymbolKind::Unknown | SymbolKind::String => true,
            SymbolKind::Bool => !is_value || matches!(default.name.as_str(), "y" | "n"),
            SymbolKind::Tristate => !is_value || Tri::from_text(&default.name).is_some(),
            SymbolKind::Int => {
                !is_value || number::parse(&default.name, NumberBase::Decimal).is_some()
            }
            SymbolKind::Hex => !is_value || number::parse(&default.name, NumberBase::Hex).is_some(),
        };
        (!fits).then(|| self.expr_text(value))
    }

    fn may_be_number(&self, id: SymbolId, kind: SymbolKind) -> bool {
        let base = if kind == SymbolKind::Hex {
            NumberBase::Hex
        } else {
            NumberBase::Decimal
        };
        let symbol = self.symbol(id);
        match symbol.nodes.is_empty() {
            true => number::parse(&symbol.name, base).is_some(),
            false => symbol.kind.is_number(),
        }
    }

    /// Names that expressions use, that no entry defines and that are no
    /// numbers: mistyped, or defined only elsewhere. In alphabetical order.
    #[must_use]
    pub fn undefined(&self) -> Vec<&str> {
        let undefined = self.symbols.iter().enumerate().filter(|(id, symbol)| {
            let is_value = number::parse(&symbol.name, NumberBase::ByPrefix).is_some();
            !symbol.constant && symbol.nodes.is_empty() && !is_value && *id != self.modules.index()
        });
        let mut names: Vec<&str> = undefined.map(|(_, symbol)| symbol.name.as_str()).collect();
        names.sort_unstable();
        names
    }
}

impl Config {
    /// What is doubtful in the values as they are now: numbers outside their
    /// range, symbols selected against what they depend on, values that were
    /// set and have no effect.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut found = Vec::new();
        for &id in self.tree().symbols() {
            let kinds = [
                self.out_of_range(id),
                self.unmet_select(id),
                self.not_applied(id),
            ];
            let position = self.tree().symbol(id).nodes.first();
            let position = position.map(|&node| self.tree().node(node).position.clone());
            found.extend(kinds.into_iter().flatten().map(|(kind, message)| Warning {
                kind,
                position: position.clone(),
                message,
            }));
        }
        found
    }

    fn out_of_range(&self, id: SymbolId) -> Option<(WarningKind, String)> {
        let symbol = self.tree().symbol(id);
        let (low, high) = self.range(id)?;
        let base = if symbol.kind == SymbolKind::Hex {
            NumberBase::Hex
        } else {
            NumberBase::Decimal
        };
        let user = self.user_value(id).filter(|_| self.visibility(id) > Tri::N);
        let (what, value) = match user {
            Some(user) => ("", user),
            None => ("the default ", self.default_text(id)?),
        };
        let number = number::parse(value, base)?;
        if (low..=high).contains(&number) {
            return None;
        }
        let (low, high) = (number::write(low, base), number::write(high, base));
        let (name, used) = (&symbol.name, self.text(id));
        let message = format!("{name}: {what}{value} is outside {low} to {high}; {used} is used");
        Some((WarningKind::OutOfRange, message))
    }

    fn unmet_select(&self, id: SymbolId) -> Option<(WarningKind, String)> {
        let symbol = self.tree().symbol(id);
        let (asked, met) = (self.value(symbol.reverse), self.value(symbol.depends));
        if symbol.choice.is_some() || asked <= met {
            return None;
        }
        let selectors: Vec<&str> = symbol
            .selected_by
            .iter()
            .filter(|by| self.value(by.value) > met)
            .map(|by| self.tree().symbol(by.selector).name.as_str())
            .collect();
        let message = format!(
            "{} is selected by {} although it depends on {}, which is {met}",
            symbol.name,
            selectors.join(", "),
            self.tree().expr_text(symbol.depends),
        );
        Some((WarningKind::UnmetSelect, message))
    }

    fn not_applied(&self, id: SymbolId) -> Option<(WarningKind, String)> {
        let user = self.user_value(id)?;
        let symbol = self.tree().symbol(id);
        let name = &symbol.name;
        // Members of a choice are judged by the one that was picked.
        let in_choice = symbol.choice.is_some() && user != "y";
        if self.text(id) == user || in_choice || self.out_of_range(id).is_some() {
            return None;
        }
        let has_prompt = symbol
            .nodes
            .iter()
            .any(|&node| self.tree().node(node).prompt.is_some());
        let why = if !has_prompt {
            "it has no prompt"
        } else if self.visibility(id) == Tri::N {
            "it is not visible"
        } else if symbol.choice.is_some() {
            "another member of its choice is on"
        } else {
            "others select or limit it"
        };
        let message = format!("{name} was set to {user} but is {}: {why}", self.text(id));
        Some((WarningKind::NotApplied, message))
    }

    /// Whether a symbol stands in a place of the menu that is shown now.
    pub(crate) fn shown_node(&self, id: SymbolId) -> Option<NodeId> {
        let nodes = self.tree().symbol(id).nodes.iter().copied();
        nodes.into_iter().find(|&node| {
            self.is_visible(node) && matches!(self.tree().node(node).item, Item::Symbol(_))
        })
    }
}
