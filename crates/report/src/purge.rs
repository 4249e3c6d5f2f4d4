//! A purge as a person reads it.

use fathom_model::purge::PurgeDocument;
use fathom_model::{ExpectedContent, RunStatus, Verification, units};

use fathom_sheet::style::{Style, Tone, wrap};

/// The document as text, ending in a newline.
pub fn text(doc: &PurgeDocument, style: Style) -> String {
    let mut lines = Vec::new();
    let device = &doc.device;
    let model = device
        .model
        .as_deref()
        .or(device.backing.as_deref())
        .unwrap_or_default();
    let size = units::bytes(device.capacity_bytes as f64);
    let path = doc.path.display().to_string();
    lines.push(format!(
        "{}  {model} {size}",
        style.paint(Tone::Strong, &path)
    ));
    let status = match doc.status {
        RunStatus::Complete => style.paint(Tone::Good, "purged"),
        RunStatus::Interrupted => style.paint(Tone::Doubtful, "interrupted"),
        _ => style.paint(Tone::Bad, "NOT purged"),
    };
    let mut fact = |label: &str, text: &str| {
        let room = usize::from(style.width.unwrap_or(100)).saturating_sub(LABEL + 1);
        for (number, line) in wrap(text, room).into_iter().enumerate() {
            let label = if number == 0 { label } else { "" };
            let label = style.paint(Tone::Faint, &format!("{label:<LABEL$}"));
            lines.push(format!("{label} {line}"));
        }
    };
    fact("state", &status);
    fact("method", &doc.method);
    fact("reason", &doc.reason);
    for other in &doc.touched {
        fact("with it", &other.display().to_string());
    }
    for (label, text) in beside(doc) {
        fact(label, &text);
    }
    // The samples are told below.
    let commands = doc
        .commands
        .iter()
        .filter(|issued| !issued.command.starts_with('#'));
    for issued in commands {
        fact(
            "command",
            &format!("{} ({})", issued.command, issued.answer),
        );
    }
    if let Some(purged) = &doc.purged {
        fact("took", &took(purged.took_ms));
        if purged.bytes_after != purged.bytes_before {
            let after = units::bytes(purged.bytes_after as f64);
            fact(
                "size now",
                &format!("{after} ({} bytes)", purged.bytes_after),
            );
        }
        for (label, text) in seen(&purged.verification) {
            fact(label, &text);
        }
    }
    if let Some(error) = &doc.error {
        for line in error.lines() {
            fact("error", line.trim());
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

/// What was not done, what was tried before, and what no way reaches.
fn beside(doc: &PurgeDocument) -> impl Iterator<Item = (&'static str, String)> {
    let passed = doc.passed_over.iter();
    let passed = passed.map(|it| ("passed over", format!("{}: {}", it.method, it.reason)));
    let tried = doc.purged.iter().flat_map(|purged| &purged.tried);
    let tried = tried.map(|it| {
        let text = format!("{}, and nothing was lost: {}", it.method, it.reason);
        ("tried", text)
    });
    let hidden = doc.hidden.iter().map(|it| {
        let size = units::bytes(it.bytes as f64);
        ("not reached", format!("{size}, {}", it.what))
    });
    passed.chain(tried).chain(hidden)
}

/// Columns of the labels.
const LABEL: usize = 11;

fn took(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        _ => units::duration(ms),
    }
}

/// What was looked at, what was found, and what it proves.
fn seen(seen: &Verification) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            found.push(format!("{count} {what}"));
        }
    };
    say(seen.zeros, "zeros");
    say(seen.ones, "all FFh");
    say(seen.written, "what was written over them");
    say(seen.other, "other content");
    say(seen.kept, "STILL THERE");
    say(seen.unreadable, "unreadable");
    say(seen.beyond, "beyond the new end");
    let promised = match seen.promise {
        ExpectedContent::Gone => "promised: nothing of them",
        ExpectedContent::Zeros => "promised: zeros",
        ExpectedContent::Written => "promised: what was written over them",
    };
    let samples = format!(
        "{} of {} written before, {} % of the device, read past the page cache",
        seen.samples,
        units::bytes(f64::from(seen.sample_bytes)),
        percent(seen.seen_percent),
    );
    let mut all = vec![
        ("samples", samples),
        ("found", format!("{} ({promised})", found.join(", "))),
    ];
    if seen.held() {
        let missed = match seen.seen_percent >= 100.0 {
            true => "every block was looked at".to_owned(),
            false => format!(
                "a left-over stretch of {} would have been seen; scattered ones of {} % of the \
                 device or more are missed with a probability of 1 % at the most",
                units::bytes(seen.stretch_bytes as f64),
                percent(seen.scattered_percent),
            ),
        };
        all.push(("proves", missed));
    }
    all
}

/// Two figures that count.
fn percent(value: f64) -> String {
    if value >= 99.95 {
        return "100".to_owned();
    }
    if value >= 0.1 {
        return format!("{value:.2}");
    }
    format!("{value:.1e}")
}
