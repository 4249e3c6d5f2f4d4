//! The engine of a run.

use fathom_engine::guard::GuardPlace;
use fathom_engine::requested::{is_read_only, read_only};
use fathom_engine_fio::Fio;
use fathom_engine_fio::version::Program;
use fathom_engine_sim::Sim;
use fathom_engines::choice::{self, MissingCapability, NoEngine};
use fathom_engines::select::EngineHandle;
use fathom_model::FailureKind;

use super::Plan;
use crate::cmd::job::request::JobPlan;

/// The engine that the command line asks for; with the native one, why fio was
/// passed over.
pub fn choose(kept: &JobPlan, plan: &Plan) -> Result<(EngineHandle, Option<String>), NoEngine> {
    let options = &kept.options;
    let fio = options.fio.as_deref();
    if let Some(servers) = kept.servers.clone() {
        // A fio server speaks with fio alone.
        let program = Program::find(fio)
            .map_err(|failure| NoEngine(vec![("fio", MissingCapability::from(failure))]))?;
        let fio = Fio::new(program, GuardPlace::Process).on(servers);
        return Ok((EngineHandle::Fio(fio), None));
    }
    let no_command_line = || -> Result<(), MissingCapability> {
        let (own, others): (Vec<_>, Vec<_>) =
            plan.passed.iter().partition(|option| is_read_only(option));
        let lacks = |what| MissingCapability::new(FailureKind::BadOption, what);
        if !others.is_empty() {
            let options: Vec<&str> = others.iter().map(|option| option.as_str()).collect();
            return Err(lacks(format!(
                "{}: only fio accepts this",
                options.join(" ")
            )));
        }
        plan.all(|step| match own.is_empty() {
            true => Ok(()),
            false => read_only(&step.jobs).map_err(lacks),
        })
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
    let sim = || {
        let runs = plan.all(|step| {
            let runs = Sim::runs(&step.jobs);
            runs.or_else(|r| MissingCapability::unless_none(FailureKind::BadOption, r))
        });
        let lacks = no_command_line().and(runs);
        lacks.map_err(|lack| NoEngine(vec![("sim", lack)]))?;
        EngineHandle::simulation(options.sim(0))
    };
    let (selected, passed_over) =
        EngineHandle::choose(options.engine(), fio, fio_runs, native_runs, sim)?;
    let note = passed_over.map(|lack| format!("{lack}; the native engine runs the jobs"));
    Ok((selected, note))
}
