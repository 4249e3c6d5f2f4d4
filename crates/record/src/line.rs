//! One line of a log.

use fathom_model::{Entry, Event};
use serde::Deserialize;

use crate::quick;

/// The kinds of event this Fathom knows, by their tags; a later Fathom may add
/// kinds within a version, and an older one then passes over them.
const KINDS: [&str; 24] = [
    "step",
    "step_ended",
    "stage",
    "stage_ended",
    "skipped",
    "resumed",
    "engine_started",
    "jobs",
    "preparing",
    "laying_out",
    "sample",
    "evidence",
    "interval",
    "status",
    "hosts",
    "written_beside",
    "kernel_counted",
    "doubted",
    "volumes",
    "booted",
    "note",
    "failure",
    "finished",
    "ended",
];

/// One line; `None` for an event of an unknown kind.
pub(crate) fn parse(line: &[u8]) -> Result<Option<Entry>, serde_json::Error> {
    #[derive(Deserialize)]
    struct LineKind<'a> {
        at_ms: u64,
        #[serde(borrow)]
        event: std::borrow::Cow<'a, str>,
    }
    // Most lines are samples, and as the writer writes them.
    if let Some(entry) = quick::sample(line) {
        return Ok(Some(entry));
    }
    let kind: LineKind = serde_json::from_slice(line)?;
    if kind.event == "sample" {
        // Read directly: its histogram is not first copied into a tree, as serde
        // does for enums with a tag.
        let event = Event::Sample(serde_json::from_slice(line)?);
        let at_ms = kind.at_ms;
        return Ok(Some(Entry { at_ms, event }));
    }
    if !KINDS.contains(&&*kind.event) {
        return Ok(None);
    }
    serde_json::from_slice(line).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails to compile when an event is added that [`KINDS`] may lack.
    fn kind_of(event: &Event) -> &'static str {
        match event {
            Event::Step { .. } => "step",
            Event::StepEnded { .. } => "step_ended",
            Event::Skipped { .. } => "skipped",
            Event::Stage { .. } => "stage",
            Event::StageEnded { .. } => "stage_ended",
            Event::Resumed { .. } => "resumed",
            Event::EngineStarted { .. } => "engine_started",
            Event::Jobs { .. } => "jobs",
            Event::Preparing { .. } => "preparing",
            Event::LayingOut { .. } => "laying_out",
            Event::Sample(_) => "sample",
            Event::Evidence(_) => "evidence",
            Event::Interval { .. } => "interval",
            Event::Status { .. } => "status",
            Event::Hosts { .. } => "hosts",
            Event::Doubted { .. } => "doubted",
            Event::Volumes { .. } => "volumes",
            Event::WrittenBeside { .. } => "written_beside",
            Event::KernelCounted { .. } => "kernel_counted",
            Event::Booted(_) => "booted",
            Event::Note { .. } => "note",
            Event::Failure(_) => "failure",
            Event::Finished { .. } => "finished",
            Event::Ended { .. } => "ended",
        }
    }

    #[test]
    fn kinds_are_the_tags_of_events() {
        for kind in KINDS {
            let lines = [
                r#""step":1,"of":1,"name":"x","engine":"x","argv":[],"names":[],"what":"x","text":"x","reason":"x","gap_ms":1"#,
                r#""point":{"id":"a/b","series":"a","x":"iodepth","settings":{}}"#,
                r#""stage":{"id":"purge","kind":"purge","title":"x"},"id":"purge","end":"done""#,
                r#""t_ms":1,"span_ms":1,"job":0,"dir":"read","ios":1,"bytes":1,"written_bytes":1,"done_bytes":1,"of_bytes":1,"kernel":"x""#,
                r#""doubt":"short","results":{"jobs":[]},"hosts":[],"volumes":[],"kind":"io","message":"x","status":"complete","outcome":"complete""#,
            ];
            let rest = lines.join(",");
            let line = format!(r#"{{"at_ms":1,"event":"{kind}",{rest}}}"#);
            let entry = parse(line.as_bytes()).unwrap().unwrap();
            assert_eq!(kind_of(&entry.event), kind);
            let line = format!(r#"{{ "event": "{kind}", {rest}, "at_ms": 1 }}"#);
            assert_eq!(parse(line.as_bytes()).unwrap().unwrap(), entry);
        }
    }
}
