use std::collections::BTreeMap;

use fathom_flow::{Task, Work};
use fathom_model::{
    DirectionResult, Event, JobResult, Outcome, Results, SettingValue, StageEnd, StageKind,
};

use fathom_model::environment::Boot;

use super::*;

/// A machine whose settings decide how fast it is.
struct Played<'p> {
    iops: &'p dyn Fn(&BTreeMap<String, String>) -> f64,
    /// The values of each side, by the id of the stage that sets them.
    set: BTreeMap<String, String>,
    history: History,
    steps: Vec<String>,
}

impl Played<'_> {
    fn new(iops: &dyn Fn(&BTreeMap<String, String>) -> f64) -> Played<'_> {
        Played {
            iops,
            set: BTreeMap::new(),
            history: History::default(),
            steps: Vec::new(),
        }
    }

    /// Plays a script to its end.
    fn play(&mut self, script: &dyn Script) -> Ending {
        loop {
            match script.next(&self.history) {
                Next::Do(task) => self.task(&task),
                Next::End(ending) => return ending,
                other => panic!("{other:?}"),
            }
        }
    }

    fn task(&mut self, task: &Task) {
        match &task.work {
            Work::Act(act) => {
                assert_eq!(task.stage.kind, StageKind::Switch);
                for command in act.commands() {
                    let (value, file) = command
                        .trim_start_matches("echo ")
                        .split_once(" > ")
                        .unwrap();
                    self.set.insert(file.to_owned(), value.to_owned());
                }
                let stage = Box::new(task.stage.clone());
                self.history.take(&Event::Stage { stage });
                let (id, end) = (task.stage.id.clone(), StageEnd::Done);
                self.history.take(&Event::StageEnded { id, end });
            }
            Work::Job(step) => {
                self.steps.push(step.name.clone());
                self.history.take(&Event::Step {
                    step: step.number,
                    of: step.of,
                    name: step.name.clone(),
                    point: None,
                });
                let results = results((self.iops)(&self.set));
                self.history.take(&Event::Finished { results });
                let outcome = Outcome::Complete;
                self.history.take(&Event::StepEnded { outcome });
            }
            other => panic!("{other:?}"),
        }
    }
}

fn results(iops: f64) -> Box<Results> {
    let read = DirectionResult {
        total_ios: 1000,
        iops,
        bw_bytes: iops * 4096.0,
        ..DirectionResult::default()
    };
    let job = JobResult {
        read: Some(read),
        ..JobResult::default()
    };
    Box::new(Results {
        jobs: vec![job],
        ..Results::default()
    })
}

fn question(pairs: u32) -> AbQuestion {
    AbQuestion {
        figures: vec![AbFigure::Iops],
        margin: 0.02,
        pairs,
        seed: 7,
    }
}

fn value(name: &str, value: &str) -> TuneValue {
    TuneValue {
        value: value.to_owned(),
        values: vec![SettingValue {
            file: format!("/{name}").into(),
            value: value.to_owned(),
        }],
    }
}

fn knob(name: &str, values: &[&str]) -> TuneKnob {
    TuneKnob {
        name: name.to_owned(),
        values: values.iter().map(|it| value(name, it)).collect(),
        is_by_scheduler: name == "nr_requests",
    }
}

fn tuning() -> TuneScript {
    TuneScript {
        job: JobStep::new((1, 1), "tune", String::new(), &[]),
        config: TuneConfig {
            knobs: vec![
                knob("scheduler", &["none", "bfq", "kyber"]),
                knob("nr_requests", &["128", "32"]),
            ],
            setup: AbSetup::default(),
            coarse: question(8),
            fine: question(20),
        },
    }
}

#[test]
fn the_best_of_each_setting_is_kept_and_compared_with_how_it_stood() {
    let script = tuning();
    let mut played = Played::new(&|set| {
        let scheduler = match set["/scheduler"].as_str() {
            "none" => 1000.0,
            "bfq" => 1100.0,
            _ => 1300.0,
        };
        scheduler
            * if set["/nr_requests"] == "32" {
                0.5
            } else {
                1.0
            }
    });
    assert_eq!(played.play(&script), Ending::Complete);
    let state = script.state(&played.history);
    assert_eq!(state.best, [2, 0]);
    assert!(state.is_better());
    assert_eq!(script.words(&state.best), ["scheduler=kyber"]);
    let sides: Vec<usize> = state.trials.iter().map(|it| it.sides.len()).collect();
    assert_eq!(sides, [3, 2, 2]);
    // Another scheduler is not given the queue of the first one.
    let values = |side: usize| state.trials[1].sides[side].values.len();
    assert_eq!((values(0), values(1)), (1, 2));
    let all: std::collections::BTreeSet<&String> = played.steps.iter().collect();
    assert_eq!(
        all.len(),
        played.steps.len(),
        "names of steps are their own"
    );
}

#[test]
fn where_nothing_matters_nothing_is_set() {
    let script = tuning();
    let mut played = Played::new(&|_| 1000.0);
    assert_eq!(played.play(&script), Ending::Complete);
    let state = script.state(&played.history);
    assert_eq!(state.best, [0, 0]);
    assert!(!state.is_better());
    assert_eq!(state.trials.len(), 2);
}

#[test]
fn every_order_comes_and_a_side_that_is_clear_is_measured_no_more() {
    let all = question(40);
    let race = Race {
        sides: 3,
        first: 1,
        has_boots: false,
        question: &all,
    };
    let mut history = History::default();
    let mut firsts = [0; 3];
    let mut random = 1_u64;
    loop {
        let state = race.state(&history);
        let RaceNext::Measure(step) = state.next else {
            break;
        };
        if state.measured.len() % 3 == 1 {
            firsts[step.side] += 1;
        }
        random = fathom_model::mix::mix(random, 1);
        // The second side is clear at once, the third within the margin never.
        let noise = (random % 1000) as f64 / 5.0;
        let iops = [1000.0, 2000.0, 1010.0][step.side] + noise;
        history.take(&Event::Step {
            step: step.number,
            of: step.number,
            name: String::new(),
            point: None,
        });
        let results = results(iops);
        history.take(&Event::Finished { results });
        let outcome = Outcome::Complete;
        history.take(&Event::StepEnded { outcome });
    }
    let state = race.state(&history);
    let of = |side: usize| state.measured.iter().filter(|it| it.side == side).count();
    assert!(of(1) < of(2), "{} {}", of(1), of(2));
    assert!((6..=10).contains(&of(1)), "{}", of(1));
    assert!(firsts.iter().all(|&n| n > 0), "{firsts:?}");
}

#[test]
fn a_boot_is_right_once_and_for_its_kernel() {
    let boot = |kernel: &str, boot: Option<&str>| Boot {
        kernel: kernel.to_owned(),
        boot: boot.map(str::to_owned),
    };
    let needed = |used: Option<Boot>| NeededBoot {
        kernel: "6.12".to_owned(),
        used,
    };
    let first = boot("6.12", Some("1"));
    assert_eq!(needed(None).lacks(&first), None);
    let lacks = needed(None).lacks(&boot("6.1", Some("1"))).unwrap();
    assert_eq!(lacks, "boot into 6.12 (6.1 is running)");
    let again = needed(Some(first.clone())).lacks(&first).unwrap();
    assert!(again.starts_with("boot into 6.12 anew"), "{again}");
    assert_eq!(needed(Some(first)).lacks(&boot("6.12", Some("2"))), None);
    // Boots that have no name are not told apart.
    let unnamed = boot("6.12", None);
    assert_eq!(needed(Some(unnamed.clone())).lacks(&unnamed), None);
}

#[test]
fn with_boots_every_measurement_has_a_warm_up_and_the_order_is_the_same() {
    let asked = question(6);
    let race = |has_boots: bool| Race {
        sides: 2,
        first: 1,
        has_boots,
        question: &asked,
    };
    let sides = |has_boots: bool| {
        let mut history = History::default();
        while let RaceNext::Measure(step) = race(has_boots).state(&history).next {
            let (step, of) = (step.number, step.number);
            let name = String::new();
            history.take(&Event::Step {
                step,
                of,
                name,
                point: None,
            });
            history.take(&Event::Finished {
                results: results(1000.0),
            });
            let outcome = Outcome::Complete;
            history.take(&Event::StepEnded { outcome });
        }
        race(has_boots).state(&history).measured
    };
    let counted = |has_boots: bool| -> Vec<usize> {
        let counted = sides(has_boots).into_iter().filter(|step| !step.is_warm_up);
        counted.map(|step| step.side).collect()
    };
    assert_eq!(counted(true), counted(false));
    let all = sides(true);
    assert_eq!(all.len(), 24);
    for pair in all.chunks(2) {
        assert_eq!((pair[0].is_warm_up, pair[1].is_warm_up), (true, false));
        assert_eq!(pair[0].side, pair[1].side);
    }
}
