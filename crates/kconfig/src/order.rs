//! In which order values follow from each other, and loops among them.
//!
//! Everything that has a value is a vertex: each expression, the visibility and
//! the value of each symbol, the mode and the selection of each choice. With
//! the vertices in order, values are computed one after the other without any
//! recursion, and a change is carried on to exactly what rests on it.

use crate::error::{Error, ErrorKind};
use crate::expr::{Arena, Expr, ExprId, Leaf};
use crate::tree::{ChoiceId, SymbolId, SymbolKind, Tree};

/// Something that has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vertex {
    Expr(ExprId),
    /// How far the user may set a symbol.
    Visibility(SymbolId),
    Value(SymbolId),
    /// How far a choice is on.
    Mode(ChoiceId),
    /// Which member is on.
    Selection(ChoiceId),
}

/// The order of one tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct EvalOrder {
    exprs: u32,
    symbols: u32,
    /// The vertices, each after all it rests on.
    pub(crate) sequence: Vec<u32>,
    /// Each vertex's place in `sequence`.
    pub(crate) rank: Vec<u32>,
    /// What rests on a vertex: `targets[starts[v]..starts[v + 1]]`.
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl EvalOrder {
    pub(crate) fn new(tree: &Tree) -> Result<Self, Error> {
        let exprs = count(tree.exprs.len());
        let symbols = count(tree.symbols.len());
        let vertices = exprs + 2 * symbols + 2 * count(tree.choices.len());
        let mut order = Self {
            exprs,
            symbols,
            ..Self::default()
        };
        let rests_on: Vec<Vec<u32>> = (0..vertices)
            .map(|vertex| order.rests_on(tree, order.vertex(vertex)))
            .collect();
        order.sequence = sort(&rests_on).map_err(|path| order.loop_error(tree, &path))?;
        order.rank = vec![0; rests_on.len()];
        for (rank, &vertex) in order.sequence.iter().enumerate() {
            order.rank[vertex as usize] = count(rank);
        }
        order.turn_round(&rests_on);
        Ok(order)
    }

    pub(crate) fn number(&self, vertex: Vertex) -> u32 {
        let choices = self.exprs + 2 * self.symbols;
        match vertex {
            Vertex::Expr(id) => id.0,
            Vertex::Visibility(id) => self.exprs + 2 * id.0,
            Vertex::Value(id) => self.exprs + 2 * id.0 + 1,
            Vertex::Mode(id) => choices + 2 * id.0,
            Vertex::Selection(id) => choices + 2 * id.0 + 1,
        }
    }

    pub(crate) fn vertex(&self, number: u32) -> Vertex {
        let Some(rest) = number.checked_sub(self.exprs) else {
            return Vertex::Expr(ExprId(number));
        };
        match rest.checked_sub(2 * self.symbols) {
            None if rest % 2 == 0 => Vertex::Visibility(SymbolId(rest / 2)),
            None => Vertex::Value(SymbolId(rest / 2)),
            Some(rest) if rest % 2 == 0 => Vertex::Mode(ChoiceId(rest / 2)),
            Some(rest) => Vertex::Selection(ChoiceId(rest / 2)),
        }
    }

    /// What rests on a vertex.
    pub(crate) fn dependents(&self, vertex: u32) -> &[u32] {
        let at = vertex as usize;
        &self.targets[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    fn turn_round(&mut self, rests_on: &[Vec<u32>]) {
        self.starts = vec![0; rests_on.len() + 1];
        for &on in rests_on.iter().flatten() {
            self.starts[on as usize + 1] += 1;
        }
        for at in 1..self.starts.len() {
            self.starts[at] += self.starts[at - 1];
        }
        let mut next = self.starts.clone();
        self.targets = vec![0; rests_on.iter().map(Vec::len).sum()];
        for (vertex, on) in rests_on.iter().enumerate() {
            for &on in on {
                self.targets[next[on as usize] as usize] = count(vertex);
                next[on as usize] += 1;
            }
        }
    }

    fn rests_on(&self, tree: &Tree, vertex: Vertex) -> Vec<u32> {
        let mut on = Vec::new();
        let expr = |id: ExprId, on: &mut Vec<u32>| {
            if !matches!(id, Arena::N | Arena::M | Arena::Y) {
                on.push(id.0);
            }
        };
        match vertex {
            Vertex::Expr(id) => match tree.expr(id) {
                Expr::And(parts) | Expr::Or(parts) => on.extend(parts.iter().map(|part| part.0)),
                Expr::Not(inner) | Expr::IsNo(inner) => on.push(inner.0),
                _ => on.extend(
                    tree.exprs
                        .leaves(id)
                        .into_iter()
                        .map(|leaf| self.leaf(tree, leaf)),
                ),
            },
            Vertex::Visibility(id) => {
                for &node in &tree.symbol(id).nodes {
                    if let Some(prompt) = &tree.node(node).prompt {
                        expr(prompt.condition, &mut on);
                    }
                }
                on.extend(
                    tree.symbol(id)
                        .choice
                        .map(|choice| self.number(Vertex::Mode(choice))),
                );
                self.modules(tree, id, &mut on);
            }
            Vertex::Value(id) => self.value_rests_on(tree, id, &mut on),
            Vertex::Mode(id) => {
                for &node in &tree.choice(id).nodes {
                    if let Some(prompt) = &tree.node(node).prompt {
                        expr(prompt.condition, &mut on);
                    }
                }
                if tree.choice(id).kind == SymbolKind::Tristate {
                    on.push(self.number(Vertex::Value(tree.modules())));
                }
            }
            Vertex::Selection(id) => {
                on.push(self.number(Vertex::Mode(id)));
                for &member in &tree.choice(id).members {
                    on.push(self.number(Vertex::Visibility(member)));
                }
                for default in &tree.choice(id).defaults {
                    expr(default.condition, &mut on);
                }
            }
        }
        on
    }

    fn value_rests_on(&self, tree: &Tree, id: SymbolId, on: &mut Vec<u32>) {
        let symbol = tree.symbol(id);
        // Constants and undefined symbols are what they are called.
        if symbol.nodes.is_empty() {
            return;
        }
        on.push(self.number(Vertex::Visibility(id)));
        on.extend([symbol.reverse.0, symbol.weak_reverse.0, symbol.depends.0]);
        on.extend(
            symbol
                .defaults
                .iter()
                .flat_map(|d| [d.value.0, d.condition.0]),
        );
        for range in &symbol.ranges {
            on.push(range.condition.0);
            on.extend([range.low, range.high].map(|bound| self.number(Vertex::Value(bound))));
        }
        if let Some(choice) = symbol.choice {
            on.push(self.number(Vertex::Mode(choice)));
            on.push(self.number(Vertex::Selection(choice)));
        }
        // A default that is a text or number is read from its symbol.
        if !symbol.kind.is_logical() {
            for default in &symbol.defaults {
                if let Expr::Symbol(value) = tree.expr(default.value) {
                    on.push(self.number(Vertex::Value(*value)));
                }
            }
        }
        self.modules(tree, id, on);
    }

    /// A tristate is a bool where modules are off.
    fn modules(&self, tree: &Tree, id: SymbolId, on: &mut Vec<u32>) {
        if tree.symbol(id).kind == SymbolKind::Tristate
            && !tree.symbol(id).constant
            && id != tree.modules()
        {
            on.push(self.number(Vertex::Value(tree.modules())));
        }
    }

    fn leaf(&self, tree: &Tree, leaf: Leaf) -> u32 {
        self.number(match leaf {
            Leaf::Symbol(id) => Vertex::Value(id),
            Leaf::Choice(id) => Vertex::Mode(id),
            Leaf::Modules => Vertex::Value(tree.modules()),
        })
    }

    fn loop_error(&self, tree: &Tree, path: &[u32]) -> Error {
        let mut named: Vec<(String, Option<crate::tree::NodeId>)> = Vec::new();
        for &vertex in path {
            let step = match self.vertex(vertex) {
                Vertex::Expr(_) => continue,
                Vertex::Visibility(id) | Vertex::Value(id) => {
                    let symbol = tree.symbol(id);
                    (symbol.name.clone(), symbol.nodes.first().copied())
                }
                Vertex::Mode(id) | Vertex::Selection(id) => {
                    let name = format!("the choice {}", tree.choice_name(id));
                    (name, tree.choice(id).nodes.first().copied())
                }
            };
            if named.last() != Some(&step) {
                named.push(step);
            }
        }
        while named.len() > 1 && named.first() == named.last() {
            named.pop();
        }
        // The same loop is told in the same way wherever it was entered.
        let first = named
            .iter()
            .enumerate()
            .min_by_key(|(_, (_, node))| node.map_or(u32::MAX, |node| node.0));
        let first = first.map_or(0, |(at, _)| at);
        named.rotate_left(first);
        let steps = named.iter().enumerate().map(|(n, (name, node))| {
            let (next, _) = &named[(n + 1) % named.len()];
            match node {
                Some(node) => format!("{name} ({}) depends on {next}", tree.node(*node).position),
                None => format!("{name} depends on {next}"),
            }
        });
        let at = named
            .iter()
            .find_map(|(_, node)| *node)
            .unwrap_or(tree.root());
        let first = named.first().map_or("a symbol", |(name, _)| name);
        let message = format!("the value of {first} depends on itself");
        let position = tree.node(at).position.clone();
        Error::new(ErrorKind::DependencyLoop, position, message).with_chain(steps.collect())
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("the limit on input keeps ids in 32 bits")
}

/// The vertices so that each comes after what it rests on, or a loop among
/// them. Depth first, with a stack of its own.
fn sort(rests_on: &[Vec<u32>]) -> Result<Vec<u32>, Vec<u32>> {
    #[derive(Clone, Copy, PartialEq)]
    enum VisitState {
        New,
        Open,
        Done,
    }
    let mut states = vec![VisitState::New; rests_on.len()];
    let mut sequence = Vec::with_capacity(rests_on.len());
    for start in 0..rests_on.len() {
        if states[start] != VisitState::New {
            continue;
        }
        states[start] = VisitState::Open;
        // Each vertex on the way down, and which of its edges comes next.
        let mut path = vec![(start, 0)];
        while let Some((vertex, edge)) = path.last_mut() {
            let Some(&next) = rests_on[*vertex].get(*edge) else {
                states[*vertex] = VisitState::Done;
                sequence.push(count(*vertex));
                path.pop();
                continue;
            };
            *edge += 1;
            let next = next as usize;
            match states[next] {
                VisitState::Done => {}
                VisitState::New => {
                    states[next] = VisitState::Open;
                    path.push((next, 0));
                }
                VisitState::Open => {
                    let on_the_way = path.iter().map(|&(vertex, _)| vertex);
                    return Err(on_the_way.skip_while(|&v| v != next).map(count).collect());
                }
            }
        }
    }
    Ok(sequence)
}
