//! Options of the command line as keys of a plan file: their values are read by the command
//! line's own parser.

use std::error::Error as _;

use clap::Args;
use clap::error::{ContextKind, ContextValue};
use fathom_flow::RunOptions;

use super::fields::{StudyFields, StudyReader};
use super::keys::{KeyForm, OPTIONS, StudyKey};
use super::tree::TomlNode;

/// The options of every run.
pub(super) fn of_run(reading: &mut StudyReader, root: &TomlNode) -> RunOptions {
    let mut options = RunOptions::default();
    for (key, words) in words_of(reading, root, &OPTIONS) {
        let read = parsed::<RunOptions>(&words);
        let read = read.and_then(|one| options.over(&one).map_err(|e| e.to_string()));
        tell(reading, root, key, read);
    }
    if let Some(sim) = root.get("sim").filter(|_| !options.is_simulated()) {
        let said = "sim describes a simulated device: set engine = \"sim\", too";
        reading.fault(sim.span.start, said);
    } else if let Err(said) = options.check_one() {
        reading.fault_of(root, "fio", said);
    }
    options
}

/// The options of a step; those that have faults are left out.
pub(super) fn of_node<A: Args + Default>(
    reading: &mut StudyReader,
    node: &TomlNode,
    keys: &'static [StudyKey],
) -> A {
    let mut options = parsed::<A>(&[]).unwrap_or_default();
    let mut all = Vec::new();
    for (key, words) in words_of(reading, node, keys) {
        let read = parsed::<A>(&words).map(drop);
        let together: Vec<String> = all.iter().chain(&words).cloned().collect();
        match read.and_then(|()| parsed(&together)) {
            Ok(whole) => (options, all) = (whole, together),
            Err(said) => tell(reading, node, key, Err(said)),
        }
    }
    options
}

/// The keys that are there, as words of a command line.
fn words_of(
    reading: &StudyReader,
    node: &TomlNode,
    keys: &'static [StudyKey],
) -> Vec<(&'static StudyKey, Vec<String>)> {
    let there = keys.iter().filter(|key| node.get(key.name).is_some());
    there.map(|key| (key, words(reading, node, key))).collect()
}

fn words(reading: &StudyReader, node: &TomlNode, key: &StudyKey) -> Vec<String> {
    let fields = StudyFields(node);
    let option = key.option.unwrap_or(key.name);
    let word = |value: &str| format!("--{option}={value}");
    let text = fields.text(key.name).unwrap_or_default();
    let shown = |value: Option<String>| vec![word(&value.unwrap_or_default())];
    match key.form {
        KeyForm::Flag if fields.is_on(key.name) => vec![format!("--{option}")],
        KeyForm::Flag => Vec::new(),
        KeyForm::List => shown(Some(fields.texts(key.name).join(","))),
        KeyForm::Wholes(..) => {
            let numbers: Vec<String> = fields
                .wholes(key.name)
                .iter()
                .map(ToString::to_string)
                .collect();
            shown(Some(numbers.join(",")))
        }
        KeyForm::Texts => fields.texts(key.name).iter().map(|it| word(it)).collect(),
        KeyForm::File => shown(Some(reading.path(text).to_string_lossy().into_owned())),
        KeyForm::Size => shown(fields.size(key.name).map(|it| it.to_string())),
        KeyForm::Whole(..) => shown(fields.whole(key.name).map(|it| it.to_string())),
        KeyForm::Number => shown(fields.number(key.name).map(|it| it.to_string())),
        _ => vec![word(text)],
    }
}

/// Reports a faulty value, unless the reader has already reported its form.
fn tell(reading: &mut StudyReader, node: &TomlNode, key: &StudyKey, read: Result<(), String>) {
    let value = node.get(key.name);
    if let (Err(said), Some(value)) = (read, value)
        && reading.fits(key.form, value).is_ok()
    {
        reading.fault_of(node, key.name, said);
    }
}

fn parsed<A: Args>(words: &[String]) -> Result<A, String> {
    let command = A::augment_args(clap::Command::new("plan")).no_binary_name(true);
    let read = command.try_get_matches_from(words);
    let read = read.and_then(|found| A::from_arg_matches(&found));
    read.map_err(
        |error| match (error.source(), error.get(ContextKind::PriorArg)) {
            (Some(why), _) => why.to_string(),
            (None, Some(ContextValue::String(other))) => {
                format!("{} is set, too", other.trim_start_matches('-'))
            }
            (None, _) => error.to_string(),
        },
    )
}
