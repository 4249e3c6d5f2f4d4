//! From a group and what was asked to the tests that will run, each with the
//! job it hands to the engine.

use std::path::{Path, PathBuf};

use fathom_engines::choice::Chosen;
use fathom_flow::RunOptions;

use fathom_model::environment::Target;
use fathom_model::{JobOption, JobSpec, Origin, units};
use serde::{Deserialize, Serialize};

use super::QuickError;
use super::definition::{NATIVE_AIO, QuickTest, SeriesGroup};
use super::host::Site;
use super::local_host::LocalHost;

/// Name of the folder that holds the test files.
pub const FOLDER: &str = "stb-testdir";
/// Key of [`SeriesFacts`] in a record's header.
pub const FACTS_KEY: &str = "quick";

/// What was asked for, resolved but for the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QuickRequest {
    /// Folder under which [`FOLDER`] is made; `None` is the home directory.
    pub path: Option<PathBuf>,
    /// The tests.
    #[serde(with = "group_text")]
    pub group: SeriesGroup,
    /// The one test to repeat; `None` runs all.
    pub only: Option<String>,
    /// Run time in seconds in place of the group's.
    pub runtime_s: Option<u32>,
    /// Size in bytes of a set of files in place of the group's.
    pub size_bytes: Option<u64>,
    /// Whether its test files are made without copy-on-write (btrfs).
    #[serde(default)]
    pub nocow: bool,
    /// Whether a missing fio may be installed.
    pub may_install: bool,
    /// Whether it is only shown: nothing is installed.
    #[serde(skip)]
    pub dry_run: bool,
    /// What every run can be told.
    pub options: RunOptions,
}

/// A group as the text of its file, which is checked whenever it is read.
mod group_text {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{Path, SeriesGroup};

    pub fn serialize<S: Serializer>(group: &SeriesGroup, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&group.to_toml())
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<SeriesGroup, D::Error> {
        let text = String::deserialize(from)?;
        SeriesGroup::parse(&text, Path::new("the group")).map_err(D::Error::custom)
    }
}

impl QuickRequest {
    /// This machine, with the fio that is asked for.
    pub fn here(&self) -> LocalHost {
        let fio = self.options.fio.clone();
        LocalHost { fio }
    }

    /// Run time in seconds of the timed tests.
    pub fn runtime_s(&self) -> u32 {
        self.runtime_s.unwrap_or(self.group.runtime_s)
    }

    /// Size in bytes of each set of files.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes.unwrap_or_else(|| self.group.size_bytes())
    }

    /// Bytes that all sets of files take.
    pub fn total_bytes(&self) -> u64 {
        self.size_bytes()
            .saturating_mul(self.group.sets().len() as u64)
    }

    /// The tests that are asked for.
    pub fn tests(&self) -> impl Iterator<Item = &QuickTest> {
        let wanted = |test: &&QuickTest| self.only.as_ref().is_none_or(|only| *only == test.name);
        self.group.tests().filter(wanted)
    }

    /// Whether the order makes sense without looking at any host.
    ///
    /// # Errors
    /// For a test that the group does not have, or a size too small for it.
    pub fn check(&self) -> Result<(), QuickError> {
        self.group
            .check_size(self.size_bytes())
            .map_err(QuickError::Order)?;
        match &self.only {
            Some(only) if self.tests().next().is_none() => Err(no_test(&self.group, only)),
            _ => Ok(()),
        }
    }
}

/// What a run of the series was asked to do; kept in the record's header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesFacts {
    /// Name of the group, with its file when it is not a shipped one.
    pub group: String,
    /// Host it runs on.
    pub host: String,
    /// Engine that runs it, with its version; absent in records of old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Folder of the test files.
    pub folder: PathBuf,
    /// The one test that was repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// Run time of the timed tests in seconds.
    pub runtime_s: u32,
    /// Size of each set of files in bytes.
    pub size_bytes: u64,
    /// Whether run time or size differ from the group's own.
    pub shortened: bool,
    /// Whether the test files lie in memory, so that nothing is a percentage of a disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_memory: bool,
    /// Whether the test files were made without copy-on-write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nocow: bool,
    /// Every test, those left out included.
    pub tests: Vec<PlannedTest>,
    /// What makes all figures doubtful, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One test of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTest {
    /// Headline of its series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Name.
    pub name: String,
    /// Its fio options but for the name, in order.
    pub options: Vec<String>,
    /// Whether it reads through the page cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached_reads: bool,
    /// Why it does not run here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

impl SeriesFacts {
    /// What a run of `order` on the host of `site` with this engine will do.
    pub fn new(order: &QuickRequest, site: &Site, engine: Chosen, warnings: Vec<String>) -> Self {
        let wanted = |test: &QuickTest| order.only.as_ref().is_none_or(|only| *only == test.name);
        let tests = order.group.series.iter().flat_map(|series| {
            series
                .tests
                .iter()
                .filter(|test| wanted(test))
                .map(|test| PlannedTest {
                    skipped: site.reason_to_skip(order, test, engine),
                    ..PlannedTest::new(order, series.title.clone(), test, &site.os)
                })
        });
        Self {
            group: order.group.label(),
            host: site.environment.hostname.clone(),
            engine: match engine {
                Chosen::Fio => site.fio.as_ref().map(|fio| fio.version.clone()),
                Chosen::Native => Some(fathom_engine_native::version()),
            },
            folder: site.folder.clone(),
            only: order.only.clone(),
            runtime_s: order.runtime_s(),
            size_bytes: order.size_bytes(),
            shortened: order.runtime_s() != order.group.runtime_s
                || order.size_bytes() != order.group.size_bytes(),
            nocow: order.nocow,
            in_memory: site.environment.targets.iter().any(Target::is_in_memory),
            tests: tests.collect(),
            warnings,
        }
    }

    /// Reads the facts of a record's header; `None` when it is no quick series.
    pub fn of(header: &fathom_record::Header) -> Option<Self> {
        serde_json::from_value(header.facts.get(FACTS_KEY)?.clone()).ok()
    }

    /// The facts as a header holds them.
    pub fn to_header(&self) -> serde_json::Map<String, serde_json::Value> {
        let value = serde_json::to_value(self).expect("facts hold strings and numbers only");
        serde_json::Map::from_iter([(FACTS_KEY.to_owned(), value)])
    }
}

impl PlannedTest {
    /// A test as it runs on `os`.
    pub(super) fn new(
        order: &QuickRequest,
        series: Option<String>,
        test: &QuickTest,
        os: &str,
    ) -> Self {
        Self {
            series,
            name: test.name.clone(),
            options: options(order, test, os),
            cached_reads: test.reads_through_cache(),
            skipped: None,
        }
    }

    /// The job file that runs the test. File names are relative: the engine is
    /// started in the folder of the test files, so that any path will do.
    pub fn job_file(&self) -> String {
        let mut text = format!("[{}]\n", self.name);
        for option in &self.options {
            text.push_str(option);
            text.push('\n');
        }
        text
    }

    /// The shell command that runs the test in `folder` without Fathom.
    pub fn command(&self, folder: &Path) -> String {
        let quote = |argument: &String| fathom_jobfile::shell_quote(argument);
        let arguments: Vec<String> = fathom_jobfile::cmdline(&[self.spec()])
            .iter()
            .map(quote)
            .collect();
        let folder = fathom_jobfile::shell_quote(&folder.display().to_string());
        format!("cd {folder} && fio {}", arguments.join(" "))
    }

    /// The test as a job.
    pub(super) fn spec(&self) -> JobSpec {
        let origin = Origin::Fathom {
            reason: "quick series".into(),
        };
        let option = |text: &String| {
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (text.as_str(), None),
            };
            JobOption {
                name: name.to_owned(),
                value,
                origin: origin.clone(),
            }
        };
        JobSpec {
            name: self.name.clone(),
            options: self.options.iter().map(option).collect(),
        }
    }
}

/// fio's name of a test's engine on `os`; `None` where there is none.
pub(super) fn engine_on<'g>(
    group: &'g SeriesGroup,
    test: &'g QuickTest,
    os: &str,
) -> Option<&'g str> {
    if test.engine == NATIVE_AIO {
        group.native_aio.get(os).map(String::as_str)
    } else {
        Some(&test.engine)
    }
}

/// Prefix of the names of a set's files.
fn set_name(files: u32) -> String {
    if files == 1 {
        "1file".into()
    } else {
        format!("{files}files")
    }
}

/// Names of the files of a set, as `filename_format` makes them.
pub(super) fn file_names(files: u32) -> impl Iterator<Item = String> {
    (0..files).map(move |file| format!("{}.{file}", set_name(files)))
}

fn options(order: &QuickRequest, test: &QuickTest, os: &str) -> Vec<String> {
    let engine = engine_on(&order.group, test, os).unwrap_or(&test.engine);
    let file_bytes = order.size_bytes() / u64::from(test.files);
    let mut options = vec![
        // fio names a job's files after the job; tests of one set share its files.
        format!("filename_format={}.$jobnum", set_name(test.files)),
        format!("ioengine={engine}"),
        format!("iodepth={}", test.depth),
        format!("bs={}", test.bs),
        format!("rw={}", test.rw),
        format!("size={}", units::format_size(file_bytes)),
        format!("numjobs={}", test.files),
    ];
    options.extend(test.options.iter().cloned());
    if !test.init {
        options.push(format!("runtime={}", order.runtime_s()));
        options.push("time_based".into());
    }
    options.extend(order.group.options.iter().cloned());
    options
}

fn no_test(group: &SeriesGroup, name: &str) -> QuickError {
    let near = group
        .tests()
        .map(|test| (strsim::jaro_winkler(&test.name, name), &test.name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        // Below this two names share little more than their first words.
        .filter(|(likeness, _)| *likeness > 0.85)
        .map(|(_, near)| format!("; did you mean \"{near}\"?"));
    QuickError::Order(format!(
        "group \"{}\" has no test \"{name}\"{}",
        group.label(),
        near.unwrap_or_else(|| "; 'fathom quick list' names them all".into()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(group: &str) -> QuickRequest {
        QuickRequest {
            path: None,
            group: SeriesGroup::shipped(group).unwrap(),
            only: None,
            runtime_s: None,
            size_bytes: None,
            nocow: false,
            may_install: false,
            dry_run: false,
            options: RunOptions::default(),
        }
    }

    fn facts(order: &QuickRequest, os: &str) -> SeriesFacts {
        let site = Site {
            os: os.into(),
            ..Site::for_tests(Path::new("/mnt/stb-testdir"))
        };
        SeriesFacts::new(order, &site, Chosen::Fio, vec![])
    }

    #[test]
    fn an_init_test_has_no_time_limit_and_a_timed_one_has() {
        let facts = facts(&order("current"), "Linux");
        assert_eq!(
            facts.tests[0].job_file(),
            "[1 file, 1 thread, seq 1M writes, simple]\n\
             filename_format=1file.$jobnum\nioengine=sync\niodepth=1\nbs=1M\nrw=write\nsize=512M\n\
             numjobs=1\nend_fsync=1\nfallocate=none\ngroup_reporting\nverify=0\ndisable_lat=1\n\
             disable_clat=1\ndisable_slat=1\nclat_percentiles=0\nrefill_buffers\nrandrepeat=0\n"
        );
        let deep = &facts.tests[11];
        assert_eq!(
            deep.name,
            "16 files, 16 threads each, rnd 16k writes, posixaio"
        );
        let command = deep.command(&facts.folder);
        assert!(
            command.starts_with("cd /mnt/stb-testdir && fio "),
            "{command}"
        );
        for part in [
            "--size=32M",
            "--numjobs=16",
            "--iodepth=16",
            "--runtime=5",
            "--time_based",
        ] {
            assert!(command.contains(part), "{part} in {command}");
        }
    }

    #[test]
    fn every_shipped_test_is_one_that_the_native_engine_takes() {
        let site = Site::for_tests(Path::new("/mnt/stb-testdir"));
        for (group, count) in [("current", 26), ("v1", 16)] {
            let order = order(group);
            assert_eq!(order.tests().count(), count);
            let lacks = site.lacks(&order, Chosen::Native);
            assert_eq!(lacks, Vec::<String>::new(), "{group}");
        }
    }

    #[test]
    fn native_aio_is_called_what_the_system_calls_it() {
        let order = order("current");
        let native = |os: &str| facts(&order, os).tests[22].clone();
        assert!(native("Linux").options.contains(&"ioengine=libaio".into()));
        assert!(
            native("SunOS")
                .options
                .contains(&"ioengine=solarisaio".into())
        );
        assert_eq!(
            native("FreeBSD").skipped.as_deref(),
            Some("no native aio on FreeBSD")
        );
    }

    #[test]
    fn a_size_is_shared_among_the_files_of_a_set() {
        let mut order = order("current");
        order.size_bytes = Some(64 << 20);
        order.runtime_s = Some(1);
        order.check().unwrap();
        let facts = facts(&order, "Linux");
        assert!(facts.shortened);
        assert!(facts.tests[0].options.contains(&"size=64M".into()));
        assert!(facts.tests[7].options.contains(&"size=4M".into()));
        assert!(facts.tests[8].options.contains(&"runtime=1".into()));
        assert_eq!(order.total_bytes(), 128 << 20);
        order.size_bytes = Some(8 << 20);
        assert!(
            order
                .check()
                .unwrap_err()
                .to_string()
                .contains("smallest size is 16M")
        );
    }

    #[test]
    fn a_mistyped_test_names_its_neighbour() {
        let mut order = order("current");
        order.only = Some("1 file, 1 thread, rnd 16k writes, simpel".into());
        let message = order.check().unwrap_err().to_string();
        assert!(
            message.ends_with("did you mean \"1 file, 1 thread, rnd 16k writes, simple\"?"),
            "{message}"
        );
    }
}
