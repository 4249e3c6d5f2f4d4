//! One drive on the dashboard: where its flow stands, from its events.

use fathom_analysis::rate::Rates;
use fathom_model::{Direction, Event, RunStatus, Stage, StageEnd, StageKind, units};
use fathom_report::style::{Style, Tone, cut, width};

use crate::live::{bar_of, clock};

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
pub struct Row {
    /// Its kernel name.
    pub name: String,
    /// Model and serial number.
    about: String,
    /// Its stages, in order, as if all went well.
    stages: Vec<Ahead>,
    /// Bytes per second of the last interval that a fill went on.
    fill_rate: Option<f64>,
    stage: Option<Current>,
    rates: Rates,
    adding: Rates,
    /// Time of its run in ms.
    t_ms: u64,
    state: State,
    /// What came of its last stage or of all, in a line.
    last: Option<Told>,
}

/// A stage that may come, and what it takes.
#[derive(Debug, Clone, Default)]
pub struct Ahead {
    pub id: String,
    /// Bytes that a fill writes.
    pub bytes: Option<u64>,
    /// The least time of everything else, in ms.
    pub least_ms: u64,
}

/// A line about something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub tone: Tone,
    pub mark: &'static str,
    pub text: String,
}

#[derive(Debug)]
struct Current {
    stage: Stage,
    /// Time of the run when it began, in ms.
    began_ms: u64,
    remaining_ms: Option<u64>,
    /// What is done before the jobs run, or without any.
    doing: Option<String>,
}

/// The mark of a load that did not become steady.
const UNSTEADY: &str = "!";

/// Where a drive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Waiting,
    Running,
    Ended(RunStatus),
}

impl Told {
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
pub fn told_end(end: &StageEnd) -> Told {
    match end {
        StageEnd::Done => Told::new(Tone::Good, "✓", "done"),
        StageEnd::Skipped { reason } => {
            Told::new(Tone::Doubtful, "–", format!("skipped: {reason}"))
        }
        StageEnd::NotAttained { reason } => {
            Told::new(Tone::Doubtful, UNSTEADY, format!("not steady: {reason}"))
        }
        StageEnd::Failed { reason } => Told::new(Tone::Bad, "✗", reason.clone()),
    }
}

impl Row {
    /// A drive that has not begun.
    pub fn new(name: String, about: String, stages: Vec<Ahead>) -> Self {
        Self {
            name,
            about,
            stages,
            fill_rate: None,
            stage: None,
            rates: Rates::new(),
            adding: Rates::new(),
            t_ms: 0,
            state: State::Waiting,
            last: None,
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Takes the drive's next event; gives what is worth a line.
    pub fn take(&mut self, event: &Event) -> Option<Told> {
        if !matches!(self.state, State::Ended(_)) {
            self.state = State::Running;
        }
        match event {
            Event::Stage { stage } => self.begin(stage),
            Event::StageEnded { id, end } => {
                let mut told = told_end(end);
                told.text = format!("{id}  {}", told.text);
                self.rates.clear();
                self.stage = None;
                return self.tell(told);
            }
            Event::Preparing { what } => {
                if let Some(current) = &mut self.stage {
                    current.doing = Some(what.clone());
                }
            }
            Event::Sample(sample) => self.adding.entry(sample.dir).or_default().add(sample),
            Event::Interval { t_ms, remaining_ms } => {
                self.t_ms = *t_ms;
                self.rates = std::mem::take(&mut self.adding);
                let bandwidth = self.bandwidth();
                if let Some(current) = &mut self.stage {
                    if current.stage.kind == StageKind::Fill && bandwidth > 0.0 {
                        self.fill_rate = Some(bandwidth);
                    }
                    current.remaining_ms = *remaining_ms;
                    current.doing = None;
                }
            }
            Event::Resumed { gap_ms, .. } => {
                let text = format!("goes on after {}", clock(*gap_ms));
                return self.tell(Told::new(Tone::Strong, "↻", text));
            }
            // One in a stage is what the stage ends with.
            Event::Failure(failure) if self.stage.is_none() => {
                return self.tell(Told::new(Tone::Bad, "✗", failure.message.clone()));
            }
            Event::Note { text } => return Some(Told::new(Tone::Faint, "-", text.clone())),
            Event::Ended { status } => return self.end(*status),
            _ => {}
        }
        None
    }

    fn tell(&mut self, told: Told) -> Option<Told> {
        if self.last.as_ref() == Some(&told) {
            return None;
        }
        self.last = Some(told.clone());
        Some(told)
    }

    fn begin(&mut self, stage: &Stage) {
        self.rates.clear();
        self.adding.clear();
        self.stage = Some(Current {
            stage: stage.clone(),
            began_ms: self.t_ms,
            remaining_ms: None,
            doing: None,
        });
    }

    /// The drive's run is over: what came of it stays in its line.
    pub fn end(&mut self, status: RunStatus) -> Option<Told> {
        if self.state == State::Ended(status) {
            return None;
        }
        self.state = State::Ended(status);
        self.rates.clear();
        match status {
            RunStatus::Complete => {
                // That it is not steady is the last thing that was told.
                let told = match self.last.as_ref().map(|last| last.mark) {
                    Some(UNSTEADY) => Told::new(Tone::Doubtful, UNSTEADY, "not steady"),
                    _ => Told::new(Tone::Good, "✓", "provisioned"),
                };
                self.tell(told)
            }
            RunStatus::Interrupted => {
                self.tell(Told::new(Tone::Doubtful, "…", "stopped; --resume goes on"))
            }
            RunStatus::Failed | RunStatus::Running => None,
        }
    }

    /// It failed without saying so in its events.
    pub fn fail(&mut self, reason: &str) -> Option<Told> {
        self.state = State::Ended(RunStatus::Failed);
        self.tell(Told::new(Tone::Bad, "✗", reason))
    }

    /// Its line in `columns`; names take `name` columns, models `about`.
    pub fn line(&self, style: Style, columns: usize, name: usize, about: usize) -> String {
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
        format!("{line}  {}", self.rest(style, room))
    }

    fn rest(&self, style: Style, room: usize) -> String {
        let told = |told: &Told| {
            let text = cut(&told.text, room.saturating_sub(2));
            format!("{} {text}", style.paint(told.tone, told.mark))
        };
        match (self.state, &self.last, &self.stage) {
            (State::Ended(_), Some(last), _) => told(last),
            (State::Ended(status), None, _) => cut(&status.to_string(), room),
            (State::Running, _, Some(current)) => self.running(current, style, room),
            (State::Running | State::Waiting, _, _) => style.paint(Tone::Faint, "begins"),
        }
    }

    fn running(&self, current: &Current, style: Style, room: usize) -> String {
        let place = STAGE.min(room);
        let stage = padded(&cut(&self.place(current), place), place);
        let mut left = room.saturating_sub(STAGE);
        if let Some(doing) = &current.doing {
            return stage + "  " + &cut(doing, left.saturating_sub(BETWEEN));
        }
        let ran_ms = self.t_ms.saturating_sub(current.began_ms);
        let time = match current.remaining_ms {
            Some(ms) => format!("{} left", clock(ms)),
            None => clock(ran_ms),
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
        if let Some(remaining_ms) = current.remaining_ms
            && left >= BAR_MIN + BETWEEN
        {
            let columns = (left - BETWEEN).min(BAR_MAX);
            parts.push(bar_of(style, columns, ran_ms, remaining_ms));
        }
        parts.extend(figures);
        parts.join("  ")
    }

    /// `2/5 fill-seq-2`.
    fn place(&self, current: &Current) -> String {
        let id = &current.stage.id;
        match self.place_of(id) {
            Some(place) => format!("{}/{} {id}", place + 1, self.stages.len()),
            None => id.clone(),
        }
    }

    fn place_of(&self, id: &str) -> Option<usize> {
        self.stages.iter().position(|stage| stage.id == id)
    }

    /// What fills a drive is told by its bandwidth.
    fn rate(&self) -> String {
        match self.rates.is_empty() {
            true => String::new(),
            false => units::bytes_per_second(self.bandwidth()),
        }
    }

    /// Bytes per second of both directions.
    fn bandwidth(&self) -> f64 {
        let moves = |dir: &Direction| *dir != Direction::Trim;
        let rates = self.rates.iter().filter(|(dir, _)| moves(dir));
        rates.map(|(_, rate)| rate.bw_bytes).sum()
    }

    /// The least time in ms after which the drive is done, if what fills it stays
    /// as fast; `None`: that is not known yet, or it is over.
    pub fn left_ms(&self) -> Option<u64> {
        let current = self.stage.as_ref()?;
        let place = self.place_of(&current.stage.id)?;
        let mut left_ms = current.remaining_ms?;
        for ahead in &self.stages[place + 1..] {
            left_ms += ahead.least_ms;
            if let Some(bytes) = ahead.bytes {
                left_ms += (bytes as f64 / self.fill_rate? * 1000.0) as u64;
            }
        }
        Some(left_ms)
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
