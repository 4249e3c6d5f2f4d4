//! Tests and profiles as their files have them: TOML, each value with its line.

use std::collections::BTreeMap;

use fathom_jobfile::table::table;
use fathom_kconfig::Position;
use fathom_model::DevicePhase;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use super::names::{is_symbol, is_word};
use super::template::OptionsOf;
use super::{Definitions, TEMPLATES, TextPattern};
use crate::error::{Fault, FilePosition, meant};

const TEST_FORMAT: &str = "fathom.test/1";
const PROFILE_FORMAT: &str = "fathom.profile/1";

/// Folders of a campaign that no test may be called after.
const TAKEN: [&str; 9] = [
    "kconfig",
    "tests",
    "profiles",
    "templates",
    "defconfigs",
    "logs",
    "graphs",
    "pre-conditioning",
    "fathom-runs",
];

/// A text with its line.
pub(crate) type Line = (String, FilePosition);

/// A test: which points are measured, and what their job files are made of.
#[derive(Debug)]
pub(crate) struct TestDefinition {
    /// The name of its file without the ending: the folder of its job files.
    pub(crate) name: String,
    pub(crate) about: String,
    /// When it is on.
    pub(crate) when: Option<Condition>,
    /// When its series are guarded.
    pub(crate) guard: Option<Condition>,
    /// The phase of its points, if not that of the profile.
    pub(crate) phase: Option<DevicePhase>,
    template: Line,
    /// The profiles it runs with; `None`: all.
    profiles: Option<Vec<Line>>,
    /// The path of a job file below the test's folder, one level each.
    pub(crate) path: Vec<TextPattern>,
    /// The option on the x axis.
    pub(crate) x: Line,
    /// The first one varies slowest.
    pub(crate) axes: Vec<Axis>,
    pub(crate) options: Vec<JobSetting>,
    /// Options that differ for a profile, by its name.
    pub(crate) overrides: Vec<(Line, Vec<JobSetting>)>,
}

/// A profile: what a job does to the device.
#[derive(Debug)]
pub(crate) struct Profile {
    /// The name of its file without the ending: `0005-randwrite-70-30`.
    pub(crate) file: String,
    /// What stands before the first `-` of it: `0005`.
    pub(crate) number: String,
    /// What stands behind: `randwrite-70-30`.
    pub(crate) name: String,
    pub(crate) short: String,
    pub(crate) about: String,
    pub(crate) when: Option<Condition>,
    pub(crate) phase: DevicePhase,
    pub(crate) options: Vec<JobSetting>,
}

/// An expression over the symbols of the campaign's Kconfig.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) text: String,
    pub(crate) at: Position,
}

impl Condition {
    /// What Kconfig says against it.
    pub(crate) fn fault(&self, error: &fathom_kconfig::Error) -> Fault {
        let line = error.position.as_ref().map_or(self.at.line, |at| at.line);
        let place = FilePosition {
            file: self.at.file.clone(),
            line,
            column: 0,
        };
        let near = error.suggestion.as_ref();
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        Fault::new(&place, format!("{}: {}{near}", self.text, error.message))
    }
}

/// An option that takes several values.
#[derive(Debug)]
pub(crate) struct Axis {
    pub(crate) option: String,
    pub(crate) place: FilePosition,
    pub(crate) values: AxisValues,
}

#[derive(Debug)]
pub(crate) enum AxisValues {
    /// From the first, doubling, up to the last.
    Range(Value, Value),
    /// These.
    List(Vec<Value>),
    /// Those that a text names, separated by commas.
    Text(Value),
}

/// A value: a text with placeholders.
pub(crate) type Value = TextPattern;

/// An option of a job file.
#[derive(Debug)]
pub(crate) struct JobSetting {
    pub(crate) option: String,
    pub(crate) place: FilePosition,
    /// `None`: the option stands without a value.
    pub(crate) value: Option<Value>,
}

type Raw<T> = Spanned<T>;
type RawOptions = BTreeMap<String, Raw<Scalar>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestFile {
    format: Raw<String>,
    #[serde(default)]
    about: String,
    when: Option<Raw<String>>,
    guard: Option<Raw<String>>,
    phase: Option<DevicePhase>,
    template: Raw<String>,
    profiles: Option<Vec<Raw<String>>>,
    path: Raw<String>,
    x: Option<Raw<String>>,
    #[serde(default)]
    axes: Vec<Raw<AxisFile>>,
    #[serde(default)]
    options: RawOptions,
    #[serde(default, rename = "for")]
    overrides: BTreeMap<String, Raw<RawOptions>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AxisFile {
    option: Raw<String>,
    from: Option<Raw<Scalar>>,
    to: Option<Raw<Scalar>>,
    values: Option<Raw<ListFile>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ListFile {
    List(Vec<Scalar>),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    format: Raw<String>,
    #[serde(default)]
    about: String,
    short: Option<String>,
    when: Option<Raw<String>>,
    phase: DevicePhase,
    #[serde(default)]
    options: RawOptions,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a number, a text, or true for an option without a value"
)]
enum Scalar {
    Flag(bool),
    Number(i64),
    Text(String),
}

/// A file that is being read: gives places, collects faults.
struct DefinitionReader<'a> {
    file: &'a str,
    text: &'a str,
    faults: &'a mut Vec<Fault>,
}

impl DefinitionReader<'_> {
    fn place(&self, span: std::ops::Range<usize>) -> FilePosition {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        FilePosition {
            file: self.file.into(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: 0,
        }
    }

    fn fault(&mut self, place: &FilePosition, message: impl Into<String>) {
        self.faults.push(Fault::new(place, message));
    }

    fn parse<T: DeserializeOwned>(&mut self) -> Option<T> {
        match toml::from_str(self.text) {
            Ok(file) => Some(file),
            Err(error) => {
                let place = self.place(error.span().unwrap_or_default());
                self.fault(&place, error.message().replace('\n', ", "));
                None
            }
        }
    }

    fn format(&mut self, written: &Raw<String>, known: &str) {
        if written.get_ref() != known {
            let place = self.place(written.span());
            let message = format!(
                "the format is {:?}; this Fathom reads {known:?}",
                written.get_ref()
            );
            self.fault(&place, message);
        }
    }

    fn condition(&self, written: Option<Raw<String>>) -> Option<Condition> {
        let written = written?;
        let place = self.place(written.span());
        let start = written.span().start;
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let column = self.text[line_start..start].chars().count() + 2;
        Some(Condition {
            text: written.into_inner(),
            at: Position {
                file: place.file,
                line: place.line,
                column: u32::try_from(column).unwrap_or(u32::MAX),
            },
        })
    }

    fn pattern(&mut self, text: &str, place: &FilePosition) -> Option<TextPattern> {
        let read = if text.contains(['\n', '\r']) {
            Err(Fault::new(place, "a value cannot have more than one line"))
        } else {
            TextPattern::new(text, place)
        };
        read.map_err(|fault| self.faults.push(fault)).ok()
    }

    /// A number or text; an axis has no use for an option without a value.
    fn value(&mut self, scalar: &Scalar, place: &FilePosition) -> Option<Value> {
        match scalar {
            Scalar::Text(text) => self.pattern(text, place),
            Scalar::Number(number) => self.pattern(&number.to_string(), place),
            Scalar::Flag(_) => {
                self.fault(place, "expected a number or a text");
                None
            }
        }
    }

    fn options(&mut self, raw: RawOptions) -> Vec<JobSetting> {
        let mut raw: Vec<(String, Raw<Scalar>)> = raw.into_iter().collect();
        // In the order in which they are written.
        raw.sort_by_key(|(_, value)| value.span().start);
        let mut all = Vec::new();
        for (option, value) in raw {
            let place = self.place(value.span());
            self.option(&option, &place);
            let value = match value.into_inner() {
                Scalar::Flag(true) => None,
                Scalar::Flag(false) => self.pattern("0", &place),
                scalar => self.value(&scalar, &place),
            };
            all.push(JobSetting {
                option,
                place,
                value,
            });
        }
        all
    }

    /// Whether fio has such an option: what is mistyped here would stand in
    /// hundreds of job files.
    fn option(&mut self, name: &str, place: &FilePosition) {
        if table().find(name).next().is_none() {
            let near = meant(name, table().names());
            let message = format!(
                "fio has no option {name}{near} (one that Fathom does not know can stand in a \
                 template)"
            );
            self.fault(place, message);
        }
    }

    fn axis(&mut self, raw: Raw<AxisFile>) -> Option<Axis> {
        let axis = raw.into_inner();
        let place = self.place(axis.option.span());
        let option = axis.option.into_inner();
        self.option(&option, &place);
        let values = match (axis.from, axis.to, axis.values) {
            (Some(from), Some(to), None) => {
                let (at_from, at_to) = (self.place(from.span()), self.place(to.span()));
                let from = self.value(from.get_ref(), &at_from)?;
                AxisValues::Range(from, self.value(to.get_ref(), &at_to)?)
            }
            (None, None, Some(values)) => {
                let at = self.place(values.span());
                match values.into_inner() {
                    ListFile::Text(text) => AxisValues::Text(self.pattern(&text, &at)?),
                    ListFile::List(list) => {
                        if list.is_empty() {
                            self.fault(&at, "the axis has no values");
                        }
                        let values = list.iter().filter_map(|value| self.value(value, &at));
                        AxisValues::List(values.collect())
                    }
                }
            }
            _ => {
                let message = "an axis has either from and to (doubling), or values";
                self.fault(&place, message);
                return None;
            }
        };
        Some(Axis {
            option,
            place,
            values,
        })
    }

    fn line(&self, written: Raw<String>) -> Line {
        let place = self.place(written.span());
        (written.into_inner(), place)
    }
}

/// The name of a file without folder and ending.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

/// What stands in a path must be a plain name.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && !name.contains(|c: char| c == '/' || c.is_control())
}

impl TestDefinition {
    pub(super) fn parse(file: &str, text: &str, faults: &mut Vec<Fault>) -> Option<Self> {
        let mut reader = DefinitionReader { file, text, faults };
        let raw: TestFile = reader.parse()?;
        reader.format(&raw.format, TEST_FORMAT);
        let name = stem(file).to_owned();
        let at_path = reader.place(raw.path.span());
        if TAKEN.contains(&name.as_str()) || !is_plain(&name) {
            let message = format!("a test cannot be called {name}: its folder has another use");
            reader.fault(&at_path, message);
        }
        let levels = raw.path.get_ref().split('/');
        let path: Vec<TextPattern> = levels
            .filter_map(|level| reader.pattern(level, &at_path))
            .collect();
        if path.len() < 2 {
            let message = "a path has a folder (the series) and a file: FOLDER/FILE";
            reader.fault(&at_path, message);
        }
        if raw.axes.is_empty() {
            reader.fault(&at_path, "a test needs at least one of [[axes]]");
        }
        let axes: Vec<Axis> = raw
            .axes
            .into_iter()
            .filter_map(|axis| reader.axis(axis))
            .collect();
        let last = axes
            .last()
            .map(|axis| (axis.option.clone(), axis.place.clone()));
        let x = raw.x.map(|x| reader.line(x)).or(last);
        let overrides = raw.overrides.into_iter().map(|(profile, options)| {
            let place = reader.place(options.span());
            let options = reader.options(options.into_inner());
            ((profile, place), options)
        });
        let overrides = overrides.collect();
        let profiles = raw.profiles.map(|names| {
            let lines = names.into_iter().map(|name| reader.line(name));
            lines.collect()
        });
        Some(Self {
            name,
            about: raw.about,
            when: reader.condition(raw.when),
            guard: reader.condition(raw.guard),
            phase: raw.phase,
            template: reader.line(raw.template),
            profiles,
            path,
            x: x.unwrap_or((String::new(), at_path)),
            axes,
            options: reader.options(raw.options),
            overrides,
        })
    }

    /// Whether it fits what else is defined.
    pub(super) fn check(&self, all: &Definitions, faults: &mut Vec<Fault>) {
        let named = self.profiles.iter().flatten();
        for (name, place) in named.chain(self.overrides.iter().map(|(line, _)| line)) {
            if all.profile(name).is_none() {
                let known = all.profiles.iter().map(|profile| profile.name.as_str());
                let near = meant(name, known);
                faults.push(Fault::new(
                    place,
                    format!("there is no profile {name}{near}"),
                ));
            }
        }
        let (x, at_x) = &self.x;
        if !self.axes.is_empty() && !self.axes.iter().any(|axis| axis.option == *x) {
            faults.push(Fault::new(
                at_x,
                format!("x is {x}, which is not one of the axes"),
            ));
        }
        let (name, place) = &self.template;
        let Some(template) = all.template(name) else {
            let near = meant(
                name,
                all.templates.iter().map(|template| template.name.as_str()),
            );
            let message = format!("there is no {TEMPLATES}/{name}{near}");
            return faults.push(Fault::new(place, message));
        };
        let known = self.option_names(all);
        let axes = self.axes.iter().map(|axis| (&axis.option, &axis.place));
        let options = self.own_options().map(|own| (&own.option, &own.place));
        for (option, place) in axes.chain(options) {
            template.check_place((option, place), OptionsOf::Test, &known, faults);
        }
        for profile in all
            .profiles
            .iter()
            .filter(|profile| self.runs_with(profile))
        {
            for own in &profile.options {
                let own = (&own.option, &own.place);
                template.check_place(own, OptionsOf::Profile, &known, faults);
            }
        }
    }

    /// Whether it is meant for a profile.
    pub(crate) fn runs_with(&self, profile: &Profile) -> bool {
        match &self.profiles {
            None => true,
            Some(names) => names.iter().any(|(name, _)| *name == profile.name),
        }
    }

    /// The name of its template.
    pub(crate) fn template_name(&self) -> &String {
        &self.template.0
    }

    pub(crate) fn template<'d>(&self, all: &'d Definitions) -> Option<&'d super::Template> {
        all.template(&self.template.0)
    }
}

impl super::Template {
    /// Whether an option gets into the job file, and only once.
    fn check_place(
        &self,
        (option, place): (&String, &FilePosition),
        block: OptionsOf,
        known: &[&str],
        faults: &mut Vec<Fault>,
    ) {
        // One that stands for nothing is told as that.
        let is_mistyped = |name: &str| !is_symbol(name) && !is_word(name) && !known.contains(&name);
        match self.line_of(option) {
            Some(line) if line.names().any(|name| name == option || is_mistyped(name)) => {}
            Some(line) => {
                let message = format!(
                    "sets {option} itself, and so does {place}: write {option}={{{{ {option} }}}}"
                );
                let fault = Fault::new(line.place(), message);
                if !faults.contains(&fault) {
                    faults.push(fault);
                }
            }
            None if self.has(block) => {}
            None => {
                let name = match block {
                    OptionsOf::Test => super::template::TEST_OPTIONS,
                    OptionsOf::Profile => super::template::PROFILE_OPTIONS,
                };
                let message = format!(
                    "{} has no place for {option}: it needs a line {option}={{{{ {option} }}}} or \
                     {{{{ {name} }}}}",
                    self.place
                );
                let fault = Fault::new(place, message);
                if !faults.contains(&fault) {
                    faults.push(fault);
                }
            }
        }
    }
}

impl Profile {
    pub(super) fn parse(file: &str, text: &str, faults: &mut Vec<Fault>) -> Option<Self> {
        let mut reader = DefinitionReader { file, text, faults };
        let raw: ProfileFile = reader.parse()?;
        reader.format(&raw.format, PROFILE_FORMAT);
        let stem = stem(file);
        let Some((number, name)) = stem.split_once('-').filter(|(_, name)| is_plain(name)) else {
            let place = FilePosition {
                file: file.into(),
                line: 0,
                column: 0,
            };
            reader.fault(&place, "a profile's file is called NUMBER-NAME.toml");
            return None;
        };
        Some(Self {
            file: stem.to_owned(),
            number: number.to_owned(),
            short: raw.short.unwrap_or_else(|| name.to_owned()),
            name: name.to_owned(),
            about: raw.about,
            when: reader.condition(raw.when),
            phase: raw.phase,
            options: reader.options(raw.options),
        })
    }
}
