//! Placeholders that nothing stands for: found in every definition, also in
//! those that the configuration leaves out.

use fathom_kconfig::Tree;

use super::{
    AxisValues, Definitions, JobSetting, PROFILE_OPTIONS, TEST_OPTIONS, TemplateLine,
    TestDefinition, TextPattern, Value,
};
use crate::error::{Fault, meant};

/// The placeholders that are neither symbols nor options.
const WORDS: [&str; 9] = [
    "n",
    "test",
    "test.about",
    "template",
    "profile",
    "profile.number",
    "profile.name",
    "profile.short",
    "profile.about",
];

/// Whether a placeholder names a symbol of Kconfig.
pub(crate) fn is_symbol(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Whether a placeholder is one of the words.
pub(super) fn is_word(name: &str) -> bool {
    WORDS.contains(&name)
}

/// Says that Kconfig does not define a symbol.
pub(crate) fn no_symbol(name: &str, tree: &Tree) -> String {
    let symbols = tree.symbols().iter();
    let known = symbols.map(|&id| tree.symbol(id).name.as_str());
    format!("Kconfig defines no symbol {name}{}", meant(name, known))
}

/// Says that a placeholder stands for nothing; `options` are those there are.
pub(crate) fn no_word<'a>(name: &str, options: impl Iterator<Item = &'a str>) -> String {
    let known = options.chain(WORDS).chain([TEST_OPTIONS, PROFILE_OPTIONS]);
    format!(
        "{{{{ {name} }}}} is no option of the test or its profiles, and no word{}",
        meant(name, known)
    )
}

impl TestDefinition {
    /// Looks at every placeholder of the test and its template.
    pub(crate) fn check_names(&self, all: &Definitions, tree: &Tree, faults: &mut Vec<Fault>) {
        let options = self.option_names(all);
        let mut look = |pattern: &TextPattern, in_path: bool| {
            for name in pattern.names() {
                let message = match name {
                    _ if options.contains(&name) => continue,
                    "n" if !in_path => {
                        "{{ n }} counts files and folders: it stands in path only".to_owned()
                    }
                    word if is_word(word) => continue,
                    symbol if is_symbol(symbol) && tree.find(symbol).is_some() => continue,
                    symbol if is_symbol(symbol) => no_symbol(symbol, tree),
                    other => no_word(other, options.iter().copied()),
                };
                faults.push(Fault::new(pattern.place(), message));
            }
        };
        for level in &self.path {
            look(level, true);
        }
        for value in self.values() {
            look(value, false);
        }
        for line in self
            .template(all)
            .iter()
            .flat_map(|template| &template.lines)
        {
            if let TemplateLine::Text { pattern, .. } = line {
                look(pattern, false);
            }
        }
        let profiles = all
            .profiles
            .iter()
            .filter(|profile| self.runs_with(profile));
        for setting in profiles.flat_map(|profile| &profile.options) {
            if let Some(value) = &setting.value {
                look(value, false);
            }
        }
    }

    /// The options that any of its points has.
    pub(super) fn option_names<'d>(&'d self, all: &'d Definitions) -> Vec<&'d str> {
        let profiles = all
            .profiles
            .iter()
            .filter(|profile| self.runs_with(profile));
        let of_profiles = profiles.flat_map(|profile| &profile.options);
        let axes = self.axes.iter().map(|axis| &axis.option);
        let own = self.own_options().chain(of_profiles);
        axes.chain(own.map(|own| &own.option))
            .map(String::as_str)
            .collect()
    }

    /// Its options, those for single profiles included.
    pub(super) fn own_options(&self) -> impl Iterator<Item = &JobSetting> {
        let other = self.overrides.iter().flat_map(|(_, options)| options);
        self.options.iter().chain(other)
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        let of_axes = self.axes.iter().flat_map(|axis| match &axis.values {
            AxisValues::Range(from, to) => vec![from, to],
            AxisValues::List(list) => list.iter().collect(),
            AxisValues::Text(text) => vec![text],
        });
        of_axes.chain(self.own_options().filter_map(|own| own.value.as_ref()))
    }
}
