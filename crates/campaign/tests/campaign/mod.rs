//! Campaign folders: unpacked, planned, generated, checked.

use std::path::{Path, PathBuf};

use fathom_campaign::folder::{Init, init};
use fathom_campaign::plan::{ResolvedCampaign, plan};
use fathom_campaign::{CampaignError, Folder, Only};
use fathom_prepare::settings::Overrides;

mod definitions;
mod files;
mod matrix;
mod ready;
mod settings;

/// A campaign in a folder of its own.
struct Campaign {
    dir: tempfile::TempDir,
}

impl Campaign {
    fn new(defconfig: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let wanted = Init {
            force: false,
            defconfig: Some(defconfig.to_owned()),
        };
        init(&dir.path().join("campaign"), &wanted, &no_env).unwrap();
        Self { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("campaign")
    }

    fn folder(&self) -> Folder {
        Folder::open(&self.path()).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    /// Changes a text in a file of the folder.
    fn change(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} has no {from}: {text}");
        self.write(name, &text.replace(from, to));
    }

    fn read(&self, name: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    fn try_plan(&self, only: &[&str]) -> Result<ResolvedCampaign, CampaignError> {
        let only: Vec<Only> = only.iter().map(|text| Only::new(text)).collect();
        plan(&self.folder(), &no_env, &only, &Overrides::default())
    }

    fn plan(&self) -> ResolvedCampaign {
        self.try_plan(&[]).unwrap()
    }

    /// What is wrong with it.
    fn fault(&self) -> String {
        self.try_plan(&[]).unwrap_err().to_string()
    }
}

fn no_env(_: &str) -> Option<String> {
    None
}
