//! The screen of a campaign: where it stands, the point that runs, what happened
//! last. The run itself and `watch` show the same.

use fathom_campaign::run::{Came, Current, Progress, Recent, RunError, What};
use fathom_model::{Event, StageEnd};
use fathom_record::Entries;
use fathom_report::style::{Tone, cut};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{stage, summary};
use crate::live::{InPlace, LiveOptions, aligned, bar, clock};
use crate::out;

/// Columns of a line about a point beside the point's name: time, mark, figures.
const BESIDE: usize = 58;
/// Columns of the time of day and the mark.
const TIME_AND_MARK: usize = 12;
/// A point's name keeps at least so many.
const NAME_MIN: usize = 20;

/// Shows a campaign while it goes on.
#[derive(Debug)]
pub struct Screen {
    options: LiveOptions,
    place: InPlace,
    progress: Progress,
}

impl Screen {
    /// Shows nothing yet.
    pub fn new(options: LiveOptions, progress: Progress) -> Self {
        let screen = Self {
            place: InPlace::new(options),
            options,
            progress,
        };
        if !screen.options.quiet && !screen.place.is_there() {
            out::note(screen.title());
        }
        screen
    }

    /// How far the campaign is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Takes everything that has been written to a record since the last time.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn follow_up(&mut self, entries: &mut Entries) -> Result<(), RunError> {
        let (options, in_place) = (self.options, self.place.is_there());
        self.progress.follow_up(entries, &mut |progress, happened| {
            if !in_place {
                plain(progress, happened, options);
            }
        })
    }

    /// Takes the next event.
    pub fn take(&mut self, at_ms: u64, event: &Event) {
        let happened = self.progress.take(at_ms, event);
        if !self.place.is_there() {
            plain(&self.progress, &happened, self.options);
            return;
        }
        let redraws = matches!(
            event,
            Event::Step { .. }
                | Event::Stage { .. }
                | Event::StageEnded { .. }
                | Event::Interval { .. }
                | Event::Preparing { .. }
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

    fn title(&self) -> String {
        let style = self.options.style;
        let head = &self.progress.head;
        let name = head.folder.file_name().unwrap_or(head.folder.as_os_str());
        let name = style.paint(Tone::Strong, &name.to_string_lossy());
        let mut title = format!("{name} on {}, {}", head.dut.display(), head.engine);
        if head.engine == "sim" {
            title += &format!("  {}", style.paint(Tone::Bad, summary::SIMULATION));
        }
        title
    }

    fn lines(&self) -> Vec<String> {
        // Asked anew: the window may have another size by now.
        let columns = usize::from(out::progress_columns().unwrap_or(80));
        let mut lines = vec![self.title(), self.whole()];
        if let Some(now) = self.progress.stage() {
            let style = self.options.style;
            lines.extend(stage::lines(&self.progress, &now, style, columns));
        } else if let Some(current) = self.progress.current() {
            lines.extend(self.point(current, columns));
        }
        let recent: Vec<&Recent> = self.progress.recent().collect();
        if !recent.is_empty() {
            lines.push(String::new());
        }
        for recent in recent {
            lines.push(self.recent(recent, columns));
        }
        lines
    }

    /// The campaign as a whole.
    fn whole(&self) -> String {
        let style = self.options.style;
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
        let left = self
            .progress
            .left_ms()
            .map(|ms| format!("{} left", clock(ms)));
        parts.extend(left);
        if counts.failed > 0 {
            parts.push(style.paint(Tone::Bad, &format!("{} failed", counts.failed)));
        }
        if counts.skipped > 0 {
            parts.push(style.paint(Tone::Doubtful, &format!("{} left out", counts.skipped)));
        }
        parts.join("  ")
    }

    /// The point that runs.
    fn point(&self, current: &Current, columns: usize) -> Vec<String> {
        let style = self.options.style;
        let mut times = vec![clock(current.ran_ms)];
        if let Some(left_ms) = current.remaining_ms {
            times.insert(0, bar(style, current.ran_ms, left_ms));
            times.push(format!("{} left", clock(left_ms)));
        }
        let mut name = current.id.clone();
        if current.repetition > 1 {
            name += &format!(" #{}", current.repetition);
        }
        let mut lines = vec![
            String::new(),
            style.paint(Tone::Strong, &cut(&name, columns)),
            times.join("  "),
        ];
        match &current.preparing {
            Some(what) => lines.push(cut(what, columns)),
            None => {
                let rates = self.progress.rates().iter();
                lines.extend(rates.map(|(dir, rate)| aligned(*dir, rate)));
            }
        }
        lines
    }

    fn recent(&self, recent: &Recent, columns: usize) -> String {
        let style = self.options.style;
        let room = columns.saturating_sub(BESIDE).max(NAME_MIN);
        let (tone, mark, text) = summary::happened(&recent.what, room);
        let time = style.paint(Tone::Faint, &time_of_day(recent.at_ms));
        let text = cut(&text, columns.saturating_sub(TIME_AND_MARK));
        format!("{time}  {} {text}", style.paint(tone, mark))
    }
}

/// A line of its own for each thing that happened, where no line can stay in
/// place. Failures are told also to those who want quiet.
fn plain(progress: &Progress, happened: &[Recent], options: LiveOptions) {
    let counts = progress.counts();
    for (nth, recent) in happened.iter().enumerate() {
        let failed = match &recent.what {
            What::Ended(ended) => matches!(ended.came, Came::Failed(_)),
            What::StageEnded(ended) => {
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
        // The event that ends a point can be one that leaves others out.
        let later = happened[nth + 1..].iter().map(|later| match later.what {
            What::Skipped { measurements, .. } => measurements as usize,
            _ => 0,
        });
        let at = (counts.steps - counts.left).saturating_sub(later.sum());
        let left = match (&recent.what, progress.left_ms()) {
            (What::Ended(_) | What::StageEnded(_), Some(ms)) if ms > 0 => {
                format!("  {} left", clock(ms))
            }
            _ => String::new(),
        };
        let (_, mark, text) = summary::happened(&recent.what, usize::MAX);
        let place = match &recent.what {
            What::StageEnded(ended) => progress.stages().place(&ended.0.id),
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
