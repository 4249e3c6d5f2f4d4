//! What the fuzzer does with its input, one function a target. The test
//! `fuzz_seeds` of `fathom-engine` runs the same functions over their seeds, so
//! that they keep compiling and holding where there is no fuzzer.
//!
//! None may panic, hang, or take memory without bound.
#![allow(dead_code)] // each fuzz target is a program that uses one of them

use std::path::Path;

use fathom_fio_output::{import, json, log, normal, terse};
use fathom_jobfile::{JobFile, Keyword, Sources};
use fathom_model::value::{self, BareTimeUnit, Base};
use fathom_model::{Histogram, LogEntry};

/// What a target does with an input.
pub type Target = fn(&[u8]);

/// Every target by its name.
pub const ALL: &[(&str, Target)] = &[
    ("jobfile", jobfile),
    ("cmdline", cmdline),
    ("fio_json", fio_json),
    ("terse", terse),
    ("normal", normal),
    ("import", import),
    ("histogram", histogram),
    ("log", log),
    ("units", units),
];

/// No disk and no machine: what is included is always the same, and includes
/// more; a variable expands to more than its name, as a mean environment would.
struct Stub;

impl Sources for Stub {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "A").then(|| "${A}=[x]\n;#:\\".to_owned())
    }

    fn file(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        if path.as_os_str().len() > 8 {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        Ok(b"bs=4k\ninclude y\ninclude z\n".to_vec())
    }

    fn keyword(&self, _: Keyword) -> Option<u64> {
        Some(4)
    }
}

/// A job file: read, resolved, written again; what was written reads the same.
pub fn jobfile(data: &[u8]) {
    let path = Path::new("fuzz.fio");
    let checked = JobFile::parse_with(data, path, &Stub);
    for diagnostic in &checked.diagnostics {
        let _ = (diagnostic.to_string(), diagnostic.excerpt());
    }
    for job in checked.file.jobs() {
        let _ = (
            fathom_jobfile::targets(&job),
            fathom_jobfile::is_write(&job),
        );
    }
    let text = checked.file.render();
    if !checked.has_errors() {
        let again = JobFile::parse_with(text.as_bytes(), path, &Stub);
        assert_eq!(again.file.render(), text);
    }
}

/// The numbers of job files.
pub fn units(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for base in [Base::Binary, Base::Decimal] {
        let _ = value::amount(&text, base);
        let _ = value::bssplit(&text, base);
        let _ = value::surprising_unit(&text, base);
        let _ = value::triple(&text, |part| value::size(part, base));
        let _ = value::range(&text, |part| value::size(part, base));
    }
    for bare in [BareTimeUnit::Seconds, BareTimeUnit::Micros] {
        let _ = value::time_us(&text, bare);
    }
}

/// A fio command line, one argument a line.
pub fn cmdline(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let args: Vec<String> = text.lines().map(str::to_owned).collect();
    let checked = JobFile::from_cmdline(&args);
    let _ = (checked.file.jobs(), checked.file.render());
}

/// fio's JSON, with whatever stands around it.
pub fn fio_json(data: &[u8]) {
    let scan = json::scan(data);
    for document in &scan.documents {
        assert!(data.get(document.raw.clone()).is_some());
    }
    let _ = json::parse_document(data);
}

/// fio's terse output, with whatever stands around it.
pub fn terse(data: &[u8]) {
    if let Some(terse) = terse::parse(data) {
        assert!((2..=5).contains(&terse.version));
    }
}

/// fio's normal output.
pub fn normal(data: &[u8]) {
    if let Some(normal) = normal::parse(data) {
        assert!(
            normal
                .results
                .iter()
                .all(|results| !results.jobs.is_empty())
        );
    }
}

/// Any file: what is read can be stored and compared.
pub fn import(data: &[u8]) {
    if let Ok((_, results, _)) = import::read(data) {
        for pair in results.windows(2) {
            let _ = import::is_later_state(&pair[0], &pair[1]);
        }
        for results in &results {
            let _ = import::failures(results);
            serde_json::to_string(results).expect("results can be written");
        }
    }
}

/// Sums up what a log holds, in whatever order.
struct Sum(u64);

impl log::Collect for Sum {
    fn add(&mut self, entry: &LogEntry) {
        self.0 = self
            .0
            .wrapping_add(entry.value ^ entry.time_ms.rotate_left(32));
    }
}

/// A latency log, plain or gzip: what is read strictly is read alike when
/// malformed lines are left out.
pub fn log(data: &[u8]) {
    let read = |skip_bad| {
        let options = log::Options {
            skip_bad,
            ..log::Options::default()
        };
        log::read_from(data, Path::new("fuzz.log"), options, |_| Sum(0))
    };
    let lenient = read(true);
    if let Ok(strict) = read(false) {
        let lenient = lenient.expect("a good log is good without its bad lines");
        assert_eq!((strict.lines, strict.skipped), (lenient.lines, 0));
        let sums = |log: log::Log<Sum>| log.parts.iter().map(|sum| sum.0).collect::<Vec<_>>();
        assert_eq!(sums(strict), sums(lenient));
    }
}

/// A stored histogram: what is accepted is written and read as the same again.
pub fn histogram(data: &[u8]) {
    let Ok(histogram) = serde_json::from_slice::<Histogram>(data) else {
        return;
    };
    let _ = (histogram.percentile_ns(99.9), histogram.mean_ns());
    let text = serde_json::to_string(&histogram).expect("a histogram can be written");
    let again: Histogram = serde_json::from_str(&text).expect("and read");
    assert_eq!(again.percentile_ns(50.0), histogram.percentile_ns(50.0));
}
