//! Devices as campaigns meet them; an hour each, in milliseconds.

use super::*;
use std::ops::ControlFlow;

/// Keeps the events.
#[derive(Default)]
struct Kept(Vec<Event>);

impl Sink for Kept {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        self.0.push(event);
        ControlFlow::Continue(())
    }
}

const JOB: &str = "[a]\nrw=randrw\nrwmixread=70\nbs=4k\niodepth=8\ntime_based\nruntime=1h\n";

fn run(sim: &Sim, job: &str, deadline: Option<Duration>) -> (Outcome, Kept) {
    let dir = tempfile::tempdir().unwrap();
    let job_file = dir.path().join("job.fio");
    std::fs::write(&job_file, job).unwrap();
    let request = Request {
        job_file,
        sections: vec![],
        extra_args: vec![],
        work_dir: dir.path().to_owned(),
        raw_dir: dir.path().join("raw"),
        interval: Duration::from_secs(1),
        deadline,
        fio: None,
        checked: None,
    };
    let mut kept = Kept::default();
    let outcome = sim.run(&request, &Control::default(), &mut kept).unwrap();
    (outcome, kept)
}

fn sim(text: &str) -> Sim {
    let head = "format = \"fathom-sim-device\"\nversion = 1\n";
    Sim::new(toml::from_str(&format!("{head}{text}")).unwrap())
}

/// I/Os of each second.
fn rates(kept: &Kept) -> Vec<u64> {
    let mut rates = vec![0];
    for event in &kept.0 {
        match event {
            Event::Sample(sample) => *rates.last_mut().unwrap() += sample.ios,
            Event::Interval { .. } => rates.push(0),
            _ => {}
        }
    }
    rates.pop();
    rates
}

fn failure(kept: &Kept) -> &Failure {
    fn of(event: &Event) -> Option<&Failure> {
        match event {
            Event::Failure(failure) => Some(failure),
            _ => None,
        }
    }
    kept.0.iter().rev().find_map(of).unwrap()
}

#[test]
fn an_hour_passes_at_once_and_is_the_same_each_time() {
    let results = || {
        let sim = sim("");
        let (outcome, kept) = run(&sim, JOB, None);
        assert_eq!(outcome, Outcome::Complete);
        assert_eq!(sim.now(), Duration::from_secs(3600));
        kept.0
    };
    let events = results();
    assert!(events == results());
    let Some(Event::Finished { results }) = events.last() else {
        panic!()
    };
    let job = &results.jobs[0];
    let (read, write) = (job.read.as_ref().unwrap(), job.write.as_ref().unwrap());
    let share = read.iops / (read.iops + write.iops);
    assert!((share - 0.7).abs() < 0.01, "{share}");
    let clat = read.clat.as_ref().unwrap();
    let expected_ns = 8.0 / (read.iops + write.iops) * 1e9;
    assert!((clat.mean_ns / expected_ns - 1.0).abs() < 0.05);
}

#[test]
fn devices_change_with_time() {
    let first_and_last = |text: &str| {
        let rates = rates(&run(&sim(text), JOB, None).1);
        (rates[10] as f64, rates[rates.len() - 10] as f64)
    };
    let (first, last) = first_and_last("drift_percent_per_hour = -50");
    assert!((last / first - 0.5).abs() < 0.05);
    let (first, last) = first_and_last("drift_percent_per_hour = 100");
    assert!((last / first - 2.0).abs() < 0.2);
    let (first, last) = first_and_last("[settle]\nfresh_percent = 400\nseconds = 300");
    assert!((first / last - 4.0).abs() < 0.3);
    let swing = rates(&run(&sim("[swing]\npercent = 20\nseconds = 60"), JOB, None).1);
    assert!(swing[15] as f64 > 1.3 * swing[45] as f64);
    let wander = rates(&run(&sim("wander_percent = 5"), JOB, None).1);
    let (low, high) = (wander.iter().min().unwrap(), wander.iter().max().unwrap());
    assert!(*high as f64 > 1.5 * *low as f64, "{low} {high}");
}

#[test]
fn devices_fail_vanish_and_stall() {
    let failing = sim("[fail]\nafter_s = 10");
    let (outcome, kept) = run(&failing, JOB, None);
    assert_eq!(
        (outcome, failure(&kept).errno, rates(&kept).len()),
        (Outcome::Failed, Some(5), 10)
    );
    let (_, kept) = run(&sim("[fail]\nin_flight = 8\nerrno = 11"), JOB, None);
    assert_eq!(failure(&kept).errno, Some(11));
    let gone = sim("vanish_after_s = 10");
    run(&gone, JOB, None);
    let (_, kept) = run(&gone, JOB, None);
    assert_eq!(failure(&kept).kind, FailureKind::NoDevice);
    let (outcome, kept) = run(&sim("[stall]\nafter_s = 10\nfor_s = 60"), JOB, None);
    assert_eq!(outcome, Outcome::Complete);
    assert_eq!(rates(&kept).iter().filter(|&&rate| rate == 0).count(), 60);
    let Some(Event::Finished { results }) = kept.0.last() else {
        panic!("{:?}", kept.0.last());
    };
    for (dir, result) in results.jobs[0]
        .directions()
        .filter(|(_, r)| r.total_ios > 0)
    {
        let clat = result.clat.as_ref().unwrap();
        assert!(clat.max_ns > 60_000_000_000, "{dir:?}: {clat:?}");
        assert!(clat.percentile_ns(99.9).unwrap() < 1_000_000_000);
    }
    let (_, kept) = run(&sim("[stall]\nafter_s = 10"), JOB, None);
    assert_eq!(failure(&kept).kind, FailureKind::Hung);
    let limit = Some(Duration::from_secs(60));
    let (_, kept) = run(&sim("[stall]\nafter_s = 10"), JOB, limit);
    assert_eq!(failure(&kept).kind, FailureKind::TimeLimit);
}

#[test]
fn a_size_ends_a_job_too() {
    let (outcome, kept) = run(&sim(""), "[a]\nrw=write\nbs=1m\nsize=1g\n", None);
    assert_eq!(outcome, Outcome::Complete);
    let Some(Event::Finished { results }) = kept.0.last() else {
        panic!()
    };
    let bytes = results.jobs[0].write.as_ref().unwrap().io_bytes as f64;
    assert!((bytes / f64::from(1 << 30) - 1.0).abs() < 0.02, "{bytes}");
}

#[test]
fn a_life_is_taken_up_where_events_have_left_it() {
    const DEVICE: &str =
        "wander_percent = 2\nnoise_percent = 5\n[settle]\nfresh_percent = 300\nseconds = 60";
    // Of these two the first ends within a ms.
    let jobs = ["[a]\nrw=write\nbs=1m\nsize=5g\n", &JOB.replace("1h", "90s")];
    let lived = sim(DEVICE);
    let mut events = Vec::new();
    let mut life_of_first = Duration::ZERO;
    for (step, job) in (1..).zip(jobs) {
        life_of_first = lived.now();
        let began_ms = lived.now().as_millis() as u64;
        events.push(Event::Step {
            step,
            of: 2,
            name: String::new(),
            point: None,
        });
        events.extend(run(&lived, job, None).1.0.into_iter().map(|mut event| {
            if let Event::Interval { t_ms, .. } = &mut event {
                *t_ms += began_ms;
            }
            event
        }));
        let outcome = fathom_model::Outcome::Complete;
        events.push(Event::StepEnded { outcome });
    }
    let relived = |events: &[Event]| {
        let again = sim(DEVICE);
        let events = events.iter().cloned().map(Ok::<_, ()>);
        again.restore(events).unwrap();
        again
    };
    let again = relived(&events);
    assert_eq!(again.now(), lived.now());
    assert!(run(&again, JOB, None).1.0 == run(&lived, JOB, None).1.0);
    // What was cut short has not happened.
    for cut in [1, 40] {
        let cut = relived(&events[..events.len() - cut]);
        assert_eq!(cut.now(), life_of_first);
    }
}
