//! The folder of a campaign.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_kconfig::{Config, DiskFiles, Loader, Tree, Warning};
use fathom_prepare::shipped;

use crate::CampaignError;
use crate::definition::Definitions;

mod init;
mod values;

pub use init::{Init, Unpacked, init};
pub use values::{Defconfig, save, take};

/// The file that holds the values.
pub const CONFIG: &str = ".config";
/// The folder of the defconfigs.
pub const DEFCONFIGS: &str = "defconfigs";

/// An opened campaign folder.
#[derive(Debug, Clone)]
pub struct Folder {
    dir: PathBuf,
}

impl Folder {
    /// The campaign in `dir`.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(dir: &Path) -> Result<Self, CampaignError> {
        if dir.join("Kconfig").is_file() {
            let dir = dir.to_owned();
            return Ok(Self { dir });
        }
        Err(CampaignError::NoCampaign(shown(dir)))
    }

    /// The folder, as it was given.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// A file of the folder; `./` is left out.
    pub fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        file(&self.dir, name.as_ref())
    }

    /// The Kconfig tree, with these variables of the environment.
    ///
    /// # Errors
    /// The first mistake in its files.
    pub fn tree(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Arc<Tree>, CampaignError> {
        let tree = Loader::new(&DiskFiles::new(&self.dir))
            .env(env)
            .load("Kconfig")?;
        Ok(Arc::new(tree))
    }

    /// The values in `.config`.
    ///
    /// # Errors
    /// When there is no `.config`, or it or the Kconfig files are wrong.
    pub fn config(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Config, CampaignError> {
        self.configured(env).map(|(config, _)| config)
    }

    /// The same, with what is doubtful about them.
    ///
    /// # Errors
    /// As [`Folder::config`].
    pub fn configured(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Config, Vec<Warning>), CampaignError> {
        let path = self.file(CONFIG);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let known = self.defconfigs().join(", ");
                return Err(CampaignError::NoConfig(shown(&self.dir), known));
            }
            Err(error) => return Err(CampaignError::io(path, error)),
        };
        let mut config = Config::new(self.tree(env)?);
        let warnings = take(&mut config, &text, &path.display().to_string())?;
        Ok((config, warnings))
    }

    /// The names of the folder's defconfigs, in order.
    pub fn defconfigs(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.file(DEFCONFIGS))
            .into_iter()
            .flatten();
        let mut names: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.path().is_file())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with('.') && !name.ends_with('~'))
            .collect();
        names.sort();
        names
    }

    pub(crate) fn definitions(&self) -> Result<Definitions, CampaignError> {
        Definitions::read(&self.dir)
    }
}

/// The configuration of a campaign, or the shipped one where there is none.
///
/// # Errors
/// As [`Folder::config`].
pub fn config_or_shipped(
    folder: Option<&Folder>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, CampaignError> {
    match folder {
        Some(folder) => folder.config(env),
        None => Ok(shipped::config(env)?),
    }
}

/// How messages call a folder.
fn shown(dir: &Path) -> String {
    if dir == Path::new(".") {
        return "this folder".to_owned();
    }
    dir.display().to_string()
}

/// A file below a folder; of the current one without `./`.
pub(crate) fn file(dir: &Path, name: &Path) -> PathBuf {
    match dir.strip_prefix(".") {
        Ok(rest) => rest.join(name),
        Err(_) => dir.join(name),
    }
}
