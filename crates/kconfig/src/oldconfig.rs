//! `oldconfig`: asks for what a `.config` does not say yet, one question after
//! the other.

use std::collections::HashSet;

use crate::config::{Config, SetError};
use crate::expr::Tri;
use crate::tree::{ChoiceId, Item, NodeId, SymbolId, SymbolKind};

/// What an answer may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerKind {
    /// One of these values of a bool or tristate.
    Values(Vec<Tri>),
    /// A text, or a number.
    Text(SymbolKind),
    /// One of these members of a choice, by name or by its number from 1.
    Member(Vec<SymbolId>),
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigQuestion {
    /// The node that is asked for: prompt, help and position stand there.
    pub node: NodeId,
    /// What can be answered.
    pub wanted: AnswerKind,
    /// What an empty answer means.
    pub default: String,
}

/// Why an answer was not taken; the same question comes again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// No question is open.
    #[error("no question is open")]
    NothingAsked,
    /// Not one of the values that are possible now.
    #[error("{answer:?} is not one of {}", .possible.join(", "))]
    NotPossible {
        /// What was answered.
        answer: String,
        /// What could be.
        possible: Vec<String>,
    },
    /// The type does not have the value.
    #[error(transparent)]
    Invalid(#[from] SetError),
    /// A number outside its range.
    #[error("{answer} is not in the range {low} to {high}")]
    OutOfRange {
        /// What was answered.
        answer: String,
        /// The least number.
        low: i128,
        /// The greatest number.
        high: i128,
    },
}

/// The questions for a set of values. Asks in the order of the menu; an answer
/// that makes more entries visible makes more questions.
#[derive(Debug)]
pub struct OldConfig<'c> {
    config: &'c mut Config,
    open: Option<ConfigQuestion>,
    answered: HashSet<NodeId>,
}

impl<'c> OldConfig<'c> {
    /// Questions for what these values do not say.
    pub fn new(config: &'c mut Config) -> Self {
        Self {
            config,
            open: None,
            answered: HashSet::new(),
        }
    }

    /// The values so far.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.config
    }

    /// The next question, or the open one again; none when all is said.
    pub fn question(&mut self) -> Option<ConfigQuestion> {
        if self.open.is_none() {
            self.open = self.find();
        }
        self.open.clone()
    }

    /// Answers the open question; an empty answer takes the default.
    ///
    /// # Errors
    /// When the answer is not one of what is possible: the question stays open.
    pub fn answer(&mut self, answer: &str) -> Result<(), AnswerError> {
        let question = self.open.clone().ok_or(AnswerError::NothingAsked)?;
        let answer = if answer.is_empty() {
            &question.default
        } else {
            answer
        };
        match (
            self.config.tree().node(question.node).item,
            &question.wanted,
        ) {
            (Item::Choice(choice), AnswerKind::Member(members)) => {
                self.pick(choice, members, answer)?;
            }
            (Item::Symbol(id), AnswerKind::Values(values)) => {
                let value = values
                    .iter()
                    .find(|value| value.as_str() == answer.to_lowercase());
                let possible = || values.iter().map(ToString::to_string).collect();
                let value = value.ok_or_else(|| AnswerError::NotPossible {
                    answer: answer.to_owned(),
                    possible: possible(),
                })?;
                self.config.set(id, value.as_str())?;
            }
            (Item::Symbol(id), _) => self.set_text(id, answer)?,
            _ => {}
        }
        self.answered.insert(question.node);
        self.open = None;
        Ok(())
    }

    fn set_text(&mut self, id: SymbolId, answer: &str) -> Result<(), AnswerError> {
        // A number without a default has nothing that an empty answer could mean.
        if answer.is_empty() && self.config.tree().symbol(id).kind.is_number() {
            return Ok(());
        }
        let before = self.config.user_value(id).map(str::to_owned);
        let is_taken = self.config.set(id, answer)?;
        match self.config.range(id) {
            Some((low, high)) if !is_taken => {
                match before {
                    Some(before) => drop(self.config.set(id, &before)),
                    None => self.config.unset(id),
                }
                Err(AnswerError::OutOfRange {
                    answer: answer.to_owned(),
                    low,
                    high,
                })
            }
            _ => Ok(()),
        }
    }

    fn pick(
        &mut self,
        choice: ChoiceId,
        members: &[SymbolId],
        answer: &str,
    ) -> Result<(), AnswerError> {
        let tree = std::sync::Arc::clone(self.config.tree());
        let name = |id: SymbolId| tree.symbol(id).name.as_str();
        let bare = answer.strip_prefix(tree.prefix()).unwrap_or(answer);
        let by_number = answer
            .parse::<usize>()
            .ok()
            .and_then(|n| members.get(n.checked_sub(1)?));
        let picked = members
            .iter()
            .find(|&&id| name(id) == bare)
            .or(by_number)
            .copied();
        let picked = picked.ok_or_else(|| AnswerError::NotPossible {
            answer: answer.to_owned(),
            possible: members.iter().map(|&id| name(id).to_owned()).collect(),
        })?;
        for &member in &tree.choice(choice).members {
            if member != picked {
                self.config.set(member, "n")?;
            }
        }
        self.config.set(picked, "y")?;
        Ok(())
    }

    fn find(&self) -> Option<ConfigQuestion> {
        let tree = self.config.tree();
        let mut open = vec![tree.root()];
        while let Some(id) = open.pop() {
            let node = tree.node(id);
            open.extend(node.children.iter().rev());
            if !self.config.is_visible(id) || self.answered.contains(&id) {
                continue;
            }
            let question = match node.item {
                Item::Symbol(symbol) => self.about_symbol(id, symbol),
                Item::Choice(choice) => self.about_choice(id, choice),
                _ => None,
            };
            if question.is_some() {
                return question;
            }
        }
        None
    }

    fn about_symbol(&self, node: NodeId, id: SymbolId) -> Option<ConfigQuestion> {
        let config = &self.config;
        let symbol = config.tree().symbol(id);
        let in_choice = symbol
            .choice
            .is_some_and(|choice| config.mode(choice) == Tri::Y);
        if config.user_value(id).is_some() || in_choice || !config.can_change(id) {
            return None;
        }
        let wanted = match symbol.kind {
            SymbolKind::Bool | SymbolKind::Tristate => AnswerKind::Values(config.assignable(id)),
            kind => AnswerKind::Text(kind),
        };
        Some(ConfigQuestion {
            node,
            wanted,
            default: config.text(id).to_owned(),
        })
    }

    fn about_choice(&self, node: NodeId, id: ChoiceId) -> Option<ConfigQuestion> {
        let config = &self.config;
        let tree = config.tree();
        let selection = config.selection(id)?;
        let members = tree.choice(id).members.iter().copied();
        let visible: Vec<SymbolId> = members
            .filter(|&member| config.visibility(member) > Tri::N)
            .collect();
        let is_new = visible
            .iter()
            .any(|&member| config.user_value(member).is_none());
        (is_new && visible.len() > 1).then(|| ConfigQuestion {
            node,
            wanted: AnswerKind::Member(visible),
            default: tree.symbol(selection).name.clone(),
        })
    }
}
