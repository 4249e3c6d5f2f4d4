//! Runs on several machines: what their sums hide is told beside them.

use fathom_model::{Host, ReasonKind};

use super::*;
use fathom_sheet::style::Style;

/// What three hosts did: name, bytes per second, run time.
fn run(parts: &[(&str, f64, u64)], more: Vec<Event>) -> RunDocument {
    let part = |&(name, bw_bytes, runtime_ms): &(&str, f64, u64)| JobResult {
        name: "rd".into(),
        hostname: Some(name.into()),
        runtime_ms: Some(runtime_ms),
        read: Some(DirectionResult {
            total_ios: 5000,
            io_bytes: (bw_bytes * runtime_ms as f64 / 1000.0) as u64,
            bw_bytes,
            iops: bw_bytes / 4096.0,
            runtime_ms,
            ..DirectionResult::default()
        }),
        ..JobResult::default()
    };
    let host = |&(name, ..): &(&str, f64, u64)| Host {
        name: name.into(),
        node: Some("node7".into()),
        start_ms: Some(0.0),
        ..Host::default()
    };
    let mut events = vec![started()];
    events.extend(more);
    let hosts = parts.iter().map(host).collect();
    events.push(Event::Hosts { hosts });
    events.push(finished(parts.iter().map(part).collect(), Vec::new()));
    document_of(RunStatus::Complete, events)
}

fn kinds_of(doc: &RunDocument, job: usize) -> Vec<ReasonKind> {
    doc.jobs[job].read.as_ref().unwrap().kinds()
}

#[test]
fn a_slow_host_is_told_by_name_and_share_and_shown_with_its_node() {
    let parts = [("a", 4e6, 9000), ("b", 4.2e6, 9000), ("c", 2e6, 9000)];
    let doc = run(&parts, Vec::new());
    assert_eq!(doc.jobs[3].name, "All clients");
    assert_eq!(kinds_of(&doc, 3), [ReasonKind::SlowHost]);
    assert_eq!(kinds_of(&doc, 2), [ReasonKind::SlowHost]);
    assert_eq!(kinds_of(&doc, 0), []);
    let note = &doc.notes[0];
    assert!(
        note.starts_with("c (read, 50 % of the median bandwidth): "),
        "{note}"
    );
    let told = crate::table(&doc, Style::default());
    assert!(told.contains("rd on c (node7)"), "{told}");
    // The sum of all is told once, and not as a group's, which counts otherwise.
    assert!(!told.contains("max job"), "{told}");
}

#[test]
fn the_share_of_time_that_not_all_shared_stands_at_the_sum() {
    let parts = [("a", 4e6, 10_000), ("b", 4e6, 6000)];
    let doc = run(&parts, Vec::new());
    assert_eq!(kinds_of(&doc, 2), [ReasonKind::Apart]);
    let note = &doc.notes[0];
    assert!(note.contains("not all ran for 40 % of 10.0 s"), "{note}");
    assert!(note.contains("each host's own over its own time"), "{note}");
}

#[test]
fn what_spoils_a_part_spoils_the_sum_and_a_doubted_step_all_of_it() {
    let parts = [("a", 4e6, 900), ("b", 4e6, 900)];
    let doc = run(&parts, Vec::new());
    assert_eq!(kinds_of(&doc, 2), [ReasonKind::Short]);
    let doubt = ReasonKind::BackgroundBehind;
    let parts = [("a", 4e6, 9000), ("b", 4e6, 9000)];
    let doc = run(&parts, vec![Event::Doubted { doubt }]);
    for job in 0..3 {
        assert_eq!(kinds_of(&doc, job), [doubt]);
    }
}

#[test]
fn a_rate_that_is_not_reached_is_marked() {
    let rated_with = |rate: &str, iops: f64, more: &[(&str, &str)]| {
        let mut job = reader("r");
        let rate = [("rate_iops", rate)];
        let more = more.iter().chain(&rate);
        job.options
            .extend(more.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        job.read.as_mut().unwrap().iops = iops;
        let doc = document_of(
            RunStatus::Complete,
            vec![started(), finished(vec![job], vec![])],
        );
        kinds_of(&doc, 0)
    };
    let rated = |rate: &str, iops: f64| rated_with(rate, iops, &[]);
    assert_eq!(rated("1000", 990.0), []);
    assert_eq!(rated("1000", 900.0), [ReasonKind::BehindRate]);
    assert_eq!(rated("1000,10", 900.0), [ReasonKind::BehindRate]);
    // The smallest block is what counts then, and fewer I/Os do the rate.
    assert_eq!(rated_with("1000", 120.0, &[("bsrange", "4k-64k")]), []);
    // 0 is no rate.
    assert_eq!(rated("0,1000", 900.0), []);
}
