//! A test as somebody asks for it, and its script on a device.

use std::path::Path;
use std::rc::Rc;

use fathom_analysis::snia::{CacheSetting, DriveClass, Setup, SniaTest};
use fathom_device::Sys;
use fathom_device::command::KernelDevices;
use fathom_device::purge::{PurgeMethods, PurgeSettings};
use fathom_engine_sim::Sim;
use fathom_flow::error::RunError;
use fathom_model::environment::BlockDevice;
use fathom_prepare::acts::Purging;
use serde::{Deserialize, Serialize};

use super::{PurgeAndCache, Snia, SniaChoices, write_cache};

/// A test after SNIA's specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SniaAsk {
    /// The test.
    pub test: SniaTest,
    /// The class of drive.
    pub class: DriveClass,
    /// What is otherwise than in the specification.
    pub wanted: SniaChoices,
    /// How it is run.
    #[serde(flatten)]
    pub how: SniaHow,
}

/// How a test is run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[command(next_help_heading = "How it is run")]
pub struct SniaHow {
    /// Which way to purge it: auto, nvme-format, blkdiscard, overwrite, …
    #[arg(long, value_name = "METHOD", value_parser = method, conflicts_with = "no_purge")]
    pub purge: Option<String>,
    /// Do not purge it: the figures are not those of the specification then
    #[arg(long)]
    pub no_purge: bool,
    /// Leave the drive's write cache as it is
    #[arg(long)]
    pub keep_cache: bool,
    /// The ioengine of the jobs, in fio's words
    #[arg(long, value_name = "NAME", default_value = "libaio")]
    pub ioengine: String,
}

/// The name of a way to purge, as it was written.
///
/// # Errors
/// That there is none of this name.
pub fn method(text: &str) -> Result<String, String> {
    text.parse::<PurgeMethods>().map(|_| text.to_owned())
}

impl Snia {
    /// The test that is asked for, on this device as it is. `simulated`: on one that
    /// this file describes, or a healthy one.
    ///
    /// # Errors
    /// A device that is not there, a wish that cannot be.
    pub fn on(
        ask: &SniaAsk,
        device: &Path,
        simulated: Option<Option<&Path>>,
        destroy: &[String],
    ) -> Result<Self, RunError> {
        let (capacity_bytes, logical_block_bytes) = match simulated {
            Some(sim) => (Sim::read(sim).map_err(RunError::Input)?.capacity_bytes(), 1),
            None => real(device)?,
        };
        let setup = ask.wanted.setup(ask.test, ask.class, capacity_bytes);
        let mut setup = setup.map_err(RunError::Input)?;
        setup.fit_blocks(logical_block_bytes);
        let cache = setup.write_cache.wanted;
        let cache = cache.filter(|_| !ask.how.keep_cache && simulated.is_none());
        setup.write_cache = match simulated {
            Some(_) => CacheSetting::default(),
            None => write_cache(&Sys::live(), &KernelDevices, device, cache),
        };
        Self::of_setup(setup, ask, device, destroy)
    }

    /// The test with a setup that was made before.
    ///
    /// # Errors
    /// A way to purge that there is not.
    pub fn of_setup(
        setup: Setup,
        ask: &SniaAsk,
        device: &Path,
        destroy: &[String],
    ) -> Result<Self, RunError> {
        let named = ask.how.purge.as_ref().map(|name| name.parse());
        let want = PurgeSettings {
            choice: named
                .transpose()
                .map_err(RunError::Input)?
                .unwrap_or_default(),
            ..PurgeSettings::default()
        };
        let reason = format!(
            "fathom snia {} begins on a purged device",
            setup.test.name()
        );
        let start = PurgeAndCache {
            purging: Purging::new(device, want, destroy, &reason),
            no_purge: ask.how.no_purge.then(|| "--no-purge".to_owned()),
            cache: setup.write_cache.wanted,
        };
        Ok(Self {
            setup,
            dut: device.to_owned(),
            ioengine: ask.how.ioengine.clone(),
            start: Rc::new(start),
        })
    }
}

/// The size of a device and of its blocks, in bytes.
fn real(device: &Path) -> Result<(u64, u64), RunError> {
    let environment = fathom_device::environment(&[device.to_owned()]);
    let mut targets = environment.targets.into_iter();
    let found = targets.find_map(|target| target.device).ok_or_else(|| {
        RunError::Missing(format!(
            "{} is no block device; only whole drives are brought into steady state\n  \
             to do: name a device (lsblk)",
            device.display()
        ))
    })?;
    Ok((capacity(&found), u64::from(found.logical_block_bytes)))
}

/// The size of what is measured: of a partition its own.
fn capacity(device: &BlockDevice) -> u64 {
    let partition = device.partition.as_ref();
    partition.map_or(device.capacity_bytes, |partition| partition.size_bytes)
}
