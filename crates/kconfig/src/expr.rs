//! Values of three states and the expressions over them.
//!
//! Expressions live in one arena and name each other by number, so that the
//! condition of a menu is shared by everything below it and nothing, however
//! long, is dropped or copied recursively.

use crate::limits::MAX_SHOWN_DEPTH;
use crate::tree::{ChoiceId, SymbolId, Tree};

/// A text as it stands between quotes, here and in a `.config`.
pub(crate) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The value of a bool or tristate symbol and of every condition. The order is
/// the language's: `&&` is the smaller, `||` the larger of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Tri {
    /// `n`: no.
    #[default]
    N,
    /// `m`: a module.
    M,
    /// `y`: yes.
    Y,
}

impl Tri {
    /// `n`, `m` or `y`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::N => "n",
            Self::M => "m",
            Self::Y => "y",
        }
    }

    /// The value that exactly `n`, `m` or `y` names.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        match text {
            "n" => Some(Self::N),
            "m" => Some(Self::M),
            "y" => Some(Self::Y),
            _ => None,
        }
    }

    /// `y` for true, `n` for false.
    #[must_use]
    pub const fn from_bool(truth: bool) -> Self {
        if truth { Self::Y } else { Self::N }
    }

    /// What `!` makes of it: `y` and `n` change places, `m` stays.
    #[must_use]
    pub const fn negated(self) -> Self {
        match self {
            Self::N => Self::Y,
            Self::M => Self::M,
            Self::Y => Self::N,
        }
    }

    /// The number that stands for it in comparisons: 0, 1, 2.
    #[must_use]
    pub const fn number(self) -> i128 {
        self as i128
    }
}

impl std::fmt::Display for Tri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How two symbols are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl Relation {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    /// Whether it holds for operands that compare like this.
    #[must_use]
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }
}

/// An expression's place in the arena of its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExprId(pub(crate) u32);

/// One expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// The value of a symbol, a constant included.
    Symbol(SymbolId),
    /// The mode of a choice, on which its members depend.
    Choice(ChoiceId),
    /// Whether modules are on: what `m` means in a condition besides `m`.
    Modules,
    /// `!a`
    Not(ExprId),
    /// `y` when a is `n`, else `n`: the condition of `depends on b if a`.
    IsNo(ExprId),
    /// `a && b && …`
    And(Vec<ExprId>),
    /// `a || b || …`
    Or(Vec<ExprId>),
    /// `A = B` and its kin, between symbols only.
    Compare(Relation, SymbolId, SymbolId),
}

/// All expressions of a tree. The constants have fixed places.
#[derive(Debug, Clone)]
pub(crate) struct Arena {
    all: Vec<Expr>,
}

impl Arena {
    pub(crate) const N: ExprId = ExprId(0);
    pub(crate) const M: ExprId = ExprId(1);
    pub(crate) const Y: ExprId = ExprId(2);

    pub(crate) fn new() -> Self {
        let all = [SymbolId::N, SymbolId::M, SymbolId::Y].map(Expr::Symbol);
        Self { all: all.to_vec() }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, id: ExprId) -> &Expr {
        &self.all[id.0 as usize]
    }

    pub(crate) fn add(&mut self, expr: Expr) -> ExprId {
        match expr {
            Expr::Symbol(SymbolId::N) => return Self::N,
            Expr::Symbol(SymbolId::M) => return Self::M,
            Expr::Symbol(SymbolId::Y) => return Self::Y,
            _ => {}
        }
        let id = u32::try_from(self.all.len()).expect("the limit on input keeps ids in 32 bits");
        self.all.push(expr);
        ExprId(id)
    }

    /// `a && b`, shortened where one of them is `y` or `n`.
    pub(crate) fn and(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (a, b) {
            (Self::Y, other) | (other, Self::Y) => other,
            (Self::N, _) | (_, Self::N) => Self::N,
            (a, b) => self.add(Expr::And(vec![a, b])),
        }
    }

    /// `a || b || …`, shortened in the same way.
    pub(crate) fn any(&mut self, parts: Vec<ExprId>) -> ExprId {
        let mut parts: Vec<ExprId> = parts.into_iter().filter(|&part| part != Self::N).collect();
        if parts.contains(&Self::Y) {
            return Self::Y;
        }
        match parts.len() {
            0 => Self::N,
            1 => parts.remove(0),
            _ => self.add(Expr::Or(parts)),
        }
    }

    /// The symbols, choices and questions about modules that an expression
    /// names itself, not through its parts.
    pub(crate) fn leaves(&self, id: ExprId) -> Vec<Leaf> {
        match self.get(id) {
            Expr::Symbol(symbol) => vec![Leaf::Symbol(*symbol)],
            Expr::Choice(choice) => vec![Leaf::Choice(*choice)],
            Expr::Modules => vec![Leaf::Modules],
            Expr::Compare(_, left, right) => vec![Leaf::Symbol(*left), Leaf::Symbol(*right)],
            Expr::Not(_) | Expr::IsNo(_) | Expr::And(_) | Expr::Or(_) => Vec::new(),
        }
    }
}

/// What an expression rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    Symbol(SymbolId),
    Choice(ChoiceId),
    Modules,
}

/// How tightly what stands around an expression binds, for parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Around {
    Nothing,
    Or,
    And,
    Not,
}

impl Tree {
    /// The expression as it could be written in a Kconfig file. A choice is
    /// shown as `<choice NAME>` or by its prompt: the language has no word for it.
    #[must_use]
    pub fn expr_text(&self, id: ExprId) -> String {
        let mut text = String::new();
        self.write_expr(id, Around::Nothing, 0, &mut text);
        text
    }

    fn write_expr(&self, id: ExprId, around: Around, depth: usize, out: &mut String) {
        if depth > MAX_SHOWN_DEPTH {
            return out.push('…');
        }
        match self.expr(id) {
            Expr::Symbol(symbol) => out.push_str(&self.operand_text(*symbol)),
            Expr::Choice(choice) => {
                out.push_str("<choice ");
                out.push_str(&self.choice_name(*choice));
                out.push('>');
            }
            Expr::Modules => out.push_str(&self.symbol(self.modules()).name),
            Expr::Not(inner) => {
                out.push('!');
                self.write_expr(*inner, Around::Not, depth + 1, out);
            }
            Expr::IsNo(inner) => {
                let simple = matches!(self.expr(*inner), Expr::Symbol(_));
                let around = if simple { Around::Nothing } else { Around::Not };
                self.write_expr(*inner, around, depth + 1, out);
                out.push_str(" = n");
            }
            Expr::And(parts) => {
                self.write_parts(parts, (" && ", Around::And), around, depth, out);
            }
            Expr::Or(parts) => {
                self.write_parts(parts, (" || ", Around::Or), around, depth, out);
            }
            Expr::Compare(relation, left, right) => {
                let bracket = around == Around::Not;
                out.push_str(if bracket { "(" } else { "" });
                out.push_str(&self.operand_text(*left));
                out.push(' ');
                out.push_str(relation.as_str());
                out.push(' ');
                out.push_str(&self.operand_text(*right));
                out.push_str(if bracket { ")" } else { "" });
            }
        }
    }

    fn write_parts(
        &self,
        parts: &[ExprId],
        (between, own): (&str, Around),
        around: Around,
        depth: usize,
        out: &mut String,
    ) {
        let bracket = around > own;
        out.push_str(if bracket { "(" } else { "" });
        for (n, &part) in parts.iter().enumerate() {
            out.push_str(if n > 0 { between } else { "" });
            self.write_expr(part, own, depth + 1, out);
        }
        out.push_str(if bracket { ")" } else { "" });
    }

    /// A symbol where it is used: constants other than `n`, `m`, `y` in quotes.
    fn operand_text(&self, id: SymbolId) -> String {
        let symbol = self.symbol(id);
        if symbol.constant && Tri::from_text(&symbol.name).is_none() {
            format!("\"{}\"", escape(&symbol.name))
        } else {
            symbol.name.clone()
        }
    }
}
