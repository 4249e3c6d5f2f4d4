//! Why a symbol cannot have a value now, in words that say what to do.

use crate::config::{Config, SetError};
use crate::expr::Tri;
use crate::menu::ConditionPart;
use crate::number::{self, NumberBase};
use crate::tree::{SymbolId, SymbolKind};

/// Why a symbol cannot have a value as things are. [`Config::set`] keeps such a
/// value as a wish; who wants to refuse it at once asks [`Config::refusal`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueRefusal {
    /// The type does not have the value.
    #[error(transparent)]
    Invalid(#[from] SetError),
    /// The symbol has no prompt.
    #[error("{name} cannot be set: it has no prompt and follows from other symbols")]
    Follows {
        /// The symbol.
        name: String,
    },
    /// The conditions of its prompts do not hold.
    #[error("{name} cannot be set: it needs {}", needs(.missing))]
    Hidden {
        /// The symbol.
        name: String,
        /// What does not hold, a list for each prompt: one list must hold.
        missing: Vec<Vec<ConditionPart>>,
    },
    /// A number outside its range.
    #[error("{name}={value} is not in the range {low} to {high}")]
    OutOfRange {
        /// The symbol.
        name: String,
        /// What was to be set.
        value: String,
        /// The least value, in the form of the type.
        low: String,
        /// The greatest value.
        high: String,
    },
    /// Other symbols select it.
    #[error("{name} cannot be {value}: it is selected by {}", .by.join(", "))]
    Selected {
        /// The symbol.
        name: String,
        /// What was to be set.
        value: String,
        /// Who selects it.
        by: Vec<String>,
    },
    /// The member of a choice that is picked: one always is.
    #[error("{name} is what is picked in the choice {choice:?}: pick another of it{}", instead(.others))]
    Picked {
        /// The symbol.
        name: String,
        /// The choice's name or prompt.
        choice: String,
        /// The members that can be picked instead.
        others: Vec<String>,
    },
    /// None of the values that a bool or tristate can have now.
    #[error("{name} cannot be {value} now{}", can_be(.possible))]
    NotNow {
        /// The symbol.
        name: String,
        /// What was to be set.
        value: String,
        /// What can be set.
        possible: Vec<Tri>,
    },
}

fn needs(missing: &[Vec<ConditionPart>]) -> String {
    let one = |parts: &Vec<ConditionPart>| {
        let parts = parts
            .iter()
            .map(|part| match part.text.contains(' ') {
                true => format!("{} (does not hold)", part.text),
                false => format!("{} (now {})", part.text, part.value),
            })
            .collect::<Vec<_>>();
        parts.join(" and ")
    };
    missing.iter().map(one).collect::<Vec<_>>().join("; or ")
}

fn instead(others: &[String]) -> String {
    match others {
        [] => String::new(),
        others => format!(": {}", others.join(", ")),
    }
}

fn can_be(possible: &[Tri]) -> String {
    match possible {
        [] => String::new(),
        [one] => format!(": it can only be {one}"),
        some => {
            let some: Vec<String> = some.iter().map(ToString::to_string).collect();
            format!(": it can be {}", some.join(", "))
        }
    }
}

impl Config {
    /// Why a symbol cannot have `value` as things are; `None` when it has it or
    /// can have it. A value that is only to be had together with others is
    /// judged by setting them all first.
    #[must_use]
    pub fn refusal(&self, id: SymbolId, value: &str) -> Option<ValueRefusal> {
        if let Err(invalid) = self.check(id, value) {
            return Some(invalid.into());
        }
        if self.text(id) == value {
            return None;
        }
        if let Some(obstacle) = self.obstacle(id) {
            return Some(obstacle);
        }
        let symbol = self.tree().symbol(id);
        let (name, value) = (symbol.name.clone(), value.to_owned());
        if symbol.kind.is_logical() {
            return self.logical_refusal(id, name, value);
        }
        self.range_refusal(id, name, value)
    }

    /// Why the user cannot set a symbol to anything now.
    #[must_use]
    pub fn obstacle(&self, id: SymbolId) -> Option<ValueRefusal> {
        let name = self.tree().symbol(id).name.clone();
        let prompts = self.explain(id).prompts;
        if prompts.is_empty() {
            return Some(ValueRefusal::Follows { name });
        }
        let missing = prompts.into_iter().map(|parts| -> Vec<ConditionPart> {
            let missing = parts.into_iter().filter(|part| part.value == Tri::N);
            missing.collect()
        });
        (self.visibility(id) == Tri::N).then(|| ValueRefusal::Hidden {
            name,
            missing: missing.filter(|parts| !parts.is_empty()).collect(),
        })
    }

    fn range_refusal(&self, id: SymbolId, name: String, value: String) -> Option<ValueRefusal> {
        let (low, high) = self.range(id)?;
        let is_hex = self.tree().symbol(id).kind == SymbolKind::Hex;
        let base = if is_hex {
            NumberBase::Hex
        } else {
            NumberBase::Decimal
        };
        let number = number::parse(&value, base)?;
        let text = |number: i128| match is_hex {
            true => format!("{number:#x}"),
            false => number.to_string(),
        };
        (!(low..=high).contains(&number)).then(|| ValueRefusal::OutOfRange {
            name,
            value,
            low: text(low),
            high: text(high),
        })
    }

    fn logical_refusal(&self, id: SymbolId, name: String, value: String) -> Option<ValueRefusal> {
        let possible = self.assignable(id);
        if possible.iter().any(|possible| possible.as_str() == value) {
            return None;
        }
        let tree = self.tree();
        let name_of = |id: SymbolId| tree.symbol(id).name.clone();
        if let Some(choice) = tree.symbol(id).choice
            && self.selection(choice) == Some(id)
        {
            let members = tree.choice(choice).members.iter().copied();
            let others = members
                .filter(|&member| member != id && self.visibility(member) > Tri::N)
                .map(name_of)
                .collect();
            let choice = tree.choice_name(choice);
            return Some(ValueRefusal::Picked {
                name,
                choice,
                others,
            });
        }
        let by: Vec<String> = self
            .explain(id)
            .selected_by
            .into_iter()
            .map(|(by, _)| name_of(by))
            .collect();
        Some(match by.is_empty() {
            false => ValueRefusal::Selected { name, value, by },
            true => ValueRefusal::NotNow {
                name,
                value,
                possible,
            },
        })
    }
}
