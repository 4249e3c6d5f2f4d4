//! The nodes: tables of what each did in every step, and graphs over time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use fathom_analysis::nodes::{a_second, percent, util_percent, waits};
use fathom_model::node::{DeviceCounts, FigureRange};
use fathom_model::{NodeSample, NodeUse, units};
use serde::Serialize;

use super::markup::{HtmlCell, HtmlTable, PageSection};
use super::story::Story;
use crate::table::nodes::named;
use fathom_analysis::volumes;
use fathom_document::nodes::{NodeCurve, tracks};
use fathom_sheet::html::escape;

/// Points of all nodes together that are embedded, and of one node at most: a
/// graph shows no more than it has pixels.
const POINTS: usize = 60_000;
const POINTS_OF_NODE: usize = 1200;
/// Devices of a node that have lines.
const DEVICES: usize = 6;
/// Nodes whose graphs stand below each other; of more, one at a time is shown.
const NODES: usize = 3;
/// Processes of a node that are named.
const PROCESSES: usize = 5;

/// What the graphs of the nodes are drawn from.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct NodesData {
    nodes: Vec<NodeTrack>,
    phases: Vec<NodePhase>,
}

/// The time of a step, in s since the run's start.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct NodePhase {
    name: String,
    from: f64,
    to: f64,
}

/// A node over time: each list has a value for every interval.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
struct NodeTrack {
    name: String,
    /// So many intervals are one.
    merged: u32,
    /// Ends of the intervals, in s since the run's start, and their lengths.
    t: Vec<f64>,
    span: Vec<f64>,
    /// Percent of all CPUs.
    user: Vec<f64>,
    system: Vec<f64>,
    iowait: Vec<f64>,
    steal: Vec<f64>,
    /// Bytes.
    memory: u64,
    available: Vec<u64>,
    cache: Vec<u64>,
    dirty: Vec<u64>,
    devices: Vec<DeviceTrack>,
}

/// A device over time. In a sample are those that did something.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
struct DeviceTrack {
    name: String,
    /// Bytes per second.
    read: Vec<f64>,
    write: Vec<f64>,
    /// Percent of the time.
    util: Vec<f64>,
    /// Requests under way, the mean.
    queue: Vec<f64>,
    /// Mean time of a read and of a write in ns; null where there was none.
    read_await: Vec<Option<f64>>,
    write_await: Vec<Option<f64>>,
}

/// Two digits behind the point are more than a pixel shows.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

impl NodesData {
    /// The nodes of a record.
    pub fn of(dir: &Path, story: &Story) -> Self {
        let nodes = story.doc.nodes.iter().map(|used| &used.node);
        let nodes = nodes
            .collect::<std::collections::BTreeSet<_>>()
            .len()
            .max(1);
        let most = (POINTS / nodes).clamp(60, POINTS_OF_NODE);
        let tracks = tracks(dir, most);
        let Some((first_ms, last_ms)) = extent(&tracks) else {
            return Self::default();
        };
        // What was imported did not begin when it was.
        let phases = story.windows.iter();
        let phases: Vec<_> = phases
            .filter(|window| window.begin_ms <= last_ms && window.end_ms >= first_ms)
            .collect();
        let begins = phases.iter().map(|window| window.begin_ms);
        let start_ms = begins.chain([first_ms, story.started_ms]).min();
        let start_ms = match story.doc.command == "import" {
            true => start_ms.unwrap_or(first_ms),
            false => story.started_ms,
        };
        let since = |at_ms: u64| at_ms.saturating_sub(start_ms) as f64 / 1000.0;
        let phase = |window: &&fathom_analysis::nodes::StepWindow| NodePhase {
            name: window
                .step
                .clone()
                .unwrap_or_else(|| story.doc.name.clone()),
            from: since(window.begin_ms),
            to: since(window.end_ms),
        };
        Self {
            nodes: tracks
                .iter()
                .map(|track| NodeTrack::of(track, &since))
                .collect(),
            phases: phases.iter().map(phase).collect(),
        }
    }
}

/// Begin of the first interval and end of the last one, ms since 1970 UTC.
fn extent(tracks: &[NodeCurve]) -> Option<(u64, u64)> {
    let samples = || tracks.iter().flat_map(|track| &track.samples);
    let begins = samples().map(|sample| sample.at_ms.saturating_sub(sample.span_ms));
    Some((begins.min()?, samples().map(|sample| sample.at_ms).max()?))
}

impl NodeTrack {
    fn of(track: &NodeCurve, since: &dyn Fn(u64) -> f64) -> Self {
        let mut node = Self {
            name: track.node.clone(),
            merged: track.merged,
            devices: busiest(&track.samples),
            ..Self::default()
        };
        for sample in &track.samples {
            let cpu = &sample.cpu;
            let part = |ms| rounded(percent(ms, cpu));
            node.t.push(rounded(since(sample.at_ms)));
            node.span.push(rounded(sample.span_ms as f64 / 1000.0));
            node.user.push(part(cpu.user_ms));
            node.system.push(part(cpu.system_ms));
            node.iowait.push(part(cpu.iowait_ms));
            node.steal.push(part(cpu.steal_ms));
            node.memory = sample.memory.total_bytes;
            node.available.push(sample.memory.available_bytes);
            node.cache.push(sample.memory.page_cache_bytes);
            node.dirty.push(sample.memory.dirty_bytes);
            for device in &mut node.devices {
                let found = sample.devices.iter().find(|one| one.name == device.name);
                let rate = |bytes: u64| a_second(bytes, sample.span_ms).round();
                device
                    .read
                    .push(found.map_or(0.0, |one| rate(one.read_bytes)));
                device
                    .write
                    .push(found.map_or(0.0, |one| rate(one.write_bytes)));
                let util = found.map_or(0.0, |one| util_percent(one, sample.span_ms));
                device.util.push(rounded(util));
                let queue = found.map_or(0.0, |one| a_second(one.queue_ms, sample.span_ms) / 1e3);
                device.queue.push(rounded(queue));
                let [read, write] = found.map_or([None, None], |one| waits(one).map(|it| it.1));
                device.read_await.push(read.map(f64::round));
                device.write_await.push(write.map(f64::round));
            }
        }
        node
    }
}

impl NodeTrack {
    fn has_cpu(&self) -> bool {
        let all = self.user.iter().chain(&self.system).chain(&self.iowait);
        all.chain(&self.steal).any(|percent| *percent > 0.0)
    }
}

/// The devices that moved most, without values yet.
fn busiest(samples: &[NodeSample]) -> Vec<DeviceTrack> {
    let mut moved: BTreeMap<&str, u64> = BTreeMap::new();
    for device in samples.iter().flat_map(|sample| &sample.devices) {
        let bytes = |one: &DeviceCounts| one.read_bytes + one.write_bytes;
        *moved.entry(&device.name).or_default() += bytes(device);
    }
    let mut names: Vec<(&str, u64)> = moved.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    names.sort_by_key(|(name, bytes)| (std::cmp::Reverse(*bytes), *name));
    let device = |(name, _): &(&str, u64)| DeviceTrack {
        name: (*name).to_owned(),
        ..DeviceTrack::default()
    };
    names.iter().take(DEVICES).map(device).collect()
}

/// Graphs first, then tables.
pub fn section(story: &Story, data: &NodesData) -> Option<PageSection> {
    if story.doc.nodes.is_empty() && data.nodes.is_empty() {
        return None;
    }
    let mut body = String::from(
        "<p class=\"lead\">Read from the counters of each node while the jobs ran; every value is the \
         mean of its interval. Shaded: the times of the steps. In the tables: mean, and the interval \
         where it was highest.</p>\n",
    );
    let merged = data.nodes.iter().map(|node| node.merged).max().unwrap_or(1);
    if merged > 1 {
        let _ = writeln!(
            body,
            "<p class=\"lead\">In the graphs up to {merged} intervals are one: their counts are added up.</p>"
        );
    }
    body += &graphs(data);
    body += &machines(story);
    body += &devices(story);
    body += &processes(story);
    PageSection::new("nodes", "Nodes", body)
}

fn graphs(data: &NodesData) -> String {
    let mut html = String::new();
    let is_one = data.nodes.len() > NODES;
    if is_one {
        html += "<div class=\"tools steps\"><button type=\"button\" data-by=\"-1\">Previous</button>\
                 <select class=\"node\" aria-label=\"Node\">";
        for (place, node) in data.nodes.iter().enumerate() {
            let _ = write!(
                html,
                "<option value=\"{place}\">{}</option>",
                escape(&node.name)
            );
        }
        html += "</select><button type=\"button\" data-by=\"1\">Next</button></div>\n";
    }
    let shown = if is_one { 1 } else { data.nodes.len() };
    for (place, node) in data.nodes.iter().take(shown).enumerate() {
        html += "<div class=\"cards of-node\">\n";
        // Where one node at a time is shown the graphs are those of each.
        let tells = |has: fn(&NodeTrack) -> bool| match is_one {
            true => data.nodes.iter().any(has),
            false => has(node),
        };
        let graphs = [
            ("cpu", "CPU", tells(NodeTrack::has_cpu)),
            ("memory", "memory", tells(|node| node.memory > 0)),
            ("bandwidth", "bandwidth of its devices", true),
            ("util", "utilisation of its devices", true),
            ("queue", "requests under way at its devices", true),
            ("await", "mean time of requests at its devices", true),
        ];
        for (graph, title, _) in graphs.into_iter().filter(|(_, _, is_told)| *is_told) {
            let name = escape(&node.name);
            let _ = writeln!(
                html,
                "<figure class=\"chart\" data-node=\"{place}\" data-graph=\"{graph}\"><figcaption>\
                 <span class=\"caption\">{name}</span>: {title}</figcaption><div class=\"plot\"></div></figure>"
            );
        }
        html += "</div>\n";
    }
    html
}

/// The mean, and the interval where it was highest.
fn mean_max(range: &FigureRange, text: impl Fn(f64) -> String) -> HtmlCell {
    let max = format!(" <span class=\"faint\">{}</span>", escape(&text(range.max)));
    HtmlCell::number(Some(range.mean), &text).and(&max)
}

fn percents(value: f64) -> String {
    format!("{value:.0} %")
}

/// The step of a line; without steps, nothing.
fn step_of(used: &NodeUse) -> HtmlCell {
    HtmlCell::text(used.step.as_deref().unwrap_or("–"))
}

fn machines(story: &Story) -> String {
    let used = &story.doc.nodes;
    // Of machines that are nobody's guest it is always 0.
    let stolen = |used: &NodeUse| used.steal_percent.is_some_and(|steal| steal.max >= 0.5);
    let is_guest = used.iter().any(stolen);
    let mut columns = vec!["step", "node", "#user", "#system", "#iowait"];
    columns.extend(is_guest.then_some("#steal"));
    columns.extend(["#page cache", "#dirty", "#least available", "#readings"]);
    let mut table = HtmlTable::new("machines", &columns);
    for used in used {
        let told = |range: &Option<FigureRange>, text: fn(f64) -> String| match range {
            Some(range) => mean_max(range, text),
            None => HtmlCell::number(None, text),
        };
        let cpu = |range| told(range, percents);
        let bytes = |range| told(range, units::bytes);
        let mut cells = vec![step_of(used), HtmlCell::text(&used.node)];
        cells.extend(
            [
                &used.user_percent,
                &used.system_percent,
                &used.iowait_percent,
            ]
            .map(cpu),
        );
        cells.extend(is_guest.then(|| cpu(&used.steal_percent)));
        cells.extend([
            bytes(&used.page_cache_bytes),
            bytes(&used.dirty_bytes),
            HtmlCell::number(used.available_bytes.map(|it| it.min), units::bytes),
            readings(used),
        ]);
        table.row(cells);
    }
    headed("CPU and memory", table.finish_searchable("lines of nodes"))
}

/// How often the node was read, and how often it did not answer.
fn readings(used: &NodeUse) -> HtmlCell {
    let cell = HtmlCell::number(Some(f64::from(used.samples)), units::count);
    match used.missed {
        0 => cell,
        missed => cell.and(&format!(" <span class=\"doubtful\">{missed} missed</span>")),
    }
}

fn headed(title: &str, table: String) -> String {
    match table.is_empty() {
        true => table,
        false => format!("<h3>{title}</h3>\n{table}"),
    }
}

/// What the devices below the servers' data delivered of what was read.
pub fn volumes_table(story: &Story) -> String {
    let doc = &story.doc;
    let columns = [
        "step",
        "volume",
        "node",
        "#servers",
        "#jobs read",
        "#device read",
        "#from memory",
        "#device wrote",
    ];
    let mut table = HtmlTable::new("volumes", &columns);
    for volume in &doc.volumes {
        let bytes =
            |bytes: Option<u64>| HtmlCell::number(bytes.map(|bytes| bytes as f64), units::bytes);
        let share = volumes::share_from_memory(volume, &doc.jobs).map(|share| share * 100.0);
        table.row([
            HtmlCell::text(volume.step.as_deref().unwrap_or("–")).class("name"),
            HtmlCell::text(volume.device.as_deref().unwrap_or("–")).class("name"),
            HtmlCell::text(&volume.node).class("name"),
            HtmlCell::number(Some(volume.hosts.len() as f64), units::count),
            bytes(Some(volumes::issued_bytes(volume, &doc.jobs))),
            bytes(volume.read_bytes),
            HtmlCell::number(share, percents),
            bytes(volume.write_bytes),
        ]);
    }
    headed("Volumes", table.finish_searchable("volumes"))
}

fn devices(story: &Story) -> String {
    let columns = [
        "step",
        "node",
        "device",
        "#reads/s",
        "#read",
        "#r_await",
        "#writes/s",
        "#written",
        "#w_await",
        "#queue",
        "#util",
    ];
    let mut table = HtmlTable::new("devices", &columns);
    for used in &story.doc.nodes {
        for device in &used.devices {
            let ios = |range| mean_max(range, |value| units::count(value.round()));
            let rate = |range| mean_max(range, units::bytes_per_second);
            let each = |range: Option<FigureRange>| {
                HtmlCell::number(range.map(|r| r.mean), units::latency)
            };
            table.row([
                step_of(used),
                HtmlCell::text(&used.node),
                HtmlCell::text(&device.name),
                ios(&device.read_iops),
                rate(&device.read_bw_bytes),
                each(device.read_await_ns),
                ios(&device.write_iops),
                rate(&device.write_bw_bytes),
                each(device.write_await_ns),
                HtmlCell::number(Some(device.queue.mean), |value| format!("{value:.1}")),
                mean_max(&device.util_percent, percents),
            ]);
        }
    }
    headed("Devices", table.finish_searchable("lines of devices"))
}

fn processes(story: &Story) -> String {
    let mut table = HtmlTable::new("processes", &["step", "node", "in percent of one CPU"]);
    let told = story.doc.nodes.iter();
    for used in told.filter(|used| !used.processes.is_empty()) {
        table.row([
            step_of(used),
            HtmlCell::text(&used.node),
            HtmlCell::text(named(used, PROCESSES).join(", ")),
        ]);
    }
    headed(
        "Busiest processes",
        table.finish_searchable("lines of processes"),
    )
}
