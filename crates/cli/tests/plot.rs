//! `fathom plot` on logs that the real fio wrote.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Fathom in a folder, without a desktop.
fn plot(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().unwrap()
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    command
        .arg("plot")
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null());
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command
}

fn stdout(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn names(dir: &Path, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}

/// Runs the real fio with logs of the prefix `out` in a folder.
fn fio(test: &str, fio: &Path, dir: &Path, options: &[&str]) -> bool {
    let done = Command::new(fio)
        .args(["--name=t", "--rw=randrw", "--bs=4k", "--size=8m"])
        .args([
            "--output=/dev/null",
            "--write_lat_log=out",
            "--write_bw_log=out",
        ])
        .args(["--write_iops_log=out", "--write_hist_log=out"])
        .args(options)
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match done {
        Ok(status) => assert!(status.success(), "fio {options:?}"),
        Err(_) => fathom_testkit::skip(test, "fio is not installed"),
    }
    done.is_ok()
}

/// Half a second, and longer on a busy machine: as many I/Os in any case.
const NULL: &[&str] = &[
    "--ioengine=null",
    "--number_ios=1500",
    "--rate_iops=3000",
    "--log_hist_msec=100",
];

fn with<'a>(common: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [common, more].concat()
}

/// The texts of an SVG.
fn texts(svg: &Path) -> Vec<String> {
    let text = fs::read_to_string(svg).unwrap();
    assert!(
        text.len() < 1 << 20,
        "{}: {} bytes",
        svg.display(),
        text.len()
    );
    let texts = text.split("<text").skip(1);
    texts
        .map(|part| {
            part.split_once('>')
                .unwrap()
                .1
                .split_once('<')
                .unwrap()
                .0
                .to_owned()
        })
        .collect()
}

#[test]
fn every_kind_of_log_has_its_plot_with_a_line_for_each_job() {
    let test = "every_kind_of_log_has_its_plot_with_a_line_for_each_job";
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let options = with(NULL, &["--numjobs=2", "--log_hist_coarseness=3"]);
    if !fio(test, Path::new("fio"), dir, &options) {
        return;
    }
    let said = stdout(plot(dir, &["out", "--save", "--svg", "--png"]));
    let svgs = names(dir, ".svg");
    // fio's null engine has no submission to speak of: those logs are empty.
    let expected = [
        "out-bw.svg",
        "out-clat-cdf.svg",
        "out-clat-heat.svg",
        "out-clat-percentiles.svg",
        "out-clat.svg",
        "out-iops.svg",
        "out-lat-cdf.svg",
        "out-lat-heat.svg",
        "out-lat-percentiles.svg",
        "out-lat.svg",
    ];
    assert_eq!(svgs, expected);
    assert_eq!(names(dir, ".png").len(), svgs.len());
    assert_eq!(said.lines().count(), 2 * svgs.len(), "{said}");
    for name in ["out-bw.svg", "out-iops.svg", "out-lat.svg"] {
        let texts = texts(&dir.join(name));
        for job in ["job 1 read", "job 1 write", "job 2 read", "job 2 write"] {
            assert!(texts.iter().any(|text| text == job), "{name}: {texts:?}");
        }
    }
    // Counted from a line for each I/O, not the 1 that fio writes: 3000 a second.
    let iops = texts(&dir.join("out-iops.svg"));
    assert!(iops.iter().any(|text| text.ends_with('k')), "{iops:?}");
    let percentiles = texts(&dir.join("out-clat-percentiles.svg"));
    assert!(
        percentiles.iter().any(|text| text == "read p99"),
        "{percentiles:?}"
    );
    let bins = "the log's bins are 6.2 % wide to each side of their middle";
    assert!(
        percentiles.iter().any(|text| text == bins),
        "{percentiles:?}"
    );
    let png = fs::read(dir.join("out-lat.png")).unwrap();
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!((side(16), side(20)), (900, 520));
}

#[test]
fn all_coarsenesses_show_the_same_ios() {
    let test = "all_coarsenesses_show_the_same_ios";
    let mut fios = vec![std::path::PathBuf::from("fio")];
    match fathom_testkit::newer_fio() {
        Ok(newer) => fios.push(newer),
        Err(reason) => fathom_testkit::skip(test, &reason),
    }
    for program in fios {
        let mut heights = Vec::new();
        for coarseness in ["0", "2", "4", "6"] {
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path();
            let coarse = format!("--log_hist_coarseness={coarseness}");
            let options = with(NULL, &["--rw=randread", &coarse]);
            if !fio(test, &program, dir, &options) {
                return;
            }
            let log = "out_clat_hist.1.log";
            stdout(plot(dir, &[log, "--out", "p"]));
            assert_eq!(names(&dir.join("p"), ".svg").len(), 3);
            let heat = texts(&dir.join("p/out-clat-heat.svg"));
            let steps = heat
                .iter()
                .find(|text| text.contains("steps an octave"))
                .unwrap();
            heights.push(steps.split(" in ").nth(1).unwrap().to_owned());
            let counted: u64 = fs::read_to_string(dir.join(log))
                .unwrap()
                .lines()
                .flat_map(|line| line.split(", ").skip(3).map(|n| n.parse::<u64>().unwrap()))
                .sum();
            // As people read it: "1.20k".
            let shown = match counted {
                0..1000 => format!("{counted} I/Os"),
                _ => format!("{:.2}k I/Os", counted as f64 / 1000.0),
            };
            assert!(heat.contains(&shown), "{shown}: {heat:?}");
        }
        let steps = |n: u32| {
            format!("{n} steps an octave, scaled to steps of the same height; blank: none")
        };
        assert_eq!(heights, [steps(8), steps(8), steps(4), steps(1)]);
    }
}

#[test]
fn averaged_and_packed_logs_and_folders_are_read() {
    let test = "averaged_and_packed_logs_and_folders_are_read";
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let options = with(NULL, &["--log_avg_msec=100", "--per_job_logs=0"]);
    if !fio(test, Path::new("fio"), dir, &options) {
        return;
    }
    assert!(
        Command::new("gzip")
            .arg(dir.join("out_lat.log"))
            .status()
            .unwrap()
            .success()
    );
    let output = command(dir, &[".", "--out", "p", "--json"])
        .output()
        .unwrap();
    let document: Value = serde_json::from_str(&stdout(output)).unwrap();
    assert_eq!(document["schema"], "fathom.plots/1");
    let files: Vec<&str> = document["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f.as_str().unwrap())
        .collect();
    // Means have no distribution; the histograms have.
    let expected = [
        "out-bw.svg",
        "out-iops.svg",
        "out-lat.svg",
        "out-clat.svg",
        "out-clat-percentiles.svg",
        "out-clat-heat.svg",
        "out-clat-cdf.svg",
    ];
    assert_eq!(files, expected);
    let lat = texts(&dir.join("p/out-lat.svg"));
    assert!(lat.iter().any(|text| text.ends_with(" values")), "{lat:?}");
    assert!(
        !lat.iter().any(|text| text.contains("mean of each")),
        "every point is there"
    );
}

/// Its I/Os once were counted twice.
#[test]
fn a_log_beside_its_packed_self_is_drawn_once() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let lines: String = (0..100)
        .map(|n| format!("{n}, {}, 0, 4096, 0\n", 1000 + n))
        .collect();
    fs::write(dir.join("a_lat.1.log"), lines).unwrap();
    let packed = Command::new("gzip")
        .arg("-k")
        .arg(dir.join("a_lat.1.log"))
        .status();
    assert!(packed.unwrap().success());
    for asked in ["a", "."] {
        stdout(plot(dir, &[asked, "--save"]));
        let lat = texts(&dir.join("a-lat.svg"));
        assert!(lat.contains(&"100 I/Os".to_owned()), "{asked}: {lat:?}");
    }
}

#[test]
fn damaged_logs_are_told_and_the_others_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let good: String = (0..100)
        .map(|n| format!("{n}, {}, 0, 4096, 0\n", 1000 + n))
        .collect();
    fs::write(dir.join("a_lat.1.log"), &good).unwrap();
    fs::write(dir.join("a_lat.2.log"), format!("{good}x\n{good}")).unwrap();
    fs::write(dir.join("a_clat.1.log"), format!("{good}101, 5, 0")).unwrap();
    let output = plot(dir, &["a", "--save"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("a_lat.2.log, line 101, column 1") && said.contains("--skip-bad"),
        "{said}"
    );
    assert!(
        said.contains("a_clat.1.log: the last line has no end"),
        "{said}"
    );
    let lat = texts(&dir.join("a-lat.svg"));
    assert!(lat.contains(&"100 I/Os".to_owned()), "{lat:?}");
    stdout(plot(dir, &["a", "--save", "--skip-bad"]));
    let lat = texts(&dir.join("a-lat.svg"));
    assert!(lat.contains(&"2 logs · 300 I/Os".to_owned()), "{lat:?}");
}

#[test]
fn what_is_no_log_is_told_with_what_draws_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let refused = |args: &[&str], code: i32, wanted: &str| {
        let output = plot(dir, args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(wanted), "{said}");
    };
    refused(&["out"], 5, "there are no logs out_lat.1.log");
    refused(&["."], 5, "has no logs of fio");
    fs::write(dir.join("some.log"), "1, 2, 0, 4096, 0\n").unwrap();
    refused(&["some.log"], 3, "names that say what is in them");
    fs::write(dir.join("e_lat.1.log"), "").unwrap();
    refused(&["e"], 5, "nothing to draw");
    fs::write(dir.join("b_lat.1.log"), "nonsense\n").unwrap();
    refused(&["b"], 3, "nothing to draw");
}

#[test]
fn a_run_of_fathoms_own_is_graphs_business() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let job = "[a]\nrw=read\nsize=1m\nioengine=null\n";
    fs::write(dir.join("a.fio"), job).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(["job", "run", "-q", "--engine", "sim", "a.fio"])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let record = names(&dir.join("fathom-runs"), "").pop().unwrap();
    for named in [record.clone(), format!("fathom-runs/{record}")] {
        let output = plot(dir, &[&named]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(5));
        assert!(
            said.contains(&format!("`fathom graph {named}` draws it")),
            "{said}"
        );
    }
}

/// A program in the place of the desktop's opener, which keeps a copy of what it opens.
fn opener(dir: &Path) -> String {
    let bin = dir.join("bin");
    fs::create_dir(&bin).unwrap();
    let script = bin.join("xdg-open");
    let shown = dir.join("shown.html");
    fs::write(
        &script,
        format!(
            "#!/bin/sh\ncp \"$1\" {0}.part && mv {0}.part {0}\n",
            shown.display()
        ),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

fn wait_for(file: &Path) -> String {
    for _ in 0..2400 {
        if let Ok(text) = fs::read_to_string(file) {
            return text;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{} never came", file.display());
}

#[test]
fn plots_are_shown_on_a_desktop_and_saved_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let lines: String = (0..500)
        .map(|n| format!("{n}, {}, 0, 4096, 0\n", 1000 + n))
        .collect();
    fs::write(dir.join("a_lat.1.log"), lines).unwrap();
    let said = stdout(plot(dir, &["a"]));
    assert!(
        said.contains("a-lat.svg"),
        "saved where there is no desktop: {said}"
    );
    let before = names(dir, ".svg").len();
    let output = command(dir, &["a"])
        .env("DISPLAY", ":99")
        .env("PATH", opener(dir))
        .env("TMPDIR", dir)
        .output()
        .unwrap();
    stdout(output);
    let page = wait_for(&dir.join("shown.html"));
    assert_eq!(page.matches("<svg").count(), 4);
    assert!(
        page.contains("id=\"t2\"") && !page.contains("id=\"t\""),
        "each id is there once"
    );
    assert_eq!(
        names(dir, ".svg").len(),
        before,
        "nothing is written beside"
    );
    // A desktop that has nothing to open it with.
    let output = command(dir, &["a"])
        .env("DISPLAY", ":99")
        .env("PATH", "/nowhere")
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(5));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("xdg-open cannot be started") && said.contains("--save"),
        "{said}"
    );
}

/// The same rules as those of `fathom lat`.
#[test]
fn clocks_units_and_files_that_are_no_logs_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let log = |first: u64, last: &str| -> String {
        let line = |n: u64| format!("{}, {}, 0, 4096{last}\n", first + n, 100 + n);
        (0..1000).map(line).collect()
    };
    fs::write(dir.join("boot_lat.1.log"), log(1_471_754, ", 0")).unwrap();
    fs::write(dir.join("ramp_lat.1.log"), log(60_000, ", 0")).unwrap();
    fs::write(dir.join("old_lat.1.log"), log(0, "")).unwrap();
    fs::write(
        dir.join("marked_lat.1.log"),
        format!("\u{feff}{}", log(0, ", 0")),
    )
    .unwrap();
    fs::write(dir.join("zeros_lat.1.log"), vec![0; 70_000]).unwrap();
    let notes = |args: &[&str]| {
        let output = plot(dir, &[args, &["--save"]].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(notes(&["boot"]).contains("times begin at 1471 s"));
    assert_eq!(notes(&["boot", "--times-from", "zero"]), "");
    assert_eq!(notes(&["ramp"]) + &notes(&["marked"]), "");
    assert!(notes(&["old"]).contains("--unit us"));
    assert_eq!(notes(&["old", "--unit", "us"]), "");
    let output = plot(dir, &["zeros", "--save"]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("zeros_lat.1.log is not a log of fio"),
        "{said}"
    );
}
