use proptest::prelude::*;

use super::*;

fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/foreign/");
    std::fs::read(format!("{folder}{name}")).unwrap()
}

fn loads(name: &str, tool: ForeignTool) -> Vec<JobResult> {
    let found = read(&fixture(name)).unwrap().unwrap();
    assert_eq!(found.tool, tool, "{name}");
    found
        .loads
        .into_iter()
        .map(|mut load| load.jobs.remove(0))
        .collect()
}

fn option<'j>(job: &'j JobResult, name: &str) -> Option<&'j str> {
    job.options.get(name).map(String::as_str)
}

#[test]
fn phases_of_elbencho_are_loads() {
    let jobs = loads("elbencho.csv", ForeignTool::Elbencho);
    assert_eq!(jobs.len(), 2, "directories are no data");
    let write = jobs[0].write.as_ref().unwrap();
    assert_eq!((write.iops, write.runtime_ms), (2941.0, 2784));
    assert_eq!(write.bw_bytes, 2941.0 * 1_048_576.0);
    let clat = write.clat.as_ref().unwrap();
    assert_eq!(
        (clat.min_ns, clat.mean_ns, clat.max_ns),
        (1_661_000, 9_383_000.0, 120_903_000)
    );
    assert_eq!(write.told, [ReasonKind::RoundedCounts]);
    let told = ["rw", "bs", "iodepth", "numjobs"].map(|name| option(&jobs[1], name));
    assert_eq!(told, [Some("read"), Some("1048576"), Some("4"), Some("8")]);
    let json = loads("elbencho.json", ForeignTool::Elbencho);
    assert_eq!((json.len(), json[0].name.as_str()), (1, "a, b"));
    assert_eq!(json[0].read.as_ref().unwrap().total_ios, 500_000);
    assert_eq!(option(&json[0], "rw"), Some("randread"));
}

#[test]
fn marks_have_directions_sizes_queues_and_threads() {
    let jobs = loads("crystaldiskmark.txt", ForeignTool::DiskMark);
    assert_eq!(jobs.len(), 8);
    let reads = jobs[2].read.as_ref().unwrap();
    assert_eq!(
        (reads.iops, reads.bw_bytes, reads.total_ios),
        (156.2, 640_000.0, 781)
    );
    assert!((reads.clat.as_ref().unwrap().mean_ns - 199_524_930.0).abs() < 1.0);
    let told = ["rw", "bs", "iodepth", "numjobs"].map(|name| option(&jobs[6], name));
    assert_eq!(
        told,
        [Some("randwrite"), Some("4096"), Some("32"), Some("1")]
    );
    assert!(jobs[6].read.is_none() && jobs[6].write.is_some());
    let jobs = loads("kdiskmark.txt", ForeignTool::DiskMark);
    assert_eq!((jobs.len(), option(&jobs[1], "numjobs")), (4, Some("16")));
    assert_eq!(option(&jobs[0], "bs"), Some("1048576"));
    // Nobody says for how long.
    assert_eq!(jobs[0].runtime_ms, None);
    // The form before version 7, with the direction and at times no size in the line.
    let old = "   Sequential Read (Q= 32,T= 1) :   555.5 MB/s\n  Random Write 4KiB (Q= 8,T= 8) :   100.0 MB/s [ 24414.1 IOPS]\n";
    let found = read(old.as_bytes()).unwrap().unwrap().loads;
    let (seq, random) = (&found[0].jobs[0], &found[1].jobs[0]);
    assert_eq!(seq.read.as_ref().unwrap().told, [ReasonKind::UnknownCounts]);
    assert_eq!(
        (option(seq, "bs"), option(random, "bs")),
        (None, Some("4096"))
    );
    assert_eq!(random.write.as_ref().unwrap().iops, 24414.1);
    let mix = "[Mix] R70%/W30%\n SEQ 128KiB (Q= 32, T= 1): 10.0 MB/s [ 76.3 IOPS] < 1.0 us>\n";
    let found = read(mix.as_bytes()).unwrap().unwrap().loads;
    assert_eq!(option(&found[0].jobs[0], "rwmixread"), Some("70"));
    assert!(found[0].jobs[0].mixed.is_some());
}

#[test]
fn run_definitions_of_vdbench_are_loads() {
    let jobs = loads("vdbench.txt", ForeignTool::Vdbench);
    assert_eq!((jobs.len(), jobs[0].name.as_str()), (1, "rd1 threads=2"));
    let write = jobs[0].write.as_ref().unwrap();
    assert_eq!((write.iops, write.runtime_ms), (318_293.8, 30_000));
    let clat = write.clat.as_ref().unwrap();
    assert_eq!(
        (clat.mean_ns.round() as u64, clat.max_ns),
        (57_000, 89_790_000)
    );
    assert_eq!(
        (option(&jobs[0], "bs"), option(&jobs[0], "iodepth")),
        (Some("8192"), Some("2"))
    );
    // What formats the disks has moved nothing; and one column is of both directions.
    let jobs = loads("vdbench-old.txt", ForeignTool::Vdbench);
    assert_eq!(jobs.len(), 1);
    let (read, write) = (
        jobs[0].read.as_ref().unwrap(),
        jobs[0].write.as_ref().unwrap(),
    );
    assert!(
        (read.iops - 2156.0 * 0.2848).abs() < 1e-6
            && (read.iops + write.iops - 2156.0).abs() < 1e-6
    );
    assert_eq!(read.clat.as_ref().unwrap().max_ns, 0);
    assert_eq!(option(&jobs[0], "rwmixread"), Some("28"));
}

#[test]
fn time_spans_of_diskspd_are_loads() {
    let jobs = loads("diskspd.xml", ForeignTool::Diskspd);
    let read = jobs[0].read.as_ref().unwrap();
    assert_eq!(
        (read.total_ios, read.iops, read.io_bytes),
        (140_000, 14_000.0, 1_146_880_000)
    );
    assert!(read.told.is_empty(), "they are counted");
    let clat = jobs[0].write.as_ref().unwrap().clat.as_ref().unwrap();
    assert_eq!((clat.min_ns, clat.max_ns), (90_000, 8_000_000));
    assert_eq!(clat.percentiles_ns, [(50.0, 700_000), (99.9, 3_000_000)]);
    let told = ["rw", "bs", "iodepth", "numjobs", "rwmixread"].map(|name| option(&jobs[0], name));
    assert_eq!(
        told,
        [
            Some("randrw"),
            Some("8192"),
            Some("32"),
            Some("2"),
            Some("70")
        ]
    );
    // As a shell of Windows writes it.
    let text = String::from_utf8(fixture("diskspd.xml")).unwrap();
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let found = read_wide(&wide);
    assert_eq!(found.loads[0].jobs[0], jobs[0]);
}

#[test]
fn rounds_of_tkperf_that_were_steady_are_loads() {
    let jobs = loads("tkperf.xml", ForeignTool::Tkperf);
    let of = |test: &str| -> Vec<&JobResult> {
        let begin = format!("{test}/");
        jobs.iter()
            .filter(|job| job.name.starts_with(&begin))
            .collect()
    };
    let counts = ["iops", "lat", "tp", "writesat"].map(|test| of(test).len());
    assert_eq!(counts, [5 * 7 * 8, 5 * 3 * 3, 5 * 2 * 5, 1]);
    let told = ["rw", "bs", "rwmixread", "iodepth", "numjobs"];
    let iops = of("iops");
    assert_eq!(
        told.map(|name| option(iops[6], name)),
        ["randrw", "4096", "100", "16", "2"].map(Some)
    );
    // The second round: the first was not steady.
    let reads = iops[6].read.as_ref().unwrap();
    assert_eq!((reads.iops, reads.bw_bytes), (60_960.0, 60_960.0 * 4096.0));
    assert_eq!((reads.total_ios, reads.runtime_ms), (3_657_600, 60_000));
    assert_eq!(reads.told, [ReasonKind::RoundedCounts]);
    assert!(iops[6].write.is_none() && iops[8].mixed.is_some());
    let lat = of("lat")[1].read.as_ref().unwrap();
    let total = lat.lat.as_ref().unwrap();
    assert_eq!(
        (total.min_ns, total.max_ns, total.mean_ns),
        (44_000, 4_000_000, 104_000.0)
    );
    assert!((lat.iops - 1e6 / 104.0).abs() < 1e-9 && lat.clat.is_none());
    let mixed = of("lat")[4].mixed.as_ref().unwrap().lat.as_ref().unwrap();
    assert_eq!(
        (mixed.min_ns, mixed.max_ns),
        (0, 0),
        "weighted, and no latency"
    );
    assert_eq!(
        of("tp")[5].write.as_ref().unwrap().bw_bytes,
        450_000.0 * 1024.0
    );
    let full = of("writesat")[0].write.as_ref().unwrap();
    assert_eq!((full.iops, full.runtime_ms), (60_000.0, 180_000));
    assert_eq!(full.lat.as_ref().unwrap().max_ns, 9_000_000);
    // A drive with sectors of 4 KiB; of disks every place counts.
    let small = "<d><ioperfversion>\"2.2\"</ioperfversion><iops><roundmat>[[[3, 2, 1], [3, 2, 1], [3, 2, 1]]]</roundmat></iops>\
                 <tp><roundmat>[[[9], [8]], [[7], [6]], [[5], [4]], [[3], [2]]]</roundmat></tp></d>";
    let found = read(small.as_bytes()).unwrap().unwrap().loads;
    let told = |place: usize| option(&found[place].jobs[0], "bs").map(str::to_owned);
    assert_eq!(
        (found.len(), told(1), told(9)),
        (17, Some("16384".into()), Some("1048576".into()))
    );
    assert_eq!(told(16), Some("4096".into()));
}

/// Two reports behind the first, of two devices, one of them idle in the second.
const IOSTAT: &str = "Linux 6.1.0-28-amd64 (bench-07) \t2026-11-24 \t_x86_64_\t(4 CPU)

2026-11-24T03:51:25+0100
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          43.85    7.71   12.93    0.79    0.08   34.64

Device            r/s     rkB/s r_await     w/s     wMB/s w_await  aqu-sz  %util
sda            842.17   3742.21    0.05   26.26      0.10    0.43    0.05   2.68

2026-11-24T03:51:27+0100
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          20.00    5.00   10.00    5.00    0.00   60.00

Device            r/s     rkB/s r_await     w/s     wMB/s w_await  aqu-sz  %util
sda            100.00    400.00    2.00   50.00      1.00    4.00    0.40  30.00
sdb              0,00      0,00    0,00    0,00      0,00    0,00    0,00   0,00
";

#[test]
fn what_iostat_tells_are_counts_from_report_to_report() {
    let log = read(IOSTAT.as_bytes()).unwrap().unwrap().beside.unwrap();
    assert_eq!((log.host.as_str(), log.has_zone), ("bench-07", true));
    let [sample] = &log.samples[..] else {
        panic!("the first tells of the time since the start: {log:?}")
    };
    assert_eq!((sample.at_ms, sample.span_ms), (1_795_488_687_000, 2000));
    let cpu = &sample.cpu;
    assert_eq!(
        (cpu.user_ms, cpu.iowait_ms, cpu.total_ms()),
        (2000, 400, 8000)
    );
    let [sda] = &sample.devices[..] else {
        panic!("{:?}", sample.devices)
    };
    assert_eq!(
        (sda.read_ios, sda.read_bytes, sda.read_ms),
        (200, 819_200, 400)
    );
    assert_eq!(
        (sda.write_ios, sda.write_bytes, sda.write_ms),
        (100, 2 << 20, 400)
    );
    assert_eq!((sda.queue_ms, sda.busy_ms), (800, 600));
    // Times of other locales have no zone.
    for (form, at_ms) in [
        ("11/24/2026 02:51:27 AM", 1_795_488_687_000),
        ("11/24/26 02:51:27", 1_795_488_687_000),
        ("24.11.2026 02:51:27", 1_795_488_687_000),
        ("24/11/26 02:51:27", 1_795_488_687_000),
        ("24/11/2026 02:51:27", 1_795_488_687_000),
    ] {
        let text = IOSTAT.replace("2026-11-24T03:51:27+0100", form);
        let text = text.replace("2026-11-24T03:51:25+0100", &form.replace("51:27", "51:25"));
        let log = read(text.as_bytes()).unwrap().unwrap().beside.unwrap();
        assert_eq!(
            (log.samples[0].at_ms, log.has_zone),
            (at_ms, false),
            "{form}"
        );
    }
}

#[test]
fn a_log_of_iostat_that_cannot_be_read_says_where() {
    let told = |text: &str| read(text.as_bytes()).unwrap().unwrap_err().to_string();
    for (from, to, said) in [
        (
            "100.00    400.00",
            "100.00",
            "line 15, column 1: 'sda' with 8 figures was expected",
        ),
        ("100.00    400.00", "nan 400.00", "line 15, column 1"),
        (
            "20.00    5.00",
            "20.00",
            "line 12, column 1: six percentages",
        ),
        (
            "2026-11-24T03:51:27+0100",
            "once",
            "line 10, column 1: 'once' is no time",
        ),
    ] {
        let text = IOSTAT.replacen(from, to, 1);
        assert_ne!(text, IOSTAT);
        assert!(told(&text).contains(said), "{}", told(&text));
    }
    let untimed = IOSTAT.replace("2026-11-24T03:51:25+0100\n", "");
    assert!(
        told(&untimed).contains("iostat -t writes it"),
        "{}",
        told(&untimed)
    );
    let first = IOSTAT.split("2026-11-24T03:51:27").next().unwrap();
    assert!(told(first).contains("no result in it"));
}

fn read_wide(wide: &[u8]) -> ForeignResults {
    read(&[b"\xff\xfe", wide].concat()).unwrap().unwrap()
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    let told = |text: &str| read(text.as_bytes()).unwrap().unwrap_err().to_string();
    let csv = String::from_utf8(fixture("elbencho.csv")).unwrap();
    let bad = csv.replace("READ,846,905", "READ,846,x");
    assert_eq!(
        told(&bad),
        "elbencho, line 4, column 1: time ms [last]: 'x' is no figure"
    );
    let head = csv.lines().next().unwrap();
    assert!(
        told(&format!("{head}\n1,2\n"))
            .contains("line 2, column 3: 2 fields where the head has 37")
    );
    assert!(told(head).contains("no result in it"));
    assert!(told("a\n SEQ 1MiB (Q= x, T= 1): 1 MB/s\n").contains("line 2, column 11: queues"));
    assert!(
        told("Starting RD=a;\n avg_2-6 1.0 2.0 x\n").contains("vdbench summary, line 2, column 2")
    );
    assert!(told("<Results><TimeSpan></TimeSpan></Results>").contains("line 1, column 10"));
    assert!(told("<Results><TimeSpan>").contains("DISKSPD XML, line 1"));
    let tkperf = |matrix: &str| {
        told(&format!(
            "<d>\n<iops><roundmat>{matrix}</roundmat></iops></d>"
        ))
    };
    for matrix in ["", "[[[1, 2]]]", "[[[1e999]]]", "[[1], [2]]"] {
        let said = tkperf(matrix);
        assert!(
            said.contains("TKperf XML, line 2, column 1: no figures"),
            "{said}"
        );
    }
    assert!(tkperf("[]").contains("no result in it"));
    // What would grow without bound is not even begun.
    assert!(
        told("<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><Results>&b;</Results>")
            .contains("DISKSPD")
    );
    assert!(read(b"fio-3.33\n").is_none() && read(b"").is_none());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        name in prop::sample::select(vec!["elbencho.csv", "elbencho.json", "crystaldiskmark.txt", "vdbench.txt", "diskspd.xml", "tkperf.xml", "iostat"]),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = match name {
            "iostat" => IOSTAT.as_bytes().to_vec(),
            name => fixture(name),
        };
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(end.index(bytes.len()) + 1);
        if let Some(Ok(found)) = read(&bytes) {
            for load in &found.loads {
                for (_, result) in load.jobs[0].directions() {
                    prop_assert!(result.iops.is_finite() && result.bw_bytes.is_finite());
                }
            }
        }
    }
}
