//! The options of every run, with one meaning for all.
//!
//! This is their one declaration: the command line, plan files, what a record keeps for
//! `fathom resume`, and what other machines are sent are made from it. A kind of run that
//! cannot do with one of them says why, where the command line is read.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_engines::EngineName;
use fathom_fleet::MaxErrors;
use fathom_model::units;
use fathom_model::value::{BareTimeUnit, time_us};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::budget::{Over, SpendLimits};
use crate::error::RunError;

/// What every run can be told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct RunOptions {
    /// Confirm that a device may be overwritten: its serial number, its name in
    /// /dev/disk/by-id, or PATH=SIZE where it has neither (may be repeated)
    #[arg(long, value_name = "WORDS")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destroy: Vec<String>,
    /// Which engine runs the jobs [default: auto]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineName>,
    /// The device that '--engine sim' simulates [default: a healthy one]
    #[arg(long, value_name = "FILE", value_parser = from_here)]
    #[serde(
        deserialize_with = "one_or_more",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub sim: Vec<PathBuf>,
    /// The fio to use [default: $FATHOM_FIO, or the one in PATH]
    #[arg(long, value_name = "PATH", value_parser = program)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fio: Option<PathBuf>,
    /// Longest time of this start: nothing begins that would end later
    #[arg(long, visible_alias = "limit", value_name = "TIME", value_parser = duration)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Duration>,
    /// Most bytes written, in all starts together (20T)
    #[arg(long, value_name = "BYTES", value_parser = size)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_written: Option<u64>,
    /// Fail when more I/Os of a job fail than this number, or share in percent, though the job
    /// goes on after them (continue_on_error, ignore_error)
    #[arg(long, value_name = "N|P%")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_errors: Option<MaxErrors>,
    /// What the run is called wherever it is shown, beside its name: 80 characters at most
    #[arg(long, value_name = "TEXT", value_parser = label)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl RunOptions {
    /// A command of these options alone: what their names, forms and help are read from.
    pub fn command() -> clap::Command {
        <Self as clap::Args>::augment_args(clap::Command::new("run")).no_binary_name(true)
    }

    /// Which engine runs the jobs.
    pub fn engine(&self) -> EngineName {
        self.engine.unwrap_or_default()
    }

    /// Whether a simulated device is measured.
    pub fn is_simulated(&self) -> bool {
        self.engine == Some(EngineName::Sim)
    }

    /// The file of the device that is simulated, of several the one in this place; the last
    /// is for all that follow. `None`: a healthy one.
    pub fn sim(&self, place: usize) -> Option<&Path> {
        let own = self.sim.get(place).or(self.sim.last());
        own.map(PathBuf::as_path)
    }

    /// Those of the device in this place.
    pub fn of_device(&self, place: usize) -> Self {
        Self {
            sim: self.sim(place).map(Path::to_owned).into_iter().collect(),
            ..self.clone()
        }
    }

    /// The limits of the run.
    pub fn limits(&self) -> SpendLimits {
        SpendLimits {
            time: self.max_time,
            bytes: self.max_written,
            over: Over::Cut,
        }
    }

    /// Those of a part of a run: the limits are those of the whole.
    #[must_use]
    pub fn of_part(&self) -> Self {
        Self {
            max_time: None,
            max_written: None,
            ..self.clone()
        }
    }

    /// Takes over what `given` says. What confirms devices is added.
    ///
    /// # Errors
    /// As [`overlaid`].
    pub fn over(&mut self, given: &Self) -> Result<(), RunError> {
        let confirmed = [&self.destroy[..], &given.destroy].concat();
        *self = overlaid(self, given)?;
        self.destroy = confirmed;
        Ok(())
    }

    /// Another start with what `given` says: devices are confirmed anew, and time is counted
    /// anew. A fio is forgotten with an engine that runs none.
    ///
    /// # Errors
    /// As [`overlaid`].
    pub fn again(&mut self, given: &Self) -> Result<(), RunError> {
        *self = self.kept();
        if matches!(given.engine, Some(EngineName::Native | EngineName::Sim)) {
            self.fio = None;
        }
        self.over(given)
    }

    /// What a record keeps of them.
    pub fn kept(&self) -> Self {
        Self {
            destroy: Vec::new(),
            max_time: None,
            ..self.clone()
        }
    }

    /// Refuses a file that describes a simulated device, and the path of a fio, where the
    /// engine uses neither.
    ///
    /// # Errors
    /// What makes no sense, and what to do.
    pub fn check(&self) -> Result<(), String> {
        let engine = self.engine();
        match engine {
            EngineName::Sim | EngineName::Native if self.fio.is_some() => Err(format!(
                "--fio names the fio that runs the jobs, and the engine {} runs none\n  to do: leave out --fio, or use --engine fio",
                engine.name()
            )),
            EngineName::Auto | EngineName::Fio | EngineName::Native if !self.sim.is_empty() => {
                Err("--sim describes a simulated device\n  to do: add --engine sim".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The same of a run on one device.
    ///
    /// # Errors
    /// As [`RunOptions::check`], and that several devices are described.
    pub fn check_one(&self) -> Result<(), String> {
        match self.sim[..] {
            [] | [_] => self.check(),
            _ => Err(
                "--sim describes the one device that is simulated here\n  to do: give it once"
                    .to_owned(),
            ),
        }
    }
}

/// `kept` with everything over it that `given` says: what does not say anything is left out of
/// its JSON.
///
/// # Errors
/// When a path is not UTF-8, which JSON cannot hold.
pub fn overlaid<T: Serialize + DeserializeOwned>(kept: &T, given: &T) -> Result<T, RunError> {
    let fields = |it: &T| -> Result<Map<String, Value>, serde_json::Error> {
        serde_json::from_value(serde_json::to_value(it)?)
    };
    let whole = || -> Result<T, serde_json::Error> {
        let mut all = fields(kept)?;
        all.extend(fields(given)?);
        serde_json::from_value(Value::Object(all))
    };
    whole().map_err(|error| RunError::Input(error.to_string()))
}

/// A file by a name that holds from everywhere: a run may go on from another folder.
///
/// # Errors
/// When the name is empty, or the current folder has disappeared.
pub fn from_here(text: &str) -> io::Result<PathBuf> {
    std::path::absolute(text)
}

/// The same of a program, but for a bare name, which is looked for in `PATH`.
fn program(text: &str) -> io::Result<PathBuf> {
    match text.contains('/') {
        true => from_here(text),
        false => Ok(PathBuf::from(text)),
    }
}

/// Reads a time as job files have it; without a unit it is in seconds.
///
/// # Errors
/// What is wrong with it.
pub fn duration(text: &str) -> Result<Duration, String> {
    let us = time_us(text, BareTimeUnit::Seconds).map_err(|fault| fault.to_string())?;
    match u64::try_from(us).map(Duration::from_micros) {
        Ok(time) if time >= Duration::from_millis(1) => Ok(time),
        _ => Err("it must be at least 1ms".to_owned()),
    }
}

/// Reads a number of bytes: `64M`, `1GiB`, `20T`.
///
/// # Errors
/// That it is none.
pub fn size(text: &str) -> Result<u64, String> {
    let bytes = units::parse_size(text);
    bytes.ok_or_else(|| "not a size like 64M or 20T".to_owned())
}

/// Most characters of a label: it stands in lists, beside much else.
const LABEL_CHARS_MAX: usize = 80;

fn label(text: &str) -> Result<String, String> {
    let is_label = !text.trim().is_empty()
        && text.chars().count() <= LABEL_CHARS_MAX
        && !text.chars().any(char::is_control);
    let wrong = || format!("a label is one line of {LABEL_CHARS_MAX} characters at most");
    is_label.then(|| text.to_owned()).ok_or_else(wrong)
}

/// Records of earlier versions have one file or null.
fn one_or_more<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Kept {
        One(PathBuf),
        More(Vec<PathBuf>),
    }
    Ok(match Option::<Kept>::deserialize(from)? {
        None => Vec::new(),
        Some(Kept::One(one)) => vec![one],
        Some(Kept::More(more)) => more,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_records_of_earlier_versions_keep_is_read() {
        let read = |kept: Value| serde_json::from_value::<RunOptions>(kept).unwrap();
        let plan = json!({
            "destroy": [], "engine": "", "fio": null, "sim": null, "max_time": null,
            "max_written": 1024, "max_errors": "0.1%",
        });
        let options = read(plan);
        assert_eq!(
            (options.engine(), options.max_written),
            (EngineName::Auto, Some(1024))
        );
        assert_eq!(options.max_errors, Some(MaxErrors::Percent(0.1)));
        let campaign = json!({"only": [], "engine": "sim", "sim": "/tmp/a.toml", "repeat": null});
        assert_eq!(read(campaign).sim(0), Some(Path::new("/tmp/a.toml")));
    }

    #[test]
    fn what_is_given_anew_goes_over_what_was_kept() {
        let mut options = RunOptions {
            destroy: vec!["A".into()],
            fio: Some("/opt/fio".into()),
            max_time: Some(Duration::from_secs(9)),
            max_written: Some(1),
            label: Some("a".into()),
            ..RunOptions::default()
        };
        let given = RunOptions {
            destroy: vec!["B".into()],
            engine: Some(EngineName::Native),
            max_written: Some(2),
            ..RunOptions::default()
        };
        let mut over = options.clone();
        over.over(&given).unwrap();
        assert_eq!(over.destroy, ["A", "B"]);
        assert_eq!(over.max_time, options.max_time);
        options.again(&given).unwrap();
        let wanted = RunOptions {
            label: Some("a".into()),
            ..given
        };
        assert_eq!(options, wanted);
    }

    #[test]
    fn devices_that_are_simulated_are_those_of_their_places() {
        let options = RunOptions {
            engine: Some(EngineName::Sim),
            sim: vec!["a".into(), "b".into()],
            ..RunOptions::default()
        };
        assert_eq!(options.sim(0), Some(Path::new("a")));
        assert_eq!(options.of_device(5).sim, [PathBuf::from("b")]);
        assert!(options.check().is_ok() && options.check_one().is_err());
    }

    #[test]
    fn a_label_is_one_short_line() {
        assert!(label("nightly, kernel 6.18").is_ok());
        for bad in ["", "  ", "a\nb", "\u{1b}[31m", &"a".repeat(81)] {
            assert!(label(bad).is_err(), "{bad:?}");
        }
    }
}
