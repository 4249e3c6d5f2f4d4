//! The two text formats in which metrics are told.

use std::fmt::{Display, Write as _};

use fathom_model::text;

/// Characters of a label's value: names of jobs and paths are shorter, and what is longer
/// was not meant to be read.
const VALUE_CHARS: usize = 200;

/// How metrics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4, which node_exporter reads from files.
    Prometheus,
}

impl MetricsFormat {
    /// What a header `Accept` asks for: OpenMetrics where it is named and not liked less
    /// than plain text.
    pub fn accepted(accept: &str) -> Self {
        let liking = |name: &str| {
            let ranges = accept.split(',').map(|range| range.split(';'));
            let quality = |mut parts: std::str::Split<'_, char>| {
                let kind = parts.next()?.trim();
                let told = parts.find_map(|part| part.trim().strip_prefix("q="));
                let told = told.map_or(Some(1.0), |q| q.parse::<f64>().ok());
                told.filter(|_| kind.eq_ignore_ascii_case(name))
            };
            ranges
                .filter_map(quality)
                .fold(None, |most: Option<f64>, q| {
                    Some(most.map_or(q, |most| most.max(q)))
                })
        };
        let plain = liking("text/plain").unwrap_or(0.0);
        match liking("application/openmetrics-text") {
            Some(open) if open > 0.0 && open >= plain => Self::OpenMetrics,
            _ => Self::Prometheus,
        }
    }

    /// The type of the content, as HTTP names it.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What kind of values a family has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

impl FamilyKind {
    /// What is put behind the family's name, and the type, in this format.
    fn words(self, format: MetricsFormat) -> (&'static str, &'static str) {
        let is_open = format == MetricsFormat::OpenMetrics;
        match self {
            Self::Counter if is_open => ("", "counter"),
            Self::Counter => ("_total", "counter"),
            Self::Gauge => ("", "gauge"),
            Self::Histogram => ("", "histogram"),
            Self::Info if is_open => ("", "info"),
            Self::Info => ("_info", "gauge"),
        }
    }
}

/// Series of one name.
#[derive(Debug)]
pub(super) struct Family {
    /// Without `_total` and `_info`.
    pub(super) name: &'static str,
    pub(super) kind: FamilyKind,
    /// The name ends with it; empty: it has none.
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
}

/// Names and values of labels.
pub(super) type Labels<'l> = Vec<(&'static str, &'l str)>;

/// The text as far as it is written.
#[derive(Debug)]
pub(super) struct Exposition {
    format: MetricsFormat,
    text: String,
}

impl Exposition {
    pub(super) fn new(format: MetricsFormat) -> Self {
        Self {
            format,
            text: String::new(),
        }
    }

    /// Writes a family with its series; nothing where it has none.
    pub(super) fn family(&mut self, family: &Family, series: impl FnOnce(&mut SeriesWriter<'_>)) {
        let mut lines = String::new();
        let mut writer = SeriesWriter {
            family,
            lines: &mut lines,
        };
        series(&mut writer);
        if lines.is_empty() {
            return;
        }
        let (ending, kind) = family.kind.words(self.format);
        let name = format!("{}{ending}", family.name);
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {}", family.help);
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if self.format == MetricsFormat::OpenMetrics && !family.unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {}", family.unit);
        }
        self.text += &lines;
    }

    pub(super) fn end(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.text += "# EOF\n";
        }
        self.text
    }
}

/// Writes the series of a family.
pub(super) struct SeriesWriter<'w> {
    family: &'w Family,
    lines: &'w mut String,
}

impl SeriesWriter<'_> {
    /// A value of a series.
    pub(super) fn value(&mut self, labels: &Labels<'_>, value: impl Display) {
        let ending = match self.family.kind {
            FamilyKind::Counter => "_total",
            FamilyKind::Info => "_info",
            FamilyKind::Gauge | FamilyKind::Histogram => "",
        };
        self.line(ending, labels, value);
    }

    /// A line of a series, with what its name ends with.
    pub(super) fn line(&mut self, ending: &str, labels: &Labels<'_>, value: impl Display) {
        *self.lines += self.family.name;
        *self.lines += ending;
        // An empty value means the same as no label.
        let told = labels.iter().filter(|(_, value)| !value.is_empty());
        for (place, (name, value)) in told.clone().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(self.lines, "{before}{name}=\"{}\"", escaped(value));
        }
        if told.count() > 0 {
            self.lines.push('}');
        }
        let _ = writeln!(self.lines, " {value}");
    }
}

/// A value between quotes: foreign text, which is shown and never obeyed.
fn escaped(value: &str) -> String {
    let mut shown = String::with_capacity(value.len());
    for c in text::line(value).chars().take(VALUE_CHARS) {
        match c {
            '\\' | '"' => shown.extend(['\\', c]),
            c => shown.push(c),
        }
    }
    shown
}

/// A bound of a histogram, the same in both formats: a whole number keeps its point.
pub(super) fn bound(seconds: f64) -> String {
    format!("{seconds:?}")
}
