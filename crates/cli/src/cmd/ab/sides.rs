//! The sides of a comparison, as the command line has them, judged before anything is
//! changed.

use std::path::{Path, PathBuf};

use fathom_device::settings::{SettingError, Settings, is_of_device, names};
use fathom_device::{Sys, SysBlock, stack};
use fathom_engine_fio::version::Program;
use fathom_engines::EngineName;
use fathom_flow::{RunOptions, undo};
use fathom_model::{Exit, Failure};
use fathom_questions::ab::{AbFileSystem, AbSetup, AbSide, FileSystemKind, SideFio};
use fathom_record::UndoNote;

use crate::cmd::ExitError;
use crate::cmd::failed;
use crate::cmd::job::Setting;
use crate::cmd::job::request::JobPlan;
use crate::out;

/// More sides than this nobody compares in one evening; their names are letters.
const SIDES_MOST: usize = 16;

/// The keys of what is neither a setting nor an option of a job: the fio of a side, the
/// options of its mount, its kernel.
const FIO: &str = "fio";
const MOUNT: &str = "mount";
const KERNEL: &str = "kernel";
const OTHERS: [&str; 3] = [FIO, MOUNT, KERNEL];

/// What the sides are.
#[derive(Debug, Clone, clap::Args)]
pub struct SidesArgs {
    /// A setting of the one side (may be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    a: Vec<AbChange>,
    /// A setting of the other side (may be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    b: Vec<AbChange>,
    /// A setting with all of its values, a side each; all are judged against the first
    #[arg(long, value_name = "KEY=V1,V2", conflicts_with_all = ["a", "b", "a_do", "b_do"])]
    vary: Option<AbChange>,
    /// A command for the shell before each measurement of the one side
    #[arg(long, value_name = "COMMAND")]
    a_do: Option<String>,
    /// A command for the shell before each measurement of the other side
    #[arg(long, value_name = "COMMAND")]
    b_do: Option<String>,
    /// What takes back at the end what these commands do
    #[arg(long, value_name = "COMMAND")]
    undo: Option<String>,
    /// Make a file system on a device, mounted anew before each measurement with the side's
    /// mount=OPTIONS: ext4, xfs or btrfs; the jobs' files lie in it
    #[arg(long, value_name = "TYPE:DEVICE")]
    mkfs: Option<MkfsArg>,
}

/// `TYPE:DEVICE`.
#[derive(Debug, Clone)]
pub struct MkfsArg {
    kind: FileSystemKind,
    device: PathBuf,
}

impl std::str::FromStr for MkfsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, device) = text
            .split_once(':')
            .ok_or("write TYPE:DEVICE, as in ext4:/dev/sdb")?;
        let (kind, device) = (kind.parse()?, PathBuf::from(device));
        Ok(Self { kind, device })
    }
}

/// `KEY=VALUE`.
#[derive(Debug, Clone)]
pub struct AbChange {
    pub key: String,
    pub value: String,
}

impl std::str::FromStr for AbChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text
            .split_once('=')
            .ok_or("write KEY=VALUE, as in scheduler=none or mix.bs=4k")?;
        match key {
            MOUNT if value.is_empty() || value.contains(char::is_whitespace) => {
                return Err("name options of mount(8), as in mount=noatime,commit=30".into());
            }
            FIO if value.is_empty() => {
                return Err("name a program, as in fio=/opt/fio/bin/fio".into());
            }
            KERNEL if value.is_empty() || value.contains(char::is_whitespace) => {
                return Err("name a kernel as 'uname -r' does, as in kernel=6.12.0-1-amd64".into());
            }
            _ => {}
        }
        let is_known =
            names().any(|known| known == key) || key.contains('.') || OTHERS.contains(&key);
        let is_vm = key.starts_with("vm.") && !names().any(|known| known == key);
        match is_known && !is_vm {
            true => Ok(Self {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            false => Err(SettingError::Unknown(key.to_owned()).to_string()),
        }
    }
}

impl AbChange {
    fn is_setting(&self) -> bool {
        names().any(|known| known == self.key)
    }

    /// As an option of a job, where it is one.
    pub fn of_job(&self) -> Option<Setting> {
        (!self.is_setting() && !OTHERS.contains(&self.key.as_str())).then(|| Setting {
            key: self.key.clone(),
            value: Some(self.value.clone()),
        })
    }
}

/// One side, as it was asked for.
#[derive(Debug, Clone)]
pub struct AskedSide {
    pub name: String,
    pub changes: Vec<AbChange>,
    command: Option<String>,
}

/// All sides, as they were asked for.
#[derive(Debug, Clone)]
pub struct Sides {
    pub all: Vec<AskedSide>,
    undo: Option<String>,
    mkfs: Option<MkfsArg>,
}

impl Sides {
    /// Those of a command line.
    ///
    /// # Errors
    /// What makes no sense together.
    pub fn of(args: &SidesArgs) -> Result<Self, ExitError> {
        let usage = |what: &str| Err(ExitError::new(Exit::Usage, what));
        let all = match &args.vary {
            Some(vary) => {
                let values = vary.value.split(',').map(|value| AbChange {
                    key: vary.key.clone(),
                    value: value.to_owned(),
                });
                values.map(|change| (vec![change], None)).collect()
            }
            None => vec![
                (args.a.clone(), args.a_do.clone()),
                (args.b.clone(), args.b_do.clone()),
            ],
        };
        if all.len() < 2 {
            return usage("--vary needs two values at the least, as in scheduler=none,bfq");
        }
        if all.len() > SIDES_MOST {
            return usage("--vary takes 16 values at the most");
        }
        if args.undo.is_some() && args.a_do.is_none() && args.b_do.is_none() {
            return usage("--undo takes back what --a-do and --b-do do, and there is none");
        }
        let twice = |changes: &Vec<AbChange>| {
            (1..changes.len()).any(|n| changes[..n].iter().any(|it| it.key == changes[n].key))
        };
        if all.iter().any(|(changes, _)| twice(changes)) {
            return usage("one side has a setting twice");
        }
        let side =
            |(letter, (changes, command)): (char, (Vec<AbChange>, Option<String>))| AskedSide {
                name: letter.to_string(),
                changes,
                command,
            };
        Ok(Self {
            all: ('a'..='z').zip(all).map(side).collect(),
            undo: args.undo.clone(),
            mkfs: args.mkfs.clone(),
        })
    }

    /// The file system that is made, judged: nothing has been done.
    ///
    /// # Errors
    /// What stands against it.
    pub fn file_system(&self, options: &RunOptions) -> anyhow::Result<Option<AbFileSystem>> {
        let has_mount = self.all.iter().any(|side| side.value_of(MOUNT).is_some());
        let usage = |what: &str| Err(ExitError::new(Exit::Usage, what).into());
        let Some(asked) = &self.mkfs else {
            return match has_mount {
                true => usage(
                    "mount= is of a file system that is made for the comparison\n  to do: add --mkfs ext4:DEVICE",
                ),
                false => Ok(None),
            };
        };
        if options.is_simulated() {
            return usage("a simulated device holds no file system");
        }
        let device = Sys::live().by_path(&asked.device).ok_or_else(|| {
            let what = format!(
                "{} is no block device of this machine",
                asked.device.display()
            );
            ExitError::new(Exit::Missing, what)
        })?;
        let made = AbFileSystem::new(asked.kind, &device.dev_path(), &options.destroy);
        let made = made.map_err(|why| ExitError::new(Exit::Missing, why))?;
        let made = made.map_err(|refusal| ExitError::new(Exit::Refused, refusal.to_string()))?;
        Ok(Some(made))
    }

    /// What runs them: fio, where sides name one.
    ///
    /// # Errors
    /// That another engine was asked for.
    pub fn engine(&self, options: &mut RunOptions) -> Result<(), ExitError> {
        if !self.all.iter().any(|side| side.fio().is_some()) {
            return Ok(());
        }
        match options.engine() {
            EngineName::Auto | EngineName::Fio => {
                options.engine = Some(EngineName::Fio);
                Ok(())
            }
            other => {
                let name = other.name();
                let what = format!("fio= is for the engine fio, and --engine {name} was asked for");
                Err(ExitError::new(Exit::Usage, what))
            }
        }
    }

    /// The fio of each side, where sides name one: the others have that of the run.
    fn programs(&self, job: &JobPlan) -> anyhow::Result<Vec<Option<SideFio>>> {
        if !self.all.iter().any(|side| side.fio().is_some()) {
            return Ok(vec![None; self.all.len()]);
        }
        let program = |(place, side): (usize, &AskedSide)| {
            let asked = side.fio().or(job.options.fio.as_deref());
            let program = Program::find(asked).map_err(missing)?;
            job.must_run_by(place, &program)?;
            let version = program.version().map_err(missing)?.to_string();
            let path = std::path::absolute(&program.path)?;
            Ok(Some(SideFio { path, version }))
        };
        self.all.iter().enumerate().map(program).collect()
    }

    /// The kernel of each side, where sides name one: the others have that which is running.
    fn kernels(&self) -> Vec<Option<String>> {
        let named = |side: &AskedSide| side.value_of(KERNEL).map(str::to_owned);
        if self.all.iter().all(|side| named(side).is_none()) {
            return vec![None; self.all.len()];
        }
        let running = fathom_device::booted().kernel;
        let each = self.all.iter().map(|side| {
            let kernel = named(side).unwrap_or_else(|| running.clone());
            if kernel != running && !Path::new("/lib/modules").join(&kernel).exists() {
                out::note(format_args!(
                    "fathom: /lib/modules has no {kernel}: is it what 'uname -r' says there?"
                ));
            }
            Some(kernel)
        });
        each.collect()
    }

    /// The sides, and what they change: what a side does not set is as it stands.
    ///
    /// # Errors
    /// Why a setting cannot have a value.
    pub fn judged(
        &self,
        job: &JobPlan,
        file_system: Option<AbFileSystem>,
        dry_run: bool,
    ) -> anyhow::Result<(Vec<AbSide>, AbSetup)> {
        let set = |name: &&str| {
            let mut all = self.all.iter().flat_map(|side| &side.changes);
            all.any(|change| change.key == **name)
        };
        let used: Vec<&str> = names().filter(set).collect();
        let commands = self.all.iter().any(|side| side.command.is_some());
        let kernels = self.kernels();
        let has_kernels = kernels.iter().any(Option::is_some);
        if job.options.is_simulated() && (commands || has_kernels || !used.is_empty()) {
            let what = "a simulated device has no settings and no machine\n  to do: compare options of its jobs, as in --b mix.bs=8k";
            return Err(ExitError::new(Exit::Usage, what).into());
        }
        let programs = self.all.iter().any(|side| side.fio().is_some());
        let is_here = commands || programs || file_system.is_some() || !used.is_empty();
        if job.hosts.is_some() && (is_here || has_kernels) {
            let what = "with --hosts: settings, commands, programs, kernels and file systems are those of this machine only, where they are put back\n  to do: compare options of its jobs, as in --b mix.bs=8k";
            return Err(ExitError::new(Exit::Usage, what).into());
        }
        let mut device = None;
        if used.iter().any(|name| is_of_device(name)) {
            let made = file_system.as_ref().map(|it| it.device.as_path());
            let made = made.and_then(|device| Sys::live().by_path(device));
            device = Some(made.map_or_else(|| device_of(job), |made| Ok(made.whole()))?);
        }
        if !used.is_empty() {
            put_back_first(dry_run)?;
        }
        let settings = Settings::new(Sys::live(), device.as_ref());
        let wrong = |error: SettingError| {
            let exit = match error {
                SettingError::Missing(..) => Exit::Missing,
                _ => Exit::Usage,
            };
            ExitError::new(exit, error.to_string())
        };
        let mut sides = Vec::new();
        let parts = self.programs(job)?.into_iter().zip(kernels);
        for (side, (fio, kernel)) in self.all.iter().zip(parts) {
            let mut values = Vec::new();
            for name in &used {
                let own = side.changes.iter().find(|change| change.key == *name);
                let found = match own {
                    Some(change) => settings.values(name, &change.value),
                    None => settings.found(name),
                };
                values.extend(found.map_err(wrong)?);
            }
            sides.push(AbSide {
                name: side.name.clone(),
                label: side.label(fio.as_ref(), kernel.as_deref()),
                values,
                command: side.command.clone(),
                mount: side.value_of(MOUNT).map(str::to_owned),
                fio,
                kernel,
            });
        }
        let setup = AbSetup {
            device: device.map(|device| device.dev_path()),
            settings: used.iter().map(|&name| name.to_owned()).collect(),
            undo: self.undo.clone(),
            folder: job.work_dir.clone().unwrap_or_default(),
            file_system,
        };
        Ok((sides, setup))
    }
}

impl AskedSide {
    /// The fio that it names.
    fn fio(&self) -> Option<&Path> {
        self.value_of(FIO).map(Path::new)
    }

    fn value_of(&self, key: &str) -> Option<&str> {
        let named = self.changes.iter().find(|change| change.key == key)?;
        Some(&named.value)
    }

    /// What it is, in the words of the command line, and the version of its fio, and the
    /// kernel that it has from no word.
    fn label(&self, fio: Option<&SideFio>, kernel: Option<&str>) -> String {
        let changes = self.changes.iter();
        let all = changes.map(|change| format!("{}={}", change.key, change.value));
        let all: Vec<String> = all.chain(self.command.clone()).collect();
        let label = match all.is_empty() {
            true => "as it stands".to_owned(),
            false => all.join(", "),
        };
        let kernel = kernel.filter(|_| self.value_of(KERNEL).is_none());
        let kernel = kernel.map(|kernel| format!("kernel {kernel}"));
        let more: Vec<String> = (fio.map(|fio| fio.version.clone()).into_iter())
            .chain(kernel)
            .collect();
        match more.is_empty() {
            true => label,
            false => format!("{label} ({})", more.join(", ")),
        }
    }
}

fn missing(failure: Failure) -> anyhow::Error {
    ExitError::new(Exit::Missing, failure.sentence()).into()
}

/// Refuses to go on with another version of a side's fio than it was measured with.
///
/// # Errors
/// Which side, and what it was.
pub fn are_as_they_were(sides: &[AbSide]) -> anyhow::Result<()> {
    for side in sides {
        let Some(fio) = &side.fio else { continue };
        let program = Program::find(Some(&fio.path)).map_err(missing)?;
        let now = program.version().map_err(missing)?.to_string();
        if now != fio.version {
            let (path, before) = (fio.path.display(), &fio.version);
            let what = format!(
                "{path} is {now} now, and side {} was measured with {before}\n  to do: start the comparison again",
                side.name
            );
            return Err(ExitError::new(Exit::Refused, what).into());
        }
    }
    Ok(())
}

/// The one device that the jobs use.
pub fn device_of(job: &JobPlan) -> anyhow::Result<SysBlock> {
    let sys = Sys::live();
    let mut devices: Vec<SysBlock> = Vec::new();
    for target in job.targets()? {
        for disk in stack::disks(&sys, &target) {
            if !devices.contains(&disk) {
                devices.push(disk);
            }
        }
    }
    match &devices[..] {
        [device] => Ok(device.clone()),
        [] => Err(ExitError::new(
            Exit::Usage,
            "the jobs use no block device, and the settings are those of one",
        )
        .into()),
        several => {
            let names: Vec<&str> = several.iter().map(|it| it.name.as_str()).collect();
            let what = format!(
                "the jobs use {}, and settings of one device are compared\n  to do: a job file for each",
                names.join(" and ")
            );
            Err(ExitError::new(Exit::Usage, what).into())
        }
    }
}

/// What a run that was killed has left would be taken for how it stands.
pub fn put_back_first(dry_run: bool) -> anyhow::Result<()> {
    for left in undo::left_behind().map_err(failed)? {
        if !matches!(left.note, UndoNote::Settings(_)) {
            continue;
        }
        if dry_run {
            let what = format!(
                "{} are not as they were: a run that was killed has left them so\n  to do: fathom restore",
                left.subject()
            );
            return Err(ExitError::new(Exit::Refused, what).into());
        }
        left.restore().map_err(failed)?;
        out::note(format_args!("fathom: {}", undo::PUT_BACK_FIRST));
    }
    Ok(())
}
