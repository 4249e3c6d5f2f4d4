//! The verdicts as a person reads them: a table, and determination boxes.

use fathom_analysis::steady_state::{
    FittedWindow, Metric, SteadyOutcome, SteadyVerdict, Term, TermKind, WindowRule,
};
use fathom_model::units;

use super::{FioVerdict, Judged, RecordVerdicts};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone, cut, width, wrap};

/// Up to this many verdicts have a box each: more would not fit a screen.
const BOXES: usize = 4;
/// A box is no wider than this: what it says is short.
const BOX_COLUMNS: usize = 78;
/// Columns of the labels in a box.
const LABELS: usize = 18;

/// The verdicts as text, ending in a newline.
pub fn text(steady: &RecordVerdicts, style: Style) -> String {
    let name = style.paint(Tone::Strong, &steady.name);
    let mut head = format!("{name}: steady state by {}\n", steady.rule_name);
    let which = [
        steady
            .job
            .as_ref()
            .map_or("all jobs".to_owned(), |job| format!("job {job}")),
        steady
            .dir
            .map_or("all directions together".to_owned(), |dir| {
                format!("{dir} only")
            }),
    ];
    let about = format!("{}: {}", steady.run, which.join(", "));
    head += &format!("{}\n", style.paint(Tone::Faint, &about));
    let mut sections = vec![head];
    if steady.verdicts.len() > 1 {
        sections.push(table(steady, style));
    }
    if steady.verdicts.len() <= BOXES {
        let boxes = steady.verdicts.iter();
        sections.extend(boxes.map(|judged| determination(judged, style)));
    }
    let mut notes = String::new();
    for fio in &steady.fio {
        notes += &item(&fio_line(fio), style);
    }
    for note in &steady.notes {
        notes += &item(note, style);
    }
    if steady.verdicts.len() > BOXES {
        notes += &item("--step NAME shows every term of one step", style);
    }
    sections.push(notes);
    sections.retain(|section| !section.is_empty());
    sections.join("\n")
}

fn item(text: &str, style: Style) -> String {
    let lines = wrap(text, style.columns().saturating_sub(2));
    let mut lead = "- ";
    let mut all = String::new();
    for line in lines {
        all += &format!("{lead}{line}\n");
        lead = "  ";
    }
    all
}

/// A line for each verdict.
fn table(steady: &RecordVerdicts, style: Style) -> String {
    let mut grid = Grid::new([
        words("", 0),
        words("metric", 0),
        words("steady", 0),
        figures("at", 0),
        figures("mean", 0),
        figures("range", 1),
        figures("slope", 1),
    ]);
    let percent = |value: Option<f64>| value.map_or("–".to_owned(), |v| format!("{v:.1} %"));
    for judged in &steady.verdicts {
        let verdict = &judged.verdict;
        let (tone, word) = match verdict.outcome {
            SteadyOutcome::Attained => (Tone::Good, "attained"),
            SteadyOutcome::TooLate => (Tone::Doubtful, "too late"),
            SteadyOutcome::NotAttained => (Tone::Doubtful, "not attained"),
            SteadyOutcome::TooShort => (Tone::Doubtful, "too short"),
            SteadyOutcome::NoValues => (Tone::Doubtful, "no values"),
        };
        let steady_at = verdict.window.filter(|_| verdict.closest.is_none());
        let window = verdict.window.as_ref();
        let (spread, slope) = window.map_or((None, None), |window| match verdict.rule {
            WindowRule::Fio { .. } => (window.deviation_percent, window.slope_percent),
            WindowRule::Snia { .. } => (window.range_percent, window.slope_excursion_percent),
        });
        grid.line([
            GridCell::from(judged.series.clone()),
            GridCell::from(judged.metric.to_string()),
            GridCell::new(tone, word),
            GridCell::from(steady_at.map_or("–".to_owned(), |w| units::duration(w.end_ms))),
            GridCell::from(window.map_or("–".to_owned(), |w| figure(judged.metric, w.mean))),
            GridCell::from(percent(spread)),
            GridCell::from(percent(slope)),
        ]);
    }
    grid.render(style)
}

/// The determination of one metric: every term of the inequality.
fn determination(judged: &Judged, style: Style) -> String {
    let verdict = &judged.verdict;
    let columns = style.columns().clamp(40, BOX_COLUMNS);
    let inside = columns - 4;
    let series = match judged.series.as_str() {
        "" => String::new(),
        name => format!("{name}, "),
    };
    let (tone, outcome) = headline(verdict);
    let mut text = String::new();
    let title = format!("{series}{}: {outcome}", title(judged.metric));
    let title = cut(&title, inside - 1);
    let rule = "─".repeat(columns - 5 - width(&title));
    text += &format!("┌─ {} {rule}┐\n", style.paint(tone, &title));
    let mut line = |label: &str, value: &str, tone: Tone| {
        let mut label = label.to_owned();
        for part in wrap(value, inside - LABELS) {
            let pad = " ".repeat(LABELS.saturating_sub(width(&label)));
            let rest = " ".repeat((inside - LABELS).saturating_sub(width(&part)));
            let label_text = style.paint(Tone::Faint, &std::mem::take(&mut label));
            text += &format!("│ {label_text}{pad}{}{rest} │\n", style.paint(tone, &part));
        }
    };
    line("rule", &rule_line(judged), Tone::Plain);
    match &verdict.window {
        Some(window) => {
            line("window", &window_line(verdict, window), Tone::Plain);
            line("average", &figure(judged.metric, window.mean), Tone::Strong);
            let ends = [window.min, window.max].map(|value| figure(judged.metric, value));
            line("least, greatest", &ends.join(", "), Tone::Plain);
            for term in &verdict.terms {
                let tone = if term.holds { Tone::Good } else { Tone::Bad };
                line(term_label(term.term), &term_line(judged.metric, term), tone);
            }
            line("best fit", &fit_line(judged.metric, window), Tone::Plain);
        }
        None => line("window", &why_none(judged), Tone::Plain),
    }
    if let Some(window) = &verdict.closest {
        line("closest", &closest_line(verdict, window), Tone::Plain);
    }
    if verdict.missing > 0 {
        let what = format!(
            "{} of {} {} without a value: no I/O, or latencies not measured",
            verdict.missing,
            verdict.rounds,
            places(&verdict.rule)
        );
        line("missing", &what, Tone::Doubtful);
    }
    text + &format!("└{}┘\n", "─".repeat(columns - 2))
}

fn headline(verdict: &SteadyVerdict) -> (Tone, String) {
    let place = match verdict.rule {
        WindowRule::Fio { .. } => "sample",
        WindowRule::Snia { .. } => "round",
    };
    match (verdict.outcome, &verdict.window) {
        (SteadyOutcome::Attained, Some(window)) => {
            let at = units::duration(window.end_ms);
            (
                Tone::Good,
                format!("attained at {place} {}, {at}", window.last),
            )
        }
        (SteadyOutcome::TooLate, Some(window)) => {
            let max = verdict.rule.max_rounds().unwrap_or(0);
            let what = format!(
                "not attained in {max} rounds, first at {place} {}",
                window.last
            );
            (Tone::Doubtful, what)
        }
        (SteadyOutcome::TooShort, _) => (Tone::Doubtful, "not attained, too short".to_owned()),
        (SteadyOutcome::NoValues, _) => (Tone::Doubtful, "not attained, no values".to_owned()),
        _ => {
            let what = format!("not attained in {} {place}s", verdict.rounds);
            (Tone::Doubtful, what)
        }
    }
}

fn places(rule: &WindowRule) -> &'static str {
    match rule {
        WindowRule::Fio { .. } => "samples",
        WindowRule::Snia { .. } => "rounds",
    }
}

fn rule_line(judged: &Judged) -> String {
    let rule = &judged.verdict.rule;
    let of = match judged.round_ms {
        0 => String::new(),
        ms => format!(" of {}", units::duration(ms)),
    };
    let mut text = format!("{}: {} {}{of}", rule.name(), rule.window(), places(rule));
    if let Some(max) = rule.max_rounds() {
        text += &format!(", within {max}");
    }
    text
}

fn window_line(verdict: &SteadyVerdict, window: &FittedWindow) -> String {
    let last = if verdict.closest.is_some() {
        ", the last, not steady"
    } else {
        ""
    };
    format!(
        "{} {}–{}, {} to {}, n = {}{last}",
        places(&verdict.rule),
        window.first,
        window.last,
        units::duration(window.begin_ms),
        units::duration(window.end_ms),
        window.n
    )
}

fn why_none(judged: &Judged) -> String {
    let verdict = &judged.verdict;
    match verdict.outcome {
        SteadyOutcome::TooShort => format!(
            "{} of {} {} are there; --round and --window make it shorter",
            verdict.rounds,
            verdict.rule.window(),
            places(&verdict.rule)
        ),
        _ => format!("the last {} have missing values", places(&verdict.rule)),
    }
}

fn closest_line(verdict: &SteadyVerdict, window: &FittedWindow) -> String {
    let terms: Vec<String> = verdict
        .rule
        .terms(window)
        .map(|term| format!("{} {}", term_label(term.term), percents(&term)))
        .collect();
    let at = units::duration(window.end_ms);
    let place = window.last;
    format!(
        "the window that ends at {place}, {at}: {}",
        terms.join(", ")
    )
}

fn term_label(kind: TermKind) -> &'static str {
    match kind {
        TermKind::Deviation => "from the mean",
        TermKind::Slope => "slope per sample",
        TermKind::DataExcursion => "data excursion",
        TermKind::SlopeExcursion => "slope excursion",
    }
}

/// Measured, the sign of the comparison, allowed: in percent of the mean.
fn percents(term: &Term) -> String {
    let measured = term.measured_percent.map_or("no I/O".to_owned(), short);
    let sign = match (term.holds, term.strict) {
        (true, true) => "<",
        (true, false) => "≤",
        (false, true) => "≥",
        (false, false) => ">",
    };
    format!("{measured} {sign} {}", short(term.allowed_percent))
}

/// A percentage with as many digits as tell something.
fn short(percent: f64) -> String {
    if percent != 0.0 && percent.abs() < 1.0 {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.1} %")
    }
}

fn term_line(metric: Metric, term: &Term) -> String {
    let [measured, allowed] = [term.measured, term.allowed].map(|v| figure(metric, v));
    let word = match (term.holds, term.measured_percent) {
        (true, _) => "holds".to_owned(),
        (false, Some(percent)) => format!("fails by {}", short(percent - term.allowed_percent)),
        (false, None) => "fails".to_owned(),
    };
    let sign = if term.strict { "below" } else { "at most" };
    format!("{measured}, {sign} {allowed}: {}, {word}", percents(term))
}

fn fit_line(metric: Metric, window: &FittedWindow) -> String {
    let sign = if window.slope < 0.0 { "−" } else { "+" };
    let [at, by] = [window.intercept, window.slope.abs()].map(|v| figure(metric, v));
    let r = window
        .correlation
        .map_or("–".to_owned(), |r| format!("{r:.2}"));
    format!(
        "y = {at} {sign} {by} · k, k = 0 … {}; r = {r}",
        window.n - 1
    )
}

fn fio_line(fio: &FioVerdict) -> String {
    let said = |attained: bool| if attained { "attained" } else { "not attained" };
    let mut text = format!(
        "fio itself, job {}, ss={}: {} ({})",
        fio.job,
        fio.ss,
        said(fio.attained),
        fio.criterion
    );
    match (&fio.remark, fio.recomputed_attained) {
        (None, _) => text += "; its values say the same",
        (Some(remark), Some(attained)) => {
            text += &format!("; its values say {}: {remark}", said(attained));
        }
        (Some(remark), None) => text += &format!("; {remark}"),
    }
    text
}

fn title(metric: Metric) -> String {
    match metric {
        Metric::Iops => "IOPS".to_owned(),
        Metric::Bandwidth => "bandwidth".to_owned(),
        Metric::Latency => "mean clat".to_owned(),
        Metric::Percentile(percent) => format!("clat p{percent}"),
    }
}

fn figure(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Iops => units::count(value),
        Metric::Bandwidth => units::bytes_per_second(value),
        Metric::Latency | Metric::Percentile(_) => units::latency(value),
    }
}
