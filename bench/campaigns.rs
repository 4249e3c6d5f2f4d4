//! The measurements of campaigns: configuring, generating, exporting, drawing.

use std::process::Command;

use fathom_campaign::folder::{self, Folder, Init};
use fathom_kconfig::Config;

use crate::measurements::fathom;
use crate::results::{Beside, Row};
use crate::timing::{median, take_turns, time_of, wall_ms};
use crate::{Lab, inputs};

/// Reading the Kconfig tree of a campaign from its files and computing every
/// value, beside the whole command and kconfiglib.
pub fn load_tree(lab: &Lab) -> Row {
    let rounds = lab.rounds(101);
    let dir = lab.path("campaign");
    let wanted = Init {
        defconfig: Some("all-tests".to_owned()),
        ..Init::default()
    };
    folder::init(&dir, &wanted, &|_| None).unwrap();
    let folder = Folder::open(&dir).unwrap();
    let value = time_of(rounds, || {
        let tree = folder.tree(&|_| None).unwrap();
        assert_eq!(Config::new(tree).get("REPEAT"), Some("1"));
    });
    let mut get = fathom(lab, &["config", "-C", dir.to_str().unwrap()]);
    get.args(["get", "DUT_FILENAME"]);
    let times = take_turns(rounds, &mut [get]);
    let mut beside = vec![Beside::new("`fathom config get`, whole", times[0])];
    // A trial needs no network.
    let tools = env!("CARGO_TARGET_TMPDIR").as_ref();
    if let (true, Ok(tools)) = (lab.full, fathom_testkit::kconfiglib(tools)) {
        let mut python = Command::new(tools.join("bin/python"));
        let load = "import kconfiglib; kconfiglib.Kconfig('Kconfig').load_config('.config')";
        python.args(["-c", load]).current_dir(&dir).env("DEV", "");
        beside.push(Beside::new(
            "kconfiglib, whole",
            take_turns(lab.rounds(15), &mut [python])[0],
        ));
    }
    Row {
        what: "loading the Kconfig tree of a campaign",
        unit: "ms",
        value,
        limit: Some(5.0),
        rounds,
        beside,
    }
}

/// `fathom gen` of the full matrix into a folder without job files.
pub fn generate(lab: &Lab) -> Row {
    let rounds = lab.rounds(15);
    let dir = lab.path("generated");
    let campaign = |args: &[&str]| {
        let mut command = fathom(lab, args);
        command.env_remove("DEV").arg("--quiet");
        command
    };
    let dir = dir.to_str().unwrap();
    wall_ms(&mut campaign(&["init", dir, "--defconfig", "all-tests"]));
    let mut clean = campaign(&["gen", "-C", dir, "--clean"]);
    let mut make = campaign(&["gen", "-C", dir]);
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            wall_ms(&mut clean);
            wall_ms(&mut make)
        })
        .collect();
    Row {
        what: "`fathom gen`, the full matrix: 702 job files",
        unit: "ms",
        value: median(&mut times),
        limit: Some(100.0),
        rounds,
        beside: vec![
            Beside::new("again, nothing to do", take_turns(rounds, &mut [make])[0]),
            // Everything on, its 690 performance files among them; measured once
            // on a machine with two cores and not here.
            Beside::new("fio-tests, `make -j2`, recorded", 2100.0),
        ],
    }
}

/// `fathom graph` of 45 series in both directions: the 270 graphs of bandwidth,
/// IOPS and latency that fio-tests draws of its full matrix, and 45 of IOPS
/// against latency besides.
pub fn graphs(lab: &Lab) -> Row {
    let rounds = lab.rounds(9);
    let record = inputs::campaign_record(&lab.path("runs"), if lab.full { 45 } else { 2 });
    let draw = fathom(lab, &["graph", record.to_str().unwrap()]);
    Row {
        what: "`fathom graph`: 270 graphs of a campaign and 45 more",
        unit: "ms",
        value: take_turns(rounds, &mut [draw])[0],
        limit: Some(500.0),
        rounds,
        // Everything on; measured once on a machine with two cores and not here.
        beside: vec![Beside::new("fio-tests, its 270, recorded", 7600.0)],
    }
}

/// `fathom export ssv` of a campaign with everything enabled.
pub fn export(lab: &Lab) -> Row {
    let rounds = lab.rounds(5);
    let points = if lab.full { 702 } else { 26 };
    let record = inputs::sampled_campaign(&lab.path("runs"), points);
    let log = fathom_record::log_bytes(&record);
    let export = |form| {
        let out = lab.path("exported");
        fathom(
            lab,
            &[
                "export",
                form,
                record.to_str().unwrap(),
                "--quiet",
                "--out",
                out.to_str().unwrap(),
            ],
        )
    };
    let times = take_turns(rounds, &mut [export("ssv"), export("json")]);
    Row {
        what: "`fathom export ssv` of 702 points of a minute",
        unit: "ms",
        value: times[0],
        limit: None,
        rounds,
        beside: vec![
            Beside::new("`fathom export json`", times[1]),
            // It finds its figures in 702 small files; the time was taken with
            // everything enabled on a machine with two cores like this one.
            Beside::new("`make ssv` of fio-tests, measured before", 4400.0),
            Beside::new("size in MB", log as f64 / 1e6),
        ],
    }
}
