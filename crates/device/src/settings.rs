//! Settings that can be compared: of a device's queue (Documentation/ABI/stable/sysfs-block),
//! of the CPUs (Documentation/admin-guide/pm/cpufreq.rst) and of what becomes of written
//! pages (Documentation/admin-guide/sysctl/vm.rst). What a side wants is judged before
//! anything is changed, how they stood is known in the form in which it can be written
//! back, and what the kernel did not take is an error.

use std::io;
use std::path::{Path, PathBuf};

use fathom_model::SettingValue;

use crate::command::{Command, Issue};
use crate::switches::in_force;
use crate::sys::{Sys, SysBlock, names_in, text};

/// The governor of all CPUs.
const GOVERNOR: &str = "governor";
/// Where the CPUs are.
const CPUS: &str = "/sys/devices/system/cpu";

/// What can be written to a setting.
#[derive(Debug, Clone, Copy)]
enum Takes {
    /// One of those that the attribute lists, the one in force in brackets.
    Listed,
    /// One of those that another attribute lists.
    ListedIn(&'static str),
    /// One of these.
    Words(&'static [&'static str]),
    /// A whole number, from this one on to what an attribute beside it says.
    Number(i64, Option<&'static str>),
}

/// Settings of a device, by their names in `queue`, in the order in which they are set:
/// another scheduler begins with a queue of its own length.
const QUEUE: [(&str, Takes); 9] = [
    ("scheduler", Takes::Listed),
    // BLKDEV_MIN_RQ
    ("nr_requests", Takes::Number(4, None)),
    ("wbt_lat_usec", Takes::Number(0, None)),
    ("read_ahead_kb", Takes::Number(0, None)),
    (
        "max_sectors_kb",
        Takes::Number(4, Some("max_hw_sectors_kb")),
    ),
    ("nomerges", Takes::Words(&["0", "1", "2"])),
    ("rq_affinity", Takes::Words(&["0", "1", "2"])),
    ("io_poll_delay", Takes::Number(-1, None)),
    (
        "write_cache",
        Takes::Words(&["write back", "write through"]),
    ),
];
/// What a scheduler changes beside itself.
const BY_SCHEDULER: [&str; 2] = ["nr_requests", "wbt_lat_usec"];

/// Settings of the machine, by their names here, and where they are.
const MACHINE: [(&str, &str, Takes); 7] = [
    (
        GOVERNOR,
        "cpufreq/scaling_governor",
        Takes::ListedIn("scaling_available_governors"),
    ),
    ("vm.dirty_ratio", "/proc/sys/vm/dirty_ratio", PERCENT),
    (
        "vm.dirty_background_ratio",
        "/proc/sys/vm/dirty_background_ratio",
        PERCENT,
    ),
    ("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes", PAGES),
    (
        "vm.dirty_background_bytes",
        "/proc/sys/vm/dirty_background_bytes",
        Takes::Number(1, None),
    ),
    (
        "vm.dirty_expire_centisecs",
        "/proc/sys/vm/dirty_expire_centisecs",
        Takes::Number(0, None),
    ),
    (
        "vm.dirty_writeback_centisecs",
        "/proc/sys/vm/dirty_writeback_centisecs",
        Takes::Number(0, None),
    ),
];
const PERCENT: Takes = Takes::Number(0, None);
/// Two pages at the least.
const PAGES: Takes = Takes::Number(8192, None);

/// Why a setting cannot be compared, or was not set.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// Nobody knows it.
    #[error("'{name}' is no setting that can be compared\n  to do: one of {}, or JOB.OPTION of a job", names().collect::<Vec<_>>().join(", "), name = .0)]
    Unknown(String),
    /// It belongs to a device, and there is none.
    #[error("{0} is a setting of a block device, and the jobs use none")]
    NoDevice(String),
    /// It is not there.
    #[error("{0} has no {1}")]
    Missing(String, String),
    /// It does not take this value.
    #[error("{subject} does not take {name}={value}: {why}")]
    Value {
        /// The device, or the machine.
        subject: String,
        /// The setting.
        name: String,
        /// The value.
        value: String,
        /// What it takes.
        why: String,
    },
    /// It could not be written.
    #[error("{command}: {source}")]
    Io {
        /// What was done, as a person would type it.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel has another value afterwards.
    #[error("{command}: the kernel did not take it, it stands at '{is}'")]
    NotTaken {
        /// What was done, as a person would type it.
        command: String,
        /// What it is afterwards.
        is: String,
    },
}

/// Names of all settings.
pub fn names() -> impl Iterator<Item = &'static str> {
    let queue = QUEUE.iter().map(|(name, _)| *name);
    queue.chain(MACHINE.iter().map(|(name, ..)| *name))
}

/// Whether it is one of a device.
pub fn is_of_device(name: &str) -> bool {
    QUEUE.iter().any(|(known, _)| *known == name)
}

/// Whether a scheduler sets it when it takes over.
pub fn is_by_scheduler(name: &str) -> bool {
    BY_SCHEDULER.contains(&name)
}

/// The settings of a device and of its machine.
#[derive(Debug)]
pub struct Settings {
    sys: Sys,
    device: Option<SysBlock>,
}

impl Settings {
    /// Those of this device; of a partition, those of the disk it is on.
    pub fn new(sys: Sys, device: Option<&SysBlock>) -> Self {
        Self {
            sys,
            device: device.map(SysBlock::whole),
        }
    }

    /// What is written to give a setting this value.
    ///
    /// # Errors
    /// Why it cannot have it.
    pub fn values(&self, name: &str, value: &str) -> Result<Vec<SettingValue>, SettingError> {
        let (files, takes) = self.files(name)?;
        if let Takes::Number(least, most) = takes {
            self.text(name, files.first())?;
            let most = most.and_then(|other| self.beside(&files, other)?.parse::<i64>().ok());
            let number = value.parse::<i64>().ok();
            let fits = |n: i64| n >= least && most.is_none_or(|most| n <= most);
            return match number.is_some_and(fits) {
                true => Ok(written(files, value)),
                false => Err(self.refused(name, value, range(least, most))),
            };
        }
        let allowed = self.choices(name)?;
        match allowed.iter().any(|it| it == value) {
            true => Ok(written(files, value)),
            false => Err(self.refused(name, value, format!("it has {}", allowed.join(", ")))),
        }
    }

    /// All values that a setting takes; none of one that takes numbers.
    ///
    /// # Errors
    /// When it is not there.
    pub fn choices(&self, name: &str) -> Result<Vec<String>, SettingError> {
        let (files, takes) = self.files(name)?;
        let first = self.text(name, files.first())?;
        let list = |values: &str| -> Vec<String> {
            let values = values.split_whitespace();
            values
                .map(|it| it.trim_matches(['[', ']']).to_owned())
                .collect()
        };
        Ok(match takes {
            Takes::Listed => list(&first),
            Takes::ListedIn(other) => list(&self.beside(&files, other).unwrap_or_default()),
            Takes::Words(words) => words.iter().map(|&word| word.to_owned()).collect(),
            Takes::Number(..) => Vec::new(),
        })
    }

    /// Another attribute in the folder of the first.
    fn beside(&self, files: &[PathBuf], other: &str) -> Option<String> {
        text(&self.path(files.first()?).parent()?.join(other))
    }

    fn refused(&self, name: &str, value: &str, why: String) -> SettingError {
        SettingError::Value {
            subject: self.subject(name),
            name: name.to_owned(),
            value: value.to_owned(),
            why,
        }
    }

    /// How a setting stands, as what is written to have it so again: with all that
    /// changes along with it.
    ///
    /// # Errors
    /// Why that is not known.
    pub fn found(&self, name: &str) -> Result<Vec<SettingValue>, SettingError> {
        let (files, _) = self.files(name)?;
        let mut found = Vec::new();
        for file in files {
            let is = self.text(name, Some(&file))?;
            let is = in_force(&is).unwrap_or(is);
            // Of bytes and ratio one is in force, and the other stands at 0: only the
            // one can be written.
            let twin = twin(&file).filter(|_| is == "0");
            let twin = twin.and_then(|file| Some((text(&self.path(&file))?, file)));
            found.push(match twin.filter(|(value, _)| value != "0") {
                Some((value, file)) => SettingValue { file, value },
                None => SettingValue { file, value: is },
            });
        }
        if name == "scheduler" {
            for name in BY_SCHEDULER {
                let file = Path::new("queue").join(name);
                // What this device does not have no scheduler changes.
                let value = text(&self.path(&file));
                found.extend(value.map(|value| SettingValue { file, value }));
            }
        }
        Ok(found)
    }

    /// Writes these values, and reads them back.
    ///
    /// # Errors
    /// The first that the kernel did not take.
    pub fn set(&self, issue: &dyn Issue, values: &[SettingValue]) -> Result<(), SettingError> {
        let device = self.device.as_ref().map(SysBlock::dev_path);
        for value in values {
            let command = self.command(value);
            let device = device.as_deref().unwrap_or(Path::new("/"));
            let named = || command.to_string();
            let given = issue.issue(device, &command);
            given.map_err(|source| SettingError::Io {
                command: named(),
                source,
            })?;
            let is = text(&self.path(&value.file)).unwrap_or_default();
            let is = in_force(&is).unwrap_or(is);
            if is != value.value {
                let command = named();
                return Err(SettingError::NotTaken { command, is });
            }
        }
        Ok(())
    }

    /// What writes a value.
    pub fn command(&self, value: &SettingValue) -> Command {
        Command::Attribute {
            path: self.path(&value.file),
            value: value.value.clone(),
        }
    }

    fn path(&self, file: &Path) -> PathBuf {
        match (&self.device, file.is_absolute()) {
            (Some(device), false) => {
                let folder = device.name.replace('/', "!");
                self.sys.path("/sys/class/block").join(folder).join(file)
            }
            _ => self.sys.path(file),
        }
    }

    fn text(&self, name: &str, file: Option<&PathBuf>) -> Result<String, SettingError> {
        let found = file.and_then(|file| text(&self.path(file)));
        found.ok_or_else(|| SettingError::Missing(self.subject(name), name.to_owned()))
    }

    /// What has a setting.
    fn subject(&self, name: &str) -> String {
        let device = self.device.as_ref().filter(|_| is_of_device(name));
        device.map_or("this machine".to_owned(), |device| device.name.clone())
    }

    /// The attributes of a setting, and what they take.
    fn files(&self, name: &str) -> Result<(Vec<PathBuf>, Takes), SettingError> {
        if let Some((_, takes)) = QUEUE.iter().find(|(known, _)| *known == name) {
            return match self.device {
                Some(_) => Ok((vec![Path::new("queue").join(name)], *takes)),
                None => Err(SettingError::NoDevice(name.to_owned())),
            };
        }
        let known = MACHINE.iter().find(|(known, ..)| *known == name);
        let (_, file, takes) = known.ok_or_else(|| SettingError::Unknown(name.to_owned()))?;
        let files = match name == GOVERNOR {
            false => vec![PathBuf::from(file)],
            true => {
                let is_cpu = |it: &String| {
                    let number = it.strip_prefix("cpu");
                    number.is_some_and(|n| n.parse::<u32>().is_ok())
                };
                let cpus = names_in(&self.sys.path(CPUS)).into_iter().filter(is_cpu);
                let files = cpus.map(|cpu| Path::new(CPUS).join(cpu).join(file));
                files.filter(|file| self.path(file).exists()).collect()
            }
        };
        Ok((files, *takes))
    }
}

fn written(files: Vec<PathBuf>, value: &str) -> Vec<SettingValue> {
    let value = value.to_owned();
    let of = |file| SettingValue {
        file,
        value: value.clone(),
    };
    files.into_iter().map(of).collect()
}

fn range(least: i64, most: Option<i64>) -> String {
    match most {
        Some(most) => format!("it takes {least} to {most}"),
        None => format!("it takes {least} and more"),
    }
}

/// The attribute that says the same in another unit: bytes for a ratio, a ratio for bytes.
fn twin(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    let other = match (name.strip_suffix("_bytes"), name.strip_suffix("_ratio")) {
        (Some(stem), _) => format!("{stem}_ratio"),
        (_, Some(stem)) => format!("{stem}_bytes"),
        _ => return None,
    };
    Some(file.with_file_name(other))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::command::KernelDevices;

    /// A machine with a disk, in a folder.
    fn machine() -> (tempfile::TempDir, Settings) {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let queue = "sys/class/block/sda/queue";
        write(&format!("{queue}/scheduler"), "none [mq-deadline] bfq\n");
        write(&format!("{queue}/nr_requests"), "64\n");
        write(&format!("{queue}/max_sectors_kb"), "128\n");
        write(&format!("{queue}/max_hw_sectors_kb"), "256\n");
        write("proc/sys/vm/dirty_ratio", "20\n");
        write("proc/sys/vm/dirty_bytes", "0\n");
        for cpu in ["cpu0", "cpu1"] {
            let cpu = format!("sys/devices/system/cpu/{cpu}/cpufreq");
            write(&format!("{cpu}/scaling_governor"), "powersave\n");
            let all = "performance powersave\n";
            write(&format!("{cpu}/scaling_available_governors"), all);
        }
        let sys = Sys::recorded(folder.path());
        let disk = sys.by_name("sda").unwrap();
        (folder, Settings::new(sys, Some(&disk)))
    }

    fn value(file: &str, value: &str) -> SettingValue {
        SettingValue {
            file: file.into(),
            value: value.into(),
        }
    }

    #[test]
    fn values_are_judged_before_anything_is_written() {
        let (_folder, settings) = machine();
        let bfq = settings.values("scheduler", "bfq").unwrap();
        assert_eq!(bfq, [value("queue/scheduler", "bfq")]);
        let against =
            |name: &str, value: &str| settings.values(name, value).unwrap_err().to_string();
        assert_eq!(
            against("scheduler", "kyber"),
            "sda does not take scheduler=kyber: it has none, mq-deadline, bfq"
        );
        assert!(against("max_sectors_kb", "512").ends_with("it takes 4 to 256"));
        assert!(against("nr_requests", "x").ends_with("it takes 4 and more"));
        assert!(against("governor", "fast").contains("it has performance, powersave"));
        assert!(against("rq_affinity", "1").contains("sda has no rq_affinity"));
        assert!(against("elevator", "bfq").contains("scheduler, nr_requests"));
        assert_eq!(settings.values("governor", "performance").unwrap().len(), 2);
    }

    #[test]
    fn what_stands_is_found_as_it_can_be_written_back() {
        let (_folder, settings) = machine();
        let found = settings.found("scheduler").unwrap();
        let scheduler = value("queue/scheduler", "mq-deadline");
        assert_eq!(found, [scheduler, value("queue/nr_requests", "64")]);
        // Of both only the ratio is in force.
        for name in ["vm.dirty_bytes", "vm.dirty_ratio"] {
            let ratio = value("/proc/sys/vm/dirty_ratio", "20");
            assert_eq!(settings.found(name).unwrap(), [ratio], "{name}");
        }
    }

    #[test]
    fn values_are_written_and_read_back() {
        let (folder, settings) = machine();
        let wanted = settings.values("nr_requests", "32").unwrap();
        settings.set(&KernelDevices, &wanted).unwrap();
        let path = folder.path().join("sys/class/block/sda/queue/nr_requests");
        assert_eq!(fs::read_to_string(path).unwrap(), "32");
        let missing = [value("queue/none/such", "1")];
        let failed = settings.set(&KernelDevices, &missing).unwrap_err();
        assert!(failed.to_string().contains("echo 1 > "), "{failed}");
    }
}
