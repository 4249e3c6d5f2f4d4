//! Plans as they are kept in records, for `resume`, and sent to other machines.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fathom_flow::RunOptions;
use fathom_model::Exit;
use serde::{Deserialize, Serialize};

use super::hosts::{HostArgs, usage};
use super::{Global, ab, find, job, prio, quick, run, soak, study, tune};

/// The plan of a run, of every kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Plan {
    Job(job::run::JobPlan),
    Prio(prio::PrioPlan),
    Quick(Box<quick::QuickPlan>),
    Soak(Box<soak::SoakPlan>),
    Find(Box<find::FindPlan>),
    Ab(Box<ab::AbPlan>),
    Tune(Box<tune::TunePlan>),
    Study(Box<study::StudyPlan>),
    Campaign(Box<run::CampaignRequest>),
}

impl Plan {
    /// The same on a machine that another Fathom drives and calls `host`, with what
    /// it makes below a folder of its own.
    ///
    /// # Errors
    /// When there is no current folder.
    pub fn on_host(mut self, host: &str, folder: &Path) -> anyhow::Result<Self> {
        match &mut self {
            Self::Job(_)
            | Self::Quick(_)
            | Self::Soak(_)
            | Self::Find(_)
            | Self::Ab(_)
            | Self::Tune(_) => {}
            Self::Study(plan) => {
                let here = std::env::current_dir().context("the current folder is gone")?;
                plan.study.be_on(host, here);
            }
            Self::Prio(plan) => plan.config.outdir = Some(folder.join("out")),
            Self::Campaign(request) => request.which.dir = folder.to_owned(),
        }
        Ok(self)
    }

    /// What every plan can be told.
    pub fn options(&mut self) -> &mut RunOptions {
        match self {
            Self::Job(plan) => &mut plan.options,
            Self::Prio(plan) => &mut plan.options,
            Self::Quick(plan) => &mut plan.order.options,
            Self::Soak(plan) => &mut plan.job.options,
            Self::Find(plan) => &mut plan.job.options,
            Self::Ab(plan) => &mut plan.job.options,
            Self::Tune(plan) => &mut plan.job.options,
            Self::Study(plan) => &mut plan.options,
            Self::Campaign(request) => &mut request.options,
        }
    }

    /// Confirms the devices that the plan's own text confirms: that text is the user's word
    /// for every start.
    pub fn confirm_as_written(&mut self) {
        if let Self::Study(plan) = self {
            let words = plan.study.options.run.destroy.iter().cloned();
            plan.options.destroy.extend(words);
        }
    }

    /// The plan of the jobs that it runs, where others decide what comes next of them.
    fn job(&self) -> Option<&job::run::JobPlan> {
        match self {
            Self::Job(plan) => Some(plan),
            Self::Soak(plan) => Some(&plan.job),
            Self::Find(plan) => Some(&plan.job),
            Self::Ab(plan) => Some(&plan.job),
            Self::Tune(plan) => Some(&plan.job),
            Self::Prio(_) | Self::Quick(_) | Self::Study(_) | Self::Campaign(_) => None,
        }
    }

    /// Refuses to go on with it on other machines than those of its record.
    ///
    /// # Errors
    /// Which those are.
    pub fn must_be_on(&self, hosts: &HostArgs) -> anyhow::Result<()> {
        match self.job().and_then(|job| job.hosts.as_ref()) {
            Some(own) => own.must_be(hosts),
            None if hosts.is_given() => Err(usage(
                "the record is of this machine alone\n  to do: leave out --hosts",
            )),
            None => Ok(()),
        }
    }

    /// As it is kept in a record: devices must be named again.
    ///
    /// # Errors
    /// When a path in it is not UTF-8, which JSON cannot hold. Paths on the command line have
    /// been checked before, so it is the current folder's.
    pub fn kept(mut self) -> anyhow::Result<serde_json::Value> {
        self.options().destroy.clear();
        serde_json::to_value(self).map_err(|error| match std::env::current_dir() {
            Ok(here) if here.to_str().is_none() => usage(format!(
                "{}: the path of this folder is not UTF-8, and a record cannot hold it\n  to do: rename it, or run from another",
                here.display()
            )),
            _ => error.into(),
        })
    }

    /// Runs it, into a new record or the one to go on with.
    pub fn run(
        self,
        global: &Global,
        record: Option<PathBuf>,
        dry_run: bool,
    ) -> anyhow::Result<Exit> {
        match self {
            Self::Job(plan) => plan.run(global, record, dry_run),
            Self::Prio(plan) => plan.run(global, record, dry_run),
            Self::Quick(plan) => plan.run(global, record, dry_run),
            Self::Soak(plan) => plan.run(global, record, dry_run),
            Self::Find(plan) => plan.run(global, record, dry_run),
            Self::Ab(plan) => plan.run(global, record, dry_run),
            Self::Tune(plan) => plan.run(global, record, dry_run),
            Self::Study(plan) => plan.run(global, record, dry_run),
            // Its own record is the folder's: a campaign goes on by itself.
            Self::Campaign(request) => request.run(global, dry_run),
        }
    }
}
