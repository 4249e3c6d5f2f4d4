//! The observer of a run: what a person sees while it goes on.
//!
//! On a terminal a few lines that stay in place; elsewhere a plain line per
//! interval; nothing at all when told to be quiet. Always on stderr: stdout is
//! for the result.

use std::collections::BTreeSet;

use fathom_analysis::rate::{Rate, Rates};
use fathom_model::{Direction, Event, Failure, units};
use fathom_report::style::{Style, Tone, cut, on_terminal, wrap};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::out::{self, Color};

#[path = "live/hosts.rs"] // also for the example that shows this file alone
mod hosts;

use hosts::HostRates;

/// Columns of the progress bar.
const BAR: u32 = 24;
/// Columns of the head line beside the step's name: the bar, both times, gaps.
const HEAD: usize = BAR as usize + 24;
/// The step's name keeps at least this much of its columns.
const STEP_MIN: usize = 12;
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
    pub fn new(quiet: bool, color: Color) -> Self {
        Self {
            quiet,
            style: out::progress_style(color),
        }
    }
}

/// Shows a run while it goes on.
#[derive(Debug)]
pub struct Live {
    options: LiveOptions,
    /// The lines that stay in place, on a terminal.
    place: InPlace,
    /// Place and name of the step in progress, when there are several.
    step: String,
    /// When it began, ms since the run's start.
    step_t_ms: u64,
    /// Now, ms since the run's start.
    t_ms: u64,
    /// The interval in progress.
    rates: Rates,
    /// The same by machine, when there are several.
    hosts: HostRates,
    /// Its length, as its samples have it, ms.
    span_ms: u64,
    /// Length of the longest interval so far, ms.
    longest_span_ms: u64,
    /// Failures that were told: a limit that is reached fails many jobs alike.
    told: BTreeSet<String>,
}

impl Live {
    /// Shows nothing yet.
    pub fn new(options: LiveOptions) -> Self {
        Self {
            options,
            place: InPlace::new(options),
            step: String::new(),
            step_t_ms: 0,
            t_ms: 0,
            rates: Rates::new(),
            hosts: HostRates::default(),
            span_ms: 0,
            longest_span_ms: 0,
            told: BTreeSet::new(),
        }
    }

    /// Takes the next event of the run.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::Step { step, of, name, .. } => self.step(*step, *of, name),
            Event::Preparing { what } => self.preparing(what),
            Event::Sample(sample) => {
                self.span_ms = self.span_ms.max(sample.span_ms);
                self.hosts.add(sample);
                self.rates.entry(sample.dir).or_default().add(sample);
            }
            Event::Interval { t_ms, remaining_ms } => self.interval(*t_ms, *remaining_ms),
            Event::Note { text } if !self.options.quiet => self.say(&format!("- {text}")),
            Event::Failure(failure) => self.failure(failure),
            Event::Status { results } => {
                self.say(fathom_report::figures_so_far(results, self.options.style).trim_end());
            }
            Event::Jobs { hosts, .. } => {
                self.rates.clear();
                self.hosts.begin(hosts);
            }
            Event::EngineStarted { .. } => self.rates.clear(),
            Event::Note { .. }
            | Event::Doubted { .. }
            | Event::Hosts { .. }
            | Event::Volumes { .. }
            | Event::WrittenBeside { .. }
            | Event::KernelCounted { .. }
            | Event::Skipped { .. }
            | Event::Stage { .. }
            | Event::StageEnded { .. }
            | Event::Resumed { .. }
            | Event::Finished { .. }
            | Event::Ended { .. } => {}
        }
    }

    /// Writes text that stays, above the lines in place.
    pub fn say(&self, text: &str) {
        self.place.say(text);
    }

    /// Takes the lines in place away; what was said stays.
    pub fn finish(&mut self) {
        self.place.finish();
    }

    fn step(&mut self, step: u32, of: u32, name: &str) {
        self.step_t_ms = self.t_ms;
        self.rates.clear();
        self.told.clear();
        if of < 2 {
            return;
        }
        self.step = format!("{step}/{of} {name}");
        match self.place.is_there() {
            true => self.place.draw(std::slice::from_ref(&self.step)),
            false => self.line(&format!("step {step} of {of}: {name}")),
        }
    }

    fn preparing(&self, what: &str) {
        match self.place.is_there() {
            true => self
                .place
                .draw(&[format!("{}  {what}", self.step).trim().to_owned()]),
            false => self.line(what),
        }
    }

    fn failure(&mut self, failure: &Failure) {
        if let Some(text) = self.news(failure) {
            self.say(&text);
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
        let left = remaining_ms.map(|ms| format!("{} left", clock(ms)));
        if !self.place.is_there() {
            if is_rest || (rates.is_empty() && elapsed_ms < 500) {
                return;
            }
            let mut parts = vec![clock(elapsed_ms)];
            if rates.is_empty() {
                parts.push("no I/O".to_owned());
            }
            parts.extend(rates.iter().map(|(dir, rate)| text(*dir, rate)));
            parts.extend(left);
            self.hosts.lines();
            self.line(&parts.join("  "));
            return;
        }
        let mut head = Vec::new();
        if !self.step.is_empty() {
            let room = usize::from(self.options.style.width.unwrap_or(80)).saturating_sub(HEAD);
            let step = cut(&self.step, room.max(STEP_MIN));
            head.push(self.options.style.paint(Tone::Strong, &step));
        }
        if let Some(remaining_ms) = remaining_ms {
            head.push(bar(self.options.style, elapsed_ms, remaining_ms));
        }
        head.push(clock(elapsed_ms));
        head.extend(left);
        let mut lines = vec![head.join("  ")];
        lines.extend(rates.iter().map(|(dir, rate)| aligned(*dir, rate)));
        lines.extend(self.hosts.lines());
        self.place.draw(&lines);
    }

    /// Whether the interval that ends is what was left of the run behind its last
    /// whole one: rates over some milliseconds, under the same second once more.
    fn ends_a_rest(&mut self) -> bool {
        let span_ms = std::mem::take(&mut self.span_ms);
        self.longest_span_ms = self.longest_span_ms.max(span_ms);
        span_ms > 0 && span_ms < self.longest_span_ms / 2
    }

    fn line(&self, text: &str) {
        if !self.options.quiet {
            out::note(text);
        }
    }
}

/// Lines at the end of a terminal that stay in place, and text above them; where
/// there is no terminal only the text.
#[derive(Debug)]
pub struct InPlace {
    bar: Option<ProgressBar>,
}

impl InPlace {
    /// Shows nothing yet.
    pub fn new(options: LiveOptions) -> Self {
        let in_place = !options.quiet && options.style.width.is_some();
        let bar = in_place.then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_HZ);
            let bar = ProgressBar::with_draw_target(None, target);
            // The template has no part that could be wrong.
            if let Ok(template) = ProgressStyle::with_template("{msg}") {
                bar.set_style(template);
            }
            bar
        });
        Self { bar }
    }

    /// Whether lines can stay in place.
    pub fn is_there(&self) -> bool {
        self.bar.is_some()
    }

    /// Puts these lines in place of those before.
    pub fn draw(&self, lines: &[String]) {
        if let Some(bar) = &self.bar {
            bar.set_message(on_terminal(&lines.join("\n")).into_owned());
            out::park();
        }
    }

    /// Writes text that stays, above the lines in place.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => {
                bar.suspend(|| out::note(text));
                out::park();
            }
            None => out::note(text),
        }
    }

    /// Takes the lines away; what was said stays.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
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
pub fn aligned(dir: Direction, rate: &Rate) -> String {
    let iops = units::count(rate.iops);
    let bandwidth = units::bytes_per_second(rate.bw_bytes);
    let text = format!("{:<5}  {iops:>5} IOPS  {bandwidth:>10}", dir.name());
    match latencies(rate) {
        Some((mean, p99)) => format!("{text}  clat {mean:>7}  p99 {p99:>7}"),
        None => text,
    }
}

/// A bar of the part that is done and the part that is left.
pub fn bar(style: Style, done: u64, left: u64) -> String {
    bar_of(style, BAR as usize, done, left)
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
            aligned(Direction::Write, &rate(7, true)),
            "write     28 IOPS   112 KiB/s  clat 99.8 µs  p99 99.8 µs"
        );
    }

    #[test]
    fn the_bar_is_as_long_with_no_time_left_and_with_no_time_passed() {
        let bar = |done, left| bar(Style::default(), done, left);
        assert_eq!(bar(0, 0).chars().count(), BAR as usize);
        assert_eq!(bar(5000, 0), "━".repeat(24));
        let third = format!("{}{}", "━".repeat(8), "·".repeat(16));
        assert_eq!(bar(1000, 2000), third);
    }

    #[test]
    fn the_rest_of_the_last_second_is_no_line_of_its_own() {
        let mut live = Live::new(LiveOptions {
            quiet: true,
            style: Style::default(),
        });
        let rests: Vec<bool> = [1000, 980, 0, 1010, 40]
            .into_iter()
            .map(|span_ms| {
                live.span_ms = span_ms;
                live.ends_a_rest()
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
        let mut live = Live::new(LiveOptions::new(true, Color::Never));
        let failure = Failure::new(FailureKind::AioLimit, "no room").about("job a");
        assert!(live.news(&failure).is_some());
        assert!(live.news(&failure).is_none());
        live.step(2, 2, "next");
        assert!(live.news(&failure).is_some());
    }
}
