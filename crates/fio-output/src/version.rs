//! Which fio wrote something.

use std::fmt;

/// fio's version as it tells it, for example `fio-3.33` or `fio-3.39-12-g7c2f`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    text: String,
    number: (u32, u32),
}

impl Version {
    /// Reads what `fio --version` prints.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut numbers = text.strip_prefix("fio-")?.split(['.', '-']);
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        Some(Self {
            text: text.to_owned(),
            number: (major, minor),
        })
    }

    /// Whether it is this version or a later one.
    pub fn is_at_least(&self, major: u32, minor: u32) -> bool {
        self.number >= (major, minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_releases_and_of_trees_are_read_and_ordered() {
        let old = Version::parse("fio-2.21\n").unwrap();
        let tree = Version::parse("fio-3.39-12-g7c2f").unwrap();
        assert!(!old.is_at_least(3, 0) && tree.is_at_least(3, 39));
        assert_eq!(tree.to_string(), "fio-3.39-12-g7c2f");
        assert_eq!(Version::parse("ls (GNU coreutils) 9.1"), None);
    }
}
