//! A flow that was stopped or killed goes on where it was.

use fathom_engine::Control;
use fathom_flow::Ending;
use fathom_model::{Event, RunStatus, StageEnd};

use crate::flow::support::{Place, Small};

#[test]
fn stages_that_ended_are_not_done_again_and_an_interrupted_one_is_done_anew() {
    for stopped_in in ["fill", "settle", "round-1", "round-2"] {
        let place = Place::new("");
        let control = Control::default();
        let mut inside = false;
        let first = place.go_on(
            &Small::default(),
            None,
            &control,
            &mut |event| match event {
                Event::Stage { stage } => inside = stage.id == stopped_in,
                Event::Interval { .. } if inside => control.stop(),
                _ => {}
            },
        );
        assert_eq!(first.finish.status, RunStatus::Interrupted);
        assert_eq!(first.finish.ending, None);
        let dir = first.finish.dir.clone();
        let second = place.go_on(
            &Small::default(),
            Some(dir.clone()),
            &Control::default(),
            &mut |_| {},
        );
        assert_eq!(second.finish.dir, dir);
        assert_eq!(second.finish.ending, Some(Ending::Complete));
        let stages = second.stages();
        assert_eq!(stages.len(), 5, "{stages:?}");
        for (id, end) in stages {
            let twice = id == stopped_in;
            let past = second.history().past(&id).cloned().unwrap();
            assert_eq!(past.attempts, if twice { 2 } else { 1 }, "{id}");
            assert!(
                end == Some(StageEnd::Done) || (twice && end.is_none()),
                "{id} {end:?}"
            );
        }
        assert_eq!(second.history().gaps().len(), 1);
        // Nothing is left to do the third time.
        let third = place.go_on(
            &Small::default(),
            Some(dir),
            &Control::default(),
            &mut |_| {},
        );
        assert_eq!(third.stages().len(), 5);
    }
}

#[test]
fn a_stage_that_failed_is_done_anew_by_whoever_resumes() {
    let place = Place::new("fail = { after_s = 20 }\n");
    let first = place.run(&Small::default());
    assert_eq!(first.finish.status, RunStatus::Failed);
    assert!(matches!(first.finish.ending, Some(Ending::Failed(_))));
    std::fs::copy(place.path().join("device.toml"), place.path().join("old")).unwrap();
    std::fs::write(
        place.path().join("device.toml"),
        "format = \"fathom-sim-device\"\nversion = 1\n",
    )
    .unwrap();
    let second = place.go_on(
        &Small::default(),
        Some(first.finish.dir),
        &Control::default(),
        &mut |_| {},
    );
    assert_eq!(second.finish.ending, Some(Ending::Complete));
    let past = second.history().past("settle").cloned().unwrap();
    assert_eq!((past.attempts, past.end), (2, Some(StageEnd::Done)));
}
