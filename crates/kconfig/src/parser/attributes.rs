//! The attributes of an entry: type, prompt, defaults, dependencies, help.

use super::{ATTRIBUTES, OpenSource, Parser, Statement};
use crate::error::Error;
use crate::expr::{Arena, Expr};
use crate::lexer::TokenKind;
use crate::tree::{Default, Item, NodeId, Select, SymbolKind, ValueRange};

impl Parser<'_> {
    /// The attributes that follow a statement.
    pub(super) fn attributes(&mut self, input: &mut OpenSource, node: NodeId) -> Result<(), Error> {
        while let Some(statement) = self.statement(input)? {
            let word = statement.keyword();
            let is_attribute =
                statement.tokens[0].kind == TokenKind::Word && ATTRIBUTES.contains(&word);
            if !is_attribute {
                input.pending = Some(statement);
                break;
            }
            if let Some(entry) = self.refuses(node, word) {
                let message = format!("{entry} has no attribute '{word}'");
                return Err(Error::syntax(statement.start(), message));
            }
            self.attribute(input, statement, node)?;
        }
        Ok(())
    }

    /// The entry in words when it cannot have this attribute.
    fn refuses(&self, node: NodeId, word: &str) -> Option<&'static str> {
        let value = matches!(
            word,
            "select" | "imply" | "range" | "option" | "modules" | "transitional"
        );
        match self.tree.node(node).item {
            Item::Symbol(_) => matches!(word, "visible" | "optional").then_some("a config"),
            Item::Choice(_) => (value || word == "visible").then_some("a choice"),
            Item::Menu => (!matches!(word, "depends" | "visible")).then_some("a menu"),
            _ => (word != "depends").then_some("a comment"),
        }
    }

    fn attribute(
        &mut self,
        input: &mut OpenSource,
        mut s: Statement,
        node: NodeId,
    ) -> Result<(), Error> {
        let word = s.keyword().to_owned();
        match word.as_str() {
            "bool" | "tristate" | "string" | "int" | "hex" => {
                self.set_kind(&s, node, kind_of(&word));
                if s.peek().is_some() {
                    self.prompt(&mut s, node)?;
                }
            }
            "prompt" => self.prompt(&mut s, node)?,
            "default" => self.default(&mut s, node)?,
            "depends" => self.depends(&mut s, node)?,
            "select" | "imply" => {
                let target = s.name("the symbol that is meant")?;
                let target = self.tree.symbol_named(&target);
                let condition = self.condition(&mut s)?;
                let select = Select { target, condition };
                let node = &mut self.tree.nodes[node.index()];
                let list = if word == "select" {
                    &mut node.selects
                } else {
                    &mut node.implies
                };
                list.push(select);
            }
            "range" => {
                let low = self.operand(&mut s, "the least value")?;
                let high = self.operand(&mut s, "the greatest value")?;
                let condition = self.condition(&mut s)?;
                self.tree.nodes[node.index()].ranges.push(ValueRange {
                    low,
                    high,
                    condition,
                });
            }
            "visible" => {
                if !s.take_keyword("if") {
                    return Err(s.expected("'if'"));
                }
                let condition = self.expression(&mut s, true)?;
                let before = self.tree.node(node).visible;
                self.tree.nodes[node.index()].visible = self.tree.exprs.and(before, condition);
            }
            "help" | "---help---" => self.help(input, &s, node)?,
            "optional" => {
                if let Item::Choice(choice) = self.tree.node(node).item {
                    self.tree.choices[choice.index()].optional = true;
                }
            }
            "modules" => self.set_modules(node),
            "transitional" => {
                if let Item::Symbol(symbol) = self.tree.node(node).item {
                    self.tree.symbols[symbol.index()].transitional = true;
                }
            }
            "option" => self.option(&mut s, node)?,
            _ => {
                self.set_kind(&s, node, kind_of(word.trim_start_matches("def_")));
                self.default(&mut s, node)?;
            }
        }
        s.end()
    }

    /// Sets the type of a symbol or choice; the last one written counts.
    fn set_kind(&mut self, s: &Statement, node: NodeId, kind: SymbolKind) {
        let (name, old) = match self.tree.node(node).item {
            Item::Symbol(id) => {
                let symbol = &mut self.tree.symbols[id.index()];
                (
                    symbol.name.clone(),
                    std::mem::replace(&mut symbol.kind, kind),
                )
            }
            Item::Choice(id) => {
                let name = self.tree.choice_name(id);
                (
                    name,
                    std::mem::replace(&mut self.tree.choices[id.index()].kind, kind),
                )
            }
            _ => return,
        };
        if old != SymbolKind::Unknown && old != kind {
            let (old, new) = (old.with_article(), kind.with_article());
            self.warn(
                s.start(),
                format!("{name} was {old} before and is now {new}"),
            );
        }
    }

    fn prompt(&mut self, s: &mut Statement, node: NodeId) -> Result<(), Error> {
        let start = s.start();
        let mut text = s.text("the prompt")?;
        let condition = self.condition(s)?;
        if text.trim() != text {
            self.warn(
                start.clone(),
                "the prompt begins or ends with blanks: they are left out",
            );
            text = text.trim().to_owned();
        }
        if self.tree.node(node).prompt.is_some() {
            self.warn(start, "the entry has a second prompt: the last one counts");
        }
        self.set_prompt(node, text, condition);
        Ok(())
    }

    fn default(&mut self, s: &mut Statement, node: NodeId) -> Result<(), Error> {
        let value = self.expression(s, false)?;
        let condition = self.condition(s)?;
        self.tree.nodes[node.index()]
            .defaults
            .push(Default { value, condition });
        Ok(())
    }

    /// `depends on a`, or `depends on a if b`: a counts only while b is not `n`.
    fn depends(&mut self, s: &mut Statement, node: NodeId) -> Result<(), Error> {
        if !s.take_keyword("on") {
            return Err(s.expected("'on'"));
        }
        let mut wanted = self.expression(s, true)?;
        let condition = self.condition(s)?;
        if condition != Arena::Y {
            let off = self.tree.exprs.add(Expr::IsNo(condition));
            wanted = self.tree.exprs.any(vec![wanted, off]);
        }
        let before = self.tree.node(node).depends;
        self.tree.nodes[node.index()].depends = self.tree.exprs.and(before, wanted);
        Ok(())
    }

    fn help(&mut self, input: &mut OpenSource, s: &Statement, node: NodeId) -> Result<(), Error> {
        s.end()?;
        let help = input.reader.help();
        if help.is_none() {
            self.warn(s.start(), "the help text is empty");
        }
        if self.tree.node(node).help.is_some() {
            self.warn(
                s.start(),
                "the entry has a second help text: the last one counts",
            );
        }
        self.tree.nodes[node.index()].help = Some(help.unwrap_or_default());
        Ok(())
    }

    fn set_modules(&mut self, node: NodeId) {
        if let Item::Symbol(symbol) = self.tree.node(node).item {
            self.tree.modules = symbol;
        }
    }

    /// The `option` lines of old trees.
    fn option(&mut self, s: &mut Statement, node: NodeId) -> Result<(), Error> {
        const OPTIONS: &[&str] = &["env", "modules", "allnoconfig_y", "defconfig_list"];
        let place = s.here();
        let name = s.name("an option")?;
        let Item::Symbol(symbol) = self.tree.node(node).item else {
            return Ok(());
        };
        match name.as_str() {
            "modules" => self.set_modules(node),
            "allnoconfig_y" => self.tree.symbols[symbol.index()].allnoconfig_y = true,
            // It names files to start from; here the caller does that.
            "defconfig_list" => {}
            "env" => {
                if !s.take_operator("=") {
                    return Err(s.expected("'='"));
                }
                let variable = s.text("the name of the variable")?;
                self.tree.symbols[symbol.index()].from_environment = true;
                match self.macros.env(&variable) {
                    Some(value) => {
                        let value = self.tree.constant_named(&value);
                        let value = self.tree.exprs.add(Expr::Symbol(value));
                        let default = Default {
                            value,
                            condition: Arena::Y,
                        };
                        self.tree.nodes[node.index()].defaults.push(default);
                    }
                    None => self.warn(place, format!("the environment has no {variable}")),
                }
            }
            other => {
                let error = Error::syntax(place, format!("there is no option '{other}'"));
                return Err(error.near(other, OPTIONS));
            }
        }
        Ok(())
    }
}

fn kind_of(word: &str) -> SymbolKind {
    match word {
        "bool" => SymbolKind::Bool,
        "tristate" => SymbolKind::Tristate,
        "string" => SymbolKind::String,
        "int" => SymbolKind::Int,
        _ => SymbolKind::Hex,
    }
}
