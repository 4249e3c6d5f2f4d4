//! What provisioning costs, said before it starts: the longest time, the bytes of
//! all drives, the share of each drive's rated endurance.

use fathom_device::Health;
use fathom_flow::budget::{self, Cost, Endurance, Over, Speed};
use fathom_flow::error::RunError;
use fathom_flow::{Case, Task, outlook};

use super::{DriveJob, Provision};

/// What one drive will go through.
#[derive(Debug)]
pub struct DriveCost {
    /// Its place among all.
    pub place: usize,
    /// Its stages, as if all goes well.
    pub tasks: Vec<Task>,
    /// What they cost: the least time, the most bytes.
    pub cost: Cost,
    /// What the bytes mean to the drive.
    pub endurance: Endurance,
    /// What is to be known before.
    pub notes: Vec<String>,
}

impl DriveCost {
    /// Its cost in one sentence.
    pub fn sentence(&self) -> String {
        budget::sentence(&self.cost, &self.endurance)
    }
}

impl Provision {
    /// What each drive that is left will go through.
    ///
    /// # Errors
    /// As [`Provision::look`], and when it is more than may be spent.
    pub fn plan(&self) -> Result<Vec<DriveCost>, RunError> {
        let left = self.left();
        let planned: Result<Vec<DriveCost>, RunError> =
            left.map(|(place, one)| self.planned(place, one)).collect();
        let planned = planned?;
        self.must_fit(&planned)?;
        Ok(planned)
    }

    fn planned(&self, place: usize, one: &DriveJob) -> Result<DriveCost, RunError> {
        let device = one.drive.device.as_ref();
        let speed = device.and_then(|_| Speed::of_link(&one.drive.path));
        let (tasks, notes) = self.look(place, |script, ready| {
            let history = ready.history().resumed();
            let notes = ready.notes().to_vec();
            (outlook(script, &history, Case::Best).0, notes)
        })?;
        let parts = tasks.iter().map(|task| {
            let work = &task.work;
            // How long a fill takes nobody knows before; a load may be steady at
            // once, and may write until its limit.
            let time = work.time(Case::Best, None);
            (time, work.write_bytes(Case::Worst, speed))
        });
        let cost = Cost::of_parts(parts);
        Ok(DriveCost {
            place,
            endurance: self.endurance(one),
            tasks,
            cost,
            notes,
        })
    }

    fn endurance(&self, one: &DriveJob) -> Endurance {
        let said = self.options.settings.care.endurance_bytes;
        if self.is_simulated() {
            return Endurance::of(&Health::default(), &[], said);
        }
        let path = &one.drive.path;
        let ledgers = &self.options.ledgers;
        let entries = ledgers.entries(path).unwrap_or_default();
        Endurance::of(&ledgers.health(path), &entries, said)
    }

    fn must_fit(&self, planned: &[DriveCost]) -> Result<(), RunError> {
        let limits = self.options.settings.limits();
        let Some(text) = limits.text().filter(|_| limits.over == Over::Refuse) else {
            return Ok(());
        };
        let mut over = Vec::new();
        for planned in planned {
            let parts = planned.tasks.iter().map(|task| {
                let work = &task.work;
                (Some(work.least_time()), work.write_bytes(Case::Best, None))
            });
            if !limits.left_out(parts, 0).is_empty() {
                over.push(self.drives[planned.place].drive.name.clone());
            }
        }
        match over.is_empty() {
            true => Ok(()),
            false => Err(RunError::Refused(
                format!(
                    "no drive was touched: each may take {text}, and more is needed for {}",
                    over.join(", ")
                )
                .into(),
            )),
        }
    }
}
