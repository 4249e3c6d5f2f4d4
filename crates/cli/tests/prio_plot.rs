//! `fathom prio plot` on folders as cdl_bench leaves them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What `cdladm show` prints of limits of 50 and 100 ms, and so on.
const DESCRIPTORS: &str = "\
Page T2A: read descriptors
  perf_vs_duration_guideline : 20%
  Descriptor 1:
    max inactive time        : no limit
    max inactive policy      : complete-earliest
    max active time          : no limit
    max active policy        : complete-earliest
    duration guideline       : 50 ms
    duration guideline policy: complete-earliest
  Descriptor 2:
    max inactive time        : no limit
    max active time          : no limit
    duration guideline       : 100 ms
    duration guideline policy: complete-earliest
";

/// A folder of results: (workload, priorities and their mean latency at depth 1 in ms).
fn folder(dir: &Path) {
    let workloads: [(&str, &[(u16, u64)]); 4] = [
        ("baseline", &[(0, 5)]),
        ("ncqprio", &[(0, 6), (0x2000, 2)]),
        ("cdlsingle", &[(0, 6), (0x4008, 3)]),
        ("cdlmulti", &[(0, 6), (0x4008, 3), (0x4010, 4)]),
    ];
    for (workload, classes) in workloads {
        for depth in [1u64, 2, 16] {
            let at = dir.join(workload).join(depth.to_string());
            fs::create_dir_all(&at).unwrap();
            let mut log = String::new();
            for n in 0..600u64 {
                let (prio, ms) = classes[(n % classes.len() as u64) as usize];
                let latency = ms * depth * 1_000_000 * (50 + n * 7919 % 100) / 100;
                let _ = writeln!(log, "{}, {latency}, 0, 131072, 0x{prio:04x}", n * 10);
            }
            fs::write(at.join("randread.log_lat.log"), log).unwrap();
            fs::write(at.join("fio.log"), "").unwrap();
        }
        if workload.starts_with("cdl") {
            fs::write(dir.join(workload).join("cdl_descriptors"), DESCRIPTORS).unwrap();
        }
    }
}

fn plot(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(["prio", "plot"])
        .args(args)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn lat_holds_ios_to_the_limits_that_lie_beside_their_log() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let lat = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
            .arg("lat")
            .args(args)
            .current_dir(dir.path().join("cdlmulti/16"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).unwrap()
    };
    // The fixture's latencies: those of limit 1 are 24 to 72 ms, of limit 2 32 to 96 ms.
    let over = (0..600u64)
        .filter(|n| n % 3 == 1 && 3 * 16 * (50 + n * 7919 % 100) > 50 * 100)
        .count();
    assert!(over > 0 && over < 200);
    let log = "randread.log_lat.log";
    let by_hand = format!("limit 1 of reads (50 ms): {over} of 200");
    let text = lat(&[log]);
    assert!(text.contains(&by_hand), "{text}");
    assert!(
        text.contains("limit 2 of reads (100 ms): 0 of 200 (0.00 %)\n"),
        "{text}"
    );
    assert!(!text.contains("by the disk"), "{text}");
    let limits = |args: &[&str]| -> serde_json::Value {
        let document: serde_json::Value = serde_json::from_str(&lat(args)).unwrap();
        document["files"][0]["limits"].clone()
    };
    assert!(limits(&[log, "--json"])[0]["disk_over"].is_null());
    // With the disk's own count of one limit: nothing is known of the other.
    fs::write(
        dir.path().join("cdlmulti/16/cdl_statistics"),
        "cdl_t2a_1_active 9\ncdl_t2a_1_duration 17\n",
    )
    .unwrap();
    let text = lat(&[log]);
    assert!(text.contains("%), 17 by the disk's count\n"), "{text}");
    let of_16 = limits(&[log, "--json"]);
    assert_eq!(
        (&of_16[0]["over"], &of_16[0]["disk_over"]),
        (&over.into(), &17.into())
    );
    assert!(of_16[1]["disk_over"].is_null(), "{of_16}");
    // Several together: the disk's count is known of all, or of none.
    let both = limits(&["../1/randread.log_lat.log", log, "--merge", "--json"]);
    assert_eq!(
        (&both[0]["n"], &both[0]["over"]),
        (&400.into(), &over.into())
    );
    assert!(both[0]["disk_over"].is_null(), "{both}");
    // Without limits nothing is said of any.
    assert!(limits(&["../../baseline/16/randread.log_lat.log", "--json"]).is_null());
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir.join("plots")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_folder_of_cdl_bench_gives_its_lines_and_its_files() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let output = plot(&["--save", dir.path().to_str().unwrap()]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = String::from_utf8(output.stdout).unwrap();
    insta::assert_snapshot!(
        "prio_plot",
        said.replace(dir.path().to_str().unwrap(), "DIR")
    );
    let mut expected: Vec<String> = Vec::new();
    for (workload, endings) in [
        ("baseline", &["lat_pdf"] as &[&str]),
        (
            "cdlmulti",
            &[
                "lat_pdf_100ms",
                "lat_pdf_50ms",
                "lat_pdf_nolimit",
                "miss_rate",
            ],
        ),
        (
            "cdlsingle",
            &["lat_pdf_50ms", "lat_pdf_nolimit", "miss_rate"],
        ),
        ("ncqprio", &["lat_pdf_hipri", "lat_pdf_lopri"]),
    ] {
        for name in ["iops", "lat_avg", "lat_p99"].iter().chain(endings) {
            expected.push(format!("{workload}_{name}.png"));
        }
    }
    expected.sort();
    assert_eq!(names(dir.path()), expected);
    let size = |name: &str| {
        let png = fs::read(dir.path().join("plots").join(name)).unwrap();
        let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        (side(16), side(20))
    };
    assert_eq!(size("cdlsingle_iops.png"), (800, 600));
    let args = [
        "--save",
        "--w",
        "640",
        "--h",
        "400",
        "-q",
        dir.path().to_str().unwrap(),
    ];
    let output = plot(&args);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(size("cdlsingle_iops.png"), (640, 400));
}

#[test]
fn what_is_damaged_or_not_there_is_told_and_the_rest_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    folder(dir.path());
    fs::remove_file(at("baseline/16/randread.log_lat.log")).unwrap();
    fs::write(
        at("ncqprio/2/randread.log_lat.log"),
        "1, 2, 0, 512, 0x0000\nx\n",
    )
    .unwrap();
    fs::remove_dir_all(at("cdlsingle")).unwrap();
    fs::create_dir(at("cdlsingle")).unwrap();
    let broken = DESCRIPTORS.replace("100 ms", "100 parsec");
    fs::write(at("cdlmulti/cdl_descriptors"), broken).unwrap();
    // Cut by a kill: read up to the last whole line.
    let log = at("cdlmulti/1/randread.log_lat.log");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, &text[..text.len() - 9]).unwrap();
    let path = dir.path().to_str().unwrap();
    let output = plot(&["--save", "--w", "200", "--h", "160", path]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    for wanted in [
        "baseline/16: no latency log, not finished",
        "ncqprio/2/randread.log_lat.log, line 2, column 1",
        "QD=2 is left out",
        "cdlsingle: no results yet",
        "cdl_descriptors, line 13: '100 parsec' is no time; limits are not known",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let drawn = names(dir.path());
    for name in [
        "baseline_iops.png",
        "ncqprio_lat_pdf_hipri.png",
        // Without limits the descriptors name them, and there is no miss rate.
        "cdlmulti_lat_pdf_dld2.png",
    ] {
        assert!(drawn.iter().any(|drawn| drawn == name), "{name}: {drawn:?}");
    }
    assert!(
        !drawn
            .iter()
            .any(|name| name.contains("miss_rate") || name.starts_with("cdlsingle"))
    );
}

#[test]
fn without_a_display_and_without_results_it_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let output = plot(&[path]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("none of baseline, ncqprio, cdlsingle, cdlmulti"),
        "{said}"
    );
    folder(dir.path());
    let output = plot(&[path]);
    assert_eq!(output.status.code(), Some(5));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("there is no display") && said.contains("--save writes them into"),
        "{said}"
    );
    assert!(!dir.path().join("plots").exists());
}
