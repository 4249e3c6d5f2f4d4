//! `fathom init`: a folder becomes a campaign.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use fathom_kconfig::Config;
use fathom_prepare::shipped;

use super::{CONFIG, Folder};
use crate::CampaignError;

/// How a campaign is made.
#[derive(Debug, Clone, Default)]
pub struct Init {
    /// Also in a folder that is not empty: adds what is missing.
    pub force: bool,
    /// The defconfig that becomes its `.config`.
    pub defconfig: Option<String>,
}

/// What making a campaign has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Files that were written.
    pub written: Vec<PathBuf>,
    /// Files that were there and are not the shipped ones; they stay.
    pub kept: Vec<PathBuf>,
}

/// Makes a campaign in `dir` from the shipped files. What is there is never
/// overwritten. Variables of the environment count where Kconfig asks for them.
///
/// # Errors
/// When the folder is not empty and `force` is off, the defconfig is unknown,
/// or the system refuses.
pub fn init(
    dir: &Path,
    wanted: &Init,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Unpacked, CampaignError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| CampaignError::io(path, error)
    };
    let occupied = match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(CampaignError::io(dir, error)),
    };
    if occupied && !wanted.force {
        return Err(CampaignError::NotEmpty(dir.to_owned()));
    }
    if let Some(name) = &wanted.defconfig {
        known(dir, name)?;
    }
    fs::create_dir_all(dir).map_err(io(dir))?;
    let mut done = Unpacked::default();
    for (name, text) in shipped::FILES {
        let path = dir.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io(parent))?;
        }
        put(&path, text, &mut done)?;
    }
    if let Some(name) = &wanted.defconfig {
        let folder = Folder::open(dir)?;
        let path = dir.join(super::DEFCONFIGS).join(name);
        let text = fs::read_to_string(&path).map_err(io(&path))?;
        let mut config = Config::new(folder.tree(env)?);
        config.read(&text, &path.display().to_string());
        let text = config.write("");
        put(&dir.join(CONFIG), &text, &mut done)?;
    }
    Ok(done)
}

/// Whether there is such a defconfig, shipped or in the folder already.
fn known(dir: &Path, name: &str) -> Result<(), CampaignError> {
    let shipped = shipped::defconfigs().map(|(name, _)| name.to_owned());
    let own = Folder {
        dir: dir.to_owned(),
    }
    .defconfigs();
    let mut all: Vec<String> = shipped.chain(own).collect();
    all.sort();
    all.dedup();
    if all.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(CampaignError::NoDefconfig {
        name: name.to_owned(),
        known: all.join(", "),
    })
}

/// Writes a file that is not there yet.
fn put(path: &Path, text: &str, done: &mut Unpacked) -> Result<(), CampaignError> {
    let created = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    match created {
        Ok(mut file) => {
            let written = file.write_all(text.as_bytes());
            written.map_err(|error| CampaignError::io(path, error))?;
            done.written.push(path.to_owned());
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if fs::read(path).is_ok_and(|old| old != text.as_bytes()) {
                done.kept.push(path.to_owned());
            }
        }
        Err(error) => return Err(CampaignError::io(path, error)),
    }
    Ok(())
}
