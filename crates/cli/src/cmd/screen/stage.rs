//! The stage that makes the device ready: on the screen, in the summary and in
//! the document.

use fathom_flow::progress::{Current, Progress};
use fathom_flow::stages::Standing;
use fathom_model::{Stage, StageEnd, StageKind, units};
use fathom_sheet::style::{Style, Tone, cut, fitting};
use serde::Serialize;

use crate::live::{bar, clock};

/// What stands on the screen while it goes on: the stage, and the cell of it.
pub fn lines(now: &Standing, cell: Option<&Current>, style: Style) -> Vec<String> {
    let title = format!("stage {} of {}: {}", now.place, now.of, now.stage.title);
    let mut lines = vec![
        String::new(),
        style.paint(Tone::Strong, &title),
        far(now, style),
    ];
    lines.extend(cell.map(|cell| {
        let left = cell.remaining_ms.map(|ms| format!("{} left", clock(ms)));
        let parts = [cell.id.clone(), clock(cell.ran_ms)];
        fitting(style, parts.into_iter().chain(left))
    }));
    lines
}

/// How far it is: `━━━··· 12.3 GiB of 64 GiB  1m05s  4m20s left`.
pub fn far(now: &Standing, style: Style) -> String {
    let mut parts = Vec::new();
    parts.extend(now.share().map(|(done, left)| bar(style, done, left)));
    parts.extend(now.planned_bytes.map(|all| {
        let bytes = |bytes: u64| units::bytes(bytes as f64);
        format!("{} of {}", bytes(now.written_bytes), bytes(all))
    }));
    parts.push(clock(now.ran_ms));
    let settles = now.stage.kind == StageKind::Settle;
    match (now.left_ms, now.left_most_ms) {
        (Some(least), Some(most)) if settles && most > least => {
            parts.push(format!("{} to {} left", clock(least), clock(most)));
        }
        (None, Some(most)) if settles => parts.push(format!("{} left at most", clock(most))),
        (Some(left), _) => parts.push(format!("{} left", clock(left))),
        (None, _) => {}
    }
    fitting(style, parts)
}

/// A stage that has ended, in a line: a mark with its tone, and the text.
pub fn ended(stage: &Stage, end: &StageEnd, took_ms: u64) -> (Tone, &'static str, String) {
    let title = &stage.title;
    match end {
        StageEnd::Done => (Tone::Good, "✓", format!("{title}  {}", clock(took_ms))),
        StageEnd::Skipped { reason } => {
            (Tone::Doubtful, "–", format!("{title}  left out: {reason}"))
        }
        StageEnd::Waits { reason } => (Tone::Doubtful, "…", format!("{title}  waits: {reason}")),
        StageEnd::Interrupted { reason } => {
            (Tone::Doubtful, "–", format!("{title}  stopped: {reason}"))
        }
        StageEnd::NotAttained { reason } => {
            let text = format!("{title}  not attained: {reason}");
            (Tone::Doubtful, "!", text)
        }
        StageEnd::Failed { reason } => {
            let first = reason.lines().next().unwrap_or_default();
            (Tone::Bad, "✗", format!("{title}  {first}"))
        }
    }
}

/// The lines of a summary about the stages: the last attempt of each.
pub fn summary(progress: &Progress, style: Style, lines: &mut Vec<String>) {
    let stages = progress.stages().history().stages();
    for (nth, past) in stages.iter().enumerate() {
        let word = if nth == 0 { "ready" } else { "" };
        let text = match (&past.end, progress.stage()) {
            (Some(end), _) => {
                let ms = progress.stages().took_ms(&past.stage.id).unwrap_or(0);
                let (tone, mark, text) = ended(&past.stage, end, ms);
                format!("{} {text}", style.paint(tone, mark))
            }
            (None, Some(now)) => format!("{}  {}", past.stage.title, far(&now, style)),
            (None, None) => {
                let mark = style.paint(Tone::Doubtful, "…");
                format!("{mark} {}  interrupted", past.stage.title)
            }
        };
        let room = usize::from(style.width.unwrap_or(u16::MAX)).saturating_sub(10);
        lines.push(format!("{word:<9} {}", cut(&text, room.max(40))));
    }
}

/// A stage of the document.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Row {
    id: String,
    kind: StageKind,
    title: String,
    round: Option<u32>,
    /// How it ended, and why; null: it goes on or was interrupted.
    end: Option<StageEnd>,
    attempts: u32,
    written_bytes: u64,
}

/// The stage in progress in the document.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Now {
    id: String,
    place: usize,
    of: usize,
    written_bytes: u64,
    planned_bytes: Option<u64>,
    ran_ms: u64,
    left_ms: Option<u64>,
    left_most_ms: Option<u64>,
}

/// Every stage that has begun.
pub fn rows(progress: &Progress) -> Vec<Row> {
    let stages = progress.stages().history().stages().iter();
    let row = |past: &fathom_flow::Past| Row {
        id: past.stage.id.clone(),
        kind: past.stage.kind,
        title: past.stage.title.clone(),
        round: past.stage.round,
        end: past.end.clone(),
        attempts: past.attempts,
        written_bytes: past.written_bytes,
    };
    stages.map(row).collect()
}

/// The stage in progress.
pub fn now(progress: &Progress) -> Option<Now> {
    let now = progress.stage()?;
    Some(Now {
        id: now.stage.id.clone(),
        place: now.place,
        of: now.of,
        written_bytes: now.written_bytes,
        planned_bytes: now.planned_bytes,
        ran_ms: now.ran_ms,
        left_ms: now.left_ms,
        left_most_ms: now.left_most_ms,
    })
}
