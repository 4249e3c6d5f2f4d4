//! What the series must know of the machine it is to run on, whichever way that
//! machine is reached, and what follows from it before anything runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fathom_device::Hold;
use fathom_engines::choice::{Chosen, MissingCapability};

use fathom_engines::select::EngineHandle;
use fathom_model::{Environment, units};

use super::QuickError;
use super::definition::QuickTest;
use super::plan::{PlannedTest, QuickRequest, engine_on};

/// A machine that can run the series.
pub trait QuickHost {
    /// Looks at the machine and at `path` (`None`: the home directory) without
    /// changing anything. `probe_direct`: whether any test needs `O_DIRECT`.
    ///
    /// # Errors
    /// When the path is no folder there, or the machine does not answer.
    fn look(&self, path: Option<&Path>) -> Result<Site, QuickError>;

    /// Installs fio with the system's package tool.
    ///
    /// # Errors
    /// When there is none that is known, or it fails.
    fn install_fio(&self) -> Result<(), QuickError>;

    /// Makes the folder of the test files, with its tag, unless it is there; with `nocow` so
    /// that new files in it are not copied on write.
    ///
    /// # Errors
    /// When it cannot be made, is not ours, holds files that are copied, or another run uses it.
    fn prepare(&self, folder: &Path, nocow: bool) -> Result<Hold, QuickError>;

    /// Removes the folder of the test files; `false` when there was none.
    ///
    /// # Errors
    /// When it does not carry the tag, is in use, or cannot be removed.
    fn clean(&self, folder: &Path) -> Result<bool, QuickError>;

    /// The folder of test files under `path` (`None`: the home directory).
    ///
    /// # Errors
    /// When there is no home directory, or the machine does not answer.
    fn folder(&self, path: Option<&Path>) -> Result<PathBuf, QuickError>;

    /// What runs the tests there.
    ///
    /// # Errors
    /// When the engine is not there.
    fn engine(&self, chosen: Chosen) -> Result<EngineHandle, QuickError>;

    /// Whether the native engine can run there.
    ///
    /// # Errors
    /// Why it cannot.
    fn has_native(&self) -> Result<(), MissingCapability>;

    /// Whether it is this machine: its devices have ledgers, and are looked at before
    /// each test.
    fn is_here(&self) -> bool {
        false
    }
}

/// State of the folder of the test files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderState {
    /// There is none.
    Absent,
    /// It carries the tag, or is an empty folder; `held_bytes` are already
    /// taken by test files.
    Ours {
        /// Bytes on disk.
        held_bytes: u64,
        /// Size in bytes of each file, by name.
        files: Vec<(String, u64)>,
    },
    /// Something else of that name.
    Foreign,
}

/// fio on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioFacts {
    /// As `fio --version` says, for example `fio-3.33`.
    pub version: String,
    /// The I/O engines it lists; empty when it does not tell.
    pub engines: Vec<String>,
}

/// What [`QuickHost::look`] saw.
#[derive(Debug, Clone)]
pub struct Site {
    /// `uname -s`.
    pub os: String,
    /// The folder of the test files, absolute.
    pub folder: PathBuf,
    /// What stands there now.
    pub state: FolderState,
    /// Bytes free for this user.
    pub free_bytes: Option<u64>,
    /// Whether the file system is mounted read-only.
    pub read_only: bool,
    /// Whether this user may write there.
    pub writable: bool,
    /// Type of the file system.
    pub file_system: Option<String>,
    /// Whether files there open with `O_DIRECT`; `None` when that is not known.
    pub direct: Option<bool>,
    /// Whether this user is root.
    pub is_root: bool,
    /// fio, when it is installed.
    pub fio: Option<FioFacts>,
    /// The machine and the target.
    pub environment: Environment,
}

impl Site {
    /// Why an engine cannot run a test here; `None` when it can.
    pub fn reason_to_skip(
        &self,
        order: &QuickRequest,
        test: &QuickTest,
        engine: Chosen,
    ) -> Option<String> {
        if engine_on(&order.group, test, &self.os).is_none() {
            return Some(format!("no native aio on {}", self.os));
        }
        if test.is_direct() && self.direct == Some(false) {
            let kind = self.file_system.as_deref().unwrap_or("this file system");
            return Some(format!("no O_DIRECT on {kind}"));
        }
        self.lack_of(order, test, engine)
    }

    /// What an engine lacks for a test that can run here with another.
    fn lack_of(&self, order: &QuickRequest, test: &QuickTest, engine: Chosen) -> Option<String> {
        match engine {
            Chosen::Fio => {
                let engines = self.fio.as_ref().map_or(&[][..], |fio| &fio.engines);
                let wanted = engine_on(&order.group, test, &self.os)?;
                let is_missing = !engines.is_empty() && !engines.iter().any(|name| name == wanted);
                is_missing.then(|| format!("this fio has no engine {wanted}"))
            }
            Chosen::Native => {
                let planned = PlannedTest::new(order, None, test, &self.os);
                let refused = fathom_engine_native::supports(&[planned.spec()]).err()?;
                let first = refused.first()?;
                Some(format!("{}: {}", first.option, first.reason))
            }
        }
    }

    /// Everything an engine lacks for the tests of an order, each once.
    pub fn lacks(&self, order: &QuickRequest, engine: Chosen) -> Vec<String> {
        let can_run = |test: &&QuickTest| engine_on(&order.group, test, &self.os).is_some();
        let lacks: BTreeSet<String> = order
            .tests()
            .filter(can_run)
            .filter_map(|test| self.lack_of(order, test, engine))
            .collect();
        lacks.into_iter().collect()
    }

    /// Whether `order` can run here as far as folder and room go; gives the
    /// warnings that go with its figures.
    ///
    /// # Errors
    /// The refusal, before anything was written.
    pub fn examine(&self, order: &QuickRequest) -> Result<Vec<String>, QuickError> {
        let folder = self.folder.display();
        let parent = self.folder.parent().unwrap_or(&self.folder).display();
        if order.only.is_some() {
            self.examine_repeat(order)?;
        }
        if self.read_only {
            return Err(QuickError::Refused(format!(
                "{parent} is on a file system mounted read-only; name a folder that can be written"
            )));
        }
        if self.state == FolderState::Foreign {
            return Err(QuickError::NotOurs(self.folder.clone()));
        }
        if !self.writable {
            return Err(QuickError::Refused(format!(
                "{parent} cannot be written by this user; name another folder"
            )));
        }
        let is_wrong = |kind: &&str| order.nocow && *kind != "btrfs";
        if let Some(kind) = self.file_system.as_deref().filter(is_wrong) {
            return Err(QuickError::Refused(format!(
                "--nocow is for btrfs, and {parent} is on {kind}\n  to do: leave out --nocow"
            )));
        }
        let held_bytes = match &self.state {
            FolderState::Ours { held_bytes, .. } => *held_bytes,
            _ => 0,
        };
        let needed_bytes = order.total_bytes().saturating_sub(held_bytes);
        if let Some(free_bytes) = self.free_bytes.filter(|&free| free < needed_bytes) {
            return Err(QuickError::Refused(format!(
                "no room in {parent}: the test files need {} more and {} are free; \
                 free some, name another folder, or try with a smaller --size",
                units::bytes(needed_bytes as f64),
                units::bytes(free_bytes as f64),
            )));
        }
        let mut warnings = Vec::new();
        if let Some(target) = self.environment.targets.iter().find(|it| it.is_in_memory()) {
            let place = target.stack.as_ref().map(ToString::to_string);
            let kind = place.or_else(|| self.file_system.clone());
            warnings.push(format!(
                "{folder} is on {}: every figure is memory's, not a disk's",
                kind.unwrap_or_default()
            ));
        }
        Ok(warnings)
    }

    fn examine_repeat(&self, order: &QuickRequest) -> Result<(), QuickError> {
        let FolderState::Ours { files, .. } = &self.state else {
            return Err(QuickError::NoFullRun(self.folder.clone()));
        };
        for test in order.tests() {
            let wanted_bytes = order.size_bytes() / u64::from(test.files);
            for name in super::plan::file_names(test.files) {
                let found = files.iter().find(|(file, _)| *file == name);
                match found {
                    Some((_, bytes)) if *bytes >= wanted_bytes => {}
                    Some(_) => {
                        return Err(QuickError::Missing(format!(
                            "the files in {} are smaller than this test's: \
                             repeat it with the --size of the full run, or do a full run first",
                            self.folder.display()
                        )));
                    }
                    None => return Err(QuickError::NoFullRun(self.folder.clone())),
                }
            }
        }
        Ok(())
    }

    /// A machine on which everything works.
    #[cfg(test)]
    pub(super) fn for_tests(folder: &Path) -> Self {
        Self {
            os: "Linux".into(),
            folder: folder.to_owned(),
            state: FolderState::Absent,
            free_bytes: Some(100 << 30),
            read_only: false,
            writable: true,
            file_system: Some("ext4".into()),
            direct: Some(true),
            is_root: false,
            fio: None,
            environment: Environment {
                hostname: "bench1".into(),
                ..Environment::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::environment::{FileSystem, Target};

    use super::super::definition::SeriesGroup;
    use super::*;
    use fathom_flow::RunOptions;

    fn order() -> QuickRequest {
        QuickRequest {
            path: None,
            group: SeriesGroup::shipped("v1").unwrap(),
            only: None,
            runtime_s: None,
            size_bytes: None,
            nocow: false,
            may_install: false,
            dry_run: false,
            options: RunOptions::default(),
        }
    }

    fn refusal(site: &Site, order: &QuickRequest) -> String {
        site.examine(order).unwrap_err().to_string()
    }

    #[test]
    fn room_counts_what_the_test_files_already_hold() {
        let mut site = Site::for_tests(Path::new("/mnt/stb-testdir"));
        site.free_bytes = Some(600 << 20);
        let message = refusal(&site, &order());
        assert!(
            message.starts_with("no room in /mnt: the test files need 1 GiB more"),
            "{message}"
        );
        site.state = FolderState::Ours {
            held_bytes: 512 << 20,
            files: vec![],
        };
        assert_eq!(site.examine(&order()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn read_only_foreign_and_forbidden_folders_are_refused() {
        let good = Site::for_tests(Path::new("/mnt/stb-testdir"));
        let read_only = Site {
            read_only: true,
            ..good.clone()
        };
        assert!(refusal(&read_only, &order()).contains("read-only"));
        let foreign = Site {
            state: FolderState::Foreign,
            ..good.clone()
        };
        assert!(refusal(&foreign, &order()).contains("CACHEDIR.TAG"));
        let forbidden = Site {
            writable: false,
            ..good
        };
        assert!(refusal(&forbidden, &order()).contains("cannot be written"));
    }

    #[test]
    fn memory_is_warned_about_and_direct_tests_are_left_out_where_they_cannot_run() {
        let mut site = Site::for_tests(Path::new("/mnt/stb-testdir"));
        site.file_system = Some("tmpfs".into());
        site.environment.targets = vec![Target {
            file_system: Some(FileSystem {
                kind: "tmpfs".into(),
                ..FileSystem::default()
            }),
            ..Target::default()
        }];
        site.direct = Some(false);
        assert!(site.examine(&order()).unwrap()[0].contains("every figure is memory's"));
        let order = order();
        let reasons: Vec<Option<String>> = order
            .tests()
            .map(|test| site.reason_to_skip(&order, test, Chosen::Fio))
            .collect();
        assert_eq!(reasons[0], None);
        assert_eq!(reasons[1].as_deref(), Some("no O_DIRECT on tmpfs"));
        assert_eq!(reasons.iter().flatten().count(), 12);
    }

    #[test]
    fn an_engine_that_fio_lacks_is_a_reason_to_skip() {
        let mut site = Site::for_tests(Path::new("/mnt/stb-testdir"));
        site.fio = Some(FioFacts {
            version: "fio-3.33".into(),
            engines: vec!["psync".into()],
        });
        let order = order();
        let last = order.tests().last().unwrap();
        let reason = site.reason_to_skip(&order, last, Chosen::Fio);
        assert_eq!(reason.as_deref(), Some("this fio has no engine libaio"));
    }

    #[test]
    fn one_test_needs_the_files_of_a_full_run() {
        let mut site = Site::for_tests(Path::new("/mnt/stb-testdir"));
        let mut order = order();
        order.only = Some("1 file, 1 thread, rnd 16k writes".into());
        let pre_exist = "Test directory must pre-exist to repeat a specific test";
        assert!(refusal(&site, &order).starts_with(pre_exist));
        site.state = FolderState::Ours {
            held_bytes: 0,
            files: vec![],
        };
        assert!(refusal(&site, &order).starts_with(pre_exist));
        let short = vec![("1file.0".to_owned(), 64 << 20)];
        site.state = FolderState::Ours {
            held_bytes: 64 << 20,
            files: short,
        };
        assert!(refusal(&site, &order).contains("--size of the full run"));
        order.size_bytes = Some(64 << 20);
        site.examine(&order).unwrap();
    }
}
