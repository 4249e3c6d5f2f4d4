//! What a campaign consists of, as files in its folder: tests, profiles and
//! templates. Those that ship with Fathom are such files and nothing else.

mod file;
pub(crate) mod names;
mod pattern;
mod template;

use std::path::Path;

use crate::CampaignError;
use crate::error::Fault;

pub(crate) use file::{
    Axis, AxisValues, Condition, JobSetting, Profile, TestDefinition, Value, is_plain,
};
pub(crate) use pattern::TextPattern;
pub(crate) use template::{OptionsOf, PROFILE_OPTIONS, TEST_OPTIONS, Template, TemplateLine};

/// The folder of tests.
pub const TESTS: &str = "tests";
/// The folder of profiles.
pub const PROFILES: &str = "profiles";
/// The folder of templates.
pub const TEMPLATES: &str = "templates";

/// Everything that a campaign's folder defines.
#[derive(Debug)]
pub(crate) struct Definitions {
    /// In the order of their files' names, as are the profiles.
    pub(crate) tests: Vec<TestDefinition>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) templates: Vec<Template>,
}

impl Definitions {
    /// Reads all definitions below a folder.
    ///
    /// # Errors
    /// All mistakes in all of them.
    pub(crate) fn read(folder: &Path) -> Result<Self, CampaignError> {
        let mut faults = Vec::new();
        let profiles = each(folder, PROFILES, ".toml", &mut faults, Profile::parse)?;
        let tests = each(folder, TESTS, ".toml", &mut faults, TestDefinition::parse)?;
        let templates = each(folder, TEMPLATES, "", &mut faults, Template::parse)?;
        let all = Self {
            tests,
            profiles,
            templates,
        };
        for test in &all.tests {
            test.check(&all, &mut faults);
        }
        if faults.is_empty() {
            Ok(all)
        } else {
            Err(CampaignError::Definition(faults))
        }
    }

    pub(crate) fn template(&self, name: &str) -> Option<&Template> {
        self.templates.iter().find(|template| template.name == name)
    }

    pub(crate) fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.name == name)
    }
}

/// The definitions in a folder, in the order of their files' names; editors'
/// copies and hidden files are none.
fn each<T>(
    folder: &Path,
    below: &str,
    ending: &str,
    faults: &mut Vec<Fault>,
    parse: fn(&str, &str, &mut Vec<Fault>) -> Option<T>,
) -> Result<Vec<T>, CampaignError> {
    let dir = folder.join(below);
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CampaignError::io(dir, error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| CampaignError::io(&dir, error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_one = name.ends_with(ending) && !name.starts_with('.') && !name.ends_with('~');
        if is_one && entry.path().is_file() {
            names.push(name);
        }
    }
    names.sort();
    let mut all = Vec::new();
    for name in names {
        let path = dir.join(&name);
        let text =
            std::fs::read_to_string(&path).map_err(|error| CampaignError::io(&path, error))?;
        all.extend(parse(&format!("{below}/{name}"), &text, faults));
    }
    Ok(all)
}
