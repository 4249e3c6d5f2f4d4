//! Groups of tests as data: the shipped ones, and files of the user's own.
//!
//! A group file is TOML (docs/FORMAT.md, "Quick groups"). Two are embedded; a
//! file `quick/NAME.toml` in the user's configuration folder adds a group or
//! stands in for a shipped one of that name, and a path names a file directly.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fathom_model::units::{format_size, parse_size};
use serde::{Deserialize, Serialize};

use super::QuickError;

/// The group that runs when none is named.
pub const DEFAULT_GROUP: &str = "current";
/// The engine name in a group file that stands for the system's native AIO.
pub const NATIVE_AIO: &str = "native aio";

const FORMAT: &str = "fathom-quick-group";
const VERSION: u32 = 1;
const SHIPPED: [(&str, &str); 2] = [
    (
        "current",
        include_str!("../../../../campaigns/quick/current.toml"),
    ),
    ("v1", include_str!("../../../../campaigns/quick/v1.toml")),
];
/// What a test may do; `rw` of fio's HOWTO without trims, which files do not take.
const RW: [&str; 7] = [
    "read",
    "write",
    "rw",
    "readwrite",
    "randread",
    "randwrite",
    "randrw",
];
/// Options that the runner sets itself: a group that sets them would not run as defined.
const MANAGED: [&str; 12] = [
    "name",
    "directory",
    "filename",
    "filename_format",
    "ioengine",
    "iodepth",
    "bs",
    "rw",
    "size",
    "numjobs",
    "runtime",
    "time_based",
];

/// A group of test series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesGroup {
    format: String,
    version: u32,
    /// Name, as in `--group NAME`.
    pub name: String,
    /// What the group is, half a sentence.
    #[serde(default)]
    pub about: String,
    /// Size of one set of files, shared among the files of the set (`512M`).
    size: String,
    /// Run time in seconds of every test that is not an init test.
    pub runtime_s: u32,
    /// fio options of every test, `name=value` or `name`.
    #[serde(default)]
    pub options: Vec<String>,
    /// What [`NATIVE_AIO`] is called, by `uname -s`.
    #[serde(default)]
    pub native_aio: BTreeMap<String, String>,
    /// The series in their order.
    pub series: Vec<TestSeries>,
    /// The file it comes from; `None` for a shipped group.
    #[serde(skip)]
    pub file: Option<PathBuf>,
}

/// Tests under one headline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSeries {
    /// Headline; a series without one is shown without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to watch for, half a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<String>,
    /// The tests in their order.
    pub tests: Vec<QuickTest>,
}

/// One test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuickTest {
    /// Its name: what a figure is known by.
    pub name: String,
    /// Files of the set it works on, one job each.
    pub files: u32,
    /// fio's ioengine, or [`NATIVE_AIO`].
    pub engine: String,
    /// iodepth of each job.
    pub depth: u32,
    /// Block size as fio writes it.
    pub bs: String,
    /// fio's `rw`.
    pub rw: String,
    /// Options beside the group's.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether the test writes its set of files once and ends, without a time limit.
    #[serde(default)]
    pub init: bool,
}

impl QuickTest {
    /// Whether it reads through the page cache, so that a high figure is memory's.
    pub fn reads_through_cache(&self) -> bool {
        self.rw.contains("read") && !self.is_direct()
    }

    /// Whether it opens its files with `O_DIRECT`.
    pub fn is_direct(&self) -> bool {
        self.options.iter().any(|option| option == "direct=1")
    }
}

impl SeriesGroup {
    /// A shipped group; `None` when there is none of this name.
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(shipped, _)| *shipped == name)?;
        Some(Self::parse(text, Path::new(name)).expect("a test parses every shipped group"))
    }

    /// The group `name`: from the user's folder, else shipped, else the file `name`.
    ///
    /// # Errors
    /// When there is none, or its file cannot be read or is wrong.
    pub fn find(name: &str, user_dir: Option<&Path>) -> Result<Self, QuickError> {
        let looks_like_a_path = name.contains('/') || Path::new(name).extension().is_some();
        if looks_like_a_path {
            return Self::read(Path::new(name));
        }
        if let Some(file) = user_dir.map(|dir| dir.join(format!("{name}.toml")))
            && file.exists()
        {
            return Self::read(&file);
        }
        Self::shipped(name).ok_or_else(|| QuickError::NoGroup {
            name: name.to_owned(),
            known: known(user_dir).join(", "),
        })
    }

    /// Reads a group file.
    ///
    /// # Errors
    /// When it cannot be read or is wrong; the message has line and column.
    pub fn read(path: &Path) -> Result<Self, QuickError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| QuickError::file(path, source))?;
        let mut group = Self::parse(&text, path)?;
        group.file = Some(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        Ok(group)
    }

    /// Parses the text of a group file; `path` is for messages.
    ///
    /// # Errors
    /// When the text is no TOML, or not a group that can run.
    pub fn parse(text: &str, path: &Path) -> Result<Self, QuickError> {
        let wrong = |reason: String| QuickError::Definition {
            path: path.to_owned(),
            reason,
        };
        let group: Self = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        group.check().map_err(wrong)?;
        Ok(group)
    }

    /// What the group is called in output and records: its name, with its file
    /// when it is not a shipped one. Figures of groups called differently are
    /// not compared.
    pub fn label(&self) -> String {
        match &self.file {
            None => self.name.clone(),
            Some(file) => format!("{} ({})", self.name, file.display()),
        }
    }

    /// Size in bytes of one set of files.
    pub fn size_bytes(&self) -> u64 {
        parse_size(&self.size).expect("checked when the group was read")
    }

    /// All tests in their order.
    pub fn tests(&self) -> impl Iterator<Item = &QuickTest> {
        self.series.iter().flat_map(|series| &series.tests)
    }

    /// Numbers of files of the sets the group works on, ascending.
    pub fn sets(&self) -> BTreeSet<u32> {
        self.tests().map(|test| test.files).collect()
    }

    /// The group as the text of a group file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a group holds strings and numbers only")
    }

    /// Whether every test can run with sets of `size_bytes`.
    ///
    /// # Errors
    /// Names the first test whose files could not hold one block.
    pub fn check_size(&self, size_bytes: u64) -> Result<(), String> {
        for test in self.tests() {
            let block_bytes = parse_size(&test.bs).ok_or_else(|| bad_size(test, "bs", &test.bs))?;
            if size_bytes / u64::from(test.files) < block_bytes {
                return Err(format!(
                    "test \"{}\": {} shared among {} files leaves no room for a block of {}; \
                     the smallest size is {}",
                    test.name,
                    format_size(size_bytes),
                    test.files,
                    test.bs,
                    format_size(block_bytes * u64::from(test.files)),
                ));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("format is \"{}\", not \"{FORMAT}\"", self.format));
        }
        if self.version != VERSION {
            return Err(format!(
                "version {} is not one this fathom reads ({VERSION})",
                self.version
            ));
        }
        if self.name.is_empty() || self.name.chars().any(|c| c.is_control() || c == '"') {
            return Err("name is empty or holds quotes or control characters".into());
        }
        let size_bytes = parse_size(&self.size)
            .ok_or_else(|| format!("size \"{}\" is not a size like 512M", self.size))?;
        if self.runtime_s == 0 {
            return Err("runtime_s must be at least 1".into());
        }
        check_options("options", &self.options)?;
        let mut names = BTreeSet::new();
        for test in self.tests() {
            check_test(test)?;
            if !names.insert(&test.name) {
                return Err(format!("two tests are named \"{}\"", test.name));
            }
        }
        if names.is_empty() {
            return Err("the group has no tests".into());
        }
        self.check_size(size_bytes)
    }
}

/// Names of all groups that `--group` takes without a path, shipped ones first.
pub fn known(user_dir: Option<&Path>) -> Vec<String> {
    let mut names: Vec<String> = SHIPPED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let files = user_dir.and_then(|dir| std::fs::read_dir(dir).ok());
    let mut own: Vec<String> = files
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_toml = path
                .extension()
                .is_some_and(|extension| extension == "toml");
            is_toml.then(|| path.file_stem()?.to_str().map(str::to_owned))?
        })
        .filter(|name| !names.contains(name))
        .collect();
    own.sort();
    names.append(&mut own);
    names
}

fn check_test(test: &QuickTest) -> Result<(), String> {
    let wrong = |what: String| Err(format!("test \"{}\": {what}", test.name));
    // The name becomes a section of a job file and a line of output.
    let bad_name = |c: char| c.is_control() || matches!(c, '[' | ']' | '"' | '$' | '#' | ';');
    if test.name.trim() != test.name || test.name.is_empty() || test.name.starts_with("global") {
        return wrong(
            "a name must not be empty, begin or end with a blank, or begin with 'global'".into(),
        );
    }
    if let Some(bad) = test.name.chars().find(|&c| bad_name(c)) {
        return wrong(format!("{bad:?} cannot stand in a name"));
    }
    if test.files == 0 || test.depth == 0 {
        return wrong("files and depth must be at least 1".into());
    }
    if !RW.contains(&test.rw.as_str()) {
        return wrong(format!(
            "rw \"{}\" is not one of {}",
            test.rw,
            RW.join(", ")
        ));
    }
    if parse_size(&test.bs).is_none() {
        return Err(bad_size(test, "bs", &test.bs));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_a_name = !test.engine.is_empty() && test.engine.chars().all(plain);
    if test.engine != NATIVE_AIO && !is_a_name {
        return wrong(format!(
            "engine \"{}\" is not an engine's name",
            test.engine
        ));
    }
    check_options(&format!("test \"{}\"", test.name), &test.options)
}

fn check_options(of: &str, options: &[String]) -> Result<(), String> {
    for option in options {
        let name = option.split('=').next().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) || option.chars().any(char::is_control) {
            return Err(format!("{of}: \"{option}\" is not 'name' or 'name=value'"));
        }
        if MANAGED.contains(&name) {
            return Err(format!(
                "{of}: {name} is set by the series itself and cannot be an option"
            ));
        }
    }
    Ok(())
}

fn bad_size(test: &QuickTest, key: &str, value: &str) -> String {
    format!(
        "test \"{}\": {key} \"{value}\" is not a size like 16k or 1M",
        test.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_groups_have_the_tests_of_their_tables() {
        let current = SeriesGroup::shipped("current").unwrap();
        let counts: Vec<usize> = current
            .series
            .iter()
            .map(|series| series.tests.len())
            .collect();
        assert_eq!(counts, [7, 6, 4, 5, 4]);
        assert_eq!(current.size_bytes(), 512 << 20);
        let inits: Vec<&str> = current
            .tests()
            .filter(|test| test.init)
            .map(|test| test.name.as_str())
            .collect();
        assert_eq!(
            inits,
            [
                "1 file, 1 thread, seq 1M writes, simple",
                "16 files, 1 thread each, seq 1M writes, simple"
            ]
        );
        assert!(current.tests().all(|test| !test.is_direct()));
        let v1 = SeriesGroup::shipped("v1").unwrap();
        assert_eq!(v1.tests().count(), 16);
        assert_eq!(v1.tests().filter(|test| test.init).count(), 2);
        assert_eq!(SeriesGroup::shipped("v2"), None);
    }

    #[test]
    fn a_name_says_what_its_test_does() {
        for group in ["current", "v1"].map(|name| SeriesGroup::shipped(name).unwrap()) {
            for test in group.tests() {
                let name = &test.name;
                assert!(name.starts_with(if test.files == 1 {
                    "1 file,"
                } else {
                    "16 files,"
                }));
                assert_eq!(name.contains("16 threads"), test.depth == 16, "{name}");
                assert!(name.contains(&format!(" {} ", test.bs)), "{name}");
                assert_eq!(name.contains("seq"), !test.rw.starts_with("rand"), "{name}");
                assert_eq!(
                    name.contains("native aio"),
                    group.name == "current" && test.engine == NATIVE_AIO
                );
                assert_eq!(
                    name.contains("o_sync"),
                    test.rw == "randwrite" && test.options == ["sync=1"]
                );
            }
        }
    }

    #[test]
    fn wrong_definitions_say_where_and_why() {
        let good = SHIPPED[0].1;
        let cases = [
            (
                good.replace("rw = \"randread\"", "rw = \"randomread\""),
                "rw \"randomread\" is not one of",
            ),
            (
                good.replace("[\"sync=1\"]", "[\"size=1\"]"),
                "size is set by the series itself",
            ),
            (
                good.replace("bs = \"4k\"", "bs = \"4q\""),
                "bs \"4q\" is not a size",
            ),
            (good.replace(", take 2", ""), "two tests are named"),
            (
                good.replace("depth = 16", "depth = 0"),
                "files and depth must be at least 1",
            ),
            (
                good.replace("size = \"512M\"", "size = \"8M\""),
                "the smallest size is 16M",
            ),
            (
                good.replace("version = 1", "version = 2"),
                "version 2 is not one",
            ),
            (
                good.replace("init = true", "initial = true"),
                "unknown field `initial`",
            ),
            (good.replace("runtime_s = 5", "runtime_s = \"5\""), "line"),
        ];
        for (text, expected) in cases {
            let message = SeriesGroup::parse(&text, Path::new("g.toml"))
                .unwrap_err()
                .to_string();
            assert!(
                message.starts_with("g.toml: ") && message.contains(expected),
                "{message}"
            );
        }
    }

    #[test]
    fn a_users_file_is_not_taken_for_the_shipped_group() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("current.toml"), SHIPPED[0].1).unwrap();
        std::fs::write(dir.path().join("mine.toml"), SHIPPED[1].1).unwrap();
        let group = SeriesGroup::find("current", Some(dir.path())).unwrap();
        assert!(group.label().starts_with("current (/"));
        assert_eq!(known(Some(dir.path())), ["current", "v1", "mine"]);
        let missing = SeriesGroup::find("none", Some(dir.path()))
            .unwrap_err()
            .to_string();
        assert!(missing.contains("current, v1, mine"), "{missing}");
        assert_eq!(
            SeriesGroup::parse(&group.to_toml(), Path::new("x"))
                .unwrap()
                .series,
            group.series
        );
    }
}
