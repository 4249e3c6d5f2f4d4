//! `fathom doctor`: what works on this machine, what is missing, how to get it.

use std::path::PathBuf;

use fathom_model::Exit;
use fathom_sheet::style::wrap;
use serde::Serialize;

use super::Global;
use crate::out;

mod limits;
mod machine;
mod native;
mod paths;
mod tools;

/// Name and version of the document that `--json` prints.
const SCHEMA: &str = "fathom.doctor/1";

/// Say what works on this machine and what is missing, with the command that gets it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom doctor
  fathom doctor /mnt/data          # and what lies under this path
  fathom doctor --json | jq -r '.checks[] | select(.state != \"ok\") | .fix'")]
pub struct Args {
    /// Also say what lies under these files, folders or devices
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CheckState {
    /// As it should be.
    Ok,
    /// Works, and may influence a figure or stop a large job.
    Note,
    /// Not here, and not needed by everybody.
    Absent,
    /// Not here, and nothing is measured without it.
    Missing,
}

/// One thing looked at.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Check {
    /// Heading it stands under.
    topic: &'static str,
    /// What was looked at.
    name: String,
    state: CheckState,
    /// What was found, in words.
    found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document<'a> {
    schema: &'static str,
    /// Whether jobs can be run here at all.
    ready: bool,
    checks: &'a [Check],
}

/// Collects the checks of one topic.
struct Topic<'a> {
    topic: &'static str,
    checks: &'a mut Vec<Check>,
}

impl Topic<'_> {
    fn ok(&mut self, name: &str, found: impl Into<String>) {
        self.add(name, CheckState::Ok, found, None);
    }

    /// Whether a check of this name was made and found nothing wrong.
    fn is_ok(&self, name: &str) -> bool {
        let mut checks = self.checks.iter();
        checks.any(|check| check.name == name && check.state == CheckState::Ok)
    }

    fn add(
        &mut self,
        name: &str,
        state: CheckState,
        found: impl Into<String>,
        fix: Option<String>,
    ) {
        self.checks.push(Check {
            topic: self.topic,
            name: name.to_owned(),
            state,
            found: found.into(),
            fix,
        });
    }
}

pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut checks = Vec::new();
    let mut topic = |topic, look: &dyn Fn(&mut Topic)| {
        look(&mut Topic {
            topic,
            checks: &mut checks,
        });
    };
    topic("machine", &machine::look);
    topic("engines", &native::look);
    topic("engines", &tools::engines);
    topic("limits", &limits::look);
    topic("records", &|t| machine::room_for_runs(t, &global.runs));
    topic("tools", &tools::look);
    topic("paths", &|t| paths::look(t, &args.paths));
    let ready = !checks
        .iter()
        .any(|check| check.state == CheckState::Missing);
    if global.json {
        let document = Document {
            schema: SCHEMA,
            ready,
            checks: &checks,
        };
        out::json(&document)?;
    } else {
        out::line(render(&checks, out::style(global.color).width).trim_end());
    }
    Ok(if ready { Exit::Success } else { Exit::Missing })
}

/// The checks for people: a block a topic, the fix below what it mends.
fn render(checks: &[Check], columns: Option<u16>) -> String {
    let width = checks.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut topic = "";
    for check in checks {
        if check.topic != topic {
            topic = check.topic;
            text += &format!("\n{topic}\n");
        }
        let state = match check.state {
            CheckState::Ok => "ok",
            CheckState::Note => "note",
            CheckState::Absent => "absent",
            CheckState::Missing => "MISSING",
        };
        let room = columns.map_or(usize::MAX, usize::from);
        // Behind the name, but at least as much as a few words need.
        let room = room.saturating_sub(13 + width).max(24);
        let mut head = format!("  {state:<7}  {:<width$}  ", check.name);
        let fix = check.fix.as_ref().map(|fix| format!("→ {fix}"));
        for told in std::iter::once(&check.found).chain(&fix) {
            for line in wrap(told, room) {
                text += &format!("{head}{line}\n");
                head = format!("  {:<7}  {:<width$}  ", "", "");
            }
        }
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let verdict = match count(CheckState::Missing) {
        0 => "jobs can be run here",
        _ => "no job can be run here",
    };
    let (notes, absent) = (count(CheckState::Note), count(CheckState::Absent));
    format!(
        "{}\n{verdict}; {notes} noted, {absent} absent\n",
        text.trim_start()
    )
}

/// The contents of a small file, trimmed; `None` when it cannot be read.
fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fix_stands_below_what_it_mends() {
        let mut checks = Vec::new();
        let mut topic = Topic {
            topic: "engines",
            checks: &mut checks,
        };
        topic.ok("io_uring", "allowed");
        let fix = Some("apt-get install fio".to_owned());
        topic.add("fio", CheckState::Missing, "not installed", fix);
        let text = render(&checks, None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "engines");
        assert_eq!(lines[1], "  ok       io_uring  allowed");
        assert_eq!(lines[2], "  MISSING  fio       not installed");
        assert_eq!(lines[3], "                     → apt-get install fio");
        assert_eq!(lines[5], "no job can be run here; 0 noted, 0 absent");
        let narrow = render(&checks, Some(30));
        assert!(narrow.lines().any(|line| line == lines[1]), "{narrow}");
        let long = "x".repeat(20) + " and so on";
        checks[0].found = long;
        let narrow = render(&checks, Some(48));
        assert_eq!(narrow.lines().nth(2), Some("                     on"));
    }
}
