//! Drives that are provisioned: a thread each, and one place where what they
//! tell comes together.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use fathom_device::threads;
use fathom_engine::Control;
use fathom_flow::Finish;
use fathom_flow::error::RunError;
use fathom_model::{Event, Sample};

use super::Provision;
use super::logs::DriveLog;

/// Something that happened to a drive.
#[derive(Debug)]
pub enum DriveEvent {
    /// What was recorded, without the latencies of samples and without results.
    Event(Event),
    /// It could not be provisioned, for this reason.
    Failed(String),
}

/// What came of a drive.
pub type DriveOutcome = Result<Finish, RunError>;

/// What a drive's thread sends: what happened, and at last what came of it.
type Message = (usize, Result<Event, Box<DriveOutcome>>);

/// How long nothing may happen before the observer is asked to look at the clock.
const TICK: Duration = Duration::from_millis(200);

impl Provision {
    /// Provisions all drives that are left, and gives what came of each, in
    /// their order. `observer` is told what happens to which drive, on this
    /// thread; `None` about every 200 ms when nothing does.
    pub fn run(
        &self,
        control: &Control,
        observer: &mut dyn FnMut(Option<(usize, DriveEvent)>),
    ) -> Vec<(usize, DriveOutcome)> {
        let (sender, receiver) = channel();
        let mut came = Vec::new();
        thread::scope(|scope| {
            for (place, one) in self.left() {
                let (told, control) = (sender.clone(), control.clone());
                let work = move || self.one(place, &control, &told);
                if let Err(lack) = threads::spawn_scoped(scope, &one.drive.name, work) {
                    let what = format!("{}: {lack}", one.drive.path.display());
                    let failed = Err(RunError::Missing(what));
                    let _ = sender.send((place, Err(Box::new(failed))));
                }
            }
            drop(sender);
            follow(&receiver, observer, &mut came);
        });
        came.sort_by_key(|(place, _)| *place);
        came
    }

    /// One drive, on its thread.
    fn one(&self, place: usize, control: &Control, told: &Sender<Message>) {
        let one = &self.drives[place];
        // Whoever listens stays until the last thread has ended.
        let tell = |message| drop(told.send((place, message)));
        let mut log = DriveLog::new(&self.how, one);
        let mut observe = |event: &Event| {
            log.take(event);
            if let Some(event) = light(event) {
                tell(Ok(event));
            }
        };
        let came = self
            .look(place, |_, ready| {
                ready.run(control, &mut |_| {}, &mut observe)
            })
            .and_then(|came| came);
        log.end(&came);
        tell(Err(Box::new(came)));
    }
}

/// Without what only the record needs: histograms, for each interval and job.
fn light(event: &Event) -> Option<Event> {
    match event {
        Event::Sample(sample) => Some(Event::Sample(Sample {
            clat: None,
            lat: None,
            ..*sample
        })),
        Event::Finished { .. } | Event::Status { .. } | Event::Jobs { .. } => None,
        other => Some(other.clone()),
    }
}

fn follow(
    receiver: &Receiver<Message>,
    observer: &mut dyn FnMut(Option<(usize, DriveEvent)>),
    came: &mut Vec<(usize, DriveOutcome)>,
) {
    loop {
        match receiver.recv_timeout(TICK) {
            Ok((place, Ok(event))) => observer(Some((place, DriveEvent::Event(event)))),
            Ok((place, Err(ended))) => {
                if let Err(reason) = ended.as_ref() {
                    observer(Some((place, DriveEvent::Failed(reason.to_string()))));
                }
                came.push((place, *ended));
            }
            Err(RecvTimeoutError::Timeout) => observer(None),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
