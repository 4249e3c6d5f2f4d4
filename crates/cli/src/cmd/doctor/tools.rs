//! Programs beside Fathom: fio and its engines, ssh, what talks to drives.

use std::path::PathBuf;

use fathom_engine_fio::inventory;
use fathom_engine_fio::version::Program;

use super::{CheckState, Topic};

/// fio's engines for devices and files that not every fio can load.
const ENGINES: [&str; 3] = ["io_uring", "libaio", "posixaio"];

pub fn engines(topic: &mut Topic) {
    let found = Program::find(None).and_then(|fio| Ok((fio.version()?, fio)));
    let (version, fio) = match found {
        Ok(found) => found,
        Err(failure) => {
            let fix = Some(install("fio"));
            // Something must run the jobs.
            let state = if topic.is_ok("native") {
                CheckState::Absent
            } else {
                CheckState::Missing
            };
            return topic.add("fio", state, failure.message, fix);
        }
    };
    topic.ok("fio", format!("{version} ({})", fio.path.display()));
    for engine in ENGINES {
        // Asked for its options, an engine must be loaded.
        if matches!(inventory::options(&fio, engine), Ok(Some(_))) {
            topic.ok(engine, "can be loaded");
        } else {
            topic.add(engine, CheckState::Absent, "this fio cannot load it", None);
        }
    }
}

/// Program, what it is for, the package that brings it.
const TOOLS: [(&str, &str, &str); 6] = [
    ("ssh", "runs on other machines", "openssh-client"),
    ("nvme", "identity and purge of NVMe drives", "nvme-cli"),
    ("hdparm", "identity and purge of SATA drives", "hdparm"),
    ("sg_inq", "identity and purge of SAS drives", "sg3-utils"),
    ("smartctl", "wear and errors of drives", "smartmontools"),
    ("cdladm", "Command Duration Limits", ""),
];

pub fn look(topic: &mut Topic) {
    for (name, what, package) in TOOLS {
        if let Some(path) = program(name) {
            topic.ok(name, path.display().to_string());
            continue;
        }
        let fix = match package {
            "" => "build cdl-tools from its sources".to_owned(),
            package => install(package),
        };
        topic.add(name, CheckState::Absent, format!("for {what}"), Some(fix));
    }
}

/// Where a program lies: in `PATH`, or where an administrator's programs do.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// The command that installs a package (Debian's name) on this system.
fn install(package: &str) -> String {
    let package_of = |manager: &str| match (manager, package) {
        ("dnf" | "zypper", "openssh-client") => "openssh-clients",
        ("dnf" | "zypper", "sg3-utils") => "sg3_utils",
        _ => package,
    };
    let known = [
        ("apt-get", "apt-get install"),
        ("dnf", "dnf install"),
        ("zypper", "zypper install"),
        ("pkg", "pkg install"),
    ];
    known
        .into_iter()
        .find(|(manager, _)| program(manager).is_some())
        .map_or_else(
            || format!("install {package} with this system's package manager"),
            |(manager, command)| format!("{command} {}", package_of(manager)),
        )
}
