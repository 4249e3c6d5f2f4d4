//! What a person sees while a run goes on: on a terminal lines that stay in place;
//! elsewhere lines one below the other; nothing but failures when told to be quiet.
//! Always on stderr: stdout is for the result.

use std::collections::BTreeSet;

use fathom_analysis::rate::{Rate, Rates};
use fathom_model::{Direction, Event, Failure, units};
use fathom_sheet::style::{Style, Tone, cut, fitting, on_terminal, wrap};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::out::{self, ColorChoice};

mod hosts;

pub use hosts::host_lines;

/// Columns of the progress bar, and the fewest in a narrow window.
const BAR: usize = 24;
const BAR_MIN: usize = 8;
/// Columns of what can stand beside the bar.
const BESIDE_BAR: usize = 56;
/// Redraws a second, at the most: the machine that is measured has other work.
const REDRAWS_HZ: u8 = 5;

/// How a run is to be shown.
#[derive(Debug, Clone, Copy)]
pub struct LiveOptions {
    /// Show nothing but failures.
    pub quiet: bool,
    /// Colours, and the width of the terminal; without a width it is none, and
    /// lines are written one below the other.
    pub style: Style,
}

impl LiveOptions {
    /// As the command line and the terminal have it.
    pub fn new(quiet: bool, color: ColorChoice) -> Self {
        Self {
            quiet,
            style: out::progress_style(color),
        }
    }

    /// Whether lines can stay in place.
    pub fn in_place(self) -> bool {
        !self.quiet && self.style.width.is_some()
    }

    /// Colours and columns as they are now, as the window may have another size than at
    /// the begin, and how many lines can stay in place.
    pub fn now(self) -> (Style, usize) {
        let (columns, rows) = out::progress_size().unwrap_or((80, 24));
        let width = Some(columns);
        // The cursor needs one.
        let rows = usize::from(rows).saturating_sub(1);
        (
            Style {
                width,
                ..self.style
            },
            rows,
        )
    }
}

/// Says what happens in a run in lines one below the other: what is to be known, and
/// where no lines can stay in place each interval.
#[derive(Debug)]
pub struct LiveLines {
    options: LiveOptions,
    /// When the step in progress began, ms since the run's start.
    step_t_ms: u64,
    /// Now, ms since the run's start.
    t_ms: u64,
    /// The interval in progress.
    rates: Rates,
    /// Its length, as its samples have it, ms.
    span_ms: u64,
    /// Length of the longest interval so far, ms.
    longest_span_ms: u64,
    /// Files are laid out: there is no I/O of jobs.
    is_laying_out: bool,
    /// Failures that were told: a limit that is reached fails many jobs alike.
    told: BTreeSet<String>,
}

impl LiveLines {
    /// Says nothing yet.
    pub fn new(options: LiveOptions) -> Self {
        Self {
            options,
            step_t_ms: 0,
            t_ms: 0,
            rates: Rates::new(),
            span_ms: 0,
            longest_span_ms: 0,
            is_laying_out: false,
            told: BTreeSet::new(),
        }
    }

    /// Takes the next event of the run.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Step { step, of, name, .. } => self.step(*step, *of, name),
            Event::Preparing { what } => self.line(what),
            Event::LayingOut {
                done_bytes,
                of_bytes,
            } => {
                self.is_laying_out = true;
                self.line(&laying_out(*done_bytes, *of_bytes));
            }
            Event::Sample(sample) => {
                self.is_laying_out = false;
                self.span_ms = self.span_ms.max(sample.span_ms);
                self.rates.entry(sample.dir).or_default().add(sample);
            }
            Event::Interval { t_ms, remaining_ms } => self.interval(*t_ms, *remaining_ms),
            Event::Note { text } if !self.options.quiet => out::note(format_args!("- {text}")),
            Event::Failure(failure) => self.failure(failure),
            Event::Status { results } => {
                let figures = fathom_report::figures_so_far(results, self.options.style);
                out::note(figures.trim_end());
            }
            Event::Jobs { .. } | Event::EngineStarted { .. } => self.rates.clear(),
            _ => {}
        }
    }

    fn step(&mut self, step: u32, of: u32, name: &str) {
        self.step_t_ms = self.t_ms;
        self.is_laying_out = false;
        self.rates.clear();
        self.told.clear();
        if of > 1 {
            self.line(&format!("step {step} of {of}: {name}"));
        }
    }

    fn failure(&mut self, failure: &Failure) {
        if let Some(text) = self.news(failure) {
            out::note(text);
        }
    }

    /// The failure's text, unless this step has told it already.
    fn news(&mut self, failure: &Failure) -> Option<String> {
        let text = told(failure, self.options.style);
        self.told.insert(text.clone()).then_some(text)
    }

    fn interval(&mut self, t_ms: u64, remaining_ms: Option<u64>) {
        self.t_ms = t_ms;
        let rates = std::mem::take(&mut self.rates);
        // Over no length there is no rate.
        let no_length = self.span_ms == 0 && !rates.is_empty();
        let is_rest = self.ends_a_rest() || no_length;
        let elapsed_ms = t_ms.saturating_sub(self.step_t_ms);
        let is_idle = self.is_laying_out || elapsed_ms < 500;
        if is_rest || (rates.is_empty() && is_idle) {
            return;
        }
        let mut parts = vec![clock(elapsed_ms)];
        if rates.is_empty() {
            parts.push("no I/O".to_owned());
        }
        parts.extend(rates.iter().map(|(dir, rate)| text(*dir, rate)));
        parts.extend(remaining_ms.map(|ms| format!("{} left", clock(ms))));
        self.line(&parts.join("  "));
    }

    /// Whether the interval that ends is what was left of the run behind its last
    /// whole one: rates over some milliseconds, under the same second once more.
    fn ends_a_rest(&mut self) -> bool {
        let span_ms = std::mem::take(&mut self.span_ms);
        self.longest_span_ms = self.longest_span_ms.max(span_ms);
        span_ms > 0 && span_ms < self.longest_span_ms / 2
    }

    fn line(&self, text: &str) {
        if !self.options.quiet && !self.options.in_place() {
            out::note(text);
        }
    }
}

/// Lines at the end of a terminal that stay in place; what else is written stands above
/// them.
#[derive(Debug)]
pub struct InPlace {
    options: LiveOptions,
    bar: Option<ProgressBar>,
}

impl InPlace {
    /// Shows nothing yet.
    pub fn new(options: LiveOptions) -> Self {
        let bar = options.in_place().then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_HZ);
            let bar = ProgressBar::with_draw_target(None, target);
            // The template has no part that could be wrong.
            if let Ok(template) = ProgressStyle::with_template("{msg}") {
                bar.set_style(template);
            }
            out::keep_in_place(Some(bar.clone()));
            bar
        });
        Self { options, bar }
    }

    /// Whether lines can stay in place.
    pub fn is_there(&self) -> bool {
        self.bar.is_some()
    }

    /// Puts these lines in place of those before, as far as the window has room.
    pub fn draw(&self, lines: &[String]) {
        if let Some(bar) = &self.bar {
            let (style, rows) = self.options.now();
            let columns = style.width.map_or(usize::MAX, usize::from);
            let shown = lines.iter().take(rows).map(|line| cut(line, columns));
            let shown: Vec<String> = shown.collect();
            bar.set_message(on_terminal(&shown.join("\n")).into_owned());
            out::park();
        }
    }

    /// Takes the lines away; what was said stays.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            out::keep_in_place(None);
            bar.finish_and_clear();
        }
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A failure as it stands on a screen: marked, wrapped, with what to do.
fn told(failure: &Failure, style: Style) -> String {
    let room = usize::from(style.width.unwrap_or(u16::MAX)).saturating_sub(2);
    let mut lead = style.paint(Tone::Bad, "✗");
    let mut lines = Vec::new();
    for line in failure
        .to_string()
        .lines()
        .flat_map(|line| wrap(line, room))
    {
        lines.push(format!("{lead} {line}"));
        lead = " ".into();
    }
    lines.join("\n")
}

/// Mean and 99th percentile of the completion latencies, when there are any.
fn latencies(rate: &Rate) -> Option<(String, String)> {
    let (mean_ns, p99_ns) = rate.latencies_ns()?;
    Some((units::latency(mean_ns), units::latency(p99_ns)))
}

/// The rate of one direction in a line of its own.
fn text(dir: Direction, rate: &Rate) -> String {
    let iops = units::count(rate.iops);
    let bandwidth = units::bytes_per_second(rate.bw_bytes);
    let text = format!("{} {iops} IOPS {bandwidth}", dir.name());
    match latencies(rate) {
        Some((mean, p99)) => format!("{text} clat {mean} p99 {p99}"),
        None => text,
    }
}

/// The rate of one direction, in columns for lines that stay in place.
pub fn aligned(style: Style, dir: Direction, rate: &Rate) -> String {
    let iops = units::count(rate.iops);
    let bandwidth = units::bytes_per_second(rate.bw_bytes);
    let text = format!("{:<5}  {iops:>5} IOPS  {bandwidth:>10}", dir.name());
    let latencies =
        latencies(rate).map(|(mean, p99)| [format!("clat {mean:>7}"), format!("p99 {p99:>7}")]);
    fitting(
        style,
        [text].into_iter().chain(latencies.into_iter().flatten()),
    )
}

/// How far files are that are laid out before jobs run.
pub fn laying_out(done_bytes: u64, of_bytes: u64) -> String {
    let percent = done_bytes as f64 * 100.0 / of_bytes.max(1) as f64;
    let [done, of] = [done_bytes, of_bytes].map(|bytes| units::bytes(bytes as f64));
    format!("laying out files: {done} of {of}, {percent:.0} %")
}

/// A bar of the part that is done and the part that is left.
pub fn bar(style: Style, done: u64, left: u64) -> String {
    let columns = style.width.map_or(BAR, |width| {
        let room = usize::from(width).saturating_sub(BESIDE_BAR);
        room.clamp(BAR_MIN, BAR)
    });
    bar_of(style, columns, done, left)
}

/// As [`bar`], of so many columns.
pub fn bar_of(style: Style, columns: usize, done: u64, left: u64) -> String {
    let whole = done.saturating_add(left).max(1) as f64;
    let filled = (done as f64 / whole * columns as f64) as usize;
    let rest = if style.color { "━" } else { "·" };
    let rest = rest.repeat(columns.saturating_sub(filled));
    style.paint(Tone::Good, &"━".repeat(filled)) + &style.paint(Tone::Faint, &rest)
}

/// Whole seconds, then as durations are written.
pub fn clock(ms: u64) -> String {
    let seconds = ms.saturating_add(500) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => units::duration(seconds * 1000),
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::{FailureKind, Histogram, Sample};

    use super::*;

    fn rate(ios: u64, clat: bool) -> Rate {
        let mut histogram = Histogram::new();
        histogram.add(100_000, ios);
        let mut rate = Rate::default();
        // Two jobs side by side: rates add up, histograms are merged.
        for job in 0..2 {
            rate.add(&Sample {
                t_ms: 1000,
                span_ms: 500,
                job,
                dir: Direction::Read,
                ios,
                bytes: ios * 4096,
                clat: clat.then(|| histogram.clone()),
                lat: None,
            });
        }
        rate
    }

    #[test]
    fn a_line_of_an_interval_has_rates_and_latencies() {
        assert_eq!(
            text(Direction::Read, &rate(1000, true)),
            "read 4k IOPS 15.6 MiB/s clat 99.8 µs p99 99.8 µs"
        );
        assert_eq!(
            text(Direction::Write, &rate(1000, false)),
            "write 4k IOPS 15.6 MiB/s"
        );
        assert_eq!(
            aligned(Style::default(), Direction::Write, &rate(7, true)),
            "write     28 IOPS   112 KiB/s  clat 99.8 µs  p99 99.8 µs"
        );
        let narrow = Style {
            width: Some(50),
            ..Style::default()
        };
        assert_eq!(
            aligned(narrow, Direction::Write, &rate(7, true)),
            "write     28 IOPS   112 KiB/s  clat 99.8 µs"
        );
    }

    #[test]
    fn the_bar_is_as_long_with_no_time_left_and_with_no_time_passed() {
        let bar = |done, left| bar(Style::default(), done, left);
        assert_eq!(bar(0, 0).chars().count(), BAR);
        assert_eq!(bar(5000, 0), "━".repeat(24));
        let third = format!("{}{}", "━".repeat(8), "·".repeat(16));
        assert_eq!(bar(1000, 2000), third);
    }

    #[test]
    fn the_rest_of_the_last_second_is_no_line_of_its_own() {
        let mut lines = LiveLines::new(LiveOptions {
            quiet: true,
            style: Style::default(),
        });
        let rests: Vec<bool> = [1000, 980, 0, 1010, 40]
            .into_iter()
            .map(|span_ms| {
                lines.span_ms = span_ms;
                lines.ends_a_rest()
            })
            .collect();
        assert_eq!(rests, [false, false, false, false, true]);
    }

    #[test]
    fn seconds_are_whole() {
        assert_eq!(clock(12_004), "12 s");
        assert_eq!(clock(59_600), "1m00s");
    }

    /// 48 of 64 jobs that found no room for their I/Os once said so 48 times.
    #[test]
    fn a_failure_that_many_jobs_have_is_told_once() {
        let mut lines = LiveLines::new(LiveOptions::new(true, ColorChoice::Never));
        let failure = Failure::new(FailureKind::AioLimit, "no room").about("job a");
        assert!(lines.news(&failure).is_some());
        assert!(lines.news(&failure).is_none());
        lines.step(2, 2, "next");
        assert!(lines.news(&failure).is_some());
    }
}
