//! `fathom prio`: from its command line to a plan, and its own words.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use fathom_engine::Control;
use fathom_flow::ledger::Ledgers;
use fathom_flow::undo::PUT_BACK_FIRST;
use fathom_flow::{Finish, Flow, KeptPlan, Ready, RunOptions};
use fathom_model::{Event, Exit, StageEnd};
use fathom_suites::prio::{
    COMMAND, NOT_SIMULATED, PrioConfig, PrioReady, PrioWorkload, ResultFolder, device,
};
use serde::{Deserialize, Serialize};

use super::{args, hosts, outcome};
use crate::cmd::drive::{self, Driven, Ended, drive};
use crate::cmd::failed;
use crate::cmd::hosts::usage;
use crate::cmd::planned::Start;
use crate::cmd::planned::{RequestKind, RunRequest, kept};
use crate::cmd::screen::observed_in_place;
use crate::cmd::{ExitError, Global, header_facts};
use crate::out;

/// What a record keeps of a run and other machines are sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PrioPlan {
    pub config: PrioConfig,
    pub options: RunOptions,
}

/// Runs the workloads that the command line asks for.
pub fn run(global: &Global, args: &args::Options) -> anyhow::Result<Exit> {
    let options = args.run.options()?;
    if options.is_simulated() {
        return Err(usage(format!(
            "{NOT_SIMULATED}\n  to do: leave out --engine sim"
        )));
    }
    let plan = PrioPlan {
        config: args.config()?,
        options,
    };
    match args.hosts.is_given() {
        true => hosts::run(global, &plan, &args.hosts, args.run.dry_run),
        false => Box::new(plan).run(global, Start::new(args.run.dry_run)),
    }
}

impl RequestKind for PrioPlan {
    const NAME: &'static str = "prio";
}

impl RunRequest for PrioPlan {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    fn run(mut self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        let is_resumed = start.record.is_some();
        let prio = PrioReady::new(self.config.clone(), is_resumed).map_err(failed)?;
        self.config = prio.config.clone();
        let flow = self.flow(global, &prio, start.record)?;
        let ready = flow.look().map_err(failed)?;
        let driven = DrivenPrio {
            config: &self.config,
            prio: &prio,
        };
        drive(global, ready, start.dry_run, &driven)
    }

    fn be_on(&mut self, _host: &str, folder: &Path) -> anyhow::Result<()> {
        self.config.outdir = Some(folder.join("out"));
        Ok(())
    }
}

impl PrioPlan {
    fn flow<'f>(
        &self,
        global: &Global,
        prio: &'f PrioReady,
        record: Option<PathBuf>,
    ) -> anyhow::Result<Flow<'f>> {
        let mut facts = header_facts();
        facts.insert("prio".into(), prio.facts());
        Ok(Flow {
            script: &prio.script,
            command: COMMAND,
            name: &prio.name,
            device: Some(self.config.dev.clone()),
            work_dir: PathBuf::from("/"),
            options: self.options.clone(),
            engine_needs: self.config.engine_needs(),
            interval: std::time::Duration::from_secs(1),
            runs_dir: global.runs.clone(),
            record,
            ledgers: match self.config.load.rw.writes() {
                true => Ledgers::of_user(),
                false => Ledgers::none(),
            },
            facts,
            kept: KeptPlan::Config(kept(self)?),
        })
    }
}

/// As cdl_bench does it.
struct DrivenPrio<'a> {
    config: &'a PrioConfig,
    prio: &'a PrioReady,
}

impl Driven<Ready<'_>> for DrivenPrio<'_> {
    fn run(
        &self,
        global: &Global,
        ready: Ready<'_>,
        control: &Control,
    ) -> anyhow::Result<Option<Finish>> {
        let prio = self.prio;
        let mut lines = Lines::default();
        let folder: RefCell<Option<ResultFolder>> = RefCell::new(None);
        let unwritten: RefCell<Option<std::io::Error>> = RefCell::new(None);
        let give_up = |error| {
            unwritten.borrow_mut().get_or_insert(error);
            control.stop();
        };
        let finish = observed_in_place(global, |begun, observer| {
            let mut begin = |dir: &Path| {
                match ResultFolder::make(&prio.outdir, self.config.load.rw, dir) {
                    Ok(made) => *folder.borrow_mut() = Some(made),
                    Err(error) => give_up(error),
                }
                say_begin(global, prio);
                begun(dir);
            };
            ready.run(control, &mut begin, &mut |event| {
                if let Some(folder) = folder.borrow_mut().as_mut() {
                    folder.take(event).unwrap_or_else(give_up);
                }
                lines.say(global, self.config, event);
                observer(event);
            })
        });
        let finish = drive::begun(finish)?;
        match unwritten.into_inner() {
            None => Ok(finish),
            Some(error) => Err(ExitError::new(
                Exit::Failed,
                format!("{}: {error}", prio.outdir.display()),
            )
            .into()),
        }
    }

    fn conclude(&self, global: &Global, ended: &Ended<'_>) -> anyhow::Result<Exit> {
        show(global, ended.dir)?;
        if let Some(reason) = ended.finish.and_then(|finish| finish.stopped.as_ref()) {
            out::note(format_args!("fathom: the run stopped: {reason}"));
        }
        Ok(ended.exit())
    }
}

fn show(global: &Global, dir: &Path) -> anyhow::Result<()> {
    let prio = outcome::read(dir)?;
    if global.json {
        return out::json(&fathom_report::prio::document(&prio));
    }
    say(global, "");
    out::text(fathom_report::prio::text(&prio, out::style(global.color)));
    Ok(())
}

fn say_begin(global: &Global, prio: &PrioReady) {
    let config = &prio.config;
    say(
        global,
        &format!(
            "Run on {}, ramp time: {}s, run time: {}s\n  Output directory: {}\n\n{}",
            prio.info.path.display(),
            config.load.ramptime,
            config.load.runtime,
            prio.outdir.display(),
            device::block(&prio.info, &prio.system)
        ),
    );
    let pages: Vec<_> = prio.pages.iter().collect();
    for text in device::limits_without_time(&config.workloads, &pages) {
        out::note(format_args!("- {text}"));
    }
}

/// What stays on the screen: on stdout, unless that is for a document.
fn say(global: &Global, text: &str) {
    match (global.quiet, global.json) {
        (true, _) => {}
        (false, false) => out::line(text),
        (false, true) => out::note(text),
    }
}

/// What is said when a workload begins, as cdl_bench does.
fn title(workload: &PrioWorkload) -> &'static str {
    match workload {
        PrioWorkload::Baseline => "Running baseline workload",
        PrioWorkload::Ncq(_) => "Running NCQ priority workload",
        PrioWorkload::Single { .. } => "Running CDL workload, single limit",
        PrioWorkload::Multi(_) => "Running CDL workload, multiple limits",
    }
}

/// Lines as cdl_bench has them, which stay.
#[derive(Default)]
struct Lines {
    series: String,
    in_step: bool,
}

impl Lines {
    fn say(&mut self, global: &Global, config: &PrioConfig, event: &Event) {
        match event {
            Event::Step {
                point: Some(point), ..
            } => {
                if self.series != point.series {
                    self.series.clone_from(&point.series);
                    let mut workloads = config.workloads.iter();
                    let workload = workloads.find(|it| it.name() == point.series);
                    say(global, &format!("\n{}", workload.map_or("", title)));
                }
                let depth = point.x_value().unwrap_or(0);
                say(global, &format!("  QD={depth}..."));
                self.in_step = true;
            }
            Event::StepEnded { .. } => self.in_step = false,
            Event::Preparing { what } if !self.in_step => say(global, what),
            // What engines remark is in the record; the table has what matters of it.
            Event::Note { text } if text == PUT_BACK_FIRST => out::note(text),
            Event::StageEnded {
                end: StageEnd::Failed { reason },
                ..
            } => out::note(reason),
            Event::Failure(failure) => out::note(failure),
            _ => {}
        }
    }
}
