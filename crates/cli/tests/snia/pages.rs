use std::fs;
use std::path::PathBuf;

use fathom_testkit::{Browser, require};

use super::support::{Place, stderr};

/// A simulated test of each kind, and its pages.
fn pages(place: &Place, test: &str) -> String {
    let args = ["snia", test, "/dev/nothing", "--engine", "sim", "-q"];
    let more: &[&str] = match test {
        "wsat" => &["--histogram", "1m", "--stop-after", "30m"],
        "latency" => &["--histogram", "1m", "--fills", "1"],
        _ => &["--fills", "1"],
    };
    let args = [&args[..], more].concat();
    let ran = place.run(&args);
    assert!(ran.status.success(), "{}", stderr(&ran));
    let file = place.path().join(format!("{test}.html"));
    let made = place.run(&["snia", "report", "-o", file.to_str().unwrap()]);
    assert!(made.status.success(), "{}", stderr(&made));
    fs::read_to_string(file).unwrap()
}

#[test]
fn the_pages_of_every_test_have_what_a_reader_looks_for() {
    let place = Place::on("/dev/nothing".as_ref(), 0);
    for (test, sheets, wanted) in [
        (
            "iops",
            10,
            &[
                "convergence plot: IOPS of 65/35 64k",
                "Heat map",
                "slope excursion allowed",
            ][..],
        ),
        (
            "throughput",
            11,
            &["Throughput of 0/100 128k", "1024k: steady state"][..],
        ),
        (
            "latency",
            7,
            &["maximum latency", "99.999 %", "histogram"][..],
        ),
        (
            "wsat",
            4,
            &["over time", "over drive fills", "histogram"][..],
        ),
    ] {
        let page = pages(&place, test);
        assert_eq!(
            page.matches("<article class=\"sheet\"").count(),
            sheets,
            "{test}"
        );
        // On every sheet, and at the head.
        assert_eq!(
            page.matches("not a SNIA test").count(),
            sheets + 1,
            "{test}"
        );
        assert!(
            page.contains(&format!("page {sheets} of {sheets}")),
            "{test}"
        );
        for text in wanted {
            assert!(page.contains(text), "{test}: {text}");
        }
        // Ids are unique, or a reader's program names the wrong chart.
        let ids: Vec<&str> = page
            .split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{test}: {ids:?}");
    }
    let whole = place.path().join("report.html");
    let made = place.run(&["report", "--out", whole.to_str().unwrap()]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert!(
        fs::read_to_string(&whole)
            .unwrap()
            .contains("id=\"wsat-1\"")
    );
}

/// A sheet is a page of paper, no more and no less.
#[test]
fn a_browser_prints_a_page_for_each_sheet() {
    let place = Place::on("/dev/nothing".as_ref(), 0);
    let mut browser = require!(Browser::start());
    for test in ["iops", "throughput", "latency", "wsat"] {
        let page = pages(&place, test);
        let sheets = page.matches("<article class=\"sheet\"").count();
        browser
            .open(&place.path().join(format!("{test}.html")))
            .unwrap();
        let folder = std::env::var_os("FATHOM_SCREENSHOTS");
        let folder = folder.map_or_else(|| place.path().to_owned(), PathBuf::from);
        let pdf = folder.join(format!("snia-{test}.pdf"));
        browser.print(&pdf).unwrap();
        let pdf = fs::read(&pdf).unwrap();
        let text = String::from_utf8_lossy(&pdf);
        assert_eq!(text.matches("/Type /Page\n").count(), sheets, "{test}");
    }
    assert!(browser.errors().is_empty(), "{:#?}", browser.errors());
}
