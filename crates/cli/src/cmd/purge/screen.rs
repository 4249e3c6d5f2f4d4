//! A purge by `fathom purge` while it goes on. The share that is done and the time that
//! is left are what the device answers several times a second, and stand in no record:
//! the screen of all runs, which is made of records alone, could not show them.

use std::time::Instant;

use fathom_device::purge::PurgeProgress;

use crate::cmd::Global;
use crate::live::{InPlace, LiveOptions, bar, clock};
use crate::out;

/// Progress on stderr: a line in place on a terminal, else a line for each step.
#[derive(Debug)]
pub struct Screen {
    options: LiveOptions,
    place: InPlace,
    step: String,
    began: Instant,
}

impl Screen {
    /// Shows nothing yet.
    pub fn new(global: &Global) -> Self {
        let options = LiveOptions::new(global.quiet, global.color);
        Self {
            options,
            place: InPlace::new(options),
            step: String::new(),
            began: Instant::now(),
        }
    }

    /// Takes what happens next.
    pub fn show(&mut self, progress: &PurgeProgress<'_>) {
        match progress {
            PurgeProgress::Begin { step, number, of } => {
                self.began = Instant::now();
                self.step = format!("[{number}/{of}] {}", step.what);
                match self.place.is_there() {
                    true => self.place.draw(&[self.step.clone(), step.like.clone()]),
                    false if !self.options.quiet => {
                        out::note(format_args!("{}\n    {}", self.step, step.like));
                    }
                    false => {}
                }
            }
            PurgeProgress::Part { share, left } => {
                let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
                let mut line = match share {
                    Some(share) => {
                        let done = (share.clamp(0.0, 1.0) * 1000.0) as u64;
                        let bar = bar(self.options.style, done, 1000 - done);
                        format!("{bar} {:.1} %", share * 100.0)
                    }
                    None => "the device is at work".to_owned(),
                };
                line.push_str(&format!("  {}", clock(elapsed)));
                if let Some(left) = left {
                    let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
                    line.push_str(&format!("  about {} left", clock(left)));
                }
                self.place.draw(&[self.step.clone(), line]);
            }
            PurgeProgress::End { issued } if issued.status != 0 => {
                out::note(format_args!("- {}: {}", issued.command, issued.answer));
            }
            PurgeProgress::End { .. } => {}
        }
    }

    /// Takes the lines away.
    pub fn finish(&mut self) {
        self.place.finish();
    }
}
