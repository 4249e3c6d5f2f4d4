//! The ends of steps in records of version 1, which do not tell them.

use crate::document::RunStatus;
use crate::event::{Event, Outcome};

/// Finds where steps end that nobody says the end of.
///
/// A step has ended when its figures or a failure are there and something follows
/// that says that nothing more comes: the next step, a point left out, a stage or
/// the end of one, or that of the run unless that was interrupted. Engines give the figures of
/// a stopped job too, and failures behind the figures: what was killed right then
/// has no end.
#[derive(Debug, Clone, Default)]
pub struct StepEnds {
    open: Option<OpenStep>,
}

/// What is known of the step in progress.
#[derive(Debug, Clone, Copy, Default)]
struct OpenStep {
    figures: bool,
    failure: bool,
}

impl StepEnds {
    /// Takes the next event of the run; gives the end of a step that stands before
    /// it.
    pub fn before(&mut self, event: &Event) -> Option<Event> {
        match event {
            Event::Step { .. } => {
                let end = self.end();
                self.open = Some(OpenStep::default());
                end
            }
            Event::Skipped { .. } | Event::Stage { .. } | Event::StageEnded { .. } => self.end(),
            Event::Ended { status } if *status != RunStatus::Interrupted => self.end(),
            // It was broken off, or has told its end: a run of version 1 that goes on
            // has both.
            Event::Ended { .. } | Event::Resumed { .. } | Event::StepEnded { .. } => {
                self.open = None;
                None
            }
            Event::Finished { .. } => {
                self.open.iter_mut().for_each(|told| told.figures = true);
                None
            }
            Event::Failure(_) => {
                self.open.iter_mut().for_each(|told| told.failure = true);
                None
            }
            _ => None,
        }
    }

    fn end(&mut self) -> Option<Event> {
        let outcome = match self.open.take()? {
            OpenStep { failure: true, .. } => Outcome::Failed,
            OpenStep { figures: true, .. } => Outcome::Complete,
            OpenStep { .. } => return None,
        };
        Some(Event::StepEnded { outcome })
    }
}

/// The events of a run of version 1, with the ends of its steps.
pub fn with_step_ends(events: impl IntoIterator<Item = Event>) -> impl Iterator<Item = Event> {
    let mut ends = StepEnds::default();
    let events = events.into_iter();
    events.flat_map(move |event| [ends.before(&event), Some(event)].into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Failure, FailureKind};
    use crate::result::Results;

    fn step() -> Event {
        Event::Step {
            step: 1,
            of: 2,
            name: "a".into(),
            point: None,
        }
    }

    fn finished() -> Event {
        let results = Box::new(Results::default());
        Event::Finished { results }
    }

    fn failure() -> Event {
        Event::Failure(Failure::new(FailureKind::Other, "no"))
    }

    fn resumed() -> Event {
        let (after, gap_ms) = (None, 1);
        Event::Resumed { after, gap_ms }
    }

    fn ended(status: RunStatus) -> Event {
        Event::Ended { status }
    }

    /// The outcomes of the steps that have ended.
    fn ends(events: impl IntoIterator<Item = Event>) -> Vec<Outcome> {
        let outcome = |event| match event {
            Event::StepEnded { outcome } => Some(outcome),
            _ => None,
        };
        with_step_ends(events).filter_map(outcome).collect()
    }

    #[test]
    fn a_step_has_ended_when_something_says_that_nothing_more_comes() {
        use Outcome::{Complete, Failed};
        assert_eq!(ends([step(), finished(), step()]), [Complete]);
        assert_eq!(ends([step(), finished(), failure(), step()]), [Failed]);
        let complete = ended(RunStatus::Complete);
        assert_eq!(ends([step(), finished(), complete]), [Complete]);
        assert_eq!(ends([step(), finished()]), []);
        assert_eq!(ends([step(), step(), finished(), resumed()]), []);
        let interrupted = ended(RunStatus::Interrupted);
        assert_eq!(ends([step(), finished(), interrupted, resumed()]), []);
    }

    #[test]
    fn an_end_that_is_told_is_the_only_one() {
        let outcome = Outcome::Interrupted;
        let events = [step(), finished(), Event::StepEnded { outcome }, step()];
        assert_eq!(ends(events), [outcome]);
    }
}
