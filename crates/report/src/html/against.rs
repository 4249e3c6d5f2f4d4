//! What the figures of a run come to: in percent of a baseline, and of what the link of
//! its device carries.

use std::fmt::Write as _;

use fathom_analysis::hosts::median;
use fathom_model::units;

use super::story::Story;
use fathom_sheet::html::escape;

/// A run in percent of a baseline.
#[derive(Debug, Clone, Default)]
pub struct AgainstBaseline {
    /// The baseline's name.
    pub name: String,
    /// What the run has in common with it, each with its percent of the baseline.
    pub percents: Vec<(String, u64)>,
    /// What makes the percentages doubtful, or why there are none.
    pub doubts: Vec<String>,
}

/// A line for each baseline.
pub(super) fn lines(all: &[AgainstBaseline]) -> String {
    let mut html = String::new();
    for one in all {
        let _ = write!(html, "<li>{}", sentence(one).unwrap_or_default());
        for doubt in &one.doubts {
            let _ = write!(html, "<small>{}</small>", escape(doubt));
        }
        html += "</li>\n";
    }
    match html.is_empty() {
        true => html,
        false => format!("<ul class=\"against\">\n{html}</ul>\n"),
    }
}

/// `None`: the doubts say why there are no percentages.
fn sentence(one: &AgainstBaseline) -> Option<String> {
    let mut sorted: Vec<&(String, u64)> = one.percents.iter().collect();
    sorted.sort_by_key(|(_, percent)| *percent);
    let name = escape(&one.name);
    let at = |(test, percent): &(String, u64)| format!("{percent} % ({})", escape(test));
    Some(match &sorted[..] {
        [] if !one.doubts.is_empty() => return None,
        [] => format!("nothing in common with baseline {name}"),
        [only] => format!("<b>{} % of {name}</b> {}", only.1, escape(&only.0)),
        [lowest, .., highest] => format!(
            "<b>{} % of {name}</b>, the median of {} figures; {} of them reach it; from {} to {}",
            median(sorted.iter().map(|(_, percent)| *percent as f64)).unwrap_or(0.0) as u64,
            sorted.len(),
            sorted.iter().filter(|(_, percent)| *percent >= 100).count(),
            at(lowest),
            at(highest)
        ),
    })
}

/// What a bandwidth is of the link of the run's one device, where both are known.
pub(super) fn of_link(story: &Story, bytes_per_second: f64) -> Option<String> {
    let [target] = &story.doc.environment.as_ref()?.targets[..] else {
        return None;
    };
    // Several machines have as many links.
    if story.doc.jobs.iter().any(|job| job.clients.is_some()) {
        return None;
    }
    let under = || target.file_system.as_ref()?.device.as_ref();
    let carries = target.device.as_ref().or_else(under)?;
    let carries = carries.link_bytes_per_second()? as f64;
    let link = units::bytes_per_second(carries);
    Some(match bytes_per_second > carries {
        true => format!("more than its link carries ({link}): not all from the device"),
        false => {
            let percent = 100.0 * bytes_per_second / carries;
            format!("{percent:.0} % of its link ({link})")
        }
    })
}
