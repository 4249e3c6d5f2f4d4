//! Conditions from outside the tree: expressions that other files write in
//! the language of Kconfig about its symbols.

use std::sync::Arc;

use crate::config::Config;
use crate::error::{Error, ErrorKind, Position, nearest};
use crate::expr::{Expr, ExprId, Tri};
use crate::lexer::LogicalLine;
use crate::parser;
use crate::tree::SymbolId;

impl Config {
    /// The value of a condition such as `A && (B || SIZE > 4)`. `at` is where
    /// it is written, for messages; the tree stays as it is.
    ///
    /// # Errors
    /// When it is no expression, or names a symbol that the tree does not define.
    pub fn condition(&self, text: &str, at: &Position) -> Result<Tri, Error> {
        let tree = self.tree().as_ref().clone();
        let known = tree.symbols.len();
        let line = LogicalLine::single(text, at);
        let (tree, id) = parser::condition(tree, line)?;
        let (first, last) = (self.exprs.len(), tree.exprs.len());
        let added = (first..last).map(|n| ExprId(u32::try_from(n).expect("ids have 32 bits")));
        let added: Vec<ExprId> = added.collect();
        // A condition that is a constant or one already known adds nothing.
        for &id in added.iter().chain([&id]) {
            let operands: Vec<SymbolId> = match tree.exprs.get(id) {
                Expr::Symbol(symbol) => vec![*symbol],
                Expr::Compare(_, left, right) => vec![*left, *right],
                _ => Vec::new(),
            };
            for operand in operands {
                let symbol = tree.symbol(operand);
                let is_number = symbol.name.starts_with(|c: char| c.is_ascii_digit());
                if !symbol.constant && symbol.nodes.is_empty() && !is_number {
                    return Err(undefined(&tree, &symbol.name, at));
                }
            }
        }
        let mut config = self.clone();
        config.exprs.resize(last, Tri::N);
        config
            .symbols
            .resize_with(tree.symbols.len(), Default::default);
        for (state, symbol) in config.symbols.iter_mut().zip(&tree.symbols).skip(known) {
            // A constant is worth what it is called.
            state.text.clone_from(&symbol.name);
        }
        // An expression comes after those it is made of.
        for id in added {
            config.exprs[id.0 as usize] = config.expr_value(&tree, id);
        }
        config.tree = Arc::new(tree);
        Ok(config.value(id))
    }
}

fn undefined(tree: &crate::tree::Tree, name: &str, at: &Position) -> Error {
    let names = tree
        .symbols()
        .iter()
        .map(|&id| tree.symbol(id).name.as_str());
    let suggestion = nearest(name, names).map(str::to_owned);
    let mut error = Error::new(
        ErrorKind::Syntax,
        at.clone(),
        format!("{name} is not defined"),
    );
    error.suggestion = suggestion;
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loader, MemoryFiles};

    #[test]
    fn conditions_mean_what_they_mean_in_the_tree() {
        let text = "config A\n\tbool \"a\"\n\nconfig B\n\tbool \"b\"\n\nconfig SIZE\n\tint \"size\"\n\tdefault 8\n\n\
                    config NAME\n\tstring \"name\"\n\tdefault \"x\"\n";
        let files = MemoryFiles::from_iter([("Kconfig", text)]);
        let tree = Arc::new(Loader::new(&files).load("Kconfig").unwrap());
        let mut config = Config::new(tree);
        config.set_by_name("A", "y").unwrap();
        let at = Position {
            file: "tests/x.toml".into(),
            line: 7,
            column: 9,
        };
        let value = |text: &str| config.condition(text, &at);
        for (text, expected) in [
            ("A", true),
            ("B", false),
            ("y", true),
            ("n", false),
            ("A && !B", true),
            ("A && B || SIZE > 4", true),
            ("(A || B) && SIZE < 8", false),
            ("NAME = \"x\" && A", true),
            ("NAME = \"unheard of\"", false),
        ] {
            assert_eq!(value(text).unwrap(), Tri::from_bool(expected), "{text}");
        }
        let wrong = |text: &str| value(text).unwrap_err().to_string();
        assert_eq!(
            wrong("A && SISE > 3"),
            "tests/x.toml:7:9: SISE is not defined; did you mean SIZE?"
        );
        assert_eq!(
            wrong("A &&"),
            "tests/x.toml:7:13: expected a symbol, a value or an expression, found the end of the line"
        );
        assert!(wrong("").starts_with("tests/x.toml:7:1: expected a symbol"));
        assert!(wrong("A B").contains("expected the end of the line, found 'B'"));
    }
}
