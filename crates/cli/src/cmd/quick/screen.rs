//! The series as a person sees it while it runs: a name, then its figure.

use fathom_model::units::format_size;
use fathom_model::{Environment, Event, RunStatus};
use fathom_sheet::style::{Style, Tone};
use fathom_suites::quick::{
    Baseline, Conditions, Notice, SeriesFacts, SeriesLine, Teller, TestFigures,
};

use crate::out;

/// Width between the `===` of a headline.
const HEADLINE_COLUMNS: usize = 19;

/// Where the lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// stdout.
    Stdout,
    /// stderr, a whole line at a time: stdout carries a document.
    Stderr,
    /// Nowhere.
    Nowhere,
}

/// Shows a run as it goes on.
pub struct Screen {
    to: To,
    style: Style,
    baselines: Vec<Baseline>,
    teller: Option<Teller>,
    host: String,
    /// A name on stderr waits here for its figure.
    half_line: String,
}

impl Screen {
    /// A screen that gives percentages of `baselines` where they hold.
    pub fn new(to: To, style: Style, baselines: Vec<Baseline>) -> Self {
        Self {
            to,
            style,
            baselines,
            teller: None,
            host: String::new(),
            half_line: String::new(),
        }
    }

    /// Takes a notice of the run.
    pub fn notice(&mut self, notice: &Notice) {
        match notice {
            Notice::Text(text) => out::note(text),
            Notice::Begins(header) => {
                if let Some(facts) = SeriesFacts::of(header) {
                    let environment = header.environment.as_ref();
                    self.begin(facts, &environment.map_or(Vec::new(), Environment::stacks));
                }
            }
            Notice::Event(event) => self.event(event),
        }
    }

    fn begin(&mut self, facts: SeriesFacts, stacks: &[String]) {
        for warning in &facts.warnings {
            out::note(format_args!("warning: {warning}"));
        }
        let folder = facts.folder.display();
        self.line(&format!(
            "Running tests in \"{folder}\" on {} @ {} ...",
            facts.host,
            now()
        ));
        for stack in stacks {
            self.line(&format!("stack    {stack}"));
        }
        let with = facts.engine.as_ref();
        let with = with.map_or(String::new(), |engine| format!(" with {engine}"));
        self.line(&format!(
            "fathom version {}{with}",
            env!("CARGO_PKG_VERSION")
        ));
        self.line(&format!("Testgroup \"{}\"", facts.group));
        if facts.shortened {
            let size = format_size(facts.size_bytes);
            self.line(&format!(
                "Shortened: {} s a test, {size} a set of files; not comparable to the shipped baselines",
                facts.runtime_s
            ));
        }
        if facts.only.is_some() {
            for test in &facts.tests {
                self.line(&test.command(&facts.folder));
            }
        }
        let conditions = Conditions::of(&facts);
        self.baselines
            .retain(|one| one.reason_not_to_use(&conditions).is_none());
        self.host.clone_from(&facts.host);
        self.teller = Some(Teller::new(facts));
    }

    fn event(&mut self, event: &Event) {
        let Some(teller) = &mut self.teller else {
            return;
        };
        for line in teller.event(event) {
            self.tell(&line);
        }
        if let Event::Ended { status } = event {
            let end = match status {
                RunStatus::Interrupted => "Interrupted",
                _ => "Tests complete",
            };
            self.line(&format!("{end} on {} @ {}.", self.host, now()));
            self.line("Files remain. To clean up, add argument \"cleanup\".");
        }
    }

    fn tell(&mut self, line: &SeriesLine) {
        match line {
            SeriesLine::Series(title) => {
                self.line(&self.style.paint(Tone::Strong, &headline(title)))
            }
            SeriesLine::Begins { name } => self.text(&format!("{name}: ")),
            SeriesLine::Ends { name, figures } => {
                self.line(&figure(name, figures, &self.baselines, self.style));
            }
            SeriesLine::Skipped { name, reason } => {
                self.line(&format!(
                    "{name}: {}",
                    self.style.paint(Tone::Faint, &skipped(reason))
                ));
            }
        }
    }

    fn line(&mut self, text: &str) {
        match self.to {
            To::Stdout => out::line(text),
            To::Stderr => out::note(format_args!(
                "{}{text}",
                std::mem::take(&mut self.half_line)
            )),
            To::Nowhere => {}
        }
    }

    fn text(&mut self, text: &str) {
        match self.to {
            To::Stdout => out::text(text),
            To::Stderr => self.half_line.push_str(text),
            To::Nowhere => {}
        }
    }
}

/// Local date and time to the second.
fn now() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `===   1 file series   ===`: centred, the odd blank behind.
fn headline(title: &str) -> String {
    format!("==={title:^HEADLINE_COLUMNS$}===")
}

/// What stands behind the name of a test that is left out.
pub fn skipped(reason: &str) -> String {
    format!("skipped ({reason})")
}

/// What stands behind a test's name.
fn figure(name: &str, figures: &TestFigures, baselines: &[Baseline], style: Style) -> String {
    let mut parts = Vec::new();
    parts.extend(figures.read_iops.map(|iops| format!("{iops} read iops")));
    parts.extend(figures.write_iops.map(|iops| format!("{iops} write iops")));
    if parts.is_empty() && !figures.interrupted {
        return style.paint(Tone::Bad, "0 read iops, 0 write iops (FAIL!)");
    }
    let text = parts.join(", ");
    if figures.interrupted {
        let blank = if text.is_empty() { "" } else { " " };
        return style.paint(Tone::Doubtful, &format!("{text}{blank}(interrupted)"));
    }
    let Some(iops) = figures.good_iops() else {
        return style.paint(Tone::Bad, &format!("{text} (FAIL!)"));
    };
    let percents: Vec<(u64, &str)> = baselines
        .iter()
        .filter_map(|one| Some((one.percent(name, iops)?, one.name.as_str())))
        .collect();
    if percents.is_empty() {
        return text;
    }
    let shown: Vec<String> = percents
        .iter()
        .map(|(percent, baseline)| style.paint(tone(*percent), &format!("{percent}% {baseline}")))
        .collect();
    format!("{text} ({})", shown.join(", "))
}

/// At least the baseline; at least half of it; less.
fn tone(percent: u64) -> Tone {
    match percent {
        100.. => Tone::Good,
        50..100 => Tone::Doubtful,
        _ => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {

    use fathom_suites::quick::Shelf;

    use fathom_sheet::style::on_terminal;

    use super::*;

    #[test]
    fn headlines_stand_as_on_the_page() {
        let page = [
            ("1 file series", "===   1 file series   ==="),
            ("16 file series", "===  16 file series   ==="),
            ("O_SYNC series", "===   O_SYNC series   ==="),
            ("read series", "===    read series    ==="),
            ("native aio series", "=== native aio series ==="),
        ];
        for (title, expected) in page {
            assert_eq!(headline(title), expected);
        }
    }

    #[test]
    fn figures_stand_as_on_the_page() {
        let hdd = Shelf::new(None).find("HDD").unwrap();
        let mut mine = hdd.clone();
        mine.name = "mydisk".into();
        let both_baselines = [hdd.clone(), mine];
        let hdd = [hdd];
        let plain = Style::default();
        let name = "1 file, 1 thread, seq 1M writes, simple";
        let write = TestFigures {
            write_iops: Some(191),
            ..TestFigures::default()
        };
        let shown =
            |figures: &TestFigures, baselines: &[Baseline]| figure(name, figures, baselines, plain);
        assert_eq!(shown(&write, &hdd), "191 write iops (105% HDD)");
        assert_eq!(
            shown(&write, &both_baselines),
            "191 write iops (105% HDD, 105% mydisk)"
        );
        assert_eq!(shown(&write, &[]), "191 write iops");
        let both = TestFigures {
            read_iops: Some(12),
            write_iops: Some(11),
            ..TestFigures::default()
        };
        assert_eq!(shown(&both, &[]), "12 read iops, 11 write iops");
        let none = TestFigures::default();
        assert_eq!(shown(&none, &hdd), "0 read iops, 0 write iops (FAIL!)");
        let failed = TestFigures {
            failures: vec!["disk full".into()],
            ..write.clone()
        };
        assert_eq!(shown(&failed, &hdd), "191 write iops (FAIL!)");
        let stopped = TestFigures {
            interrupted: true,
            ..write.clone()
        };
        assert_eq!(shown(&stopped, &hdd), "191 write iops (interrupted)");
        let colored = Style {
            color: true,
            width: None,
        };
        let figure = figure(name, &write, &hdd, colored);
        assert!(on_terminal(&figure).contains("\x1b[32m105% HDD\x1b[0m"));
    }
}
