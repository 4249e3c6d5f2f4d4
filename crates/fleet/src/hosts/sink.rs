//! Where what the machines tell goes.

use std::path::Path;

use fathom_model::{Event, Outcome};

use crate::local::Session;

/// Takes what becomes of the events of all machines.
pub trait HostsSink {
    /// The folder of what is kept.
    fn dir(&self) -> &Path;

    /// Takes one event of all machines.
    fn event(&mut self, event: Event);

    /// Whether more is wanted: else the machines end.
    fn wants_more(&self) -> bool;

    /// What follows has begun here in the run's time, in ms.
    fn at(&mut self, t_ms: u64);

    /// The step in progress has ended so.
    fn end_step(&mut self, outcome: Outcome);
}

impl HostsSink for Session<'_> {
    fn dir(&self) -> &Path {
        self.writer().dir()
    }

    fn event(&mut self, event: Event) {
        // That the record is full is asked for once a turn.
        let _ = fathom_engine::Sink::event(self, event);
    }

    fn wants_more(&self) -> bool {
        self.is_recorded()
    }

    fn at(&mut self, t_ms: u64) {
        Session::at(self, t_ms);
    }

    fn end_step(&mut self, outcome: Outcome) {
        Session::end_step(self, outcome);
    }
}
