//! The folder of a campaign: `Kconfig`, `.config` and `defconfigs/` in it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_kconfig::{Config, Disk, Loader, Tree, Warning, WarningKind};
use fathom_model::Exit;

use crate::cmd::ExitError;

/// The file that holds the values.
pub const CONFIG: &str = ".config";
/// The folder of the user's and the shipped defconfigs.
pub const DEFCONFIGS: &str = "defconfigs";

/// The defconfigs in the binary: for folders that have none of a name.
const SHIPPED: [(&str, &str); 6] = [
    (
        "all-tests",
        include_str!("../../../../../campaigns/configs/all-tests"),
    ),
    (
        "debug-quick",
        include_str!("../../../../../campaigns/configs/debug-quick"),
    ),
    (
        "nvme2n1-all",
        include_str!("../../../../../campaigns/configs/nvme2n1-all"),
    ),
    (
        "provision-random",
        include_str!("../../../../../campaigns/configs/provision-random"),
    ),
    (
        "provision-seq",
        include_str!("../../../../../campaigns/configs/provision-seq"),
    ),
    (
        "survey-10min",
        include_str!("../../../../../campaigns/configs/survey-10min"),
    ),
];

/// A campaign's folder.
#[derive(Debug)]
pub struct Folder {
    dir: PathBuf,
}

/// A defconfig and where it comes from.
#[derive(Debug)]
pub struct Defconfig {
    pub name: String,
    pub text: String,
    /// The file; `None` for one in the binary.
    pub path: Option<PathBuf>,
}

impl Defconfig {
    /// What it is, from its first line.
    pub fn about(&self) -> &str {
        let first = self.text.lines().next().unwrap_or_default();
        let about = first.strip_prefix("# ").unwrap_or_default();
        // "# CONFIG_X is not set" says nothing about the file.
        if about.starts_with("CONFIG_") {
            ""
        } else {
            about
        }
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
    /// The campaign in `dir`.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(dir: &Path) -> Result<Self, ExitError> {
        if dir.join("Kconfig").is_file() {
            return Ok(Self {
                dir: dir.to_owned(),
            });
        }
        let here = match dir {
            dir if dir == Path::new(".") => "this folder".to_owned(),
            dir => dir.display().to_string(),
        };
        Err(ExitError {
            exit: Exit::Missing,
            message: format!(
                "{here} has no Kconfig and so is no campaign: make one with `fathom init DIR`, \
                 or name one with -C DIR"
            ),
        })
    }

    /// A file of the folder; an absolute path stays what it is.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        match self.dir.strip_prefix(".") {
            Ok(rest) => rest.join(name),
            Err(_) => self.dir.join(name),
        }
    }

    /// The tree, read with the environment of this process.
    ///
    /// # Errors
    /// The first mistake in its files.
    pub fn tree(&self) -> Result<Arc<Tree>, ExitError> {
        let loaded = Loader::new(&Disk::new(&self.dir))
            .env(|name| std::env::var(name).ok())
            .load("Kconfig");
        loaded.map(Arc::new).map_err(|error| {
            let folder = match self.path("").as_os_str().is_empty() {
                true => String::new(),
                false => format!(" of {}", self.dir.display()),
            };
            input(format!("the Kconfig files{folder} cannot be read: {error}"))
        })
    }

    /// The defconfigs by name, those of the folder before those in the binary.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn defconfigs(&self) -> Result<Vec<Defconfig>, ExitError> {
        let mut found = Vec::new();
        let entries = fs::read_dir(self.path(DEFCONFIGS)).into_iter().flatten();
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy().into_owned();
            // Editors leave hidden files and copies that end with ~.
            if path.is_file() && !name.starts_with('.') && !name.ends_with('~') {
                let text = read(&path)?;
                let path = Some(path);
                found.push(Defconfig { name, text, path });
            }
        }
        for (name, text) in SHIPPED {
            if !found.iter().any(|own| own.name == name) {
                let (name, text) = (name.to_owned(), text.to_owned());
                found.push(Defconfig {
                    name,
                    text,
                    path: None,
                });
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}

/// The text of a file.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> Result<String, ExitError> {
    fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => ExitError {
            exit: Exit::Missing,
            message: format!("there is no {}", path.display()),
        },
        _ => input(format!("cannot read {}: {error}", path.display())),
    })
}

/// Takes the values of a `.config` text into `config`; gives what is doubtful.
///
/// # Errors
/// Every line that is none, or whose value its symbol cannot have.
pub fn take(config: &mut Config, text: &str, name: &str) -> Result<Vec<Warning>, ExitError> {
    let mut warnings = config.read(text, name);
    let is_wrong = |warning: &Warning| {
        matches!(
            warning.kind,
            WarningKind::Malformed | WarningKind::InvalidValue
        )
    };
    let wrong: Vec<String> = warnings
        .iter()
        .filter(|warning| is_wrong(warning))
        .map(ToString::to_string)
        .collect();
    if !wrong.is_empty() {
        return Err(input(wrong.join("\n")));
    }
    warnings.extend(config.warnings());
    Ok(warnings)
}

/// An input that is wrong.
pub fn input(message: String) -> ExitError {
    let exit = Exit::Input;
    ExitError { exit, message }
}

/// Writes a file as a whole: a reader finds the old text or the new one. The
/// old `.config` is kept as `.config.old`. Says whether there was a change; without
/// one nothing is written.
///
/// # Errors
/// What the system says.
pub fn save(path: &Path, text: &str, keep_old: bool) -> io::Result<bool> {
    // Where a link points to, so that the link stays one.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = fs::read(path);
    if old.as_ref().is_ok_and(|old| old == text.as_bytes()) {
        return Ok(false);
    }
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let part = beside(&format!(".{}.part", std::process::id()));
    let written = write(&part, path, text).and_then(|()| {
        if keep_old && old.is_ok() {
            keep(path, &beside(".old"))?;
        }
        fs::rename(&part, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written.map(|()| true)
}

fn write(part: &Path, like: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(part)?;
    if let Ok(old) = fs::metadata(like) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    // A rename can reach the disk before the text does.
    file.sync_all()
}

/// Gives a file a second name, in the place of what had that name.
fn keep(path: &Path, old: &Path) -> io::Result<()> {
    match fs::remove_file(old) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Some file systems have no hard links.
    fs::hard_link(path, old).or_else(|_| fs::copy(path, old).map(drop))
}
