//! What provisioning costs, said before it starts: the longest time, the bytes of
//! all drives, the share of each drive's rated endurance.

use fathom_device::Health;
use fathom_device::Sys;
use fathom_device::command::Live;

use super::{One, Provision};
use crate::budget::{self, Cost, Endurance, Speed};
use crate::flow::{Luck, Task, outlook};
use crate::run::RunError;

/// What one drive will go through.
#[derive(Debug)]
pub struct Planned {
    /// Its place among all.
    pub place: usize,
    /// Its stages, as if all goes well.
    pub tasks: Vec<Task>,
    /// What they cost at the most.
    pub cost: Cost,
    /// What the bytes mean to the drive.
    pub endurance: Endurance,
    /// What is to be known before.
    pub notes: Vec<String>,
}

impl Planned {
    /// Its cost in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        budget::sentence(&self.cost, &self.endurance)
    }
}

impl Provision {
    /// What each drive that is left will go through.
    ///
    /// # Errors
    /// As [`Provision::look`], and when it is more than may be spent.
    pub fn plan(&self) -> Result<Vec<Planned>, RunError> {
        let left = self.left();
        let planned: Result<Vec<Planned>, RunError> =
            left.map(|(place, one)| self.planned(place, one)).collect();
        let planned = planned?;
        self.must_fit(&planned)?;
        Ok(planned)
    }

    fn planned(&self, place: usize, one: &One) -> Result<Planned, RunError> {
        let speed = one.drive.device.as_ref().and_then(Speed::of_link);
        let (tasks, notes) = self.look(place, |script, ready| {
            let history = ready.history().resumed();
            let notes = ready.notes().to_vec();
            (outlook(script, &history, Luck::Best).0, notes)
        })?;
        let parts = tasks.iter().map(|task| {
            let work = &task.work;
            // A fill takes at least as long as the link does; nobody knows how
            // much longer.
            (
                work.time(Luck::Worst, None),
                work.write_bytes(Luck::Worst, speed),
            )
        });
        let cost = Cost::of_parts(parts);
        Ok(Planned {
            place,
            endurance: self.endurance(one),
            tasks,
            cost,
            notes,
        })
    }

    fn endurance(&self, one: &One) -> Endurance {
        let said = self.options.endurance_tb;
        if self.is_simulated() {
            return Endurance::of(&Health::default(), &[], said);
        }
        let path = &one.drive.path;
        let health = Health::of_path(&Live, &Sys::live(), path);
        let entries = self.options.ledgers.entries(path).unwrap_or_default();
        Endurance::of(&health, &entries, said)
    }

    fn must_fit(&self, planned: &[Planned]) -> Result<(), RunError> {
        let limits = &self.options.limits;
        for planned in planned {
            let least = planned
                .tasks
                .iter()
                .map(|task| task.work.least_time())
                .sum();
            if limits.time.is_some_and(|limit| limit < least) {
                let name = &self.drives[planned.place].drive.name;
                let what =
                    format!("{name} takes longer than --max-time allows, also if all goes well");
                return Err(RunError::Refused(what));
            }
        }
        let bytes = planned.iter().map(|planned| planned.cost.write_bytes).sum();
        match limits.is_over(0, bytes) {
            true => Err(RunError::Refused(format!(
                "{} would be written, more than --max-written allows; no drive was touched",
                fathom_model::units::bytes(bytes as f64)
            ))),
            false => Ok(()),
        }
    }
}
