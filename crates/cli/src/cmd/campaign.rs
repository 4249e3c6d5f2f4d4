//! What the commands of a campaign share: its folder, its part, the flags over
//! its configuration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_campaign::plan::{self, ResolvedCampaign};
use fathom_campaign::{CampaignError, Folder, Only};
use fathom_flow::RunOptions;
use fathom_flow::budget::{self, Over};
use fathom_flow::options::duration;
use fathom_jobfile::variables::variable;
use fathom_prepare::settings::{MeasureOrder, Overrides};
use fathom_sheet::style::wrap;
use serde::{Deserialize, Serialize};

use super::hosts::{HostArgs, HostVariable};
use super::measuring::MeasuringArgs;
use super::{ExitError, Global};
use crate::out;

/// Which campaign, and which part of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct CampaignArgs {
    /// Folder of the campaign
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    #[serde(skip)]
    pub dir: PathBuf,
    /// Only this test, folder, series, profile or job file; * and ? as in a shell
    #[arg(long, value_name = "PART")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<Only>,
}

impl CampaignArgs {
    /// The campaign's folder.
    ///
    /// # Errors
    /// When it is none.
    pub fn folder(&self) -> Result<Folder, ExitError> {
        Folder::open(&self.dir).map_err(exit_error)
    }

    /// The folder of the campaign's runs.
    pub fn runs_dir(&self, global: &Global) -> PathBuf {
        match self.dir == Path::new(".") {
            true => global.runs.clone(),
            false => self.dir.join(&global.runs),
        }
    }

    /// The plan of the campaign, with these flags over its configuration.
    ///
    /// # Errors
    /// What keeps it from being planned, with its exit code.
    pub fn plan(&self, overrides: &Overrides) -> Result<ResolvedCampaign, ExitError> {
        plan::plan(&self.folder()?, &variable, &self.only, overrides).map_err(exit_error)
    }
}

/// What else may be spent on a plan.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Budget {
    /// What becomes of a plan that wants more than that
    #[arg(long, value_name = "HOW", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<Over>,
    /// Terabytes that the drive is rated for (TBW of its data sheet), to tell what
    /// share of them is written
    #[arg(long, value_name = "TB", value_parser = terabytes)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endurance_tbw: Option<u64>,
}

pub fn terabytes(text: &str) -> Result<u64, String> {
    budget::terabytes(text).ok_or_else(|| budget::NO_RATING.to_owned())
}

impl Budget {
    /// With these over what the configuration says.
    pub fn over(&self, overrides: Overrides) -> Overrides {
        Overrides {
            endurance_bytes: self.endurance_tbw,
            over: self.over_budget,
            ..overrides
        }
    }
}

/// What both commands take.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    #[command(flatten)]
    pub request: CampaignRequest,
    /// Show every step and every command that would be executed, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub _measuring: MeasuringArgs,
    /// A variable of the job files for all of these machines, or HOST:NAME=VALUE
    /// for one of them (may be repeated) [default: the value here, else each
    /// host's own]
    #[arg(long, value_name = "NAME=VALUE", help_heading = "On several machines")]
    pub var: Vec<HostVariable>,
}

/// What a campaign is asked for: its record keeps it for `resume`, and other machines are sent
/// it. What was not said is left out of its JSON.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct CampaignRequest {
    #[command(flatten)]
    #[serde(flatten)]
    pub which: CampaignArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub options: RunOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub budget: Budget,
    /// Try points again that have failed
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retry_failed: bool,
    /// Measure each point so often
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// How the measurements of a point follow each other
    #[arg(long, value_enum, value_name = "ORDER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<MeasureOrder>,
    /// Measure every series to its end, also when it only gets worse
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_guard: bool,
    /// Time between two samples
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// Longest time of a point
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point_limit: Option<Duration>,
    /// The device under test, from the Fathom that sent this one.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dut: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    pub hosts: HostArgs,
}

/// With the exit code it is to end with.
pub fn exit_error(error: CampaignError) -> ExitError {
    ExitError::new(error.exit(), error)
}

/// Tells what is to be known of a plan before it starts.
pub fn tell_notes(notes: &[String]) {
    notes.iter().for_each(|note| tell(&format!("note: {note}")));
}

/// Tells something, broken into lines where the window is too narrow.
pub fn tell(text: &str) {
    match out::progress_size() {
        Some((columns, _)) => text
            .lines()
            .flat_map(|line| wrap(line, usize::from(columns)))
            .for_each(out::note),
        None => out::note(text),
    }
}
