//! What the nodes and the volumes of a run did meanwhile.

use fathom_model::node::FigureRange;
use fathom_model::{NodeUse, RunDocument, units};

use fathom_analysis::volumes;
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone, cut};

/// Nodes of a step that have a line each; the others are in `--json` and in the
/// report.
const NODES: usize = 16;
/// Devices of a node that have a line each.
const DEVICES: usize = 4;
/// Processes of a node that are named.
const PROCESSES: usize = 4;

/// The nodes that are shown, and how many are not.
fn shown(doc: &RunDocument) -> (Vec<&NodeUse>, usize) {
    let mut shown: Vec<&NodeUse> = Vec::new();
    for used in &doc.nodes {
        let of_step = shown.iter().filter(|other| other.step == used.step);
        if of_step.count() < NODES {
            shown.push(used);
        }
    }
    let left_out = doc.nodes.len() - shown.len();
    (shown, left_out)
}

/// CPU and memory of each node, its devices, its processes.
pub fn lines(doc: &RunDocument, style: Style) -> String {
    let (shown, left_out) = shown(doc);
    if shown.is_empty() {
        return String::new();
    }
    let parts = [
        machines(&shown, style),
        devices(&shown, style),
        busiest(&shown, style),
    ];
    let mut text = parts.join("\n");
    if left_out > 0 {
        let more = format!("and {left_out} more lines of nodes: fathom report, --json\n");
        text += &style.paint(Tone::Faint, &more);
    }
    text
}

/// `12 / 40 %`: the mean, and the interval where it was highest.
fn percent(range: &FigureRange) -> String {
    format!("{:.0} / {:.0} %", range.mean, range.max)
}

/// What nobody told is a dash.
fn told(range: &Option<FigureRange>, text: impl Fn(&FigureRange) -> String) -> String {
    range.as_ref().map_or_else(|| "–".to_owned(), text)
}

fn machines(shown: &[&NodeUse], style: Style) -> String {
    let mut grid = Grid::new([
        words("node: mean / highest", 0),
        figures("user", 0),
        figures("system", 0),
        figures("iowait", 0),
        figures("steal", 3),
        figures("available", 1),
        figures("page cache", 0),
        figures("dirty", 1),
        figures("readings", 2),
    ]);
    let mut step = None;
    for used in shown {
        if used.step != step {
            step.clone_from(&used.step);
            grid.heading(step.as_deref().unwrap_or_default());
        }
        let readings = match used.missed {
            0 => GridCell::from(used.samples.to_string()),
            missed => GridCell::new(
                Tone::Doubtful,
                format!("{} - {missed}", used.samples + missed),
            ),
        };
        if used.samples == 0 {
            let none = || GridCell::from("–");
            let cells = [
                none(),
                none(),
                none(),
                none(),
                none(),
                none(),
                none(),
                readings,
            ];
            grid.line(
                [
                    vec![GridCell::new(Tone::Strong, used.node.clone())],
                    cells.into(),
                ]
                .concat(),
            );
            continue;
        }
        grid.line([
            GridCell::new(Tone::Strong, used.node.clone()),
            GridCell::from(told(&used.user_percent, percent)),
            GridCell::from(told(&used.system_percent, percent)),
            GridCell::from(told(&used.iowait_percent, percent)),
            GridCell::from(told(&used.steal_percent, percent)),
            GridCell::from(told(&used.available_bytes, |it| {
                format!("≥ {}", units::bytes(it.min))
            })),
            GridCell::from(told(&used.page_cache_bytes, |it| {
                format!("≤ {}", units::bytes(it.max))
            })),
            GridCell::from(told(&used.dirty_bytes, |it| {
                format!("≤ {}", units::bytes(it.max))
            })),
            readings,
        ]);
    }
    grid.render(style)
}

fn devices(shown: &[&NodeUse], style: Style) -> String {
    let mut grid = Grid::new([
        words("device: mean / highest", 0),
        figures("reads/s", 2),
        figures("read", 0),
        figures("r_await", 1),
        figures("writes/s", 2),
        figures("written", 0),
        figures("w_await", 1),
        figures("queue", 3),
        figures("util", 0),
    ]);
    let rate = |range: &FigureRange| {
        let max = units::bytes_per_second(range.max);
        let mean = units::bytes_per_second(range.mean);
        // The unit stands once where it is the same.
        let unit = max.rsplit_once(' ').map_or("", |(_, unit)| unit);
        format!("{} / {max}", mean.trim_end_matches(unit).trim_end())
    };
    let each = |range: &Option<FigureRange>| {
        let mean = range.map(|range| units::latency(range.mean));
        GridCell::from(mean.unwrap_or_else(|| "–".to_owned()))
    };
    let mut step = None;
    for used in shown {
        if used.step != step {
            step.clone_from(&used.step);
            grid.heading(step.as_deref().unwrap_or_default());
        }
        for device in used.devices.iter().take(DEVICES) {
            grid.line([
                GridCell::from(format!("{} on {}", device.name, used.node)),
                GridCell::from(units::count(device.read_iops.mean.round())),
                GridCell::from(rate(&device.read_bw_bytes)),
                each(&device.read_await_ns),
                GridCell::from(units::count(device.write_iops.mean.round())),
                GridCell::from(rate(&device.write_bw_bytes)),
                each(&device.write_await_ns),
                GridCell::from(format!("{:.1}", device.queue.mean)),
                GridCell::from(percent(&device.util_percent)),
            ]);
        }
    }
    grid.render(style)
}

/// `seqrd, node0: fio 120 %, kubelet 4 % of a CPU`.
fn busiest(shown: &[&NodeUse], style: Style) -> String {
    let mut text = String::new();
    for used in shown {
        let names = named(used, PROCESSES);
        if names.is_empty() {
            continue;
        }
        let step = used
            .step
            .as_ref()
            .map_or_else(String::new, |step| format!("{step}, "));
        let line = format!("{step}{}: {} of a CPU", used.node, names.join(", "));
        text += &cut(&line, style.columns());
        text.push('\n');
    }
    text
}

/// The busiest processes by name: those of one name are one.
pub(crate) fn named(used: &NodeUse, most: usize) -> Vec<String> {
    let mut names: Vec<(&str, f64)> = Vec::new();
    for process in &used.processes {
        match names.iter_mut().find(|(name, _)| *name == process.name) {
            Some((_, percent)) => *percent += process.cpu_percent,
            None => names.push((&process.name, process.cpu_percent)),
        }
    }
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    let told = names
        .iter()
        .filter(|(_, percent)| *percent >= 0.5)
        .take(most);
    told.map(|(name, percent)| format!("{name} {percent:.0} %"))
        .collect()
}

/// What the devices below the servers' data delivered of what was read.
pub fn volume_lines(doc: &RunDocument, style: Style) -> String {
    let mut grid = Grid::new([
        words("volume", 0),
        figures("servers", 1),
        figures("jobs read", 0),
        figures("device read", 0),
        figures("from memory", 0),
        figures("device wrote", 2),
    ]);
    let bytes = |bytes: Option<u64>| match bytes {
        Some(bytes) => GridCell::from(units::bytes(bytes as f64)),
        None => GridCell::from("–"),
    };
    let mut step = None;
    let mut count = 0;
    let known = doc
        .volumes
        .iter()
        .filter(|volume| volume.read_bytes.is_some());
    for volume in known {
        if volume.step != step {
            step.clone_from(&volume.step);
            grid.heading(step.as_deref().unwrap_or_default());
            count = 0;
        }
        count += 1;
        if count > NODES {
            continue;
        }
        let share = volumes::share_from_memory(volume, &doc.jobs);
        let device = volume.device.as_deref().unwrap_or("–");
        grid.line([
            GridCell::from(format!("{device} on {}", volume.node)),
            GridCell::from(volume.hosts.len().to_string()),
            bytes(Some(volumes::issued_bytes(volume, &doc.jobs))),
            bytes(volume.read_bytes),
            match share {
                Some(share) if share > 0.0 => {
                    GridCell::new(Tone::Strong, format!("{:.0} %", share * 100.0))
                }
                Some(_) => GridCell::from("none seen"),
                None => GridCell::from("–"),
            },
            bytes(volume.write_bytes),
        ]);
    }
    match step.is_some() || count > 0 {
        true => grid.render(style),
        false => String::new(),
    }
}
