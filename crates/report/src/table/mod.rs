//! A run as a person reads it.
//!
//! Up to [`BLOCKS`] jobs have a block each, with every latency there is; more
//! have a line each per direction. Groups, disks, notes and failures follow.

mod campaign;
mod header;
mod hosts;
mod jobs;
pub(crate) mod nodes;
mod shares;

use std::collections::BTreeMap;

use fathom_model::{Failure, ReasonKind, Results, RunDocument, units};

use fathom_document::certainty;
use fathom_document::folding::{Folded, by_cause, times};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone, wrap};

pub(crate) use hosts::shown;
pub(crate) use jobs::every_latency;
pub(crate) use shares::PERCENTS as SHARE_PERCENTS;

pub use campaign::campaign_table;

/// The signs of doubts, in their order.
const SIGNS: &str = "¹²³⁴⁵⁶⁷⁸⁹";
/// Up to this many jobs have a block of their own: more would not fit a screen.
const BLOCKS: usize = 4;

/// The document as text, ending in a newline.
pub fn table(doc: &RunDocument, style: Style) -> String {
    let marks = Marks::of(doc);
    let sections = [
        header::header(doc, style),
        job_figures(doc, &marks, style),
        group_lines(doc, style),
        disk_lines(doc, style),
        shares::lines(doc, &marks, style),
        hosts::lines(doc, style),
        nodes::volume_lines(doc, style),
        nodes::lines(doc, style),
        notes(doc, &marks, style),
        failures(doc, style),
    ];
    let filled: Vec<String> = sections.into_iter().filter(|s| !s.is_empty()).collect();
    filled.join("\n")
}

/// The figures alone, for a run that goes on.
pub fn figures_so_far(results: &Results, style: Style) -> String {
    let doc = fathom_document::of_results(results);
    job_figures(&doc, &Marks::of(&doc), style)
}

fn job_figures(doc: &RunDocument, marks: &Marks, style: Style) -> String {
    if doc.jobs.len() <= BLOCKS {
        jobs::blocks(doc, marks, style)
    } else {
        jobs::lines(doc, marks, style)
    }
}

/// The number that stands at a doubtful figure and before its note.
struct Marks(BTreeMap<ReasonKind, (char, String)>);

impl Marks {
    fn of(doc: &RunDocument) -> Self {
        let signs = SIGNS.chars();
        let sentences = fathom_analysis::verdict::sentences(&doc.jobs);
        Self(
            sentences
                .into_iter()
                .zip(signs)
                .map(|((doubt, sentence), sign)| (doubt, (sign, sentence)))
                .collect(),
        )
    }

    /// The signs of these doubts, apart from one another: ¹² would be a twelve.
    fn signs(&self, doubts: &[ReasonKind]) -> String {
        let signs = doubts.iter().filter_map(|doubt| self.0.get(doubt));
        let signs: Vec<String> = signs.map(|(sign, _)| sign.to_string()).collect();
        signs.join(",")
    }
}

fn group_lines(doc: &RunDocument, style: Style) -> String {
    // The group of a single job has nothing to tell that its job does not.
    let lines: usize = doc.jobs.iter().map(|job| jobs::active(job).count()).sum();
    // Of several hosts the sum is told, which counts otherwise.
    let has_sums = doc.jobs.iter().any(|job| job.across.is_some());
    if doc.groups.len() >= lines || has_sums {
        return String::new();
    }
    let mut grid = Grid::new([
        words("group", 0),
        words("", 0),
        figures("IOPS", 0),
        figures("bandwidth", 0),
        figures("moved", 1),
        figures("min job", 0),
        figures("max job", 0),
        figures("min time", 0),
        figures("max time", 0),
    ]);
    let mut step = None;
    for group in &doc.groups {
        if group.step != step {
            step.clone_from(&group.step);
            grid.heading(step.as_deref().unwrap_or_default());
        }
        grid.line([
            GridCell::from(group.group.to_string()),
            GridCell::from(group.dir.name()),
            match group.total_ios {
                // What moved bytes did I/O: how much is not known.
                0 => GridCell::from("–"),
                _ => GridCell::new(Tone::Strong, units::count(group.iops)),
            },
            GridCell::from(units::bytes_per_second(group.bw_bytes)),
            GridCell::from(units::bytes(group.io_bytes as f64)),
            GridCell::from(units::bytes_per_second(group.bw_bytes_min)),
            GridCell::from(units::bytes_per_second(group.bw_bytes_max)),
            GridCell::from(units::duration(group.runtime_ms_min)),
            GridCell::from(units::duration(group.runtime_ms_max)),
        ]);
    }
    grid.render(style)
}

fn disk_lines(doc: &RunDocument, style: Style) -> String {
    let mut grid = Grid::new([
        words("disk", 0),
        figures("reads", 0),
        figures("merged", 1),
        figures("r_await", 1),
        figures("writes", 0),
        figures("merged", 1),
        figures("w_await", 1),
        figures("util", 0),
    ]);
    // The names of iostat(1), and its way: time of all requests over their number.
    let each = |ticks_ms: u64, ios: u64| match ios {
        0 => String::from("–"),
        n => units::latency(ticks_ms as f64 * 1e6 / n as f64),
    };
    let mut step = None;
    for disk in &doc.disks {
        if disk.step != step {
            step.clone_from(&disk.step);
            grid.heading(step.as_deref().unwrap_or_default());
        }
        grid.line([
            GridCell::from(match &disk.host {
                Some(host) => format!("{} on {host}", disk.name),
                None => disk.name.clone(),
            }),
            GridCell::from(units::count(disk.read_ios as f64)),
            GridCell::from(units::count(disk.read_merges as f64)),
            GridCell::from(each(disk.read_ticks_ms, disk.read_ios)),
            GridCell::from(units::count(disk.write_ios as f64)),
            GridCell::from(units::count(disk.write_merges as f64)),
            GridCell::from(each(disk.write_ticks_ms, disk.write_ios)),
            GridCell::from(format!("{:.1} %", disk.util_percent)),
        ]);
    }
    if doc.disks.is_empty() {
        return String::new();
    }
    grid.render(style)
}

/// First the notes with marks, in their order, then the others.
fn notes(doc: &RunDocument, marks: &Marks, style: Style) -> String {
    let marked = marks.0.values();
    let sentences: Vec<&str> = marked.clone().map(|(_, s)| s.as_str()).collect();
    let others = doc
        .notes
        .iter()
        .map(String::as_str)
        .filter(|note| !sentences.contains(note));
    let mut text = String::new();
    for (sign, sentence) in marked {
        text += &item(&sign.to_string(), sentence, Tone::Doubtful, style);
    }
    for note in Folded::of(others).causes() {
        let told = note.sentence() + &times(note.count);
        text += &item("-", &told, Tone::Faint, style);
    }
    for sentence in certainty::sentences(doc) {
        text += &item("±", &sentence, Tone::Faint, style);
    }
    text
}

fn failures(doc: &RunDocument, style: Style) -> String {
    let mut text = String::new();
    let happened: Vec<String> = doc.failures.iter().map(Failure::happened).collect();
    for (cause, places) in by_cause(happened.iter().map(String::as_str)) {
        text += &item("✗", &(cause + &times(places.len())), Tone::Bad, style);
        let advice = format!("to do: {}", doc.failures[places[0]].to_be_done());
        text += &item(" ", &advice, Tone::Plain, style);
    }
    text
}

/// A sign and a text that hangs beside it.
fn item(sign: &str, text: &str, tone: Tone, style: Style) -> String {
    let mut lead = style.paint(tone, sign);
    let mut lines = String::new();
    for line in wrap(text, style.columns().saturating_sub(2)) {
        lines += &format!("{lead} {line}\n");
        lead = " ".into();
    }
    lines
}
