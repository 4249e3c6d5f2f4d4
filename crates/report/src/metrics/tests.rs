use fathom_model::{DirectionResult, Histogram};

use super::*;

/// What a name of elsewhere may hold.
const HOSTILE: &str = "a\"} 1\nfathom_run_info{x=\"\\\u{202e}\u{1b}[2J";

fn sample(t_ms: u64, job: u32, dir: Direction, ios: u64) -> Event {
    let mut clat = Histogram::new();
    clat.add(90_000, ios);
    Event::Sample(Sample {
        t_ms,
        span_ms: 1000,
        job,
        dir,
        ios,
        bytes: ios * 4096,
        clat: Some(clat),
        lat: None,
    })
}

fn step(names: &[&str]) -> [Event; 2] {
    [
        Event::Step {
            step: 1,
            of: 2,
            name: HOSTILE.to_owned(),
            point: None,
        },
        Event::Jobs {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            hosts: Vec::new(),
        },
    ]
}

fn interval(t_ms: u64) -> Event {
    Event::Interval {
        t_ms,
        remaining_ms: Some(5000),
    }
}

fn running(events: &[Event]) -> RunMetrics {
    let mut header = Header::new(HOSTILE, "job run");
    header.started_ms = 1_700_000_000_500;
    let tags = serde_json::json!({"build": HOSTILE});
    header.facts.insert("tags".into(), tags);
    let mut run = RunMetrics::new("20261123T2200-x", &header);
    events.iter().for_each(|event| run.take(event));
    run
}

fn text(run: &RunMetrics) -> String {
    exposition(&[("", run)], MetricsFormat::Prometheus)
}

/// The value of a series as it is written.
fn value<'t>(text: &'t str, series: &str) -> Option<&'t str> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))
}

#[test]
fn a_gap_shorter_than_the_intervals_is_no_stall() {
    let mut events = step(&["r"]).to_vec();
    events.push(sample(1000, 0, Direction::Read, 100));
    // fio's last interval is short, and dated some ms late.
    let Event::Sample(mut last) = sample(1450, 0, Direction::Read, 40) else {
        unreachable!("it is one");
    };
    last.span_ms = 400;
    events.push(Event::Sample(last));
    let text = text(&running(&events));
    let stalls = "fathom_io_stalls_total{jobname=\"r\",direction=\"read\"}";
    assert_eq!(value(&text, stalls), Some("0"), "{text}");
}

#[test]
fn what_jobs_do_is_counted_by_name_and_direction() {
    let mut events = step(&["r", "r", "w"]).to_vec();
    events.extend([
        sample(1000, 0, Direction::Read, 100),
        sample(1000, 1, Direction::Read, 50),
        sample(1000, 2, Direction::Write, 7),
        interval(1000),
        sample(2000, 0, Direction::Read, 100),
        // It did nothing in between for two seconds.
        sample(4000, 2, Direction::Write, 1),
        interval(4000),
    ]);
    let run = running(&events);
    let text = text(&run);
    let read = "{jobname=\"r\",direction=\"read\"}";
    let write = "{jobname=\"w\",direction=\"write\"}";
    for (series, is) in [
        (format!("fathom_io_operations_total{read}"), "250"),
        (format!("fathom_io_bytes_total{read}"), "1024000"),
        (format!("fathom_io_operations_total{write}"), "8"),
        (format!("fathom_io_stalls_total{read}"), "0"),
        (format!("fathom_io_stalls_total{write}"), "1"),
        (format!("fathom_io_stalled_seconds_total{write}"), "2"),
        (
            format!("fathom_io_completion_latency_seconds_count{read}"),
            "250",
        ),
        ("fathom_run_time_seconds".to_owned(), "4"),
        ("fathom_run_start_time_seconds".to_owned(), "1700000000.5"),
        ("fathom_step_remaining_seconds".to_owned(), "5"),
        (
            "fathom_interval_io_operations_per_second{direction=\"write\"}".to_owned(),
            "1",
        ),
        ("fathom_run_status{status=\"running\"}".to_owned(), "1"),
        ("fathom_run_status{status=\"failed\"}".to_owned(), "0"),
    ] {
        assert_eq!(value(&text, &series), Some(is), "{series}\n{text}");
    }
    let bucket = |upto: &str| {
        let labels = "jobname=\"r\",direction=\"read\"";
        let series =
            format!("fathom_io_completion_latency_seconds_bucket{{{labels},le=\"{upto}\"}}");
        value(&text, &series).map(str::to_owned)
    };
    assert_eq!(bucket("5e-5").as_deref(), Some("0"));
    assert_eq!(bucket("0.0001").as_deref(), Some("250"));
    assert_eq!(bucket("1.0").as_deref(), Some("250"));
    assert_eq!(bucket("+Inf").as_deref(), Some("250"));
    // Missing is not zero.
    assert!(!text.contains("fathom_io_errors") && !text.contains("fathom_io_latency_seconds"));
}

#[test]
fn what_goes_on_no_more_has_no_gauges_and_its_figures_are_judged() {
    let mut events = step(&["r"]).to_vec();
    events.extend([sample(1000, 0, Direction::Read, 100), interval(1000)]);
    let results = Results {
        jobs: vec![JobResult {
            name: "r".into(),
            total_errors: Some(5),
            read: Some(DirectionResult {
                total_ios: 100,
                errors: Some(3),
                ..DirectionResult::default()
            }),
            ..JobResult::default()
        }],
        ..Results::default()
    };
    events.push(Event::Finished {
        results: Box::new(results),
    });
    let outcome = Outcome::Complete;
    events.push(Event::StepEnded { outcome });
    let run = running(&events);
    let now = text(&run);
    assert!(
        !now.contains("fathom_interval_") && !now.contains("fathom_step_"),
        "{now}"
    );
    assert_eq!(
        value(&now, "fathom_steps_ended_total{outcome=\"complete\"}"),
        Some("1")
    );
    // What has no direction stands without one.
    for (labels, is) in [
        ("jobname=\"r\",direction=\"read\"", "3"),
        ("jobname=\"r\"", "2"),
    ] {
        let series = format!("fathom_io_errors_total{{{labels}}}");
        assert_eq!(value(&now, &series), Some(is), "{now}");
    }
    let judged = ["valid", "suspect", "invalid"].map(|level| {
        let series = format!("fathom_figures_total{{verdict=\"{level}\"}}");
        value(&now, &series).unwrap().parse::<u64>().unwrap()
    });
    assert_eq!(judged.iter().sum::<u64>(), 1, "{now}");
    // One that was stopped is measured again, and judged then.
    events.extend(step(&["r"]));
    events.push(sample(3000, 0, Direction::Read, 100));
    let outcome = Outcome::Interrupted;
    events.push(Event::StepEnded { outcome });
    let again = text(&running(&events));
    assert_eq!(
        value(&again, "fathom_steps_ended_total{outcome=\"interrupted\"}"),
        Some("1")
    );
    let all = again
        .lines()
        .filter(|line| line.starts_with("fathom_figures_total"));
    let sum: u64 = all
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(sum, 1, "{again}");
}

#[test]
fn names_of_elsewhere_stay_between_their_quotes() {
    let mut events = step(&[HOSTILE, &"x".repeat(100_000)]).to_vec();
    events.extend([
        sample(1000, 0, Direction::Read, 1),
        sample(1000, 1, Direction::Read, 1),
        interval(1000),
    ]);
    let run = running(&events);
    for format in [MetricsFormat::OpenMetrics, MetricsFormat::Prometheus] {
        let text = exposition(&[("", &run)], format);
        let is_line = |line: &&str| line.starts_with("fathom_") || line.starts_with("# ");
        assert!(text.lines().all(|line| is_line(&line)), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{text:?}");
        let shown = r#"jobname="a\"} 1 fathom_run_info{x=\"\\"#;
        assert!(text.contains(shown), "{text}");
        assert_eq!(text.matches("fathom_run_info{run=").count(), 1);
        assert!(text.len() < 40_000, "{}", text.len());
    }
}

#[test]
fn series_beyond_the_most_are_added_up() {
    let names: Vec<String> = (0..1000).map(|n| format!("job{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut events = step(&names).to_vec();
    events.extend((0..1000).map(|job| sample(1000, job, Direction::Read, 2)));
    let run = running(&events);
    assert_eq!(run.counts.len(), SERIES_MAX + 1);
    let further = "fathom_io_operations_total{jobname=\"further jobs\",direction=\"read\"}";
    assert_eq!(value(&text(&run), further), Some("1400"));
}

#[test]
fn the_newer_format_names_counters_and_facts_by_their_family_and_has_an_end() {
    let mut events = step(&["r"]).to_vec();
    events.extend([sample(1000, 0, Direction::Read, 1), interval(1000)]);
    let run = running(&events);
    let open = exposition(&[("", &run)], MetricsFormat::OpenMetrics);
    for line in [
        "# TYPE fathom_io_bytes counter\n# UNIT fathom_io_bytes bytes\nfathom_io_bytes_total{",
        "# TYPE fathom_run info\nfathom_run_info{",
        "# UNIT fathom_io_completion_latency_seconds seconds\n",
    ] {
        assert!(open.contains(line), "{line}\n{open}");
    }
    assert!(open.ends_with("\n# EOF\n"));
    let plain = text(&run);
    assert!(plain.contains("# TYPE fathom_io_bytes_total counter\n"));
    assert!(plain.contains("# TYPE fathom_run_info gauge\n"));
    assert!(!plain.contains("# EOF") && !plain.contains("# UNIT"));
}

#[test]
fn two_devices_are_told_apart() {
    let one = running(&[interval(1000)]);
    let other = running(&[interval(2000)]);
    let text = exposition(&[("sda", &one), ("sdb", &other)], MetricsFormat::Prometheus);
    assert_eq!(
        value(&text, "fathom_run_time_seconds{device=\"sda\"}"),
        Some("1")
    );
    assert_eq!(
        value(&text, "fathom_run_time_seconds{device=\"sdb\"}"),
        Some("2")
    );
    assert_eq!(text.matches("# TYPE fathom_run_time_seconds ").count(), 1);
}

#[test]
fn the_format_is_the_one_that_is_asked_for() {
    let open = MetricsFormat::OpenMetrics;
    let plain = MetricsFormat::Prometheus;
    for (accept, is) in [
        ("", plain),
        ("*/*", plain),
        ("text/html", plain),
        ("application/openmetrics-text", open),
        ("application/openmetrics-text;version=1.0.0;q=0", plain),
        ("application/openmetrics-text;q=x", plain),
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            open,
        ),
        ("text/plain, application/openmetrics-text; q=0.5", plain),
    ] {
        assert_eq!(MetricsFormat::accepted(accept), is, "{accept}");
    }
}
