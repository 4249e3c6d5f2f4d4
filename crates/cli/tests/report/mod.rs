//! `fathom report`: the page's text, its script under node, and the page in a
//! browser, of a run that goes on too.

mod axe;
mod browser;
mod live;
mod nodes;
mod page;
pub mod records;
mod runs;
mod script;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fathom(runs: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .arg("--runs")
        .arg(runs)
        .args(args)
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The report of a record: its place and its text.
fn report(runs: &Path, record: &Path) -> (PathBuf, String) {
    let file = runs.join("report.html");
    let output = fathom(
        runs,
        &[
            "report",
            record.to_str().unwrap(),
            "--out",
            file.to_str().unwrap(),
        ],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let text = fs::read_to_string(&file).unwrap();
    (file, text)
}

/// The JSON that is embedded for the script.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page
        .split_once("<script type=\"application/json\" id=\"report\">")
        .unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}
