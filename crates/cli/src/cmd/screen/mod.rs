//! The screen of a run: where it stands, the point that runs, what happened
//! last. The run itself and `watch` show the same.

use std::cell::RefCell;
use std::path::Path;

use fathom_flow::PointOutcome;
use fathom_flow::error::RunError;
use fathom_flow::progress::{Current, Progress, ProgressEvent, Recent};
use fathom_model::{Event, StageEnd};
use fathom_record::{Entries, now_ms};
use fathom_sheet::style::{Style, Tone, fitting, width};
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub mod stage;
pub mod summary;

use crate::cmd::Global;
use crate::cmd::snia::SniaPanel;
use crate::live::{InPlace, LiveOptions, aligned, bar, clock, host_lines, laying_out};
use crate::out;

/// Columns of a line about a point beside the point's name: time, mark, figures.
const BESIDE: usize = 58;
/// A point's name keeps at least so many.
const NAME_MIN: usize = 20;

/// Shows a run while it goes on.
#[derive(Debug)]
pub struct Screen {
    options: LiveOptions,
    place: InPlace,
    progress: Progress,
    /// What tests after SNIA's specification add.
    panel: Option<SniaPanel>,
}

/// What a run calls with its record's folder before the first event.
pub type OnStart<'b> = &'b mut dyn FnMut(&Path);
/// What a run shows each event.
pub type Observer<'o> = &'o mut dyn FnMut(&Event);

/// Runs something before somebody's eyes.
pub fn observed<T, E>(
    global: &Global,
    run: impl FnOnce(OnStart<'_>, Observer<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let screen: RefCell<Option<Screen>> = RefCell::new(None);
    let options = LiveOptions::new(global.quiet, global.color);
    let mut begun = |dir: &Path| {
        begun_unseen(global, dir);
        match Progress::read(dir) {
            Ok(progress) => *screen.borrow_mut() = Some(Screen::new(options, progress)),
            Err(error) => out::note(format_args!("fathom: no progress is shown: {error}")),
        }
    };
    let mut observer = |event: &Event| {
        global.metrics.take(event);
        if let Some(screen) = screen.borrow_mut().as_mut() {
            screen.take(now_ms(), event);
        }
    };
    let finish = run(&mut begun, &mut observer);
    if let Some(screen) = screen.borrow_mut().as_mut() {
        screen.finish();
    }
    finish
}

/// What everybody but the screen is told when a run begins.
fn begun_unseen(global: &Global, record: &Path) {
    global.requirement.note(record);
    global.metrics.begin(record);
}

/// As [`observed`], of what has lines of its own where none can stay in place.
pub fn observed_in_place<T, E>(
    global: &Global,
    run: impl FnOnce(OnStart<'_>, Observer<'_>) -> Result<T, E>,
) -> Result<T, E> {
    observed(global, |begun, observer| {
        let in_place = LiveOptions::new(global.quiet, global.color).in_place();
        let mut begun = |dir: &Path| match in_place {
            true => begun(dir),
            false => begun_unseen(global, dir),
        };
        run(&mut begun, observer)
    })
}

impl Screen {
    /// Shows nothing yet.
    pub fn new(options: LiveOptions, progress: Progress) -> Self {
        let screen = Self {
            place: InPlace::new(options),
            options,
            panel: SniaPanel::of(&progress),
            progress,
        };
        let is_told = screen.panel.as_ref().is_some_and(SniaPanel::is_alone);
        if !screen.options.quiet && !screen.place.is_there() && !is_told {
            out::note(screen.title(screen.options.style).join("\n"));
        }
        screen
    }

    /// How far the run is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Takes everything that has been written to a record since the last time.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn follow_up(&mut self, entries: &mut Entries) -> Result<(), RunError> {
        let (options, panel) = (self.options, &mut self.panel);
        self.progress
            .follow_up(entries, &mut |progress, event, happened| {
                tell(options, panel, progress, event, happened);
            })
    }

    /// Takes the next event.
    pub fn take(&mut self, at_ms: u64, event: &Event) {
        let happened = self.progress.take(at_ms, event);
        tell(
            self.options,
            &mut self.panel,
            &self.progress,
            event,
            &happened,
        );
        let redraws = matches!(
            event,
            Event::Step { .. }
                | Event::Stage { .. }
                | Event::StageEnded { .. }
                | Event::Interval { .. }
                | Event::Preparing { .. }
                | Event::LayingOut { .. }
                | Event::Skipped { .. }
                | Event::Failure(_)
        );
        if redraws {
            self.draw();
        }
    }

    /// Draws what is known.
    pub fn draw(&self) {
        if self.place.is_there() {
            self.place.draw(&self.lines());
        }
    }

    /// Takes the screen away.
    pub fn finish(&mut self) {
        self.place.finish();
    }

    fn title(&self, style: Style) -> Vec<String> {
        let head = &self.progress.head;
        let name = match head.folder.file_name() {
            Some(name) => name.to_string_lossy().into_owned(),
            None if self.progress.name.starts_with(&self.progress.command) => {
                self.progress.name.clone()
            }
            None => format!("{} {}", self.progress.command, self.progress.name),
        };
        let name = style.paint(Tone::Strong, &name);
        let on = match head.dut.as_os_str().is_empty() {
            true => ", ",
            false => " on ",
        };
        let title = format!("{name}{on}{}", summary::device(head));
        if head.engine != "sim" {
            return vec![title];
        }
        let simulated = style.paint(Tone::Bad, summary::SIMULATION);
        let both = format!("{title}  {simulated}");
        match style
            .width
            .is_some_and(|columns| width(&both) > usize::from(columns))
        {
            true => vec![title, simulated],
            false => vec![both],
        }
    }

    fn lines(&self) -> Vec<String> {
        let (style, rows) = self.options.now();
        let mut lines = self.title(style);
        lines.push(self.whole(style));
        if let Some(panel) = &self.panel {
            lines.extend(panel.lines(&self.progress, style));
        }
        if let Some(now) = self.progress.stage() {
            lines.extend(stage::lines(&now, self.progress.current(), style));
        } else if let Some(current) = self.progress.current() {
            lines.extend(point(current, style));
        }
        if let Some((done, of)) = self.progress.laying_out() {
            let left = of.saturating_sub(done);
            lines.push(format!(
                "{}  {}",
                bar(style, done, left),
                laying_out(done, of)
            ));
        }
        match self.progress.preparing() {
            // The bar says it.
            Some(_) if self.progress.laying_out().is_some() => {}
            Some(what) => lines.push(what.to_owned()),
            None => {
                let rates = self.progress.rates().iter();
                lines.extend(rates.map(|(dir, rate)| aligned(style, *dir, rate)));
            }
        }
        let recent = self.progress.recent().map(|it| recent_line(it, style));
        let recent: Vec<String> = recent.collect();
        let room = rows.saturating_sub(lines.len() + recent.len() + 1);
        lines.extend(host_lines(self.progress.hosts(), room));
        if !recent.is_empty() {
            lines.push(String::new());
        }
        lines.extend(recent);
        lines
    }

    /// The run as a whole.
    fn whole(&self, style: Style) -> String {
        let counts = self.progress.counts();
        // Without points the stages are all there is.
        let (ended, all) = match counts.steps {
            0 => self.progress.stages().counts(),
            steps => (steps - counts.left, steps),
        };
        let mut parts = vec![
            bar(style, ended as u64, (all - ended) as u64),
            format!("{ended}/{all}"),
            clock(
                self.progress
                    .last_ms()
                    .saturating_sub(self.progress.started_ms()),
            ),
        ];
        // Nobody knows how many rounds such a test needs.
        let least = self.panel.as_ref().map_or("", |_| " at least");
        let left = self.progress.left_ms();
        parts.extend(left.map(|ms| format!("{} left{least}", clock(ms))));
        if counts.failed > 0 {
            parts.push(style.paint(Tone::Bad, &format!("{} failed", counts.failed)));
        }
        if counts.skipped > 0 {
            parts.push(style.paint(Tone::Doubtful, &format!("{} left out", counts.skipped)));
        }
        fitting(style, parts)
    }
}

/// The point that runs.
fn point(current: &Current, style: Style) -> [String; 3] {
    let mut times = vec![clock(current.ran_ms)];
    if let Some(left_ms) = current.remaining_ms {
        times.insert(0, bar(style, current.ran_ms, left_ms));
        times.push(format!("{} left", clock(left_ms)));
    }
    let mut name = current.id.clone();
    if current.repetition > 1 {
        name += &format!(" #{}", current.repetition);
    }
    let name = style.paint(Tone::Strong, &name);
    [String::new(), name, fitting(style, times)]
}

fn recent_line(recent: &Recent, style: Style) -> String {
    let columns = style.width.map_or(usize::MAX, usize::from);
    let room = columns.saturating_sub(BESIDE).max(NAME_MIN);
    let (tone, mark, text) = summary::happened(&recent.what, room);
    let time = style.paint(Tone::Faint, &time_of_day(recent.at_ms));
    format!("{time}  {} {text}", style.paint(tone, mark))
}

/// Says what is worth lines of its own: where no line can stay in place all that
/// happened.
fn tell(
    options: LiveOptions,
    panel: &mut Option<SniaPanel>,
    progress: &Progress,
    event: &Event,
    happened: &[Recent],
) {
    let own = panel.as_mut().and_then(|panel| {
        let text = panel.take(progress, event, happened, options);
        panel.is_alone().then_some(text)
    });
    match own {
        Some(Some(text)) => out::note(text),
        Some(None) => {}
        None if !options.in_place() => plain(progress, happened, options),
        None => {}
    }
}

/// A line of its own for each thing that happened, where no line can stay in
/// place. Failures are told also to those who want quiet.
fn plain(progress: &Progress, happened: &[Recent], options: LiveOptions) {
    for (nth, recent) in happened.iter().enumerate() {
        let failed = match &recent.what {
            ProgressEvent::Ended(ended) => matches!(ended.came, PointOutcome::Failed(_)),
            ProgressEvent::StageEnded(ended) => {
                matches!(
                    ended.1,
                    StageEnd::Failed { .. } | StageEnd::NotAttained { .. }
                )
            }
            _ => false,
        };
        if options.quiet && !failed {
            continue;
        }
        let counts = progress.counts();
        // The event that ends a point can be one that leaves others out.
        let later = happened[nth + 1..].iter().map(|later| match later.what {
            ProgressEvent::Skipped { measurements, .. } => measurements as usize,
            _ => 0,
        });
        let at = (counts.steps - counts.left).saturating_sub(later.sum());
        let left = match (&recent.what, progress.left_ms()) {
            (ProgressEvent::Ended(_) | ProgressEvent::StageEnded(_), Some(ms)) if ms > 0 => {
                format!("  {} left", clock(ms))
            }
            _ => String::new(),
        };
        let (_, mark, text) = summary::happened(&recent.what, usize::MAX);
        let place = match &recent.what {
            ProgressEvent::StageEnded(ended) => {
                let (place, of) = progress.stages().place(&ended.0.id);
                format!("{place}/{of}")
            }
            _ => format!("{at}/{}", counts.steps),
        };
        out::note(format_args!("{place}  {mark} {text}{left}"));
    }
}

/// `16:04:01`, as the clock on the wall.
pub fn time_of_day(at_ms: u64) -> String {
    let ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_zoned(TimeZone::system())
        .strftime("%H:%M:%S")
        .to_string()
}
