//! The engine that was asked for or chosen, ready to run jobs.

use std::path::Path;

use fathom_model::FailureKind;

use crate::EngineName;
use crate::choice::{self, Chosen, MissingCapability, NoEngine};
use fathom_engine::guard::GuardPlace;
use fathom_engine::{Engine, EngineError, Request};
use fathom_engine_fio::Fio;
use fathom_engine_fio::version::Program;
use fathom_engine_native::Native;
use fathom_engine_sim::Sim;

/// What runs the jobs.
#[derive(Debug)]
pub enum EngineHandle {
    /// fio.
    Fio(Fio),
    /// The engine inside Fathom.
    Native(Native),
    /// No engine: a simulation.
    Sim(Box<Sim>),
    /// The engine of another machine.
    Remote(Box<dyn Engine>),
}

impl EngineHandle {
    /// Chooses between fio and the native engine as [`choice::choose`] does, unless a
    /// simulation (`sim`) is asked for; `fio` says what this fio lacks for the jobs (not asked
    /// when no other engine would do), `native` what the other one lacks. With the native
    /// engine comes why it was not fio. Both do their work in processes of their
    /// own, which are this program once more: see [`fathom_engine::guard::entry`]
    /// and [`fathom_engine_native::entry`].
    ///
    /// # Errors
    /// The lacks of all engines that were asked for.
    pub fn choose(
        wish: EngineName,
        fio: Option<&Path>,
        fio_runs: impl FnOnce(&Program) -> Result<(), MissingCapability>,
        native_runs: impl FnOnce() -> Result<(), MissingCapability>,
        sim: impl FnOnce() -> Result<Self, NoEngine>,
    ) -> Result<(Self, Option<MissingCapability>), NoEngine> {
        if wish == EngineName::Sim {
            return Ok((sim()?, None));
        }
        if wish == EngineName::Auto && Program::is_named(fio) {
            // The user named this fio: do not fall back to another engine.
            let program = Program::find(fio).and_then(|program| program.version());
            program.map_err(|failure| NoEngine(vec![("fio", failure.into())]))?;
        }
        let mut found = None;
        let with_fio = || -> Result<(), MissingCapability> {
            let program = Program::find(fio)?;
            if wish == EngineName::Auto {
                fio_runs(&program)?;
            }
            found = Some(program);
            Ok(())
        };
        let (chosen, passed_over) = choice::choose(wish, with_fio, native_runs)?;
        let selected = match (chosen, found) {
            (Chosen::Fio, Some(program)) => Self::Fio(Fio::new(program, GuardPlace::Process)),
            _ => Self::Native(Native::in_own_process()),
        };
        Ok((selected, passed_over))
    }

    /// The simulation of the device that a file describes.
    ///
    /// # Errors
    /// When the file is wrong.
    pub fn simulation(device: Option<&Path>) -> Result<Self, NoEngine> {
        let sim = Sim::read(device);
        sim.map(|sim| Self::Sim(Box::new(sim))).map_err(|reason| {
            NoEngine(vec![(
                "sim",
                MissingCapability::new(FailureKind::BadOption, reason),
            )])
        })
    }

    /// As what runs.
    pub fn engine(&self) -> &dyn Engine {
        match self {
            Self::Fio(fio) => fio,
            Self::Native(native) => native,
            Self::Sim(sim) => sim.as_ref(),
            Self::Remote(engine) => engine.as_ref(),
        }
    }

    /// Whether nothing is measured, because there is no device.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Sim(_))
    }

    /// The command that it would execute here; empty when it executes none.
    ///
    /// # Errors
    /// When fio cannot be asked how.
    pub fn command(&self, request: &Request) -> Result<Vec<String>, EngineError> {
        match self {
            Self::Fio(fio) => fio.command(request),
            Self::Native(_) | Self::Sim(_) | Self::Remote(_) => Ok(Vec::new()),
        }
    }
}
