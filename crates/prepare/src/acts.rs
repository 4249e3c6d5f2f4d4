//! What flows do to a device by other means than I/O: the wait until it is
//! energized, and the purge.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fathom_device::command::{Issue, KernelDevices};
use fathom_device::purge::{Purge, PurgeError, PurgeProgress, PurgeSettings};
use fathom_device::safety::Confirmations;
use fathom_device::{Health, Sys};
use fathom_flow::{Act, ActionContext, ActionResult};
use fathom_model::environment::BlockDevice;
use fathom_model::{Event, Purged, Stage, StageEnd, StageKind, units};

use crate::energized::{self, Wait};
use crate::logs::Logs;
use crate::purge;

/// Takes all data away from a device.
#[derive(Clone)]
pub struct Purging {
    /// The device.
    pub dut: PathBuf,
    /// How.
    pub want: PurgeSettings,
    /// The words that name the devices that may be destroyed.
    pub confirmed: Confirmations,
    /// Why, for the log and the ledger.
    pub reason: String,
    /// The folder whose `logs/purge/DEVICE` is written to.
    pub logs: Option<PathBuf>,
    /// The devices of the machine.
    pub sys: Sys,
    /// The way to them.
    pub issue: Arc<dyn Issue>,
}

impl Purging {
    /// A purge of a device of this machine.
    pub fn new(dut: &Path, want: PurgeSettings, destroy: &[String], reason: &str) -> Self {
        Self {
            dut: dut.to_owned(),
            want,
            confirmed: Confirmations(destroy.to_vec()),
            reason: reason.to_owned(),
            logs: None,
            sys: Sys::live(),
            issue: Arc::new(KernelDevices),
        }
    }

    /// The stage that does it.
    pub fn stage() -> Stage {
        Stage {
            id: "purge".to_owned(),
            kind: StageKind::Purge,
            title: "take all data away, and look whether they are gone".to_owned(),
            round: None,
        }
    }

    /// The purge as it would be done now: what the device can do is asked.
    ///
    /// # Errors
    /// Why it cannot be purged as wanted.
    pub fn find(&self) -> Result<Purge, PurgeError> {
        Purge::new(&self.sys, self.issue.as_ref(), &self.want, &self.dut)
    }

    /// Purges the device so; `watch` sees how it goes on. Other devices whose data it
    /// takes away have it in their ledgers, too.
    pub fn give(
        &self,
        doing: &mut ActionContext<'_>,
        purge: &Purge,
        watch: &mut dyn FnMut(&PurgeProgress<'_>),
    ) -> (ActionResult, Result<Purged, PurgeError>) {
        let mut notes = doing.book.begin(purge.touched());
        for (method, reason) in &purge.passed_over {
            notes.push(format!("purge by {method} was passed over: {reason}"));
        }
        let notes = notes.into_iter();
        notes.for_each(|text| (doing.tell)(Event::Note { text }));
        let run = purge::RecordedPurge {
            purge,
            confirmed: &self.confirmed,
            reason: &self.reason,
            folder: self.logs.as_deref(),
        };
        let done = run.go(self.issue.as_ref(), doing.control, &mut |progress| {
            watch(&progress);
            if let Some(event) = purge::event(&progress) {
                (doing.tell)(event);
            }
        });
        let deed = run.deed(&done);
        if let Some(deed) = &deed {
            let enter = |path| doing.book.append_to(path, deed.clone());
            let notes = purge.touched().flat_map(enter);
            notes.for_each(|text| (doing.tell)(Event::Note { text }));
        }
        let acted = match purge::end(&done) {
            Some(end) => ActionResult::Ended { end, deed },
            None => ActionResult::Interrupted { deed },
        };
        (acted, done)
    }
}

impl std::fmt::Debug for Purging {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let mut text = f.debug_struct("Purging");
        text.field("dut", &self.dut).field("want", &self.want);
        text.finish_non_exhaustive()
    }
}

impl Act for Purging {
    fn commands(&self) -> Vec<String> {
        match self.find() {
            Ok(purge) => purge.commands().iter().map(|s| s.like.clone()).collect(),
            Err(error) => {
                let error = error.to_string();
                vec![format!("# {}", error.lines().next().unwrap_or_default())]
            }
        }
    }

    fn bytes(&self) -> u64 {
        // What cannot be purged is told when it comes to that.
        self.find().map_or(0, |purge| purge.write_bytes())
    }

    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult {
        use fathom_engines::select::EngineHandle;
        if let EngineHandle::Sim(sim) = doing.selected {
            sim.purge();
            let deed = None;
            let end = StageEnd::Done;
            return ActionResult::Ended { end, deed };
        }
        let purge = match self.find() {
            Ok(purge) => purge,
            Err(error) => {
                let (reason, deed) = (error.to_string(), None);
                let end = StageEnd::Failed { reason };
                return ActionResult::Ended { end, deed };
            }
        };
        let (acted, done) = self.give(doing, &purge, &mut |_| {});
        if let Ok(purged) = done {
            let text = format!(
                "purged by {} in {}, and verified by {} samples read back",
                purged.method,
                units::duration(purged.took_ms),
                purged.verification.samples
            );
            (doing.tell)(Event::Note { text });
        }
        acted
    }
}

/// Waits until a device has been powered long enough.
#[derive(Debug, Clone)]
pub struct Energizing {
    /// The device.
    pub dut: PathBuf,
    /// For how long it is to have been powered; `None`: it need not be.
    pub need: Option<Duration>,
    /// The folder whose `logs/energized/DEVICE` is written to.
    pub logs: Option<PathBuf>,
}

impl Energizing {
    /// The wait that a device is known to need, or one that is set.
    pub fn new(dut: &Path, set: Option<Duration>, device: Option<&BlockDevice>) -> Self {
        Self {
            dut: dut.to_owned(),
            need: device.and_then(|device| energized::need(set, device)),
            logs: None,
        }
    }

    /// The wait as it would be now.
    pub fn find(&self) -> Option<Wait> {
        let sys = Sys::live();
        let health = match sys.by_path(&self.dut) {
            Some(node) => Health::of(&KernelDevices, &sys, &node),
            None => Health::default(),
        };
        Some(Wait::of(&sys, &self.dut, &health, self.need?))
    }
}

impl Act for Energizing {
    fn commands(&self) -> Vec<String> {
        Vec::new()
    }

    fn time(&self) -> Option<Duration> {
        Some(self.find().map_or(Duration::ZERO, |wait| wait.left()))
    }

    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult {
        let ended = |end| ActionResult::Ended { end, deed: None };
        let wait = match (doing.selected.is_simulated(), self.need) {
            (_, None) => {
                let reason = "this model is not known to need it".to_owned();
                return ended(StageEnd::Skipped { reason });
            }
            (true, Some(need)) => Wait::simulated(need),
            (false, Some(_)) => match self.find() {
                Some(wait) => wait,
                None => return ended(StageEnd::Done),
            },
        };
        let text = wait.reason();
        if wait.left().is_zero() {
            return ended(StageEnd::Skipped { reason: text });
        }
        (doing.tell)(Event::Note { text });
        let logs = self.logs.as_deref().map(|dir| Logs::new(dir, &self.dut));
        let log = |write: fn(&Logs) -> std::io::Result<()>| {
            // That a log cannot be written is no reason not to wait.
            let _ = logs.as_ref().map(write);
        };
        log(Logs::start_energizing);
        let tell = &mut doing.tell;
        let engine = doing.selected.engine();
        let began = engine.now();
        let whole = wait.go(engine, doing.control, &mut |left| {
            let left = units::duration(left.as_millis() as u64);
            let what = format!("waits until the device is energized, {left} left");
            tell(Event::Preparing { what });
        });
        // The run's time goes on meanwhile.
        let waited = engine.now().saturating_sub(began).as_millis();
        tell(Event::Interval {
            t_ms: u64::try_from(waited).unwrap_or(u64::MAX),
            remaining_ms: None,
        });
        match whole {
            true => {
                log(Logs::finish_energizing);
                ended(StageEnd::Done)
            }
            false => ActionResult::Interrupted { deed: None },
        }
    }
}
