//! One HTML file that holds a whole run: figures, graphs, samples, job files.
//!
//! The page (`assets/`) is complete without its script; the script draws the
//! graphs with uPlot and makes tables sortable. Nothing is loaded from anywhere:
//! the page's own policy forbids it. What is embedded is `fathom.report/1`, in
//! docs/FORMAT.md.

mod against;
mod answer;
mod bars;
mod curves;
mod first;
mod history;
mod hosts;
mod job_files;
mod marks;
pub(crate) mod markup;
mod nodes;
pub(crate) mod plain;
mod points;
mod results;
mod runs;
mod sections;
mod story;
mod tracks;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::Path;

use fathom_record::{Entries, RecordError, RecordPart};

pub use against::AgainstBaseline;
use curves::GraphData;
use fathom_sheet::html::escape;
pub use history::{HistoryPage, history_file, history_page};
use marks::DoubtMarks;
use markup::{PageSection, json};
pub use runs::{ListedRow, RunsPage, runs_page};

use crate::snia;
use fathom_sheet::answer::RunAnswer;
use story::{Places, Story};
use tracks::Packer;

/// The page; `{{name}}` is filled in.
const PAGE: &str = include_str!("../../assets/report.html");
/// uPlot and what Fathom adds, in the order in which they need each other. uPlot's
/// licence asks to stand beside it.
const SCRIPTS: [&str; 7] = [
    "/*!\n",
    include_str!("../../../../third_party/uplot/LICENSE"),
    "*/\n",
    include_str!("../../../../third_party/uplot/uPlot.iife.min.js"),
    include_str!("../../assets/units.js"),
    include_str!("../../assets/samples.js"),
    concat!(
        include_str!("../../assets/charts.js"),
        include_str!("../../assets/nodes.js"),
        include_str!("../../assets/points.js"),
        include_str!("../../assets/page.js")
    ),
];
/// What follows a run that goes on.
const LIVE: &str = include_str!("../../assets/live.js");
const LOADS_NOTHING: &str = "Nothing on this page is loaded from anywhere.";
const LOADS_ANEW: &str =
    "Nothing on this page is loaded from anywhere but the Fathom that shows it.";
const STYLES: [&str; 3] = [
    include_str!("../../../../third_party/uplot/uPlot.min.css"),
    include_str!("../../assets/report.css"),
    include_str!("../../assets/snia.css"),
];

/// Why a report cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// The record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The report cannot be written.
    #[error("the report cannot be written: {0}")]
    Write(#[from] io::Error),
    /// The figures cannot be written as JSON.
    #[error("the figures cannot be embedded: {0}")]
    Json(#[from] serde_json::Error),
}

/// Writes the report of a record folder, of a run that ended or not.
///
/// The record is read twice, entry by entry: memory is needed for its jobs and
/// points, not for its samples.
///
/// # Errors
/// When the folder is no record, is of a newer Fathom, or cannot be read, or
/// `out` cannot be written.
pub fn write(dir: &Path, out: &mut impl Write) -> Result<(), HtmlError> {
    write_with(dir, PageExtras::default(), out)
}

/// What stands on a page beside its record.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageExtras<'p> {
    /// Baselines that the run is measured against.
    pub against: &'p [AgainstBaseline],
    /// What it was made to answer.
    pub answer: Option<&'p RunAnswer>,
    /// It follows a run: it asks for `state` beside itself, a document with `tag` and
    /// `status`, and is loaded anew once the tag is not this one any more.
    pub tag: Option<&'p str>,
    /// Where the list of all runs is.
    pub list: Option<&'p str>,
}

/// As [`write()`], with more than the record holds.
///
/// # Errors
/// As [`write()`].
pub fn write_with(
    dir: &Path,
    extras: PageExtras<'_>,
    out: &mut impl Write,
) -> Result<(), HtmlError> {
    let PageExtras { tag, list, .. } = extras;
    let story = Story::read(dir)?;
    let how = SampleReading::of(&story);
    let marks = DoubtMarks::of(&story);
    let data = GraphData::of(&story, nodes::NodesData::of(dir, &story), &marks);
    let mut sections = sections_of(dir, &story, &data, &how, &marks);
    let answer = extras.answer.and_then(answer::section);
    let first = [snia_pages(dir, &story)?, answer];
    sections.splice(0..0, first.into_iter().flatten());
    let html: String = sections.iter().map(PageSection::html).collect();
    let fills = BTreeMap::from([
        ("nonce", nonce()),
        ("version", escape(env!("CARGO_PKG_VERSION"))),
        ("title", escape(&format!("{} – Fathom", story.doc.name))),
        ("style", STYLES.concat()),
        ("headline", first::screen(&story, &data, extras)),
        ("contents", contents(&sections, list)),
        ("sections", html),
        ("record", escape(&story.doc.id)),
        ("data", json(&data)?),
        ("script", SCRIPTS.concat() + tag.map_or("", |_| LIVE)),
        (
            "connects",
            tag.map_or("", |_| " connect-src 'self';").to_owned(),
        ),
        ("follows", tag.map_or_else(String::new, follows)),
        (
            "loads",
            tag.map_or(LOADS_NOTHING, |_| LOADS_ANEW).to_owned(),
        ),
    ]);
    for (place, part) in PAGE.split("{{").enumerate() {
        let Some((name, text)) = part.split_once("}}").filter(|_| place > 0) else {
            out.write_all(part.as_bytes())?;
            continue;
        };
        match fills.get(name) {
            Some(fill) => out.write_all(fill.as_bytes())?,
            None => samples(dir, &story, &how, out)?,
        }
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// What the page says of itself where it follows a run.
fn follows(tag: &str) -> String {
    format!("<meta name=\"fathom-live\" content=\"{}\">\n", escape(tag))
}

/// The pages of tests after SNIA's specification, where the run holds any.
fn snia_pages(dir: &Path, story: &Story) -> Result<Option<PageSection>, RecordError> {
    if !story.facts.contains_key(snia::FACTS) {
        return Ok(None);
    }
    let doc = snia::read(dir)?;
    let sheets = doc.map_or_else(String::new, |doc| snia::sheets(&doc, story.last_ms));
    Ok(PageSection::new("snia", "SSS PTS, interpreted", sheets))
}

/// In the order in which a reader asks.
fn sections_of(
    dir: &Path,
    story: &Story,
    data: &GraphData,
    how: &SampleReading,
    marks: &DoubtMarks,
) -> Vec<PageSection> {
    let sections = [
        marks.section(story),
        curves::overview(story),
        curves::series(story, marks),
        curves::tradeoff(story, data),
        hosts::section(story, marks),
        results::section(story, marks),
        curves::time(story, how),
        nodes::section(story, &data.nodes),
        sections::failures(story),
        results::steps(story),
        sections::environment(story),
        job_files::section(dir),
        sections::reading(),
    ];
    sections.into_iter().flatten().collect()
}

fn contents(sections: &[PageSection], list: Option<&str>) -> String {
    let list = list.map_or_else(String::new, |list| {
        format!("<li><a href=\"{}\">All runs</a></li>", escape(list))
    });
    let links: String = (sections.iter())
        .map(|section| {
            let short = match section.id {
                "doubts" => "Doubts and notes",
                "answer" => "Answer",
                "tradeoff" => "IOPS / latency",
                "hosts" => "Hosts",
                _ => section.title,
            };
            format!("<li><a href=\"#{}\">{short}</a></li>", section.id)
        })
        .collect();
    format!("<nav aria-label=\"Contents\"><ul>{list}{links}</ul></nav>\n")
}

/// How samples are read for the graphs.
struct SampleReading {
    /// Whether the digest is enough where there is one.
    by_digest: bool,
    /// So many intervals become one.
    merged: u32,
}

impl SampleReading {
    fn of(story: &Story) -> Self {
        let points = story.points().count();
        let by_digest = story.samples() > tracks::read_max(points) && story.summed > 0;
        let single = match by_digest {
            true => story.samples().saturating_sub(story.summed),
            false => story.samples(),
        };
        Self {
            by_digest,
            merged: tracks::merged_for(single, points),
        }
    }
}

/// The second reading: the samples of the entries that the first one saw.
fn samples(
    dir: &Path,
    story: &Story,
    how: &SampleReading,
    out: &mut impl Write,
) -> Result<(), HtmlError> {
    let mut packer = Packer::new(out, how.merged);
    let counts = |step: usize| story.steps.get(step).is_none_or(|step| step.counts);
    let mut places = Places::default();
    let mut step = 0;
    let mut seen = 0;
    let mut parts = match how.by_digest {
        true => Entries::summed(dir)?,
        false => Entries::open(dir)?,
    };
    while seen < story.entries
        && let Some(part) = parts.next_part()
    {
        match part {
            Ok(RecordPart::Entry(entry)) => {
                step = places.of(&entry.event);
                if counts(step) {
                    packer.take(step, &entry.event)?;
                }
                seen += 1;
            }
            Ok(RecordPart::Sums(sums)) => {
                if counts(step) {
                    packer.take_rows(step, &sums.tracks)?;
                }
                seen = seen.saturating_add(sums.entries);
            }
            // Damage was told of at the first reading.
            Err(_) => {}
        }
    }
    packer.end_step()?;
    Ok(())
}

/// What scripts and styles of the page carry and nothing in a record can know:
/// should text ever get out of its place, it still does not run.
pub(crate) fn nonce() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("{random:016x}")
}
