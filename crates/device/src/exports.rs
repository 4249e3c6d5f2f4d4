//! What the kernel serves to other machines: namespaces of nvmet and backstores of LIO.
//! Neither opens a device exclusively, and no process has it open; configfs lists them
//! (Documentation/nvme/, Documentation/target/).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::sys::{Sys, SysBlock, names_in};

const NVMET: &str = "/sys/kernel/config/nvmet";
const LIO: &str = "/sys/kernel/config/target";
/// Inode of the first pid namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO).
const FIRST_PIDS: &str = "pid:[4026531836]";

/// A device or file that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Export {
    what: Served,
    /// As whom: `NVMe subsystem nqn.x, namespace 1`.
    pub(crate) by: String,
    /// The command that ends it.
    pub(crate) end: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Served {
    Number(u32, u32),
    Path(PathBuf),
}

impl Export {
    /// Whether a device is served. A path of another namespace counts as the device when it
    /// has its name: one refusal too many is better than one too few.
    pub(crate) fn is_of(&self, sys: &Sys, node: &SysBlock) -> bool {
        match &self.what {
            Served::Number(major, minor) => node.number() == Some((*major, *minor)),
            Served::Path(path) => match sys.by_path(path) {
                Some(served) => served == *node,
                None => {
                    path.file_name() == Path::new(&node.name).file_name()
                        && !sys.path(path).exists()
                }
            },
        }
    }

    /// The file that is served, where it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.what {
            Served::Number(..) => None,
            Served::Path(path) => Some(path),
        }
    }
}

/// Everything that is served now.
pub(crate) fn now(sys: &Sys) -> Vec<Export> {
    let mut all = namespaces(sys);
    all.extend(backstores(sys));
    all
}

/// Whether [`ignore_unseen_exports`] was called.
static UNSEEN_IGNORED: AtomicBool = AtomicBool::new(false);

/// Allows writes although the kernel's list of served devices is not visible: from now on, for
/// the whole process.
pub fn ignore_unseen_exports() {
    UNSEEN_IGNORED.store(true, Relaxed);
}

/// Whether [`ignore_unseen_exports`] was called.
pub fn are_unseen_exports_ignored() -> bool {
    UNSEEN_IGNORED.load(Relaxed)
}

/// The modules that may serve devices and whose lists are not visible; with whether this is a container, which has no configfs of its own.
pub(crate) fn unseen(sys: &Sys) -> Option<(String, bool)> {
    let modules = [("nvmet", NVMET), ("target_core_mod", LIO)];
    let hidden = modules.into_iter().filter(|(module, list)| {
        sys.path(format!("/sys/module/{module}")).exists() && !sys.path(list).exists()
    });
    let hidden: Vec<&str> = hidden.map(|(module, _)| module).collect();
    let pids = fs::read_link(sys.path("/proc/self/ns/pid")).unwrap_or_default();
    let is_container = !pids.as_os_str().is_empty() && pids != Path::new(FIRST_PIDS);
    (!hidden.is_empty() && !are_unseen_exports_ignored())
        .then(|| (hidden.join(" and "), is_container))
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// Enabled namespaces of nvmet.
fn namespaces(sys: &Sys) -> Vec<Export> {
    let mut all = Vec::new();
    let subsystems = sys.path(NVMET).join("subsystems");
    for nqn in names_in(&subsystems) {
        let list = subsystems.join(&nqn).join("namespaces");
        for number in names_in(&list) {
            let namespace = list.join(&number);
            let is_enabled = text(&namespace.join("enable")).is_some_and(|it| it == "1");
            let path = text(&namespace.join("device_path")).filter(|path| path.starts_with('/'));
            if let (true, Some(path)) = (is_enabled, path) {
                all.push(Export {
                    what: Served::Path(path.into()),
                    by: format!("NVMe subsystem {nqn}, namespace {number}"),
                    end: format!("echo 0 > {NVMET}/subsystems/{nqn}/namespaces/{number}/enable"),
                });
            }
        }
    }
    all
}

/// Backstores of LIO that are activated: `iblock_0/NAME`, `fileio_1/NAME`.
fn backstores(sys: &Sys) -> Vec<Export> {
    let mut all = Vec::new();
    let core = sys.path(LIO).join("core");
    for plugin in names_in(&core) {
        let kind = plugin.split('_').next().unwrap_or_default().to_owned();
        for name in names_in(&core.join(&plugin)) {
            let info = text(&core.join(&plugin).join(&name).join("info"));
            let Some(info) = info.filter(|info| !info.contains("DEACTIVATED")) else {
                continue;
            };
            // A SCSI device that is passed through says where it is nowhere else.
            let named = || {
                let path = text(&core.join(&plugin).join(&name).join("udev_path"));
                path.filter(|path| path.starts_with('/'))
                    .map(|path| Served::Path(path.into()))
            };
            let Some(what) = served(&info).or_else(named) else {
                continue;
            };
            let folder = if kind == "iblock" {
                "block"
            } else {
                kind.as_str()
            };
            all.push(Export {
                what,
                by: format!("LIO backstore {kind}/{name}"),
                end: format!("targetcli /backstores/{folder} delete {name}"),
            });
        }
    }
    all
}

/// The device or file of a backstore (target_core_iblock.c, target_core_file.c,
/// show_configfs_dev_params).
fn served(info: &str) -> Option<Served> {
    let behind = |mark: &str| info.split_once(mark).map(|(_, rest)| rest.trim_start());
    let number = |mark: &str| {
        let digits = behind(mark)?.split_whitespace().next()?;
        digits.parse().ok()
    };
    if let (Some(major), Some(minor)) = (number("Major:"), number("Minor:")) {
        return Some(Served::Number(major, minor));
    }
    if let Some(path) = behind("UDEV PATH:") {
        return Some(Served::Path(path.split_whitespace().next()?.into()));
    }
    // A path may have spaces; two stand before what follows.
    let path = behind("File:")?.split("  Size:").next()?.trim();
    Some(Served::Path(path.into()))
}
