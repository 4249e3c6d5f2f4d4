//! The HTML report: its size, its making, and when a browser has drawn it.

use std::fs;

use fathom_testkit::Browser;

use crate::measurements::fathom;
use crate::results::{Beside, Row};
use crate::timing::{median, wall_ms};
use crate::{Lab, inputs};

/// `fathom report` of a million samples, opened in Chromium: from the start of the
/// navigation until the first graph is drawn, as the page's own clock has it.
pub fn open_report(lab: &Lab) -> Row {
    let rounds = lab.rounds(5);
    let seconds = if lab.full { 500_000 } else { 60 };
    let record = inputs::long_record(&lab.path("runs"), seconds);
    let page = lab.path("report.html");
    let (record, file) = (record.to_str().unwrap(), page.to_str().unwrap());
    let made = wall_ms(&mut fathom(lab, &["report", record, "--out", file]));
    let (mut drawn, mut painted) = (Vec::new(), Vec::new());
    let mut why_not = None;
    for _ in 0..rounds {
        match Browser::start() {
            Ok(mut browser) => {
                // High enough that the graph is in view.
                browser.look(1280, 2000, false).unwrap();
                browser.open(&page).unwrap();
                let mark = "performance.getEntriesByName('fathom-drawn')";
                let paint = "performance.getEntriesByName('first-contentful-paint')";
                browser
                    .wait_for(&format!("{mark}.length === 1 && {paint}.length === 1"))
                    .unwrap();
                let mut time = |entry| browser.eval(&format!("{entry}[0].startTime")).unwrap();
                drawn.push(time(mark).as_f64().unwrap());
                painted.push(time(paint).as_f64().unwrap());
            }
            Err(reason) => why_not = Some(reason),
        }
    }
    if let Some(reason) = why_not {
        // A machine without Chromium measures everything else.
        fathom_testkit::skip("open_report", &reason);
        (drawn, painted) = (vec![f64::NAN], vec![f64::NAN]);
    }
    let megabytes = fs::metadata(&page).unwrap().len() as f64 / 1e6;
    Row {
        what: "report of 10⁶ samples in Chromium, until its graph is drawn",
        unit: "ms",
        value: median(&mut drawn),
        limit: Some(2000.0),
        rounds,
        beside: vec![
            Beside::new("first paint", median(&mut painted)),
            Beside::new("`fathom report`", made),
            Beside::new("size in MB", megabytes),
        ],
    }
}
