//! `fathom run` and `fathom resume`: run a campaign.

use std::path::{Path, PathBuf};

use fathom_campaign::plan::ResolvedCampaign;
use fathom_campaign::run::{self, CampaignOptions, ReadyCampaign, RunStart};
use fathom_engine::Control;
use fathom_flow::error::RunError;
use fathom_flow::ledger::Ledgers;
use fathom_flow::options::overlaid;
use fathom_flow::plan_log::Head;
use fathom_flow::progress::Progress;
use fathom_flow::{Ending, Finish, RunOptions};
use fathom_model::Exit;
use fathom_prepare::settings::Overrides;
use serde_json::Value;

use super::campaign::{CampaignArgs, CampaignRequest, Flags, tell_notes};
use super::drive::{Driven, Ended, Prepared, drive};
use super::hosts::{HostArgs, HostVariables, usage};
use super::planned::Start;
use super::planned::{RequestKind, RunRequest};
use super::screen::{Observer, OnStart, summary};
use super::{ExitError, Global, failed, run_args, started, study};
use crate::out;

mod dry;
mod hosts;

/// Run a campaign, or go on with it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Goes on with the campaign's current record, the last one of this folder, and runs what has not been
measured there with the same job file on the same device. Ctrl-C ends the point that runs, keeps
what was measured and leaves the rest for fathom resume; so does a kill or a power cut. A point that
fails is a row with its reason, and the campaign goes on. The logs below logs/ are those of
fio-tests.

Examples:
  fathom run                           what is left, or all of it
  fathom run --dry-run                 every step and its command; nothing is run
  fathom run --destroy nvme-ACME_1234  writes to a device: name it
  fathom run --only randwrite          only these points
  fathom run --repeat 5                five measurements of each point
  fathom run --hosts bench1,bench2,root@nas
                                       on all of them at once, each point together
  fathom run --max-time 8h             no point begins that would end later
  fathom run --max-written 20T         it ends once it has written so much
  fathom run --again                   from the start, in a new record
  fathom run study.toml                a plan file: see docs/STUDIES.md")]
pub struct Args {
    /// A plan file instead of the campaign of a folder
    #[arg(value_name = "FILE.toml")]
    file: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    /// Start a new record instead of going on with the last
    #[arg(long)]
    again: bool,
}

impl RequestKind for CampaignRequest {
    const NAME: &'static str = "campaign";
}

impl RunRequest for CampaignRequest {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    fn run(self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        // The folder of a campaign has its record.
        Self::run(*self, global, start.dry_run)
    }

    fn be_on(&mut self, _host: &str, folder: &Path) -> anyhow::Result<()> {
        self.which.dir = folder.to_owned();
        Ok(())
    }
}

impl CampaignRequest {
    /// What a record keeps of it.
    fn kept(&self) -> Self {
        Self {
            options: self.options.kept(),
            retry_failed: false,
            ..self.clone()
        }
    }

    /// Takes over what was not given from the last start.
    fn fill(&mut self, kept: Self) -> Result<(), RunError> {
        let mut options = kept.options.clone();
        options.again(&self.options)?;
        let whole = overlaid(&kept, self)?;
        *self = Self {
            which: CampaignArgs {
                dir: self.which.dir.clone(),
                ..whole.which
            },
            options,
            hosts: HostArgs {
                // The host file is read again.
                variables: match self.hosts.is_given() {
                    true => HostVariables::default(),
                    false => whole.hosts.variables,
                },
                ..whole.hosts
            },
            ..whole
        };
        Ok(())
    }

    /// The same for one of several machines, in the folder that it is sent. Every series is
    /// measured to its end: what the guard of one machine left out would be missing in the sum.
    fn sent(&self, plan: &ResolvedCampaign) -> Self {
        Self {
            hosts: HostArgs::default(),
            no_guard: true,
            dut: Some(plan.dut.clone()),
            ..self.clone()
        }
    }

    /// Runs it on a machine that another Fathom drives.
    fn run(self, global: &Global, dry_run: bool) -> anyhow::Result<Exit> {
        let flags = Flags {
            request: self,
            dry_run,
            ..Flags::default()
        };
        go(global, &flags, RunStart::Run)
    }

    fn overrides(&self) -> Overrides {
        self.budget.over(Overrides {
            repeat: self.repeat,
            order: self.order,
            interval: self.interval,
            point_limit: self.point_limit,
            options: self.options.clone(),
            dut: self.dut.clone(),
            guard: self.no_guard.then_some(false),
            ..Overrides::default()
        })
    }
}

impl Flags {
    /// Of a run that goes on.
    pub fn of(options: RunOptions, dry_run: bool) -> Self {
        Self {
            request: CampaignRequest {
                options,
                ..CampaignRequest::default()
            },
            dry_run,
            ..Self::default()
        }
    }
}

/// Runs `fathom run`.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    if let Some(file) = &args.file {
        global.given.must_be_of("run FILE.toml", "a plan file")?;
        return study::run(global, file, &args.flags);
    }
    let begin = if args.again {
        RunStart::Again
    } else {
        RunStart::Run
    };
    go(global, &args.flags, begin)
}

/// Goes on with a campaign, whose current record is this one.
pub fn resume(global: &Global, mut flags: Flags, record: Option<&Path>) -> anyhow::Result<Exit> {
    if let Some(dir) = record {
        match Head::read(dir).map_err(failed)? {
            Some(head) => {
                let kept = kept_request(dir, head.flags)?;
                flags.request.fill(kept).map_err(failed)?;
            }
            None => started::must_have_begun(dir)?,
        }
    }
    go(global, &flags, RunStart::Resume)
}

/// The flags of the last start; of an older Fathom there may be none.
fn kept_request(dir: &Path, kept: Value) -> anyhow::Result<CampaignRequest> {
    if kept.is_null() {
        return Ok(CampaignRequest::default());
    }
    serde_json::from_value(kept).map_err(|error| {
        let dir = dir.display();
        let what = format!(
            "{dir}: the options of its last start cannot be read: {error}\n  to do: go on with the Fathom that wrote it, or fathom run --again with the options that are wanted"
        );
        ExitError::new(Exit::Input, what).into()
    })
}

fn go(global: &Global, flags: &Flags, begin: RunStart) -> anyhow::Result<Exit> {
    let request = &flags.request;
    request.options.check_one().map_err(run_args::usage)?;
    if request.hosts.is_given() {
        return hosts::go(global, flags, begin);
    }
    if !flags.var.is_empty() {
        return Err(usage(
            "--var is for --hosts\n  to do: on this machine set the variable in the environment",
        ));
    }
    let plan = request.which.plan(&request.overrides())?;
    let options = CampaignOptions {
        begin,
        retry_failed: request.retry_failed,
        partial: !request.which.only.is_empty(),
        flags: serde_json::to_value(request.kept())?,
        ledgers: Ledgers::of_user(),
    };
    let runs_dir = request.which.runs_dir(global);
    let ready = match flags.dry_run {
        true => run::look(&plan, &runs_dir, options),
        false => run::ready(&plan, &runs_dir, options),
    };
    let ready = ready.map_err(failed)?;
    let driven = DrivenCampaign {
        failed: ready.failed(),
    };
    drive(global, ready, flags.dry_run, &driven)
}

impl Prepared for ReadyCampaign<'_> {
    fn record(&self) -> Option<&Path> {
        ReadyCampaign::record(self)
    }

    fn is_done(&self) -> bool {
        ReadyCampaign::is_done(self)
    }

    fn ending(&self) -> Option<Ending> {
        match self.not_steady() {
            Some(reason) => Some(Ending::NotAttained(reason)),
            None => self.is_done().then_some(Ending::Complete),
        }
    }

    fn show(&self, global: &Global) -> anyhow::Result<Exit> {
        dry::run(global, self)
    }

    fn run(
        self,
        control: &Control,
        begun: OnStart<'_>,
        observer: Observer<'_>,
    ) -> Result<Finish, RunError> {
        ReadyCampaign::run(self, control, begun, observer)
    }
}

/// A campaign with its summary.
struct DrivenCampaign {
    /// Points of earlier starts that stay failed.
    failed: usize,
}

impl Driven<ReadyCampaign<'_>> for DrivenCampaign {
    fn is_over(&self, ready: &ReadyCampaign<'_>) -> bool {
        ready.ending().is_some()
    }

    fn nothing_left(&self, global: &Global, ready: &ReadyCampaign<'_>, dir: &Path) {
        if global.quiet || ready.not_steady().is_some() {
            return;
        }
        let again = "--again starts a new record";
        let hint = match self.failed {
            0 => again.to_owned(),
            n => format!("{n} failed: --retry-failed tries them again; {again}"),
        };
        out::note(format_args!(
            "Nothing is left to do in {} ({hint}).",
            dir.display()
        ));
    }

    fn plan(&self, global: &Global, ready: &ReadyCampaign<'_>) -> anyhow::Result<()> {
        if !global.quiet {
            tell_notes(ready.notes());
            tell_notes(&ready.spending());
        }
        Ok(())
    }

    fn conclude(&self, global: &Global, ended: &Ended<'_>) -> anyhow::Result<Exit> {
        show(global, ended.dir)?;
        // It ran, and what was asked for, points of a steady device, is not there.
        if let Some(Ending::NotAttained(reason)) = ended.ending {
            let more = match ended.finish {
                None => "; --again starts over, in a new record",
                Some(_) => "",
            };
            tell_not_steady(reason, more);
        }
        let spent = ended.finish.and_then(|finish| finish.spent.as_ref());
        if let Some(spent) = spent {
            let hint = "fathom resume with a higher limit continues";
            tell_notes(&[format!("{spent} ({hint})")]);
        }
        Ok(match ended.exit() {
            Exit::Success if matches!(ended.ending, Some(Ending::NotAttained(_))) => Exit::Failed,
            Exit::Success if ended.finish.is_none() && self.failed > 0 => Exit::Failed,
            Exit::Interrupted if !ended.by_hand => Exit::Failed,
            exit => exit,
        })
    }
}

/// That points were left out because the device is not steady, and what to do.
fn tell_not_steady(reason: &str, more: &str) {
    out::note(format_args!(
        "{reason}\n  to do: SANTA_CLARA_ROUND_LIMIT for more time, or \
         SANTA_CLARA_ROUND_LIMIT_SOFT to measure anyway{more}"
    ));
}

/// The document of the run, or its summary.
fn show(global: &Global, dir: &Path) -> anyhow::Result<()> {
    if global.json {
        let mut doc = fathom_document::read(dir)?;
        fathom_document::drop_histograms(&mut doc);
        return out::json(&doc);
    }
    let progress = Progress::read(dir).map_err(failed)?;
    out::text(summary::text(&progress, out::style(global.color)));
    Ok(())
}
