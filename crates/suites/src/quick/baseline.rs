//! Baselines: the figures that "x% HDD" is measured against, shipped or saved
//! from a run.
//!
//! A baseline file is TOML (docs/FORMAT.md, "Baselines"). Its conditions say
//! for which runs its figures mean anything.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use fathom_model::units;
use fathom_record::Record;
use serde::{Deserialize, Serialize};

use super::QuickError;
use super::jobs::iops_by_job;
use super::plan::SeriesFacts;
use super::results::{QuickRun, engine_version};

/// The baseline that is used when none is named.
pub const DEFAULT_BASELINE: &str = "HDD";

/// What holds for figures of different engines.
pub(super) const WITH_CARE: &str = "compare figures of different engines only with care";

const FORMAT: &str = "fathom-baseline";
const VERSION: u32 = 1;
const SHIPPED: [&str; 1] = [include_str!(
    "../../../../campaigns/quick/baselines/hdd.toml"
)];

/// What a figure of the series depends on, beside the storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// The group, as [`super::SeriesGroup::label`] calls it.
    pub group: String,
    /// Size of each set of files in bytes.
    pub size_bytes: u64,
    /// Run time of the timed tests in seconds.
    pub runtime_s: u32,
    /// Whether the files lie in memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_memory: bool,
}

impl Conditions {
    /// The conditions of a run.
    pub fn of(facts: &SeriesFacts) -> Self {
        Self {
            group: facts.group.clone(),
            size_bytes: facts.size_bytes,
            runtime_s: facts.runtime_s,
            in_memory: facts.in_memory,
        }
    }
}

/// The engine without its version: `fio-3.33` is `fio`.
pub(super) fn family(engine: &str) -> &str {
    engine.split('-').next().unwrap_or(engine)
}

/// Figures to measure against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    format: String,
    version: u32,
    /// Name, as shown after the percentage.
    pub name: String,
    /// What it was measured on, half a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Record it was saved from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Engine that measured it, for example `fio-3.33`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// For which runs it holds; of a run that was no quick series they are not
    /// known, and its jobs are taken for the tests of the same names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// Where it was measured, as far as it is known.
    #[serde(default)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub environment: toml::Table,
    /// IOPS of each test by its name, reads and writes together.
    pub iops: BTreeMap<String, u64>,
    /// Whether it comes with Fathom.
    #[serde(skip)]
    pub is_shipped: bool,
}

impl Baseline {
    /// Parses a baseline file; `path` is for messages.
    ///
    /// # Errors
    /// When the text is no TOML or no baseline.
    pub fn parse(text: &str, path: &Path) -> Result<Self, QuickError> {
        let wrong = |reason: String| QuickError::Definition {
            path: path.to_owned(),
            reason,
        };
        let baseline: Self = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if baseline.format != FORMAT || baseline.version != VERSION {
            let (format, version) = (&baseline.format, baseline.version);
            return Err(wrong(format!(
                "format \"{format}\" version {version} is not \"{FORMAT}\" version {VERSION}"
            )));
        }
        check_name(&baseline.name).map_err(wrong)?;
        if let Some((test, _)) = baseline.iops.iter().find(|(_, iops)| **iops == 0) {
            return Err(wrong(format!(
                "test \"{test}\" has 0 IOPS: nothing is a percentage of 0"
            )));
        }
        Ok(baseline)
    }

    /// The figures of a recorded run under a name: of the series by its tests,
    /// of any other by its jobs.
    ///
    /// # Errors
    /// When the record has no figure to rely on, or the name cannot be one.
    pub fn from_record(name: &str, record: &Record) -> Result<Self, QuickError> {
        check_name(name).map_err(QuickError::Input)?;
        let id = record.id();
        let header = &record.header;
        let (iops, conditions, about) = if SeriesFacts::of(header).is_some() {
            let run = QuickRun::of(record)?;
            let about = format!("{} on {}", run.facts.folder.display(), run.facts.host);
            (run.iops(), Some(run.conditions()), about)
        } else {
            let about = match &header.environment {
                Some(found) => format!(
                    "{} \"{}\" on {}",
                    header.command, header.name, found.hostname
                ),
                None => format!("{} \"{}\"", header.command, header.name),
            };
            (iops_by_job(record), None, about)
        };
        if iops.is_empty() {
            let what = format!("run {id} has no figure to save");
            return Err(QuickError::Input(what));
        }
        let environment = match &header.environment {
            Some(environment) => toml::Table::try_from(environment).map_err(|error| {
                QuickError::Input(format!(
                    "run {id}: its environment cannot be saved: {error}"
                ))
            })?,
            None => toml::Table::new(),
        };
        Ok(Self {
            format: FORMAT.into(),
            version: VERSION,
            name: name.to_owned(),
            about,
            conditions,
            run: Some(id),
            engine: engine_version(record),
            environment,
            iops,
            is_shipped: false,
        })
    }

    /// `iops` in percent of the baseline's figure of this test: whole, rounded
    /// down. `None` when the baseline does not have the test.
    pub fn percent(&self, test: &str, iops: u64) -> Option<u64> {
        Some(iops.saturating_mul(100) / *self.iops.get(test)?)
    }

    /// What makes percentages of it doubtful for figures of `engine`: another
    /// engine measured it. Baselines without an engine are fio's.
    pub fn doubt_for(&self, engine: &str) -> Option<String> {
        let mine = self.engine.as_deref().unwrap_or("fio");
        (family(mine) != family(engine)).then(|| {
            format!(
                "baseline {} was measured with {mine}, this run with {engine}: {WITH_CARE}",
                self.name
            )
        })
    }

    /// What is to know when `tests` are given in percent of a baseline whose
    /// conditions are not known; `None` when they are.
    pub fn caveat<'t>(&self, mut tests: impl Iterator<Item = &'t str>) -> Option<String> {
        let name = &self.name;
        match self.conditions {
            Some(_) => None,
            None if tests.any(|test| self.iops.contains_key(test)) => Some(format!(
                "baseline {name} is of {}: its jobs' options, size and run time were not compared",
                self.about
            )),
            None => Some(format!(
                "no percent of {name}: none of its jobs has the name of a test"
            )),
        }
    }

    /// Why no run under `conditions` can be given in percent of it; `None` when it can.
    pub fn reason_not_to_use(&self, conditions: &Conditions) -> Option<String> {
        let name = &self.name;
        let mine = self.conditions.as_ref()?;
        if mine.group != conditions.group {
            Some(format!(
                "no percent of {name}: it is of group \"{}\"",
                mine.group
            ))
        } else if mine.in_memory != conditions.in_memory {
            Some(match conditions.in_memory {
                true => format!("no percent of {name}: the test files lie in memory"),
                false => format!("no percent of {name}: it was measured in memory"),
            })
        } else if mine != conditions {
            let size = units::format_size;
            Some(format!(
                "not comparable to baseline {name}, which ran {} s a test on {} (this run: {} s on {})",
                mine.runtime_s,
                size(mine.size_bytes),
                conditions.runtime_s,
                size(conditions.size_bytes),
            ))
        } else {
            None
        }
    }
}

/// The baselines of a user: the shipped ones and a folder of files.
#[derive(Debug, Clone)]
pub struct Shelf {
    dir: Option<PathBuf>,
}

impl Shelf {
    /// The shelf whose files lie in `dir`, which need not exist. Without one,
    /// where a user has no home, there are the shipped baselines.
    pub fn new(dir: Option<PathBuf>) -> Self {
        Self { dir }
    }

    /// All baselines, the shipped ones first.
    ///
    /// # Errors
    /// When a file cannot be read or is wrong.
    pub fn list(&self) -> Result<Vec<Baseline>, QuickError> {
        let mut all: Vec<Baseline> = shipped().collect();
        let Some(dir) = &self.dir else {
            return Ok(all);
        };
        let mut files: Vec<PathBuf> = match fs::read_dir(dir) {
            Ok(entries) => entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => vec![],
            Err(source) => return Err(QuickError::file(dir, source)),
        };
        files.retain(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        });
        files.sort();
        for path in files {
            let text =
                fs::read_to_string(&path).map_err(|source| QuickError::file(&path, source))?;
            all.push(Baseline::parse(&text, &path)?);
        }
        Ok(all)
    }

    /// The baseline of this name; letter case does not matter.
    ///
    /// # Errors
    /// When there is none, or its file is wrong.
    pub fn find(&self, name: &str) -> Result<Baseline, QuickError> {
        if let Some(baseline) = shipped().find(|one| one.name.eq_ignore_ascii_case(name)) {
            return Ok(baseline);
        }
        let all = self.list()?;
        let known: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
        all.into_iter().find(|one| one.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            QuickError::Missing(format!(
                "there is no baseline \"{name}\"; known are {} (fathom baseline save NAME RUN makes one)",
                known.join(", ")
            ))
        })
    }

    /// Saves a baseline; gives its file. One of the same name is replaced.
    ///
    /// # Errors
    /// When the name is a shipped one's, or the file cannot be written.
    pub fn save(&self, baseline: &Baseline) -> Result<PathBuf, QuickError> {
        refuse_shipped(&baseline.name)?;
        let path = self.path(&baseline.name)?;
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(|source| QuickError::file(dir, source))?;
        }
        let text = toml::to_string(baseline).map_err(|error| QuickError::Definition {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        // Written beside and renamed: a full disk must not cost the old baseline.
        let written = fathom_fleet::named_file::write(&path, |file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        match written {
            Ok(()) => Ok(path),
            Err(source) => Err(QuickError::file(&path, source)),
        }
    }

    /// Removes a saved baseline; gives the file that is gone.
    ///
    /// # Errors
    /// When there is none of this name, or it comes with Fathom.
    pub fn remove(&self, name: &str) -> Result<PathBuf, QuickError> {
        refuse_shipped(name)?;
        let path = self.path(&self.find(name)?.name)?;
        fs::remove_file(&path).map_err(|source| QuickError::file(&path, source))?;
        Ok(path)
    }

    fn path(&self, name: &str) -> Result<PathBuf, QuickError> {
        let dir = self.dir.as_ref().ok_or_else(|| {
            let reason = "there is no home directory to keep baselines in; set XDG_DATA_HOME";
            QuickError::Missing(reason.to_owned())
        })?;
        Ok(dir.join(format!("{}.toml", name.to_lowercase())))
    }
}

fn shipped() -> impl Iterator<Item = Baseline> {
    SHIPPED.iter().map(|text| {
        let mut baseline = Baseline::parse(text, Path::new("shipped baseline"))
            .expect("a test parses every shipped baseline");
        baseline.is_shipped = true;
        baseline
    })
}

fn refuse_shipped(name: &str) -> Result<(), QuickError> {
    match shipped().find(|one| one.name.eq_ignore_ascii_case(name)) {
        Some(one) => Err(QuickError::Refused(format!(
            "baseline {} comes with fathom and stays as it is; choose another name",
            one.name
        ))),
        None => Ok(()),
    }
}

/// A name becomes a file name and stands after a percentage.
fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if name.is_empty()
        || name.len() > 64
        || !name.chars().all(plain)
        || name.starts_with(['.', '-'])
    {
        return Err(format!(
            "\"{name}\" cannot name a baseline: letters, digits, '-', '_', '.' and '+', \
             not beginning with '.' or '-', at most 64"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::definition::SeriesGroup;
    use super::*;

    fn hdd() -> Baseline {
        Shelf::new(None).find("hdd").unwrap()
    }

    #[test]
    fn the_shipped_baseline_knows_every_test_of_the_group() {
        let group = SeriesGroup::shipped("current").unwrap();
        let hdd = hdd();
        let names: Vec<&String> = group.tests().map(|test| &test.name).collect();
        assert_eq!(hdd.iops.len(), names.len());
        assert!(names.iter().all(|name| hdd.iops.contains_key(*name)));
        let conditions = hdd.conditions.unwrap();
        assert_eq!(conditions.size_bytes, group.size_bytes());
        assert_eq!(conditions.runtime_s, group.runtime_s);
    }

    /// In an empty root the series did not begin.
    #[test]
    fn without_a_home_there_are_the_shipped_baselines() {
        let shelf = Shelf::new(None);
        assert_eq!(shelf.list().unwrap(), [hdd()]);
        let mine = Baseline {
            name: "mine".into(),
            ..hdd()
        };
        let refused = shelf.save(&mine).unwrap_err().to_string();
        assert!(refused.contains("set XDG_DATA_HOME"), "{refused}");
    }

    #[test]
    fn percent_is_whole_and_rounded_down() {
        let hdd = hdd();
        // The page's own example lines.
        assert_eq!(
            hdd.percent("1 file, 1 thread, seq 1M writes, simple", 191),
            Some(105)
        );
        assert_eq!(
            hdd.percent("1 file, 1 thread, rnd 16k writes, simple", 409),
            Some(57)
        );
        assert_eq!(
            hdd.percent("1 file, 1 thread, rnd 16k writes, simple, take 2", 294),
            Some(44)
        );
        assert_eq!(
            hdd.percent("16 files, 1 thread each, seq 1M reads, simple", 8222),
            Some(203)
        );
        assert_eq!(hdd.percent("a test of somebody's own", 100), None);
    }

    #[test]
    fn other_conditions_are_not_comparable() {
        let hdd = hdd();
        let mut conditions = hdd.conditions.clone().unwrap();
        assert_eq!(hdd.reason_not_to_use(&conditions), None);
        conditions.runtime_s = 1;
        assert!(
            hdd.reason_not_to_use(&conditions)
                .unwrap()
                .contains("not comparable")
        );
        conditions.in_memory = true;
        assert!(
            hdd.reason_not_to_use(&conditions)
                .unwrap()
                .contains("lie in memory")
        );
        conditions.group = "v1".into();
        assert!(
            hdd.reason_not_to_use(&conditions)
                .unwrap()
                .contains("group \"current\"")
        );
    }

    #[test]
    fn a_saved_baseline_is_found_again_and_the_shipped_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(Some(dir.path().join("baselines")));
        assert_eq!(shelf.list().unwrap().len(), 1);
        let mut mine = Baseline {
            name: "MyDisk".into(),
            is_shipped: false,
            ..hdd()
        };
        shelf.save(&mine).unwrap();
        assert_eq!(shelf.find("mydisk").unwrap(), mine);
        mine.about = "after tuning".into();
        shelf.save(&mine).unwrap();
        assert_eq!(shelf.list().unwrap().len(), 2);
        assert!(
            shelf
                .save(&hdd())
                .unwrap_err()
                .to_string()
                .contains("comes with fathom")
        );
        assert!(shelf.remove("HDD").is_err());
        shelf.remove("mydisk").unwrap();
        let message = shelf.find("mydisk").unwrap_err().to_string();
        assert!(message.contains("known are HDD"), "{message}");
    }

    #[test]
    fn wrong_baseline_files_say_where_and_why() {
        let good = SHIPPED[0];
        let cases = [
            (good.replace("= 181", "= 0"), "nothing is a percentage of 0"),
            (good.replace("= 181", "= -1"), "line"),
            (
                good.replace("name = \"HDD\"", "name = \"../x\""),
                "cannot name a baseline",
            ),
            (good.replace("version = 1", "version = 7"), "version 7"),
        ];
        for (text, expected) in cases {
            let message = Baseline::parse(&text, Path::new("b.toml"))
                .unwrap_err()
                .to_string();
            assert!(
                message.starts_with("b.toml: ") && message.contains(expected),
                "{message}"
            );
        }
    }
}
