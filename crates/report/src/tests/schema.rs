//! Documents are held against docs/schemas/run-1.json, by a validator that is not ours.

use fathom_model::{Certainty, RateCertainty};

use super::*;

fn valid(doc: &RunDocument) {
    let schema = include_str!("../../../../docs/schemas/run-1.json");
    let validator = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let document = serde_json::to_value(doc).unwrap();
    let errors = validator.iter_errors(&document);
    let wrong: Vec<String> = errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn documents_keep_to_the_schema() {
    let mut job = reader("r");
    job.sync = job.read.as_ref().unwrap().clat.clone();
    job.iodepth_percent = vec![(">=64".into(), 100.0)];
    let mut unified = reader("unified");
    unified.mixed = unified.read.take();
    (unified.write, unified.trim) = (None, None);
    let failure = fathom_model::Failure::new(fathom_model::FailureKind::Io, "a read failed");
    let complete = vec![
        step(1, 2, "one"),
        started(),
        Event::Failure(failure.about("r").with_errno(5)),
        finished(vec![job, unified, JobResult::default()], vec![disk(1)]),
        step(2, 2, "two"),
        jobs(&["killed"]),
        sample(1000, 0, Direction::Write, 5, 1000),
    ];
    let mut doc = document_of(RunStatus::Failed, complete);
    valid(&doc);
    // And with everything that is seldom there.
    doc.jobs[0].port = Some(8765);
    doc.disks[0].host = Some("h".into());
    let mut verdict = fathom_model::FigureVerdict::default();
    for kind in fathom_model::ReasonKind::ALL {
        let text = kind.sentence().to_owned();
        verdict.add(fathom_model::VerdictReason::found(
            *kind,
            text,
            [("n", 1.0)],
        ));
    }
    doc.jobs[0].read.as_mut().unwrap().verdict = Some(verdict);
    let device = &mut doc.environment.as_mut().unwrap().targets[0].device;
    device.as_mut().unwrap().partition = Some(Partition::default());
    let interval = Certainty::Interval {
        low: 1.0,
        high: 2.0,
        independent: 40.0,
    };
    let shift = Certainty::LevelShift {
        at_ms: 1000,
        from: 1.0,
        to: 2.0,
    };
    let read = doc.jobs[0].read.as_mut().unwrap();
    read.certainty = Some(RateCertainty {
        intervals: 60,
        iops: interval,
        bw_bytes: shift,
    });
    let clat = doc.jobs[0].read.as_mut().unwrap().clat.as_mut().unwrap();
    clat.histogram = Some(Histogram::new());
    valid(&doc);
}
