//! A job file that a flow runs by itself, outside of any stage.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_engine::Request;
use fathom_model::{Event, JobSpec, Point, Stage, StageKind};

use super::{Task, Work};
use crate::load::Load;
use crate::{file_names, wants};

/// One job file of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct JobStep {
    /// Its place in the run, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
    /// Its name: the job file's, the point's.
    pub name: String,
    /// What is measured, where it is a point of a curve.
    pub point: Option<Point>,
    /// The job file as it is run: variables and included files replaced.
    pub text: String,
    /// The bytes as somebody wrote them, where they are others.
    pub as_written: Option<Vec<u8>>,
    /// Its name in the record's folder `jobs`.
    pub job_file: PathBuf,
    /// The engine's own outputs, in the record's folder `raw`.
    pub raw: PathBuf,
    /// Sections that run; all when empty.
    pub sections: Vec<String>,
    /// Options of fio's own command line.
    pub extra_args: Vec<String>,
    /// Relative names are meant from here; `None`: from the folder of its outputs.
    pub work_dir: Option<PathBuf>,
    /// Time between two samples.
    pub interval: Duration,
    /// The longest it may take.
    pub deadline: Option<Duration>,
    /// The fio that runs it, where it is not that of the run.
    pub fio: Option<PathBuf>,
    /// What it costs.
    pub load: Load,
    /// Its text is read where it is run, and kept beside other texts of its name; each try
    /// has a new folder for its outputs.
    pub keeps_versions: bool,
}

/// How often a step can be tried again in one record.
const TRIES_MAX: u32 = 1000;

impl JobStep {
    /// A step with these jobs, which runs from the folder of its outputs.
    pub fn new((number, of): (u32, u32), name: &str, text: String, jobs: &[JobSpec]) -> Self {
        Self {
            number,
            of,
            name: name.to_owned(),
            point: None,
            text,
            as_written: None,
            job_file: PathBuf::from(format!("{name}.fio")),
            raw: PathBuf::from(name),
            sections: Vec::new(),
            extra_args: Vec::new(),
            work_dir: None,
            interval: Duration::from_secs(1),
            deadline: None,
            fio: None,
            load: Load::of(jobs),
            keeps_versions: false,
        }
    }

    /// As what a script asks for.
    pub fn task(self) -> Task {
        let stage = Stage {
            id: self.name.clone(),
            kind: StageKind::Measure,
            title: self.name.clone(),
            round: None,
        };
        let work = Work::Job(Box::new(self));
        Task { stage, work }
    }

    /// That it begins.
    pub fn told(&self) -> Event {
        Event::Step {
            step: self.number,
            of: self.of,
            name: self.name.clone(),
            point: self.point.clone().map(Box::new),
        }
    }

    /// As it is run into the record `dir`: where it keeps versions, under a name that no
    /// other text has there.
    pub fn kept_in(&self, dir: &Path) -> Cow<'_, Self> {
        if !self.keeps_versions {
            return Cow::Borrowed(self);
        }
        // What cannot be read the engine refuses.
        let read = wants::read(&self.text, &self.job_file);
        let text = read.map_or_else(|_| self.text.clone(), |job| job.text);
        let ending = file_names::ending(&self.job_file);
        let name = file_names::job_name(dir, &self.name, ending, &text);
        Cow::Owned(Self {
            job_file: PathBuf::from(format!("{name}.{ending}")),
            name,
            text,
            ..self.clone()
        })
    }

    /// What the engine is asked for, with its job file here and its outputs there.
    pub fn request(&self, job_file: PathBuf, raw_dir: PathBuf) -> Request {
        Request {
            job_file,
            sections: self.sections.clone(),
            extra_args: self.extra_args.clone(),
            work_dir: self.work_dir.clone().unwrap_or_else(|| raw_dir.clone()),
            raw_dir,
            interval: self.interval,
            deadline: self.deadline,
            fio: self.fio.clone(),
            checked: None,
        }
    }

    /// Puts its job file into the record `dir` and makes the folder of its outputs,
    /// one that no earlier try has used.
    ///
    /// # Errors
    /// What cannot be written, and why.
    pub fn keep(&self, dir: &Path) -> Result<Request, (PathBuf, io::Error)> {
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        let job_file = dir.join("jobs").join(&self.job_file);
        let write = |path: &Path, bytes: &[u8]| {
            // A kill must not leave half of what is there.
            if fs::read(path).is_ok_and(|kept| kept == bytes) {
                return Ok(());
            }
            let made = path.parent().map_or(Ok(()), fs::create_dir_all);
            let whole = |file: &mut fs::File| file.write_all(bytes);
            let written = made.and_then(|()| fathom_record::replace(path, whole));
            written.map_err(|source| (path.to_owned(), source))
        };
        write(&job_file, self.text.as_bytes())?;
        if let Some(written) = &self.as_written {
            write(&with_ending(&job_file, ".as-written"), written)?;
        }
        let raw = dir.join("raw").join(&self.raw);
        let raw_dir = fresh(&raw, !self.keeps_versions).map_err(|source| (raw, source))?;
        Ok(self.request(job_file, raw_dir))
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// A folder in which nothing lies yet: this one, or one beside it; one that is there
/// already only where it `may_be_there`.
fn fresh(first: &Path, may_be_there: bool) -> io::Result<PathBuf> {
    let first: PathBuf = first.components().collect();
    let mut path = first.clone();
    for attempt in 2..TRIES_MAX {
        let is_new = !path.exists();
        fs::create_dir_all(&path)?;
        if is_new || (may_be_there && fs::read_dir(&path)?.next().is_none()) {
            break;
        }
        path = file_names::with_try(&first, attempt);
    }
    Ok(path)
}

/// The folder of a step's last try; `None`: there is none.
pub fn last_try(first: &Path) -> Option<PathBuf> {
    let later = (2..TRIES_MAX).map(|attempt| file_names::with_try(first, attempt));
    let all = std::iter::once(first.to_owned()).chain(later);
    all.take_while(|path| path.is_dir()).last()
}
