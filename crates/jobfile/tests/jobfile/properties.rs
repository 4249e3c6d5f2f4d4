//! Whatever is written, nothing panics, hangs or grows without bound.

use std::io;
use std::path::Path;

use fathom_jobfile::{JobFile, Keyword, Sources};
use fathom_model::value;
use proptest::prelude::*;

/// No disk: every included file is the same text, every variable the same value.
struct Stub {
    file: Vec<u8>,
    variable: String,
}

impl Sources for Stub {
    fn variable(&self, _name: &str) -> Option<String> {
        Some(self.variable.clone())
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path.as_os_str().len() > 8 {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(self.file.clone())
    }

    fn keyword(&self, _keyword: Keyword) -> Option<u64> {
        Some(4)
    }
}

fn everything(bytes: &[u8], sources: &dyn Sources) {
    let checked = JobFile::parse_with(bytes, Path::new("x.fio"), sources);
    for diagnostic in &checked.diagnostics {
        assert!(!diagnostic.to_string().is_empty());
        assert_eq!(diagnostic.excerpt().lines().count(), 2);
    }
    let mut file = checked.file;
    let jobs = file.jobs();
    for job in &jobs {
        let _ = (
            fathom_jobfile::targets(job),
            fathom_jobfile::is_write(job),
            fathom_jobfile::spec::bs(job),
        );
    }
    let _ = JobFile::from_cmdline(&fathom_jobfile::cmdline(&jobs));
    file.set("bs", Some("4k"));
    let _ = file.render();
}

/// Lines that look like a job file.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("[global]".to_owned()),
        "[a-c]".prop_map(|name| format!("[{name}]")),
        Just("include x".to_owned()),
        "[;#][ -~]{0,10}",
        "(bs|size|rw|filename|iodepth|runtime|direct|bssplit|ss|ioengine|odd)",
        "(bs|size|rw|filename|iodepth|runtime|direct|bssplit|bsrange|percentile_list|odd) ?=[ -~é]{0,12}",
        "(bs|size|runtime)=[0-9]{1,20}[kmgtpibs%]{0,3}",
        "[a-z]{1,6}=(\\$\\{A\\}|\\$ncpus|[-+*/^()0-9 ]){1,8}",
        "[ -~é\t]{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), file in prop::collection::vec(any::<u8>(), 0..60)) {
        everything(&bytes, &Stub { file, variable: "x".into() });
    }

    #[test]
    fn arbitrary_lines_never_panic(lines in prop::collection::vec(line(), 0..20), file in prop::collection::vec(line(), 0..4), variable in "[ -~\n]{0,6}") {
        everything(lines.join("\n").as_bytes(), &Stub { file: file.join("\n").into_bytes(), variable });
    }

    /// Parse, render, parse: the same options in the same order, the same text.
    #[test]
    fn rendering_is_faithful(lines in prop::collection::vec(line(), 0..20)) {
        let sources = Stub { file: b"bs=4k\n; inside\niodepth=2".to_vec(), variable: "4k".into() };
        let text = format!("[first]\n{}", lines.join("\n"));
        let first = JobFile::parse_with(text.as_bytes(), Path::new("x.fio"), &sources).file;
        let rendered = first.render();
        let second = JobFile::parse_with(rendered.as_bytes(), Path::new("x.fio"), &sources).file;
        prop_assert_eq!(second.render(), rendered);
        let options = |file: &JobFile| -> Vec<_> {
            file.jobs().into_iter().flat_map(|job| job.options.into_iter().map(move |o| (job.name.clone(), o.name, o.value))).collect()
        };
        prop_assert_eq!(options(&first), options(&second));
    }

    #[test]
    fn arbitrary_values_never_panic(text in any::<String>()) {
        for base in [value::Base::Binary, value::Base::Decimal] {
            let _ = value::size(&text, base);
            let _ = value::amount(&text, base);
            let _ = value::bssplit(&text, base);
            let _ = value::surprising_unit(&text, base);
            let _ = value::triple(&text, |part| value::size(part, base));
            let _ = value::range(&text, |part| value::size(part, base));
        }
        let _ = value::time_us(&text, value::BareTimeUnit::Seconds);
    }

    #[test]
    fn sizes_with_units_never_overflow(n in any::<i128>(), unit in "[kmgtpKMGTP]?(i|b|ib)?") {
        let _ = value::size(&format!("{n}{unit}"), value::Base::Binary);
    }
}

#[test]
fn an_include_that_doubles_ends() {
    // Each file includes four others, each under a name of its own.
    let sources = Stub {
        file: b"include a\ninclude b\ninclude c\ninclude d\nbs=4k".to_vec(),
        variable: String::new(),
    };
    let checked = JobFile::parse_with(b"[a]\ninclude a", Path::new("x.fio"), &sources);
    assert!(checked.has_errors());
}

#[test]
fn globals_times_jobs_are_bounded() {
    let text = format!(
        "[global]\n{}\n{}",
        "bs=4k\n".repeat(20_000),
        "[a]\n".repeat(20_000)
    );
    let checked = JobFile::parse_with(
        text.as_bytes(),
        Path::new("x.fio"),
        &Stub {
            file: Vec::new(),
            variable: String::new(),
        },
    );
    assert!(checked.has_errors());
    let options: usize = checked
        .file
        .jobs()
        .iter()
        .map(|job| job.options.len())
        .sum();
    assert!(options <= 1 << 20, "{options}");
}

#[test]
fn variables_that_grow_are_bounded() {
    let sources = Stub {
        file: Vec::new(),
        variable: "x".repeat(5_000),
    };
    let text = format!("[a]\n{}", "description=${A}\n".repeat(200_000));
    let checked = JobFile::parse_with(text.as_bytes(), Path::new("x.fio"), &sources);
    assert!(checked.has_errors());
    assert!(checked.file.render().len() < 16 << 20);
    assert!(checked.diagnostics.len() <= 501);
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let text = vec![b'\n'; (4 << 20) + 1];
    let checked = JobFile::parse_with(
        &text,
        Path::new("x.fio"),
        &Stub {
            file: Vec::new(),
            variable: String::new(),
        },
    );
    assert!(checked.has_errors());
}
