//! How diagnostics look to a person.

use std::io::IsTerminal;

use fathom_jobfile::{Diagnostic, Severity};
use fathom_sheet::style::{Style, Tone};

/// Diagnostics with their lines, in colour on a terminal that wants it.
pub fn diagnostics(list: &[Diagnostic]) -> String {
    text(list, std::io::stdout().is_terminal())
}

/// The same for stderr.
pub fn diagnostics_for_stderr(list: &[Diagnostic]) -> String {
    text(list, std::io::stderr().is_terminal())
}

fn text(list: &[Diagnostic], terminal: bool) -> String {
    let colours = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let blocks: Vec<String> = list.iter().map(|it| block(it, colours)).collect();
    blocks.join("\n")
}

fn block(diagnostic: &Diagnostic, colours: bool) -> String {
    let style = Style {
        color: colours,
        width: None,
    };
    let tone = match diagnostic.severity {
        Severity::Error => Tone::Bad,
        Severity::Mistake | Severity::Warning => Tone::Doubtful,
    };
    let mut block = format!(
        "{}: {}: {}\n",
        diagnostic.place(),
        style.paint(tone, &diagnostic.severity.to_string()),
        diagnostic.message
    );
    // A finding about the file as a whole has no line to show.
    if !diagnostic.text.trim().is_empty() {
        for (place, row) in diagnostic.excerpt().lines().enumerate() {
            let tone = if place == 1 { tone } else { Tone::Plain };
            block.push_str(&style.paint(tone, row));
            if let (1, Some(meant)) = (place, &diagnostic.suggestion) {
                block.push(' ');
                block.push_str(&style.paint(tone, &format!("did you mean {meant}?")));
            }
            block.push('\n');
        }
    }
    block
}

/// The first error, in one line.
pub fn first_error(list: &[Diagnostic]) -> String {
    let first = list.iter().find(|it| it.severity == Severity::Error);
    first.map(Diagnostic::to_string).unwrap_or_default()
}
