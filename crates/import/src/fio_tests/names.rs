//! What the names of fio-tests' files and folders say of a test: it keeps no
//! record of the options of a run, but writes them into the names
//! (`0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30/0010-bs4k-1j-512qd-randrw.ini`).

use std::collections::BTreeMap;
use std::path::{Component, Path};

/// fio's names of `rw` that can end a file's name.
pub(crate) const PATTERNS: [&str; 9] = [
    "read",
    "write",
    "randread",
    "randwrite",
    "randrw",
    "rw",
    "readwrite",
    "trim",
    "randtrim",
];
/// Options of the test that submits and completes one I/O at a time; of the
/// others the configuration decides, which the names do not tell.
const ONE_AT_A_TIME: (&str, [&str; 3]) = (
    "0001-basic-tests",
    [
        "iodepth_batch_submit",
        "iodepth_batch_complete_min",
        "iodepth_batch_complete_max",
    ],
);

/// The options that the name of a test tells, by fio's names. What is in the
/// file's own name counts more than what is in its folders'.
pub(crate) fn settings(id: &str) -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    let mut set = |option: &str, value: &str| known.insert(option.to_owned(), value.to_owned());
    for part in id.split('/') {
        if part == ONE_AT_A_TIME.0 {
            for option in ONE_AT_A_TIME.1 {
                set(option, "1");
            }
        }
        let words: Vec<&str> = part.split(['-', '_']).collect();
        for word in &words {
            if let Some((option, value)) = word_of(word) {
                set(option, value);
            }
        }
        for pair in words.windows(2) {
            // `70-30`: reads and writes in percent.
            if let [Ok(reads), Ok(writes)] = [pair[0].parse::<u32>(), pair[1].parse::<u32>()]
                && reads.checked_add(writes) == Some(100)
            {
                set("rwmixread", pair[0]);
            }
        }
    }
    let pattern = id.rsplit(['-', '/']).next().unwrap_or_default();
    if PATTERNS.contains(&pattern) {
        set("rw", pattern);
    }
    if !matches!(pattern, "randrw" | "rw" | "readwrite") {
        known.remove("rwmixread");
    }
    known
}

/// `bs4k`, `16j`, `512qd`, `32iobs`.
fn word_of(word: &str) -> Option<(&'static str, &str)> {
    let begins_with_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    if let Some(size) = word
        .strip_prefix("bs")
        .filter(|size| begins_with_digit(size))
    {
        return Some(("bs", size));
    }
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let option = match &word[digits.len()..] {
        "j" => "numjobs",
        "qd" => "iodepth",
        "iobs" => "iodepth_batch_submit",
        _ => return None,
    };
    Some((option, digits))
}

/// The folders above and including `root` that belong to a test: those at its
/// end that begin with a number of four digits. So a test has the same name
/// whether its folder, the one above or all of them are imported.
pub(super) fn numbered_end(root: &Path) -> String {
    let names: Vec<&str> = root
        .components()
        .rev()
        .map_while(|part| match part {
            Component::Normal(name) => name.to_str().filter(|name| is_numbered(name)),
            _ => None,
        })
        .collect();
    names.into_iter().rev().collect::<Vec<_>>().join("/")
}

/// `0005-…`.
fn is_numbered(name: &str) -> bool {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    digits == 4 && name[digits..].starts_with('-')
}

/// Whether a test measures no point of a curve: pre-conditioning and the rounds
/// of the SNIA tests lie in folders of that name.
pub(super) fn is_preparation(id: &str) -> bool {
    id.split('/')
        .any(|part| part.contains("snia") || part.contains("pre-condition"))
}

/// The option on the x axis of a series: the one that its points differ in. Of
/// a single point the folder tells: those for one I/O depth or one batch size
/// (`0001-256qd-randrw`, `0001-32iobs-randrw`) hold a range of jobs.
pub(super) fn x_of<'s>(
    series: &str,
    settings: impl Iterator<Item = &'s BTreeMap<String, String>> + Clone,
) -> &'static str {
    let differ = |option: &str| {
        let mut values = settings.clone().filter_map(|known| known.get(option));
        let first = values.next();
        first.is_some_and(|first| values.any(|value| value != first))
    };
    let folder = series.rsplit('/').next().unwrap_or_default();
    let fixed = folder.split('-').filter_map(word_of).next().is_some();
    if differ("iodepth") {
        "iodepth"
    } else if differ("numjobs") || fixed {
        "numjobs"
    } else {
        "iodepth"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(id: &str) -> String {
        let known = settings(id);
        let pairs: Vec<String> = known.iter().map(|(k, v)| format!("{k}={v}")).collect();
        pairs.join(" ")
    }

    #[test]
    fn names_tell_options() {
        assert_eq!(
            told(
                "0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30/0010-bs4k-1j-512qd-randrw"
            ),
            "bs=4k iodepth=512 numjobs=1 rw=randrw rwmixread=70"
        );
        assert_eq!(
            told("0001-basic-tests/0002-seqread/0001-bs128k-1j-1qd-read"),
            "bs=128k iodepth=1 iodepth_batch_complete_max=1 iodepth_batch_complete_min=1 \
             iodepth_batch_submit=1 numjobs=1 rw=read"
        );
        assert_eq!(
            told(
                "0002-iobatch/0004-iobatch-randread/0003-128iobs-randread/0002-bs4k-2j-128qd-randread"
            ),
            "bs=4k iodepth=128 iodepth_batch_submit=128 numjobs=2 rw=randread"
        );
        assert_eq!(told("mine/9999-something"), "");
    }

    #[test]
    fn the_range_is_what_the_points_differ_in() {
        let ids = |jobs: [u32; 2], depths: [u32; 2]| {
            let of =
                |at: usize| settings(&format!("s/0001-bs4k-{}j-{}qd-read", jobs[at], depths[at]));
            [of(0), of(1)]
        };
        assert_eq!(x_of("s", ids([1, 1], [1, 2]).iter()), "iodepth");
        assert_eq!(x_of("s", ids([1, 2], [8, 8]).iter()), "numjobs");
        assert_eq!(x_of("s", ids([1, 1], [8, 8]).iter()), "iodepth");
        assert_eq!(
            x_of("a/0001-8qd-read", ids([1, 1], [8, 8]).iter()),
            "numjobs"
        );
    }

    #[test]
    fn a_folder_amid_the_tree_keeps_its_place_in_it() {
        let end = |path: &str| numbered_end(Path::new(path));
        assert_eq!(end("/data/tests/0001-basic-tests"), "0001-basic-tests");
        assert_eq!(
            end("/x/0001-basic-tests/0002-seqread"),
            "0001-basic-tests/0002-seqread"
        );
        assert_eq!(end("/x/2018"), "");
        assert_eq!(end("/"), "");
    }
}
