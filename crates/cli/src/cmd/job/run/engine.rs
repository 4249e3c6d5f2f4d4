//! The engine of a run.

use fathom_engine::choice::{self, Chosen, Lack, NoEngine, Wish};
use fathom_engine::fio::Fio;
use fathom_engine::fio::guard::Place;
use fathom_engine::fio::version::Program;
use fathom_engine::native::Native;
use fathom_engine::{Engine, Request};
use fathom_model::{Exit, FailureKind};

use super::{Args, Plan};
use crate::cmd::ExitError;

/// What runs the jobs.
pub enum Runner {
    Fio(Fio),
    Native(Native),
}

impl Runner {
    /// The engine that the command line asks for; with the native one, why fio
    /// was passed over.
    pub fn choose(args: &Args, plan: &Plan) -> anyhow::Result<(Self, Option<String>)> {
        let wish = Wish::from(args.engine);
        let mut found = None;
        let fio = || -> Result<(), Lack> {
            let program = Program::find(args.fio.as_deref())?;
            if wish == Wish::Auto {
                let sections = plan.sections.iter().map(|name| format!("--section={name}"));
                let extra: Vec<String> = sections.chain(plan.passed.iter().cloned()).collect();
                plan.all(|step| choice::fio_runs(&program, &step.jobs, &step.text, &extra))?;
            }
            found = Some(program);
            Ok(())
        };
        let native = || -> Result<(), Lack> {
            if !plan.passed.is_empty() {
                let options = plan.passed.join(" ");
                let what = format!("{options}: this is for fio's command line, which it has not");
                return Err(Lack::new(FailureKind::BadOption, what));
            }
            plan.all(|step| choice::native_runs(&step.jobs))
        };
        let (chosen, passed_over) = choice::choose(wish, fio, native).map_err(refusal)?;
        let runner = match (chosen, found) {
            (Chosen::Fio, Some(program)) => Self::Fio(Fio::new(program, Place::Process)),
            _ => Self::Native(Native::apart()),
        };
        let note = passed_over.map(|lack| format!("{lack}; the native engine runs the jobs"));
        Ok((runner, note))
    }

    /// As what runs.
    pub fn engine(&self) -> &dyn Engine {
        match self {
            Self::Fio(fio) => fio,
            Self::Native(native) => native,
        }
    }

    /// The command that it would execute; empty when it executes none.
    pub fn command(&self, request: &Request) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Fio(fio) => Ok(fio.command(request)?),
            Self::Native(_) => Ok(Vec::new()),
        }
    }
}

fn refusal(none: NoEngine) -> ExitError {
    let exit = match none.kind() {
        FailureKind::FioMissing | FailureKind::EngineMissing => Exit::Missing,
        _ => Exit::Input,
    };
    ExitError {
        exit,
        message: format!("{none}\n  to do: {}", none.kind().advice()),
    }
}
