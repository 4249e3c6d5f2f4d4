//! fio's command line: from jobs, and back to a job file.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use fathom_model::io_engine::io_engine;
use fathom_model::{JobOption, JobSpec};

use super::diagnostic::Severity;
use super::syntax::reads_back;
use super::table::{ValueKind, table};
use super::written::{FindingList, SourceLine, WrittenOption};
use super::{CheckedJobFile, JobFile, JobLine, Section, check, spec};

/// Options of the program itself (its HOWTO, "Command line options"); those
/// with `=` take a value.
const PROGRAM: [&str; 36] = [
    "debug=",
    "parse-only",
    "merge-blktrace-only",
    "output=",
    "output-format=",
    "bandwidth-log",
    "minimal",
    "append-terse",
    "terse-version=",
    "version",
    "help",
    "cpuclock-test",
    "crctest",
    "cmdhelp",
    "enghelp",
    "showcmd",
    "readonly",
    "eta=",
    "eta-interval=",
    "eta-newline=",
    "status-interval=",
    "section=",
    "alloc-size=",
    "warnings-fatal",
    "max-jobs=",
    "server",
    "daemonize=",
    "client=",
    "remote-config=",
    "idle-prof=",
    "inflate-log=",
    "trigger-file=",
    "trigger-timeout=",
    "trigger=",
    "trigger-remote=",
    "aux-path=",
];

/// The arguments (without `fio`) that run these jobs.
///
/// Each job carries its globals itself, so that none leaks into another job
/// (fio's own `--showcmd` writes them where they change the job before). The
/// engine comes first, because fio takes its options only after it; files come
/// last, because fio puts the folders known so far before them. A `name` inside
/// a section, which only changes what fio prints, would begin a new job and is
/// left out.
pub fn cmdline(jobs: &[JobSpec]) -> Vec<String> {
    let mut args = Vec::new();
    for job in jobs {
        args.push(format!("--name={}", job.name));
        let mut options: Vec<&JobOption> = job
            .options
            .iter()
            .filter(|option| option.name != "name" && is_effective(job, option))
            .collect();
        options.sort_by_key(|option| rank(&option.name));
        args.extend(
            options
                .into_iter()
                .filter_map(|option| job_argument(job, option)),
        );
    }
    args
}

fn rank(name: &str) -> u8 {
    match name {
        "kb_base" => 0,
        "ioengine" => 1,
        "filename" | "opendir" => 3,
        _ => 2,
    }
}

/// Engines that were overridden, and their options, would be refused.
fn is_effective(job: &JobSpec, option: &JobOption) -> bool {
    let engine = spec::engine(job);
    if option.name == "ioengine" {
        return spec::option(job, "ioengine") == Some(option);
    }
    let mut specs = table().find(&option.name).peekable();
    specs.peek().is_none()
        || io_engine(engine).is_none()
        || specs.any(|spec| {
            spec.is_general()
                || spec
                    .engines
                    .iter()
                    .any(|owner| *owner == engine || owner.starts_with("profile:"))
        })
}

/// On the command line fio wants a value even where a job file may leave it
/// out: a log is then named after the job, and the others mean nothing.
fn job_argument(job: &JobSpec, option: &JobOption) -> Option<String> {
    let empty = option.value.as_deref().is_none_or(str::is_empty);
    let optional = table().find(&option.name).any(|spec| spec.has("optional"));
    if !(empty && optional) {
        return Some(argument(option));
    }
    let is_log = option.name.starts_with("write_");
    is_log.then(|| format!("--{}={}", option.name, job.name))
}

fn argument(option: &JobOption) -> String {
    match &option.value {
        Some(value) => format!("--{}={value}", option.name),
        None => format!("--{}", option.name),
    }
}

/// Quotes an argument for a POSIX shell where it needs it.
pub fn shell_quote(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    // Only the value in quotes, as a person would write it.
    match argument.split_once('=') {
        Some((name, value)) if !name.is_empty() && name.chars().all(plain) => {
            format!("{name}='{}'", value.replace('\'', r"'\''"))
        }
        _ => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}

/// Reads the options of a fio command line: what stands before the first
/// `--name` is global, a `--name` begins a section.
pub fn parse(args: &[String]) -> CheckedJobFile {
    let path = Path::new("command line");
    let mut reader = CommandLineReader {
        path: Rc::new(path.to_owned()),
        file: JobFile::empty(path),
        headers: Vec::new(),
        written: Vec::new(),
        report: FindingList::default(),
    };
    let mut rest = args.iter().enumerate();
    while let Some((place, argument)) = rest.next() {
        let next = args.get(place + 1).map(String::as_str);
        if reader.take(place, argument, next) {
            rest.next();
        }
    }
    reader.finish(args)
}

struct CommandLineReader {
    path: Rc<PathBuf>,
    file: JobFile,
    headers: Vec<Rc<SourceLine>>,
    written: Vec<Vec<WrittenOption>>,
    report: FindingList,
}

impl CommandLineReader {
    fn line(&self, place: usize, text: String) -> Rc<SourceLine> {
        Rc::new(SourceLine {
            path: Rc::clone(&self.path),
            number: u32::try_from(place + 1).unwrap_or(u32::MAX),
            text,
            order: place,
            on_command_line: true,
        })
    }

    /// Takes one argument; `true` when the next one is its value.
    fn take(&mut self, place: usize, argument: &str, next: Option<&str>) -> bool {
        let Some(option) = argument
            .strip_prefix("--")
            .or_else(|| argument.strip_prefix('-'))
        else {
            let line = self.line(place, argument.to_owned());
            let message = "not an option; a job file is read with 'fathom job show'";
            self.report.error(&line, 0..argument.len(), message);
            return false;
        };
        let dashes = argument.len() - option.len();
        let (name, mut value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        if name.is_empty() {
            return false;
        }
        let program = PROGRAM.iter().find(|own| own.trim_end_matches('=') == name);
        let wants = match program {
            Some(own) => own.ends_with('='),
            None => takes_value(name),
        };
        let taken = value.is_none() && wants && next.is_some();
        let mut text = argument.to_owned();
        let mut at = dashes + name.len() + 1;
        if taken {
            value = next;
            text = format!("{argument} {}", next.unwrap_or_default());
            at = argument.len() + 1;
        }
        let line = self.line(place, text);
        if program.is_some() {
            let message =
                format!("--{name} is an option of the program fio, not of a job; left out");
            self.report.warning(&line, 0..argument.len(), message);
        } else if name == "name" {
            self.section(&line, value.unwrap_or_default());
        } else {
            self.option(&line, dashes..dashes + name.len(), value, at);
        }
        taken
    }

    fn section(&mut self, line: &Rc<SourceLine>, name: &str) {
        if name.is_empty() {
            self.report
                .error(line, 0..line.text.len(), "a job without a name");
        }
        if name.contains([']', '\n']) || name.trim() != name {
            let message = "a name that a job file cannot hold";
            self.report.error(line, 0..line.text.len(), message);
        }
        self.begin(line, name);
    }

    fn begin(&mut self, line: &Rc<SourceLine>, name: &str) {
        if let Some(before) = self.file.sections.last_mut() {
            before.entries.push(JobLine::Comment(String::new()));
        }
        self.file.sections.push(Section {
            name: name.to_owned(),
            origin: line.origin(0),
            entries: Vec::new(),
        });
        self.headers.push(Rc::clone(line));
        self.written.push(Vec::new());
    }

    fn option(
        &mut self,
        line: &Rc<SourceLine>,
        name_at: std::ops::Range<usize>,
        value: Option<&str>,
        value_at: usize,
    ) {
        if self.file.sections.is_empty() {
            self.begin(line, "global");
        }
        let name = full_name(&line.text[name_at.clone()]);
        let option = JobOption {
            name: name.to_owned(),
            value: value.map(str::to_owned),
            origin: line.origin(0),
        };
        let text = argument(&option)[2..].to_owned();
        if !reads_back(&text) {
            let message =
                "a job file cannot hold this: fio cuts its lines at ; and #, and replaces $ words";
            self.report
                .add(Severity::Error, line, 0..line.text.len(), message, None);
        }
        let written = WrittenOption {
            option: option.clone(),
            line: Rc::clone(line),
            name: name_at,
            value: value_at.min(line.text.len())..line.text.len(),
            verbatim: true,
        };
        if let (Some(section), Some(options)) =
            (self.file.sections.last_mut(), self.written.last_mut())
        {
            section.entries.push(JobLine::Option { option, text });
            options.push(written);
        }
    }

    fn finish(mut self, args: &[String]) -> CheckedJobFile {
        check::sections(&self.file, &self.headers, &self.written, &mut self.report);
        if !self
            .file
            .sections
            .iter()
            .any(|section| !section.is_global())
        {
            let line = self.line(args.len(), args.join(" "));
            let message = "no job: a job begins with --name=NAME";
            self.report.error(&line, 0..0, message);
        }
        CheckedJobFile {
            diagnostics: self.report.finish(),
            file: self.file,
        }
    }
}

/// Whether fio takes the next argument for this option's value.
fn takes_value(name: &str) -> bool {
    name == "name"
        || table()
            .find(full_name(name))
            .next()
            .is_some_and(|spec| spec.kind != ValueKind::Flag)
}

/// An option's beginning stands for it where it fits only one.
fn full_name(name: &str) -> &str {
    if table().find(name).next().is_some() {
        return name;
    }
    let mut fitting: Vec<&'static str> = table()
        .names()
        .filter(|full| full.starts_with(name))
        .collect();
    fitting.sort_by_key(|full| table().canonical(full));
    fitting.dedup_by_key(|full| table().canonical(full).to_owned());
    match fitting[..] {
        [only] => only,
        _ => name,
    }
}
