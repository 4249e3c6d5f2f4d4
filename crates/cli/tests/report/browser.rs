//! The page in a real browser. With `FATHOM_SCREENSHOTS=DIR` what a person would
//! see is kept there, to be looked at.

use std::path::{Path, PathBuf};

use fathom_model::RunStatus;
use fathom_testkit::{Browser, require, skip};
use serde_json::json;

use crate::report::{fathom, records, report, stderr};

/// How many graphs have something other than their ground.
const DRAWN: &str = "[...document.querySelectorAll('.chart canvas')].filter((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.some((byte) => byte > 0);
  }).length";

pub fn picture(browser: &mut Browser, name: &str) {
    if let Some(dir) = std::env::var_os("FATHOM_SCREENSHOTS") {
        browser.screenshot(&Path::new(&dir).join(name)).unwrap();
    }
}

/// A browser that shows the report of a record.
fn show(test: &str, runs: &Path, record: &Path) -> Option<Browser> {
    let mut browser = match Browser::start() {
        Ok(browser) => browser,
        Err(reason) => {
            skip(test, &reason);
            return None;
        }
    };
    let (file, _) = report(runs, record);
    browser.open(&file).unwrap();
    Some(browser)
}

fn assert_quiet(browser: &Browser) {
    assert!(browser.errors().is_empty(), "{:#?}", browser.errors());
}

#[test]
fn a_campaign_can_be_looked_through() {
    let runs = tempfile::tempdir().unwrap();
    let record = records::campaign(runs.path(), 30);
    let name = "a_campaign_can_be_looked_through";
    let Some(mut browser) = show(name, runs.path(), &record) else {
        return;
    };
    browser.look(1280, 2000, false).unwrap();
    browser
        .wait_for("document.querySelectorAll('#series canvas').length === 2")
        .unwrap();
    browser.wait_for(&format!("{DRAWN} >= 2")).unwrap();
    picture(&mut browser, "campaign.png");

    // A tab: the axis speaks of latencies then, and the lines are the percentiles'.
    browser
        .eval("document.querySelector('#series [data-metric=percentiles]').click()")
        .unwrap();
    browser
        .wait_for("document.querySelector('#series .legend')?.textContent.includes('p99.9')")
        .unwrap();
    picture(&mut browser, "percentiles.png");

    // A name in the legend hides its line.
    let pressed = browser
        .eval(
            "(() => { const line = document.querySelector('#series .legend button'); line.click();
             return line.getAttribute('aria-pressed'); })()",
        )
        .unwrap();
    assert_eq!(pressed, "false");

    // Sorted downwards by IOPS, what is missing last.
    let sorted = browser
        .eval(
            "(() => { const table = document.getElementById('points');
             const column = [...table.querySelectorAll('th')].findIndex((th) => th.textContent === 'IOPS');
             const head = table.querySelectorAll('th')[column];
             head.querySelector('button').click(); head.querySelector('button').click();
             const values = [...table.tBodies[0].rows].map((row) => Number(row.cells[column].dataset.v ?? -1));
             return [head.getAttribute('aria-sort'), values.every((v, i) => i === 0 || v <= values[i - 1])]; })()",
        )
        .unwrap();
    assert_eq!(sorted, json!(["descending", true]));

    // Another step of the time series.
    browser
        .eval(
            "document.querySelector('#time [data-by=\"1\"]').click();
               document.getElementById('time').scrollIntoView()",
        )
        .unwrap();
    browser
        .wait_for("document.querySelectorAll('#time canvas').length === 1")
        .unwrap();
    picture(&mut browser, "time.png");

    assert_eq!(browser.eval("window.harmed ?? null").unwrap(), json!(null));
    let title = browser
        .eval("document.querySelector('h1').firstChild.data")
        .unwrap();
    assert_eq!(title, records::HOSTILE.replace('\u{202e}', "\u{fffd}"));
    assert_quiet(&browser);
}

#[test]
fn the_first_screen_answers() {
    let runs = tempfile::tempdir().unwrap();
    let record = records::campaign(runs.path(), 10);
    let name = "the_first_screen_answers";
    let Some(mut browser) = show(name, runs.path(), &record) else {
        return;
    };
    // What was measured, the verdicts, the answers and the picture, without scrolling.
    for (width, height, dark) in [(1280, 800, false), (390, 844, false), (1280, 800, true)] {
        browser.look(width, height, dark).unwrap();
        browser
            .wait_for("document.querySelector('.hero canvas') !== null")
            .unwrap();
        browser.wait_for(&format!("{DRAWN} >= 1")).unwrap();
        let ends = "['h1', '.lead', '.verdicts', '.answers', '.hero canvas'].map((what) => {
            const box = document.querySelector(what)?.getBoundingClientRect();
            return box && box.top >= 0 && box.height > 0 && box.bottom <= innerHeight; })";
        browser
            .wait_for(&format!("({ends}).every(Boolean)"))
            .unwrap();
        let wide = "document.documentElement.scrollWidth <= innerWidth";
        browser.wait_for(wide).unwrap();
        picture(&mut browser, &format!("first-{width}-{dark}.png"));
    }
    assert_quiet(&browser);
}

#[test]
fn points_are_chosen_and_everything_about_one_is_in_one_place() {
    let runs = tempfile::tempdir().unwrap();
    let record = records::campaign(runs.path(), 10);
    let name = "points_are_chosen_and_everything_about_one_is_in_one_place";
    let Some(mut browser) = show(name, runs.path(), &record) else {
        return;
    };
    browser.look(1280, 900, false).unwrap();
    // What is chosen holds for maps, graphs and rows.
    let choose = |title: &str, value: &str| {
        format!(
            "(() => {{ const form = document.getElementById('pick');
               form.elements['{title}'].value = '{value}';
               form.dispatchEvent(new Event('input'));
               return form.querySelector('output').textContent; }})()"
        )
    };
    let rows = "[...document.querySelectorAll('#points tbody tr')]
        .filter((row) => getComputedStyle(row).display !== 'none').length";
    let cards =
        "[...document.querySelectorAll('#series .chart')].filter((card) => !card.hidden).length";
    browser
        .eval("document.getElementById('overview').scrollIntoView()")
        .unwrap();
    browser
        .wait_for("document.querySelectorAll('.map tbody tr').length === 2")
        .unwrap();
    picture(&mut browser, "overview.png");
    let said = browser.eval(&choose("verdict", "failed")).unwrap();
    assert_eq!(said, "1 of 18 points");
    assert_eq!(browser.eval(rows).unwrap(), 1);
    assert_eq!(browser.eval(cards).unwrap(), 1);
    browser
        .wait_for("document.querySelectorAll('.map tbody tr').length === 1")
        .unwrap();
    browser.eval(&choose("verdict", "")).unwrap();
    assert_eq!(
        browser.eval(&choose("search", "128qd")).unwrap(),
        "2 of 18 points"
    );
    browser.eval(&choose("search", "")).unwrap();
    assert_eq!(browser.eval(cards).unwrap(), 2);

    // A link to a point opens everything about it, and Escape closes it.
    browser.eval("location.hash = '#p3'").unwrap();
    browser
        .wait_for("document.querySelector('dialog')?.open === true")
        .unwrap();
    let said = browser
        .eval("document.querySelector('dialog').innerText")
        .unwrap();
    let said = said.as_str().unwrap();
    for told in ["iodepth=8", "p99.9", "Over time", "raw/"] {
        assert!(said.contains(told), "{told}: {said}");
    }
    browser
        .wait_for("document.querySelector('dialog canvas') !== null")
        .unwrap();
    picture(&mut browser, "point.png");
    browser
        .eval("document.querySelector('dialog .close').click()")
        .unwrap();
    browser.wait_for("location.hash === '#overview'").unwrap();
    assert_eq!(browser.eval("window.harmed ?? null").unwrap(), json!(null));
    assert_quiet(&browser);
}

#[test]
fn it_reads_in_the_dark_on_a_phone_and_on_paper() {
    let runs = tempfile::tempdir().unwrap();
    let record = records::campaign(runs.path(), 10);
    let name = "it_reads_in_the_dark_on_a_phone_and_on_paper";
    let Some(mut browser) = show(name, runs.path(), &record) else {
        return;
    };
    browser.look(1280, 2000, true).unwrap();
    browser.wait_for(&format!("{DRAWN} >= 2")).unwrap();
    picture(&mut browser, "dark.png");
    let ground = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.eval(ground).unwrap(), "rgb(20, 23, 27)");

    browser.look(375, 3000, false).unwrap();
    browser
        .wait_for("document.documentElement.scrollWidth <= 375")
        .unwrap();
    browser.wait_for(&format!("{DRAWN} >= 2")).unwrap();
    picture(&mut browser, "phone.png");

    browser.look(1280, 900, true).unwrap();
    let pdf = std::env::var_os("FATHOM_SCREENSHOTS")
        .map_or_else(|| runs.path().to_owned(), PathBuf::from)
        .join("report.pdf");
    browser.print(&pdf).unwrap();
    let bytes = std::fs::read(&pdf).unwrap();
    assert!(
        bytes.starts_with(b"%PDF") && bytes.len() > 50_000,
        "{}",
        bytes.len()
    );
    assert_quiet(&browser);
}

#[test]
fn a_long_run_is_zoomed_from_hours_to_single_intervals() {
    let runs = tempfile::tempdir().unwrap();
    let record = records::begun(runs.path(), 2, 10_000)
        .finish(RunStatus::Interrupted)
        .unwrap();
    let name = "a_long_run_is_zoomed_from_hours_to_single_intervals";
    let Some(mut browser) = show(name, runs.path(), &record) else {
        return;
    };
    browser.look(1280, 1200, false).unwrap();
    browser
        .eval("document.getElementById('time').scrollIntoView()")
        .unwrap();
    let text = "(document.querySelector('#time .merged')?.textContent ?? '')";
    browser
        .wait_for(&format!("{text}.includes('intervals share a column')"))
        .unwrap();
    // The one interval with a peak is seen from far away.
    let peak =
        "Math.max(...(document.querySelector('#time .chart').chart?.plot.data[1] ?? [Infinity]))";
    assert!(browser.eval(peak).unwrap().as_f64().unwrap() > 100_000.0);
    picture(&mut browser, "long.png");
    browser
        .eval("document.querySelector('#time .chart').chart.zoom([4300, 4340])")
        .unwrap();
    browser.wait_for(&format!("{text} === ''")).unwrap();
    let seen = "document.querySelector('#time .chart').chart.plot.data[0].length";
    assert!(browser.eval(seen).unwrap().as_u64().unwrap() <= 44);
    picture(&mut browser, "zoomed.png");
    // Keys work as well: back to the whole.
    browser
        .eval("document.querySelector('#time .graph').dispatchEvent(new KeyboardEvent('keydown', {key: '0', bubbles: true}))")
        .unwrap();
    browser.wait_for(&format!("{text} !== ''")).unwrap();
    // One job of the two.
    browser
        .eval(
            "(() => { const jobs = document.querySelector('#time select.job');
               jobs.value = '1'; jobs.dispatchEvent(new Event('change')); })()",
        )
        .unwrap();
    browser.wait_for(&format!("{peak} < 100000")).unwrap();
    assert_quiet(&browser);
}

#[test]
fn a_comparison_lays_both_sides_over_each_other() {
    let runs = tempfile::tempdir().unwrap();
    let mut browser = require!(Browser::start());
    let (a, b) = ([10, 12], [20]);
    let [a, b] = [&a[..], &b[..]].map(|side| {
        let record = |seconds: &u64| records::campaign(runs.path(), *seconds);
        let records = side.iter().map(record);
        records
            .map(|it| it.to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    });
    let page = runs.path().join("compare.html");
    let to = ["--html".to_owned(), page.to_str().unwrap().to_owned()];
    let words = [
        vec!["compare".to_owned()],
        a,
        vec!["--with".to_owned()],
        b,
        to.to_vec(),
    ];
    let words = words.concat();
    let output = fathom(
        runs.path(),
        &words.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    assert!(output.status.success(), "{}", stderr(&output));

    browser.look(1280, 2400, false).unwrap();
    browser.open(&page).unwrap();
    // Reads of both series and writes of the mixed one; a graph for each of 35 measurements,
    // of which the first are drawn.
    let graphs = |id: &str| format!("document.querySelectorAll('#{id} + .cards svg').length");
    assert_eq!(browser.eval(&graphs("curves")).unwrap(), 3);
    assert_eq!(browser.eval(&graphs("time")).unwrap(), 24);
    let said = browser.eval("document.body.textContent").unwrap();
    for told in [
        "A, mean of 2 runs",
        "lowest to highest run",
        "24 of 34 graphs",
    ] {
        assert!(said.as_str().unwrap().contains(told), "{told}");
    }
    let ids = "[...document.querySelectorAll('[id]')].map((it) => it.id)";
    let unique = format!("new Set({ids}).size === {ids}.length");
    assert_eq!(browser.eval(&unique).unwrap(), true);
    assert_eq!(browser.eval("window.harmed ?? null").unwrap(), json!(null));
    for (width, height) in [(1280, 2400), (390, 2400)] {
        browser.look(width, height, false).unwrap();
        let fits = "document.documentElement.scrollWidth <= innerWidth";
        browser.wait_for(fits).unwrap();
        browser
            .eval("document.querySelector('#curves').scrollIntoView()")
            .unwrap();
        picture(&mut browser, &format!("compare-{width}.png"));
    }
    assert_quiet(&browser);
}
