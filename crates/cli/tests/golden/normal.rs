//! The one place that knows what differs between two machines or two days.

use std::path::Path;

/// Numbers behind these keys of JSON are times of this machine, or sizes of it.
const NUMBERS: &[&str] = &[
    "at_ms",
    "cpus",
    "folder_bytes",
    "gap_ms",
    "memory_bytes",
    "pid",
    "seed",
    "ran_ms",
    "started_ms",
    "timestamp",
    "timestamp_ms",
    "took_ms",
];
/// Texts and lists behind these keys name this machine or this Fathom.
const TEXTS: &[&str] = &[
    "PATH",
    "arch",
    "backing",
    "batch",
    "cpu_governor",
    "cpu_model",
    "ended",
    "fathom_version",
    "file_system",
    "hostname",
    "kernel",
    "node",
    "os",
    "scheduler",
    "stack",
    "started",
    "updated",
];
/// Digits at these places are times.
const SHAPES: &[(&str, &str)] = &[
    ("########T######Z", "TIME"),
    ("########t######z", "TIME"),
    ("####-##-##T##:##:##Z", "TIME"),
    ("####-##-##T##:##:##.###Z", "TIME"),
    ("####-##-## ##:##:##", "TIME"),
    ("|1#########", "|EPOCH"),
];
/// Between these two, in a line, stands how long something took here, what this machine
/// is called, or what was drawn by lot.
const BETWEEN: &[(&str, &str)] = &[
    ("interrupted for ", " in "),
    ("came to", "run\n"),
    ("iB", "TIME-nvme"),
    ("complete, ", "\n"),
    ("failed, ", "\n"),
    ("interrupted, ", "\n"),
    ("took        ", "\n"),
    ("took     ", "\n"),
    ("\nhost    ", "\n"),
    ("\nstack   ", "\n"),
    ("Node name: ", "\n"),
    ("Kernel: ", "\n"),
    ("Architecture: ", "\n"),
    ("Tests complete on ", " @ "),
    ("stb-testdir\" on ", " @ "),
    ("127.0.0.1:", "/"),
    ("_fio-", "/"),
];

/// `text` without what only this machine has: its folder `dir`, its clock, its name.
pub fn normal(text: &str, dir: &Path) -> String {
    let fio = super::play::played_fio();
    let mut text = text
        .replace(dir.to_str().unwrap(), "DIR")
        .replace(fio.to_str().unwrap(), "DIR/fio")
        .replace(env!("CARGO_BIN_EXE_fathom"), "fathom")
        .replace(env!("CARGO_PKG_VERSION"), "VERSION");
    for key in NUMBERS {
        text = without_value(&text, key, "0");
    }
    for key in TEXTS {
        text = without_value(&text, key, "\"HERE\"");
    }
    // Who ends at once ends before it is asked.
    text = text.replace("\"pid\":null", "\"pid\":0");
    for (shape, word) in SHAPES {
        text = without_shape(&text, shape, word);
    }
    for (before, after) in BETWEEN {
        text = without_between(&text, before, after);
    }
    without_sizes(&text)
}

/// The list of runs without how large they are: it has the digits of times in it.
fn without_sizes(text: &str) -> String {
    let mut is_list = false;
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        is_list = match line.starts_with("run ") {
            true => line.ends_with("  size\n"),
            false => is_list && line.starts_with("TIME-"),
        };
        match line.trim_end().rfind("  ").filter(|_| is_list) {
            Some(at) if line.starts_with("TIME-") => out = out + &line[..at] + "  SIZE\n",
            _ => out += line,
        }
    }
    out
}

/// Takes out what stands behind `"key":`, unless that is null.
fn without_value(text: &str, key: &str, word: &str) -> String {
    let key = format!("\"{key}\":");
    let mut parts = text.split(&key);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let value = part.trim_start();
        let end = match value.as_bytes().first() {
            Some(b'"') => value[1..].find('"').map(|end| end + 2),
            Some(b'{') => object_end(value),
            Some(b'[') => value.find(']').map(|end| end + 1),
            Some(b'0'..=b'9') => value.find(|c: char| !c.is_ascii_digit() && c != '.'),
            _ => None,
        };
        out += &key;
        match end {
            Some(end) => {
                out += &part[..part.len() - value.len()];
                out += word;
                out += &value[end..];
            }
            None => out += part,
        }
    }
    out
}

/// Where the object at the begin of `text` ends; no brace stands in our texts.
fn object_end(text: &str) -> Option<usize> {
    let mut depth = 0;
    let ends = text.match_indices(['{', '}']).find(|(_, brace)| {
        depth += if *brace == "{" { 1 } else { -1 };
        depth == 0
    });
    ends.map(|(end, _)| end + 1)
}

/// Every place that looks like `shape`, where `#` is a digit, becomes `word`.
fn without_shape(text: &str, shape: &str, word: &str) -> String {
    let is_like = |part: &[u8]| {
        let pairs = part.iter().zip(shape.bytes());
        part.len() == shape.len()
            && pairs
                .into_iter()
                .all(|(c, s)| *c == s || s == b'#' && c.is_ascii_digit())
    };
    let begins = |c: char| match shape.as_bytes()[0] {
        b'#' => c.is_ascii_digit(),
        first => c == char::from(first),
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(begins) {
        out += &rest[..start];
        rest = &rest[start..];
        let part = rest.as_bytes().get(..shape.len()).unwrap_or_default();
        let end = if is_like(part) { shape.len() } else { 1 };
        out += if end == 1 { &rest[..1] } else { word };
        rest = &rest[end..];
    }
    out + rest
}

/// What stands between these two in a line becomes `HERE`.
fn without_between(text: &str, before: &str, after: &str) -> String {
    let mut parts = text.split(before);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += before;
        let line = part.find('\n').map_or(part, |end| &part[..=end]);
        match line.find(after) {
            Some(end) => {
                out += "HERE";
                out += &part[end..];
            }
            None => out += part,
        }
    }
    out
}

/// FNV-1a, for what is too long to be read.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn what_this_machine_has_is_taken_out_and_nothing_else() {
    let text = "{\"at_ms\":17,\"hostname\": \"vm\",\"cpu_governor\":[\"a\",\"b\"],\"pid\":null,\"n\":4}\n\
                run 20261123T015710Z-a, interrupted for 11.0 s in 7\n|1795399451|x\n";
    let expected = "{\"at_ms\":0,\"hostname\": \"HERE\",\"cpu_governor\":\"HERE\",\"pid\":0,\"n\":4}\n\
                    run TIME-a, interrupted for HERE in 7\n|EPOCH|x\n";
    assert_eq!(normal(text, Path::new("/nowhere")), expected);
}
