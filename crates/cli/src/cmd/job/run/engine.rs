//! The engine of a run.

use fathom_engine::choice::{self, Lack, NoEngine};
use fathom_engine::fio::Fio;
use fathom_engine::fio::client::Servers;
use fathom_engine::fio::guard::Place;
use fathom_engine::fio::version::Program;
use fathom_engine::select::Selected;
use fathom_engine::sim::Sim;
use fathom_model::{Exit, FailureKind};

use super::{Args, Plan};
use crate::cmd::ExitError;

/// The engine that the command line asks for; with the native one, why fio was
/// passed over.
pub fn choose(
    args: &Args,
    plan: &Plan,
    servers: Option<Servers>,
) -> anyhow::Result<(Selected, Option<String>)> {
    if let Some(servers) = servers {
        // A fio server speaks with fio alone.
        let program = Program::find(args.fio.as_deref())
            .map_err(|failure| refusal(&NoEngine(vec![("fio", Lack::from(failure))])))?;
        let fio = Fio::new(program, Place::Process).on(servers);
        return Ok((Selected::Fio(fio), None));
    }
    let no_command_line = || -> Result<(), Lack> {
        if plan.passed.is_empty() {
            return Ok(());
        }
        let options = plan.passed.join(" ");
        let what = format!("{options}: this is for fio's command line, which it has not");
        Err(Lack::new(FailureKind::BadOption, what))
    };
    let Some(wish) = args.engine.wish() else {
        return simulation(args, plan, &no_command_line).map_err(|none| refusal(&none).into());
    };
    let fio_runs = |program: &Program| {
        let sections = plan.sections.iter().map(|name| format!("--section={name}"));
        let extra: Vec<String> = sections.chain(plan.passed.iter().cloned()).collect();
        plan.all(|step| choice::fio_runs(program, &step.jobs, &step.text, &extra))
    };
    let native_runs = || {
        no_command_line()?;
        plan.all(|step| choice::native_runs(&step.jobs))
    };
    let (selected, passed_over) =
        Selected::choose(wish, args.fio.as_deref(), fio_runs, native_runs)
            .map_err(|none| refusal(&none))?;
    let note = passed_over.map(|lack| format!("{lack}; the native engine runs the jobs"));
    Ok((selected, note))
}

fn simulation(
    args: &Args,
    plan: &Plan,
    no_command_line: &dyn Fn() -> Result<(), Lack>,
) -> Result<(Selected, Option<String>), NoEngine> {
    let lacks = |lack: Lack| NoEngine(vec![("sim", lack)]);
    no_command_line().map_err(lacks)?;
    plan.all(|step| {
        Sim::runs(&step.jobs).or_else(|r| Lack::unless_none(FailureKind::BadOption, r))
    })
    .map_err(lacks)?;
    Ok((Selected::simulation(args.sim.as_deref())?, None))
}

/// The exit code and the words for an engine that is not to be had.
pub fn refusal(none: &NoEngine) -> ExitError {
    let exit = match none.kind() {
        FailureKind::FioMissing | FailureKind::EngineMissing => Exit::Missing,
        _ => Exit::Input,
    };
    ExitError {
        exit,
        message: format!("{none}\n  to do: {}", none.kind().advice()),
    }
}
