//! What is known of fio's options and engines: `options.txt`, read once.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What kind of value an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Any text.
    Text,
    /// None, or 0 or 1.
    Flag,
    /// 0 or 1.
    Bool,
    /// A whole number, with a size unit if wanted.
    Int,
    /// A time.
    Time,
    /// Decimal numbers, joined by `:`.
    Floats,
    /// A range of sizes.
    Range,
    /// One of several words.
    Choice,
    /// Block sizes with shares.
    BsSplit,
    /// CPU numbers and ranges.
    Cpus,
    /// An I/O engine.
    Engine,
    /// Taken and ignored, or refused, by fio.
    Deprecated,
}

/// Facts of one option.
#[derive(Debug)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: ValueKind,
    /// Smallest number.
    pub min: Option<f64>,
    /// Largest number.
    pub max: Option<f64>,
    /// Words, each with the fio version that brought it, if later than 3.33.
    pub choices: Vec<(&'static str, Option<&'static str>)>,
    /// Engines it belongs to (`profile:P` for profiles); empty is all.
    pub engines: Vec<&'static str>,
    /// The fio version that brought it, if later than 3.33; `?` when unknown.
    pub since: Option<&'static str>,
    flags: Vec<&'static str>,
}

impl Spec {
    /// Whether the table gives it this flag.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether it applies to every engine.
    pub fn is_general(&self) -> bool {
        self.engines.is_empty()
    }
}

/// All that `options.txt` says.
pub struct Table {
    options: Vec<Spec>,
    by_name: HashMap<&'static str, Vec<usize>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("options.txt")));

/// The table.
pub fn table() -> &'static Table {
    &TABLE
}

impl Table {
    fn read(text: &'static str) -> Self {
        let mut table = Self {
            options: Vec::new(),
            by_name: HashMap::new(),
        };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            if let (Some(name), Some(kind)) = (words.next(), words.next())
                && !name.starts_with('#')
            {
                table.add(name, kind, words);
            }
        }
        table
    }

    fn add(&mut self, name: &'static str, kind: &str, words: impl Iterator<Item = &'static str>) {
        let place = self.options.len();
        let mut spec = Spec {
            name,
            kind: parse_kind(kind),
            min: None,
            max: None,
            choices: Vec::new(),
            engines: Vec::new(),
            since: None,
            flags: Vec::new(),
        };
        self.by_name.entry(name).or_default().push(place);
        for word in words {
            match word.split_once('=') {
                Some(("alias", aliases)) => {
                    for alias in aliases.split(',') {
                        self.by_name.entry(alias).or_default().push(place);
                    }
                }
                Some(("min", n)) => spec.min = n.parse().ok(),
                Some(("max", n)) => spec.max = n.parse().ok(),
                Some(("choices", list)) => spec.choices = list.split(',').map(choice).collect(),
                Some(("engine", list)) => spec.engines = list.split(',').collect(),
                Some(("since", version)) => spec.since = Some(version),
                _ => spec.flags.push(word),
            }
        }
        self.options.push(spec);
    }

    /// The options of this name or alias; several when engines share a name.
    pub fn find(&self, name: &str) -> impl Iterator<Item = &Spec> {
        self.by_name
            .get(name)
            .into_iter()
            .flatten()
            .map(|&place| &self.options[place])
    }

    /// The name an option is known by, aliases resolved; itself when unknown.
    pub fn canonical<'n>(&'n self, name: &'n str) -> &'n str {
        self.find(name).next().map_or(name, |spec| spec.name)
    }

    /// Every name and alias.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.by_name.keys().copied()
    }

    /// All options.
    pub fn options(&self) -> &[Spec] {
        &self.options
    }
}

fn choice(word: &'static str) -> (&'static str, Option<&'static str>) {
    match word.split_once(">=") {
        Some((word, version)) => (word, Some(version)),
        None => (word, None),
    }
}

fn parse_kind(word: &str) -> ValueKind {
    match word {
        "flag" => ValueKind::Flag,
        "bool" => ValueKind::Bool,
        "int" => ValueKind::Int,
        "time" => ValueKind::Time,
        "floats" => ValueKind::Floats,
        "range" => ValueKind::Range,
        "choice" => ValueKind::Choice,
        "bssplit" => ValueKind::BsSplit,
        "cpus" => ValueKind::Cpus,
        "engine" => ValueKind::Engine,
        "deprecated" => ValueKind::Deprecated,
        // The test of the table allows no other word than `text` here.
        _ => ValueKind::Text,
    }
}

/// The nearest of `names`, if it is near enough to be meant.
pub fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    /// Longer words are no option, and the distance takes quadratic time.
    const LONGEST: usize = 40;
    let word: String = word.to_lowercase().chars().take(LONGEST + 1).collect();
    let length = word.chars().count();
    if length == 0 || length > LONGEST {
        return None;
    }
    let limit = (length / 3).clamp(1, 3);
    names
        .map(|name| (strsim::osa_distance(&word, name), name))
        .filter(|(distance, _)| *distance <= limit)
        // The same distance: the name that begins alike, then the alphabet.
        .min_by_key(|&(distance, name)| {
            (
                distance,
                name.chars().next() != word.chars().next(),
                name.len().abs_diff(length),
                name,
            )
        })
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use fathom_model::io_engine::io_engine;

    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let kinds = [
            "text",
            "flag",
            "bool",
            "int",
            "time",
            "floats",
            "range",
            "choice",
            "bssplit",
            "cpus",
            "engine",
            "deprecated",
        ];
        let flags = [
            "triple", "pair", "percent", "zones", "suffix", "many", "optional", "adds", "file",
            "unit=us", "one", "wide",
        ];
        for line in include_str!("options.txt").lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            match words[..] {
                [] | ["#", ..] => {}
                [_, kind, ref rest @ ..] => {
                    assert!(kinds.contains(&kind), "{line}");
                    for word in rest {
                        let key = word.split_once('=').map(|(key, _)| key);
                        let known = matches!(
                            key,
                            Some("alias" | "min" | "max" | "choices" | "engine" | "since")
                        );
                        assert!(known || flags.contains(word), "{line}: {word}");
                    }
                }
                _ => panic!("{line}"),
            }
        }
        for spec in table().options() {
            for engine in &spec.engines {
                assert!(
                    engine.starts_with("profile:") || io_engine(engine).is_some(),
                    "{}: {engine}",
                    spec.name
                );
            }
        }
    }

    #[test]
    fn near_misses_are_found() {
        let near = |word| nearest(word, table().names());
        assert_eq!(near("iodepht"), Some("iodepth"));
        assert_eq!(near("io_depth"), Some("iodepth"));
        assert_eq!(near("blocksze"), Some("blocksize"));
        assert_eq!(near("numjob"), Some("numjobs"));
        assert_eq!(near("RW"), Some("rw"));
        assert_eq!(near("completely_else"), None);
        assert_eq!(near(&"x".repeat(100_000)), None);
    }
}
