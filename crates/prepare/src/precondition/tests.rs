use fathom_flow::{Case, outlook};
use fathom_model::Event;

use super::*;

fn settings() -> PreconditionSettings {
    PreconditionSettings::usual(PreconditionMethod::SantaClara, "/dev/nvme9n1".into())
}

fn script(phase: DevicePhase) -> Precondition {
    Precondition {
        settings: Some(settings()),
        here: DeviceFacts {
            capacity_bytes: Some(1_000_204_886_016),
            has_sprandom: false,
        },
        first: Vec::new(),
        phase,
        pass: 1,
        skip: None,
        scope: String::new(),
    }
}

fn ids(script: &Precondition, history: &History, case: Case) -> (Vec<String>, Ending) {
    let (tasks, ending) = outlook(script, history, case);
    (
        tasks.into_iter().map(|task| task.stage.id).collect(),
        ending,
    )
}

fn past(stages: &[(&str, StageEnd)]) -> History {
    let mut history = History::default();
    for (id, end) in stages {
        let stage = Stage {
            id: (*id).to_owned(),
            kind: StageKind::Fill,
            title: String::new(),
            round: None,
        };
        history.take(&Event::Stage {
            stage: Box::new(stage),
        });
        history.take(&Event::StageEnded {
            id: (*id).to_owned(),
            end: end.clone(),
        });
    }
    history
}

const SEQUENTIAL: [&str; 3] = ["fill-seq-1", "fill-seq-2", "settle-seq"];

#[test]
fn random_work_is_preceded_by_the_sequential_one_in_strict_order() {
    let nothing = History::default();
    let (stages, ending) = ids(&script(DevicePhase::Sequential), &nothing, Case::Best);
    assert_eq!(stages, SEQUENTIAL);
    assert_eq!(ending, Ending::Complete);
    let random = ["fill-rand-1", "fill-rand-2", "settle-rand"];
    let (stages, _) = ids(&script(DevicePhase::Random), &nothing, Case::Best);
    assert_eq!(stages, [SEQUENTIAL, random].concat());
    let mut loose = script(DevicePhase::Random);
    loose.settings.as_mut().unwrap().strict_order = false;
    let (stages, _) = ids(&loose, &nothing, Case::Best);
    assert_eq!(stages, [&SEQUENTIAL[..2], &random].concat());
    // What the sequential phase did is not done again.
    let done: Vec<_> = SEQUENTIAL.iter().map(|id| (*id, StageEnd::Done)).collect();
    let (stages, _) = ids(&script(DevicePhase::Random), &past(&done), Case::Best);
    assert_eq!(stages, random);
}

#[test]
fn a_hard_limit_ends_it_and_a_soft_one_goes_on() {
    let nothing = History::default();
    let (stages, ending) = ids(&script(DevicePhase::Random), &nothing, Case::Worst);
    assert_eq!(stages, SEQUENTIAL);
    assert!(matches!(ending, Ending::NotAttained(_)));
    let mut soft = script(DevicePhase::Random);
    let settings = soft.settings.as_mut().unwrap();
    settings.steady.as_mut().unwrap().soft = true;
    let (stages, ending) = ids(&soft, &nothing, Case::Worst);
    assert_eq!((stages.len(), ending), (6, Ending::Complete));
}

#[test]
fn sequential_work_after_random_work_begins_another_pass() {
    let done = |id| (id, StageEnd::Done);
    let history = past(&[done("fill-seq-1"), done("settle-seq"), done("fill-rand-1")]);
    let (stages, _) = ids(&script(DevicePhase::Sequential), &history, Case::Best);
    assert_eq!(stages, ["fill-seq-1.2", "fill-seq-2.2", "settle-seq.2"]);
    let mut stale = script(DevicePhase::Sequential);
    stale.pass = 3;
    let (stages, _) = ids(&stale, &history, Case::Best);
    assert_eq!(stages, ["fill-seq-1.3", "fill-seq-2.3", "settle-seq.3"]);
}

#[test]
fn a_state_that_was_found_is_said_and_what_comes_before_it_left_out() {
    let mut skips = script(DevicePhase::Sequential);
    skips.skip = Some("it is steady already".into());
    let nothing = History::default();
    let (stages, _) = ids(&skips, &nothing, Case::Best);
    assert_eq!(stages, ["settle-seq"]);
    let found = StageEnd::Skipped {
        reason: "it is".into(),
    };
    let history = past(&[("settle-seq", found)]);
    let (stages, _) = ids(&script(DevicePhase::Random), &history, Case::Best);
    assert_eq!(stages, ["fill-rand-1", "fill-rand-2", "settle-rand"]);
}

#[test]
fn several_jobs_fill_the_range_without_gap_and_overlap() {
    let here = DeviceFacts {
        capacity_bytes: Some(1_000_204_886_016),
        has_sprandom: false,
    };
    for jobs in [1, 3, 4, 64] {
        let settings = PreconditionSettings {
            numjobs: jobs,
            range: ActiveRange::Percent(75),
            ..settings()
        };
        let text = super::jobs::fill(&settings, DevicePhase::Sequential, here);
        let numbers = |name: &str| -> Vec<u64> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.map(|number| number.parse().unwrap()).collect()
        };
        let (offsets, sizes) = (numbers("offset="), numbers("size="));
        assert_eq!(offsets.len(), jobs as usize);
        let mut end = 0;
        for (offset, size) in offsets.into_iter().zip(sizes) {
            assert_eq!(offset, end);
            assert_eq!(offset % (128 << 10), 0);
            end = offset + size;
        }
        let range = settings.range.bytes(here.capacity_bytes, 128 << 10);
        assert_eq!(Some(end), range);
    }
}

#[test]
fn generated_files_say_percent_and_have_the_names_of_fio_tests() {
    let files = files(&settings());
    let names: Vec<_> = files
        .iter()
        .map(|file| file.path.to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "pre-conditioning/0001-workload-independent/0001-pre-condition-sequential.ini",
            "pre-conditioning/0001-workload-independent/0002-pre-condition-random.ini",
            "pre-conditioning/0002-workload-dependent/sequential/0001-fio_ss_generic-sequential-iops.ini",
            "pre-conditioning/0002-workload-dependent/random/0001-fio_ss_generic-random-iops.ini",
            "pre-conditioning/0002-workload-dependent/sequential/0002-fio_ss_generic-sequential-bw.ini",
            "pre-conditioning/0002-workload-dependent/random/0002-fio_ss_generic-random-bw.ini",
        ]
    );
    assert!(files[0].text.contains("[fill-4]\noffset=75%\nsize=25%\n"));
    assert!(files[2].text.contains("900 × 1.0 s"), "{}", files[2].text);
}

#[test]
fn fast_random_fill_is_named_and_done_once() {
    let mut fast = script(DevicePhase::Random);
    fast.here.has_sprandom = true;
    let (tasks, _) = outlook(&fast, &History::default(), Case::Best);
    let fill = tasks.iter().find(|task| task.stage.id == "fill-rand-1");
    let fill = fill.unwrap();
    assert_eq!(fill.stage.title, "fill at random by fio's sprandom, 4 KiB");
    assert!(!tasks.iter().any(|task| task.stage.id == "fill-rand-2"));
    let text = fill.work.job_texts().next().unwrap();
    assert!(text.contains("sprandom=1"), "{text}");
}

#[test]
fn both_rules_by_their_names_and_one_window_where_the_times_agree() {
    let steady = settings().steady.unwrap();
    let all = steady.criteria();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].ask.metrics, [Metric::Iops, Metric::Bandwidth]);
    assert_eq!(all[0].rule.window(), 900);
    assert_eq!(steady.most(), Duration::from_secs(5 * 900 + 2));
    let mut two = steady.clone();
    two.iops.as_mut().unwrap().slope_window = Duration::from_secs(60);
    assert_eq!(two.criteria().len(), 3);
    let snia = PreconditionSettings::usual(PreconditionMethod::Snia, "/dev/x".into());
    let criteria = snia.steady.unwrap().criteria();
    assert_eq!(criteria[0].rule, WindowRule::SNIA);
    assert_eq!(criteria[0].ask.span, RoundSpan::Time(60_000));
}

#[test]
fn two_steps_of_a_plan_file_each_count_stages_of_their_own() {
    let of_step = |name: &str| Precondition {
        scope: format!("{name}/"),
        ..script(DevicePhase::Sequential)
    };
    let begun = [
        ("a-rand/settle-seq", StageEnd::Done),
        ("b/fill-rand-1.2", StageEnd::Done),
    ];
    let (stages, _) = ids(&of_step("a-rand"), &past(&begun), Case::Best);
    assert_eq!(stages, ["a-rand/fill-seq-1", "a-rand/fill-seq-2"]);
    let (stages, _) = ids(&of_step("b"), &past(&begun), Case::Best);
    let again = SEQUENTIAL.map(|stage| format!("b/{stage}.3"));
    assert_eq!(stages, again);
}
