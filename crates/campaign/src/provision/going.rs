//! Drives that are provisioned: a thread each, and one place where what they
//! tell comes together.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use fathom_engine::Control;
use fathom_model::{Event, Sample};

use super::logs::DriveLog;
use super::{One, Provision};
use crate::flow::Finish;
use crate::run::RunError;

/// Something that happened to a drive.
#[derive(Debug)]
pub enum Told {
    /// Its record's folder, before its first event.
    Begun(PathBuf),
    /// What was recorded, without the latencies of samples.
    Event(Box<Event>),
    /// It ended; nothing more comes of it.
    Ended(Box<Came>),
}

/// What came of a drive.
pub type Came = Result<Finish, RunError>;

/// How long nothing may happen before the observer is asked to look at the clock.
const TICK: Duration = Duration::from_millis(200);

impl Provision {
    /// Provisions all drives that are left, and gives what came of each, in
    /// their order. `observer` is told what happens to which drive as it
    /// happens, on this thread; `None` about every 200 ms, when nothing does.
    ///
    /// # Errors
    /// What stands against writing to the drives; nothing was touched then.
    /// What happens to one drive is in what came of it.
    pub fn run(
        &self,
        control: &Control,
        observer: &mut dyn FnMut(Option<(usize, Told)>),
    ) -> Vec<(usize, Came)> {
        let (sender, receiver) = channel();
        let mut came = Vec::new();
        thread::scope(|scope| {
            for (place, one) in self.left() {
                let (told, control) = (sender.clone(), control.clone());
                let name = format!("drive {}", one.drive.name);
                let spawned = thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, move || self.one(place, &control, &told));
                if let Err(source) = spawned {
                    let what = format!("no thread for {}: {source}", one.drive.path.display());
                    let failed = Err(RunError::Missing(what));
                    let _ = sender.send((place, Told::Ended(Box::new(failed))));
                }
            }
            drop(sender);
            follow(&receiver, observer, &mut came);
        });
        came.sort_by_key(|(place, _)| *place);
        came
    }

    /// One drive, on its thread.
    fn one(&self, place: usize, control: &Control, told: &Sender<(usize, Told)>) {
        let one = &self.drives[place];
        // Whoever listens has gone only when everything is over.
        let tell = |what: Told| drop(told.send((place, what)));
        let mut log = DriveLog::new(self.how.logs.as_deref(), &self.how, one);
        let flow = self.script(one);
        let came = flow.and_then(|script| {
            let ready = self.flow(place, script.as_ref()).look()?;
            let mut begun = |dir: &Path| tell(Told::Begun(dir.to_owned()));
            let mut observe = |event: &Event| {
                log.take(event);
                tell(Told::Event(Box::new(light(event))));
            };
            ready.run(control, &mut begun, &mut observe)
        });
        log.end(&came);
        tell(Told::Ended(Box::new(came)));
    }
}

/// Without what only the record needs: a histogram for each interval, job and
/// drive.
fn light(event: &Event) -> Event {
    match event {
        Event::Sample(sample) => Event::Sample(Sample {
            clat: None,
            ..*sample
        }),
        Event::Finished { .. } => Event::Note {
            text: String::new(),
        },
        other => other.clone(),
    }
}

fn follow(
    receiver: &Receiver<(usize, Told)>,
    observer: &mut dyn FnMut(Option<(usize, Told)>),
    came: &mut Vec<(usize, Came)>,
) {
    loop {
        match receiver.recv_timeout(TICK) {
            Ok((place, Told::Ended(ended))) => {
                came.push((place, *ended));
            }
            Ok(told) => observer(Some(told)),
            Err(RecvTimeoutError::Timeout) => observer(None),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
