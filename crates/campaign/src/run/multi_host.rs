//! A campaign on several machines at once: each runs it by itself, step by step
//! with the others, and this is the record of all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fathom_fleet::hosts::HostsJob;
use fathom_fleet::hosts::kept::{self, key_of};
use fathom_flow::error::RunError;
use fathom_flow::past::{self, COMMAND};
use fathom_flow::plan_log::PLAN_FILE;
use fathom_model::{Event, Outcome};
use fathom_record::{Entries, Header, Writer};
use serde_json::Value;

use super::{RunStart, planfile, records};
use crate::plan::ResolvedCampaign;

/// The record that a campaign of several machines goes on with, and what of it
/// is done again.
#[derive(Debug, Default)]
pub struct MultiHostCampaign {
    record: Option<PathBuf>,
    /// Measurements in which not every machine had its whole part.
    again: BTreeSet<String>,
    /// End of the record's last interval, ms.
    t_ms: u64,
}

/// The machines of a record, when it is one of several.
pub fn machines_of(header: &Header) -> Option<Vec<String>> {
    serde_json::from_value(header.facts.get(kept::FACTS)?.clone()).ok()
}

/// Refuses to go on here with what several machines have measured.
pub(super) fn must_be_of_one(header: &Header) -> Result<(), RunError> {
    match machines_of(header) {
        None => Ok(()),
        Some(names) => Err(RunError::Refused(format!(
            "the record of this campaign is of several machines ({})\n  to do: run fathom resume on that machine, or --again to start over on this one",
            names.join(", ")
        ).into())),
    }
}

impl MultiHostCampaign {
    /// Finds the record to go on with, and what has to be measured again.
    ///
    /// # Errors
    /// When it is of other machines, or cannot be read.
    pub fn look(
        plan: &ResolvedCampaign,
        runs_dir: &Path,
        begin: RunStart,
        names: &[String],
        retry_failed: bool,
    ) -> Result<Self, RunError> {
        if plan.phases().is_empty() && !plan.snia.is_something() {
            let what = "the plan is empty: no test is switched on (fathom config menu), or --only names none";
            return Err(RunError::Input(what.to_owned()));
        }
        if !plan.dut.is_absolute() {
            return Err(RunError::Input(format!(
                "with --hosts: the device under test is {}, which each machine would look for in a folder that is made for the run\n  to do: give its whole path (DUT_FILENAME, or DEV)",
                plan.dut.display()
            )));
        }
        let Some(dir) = records::to_go_on_with(plan, runs_dir, begin)? else {
            return Ok(Self::default());
        };
        let mut entries = Entries::open(&dir)?;
        let refused = |what: String| {
            RunError::Refused(format!("{what}\n  to do: --again starts a new record").into())
        };
        let Some(before) = machines_of(&entries.header) else {
            let what = "the record of this campaign is of one machine alone, and not of several";
            return Err(refused(what.to_owned()));
        };
        let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
        if sorted(&before) != sorted(names) {
            return Err(refused(format!(
                "the record of this campaign is of {}: a sum over other machines is another figure",
                before.join(", ")
            )));
        }
        let mut whole = Whole::default();
        let mut t_ms = 0;
        for entry in &mut entries {
            let event = entry?.event;
            whole.take(&event);
            if let Event::Interval { t_ms: end_ms, .. } = event {
                t_ms = end_ms;
            }
        }
        Ok(Self {
            again: whole.again(retry_failed),
            t_ms,
            record: Some(dir),
        })
    }

    /// The record it goes on with; `None`: it starts a new one.
    pub fn record(&self) -> Option<&Path> {
        self.record.as_deref()
    }

    /// What the machines are to do, with everything that the record tells of it.
    pub fn job(&self, plan: &ResolvedCampaign, job: HostsJob) -> HostsJob {
        let points = plan.steps.iter().map(|step| &step.point);
        HostsJob {
            steps: points.map(|p| key_of(&p.id, p.repetition)).collect(),
            own_records: true,
            again: self.again.clone(),
            t_ms: self.t_ms,
            ..job
        }
    }

    /// A new record, or that to go on with, with the plan in it; `flags` are those
    /// of the command line, kept for `resume`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn writer(
        &self,
        plan: &ResolvedCampaign,
        runs_dir: &Path,
        mut header: Header,
        flags: Value,
        partial: bool,
    ) -> Result<Writer, RunError> {
        let engine = plan.settings.options.engine().name();
        let folder = past::real(&plan.folder);
        let writer = match &self.record {
            Some(dir) => Writer::reopen(dir)?,
            None => {
                header.name = records::name_of(&folder);
                header.command = COMMAND.to_owned();
                header.facts.extend(records::facts(plan, engine, &[]));
                let writer = Writer::create(runs_dir, &header)?;
                records::keep_config(plan, writer.dir());
                writer
            }
        };
        let head = planfile::head(plan, &folder, engine, partial, flags);
        let dir = writer.dir();
        // The stages are each machine's own.
        planfile::write_steps(dir, &head, &plan.steps).map_err(|source| {
            RunError::Record(fathom_record::RecordError::File {
                path: dir.join(PLAN_FILE),
                source,
            })
        })?;
        Ok(writer)
    }
}

/// Which measurements have every machine's whole part.
#[derive(Debug, Default)]
struct Whole {
    begun: BTreeSet<String>,
    whole: BTreeSet<String>,
    failed: BTreeSet<String>,
    open: Option<OpenHostStep>,
}

/// The step in progress.
#[derive(Debug)]
struct OpenHostStep {
    key: String,
    all_there: bool,
    failed: bool,
}

impl Whole {
    fn take(&mut self, event: &Event) {
        match event {
            Event::Step { point, .. } => {
                self.open = point.as_ref().map(|point| OpenHostStep {
                    key: key_of(&point.id, point.repetition),
                    all_there: false,
                    failed: false,
                });
                self.begun
                    .extend(self.open.iter().map(|open| open.key.clone()));
            }
            Event::Hosts { hosts } => {
                if let Some(open) = &mut self.open {
                    open.all_there = hosts.iter().all(|host| host.lost.is_none());
                }
            }
            Event::Failure(_) => {
                if let Some(open) = &mut self.open {
                    open.failed = true;
                }
            }
            Event::StepEnded { outcome } => self.close(*outcome),
            // What was killed is measured again.
            Event::Ended { .. } | Event::Resumed { .. } => self.open = None,
            _ => {}
        }
    }

    fn close(&mut self, outcome: Outcome) {
        let open = self.open.take();
        let Some(open) = open.filter(|_| outcome != Outcome::Interrupted) else {
            return;
        };
        for set in [&mut self.whole, &mut self.failed] {
            set.remove(&open.key);
        }
        match (open.all_there, open.failed) {
            (true, false) => _ = self.whole.insert(open.key),
            (true, true) => _ = self.failed.insert(open.key),
            (false, _) => {}
        }
    }

    fn again(self, retry_failed: bool) -> BTreeSet<String> {
        let done =
            |key: &String| self.whole.contains(key) || (!retry_failed && self.failed.contains(key));
        self.begun
            .iter()
            .filter(|key| !done(key))
            .cloned()
            .collect()
    }
}
