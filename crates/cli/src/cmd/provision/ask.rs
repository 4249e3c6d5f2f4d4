//! What the command line and the campaign ask for, put together.

use std::path::{Path, PathBuf};

use fathom_campaign::Folder;
use fathom_campaign::folder::{CONFIG, config_or_shipped};
use fathom_flow::RunOptions;
use fathom_flow::ledger::Ledgers;
use fathom_jobfile::variables::variable;
use fathom_kconfig::Config;
use fathom_model::Exit;
use fathom_prepare::precondition::PreconditionMethod;
use fathom_prepare::provision::{
    self, Provision, ProvisionDrive, ProvisionMethod, ProvisionOptions, Skipped, SteadyFor,
};
use fathom_prepare::settings::{Overrides, RunSettings, dut, settings};
use fathom_record::Entries;

use super::Args;
use crate::cmd::campaign::exit_error;
use crate::cmd::failed;
use crate::cmd::started::as_started;
use crate::cmd::{ExitError, Global, run_args};

/// What is to be done.
pub struct ProvisionRequest {
    /// The drives, and how.
    pub provision: Provision,
    /// Drives of the kind that are left alone.
    pub skipped: Vec<Skipped>,
}

/// Puts it together; nothing is touched.
pub fn asked(global: &Global, args: &Args) -> anyhow::Result<ProvisionRequest> {
    args.options.check().map_err(run_args::usage)?;
    match args.resume {
        true => resumed(global, args),
        false => Ok(new(global, args)?),
    }
}

fn usage(message: &str) -> ExitError {
    ExitError::new(Exit::Usage, message)
}

/// The folder of the records: below that of a campaign that was named.
fn runs_dir(global: &Global, args: &Args) -> PathBuf {
    match &args.campaign {
        Some(dir) => dir.join(&global.runs),
        None => global.runs.clone(),
    }
}

/// The campaign that was named, or the one in the current folder.
fn campaign(args: &Args) -> Result<Option<Folder>, ExitError> {
    if let Some(dir) = &args.campaign {
        return Folder::open(dir).map(Some).map_err(exit_error);
    }
    let here = Folder::open(Path::new(".")).ok();
    Ok(here.filter(|folder| folder.file(CONFIG).is_file()))
}

fn overrides(args: &Args) -> Overrides {
    args.budget.over(Overrides {
        options: args.options.clone(),
        ..Overrides::default()
    })
}

fn new(global: &Global, args: &Args) -> Result<ProvisionRequest, ExitError> {
    let folder = campaign(args)?;
    let config = config_or_shipped(folder.as_ref(), &variable).map_err(exit_error)?;
    let settings = settings(&config, &overrides(args)).map_err(failed)?;
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let logs = folder
        .as_ref()
        .filter(|_| settings.progress_logs)
        .map(|folder| folder.path().to_owned());
    let how = ProvisionMethod {
        workload: match args.workload {
            Some(load) => load,
            None if config.is_on("PROVISION_SC_SEQUENTIAL") && folder.is_some() => {
                SteadyFor::Sequential
            }
            None => SteadyFor::Random,
        },
        method: match args.method {
            Some(method) => method,
            None if config.is_on("PRECONDITION_SNIA_IOPS") => PreconditionMethod::Snia,
            None => PreconditionMethod::SantaClara,
        },
        purge: args.purge.clone(),
        no_purge: args.no_purge,
        force: args.force,
        options: RunOptions {
            engine: settings.options.engine,
            ..args.options.kept()
        },
        campaign: folder.as_ref().map(|folder| absolute(folder.path())),
        logs: args.logs.clone().or(logs).map(|logs| absolute(&logs)),
    };
    let (drives, skipped) = drives(args, &config, folder.is_some(), &how)?;
    let options = options(global, args, settings);
    Ok(ProvisionRequest {
        provision: Provision::new(how, drives, config, options),
        skipped,
    })
}

fn options(global: &Global, args: &Args, settings: RunSettings) -> ProvisionOptions {
    ProvisionOptions {
        runs_dir: runs_dir(global, args),
        settings,
        ledgers: Ledgers::of_user(),
    }
}

fn drives(
    args: &Args,
    config: &Config,
    in_campaign: bool,
    how: &ProvisionMethod,
) -> Result<(Vec<ProvisionDrive>, Vec<Skipped>), ExitError> {
    let simulated = how.options.is_simulated();
    if let Some(kind) = args.all {
        let found = provision::all(kind.into()).map_err(failed)?;
        return Ok((found.drives, found.skipped));
    }
    let mut paths = args.devices.clone();
    if paths.is_empty() && in_campaign {
        paths = vec![dut(config, &variable)];
    }
    if paths.is_empty() {
        return Err(usage(
            "no drive is named\n  to do: name drives, or --all nvme, scsi or ata",
        ));
    }
    let drives = match simulated {
        true => Ok(paths
            .iter()
            .map(|path| ProvisionDrive::simulated(path))
            .collect()),
        false => provision::named(&paths),
    };
    Ok((drives.map_err(failed)?, Vec::new()))
}

/// The last batch, as it was asked for then.
fn resumed(global: &Global, args: &Args) -> anyhow::Result<ProvisionRequest> {
    let mut batch = provision::last(&runs_dir(global, args)).map_err(failed)?;
    if let Some((dir, _)) = batch.records.iter().flatten().next() {
        as_started(&Entries::open(dir)?.header);
    }
    if let Some(other) = args
        .devices
        .iter()
        .find(|path| !batch.facts.drives.contains(path))
    {
        let what = format!(
            "{} is not among the drives of the last start",
            other.display()
        );
        return Err(usage(&what).into());
    }
    let folder = match &batch.facts.how.campaign {
        Some(dir) => Some(Folder::open(dir).map_err(exit_error)?),
        None => None,
    };
    let config = config_or_shipped(folder.as_ref(), &variable).map_err(exit_error)?;
    let told = &mut batch.facts.how.options;
    told.again(&args.options).map_err(failed)?;
    told.check().map_err(run_args::usage)?;
    let overrides = args.budget.over(Overrides {
        options: told.clone(),
        ..Overrides::default()
    });
    batch.facts.how.options = told.kept();
    let settings = settings(&config, &overrides).map_err(failed)?;
    let at = match batch.facts.how.options.is_simulated() {
        true => ProvisionDrive::simulated,
        // What is done may be gone by now.
        false => ProvisionDrive::at,
    };
    let drives = batch.facts.drives.iter().map(|path| at(path)).collect();
    let options = options(global, args, settings);
    let mut provision = Provision::resumed(batch, drives, config, options);
    if !args.devices.is_empty() {
        provision.restrict(&args.devices);
    }
    Ok(ProvisionRequest {
        provision,
        skipped: Vec::new(),
    })
}
