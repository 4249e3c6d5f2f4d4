//! Series of outputs that anybody has: what varies among them makes points and
//! curves.
//!
//! Options count where an output tells them (fio's JSON since 2.21, the head of its
//! normal text), the names of files only where it does not. Of the options in which
//! reports differ, numbers that people sweep are axes: the first is x, the next one
//! tells the curves of a folder apart, as a campaign's folders have it. All others are
//! in the folder's name.

use std::collections::{BTreeMap, BTreeSet};

use fathom_jobfile::table;
use fathom_model::point::whole_number;
use fathom_model::{JobResult, Point, Results};

use crate::fio_tests::names;

/// Numbers that people sweep, and fio's value where a job says none; in the order in
/// which they are axes.
const AXES: [(&str, &str); 6] = [
    ("iodepth", "1"),
    ("numjobs", "1"),
    ("bs", "4k"),
    ("rwmixread", "50"),
    ("rate_iops", "0"),
    ("size", ""),
];
/// Options that tell nothing of the load: how long, what is written where, and names.
const NOT_TOLD: [&str; 23] = [
    "name",
    "description",
    "runtime",
    "timeout",
    "time_based",
    "ramp_time",
    "startdelay",
    "loops",
    "stonewall",
    "wait_for_previous",
    "wait_for",
    "new_group",
    "group_reporting",
    "per_job_logs",
    "randseed",
    "randrepeat",
    "norandommap",
    "percentile_list",
    "directory",
    "filename_format",
    "unlink",
    "rwmixwrite",
    "write_iolog",
];
/// Options of logs and of what is measured, by what they begin with.
const NOT_TOLD_PREFIXES: [&str; 6] = ["write_", "log_", "disable_", "clat_", "lat_", "slat_"];
/// Longest name of a folder that is made of options.
const NAME_MAX: usize = 120;

/// A report that may be a point.
#[derive(Debug, Clone, Copy)]
pub struct ImportedLoad<'r> {
    /// What it is called: the path of its file below the folder, without its ending.
    pub name: &'r str,
    /// Its figures.
    pub results: &'r Results,
    /// The text it was read from, where that is fio's normal output.
    pub text: Option<&'r str>,
    /// Whether fio wrote it: an option that it does not tell has fio's default then, and
    /// is not known of other tools.
    pub of_fio: bool,
}

/// What a report says of its load.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ToldLoad {
    settings: BTreeMap<String, String>,
    host: Option<String>,
    /// What measured it, without its version.
    tool: String,
    folder: String,
}

/// The points of reports, in their order: `None` for all where no number varies, and
/// for those that tell nothing or have jobs of different loads.
pub fn points(loads: &[ImportedLoad]) -> Vec<Option<Point>> {
    let told: Vec<Option<ToldLoad>> = loads.iter().map(told).collect();
    for by_folder in [false, true] {
        let points = points_of(&told, by_folder);
        // The same load in two folders is of two devices, or of two days: no repetition.
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        let apart = points.iter().zip(&told).all(|(point, told)| {
            let (Some(point), Some(told)) = (point, told) else {
                return true;
            };
            *seen.entry(&point.id).or_insert(&told.folder) == told.folder
        });
        if apart || by_folder {
            return points;
        }
    }
    vec![None; loads.len()]
}

/// Whether the jobs of a report are loads of their own, one after the other: they
/// differ, and each waits for those before.
pub fn one_after_the_other(results: &Results) -> bool {
    let waits = |job: &JobResult| {
        let waits = |options: &BTreeMap<String, String>| {
            options.contains_key("stonewall") || options.contains_key("wait_for_previous")
        };
        waits(&job.options) || waits(&results.global_options)
    };
    let differ = results.jobs.windows(2).any(|pair| {
        let of = |job: &JobResult| settings_of(&results.global_options, job, true);
        of(&pair[0]) != of(&pair[1])
    });
    differ && results.jobs.iter().skip(1).all(waits)
}

fn told(load: &ImportedLoad) -> Option<ToldLoad> {
    let mut jobs = load.results.jobs.iter().filter(|job| job.clients.is_none());
    let first = jobs.next()?;
    let global = &load.results.global_options;
    let has_options = !first.options.is_empty() || !global.is_empty();
    let settings = if has_options {
        let of = |job: &JobResult| settings_of(global, job, load.of_fio);
        let settings = of(first);
        let same = |job: &JobResult| of(job) == settings;
        jobs.clone().all(same).then_some(settings)?
    } else {
        let mut settings = names_tell(load.name);
        settings.extend(load.text.map(head_tells).unwrap_or_default());
        let sweeps = |settings: &BTreeMap<String, String>| {
            AXES.iter().any(|(axis, _)| settings.contains_key(*axis))
        };
        Some(settings).filter(sweeps)?
    };
    let host = first.hostname.clone();
    let host = host.filter(|host| jobs.all(|job| job.hostname.as_ref() == Some(host)));
    let folder = load.name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let version = load.results.engine_version.as_deref().unwrap_or_default();
    let tool = version.chars().take_while(char::is_ascii_alphabetic);
    Some(ToldLoad {
        settings,
        host,
        tool: tool.collect(),
        folder: folder.to_owned(),
    })
}

/// The options of a job by fio's names, and what fio takes for those that it sweeps.
fn settings_of(
    global: &BTreeMap<String, String>,
    job: &JobResult,
    with_defaults: bool,
) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut mix_write = None;
    for (name, value) in global.iter().chain(&job.options) {
        let name = table::table().canonical(name);
        if name == "rwmixwrite" {
            mix_write = value.parse::<u32>().ok();
        }
        let is_told =
            !NOT_TOLD.contains(&name) && !NOT_TOLD_PREFIXES.iter().any(|p| name.starts_with(p));
        if is_told {
            settings.insert(name.to_owned(), alike(name, value));
        }
    }
    if with_defaults {
        let rw = settings.entry("rw".to_owned());
        rw.or_insert_with(|| "read".to_owned());
    }
    let rw = settings.get("rw").map_or("", String::as_str);
    let is_mixed = ["rw", "randrw"].contains(&rw.split(':').next().unwrap_or_default());
    if let Some(reads) = mix_write.and_then(|writes| 100u32.checked_sub(writes)) {
        settings.insert("rwmixread".to_owned(), reads.to_string());
    }
    if !is_mixed {
        settings.remove("rwmixread");
    }
    for (axis, default) in AXES {
        let counts = with_defaults && !default.is_empty() && (axis != "rwmixread" || is_mixed);
        if counts && axis != "rate_iops" {
            settings
                .entry(axis.to_owned())
                .or_insert_with(|| default.to_owned());
        }
    }
    settings
}

/// The same value in the same words: `4K`, `4096` and `4KiB` are `4k`.
fn alike(name: &str, value: &str) -> String {
    let value = value.trim();
    match (name, whole_number(value)) {
        ("bs" | "size" | "io_size", Some(bytes)) => {
            let units = [(1u64 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")];
            let fits = units
                .iter()
                .find(|(unit, _)| bytes > 0 && bytes % unit == 0);
            fits.map_or_else(
                || bytes.to_string(),
                |(unit, word)| format!("{}{word}", bytes / unit),
            )
        }
        ("rw", _) if value == "readwrite" => "rw".to_owned(),
        _ => value.to_owned(),
    }
}

/// What a file's name tells, and those of its folders: `randread-16-4` (pattern, depth,
/// jobs, as fio-plot has it), `bs4k-2j-64qd-randread`, `4k/randread-qd16`.
fn names_tell(name: &str) -> BTreeMap<String, String> {
    let mut known = names::settings(name);
    let file = name.rsplit('/').next().unwrap_or_default();
    let words: Vec<&str> = file.split(['-', '_']).collect();
    for three in words.windows(3) {
        let is_number = |text: &str| text.parse::<u32>().is_ok_and(|number| number > 0);
        if names::PATTERNS.contains(&three[0]) && is_number(three[1]) && is_number(three[2]) {
            for (option, value) in [
                ("rw", three[0]),
                ("iodepth", three[1]),
                ("numjobs", three[2]),
            ] {
                known.insert(option.to_owned(), value.to_owned());
            }
        }
    }
    for word in name.split(['/', '-', '_', '.']) {
        let word = word.to_ascii_lowercase();
        let told = ["iodepth", "numjobs", "qd", "bs", "jobs", "rwmixread"]
            .into_iter()
            .find_map(|option| {
                let value = word.strip_prefix(option)?;
                Some((option, value.to_owned())).filter(|(_, value)| whole_number(value).is_some())
            });
        let is_size = word.ends_with(['k', 'm']) && whole_number(&word).is_some();
        let (option, value) = match told {
            Some(("qd", value)) => ("iodepth", value),
            Some(("jobs", value)) => ("numjobs", value),
            Some(told) => told,
            None if is_size => ("bs", word.clone()),
            None if names::PATTERNS.contains(&word.as_str()) => ("rw", word.clone()),
            None => continue,
        };
        known
            .entry(option.to_owned())
            .or_insert_with(|| alike(option, &value));
    }
    known
}

/// What the head of a normal output tells of its one job:
/// `a: (g=0): rw=randread, bs=(R) 4096B-4096B, …, ioengine=libaio, iodepth=16`.
fn head_tells(text: &str) -> BTreeMap<String, String> {
    let mut all: BTreeSet<Vec<(String, String)>> = BTreeSet::new();
    let mut jobs = None;
    for line in text.lines().take(10_000) {
        if let Some((_, head)) = line
            .split_once("): rw=")
            .filter(|(name, _)| name.contains(": (g="))
        {
            let of = |option: &str| {
                let (_, value) = head.split_once(&format!("{option}="))?;
                Some(value.split([',', ' ']).next()?.to_owned())
            };
            let bs = of("bs").and_then(|first| match first.as_str() {
                "(R)" => head
                    .split_once("bs=(R) ")?
                    .1
                    .split(',')
                    .next()
                    .map(str::to_owned),
                _ => Some(first.split('/').next()?.to_owned()),
            });
            // From … to: one size where both are the same.
            let bs = bs.and_then(|range| {
                let (from, to) = range.split_once('-').unwrap_or((&range, &range));
                (from == to).then(|| alike("bs", from))
            });
            let rw = head.split(',').next().map(str::to_owned);
            let told = [
                ("rw", rw),
                ("bs", bs),
                ("iodepth", of("iodepth")),
                ("ioengine", of("ioengine")),
            ];
            let told = told
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?)));
            all.insert(told.collect());
        }
        let counted = line
            .strip_prefix("Starting ")
            .and_then(|rest| rest.split(' ').next());
        jobs = jobs.or(counted.and_then(|count| count.parse::<u32>().ok()));
    }
    let mut all = all.into_iter();
    let (Some(one), None) = (all.next(), all.next()) else {
        return BTreeMap::new();
    };
    let mut told: BTreeMap<String, String> = one.into_iter().collect();
    told.extend(jobs.map(|jobs| ("numjobs".to_owned(), jobs.to_string())));
    told
}

fn points_of(told: &[Option<ToldLoad>], by_folder: bool) -> Vec<Option<Point>> {
    let known: Vec<&ToldLoad> = told.iter().flatten().collect();
    let varies = |value: &dyn Fn(&ToldLoad) -> Option<String>| {
        known
            .windows(2)
            .any(|pair| value(pair[0]) != value(pair[1]))
    };
    let options: BTreeSet<&String> = known.iter().flat_map(|one| one.settings.keys()).collect();
    let varying: Vec<&str> = options
        .into_iter()
        .map(String::as_str)
        .filter(|option| varies(&|one| one.settings.get(*option).cloned()))
        .collect();
    let hosts = varies(&|one| one.host.clone());
    let tools = varies(&|one| Some(one.tool.clone()));
    let group = |one: &ToldLoad| -> Vec<(String, String)> {
        let mut words = Vec::new();
        if by_folder && !one.folder.is_empty() {
            words.push((String::new(), one.folder.clone()));
        }
        if tools {
            words.push((String::new(), one.tool.clone()));
        }
        words.extend(
            one.host
                .clone()
                .filter(|_| hosts)
                .map(|host| ("host".to_owned(), host)),
        );
        for option in &varying {
            let value = one.settings.get(*option);
            let is_axis = AXES.iter().any(|(axis, _)| axis == option)
                && value.is_none_or(|value| whole_number(value).is_some());
            if let Some(value) = value.filter(|_| !is_axis && *option != "rw") {
                words.push(((*option).to_owned(), value.clone()));
            }
        }
        words.push((
            "rw".to_owned(),
            one.settings.get("rw").cloned().unwrap_or_default(),
        ));
        words
    };
    let axes = axes_of(&known, &group);
    if axes.values().all(Vec::is_empty) {
        return vec![None; told.len()];
    }
    let mut measured: BTreeMap<String, u32> = BTreeMap::new();
    let mut point = |one: &ToldLoad| {
        let key = group(one);
        let mut point = point_of(one, &key, &axes[&key]);
        let times = measured.entry(point.id.clone()).or_default();
        *times += 1;
        point.repetition = *times;
        point
    };
    told.iter()
        .map(|one| one.as_ref().map(&mut point))
        .collect()
}

/// What reports that differ in nothing but numbers have in common, by option.
type LoadGroup = Vec<(String, String)>;

/// The numbers in which the reports of each group differ.
fn axes_of(
    known: &[&ToldLoad],
    group: &dyn Fn(&ToldLoad) -> LoadGroup,
) -> BTreeMap<LoadGroup, Vec<&'static str>> {
    let mut of_group: BTreeMap<LoadGroup, Vec<&ToldLoad>> = BTreeMap::new();
    for one in known {
        of_group.entry(group(one)).or_default().push(one);
    }
    let differ = |loads: &[&ToldLoad], axis: &str| {
        let of = |one: &ToldLoad| one.settings.get(axis).cloned();
        loads.windows(2).any(|pair| of(pair[0]) != of(pair[1]))
    };
    let axes = |loads: Vec<&ToldLoad>| -> Vec<&'static str> {
        let all = AXES.iter().map(|(axis, _)| *axis);
        all.filter(|axis| differ(&loads, axis)).collect()
    };
    let groups = of_group.into_iter();
    groups.map(|(key, loads)| (key, axes(loads))).collect()
}

/// A point of a group of reports that differ in these numbers.
fn point_of(one: &ToldLoad, group: &[(String, String)], axes: &[&str]) -> Point {
    let x = axes.first().copied().unwrap_or("iodepth");
    let value = |axis: &str| one.settings.get(axis).map_or("unknown", String::as_str);
    let mut words: Vec<String> = Vec::new();
    let mut below = String::new();
    for (option, value) in group {
        let value = value.trim_matches('/').replace('/', "-");
        match option.as_str() {
            "" => below += &format!("{value}/"),
            "rw" => words.push(value),
            option => words.push(format!("{option}-{value}")),
        }
    }
    if !axes.iter().take(2).any(|axis| *axis == "bs") {
        words.extend(
            one.settings
                .get("bs")
                .map(|bs| format!("bs{}", bs.replace('/', "-"))),
        );
    }
    let others = axes.iter().skip(2).filter(|axis| **axis != "bs");
    words.extend(others.map(|axis| format!("{axis}-{}", value(axis))));
    let folder: String = words.join("-").chars().take(NAME_MAX).collect();
    let series = match axes.get(1) {
        Some(second) => format!("{below}{folder}/{second}-{}", value(second)),
        None => format!("{below}{folder}"),
    };
    Point {
        id: format!("{series}/{x}-{}", value(x)),
        series,
        x: x.to_owned(),
        settings: one.settings.clone(),
        repetition: 1,
    }
}

#[cfg(test)]
mod tests;
