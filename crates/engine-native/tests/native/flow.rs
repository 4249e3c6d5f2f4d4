//! Order, time, samples, stops.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use fathom_engine::{Engine, Outcome, Sink};
use fathom_model::{Direction, DirectionResult, Event, Sample};
use fathom_testkit::{FaultFs, require};

use crate::native::{Seen, folder, request, run, try_run};

fn samples(seen: &Seen) -> Vec<&Sample> {
    let samples = seen.events.iter().filter_map(|event| match event {
        Event::Sample(sample) => Some(sample),
        _ => None,
    });
    samples.collect()
}

#[test]
fn what_is_not_to_be_measured_is_counted_all_the_same() {
    for (options, [slat, clat, lat]) in [
        ("disable_slat=1", [false, true, true]),
        ("disable_lat=1", [true, true, false]),
        ("disable_clat=1", [true, false, true]),
        ("gtod_reduce=1", [false; 3]),
    ] {
        let dir = folder();
        let text = format!(
            "[a]\nioengine=null\niodepth=4\nrw=randread\nsize=1m\nio_size=1g\nnumber_ios=1000\n{options}\n"
        );
        let seen = run(dir.path(), &text);
        let read = seen.read(0);
        assert_eq!(read.total_ios, 1000, "{options}");
        let found = [&read.slat, &read.clat, &read.lat].map(Option::is_some);
        assert_eq!(found, [slat, clat, lat], "{options}");
        let of_read = samples(&seen).into_iter();
        let measured = of_read.clone().any(|sample| sample.clat.is_some());
        assert_eq!(measured, clat, "{options}");
        let ios: u64 = of_read.map(|sample| sample.ios).sum();
        assert_eq!(ios, 1000, "{options}");
    }
}

#[test]
fn samples_add_up_to_the_results() {
    let dir = folder();
    let seen = run(
        dir.path(),
        "[a]\nioengine=null\nrw=randrw\nsize=1g\nruntime=1\ntime_based\niodepth=4\nrwmixread=70\n",
    );
    for (dir, result) in [
        (Direction::Read, seen.read(0)),
        (Direction::Write, seen.write(0)),
    ] {
        let of_dir: Vec<_> = samples(&seen)
            .into_iter()
            .filter(|sample| sample.dir == dir)
            .collect();
        assert!(!of_dir.is_empty());
        assert_eq!(
            of_dir.iter().map(|sample| sample.ios).sum::<u64>(),
            result.total_ios
        );
        assert_eq!(
            of_dir.iter().map(|sample| sample.bytes).sum::<u64>(),
            result.io_bytes
        );
        let mut merged = fathom_model::Histogram::new();
        of_dir
            .iter()
            .filter_map(|sample| sample.clat.as_ref())
            .for_each(|h| merged.merge(h));
        assert_eq!(
            Some(&merged),
            result.clat.as_ref().unwrap().histogram.as_ref()
        );
    }
    let (read, write) = (
        seen.read(0).total_ios as f64,
        seen.write(0).total_ios as f64,
    );
    // Six standard deviations of a binomial.
    let apart = (read / (read + write) - 0.7).abs();
    assert!(apart < 6.0 * (0.7 * 0.3 / (read + write)).sqrt(), "{apart}");
}

#[test]
fn ios_counted_in_batches_are_all_in_every_histogram() {
    let dir = folder();
    let files = dir.path().join("a");
    let text = format!(
        "[a]\nfilename={}\nsize=1m\nrw=randrw\nbssplit=4k/60:8k/40\nioengine=io_uring\niodepth=24\n\
         iodepth_batch_submit=8\niodepth_batch_complete_min=8\nfsync=16\nloops=3\nwrite_lat_log=l\n",
        files.display()
    );
    let seen = run(dir.path(), &text);
    let mut lines = 0;
    for result in [seen.read(0), seen.write(0)] {
        assert!(result.total_ios > 0);
        lines += result.total_ios as usize;
        for latency in [&result.slat, &result.clat, &result.lat] {
            assert_eq!(latency.as_ref().unwrap().n, Some(result.total_ios));
        }
    }
    assert_eq!(seen.read(0).io_bytes + seen.write(0).io_bytes, 3 << 20);
    let log = std::fs::read_to_string(dir.path().join("l_clat.1.log")).unwrap();
    assert_eq!(log.lines().count(), lines);
}

#[test]
fn a_stonewall_waits_and_groups_report_together() {
    let dir = folder();
    let text = "[global]\nsize=64k\nrw=write\ngroup_reporting\n[a]\nnumjobs=3\n[b]\n[c]\nstonewall\n[d]\nnew_group\n";
    let seen = run(dir.path(), text);
    let jobs = &seen.results().jobs;
    let told: Vec<_> = jobs
        .iter()
        .map(|job| (job.name.as_str(), job.group, job.members))
        .collect();
    assert_eq!(told, [("a", 0, Some(4)), ("c", 1, None), ("d", 2, None)]);
    assert_eq!(seen.write(0).total_ios, 4 * 16);
}

#[test]
fn a_job_waits_for_another() {
    let dir = folder();
    let text = "[global]\nioengine=null\nsize=1g\nrw=read\n[second]\nwait_for=first\nnumber_ios=20\n[first]\nnumber_ios=10\n";
    let seen = run(dir.path(), text);
    assert_eq!((seen.read(0).total_ios, seen.read(1).total_ios), (20, 10));
}

#[test]
fn exitall_ends_the_jobs_that_exit_what_names() {
    let ends = |exit_what: &str| {
        let dir = folder();
        // One that would never end, one that waits for it, one behind the wall.
        let text = format!(
            "[global]\nioengine=null\nsize=1g\nrw=read\n{exit_what}\n[first]\nexitall\nnumber_ios=10\n[endless]\ntime_based\nruntime=2500\n[waits]\nwait_for=endless\nnumber_ios=30\n[later]\nstonewall\nnumber_ios=20\n"
        );
        // A run that reaches its limit of time has failed.
        let seen = run(dir.path(), &text);
        [0, 2, 3].map(|job| seen.read(job).total_ios)
    };
    assert_eq!(ends(""), [10, 0, 20]);
    assert_eq!(ends("exit_what=group"), [10, 0, 20]);
    assert_eq!(ends("exit_what=stonewall"), [10, 30, 20]);
    assert_eq!(ends("exit_what=all"), [10, 0, 0]);
}

#[test]
fn the_ramp_does_not_count() {
    let dir = folder();
    let begun = Instant::now();
    let seen = run(
        dir.path(),
        "[a]\nioengine=null\nrate_iops=1000\nrw=read\nbs=4k\nsize=1g\nruntime=1\nramp_time=1\ntime_based\nwrite_lat_log=l\nlog_offset=1\n",
    );
    let runtime_ms = seen.results().jobs[0].runtime_ms.unwrap();
    let wall_ms = begun.elapsed().as_millis() as u64;
    assert!(
        1000 <= runtime_ms && runtime_ms + 1000 <= wall_ms,
        "{runtime_ms} {wall_ms}"
    );
    // As fio (libfio.c, reset_all_stats) the logs begin where the ramp ends, or
    // rates made from their times are too low.
    let lines = log(&dir.path().join("l_lat.1.log"));
    assert_eq!(lines.len() as u64, seen.read(0).total_ios);
    let (first, last) = (&lines[0], lines.last().unwrap());
    assert!(last[0] <= runtime_ms, "{last:?}");
    // The blocks before were read in the ramp.
    assert!(
        first[4] > 0 && last[4] / 4096 >= lines.len() as u64,
        "{first:?} {last:?}"
    );
}

/// An I/O began when it was to, or its latency says how much later: its end without
/// its latency is its place in the rate, on a busy machine, too.
#[test]
fn a_rate_is_kept_and_latency_counts_from_the_intended_start() {
    for process in ["linear", "poisson"] {
        let dir = folder();
        let text = format!(
            "[a]\nioengine=null\nrate_iops=2000,1000\nrate_process={process}\nrw=randrw\nsize=1g\nnumber_ios=1500\niodepth=4\nwrite_lat_log=l\n"
        );
        let seen = run(dir.path(), &text);
        let (read, write) = (seen.read(0), seen.write(0));
        assert_eq!(read.total_ios + write.total_ios, 1500);
        let lines = log(&dir.path().join("l_lat.1.log"));
        for (column, gap_ms, result) in [(0, 0.5, read), (1, 1.0, write)] {
            let of_dir = lines.iter().filter(|line| line[2] == column);
            // The time of a line is in whole ms.
            let intended = of_dir.map(|line| line[0] as f64 - line[1] as f64 / 1e6);
            for (nth, intended_ms) in intended.enumerate() {
                let nth = nth as f64;
                // Six standard deviations of a Poisson process.
                let spread_ms = if process == "poisson" {
                    6.0 * nth.sqrt() * gap_ms
                } else {
                    0.0
                };
                let late_ms = intended_ms - nth * gap_ms;
                assert!(
                    (-spread_ms - 1.1..spread_ms + 0.1).contains(&late_ms),
                    "{process} {column} {nth}: {late_ms} ms"
                );
            }
            assert!(result.lat.as_ref().unwrap().mean_ns >= result.clat.as_ref().unwrap().mean_ns);
        }
    }
}

/// Once half of the I/Os of a mix of 100 % reads were writes: a direction that was not yet
/// due gave way to the other.
#[test]
fn a_direction_without_a_share_has_no_ios_however_the_job_is_steered() {
    let shares = [
        ("rwmixread=100", true),
        ("rwmixwrite=0", true),
        ("rwmixread=0", false),
        ("rwmixwrite=100", false),
    ];
    let steered = [
        "",
        "rate_iops=4000",
        "rate_iops=4000,4000",
        "rate=16m",
        "rate=,16m",
        "rate=16m,",
        "rate_min=1k",
        "rate_iops=4000\nrate_process=poisson",
        "rate_iops=4000\nrate_cycle=10",
        "rate_iops=4000\niodepth=4\nioengine=io_uring",
        "percentage_random=50",
        "thinktime=100\nthinktime_blocks=8",
        "flow=1\nflow_sleep=100",
        "bssplit=4k/50:8k/50",
        "unified_rw_reporting=none\nfsync=4",
        "latency_target=1s\nlatency_window=60s\nlatency_percentile=99",
        "file_service_type=random",
        "zonemode=strided\nzonesize=256k\nzonerange=512k",
        "verify=crc32c\ndo_verify=0",
        "serialize_overlap=1\niodepth=4\nioengine=io_uring",
    ];
    let dir = folder();
    let file = dir.path().join("f");
    std::fs::write(&file, vec![7u8; 1 << 20]).unwrap();
    for (share, reads) in shares {
        for steered in steered {
            for rw in ["rw", "randrw"] {
                let text = format!(
                    "[a]\nfilename=f\nsize=1m\nrw={rw}\n{share}\nnumber_ios=100\n{steered}\n"
                );
                let seen = run(dir.path(), &text);
                let job = &seen.results().jobs[0];
                let ios = |of: &Option<DirectionResult>| of.as_ref().map_or(0, |of| of.total_ios);
                let expected = if reads { (100, 0) } else { (0, 100) };
                assert_eq!((ios(&job.read), ios(&job.write)), expected, "{text}");
                if reads {
                    let is_whole = std::fs::read(&file).unwrap().iter().all(|byte| *byte == 7);
                    assert!(is_whole, "{text}");
                }
            }
        }
    }
}

/// Coordinated omission: a stall holds back what should have begun meanwhile. From
/// their intended start these I/Os have waited for it, from their issue they have not.
#[test]
fn a_stall_under_a_rate_shows_in_lat_and_in_lag_and_not_from_the_issue() {
    const RATE: f64 = 200.0;
    const IOS: u64 = 400;
    const STALLED: u64 = 50;
    let faultfs = require!(FaultFs::new());
    std::fs::write(faultfs.path().join("f"), vec![1u8; 1 << 20]).unwrap();
    faultfs.hold_reads_from(STALLED);
    let mut sink = Stalling {
        faultfs: &faultfs,
        seen: Seen::default(),
        silent: Vec::new(),
    };
    let job_file = faultfs.path().join("job.fio");
    let text = format!(
        "[a]\nioengine=psync\ndirect=1\nrw=randread\nnorandommap\nbs=4k\nfilename=f\nsize=1m\nio_size=1g\nrate_iops={RATE}\nnumber_ios={IOS}\n"
    );
    std::fs::write(&job_file, text).unwrap();
    let request = request(job_file, faultfs.path());
    let control = sink.seen.control.clone();
    let outcome = fathom_engine_native::Native::new().run(&request, &control, &mut sink);
    assert_eq!(outcome.unwrap(), Outcome::Complete);
    let stall_s = STALL.as_secs_f64();
    let seen = sink.seen;
    let read = seen.read(0);
    assert_eq!(read.total_ios, IOS);
    // psync has no slat.
    let sum_s = |latency: &Option<fathom_model::Latency>| {
        latency.as_ref().map_or(0.0, |latency| latency.mean_ns) * IOS as f64 / 1e9
    };
    let (lag_s, clat_s, lat_s) = (sum_s(&read.lag), sum_s(&read.clat), sum_s(&read.lat));
    let parts_s = lag_s + sum_s(&read.slat) + clat_s;
    assert!(
        (parts_s - lat_s).abs() <= lat_s / 1000.0,
        "{parts_s} of {lat_s}"
    );
    for latency in [&read.lag, &read.clat, &read.lat] {
        assert_eq!(latency.as_ref().unwrap().n, Some(IOS));
    }
    // Each that was due meanwhile waited for the rest of the stall.
    let due = (stall_s * RATE).min((IOS - STALLED) as f64).floor();
    let least_s = due * stall_s - due * (due + 1.0) / 2.0 / RATE;
    assert!(due > 50.0 && lag_s >= least_s, "{lag_s} of {least_s}");
    // One at a time: no time counts twice from the issue.
    let runtime_s = (read.runtime_ms + 1) as f64 / 1000.0;
    assert!(
        stall_s <= clat_s && clat_s <= runtime_s,
        "{stall_s} {clat_s} {runtime_s}"
    );
    // The samples of that time are without I/O, and the next has the one that stalled.
    let samples = samples(&seen);
    let longest = |s: &Sample| s.clat.as_ref().and_then(|clat| clat.percentile_ns(100.0));
    let stalled = (0..samples.len())
        .max_by_key(|&at| longest(samples[at]))
        .unwrap();
    assert!(longest(samples[stalled]).unwrap() as f64 >= stall_s * 0.99e9);
    let before: Vec<u64> = samples[stalled - SILENT..stalled]
        .iter()
        .map(|s| s.ios)
        .collect();
    assert_eq!(before, [0; SILENT]);
}

/// The least that a stall lasts: samples without an I/O, and time.
const SILENT: usize = 6;
const STALL: Duration = Duration::from_millis(500);

/// Ends a stall when so many samples have told of it.
struct Stalling<'f> {
    faultfs: &'f FaultFs,
    seen: Seen,
    /// When they did.
    silent: Vec<Instant>,
}

impl Sink for Stalling<'_> {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        let is_silent = matches!(&event, Event::Sample(sample) if sample.ios == 0);
        if is_silent && self.faultfs.held() > 0 {
            self.silent.push(Instant::now());
            // Late samples may come at once.
            if self.silent.len() >= SILENT && self.silent[0].elapsed() >= STALL {
                self.faultfs.release();
            }
        }
        self.seen.event(event)
    }
}

#[test]
fn what_takes_no_whole_millisecond_has_rates_all_the_same() {
    let dir = folder();
    let seen = run(dir.path(), "[a]\nioengine=null\nrw=read\nsize=4k\n");
    let read = seen.read(0);
    assert_eq!((read.total_ios, read.runtime_ms), (1, 1));
    assert!(read.iops > 1.0 && read.bw_bytes > 4096.0);
    assert_eq!(seen.results().jobs[0].runtime_ms, Some(1));
    let latency = read.clat.as_ref().unwrap();
    assert_eq!((latency.n, latency.stddev_ns), (Some(1), None));
}

#[test]
fn batches_are_told_in_fios_classes() {
    let dir = folder();
    let job = "[a]\nioengine=io_uring\nrw=randread\nbs=4k\nsize=1m\nfilename=f\niodepth=32\niodepth_batch_submit=16\niodepth_batch_complete_min=16\niodepth_batch_complete_max=16\n";
    run(dir.path(), job);
    let out = std::fs::read(dir.path().join("fio.out")).unwrap();
    let text = String::from_utf8(out).unwrap();
    let submit = text
        .lines()
        .find(|line| line.contains("submit    :"))
        .unwrap();
    assert!(
        submit.contains("0=0.0%, 4=0.0%, 8=0.0%, 16=100.0%"),
        "{submit}"
    );
    let complete = text
        .lines()
        .find(|line| line.contains("complete  :"))
        .unwrap();
    assert!(complete.contains("16=100.0%"), "{complete}");
}

/// By Little's law: IOPS × mean latency is how many were under way.
#[test]
fn the_queue_is_kept_full() {
    let dir = folder();
    for (engine, direct) in [
        ("libaio", 0),
        ("libaio", 1),
        ("io_uring", 1),
        ("posixaio", 1),
    ] {
        let text = format!(
            "[j]\nfilename=f\nioengine={engine}\ndirect={direct}\niodepth=16\nrw=randread\nbs=4k\nsize=16m\n\
             norandommap\ntime_based\nruntime=1\ninvalidate=0\n"
        );
        let seen = run(dir.path(), &text);
        let read = seen.read(0);
        let depth = read.iops * read.lat.as_ref().unwrap().mean_ns / 1e9;
        assert!(
            (14.4..16.5).contains(&depth),
            "{engine} direct={direct}: {depth}"
        );
    }
}

#[test]
fn think_time_slows_a_job() {
    let dir = folder();
    let seen = run(
        dir.path(),
        "[a]\nioengine=null\nthinktime=10ms\nthinktime_blocks=5\nrw=read\nsize=1g\nnumber_ios=100\n",
    );
    // It thinks between two of 20 fives.
    let (ios, runtime_ms) = (seen.read(0).total_ios, seen.read(0).runtime_ms);
    assert!(ios == 100 && runtime_ms >= 190, "{ios} in {runtime_ms} ms");
}

#[test]
fn syncs_are_counted_with_their_latencies() {
    let dir = folder();
    for engine in ["sync", "psync", "libaio", "posixaio", "io_uring"] {
        let text = format!(
            "[a]\nioengine={engine}\niodepth=4\nrw=randwrite\nsize=256k\nfdatasync=1\nfilename=f\n"
        );
        let seen = run(dir.path(), &text);
        assert_eq!(seen.write(0).total_ios, 64);
        let syncs = seen.results().jobs[0].sync.as_ref().unwrap().n.unwrap();
        assert!((63..=64).contains(&syncs), "{engine}: {syncs}");
    }
}

#[test]
fn a_stop_ends_the_run_and_keeps_the_figures() {
    let dir = folder();
    let mut seen = Seen {
        stop_after_samples: Some(3),
        ..Seen::default()
    };
    let outcome = try_run(
        dir.path(),
        "[a]\nioengine=null\nrate_iops=5000\nrw=read\nsize=1g\nruntime=20\ntime_based\n",
        &mut seen,
    );
    assert_eq!(outcome.unwrap(), Outcome::Interrupted);
    assert!(seen.read(0).total_ios > 0);
}

#[test]
fn a_status_is_given_while_the_run_goes_on() {
    let dir = folder();
    let mut seen = Seen {
        stop_after_status: true,
        ..Seen::default()
    };
    seen.control.request_status();
    let text = "[a]\nioengine=null\nrate_iops=5000\nrw=read\nsize=1g\nruntime=600\ntime_based\n";
    assert_eq!(
        try_run(dir.path(), text, &mut seen).unwrap(),
        Outcome::Interrupted
    );
}

#[test]
fn the_same_seed_gives_the_same_blocks_in_every_run() {
    let order = |repeat: u8| {
        let dir = folder();
        // One write in two of the blocks: which ones are zero tells the sequence.
        run(
            dir.path(),
            &format!(
                "[a]\nrw=randwrite\nsize=1m\nbs=4k\nio_size=512k\nrandrepeat={repeat}\nfilename=f\n"
            ),
        );
        let data = std::fs::read(dir.path().join("f")).unwrap();
        data.chunks(4096)
            .map(|block| block.iter().any(|&byte| byte != 0))
            .collect::<Vec<_>>()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(0), order(0));
}

/// The lines of a log as numbers; priorities may be hexadecimal.
fn log(path: &std::path::Path) -> Vec<Vec<u64>> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| line.split(", ").map(number).collect())
        .collect()
}

#[test]
fn logs_hold_every_io_in_fios_form() {
    let dir = folder();
    let options = "ioengine=libaio\niodepth=4\nrw=randread\nbs=4k\nsize=256k\nfilename=f\n";
    let text = format!(
        "[a]\n{options}write_lat_log=l\nwrite_iops_log=l\nlog_prio=1\nlog_offset=1\nper_job_logs=0\ncmdprio_bssplit=4k/50/2/3\n"
    );
    let seen = run(dir.path(), &text);
    let (clat, lat) = (
        log(&dir.path().join("l_clat.log")),
        log(&dir.path().join("l_lat.log")),
    );
    assert_eq!(
        (
            clat.len(),
            lat.len(),
            log(&dir.path().join("l_iops.log")).len()
        ),
        (64, 64, 64)
    );
    let mut offsets: Vec<_> = clat.iter().map(|line| line[4]).collect();
    offsets.sort_unstable();
    assert_eq!(
        offsets,
        (0..64).map(|block| block * 4096).collect::<Vec<_>>()
    );
    let own = clat.iter().filter(|line| line[5] == 2 << 13 | 3).count() as u64;
    let priorities = &seen.read(0).priorities;
    let counted: Vec<_> = priorities
        .iter()
        .map(|p| (p.value, p.clat.n.unwrap()))
        .collect();
    assert_eq!(counted, [(0, 64 - own), (2 << 13 | 3, own)]);
    let sum: u64 = clat.iter().map(|line| line[1]).sum();
    assert_eq!(
        sum,
        (seen.read(0).clat.as_ref().unwrap().mean_ns * 64.0).round() as u64
    );
}

#[test]
fn averaged_logs_and_histogram_logs_add_up() {
    let dir = folder();
    let text = "[a]\nioengine=null\nrate_iops=2000\nrw=read\nsize=1g\nnumber_ios=1000\nwrite_iops_log=l\nwrite_hist_log=l\nlog_avg_msec=100\nlog_hist_msec=200\n";
    let seen = run(dir.path(), text);
    let iops = log(&dir.path().join("l_iops.1.log"));
    // A line at the end of each 100 ms that had an I/O.
    let ends: Vec<u64> = iops.iter().map(|line| line[0]).collect();
    assert!(
        ends.is_sorted() && ends.iter().all(|ms| ms % 100 == 0),
        "{ends:?}"
    );
    // IOPS, not I/Os: ten times as many.
    let sum: u64 = iops.iter().map(|line| line[1]).sum();
    assert_eq!(sum, 10 * seen.read(0).total_ios);
    let histograms = log(&dir.path().join("l_clat_hist.1.log"));
    assert!(histograms.iter().all(|line| line.len() == 3 + 1856));
    let all: u64 = histograms.iter().flat_map(|line| &line[3..]).sum();
    assert_eq!(all, seen.read(0).total_ios);
}

#[test]
fn a_steady_job_ends_by_fios_rule_and_reports_it() {
    let dir = folder();
    let text = "[a]\nioengine=null\nrate_iops=1000\nrw=read\nsize=1g\nruntime=600\ntime_based\nss=iops:1000%\nss_dur=2\n";
    let seen = run(dir.path(), text);
    let job = &seen.results().jobs[0];
    assert!(job.runtime_ms.unwrap() < 600_000, "{:?}", job.runtime_ms);
    let verdict = job.fio_steady_state.as_ref().unwrap();
    assert_eq!(
        (&verdict["attained"], &verdict["duration"]),
        (&1.into(), &2.into())
    );
}
