//! One page: its head, what is on it, its foot.

use std::fmt::Write as _;

use fathom_analysis::snia::{Findings, NOTICE, Setup};
use fathom_model::environment::BlockDevice;
use fathom_model::{StageKind, units};

use super::{Document, words};
use crate::html::plain::svg_within;
use fathom_sheet::chart::{Chart, Size};
use fathom_sheet::html::escape;

/// A page without its head: that needs the number of pages.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) title: String,
    pub(super) body: String,
}

/// Charts fill a page of A4 lying on its side, below the head.
const CHART: Size = Size {
    width: 1000.0,
    height: 430.0,
};
/// Where something stands beside the chart.
const NARROW: Size = Size {
    width: 640.0,
    height: 430.0,
};

impl Sheet {
    /// A page with one chart.
    pub(super) fn chart(title: String, chart: &Chart) -> Self {
        let body = format!("<figure>{}</figure>\n", svg_within(chart, CHART, &title));
        Self { title, body }
    }

    /// A page with a chart and HTML beside it.
    pub(super) fn beside(title: String, chart: &Chart, html: &str) -> Self {
        let figure = svg_within(chart, NARROW, &title);
        let body =
            format!("<div class=\"beside\"><figure>{figure}</figure><div>{html}</div></div>\n");
        Self { title, body }
    }
}

/// The pages of one test as HTML, each with its head.
pub(super) fn html(doc: &Document, findings: &Findings, sheets: &[Sheet], made: &str) -> String {
    let mut html = String::new();
    let of = sheets.len();
    for (place, sheet) in sheets.iter().enumerate() {
        let _ = write!(
            html,
            "<article class=\"sheet\" id=\"{test}{page}\">\n{head}<h3>{title}</h3>\n{body}\
             <p class=\"notice\"><span>{NOTICE}</span><span>{run} · page {page} of {of}</span></p>\n\
             </article>\n",
            test = escape(&findings.setup.stage_id("", "").replace('/', "-")),
            page = place + 1,
            head = head(doc, findings, made),
            title = escape(&sheet.title),
            body = sheet.body,
            run = escape(&doc.run),
        );
    }
    html
}

/// Names and values; what has no value is left out.
type Rows = Vec<(&'static str, Option<String>)>;

/// What every page says of test and storage platform, set-up and parameters.
fn head(doc: &Document, findings: &Findings, made: &str) -> String {
    let setup = &findings.setup;
    let day = |text: &str| text.replace('T', " ").get(..16).unwrap_or(text).to_owned() + " UTC";
    let environment = doc.environment.as_ref();
    let device = environment.and_then(|e| e.targets.iter().find_map(|t| t.device.as_ref()));
    let columns = [
        ("Test platform", platform(doc)),
        ("Storage platform", storage(device)),
        ("Set-up", set_up(findings)),
        ("Test parameters", parameters(setup)),
    ];
    let mut html = format!(
        "<header class=\"head\"><p><b>{} test, {}</b> · interpretation of SSS PTS 2.0.x · {}\
         </p><p>measured {} to {} · report {made} · set-up revision 1</p>\n<div class=\"columns\">",
        escape(&setup.title()),
        setup.class,
        escape(&doc.name),
        day(&doc.started),
        day(&doc.last),
    );
    for (title, rows) in columns {
        let _ = write!(html, "<dl><dt class=\"of\">{title}</dt>");
        for (name, value) in rows {
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                continue;
            };
            let _ = write!(html, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
        }
        html += "</dl>";
    }
    html + "</div></header>\n"
}

fn platform(doc: &Document) -> Rows {
    let environment = doc.environment.as_ref();
    let cpu = environment.map(|e| match &e.cpu_model {
        Some(model) => format!("{} × {model}", e.cpus),
        None => e.cpus.to_string(),
    });
    let memory = environment.and_then(|e| e.memory_bytes);
    let fathom = environment.map(|e| format!("Fathom {}", e.fathom_version));
    let software = fathom.into_iter().chain(doc.engines.iter().cloned());
    let software: Vec<String> = software.collect();
    vec![
        ("Host", environment.map(|e| e.hostname.clone())),
        (
            "System",
            environment.map(|e| format!("{} {} {}", e.os, e.kernel, e.arch)),
        ),
        ("CPU", cpu),
        ("Memory", memory.map(|bytes| units::bytes(bytes as f64))),
        ("Software", Some(software.join(", "))),
    ]
}

fn set_up(findings: &Findings) -> Rows {
    let of = |kind| words::stages(findings, kind).or(Some("none".to_owned()));
    vec![
        ("Purge", of(StageKind::Purge)),
        ("Pre-conditioning", of(StageKind::Fill)),
        ("Write cache", Some(words::write_cache(&findings.setup))),
    ]
}

fn parameters(setup: &Setup) -> Rows {
    let threads = format!("{} × {}", setup.jobs, setup.iodepth);
    vec![
        ("Stimulus", Some(words::stimulus(setup))),
        ("Data", Some("random".to_owned())),
        ("Active range", Some(words::active_range(setup))),
        ("Threads × QD", Some(threads)),
        ("Steady state", Some(words::criterion(setup))),
    ]
}

fn storage(device: Option<&BlockDevice>) -> Rows {
    let Some(device) = device else {
        return vec![(
            "Device",
            Some("simulated, or not a block device".to_owned()),
        )];
    };
    // Capacities are decimal in the specification.
    let capacity = device.capacity_bytes as f64;
    let decimal = match capacity {
        c if c >= 1e12 => format!("{:.2} TB", c / 1e12),
        c if c >= 1e9 => format!("{:.2} GB", c / 1e9),
        c => format!("{:.2} MB", c / 1e6),
    };
    vec![
        ("Device", Some(device.name.clone())),
        ("Model", device.model.clone()),
        ("Serial", device.serial.clone()),
        ("Firmware", device.firmware.clone()),
        ("Behind it", device.backing.clone()),
        (
            "Capacity",
            Some(format!("{decimal} ({} bytes)", device.capacity_bytes)),
        ),
        ("Link", device.pcie_link.clone()),
    ]
}
