//! Order, time, samples, stops.

use std::time::Duration;

use fathom_engine::{Engine, Flow, Outcome, Sink};
use fathom_model::{Direction, Event, Sample};
use fathom_testkit::{FaultFs, skip};

use crate::native::{Seen, folder, request, run, try_run};

fn samples(seen: &Seen) -> Vec<&Sample> {
    let samples = seen.events.iter().filter_map(|event| match event {
        Event::Sample(sample) => Some(sample),
        _ => None,
    });
    samples.collect()
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
    assert!((read / (read + write) - 0.7).abs() < 0.01);
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
fn wait_for_and_exitall_order_jobs() {
    let dir = folder();
    let text = "[global]\nioengine=null\nsize=1g\nrw=read\n[first]\nnumber_ios=10\n[second]\nwait_for=first\nexitall\nnumber_ios=20\n[endless]\ntime_based\nruntime=2500\n";
    // A run that reaches its limit of time has failed.
    let seen = run(dir.path(), text);
    assert_eq!((seen.read(0).total_ios, seen.read(1).total_ios), (10, 20));
}

#[test]
fn the_ramp_does_not_count() {
    let dir = folder();
    let seen = run(
        dir.path(),
        "[a]\nioengine=null\nrate_iops=1000\nrw=randread\nsize=1g\nruntime=1\nramp_time=3\ntime_based\nwrite_lat_log=l\n",
    );
    // With the ramp it were 4 s; a busy machine ends a job late.
    let runtime_ms = seen.results().jobs[0].runtime_ms.unwrap();
    assert!((1000..4000).contains(&runtime_ms), "{runtime_ms}");
    let ios = seen.read(0).total_ios;
    assert!((1..4000).contains(&ios), "{ios}");
    // As fio (libfio.c, reset_all_stats) the logs begin where the ramp ends, or
    // rates made from their times are too low.
    let lines = log(&dir.path().join("l_lat.1.log"));
    assert_eq!(lines.len() as u64, seen.read(0).total_ios);
    assert!(lines[0][0] < 3000, "{:?}", lines[0]);
}

#[test]
fn a_rate_is_kept_and_latency_counts_from_the_intended_start() {
    let dir = folder();
    for process in ["linear", "poisson"] {
        let text = format!(
            "[a]\nioengine=null\nrate_iops=2000,1000\nrate_process={process}\nrw=randrw\nsize=1g\nruntime=1\ntime_based\niodepth=4\n"
        );
        let seen = run(dir.path(), &text);
        let result = seen.read(0);
        for (result, iops) in [(result, 2000.0), (seen.write(0), 1000.0)] {
            // Six standard deviations of a Poisson process of 1000 are 19 %. A busy
            // machine may not come to the last of them.
            let share = result.total_ios as f64 / (iops * result.runtime_ms as f64 / 1000.0);
            assert!(share > 0.3 && share < 1.2, "{process} {iops}: {share}");
        }
        assert!(result.lat.as_ref().unwrap().mean_ns >= result.clat.as_ref().unwrap().mean_ns);
    }
}

/// Coordinated omission: a stall holds back what should have begun meanwhile.
/// From their issue these I/Os are fast, from their intended start they are not.
#[test]
fn a_stall_under_a_rate_shows_in_lat_and_in_lag_and_not_from_the_issue() {
    let faultfs = match FaultFs::new() {
        Ok(faultfs) => faultfs,
        Err(reason) => {
            return skip(
                "a_stall_under_a_rate_shows_in_lat_and_in_lag_and_not_from_the_issue",
                &reason,
            );
        }
    };
    // A machine that is busy with something else stalls I/Os of its own.
    let tries: Vec<String> = (0..6).map_while(|_| stall_shows(&faultfs).err()).collect();
    assert!(tries.len() < 6, "{tries:#?}");
}

/// Runs a job through a stall: whether it shows where it must, and nowhere else.
fn stall_shows(faultfs: &FaultFs) -> Result<(), String> {
    std::fs::write(faultfs.path().join("f"), vec![1u8; 1 << 20]).unwrap();
    let mut seen = Stalling {
        faultfs,
        seen: Seen::default(),
        samples: 0,
    };
    let job_file = faultfs.path().join("job.fio");
    let text = "[a]\nioengine=psync\ndirect=1\nrw=randread\nnorandommap\nbs=4k\nfilename=f\nsize=1m\nrate_iops=200\nruntime=4\ntime_based\n";
    std::fs::write(&job_file, text).unwrap();
    let request = request(job_file, faultfs.path());
    let control = seen.seen.control.clone();
    let outcome = fathom_engine::native::Native::new().run(&request, &control, &mut seen);
    assert_eq!(outcome.unwrap(), Outcome::Complete);
    let seen = seen.seen;
    let read = seen.read(0);
    let at = |latency: &Option<fathom_model::Latency>, percent| {
        let histogram = latency.as_ref().unwrap().histogram.as_ref().unwrap();
        histogram.percentile_ns(percent).unwrap()
    };
    // One I/O stalls; a tenth of all and more waited for it.
    let (lat, clat, lag) = (
        at(&read.lat, 90.0),
        at(&read.clat, 90.0),
        at(&read.lag, 90.0),
    );
    if lat <= 10 * clat || lag <= 10 * clat {
        return Err(format!("lat {lat} lag {lag} clat {clat}"));
    }
    // psync has no slat.
    let mean = |latency: &Option<fathom_model::Latency>| {
        latency.as_ref().map_or(0.0, |latency| latency.mean_ns)
    };
    let parts = mean(&read.lag) + mean(&read.slat) + mean(&read.clat);
    let whole = mean(&read.lat);
    assert!(
        (parts - whole).abs() <= whole / 1000.0,
        "{parts} of {whole}"
    );
    for latency in [&read.lag, &read.clat, &read.lat] {
        assert_eq!(latency.as_ref().unwrap().n, Some(read.total_ios));
    }
    // The samples of that time are without I/O, and the one at its end, no other,
    // has the I/O that took so long.
    let samples = samples(&seen);
    let zeros = |from: usize| samples[from..].iter().take_while(|s| s.ios == 0).count();
    let first = (0..samples.len()).max_by_key(|&at| (zeros(at), samples.len() - at));
    let (first, stalled) = (first.unwrap(), zeros(first.unwrap()));
    let longest = |sample: &Sample| sample.clat.as_ref().and_then(|h| h.percentile_ns(100.0));
    let after = longest(samples[first + stalled]).unwrap();
    let others = samples[..first]
        .iter()
        .chain(&samples[first + stalled + 1..]);
    assert!(others.clone().any(|sample| sample.ios > 0));
    let elsewhere = others.filter_map(|sample| longest(sample)).max();
    match stalled >= 5 && elsewhere < Some(after / 2) {
        true => Ok(()),
        false => Err(format!(
            "{stalled} samples without I/O, {after} ns after them, {elsewhere:?} elsewhere"
        )),
    }
}

/// Stalls a file system for a second after some samples.
struct Stalling<'f> {
    faultfs: &'f FaultFs,
    seen: Seen,
    samples: usize,
}

impl Sink for Stalling<'_> {
    fn event(&mut self, event: Event) -> Flow {
        if matches!(event, Event::Sample(_)) {
            self.samples += 1;
            match self.samples {
                8 => self.faultfs.delay(Duration::from_secs(1)),
                10 => self.faultfs.clear(),
                _ => {}
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

#[test]
fn think_time_slows_a_job() {
    let dir = folder();
    let seen = run(
        dir.path(),
        "[a]\nioengine=null\nthinktime=10ms\nthinktime_blocks=5\nrw=read\nsize=1g\nruntime=1\ntime_based\n",
    );
    let ios = seen.read(0).total_ios;
    // 5 in 10 ms, and it may end late.
    let most = (seen.read(0).runtime_ms / 10 + 1) * 5;
    assert!((5..=most).contains(&ios), "{ios} of {most}");
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
    let mut seen = Seen::default();
    seen.control.request_status();
    let text = "[a]\nioengine=null\nrate_iops=5000\nrw=read\nsize=1g\nruntime=1\ntime_based\n";
    try_run(dir.path(), text, &mut seen).unwrap();
    assert!(
        seen.events
            .iter()
            .any(|event| matches!(event, Event::Status { .. }))
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
    let text = "[a]\nioengine=null\nrate_iops=2000\nrw=read\nsize=1g\nruntime=1\ntime_based\nwrite_iops_log=l\nwrite_hist_log=l\nlog_avg_msec=100\nlog_hist_msec=200\n";
    let seen = run(dir.path(), text);
    let iops = log(&dir.path().join("l_iops.1.log"));
    // A line each 100 ms, of which a busy machine misses some.
    let most = seen.read(0).runtime_ms / 100 + 1;
    assert!((2..=most).contains(&(iops.len() as u64)), "{iops:?}");
    // IOPS, not I/Os: those are 200 in a line.
    let mean = iops.iter().map(|line| line[1]).sum::<u64>() / iops.len() as u64;
    assert!((500..10_000).contains(&mean), "{mean}");
    let histograms = log(&dir.path().join("l_clat_hist.1.log"));
    assert!(histograms.iter().all(|line| line.len() == 3 + 1856));
    let all: u64 = histograms.iter().flat_map(|line| &line[3..]).sum();
    assert_eq!(all, seen.read(0).total_ios);
}

#[test]
fn a_steady_job_ends_by_fios_rule_and_reports_it() {
    let dir = folder();
    let text = "[a]\nioengine=null\nrate_iops=1000\nrw=read\nsize=1g\nruntime=25\ntime_based\nss=iops:60%\nss_dur=2\n";
    let seen = run(dir.path(), text);
    let job = &seen.results().jobs[0];
    assert!(job.runtime_ms.unwrap() < 25_000, "{:?}", job.runtime_ms);
    let verdict = job.fio_steady_state.as_ref().unwrap();
    assert_eq!(
        (&verdict["attained"], &verdict["duration"]),
        (&1.into(), &2.into())
    );
}
