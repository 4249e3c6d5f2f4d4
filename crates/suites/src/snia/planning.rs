//! The tests of a campaign.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fathom_analysis::snia::{DriveClass, Setup, SniaTest};
use fathom_device::Sys;
use fathom_device::command::KernelDevices;
use fathom_device::purge::PurgeSettings;
use fathom_flow::error::RunError;
use fathom_kconfig::Config;
use fathom_model::{Event, StageKind};
use fathom_prepare::acts::Purging;
use fathom_prepare::logs::Logs;
use fathom_prepare::purge;

use super::{PurgeAndCache, Snia, SniaChoices, from_config, write_cache};

/// What a configuration asks for.
#[derive(Debug, Clone, Default)]
pub struct SniaConfig {
    /// The tests, in the order of the specification.
    pub tests: Vec<(SniaTest, DriveClass, SniaChoices)>,
    /// fio's I/O engine.
    pub ioengine: String,
    /// How the device is purged; `None`: the configuration has it off.
    pub purge: Option<PurgeSettings>,
}

/// Where they are run.
pub struct Place<'p> {
    /// The device.
    pub dut: &'p Path,
    /// Its size in bytes.
    pub capacity_bytes: u64,
    /// Its logical blocks in bytes.
    pub logical_block_bytes: u64,
    /// Whether it is simulated: nothing is asked of it then.
    pub simulated: bool,
    /// The words that name what may be destroyed.
    pub destroy: &'p [String],
    /// The folder of progress logs.
    pub logs: Option<PathBuf>,
}

impl SniaConfig {
    /// What the configuration asks for.
    ///
    /// # Errors
    /// Values that cannot be used.
    pub fn of(config: &Config) -> Result<Self, RunError> {
        Ok(Self {
            tests: from_config(config)?,
            ioengine: config.get("DUT_IOENGINE").unwrap_or("libaio").to_owned(),
            purge: purge::wanted(config)?,
        })
    }

    /// Whether there is any.
    pub fn is_something(&self) -> bool {
        !self.tests.is_empty()
    }

    /// The tests as they are run.
    ///
    /// # Errors
    /// A sentence about the first value that cannot be on this device.
    pub fn scripts(&self, place: &Place) -> Result<Vec<Snia>, String> {
        let tests = self.tests.iter();
        tests
            .map(|(test, class, wanted)| {
                let mut setup = wanted.setup(*test, *class, place.capacity_bytes)?;
                setup.fit_blocks(place.logical_block_bytes);
                let cache = setup.write_cache.wanted.filter(|_| !place.simulated);
                setup.write_cache = match place.simulated {
                    true => fathom_analysis::snia::CacheSetting::default(),
                    false => write_cache(&Sys::live(), &KernelDevices, place.dut, cache),
                };
                Ok(self.script(setup, place))
            })
            .collect()
    }

    fn script(&self, setup: Setup, place: &Place) -> Snia {
        let reason = format!("the SNIA {} test begins with it", setup.test.name());
        let want = self.purge.clone().unwrap_or_default();
        let start = PurgeAndCache {
            purging: Purging {
                logs: place.logs.clone(),
                ..Purging::new(place.dut, want, place.destroy, &reason)
            },
            no_purge: match self.purge {
                Some(_) => None,
                None => Some("PURGING is off in the configuration".to_owned()),
            },
            cache: setup.write_cache.wanted,
        };
        Snia {
            setup,
            dut: place.dut.to_owned(),
            ioengine: self.ioengine.clone(),
            start: Rc::new(start),
        }
    }
}

/// The progress log of a test, in the form of fio-tests.
#[derive(Debug)]
pub struct TestLog {
    logs: Logs,
    /// The test.
    pub test: SniaTest,
    rounds: bool,
}

impl TestLog {
    /// A test begins.
    pub fn begin(logs: Logs, test: SniaTest) -> io::Result<Self> {
        let log = Self {
            logs,
            test,
            rounds: false,
        };
        log.line("Start SNIA test", &[])?;
        Ok(log)
    }

    /// It is over.
    pub fn finish(mut self, came: &str) -> io::Result<()> {
        self.end_rounds()?;
        self.line("Finished SNIA test", &[came])
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Stage { stage } => {
                if stage.kind == StageKind::Round && !self.rounds {
                    self.rounds = true;
                    return self.line("Start SNIA rounds", &[]);
                }
                if stage.kind != StageKind::Round {
                    self.end_rounds()?;
                }
                match stage.kind {
                    StageKind::Purge => self.line("Purge start", &[]),
                    _ => Ok(()),
                }
            }
            Event::StageEnded { id, .. } if id.ends_with("/purge") => {
                self.line("Purge finished", &[])
            }
            _ => Ok(()),
        }
    }

    fn end_rounds(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.rounds) {
            true => self.line("Finished SNIA rounds", &[]),
            false => Ok(()),
        }
    }

    fn line(&self, action: &str, details: &[&str]) -> io::Result<()> {
        let log = format!("snia/{}", self.test.name());
        self.logs.line(&log, action, details)
    }
}
