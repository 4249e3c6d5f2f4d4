//! From definitions and a configuration to points and the texts of their job
//! files.

use std::collections::{HashMap, HashSet};

use fathom_kconfig::{Config, Tri};
use fathom_model::DevicePhase;
use fathom_model::Point;
use fathom_model::units::{format_size, parse_size};

use crate::definition::names::{is_symbol, no_symbol, no_word};
use crate::definition::{
    Axis, AxisValues, Condition, Definitions, JobSetting, OptionsOf, Profile, Template,
    TemplateLine, TestDefinition, TextPattern, Value, is_plain,
};
use crate::error::{CampaignError, Fault};
use crate::only::Only;

/// The most points of a campaign: nobody measures more, and mistyped bounds of
/// axes would not end.
const POINTS_MAX: usize = 100_000;

/// A point, ready to be run.
#[derive(Debug)]
pub(crate) struct MatrixPoint {
    pub(crate) point: Point,
    pub(crate) job_text: String,
    pub(crate) phase: DevicePhase,
    pub(crate) guarded: bool,
}

/// Every point that a configuration asks for and `only` does not leave out, in
/// the order of tests, profiles and axes.
///
/// # Errors
/// All mistakes in the definitions that show with these values.
pub(crate) fn make(
    definitions: &Definitions,
    config: &Config,
    only: &[Only],
) -> Result<Vec<MatrixPoint>, CampaignError> {
    let mut matrix = Matrix {
        definitions,
        config,
        only,
        faults: Vec::new(),
        made: Vec::new(),
        ids: HashSet::new(),
    };
    let profiles: Vec<bool> = definitions
        .profiles
        .iter()
        .map(|profile| matrix.holds(profile.when.as_ref()))
        .collect();
    for test in &definitions.tests {
        test.check_names(definitions, config.tree(), &mut matrix.faults);
    }
    for test in &definitions.tests {
        let is_on = matrix.holds(test.when.as_ref());
        let guarded = matrix.holds(test.guard.as_ref());
        let mut numbers = PathNumbers::default();
        for (profile, on) in definitions.profiles.iter().zip(&profiles) {
            if is_on && *on && test.runs_with(profile) {
                let pair = Pair {
                    test,
                    profile,
                    guarded,
                };
                if let Err(fault) = matrix.points(&pair, &mut numbers) {
                    matrix.faults.push(fault);
                }
            }
        }
    }
    let mut told = HashSet::new();
    matrix.faults.retain(|fault| told.insert(fault.to_string()));
    if matrix.faults.is_empty() {
        Ok(matrix.made)
    } else {
        Err(CampaignError::Definition(matrix.faults))
    }
}

struct Matrix<'a> {
    definitions: &'a Definitions,
    config: &'a Config,
    only: &'a [Only],
    faults: Vec<Fault>,
    made: Vec<MatrixPoint>,
    ids: HashSet<String>,
}

/// A test with one of its profiles.
struct Pair<'a> {
    test: &'a TestDefinition,
    profile: &'a Profile,
    guarded: bool,
}

impl<'a> Matrix<'a> {
    /// Whether a condition holds; there is none: yes.
    fn holds(&mut self, condition: Option<&Condition>) -> bool {
        let Some(condition) = condition else {
            return true;
        };
        match self.config.condition(&condition.text, &condition.at) {
            Ok(value) => value > Tri::N,
            Err(error) => {
                self.faults.push(condition.fault(&error));
                false
            }
        }
    }

    /// Makes the points of a test with a profile.
    fn points(&mut self, pair: &Pair<'a>, numbers: &mut PathNumbers) -> Result<(), Fault> {
        let scope = Scope::new(self.config, pair);
        let axes: Vec<(&Axis, Vec<String>)> = pair
            .test
            .axes
            .iter()
            .map(|axis| Ok((axis, scope.values(axis)?)))
            .collect::<Result<_, Fault>>()?;
        let counts = axes.iter().map(|(_, values)| values.len());
        let total = counts.fold(1, usize::saturating_mul);
        if self.made.len().saturating_add(total) > POINTS_MAX {
            let place = &pair.test.x.1;
            let message =
                format!("these axes make {total} points; a campaign has {POINTS_MAX} at most");
            return Err(Fault::new(place, message));
        }
        for place in 0..total {
            let mut scope = Scope::new(self.config, pair);
            // The last axis varies fastest.
            let mut rest = place;
            for (axis, values) in axes.iter().rev() {
                scope
                    .axes
                    .push((&axis.option, Some(values[rest % values.len()].clone())));
                rest /= values.len();
            }
            scope.axes.reverse();
            self.point(pair, scope, numbers)?;
        }
        Ok(())
    }

    fn point(
        &mut self,
        pair: &Pair<'a>,
        mut scope: Scope<'a>,
        numbers: &mut PathNumbers,
    ) -> Result<(), Fault> {
        scope.resolve()?;
        let id = numbers.path(pair.test, &scope)?;
        if !self.ids.insert(id.clone()) {
            let message =
                format!("two points have the path {id}: it must name every axis, and the profile");
            return Err(Fault::new(pair.test.path[0].place(), message));
        }
        let wanted = |only: &Only| only.has_of_profile(&id, &pair.profile.name);
        if !self.only.is_empty() && !self.only.iter().any(wanted) {
            return Ok(());
        }
        let template = pair.test.template(self.definitions);
        let template = template.expect("definitions with a missing template are refused when read");
        let series = id
            .rsplit_once('/')
            .map_or("", |(series, _)| series)
            .to_owned();
        self.made.push(MatrixPoint {
            job_text: scope.job_file(template)?,
            point: Point {
                series,
                id,
                x: pair.test.x.0.clone(),
                settings: scope
                    .settings()
                    .map(|(option, value)| (option.clone(), value.unwrap_or("1").to_owned()))
                    .collect(),
                repetition: 1,
            },
            phase: pair.test.phase.unwrap_or(pair.profile.phase),
            guarded: pair.guarded,
        });
        Ok(())
    }
}

/// Options and their values in the order of the job file; `None`: no value.
type Settings<'a> = Vec<(&'a String, Option<String>)>;

/// What the placeholders of one point stand for.
struct Scope<'a> {
    config: &'a Config,
    test: &'a TestDefinition,
    profile: &'a Profile,
    axes: Settings<'a>,
    options: Settings<'a>,
    profile_options: Settings<'a>,
}

impl<'a> Scope<'a> {
    fn new(config: &'a Config, pair: &Pair<'a>) -> Self {
        Self {
            config,
            test: pair.test,
            profile: pair.profile,
            axes: Vec::new(),
            options: Vec::new(),
            profile_options: Vec::new(),
        }
    }

    /// Finds the values of all options; axes go before the options of the
    /// test, those before the ones of the profile.
    fn resolve(&mut self) -> Result<(), Fault> {
        let overrides: &'a [JobSetting] = self
            .test
            .overrides
            .iter()
            .find(|((profile, _), _)| *profile == self.profile.name)
            .map_or(&[], |(_, options)| options);
        let replaced =
            |own: &&JobSetting| !overrides.iter().any(|other| other.option == own.option);
        let own = self.test.options.iter().filter(replaced).chain(overrides);
        let own: Vec<&'a JobSetting> = own.collect();
        for setting in &self.profile.options {
            let is_own = own.iter().any(|own| own.option == setting.option)
                || self
                    .test
                    .axes
                    .iter()
                    .any(|axis| axis.option == setting.option);
            if !is_own {
                let value = self.value(setting)?;
                self.profile_options.push((&setting.option, value));
            }
        }
        for setting in own {
            if self
                .test
                .axes
                .iter()
                .any(|axis| axis.option == setting.option)
            {
                let message = format!("{} is one of the axes", setting.option);
                return Err(Fault::new(&setting.place, message));
            }
            let value = self.value(setting)?;
            self.options.push((&setting.option, value));
        }
        Ok(())
    }

    fn value(&self, setting: &JobSetting) -> Result<Option<String>, Fault> {
        setting
            .value
            .as_ref()
            .map(|value| self.fill(value))
            .transpose()
    }

    fn settings(&self) -> impl Iterator<Item = (&'a String, Option<&str>)> {
        let all = self
            .axes
            .iter()
            .chain(&self.options)
            .chain(&self.profile_options);
        all.map(|(option, value)| (*option, value.as_deref()))
    }

    fn fill(&self, pattern: &TextPattern) -> Result<String, Fault> {
        pattern.fill(&|name| self.placeholder(name))
    }

    /// What a placeholder stands for, or what is wrong with it.
    fn placeholder(&self, name: &str) -> Result<String, String> {
        let (test, profile) = (self.test, self.profile);
        if let Some((_, value)) = self.settings().find(|(option, _)| *option == name) {
            return Ok(value.unwrap_or("1").to_owned());
        }
        let word = match name {
            "test" => &test.name,
            "test.about" => &test.about,
            "template" => test.template_name(),
            "profile" => &profile.file,
            "profile.number" => &profile.number,
            "profile.name" => &profile.name,
            "profile.short" => &profile.short,
            "profile.about" => &profile.about,
            symbol if is_symbol(symbol) => return self.symbol(symbol),
            // An option of another profile, for one.
            other => {
                let options = self.settings().map(|(option, _)| option.as_str());
                return Err(no_word(other, options));
            }
        };
        Ok(word.to_owned())
    }

    /// The same in a list of file names, where fio takes a colon for the end of
    /// a name (`/dev/disk/by-path` is full of them).
    fn file_name(&self, name: &str) -> Result<String, String> {
        let value = self.placeholder(name)?;
        Ok(value.replace("\\:", ":").replace(':', "\\:"))
    }

    fn symbol(&self, name: &str) -> Result<String, String> {
        let tree = self.config.tree();
        let Some(id) = tree.find(name) else {
            return Err(no_symbol(name, tree));
        };
        let (value, is_logical) = (self.config.text(id), tree.symbol(id).kind.is_logical());
        // Where it is off for want of another symbol it has no value to use.
        if value.is_empty() && !is_logical && !self.config.is_written(id) {
            let depends = tree.expr_text(tree.symbol(id).depends);
            return Err(format!("{name} has no value: it depends on {depends}"));
        }
        Ok(value.to_owned())
    }

    /// The values of an axis.
    fn values(&self, axis: &Axis) -> Result<Vec<String>, Fault> {
        let wrong = |message: String| Err(Fault::new(&axis.place, message));
        let values = match &axis.values {
            AxisValues::Range(from, to) => self.range(from, to)?,
            AxisValues::List(list) => list
                .iter()
                .map(|value| self.fill(value))
                .collect::<Result<_, _>>()?,
            AxisValues::Text(text) => {
                let text = self.fill(text)?;
                let parts = text
                    .split(',')
                    .map(str::trim)
                    .filter(|part| !part.is_empty());
                parts.map(str::to_owned).collect()
            }
        };
        if values.is_empty() {
            return wrong(format!("the axis {} has no values", axis.option));
        }
        if let Some(twice) = (1..values.len()).find(|&at| values[..at].contains(&values[at])) {
            return wrong(format!(
                "the axis {} has {} twice",
                axis.option, values[twice]
            ));
        }
        Ok(values)
    }

    /// From the first, doubling, to the last; with suffixes as they are
    /// written: 4k, 8k, … 1M.
    fn range(&self, from: &Value, to: &Value) -> Result<Vec<String>, Fault> {
        let bound = |value: &Value| {
            let text = self.fill(value)?;
            let number = parse_size(&text).ok_or_else(|| {
                Fault::new(value.place(), format!("{text:?} is no number above 0"))
            })?;
            Ok((number, text.ends_with(|c: char| c.is_ascii_alphabetic())))
        };
        let ((first, a), (last, b)) = (bound(from)?, bound(to)?);
        if last < first {
            let message = format!("the axis ends with {last}, before it begins with {first}");
            return Err(Fault::new(to.place(), message));
        }
        let doubled = std::iter::successors(Some(first), |value| value.checked_mul(2));
        let values = doubled.take_while(|value| *value <= last);
        Ok(values
            .map(|value| {
                if a || b {
                    format_size(value)
                } else {
                    value.to_string()
                }
            })
            .collect())
    }

    /// The text of the job file.
    fn job_file(&self, template: &Template) -> Result<String, Fault> {
        let mut text = String::new();
        let line_of = |option: &str, value: Option<&str>| match value {
            Some(value) => format!("{option}={value}\n"),
            None => format!("{option}\n"),
        };
        for line in &template.lines {
            let block = match line {
                TemplateLine::Text { option, pattern } => {
                    text += &match option.as_deref() {
                        Some("filename") => pattern.fill(&|name| self.file_name(name))?,
                        _ => self.fill(pattern)?,
                    };
                    text.push('\n');
                    continue;
                }
                TemplateLine::Block(OptionsOf::Test) => self.axes.iter().chain(&self.options),
                TemplateLine::Block(OptionsOf::Profile) => self.profile_options.iter().chain(&[]),
            };
            for (option, value) in block {
                if template.line_of(option).is_none() {
                    text += &line_of(option, value.as_deref());
                }
            }
        }
        Ok(text)
    }
}

/// Numbers files and folders as `{{ n }}` shows them: from 0001 in each folder.
#[derive(Default)]
struct PathNumbers {
    /// The name that a folder has got, by the folder above and what it is called
    /// without its number.
    known: HashMap<(String, String), String>,
    counts: HashMap<String, u32>,
}

impl PathNumbers {
    /// The path of a point's job file without its ending, the test's folder included.
    fn path(&mut self, test: &TestDefinition, scope: &Scope<'_>) -> Result<String, Fault> {
        let mut path = test.name.clone();
        let last = test.path.len().saturating_sub(1);
        for (level, pattern) in test.path.iter().enumerate() {
            let name = self.name(&path, pattern, scope, level == last)?;
            if !is_plain(&name) {
                let message = format!("{name:?} cannot be the name of a file");
                return Err(Fault::new(pattern.place(), message));
            }
            path.push('/');
            path += &name;
        }
        Ok(path)
    }

    fn name(
        &mut self,
        parent: &str,
        pattern: &TextPattern,
        scope: &Scope<'_>,
        is_file: bool,
    ) -> Result<String, Fault> {
        let with = |n: String| {
            pattern.fill(&|name| match name {
                "n" => Ok(n.clone()),
                name => scope.placeholder(name),
            })
        };
        let key = (parent.to_owned(), with(String::new())?);
        if let (Some(name), false) = (self.known.get(&key), is_file) {
            return Ok(name.clone());
        }
        let count = self.counts.entry(key.0.clone()).or_default();
        *count += 1;
        let name = with(format!("{count:04}"))?;
        self.known.insert(key, name.clone());
        Ok(name)
    }
}
