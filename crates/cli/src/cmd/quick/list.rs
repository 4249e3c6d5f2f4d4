//! `fathom quick list`: the groups and their tests.

use std::collections::BTreeMap;

use fathom_model::Exit;
use fathom_model::units::format_size;
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::Tone;
use fathom_suites::quick::{self, Baseline, SeriesGroup};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Global, failed, shelf, xdg};
use crate::out;

/// List the tests of the series
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom quick list                 the tests of the group that runs by default
  fathom quick list --group v1      those of another group
  fathom quick list --group my.toml those of a file")]
pub struct Args {
    /// Group of tests: a name, or a file
    #[arg(long, value_name = "GROUP", default_value = quick::DEFAULT_GROUP)]
    group: String,
}

/// Runs the command.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let user_dir = xdg::groups_dir();
    let group = SeriesGroup::find(&args.group, user_dir.as_deref()).map_err(failed)?;
    let mut baselines = shelf().list().map_err(failed)?;
    baselines.retain(|one| {
        one.conditions
            .as_ref()
            .is_some_and(|conditions| conditions.group == group.label())
    });
    let known = quick::known(user_dir.as_deref());
    if global.json {
        out::json(&ListDocument::of(&group, &baselines, &known))?;
        return Ok(Exit::Success);
    }
    let mut grid = Grid::new([
        words("test", 0),
        words("engine", 1),
        figures("depth", 2),
        figures("bs", 2),
        words("rw", 2),
        figures("HDD", 0),
    ]);
    let hdd = baselines
        .iter()
        .find(|one| one.name == quick::DEFAULT_BASELINE);
    for series in &group.series {
        if let Some(title) = &series.title {
            grid.heading(title.clone());
        }
        for test in &series.tests {
            let iops = hdd.and_then(|hdd| hdd.iops.get(&test.name));
            grid.line([
                GridCell::from(test.name.as_str()),
                GridCell::from(test.engine.as_str()),
                GridCell::from(test.depth.to_string()),
                GridCell::from(test.bs.as_str()),
                GridCell::from(test.rw.as_str()),
                GridCell::new(Tone::Strong, iops.map(u64::to_string).unwrap_or_default()),
            ]);
        }
    }
    let style = out::style(global.color);
    out::line(format_args!("Group \"{}\": {}", group.label(), group.about));
    out::line(format_args!(
        "{} a set of files, {} s a test (those that write a set first have no limit)\n",
        format_size(group.size_bytes()),
        group.runtime_s
    ));
    out::text(grid.render(style));
    let names: Vec<&str> = baselines.iter().map(|one| one.name.as_str()).collect();
    out::line(format_args!(
        "\nGroups: {}. Baselines of this one: {}.",
        known.join(", "),
        or_none(&names)
    ));
    Ok(Exit::Success)
}

fn or_none(names: &[&str]) -> String {
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

/// What `--json` prints.
#[derive(Serialize, JsonSchema)]
pub struct ListDocument<'g> {
    schema: &'static str,
    group: String,
    about: &'g str,
    /// Of each set of files.
    size_bytes: u64,
    runtime_s: u32,
    /// fio options of every test.
    options: &'g [String],
    series: Vec<SeriesRows<'g>>,
    /// Names of all groups.
    groups: &'g [String],
}

/// Tests under one headline.
#[derive(Serialize, JsonSchema)]
struct SeriesRows<'g> {
    title: Option<&'g str>,
    /// What to watch for.
    watch: Option<&'g str>,
    tests: Vec<TestRow<'g>>,
}

/// A test.
#[derive(Serialize, JsonSchema)]
struct TestRow<'g> {
    name: &'g str,
    files: u32,
    /// fio's ioengine
    engine: &'g str,
    depth: u32,
    bs: &'g str,
    rw: &'g str,
    options: &'g [String],
    /// Whether it writes its files once and ends.
    init: bool,
    /// What each baseline has for it.
    baseline_iops: BTreeMap<&'g str, u64>,
}

impl<'g> ListDocument<'g> {
    fn of(group: &'g SeriesGroup, baselines: &'g [Baseline], groups: &'g [String]) -> Self {
        let test = |test: &'g quick::QuickTest| TestRow {
            name: &test.name,
            files: test.files,
            engine: &test.engine,
            depth: test.depth,
            bs: &test.bs,
            rw: &test.rw,
            options: &test.options,
            init: test.init,
            baseline_iops: (baselines.iter())
                .filter_map(|one| Some((one.name.as_str(), *one.iops.get(&test.name)?)))
                .collect(),
        };
        let series = |series: &'g quick::TestSeries| SeriesRows {
            title: series.title.as_deref(),
            watch: series.watch.as_deref(),
            tests: series.tests.iter().map(test).collect(),
        };
        Self {
            schema: "fathom.quick-list/1",
            group: group.label(),
            about: &group.about,
            size_bytes: group.size_bytes(),
            runtime_s: group.runtime_s,
            options: &group.options,
            series: group.series.iter().map(series).collect(),
            groups,
        }
    }
}
