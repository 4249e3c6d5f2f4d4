//! Another machine as a [`QuickHost`], reached over ssh: its own fio is driven with
//! POSIX sh ([`SshHost`]), or Fathom sends itself ([`send`]).

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use fathom_device::Hold;
use fathom_engine::Control;
use fathom_engines::EngineName;
use fathom_engines::choice::{Chosen, MissingCapability};
use fathom_engines::select::EngineHandle;
use fathom_fleet::ssh::fio::RemoteFio;
use fathom_fleet::ssh::self_deploy::{self, Deployed, Received};
use fathom_fleet::ssh::{SshError, SshSession};
use fathom_flow::Finish;
use fathom_model::environment::{FileSystem, Target};
use fathom_model::{Environment, Exit, FailureKind, RunStatus};
use fathom_record::Header;

use super::folder::{copied, strange};
use super::host::{FioFacts, FolderState, QuickHost, Site};
use super::install::{self, INSTALL_FIO};
use super::plan::{FOLDER, SeriesFacts};

use super::{
    COMMAND, INTERVAL, Notice, Observer, QuickError, QuickRequest, SIGNATURE, SeriesPlace, TAG,
};

/// How the series runs on another machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum RemoteMode {
    /// Send fathom where it can run, else drive that host's fio
    #[default]
    Auto,
    /// Send fathom itself (Linux of this architecture)
    #[value(name = "self")]
    Itself,
    /// Drive that host's own fio with plain sh
    Fio,
}

/// How long the package tool of a host may take.
const INSTALL_WAIT: Duration = Duration::from_secs(1800);

/// The parent folder of the test files, absolute and without links: `$1`, or the
/// home directory when it is empty.
const ENTER: &str = "p=$1; if [ -z \"$p\" ]; then p=$HOME; fi; \
    if [ -e \"$p\" ]; then :; else echo parent=missing; exit 0; fi; \
    if [ -d \"$p\" ]; then :; else echo parent=file; exit 0; fi; \
    cd \"$p\" || { echo parent=closed; exit 0; }; echo parent=dir; p=$(pwd -P); echo \"path=$p\"";
/// What stands at `$f`, as [`super::folder::state`] tells it here.
const STATE: &str = "if [ -h \"$f\" ]; then s=foreign; elif [ -d \"$f\" ]; then s=foreign; \
    if [ -z \"$(ls -A \"$f\")\" ]; then s=empty; fi; l=; \
    if [ -f \"$f/$t\" ]; then read -r l < \"$f/$t\"; fi; \
    if [ \"$l\" = \"$g\" ]; then s=ours; fi; \
    elif [ -e \"$f\" ]; then s=foreign; else s=absent; fi";

fn look_script() -> String {
    // The mount tables of Linux, illumos and the BSDs have the same first four columns.
    format!(
        "f=$2 t=$3 g=$4; {ENTER}; f=$p/$f; \
         echo \"os=$(uname -s)\"; echo \"kernel=$(uname -r)\"; echo \"arch=$(uname -m)\"; \
         echo \"host=$(uname -n)\"; echo \"uid=$(id -u 2>/dev/null)\"; \
         echo \"cpus=$(getconf _NPROCESSORS_ONLN 2>/dev/null || getconf NPROCESSORS_ONLN 2>/dev/null)\"; \
         echo \"memory_kib=$(sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo 2>/dev/null)\"; \
         echo \"memory=$(sysctl -n hw.physmem 2>/dev/null)\"; \
         echo \"cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | sed -n 1p)\"; \
         echo \"cpu=$(sysctl -n hw.model 2>/dev/null)\"; \
         {{ df -P -k \"$p\" 2>/dev/null || df -k \"$p\"; }} | sed -n '$s/^/df=/p'; \
         {{ cat /proc/self/mounts 2>/dev/null || cat /etc/mnttab 2>/dev/null || mount -p 2>/dev/null; }} \
         | sed 's/lowerdir=[^ ]*//; s/^/mount=/'; \
         {STATE}; echo \"state=$s\"; w=$p; \
         if [ \"$s\" = ours ]; then w=$f; echo \"held_kib=$(du -sk \"$f\" | sed 's/[^0-9].*//')\"; \
         ls -ln \"$f\" | sed 's/^/ls=/'; fi; \
         if [ -w \"$w\" ]; then echo writable=yes; fi; \
         echo \"fio=$(fio --version </dev/null 2>/dev/null)\"; \
         fio --enghelp </dev/null 2>/dev/null | sed 's/^/engine=/'"
    )
}

fn prepare_script(nocow: bool) -> String {
    // What lsattr(1) and chattr(1) call it is C.
    let how = match nocow {
        true => {
            "c=$(lsattr -d \"$f\" | sed 's/ .*//'); case $c in *C*) ;; *) \
             for x in \"$f\"/[0-9]*file*.[0-9]*; do if [ -e \"$x\" ]; then echo copied; exit 0; fi; done; \
             chattr +C \"$f\" || exit 92;; esac; "
        }
        false => "",
    };
    format!(
        "f=$1 t=$2 g=$3; {STATE}; case $s in foreign) echo foreign; exit 0;; \
         absent) mkdir \"$f\" || exit 92;; esac; {how}\
         if [ \"$s\" = ours ]; then :; else echo \"$g\" > \"$f/$t\" || exit 92; fi; echo done"
    )
}

fn clean_script() -> String {
    format!(
        "f=$1 t=$2 g=$3; {STATE}; case $s in absent) echo absent; exit 0;; ours) ;; \
         *) echo foreign; exit 0;; esac; \
         m=$({{ cat /proc/self/mounts 2>/dev/null || cat /etc/mnttab 2>/dev/null || mount -p 2>/dev/null; }} | \
         while read -r x m y; do case $m in \"$f\"|\"$f\"/*) echo \"$m\"; break;; esac; done); \
         if [ -n \"$m\" ]; then echo \"mounted $m\"; exit 0; fi; \
         b=$(ls -A \"$f\" | while read -r n; do x=$f/$n; case $n in \
         \"$t\"|[0-9]*file.[0-9]*|[0-9]*files.[0-9]*) \
         if [ -h \"$x\" ]; then :; elif [ -f \"$x\" ]; then continue; fi;; esac; \
         echo \"$n\"; break; done); \
         if [ -n \"$b\" ]; then echo \"strange $b\"; exit 0; fi; \
         rm -f \"$f\"/[0-9]*file.[0-9]* \"$f\"/[0-9]*files.[0-9]* \"$f/$t\" && rmdir \"$f\" || exit 92; echo removed"
    )
}

/// A machine at the other end of an ssh connection, with its own fio.
#[derive(Debug)]
pub struct SshHost {
    session: Rc<SshSession>,
    /// As [`QuickHost::look`] saw it last.
    fio_version: RefCell<Option<String>>,
}

impl SshHost {
    /// The machine at the other end of `session`.
    pub fn new(session: SshSession) -> Self {
        Self {
            session: Rc::new(session),
            fio_version: RefCell::default(),
        }
    }

    fn ask(&self, script: &str, args: &[&str]) -> Result<String, QuickError> {
        Ok(self.session.output(script, args)?.stdout)
    }

    fn change(&self, script: &str, folder: &Path) -> Result<String, QuickError> {
        let output = self
            .session
            .output(script, &[&text(folder), TAG, SIGNATURE])?;
        match (output.code, output.stdout.lines().last()) {
            (Some(0), Some("foreign")) => Err(QuickError::NotOurs(folder.to_owned())),
            (Some(0), Some("copied")) => Err(copied(folder)),
            (Some(0), Some(word)) => match word.split_once(' ') {
                Some(("strange", name)) => Err(strange(
                    folder,
                    &folder.join(name),
                    "is no file of this series",
                )),
                Some(("mounted", point)) => {
                    Err(strange(folder, Path::new(point), "is a mount point"))
                }
                _ => Ok(word.to_owned()),
            },
            _ => Err(QuickError::Refused(format!(
                "{} on {} cannot be changed (its words are above)",
                folder.display(),
                self.session.target()
            ))),
        }
    }
}

impl QuickHost for SshHost {
    fn folder(&self, path: Option<&Path>) -> Result<PathBuf, QuickError> {
        let path = parent_argument(path);
        let answer = RemoteAnswer(self.ask(ENTER, &[&path])?);
        Ok(answer.parent(&path, &self.session)?.join(FOLDER))
    }

    fn look(&self, path: Option<&Path>) -> Result<Site, QuickError> {
        let path = parent_argument(path);
        let answer = RemoteAnswer(self.ask(&look_script(), &[&path, FOLDER, TAG, SIGNATURE])?);
        let site = answer.site(&path, &self.session)?;
        self.fio_version
            .replace(site.fio.as_ref().map(|fio| fio.version.clone()));
        Ok(site)
    }

    fn install_fio(&self) -> Result<(), QuickError> {
        let ended = self.session.output_within(INSTALL_WAIT, INSTALL_FIO, &[])?;
        install::judge(ended.code)
    }

    fn prepare(&self, folder: &Path, nocow: bool) -> Result<Hold, QuickError> {
        self.change(&prepare_script(nocow), folder)?;
        Ok(Hold::default())
    }

    fn clean(&self, folder: &Path) -> Result<bool, QuickError> {
        Ok(self.change(&clean_script(), folder)? == "removed")
    }

    fn engine(&self, _chosen: Chosen) -> Result<EngineHandle, QuickError> {
        let version = self.fio_version.borrow().clone();
        let fio = RemoteFio::new(Rc::clone(&self.session), version);
        Ok(EngineHandle::Remote(Box::new(fio)))
    }

    fn has_native(&self) -> Result<(), MissingCapability> {
        let what = format!(
            "the native engine runs only where fathom itself does, which is not on {} \
             (--remote-mode self sends it)",
            self.session.target()
        );
        Err(MissingCapability::new(FailureKind::EngineMissing, what))
    }
}

/// A path as a script's argument: one that begins with `-` is no option.
fn parent_argument(path: Option<&Path>) -> String {
    let path = path.map(text).unwrap_or_default();
    if path.starts_with('-') {
        format!("./{path}")
    } else {
        path
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// `key=value` lines. Login scripts may print before them; unknown lines are passed over.
struct RemoteAnswer(String);

impl RemoteAnswer {
    fn all<'a>(&'a self, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let key = key.to_owned();
        self.0
            .lines()
            .filter_map(move |line| line.strip_prefix(&key)?.strip_prefix('='))
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.all(key).map(str::trim).find(|value| !value.is_empty())
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.value(key)?.parse().ok()
    }

    fn parent(&self, asked: &str, session: &SshSession) -> Result<PathBuf, QuickError> {
        let host = session.target();
        match (self.value("parent"), self.value("path")) {
            (Some("dir"), Some(path)) => Ok(PathBuf::from(path)),
            (Some("missing"), _) => Err(QuickError::Input(format!(
                "{asked} does not exist on {host}"
            ))),
            (Some("file"), _) => Err(QuickError::Input(format!(
                "{asked} on {host} is not a folder: the series makes its files in a folder, \
                 on a mounted file system"
            ))),
            (Some(_), _) => Err(QuickError::Input(format!(
                "{asked} on {host} cannot be entered"
            ))),
            (None, _) => Err(SshError::Answer {
                target: host.to_owned(),
                answer: self.0.trim().chars().take(200).collect(),
            }
            .into()),
        }
    }

    fn site(&self, asked: &str, session: &SshSession) -> Result<Site, QuickError> {
        let parent = self.parent(asked, session)?;
        let file_system = self.file_system();
        let mounted = file_system.as_ref();
        let read_only =
            mounted.is_some_and(|found| found.options.split(',').any(|one| one == "ro"));
        let owned = |key| self.value(key).map(str::to_owned);
        let memory_bytes = self
            .number("memory_kib")
            .map(|kib| kib * 1024)
            .or(self.number("memory"));
        Ok(Site {
            os: owned("os").unwrap_or_default(),
            folder: parent.join(FOLDER),
            state: self.state(),
            free_bytes: mounted.map(|found| found.free_bytes),
            read_only,
            writable: self.value("writable") == Some("yes"),
            file_system: mounted
                .map(|found| found.kind.clone())
                .filter(|kind| !kind.is_empty()),
            direct: None,
            is_root: self.value("uid") == Some("0"),
            fio: owned("fio").map(|version| FioFacts {
                version,
                engines: install::parse_engines(&self.all("engine").collect::<Vec<_>>().join("\n")),
            }),
            environment: Environment {
                fathom_version: env!("CARGO_PKG_VERSION").into(),
                hostname: owned("host").unwrap_or_default(),
                os: owned("os").unwrap_or_default(),
                kernel: owned("kernel").unwrap_or_default(),
                arch: owned("arch").unwrap_or_default(),
                cpu_model: owned("cpu"),
                cpus: self
                    .number("cpus")
                    .and_then(|cpus| cpus.try_into().ok())
                    .unwrap_or_default(),
                memory_bytes,
                targets: vec![Target {
                    path: parent,
                    file_system,
                    ..Target::default()
                }],
                ..Environment::default()
            },
        })
    }

    fn state(&self) -> FolderState {
        match self.value("state") {
            Some("absent") => FolderState::Absent,
            Some("empty") => FolderState::Ours {
                held_bytes: 0,
                files: vec![],
            },
            Some("ours") => FolderState::Ours {
                held_bytes: self.number("held_kib").unwrap_or(0) * 1024,
                files: self.all("ls").filter_map(listed_file).collect(),
            },
            _ => FolderState::Foreign,
        }
    }

    /// From the last line of `df -k` and the mount table.
    fn file_system(&self) -> Option<FileSystem> {
        let line = self.value("df")?;
        let words: Vec<&str> = line.split_whitespace().collect();
        // Columns are counted from the one in percent: names before and after may hold blanks.
        let percent = words
            .iter()
            .rposition(|word| word.ends_with('%'))
            .filter(|&at| at >= 4)?;
        let kib = |at: usize| words[at].parse::<u64>().ok().map(|kib| kib * 1024);
        let mount_point = words[percent + 1..].join(" ");
        let mounted = self
            .all("mount")
            .filter_map(mount_line)
            .filter(|(_, at, ..)| *at == mount_point);
        // The last mount on a point covers those before it.
        let (source, _, kind, options) = mounted.last().unwrap_or_else(|| {
            (
                words[..percent - 3].join(" "),
                mount_point.clone(),
                String::new(),
                String::new(),
            )
        });
        Some(FileSystem {
            kind,
            mount_point: mount_point.into(),
            source,
            options,
            size_bytes: kib(percent - 3)?,
            free_bytes: kib(percent - 1)?,
            device: None,
        })
    }
}

/// A line of `ls -ln`: mode, links, owner, group, size, three of time, name.
fn listed_file(line: &str) -> Option<(String, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(((*words.get(8)?).to_owned(), words.get(4)?.parse().ok()?))
}

/// Source, mount point, type and options.
fn mount_line(line: &str) -> Option<(String, String, String, String)> {
    let mut words = line.split_whitespace().map(unescape);
    Some((
        words.next()?,
        words.next()?,
        words.next()?,
        words.next().unwrap_or_default(),
    ))
}

/// Mount tables write a blank as `\040` (getmntent(3)).
fn unescape(word: &str) -> String {
    word.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\134", "\\")
}

/// Runs the series on another machine, in the way that `mode` asks for.
///
/// # Errors
/// As [`super::run`]; [`QuickError::Cut`] when the connection was lost.
pub fn run_there(
    session: SshSession,
    mode: RemoteMode,
    order: &QuickRequest,
    runs_dir: &Path,
    control: &Control,
    observer: &mut Observer,
) -> Result<Finish, QuickError> {
    let host = session.target().to_owned();
    if mode != RemoteMode::Fio {
        let reason = match reason_not_to_send(&session)? {
            Some(reason) => reason,
            None => match send(&session, order, runs_dir, control, observer)? {
                Some(ran) => return Ok(ran),
                None => format!(
                    "this fathom does not start on {host} (a static build does: make musl), \
                     or its temporary folder has no room or runs no programs"
                ),
            },
        };
        if mode == RemoteMode::Itself {
            return Err(QuickError::Missing(format!(
                "{reason}; --remote-mode fio needs no fathom there"
            )));
        }
        observer(Notice::Text(&format!(
            "{reason}: driving its own fio instead"
        )));
    }
    if order.options.fio.is_some() {
        return Err(QuickError::Order(format!(
            "--fio is for the Fathom that sends itself, and {host} is driven without\n  to do: leave out --fio"
        )));
    }
    let there = SshHost::new(session);
    let finish = super::run(&there, order, SeriesPlace::new(runs_dir), control, observer)?;
    if there.session.is_lost() {
        return Err(QuickError::Cut {
            reason: there.session.lose().to_string(),
            record: finish.dir,
        });
    }
    Ok(finish)
}

/// Why this program cannot run on the other machine, as far as names tell.
fn reason_not_to_send(session: &SshSession) -> Result<Option<String>, QuickError> {
    let answer = session
        .output("echo \"system=$(uname -s) $(uname -m)\"", &[])?
        .stdout;
    let answer = RemoteAnswer(answer);
    let theirs = answer.value("system").unwrap_or("unknown");
    let ours = rustix::system::uname();
    let ours = format!(
        "{} {}",
        ours.sysname().to_string_lossy(),
        ours.machine().to_string_lossy()
    );
    Ok((theirs != ours || !cfg!(target_os = "linux")).then(|| {
        format!(
            "{} is {theirs} and this fathom is for {ours}",
            session.target()
        )
    }))
}

/// Sends this program to the other machine and runs the series there. `None`
/// when the program does not run on it.
///
/// # Errors
/// As [`super::run`], with the refusals of the other side; [`QuickError::Cut`]
/// when the connection was lost.
fn send(
    session: &SshSession,
    order: &QuickRequest,
    runs_dir: &Path,
    control: &Control,
    observer: &mut Observer,
) -> Result<Option<Finish>, QuickError> {
    order.check()?;
    let label = order.group.label();
    let mut told = |told: Received| match told {
        Received::Text(text) => observer(Notice::Text(text)),
        Received::Header(header) => {
            // Later entries carry this machine's clock; the group may be a file here.
            header.started_ms = Header::new(COMMAND, COMMAND).started_ms;
            if let Some(mut facts) = SeriesFacts::of(header) {
                facts.group.clone_from(&label);
                header.facts = facts.to_header();
            }
            observer(Notice::Begins(header));
        }
        Received::Event(event) => observer(Notice::Event(event)),
    };
    let carried = self_deploy::self_deploy(
        session,
        &arguments(order)?,
        (runs_dir, INTERVAL),
        control,
        &mut told,
    )?;
    let stopped = control.stop_requests() > 0;
    let finish = |dir, status| Finish {
        dir,
        status,
        ending: None,
        // Why has been told.
        stopped: (status == RunStatus::Interrupted && !stopped).then(String::new),
        waits: None,
        refused: false,
        no_room: 0,
        spent: None,
    };
    match carried {
        Deployed::Ran { dir, status } => Ok(Some(finish(dir, status))),
        Deployed::CannotRun if !stopped => Ok(None),
        // A second request to stop cuts the line.
        Deployed::Cut { dir: Some(dir), .. } if stopped => {
            Ok(Some(finish(dir, RunStatus::Interrupted)))
        }
        Deployed::Cut {
            dir: Some(record),
            reason,
        } => Err(QuickError::Cut { reason, record }),
        _ if stopped => Err(QuickError::Interrupted),
        Deployed::Cut { dir: None, .. } | Deployed::CannotRun => Err(session.lose().into()),
        Deployed::Refused { exit, message } => Err(QuickError::There {
            exit: Exit::from_code(exit).unwrap_or(Exit::Failed),
            message,
        }),
    }
}

/// The command line for the Fathom over there. It brings its own engine: nothing is installed
/// on another machine unless fio is asked for.
fn arguments(order: &QuickRequest) -> Result<Vec<String>, QuickError> {
    let sent = QuickRequest {
        may_install: order.may_install && order.options.engine() != EngineName::Auto,
        ..order.clone()
    };
    Ok(vec![
        "quick".to_owned(),
        "--events".to_owned(),
        sent.word()?,
    ])
}

impl QuickRequest {
    /// It as a word of a command line behind `fathom quick`, for a Fathom that is this very
    /// one on another machine.
    ///
    /// # Errors
    /// When a path in it is not UTF-8, which JSON cannot hold.
    pub fn word(&self) -> Result<String, QuickError> {
        let text = serde_json::to_string(self);
        let text = text.map_err(|error| QuickError::Order(error.to_string()))?;
        Ok(format!("--request={text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_pass_through_any_login_shell() {
        for script in [
            ENTER,
            &look_script(),
            &prepare_script(true),
            &clean_script(),
        ] {
            assert!(!script.contains('\n') && !script.contains('!'), "{script}");
        }
    }

    #[test]
    fn df_and_mount_tables_of_three_systems_are_understood() {
        let linux = "df=/dev/my disk 1000 400 600 40% /mnt/a b\n\
                     mount=/dev/my\\040disk /mnt/a\\040b xfs rw,noatime 0 0\n";
        let found = RemoteAnswer(linux.into()).file_system().unwrap();
        assert_eq!((found.kind.as_str(), found.free_bytes), ("xfs", 600 * 1024));
        assert_eq!(found.mount_point, Path::new("/mnt/a b"));
        let freebsd = "df=zroot/home 2000 500 1500 25% /home\n\
                       mount=zroot/home\t\t/home\t\tzfs\tro,nfsv4acls \t0 0\n";
        let found = RemoteAnswer(freebsd.into()).file_system().unwrap();
        assert_eq!(
            (found.kind.as_str(), found.options.as_str()),
            ("zfs", "ro,nfsv4acls")
        );
        let illumos = "df=rpool/export 2000 500 1500 25% /export\n\
                       mount=rpool/export\t/export\tzfs\trw,devices,setuid\t1700000000\n";
        assert_eq!(
            RemoteAnswer(illumos.into()).file_system().unwrap().source,
            "rpool/export"
        );
        assert_eq!(RemoteAnswer("df=nonsense\n".into()).file_system(), None);
    }

    #[test]
    fn listed_files_have_names_and_sizes() {
        assert_eq!(listed_file("total 12"), None);
        let line = "-rw-r--r--   1 0        0        536870912 Nov 21 13:07 1file.0";
        assert_eq!(listed_file(line), Some(("1file.0".into(), 536_870_912)));
    }
}
