//! The time series of a run: one line per interval, job and direction.

use std::borrow::Cow;

use fathom_document::attempts::Counting;
use fathom_model::{Exit, Sample, text, units};
use fathom_record::{DamagedLines, Entries, RecordError};
use fathom_report::query::SamplePlace;
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone};
use serde::Serialize;

use crate::out;

/// How the series is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SeriesFormat {
    /// Aligned, with units
    Table,
    /// Comma-separated, plain numbers, with a line of titles
    Csv,
    /// One JSON object a line
    Jsonl,
    /// One JSON document
    #[value(skip)]
    Json,
}

/// Percentiles that a line of the series has.
const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// Titles of the comma-separated form; the fields of [`SampleLine`] in their order.
const TITLES: &str = "t_ms,span_ms,step,job,name,dir,ios,bytes,iops,bw_bytes,clat_n,clat_mean_ns,\
                      clat_p50_ns,clat_p90_ns,clat_p99_ns,clat_p99.9_ns";

/// What `--json` prints; it is written sample by sample.
#[cfg(test)]
#[derive(Serialize, schemars::JsonSchema)]
pub struct SamplesDocument<'s> {
    schema: &'static str,
    samples: Vec<SampleLine<'s>>,
}

/// One line. What was not measured is null, or empty between commas.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SampleLine<'s> {
    /// End of the interval, ms since the run's start.
    t_ms: u64,
    span_ms: u64,
    step: Option<&'s str>,
    /// Place of the job, counted from 0, and its name.
    job: u32,
    name: &'s str,
    dir: &'static str,
    ios: u64,
    bytes: u64,
    iops: Option<f64>,
    bw_bytes: Option<f64>,
    clat_n: Option<u64>,
    clat_mean_ns: Option<f64>,
    clat_p50_ns: Option<u64>,
    clat_p90_ns: Option<u64>,
    clat_p99_ns: Option<u64>,
    #[serde(rename = "clat_p99.9_ns")]
    clat_p99_9_ns: Option<u64>,
}

impl<'s> SampleLine<'s> {
    fn new(sample: &Sample, step: Option<&'s str>, name: &'s str) -> Self {
        let clat = sample.clat.as_ref();
        let [p50, p90, p99, p99_9] = PERCENTS.map(|percent| clat?.percentile_ns(percent));
        Self {
            t_ms: sample.t_ms,
            span_ms: sample.span_ms,
            step,
            job: sample.job,
            name,
            dir: sample.dir.name(),
            ios: sample.ios,
            bytes: sample.bytes,
            iops: sample.iops(),
            bw_bytes: sample.bw_bytes(),
            clat_n: clat.map(|clat| clat.total()),
            clat_mean_ns: clat.and_then(|clat| clat.mean_ns()),
            clat_p50_ns: p50,
            clat_p90_ns: p90,
            clat_p99_ns: p99,
            clat_p99_9_ns: p99_9,
        }
    }
}

/// Writes the samples of a record that count.
pub fn show(
    counting: Counting,
    entries: Entries,
    form: SeriesFormat,
    style: Style,
) -> anyhow::Result<Exit> {
    let place = SamplePlace::of(counting);
    match form {
        SeriesFormat::Table => out::text(table(place, entries)?.render(style)),
        SeriesFormat::Csv => {
            out::line(TITLES);
            each(place, entries, |point| {
                out::line(csv(point));
                Ok(())
            })?;
        }
        SeriesFormat::Jsonl => each(place, entries, |point| out::json_line(point))?,
        SeriesFormat::Json => {
            out::line("{\"schema\":\"fathom.samples/1\",\"samples\":[");
            let mut comma = "";
            each(place, entries, |point| {
                out::text(comma);
                out::json_line(point)?;
                comma = ",";
                Ok(())
            })?;
            out::line("]}");
        }
    }
    Ok(Exit::Success)
}

/// Calls `take` with every sample in order, as long as anybody reads the output.
fn each(
    mut place: SamplePlace,
    mut entries: Entries,
    mut take: impl FnMut(&SampleLine) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for entry in &mut entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(damage @ RecordError::Damaged { .. }) => {
                out::note(format_args!("fathom: {damage}"));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(sample) = place.take(entry) {
            let name = place.name(&sample);
            let name = match place.host(&sample) {
                Some(host) => Cow::Owned(format!("{name} on {host}")),
                None => Cow::Borrowed(name),
            };
            take(&SampleLine::new(&sample, place.step(), &name))?;
        }
        if out::is_stopped() {
            break;
        }
    }
    if entries.damaged.count > 0 {
        let DamagedLines { count, first } = entries.damaged;
        out::note(format_args!(
            "fathom: {count} damaged lines were passed over, the first is line {first}"
        ));
    }
    Ok(())
}

fn csv(point: &SampleLine) -> String {
    fn field(value: Option<impl ToString>) -> String {
        value.map_or_else(String::new, |value| value.to_string())
    }
    [
        point.t_ms.to_string(),
        point.span_ms.to_string(),
        point.step.map_or_else(String::new, text::csv_field),
        point.job.to_string(),
        text::csv_field(point.name),
        point.dir.to_owned(),
        point.ios.to_string(),
        point.bytes.to_string(),
        field(point.iops),
        field(point.bw_bytes),
        field(point.clat_n),
        field(point.clat_mean_ns),
        field(point.clat_p50_ns),
        field(point.clat_p90_ns),
        field(point.clat_p99_ns),
        field(point.clat_p99_9_ns),
    ]
    .join(",")
}

fn table(place: SamplePlace, entries: Entries) -> anyhow::Result<Grid> {
    let mut grid = Grid::new([
        words("job", 0),
        words("", 0),
        figures("time", 0),
        figures("IOPS", 0),
        figures("bandwidth", 0),
        figures("clat mean", 0),
        figures("p50", 1),
        figures("p90", 3),
        figures("p99", 0),
        figures("p99.9", 2),
    ]);
    let rate = |value: Option<f64>, text: fn(f64) -> String| {
        value.map_or_else(GridCell::default, |v| text(v).into())
    };
    let latency = |ns: Option<u64>| rate(ns.map(|ns| ns as f64), units::latency);
    let mut step: Option<String> = None;
    each(place, entries, |point| {
        if point.step != step.as_deref() {
            step = point.step.map(str::to_owned);
            grid.heading(point.step.unwrap_or_default());
        }
        let iops = point.iops.map_or_else(String::new, units::count);
        grid.line([
            GridCell::from(point.name),
            GridCell::from(point.dir),
            GridCell::from(format!("{:.1} s", point.t_ms as f64 / 1000.0)),
            GridCell::new(Tone::Strong, iops),
            rate(point.bw_bytes, units::bytes_per_second),
            rate(point.clat_mean_ns, units::latency),
            latency(point.clat_p50_ns),
            latency(point.clat_p90_ns),
            latency(point.clat_p99_ns),
            latency(point.clat_p99_9_ns),
        ]);
        Ok(())
    })?;
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_field_for_each_title() {
        let sample = Sample {
            t_ms: 1000,
            span_ms: 1000,
            job: 0,
            dir: fathom_model::Direction::Write,
            ios: 3,
            bytes: 12288,
            clat: None,
            lat: None,
        };
        let name = "16 files, \"fast\"";
        let point = SampleLine::new(&sample, Some("one"), name);
        let line = csv(&point);
        assert_eq!(
            line,
            "1000,1000,one,0,\"16 files, \"\"fast\"\"\",write,3,12288,3,12288,,,,,,"
        );
        // The name holds one comma of its own.
        assert_eq!(line.matches(',').count(), TITLES.matches(',').count() + 1);
        let json = serde_json::to_value(&point).unwrap();
        let mut titles: Vec<_> = TITLES.split(',').collect();
        titles.sort_unstable();
        assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), titles);
    }
}
