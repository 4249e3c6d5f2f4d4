//! The folder on which the file system of a comparison is mounted while it runs.

use std::fs;
use std::path::{Component, PathBuf};

use fathom_flow::undo;
use fathom_model::Exit;
use fathom_questions::ab::AbFileSystem;
use fathom_record::UndoNote;

use crate::cmd::ExitError;
use crate::cmd::failed;
use crate::cmd::job::request::JobPlan;

/// The folder, which is there before anything is judged by it, and goes with it where it
/// is nobody's by then.
#[derive(Debug)]
pub struct MountPoint(PathBuf);

impl MountPoint {
    /// That of this file system, in which all files of the jobs lie. What a run that was
    /// killed has left mounted there is unmounted.
    ///
    /// # Errors
    /// A run goes on there; a job that uses something else.
    pub fn of(it: &AbFileSystem, job: &JobPlan, dry_run: bool) -> anyhow::Result<Self> {
        for target in job.targets()? {
            let leads_up = target.components().any(|part| part == Component::ParentDir);
            if leads_up || !target.starts_with(&it.at) {
                let what = format!(
                    "the jobs use {}, which is not in the file system that is made\n  to do: give names of files without a folder, or none",
                    target.display()
                );
                return Err(ExitError::new(Exit::Usage, what).into());
            }
        }
        let is_its = |note: &UndoNote| matches!(note, UndoNote::Command(undo) if undo.command == it.unmount());
        let left = undo::left_behind().map_err(failed)?;
        for left in left.iter().filter(|left| is_its(&left.note) && !dry_run) {
            left.restore().map_err(failed)?;
        }
        fs::create_dir_all(&it.at)?;
        Ok(Self(it.at.clone()))
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        // What is mounted there keeps it.
        let _ = fs::remove_dir(&self.0);
    }
}
