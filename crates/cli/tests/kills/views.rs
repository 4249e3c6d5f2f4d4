//! Everything that is made of a record, but for times and attempts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use fathom_testkit::ProgramUnderTest;
use serde_json::Value;

use super::copy;
use crate::writers::files;

/// What a run that nothing broke off says, and where its record stands.
pub struct Views {
    whole: PathBuf,
    all: BTreeMap<String, String>,
}

impl Views {
    /// Keeps a copy of a record, and what is made of it.
    pub fn of_whole(program: &ProgramUnderTest, record: &Path) -> Self {
        // Graphs and exports carry the name of the record.
        let whole = program
            .path()
            .join("whole")
            .join(record.file_name().unwrap());
        copy(record, &whole);
        let all = views(program, &whole);
        Self { whole, all }
    }

    /// Holds what is made of a record against it, and both records against each other.
    pub fn are_those_of(&self, program: &ProgramUnderTest, record: &Path, after: &str) {
        for (what, view) in views(program, record) {
            let whole = self.all.get(&what).map(String::as_str).unwrap_or_default();
            let pairs = whole.lines().zip(view.lines());
            let first = pairs.into_iter().find(|(a, b)| a != b);
            assert!(whole == view, "{what}, {after}: {first:#?}");
        }
        self.compares_with(program, record, after);
        self.stands_in_history_with(program, record, after);
    }

    fn compares_with(&self, program: &ProgramUnderTest, record: &Path, after: &str) {
        let [a, b] = [&self.whole, record].map(|dir| dir.to_str().unwrap());
        let compared = program.run(&["compare", a, b, "--json"]);
        let Ok(doc) = serde_json::from_slice::<Value>(&compared.stdout) else {
            // Nothing in it can be compared.
            return;
        };
        for row in doc["rows"].as_array().unwrap() {
            assert_eq!(row["a"], row["b"], "{row:#}, {after}");
        }
    }

    fn stands_in_history_with(&self, program: &ProgramUnderTest, record: &Path, after: &str) {
        let both = program.path().join("both");
        copy(&self.whole, &both.join("20260101T000000Z-whole"));
        copy(record, &both.join("20260102T000000Z-again"));
        let history = ["history", "--json", "--runs", both.to_str().unwrap()];
        let told = program.run(&history).stdout;
        fs::remove_dir_all(both).unwrap();
        // Of some kinds nothing is a figure over runs.
        let Ok(doc) = serde_json::from_slice::<Value>(&told) else {
            return;
        };
        for series in doc["series"].as_array().unwrap() {
            let values: Vec<_> = series["runs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|run| &run["value"])
                .collect();
            assert!(
                matches!(values[..], [a, b] if a == b),
                "{series:#}, {after}"
            );
        }
    }
}

/// What a run says of its results at its end.
pub fn results_of(told: &Output) -> String {
    let told = String::from_utf8_lossy(&told.stdout);
    // How long it took, beside its name, and that it was broken off.
    let times = [
        "complete,",
        "-simulated",
        "started ",
        "was resumed",
        "was interrupted",
    ];
    let is_of_time = |line: &&str| times.iter().any(|time| line.contains(time));
    let results = told.lines().filter(|line| !is_of_time(line));
    // Columns are as wide as what stands in them, times among it.
    let results = results.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    results.collect::<Vec<_>>().join("\n")
}

/// What is made of a record, by its name.
fn views(program: &ProgramUnderTest, record: &Path) -> BTreeMap<String, String> {
    let dir = record.to_str().unwrap();
    let mut all = BTreeMap::new();
    let told = |args: &[&str]| {
        let output = program.run(args);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mut doc: Value =
        serde_json::from_str(&told(&["show", dir, "--json", "--histograms"])).unwrap();
    leave_times(&mut doc);
    all.insert("document".to_owned(), format!("{doc:#}"));
    let samples = told(&["show", dir, "--samples=csv"]);
    let samples = samples.lines().map(|line| line.split_once(',').unwrap().1);
    all.insert("samples".to_owned(), samples.collect::<Vec<_>>().join("\n"));
    let page = program.path().join("page.html");
    told(&["report", dir, "-o", page.to_str().unwrap()]);
    all.insert(
        "page".to_owned(),
        results_on(&fs::read_to_string(&page).unwrap()),
    );
    fs::remove_file(page).unwrap();
    let out = program.path().join("made");
    let place = out.to_str().unwrap();
    told(&["graph", dir, "--out", place]);
    told(&["export", "csv", dir, "--all", "-o", place]);
    for format in ["ssv", "csv", "json"] {
        told(&["export", format, dir, "-o", place]);
    }
    if out.is_dir() {
        let mut names = Vec::new();
        files(&out, Path::new(""), &mut names);
        let text = |name: &PathBuf| fs::read_to_string(out.join(name)).unwrap();
        all.extend(
            names
                .iter()
                .map(|name| (name.display().to_string(), text(name))),
        );
        fs::remove_dir_all(out).unwrap();
    }
    all
}

/// Leaves out when it ran, and that it went on.
fn leave_times(doc: &mut Value) {
    for time in ["started", "ended"] {
        doc[time].take();
    }
    if let Some(notes) = doc["notes"].as_array_mut() {
        notes.retain(|note| !note.as_str().unwrap().contains("was resumed"));
    }
}

/// The rows of a page's tables, but for that of the steps, which lists attempts; and how
/// many graphs over time it has.
fn results_on(page: &str) -> String {
    let (mut rows, mut is_steps) = (Vec::new(), false);
    for line in page.lines() {
        if line.contains("<h2") {
            is_steps = line.contains(">Steps<");
        }
        if line.contains("<tr") && !is_steps {
            rows.push(line.to_owned());
        }
    }
    let graphs = page.matches("<figure class=\"chart\" data-step").count();
    let tracks = page.matches("<script type=track").count();
    rows.push(format!("{graphs} graphs of steps, {tracks} tracks"));
    rows.join("\n")
}
