//! One drive on the dashboard: where its flow stands, from its events.

use fathom_analysis::rate::Rates;
use fathom_flow::plan_log::PlannedStage;
use fathom_flow::stages::{Stages, Standing};
use fathom_model::{Direction, Event, RunStatus, StageEnd, units};
use fathom_sheet::style::{Style, Tone, cut, width};

use crate::live::{bar_of, clock, laying_out};

/// Columns of the progress bar, at the most and at the least.
const BAR_MAX: usize = 24;
const BAR_MIN: usize = 8;
/// Columns of the place of a stage, of a rate and of a time with what is between
/// them.
const STAGE: usize = 18;
const RATE: usize = 10;
const LEFT: usize = 12;
const BETWEEN: usize = 2;
/// Model and serial number are shown when there are so many columns for them.
const ABOUT_MIN: usize = 10;
/// The shortest of them that says something.
const ABOUT_MAX: usize = 28;

/// A drive as the dashboard shows it.
#[derive(Debug)]
pub struct DriveRow {
    /// Its kernel name.
    pub name: String,
    /// Model and serial number.
    about: String,
    /// Its stages, planned as if all went well.
    stages: Stages,
    /// What is done before the jobs run, or without any.
    preparing: Option<String>,
    rates: Rates,
    adding: Rates,
    state: DriveState,
    /// What came of its last stage or of all, in a line.
    last: Option<Notice>,
}

/// A line about something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub tone: Tone,
    pub mark: &'static str,
    pub text: String,
}

/// The mark of a load that did not become steady.
const UNSTEADY: &str = "!";

/// Where a drive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriveState {
    Waiting,
    Running,
    Ended(RunStatus),
}

impl Notice {
    fn new(tone: Tone, mark: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        // What to do stands in the lines below the first.
        let first = text.lines().next().unwrap_or_default().to_owned();
        Self {
            tone,
            mark,
            text: first,
        }
    }
}

/// How a stage ended, in a line.
pub fn told_end(end: &StageEnd) -> Notice {
    match end {
        StageEnd::Done => Notice::new(Tone::Good, "✓", "done"),
        StageEnd::Skipped { reason } => {
            Notice::new(Tone::Doubtful, "–", format!("skipped: {reason}"))
        }
        StageEnd::Waits { reason } => Notice::new(Tone::Doubtful, "…", reason.clone()),
        StageEnd::Interrupted { reason } => {
            Notice::new(Tone::Doubtful, "–", format!("stopped: {reason}"))
        }
        StageEnd::NotAttained { reason } => {
            Notice::new(Tone::Doubtful, UNSTEADY, format!("not steady: {reason}"))
        }
        StageEnd::Failed { reason } => Notice::new(Tone::Bad, "✗", reason.clone()),
    }
}

impl DriveRow {
    /// A drive that has not begun.
    pub fn new(name: String, about: String, stages: Vec<PlannedStage>) -> Self {
        Self {
            name,
            about,
            stages: Stages::new(stages),
            preparing: None,
            rates: Rates::new(),
            adding: Rates::new(),
            state: DriveState::Waiting,
            last: None,
        }
    }

    pub fn state(&self) -> DriveState {
        self.state
    }

    /// Takes the drive's next event, which happened at `at_ms` since 1970 UTC; gives what
    /// is worth a line.
    pub fn take(&mut self, at_ms: u64, event: &Event) -> Option<Notice> {
        self.stages.take(at_ms, event);
        if !matches!(self.state, DriveState::Ended(_)) {
            self.state = DriveState::Running;
        }
        match event {
            Event::Stage { .. } => {
                self.rates.clear();
                self.adding.clear();
                self.preparing = None;
            }
            Event::StageEnded { id, end } => {
                let mut told = told_end(end);
                told.text = format!("{id}  {}", told.text);
                self.rates.clear();
                return self.tell(told);
            }
            Event::Preparing { what } => self.preparing = Some(what.clone()),
            Event::LayingOut {
                done_bytes,
                of_bytes,
            } => self.preparing = Some(laying_out(*done_bytes, *of_bytes)),
            Event::Sample(sample) => self.adding.entry(sample.dir).or_default().add(sample),
            Event::Interval { .. } => {
                self.rates = std::mem::take(&mut self.adding);
                if !self.rates.is_empty() {
                    self.preparing = None;
                }
            }
            Event::Resumed { gap_ms, .. } => {
                let text = format!("goes on after {}", clock(*gap_ms));
                return self.tell(Notice::new(Tone::Strong, "↻", text));
            }
            // One in a stage is what the stage ends with.
            Event::Failure(failure) if !self.stages.is_open() => {
                return self.tell(Notice::new(Tone::Bad, "✗", failure.message.clone()));
            }
            Event::Note { text } => return Some(Notice::new(Tone::Faint, "-", text.clone())),
            Event::Ended { status } => return self.end(*status),
            _ => {}
        }
        None
    }

    fn tell(&mut self, told: Notice) -> Option<Notice> {
        if self.last.as_ref() == Some(&told) {
            return None;
        }
        self.last = Some(told.clone());
        Some(told)
    }

    /// The drive's run is over: what came of it stays in its line.
    pub fn end(&mut self, status: RunStatus) -> Option<Notice> {
        if self.state == DriveState::Ended(status) {
            return None;
        }
        self.state = DriveState::Ended(status);
        self.rates.clear();
        match status {
            RunStatus::Complete => {
                // That it is not steady is the last thing that was told.
                let told = match self.last.as_ref().map(|last| last.mark) {
                    Some(UNSTEADY) => Notice::new(Tone::Doubtful, UNSTEADY, "not steady"),
                    _ => Notice::new(Tone::Good, "✓", "provisioned"),
                };
                self.tell(told)
            }
            RunStatus::Interrupted => self.tell(Notice::new(
                Tone::Doubtful,
                "…",
                "stopped; --resume continues",
            )),
            RunStatus::Failed | RunStatus::Running => None,
        }
    }

    /// It failed without saying so in its events.
    pub fn fail(&mut self, reason: &str) -> Option<Notice> {
        self.state = DriveState::Ended(RunStatus::Failed);
        self.tell(Notice::new(Tone::Bad, "✗", reason))
    }

    /// Its line; names take `name` columns, models `about`.
    pub fn line(&self, now_ms: u64, style: Style, name: usize, about: usize) -> String {
        let columns = style.width.map_or(usize::MAX, usize::from);
        let mut line = style.paint(Tone::Strong, &padded(&self.name, name));
        let mut room = columns.saturating_sub(name + BETWEEN);
        // What is fixed, and a bar of the least length.
        let fixed = STAGE + BAR_MIN + RATE + LEFT + 3 * BETWEEN;
        let spare = room.saturating_sub(fixed + BETWEEN);
        if spare >= ABOUT_MIN && about > 0 {
            let about = about.min(spare).min(ABOUT_MAX);
            let text = padded(&cut(&self.about, about), about);
            line += &format!("  {}", style.paint(Tone::Faint, &text));
            room = room.saturating_sub(about + BETWEEN);
        }
        format!("{line}  {}", self.rest(now_ms, style, room))
    }

    fn rest(&self, now_ms: u64, style: Style, room: usize) -> String {
        let told = |told: &Notice| {
            let text = cut(&told.text, room.saturating_sub(2));
            format!("{} {text}", style.paint(told.tone, told.mark))
        };
        match (self.state, &self.last, self.stages.standing(now_ms)) {
            (DriveState::Ended(_), Some(last), _) => told(last),
            (DriveState::Ended(status), None, _) => cut(&status.to_string(), room),
            (DriveState::Running, _, Some(now)) => self.running(&now, style, room),
            (DriveState::Running | DriveState::Waiting, _, _) => style.paint(Tone::Faint, "begins"),
        }
    }

    fn running(&self, now: &Standing, style: Style, room: usize) -> String {
        let place = STAGE.min(room);
        let stage = format!("{}/{} {}", now.place, now.of, now.stage.id);
        let stage = padded(&cut(&stage, place), place);
        let mut left = room.saturating_sub(STAGE);
        if let Some(what) = &self.preparing {
            return stage + "  " + &cut(what, left.saturating_sub(BETWEEN));
        }
        let time = match now.left_ms {
            Some(ms) => format!("{} left", clock(ms)),
            None => clock(now.ran_ms),
        };
        // The figures first: the bar takes what they leave.
        let mut figures = Vec::new();
        for (text, columns) in [(time, LEFT), (self.rate(), RATE)] {
            if let Some(rest) = left.checked_sub(columns + BETWEEN) {
                figures.insert(0, format!("{text:>columns$}"));
                left = rest;
            }
        }
        let mut parts = vec![stage];
        if let Some((done, rest)) = now.share()
            && left >= BAR_MIN + BETWEEN
        {
            let columns = (left - BETWEEN).min(BAR_MAX);
            parts.push(bar_of(style, columns, done, rest));
        }
        parts.extend(figures);
        parts.join("  ")
    }

    /// What fills a drive is told by its bandwidth, that of both directions.
    fn rate(&self) -> String {
        if self.rates.is_empty() {
            return String::new();
        }
        let moved = self
            .rates
            .iter()
            .filter(|(dir, _)| **dir != Direction::Trim);
        units::bytes_per_second(moved.map(|(_, rate)| rate.bw_bytes).sum())
    }

    /// The least time in ms after which the drive is done, if what fills it stays
    /// as fast; `None`: that is not known yet, or it is over.
    pub fn left_ms(&self, now_ms: u64) -> Option<u64> {
        let is_running = self.stages.is_open();
        is_running.then(|| self.stages.left_ms(now_ms)).flatten()
    }

    /// Columns that its name takes.
    pub fn name_width(&self) -> usize {
        width(&self.name)
    }

    /// Columns that its model and serial number take.
    pub fn about_width(&self) -> usize {
        width(&self.about)
    }
}

/// `text` with blanks up to `columns`.
fn padded(text: &str, columns: usize) -> String {
    let blanks = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(blanks))
}
