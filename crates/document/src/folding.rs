//! Sentences that say the same of many points, told once.
//!
//! Two sentences are the same where they differ in numbers alone. What differs by
//! chance (a process's number) is left out of the common sentence, a measured value
//! becomes the range of all.

use std::collections::HashMap;

/// Units that stand apart from their number.
const UNITS: [&str; 21] = [
    "ns", "µs", "us", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "TiB", "B/s", "KiB/s",
    "MiB/s", "GiB/s", "TiB/s", "IOPS", "k", "M", "%",
];
/// Numbers behind these say nothing about what was measured.
const BY_CHANCE: [&str; 5] = ["pid", "pid=", "process", "thread", "tid"];

/// What a sentence says without its numbers: equal for sentences that are told as one.
pub fn cause(sentence: &str) -> String {
    let mut shape = String::with_capacity(sentence.len());
    for word in words(sentence) {
        if !shape.is_empty() {
            shape.push(' ');
        }
        match word {
            FoldWord::Plain(word) => shape += word,
            FoldWord::Number { before, .. } => {
                shape += before;
                shape.push('#');
            }
        }
    }
    shape
}

/// Sentences by their causes, in the order in which they came.
#[derive(Debug, Default)]
pub struct Folded {
    causes: Vec<FoldedCause>,
    places: HashMap<String, usize>,
}

/// Sentences of one cause.
#[derive(Debug)]
pub struct FoldedCause {
    /// How many there were.
    pub count: usize,
    first: String,
    /// One for each number of the first sentence.
    slots: Vec<FoldSlot>,
}

/// What stands in one place of all sentences.
#[derive(Debug)]
struct FoldSlot {
    first: String,
    differs: bool,
    /// Lowest and highest as written, while all have the same unit.
    range: Option<[(f64, String); 2]>,
    unit: String,
}

impl Folded {
    /// Those of all sentences.
    pub fn of<'s>(sentences: impl IntoIterator<Item = &'s str>) -> Self {
        let mut folded = Self::default();
        for sentence in sentences {
            folded.add(sentence);
        }
        folded
    }

    /// Adds a sentence; gives the place of its cause.
    pub fn add(&mut self, sentence: &str) -> usize {
        let next = self.causes.len();
        let place = *self.places.entry(cause(sentence)).or_insert(next);
        if place == next {
            self.causes.push(FoldedCause::new(sentence));
        } else {
            self.causes[place].add(sentence);
        }
        place
    }

    /// The causes.
    pub fn causes(&self) -> &[FoldedCause] {
        &self.causes
    }
}

/// Sentences by their causes: what they have in common, and their places.
pub fn by_cause<'s>(sentences: impl Iterator<Item = &'s str>) -> Vec<(String, Vec<usize>)> {
    let mut folded = Folded::default();
    let mut places: Vec<Vec<usize>> = Vec::new();
    for (place, sentence) in sentences.enumerate() {
        let cause = folded.add(sentence);
        places.resize_with(folded.causes().len(), Vec::new);
        places[cause].push(place);
    }
    let told = folded.causes().iter().map(FoldedCause::sentence);
    told.zip(places).collect()
}

/// ` (7 times)`, of what happened more than once.
pub fn times(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        count => format!(" ({count} times)"),
    }
}

impl FoldedCause {
    fn new(sentence: &str) -> Self {
        let slots = numbers(sentence).map(|(by_chance, text)| {
            let parsed = parsed(text).filter(|_| !by_chance);
            FoldSlot {
                first: text.to_owned(),
                differs: false,
                unit: parsed.map_or_else(String::new, |(_, _, unit)| unit.to_owned()),
                range: parsed.map(|(value, digits, _)| {
                    [(value, digits.to_owned()), (value, digits.to_owned())]
                }),
            }
        });
        Self {
            count: 1,
            first: sentence.to_owned(),
            slots: slots.collect(),
        }
    }

    fn add(&mut self, sentence: &str) {
        self.count += 1;
        if sentence == self.first {
            return;
        }
        for (slot, (_, text)) in self.slots.iter_mut().zip(numbers(sentence)) {
            slot.add(text);
        }
    }

    /// The first of its sentences, as it came.
    pub fn first(&self) -> &str {
        &self.first
    }

    /// The sentence, with ranges where the numbers differ.
    pub fn sentence(&self) -> String {
        if self.slots.iter().all(|slot| !slot.differs) {
            return self.first.clone();
        }
        let mut slots = self.slots.iter();
        let told = words(&self.first).map(|word| match word {
            FoldWord::Plain(word) => word.to_owned(),
            FoldWord::Number { before, after, .. } => {
                let slot = slots.next().map_or_else(|| "…".to_owned(), FoldSlot::told);
                format!("{before}{slot}{after}")
            }
        });
        told.collect::<Vec<_>>().join(" ")
    }
}

impl FoldSlot {
    fn add(&mut self, text: &str) {
        if text == self.first {
            return;
        }
        self.differs = true;
        let same_unit = parsed(text).filter(|(_, _, unit)| *unit == self.unit);
        self.range = self
            .range
            .take()
            .zip(same_unit)
            .map(|([low, high], (value, digits, _))| {
                let own = || (value, digits.to_owned());
                [
                    if value < low.0 { own() } else { low },
                    if value > high.0 { own() } else { high },
                ]
            });
    }

    fn told(&self) -> String {
        match &self.range {
            _ if !self.differs => self.first.clone(),
            Some([low, high]) => format!("{}–{}{}", low.1, high.1, self.unit),
            None => "…".to_owned(),
        }
    }
}

/// A word of a sentence; a number with the unit behind it is one.
#[derive(Debug, Clone, Copy)]
enum FoldWord<'s> {
    Plain(&'s str),
    Number {
        /// A bracket, a sign, `pid=`.
        before: &'s str,
        text: &'s str,
        /// A bracket, a comma.
        after: &'s str,
        by_chance: bool,
    },
}

fn words(sentence: &str) -> impl Iterator<Item = FoldWord<'_>> {
    let mut rest = sentence;
    let mut last = "";
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(' ').unwrap_or(rest.len());
        let word = &rest[..end];
        let begin = word.find('=').map_or(0, |at| at + 1);
        let begin = begin
            + word[begin..]
                .find(|c: char| !"(['\"-+±".contains(c))
                .unwrap_or(word.len() - begin);
        if !word[begin..].starts_with(|c: char| c.is_ascii_digit()) {
            last = word;
            rest = rest.get(end + 1..).unwrap_or_default();
            return Some(FoldWord::Plain(word));
        }
        let before = &word[..begin];
        let by_chance = BY_CHANCE.contains(&last) || BY_CHANCE.contains(&before);
        // The unit is a part of the number.
        let unit = rest[end..].strip_prefix(' ').map_or("", |behind| {
            let unit = &behind[..behind.find(' ').unwrap_or(behind.len())];
            let bare = unit.trim_end_matches(CLOSING);
            if UNITS.contains(&bare) { unit } else { "" }
        });
        let end = if unit.is_empty() {
            end
        } else {
            end + 1 + unit.len()
        };
        let whole = &rest[begin..end];
        let text = whole.trim_end_matches(CLOSING);
        last = "";
        let number = FoldWord::Number {
            before,
            text,
            after: &whole[text.len()..],
            by_chance,
        };
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(number)
    })
}

/// What closes a part of a sentence.
const CLOSING: [char; 8] = [',', ';', ':', '.', ')', ']', '\'', '"'];

fn numbers(sentence: &str) -> impl Iterator<Item = (bool, &str)> {
    words(sentence).filter_map(|word| match word {
        FoldWord::Plain(_) => None,
        FoldWord::Number {
            text, by_chance, ..
        } => Some((by_chance, text)),
    })
}

/// The value of a number, as it is written, and what stands behind it; none of what is
/// no plain number, as a time of day or a path.
fn parsed(text: &str) -> Option<(f64, &str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let plain = unit.is_empty() || UNITS.contains(&unit.trim_start());
    Some((digits.parse().ok().filter(|_| plain)?, digits, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(sentences: &[&str]) -> Vec<(usize, String)> {
        let folded = Folded::of(sentences.iter().copied());
        let told = folded.causes().iter();
        told.map(|cause| (cause.count, cause.sentence())).collect()
    }

    #[test]
    fn what_differs_by_chance_is_no_other_cause() {
        let told = folded(&[
            "pid 4711: the job used up its CPU (97.5 %), for 12.1 s; use more jobs",
            "pid 12: the job used up its CPU (99 %), for 8 s; use more jobs",
            "another one at p99 of /dev/nvme0n1",
            "pid 13: the job used up its CPU (98 %), for 800 ms; use more jobs",
            "another one at p99.9 of /dev/nvme0n1",
            "fio: pid=88, got signal=9",
            "fio: pid=89, got signal=9",
        ]);
        let expected = [
            (
                3,
                "pid …: the job used up its CPU (97.5–99 %), for …; use more jobs",
            ),
            (1, "another one at p99 of /dev/nvme0n1"),
            (1, "another one at p99.9 of /dev/nvme0n1"),
            (2, "fio: pid=…, got signal=9"),
        ];
        assert_eq!(told, expected.map(|(n, text)| (n, text.to_owned())));
    }

    #[test]
    fn no_sentence_is_changed_that_stands_alone() {
        for text in [
            "",
            " ",
            "  two  spaces 1 ",
            "1 2 3",
            "= 5 %, (7)",
            "ä 5µs ± 3 ü",
            "0003-a/0001-b: x",
        ] {
            assert_eq!(folded(&[text, text]), [(2, text.to_owned())]);
            // Taken apart and put together it is the same, but for a space at its end.
            let again: Vec<String> = words(text)
                .map(|word| match word {
                    FoldWord::Plain(word) => word.to_owned(),
                    FoldWord::Number {
                        before,
                        text,
                        after,
                        ..
                    } => format!("{before}{text}{after}"),
                })
                .collect();
            assert_eq!(again.join(" ").trim_end(), text.trim_end());
        }
    }
}
