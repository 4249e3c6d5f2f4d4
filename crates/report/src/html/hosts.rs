//! The machines of a run on several: clocks and starts, rates, shares of the sum.

use fathom_model::result::ALL_CLIENTS;
use fathom_model::{Host, RunDocument, units};

use super::bars::bars;
use super::marks::DoubtMarks;
use super::markup::{HtmlCell, HtmlTable, PageSection};
use super::results::bar;
use super::story::Story;
use crate::shares::{HostShare, shares};
use crate::table::SHARE_PERCENTS;

/// The section; `None` for a run on one machine.
pub fn section(story: &Story, marks: &DoubtMarks) -> Option<PageSection> {
    let doc = &story.doc;
    let (figures, facts) = (figures(doc, marks), facts(doc));
    let body = match figures.is_empty() {
        true => facts,
        false => format!("{figures}<h3>Starts and clocks</h3>\n{facts}"),
    };
    PageSection::new("hosts", "Hosts", bars(story, marks) + &body)
}

/// Rates, shares, percentiles.
fn figures(doc: &RunDocument, marks: &DoubtMarks) -> String {
    let shares = shares(doc);
    let has = |told: fn(&HostShare) -> bool| shares.iter().any(told);
    let (steps, jobs) = (has(|s| s.step.is_some()), has(|s| s.job.is_some()));
    let lead = [(steps, "step"), (jobs, "job")].into_iter();
    let mut columns: Vec<&str> = lead.filter(|(is, _)| *is).map(|(_, name)| name).collect();
    columns.extend(["host", "direction", "#IOPS", "#bandwidth", "#share"]);
    let titles = SHARE_PERCENTS.map(|(_, title)| format!("#{title}"));
    columns.extend(titles.iter().map(String::as_str));
    let mut table = HtmlTable::new("host-figures", &columns);
    for share in &shares {
        let lead = [(steps, share.step), (jobs, share.job)].into_iter();
        let lead = lead.filter(|(is, _)| *is);
        let lead = lead.map(|(_, name)| HtmlCell::text(name.unwrap_or_default()).class("name"));
        table.row(lead.chain(cells(share, marks)));
    }
    table.finish_searchable("rows of hosts")
}

fn cells(share: &HostShare, marks: &DoubtMarks) -> Vec<HtmlCell> {
    let result = &share.result;
    let signs = marks.of_doubts(&result.kinds());
    let latency = result.clat.as_ref().or(result.lat.as_ref());
    let percent = share.share.map(|share| share * 100.0);
    let host = match share.host {
        Some(host) => HtmlCell::text(host.label()).class("name"),
        None => HtmlCell::text(ALL_CLIENTS).class("sum"),
    };
    let mut cells = vec![
        host,
        HtmlCell::text(share.dir.name()),
        HtmlCell::number(Some(result.iops), units::count).and(&signs),
        HtmlCell::number(Some(result.bw_bytes), units::bytes_per_second).and(&signs),
        HtmlCell::number(percent, |percent| format!("{percent:.1} %")).and(&bar(percent, 100.0)),
    ];
    cells.extend(SHARE_PERCENTS.map(|(percent, _)| {
        let ns = latency.and_then(|latency| latency.percentile_ns(percent));
        HtmlCell::number(ns.map(|ns| ns as f64), units::latency)
    }));
    cells
}

/// Starts, clocks, engines, and what became of each.
fn facts(doc: &RunDocument) -> String {
    let steps = doc.hosts.iter().any(|host| host.step.is_some());
    let columns = [
        "step",
        "host",
        "node",
        "calls itself",
        "engine",
        "#began",
        "#ran",
        "#clock ahead",
        "#± error",
        "outcome",
    ];
    let mut table = HtmlTable::new("host-facts", &columns[usize::from(!steps)..]);
    for host in &doc.hosts {
        let step = HtmlCell::text(host.step.as_deref().unwrap_or_default()).class("name");
        let step = Some(step).filter(|_| steps);
        table.row(step.into_iter().chain(fact_cells(doc, host)));
    }
    table.finish_searchable("hosts")
}

fn fact_cells(doc: &RunDocument, host: &Host) -> [HtmlCell; 9] {
    let of_step = doc.hosts.iter().filter(|other| other.step == host.step);
    let first = of_step.filter_map(|host| host.start_ms).reduce(f64::min);
    let began = host.start_ms.zip(first).map(|(start, first)| start - first);
    let ran = host.start_ms.zip(host.end_ms);
    let ran = ran.map(|(start, end)| (end - start).max(0.0));
    let clock = host.clock.as_ref();
    let name = |name: &Option<String>| HtmlCell::text(name.as_deref().unwrap_or("–"));
    let ms = |value: f64| format!("{value:+.2} ms");
    [
        HtmlCell::text(host.label()).class("name"),
        name(&host.node),
        name(&host.hostname),
        name(&host.engine_version),
        HtmlCell::number(began, |ms| format!("+{ms:.1} ms")),
        HtmlCell::number(ran, |ms| units::duration(ms as u64)),
        HtmlCell::number(clock.map(|clock| clock.offset_ms), ms),
        HtmlCell::number(clock.map(|clock| clock.error_ms), |ms| {
            format!("{ms:.2} ms")
        }),
        match &host.lost {
            Some(why) => HtmlCell::text(format!("lost: {why}")).class("bad"),
            None => HtmlCell::text(""),
        },
    ]
}
