//! `fathom resume`: goes on with a run of any command.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use fathom_campaign::run;
use fathom_flow::past;
use fathom_flow::plan_log::Head;
use fathom_model::Exit;
use fathom_prepare::provision::last as last_batch;
use fathom_record::{Entries, Header};

use super::campaign::Flags;
use super::elsewhere::{HostErrand, OtherHost};
use super::failed;
use super::kinds;
use super::planned::{self, RunRequest, Start};
use super::started::{as_started, cannot};
use super::{Cli, Command, ExitError, Global, provision, purge, run_args, show, snia};

/// Go on with a run that was stopped or killed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A campaign goes on as fathom run does, with the --only, --repeat, --order, --engine, --no-guard and
--max-errors of the last start unless others are given, and on the --hosts of the last start. Every
other run goes on with the plan in its record: steps that have ended are not done again. Devices are
checked again, and must be named again. A purge is done anew. With --host the run goes on there
when the connection is lost; Ctrl-C stops it.

Examples:
  fathom resume                        the campaign of this folder, else the last run
  fathom resume 1307                   a run of any command, by a part of its name
  fathom resume --destroy nvme-ACME_1234
  fathom resume --retry-failed         points that failed, too
  fathom resume --host root@lab1 -C /srv/nvme0")]
pub struct Args {
    /// The run: a folder, its name or a part of it [default: the campaign's last, else the last]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    host: OtherHost,
}

impl Args {
    /// Whether another host goes on with it.
    pub fn is_elsewhere(&self) -> bool {
        self.host.is_given()
    }
}

/// Goes on with it.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    if let Some(exit) = args.host.run(global, HostErrand::Run)? {
        return Ok(exit);
    }
    let mut flags = args.flags.clone();
    let given = &global.given;
    let runs_dir = flags.request.which.runs_dir(global);
    if args.run.is_none()
        && is_campaign(&flags.request.which.dir)
        && let Some(dir) = run::current(&flags.request.which.dir, &runs_dir).map_err(failed)?
    {
        as_started(&Entries::open(&dir)?.header);
        return super::run::resume(global, flags, Some(&dir));
    }
    let within = Global {
        runs: runs_dir,
        ..global.clone()
    };
    let dir = show::find_only(&within, args.run.as_deref())?;
    // Also where it is another folder than that of --runs.
    let within = Global {
        runs: dir.parent().unwrap_or(&dir).to_owned(),
        ..within
    };
    let header = Entries::open(&dir)?.header;
    as_started(&header);
    let head = Head::read(&dir).map_err(failed)?;
    match header.command.as_str() {
        past::COMMAND => {
            if let Some(head) = head {
                must_be_last(
                    &dir,
                    run::current(&head.folder, &within.runs).map_err(failed)?,
                )?;
                flags.request.which.dir = head.folder;
            }
            super::run::resume(&absolute(&within), flags, Some(&dir))
        }
        "provision" => {
            given.must_be_of("resume provision", "going on with provisioning")?;
            let batch = last_batch(&within.runs).map_err(failed)?;
            let mut drives = batch.records.iter().flatten();
            let is_of_it = drives.any(|(it, _)| it.file_name() == dir.file_name());
            must_be_last(&dir, is_of_it.then(|| dir.clone()))?;
            provision_on(&within, flags)
        }
        command => {
            let kind = match command.split(' ').next() {
                Some("quick") => ("resume quick", "going on with a quick series"),
                Some("prio") => ("resume prio", "going on with priorities"),
                Some(purge::COMMAND) => ("resume purge", "going on with a purge"),
                Some("snia") => ("resume snia", "going on with a test"),
                _ => ("resume job run", "going on with a plan"),
            };
            given.must_be_of(kind.0, kind.1)?;
            go_on(&within, &flags, dir, &header)
        }
    }
}

/// Goes on with the plan in this record.
///
/// # Errors
/// That it keeps none, or why it does not go on.
pub fn go_on(
    global: &Global,
    flags: &Flags,
    dir: PathBuf,
    header: &Header,
) -> anyhow::Result<Exit> {
    let Some(mut plan) = kept_plan(&dir, header)? else {
        return Err(cannot(&dir, header));
    };
    again(plan.as_mut(), flags)?;
    let start = Start {
        record: Some(dir),
        dry_run: flags.dry_run,
    };
    plan.run(global, start)
}

/// Makes a request that of another start, with what was given now.
fn again(request: &mut dyn RunRequest, flags: &Flags) -> anyhow::Result<()> {
    planned::must_be_on(request, &flags.request.hosts)?;
    let options = request.options();
    options.again(&flags.request.options).map_err(failed)?;
    options.check_one().map_err(run_args::usage)?;
    request.confirm_as_written();
    Ok(())
}

/// Of a campaign, and of drives that are provisioned, only what was started last goes on.
fn must_be_last(dir: &Path, last: Option<PathBuf>) -> anyhow::Result<()> {
    if last.is_some_and(|last| last.file_name() == dir.file_name()) {
        return Ok(());
    }
    let what = format!(
        "{}: it was started again since, and only the last start goes on\n  to do: fathom resume without the name of a run",
        dir.display()
    );
    Err(ExitError::new(Exit::Refused, what).into())
}

/// The plan that a record keeps, if it keeps one.
fn kept_plan(dir: &Path, header: &Header) -> anyhow::Result<Option<Box<dyn RunRequest>>> {
    let kept = Head::read(dir).map_err(failed)?.map(|head| head.flags);
    let Some(kept) = kept.filter(|kept| !kept.is_null()) else {
        return Ok(of_earlier_version(header));
    };
    let plan = kinds::read(kept).map_err(|error| {
        let dir = dir.display();
        let what = format!(
            "{dir}: the plan in its record cannot be read: {error}\n  to do: go on with the Fathom that wrote it, or start it again"
        );
        ExitError::new(Exit::Input, what)
    })?;
    Ok(Some(plan))
}

/// What versions keep in the header that had no plan for it.
fn of_earlier_version(header: &Header) -> Option<Box<dyn RunRequest>> {
    match snia::of_record(header) {
        Some(test) => Some(Box::new(test)),
        None => Some(Box::new(purge::of_record(header)?)),
    }
}

/// Relative to this folder, wherever the campaign's is.
fn absolute(global: &Global) -> Global {
    let runs = std::path::absolute(&global.runs);
    Global {
        runs: runs.unwrap_or_else(|_| global.runs.clone()),
        ..global.clone()
    }
}

fn is_campaign(dir: &Path) -> bool {
    fathom_campaign::Folder::open(dir).is_ok()
}

/// The drives of the last start, together.
fn provision_on(global: &Global, flags: Flags) -> anyhow::Result<Exit> {
    let cli = Cli::try_parse_from(["fathom", "provision", "--resume"])?;
    match cli.command {
        Command::Provision(args) => provision::run(global, &args.with(flags)),
        _ => Ok(Exit::Usage),
    }
}
