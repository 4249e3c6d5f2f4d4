//! Steps of campaigns: their configurations are read and checked with the plan file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_campaign::plan::{self, ResolvedCampaign};
use fathom_campaign::{CampaignError, Folder, Only, run};
use fathom_flow::budget::Over;
use fathom_prepare::settings::{MeasureOrder, Overrides};
use serde::{Deserialize, Serialize};

use super::fields::{StudyFields, StudyReader};
use super::tree::TomlNode;

/// A campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyCampaign {
    /// Its folder.
    pub folder: PathBuf,
    /// The parts to run, as [`Only`] reads them; all where there are none.
    pub only: Vec<String>,
    /// How often each point is measured.
    pub repeat: Option<u32>,
    /// A point as often as asked before the next one; `None`: as the configuration says.
    pub in_a_row: Option<bool>,
    /// Series are measured to their end.
    pub no_guard: bool,
    /// Longest time of a point.
    pub point_limit: Option<Duration>,
    /// Of its points and their job files: a record goes on with the same ones.
    pub digest: u64,
}

/// The key of the step.
const KEY: &str = "campaign";
/// What a point takes of the room for loops: a plan file comes to 65,536 at most.
const POINT_ROOM: usize = 512;

impl StudyCampaign {
    /// What it comes to; `overrides` is what the plan file says of all steps.
    pub(super) fn plan(
        &self,
        overrides: Overrides,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ResolvedCampaign, CampaignError> {
        let only: Vec<Only> = self.only.iter().map(|only| Only::new(only)).collect();
        let order = |in_a_row| match in_a_row {
            true => MeasureOrder::InARow,
            false => MeasureOrder::Interleaved,
        };
        let overrides = Overrides {
            repeat: self.repeat,
            order: self.in_a_row.map(order),
            point_limit: self.point_limit,
            guard: self.no_guard.then_some(false),
            ..overrides
        };
        plan::plan(&Folder::open(&self.folder)?, env, &only, &overrides)
    }
}

/// FNV-1a: the same in every Fathom.
pub(super) fn digest(plan: &ResolvedCampaign) -> u64 {
    let steps = plan.steps.iter();
    let texts = steps.map(|step| format!("{}\n{}\n", step.point.id, step.job_text));
    texts.fold(0xcbf2_9ce4_8422_2325, |digest, text| {
        let mix = |digest: u64, byte| (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        text.bytes().fold(digest, mix)
    })
}

/// Reads a step of a campaign, with the names of its points.
pub(super) fn campaign(
    reading: &mut StudyReader,
    node: &TomlNode,
    target: Option<&Path>,
) -> (StudyCampaign, Vec<String>) {
    let fields = StudyFields(node);
    let mut found = StudyCampaign {
        folder: reading.path(fields.text("campaign").unwrap_or_default()),
        only: fields.texts("only"),
        repeat: fields.whole32("repeat"),
        in_a_row: fields.text("order").map(|order| order == "in-a-row"),
        no_guard: fields.is_on("no-guard"),
        point_limit: fields.time("point-limit"),
        digest: 0,
    };
    // What is missing has been told, or will be.
    let (Some(target), true) = (target, check_folder(reading, node, KEY)) else {
        return (found, Vec::new());
    };
    let overrides = Overrides {
        dut: Some(target.to_owned()),
        ..Overrides::default()
    };
    let plan = match found.plan(overrides, reading.env) {
        Ok(plan) => plan,
        Err(CampaignError::Definition(faults)) => {
            faults.into_iter().for_each(|fault| reading.add(fault));
            return (found, Vec::new());
        }
        Err(error) => {
            let is_of_only = matches!(error, CampaignError::NothingCalled { .. });
            reading.fault_of(node, if is_of_only { "only" } else { KEY }, error);
            return (found, Vec::new());
        }
    };
    found.digest = digest(&plan);
    check_plan(reading, node, &plan);
    let ids = plan.steps.into_iter().map(|step| step.point.id);
    (found, ids.collect())
}

/// Whether a campaign can be a step of a plan file.
fn check_plan(reading: &mut StudyReader, node: &TomlNode, plan: &ResolvedCampaign) {
    let (options, care) = (&plan.settings.options, &plan.settings.care);
    for (is_set, symbol, instead) in [
        (
            options.max_time.is_some(),
            "CAMPAIGN_TIMEOUT",
            "set max-time",
        ),
        (
            options.max_written.is_some(),
            "MAX_WRITTEN",
            "set max-written",
        ),
        (
            care.over == Over::Refuse,
            "OVER_BUDGET_REFUSE",
            "set limits",
        ),
    ] {
        if is_set {
            let folder = plan.folder.display();
            let said = format!(
                "{symbol} in {folder}/.config is about a whole run: take it out there, and {instead} in this file"
            );
            reading.fault_of(node, KEY, said);
        }
    }
    if plan.phases().is_empty() && !plan.snia.is_something() {
        reading.fault_of(node, KEY, run::EMPTY);
    }
    reading.room = reading.room.saturating_sub(plan.steps.len() * POINT_ROOM);
    if reading.room == 0 {
        reading.fault_of(node, KEY, "with this the plan file has too many points");
    }
}

/// Whether the folder of a key holds a campaign; that there is none is told elsewhere.
pub(super) fn check_folder(reading: &mut StudyReader, node: &TomlNode, key: &str) -> bool {
    let Some(written) = StudyFields(node).text(key) else {
        return false;
    };
    let dir = reading.path(written);
    let is_one = Folder::open(&dir).is_ok();
    if !is_one && dir.is_dir() {
        let dir = dir.display();
        reading.fault_of(
            node,
            key,
            format!("{dir} has no Kconfig and so is no campaign"),
        );
    }
    is_one
}
