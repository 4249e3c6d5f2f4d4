//! Each rule at its threshold: what is just beyond it is told, what is just below is not,
//! and without its facts it says nothing.

use std::collections::BTreeMap;

use fathom_model::environment::{BlockDevice, Environment, FileSystem, Partition, Target};
use fathom_model::{
    Certainty, Direction, DirectionResult, Event, EvidenceInterval, JobResult, Latency, LayerKind,
    RateCertainty, ReasonKind, RunDocument, Sample, StackLayer, VerdictLevel,
};

use super::judge;
use crate::step_evidence::StepEvidence;

/// A direct job of 4 KiB reads on `sda` for 10 s, alone, with 1000 IOPS at depth 1.
struct Case {
    doc: RunDocument,
    evidence: EvidenceInterval,
    samples: Vec<Sample>,
    events: Vec<Event>,
}

impl Case {
    fn new() -> Self {
        let options = [
            ("rw", "randread"),
            ("bs", "4k"),
            ("direct", "1"),
            ("ioengine", "libaio"),
            ("iodepth", "1"),
        ];
        let result = DirectionResult {
            total_ios: 10_000,
            io_bytes: 40_960_000,
            bw_bytes: 4_096_000.0,
            iops: 1000.0,
            runtime_ms: 10_000,
            clat: Some(Latency {
                n: Some(10_000),
                mean_ns: 990_000.0,
                max_ns: 2_000_000,
                ..Latency::default()
            }),
            ..DirectionResult::default()
        };
        let job = JobResult {
            name: "job".to_owned(),
            options: options
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            read: Some(result),
            ..JobResult::default()
        };
        let doc = RunDocument {
            engine: "fio".to_owned(),
            jobs: vec![job],
            ..RunDocument::default()
        };
        let mut case = Self {
            doc,
            evidence: EvidenceInterval {
                t_ms: 10_000,
                span_ms: 10_000,
                ..EvidenceInterval::default()
            },
            samples: Vec::new(),
            events: Vec::new(),
        };
        case.set("sda.role", "target");
        for (name, count) in [
            ("sda.read_ios", 10_000),
            ("sda.read_bytes", 40_960_000),
            ("sda.write_ios", 0),
            ("sda.write_bytes", 0),
            ("sda.queue_ms", 9_900),
        ] {
            case.count(name, count);
        }
        case
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
        self.evidence
            .settings
            .insert(name.to_owned(), value.to_owned());
        self
    }

    fn option(&mut self, name: &str, value: &str) -> &mut Self {
        self.doc.jobs[0]
            .options
            .insert(name.to_owned(), value.to_owned());
        self
    }

    fn read(&mut self) -> &mut DirectionResult {
        self.doc.jobs[0].read.as_mut().unwrap()
    }

    /// The same job writes.
    fn writes(&mut self) -> &mut Self {
        let job = &mut self.doc.jobs[0];
        job.write = job.read.take();
        self.option("rw", "randwrite");
        let counts = std::mem::take(&mut self.evidence.counts);
        let swapped = counts.into_iter().map(|(name, count)| {
            let name = match name.contains("read") {
                true => name.replace("read", "write"),
                false => name.replace("write", "read"),
            };
            (name, count)
        });
        self.evidence.counts = swapped.collect();
        self
    }

    fn device(&mut self, device: BlockDevice) -> &mut Self {
        self.doc.environment = Some(Environment {
            targets: vec![Target {
                device: Some(device),
                ..Target::default()
            }],
            ..Environment::default()
        });
        self
    }

    /// The target is a file on this.
    fn on(&mut self, below: StackLayer) -> &mut Self {
        let stack = StackLayer {
            under: vec![below],
            ..StackLayer::new(LayerKind::FileSystem, "ext4")
        };
        self.doc.environment = Some(Environment {
            targets: vec![Target {
                stack: Some(stack),
                ..Target::default()
            }],
            ..Environment::default()
        });
        self
    }

    /// Samples of a second with these IOPS.
    fn course(&mut self, iops: impl IntoIterator<Item = u64>) -> &mut Self {
        self.samples = (1..)
            .zip(iops)
            .map(|(s, ios)| Sample {
                t_ms: s * 1000,
                span_ms: 1000,
                job: 0,
                dir: Direction::Read,
                ios,
                bytes: ios * 4096,
                clat: None,
                lat: None,
            })
            .collect();
        self
    }

    fn kinds(&mut self) -> Vec<ReasonKind> {
        let mut step = StepEvidence::default();
        let names = vec!["job".to_owned()];
        let hosts = Vec::new();
        let mut events = vec![Event::Jobs { names, hosts }];
        let keys = |map: &BTreeMap<String, u64>| map.keys().map(|name| (name.clone(), 0)).collect();
        let first = EvidenceInterval {
            counts: keys(&self.evidence.counts),
            gauges: self.evidence.gauges.clone(),
            settings: self.evidence.settings.clone(),
            ..EvidenceInterval::default()
        };
        events.push(Event::Evidence(Box::new(first)));
        if self.samples.is_empty() {
            self.course([1000]);
        }
        events.extend(self.samples.drain(..).map(Event::Sample));
        events.push(Event::Evidence(Box::new(self.evidence.clone())));
        events.append(&mut self.events);
        events.iter().for_each(|event| step.take(event));
        judge(&mut self.doc, &[step.closed()]);
        let results = self.doc.jobs[0].directions();
        let verdicts = results.filter_map(|(_, result)| result.verdict.clone());
        verdicts
            .flat_map(|verdict| verdict.reasons)
            .map(|reason| reason.kind)
            .collect()
    }
}

/// What is told of a case beside the few I/Os that every case has.
fn told(change: impl FnOnce(&mut Case)) -> Vec<ReasonKind> {
    let mut case = Case::new();
    change(&mut case);
    let mut kinds = case.kinds();
    kinds.retain(|kind| *kind != ReasonKind::FewBeyond);
    kinds
}

use ReasonKind as R;

#[test]
fn a_clean_run_is_valid() {
    assert_eq!(told(|_| ()), []);
    let mut case = Case::new();
    case.read().clat.as_mut().unwrap().n = Some(9_999);
    assert_eq!(case.kinds(), [R::FewBeyond]);
    assert_eq!(case.doc.verdict.unwrap().level, VerdictLevel::Valid);
}

#[test]
fn without_evidence_nothing_is_said() {
    let mut case = Case::new();
    case.evidence.counts.clear();
    case.evidence.settings.clear();
    assert_eq!(case.kinds(), []);
}

/// A second fio on the same disk: 23,096 reads of the job and 33,535 of the disk.
#[test]
fn io_of_others_is_told_from_a_twentieth_on() {
    let with = |own: u64, disk: u64| {
        told(move |case| {
            case.read().total_ios = own;
            case.read().io_bytes = own * 4096;
            case.count("sda.read_ios", disk)
                .count("sda.read_bytes", disk * 4096);
        })
    };
    assert_eq!(with(23_096, 33_535), [R::ForeignIo]);
    assert_eq!(with(10_000, 10_510), [R::ForeignIo]);
    assert_eq!(with(10_000, 10_490), []);
    let writes = told(|case| {
        case.count("sda.write_ios", 300)
            .count("sda.write_bytes", 300 << 20);
    });
    assert_eq!(writes, [R::ForeignIo]);
    let few = told(|case| {
        case.count("sda.write_ios", 99)
            .count("sda.write_bytes", 99 * 4096);
    });
    assert_eq!(few, []);
    // Through the cache nobody can tell whose I/O it is.
    let cached = told(|case| {
        case.option("direct", "0");
        case.count("sda.read_ios", 33_535);
    });
    assert_eq!(cached, []);
}

#[test]
fn requests_of_another_size_are_split_or_merged_and_not_others() {
    let with = |requests: u64| {
        told(move |case| {
            case.count("sda.read_ios", requests);
        })
    };
    assert_eq!(with(20_000), [R::RequestsSplit]);
    assert_eq!(with(5_000), [R::RequestsSplit]);
    assert_eq!(with(9_000), []);
    let merged = told(|case| {
        case.option("rw", "read").count("sda.read_ios", 5_000);
    });
    assert_eq!(merged, [], "adjacent reads are merged");
}

#[test]
fn depth_is_held_against_littles_law() {
    let with = |mean_ms: f64, queue_ms: u64, slat_ms: f64| {
        told(move |case| {
            case.option("iodepth", "32");
            let slat = Latency {
                mean_ns: slat_ms * 1e6,
                ..case.read().clat.clone().unwrap()
            };
            case.read().slat = Some(slat);
            case.read().clat.as_mut().unwrap().mean_ns = mean_ms * 1e6;
            case.count("sda.queue_ms", queue_ms);
        })
    };
    assert_eq!(with(31.0, 310_000, 0.0), []);
    assert_eq!(with(23.0, 310_000, 0.0), [R::DepthNotReached]);
    // fio reads numbers of base 16, and units.
    let written = |depth: &'static str| {
        told(move |case| {
            case.option("iodepth", depth);
        })
    };
    assert_eq!(written("0x20"), written("32"));
    assert_eq!(written("1k"), written("1024"));
    assert_eq!(written("0x20"), [R::DepthNotReached]);
    // The job waits in io_submit, and the device sees one I/O at a time.
    assert_eq!(with(31.0, 9_900, 30.0), [R::DepthNotReached]);
    // The layers between job and device do not count.
    assert_eq!(with(31.0, 9_900, 1.0), []);
    let thinks = |us: &'static str| {
        told(move |case| {
            case.option("iodepth", "32").option("thinktime", us);
        })
    };
    assert_eq!(thinks("500us"), [R::OwnLimit]);
    assert_eq!(thinks("499"), [R::DepthNotReached]);
    // So few I/Os cannot all have been beside 31 others.
    let few = |ios: u64, mean_ms: f64| {
        told(move |case| {
            case.option("iodepth", "32");
            case.count("sda.queue_ms", 310_000);
            case.read().total_ios = ios;
            case.read().clat.as_mut().unwrap().mean_ns = mean_ms * 1e6;
        })
        .contains(&R::DepthNotReached)
    };
    assert_eq!([few(40, 19.0), few(40, 12.0)], [false, true]);
    assert_eq!([few(20, 19.0), few(20, 1.0)], [false, false]);
}

#[test]
fn a_little_steal_is_a_note() {
    let stolen = |ms| {
        let mut case = Case::new();
        case.count("cpu.steal_ms", ms)
            .count("cpu.idle_ms", 20_000 - ms);
        assert!(case.kinds().contains(&R::CpuTaken));
        case.doc.verdict.unwrap().level
    };
    assert_eq!(stolen(8000), VerdictLevel::Suspect);
    assert_eq!(stolen(1000), VerdictLevel::Valid);
}

#[test]
fn the_machine_is_looked_at() {
    let count = |name: &'static str, n: u64| {
        told(move |case| {
            case.count(name, n);
        })
    };
    let gauge = |name: &'static str, n: f64| {
        told(move |case| {
            case.gauge(name, n);
        })
    };
    let set = |name: &'static str, to: &'static str| {
        told(move |case| {
            case.set(name, to);
        })
    };
    // What other tasks wait for is not the job's.
    assert_eq!(count("pressure.cpu_some_us", 10_000_000), []);
    let waited = |us: u64, threads: f64, busy_ms: u64| {
        told(move |case| {
            case.count("job.wait_us", us)
                .gauge("job.threads", threads)
                .set("sda.role", "target")
                .count("sda.busy_ms", busy_ms);
        })
    };
    assert_eq!(waited(1_000_000, 1.0, 0), [R::CpuTaken]);
    assert_eq!(waited(990_000, 1.0, 0), []);
    assert_eq!(waited(1_900_000, 2.0, 0), []);
    assert_eq!(waited(5_000_000, 1.0, 9_600), [], "it had no effect");
    assert_eq!(gauge("cpu.busiest_irq_percent", 85.0), [R::InterruptBound]);
    assert_eq!(gauge("cpu.busiest_irq_percent", 50.0), []);
    assert_eq!(count("cgroup.cpu_throttled_us", 100_000), [R::Throttled]);
    assert_eq!(count("cgroup.cpu_throttled_us", 90_000), []);
    assert_eq!(gauge("sda.limit_riops", 1100.0), [R::Throttled]);
    assert_eq!(gauge("sda.limit_riops", 1200.0), []);
    assert_eq!(count("cpu.thermal_throttles", 1), [R::Thermal]);
    assert_eq!(count("sda.thermal_transitions", 1), [R::Thermal]);
    assert_eq!(count("sda.media_errors", 1), [R::DeviceErrors]);
    assert_eq!(count("sda.link_errors", 9), []);
    assert_eq!(
        count("pressure.memory_some_us", 500_000),
        [R::MemoryPressure]
    );
    assert_eq!(count("memory.swapped_out_pages", 2_550), []);
    assert_eq!(set("clock.source", "hpet"), [R::ClockSource]);
    assert_eq!(set("clock.source", "tsc"), []);
    assert_eq!(set("sda.sync_action", "resync"), [R::Maintenance]);
    assert_eq!(set("sda.sync_action", "idle"), []);
    assert_eq!(
        set("btrfs0.exclusive_operation", "balance"),
        [R::Maintenance]
    );
    assert_eq!(count("sda.discard_bytes", 64 << 20), [R::Maintenance]);
    let hot = told(|case| {
        case.gauge("sda.celsius", 82.0)
            .gauge("sda.most_celsius", 81.85);
    });
    assert_eq!(hot, [R::Thermal]);
    let far = |cpus: &'static str| {
        told(move |case| {
            case.set("sda.local_cpus", "0-3,8").set("cpu.allowed", cpus);
        })
    };
    assert_eq!(far("4-7"), [R::FarCpus]);
    assert_eq!(far("7-9"), []);
}

#[test]
fn a_record_on_the_target_is_told_where_it_writes_much() {
    let record = |bytes: u64| {
        told(move |case| {
            case.set("record.on_target", "1")
                .count("record.bytes", bytes);
        })
    };
    assert_eq!(record(400_000), []);
    assert_eq!(record(410_000), [R::RecordOnTarget]);
}

#[test]
fn a_slow_clock_is_told_of_a_busy_machine_only() {
    let slow = |mhz: f64| {
        told(move |case| {
            case.gauge("cpu.mhz", mhz).gauge("cpu.most_mhz", 3600.0);
        })
    };
    assert_eq!(slow(1200.0), [R::ClockFrequency]);
    assert_eq!(slow(2600.0), []);
}

#[test]
fn the_link_is_narrow_or_full() {
    let with = |lanes: f64, mb_s: u64| {
        told(move |case| {
            case.set("sda.role", "other").set("nvme0n1.role", "under");
            for (name, value) in [
                ("link_gts", 8.0),
                ("link_most_gts", 8.0),
                ("link_lanes", lanes),
                ("link_most_lanes", 4.0),
            ] {
                case.gauge(&format!("nvme0n1.{name}"), value);
            }
            case.count("nvme0n1.read_bytes", mb_s * 10_000_000);
        })
    };
    // 8 GT/s x4: 3938 MB/s behind the encoding, 3601 in packets.
    assert_eq!(with(4.0, 3400), [R::LinkLimit]);
    assert_eq!(with(4.0, 3300), []);
    assert_eq!(with(2.0, 100), [R::LinkNarrow]);
}

#[test]
fn the_course_of_a_rate_is_told_once() {
    let of = |iops: Vec<u64>| {
        told(move |case| {
            case.course(iops);
        })
    };
    assert_eq!(
        of([vec![3000; 40], vec![1000; 20]].concat()),
        [R::LevelShift]
    );
    assert_eq!(
        of([vec![200; 5], vec![1000; 25]].concat()),
        [R::StillChanging]
    );
    assert_eq!(
        of((0..30).map(|k| 1000 - 10 * k).collect()),
        [R::StillChanging]
    );
    assert_eq!(of(vec![1000; 30]), []);
    assert_eq!(
        of([vec![1000; 10], vec![0; 3], vec![1000; 10]].concat()),
        [R::Stalls]
    );
    let slow = told(|case| {
        case.read().iops = 1.0;
        case.course([[1; 5], [0; 5], [1; 5]].concat());
    });
    assert_eq!(slow, []);
}

#[test]
fn what_holds_nothing_is_told_of_reads() {
    let zram = |stored: f64, same: f64| {
        told(move |case| {
            case.gauge("sda.size_bytes", 1e9)
                .gauge("sda.zram_data_bytes", stored);
            case.gauge("sda.zram_same_pages", same);
        })
    };
    assert_eq!(zram(1e9, 0.0), []);
    assert_eq!(zram(0.94e9, 0.0), [R::NothingRead]);
    assert_eq!(zram(1e9, 20_000.0), [R::NothingRead]);
    // The rest of the device is none of this job's.
    let part = told(|case| {
        case.option("size", "500m")
            .gauge("sda.size_bytes", 1e9)
            .gauge("sda.zram_data_bytes", 0.6e9)
            .gauge("sda.zram_same_pages", 0.0);
    });
    assert_eq!(part, []);
    let file = |figure: &'static str, held: f64| {
        told(move |case| {
            case.gauge("files.size_bytes", 1e9).gauge(figure, held);
        })
    };
    assert_eq!(file("files.written_bytes", 0.5e9), [R::NothingRead]);
    assert_eq!(file("files.written_bytes", 0.96e9), []);
    // Of an earlier version; allocated beyond its end: preallocated, or in large blocks.
    assert_eq!(file("files.allocated_bytes", 1.1e9), []);
}

#[test]
fn where_a_file_was_written_is_held_against_the_range_of_the_job() {
    let reads = |offset: &'static str, size: &'static str| {
        told(move |case| {
            // The first half was written.
            let map = "ff".repeat(32) + &"00".repeat(32);
            case.option("offset", offset)
                .option("size", size)
                .gauge("sda.backing_size_bytes", 1e9)
                .gauge("sda.backing_written_bytes", 0.5e9)
                .set("sda.backing_written_map", &map);
        })
    };
    assert_eq!(reads("0", "600m"), [R::NothingRead]);
    assert_eq!(reads("0", "50%"), []);
    assert_eq!(reads("0", "100m"), []);
    assert_eq!(reads("50%", "100m"), [R::NothingRead]);
    assert_eq!(reads("0", "0"), [R::NothingRead]);
}

#[test]
fn caches_and_compression_below_the_device_are_told() {
    let below = |reached: u64| {
        told(move |case| {
            case.set("sda.direct", "0")
                .set("sdb.role", "under")
                .count("sdb.read_bytes", reached);
        })
    };
    assert_eq!(below(20_480_000), []);
    assert_eq!(below(20_000_000), [R::CachedBelow]);
    let throttled = told(|case| {
        case.set("sda.direct", "0")
            .set("sdb.role", "under")
            .count("sdb.read_bytes", 0)
            .gauge("sda.limit_riops", 1000.0);
    });
    assert_eq!(throttled, [R::Throttled], "the limit is the figure");
    let turning = |iops: f64, clat_ns: f64| {
        told(move |case| {
            case.set("sda.rotational", "1");
            case.read().iops = iops;
            case.read().clat.as_mut().unwrap().mean_ns = clat_ns;
        })
    };
    assert_eq!(turning(1000.0, 990_000.0), [R::CachedBelow]);
    assert_eq!(turning(500.0, 2_000_000.0), []);
    let zram = |kept: f64| {
        told(move |case| {
            case.gauge("sda.size_bytes", 1e9)
                .gauge("sda.zram_data_bytes", 1e9)
                .gauge("sda.zram_same_pages", 0.0)
                .gauge("sda.zram_compressed_bytes", kept);
        })
    };
    assert_eq!(zram(0.9e9), []);
    assert_eq!(zram(0.7e9), [R::Compressed]);
}

/// Others read the same disk, and the engine's processes got nothing of it.
#[test]
fn reads_of_others_hide_no_cache() {
    let delivered = |bytes: u64| {
        told(move |case| {
            case.option("direct", "0").count("job.read_bytes", bytes);
            case.on(StackLayer::new(LayerKind::Disk, "sda"));
        })
    };
    assert_eq!(delivered(40_960_000), []);
    assert_eq!(delivered(20_000_000), [R::CachedReads]);
    let elsewhere = told(|case| {
        case.option("direct", "0").count("job.read_bytes", 0);
        case.on(StackLayer::new(LayerKind::Network, "network"));
    });
    assert_eq!(elsewhere, []);
}

#[test]
fn blocks_that_a_copy_shares_are_told_of_writes() {
    let shared = |bytes: f64| {
        told(move |case| {
            case.writes()
                .gauge("files.size_bytes", 1e9)
                .gauge("files.shared_bytes", bytes);
        })
    };
    assert_eq!(shared(0.5e9), [R::SharedBlocks]);
    assert_eq!(shared(0.04e9), []);
}

#[test]
fn what_a_drive_may_hold_in_its_own_memory_is_told() {
    let range = |bytes: f64| {
        told(move |case| {
            case.gauge("files.size_bytes", bytes);
        })
    };
    assert_eq!(range(20e6), [R::DeviceMemory]);
    assert_eq!(range(30e6), [], "not twice");
    let written = |size: f64| {
        told(move |case| {
            case.writes()
                .set("sda.rotational", "0")
                .gauge("sda.size_bytes", size);
        })
    };
    assert_eq!(written(1e9), [R::WriteCacheUnfilled]);
    assert_eq!(written(0.9e9), []);
}

#[test]
fn a_flash_drive_without_a_history_is_noted_where_it_is_written_to() {
    let case = |rotational: &str, writes: bool| {
        let rotational = rotational.to_owned();
        told(move |case| {
            case.set("sda.rotational", &rotational)
                .set("sda.history", "unknown");
            if writes {
                case.writes();
            }
        })
    };
    assert_eq!(case("0", true), [R::UnknownHistory]);
    assert_eq!(case("1", true), []);
    assert_eq!(case("0", false), []);
}

#[test]
fn what_its_interval_holds_does_not_weigh_against_a_rate() {
    let level = |half: f64| {
        let mut case = Case::new();
        case.count("job.wait_us", 2_000_000)
            .gauge("job.threads", 1.0)
            .count("sda.read_bytes", 40_960_000 * 6 / 5);
        let iops = case.read().iops;
        case.read().certainty = Some(RateCertainty {
            intervals: 100,
            iops: Certainty::Interval {
                low: iops - half,
                high: iops + half,
                independent: 100.0,
            },
            bw_bytes: Certainty::TooShort {
                independent: 1.0,
                enough_ms: 1,
            },
        });
        case.kinds();
        case.doc.verdict.unwrap().level
    };
    assert_eq!(level(190.0), VerdictLevel::Suspect);
    assert_eq!(level(201.0), VerdictLevel::Valid);
}

#[test]
fn a_rate_of_bytes_that_is_not_reached_is_no_limit() {
    let with = |rate: &'static str| {
        told(move |case| {
            case.option("rate", rate);
        })
    };
    assert_eq!(with("4m"), [R::OwnLimit]);
    assert_eq!(with("100m"), []);
}

#[test]
fn write_back_of_the_page_cache_is_told_apart_from_others() {
    let found = |bytes: u64, pages: u64| {
        let mut case = Case::new();
        case.count("sda.write_ios", 3000)
            .count("sda.write_bytes", bytes)
            .count("memory.written_back_pages", pages);
        assert!(case.kinds().contains(&R::ForeignIo));
        let reasons = case.doc.verdict.unwrap().reasons;
        reasons
            .into_iter()
            .find(|it| it.kind == R::ForeignIo)
            .unwrap()
    };
    let cache = "wrote back what was in the page cache";
    let much = found(12_288_000, 3000);
    assert!(much.sentence.ends_with(cache) && much.level > VerdictLevel::Valid);
    let little = found(4_096_000, 1000);
    assert!(little.sentence.ends_with(cache) && little.level == VerdictLevel::Valid);
    let others = found(4_096_000, 100);
    assert!(others.sentence.ends_with("somebody else used it meanwhile"));
    assert!(others.level > VerdictLevel::Valid);
}

#[test]
fn a_series_through_the_page_cache_is_marked_and_valid() {
    let mut case = Case::new();
    case.doc.command = "quick".to_owned();
    case.option("direct", "0");
    case.count("sda.read_ios", 100).count("sda.read_merges", 0);
    assert!(case.kinds().contains(&R::CachedReads));
    let verdict = case.doc.verdict.unwrap();
    assert_eq!(verdict.level, VerdictLevel::Valid);
}

#[test]
fn settings_that_change_are_told_with_their_values() {
    let mut case = Case::new();
    case.set("sda.scheduler", "none");
    let changed = EvidenceInterval {
        t_ms: 11_000,
        span_ms: 1000,
        settings: [("sda.scheduler".to_owned(), "mq-deadline".to_owned())].into(),
        ..EvidenceInterval::default()
    };
    case.events.push(Event::Evidence(Box::new(changed)));
    assert!(case.kinds().contains(&R::SettingsChanged));
    let reasons = case.doc.verdict.unwrap().reasons;
    let told = reasons
        .iter()
        .find(|reason| reason.kind == R::SettingsChanged)
        .unwrap();
    assert_eq!(
        told.sentence,
        "scheduler of sda changed: none, then mq-deadline"
    );
}

#[test]
fn writes_have_rules_of_their_own() {
    let cache = |flushes: u64| {
        told(move |case| {
            case.writes()
                .set("sda.write_cache", "write back")
                .count("sda.flush_ios", flushes);
        })
    };
    assert_eq!(cache(0), [R::VolatileCache]);
    assert_eq!(cache(1), []);
    let blocks = |bs: &'static str, start_bytes: u64| {
        told(move |case| {
            case.writes().option("bs", bs).device(BlockDevice {
                logical_block_bytes: 512,
                physical_block_bytes: 4096,
                partition: Some(Partition {
                    start_bytes,
                    ..Partition::default()
                }),
                ..BlockDevice::default()
            });
        })
    };
    assert_eq!(blocks("4k", 1 << 20), []);
    assert_eq!(blocks("512", 1 << 20), [R::Misaligned]);
    assert_eq!(blocks("4k", 63 * 512), [R::Misaligned]);
    let buffered = told(|case| {
        case.writes().option("direct", "0");
    });
    assert_eq!(buffered, [R::UnsyncedWrites]);
}

#[test]
fn a_rate_that_is_kept_is_the_limit_and_one_that_is_not_is_told() {
    let with = |rate: &'static str| {
        told(move |case| {
            case.option("rate_iops", rate);
        })
    };
    assert_eq!(with("1000"), [R::OwnLimit]);
    assert_eq!(with("2000"), [R::BehindRate]);
}

#[test]
fn files_in_memory_are_invalid() {
    let mut case = Case::new();
    case.doc.environment = Some(Environment {
        targets: vec![Target {
            file_system: Some(FileSystem {
                kind: "tmpfs".to_owned(),
                ..FileSystem::default()
            }),
            ..Target::default()
        }],
        ..Environment::default()
    });
    assert!(case.kinds().contains(&R::InMemory));
    let verdict = case.doc.verdict.unwrap();
    assert_eq!(verdict.level, VerdictLevel::Invalid);
}
