//! The engine fio: started as a process, watched while it runs, read at its end.
//!
//! - [`Fio`]: runs a job file; [`fathom_engine::guard`]: nothing of fio outlives Fathom
//! - [`client`]: the fio servers of other machines instead of a fio here
//! - [`parse_only`]: whether fio takes job files, asked without running them
//! - [`version`]: which fio is here; [`inventory`]: its engines and options

use std::borrow::Cow;

use fathom_engine::guard::GuardPlace;
use fathom_engine::{Control, Engine, EngineError, Outcome, Request, Sink};

mod arrivals;
pub mod client;
#[cfg(target_os = "linux")]
mod held_job;
#[cfg(not(target_os = "linux"))]
#[path = "held_job_elsewhere.rs"]
mod held_job;
pub mod inventory;
mod layout;
pub mod parse_only;
mod run;
pub mod version;

/// The engine.
#[derive(Debug, Clone)]
pub struct Fio {
    program: version::Program,
    guard: GuardPlace,
    servers: Option<client::Servers>,
}

impl Fio {
    /// The engine with this fio; where its guard lives decides what is promised
    /// after a kill of Fathom ([`GuardPlace`]).
    pub fn new(program: version::Program, guard: GuardPlace) -> Self {
        Self {
            program,
            guard,
            servers: None,
        }
    }

    /// The same engine, whose jobs these servers run.
    #[must_use]
    pub fn on(self, servers: client::Servers) -> Self {
        Self {
            servers: Some(servers),
            ..self
        }
    }

    /// The fio it runs.
    pub fn program(&self) -> &version::Program {
        &self.program
    }

    /// The command that [`Engine::run`] would execute.
    ///
    /// # Errors
    /// When the current folder, which relative paths are meant from, is gone.
    pub fn command(&self, request: &Request) -> Result<Vec<String>, EngineError> {
        run::command(&self.of(request), request)
    }

    /// The same engine with the fio that a request names.
    fn of(&self, request: &Request) -> Cow<'_, Self> {
        match &request.fio {
            None => Cow::Borrowed(self),
            Some(path) => Cow::Owned(Self {
                program: version::Program { path: path.clone() },
                ..self.clone()
            }),
        }
    }
}

impl Engine for Fio {
    fn name(&self) -> &'static str {
        "fio"
    }

    fn run(
        &self,
        request: &Request,
        control: &Control,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, EngineError> {
        run::run(&self.of(request), request, control, sink)
    }
}
