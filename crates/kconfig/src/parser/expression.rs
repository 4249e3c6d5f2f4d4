//! Conditions and values.

use super::{Parser, Statement};
use crate::error::{Error, ErrorKind};
use crate::expr::{Arena, Expr, ExprId, Relation};
use crate::files::MemoryFiles;
use crate::lexer::{LogicalLine, TokenKind};
use crate::limits::MAX_EXPR_DEPTH;
use crate::macros::Macros;
use crate::tree::{SymbolId, Tree};

const RELATIONS: [Relation; 6] = [
    Relation::Equal,
    Relation::Unequal,
    Relation::Less,
    Relation::LessEqual,
    Relation::Greater,
    Relation::GreaterEqual,
];

/// Reads a line that is nothing but a condition into a tree.
pub(crate) fn condition(tree: Tree, line: LogicalLine) -> Result<(Tree, ExprId), Error> {
    let files = MemoryFiles::default();
    let env = |_: &str| None;
    let mut macros = Macros::new(&env, None);
    let tokens = line.tokens(&mut macros)?;
    let mut statement = Statement {
        line,
        tokens,
        next: 0,
    };
    let mut parser = Parser::new(&tree.prefix, &files, macros);
    parser.tree = tree;
    let id = parser.expression(&mut statement, true)?;
    statement.end()?;
    Ok((parser.tree, id))
}

impl Parser<'_> {
    /// An expression. In a condition a bare `m` means "m, if modules are on".
    pub(super) fn expression(
        &mut self,
        s: &mut Statement,
        is_condition: bool,
    ) -> Result<ExprId, Error> {
        self.any_of(s, is_condition, 0)
    }

    /// `if …` at the end of an attribute; `y` where there is none.
    pub(super) fn condition(&mut self, s: &mut Statement) -> Result<ExprId, Error> {
        if s.peek().is_none() {
            return Ok(Arena::Y);
        }
        if !s.take_keyword("if") {
            return Err(s.expected("'if' or the end of the line"));
        }
        let condition = self.expression(s, true)?;
        s.end()?;
        Ok(condition)
    }

    fn any_of(&mut self, s: &mut Statement, m: bool, depth: usize) -> Result<ExprId, Error> {
        let mut parts = vec![self.all_of(s, m, depth)?];
        while s.take_operator("||") {
            parts.push(self.all_of(s, m, depth)?);
        }
        Ok(match parts[..] {
            [only] => only,
            _ => self.tree.exprs.add(Expr::Or(parts)),
        })
    }

    fn all_of(&mut self, s: &mut Statement, m: bool, depth: usize) -> Result<ExprId, Error> {
        let mut parts = vec![self.factor(s, m, depth)?];
        while s.take_operator("&&") {
            parts.push(self.factor(s, m, depth)?);
        }
        Ok(match parts[..] {
            [only] => only,
            _ => self.tree.exprs.add(Expr::And(parts)),
        })
    }

    fn factor(&mut self, s: &mut Statement, m: bool, depth: usize) -> Result<ExprId, Error> {
        if depth > MAX_EXPR_DEPTH {
            let message = format!("the expression nests deeper than {MAX_EXPR_DEPTH}");
            return Err(Error::new(ErrorKind::Limit, s.here(), message));
        }
        if s.take_operator("!") {
            let inner = self.factor(s, m, depth + 1)?;
            return Ok(self.tree.exprs.add(Expr::Not(inner)));
        }
        if s.take_operator("(") {
            let inner = self.any_of(s, m, depth + 1)?;
            if !s.take_operator(")") {
                return Err(s.expected("&&, || or the closing parenthesis"));
            }
            return Ok(inner);
        }
        let left = self.operand(s, "a symbol, a value or an expression")?;
        for relation in RELATIONS {
            if s.take_operator(relation.as_str()) {
                let right = self.operand(s, "a symbol or value to compare with")?;
                return Ok(self.tree.exprs.add(Expr::Compare(relation, left, right)));
            }
        }
        let value = self.tree.exprs.add(Expr::Symbol(left));
        if m && left == SymbolId::M {
            let modules = self.tree.exprs.add(Expr::Modules);
            return Ok(self.tree.exprs.and(value, modules));
        }
        Ok(value)
    }

    /// A symbol by its name, or a constant.
    pub(super) fn operand(&mut self, s: &mut Statement, what: &str) -> Result<SymbolId, Error> {
        let Some(token) = s.peek() else {
            return Err(s.expected(what));
        };
        let name = token.text.clone();
        let id = match token.kind {
            TokenKind::Operator => return Err(s.expected(what)),
            TokenKind::Word if name == "if" => return Err(s.expected(what)),
            TokenKind::Quoted => self.tree.constant_named(&name),
            _ if matches!(name.as_str(), "n" | "m" | "y") => self.tree.constant_named(&name),
            _ => self.tree.symbol_named(&name),
        };
        s.next += 1;
        Ok(id)
    }
}
