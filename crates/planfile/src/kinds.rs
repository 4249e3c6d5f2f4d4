//! What a step does: one type for each kind, and how it is read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_analysis::snia::{DriveClass, SniaTest};
use fathom_campaign::error::{Fault, FilePosition, meant};
use fathom_device::purge::PurgeSettings;
use fathom_device::{cdl, regular};
use fathom_flow::error::RunError;
use fathom_flow::xdg;
use fathom_prepare::precondition::PreconditionMethod;
use fathom_prepare::provision::SteadyFor;
use fathom_suites::prio::{self, PrioConfig, Split};
use fathom_suites::quick::{DEFAULT_GROUP, SeriesGroup};
use fathom_suites::snia::SniaAsk;
use serde::{Deserialize, Serialize};

use super::campaign::{StudyCampaign, campaign, check_folder};
use super::expand::ExpandedStep;
use super::fields::{StudyFields, StudyReader, method};
use super::jobs::{self, PlannedJob, StudyJob};
use super::keys::{PRIO, SNIA, SniaArgs};
use super::options;
use super::tree::TomlNode;

/// What a step does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyAction {
    /// Erases the target.
    Purge(StudyPurge),
    /// Brings the target into steady state.
    Precondition(StudyPrecondition),
    /// Runs jobs.
    Job(StudyJob),
    /// Runs the quick series.
    Quick(StudyQuick),
    /// Runs a campaign.
    Campaign(StudyCampaign),
    /// Runs a test after SNIA's specification.
    Snia(Box<SniaAsk>),
    /// Measures with priorities or duration limits, by default the target.
    Prio(Box<PrioConfig>),
    /// Runs a command.
    Command(StudyCommand),
}

/// How the target is erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyPurge {
    /// A name of `fathom_device::purge`, or `auto`.
    pub method: String,
    /// Blocks that are looked for afterwards.
    pub samples: u64,
    /// The device is asked to do also what it says it lacks.
    pub unchecked: bool,
    /// Why, for the log and the ledger.
    pub reason: String,
}

impl StudyPurge {
    /// The same for `fathom_device::purge`.
    ///
    /// # Errors
    /// A method that there is not: the plan is one of another Fathom.
    pub fn want(&self) -> Result<PurgeSettings, RunError> {
        Ok(PurgeSettings {
            choice: self.method.parse().map_err(RunError::Input)?,
            check: !self.unchecked,
            samples: self.samples,
            ..PurgeSettings::default()
        })
    }
}

/// How the target is brought into steady state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyPrecondition {
    /// The load that it is to be steady for.
    pub workload: SteadyFor,
    /// The way there; `None`: as the configuration says.
    pub method: Option<PreconditionMethod>,
    /// How it is purged first; `None`: as the configuration says.
    pub purge: Option<String>,
    /// It is not purged.
    pub no_purge: bool,
    /// Also where it is in the wanted state already.
    pub force: bool,
    /// The campaign whose configuration holds; `None`: the defaults of one.
    pub campaign: Option<PathBuf>,
}

/// A quick series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyQuick {
    /// The folder it runs in; `None`: the target.
    pub folder: Option<PathBuf>,
    /// The group of tests: its name, or the path of its file.
    pub group: String,
    /// The one test to run; all where it is `None`.
    pub test: Option<String>,
    /// Seconds of each timed test.
    pub runtime_s: Option<u32>,
    /// Size of each set of files.
    pub size_bytes: Option<u64>,
    /// Whether its files are made without copy-on-write (btrfs).
    #[serde(default)]
    pub nocow: bool,
}

/// A command that is run with `sh`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyCommand {
    /// The command.
    pub command: String,
    /// The command that undoes it at the end of the run.
    pub undo: Option<String>,
    /// Time after which it is ended.
    pub timeout: Option<Duration>,
}

/// What is known of what a step measures; nothing where that shows only when it runs.
#[derive(Default)]
pub(super) struct Measures {
    /// Its jobs.
    pub(super) jobs: Vec<PlannedJob>,
    /// The names of its parts.
    pub(super) parts: Vec<String>,
}

/// Reads what a step of this kind does, and what is known of what it measures.
pub(super) fn action(
    reading: &mut StudyReader,
    kind: &str,
    step: &ExpandedStep,
    target: Option<&Path>,
) -> (StudyAction, Measures) {
    let node = &step.node;
    let mut measures = Measures::default();
    let action = match kind {
        "purge" => StudyAction::Purge(purge(node)),
        "precondition" => StudyAction::Precondition(precondition(reading, node)),
        "quick" => StudyAction::Quick(quick(reading, node)),
        "campaign" => {
            let (campaign, parts) = campaign(reading, node, target);
            measures.parts = parts;
            StudyAction::Campaign(campaign)
        }
        "snia" => StudyAction::Snia(Box::new(snia(reading, node))),
        "prio" => StudyAction::Prio(Box::new(prio(reading, node, target))),
        "command" => StudyAction::Command(command(node)),
        _ => {
            let (job, jobs) = jobs::job(reading, step);
            measures.jobs = jobs;
            StudyAction::Job(job)
        }
    };
    (action, measures)
}

fn purge(node: &TomlNode) -> StudyPurge {
    let fields = StudyFields(node);
    StudyPurge {
        method: fields.text("purge").unwrap_or("auto").to_owned(),
        samples: fields.whole("samples").unwrap_or(PurgeSettings::SAMPLES),
        unchecked: fields.is_on("unchecked"),
        reason: fields
            .text("reason")
            .unwrap_or("a plan file asks for it")
            .to_owned(),
    }
}

/// How a device is purged before something else, and whether not at all.
fn purged_first(reading: &mut StudyReader, node: &TomlNode) -> (Option<String>, bool) {
    let fields = StudyFields(node);
    let (key, not) = ("purge-method", fields.is_on("no-purge"));
    if let Some(wanted) = node.get(key) {
        if let Err(said) = method(wanted.text()) {
            reading.fault_of(node, key, said);
        }
        if not {
            reading.fault_of(node, key, "no-purge is set, too");
        }
    }
    (fields.owned(key), not)
}

fn precondition(reading: &mut StudyReader, node: &TomlNode) -> StudyPrecondition {
    let fields = StudyFields(node);
    let (purge, no_purge) = purged_first(reading, node);
    let campaign = fields.text("config").map(|dir| reading.path(dir));
    if campaign.is_some() {
        check_folder(reading, node, "config");
    }
    StudyPrecondition {
        workload: match fields.text("precondition") {
            Some("seq") => SteadyFor::Sequential,
            Some("mixed") => SteadyFor::Mixed,
            _ => SteadyFor::Random,
        },
        method: fields.text("method").map(|method| match method {
            "snia" => PreconditionMethod::Snia,
            _ => PreconditionMethod::SantaClara,
        }),
        purge,
        no_purge,
        force: fields.is_on("force"),
        campaign,
    }
}

fn quick(reading: &mut StudyReader, node: &TomlNode) -> StudyQuick {
    let fields = StudyFields(node);
    let written = fields.text("group").unwrap_or(DEFAULT_GROUP);
    // A path is one in the plan file's folder, as every other.
    let is_path = written.contains('/') || written.ends_with(".toml");
    let group = match is_path {
        true => reading.path(written).display().to_string(),
        false => written.to_owned(),
    };
    match SeriesGroup::find(&group, xdg::groups_dir().as_deref()) {
        Ok(found) => {
            let names: Vec<&str> = found.tests().map(|test| test.name.as_str()).collect();
            if let Some(name) = fields.text("test").filter(|name| !names.contains(name)) {
                let near = meant(name, names);
                let said = format!("the group {written} has no test {name}{near}");
                reading.fault_of(node, "test", said);
            }
        }
        Err(error) => reading.fault_of(node, "group", error),
    }
    let folder = fields.text("quick").map(|folder| reading.path(folder));
    StudyQuick {
        folder,
        group,
        test: fields.owned("test"),
        runtime_s: fields.whole32("runtime"),
        size_bytes: fields.size("size"),
        nocow: fields.is_on("nocow"),
    }
}

fn snia(reading: &mut StudyReader, node: &TomlNode) -> SniaAsk {
    /// Whatever the device is like: large enough for every range that is a size.
    const CAPACITY: u64 = 1 << 50;
    let fields = StudyFields(node);
    let name = fields.text("snia").unwrap_or_default();
    let mut tests = SniaTest::ALL.into_iter();
    let test = tests.find(|test| test.name() == name);
    let test = test.unwrap_or(SniaTest::Iops);
    let class = match fields.text("class") {
        Some("client") => DriveClass::Client,
        _ => DriveClass::Enterprise,
    };
    for field in node.fields() {
        if let Some(why) = test.why_not(&field.name) {
            let said = format!("{name} takes no {}: {why}", field.name);
            reading.fault(field.at, said);
        }
    }
    let SniaArgs { how, wanted } = options::of_node(reading, node, &SNIA);
    if let Err(said) = wanted.setup(test, class, CAPACITY) {
        reading.fault_of(node, "snia", said);
    }
    SniaAsk {
        test,
        class,
        wanted,
        how,
    }
}

fn prio(reading: &mut StudyReader, node: &TomlNode, target: Option<&Path>) -> PrioConfig {
    PrioConfig {
        dev: target.unwrap_or(Path::new("")).to_owned(),
        load: options::of_node(reading, node, &PRIO),
        outdir: None,
        workloads: workloads(reading, node),
        t2a: page(reading, node, "t2a"),
        t2b: page(reading, node, "t2b"),
    }
}

/// The text of a page with limits.
fn page(reading: &mut StudyReader, node: &TomlNode, key: &str) -> Option<String> {
    /// A page has a few lines for each limit.
    const BYTES_MAX: u64 = 1 << 20;
    let path = reading.path(StudyFields(node).text(key)?);
    // That it is missing has been told.
    if !path.is_file() {
        return None;
    }
    let text = regular::read(&path, BYTES_MAX).map_err(|error| error.to_string());
    let text = text.and_then(|text| String::from_utf8(text).map_err(|error| error.to_string()));
    match text {
        Ok(text) => {
            for fault in cdl::file::parse(&text).err().into_iter().flatten() {
                let place = FilePosition {
                    file: path.display().to_string().into(),
                    line: fault.line,
                    column: 0,
                };
                reading.add(Fault::new(&place, fault.what));
            }
            Some(text)
        }
        Err(error) => {
            reading.fault_of(node, key, format!("{}: {error}", path.display()));
            None
        }
    }
}

/// The workloads that are named, with what each needs to know.
fn workloads(reading: &mut StudyReader, node: &TomlNode) -> Vec<prio::PrioWorkload> {
    let fields = StudyFields(node);
    let names = fields.texts("prio");
    // What needs which option; one that nothing needs is a mistake.
    for (option, users) in [
        ("percentage", &["ncq-prio", "cdl-single"][..]),
        ("dld", &["cdl-single"]),
        ("dldsplit", &["cdl-multi"]),
    ] {
        let user = names.iter().find(|name| users.contains(&name.as_str()));
        match (node.get(option), user) {
            (None, Some(user)) => {
                reading.fault_of(node, "prio", format!("{user} needs {option}"));
            }
            (Some(_), None) => {
                let said = format!("only {} has a use for it", users.join(" and "));
                reading.fault_of(node, option, said);
            }
            _ => {}
        }
    }
    let small = |name| {
        fields
            .whole(name)
            .map_or(1, |n| u8::try_from(n).unwrap_or(1))
    };
    let (percent, dld) = (small("percentage"), small("dld"));
    let dldsplit = split(reading, node);
    let workload = |name: &String| match name.as_str() {
        "ncq-prio" => prio::PrioWorkload::Ncq(percent),
        "cdl-single" => prio::PrioWorkload::Single { percent, dld },
        "cdl-multi" => prio::PrioWorkload::Multi(Split(dldsplit.clone())),
        _ => prio::PrioWorkload::Baseline,
    };
    names.iter().map(workload).collect()
}

/// Limits with their shares: `{ 1 = 10, 2 = 20 }`.
fn split(reading: &mut StudyReader, step: &TomlNode) -> Vec<(u8, u8)> {
    const KEY: &str = "dldsplit";
    let mut all = Vec::new();
    let Some(node) = step.get(KEY) else {
        return all;
    };
    for field in node.fields() {
        let dld = field.name.parse::<u8>().ok();
        let dld = dld.filter(|dld| (1..=7).contains(dld) && field.name.len() == 1);
        let share = StudyFields(node).whole(&field.name);
        let share = share.and_then(|share| u8::try_from(share).ok());
        match (dld, share.filter(|share| (1..=100).contains(share))) {
            (Some(dld), Some(share)) => all.push((dld, share)),
            (None, _) => reading.fault(field.at, "dldsplit: limits have the numbers 1 to 7"),
            _ => reading.fault(
                field.node.span.start,
                "dldsplit: give a share from 1 to 100",
            ),
        }
    }
    let sum: u32 = all.iter().map(|&(_, share)| u32::from(share)).sum();
    if sum > 100 {
        reading.fault_of(step, KEY, format!("the shares add up to {sum} percent"));
    }
    if node.fields().is_empty() {
        reading.fault_of(step, KEY, "there is no limit in it");
    }
    all
}

fn command(node: &TomlNode) -> StudyCommand {
    let fields = StudyFields(node);
    StudyCommand {
        command: fields.text("command").unwrap_or_default().to_owned(),
        undo: fields.owned("undo"),
        timeout: fields.time("timeout"),
    }
}
