//! What a campaign will do, step by step: printed by `plan`, done by `run`.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use fathom_analysis::knee_search::search_order;
use fathom_flow::load::Load;
use fathom_jobfile::JobFile;
use fathom_kconfig::Config;
use fathom_model::{DevicePhase, Point};
use fathom_prepare::preparation::Preparation;
use fathom_prepare::settings::{GuardPolicy, MeasureOrder, Overrides, RunSettings, settings};
use fathom_suites::snia::SniaConfig;

use crate::matrix::{self, MatrixPoint};
use crate::{CampaignError, Folder, Only};

mod budget;

/// A campaign, resolved: everything `run` needs to know.
#[derive(Debug, Clone)]
pub struct ResolvedCampaign {
    /// The campaign's folder.
    pub folder: PathBuf,
    /// The device (or file) under test: `CONFIG_DUT_FILENAME`.
    pub dut: PathBuf,
    /// How the points are run.
    pub settings: RunSettings,
    /// What is to be known before it starts, each a sentence: where the
    /// configuration is doubtful, what it asks for and this Fathom does not do.
    pub notes: Vec<String>,
    /// What is done to the device before it is measured.
    pub preparation: Preparation,
    /// The tests after SNIA's specification, which come first: each begins with a
    /// purge.
    pub snia: SniaConfig,
    /// The steps in the order in which they run; with repetitions each
    /// measurement of a point is a step of its own.
    pub steps: Vec<CampaignStep>,
    /// What the names of its points and stages begin with, as a step of a plan file:
    /// `STEP/`; empty where it is a run of its own.
    pub scope: String,
}

impl ResolvedCampaign {
    /// The same as a step of this name of a plan file.
    #[must_use]
    pub fn within(mut self, step: &str) -> Self {
        self.scope = format!("{step}/");
        for CampaignStep { point, .. } in &mut self.steps {
            point.id.insert_str(0, &self.scope);
            point.series.insert_str(0, &self.scope);
        }
        // The logs are those of a run of the folder.
        self.settings.progress_logs = false;
        self
    }

    /// The kinds of work that there are, in their order: the device is made ready
    /// for each.
    pub fn phases(&self) -> Vec<DevicePhase> {
        let mut phases: Vec<DevicePhase> = self.steps.iter().map(|step| step.phase).collect();
        phases.extend(self.preparation.provision);
        phases.sort_unstable();
        phases.dedup();
        phases
    }

    /// The variables that its job files name.
    pub fn variables(&self) -> BTreeSet<String> {
        let naming = self.steps.iter().filter(|it| it.job_text.contains("${"));
        let named = naming.flat_map(|step| {
            let checked = JobFile::parse(&step.job_text, &step.job_file, &|_| None);
            checked.file.variables().clone()
        });
        named.collect()
    }
}

/// One job file to run once.
#[derive(Debug, Clone)]
pub struct CampaignStep {
    /// What it measures.
    pub point: Point,
    /// The job file, below the campaign's folder.
    pub job_file: PathBuf,
    /// Its text, as generated.
    pub job_text: String,
    /// Which state of the device it wants.
    pub phase: DevicePhase,
    /// Whether points of its series may be left out.
    pub guarded: bool,
    /// How long it takes: ramp and run time, where the job says so.
    pub duration: Option<Duration>,
    /// The most it can write to the device, in bytes, where that is known:
    /// 0 for reads; `None` for jobs that write as fast as they can for some time.
    pub write_bytes: Option<u64>,
    /// The part of its I/O that writes, 0 to 1.
    pub write_share: f64,
}

/// The plan of a campaign: of everything its configuration asks for, or of what
/// `only` names. Nothing is opened or run.
///
/// The device under test is that of `overrides`, else the environment's DEV,
/// else `DUT_FILENAME`.
///
/// # Errors
/// When the campaign is not configured, or its definitions or values are wrong.
pub fn plan(
    folder: &Folder,
    env: &dyn Fn(&str) -> Option<String>,
    only: &[Only],
    overrides: &Overrides,
) -> Result<ResolvedCampaign, CampaignError> {
    let (mut config, warnings) = folder.configured(env)?;
    let mut notes: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let dut = choose_dut(&mut config, env, overrides, &mut notes);
    let settings = settings(&config, overrides)?;
    let made = matrix::make(&folder.definitions()?, &config, only)?;
    if made.is_empty() && !only.is_empty() {
        return Err(nothing_called(folder, &config, only));
    }
    let preparation = Preparation::of(&config, &dut, made.is_empty())?;
    // Whoever names points does not want whole tests.
    let snia = match only.is_empty() {
        true => SniaConfig::of(&config)?,
        false => SniaConfig::default(),
    };
    if made.is_empty() && !snia.is_something() {
        notes.push(match preparation.provision {
            Some(_) => "no test or no profile is on: the device is made ready, and nothing is \
                        measured"
                .to_owned(),
            None => "no test or no profile is on, so there is nothing to measure: turn some on \
                     with `fathom config menu` (Performance evaluation), or take a defconfig"
                .to_owned(),
        });
    }
    let guards = overrides.guard;
    let steps: Vec<CampaignStep> = made
        .into_iter()
        .map(|made| step(made, settings.guard.is_some(), guards))
        .collect();
    Ok(ResolvedCampaign {
        folder: folder.path().to_owned(),
        dut,
        steps: ordered(steps, settings.guard, &config, overrides),
        settings,
        notes,
        preparation,
        snia,
        scope: String::new(),
    })
}

/// Sets the device under test in the configuration, and says where it is not
/// the one that stands there.
fn choose_dut(
    config: &mut Config,
    env: &dyn Fn(&str) -> Option<String>,
    overrides: &Overrides,
    notes: &mut Vec<String>,
) -> PathBuf {
    const SYMBOL: &str = "DUT_FILENAME";
    let written = config.get(SYMBOL).unwrap_or_default().to_owned();
    let dev = env("DEV").filter(|dev| !dev.is_empty());
    let own = overrides.dut.as_ref().map(|dut| dut.display().to_string());
    let (dut, from) = match (own, dev) {
        (Some(dut), _) => (dut, "the command line"),
        (None, Some(dev)) => (dev, "DEV"),
        (None, None) => return PathBuf::from(written),
    };
    // The shipped tree has the symbol; one of the user's own may do without.
    let _ = config.set_by_name(SYMBOL, &dut);
    if dut != written {
        notes.push(format!(
            "{from} names {dut}; the {SYMBOL} of the configuration, {written}, is not used"
        ));
    }
    PathBuf::from(dut)
}

fn step(made: MatrixPoint, guard: bool, all: Option<bool>) -> CampaignStep {
    let job_file = PathBuf::from(format!("{}.ini", made.point.id));
    let checked = JobFile::parse(&made.job_text, &job_file, &|_| None);
    let load = Load::of(&checked.file.jobs());
    CampaignStep {
        point: made.point,
        job_file,
        job_text: made.job_text,
        phase: made.phase,
        guarded: guard && all.unwrap_or(made.guarded),
        duration: load.duration,
        write_bytes: load.write_bytes,
        write_share: load.write_share,
    }
}

/// The steps in their order: by phase, and with the repetitions of each point.
fn ordered(
    mut steps: Vec<CampaignStep>,
    guard: Option<GuardPolicy>,
    config: &Config,
    overrides: &Overrides,
) -> Vec<CampaignStep> {
    steps.sort_by_key(|step| step.phase);
    if guard == Some(GuardPolicy::NotForKnee) {
        steps = searched(steps);
    }
    let configured = config.get("REPEAT").and_then(|text| text.parse().ok());
    let repeat = overrides.repeat.or(configured).unwrap_or(1).max(1);
    let order = overrides
        .order
        .unwrap_or(match config.is_on("REPEAT_IN_A_ROW") {
            true => MeasureOrder::InARow,
            false => MeasureOrder::Interleaved,
        });
    let again = |step: &CampaignStep, repetition| {
        let mut step = step.clone();
        step.point.repetition = repetition;
        step
    };
    let same_block = |a: &CampaignStep, b: &CampaignStep| match order {
        MeasureOrder::InARow => false,
        MeasureOrder::Interleaved => a.point.series == b.point.series,
    };
    steps
        .chunk_by(same_block)
        .flat_map(|block| {
            (1..=repeat).flat_map(move |n| block.iter().map(move |step| again(step, n)))
        })
        .collect()
}

/// The steps with the guarded points of each series in the order of the search for its
/// knee, in the places that they had.
fn searched(steps: Vec<CampaignStep>) -> Vec<CampaignStep> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, step) in steps.iter().enumerate().filter(|(_, step)| step.guarded) {
        places.entry(&step.point.series).or_default().push(place);
    }
    let mut order: Vec<usize> = (0..steps.len()).collect();
    for its in places.values() {
        for (turn, on_axis) in search_order(its.len()).into_iter().enumerate() {
            order[its[turn]] = its[on_axis];
        }
    }
    order
        .into_iter()
        .map(|place| steps[place].clone())
        .collect()
}

/// Nothing is called so: what there is.
fn nothing_called(folder: &Folder, config: &Config, only: &[Only]) -> CampaignError {
    let what: Vec<&str> = only.iter().map(Only::as_str).collect();
    let all = folder
        .definitions()
        .and_then(|definitions| matrix::make(&definitions, config, &[]))
        .unwrap_or_default();
    let mut series: Vec<&str> = all.iter().map(|made| made.point.series.as_str()).collect();
    series.dedup();
    let known = match series.as_slice() {
        [] => "is nothing, because no test or no profile is on".to_owned(),
        [first] => format!("is {first}"),
        [first, .., last] => format!("are {} series, {first} to {last}", series.len()),
    };
    CampaignError::NothingCalled {
        what: what.join(", "),
        known,
    }
}
