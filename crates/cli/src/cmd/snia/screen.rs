//! What a person sees while a test goes on.

use std::time::Instant;

use fathom_analysis::rate::Rates;
use fathom_analysis::snia::{NOTICE, Test};
use fathom_analysis::steady_state::Metric;
use fathom_campaign::flow::{History, Luck, outlook};
use fathom_campaign::snia::Snia;
use fathom_model::{Event, Stage, StageEnd, units};
use fathom_report::style::Tone;

use crate::live::{InPlace, LiveOptions, aligned, bar, clock};

/// Shows a test: lines that stay in place on a terminal, a line for each stage
/// elsewhere.
pub struct Screen<'s> {
    options: LiveOptions,
    place: InPlace,
    script: &'s Snia,
    history: History,
    stage: Option<Stage>,
    /// Where the stage began, in ms of the run's time.
    stage_ms: u64,
    /// When it began: while a drive is purged the run's time stands still.
    stage_began: Instant,
    now_ms: u64,
    what: String,
    rates: Rates,
    shown: Vec<String>,
    /// Stages that are left at least, this one too.
    left: usize,
}

impl<'s> Screen<'s> {
    /// Shows nothing yet; `history`: what has been done before.
    pub fn new(options: LiveOptions, script: &'s Snia, history: History) -> Self {
        Self {
            options,
            place: InPlace::new(options),
            script,
            now_ms: history.t_ms(),
            stage_ms: history.t_ms(),
            stage_began: Instant::now(),
            history,
            stage: None,
            what: String::new(),
            rates: Rates::new(),
            shown: Vec::new(),
            left: 0,
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        if let Event::Stage { stage } = event {
            self.left = outlook(self.script, &self.history.clone(), Luck::Best)
                .0
                .len();
            self.stage = Some((**stage).clone());
            self.stage_ms = self.now_ms;
            self.stage_began = Instant::now();
            self.what.clear();
            self.shown.clear();
        }
        self.history.take(event);
        match event {
            Event::Step { name, .. } => self.what.clone_from(name),
            Event::Preparing { what } => self.what.clone_from(what),
            Event::Sample(sample) => {
                self.rates.entry(sample.dir).or_default().add(sample);
            }
            Event::Interval { t_ms, .. } => {
                self.now_ms = *t_ms;
                let rates = std::mem::take(&mut self.rates);
                let lines = rates
                    .iter()
                    .map(|(dir, rate)| format!("  {}", aligned(*dir, rate)));
                self.shown = lines.collect();
                self.draw();
            }
            Event::StageEnded { id, end } => self.ended(id, end),
            Event::Note { text } if !self.options.quiet => self.place.say(text),
            Event::Failure(failure) => self.place.say(&failure.to_string()),
            _ => {}
        }
    }

    fn draw(&self) {
        let Some(stage) = &self.stage else { return };
        let style = self.options.style;
        let name = style.paint(Tone::Strong, self.script.setup.test.title());
        let ran = clock(self.ran_ms());
        let mut lines = vec![
            format!("{name} test on {}", self.script.dut.display()),
            style.paint(Tone::Faint, NOTICE),
            format!("{}, {ran}{}", stage.title, self.left()),
            format!("  {}", self.what),
        ];
        lines.extend(self.shown.iter().cloned());
        self.place.draw(&lines);
    }

    /// How much is left.
    fn left(&self) -> String {
        let style = self.options.style;
        let setup = &self.script.setup;
        if setup.test != Test::Wsat {
            let done = self.history.stages().len().saturating_sub(1) as u64;
            let bar = bar(style, done, self.left as u64);
            return format!("  {bar}  {} stages left at least", self.left);
        }
        let rounds = self
            .history
            .stages()
            .iter()
            .filter(|past| past.stage.round.is_some());
        let (mut written, mut samples) = (0, 0);
        for past in rounds {
            written += past.written_bytes;
            samples += 1;
        }
        let fills = written as f64 / setup.capacity_bytes.max(1) as f64;
        format!(
            "  {} {fills:.2} of {} drive fills, {} of {}",
            bar(
                style,
                written,
                ((setup.stop_fills - fills).max(0.0) * setup.capacity_bytes as f64) as u64
            ),
            setup.stop_fills,
            clock(samples * setup.cell_ms),
            clock(setup.stop_ms)
        )
    }

    /// How long the stage has gone on: simulated time is the run's, that of a purge
    /// the clock's.
    fn ran_ms(&self) -> u64 {
        let clock_ms = u64::try_from(self.stage_began.elapsed().as_millis()).unwrap_or(u64::MAX);
        clock_ms.max(self.now_ms.saturating_sub(self.stage_ms))
    }

    /// A stage is over: a line that stays.
    fn ended(&mut self, id: &str, end: &StageEnd) {
        if self.options.quiet {
            return;
        }
        let title = self.stage.as_ref().map_or(id, |stage| stage.title.as_str());
        let ran = clock(self.ran_ms());
        let text = match end {
            StageEnd::Done => match self.stage.as_ref().and_then(|stage| stage.round) {
                Some(_) => format!("{title}, {ran}: {}", self.tracked(id)),
                None => format!("{title}: done in {ran}"),
            },
            StageEnd::Skipped { reason } => format!("{title}: skipped, {reason}"),
            StageEnd::NotAttained { reason } => format!("{title}: {reason}"),
            StageEnd::Failed { reason } => format!("{title}: failed, {reason}"),
        };
        self.place.say(&text);
    }

    /// The tracked variables in the round that has just ended, and how far the
    /// window is from steady.
    fn tracked(&self, id: &str) -> String {
        let setup = &self.script.setup;
        let name = setup.part_of(id).map_or("", |(part, _)| part);
        let parts = self.script.parts(&self.history);
        let Some(part) = parts.iter().find(|part| part.part == name) else {
            return String::new();
        };
        let mut told = Vec::new();
        for tracked in &part.tracked {
            let value = tracked.values.last().copied().flatten();
            let mut text = format!("{} {}", tracked.cell, figure(tracked.metric, value));
            if let Some(found) = &tracked.determination {
                let percent = |p: Option<f64>| p.map_or("–".to_owned(), |p| format!("{p:.1} %"));
                text += &format!(
                    " (data {}, slope {})",
                    percent(found.window.range_percent),
                    percent(found.window.slope_excursion_percent)
                );
            }
            told.push(text);
        }
        if part.attained {
            told.push("steady".to_owned());
        } else if part.is_late(setup) {
            told.push("NOT steady within the rounds that there may be".to_owned());
        }
        told.join(", ")
    }

    /// Takes the screen away.
    pub fn finish(&mut self) {
        self.place.finish();
    }
}

fn figure(metric: Metric, value: Option<f64>) -> String {
    let Some(value) = value else {
        return "–".to_owned();
    };
    match metric {
        Metric::Iops => units::count(value),
        Metric::Bandwidth => units::bytes_per_second(value),
        Metric::Latency | Metric::Percentile(_) => units::latency(value),
    }
}
