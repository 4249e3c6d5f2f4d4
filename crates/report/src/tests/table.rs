//! What a person sees of a run.

use fathom_model::{Failure, FailureKind, ReasonKind, RunStatus};

use super::*;
use crate::table;
use fathom_sheet::style::Style;

fn plain(doc: &RunDocument, width: u16) -> String {
    let text = table(
        doc,
        Style {
            color: false,
            width: Some(width),
        },
    );
    for line in text.lines() {
        assert!(
            fathom_sheet::style::width(line) <= usize::from(width),
            "too wide: {line:?}"
        );
        assert_eq!(line, line.trim_end(), "trailing space");
    }
    text
}

fn one_job() -> RunDocument {
    let mut job = reader("randread-4k");
    let read = job.read.as_mut().unwrap();
    read.slat = Some(Latency {
        n: Some(4_200_000),
        min_ns: 903,
        max_ns: 812_331,
        mean_ns: 3_210.4,
        stddev_ns: Some(1_988.0),
        ..Latency::default()
    });
    read.lat = read.clat.clone();
    document_of(
        RunStatus::Complete,
        vec![
            started(),
            finished(vec![job], vec![disk(4_200_000)]),
            ended(RunStatus::Complete),
        ],
    )
}

#[test]
fn one_job_at_80_columns() {
    insta::assert_snapshot!(plain(&one_job(), 80));
}

#[test]
fn one_job_at_120_columns() {
    insta::assert_snapshot!(plain(&one_job(), 120));
}

/// From which moment a latency counts is said where it is read.
#[test]
fn a_job_under_a_rate_names_both_of_its_latencies() {
    let mut doc = one_job();
    let read = doc.jobs[0].read.as_mut().unwrap();
    read.lag = read.lat.clone();
    let detailed = plain(&doc, 120);
    for name in [
        "read lag, ",
        "read clat from issue, ",
        "read lat from intended start, ",
    ] {
        assert!(detailed.contains(name), "{name}: {detailed}");
    }
    let mut other = doc.jobs[0].clone();
    other.name = "other".to_owned();
    doc.jobs.extend(std::iter::repeat_n(other, 8));
    let lines = plain(&doc, 120);
    assert!(
        lines.contains("read lat from intended start") && lines.contains("read clat from issue"),
        "{lines}"
    );
}

fn many_jobs() -> RunDocument {
    let jobs = (0..12)
        .map(|n| {
            let mut job = reader(&format!("db-{n}"));
            job.group = n / 6;
            job.options
                .insert("filename".into(), format!("/dev/nvme{n}n1"));
            let share = f64::from(n) * 0.07;
            job.read = Some(direction(
                1_000_000 + 31_000 * u64::from(n),
                30_000,
                90_000.0 * (1.0 + share),
            ));
            if n % 5 == 0 {
                job.write = Some(direction(777_000, 29_871, 8_123_000.0));
            }
            job
        })
        .collect();
    let events = vec![
        started(),
        finished(jobs, vec![disk(9)]),
        ended(RunStatus::Complete),
    ];
    document_of(RunStatus::Complete, events)
}

#[test]
fn many_jobs_at_80_columns() {
    insta::assert_snapshot!(plain(&many_jobs(), 80));
}

#[test]
fn many_jobs_at_120_columns() {
    insta::assert_snapshot!(plain(&many_jobs(), 120));
}

#[test]
fn doubts_and_failures_are_marked_and_told() {
    let mut hung = reader("hung");
    hung.total_errors = Some(4096);
    hung.error = 5;
    let clat = hung.read.as_mut().unwrap().clat.as_mut().unwrap();
    clat.max_ns = 31_000_000_000;
    clat.percentiles_ns[4].1 = 17_112_760_320;
    let mut idle_job = reader("idle");
    idle_job.read = Some(idle());
    idle_job.error = 22;
    let failure = Failure::new(FailureKind::Io, "4096 reads failed: Input/output error");
    let doc = document_of(
        RunStatus::Failed,
        vec![
            started(),
            Event::Note {
                text: "the engine laid out a file of 1 GiB first".into(),
            },
            Event::Failure(failure.about("hung").with_errno(5)),
            finished(vec![hung, idle_job], Vec::new()),
            ended(RunStatus::Failed),
        ],
    );
    let kinds = doc.jobs[0].read.as_ref().unwrap().kinds();
    assert_eq!(
        kinds,
        [
            ReasonKind::FailedIosCounted,
            ReasonKind::SaturatedPercentiles
        ]
    );
    insta::assert_snapshot!(plain(&doc, 80));
}

#[test]
fn a_killed_run_of_two_steps() {
    let doc = document_of(
        RunStatus::Interrupted,
        vec![
            step(1, 2, "warm.fio"),
            started(),
            finished(vec![reader("warm")], vec![disk(4_200_000)]),
            step(2, 2, "measure.fio"),
            started(),
            jobs(&["measure"]),
            sample(1000, 0, Direction::Read, 100_000, 5_000),
            sample(2000, 0, Direction::Read, 110_000, 6_500),
        ],
    );
    insta::assert_snapshot!(plain(&doc, 80));
}

#[test]
fn three_hundred_jobs_without_a_limit_are_one_line_each_and_table() {
    let jobs = (0..300).map(|n| reader(&format!("client-{n}"))).collect();
    let doc = document_of(RunStatus::Complete, vec![finished(jobs, Vec::new())]);
    let text = table(&doc, Style::default());
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("client-"))
            .count(),
        600
    );
}

#[test]
fn colours_change_no_text() {
    let doc = many_jobs();
    let style = Style {
        color: true,
        width: Some(100),
    };
    let coloured = table(&doc, style);
    let coloured = fathom_sheet::style::on_terminal(&coloured);
    assert!(coloured.contains("\x1b["));
    let mut bare = String::new();
    for (place, part) in coloured.split("\x1b[").enumerate() {
        bare += if place == 0 {
            part
        } else {
            part.split_once('m').unwrap().1
        };
    }
    assert_eq!(
        bare,
        table(
            &doc,
            Style {
                color: false,
                ..style
            }
        )
    );
}

#[test]
fn files_on_one_disk_share_its_description() {
    let mut doc = one_job();
    let targets = &mut doc.environment.as_mut().unwrap().targets;
    let disk = targets[0].clone();
    for n in 0..4 {
        let path = PathBuf::from(format!("/dev/nvme0n1p{n}"));
        targets.push(Target {
            path,
            ..disk.clone()
        });
    }
    let other = PathBuf::from("/srv/f");
    targets.push(Target {
        path: other,
        ..Target::default()
    });
    let text = plain(&doc, 120);
    assert!(
        text.contains("target  /dev/nvme0n1, /dev/nvme0n1p0, /dev/nvme0n1p1 and 2 more: Samsung")
    );
    assert_eq!(text.matches("Samsung").count(), 1);
    assert!(text.contains("\n        /srv/f\n"), "{text}");
}

#[test]
fn the_marks_of_two_doubts_are_no_twelve() {
    let mut job = reader("r");
    job.total_errors = Some(7);
    job.read.as_mut().unwrap().runtime_ms = 900;
    let events = vec![
        started(),
        finished(vec![job], Vec::new()),
        ended(RunStatus::Complete),
    ];
    let text = plain(&document_of(RunStatus::Complete, events), 120);
    assert!(text.contains("140k¹,²"), "{text}");
}

#[test]
fn the_disk_below_a_file_system_has_a_line_of_its_own() {
    use fathom_model::environment::{BlockDevice, FileSystem, Target};
    let mut doc = one_job();
    doc.environment.as_mut().unwrap().targets = vec![Target {
        path: "/mnt/a".into(),
        file_system: Some(FileSystem {
            kind: "xfs".into(),
            source: "/dev/vda".into(),
            free_bytes: 1 << 30,
            size_bytes: 2 << 30,
            device: Some(BlockDevice {
                name: "vda".into(),
                capacity_bytes: 2 << 30,
                ..BlockDevice::default()
            }),
            ..FileSystem::default()
        }),
        ..Target::default()
    }];
    let text = plain(&doc, 120);
    assert!(
        text.contains("target  /mnt/a: xfs, 1 GiB of 2 GiB free\n        on vda: 2 GiB"),
        "{text}"
    );
}
