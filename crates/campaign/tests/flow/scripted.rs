//! What a script can ask for beside stages and steps, and what becomes of one that would
//! never end.

use std::sync::Arc;
use std::time::Duration;

use fathom_engine::{Control, StepBarrier};
use fathom_flow::{
    Case, Ending, Flow, History, JobStep, Next, PointOutcome, RunOptions, Script, Work, outlook,
};
use fathom_model::{Event, Failure, FailureKind, Point, RunStatus};

use crate::flow::support::{Place, Ran};

fn point(id: &str) -> Point {
    Point {
        id: id.into(),
        series: "a".into(),
        x: "bs".into(),
        settings: [].into(),
        repetition: 1,
    }
}

/// A job of 10 s that measures a point.
fn step(number: u32) -> JobStep {
    let name = format!("point-{number}");
    let text = "[job]\nrw=randread\nbs=4k\ntime_based\nsize=1g\nruntime=10\n";
    let mut step = JobStep::new((number, 3), &name, text.to_owned(), &[]);
    step.load.duration = Some(Duration::from_secs(10));
    step.point = Some(point(&name));
    step
}

/// Notes something, leaves a point out, measures the points that are left; goes on where
/// the limits leave no room.
struct Points;

impl Script for Points {
    fn next(&self, history: &History) -> Next {
        let note = "so it begins";
        if !history.has_noted(note) {
            return Next::Note(note.to_owned());
        }
        let turn = history.turn().map_or("", |(id, _)| id);
        match turn {
            "" => Next::LeaveOut(Box::new(point("none")), "not wanted".to_owned()),
            "none" => Next::Do(step(1).task()),
            "point-1" => Next::Do(step(2).task()),
            "point-2" => Next::Do(step(3).task()),
            _ => Next::End(Ending::Complete),
        }
    }

    fn leaves_out(&self) -> bool {
        true
    }
}

/// Always the same.
struct Same(Next);

impl Script for Same {
    fn next(&self, _: &History) -> Next {
        self.0.clone()
    }
}

fn within(place: &Place, limit_s: u64, record: Option<std::path::PathBuf>) -> Ran {
    let flow = place.flow(&Points, record);
    let options = RunOptions {
        max_time: Some(Duration::from_secs(limit_s)),
        ..flow.options
    };
    let ready = Flow { options, ..flow }.look().unwrap();
    let control = Control::default();
    let finish = ready.run(&control, &mut |_| {}, &mut |_| {}).unwrap();
    Ran { finish }
}

#[test]
fn what_the_limits_leave_no_room_for_is_left_out_and_told_once() {
    let place = Place::new("");
    let ran = within(&place, 15, None);
    assert_eq!(ran.finish.status, RunStatus::Interrupted);
    assert_eq!((ran.finish.no_room, &ran.finish.spent), (2, &None));
    assert_eq!(ran.finish.ending, Some(Ending::Complete));
    let told = |ran: &Ran| {
        let events = ran.events().into_iter();
        let skipped = events.filter_map(|event| match event {
            Event::Skipped { point, reason, .. } => Some((point.id, reason)),
            _ => None,
        });
        skipped.collect::<Vec<_>>()
    };
    let first = told(&ran);
    let ids: Vec<&str> = first.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["none", "point-2", "point-3"]);
    assert!(first[1].1.contains("time limit of 15"), "{first:?}");
    // The next start begins anew, and says only what is not in the record.
    let again = within(&place, 15, Some(ran.finish.dir));
    assert_eq!(again.finish.no_room, 2);
    assert_eq!(told(&again), first);
    assert!(matches!(
        again.history().tally().came("point-1", 1),
        Some(PointOutcome::Done(_))
    ));
    let notes = again.events().into_iter();
    let notes =
        notes.filter(|event| matches!(event, Event::Note { text } if text == "so it begins"));
    assert_eq!(notes.count(), 2, "once in each start");
}

#[test]
fn a_failure_of_the_script_stops_the_run_and_stands_in_the_record() {
    let failure = Failure::new(FailureKind::Other, "it is no use");
    let place = Place::new("");
    let ran = place.run(&Same(Next::Fail(failure.clone())));
    assert_eq!(ran.finish.status, RunStatus::Failed);
    assert_eq!(ran.finish.stopped.as_deref(), Some("it is no use"));
    assert!(ran.events().contains(&Event::Failure(failure)));
}

#[test]
fn a_script_that_notes_the_same_for_ever_ends() {
    let script = Same(Next::Note("again".to_owned()));
    let (_, outlook) = outlook(&script, &History::default(), Case::Best);
    let place = Place::new("");
    let ended = place.run(&script).finish.ending;
    assert_eq!(ended.as_ref(), Some(&outlook));
    let Some(Ending::Failed(why)) = ended else {
        panic!("{ended:?}")
    };
    assert!(why.contains("asked again for again"), "{why}");
}

#[test]
fn an_outlook_passes_over_what_is_only_said() {
    let (tasks, ending) = outlook(&Points, &History::default(), Case::Best);
    let is_job = |work: &Work| matches!(work, Work::Job(_));
    assert!(tasks.iter().all(|task| is_job(&task.work)));
    assert_eq!((tasks.len(), ending), (3, Ending::Complete));
}

/// Other machines, which are never ready at once.
#[derive(Debug)]
struct Late;

impl StepBarrier for Late {
    fn record(&self, _: &std::path::Path) {}

    fn event(&self, _: &Event) {}

    fn may_begin(&self, _: u32) -> bool {
        std::thread::sleep(Duration::from_millis(20));
        true
    }

    fn closed(&self, _: RunStatus) {}
}

#[test]
fn a_simulated_device_does_not_age_while_other_machines_are_waited_for() {
    let intervals = |control: Control| {
        let place = Place::new("");
        let ran = place.go_on(&Points, None, &control, &mut |_| {});
        let events = ran.events().into_iter();
        let times = events.filter_map(|event| match event {
            Event::Interval { t_ms, .. } => Some(t_ms),
            _ => None,
        });
        times.collect::<Vec<_>>()
    };
    let alone = intervals(Control::default());
    assert_eq!(alone.len(), 30);
    let together = intervals(Control::default().with_barrier(Arc::new(Late)));
    assert_eq!(together, alone);
}
