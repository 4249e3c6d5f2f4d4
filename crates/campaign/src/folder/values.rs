//! `.config` and the defconfigs of a campaign: taken and written.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use fathom_kconfig::{Config, Warning, WarningKind};
use fathom_prepare::shipped;

use super::{DEFCONFIGS, Folder};
use crate::CampaignError;

/// A configuration that is ready, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defconfig {
    /// The file's name.
    pub name: String,
    /// In the form of a `.config`; what it does not name has its default.
    pub text: String,
    /// The file; `None` for a shipped one that the folder does not have.
    pub path: Option<PathBuf>,
}

impl Defconfig {
    /// What it is, from its first line; empty when that says nothing.
    pub fn about(&self) -> &str {
        let first = self.text.lines().next().unwrap_or_default();
        let about = first.strip_prefix("# ").unwrap_or_default();
        // "# CONFIG_X is not set" is a value.
        if about.starts_with("CONFIG_") {
            return "";
        }
        about
    }

    /// What messages call it.
    pub fn place(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => format!("the shipped {}", self.name),
        }
    }
}

impl Folder {
    /// Every defconfig by name: those of the folder, and the shipped ones that
    /// it does not have.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn all_defconfigs(&self) -> Result<Vec<Defconfig>, CampaignError> {
        let mut all = Vec::new();
        for name in self.defconfigs() {
            let path = self.file(DEFCONFIGS).join(&name);
            let text = fs::read_to_string(&path);
            let text = text.map_err(|error| CampaignError::io(&path, error))?;
            let path = Some(path);
            all.push(Defconfig { name, text, path });
        }
        for (name, text) in shipped::defconfigs() {
            if !all.iter().any(|own| own.name == name) {
                let (name, text) = (name.to_owned(), text.to_owned());
                let path = None;
                all.push(Defconfig { name, text, path });
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}

/// Gives `config` the values of a `.config` text, which messages call `name`;
/// says what is doubtful about them.
///
/// # Errors
/// With every line that is none, or whose value its symbol cannot have: a
/// campaign must not run for days with a value that was meant otherwise.
pub fn take(config: &mut Config, text: &str, name: &str) -> Result<Vec<Warning>, CampaignError> {
    let mut warnings = config.read(text, name);
    let is_wrong = |warning: &&Warning| {
        matches!(
            warning.kind,
            WarningKind::Malformed | WarningKind::InvalidValue
        )
    };
    let wrong = warnings.iter().filter(is_wrong).map(ToString::to_string);
    let wrong: Vec<String> = wrong.collect();
    if !wrong.is_empty() {
        return Err(CampaignError::Config(wrong));
    }
    warnings.extend(config.warnings());
    Ok(warnings)
}

/// Writes a configuration as a whole: a reader finds the old text or the new
/// one. With `keep_old` the text before is kept beside it, with `.old` behind
/// its name. Says whether there was a change; without one nothing is written.
///
/// # Errors
/// When the system refuses; the file is as it was.
pub fn save(path: &Path, text: &str, keep_old: bool) -> Result<bool, CampaignError> {
    fathom_fleet::named_file::may_write(path).map_err(CampaignError::Refused)?;
    // Where a link points to, so that the link stays one.
    let path = &fathom_record::destination(path).map_err(|error| CampaignError::io(path, error))?;
    let old = fs::read(path);
    if old.as_ref().is_ok_and(|old| old == text.as_bytes()) {
        return Ok(false);
    }
    if !keep_old && old.as_ref().is_ok_and(|old| !is_configuration(old)) {
        let what = "holds no configuration; it is as it was\n  to do: name another file";
        return Err(CampaignError::Refused(format!("{} {what}", path.display())));
    }
    let written = fathom_record::replace(path, |file| {
        write(file, path, text)?;
        match keep_old && old.is_ok() {
            true => keep(path, &old_name(path)),
            false => Ok(()),
        }
    });
    match written {
        Ok(()) => Ok(true),
        Err(error) => Err(CampaignError::io(path, error)),
    }
}

/// Whether a text is one of symbols and their values.
fn is_configuration(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n').all(|line| {
        let line = line.trim_ascii();
        line.is_empty() || line.starts_with(b"#") || line.starts_with(b"CONFIG_")
    })
}

/// The name under which the file of before is kept, as Kconfig does.
fn old_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    PathBuf::from(name)
}

/// Writes a new file with the permissions of another, where that exists.
fn write(file: &mut File, like: &Path, text: &str) -> io::Result<()> {
    if let Ok(old) = fs::metadata(like) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    // A rename can reach the disk before the text does.
    file.sync_all()
}

/// Gives a file a second name, in the place of what had that name.
fn keep(path: &Path, old: &Path) -> io::Result<()> {
    match fs::symlink_metadata(old) {
        Ok(meta) if !meta.is_file() && !meta.is_symlink() => {
            return Err(io::Error::other(format!("{} is no file", old.display())));
        }
        _ => {}
    }
    match fs::remove_file(old) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Some file systems have no hard links.
    fs::hard_link(path, old).or_else(|_| {
        fathom_record::replace(old, |to| io::copy(&mut File::open(path)?, to).map(drop))
    })
}
