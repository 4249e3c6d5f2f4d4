//! Plan files on several machines.

use std::path::PathBuf;

use fathom_flow::error::RunError;
use fathom_jobfile::JobFile;

use super::{JobSource, Study, StudyAction, StudyStep};

impl Study {
    /// Names of the steps that run jobs: what begins together on all machines.
    pub fn job_steps(&self) -> impl Iterator<Item = &str> {
        let is_job = |step: &&StudyStep| matches!(step.action, StudyAction::Job(_));
        let steps = self.steps.iter().filter(is_job);
        steps.map(|step| step.name.as_str())
    }

    /// As it is sent to other machines: its job files are in it, their variables as
    /// they were written; `env` gives the values they are checked with.
    ///
    /// # Errors
    /// A job file that cannot be read any more, a step that runs on this machine only.
    pub fn sent(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, RunError> {
        let mut sent = self.clone();
        for step in &mut sent.steps {
            let job = match &mut step.action {
                StudyAction::Job(job) => job,
                action => match action.not_on_hosts() {
                    Some(command) => {
                        let what = by_its_own(command);
                        return Err(step.said(RunError::Input(what)));
                    }
                    None => continue,
                },
            };
            if let JobSource::File(path) = &job.source {
                let read = JobFile::read_unexpanded(path, env);
                let read =
                    read.map_err(|error| RunError::Input(format!("{}: {error}", path.display())))?;
                job.source = JobSource::Text(read.file.render());
            }
        }
        Ok(sent)
    }

    /// Makes it the plan of one of its machines, where relative names are meant from
    /// `folder`.
    pub fn be_on(&mut self, host: &str, folder: PathBuf) {
        self.targets.path = self.targets.of(Some(host)).map(PathBuf::from);
        self.targets.hosts.clear();
        self.options.hosts.clear();
        self.folder = folder;
    }
}

impl StudyAction {
    /// The command that runs it on hosts, where a plan file does not.
    pub(super) fn not_on_hosts(&self) -> Option<&'static str> {
        match self {
            Self::Quick(_) => Some("quick"),
            Self::Prio(_) => Some("prio"),
            Self::Campaign(_) => Some("run"),
            _ => None,
        }
    }
}

pub(super) fn by_its_own(command: &str) -> String {
    format!("this is no step on hosts: run it by fathom {command} --hosts")
}
