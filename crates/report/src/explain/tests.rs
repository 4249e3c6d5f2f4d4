//! Situations as they are explained, each kept as the text that a person reads.

use fathom_analysis::step_evidence::StepEvidence;
use fathom_analysis::verdict;
use fathom_model::{
    Direction, DirectionResult, Event, EvidenceInterval, JobResult, Latency, RunDocument, Sample,
};

use fathom_model::result::CpuUse;
use fathom_sheet::style::Style;

/// A direct job on `nvme0n1` for 10 s, alone.
struct Situation {
    doc: RunDocument,
    evidence: EvidenceInterval,
}

impl Situation {
    /// Random reads of 4 KiB at this depth, so many a second, of which so many were at the
    /// device.
    fn new(depth: u32, iops: u64, at_device: f64) -> Self {
        let options = [
            ("rw", "randread".to_owned()),
            ("bs", "4k".to_owned()),
            ("direct", "1".to_owned()),
            ("ioengine", "io_uring".to_owned()),
            ("iodepth", depth.to_string()),
        ];
        let job = JobResult {
            name: "randread".to_owned(),
            options: options.map(|(name, value)| (name.to_owned(), value)).into(),
            read: Some(result(iops, f64::from(depth))),
            cpu: Some(cpu(31.0)),
            ..JobResult::default()
        };
        let mut new = Self {
            doc: RunDocument {
                engine: "native".to_owned(),
                jobs: vec![job],
                ..RunDocument::default()
            },
            evidence: EvidenceInterval {
                t_ms: 10_000,
                span_ms: 10_000,
                ..EvidenceInterval::default()
            },
        };
        new.set("nvme0n1.role", "target")
            .count("nvme0n1.read_ios", iops * 10)
            .count("nvme0n1.read_bytes", iops * 40_960)
            .count("nvme0n1.write_ios", 0)
            .count("nvme0n1.write_bytes", 0)
            .count("nvme0n1.busy_ms", (at_device.min(1.0) * 10_000.0) as u64)
            .count("nvme0n1.queue_ms", (at_device * 10_000.0) as u64)
            .count("cgroup.cpu_throttled_us", 0)
            .count("job.wait_us", 400_000)
            .gauge("job.threads", 1.0)
            .gauge("cpu.busiest_percent", 48.0)
            .gauge("nvme0n1.celsius", 41.0)
            .gauge("nvme0n1.link_gts", 16.0)
            .gauge("nvme0n1.link_lanes", 4.0);
        new
    }

    fn count(&mut self, name: &str, count: u64) -> &mut Self {
        self.evidence.counts.insert(name.to_owned(), count);
        self
    }

    fn gauge(&mut self, name: &str, value: f64) -> &mut Self {
        self.evidence.gauges.insert(name.to_owned(), value);
        self
    }

    fn set(&mut self, name: &str, value: &str) -> &mut Self {
        let settings = &mut self.evidence.settings;
        settings.insert(name.to_owned(), value.to_owned());
        self
    }

    fn option(&mut self, name: &str, value: &str) -> &mut Self {
        let options = &mut self.doc.jobs[0].options;
        options.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The job kept so many I/Os in flight.
    fn in_flight(&mut self, depth: f64) -> &mut Self {
        let read = self.doc.jobs[0].read.as_mut().unwrap();
        read.clat.as_mut().unwrap().mean_ns = depth * 1e9 / read.iops;
        self
    }

    fn text(&mut self, columns: u16) -> String {
        let mut step = StepEvidence::default();
        let names = self.doc.jobs.iter().map(|job| job.name.clone()).collect();
        let hosts = Vec::new();
        step.take(&Event::Jobs { names, hosts });
        let counts = self.evidence.counts.keys();
        let first = EvidenceInterval {
            counts: counts.map(|name| (name.clone(), 0)).collect(),
            gauges: self.evidence.gauges.clone(),
            settings: self.evidence.settings.clone(),
            ..EvidenceInterval::default()
        };
        step.take(&Event::Evidence(Box::new(first)));
        step.take(&Event::Sample(Sample {
            t_ms: 1000,
            span_ms: 1000,
            job: 0,
            dir: Direction::Read,
            ios: 1000,
            bytes: 4_096_000,
            clat: None,
            lat: None,
        }));
        step.take(&Event::Evidence(Box::new(self.evidence.clone())));
        let steps = [step.closed()];
        verdict::judge(&mut self.doc, &steps);
        let style = Style {
            color: false,
            width: Some(columns),
        };
        let text = super::of(&self.doc, &steps).text(style);
        for line in text.lines() {
            assert!(line.chars().count() <= usize::from(columns), "{line}");
        }
        text
    }
}

fn result(iops: u64, in_flight: f64) -> DirectionResult {
    DirectionResult {
        total_ios: iops * 10,
        io_bytes: iops * 40_960,
        bw_bytes: iops as f64 * 4096.0,
        iops: iops as f64,
        runtime_ms: 10_000,
        clat: Some(Latency {
            n: Some(iops * 10),
            mean_ns: in_flight * 1e9 / iops as f64,
            max_ns: 20_000_000,
            ..Latency::default()
        }),
        ..DirectionResult::default()
    }
}

fn cpu(percent: f64) -> CpuUse {
    CpuUse {
        user_percent: percent / 2.0,
        system_percent: percent / 2.0,
        ..CpuUse::default()
    }
}

#[test]
fn a_cgroup_that_holds_io_uring_back() {
    let mut it = Situation::new(32, 1040, 0.09);
    it.gauge("nvme0n1.limit_riops", 2000.0);
    insta::assert_snapshot!(it.text(80));
}

#[test]
fn a_cgroup_that_lets_fewer_be_in_flight() {
    let mut it = Situation::new(32, 2001, 0.09);
    it.gauge("nvme0n1.limit_riops", 2000.0).in_flight(2.1);
    insta::assert_snapshot!(it.text(80));
}

#[test]
fn another_process_reads_the_same_device() {
    let mut it = Situation::new(4, 12_000, 4.2);
    it.count("nvme0n1.read_bytes", 12_000 * 40_960 + 3_000_000_000)
        .count("nvme0n1.read_ios", 126_000)
        .count("job.wait_us", 2_000_000)
        .count("nvme0n1.busy_ms", 8_900);
    insta::assert_snapshot!(it.text(80));
}

#[test]
fn the_rate_of_the_job() {
    let mut it = Situation::new(1, 500, 0.05);
    it.option("rate_iops", "500").in_flight(0.06);
    insta::assert_snapshot!(it.text(80));
}

#[test]
fn think_time() {
    let mut it = Situation::new(1, 900, 0.1);
    it.option("thinktime", "1000").in_flight(0.1);
    insta::assert_snapshot!(it.text(80));
}

#[test]
fn reads_that_the_page_cache_answered() {
    let mut it = Situation::new(1, 322_000, 0.0);
    it.option("direct", "0")
        .count("nvme0n1.read_ios", 12)
        .count("nvme0n1.read_merges", 0);
    it.doc.jobs[0].cpu = Some(cpu(99.0));
    insta::assert_snapshot!(it.text(80));
}

#[test]
fn a_job_without_cpu_to_spare() {
    let mut it = Situation::new(32, 640_000, 0.6);
    it.doc.jobs[0].cpu = Some(cpu(99.0));
    it.in_flight(5.0);
    insta::assert_snapshot!(it.text(80));
}

#[test]
fn a_device_that_is_busy_all_the_time() {
    let mut it = Situation::new(32, 410_000, 31.2);
    insta::assert_snapshot!(it.text(50));
    insta::assert_snapshot!(it.text(80));
    insta::assert_snapshot!(it.text(120));
}

#[test]
fn an_engine_that_waits_for_each() {
    let mut it = Situation::new(8, 9_800, 0.85);
    it.option("ioengine", "psync").in_flight(0.97);
    insta::assert_snapshot!(it.text(80));
}

#[test]
fn a_full_link() {
    let mut it = Situation::new(32, 1_690_000, 30.0);
    insta::assert_snapshot!(it.text(80));
}

#[test]
fn a_drive_that_is_too_hot() {
    let mut it = Situation::new(32, 88_000, 31.9);
    it.count("nvme0n1.thermal_transitions", 2)
        .gauge("nvme0n1.celsius", 84.0);
    insta::assert_snapshot!(it.text(80));
}

#[test]
fn nothing_that_was_looked_at() {
    let mut it = Situation::new(1, 9_100, 0.8);
    insta::assert_snapshot!(it.text(80));
}

#[test]
fn holes_and_a_second_direction() {
    let mut it = Situation::new(1, 372_000, 0.2);
    it.gauge("files.size_bytes", 1e9)
        .gauge("files.written_bytes", 0.0)
        .option("rw", "randrw")
        .option("fsync", "1");
    it.doc.jobs[0].write = Some(result(20_000, 0.1));
    insta::assert_snapshot!(it.text(80));
}
