//! This machine as a [`QuickHost`].

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fathom_device::Hold;
use fathom_engine::guard::GuardPlace;
use fathom_engine_fio::version::Program;
use fathom_engine_fio::{Fio, inventory};
use fathom_engine_native::Native;
use fathom_engines::choice::{Chosen, MissingCapability};
use fathom_engines::select::EngineHandle;
use fathom_model::FailureKind;
use fathom_model::environment::FileSystem;

use super::host::{FioFacts, FolderState, QuickHost, Site};
use super::install::{self, INSTALL_FIO};
use super::plan::FOLDER;
use super::{QuickError, folder};

/// The machine Fathom runs on.
#[derive(Debug, Clone, Default)]
pub struct LocalHost {
    /// The fio to use, when not the one in PATH.
    pub fio: Option<PathBuf>,
}

impl QuickHost for LocalHost {
    fn is_here(&self) -> bool {
        true
    }

    fn folder(&self, path: Option<&Path>) -> Result<PathBuf, QuickError> {
        let parent = match path {
            Some(path) => path.to_owned(),
            None => std::env::home_dir()
                .filter(|home| !home.as_os_str().is_empty())
                .ok_or_else(|| {
                    QuickError::Input("this user has no home directory; name a folder".into())
                })?,
        };
        let meta = fs::metadata(&parent).map_err(|source| QuickError::file(&parent, source))?;
        if !meta.is_dir() {
            return Err(QuickError::Input(format!(
                "{} is not a folder: the series makes its files in a folder, on a mounted file system",
                parent.display()
            )));
        }
        let parent = parent
            .canonicalize()
            .map_err(|source| QuickError::file(&parent, source))?;
        Ok(parent.join(FOLDER))
    }

    fn look(&self, path: Option<&Path>) -> Result<Site, QuickError> {
        let folder = self.folder(path)?;
        let parent = folder
            .parent()
            .expect("folder() joins a name to a folder")
            .to_owned();
        let state = folder::state(&folder)?;
        let environment = fathom_device::environment(std::slice::from_ref(&parent));
        let file_system: Option<&FileSystem> = environment
            .targets
            .first()
            .and_then(|target| target.file_system.as_ref());
        let room = fathom_device::space::of(&parent)
            .map_err(|source| QuickError::file(&parent, source))?;
        let written = if matches!(state, FolderState::Ours { .. }) {
            &folder
        } else {
            &parent
        };
        Ok(Site {
            os: os_name(),
            free_bytes: Some(room.free_bytes),
            read_only: room.read_only,
            writable: rustix::fs::access(written, rustix::fs::Access::WRITE_OK).is_ok(),
            file_system: file_system.map(|found| found.kind.clone()),
            direct: opens_direct(&parent),
            is_root: rustix::process::geteuid().is_root(),
            fio: fio_facts(self.fio.as_deref()),
            environment,
            state,
            folder,
        })
    }

    fn install_fio(&self) -> Result<(), QuickError> {
        let status = Command::new("sh")
            .args(["-c", INSTALL_FIO])
            .stdin(Stdio::null())
            .status()
            .map_err(|source| QuickError::file(Path::new("sh"), source))?;
        install::judge(status.code())
    }

    fn prepare(&self, folder: &Path, nocow: bool) -> Result<Hold, QuickError> {
        folder::prepare(folder, nocow)
    }

    fn clean(&self, folder: &Path) -> Result<bool, QuickError> {
        folder::clean(folder)
    }

    fn engine(&self, chosen: Chosen) -> Result<EngineHandle, QuickError> {
        if chosen == Chosen::Native {
            return Ok(EngineHandle::Native(Native::in_own_process()));
        }
        let program = Program::find(self.fio.as_deref());
        let program = program.map_err(|failure| QuickError::Missing(failure.to_string()))?;
        Ok(EngineHandle::Fio(Fio::new(program, GuardPlace::Process)))
    }

    fn has_native(&self) -> Result<(), MissingCapability> {
        if cfg!(target_os = "linux") {
            return Ok(());
        }
        let what = "the native engine is for Linux only";
        Err(MissingCapability::new(FailureKind::EngineMissing, what))
    }
}

fn os_name() -> String {
    rustix::system::uname()
        .sysname()
        .to_string_lossy()
        .into_owned()
}

/// Whether a file in `dir` opens with `O_DIRECT`: only trying tells (tmpfs took
/// it up in Linux 6.6, FUSE file systems differ). The file never gets a name.
#[cfg(target_os = "linux")]
fn opens_direct(dir: &Path) -> Option<bool> {
    use std::os::unix::fs::OpenOptionsExt;
    let open = |flags: i32| {
        fs::OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_TMPFILE | flags)
            .open(dir)
    };
    open(0).ok()?;
    Some(open(libc::O_DIRECT).is_ok())
}

#[cfg(not(target_os = "linux"))]
fn opens_direct(_dir: &Path) -> Option<bool> {
    None
}

fn fio_facts(path: Option<&Path>) -> Option<FioFacts> {
    let program = Program::find(path).ok()?;
    Some(FioFacts {
        version: program.version().ok()?.to_string(),
        engines: inventory::engine_names(&program).unwrap_or_default(),
    })
}
