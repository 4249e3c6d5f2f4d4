//! What stands against provisioning some drives, for all of them at once, with
//! the command that would confirm them.

use fathom_jobfile::shell_quote;
use fathom_model::{Exit, units};
use fathom_prepare::provision::{Provision, Refused};

use super::summary::about;
use crate::cmd::ExitError;

/// The refusal as an error.
pub fn error(provision: &Provision, refused: &Refused) -> ExitError {
    let command: Vec<_> = std::env::args().collect();
    let error = ExitError::new(Exit::Refused, text(provision, refused, &command));
    error.with_findings(refused.findings.clone())
}

fn text(provision: &Provision, refused: &Refused, command: &[String]) -> String {
    let mut lines = vec!["no drive was touched".to_owned()];
    lines.extend(refused.reasons.iter().cloned());
    for word in &refused.idle_words {
        lines.push(format!(
            "--destroy {}: it names none of these drives",
            shell_quote(word)
        ));
    }
    if refused.unnamed.is_empty() {
        return lines.join("\n");
    }
    lines.push("all data on these would be lost, which needs to be confirmed:".to_owned());
    for (path, _) in &refused.unnamed {
        let of_path = provision.drives.iter().find(|one| one.drive.path == *path);
        let drive = of_path.map(|one| &one.drive);
        let device = drive.and_then(|drive| drive.device.as_ref());
        let size = device.map_or(0, |device| device.capacity_bytes);
        let size = units::bytes(size as f64);
        let about = drive.map(about).unwrap_or_default();
        lines.push(
            format!("  {}  {size}  {about}", path.display())
                .trim_end()
                .to_owned(),
        );
    }
    lines.push("to do: if this is what you want:".to_owned());
    lines.push(format!("  {}", confirmed(refused, command)));
    lines.join("\n")
}

/// The command as it was given, with every drive named that was not.
fn confirmed(refused: &Refused, command: &[String]) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut given = command.iter();
    while let Some(word) = given.next() {
        // A word that names nothing was meant for one of those that follow.
        let idle = |word: &str| {
            refused
                .idle_words
                .iter()
                .any(|idle| idle.trim() == word.trim())
        };
        if word == "--dry-run" {
            continue;
        }
        if word == "--destroy" {
            match given.next() {
                Some(value) if !idle(value) => {
                    words.extend(["--destroy".to_owned(), shell_quote(value)]);
                }
                _ => {}
            }
            continue;
        }
        if word.strip_prefix("--destroy=").is_some_and(idle) {
            continue;
        }
        words.push(shell_quote(word));
    }
    for (_, names) in &refused.unnamed {
        if let Some(name) = names.first() {
            words.extend(["--destroy".to_owned(), shell_quote(name)]);
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_paste_names_every_drive_and_leaves_out_what_names_none() {
        let refused = Refused {
            reasons: Vec::new(),
            unnamed: vec![
                ("/dev/sda".into(), vec!["S 1".into(), "wwn-1".into()]),
                ("/dev/loop3".into(), vec!["/dev/loop3=64MiB".into()]),
            ],
            idle_words: vec!["typo".into()],
            findings: Vec::new(),
        };
        let given =
            "fathom provision --all ata --destroy typo --destroy=typo --destroy S2 --dry-run";
        let given: Vec<String> = given.split(' ').map(str::to_owned).collect();
        assert_eq!(
            confirmed(&refused, &given),
            "fathom provision --all ata --destroy S2 --destroy 'S 1' --destroy /dev/loop3=64MiB"
        );
    }
}
