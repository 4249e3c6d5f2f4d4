//! Loops: from the steps as written to those that are done.

use std::collections::BTreeSet;
use std::ops::Range;

use fathom_campaign::error::meant;

use super::fields::StudyReader;
use super::keys::{STEP, STEPS};
use super::tree::{TomlField, TomlNode, TomlValue};

/// Steps of a plan file after its loops. More are a mistake in a loop.
const STEPS_MAX: usize = 10_000;
/// Text that loops make of a plan file, in bytes. More is a mistake, too.
pub(super) const ROOM: usize = 32 << 20;

/// A loop's variables with their values of one round.
type LoopRound<'n> = Vec<(&'n str, &'n TomlNode)>;

/// A step as it is done once.
pub(super) struct ExpandedStep<'n> {
    /// Its table, with the values in place of the variables.
    pub(super) node: TomlNode,
    /// Where the step is written: for what is wrong with it as a whole.
    pub(super) at: usize,
    /// The values of the loops that it is in.
    pub(super) values: Vec<String>,
    /// As it is written.
    pub(super) written: &'n TomlNode,
}

/// The steps that a list of `[[step]]` comes to.
pub(super) fn expanded<'n>(
    reading: &mut StudyReader,
    steps: &'n TomlNode,
) -> Vec<ExpandedStep<'n>> {
    let mut all = Vec::new();
    for step in steps.items() {
        expand(reading, step, &LoopRound::new(), &mut all);
    }
    if is_full(reading, &all) {
        let said = format!("with its loops this is more than {STEPS_MAX} steps, or too much text");
        reading.fault(steps.span.start, said);
        all.clear();
    }
    all
}

fn is_full(reading: &StudyReader, all: &[ExpandedStep]) -> bool {
    all.len() > STEPS_MAX || reading.room == 0
}

fn expand<'n>(
    reading: &mut StudyReader,
    step: &'n TomlNode,
    round: &LoopRound<'n>,
    all: &mut Vec<ExpandedStep<'n>>,
) {
    let axes = axes(reading, step, round);
    let inner = step.get(STEPS.name);
    if inner.is_some() {
        check_group(reading, step);
    }
    for combination in combinations(&axes) {
        let before = all.len();
        let mut round = round.clone();
        round.extend(combination);
        match inner {
            Some(inner) => {
                for step in inner.items() {
                    expand(reading, step, &round, all);
                }
            }
            None => all.push(ExpandedStep {
                node: filled(reading, step, &round),
                at: step.span.start,
                values: round
                    .iter()
                    .filter_map(|(_, value)| value.scalar())
                    .collect(),
                written: step,
            }),
        }
        // A loop without steps would go round for nothing.
        if is_full(reading, all) || all.len() == before {
            return;
        }
    }
}

/// A step that holds steps has its loop, and nothing else.
fn check_group(reading: &mut StudyReader, step: &TomlNode) {
    let keys = STEP.iter().filter(|key| key.name == "for");
    reading.check(
        step.fields(),
        keys.chain([&STEPS]),
        "a step with steps of its own",
    );
    if step.get("for").is_none() {
        reading.fault(
            step.span.start,
            "a step with steps of its own needs a 'for'",
        );
    }
}

/// The variables of a step's own loop with their values, in the order in which they
/// are written.
fn axes<'n>(
    reading: &mut StudyReader,
    step: &'n TomlNode,
    outer: &LoopRound,
) -> Vec<(&'n str, &'n [TomlNode])> {
    let Some(axes) = step.get("for") else {
        return Vec::new();
    };
    let mut used = BTreeSet::new();
    for field in step.fields().iter().filter(|field| field.name != "for") {
        field.node.each_text(&mut |text, _| {
            used.extend(placeholders(text).map(|(_, name)| name.to_owned()));
        });
    }
    if axes.fields().is_empty() {
        reading.fault(
            axes.span.start,
            "for: give values, as in { bs = [\"4k\", \"64k\"] }",
        );
    }
    let mut good = Vec::new();
    for field in axes.fields() {
        check_axis(reading, field, outer);
        if !used.contains(&field.name) {
            let near = meant(&field.name, used.iter().map(String::as_str));
            let name = &field.name;
            let said = format!("nothing in this step uses ${{{name}}}{near}");
            reading.fault(field.at, said);
        }
        good.push((field.name.as_str(), field.node.items()));
    }
    good
}

fn check_axis(reading: &mut StudyReader, field: &TomlField, outer: &LoopRound) {
    let name = &field.name;
    if !is_name(name) {
        let said = format!("for: '{name}' is not a name: use letters, digits, _ and -");
        reading.fault(field.at, said);
    }
    if outer.iter().any(|(other, _)| other == name) {
        reading.fault(
            field.at,
            format!("for: {name} is a variable of the loop outside"),
        );
    }
    let TomlValue::List(items) = &field.node.value else {
        let said = format!("for: give a list of values for {name}");
        return reading.fault(field.node.span.start, said);
    };
    if items.is_empty() {
        reading.fault(field.node.span.start, format!("for: {name} has no values"));
    }
    let mut seen = BTreeSet::new();
    for item in items {
        let at = item.span.start;
        match item.scalar() {
            None => reading.fault(at, "for: give texts, numbers, true or false"),
            Some(value) if value.is_empty() || value.chars().any(char::is_control) => {
                reading.fault(at, "for: a value is empty or has control characters");
            }
            Some(value) if placeholders(&value).next().is_some() => {
                reading.fault(at, "for: a value cannot be made of other variables");
            }
            Some(value) => {
                if !seen.insert(value.clone()) {
                    reading.fault(at, format!("for: {name} has the value {value} twice"));
                }
            }
        }
    }
}

/// Whether a text can be the name of a variable.
fn is_name(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(inside)
}

/// Every combination of the values; the first variable changes slowest. One without
/// anything where there are none.
fn combinations<'n>(axes: &[(&'n str, &'n [TomlNode])]) -> impl Iterator<Item = LoopRound<'n>> {
    let counts = axes.iter().map(|(_, values)| values.len());
    let total = counts.fold(1_usize, usize::saturating_mul);
    (0..total.min(STEPS_MAX + 1)).map(move |mut place| {
        let mut round: LoopRound = Vec::with_capacity(axes.len());
        for (name, values) in axes.iter().rev() {
            round.push((*name, &values[place % values.len()]));
            place /= values.len();
        }
        round.reverse();
        round
    })
}

/// The step with the values in place of the variables.
fn filled(reading: &mut StudyReader, step: &TomlNode, round: &LoopRound) -> TomlNode {
    let fields = step.fields().iter().filter(|field| field.name != "for");
    let fields = fields.map(|field| {
        let text = field.node.text().unwrap_or_default();
        // fio and the shell have variables of their own.
        let foreign = match field.name.as_str() {
            "command" | "undo" => true,
            "job" => is_inline(text),
            _ => false,
        };
        TomlField {
            node: replaced(reading, &field.node, round, foreign),
            ..field.clone()
        }
    });
    TomlNode::new(TomlValue::Table(fields.collect()), step.span.clone())
}

/// Whether what stands behind `job` is the text of a job file rather than its name.
pub(super) fn is_inline(text: &str) -> bool {
    text.contains('\n') || text.trim_start().starts_with('[')
}

fn replaced(
    reading: &mut StudyReader,
    node: &TomlNode,
    round: &LoopRound,
    foreign: bool,
) -> TomlNode {
    let span = node.span.clone();
    let mut again = |node: &TomlNode| replaced(reading, node, round, foreign);
    let value = match &node.value {
        TomlValue::Text(text) => return replaced_text(reading, text, span, round, foreign),
        TomlValue::List(items) => TomlValue::List(items.iter().map(again).collect()),
        TomlValue::Table(fields) => {
            let fields = fields.iter().map(|field| TomlField {
                name: field.name.clone(),
                at: field.at,
                node: again(&field.node),
            });
            TomlValue::Table(fields.collect())
        }
        other => other.clone(),
    };
    TomlNode::new(value, span)
}

fn replaced_text(
    reading: &mut StudyReader,
    text: &str,
    span: Range<usize>,
    round: &LoopRound,
    foreign: bool,
) -> TomlNode {
    let value_of = |name: &str| round.iter().find(|(known, _)| *known == name);
    reading.room = reading.room.saturating_sub(text.len().max(1));
    let mut result = String::new();
    let mut rest = 0;
    let mut is_filled = false;
    for (at, name) in placeholders(text) {
        let Some((_, value)) = value_of(name) else {
            if !foreign {
                let near = meant(name, round.iter().map(|(known, _)| *known));
                let said = format!("no loop here has a variable {name}{near}");
                reading.fault_in(&span, text, at, &said);
            }
            continue;
        };
        let end = at + name.len() + "${}".len();
        // A number stays one where nothing stands beside it.
        is_filled = at == 0 && end == text.len();
        result.push_str(&text[rest..at]);
        result.push_str(&value.scalar().unwrap_or_default());
        rest = end;
    }
    result.push_str(&text[rest..]);
    let value = TomlValue::Text(result);
    TomlNode {
        is_filled,
        ..TomlNode::new(value, span)
    }
}

/// The names in `${…}`, each with the place of its `$`.
fn placeholders(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices("${").filter_map(|(at, begin)| {
        let behind = &text[at + begin.len()..];
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let end = behind.find(|c| !inside(c))?;
        let name = &behind[..end];
        (behind[end..].starts_with('}') && is_name(name)).then_some((at, name))
    })
}
