//! `fathom quick --events`: the far side of a run over ssh. stdout carries
//! [`Wire`] lines; the end of stdin asks to stop.

use std::io::Read;
use std::path::Path;

use fathom_device::threads::{self, NoThread};
use fathom_engine::Control;
use fathom_fleet::hosts::file_parts::read_files;
use fathom_fleet::hosts::wire::{ASK_EVERY, Wire, now_ms};
use fathom_flow::Finish;
use fathom_model::{Event, Exit};
use fathom_suites::quick::{self, Notice, QuickError, SeriesPlace};

use super::{Global, SeriesArgs, WantedTests};
use crate::wire::send;

/// Runs here and writes what happens as lines.
pub fn run(global: &Global, args: &SeriesArgs) -> anyhow::Result<Exit> {
    let control = crate::signals::control()?;
    stop_with_stdin(control.clone())?;
    tell_life()?;
    let mut last = None;
    let mut observer = |notice: Notice| {
        let wire = match notice {
            Notice::Text(text) => Wire::Text {
                text: text.to_owned(),
            },
            Notice::Begins(header) => Wire::Header {
                header: Box::new(header.clone()),
            },
            // Held back until the files are sent: it ends the stream.
            Notice::Event(event @ Event::Ended { .. }) => {
                last = Some(event.clone());
                return;
            }
            Notice::Event(event) => Wire::Event {
                happened: Box::new(event.clone()),
            },
        };
        send(&wire);
    };
    let ran = match args.order() {
        Ok(WantedTests::Run(order)) => {
            let place = SeriesPlace::new(&global.runs);
            quick::run(&order.here(), &order, place, &control, &mut observer)
        }
        Ok(WantedTests::Cleanup(_)) => Err(QuickError::Order("cleanup has no events".into())),
        Err(error) => Err(error),
    };
    match ran {
        Ok(Finish { dir, status, .. }) => {
            // Job files and raw outputs; the events went as they came.
            let wanted = |name: &Path| name.starts_with("jobs") || name.starts_with("raw");
            read_files(&dir, &wanted, &mut |path, text, more| {
                send(&Wire::File { path, text, more });
            })?;
            let event = last.unwrap_or(Event::Ended { status });
            send(&Wire::Event {
                happened: Box::new(event),
            });
            Ok(Exit::Success)
        }
        Err(error) => {
            let exit = error.exit();
            send(&Wire::Refused {
                exit: exit.code(),
                message: error.to_string(),
            });
            Ok(exit)
        }
    }
}

/// The connection's end, or anything on it, is the request to end.
fn stop_with_stdin(control: Control) -> Result<(), NoThread> {
    let wait = move || {
        let _ = std::io::stdin().lock().read(&mut [0]);
        control.stop();
    };
    threads::spawn("stdin", wait).map(drop)
}

/// Tells now and again that this side lives: a test may say nothing for long.
fn tell_life() -> Result<(), NoThread> {
    let tell = || loop {
        send(&Wire::Clock {
            tag: 0,
            at_ms: now_ms(),
        });
        std::thread::sleep(ASK_EVERY);
    };
    threads::spawn("life", tell).map(drop)
}
