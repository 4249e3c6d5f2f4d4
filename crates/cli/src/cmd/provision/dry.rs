//! Every command of every drive; nothing is run.

use fathom_model::Exit;

use super::ask::ProvisionRequest;
use super::{refused, summary};
use crate::cmd::Global;
use crate::cmd::dry::{DryDrive, DryRun};
use crate::cmd::failed;

/// Shows each drive with its stages and commands, also when it would be refused,
/// and ends as the run itself would.
pub fn run(global: &Global, asked: &ProvisionRequest) -> anyhow::Result<Exit> {
    let provision = &asked.provision;
    let record = provision.runs_dir().join("RUN");
    let mut dry = DryRun::new(global);
    // Those of many drives are alike.
    dry.shows_texts = false;
    let mut drives = Vec::new();
    for planned in provision.plan().map_err(failed)? {
        let one = &provision.drives[planned.place];
        let path = &one.drive.path;
        let head = format!("# {}  {}", path.display(), summary::about(&one.drive));
        let load = summary::load(one);
        dry.line(format_args!("{}, for {load} work", head.trim_end()));
        dry.line(format_args!("# {}", planned.sentence()));
        dry.device = Some(path.clone());
        let shown = provision.look(planned.place, |_, ready| {
            let mut tasks = planned.tasks.iter();
            tasks.try_for_each(|task| dry.task(task, ready.selected(), &record))
        });
        shown.map_err(failed)??;
        drives.push(DryDrive {
            path: path.clone(),
            workload: one.load,
            cost: planned.sentence(),
        });
    }
    let refusal = provision.check().err();
    let refusal = refusal.map(|refused| refused::error(provision, &refused));
    dry.document.engine = Some(provision.how.options.engine().name().to_owned());
    dry.document.drives = Some(drives);
    dry.end(refusal)
}
