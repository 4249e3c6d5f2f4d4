//! Conditions on figures: `mix.read.iops >= 100k`.

use std::fmt;
use std::ops::Range;

use fathom_campaign::error::meant;
use fathom_model::{Direction, units};
use serde::{Deserialize, Serialize};

/// A condition on a figure of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    /// As it is written, with its step in front.
    pub written: String,
    /// The step whose figure it is about, or `STEP/PART` where a step has parts.
    pub step: String,
    /// The job, where the step has several; `None`: all of them.
    pub job: Option<String>,
    /// The direction.
    pub direction: Direction,
    /// The figure.
    pub figure: AssertedFigure,
    /// How it is compared.
    pub comparison: Comparator,
    /// With what, in the figure's unit.
    pub limit: f64,
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// A figure of one direction of a job.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssertedFigure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bw,
    /// Number of I/Os.
    N,
    /// Bytes moved.
    Bytes,
    /// A latency, in ns.
    Latency(LatencyPart, LatencyValue),
}

/// Which part of an I/O's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyPart {
    /// Submission.
    Slat,
    /// From submission to completion.
    Clat,
    /// All of it.
    Lat,
    /// Behind the intended start, under a rate.
    Lag,
}

/// Which value of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyValue {
    /// The smallest.
    Min,
    /// The mean.
    Mean,
    /// The largest.
    Max,
    /// This percentile.
    Percentile(f64),
}

/// How a figure is compared with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparator {
    /// Less.
    #[serde(rename = "<")]
    Less,
    /// At most.
    #[serde(rename = "<=")]
    AtMost,
    /// More.
    #[serde(rename = ">")]
    More,
    /// At least.
    #[serde(rename = ">=")]
    AtLeast,
    /// Exactly: counts only.
    #[serde(rename = "==")]
    Equal,
}

impl Comparator {
    /// Whether it holds between these.
    pub fn holds(self, figure: f64, limit: f64) -> bool {
        match self {
            Self::Less => figure < limit,
            Self::AtMost => figure <= limit,
            Self::More => figure > limit,
            Self::AtLeast => figure >= limit,
            Self::Equal => figure == limit,
        }
    }
}

impl AssertedFigure {
    /// The unit of its values, as documents name it.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::Bw => "bytes_per_second",
            Self::N => "ios",
            Self::Bytes => "bytes",
            Self::Latency(..) => "ns",
        }
    }

    /// A value of it for people; unlike `other`, if it is.
    pub fn show(self, value: f64, other: f64) -> String {
        let short = |value: f64| match self {
            Self::Iops | Self::N => units::count(value),
            Self::Bw => units::bytes_per_second(value),
            Self::Bytes => units::bytes(value),
            Self::Latency(..) => units::latency(value),
        };
        let shown = short(value);
        if value == other || shown != short(other) {
            return shown;
        }
        // Rounded it would look like its limit.
        let unit = match self {
            Self::Iops | Self::N => "",
            Self::Bw => " B/s",
            Self::Bytes => " B",
            Self::Latency(..) => " ns",
        };
        format!("{value}{unit}")
    }

    fn is_count(self) -> bool {
        matches!(self, Self::N | Self::Bytes)
    }
}

/// An assertion whose name has not been looked up.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ParsedAssertion {
    /// What stands before the direction, and where.
    pub(super) name: Option<PlacedName>,
    /// The direction, and where it stands.
    pub(super) direction: (Direction, usize),
    pub(super) figure: AssertedFigure,
    pub(super) comparison: Comparator,
    pub(super) limit: f64,
}

/// A name, and at which byte it stands.
type PlacedName = (String, usize);

/// What is wrong, and at which byte.
type Wrong = (usize, String);

fn direction(word: &str) -> Option<Direction> {
    Direction::ALL.into_iter().find(|dir| dir.name() == word)
}

/// Reads an assertion; within a step the name may be left out.
pub(super) fn parse(text: &str, in_step: bool) -> Result<ParsedAssertion, Wrong> {
    let (comparison, place) = comparator(text)?;
    let left = &text[..place.start];
    let (name, rest) = named(left, in_step)?;
    let (word, behind) = part(left, rest.clone());
    let direction_at = word.start;
    let direction = direction(&left[word.clone()]).ok_or_else(|| {
        let near = meant(&left[word.clone()], Direction::ALL.map(Direction::name));
        let said = "a direction is missing: write NAME.DIRECTION.FIGURE, as in mix.read.iops";
        match left[word.clone()].is_empty() {
            true => (word.start, said.to_owned()),
            false => {
                let word = &left[word.clone()];
                let said =
                    format!("'{word}' is not a direction: read, write, trim, sync or mixed{near}");
                (direction_at, said)
            }
        }
    })?;
    let figure = figure(left, behind.clone())?;
    if direction == Direction::Sync && !matches!(figure, AssertedFigure::Latency(..)) {
        let said = "of syncs only latencies are known";
        return Err((behind.start, said.to_owned()));
    }
    if comparison == Comparator::Equal && !figure.is_count() {
        let said = "a measured value is never exactly a number: use <= or >=";
        return Err((place.start, said.to_owned()));
    }
    let limit = limit(figure, &text[place.end..]).map_err(|said| {
        let blanks = text[place.end..].len() - text[place.end..].trim_start().len();
        (place.end + blanks, said)
    })?;
    Ok(ParsedAssertion {
        name,
        direction: (direction, direction_at),
        figure,
        comparison,
        limit,
    })
}

/// The comparison, and where it stands; not within a quoted name.
fn comparator(text: &str) -> Result<(Comparator, Range<usize>), Wrong> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '<' | '>' | '=' | '!') => {
                let rest = &text[at..];
                let len = rest.find(|c| !matches!(c, '<' | '>' | '=' | '!'));
                let word = &rest[..len.unwrap_or(rest.len())];
                let comparison = match word {
                    "<" => Comparator::Less,
                    "<=" => Comparator::AtMost,
                    ">" => Comparator::More,
                    ">=" => Comparator::AtLeast,
                    "==" => Comparator::Equal,
                    _ => {
                        let near = match word {
                            "=" => "; did you mean ==?",
                            "=<" => "; did you mean <=?",
                            "=>" => "; did you mean >=?",
                            _ => "",
                        };
                        let said =
                            format!("'{word}' is not a comparison: <, <=, >, >= or =={near}");
                        return Err((at, said));
                    }
                };
                return Ok((comparison, at..at + word.len()));
            }
            _ => {}
        }
    }
    let said = match quote {
        Some(_) => "a quote is not closed",
        None => "a comparison is missing, as in mix.read.iops >= 100k",
    };
    Err((0, said.to_owned()))
}

/// The name, where there is one, and what stands behind it.
fn named(left: &str, in_step: bool) -> Result<(Option<PlacedName>, Range<usize>), Wrong> {
    let begin = left.len() - left.trim_start().len();
    let end = left.trim_end().len().max(begin);
    if let Some(quote @ ('"' | '\'')) = left[begin..].chars().next() {
        let open = begin + 1;
        // The search for the comparison has found its end.
        let close = left[open..].find(quote).map_or(end, |len| open + len);
        let name = left[open..close].to_owned();
        let behind = (close + 1).min(end);
        if !left[behind..end].starts_with('.') {
            return Err((behind, "behind a quoted name a . is missing".to_owned()));
        }
        return Ok((Some((name, open)), behind + 1..end));
    }
    let (word, rest) = part(left, begin..end);
    let (next, _) = part(left, rest.clone());
    let is_left_out = direction(&left[word.clone()]).is_some() && direction(&left[next]).is_none();
    if in_step && is_left_out {
        return Ok((None, begin..end));
    }
    if left[word.clone()].is_empty() {
        return Err((
            begin,
            "a name is missing: write NAME.DIRECTION.FIGURE".to_owned(),
        ));
    }
    Ok((Some((left[word.clone()].to_owned(), word.start)), rest))
}

/// What stands up to the next dot, and what behind it.
fn part(text: &str, range: Range<usize>) -> (Range<usize>, Range<usize>) {
    let (start, end) = (range.start, range.end.max(range.start));
    match text[start..end].find('.') {
        Some(len) => (start..start + len, start + len + 1..end),
        None => (start..end, end..end),
    }
}

const FIGURES: [&str; 12] = [
    "iops", "bw", "n", "bytes", "min", "mean", "max", "p50", "p90", "p99", "p99.9", "p99.99",
];

fn figure(left: &str, place: Range<usize>) -> Result<AssertedFigure, Wrong> {
    let word = left[place.clone()].trim();
    let (latency, value) = match word.split_once('.') {
        Some(("slat", value)) => (Some(LatencyPart::Slat), value),
        Some(("clat", value)) => (Some(LatencyPart::Clat), value),
        Some(("lat", value)) => (Some(LatencyPart::Lat), value),
        Some(("lag", value)) => (Some(LatencyPart::Lag), value),
        _ => (None, word),
    };
    let found = match value {
        "iops" => Some(AssertedFigure::Iops),
        "bw" => Some(AssertedFigure::Bw),
        "n" => Some(AssertedFigure::N),
        "bytes" => Some(AssertedFigure::Bytes),
        _ => None,
    };
    if let (Some(figure), None) = (found, latency) {
        return Ok(figure);
    }
    let value = match value {
        "min" => Some(LatencyValue::Min),
        "mean" => Some(LatencyValue::Mean),
        "max" => Some(LatencyValue::Max),
        _ => percentile(value).map(LatencyValue::Percentile),
    };
    let latency = latency.unwrap_or(LatencyPart::Clat);
    value.map(|value| AssertedFigure::Latency(latency, value)).ok_or_else(|| {
        if word.is_empty() {
            return (place.start, "a figure is missing, as in mix.read.iops".to_owned());
        }
        let near = meant(word, FIGURES);
        let said = format!(
            "'{word}' is not a figure: iops, bw, n, bytes, min, mean, max, or a percentile such as p99.9{near}"
        );
        (place.start, said)
    })
}

fn percentile(word: &str) -> Option<f64> {
    let digits = word.strip_prefix('p')?;
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let percent: f64 = digits.parse().ok().filter(|_| plain)?;
    (percent > 0.0 && percent < 100.0).then_some(percent)
}

/// The value on the right, in the figure's unit.
fn limit(figure: AssertedFigure, text: &str) -> Result<f64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let example = match figure {
        AssertedFigure::Iops | AssertedFigure::N => "100k",
        AssertedFigure::Bw => "500M or 500MiB/s",
        AssertedFigure::Bytes => "10G or 10GiB",
        AssertedFigure::Latency(..) => "2ms or 150us",
    };
    let number: f64 = digits
        .parse()
        .map_err(|_| format!("'{text}' is not a value: give a number, as in {example}"))?;
    let unit = unit.trim_start();
    let factor = match figure {
        AssertedFigure::Latency(..) if unit.is_empty() => {
            return Err(format!(
                "a time needs its unit: ns, us, ms or s, as in {example}"
            ));
        }
        AssertedFigure::Latency(..) => time_factor(unit),
        AssertedFigure::Iops | AssertedFigure::N => decimal_factor(unit),
        AssertedFigure::Bytes => byte_factor(unit),
        AssertedFigure::Bw => byte_factor(unit.strip_suffix("/s").unwrap_or(unit)),
    };
    let factor = factor.ok_or_else(|| {
        let near = match (unit, figure) {
            (_, AssertedFigure::Latency(..)) => meant(unit, ["ns", "us", "ms", "s"]),
            ("m", _) => "; did you mean M?".to_owned(),
            ("g", _) => "; did you mean G?".to_owned(),
            _ => String::new(),
        };
        format!("'{unit}' is not a unit here: write it as in {example}{near}")
    })?;
    let limit = number * factor;
    match limit.is_finite() && limit < 1e24 {
        true => Ok(limit),
        false => Err(format!("{text} is too large a value")),
    }
}

fn time_factor(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    })
}

/// k, M, G and T are powers of 1000.
fn decimal_factor(unit: &str) -> Option<f64> {
    Some(match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return None,
    })
}

/// `kB` is `k`; `KiB` and the like are powers of 1024.
fn byte_factor(unit: &str) -> Option<f64> {
    const KIB: f64 = 1024.0;
    let power = ["KiB", "MiB", "GiB", "TiB"].into_iter().zip(1..);
    if let Some((_, power)) = power.into_iter().find(|(name, _)| *name == unit) {
        return Some(KIB.powi(power));
    }
    decimal_factor(unit.strip_suffix('B').unwrap_or(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_units_of_their_figures() {
        for (text, limit) in [
            ("a.read.iops >= 100k", 100e3),
            ("a.read.iops >= 1.5M", 1.5e6),
            ("a.read.n == 2", 2.0),
            ("a.read.bw > 500M", 500e6),
            ("a.read.bw > 500 MB/s", 500e6),
            ("a.read.bw > 2GiB/s", 2_147_483_648.0),
            ("a.read.bytes >= 1KiB", 1024.0),
            ("a.read.p99 < 2ms", 2e6),
            ("a.read.max < 150 us", 150e3),
            ("a.read.slat.mean < 1.5s", 1.5e9),
        ] {
            assert_eq!(parse(text, false).unwrap().limit, limit, "{text}");
        }
        for text in ["1mss", "ms", "-1ms", "1e3ms", "1 m", "1.2.3ms", ""] {
            assert!(
                parse(&format!("a.read.p99 < {text}"), false).is_err(),
                "{text}"
            );
        }
        for text in ["1KiB", "1m", "1k/s", "1ms"] {
            assert!(
                parse(&format!("a.read.iops > {text}"), false).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_figure_says_which_latency_it_is() {
        let figure = |text: &str| parse(text, false).map(|parsed| parsed.figure);
        for (text, part, value) in [
            ("p99.9", LatencyPart::Clat, LatencyValue::Percentile(99.9)),
            ("lat.p50", LatencyPart::Lat, LatencyValue::Percentile(50.0)),
            ("slat.max", LatencyPart::Slat, LatencyValue::Max),
            ("lag.mean", LatencyPart::Lag, LatencyValue::Mean),
        ] {
            let expected = AssertedFigure::Latency(part, value);
            assert_eq!(figure(&format!("a.read.{text} < 1s")), Ok(expected));
        }
        for text in ["p100", "p0", "p", "pinf", "lat.iops", "iops.x", "clat", ""] {
            assert!(figure(&format!("a.read.{text} < 1s")).is_err(), "{text}");
        }
        assert!(figure("a.sync.iops > 1").is_err());
    }

    #[test]
    fn within_a_step_the_name_may_be_left_out() {
        let name = |text: &str| parse(text, true).unwrap().name.map(|(name, _)| name);
        assert_eq!(name("read.iops > 1"), None);
        assert_eq!(name("w.read.iops > 1").as_deref(), Some("w"));
        assert_eq!(name("read.read.iops > 1").as_deref(), Some("read"));
        assert_eq!(
            name("'a >= b.c'.read.iops > 1").as_deref(),
            Some("a >= b.c")
        );
        assert!(parse("read.iops > 1", false).is_err());
    }

    #[test]
    fn a_figure_that_is_not_its_limit_is_not_shown_as_if_it_were() {
        let figure = AssertedFigure::Iops;
        assert_eq!(figure.show(123_456.0, 100e3), "123k");
        assert_eq!(figure.show(99_999.5, 100e3), "99999.5");
        assert_eq!(figure.show(100e3, 100e3), "100k");
    }
}
