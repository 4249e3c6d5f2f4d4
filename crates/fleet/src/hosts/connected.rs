//! Machines that are connected to, for one run or for several.

use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use fathom_device::{open_files, threads};
use fathom_engine::Control;
use fathom_model::{Event, RunStatus};

use super::driven_host::DrivenHost;
use super::machine::{HostLine, HostLines, Machine};
use super::merge::HostNotes;
use super::{Course, HostsJob, HostsRun};

/// Machines on which an agent waits for what is to run.
pub struct ConnectedHosts {
    parts: Vec<DrivenHost>,
    lines: Receiver<HostLine>,
    stay: bool,
    has_run: bool,
}

impl ConnectedHosts {
    /// Starts the agent on every machine that can be reached.
    pub fn connect(machines: Vec<Machine>) -> Self {
        // Each takes a few, and so do the outputs that come from it.
        open_files::raise();
        let (to, lines) = mpsc::sync_channel(256);
        let part = |(place, machine): (usize, Machine)| {
            let mut part = DrivenHost::new(&machine, Duration::ZERO);
            let to = to.clone();
            match (machine.begin)(HostLines { place, to }) {
                Ok(far) => part.far = Some(far),
                Err(why) => part.unreached = Some(why),
            }
            part
        };
        Self {
            parts: machines.into_iter().enumerate().map(part).collect(),
            lines,
            stay: false,
            has_run: false,
        }
    }

    /// The same, for several runs: they stay after each.
    #[must_use]
    pub fn staying(self) -> Self {
        Self { stay: true, ..self }
    }

    /// Runs the job on all of them.
    pub(super) fn drive(
        &mut self,
        job: &HostsJob,
        course: Course<'_>,
        control: &Control,
        watch: &mut dyn FnMut(&Event),
    ) -> RunStatus {
        let mut run = HostsRun {
            job,
            course,
            control,
            watch,
            parts: std::mem::take(&mut self.parts),
            stay: self.stay,
            has_run: std::mem::replace(&mut self.has_run, true),
            has_begun: false,
            step_began_ms: 0.0,
            merge: None,
            notes: HostNotes::default(),
            failed: false,
            too_few: false,
            stopped: None,
            leaving: Vec::new(),
        };
        run.send_out();
        run.watch(&self.lines);
        let (status, parts) = run.conclude();
        self.parts = parts;
        status
    }

    /// Ends the agents. Each takes its time to remove what was sent; all of them at once.
    pub fn finish(self) {
        // Who still says something is heard no more, and must not wait to be.
        drop(self.lines);
        let fars = self.parts.into_iter().filter_map(|part| part.far);
        thread::scope(|scope| {
            for mut far in fars {
                // Where there is no thread to be had it is waited for when dropped.
                let _ = threads::spawn_scoped(scope, "finish", move || far.finish());
            }
        });
    }
}
