//! The job files of a campaign, written into its folder.
//!
//! What was written stands in a list (`.generated`) with a checksum, so that
//! files that are no longer asked for go, and what somebody has written or
//! changed by hand never does.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use fathom_prepare::precondition;

use crate::folder::file;
use crate::plan::ResolvedCampaign;
use crate::{CampaignError, Only};

/// The list of generated files.
pub const GENERATED: &str = ".generated";
const FORMAT: &str = "fathom.generated/1";

/// What generation has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Generation {
    /// Job files of the plan.
    pub files: usize,
    /// Those that were new or different.
    pub written: usize,
    /// Generated before, not asked for any more, and gone.
    pub removed: Vec<PathBuf>,
    /// Not asked for any more either, but changed by hand since: they stay.
    pub kept: Vec<PathBuf>,
}

/// Writes the job files of a plan, and removes those that were generated before
/// and are no longer asked for; `only` is what the plan was restricted to:
/// what lies outside it stays. A file appears as a whole or not at all.
///
/// # Errors
/// When a file is in the way that was made or changed by hand, unless `force`;
/// nothing has been written then. When the system refuses.
pub fn generate(
    plan: &ResolvedCampaign,
    only: &[Only],
    force: bool,
) -> Result<Generation, CampaignError> {
    let old = GeneratedFiles::read(&plan.folder)?;
    let files = job_files(plan, only);
    let mut new = old.clone();
    let mut writes: Vec<(&str, &str)> = Vec::new();
    let mut by_hand = Vec::new();
    for (name, text) in &files {
        let sum = checksum(text.as_bytes());
        let path = file(&plan.folder, Path::new(name));
        match fs::read(&path) {
            Ok(there) if there == text.as_bytes() => {}
            Ok(there) if !force && !old.has(name, checksum(&there)) => by_hand.push(path),
            Ok(_) => writes.push((name, text)),
            Err(error) if error.kind() == ErrorKind::NotFound => writes.push((name, text)),
            Err(error) => return Err(CampaignError::io(path, error)),
        }
        new.sums.entry(name.clone()).or_default().insert(sum);
    }
    if !by_hand.is_empty() {
        return Err(CampaignError::ByHand(by_hand));
    }
    // Old and new sums stand in the list while files change: whenever this is
    // cut short, every file on the disk is known for a generated one.
    if new != old {
        new.write(&plan.folder)?;
    }
    let mut folders = BTreeSet::new();
    for (name, text) in &writes {
        write(&plan.folder, Path::new(name), text, &mut folders)?;
    }
    let mut done = Generation {
        files: files.len(),
        written: writes.len(),
        ..Generation::default()
    };
    let asked = |name: &str| files.contains_key(name) || !is_meant(name, only);
    remove(&plan.folder, &asked, &mut new, &mut done)?;
    for (name, text) in &files {
        let sum = checksum(text.as_bytes());
        new.sums.insert(name.clone(), BTreeSet::from([sum]));
    }
    if new != old {
        new.write(&plan.folder)?;
    }
    Ok(done)
}

/// Removes all generated job files that `only` names, and does not make any.
///
/// # Errors
/// When the system refuses.
pub fn clean(folder: &Path, only: &[Only]) -> Result<Generation, CampaignError> {
    let mut list = GeneratedFiles::read(folder)?;
    let mut done = Generation::default();
    remove(folder, &|name| !is_meant(name, only), &mut list, &mut done)?;
    let path = folder.join(GENERATED);
    if !list.sums.is_empty() {
        list.write(folder)?;
    } else if path.exists() {
        fs::remove_file(&path).map_err(|error| CampaignError::io(path, error))?;
    }
    Ok(done)
}

/// The texts of the job files of a plan by their names, those of pre-conditioning
/// included; repetitions share one.
pub(crate) fn job_files<'p>(
    plan: &'p ResolvedCampaign,
    only: &[Only],
) -> BTreeMap<String, Cow<'p, str>> {
    let of_steps = plan.steps.iter().map(|step| {
        let name = step.job_file.to_string_lossy().into_owned();
        (name, Cow::Borrowed(step.job_text.as_str()))
    });
    let preparation = plan.preparation.precondition.iter();
    let prepares = preparation.flat_map(precondition::files).map(|file| {
        let name = file.path.to_string_lossy().into_owned();
        (name, Cow::Owned(file.text))
    });
    of_steps
        .chain(prepares.filter(|(name, _)| is_meant(name, only)))
        .collect()
}

/// What lies in the folder and belongs to an earlier configuration.
pub(crate) fn left_over(
    plan: &ResolvedCampaign,
    only: &[Only],
) -> Result<Vec<PathBuf>, CampaignError> {
    let files = job_files(plan, only);
    let list = GeneratedFiles::read(&plan.folder)?;
    let names = list.sums.into_keys();
    let old = names.filter(|name| !files.contains_key(name) && is_meant(name, only));
    let paths = old.map(|name| file(&plan.folder, Path::new(&name)));
    Ok(paths.filter(|path| path.exists()).collect())
}

fn is_meant(name: &str, only: &[Only]) -> bool {
    let id = name.strip_suffix(".ini").unwrap_or(name);
    only.is_empty() || only.iter().any(|only| only.has_id(id))
}

fn write(
    folder: &Path,
    name: &Path,
    text: &str,
    folders: &mut BTreeSet<PathBuf>,
) -> Result<(), CampaignError> {
    let path = folder.join(name);
    let parent = path.parent().unwrap_or(folder);
    if folders.insert(parent.to_owned()) {
        fs::create_dir_all(parent).map_err(|error| CampaignError::io(parent, error))?;
    }
    replace(&path, text.as_bytes())
}

/// Not synced: it can be made again.
fn replace(path: &Path, text: &[u8]) -> Result<(), CampaignError> {
    fathom_fleet::named_file::may_write(path).map_err(CampaignError::Refused)?;
    fathom_record::replace(path, |file| file.write_all(text))
        .map_err(|error| CampaignError::io(path, error))
}

/// Removes generated files that nobody asks for, and the folders that they
/// leave empty.
fn remove(
    folder: &Path,
    asked: &dyn Fn(&str) -> bool,
    list: &mut GeneratedFiles,
    done: &mut Generation,
) -> Result<(), CampaignError> {
    let old: Vec<String> = list.sums.keys().cloned().collect();
    for name in old.into_iter().filter(|name| !asked(name)) {
        let path = file(folder, Path::new(&name));
        match fs::read(&path) {
            Ok(there) if !list.has(&name, checksum(&there)) => done.kept.push(path),
            Ok(_) => {
                fs::remove_file(&path).map_err(|error| CampaignError::io(&path, error))?;
                let above = Path::new(&name).ancestors().skip(1);
                for above in above.filter(|above| !above.as_os_str().is_empty()) {
                    // It holds other files: results, or ones of the user's own.
                    if fs::remove_dir(folder.join(above)).is_err() {
                        break;
                    }
                }
                done.removed.push(path);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(CampaignError::io(path, error)),
        }
        list.sums.remove(&name);
    }
    Ok(())
}

/// The names of generated files, below the campaign's folder, each with the
/// checksums of what was written there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct GeneratedFiles {
    sums: BTreeMap<String, BTreeSet<u64>>,
}

impl GeneratedFiles {
    fn read(folder: &Path) -> Result<Self, CampaignError> {
        let path = folder.join(GENERATED);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(CampaignError::io(path, error)),
        };
        let mut lines = text.lines();
        if lines.next() != Some(FORMAT) {
            let message =
                format!("its first line is not {FORMAT}: move it away to have it made again");
            let wrong = std::io::Error::new(ErrorKind::InvalidData, message);
            return Err(CampaignError::io(path, wrong));
        }
        let mut list = Self::default();
        for line in lines {
            // A line that is none names no file: that file counts as made by hand.
            if let Some((sum, name)) = line.split_once("  ")
                && let Ok(sum) = u64::from_str_radix(sum, 16)
                && !name.split('/').any(|part| matches!(part, "" | ".."))
            {
                list.sums.entry(name.to_owned()).or_default().insert(sum);
            }
        }
        Ok(list)
    }

    fn has(&self, name: &str, sum: u64) -> bool {
        self.sums.get(name).is_some_and(|sums| sums.contains(&sum))
    }

    fn write(&self, folder: &Path) -> Result<(), CampaignError> {
        let mut text = format!("{FORMAT}\n");
        for (name, sums) in &self.sums {
            for sum in sums {
                text += &format!("{sum:016x}  {name}\n");
            }
        }
        replace(&folder.join(GENERATED), text.as_bytes())
    }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): tells a change, withstands no malice.
fn checksum(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(BASIS, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}
