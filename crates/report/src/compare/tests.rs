use fathom_model::{DirectionResult, JobResult, Latency, RunDocument};

use super::*;
use crate::tests::document_of;

const PLAIN: fathom_sheet::style::Style = fathom_sheet::style::Style {
    color: false,
    width: Some(100),
};

/// A run of one job with these IOPS.
pub(crate) fn run(id: &str, at_ms: u64, iops: f64) -> ComparedRun {
    let mut doc: RunDocument = document_of(fathom_model::RunStatus::Complete, Vec::new());
    doc.id = id.to_owned();
    let mut job = JobResult {
        name: "mix".into(),
        ..JobResult::default()
    };
    job.options.insert("rw".into(), "randread".into());
    job.options.insert("iodepth".into(), "8".into());
    job.read = Some(DirectionResult {
        total_ios: (iops * 60.0) as u64,
        io_bytes: (iops * 60.0) as u64 * 4096,
        iops,
        bw_bytes: iops * 4096.0,
        runtime_ms: 60_000,
        clat: Some(Latency {
            mean_ns: 8e9 / iops,
            max_ns: 1_000_000_000,
            ..Latency::default()
        }),
        ..DirectionResult::default()
    });
    doc.jobs = vec![job];
    ComparedRun {
        doc,
        started_ms: at_ms,
        dir: None,
    }
}

/// Runs in turn: three of each side.
fn in_turn(a: [f64; 3], b: [f64; 3]) -> CompareRequest {
    let side = |name: &str, values: [f64; 3], first: u64| {
        let each = (0u64..).zip(values);
        each.map(|(n, iops)| run(&format!("{name}{n}"), first + n * 10, iops))
            .collect()
    };
    CompareRequest {
        a: side("a", a, 0),
        b: side("b", b, 5),
        earlier: Vec::new(),
        margin: 0.02,
    }
}

#[test]
fn a_faster_side_is_told_with_its_ratio_and_no_bandwidth_beside_it() {
    let doc = comparison(&in_turn([1000.0, 1010.0, 990.0], [1300.0, 1290.0, 1310.0]));
    let figures: Vec<_> = doc
        .rows
        .iter()
        .map(|row| (row.figure, row.comparison.verdict))
        .collect();
    assert_eq!(
        figures,
        [
            (CompareFigure::Iops, CompareVerdict::Faster),
            (CompareFigure::MeanNs, CompareVerdict::Faster),
        ]
    );
    let shown = text(&doc, PLAIN);
    assert!(
        shown.contains("faster") && shown.contains("1.300"),
        "{shown}"
    );
    let merge = markdown(&doc);
    assert!(
        merge.contains("| `mix read` | IOPS | 1.00k | 1.30k | 1.300 |"),
        "{merge}"
    );
    let page = html(&doc, &CompareRequest::default()).unwrap();
    assert!(page.contains("class=\"good\""));
}

#[test]
fn options_and_machines_that_differ_come_first() {
    let mut request = in_turn([1000.0, 1001.0, 999.0], [1000.0, 1002.0, 998.0]);
    for one in &mut request.b {
        one.doc.jobs[0]
            .options
            .insert("iodepth".into(), "16".into());
        one.doc.environment.as_mut().unwrap().kernel = "6.9".into();
    }
    let doc = comparison(&request);
    let told: Vec<_> = doc
        .differences
        .iter()
        .map(|one| one.what.as_str())
        .collect();
    assert_eq!(told, ["kernel", "mix: iodepth"]);
    assert_eq!(doc.rows[0].comparison.verdict, CompareVerdict::Same);
    assert!(!is_alike(&request.a[0].doc, &request.b[0].doc));
    assert!(is_alike(&request.a[0].doc, &request.a[1].doc));
}

#[test]
fn jobs_of_other_names_that_do_the_same_are_partners_and_others_are_told() {
    let mut request = in_turn([1000.0, 1001.0, 999.0], [1000.0, 1002.0, 998.0]);
    for one in &mut request.b {
        one.doc.jobs[0].name = "other".into();
        let mut more = one.doc.jobs[0].clone();
        (more.name, more.read) = ("extra".into(), None);
        more.options.insert("rw".into(), "write".into());
        one.doc.jobs.push(more);
    }
    let doc = comparison(&request);
    assert_eq!(doc.rows[0].job, "mix / other");
    let alone = UnmatchedJob {
        side: "b",
        step: None,
        job: "extra".into(),
        dir: None,
    };
    assert_eq!(doc.unmatched, [alone]);
}

#[test]
fn what_is_not_valid_is_not_compared() {
    let mut request = in_turn([1000.0, 1010.0, 990.0], [2000.0, 2010.0, 1990.0]);
    let read = request.b[1].doc.jobs[0].read.as_mut().unwrap();
    read.told.push(fathom_model::ReasonKind::CachedReads);
    let doc = comparison(&request);
    assert!(
        doc.rows
            .iter()
            .all(|row| row.comparison.verdict == CompareVerdict::CannotTell)
    );
    assert!(text(&doc, PLAIN).contains("not valid"));
}

#[test]
fn conditions_are_judged_on_the_bound_of_the_interval() {
    let doc = comparison(&in_turn([1000.0, 1010.0, 990.0], [800.0, 805.0, 795.0]));
    let holds = |condition: &str| {
        let condition: CompareCondition = condition.parse().unwrap();
        doc.rows
            .iter()
            .any(|row| condition.holds_for(&row.comparison))
    };
    assert!(holds("slower") && holds("slower > 5%") && holds("slower>10 %"));
    // The mean latency rose by 25 %, its bound by less.
    assert!(!holds("slower > 25%") && !holds("faster") && !holds("cannot_tell"));
    for bad in ["worse", "slower > x", "same > 5%", "slower > -1%"] {
        assert!(bad.parse::<CompareCondition>().is_err(), "{bad}");
    }
}

#[test]
fn foreign_text_stays_text() {
    let mut request = in_turn([1000.0, 1001.0, 999.0], [1000.0, 1002.0, 998.0]);
    for one in request.a.iter_mut().chain(&mut request.b) {
        one.doc.jobs[0].name = "<b>|x`\n\u{1b}[31m".into();
    }
    let doc = comparison(&request);
    let page = html(&doc, &request).unwrap();
    assert!(!page.contains("<b>|x") && !page.contains('\u{1b}'));
    let merge = markdown(&doc);
    assert!(
        !merge.contains('\u{1b}') && !merge.contains("|x"),
        "{merge}"
    );
}

#[test]
fn a_baseline_is_one_side() {
    let tests = std::collections::BTreeMap::from([("mix".to_owned(), 900)]);
    let of = of_baseline("baseline:old", &tests);
    let runs = in_turn([1000.0, 1001.0, 999.0], [1002.0, 1000.0, 998.0]);
    let side = runs.a.iter().chain(&runs.b).map(as_baseline).collect();
    let request = CompareRequest {
        a: vec![of],
        b: side,
        earlier: Vec::new(),
        margin: 0.02,
    };
    let doc = comparison(&request);
    let [row] = &doc.rows[..] else {
        panic!("{:?}", doc.rows);
    };
    assert_eq!(
        (row.figure, row.dir),
        (CompareFigure::Iops, Direction::Mixed)
    );
    assert_eq!(row.comparison.verdict, CompareVerdict::Faster);
    assert_eq!(row.comparison.a.map(f64::round), Some(900.0));
}
