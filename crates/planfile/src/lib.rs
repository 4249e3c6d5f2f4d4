//! Plan files: what is measured, in steps of any kind, and what must come out.
//!
//! ```text
//! study.toml ── tree: values with places ── expand: loops ── kinds, jobs: steps ─┐
//!                                                 assertion: conditions ─────────┴→ Study
//! ```
//! [`Study::read`] tells everything that is wrong at once, each with its place. A
//! [`Study`] has no loops left: whoever runs it goes over its steps. [`evaluate`]
//! judges its conditions by the document of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_campaign::CampaignError;
use fathom_campaign::error::{Fault, FilePosition, meant};
use fathom_flow::RunOptions;
use serde::{Deserialize, Serialize};

use expand::{ExpandedStep, expanded, is_inline};
use fields::{StudyFields, StudyReader};
use keys::{HOST_TARGET, KINDS, STEP, StepKind, TARGET, of_kind};
use kinds::Measures;
use tree::{PlanText, TomlNode};

mod assertion;
mod campaign;
mod conditions;
mod expand;
mod fields;
mod hosts;
mod jobs;
mod keys;
mod kinds;
mod options;
mod schema;
mod script;
#[cfg(test)]
mod tests;
mod tree;
mod verdict;

pub use assertion::{AssertedFigure, Assertion, Comparator, LatencyPart, LatencyValue};
pub use campaign::StudyCampaign;
pub use jobs::{JobSource, StudyJob};
pub use kinds::{StudyAction, StudyCommand, StudyPrecondition, StudyPurge, StudyQuick};
pub use schema::schema;
pub use script::StudyScript;
pub use verdict::{AssertionVerdict, evaluate, exit};

/// Longest plan file that is read, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// Longest name of a step, in characters.
const NAME_MAX: usize = 128;

/// A plan file, with its loops gone round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// What the run is called.
    pub name: String,
    /// The folder of the file, in which commands run; every path starts there.
    pub folder: PathBuf,
    /// What is measured.
    pub targets: StudyTargets,
    /// What holds for the whole.
    pub options: StudyOptions,
    /// What is done, in order; names are unique.
    pub steps: Vec<StudyStep>,
    /// What must come out.
    pub assertions: Vec<Assertion>,
}

/// What is measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyTargets {
    /// Where nothing else is said.
    pub path: Option<PathBuf>,
    /// By host.
    pub hosts: BTreeMap<String, PathBuf>,
}

impl StudyTargets {
    /// What is measured on a host, or here.
    pub fn of(&self, host: Option<&str>) -> Option<&Path> {
        let own = host.and_then(|host| self.hosts.get(host));
        own.or(self.path.as_ref()).map(PathBuf::as_path)
    }
}

/// What holds for the whole of a plan file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyOptions {
    /// What every run can be told.
    #[serde(flatten)]
    pub run: RunOptions,
    /// Time between two samples.
    pub interval: Option<Duration>,
    /// The machines to run on; this one where there are none.
    pub hosts: Vec<String>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyStep {
    /// Its name, unlike all others.
    pub name: String,
    /// What it does.
    pub action: StudyAction,
    /// Where it stands: `study.toml:12:1`.
    #[serde(default)]
    pub at: String,
}

/// A step, with what conditions on it need to know.
struct CheckedStep<'n> {
    step: StudyStep,
    kind: &'static StepKind,
    measures: Measures,
    expanded: ExpandedStep<'n>,
}

impl Study {
    /// Reads a plan file, and the job files that it names; `env` gives their variables.
    ///
    /// # Errors
    /// Everything that is wrong, with its places.
    pub fn read(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, CampaignError> {
        let whole = |said: String| {
            let place = FilePosition {
                file: path.display().to_string().into(),
                line: 0,
                column: 0,
            };
            CampaignError::Definition(vec![Fault::new(&place, said)])
        };
        let bytes = fathom_device::regular::read(path, BYTES_MAX);
        let bytes = bytes.map_err(|error| whole(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| whole("it is not UTF-8".to_owned()))?;
        Self::parse(&text, path, env)
    }

    /// Reads the text of a plan file; paths start in the folder of `path`.
    ///
    /// # Errors
    /// As [`Study::read`].
    pub fn parse(
        text: &str,
        path: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, CampaignError> {
        let file = path.display().to_string().into();
        let text = PlanText { file, text };
        let root = text.parse().map_err(CampaignError::Definition)?;
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut reading = StudyReader {
            text,
            folder: absolute.parent().unwrap_or(Path::new("/")).to_owned(),
            env,
            faults: Vec::new(),
            is_on_hosts: false,
            room: expand::ROOM,
        };
        let study = study(&mut reading, &root, path);
        let mut faults = reading.faults;
        if faults.is_empty() {
            return Ok(study);
        }
        let file = &reading.text.file;
        faults.sort_by_key(|fault| {
            let place = &fault.place;
            (place.file != *file, place.line, place.column)
        });
        Err(CampaignError::Definition(faults))
    }
}

/// Puts it together; wrong where there are faults.
fn study(reading: &mut StudyReader, root: &TomlNode, path: &Path) -> Study {
    reading.check(root.fields(), keys::top(), "a plan file");
    let fields = StudyFields(root);
    let options = options(reading, root);
    reading.is_on_hosts = !options.hosts.is_empty();
    let targets = targets(reading, root, &options.hosts);
    let steps = steps(reading, root, &targets);
    let assertions = conditions::all(reading, root, &steps);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Study {
        name: fields.owned("name").unwrap_or_else(|| stem.into_owned()),
        folder: reading.folder.clone(),
        targets,
        options,
        steps: steps.into_iter().map(|checked| checked.step).collect(),
        assertions,
    }
}

fn options(reading: &mut StudyReader, root: &TomlNode) -> StudyOptions {
    let fields = StudyFields(root);
    let mut hosts: Vec<String> = Vec::new();
    for host in root.get("hosts").map_or(&[][..], TomlNode::items) {
        let name = host.text().unwrap_or_default();
        if name.starts_with('-') || name.contains(char::is_whitespace) {
            reading.fault(host.span.start, format!("hosts: {name:?} is not a host"));
        } else if hosts.iter().any(|known| known == name) {
            reading.fault(host.span.start, format!("hosts: {name} is there twice"));
        } else if !name.is_empty() {
            hosts.push(name.to_owned());
        }
    }
    StudyOptions {
        run: options::of_run(reading, root),
        interval: fields.time("interval"),
        hosts,
    }
}

fn targets(reading: &mut StudyReader, root: &TomlNode, hosts: &[String]) -> StudyTargets {
    let Some(target) = root.get("target") else {
        return StudyTargets::default();
    };
    reading.check(target.fields(), TARGET.iter(), "[target]");
    let mut found = StudyTargets {
        path: StudyFields(target)
            .text("path")
            .map(|path| reading.path(path)),
        hosts: BTreeMap::new(),
    };
    let by_host = target.get("host").map_or(&[][..], TomlNode::fields);
    for host in by_host {
        let name = &host.name;
        reading.check(
            host.node.fields(),
            HOST_TARGET.iter(),
            "the target of a host",
        );
        if !hosts.contains(name) {
            let near = meant(name, hosts.iter().map(String::as_str));
            reading.fault(host.at, format!("{name} is not in hosts{near}"));
        }
        match StudyFields(&host.node).text("path") {
            Some(path) => {
                let path = reading.path(path);
                found.hosts.insert(name.clone(), path);
            }
            None => reading.fault(host.at, format!("the target of {name} has no path")),
        }
    }
    let missing = hosts.iter().filter(|host| found.of(Some(host)).is_none());
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    if hosts.is_empty() && found.path.is_none() {
        reading.fault(target.span.start, "[target] has no path");
    } else if !missing.is_empty() {
        let said = format!("[target] has no path for {}", missing.join(", "));
        reading.fault(target.span.start, said);
    }
    found
}

fn steps<'n>(
    reading: &mut StudyReader,
    root: &'n TomlNode,
    targets: &StudyTargets,
) -> Vec<CheckedStep<'n>> {
    let Some(list) = root.get("step") else {
        reading.fault(
            0,
            "there is nothing to do: add a [[step]], as in job = \"mix.fio\"",
        );
        return Vec::new();
    };
    let mut names = BTreeSet::new();
    let mut switches: Option<String> = None;
    let mut all = Vec::new();
    for expanded in expanded(reading, list) {
        let Some((kind, at)) = kind(reading, &expanded.node) else {
            continue;
        };
        let what = format!("a {} step", kind.key.name);
        reading.check(expanded.node.fields(), of_kind(kind), &what);
        let target = targets.of(None);
        let (action, measures) = kinds::action(reading, kind.key.name, &expanded, target);
        let name = name(reading, kind, &expanded);
        check_place(reading, &action, at, switches.as_deref());
        if needs_target(&action) && targets.path.is_none() && targets.hosts.is_empty() {
            let said = "this step needs a target: add [target] with path = \"/dev/…\"";
            reading.fault(expanded.at, said);
        }
        if !names.insert(name.clone()) {
            let said = format!("another step is called {name}, too: give this one a name");
            reading.fault(expanded.at, said);
        }
        if matches!(action, StudyAction::Prio(_)) {
            switches = Some(name.clone());
        }
        let at = reading.text.place(at).to_string();
        all.push(CheckedStep {
            step: StudyStep { name, action, at },
            kind,
            measures,
            expanded,
        });
    }
    all
}

/// Whether a step can stand where it does: on hosts, and behind `switches`.
fn check_place(reading: &mut StudyReader, action: &StudyAction, at: usize, switches: Option<&str>) {
    if let Some(command) = action.not_on_hosts().filter(|_| reading.is_on_hosts) {
        reading.fault(at, hosts::by_its_own(command));
    }
    // It switches for itself what it measures with.
    let goes_behind = matches!(action, StudyAction::Prio(_) | StudyAction::Command(_));
    if let (Some(prio), false) = (switches, goes_behind) {
        let said = format!(
            "this stands behind {prio}, whose switches stay until the run ends: put it before, or into a plan file of its own"
        );
        reading.fault(at, said);
    }
}

/// The one kind of a step.
fn kind(reading: &mut StudyReader, step: &TomlNode) -> Option<(&'static StepKind, usize)> {
    let of = |name: &str| KINDS.iter().find(|kind| kind.key.name == name);
    let found = step.fields().iter();
    let mut found = found.filter_map(|field| Some((of(&field.name)?, field.at)));
    let Some((kind, at)) = found.next() else {
        let names = KINDS.iter().map(|kind| kind.key.name);
        let mut other = step.fields().iter();
        let other = other.find(|field| STEP.iter().all(|key| key.name != field.name));
        let near = other.map_or_else(String::new, |field| meant(&field.name, names.clone()));
        let at = other.map_or(step.span.start, |field| field.at);
        let names: Vec<&str> = names.collect();
        let none = other.map_or_else(String::new, |field| format!(", and not {}", field.name));
        let said = format!("a step does one of {}{none}{near}", names.join(", "));
        reading.fault(at, said);
        return None;
    };
    if let Some((other, at)) = found.next() {
        let (one, other) = (kind.key.name, other.key.name);
        let said = format!("a step does one thing: this one has {one} and {other}");
        reading.fault(at, said);
        return None;
    }
    Some((kind, at))
}

/// Whether it works on the target.
fn needs_target(action: &StudyAction) -> bool {
    match action {
        StudyAction::Purge(_)
        | StudyAction::Precondition(_)
        | StudyAction::Campaign(_)
        | StudyAction::Snia(_)
        | StudyAction::Prio(_) => true,
        StudyAction::Quick(quick) => quick.folder.is_none(),
        StudyAction::Job(_) | StudyAction::Command(_) => false,
    }
}

/// The name that it has, or that fits it.
fn name(reading: &mut StudyReader, kind: &StepKind, step: &ExpandedStep) -> String {
    let fields = StudyFields(&step.node);
    if let Some(node) = step.node.get("name") {
        let name = fields.text("name").unwrap_or_default();
        if name.contains(['/', '"', '\'']) || name.chars().count() > NAME_MAX {
            let said = format!("name: use no /, no quotes, and at most {NAME_MAX} characters");
            reading.fault(node.span.start, said);
        }
        return name.to_owned();
    }
    let begin = match (kind.key.name, fields.text(kind.key.name)) {
        ("job", Some(text)) if !is_inline(text) => stem(text),
        ("campaign", Some(folder)) => stem(folder),
        ("snia", Some(test)) => format!("snia-{test}"),
        (kind, _) => kind.to_owned(),
    };
    let values = step.values.iter();
    let values = values.map(|value| value.replace(['/', '"', '\''], "-"));
    let parts: Vec<String> = std::iter::once(begin).chain(values).collect();
    parts.join("-").chars().take(NAME_MAX).collect()
}

/// The name of a file without folder and ending.
fn stem(path: &str) -> String {
    let stem = Path::new(path).file_stem().unwrap_or_default();
    let odd = |c: char| c.is_control() || matches!(c, '"' | '\'');
    stem.to_string_lossy().replace(odd, "-")
}
