//! Where Kconfig files come from: a folder, or texts in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::limits::MAX_BYTES;

/// A source of Kconfig files. Names use `/`.
pub trait KconfigSource {
    /// The text of a file.
    ///
    /// # Errors
    /// What the system says; `InvalidData` when it is not UTF-8.
    fn read(&self, name: &str) -> io::Result<String>;

    /// The files that a pattern names, in alphabetical order: `*`, `?` and
    /// `[a-z]` stand for characters other than `/`, and a leading dot is
    /// matched by a dot only. A name without these stands for itself, if such
    /// a file exists.
    fn glob(&self, pattern: &str) -> Vec<String>;
}

/// Files below a folder; absolute names stay what they are.
#[derive(Debug, Clone)]
pub struct DiskFiles {
    root: PathBuf,
}

impl DiskFiles {
    /// Names are looked up below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

impl KconfigSource for DiskFiles {
    fn read(&self, name: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        fs::File::open(self.path(name))?
            .take(MAX_BYTES as u64 + 1)
            .read_to_end(&mut bytes)?;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let text = format!("it is not UTF-8 from byte {at} on");
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    fn glob(&self, pattern: &str) -> Vec<String> {
        expand(pattern, &|name| self.path(name).exists(), &|folder| {
            let path = self.path(folder);
            let path = if path.as_os_str().is_empty() {
                Path::new(".")
            } else {
                &path
            };
            fs::read_dir(path)
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                .collect()
        })
    }
}

/// Texts by their names, for trees that a program carries in itself.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    texts: BTreeMap<String, String>,
}

impl<N: Into<String>, T: Into<String>> FromIterator<(N, T)> for MemoryFiles {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(texts: I) -> Self {
        let texts = texts
            .into_iter()
            .map(|(name, text)| (name.into(), text.into()))
            .collect();
        Self { texts }
    }
}

impl KconfigSource for MemoryFiles {
    fn read(&self, name: &str) -> io::Result<String> {
        self.texts
            .get(name)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn glob(&self, pattern: &str) -> Vec<String> {
        let exists = |name: &str| {
            let below = format!("{name}/");
            self.texts
                .keys()
                .any(|text| text == name || text.starts_with(&below))
        };
        expand(pattern, &exists, &|folder| {
            let below = if folder.is_empty() {
                String::new()
            } else {
                format!("{folder}/")
            };
            let names: BTreeSet<String> = self
                .texts
                .keys()
                .filter_map(|text| text.strip_prefix(&below)?.split('/').next())
                .map(str::to_owned)
                .collect();
            names.into_iter().collect()
        })
    }
}

/// Expands a pattern folder by folder.
fn expand(
    pattern: &str,
    exists: &dyn Fn(&str) -> bool,
    list: &dyn Fn(&str) -> Vec<String>,
) -> Vec<String> {
    let mut found = vec![String::new()];
    for (n, part) in pattern.split('/').enumerate() {
        let join = |folder: &str, name: &str| match n {
            0 => name.to_owned(),
            _ => format!("{folder}/{name}"),
        };
        found = if part.contains(['*', '?', '[']) {
            found
                .iter()
                .flat_map(|folder| {
                    let names = list(if folder.is_empty() && n > 0 {
                        "/"
                    } else {
                        folder
                    });
                    let hits = names.into_iter().filter(|name| matches(part, name));
                    hits.map(|name| join(folder, &name)).collect::<Vec<_>>()
                })
                .collect()
        } else {
            found.iter().map(|folder| join(folder, part)).collect()
        };
    }
    found.retain(|name| exists(name));
    found.sort();
    found
}

/// Whether a name matches a pattern of one path component, as in
/// [`KconfigSource::glob`].
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last `*` stood and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, n));
            p += 1;
        } else if let Some(width) = matches_one(&pattern[p..], name[n]) {
            p += width;
            n += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            p = at + 1;
            n = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// The length of the pattern's first element if it matches this character.
fn matches_one(pattern: &[char], c: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '[' => {
            let negated = pattern.get(1) == Some(&'!');
            let first = if negated { 2 } else { 1 };
            // A bracket that is the first of its set stands for itself.
            let Some(end) = (first + 1..pattern.len()).find(|&at| pattern[at] == ']') else {
                return (c == '[').then_some(1);
            };
            let (mut at, mut hit) = (first, false);
            while at < end {
                if at + 2 < end && pattern[at + 1] == '-' {
                    hit |= (pattern[at]..=pattern[at + 2]).contains(&c);
                    at += 3;
                } else {
                    hit |= pattern[at] == c;
                    at += 1;
                }
            }
            (hit != negated).then_some(end + 1)
        }
        &other => (other == c).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_a_shell_matches_them() {
        for (pattern, name, expected) in [
            ("*", "a", true),
            ("*", ".a", false),
            (".*", ".a", true),
            ("Kconfig.*", "Kconfig.x", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?b", "ab", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]x", "]x", true),
            ("[x", "[x", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn memory_and_disk_find_the_same_files() {
        let names = [
            "Kconfig",
            "a/Kconfig",
            "a/b/Kconfig",
            "c/Kconfig",
            "c/other",
        ];
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let disk = DiskFiles::new(folder.path());
        let memory: MemoryFiles = names.into_iter().map(|name| (name, name)).collect();
        for (pattern, count) in [
            ("*/Kconfig", 2),
            ("Kconfig", 1),
            ("c/*", 2),
            ("*/*/*", 1),
            ("missing", 0),
            ("./c/K*", 1),
        ] {
            let found = disk.glob(pattern);
            assert_eq!(found.len(), count, "{pattern}: {found:?}");
            if !pattern.starts_with('.') {
                assert_eq!(found, memory.glob(pattern), "{pattern}");
            }
            assert!(
                found
                    .iter()
                    .all(|name| disk.read(name).is_ok() || name == "a/b")
            );
        }
    }
}
