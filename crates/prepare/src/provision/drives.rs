//! Which drives are provisioned, for which load, and whether all of them may be
//! written to.

use std::fmt;
use std::path::{Path, PathBuf};

use fathom_device::drives::{self, Transport};
use fathom_device::safety::{self, Confirmations, Refusal};
use fathom_device::{Sys, SysBlock, identity};
use fathom_model::RefusalFinding;
use fathom_model::environment::BlockDevice;
use fathom_model::ledger::Pattern;
use serde::{Deserialize, Serialize};

use fathom_flow::error::RunError;

/// Which load the drives are to be steady for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum SteadyFor {
    /// Sequential writes
    #[value(name = "seq")]
    Sequential,
    /// Random writes
    Random,
    /// Sequential on drives with an even number in their name, random on odd ones
    Mixed,
}

impl SteadyFor {
    /// The load of one drive; one without a number in its name counts by its
    /// place among the drives.
    pub fn of(self, path: &Path, place: usize) -> Pattern {
        let number = drives::number(path).unwrap_or(place as u64);
        match self {
            Self::Sequential => Pattern::Sequential,
            Self::Random => Pattern::Random,
            Self::Mixed if number.is_multiple_of(2) => Pattern::Sequential,
            Self::Mixed => Pattern::Random,
        }
    }
}

impl fmt::Display for SteadyFor {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Sequential => "seq",
            Self::Random => "random",
            Self::Mixed => "mixed",
        })
    }
}

/// One drive that is to be provisioned.
#[derive(Debug, Clone)]
pub struct ProvisionDrive {
    /// Its path, as it was given.
    pub path: PathBuf,
    /// Its kernel name, or the last part of the path where it is simulated.
    pub name: String,
    /// What it is; `None` where it is simulated, or gone.
    pub device: Option<BlockDevice>,
}

/// A drive that is left alone, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its path.
    pub path: PathBuf,
    /// Everything that speaks against it, each a sentence.
    pub reasons: Vec<String>,
}

/// The drives that were found.
#[derive(Debug, Clone, Default)]
pub struct FoundDrives {
    /// Those to be provisioned.
    pub drives: Vec<ProvisionDrive>,
    /// Those that are in use, or cannot be written to.
    pub skipped: Vec<Skipped>,
}

impl ProvisionDrive {
    /// The drive at a path; where none is now, only its name is known.
    pub fn at(path: &Path) -> Self {
        let sys = Sys::live();
        match sys.by_path(path) {
            Some(node) => Self::of(&sys, path, &node),
            None => Self::simulated(path),
        }
    }

    /// A drive of which only the name is known: it is simulated.
    pub fn simulated(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Self {
            path: path.to_owned(),
            name: name.to_string_lossy().into_owned(),
            device: None,
        }
    }

    fn of(sys: &Sys, path: &Path, node: &SysBlock) -> Self {
        Self {
            path: path.to_owned(),
            name: node.name.clone(),
            device: Some(identity::block_device(sys, node)),
        }
    }
}

/// All drives of a kind: those that nobody uses, and with a reason each those
/// that stay as they are. Data that may be wanted are a reason too.
///
/// # Errors
/// When there is none at all.
pub fn all(kind: Transport) -> Result<FoundDrives, RunError> {
    let sys = Sys::live();
    let mut found = FoundDrives::default();
    for drive in drives::of(&sys, kind) {
        let path = drive.node.dev_path();
        let mut reasons = drive.against;
        if reasons.is_empty() {
            reasons = carried(&path);
        }
        match reasons.is_empty() {
            true => found
                .drives
                .push(ProvisionDrive::of(&sys, &path, &drive.node)),
            false => found.skipped.push(Skipped { path, reasons }),
        }
    }
    if found.drives.is_empty() {
        let mut what = match found.skipped.len() {
            0 => format!("there is no {kind} drive here"),
            n => format!("none of the {n} {kind} drives can be provisioned"),
        };
        for skipped in &found.skipped {
            what += &format!("\n  - {skipped}");
        }
        let advice = "name the drives one by one, or see what is attached: lsblk -o NAME,TRAN,MODEL,SERIAL,MOUNTPOINTS";
        return Err(RunError::Missing(format!("{what}\n  to do: {advice}")));
    }
    Ok(found)
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reasons.join("; "))
    }
}

/// What a free drive carries that may be wanted, or what keeps that from being
/// found out.
fn carried(path: &Path) -> Vec<String> {
    match safety::check_write(path, &Confirmations::default()) {
        Ok(()) | Err(Refusal::Unconfirmed(_)) => Vec::new(),
        Err(Refusal::InUse(found)) => found.uses.iter().map(ToString::to_string).collect(),
        Err(other) => vec![other.to_string()],
    }
}

/// The drives at these paths.
///
/// # Errors
/// A path that is no block device, and one device that is named twice, also as
/// a part of another.
pub fn named(paths: &[PathBuf]) -> Result<Vec<ProvisionDrive>, RunError> {
    let sys = Sys::live();
    let mut nodes: Vec<(SysBlock, &Path)> = Vec::new();
    let mut faults = Vec::new();
    for path in paths {
        let Some(node) = sys.by_path(path) else {
            faults.push(match safety::check_write(path, &Confirmations::default()) {
                Err(refusal) => refusal.to_string(),
                Ok(()) => format!("{} is no block device", path.display()),
            });
            continue;
        };
        let same = |(other, _): &&(SysBlock, &Path)| {
            let parts = other.is_partition() && node.is_partition();
            *other == node
                || (!parts && other.whole() == node.whole())
                || fathom_device::lead_to_one_drive(&sys, other, &node)
        };
        match nodes.iter().find(same) {
            Some((_, other)) => faults.push(format!(
                "{} and {} are one device",
                other.display(),
                path.display()
            )),
            None => nodes.push((node, path)),
        }
    }
    if !faults.is_empty() {
        return Err(RunError::Input(faults.join("\n")));
    }
    let drive = |(node, path): &(SysBlock, &Path)| ProvisionDrive::of(&sys, path, node);
    Ok(nodes.iter().map(drive).collect())
}

/// Why the drives may not be written to: what stands against each of them, all
/// told at once. Nothing was touched.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// What stands against a drive beside that it was not named.
    pub reasons: Vec<String>,
    /// Drives that were not named: the path, and the words that name it, the
    /// shortest first.
    pub unnamed: Vec<(PathBuf, Vec<String>)>,
    /// Words that name none of the drives.
    pub idle_words: Vec<String>,
    /// What was found of each, for programs.
    pub findings: Vec<RefusalFinding>,
}

/// Whether all drives may be written to: nobody uses them, they carry nothing,
/// and each was named by a word that only it answers to.
///
/// # Errors
/// Everything that stands against it, for all drives together.
pub fn check(drives: &[&ProvisionDrive], words: &[String]) -> Result<(), Refused> {
    let confirmed = Confirmations(words.to_vec());
    let mut refused = Refused::default();
    for drive in drives {
        let Err(refusal) = safety::check_write(&drive.path, &confirmed) else {
            continue;
        };
        refused.findings.extend(refusal.findings());
        match refusal {
            Refusal::Unconfirmed(unnamed) => {
                refused.unnamed.push((drive.path.clone(), unnamed.words));
            }
            other => refused.reasons.push(other.to_string()),
        }
    }
    if refused == Refused::default() {
        return Ok(());
    }
    refused.idle_words = idle(drives, words);
    Err(refused)
}

fn idle(drives: &[&ProvisionDrive], words: &[String]) -> Vec<String> {
    let sys = Sys::live();
    let names = |word: &String| {
        let word = Confirmations(vec![word.clone()]);
        drives.iter().any(|drive| {
            sys.by_path(&drive.path).is_some_and(|node| {
                word.name(
                    &sys,
                    &node,
                    &fathom_device::names::words(&sys, &drive.path, &node),
                )
            })
        })
    };
    words.iter().filter(|word| !names(word)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_alternates_by_the_number_of_the_drive_and_by_place_where_it_has_none() {
        let mixed = |path: &str, place| SteadyFor::Mixed.of(Path::new(path), place);
        assert_eq!(mixed("/dev/nvme0n1", 1), Pattern::Sequential);
        assert_eq!(mixed("/dev/nvme1n1", 0), Pattern::Random);
        assert_eq!(mixed("/dev/sdb", 0), Pattern::Random);
        assert_eq!(mixed("/dev/mapper/data", 0), Pattern::Sequential);
        assert_eq!(mixed("/dev/mapper/data", 1), Pattern::Random);
        let random = SteadyFor::Random.of(Path::new("/dev/sda"), 0);
        assert_eq!(random, Pattern::Random);
    }

    #[test]
    fn a_path_that_is_no_device_is_refused_with_all_others() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let paths = [PathBuf::from("/dev/nvme99n1"), file.path().to_owned()];
        let fault = named(&paths).unwrap_err().to_string();
        assert!(fault.contains("/dev/nvme99n1 does not exist"), "{fault}");
        assert!(fault.contains("is no block device"), "{fault}");
    }
}
