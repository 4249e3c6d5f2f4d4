//! `fathom run FILE.toml`: a plan file, and whether its conditions hold.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use fathom_flow::ledger::Ledgers;
use fathom_flow::{Ending, Flow, KeptPlan, Ready, RunOptions};
use fathom_jobfile::variables::variable;
use fathom_model::Exit;
use fathom_planfile::{Study, StudyScript, evaluate, exit};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::campaign::Flags;
use super::campaign::exit_error;
use super::drive::{Driven, Ended, drive};
use super::failed;
use super::hosts::{HostedPlan, HostedRun};
use super::planned::Start;
use super::planned::{RequestKind, RunRequest, kept};
use super::{ExitError, Global, header_facts};
use crate::out;

/// The command in records.
const COMMAND: &str = "study";

/// What a record keeps of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StudyPlan {
    pub study: Study,
    pub options: RunOptions,
}

/// Runs a plan file.
pub fn run(global: &Global, path: &Path, flags: &Flags) -> anyhow::Result<Exit> {
    StudyPlan::read(path, flags)?.anywhere(global, flags, flags.dry_run)
}

/// Shows what a plan file would do, with its time and bytes.
pub fn plan(global: &Global, path: &Path) -> anyhow::Result<Exit> {
    let flags = Flags::default();
    StudyPlan::read(path, &flags)?.anywhere(global, &flags, true)
}

/// With what was meant, where it is a job file that was given for a plan file.
fn meant(path: &Path, mut error: ExitError) -> ExitError {
    if path.extension().is_some_and(|ending| ending == "fio") {
        let file = path.display();
        error.message = format!(
            "{file} is no plan file (TOML); it looks like a job file of fio\n  to do: fathom job run {file}"
        );
    }
    error
}

impl RequestKind for StudyPlan {
    const NAME: &'static str = "study";
}

impl RunRequest for StudyPlan {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    fn run(self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        let (study, options) = (&self.study, &self.options);
        let campaigns = study.campaigns(options).map_err(failed)?;
        let script = StudyScript::new(study, &campaigns, options, start.record.as_deref());
        let script = script.map_err(failed)?;
        let flow = self.flow(global, &script, start.record)?;
        let ready = flow.look().map_err(failed)?;
        drive(global, ready, start.dry_run, &*self)
    }

    fn be_on(&mut self, host: &str, _folder: &Path) -> anyhow::Result<()> {
        let here = std::env::current_dir().context("the current folder is gone")?;
        self.study.be_on(host, here);
        Ok(())
    }

    fn confirm_as_written(&mut self) {
        let words = self.study.options.run.destroy.iter().cloned();
        self.options.destroy.extend(words);
    }
}

impl StudyPlan {
    fn read(path: &Path, flags: &Flags) -> anyhow::Result<Self> {
        let study = Study::read(path, &variable).map_err(|error| meant(path, exit_error(error)))?;
        let mut options = study.options.run.clone();
        options.over(&flags.request.options).map_err(failed)?;
        Ok(Self { study, options })
    }

    /// Runs it here, or on the machines that are named.
    fn anywhere(self, global: &Global, flags: &Flags, dry_run: bool) -> anyhow::Result<Exit> {
        let mut hosts = flags.request.hosts.clone();
        if hosts.hosts.is_empty() {
            hosts.hosts.clone_from(&self.study.options.hosts);
        }
        if !hosts.is_given() {
            return Box::new(self).run(global, Start::new(dry_run));
        }
        let sent = Self {
            study: self.study.sent(&variable).map_err(failed)?,
            options: self.options.clone(),
        };
        let steps = self.study.job_steps().map(str::to_owned);
        let (names, job) = hosts.job(&sent, steps.collect())?;
        let hosted = HostedPlan {
            names: &names,
            job: &job,
            name: &self.study.name,
            command: COMMAND,
            options: &self.options,
            job_files: Vec::new(),
            notes: Vec::new(),
        };
        Ok(match hosted.run(global, dry_run)? {
            HostedRun::Shown(exit) => exit,
            HostedRun::Ended(dir, exit) => {
                let judged = self.judge(global, &dir)?;
                match exit {
                    Exit::Success => judged,
                    exit => exit,
                }
            }
        })
    }

    fn flow<'f>(
        &'f self,
        global: &Global,
        script: &'f StudyScript<'f>,
        record: Option<PathBuf>,
    ) -> anyhow::Result<Flow<'f>> {
        let mut facts = header_facts();
        let setups = script.snia_setups();
        if !setups.is_empty() {
            facts.insert(fathom_suites::snia::FACTS.to_owned(), json!(setups));
        }
        let target = self.study.targets.of(None);
        Ok(Flow {
            script,
            command: COMMAND,
            name: &self.study.name,
            // A folder of files has no ledger.
            device: target.filter(|path| !path.is_dir()).map(Path::to_owned),
            work_dir: self.study.folder.clone(),
            options: self.options.clone(),
            engine_needs: script.engine_needs().to_vec(),
            interval: self
                .study
                .options
                .interval
                .unwrap_or(Duration::from_secs(1)),
            runs_dir: global.runs.clone(),
            record,
            ledgers: Ledgers::of_user(),
            facts,
            kept: KeptPlan::Config(kept(self)?),
        })
    }

    /// Shows what was measured, and whether the conditions hold.
    fn judge(&self, global: &Global, dir: &Path) -> anyhow::Result<Exit> {
        let mut doc = fathom_document::read(dir)?;
        let verdicts = evaluate(&self.study.assertions, &doc);
        if global.json {
            fathom_document::drop_histograms(&mut doc);
            let mut document = serde_json::to_value(&doc)?;
            document["assertions"] = json!(verdicts);
            out::json(&document)?;
            return Ok(exit(&verdicts));
        }
        out::text(fathom_report::table(&doc, out::style(global.color)));
        verdicts.iter().for_each(out::line);
        Ok(exit(&verdicts))
    }
}

impl Driven<Ready<'_>> for StudyPlan {
    fn is_over(&self, ready: &Ready<'_>) -> bool {
        ready.ending().is_some()
    }

    fn conclude(&self, global: &Global, ended: &Ended<'_>) -> anyhow::Result<Exit> {
        let judged = self.judge(global, ended.dir)?;
        let stopped = ended.finish.and_then(|finish| finish.stopped.as_deref());
        let reason = ended.ending.and_then(why).or(stopped);
        if let Some(reason) = reason {
            out::note(format_args!(
                "fathom: {reason}\n  to do: fathom resume {} after fixing the cause",
                ended.dir.display()
            ));
        }
        Ok(match (ended.exit(), reason) {
            (Exit::Success, None) => judged,
            (Exit::Success, Some(_)) => Exit::Failed,
            (exit, _) => exit,
        })
    }
}

/// Why a plan file was not done to its end.
fn why(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Complete => None,
        Ending::Failed(reason) | Ending::NotAttained(reason) => Some(reason),
    }
}
