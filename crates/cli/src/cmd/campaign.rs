//! What the commands of a campaign share: its folder, its part, the flags over
//! its configuration.

use std::path::{Path, PathBuf};

use fathom_campaign::plan::{self, Overrides, Plan};
use fathom_campaign::{CampaignError, Folder, Only};
use fathom_report::style::wrap;

use super::{ExitError, Global};
use crate::out;

/// Which campaign, and which part of it.
#[derive(Debug, Clone, clap::Args)]
pub struct Which {
    /// Folder of the campaign
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Only this test, folder, series, profile or job file; * and ? as in a shell
    #[arg(long, value_name = "PART")]
    pub only: Vec<Only>,
}

impl Which {
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
    pub fn plan(&self, overrides: &Overrides) -> Result<Plan, ExitError> {
        plan::plan(&self.folder()?, &environment, &self.only, overrides).map_err(exit_error)
    }
}

/// The environment of this process.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// With the exit code it is to end with.
pub fn exit_error(error: CampaignError) -> ExitError {
    ExitError {
        exit: error.exit(),
        message: error.to_string(),
    }
}

/// Tells what is to be known of a plan before it starts.
pub fn tell_notes(notes: &[String]) {
    for note in notes {
        let told = format!("note: {note}");
        match out::progress_columns() {
            Some(columns) => told
                .lines()
                .flat_map(|line| wrap(line, usize::from(columns)))
                .for_each(out::note),
            None => out::note(told),
        }
    }
}
