//! Records that go on: after a stop, a kill, a change of the jobs.

use std::fs;
use std::path::Path;

use fathom_campaign::run::RunStart;
use fathom_engines::EngineName;
use fathom_flow::error::RunError;
use fathom_flow::plan_log::{Head, PLAN_FILE};
use fathom_flow::progress::{PointCounts, Progress};
use fathom_model::{Event, Exit, RunStatus};
use fathom_record::{EVENTS, Entries, Header, Record, Writer};

use crate::run::support::{Campaign, begun, progress};

#[test]
fn a_campaign_runs_once_and_says_when_nothing_is_left() {
    let mut campaign = Campaign::on("");
    let finish = campaign.run().unwrap();
    assert_eq!(finish.status, RunStatus::Complete);
    assert_eq!(begun(&finish.dir).len(), 16);
    let counts = progress(&finish.dir).counts();
    assert_eq!((counts.done, counts.left), (16, 0));
    assert_eq!(campaign.left(), 0);
    assert_eq!(campaign.begin(RunStart::Again).left(), 16);
    let again = campaign.run().unwrap();
    assert_ne!(again.dir, finish.dir);
    assert_eq!(campaign.begin(RunStart::Run).left(), 0);
}

#[test]
fn a_record_holds_the_job_files_as_run_a_raw_folder_for_each_and_its_plan() {
    let campaign = Campaign::on("");
    fs::write(campaign.dir.path().join(".config"), "CONFIG_X=y\n").unwrap();
    let dir = campaign.run().unwrap().dir;
    let step = &campaign.plan.steps[3];
    let id = &step.point.id;
    let job = fs::read_to_string(dir.join(format!("jobs/{id}.ini"))).unwrap();
    assert!(job.contains("iodepth=8") && job.contains("allow_file_create=0"));
    assert!(dir.join("raw").join(id).is_dir());
    assert!(dir.join("config").exists());
    let header = Entries::open(&dir).unwrap().header;
    assert_eq!(header.command, "run");
    assert!(header.name.ends_with("(simulated)"), "{}", header.name);
    let logs = campaign.dir.path().join("logs");
    assert!(logs.join("runs/END").exists());
    let points = fs::read_to_string(logs.join("performance-evaluation/unprovisioned/nothing"));
    // Two lines for each point, and the begin and end of all.
    assert_eq!(points.unwrap().lines().count(), 2 * 16 + 2);
}

#[test]
fn a_stopped_campaign_goes_on_where_it_was_and_the_stop_stands_in_the_record() {
    let mut campaign = Campaign::on("");
    let refused = campaign.begin(RunStart::Resume).run().unwrap_err();
    assert_eq!(refused.exit(), Exit::Missing);
    campaign.begin(RunStart::Run);
    let first = campaign.run_until(5);
    assert_eq!(first.status, RunStatus::Interrupted);
    let logs = campaign.dir.path().join("logs/runs");
    assert!(logs.join("START").exists() && !logs.join("END").exists());
    assert_eq!(
        campaign.left(),
        12,
        "the point that was stopped is not done"
    );
    let second = campaign.begin(RunStart::Resume).run().unwrap();
    assert_eq!(
        (&second.dir, second.status),
        (&first.dir, RunStatus::Complete)
    );
    let begun = begun(&first.dir);
    assert_eq!(begun.len(), 17);
    assert_eq!(begun[4], begun[5]);
    let record = Record::open(&first.dir).unwrap();
    let resumed = record.entries.iter().filter(|entry| {
        let after = Some(RunStatus::Interrupted);
        matches!(&entry.event, Event::Resumed { after: told, .. } if *told == after)
    });
    assert_eq!(resumed.count(), 1);
    // The run's own time stands still in between and never goes back.
    let times = record.entries.iter().filter_map(|entry| match entry.event {
        Event::Interval { t_ms, .. } => Some(t_ms),
        _ => None,
    });
    assert!(times.collect::<Vec<_>>().is_sorted());
    assert!(logs.join("END").exists());
}

#[test]
fn figures_that_a_kill_may_have_cut_short_are_measured_again() {
    let campaign = Campaign::on("");
    let dir = campaign.run().unwrap().dir;
    // As if killed between the last figures and the end of their step.
    let events = dir.join("events.jsonl");
    let text = fs::read_to_string(&events).unwrap();
    let end = text.rfind("\"step_ended\"").unwrap();
    let cut = text[..end].rfind("{\"at_ms\"").unwrap();
    fs::write(&events, &text[..cut]).unwrap();
    assert_eq!(campaign.todo(), ["b 128 #1"]);
}

/// Breaks the first line of a record.
fn damage(dir: &Path) {
    let log = dir.join(EVENTS);
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen('{', "\0", 1)).unwrap();
}

#[test]
fn a_campaign_whose_last_record_cannot_be_read_goes_on_with_no_other() {
    let mut campaign = Campaign::on("");
    campaign.run().unwrap();
    let meant = campaign.begin(RunStart::Again).run().unwrap().dir;
    damage(&meant);
    for begin in [RunStart::Run, RunStart::Resume] {
        let refused = campaign.begin(begin).run().unwrap_err();
        assert_eq!(refused.exit(), Exit::Refused);
        let name = meant.file_name().unwrap().to_str().unwrap();
        assert!(refused.to_string().contains(name), "{refused}");
    }
    assert_eq!(campaign.begin(RunStart::Again).left(), 16);
    // A damaged record of another command is not one of a campaign.
    fs::remove_dir_all(&meant).unwrap();
    let other = Writer::create(&campaign.runs_dir(), &Header::new("x", "job run")).unwrap();
    damage(&other.finish(RunStatus::Complete).unwrap());
    assert_eq!(campaign.begin(RunStart::Resume).left(), 0);
}

#[test]
fn a_changed_job_file_is_measured_again_and_both_are_kept() {
    let mut campaign = Campaign::on("");
    let dir = campaign.run().unwrap().dir;
    campaign.plan.steps[0].job_text.push_str("ramp_time=1\n");
    assert_eq!(campaign.todo(), ["a 1 #1"]);
    campaign.run().unwrap();
    assert_eq!(campaign.left(), 0);
    let id = campaign.plan.steps[0].point.id.clone();
    assert!(dir.join(format!("jobs/{id}.ini")).exists());
    assert!(dir.join(format!("jobs/{id}.2.ini")).exists());
    assert!(dir.join(format!("raw/{id}.try2")).exists());
    // Back to the first text: measured a third time, kept once.
    let back = campaign.plan.steps[0].job_text.replace("ramp_time=1\n", "");
    campaign.plan.steps[0].job_text = back;
    assert_eq!(campaign.todo(), ["a 1 #1"]);
    campaign.run().unwrap();
    assert!(!dir.join(format!("jobs/{id}.3.ini")).exists());
    assert_eq!(campaign.left(), 0);
}

#[test]
fn a_part_of_a_campaign_and_then_the_whole_go_into_one_record() {
    let mut campaign = Campaign::on("");
    let all = campaign.plan.steps.clone();
    campaign.plan.steps.truncate(4);
    campaign.options.partial = true;
    let part = campaign.run().unwrap();
    assert_eq!(part.status, RunStatus::Complete);
    assert!(!campaign.dir.path().join("logs/runs/END").exists());
    campaign.plan.steps = all;
    campaign.options.partial = false;
    assert_eq!(campaign.left(), 12);
    assert_eq!(campaign.run().unwrap().dir, part.dir);
    let counts = progress(&part.dir).counts();
    assert_eq!((counts.steps, counts.done), (16, 16));
}

#[test]
fn another_engine_does_not_go_on_in_the_record() {
    let mut campaign = Campaign::on("");
    campaign.run().unwrap();
    campaign.plan.settings.options.engine = Some(EngineName::Native);
    campaign.plan.dut = "file".into();
    for step in &mut campaign.plan.steps {
        step.job_text = step.job_text.replace("/dev/nothing", "file");
    }
    let refused = campaign.run().unwrap_err();
    assert_eq!(refused.exit(), Exit::Refused);
    let words = refused.to_string();
    assert!(
        words.contains("of the engine sim") && words.contains("--again"),
        "{words}"
    );
}

#[test]
fn two_at_once_are_refused_and_a_folder_of_another_campaign_is_none_of_its_records() {
    let campaign = Campaign::on("");
    let dir = campaign.run().unwrap().dir;
    let mut other = Campaign::on("");
    other.plan.steps[0].job_text.push_str("ramp_time=1\n");
    let writer = Writer::reopen(&dir).unwrap();
    let mut same = campaign;
    same.plan.steps[0].job_text.push_str("ramp_time=1\n");
    let busy = same.run().unwrap_err();
    assert!(matches!(&busy, RunError::Record(_)), "{busy}");
    assert_eq!(busy.exit(), Exit::Refused);
    drop(writer);
    assert_eq!(other.left(), 16);
}

#[test]
fn faulty_job_files_are_told_before_anything_runs() {
    let mut campaign = Campaign::on("");
    campaign.plan.steps[2].job_text.push_str("bs=nonsense\n");
    let wrong = campaign.run().unwrap_err();
    assert_eq!(wrong.exit(), Exit::Input);
    assert!(wrong.to_string().contains(".ini:11:"), "{wrong}");
    campaign.plan.steps.clear();
    assert_eq!(campaign.run().unwrap_err().exit(), Exit::Input);
    assert!(!campaign.runs_dir().exists());
}

#[test]
fn progress_tells_what_is_left_while_it_runs() {
    let campaign = Campaign::on("");
    let seen = std::cell::RefCell::new(None);
    let mut tracked = None;
    let ready = fathom_campaign::run::ready(
        &campaign.plan,
        &campaign.runs_dir(),
        campaign.options.clone(),
    );
    let ready = ready.unwrap();
    let mut begun = |dir: &std::path::Path| {
        *seen.borrow_mut() = Some(fathom_flow::progress::Progress::open(dir).unwrap().0);
    };
    let mut observer = |event: &Event| {
        let mut progress = seen.borrow_mut();
        let progress = progress.as_mut().unwrap();
        progress.take(0, event);
        if let (Event::Interval { .. }, Some(current)) = (event, progress.current())
            && current.step == 3
            && current.ran_ms == 2000
        {
            tracked = Some((progress.counts(), progress.left_ms(), current.clone()));
        }
    };
    ready
        .run(&campaign.control, &mut begun, &mut observer)
        .unwrap();
    let (counts, left_ms, current) = tracked.unwrap();
    let expected = PointCounts {
        steps: 16,
        done: 2,
        left: 14,
        ..PointCounts::default()
    };
    assert_eq!((counts, left_ms), (expected, Some(14 * 3000 - 2000)));
    assert_eq!(current.remaining_ms, Some(1000));
}

#[test]
fn a_run_killed_before_it_wrote_its_plan_goes_on() {
    let mut campaign = Campaign::on("");
    let dir = campaign.run_until(1).dir;
    fs::remove_file(dir.join(PLAN_FILE)).unwrap();
    assert!(Head::read(&dir).unwrap().is_none());
    // What has happened so far is all that is known.
    let counts = Progress::read(&dir).unwrap().counts();
    assert_eq!((counts.done, counts.steps), (0, 16));
    assert_eq!(campaign.begin(RunStart::Resume).run().unwrap().dir, dir);
    assert_eq!(Progress::read(&dir).unwrap().counts().done, 16);
}
