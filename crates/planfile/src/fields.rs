//! Reads the values of keys, after checking that they are what the keys take.

use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_campaign::error::{Fault, meant};
use fathom_device::purge::PurgeMethods;
use fathom_model::value::{BareTimeUnit, time_us};

use super::keys::{KeyForm, StudyKey};
use super::tree::{PlanText, TomlField, TomlNode, TomlValue};
use fathom_model::units::parse_size;

/// Faults that are told; nobody reads more.
const FAULTS: usize = 100;

/// What reading a plan file needs to know, and the faults it finds.
pub(super) struct StudyReader<'a> {
    pub(super) text: PlanText<'a>,
    /// The folder that relative paths start in.
    pub(super) folder: PathBuf,
    pub(super) env: &'a dyn Fn(&str) -> Option<String>,
    pub(super) faults: Vec<Fault>,
    /// Whether the jobs run on hosts, which replace variables themselves.
    pub(super) is_on_hosts: bool,
    /// Bytes that loops may still make.
    pub(super) room: usize,
}

impl StudyReader<'_> {
    /// Something is wrong at this byte. Every round of a loop finds the same: once is
    /// enough.
    pub(super) fn fault(&mut self, at: usize, message: impl Into<String>) {
        let fault = Fault::new(&self.text.place(at), message);
        self.add(fault);
    }

    /// Something is wrong with the value of a key; with its table where that has none.
    pub(super) fn fault_of(&mut self, node: &TomlNode, key: &str, said: impl Display) {
        let at = node.get(key).unwrap_or(node).span.start;
        self.fault(at, format!("{key}: {said}"));
    }

    pub(super) fn add(&mut self, fault: Fault) {
        if self.faults.len() < FAULTS && !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// Something is wrong with a part of a text.
    pub(super) fn fault_in(&mut self, span: &Range<usize>, text: &str, offset: usize, said: &str) {
        let at = self.text.within(span, text, offset);
        self.fault(at, said);
    }

    /// A path as the file means it.
    pub(super) fn path(&self, written: &str) -> PathBuf {
        self.folder.join(written)
    }

    /// Whether every field of a table is a key, and has what the key takes.
    pub(super) fn check<'k>(
        &mut self,
        fields: &[TomlField],
        keys: impl Iterator<Item = &'k StudyKey> + Clone,
        what: &str,
    ) {
        for field in fields {
            match keys.clone().find(|key| key.name == field.name) {
                Some(key) => self.check_form(key, &field.node),
                None => {
                    let near = meant(&field.name, keys.clone().map(|key| key.name));
                    self.fault(
                        field.at,
                        format!("{what} has no key '{}'{near}", field.name),
                    );
                }
            }
        }
    }

    fn check_form(&mut self, key: &StudyKey, node: &TomlNode) {
        if let Err(said) = self.fits(key.form, node) {
            self.fault(node.span.start, format!("{}: {said}", key.name));
        }
    }

    /// Whether a value is what a key takes; else what it takes.
    pub(super) fn fits(&self, form: KeyForm, node: &TomlNode) -> Result<(), String> {
        let text = node.text();
        let is = |fits: bool, said: &str| if fits { Ok(()) } else { Err(said.to_owned()) };
        match form {
            KeyForm::Text => line(text),
            KeyForm::Script => script(text),
            KeyForm::Flag => is(flag(node).is_some(), "give true or false"),
            KeyForm::Whole(least, most) => whole(node, least, most),
            KeyForm::Number => is(number(node).is_some(), "give a number that is not negative"),
            KeyForm::Time => time(text.unwrap_or_default()).map(drop),
            KeyForm::Size => is(
                size(node).is_some(),
                "give a size, as in \"64M\" or \"20T\"",
            ),
            KeyForm::File => self.is_there(text, Path::is_file, "file"),
            KeyForm::Folder => self.is_there(text, Path::is_dir, "folder"),
            KeyForm::FolderOrTarget if flag(node) == Some(true) => Ok(()),
            KeyForm::FolderOrTarget => line(text).map_err(|_| "give a folder, or true".to_owned()),
            KeyForm::Word(words) => word(text, words),
            KeyForm::Words(words) => {
                let fits = node
                    .items()
                    .iter()
                    .try_for_each(|item| word(item.text(), words));
                let filled = is(!node.items().is_empty(), "the list is empty");
                filled.and(fits).and_then(|()| unique(node.items()))
            }
            KeyForm::Purge if flag(node) == Some(true) => Ok(()),
            KeyForm::Purge => method(text).map_err(|said| format!("{said}; or give true")),
            KeyForm::Texts | KeyForm::List => {
                let items = list(node, "give a list of texts")?;
                items.iter().try_for_each(|item| line(item.text()))
            }
            KeyForm::Wholes(least, most) => {
                let items = list(node, "give a list of numbers")?;
                let fits = items.iter().try_for_each(|item| whole(item, least, most));
                fits.and_then(|()| unique(items))
            }
            KeyForm::Table(_) => {
                let is_table = matches!(node.value, TomlValue::Table(_));
                is(is_table, "give a table, as in { name = value }")
            }
            KeyForm::Tables(_) => {
                let tables = |item: &TomlNode| matches!(item.value, TomlValue::Table(_));
                let fits = matches!(&node.value, TomlValue::List(all) if all.iter().all(tables));
                is(fits, "write each as [[step]]")
            }
        }
    }

    fn is_there(
        &self,
        text: Option<&str>,
        is: fn(&Path) -> bool,
        what: &str,
    ) -> Result<(), String> {
        line(text)?;
        let path = self.path(text.unwrap_or_default());
        match is(&path) {
            true => Ok(()),
            false => Err(format!("there is no {what} {}", path.display())),
        }
    }
}

/// A text of one line.
fn line(text: Option<&str>) -> Result<(), String> {
    match text {
        None => Err("give a text".to_owned()),
        Some(text) if text.trim().is_empty() => Err("the text is empty".to_owned()),
        Some(text) if text.chars().any(char::is_control) => {
            Err("the text has several lines or control characters".to_owned())
        }
        Some(_) => Ok(()),
    }
}

/// A text that may have several lines.
fn script(text: Option<&str>) -> Result<(), String> {
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    match text {
        Some(text) if text.contains(odd) => Err("the text has control characters".to_owned()),
        Some(text) if !text.trim().is_empty() => Ok(()),
        _ => Err("give a text".to_owned()),
    }
}

fn list<'n>(node: &'n TomlNode, said: &str) -> Result<&'n [TomlNode], String> {
    match &node.value {
        TomlValue::List(items) if items.is_empty() => Err("the list is empty".to_owned()),
        TomlValue::List(items) => Ok(items),
        _ => Err(said.to_owned()),
    }
}

fn unique(items: &[TomlNode]) -> Result<(), String> {
    let values: Vec<String> = items.iter().filter_map(TomlNode::scalar).collect();
    let mut places = values.iter().enumerate();
    match places.find(|(n, value)| values[..*n].contains(value)) {
        Some((_, value)) => Err(format!("{value} is there twice")),
        None => Ok(()),
    }
}

fn word(text: Option<&str>, words: &[&str]) -> Result<(), String> {
    match text {
        Some(text) if words.contains(&text) => Ok(()),
        Some(text) => {
            let near = meant(text, words.iter().copied());
            Err(format!("'{text}' is not one of {}{near}", words.join(", ")))
        }
        None => Err(format!("give one of {}", words.join(", "))),
    }
}

/// The name of a way to purge.
pub(super) fn method(text: Option<&str>) -> Result<(), String> {
    line(text)?;
    text.unwrap_or_default().parse::<PurgeMethods>().map(drop)
}

fn flag(node: &TomlNode) -> Option<bool> {
    match &node.value {
        TomlValue::Flag(flag) => Some(*flag),
        // As TomlNode::scalar has it.
        TomlValue::Text(text) if node.is_filled => match text.as_str() {
            "1" => Some(true),
            "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn number(node: &TomlNode) -> Option<f64> {
    let number = match &node.value {
        TomlValue::Whole(number) => *number as f64,
        TomlValue::Number(number) => *number,
        TomlValue::Text(text) if node.is_filled => text.parse().ok()?,
        _ => return None,
    };
    Some(number).filter(|number| number.is_finite() && *number >= 0.0)
}

fn count(node: &TomlNode) -> Option<u64> {
    match &node.value {
        TomlValue::Whole(number) => u64::try_from(*number).ok(),
        TomlValue::Text(text) if node.is_filled => text.parse().ok(),
        _ => None,
    }
}

fn whole(node: &TomlNode, least: u64, most: u64) -> Result<(), String> {
    match count(node) {
        Some(number) if (least..=most).contains(&number) => Ok(()),
        _ => Err(format!("give a whole number from {least} to {most}")),
    }
}

fn size(node: &TomlNode) -> Option<u64> {
    match &node.value {
        TomlValue::Text(text) => parse_size(text),
        _ => count(node).filter(|&bytes| bytes > 0),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "give a time, as in \"10s\", \"5m\" or \"8h\"".to_owned();
    // Without its unit a time is a guess.
    if !text.ends_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(wrong());
    }
    let time_us = time_us(text, BareTimeUnit::Seconds).map_err(|_| wrong())?;
    let time = u64::try_from(time_us).map(Duration::from_micros);
    time.ok()
        .filter(|time| *time >= Duration::from_millis(1))
        .ok_or_else(|| "the shortest time is 1ms".to_owned())
}

/// The values of a table that has been checked: what is wrong is as if it were absent.
#[derive(Clone, Copy)]
pub(super) struct StudyFields<'n>(pub(super) &'n TomlNode);

impl<'n> StudyFields<'n> {
    pub(super) fn text(self, name: &str) -> Option<&'n str> {
        self.0.get(name)?.text()
    }

    pub(super) fn owned(self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    pub(super) fn is_on(self, name: &str) -> bool {
        self.0.get(name).and_then(flag).unwrap_or(false)
    }

    pub(super) fn whole(self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(count)
    }

    /// Of a key whose numbers fit.
    pub(super) fn whole32(self, name: &str) -> Option<u32> {
        self.whole(name)
            .and_then(|number| u32::try_from(number).ok())
    }

    pub(super) fn number(self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(number)
    }

    pub(super) fn time(self, name: &str) -> Option<Duration> {
        time(self.text(name)?).ok()
    }

    pub(super) fn size(self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(size)
    }

    /// The items of a list, and a single text as one.
    pub(super) fn texts(self, name: &str) -> Vec<String> {
        let items = self.0.get(name).map_or(&[][..], TomlNode::items);
        items
            .iter()
            .filter_map(|item| Some(item.text()?.to_owned()))
            .collect()
    }

    pub(super) fn wholes(self, name: &str) -> Vec<u32> {
        let items = self.0.get(name).map_or(&[][..], TomlNode::items);
        let numbers = items.iter().filter_map(count);
        numbers
            .filter_map(|number| u32::try_from(number).ok())
            .collect()
    }
}
