//! Every command of every drive; nothing is run.

use std::path::Path;
use std::time::Duration;

use fathom_campaign::flow::{Ready, Task, Work};
use fathom_campaign::provision::{One, Planned};
use fathom_engine::Request;
use fathom_engine::jobfile::shell_quote;
use fathom_model::{Exit, units};
use serde_json::{Value, json};

use super::ask::Asked;
use super::{refused, summary};
use crate::cmd::Global;
use crate::cmd::run::failed;
use crate::out;

/// Shows each drive with its stages and commands, also when it would be refused,
/// and ends as the run itself would.
pub fn run(global: &Global, asked: &Asked) -> anyhow::Result<Exit> {
    let provision = &asked.provision;
    let record = provision.runs_dir().join("RUN");
    let mut drives = Vec::new();
    for planned in provision.plan().map_err(failed)? {
        let one = &provision.drives[planned.place];
        let shown = provision.look(planned.place, |_, ready| match global.json {
            true => document(&record, one, &ready, &planned).map(|drive| drives.push(drive)),
            false => show(&record, one, &ready, &planned),
        });
        shown.map_err(failed)??;
    }
    if global.json {
        let engine = &provision.how.engine;
        out::json(&json!({ "schema": "fathom.dry-run/1", "engine": engine, "drives": drives }))?;
    }
    match provision.check() {
        Err(refused) => Err(refused::error(provision, &refused).into()),
        Ok(()) => Ok(Exit::Success),
    }
}

fn show(record: &Path, one: &One, ready: &Ready, planned: &Planned) -> anyhow::Result<()> {
    let tasks = &planned.tasks;
    let about = summary::about(&one.drive);
    let head = format!("# {}  {about}", one.drive.path.display());
    out::line(format!(
        "{}, for {} work",
        head.trim_end(),
        summary::load(one)
    ));
    out::line(format_args!("# {}", planned.sentence()));
    for (nth, task) in (1..).zip(tasks) {
        let mut head = format!(
            "# {nth}/{} {}: {}",
            tasks.len(),
            task.stage.id,
            task.stage.title
        );
        let time = task.work.least_time();
        if !time.is_zero() {
            head += &format!(", {} at least", units::duration(millis(time)));
        }
        out::line(head);
        for command in commands(record, ready, task)? {
            out::line(command);
        }
    }
    Ok(())
}

fn document(record: &Path, one: &One, ready: &Ready, planned: &Planned) -> anyhow::Result<Value> {
    let mut stages = Vec::new();
    for task in &planned.tasks {
        let jobs: Vec<&str> = task.work.job_texts().collect();
        stages.push(json!({
            "id": task.stage.id,
            "kind": task.stage.kind,
            "title": task.stage.title,
            "commands": commands(record, ready, task)?,
            "job_files": jobs,
        }));
    }
    Ok(json!({
        "path": one.drive.path,
        "workload": one.load,
        "cost": planned.sentence(),
        "stages": stages,
    }))
}

/// The commands of a stage, as a person would type them; what is done inside
/// Fathom is a comment.
fn commands(record: &Path, ready: &Ready, task: &Task) -> anyhow::Result<Vec<String>> {
    if let Work::Act(act) = &task.work {
        return Ok(act.commands());
    }
    if let Work::Skip(reason) = &task.work {
        return Ok(vec![format!("# left out: {reason}")]);
    }
    let mut commands = Vec::new();
    for _ in task.work.job_texts() {
        let job_file = record.join("jobs").join(format!("{}.fio", task.stage.id));
        let request = Request {
            job_file: job_file.clone(),
            sections: Vec::new(),
            extra_args: Vec::new(),
            work_dir: "/".into(),
            raw_dir: record.join("raw").join(&task.stage.id),
            interval: Duration::from_secs(1),
            deadline: None,
        };
        let argv = ready.selected().command(&request)?;
        let engine = ready.selected().engine().name();
        commands.push(match argv.is_empty() {
            true => format!("# the {engine} engine runs {}", job_file.display()),
            false => argv
                .iter()
                .map(|arg| shell_quote(arg))
                .collect::<Vec<_>>()
                .join(" "),
        });
    }
    Ok(commands)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
