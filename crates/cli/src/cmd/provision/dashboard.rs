//! The screen of many drives at once: a line each, and what happened last. Each drive has
//! a record of its own, which `fathom watch` shows on the screen of all runs; this one is
//! an overview of several.

use std::collections::VecDeque;

use fathom_model::{Event, RunStatus};
use fathom_sheet::style::{Style, Tone};

use super::row::{DriveRow, DriveState, Notice};
use crate::cmd::screen::time_of_day;
use crate::live::{InPlace, LiveOptions, clock};
use crate::out;

/// How many of the last happenings stay on the screen.
const RECENT: usize = 6;
/// Lines beside those of the drives and of what happened: title, counts, and two that
/// are empty.
const BESIDE: usize = 4;

/// Time between two redraws, at the least: the machine has other work.
const REDRAW_MS: u64 = 200;

/// Shows the drives while they are provisioned.
#[derive(Debug)]
pub struct Dashboard {
    options: LiveOptions,
    place: InPlace,
    title: String,
    rows: Vec<DriveRow>,
    recent: VecDeque<(u64, usize, Notice)>,
    started_ms: u64,
    /// Whether something is not on the screen yet.
    changed: bool,
    drawn_ms: u64,
}

/// Drives by where they are.
#[derive(Debug, Default, PartialEq, Eq)]
struct DriveCounts {
    running: usize,
    done: usize,
    failed: usize,
    stopped: usize,
}

impl Dashboard {
    /// Shows nothing yet but the title.
    pub fn new(options: LiveOptions, title: String, rows: Vec<DriveRow>, now_ms: u64) -> Self {
        let place = InPlace::new(options);
        if !options.quiet && !place.is_there() {
            out::note(&title);
        }
        Self {
            options,
            place,
            title,
            rows,
            recent: VecDeque::new(),
            started_ms: now_ms,
            changed: true,
            drawn_ms: 0,
        }
    }

    /// Takes the next event of a drive, which happened at `at_ms` since 1970 UTC.
    pub fn take(&mut self, drive: usize, at_ms: u64, event: &Event) {
        let Some(row) = self.rows.get_mut(drive) else {
            return;
        };
        self.changed = true;
        let told = row.take(at_ms, event);
        if let Event::Stage { stage } = event {
            self.plain(drive, &format!("{}: {}", stage.id, stage.title), false);
        }
        if let Some(told) = told {
            self.tell(drive, at_ms, told);
        }
    }

    /// Says how a drive ended, where its events do not.
    pub fn fail(&mut self, drive: usize, at_ms: u64, reason: &str) {
        if let Some(told) = self.rows.get_mut(drive).and_then(|row| row.fail(reason)) {
            self.changed = true;
            self.tell(drive, at_ms, told);
        }
    }

    fn tell(&mut self, drive: usize, at_ms: u64, told: Notice) {
        let bad = told.tone == Tone::Bad;
        self.plain(drive, &format!("{} {}", told.mark, told.text), bad);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((at_ms, drive, told));
    }

    /// The width of a column.
    fn widest(&self, width: impl Fn(&DriveRow) -> usize) -> usize {
        self.rows.iter().map(width).max().unwrap_or(0)
    }

    /// A line of its own, where none can stay in place. What is bad is told also
    /// to those who want quiet.
    fn plain(&self, drive: usize, text: &str, bad: bool) {
        if !self.place.is_there() && (bad || !self.options.quiet) {
            let columns = self.widest(DriveRow::name_width);
            out::note(format_args!("{:<columns$}  {text}", self.rows[drive].name));
        }
    }

    /// Draws what has changed since the last time, at `now_ms` since 1970 UTC.
    pub fn draw(&mut self, now_ms: u64) {
        let soon = now_ms.saturating_sub(self.drawn_ms) < REDRAW_MS;
        if self.place.is_there() && !soon && std::mem::take(&mut self.changed) {
            self.drawn_ms = now_ms;
            let (style, rows) = self.options.now();
            self.place.draw(&self.lines(now_ms, style, rows));
        }
    }

    /// Takes the screen away.
    pub fn finish(&mut self) {
        self.place.finish();
    }

    fn lines(&self, now_ms: u64, style: Style, rows: usize) -> Vec<String> {
        let mut lines = vec![
            style.paint(Tone::Strong, &self.title),
            self.counts_line(style, now_ms),
            String::new(),
        ];
        let room = rows.saturating_sub(BESIDE).max(1);
        let shown = self.shown(room);
        let name = self.widest(DriveRow::name_width);
        let about = self.widest(DriveRow::about_width);
        for &drive in &shown {
            lines.push(self.rows[drive].line(now_ms, style, name, about));
        }
        let hidden = self.rows.len() - shown.len();
        if hidden > 0 {
            let text = format!("… {hidden} more drives");
            lines.push(style.paint(Tone::Faint, &text));
        }
        let left = room.saturating_sub(shown.len() + usize::from(hidden > 0));
        let recent = self.recent.iter().rev().take(left);
        let recent: Vec<String> = recent
            .map(|(at_ms, drive, told)| self.recent_line(*at_ms, *drive, told, style))
            .collect();
        if !recent.is_empty() {
            lines.push(String::new());
        }
        lines.extend(recent.into_iter().rev());
        lines
    }

    /// The drives there is room for: those that run before those that ended
    /// well, in their order.
    fn shown(&self, room: usize) -> Vec<usize> {
        let all: Vec<usize> = (0..self.rows.len()).collect();
        if all.len() <= room {
            return all;
        }
        let ended_well =
            |drive: &usize| self.rows[*drive].state() == DriveState::Ended(RunStatus::Complete);
        let (well, other): (Vec<usize>, Vec<usize>) = all.into_iter().partition(ended_well);
        let mut shown: Vec<usize> = other.into_iter().chain(well).take(room - 1).collect();
        shown.sort_unstable();
        shown
    }

    fn counts_line(&self, style: Style, now_ms: u64) -> String {
        let counts = self.counts();
        let kinds = [
            (counts.running, "run", Tone::Plain),
            (counts.done, "done", Tone::Good),
            (counts.failed, "failed", Tone::Bad),
            (counts.stopped, "stopped", Tone::Doubtful),
        ];
        let mut parts: Vec<String> = kinds
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, word, tone)| style.paint(tone, &format!("{count} {word}")))
            .collect();
        parts.push(clock(now_ms.saturating_sub(self.started_ms)));
        if let Some(left_ms) = self.rows.iter().filter_map(|row| row.left_ms(now_ms)).max() {
            parts.push(format!("{} left at least", clock(left_ms)));
        }
        parts.join("  ")
    }

    fn counts(&self) -> DriveCounts {
        let mut counts = DriveCounts::default();
        for row in &self.rows {
            *match row.state() {
                DriveState::Waiting | DriveState::Running => &mut counts.running,
                DriveState::Ended(RunStatus::Complete) => &mut counts.done,
                DriveState::Ended(RunStatus::Interrupted) => &mut counts.stopped,
                DriveState::Ended(_) => &mut counts.failed,
            } += 1;
        }
        counts
    }

    fn recent_line(&self, at_ms: u64, drive: usize, told: &Notice, style: Style) -> String {
        let name = self.widest(DriveRow::name_width);
        format!(
            "{}  {:<name$}  {} {}",
            style.paint(Tone::Faint, &time_of_day(at_ms)),
            self.rows[drive].name,
            style.paint(told.tone, told.mark),
            told.text
        )
    }
}

#[cfg(test)]
mod tests {
    use fathom_flow::plan_log::PlannedStage;
    use fathom_model::{Direction, Failure, FailureKind, Sample, Stage, StageEnd, StageKind};
    use fathom_sheet::style::width;

    use super::*;

    fn stage_of(id: &str, kind: StageKind) -> Stage {
        Stage {
            id: id.to_owned(),
            kind,
            title: format!("the stage {id}"),
            round: None,
        }
    }

    fn stage(id: &str, kind: StageKind) -> Event {
        Event::Stage {
            stage: Box::new(stage_of(id, kind)),
        }
    }

    fn style(columns: u16) -> Style {
        Style {
            width: Some(columns),
            ..Style::default()
        }
    }

    fn board(drives: usize) -> Dashboard {
        let options = LiveOptions {
            quiet: true,
            style: Style::default(),
        };
        let stages = ["purge", "fill-seq-1", "settle-rand"].map(|id| PlannedStage {
            stage: stage_of(id, StageKind::Fill),
            write_bytes: id.starts_with("fill").then_some(13_000_000_000),
            least_ms: 60_000,
            most_ms: None,
        });
        let rows = (0..drives)
            .map(|n| {
                let about = format!("SAMSUNG MZVL21T0HCLR-00B00 …{n}456");
                DriveRow::new(format!("nvme{n}n1"), about, stages.to_vec())
            })
            .collect();
        Dashboard::new(options, format!("{drives} drives"), rows, 0)
    }

    fn second(board: &mut Dashboard, drive: usize, t_ms: u64) {
        let sample = Sample {
            t_ms,
            span_ms: 1000,
            job: 0,
            dir: Direction::Write,
            ios: 1000,
            bytes: 1_300_000_000,
            clat: None,
            lat: None,
        };
        let remaining_ms = Some(3000);
        board.take(drive, t_ms, &Event::Sample(sample));
        board.take(drive, t_ms, &Event::Interval { t_ms, remaining_ms });
    }

    /// Two run, one is purged, one has failed.
    fn busy() -> Dashboard {
        let mut board = board(4);
        for drive in 0..4 {
            board.take(drive, 0, &stage("purge", StageKind::Purge));
        }
        let what = "nvme-format".to_owned();
        board.take(3, 0, &Event::Preparing { what });
        for drive in 0..3 {
            let id = "purge".to_owned();
            let end = StageEnd::Done;
            board.take(drive, 0, &Event::StageEnded { id, end });
            board.take(drive, 0, &stage("fill-seq-1", StageKind::Fill));
            second(&mut board, drive, 1000);
        }
        let (id, reason) = ("fill-seq-1".to_owned(), "no such device".to_owned());
        let end = StageEnd::Failed { reason };
        board.take(2, 1400, &Event::StageEnded { id, end });
        let gone = Failure::new(FailureKind::NoDevice, "the device is gone\nto do: look");
        board.take(2, 1500, &Event::Failure(gone));
        let status = RunStatus::Failed;
        board.take(2, 1500, &Event::Ended { status });
        board
    }

    #[test]
    fn every_drive_has_a_line_with_stage_bar_rate_and_time_left() {
        let lines = busy().lines(2000, style(100), 30);
        assert_eq!(lines[1], "3 run  1 failed  2 s  1m09s left at least");
        assert!(lines[3].starts_with("nvme0n1  SAMSUNG"), "{}", lines[3]);
        assert!(lines[3].contains("2/3 fill-seq-1"), "{}", lines[3]);
        assert!(
            lines[3].ends_with("1.21 GiB/s      9 s left"),
            "{}",
            lines[3]
        );
        assert!(lines[3].contains("━··"), "{}", lines[3]);
        assert!(lines[5].ends_with("✗ the device is gone"), "{}", lines[5]);
        assert!(lines[6].contains("1/3 purge") && lines[6].ends_with("nvme-format"));
        let happened = lines.last().unwrap();
        assert!(
            happened.ends_with("nvme2n1  ✗ the device is gone"),
            "{happened}"
        );
    }

    #[test]
    fn lines_keep_to_narrow_windows_and_low_ones_show_what_runs() {
        let board = busy();
        for columns in [60, 72, 80, 100, 140] {
            for line in &board.lines(2000, style(columns), 30)[3..7] {
                assert!(width(line) <= usize::from(columns), "{columns}: {line:?}");
            }
        }
        let lines = board.lines(2000, style(40), 30);
        assert!(lines.iter().any(|line| line.contains("nvme0n1  2/3 fill")));
        let mut many = self::board(40);
        for drive in 0..30 {
            let status = RunStatus::Complete;
            many.take(drive, 0, &Event::Ended { status });
        }
        let lines = many.lines(2000, style(80), 19);
        assert!(lines.len() < 20, "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("nvme39n1")));
        assert!(lines.iter().any(|line| line == "… 26 more drives"));
    }
}
