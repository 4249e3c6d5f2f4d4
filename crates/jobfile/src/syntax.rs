//! Lines into sections and options, files included in their place.
//!
//! The rules are fio 3.33's, found by running it: a line ends at the first `;`
//! or `#`; blanks around it, around names and before `=` do not count, those
//! after `=` belong to the value; `include FILE` stands for the lines of FILE,
//! looked for as given and then beside the including file.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fathom_model::JobOption;

use super::diagnostic::Severity;
use super::environment::named;
use super::expand::{Arithmetic, Expanded, expand};
use super::source::MAX_BYTES;
use super::table::table;
use super::written::{FindingList, SourceLine, WrittenOption};
use super::{CheckedJobFile, JobFile, JobLine, Section, Sources, check};
use crate::variables;

/// fio cuts longer lines in two (8 KiB buffers since 3.2x, found by running it).
const MAX_LINE: usize = 8191;
/// init.c reads a section's name into 256 bytes.
const MAX_NAME: usize = 255;
/// Files that include each other deeper than this do so by mistake.
const MAX_DEPTH: usize = 16;
/// fio's own limit of jobs (its --max-jobs; REAL_MAX_JOBS in fio.h).
const MAX_SECTIONS: usize = 4096;
/// Options of all jobs with their globals; bounds what [`JobFile::jobs`] makes.
const MAX_RESOLVED: usize = 1 << 20;

/// Parses a job file.
pub fn parse(bytes: &[u8], path: &Path, sources: &dyn Sources) -> CheckedJobFile {
    let mut parser = JobFileParser {
        sources,
        report: FindingList::default(),
        file: JobFile::empty(path),
        written: Vec::new(),
        headers: Vec::new(),
        open: vec![path.to_owned()],
        budget: MAX_BYTES,
        order: 0,
        resolved: 0,
        globals: 0,
    };
    parser.read(bytes, path);
    parser.finish()
}

struct JobFileParser<'s> {
    sources: &'s dyn Sources,
    report: FindingList,
    file: JobFile,
    /// Options of each section, as `file.sections`.
    written: Vec<Vec<WrittenOption>>,
    /// Header of each section.
    headers: Vec<Rc<SourceLine>>,
    /// Files being read, the outermost first.
    open: Vec<PathBuf>,
    budget: usize,
    order: usize,
    resolved: usize,
    globals: usize,
}

impl JobFileParser<'_> {
    fn finish(mut self) -> CheckedJobFile {
        check::sections(&self.file, &self.headers, &self.written, &mut self.report);
        if !self
            .file
            .sections
            .iter()
            .any(|section| !section.is_global())
        {
            let line = self.line(1, String::new(), self.file.path.clone().into());
            self.report.error(
                &line,
                0..0,
                "no job in this file: a job begins with its name in brackets, as [job1]",
            );
        }
        CheckedJobFile {
            diagnostics: self.report.finish(),
            file: self.file,
        }
    }

    fn line(&self, number: u32, text: String, path: Rc<PathBuf>) -> Rc<SourceLine> {
        Rc::new(SourceLine {
            path,
            number,
            text,
            order: self.order,
            on_command_line: false,
        })
    }

    fn read(&mut self, bytes: &[u8], path: &Path) {
        let path: Rc<PathBuf> = Rc::new(path.to_owned());
        if bytes.len() > self.budget {
            let line = self.line(1, String::new(), path);
            self.report.error(
                &line,
                0..0,
                format!(
                    "more than {} MiB of job file; nothing of it is read",
                    MAX_BYTES >> 20
                ),
            );
            return;
        }
        self.budget -= bytes.len();
        if bytes.is_empty() {
            return;
        }
        let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        for (number, raw) in (1u32..).zip(lines.split(|&byte| byte == b'\n')) {
            self.order += 1;
            let text = String::from_utf8_lossy(raw)
                .trim_end_matches('\r')
                .to_owned();
            let line = self.line(number, text, Rc::clone(&path));
            if let Err(error) = std::str::from_utf8(raw) {
                let at = error.valid_up_to();
                let place = at..at + '\u{fffd}'.len_utf8();
                let what = "not UTF-8: save the file as UTF-8";
                // fio reads bytes; in a comment they change nothing.
                if raw.trim_ascii_start().starts_with(b";")
                    || raw.trim_ascii_start().starts_with(b"#")
                {
                    self.report.warning(&line, place, what);
                } else {
                    self.report.error(&line, place, what);
                }
            }
            if raw.len() > MAX_LINE {
                self.report.error(
                    &line,
                    0..0,
                    format!(
                        "{} bytes in one line: fio cuts it after {MAX_LINE}",
                        raw.len()
                    ),
                );
            } else if !self.take(&line) {
                return;
            }
        }
    }

    /// Takes one line; `false` when a limit ends the reading.
    fn take(&mut self, line: &Rc<SourceLine>) -> bool {
        let nothing = |c: char| c.is_ascii_whitespace() || c.is_ascii_control();
        let mut all = line.text.trim_matches(nothing);
        if all.is_empty() || all.starts_with([';', '#']) {
            self.comment(all);
            return true;
        }
        let mut start = line.text.len() - line.text.trim_start_matches(nothing).len();
        if let Some(rest) = all.strip_prefix('\u{feff}').filter(|_| line.number == 1) {
            let message = "a byte order mark, which fio does not take: save the file without it";
            self.report.error(line, 0..3, message);
            all = rest.trim_start_matches(nothing);
            start = line.text.len() - line.text.trim_start_matches('\u{feff}').len();
        }
        let content = all
            .find([';', '#'])
            .map_or(all, |end| all[..end].trim_end_matches(nothing));
        if content.starts_with('[') {
            return self.header(line, content, start);
        }
        if self.file.sections.is_empty() {
            self.report.error(
                line,
                start..start + content.len(),
                "a line outside of a section: put it under [global] or a job",
            );
            return true;
        }
        if content.starts_with("include") {
            self.include(line, content, start);
            return true;
        }
        if content.len() < all.len() {
            self.cut_value(line, content, start);
        }
        self.option(line, all, content, start)
    }

    /// `;` and `#` end a line even inside a value.
    fn cut_value(&mut self, line: &SourceLine, content: &str, start: usize) {
        let end = start + content.len();
        let in_value = content.contains('=')
            && line.text[end..].starts_with([';', '#'])
            && !line.text[..end].ends_with(char::is_whitespace);
        if in_value {
            self.report.warning(
                line,
                end..line.text.trim_end().len(),
                "fio takes this for a comment, even inside a value",
            );
        }
    }

    fn comment(&mut self, text: &str) {
        match self.file.sections.last_mut() {
            Some(section) => section.entries.push(JobLine::Comment(text.to_owned())),
            None => self.file.preamble.push(text.to_owned()),
        }
    }

    fn header(&mut self, line: &Rc<SourceLine>, content: &str, start: usize) -> bool {
        let whole = start..start + content.len();
        if self.open.len() > 1 {
            self.report
                .error(line, whole, "a section in an included file");
            return true;
        }
        if self.file.sections.len() >= MAX_SECTIONS {
            self.report.error(
                line,
                whole,
                format!("more than {MAX_SECTIONS} sections; the rest is not read"),
            );
            return false;
        }
        let name = match content[1..].split_once(']') {
            None => {
                self.report.error(
                    line,
                    whole,
                    "the section's name is not closed with ]; fio takes another name for it",
                );
                &content[1..]
            }
            Some((name, "")) => name,
            Some((name, rest)) => {
                let at = start + 1 + name.len() + 1;
                self.report
                    .error(line, at..at + rest.len(), "text after the section's name");
                name
            }
        };
        if name.is_empty() {
            self.report.error(
                line,
                start..start + content.len(),
                "a section without a name",
            );
        } else if name.len() > MAX_NAME {
            self.report.error(
                line,
                start + 1..start + 1 + name.len(),
                format!(
                    "a name of {} bytes: fio cuts it after {MAX_NAME}",
                    name.len()
                ),
            );
        }
        self.file.sections.push(Section {
            name: name.to_owned(),
            origin: line.origin(start),
            entries: Vec::new(),
        });
        self.headers.push(Rc::clone(line));
        self.written.push(Vec::new());
        self.resolved += self.globals;
        self.within_limits(line)
    }

    /// Keeps what [`JobFile::jobs`] would make of the file bounded.
    fn within_limits(&mut self, line: &SourceLine) -> bool {
        let within = self.resolved <= MAX_RESOLVED;
        if !within {
            self.report.error(
                line,
                0..0,
                format!("more than {MAX_RESOLVED} options in all jobs; the rest is not read"),
            );
            self.file.sections.pop();
            self.headers.pop();
            self.written.pop();
        }
        within
    }

    fn option(&mut self, line: &Rc<SourceLine>, all: &str, content: &str, start: usize) -> bool {
        let limit = MAX_LINE.min(self.budget);
        let Some(expanded) = expand(content, limit, self.sources) else {
            self.report.error(
                line,
                start..start + content.len(),
                format!("more than {limit} bytes once its variables are replaced"),
            );
            return true;
        };
        self.unset(line, start, &expanded);
        self.file
            .variables
            .extend(named(content).map(str::to_owned));
        let verbatim = expanded.text == content;
        if !verbatim {
            self.budget -= expanded.text.len();
        }
        let (name, value) = split(&expanded.text);
        if let ("exec_prerun" | "exec_postrun", Some(command)) = (name, value) {
            // What the shell is told goes on with the same variables, too.
            let _ = variables::of_command(command);
        }
        let equals = content.find('=').map_or(content.len(), |at| at + 1);
        let written = WrittenOption {
            option: JobOption {
                name: name.to_owned(),
                value: value.map(str::to_owned),
                origin: line.origin(start),
            },
            line: Rc::clone(line),
            name: start..start + split(content).0.len(),
            value: start + equals..start + content.len(),
            verbatim,
        };
        if expanded.arithmetic == Some(Arithmetic::Impossible) {
            self.report.warning(
                line,
                written.value.clone(),
                "fio hands this to the calculator bc, which cannot compute it",
            );
        } else if expanded.arithmetic == Some(Arithmetic::Done) {
            self.megabytes(&written, content);
        }
        let text = match self.as_written(&expanded.text, content, line, start) {
            true => all,
            false => &expanded.text,
        };
        self.add(written, text.to_owned(), line)
    }

    /// Whether a line stays as it was written; the engine replaces its variables
    /// then.
    fn as_written(
        &mut self,
        expanded: &str,
        content: &str,
        line: &SourceLine,
        start: usize,
    ) -> bool {
        if expanded == content || self.sources.defers() {
            return true;
        }
        let kept = !reads_back(expanded);
        if kept && let Some(name) = named(content).find(|name| self.sources.is_given(name)) {
            let message = format!(
                "the value of {name} cannot stand in a job file: it has a ; or # in it, a control character, or a blank at its end"
            );
            self.report
                .error(line, start..start + content.len(), message);
        }
        kept
    }

    /// Tells of variables that are not set. fio puts nothing in their place and
    /// goes on; where they are a part of a path, that is another file: of
    /// `${DIR}/f` the one in the root.
    fn unset(&mut self, line: &SourceLine, start: usize, expanded: &Expanded) {
        let names_files = may_name_files(split(&expanded.text).0);
        for name in &expanded.unset {
            let at = line.text.find(&format!("${{{name}}}")).unwrap_or(start);
            let place = at..at + name.len() + 3;
            let what = match name.as_str() {
                "" => "${} names no variable".to_owned(),
                name => format!("{name} is not set"),
            };
            match names_files {
                true => {
                    let message = format!("{what}: without it this would be another path");
                    self.report.error(line, place, message);
                }
                false => {
                    let message = format!("{what}: nothing stands in its place");
                    self.report.warning(line, place, message);
                }
            }
        }
    }

    /// `size=2*$mb_memory` is a small number of bytes.
    fn megabytes(&mut self, written: &WrittenOption, content: &str) {
        let value = written.option.value.as_deref().unwrap_or_default();
        if content.contains("$mb_memory") && written.option.name.ends_with("size") {
            let message =
                format!("this is {value} bytes: $mb_memory counts MiB; multiply by 1048576");
            self.report
                .warning(&written.line, written.value.clone(), message);
        }
    }

    fn add(&mut self, written: WrittenOption, text: String, line: &SourceLine) -> bool {
        let (Some(section), Some(options)) =
            (self.file.sections.last_mut(), self.written.last_mut())
        else {
            return true;
        };
        section.entries.push(JobLine::Option {
            option: written.option.clone(),
            text,
        });
        options.push(written);
        if section.is_global() {
            self.globals += 1;
        }
        self.resolved += 1;
        self.within_limits(line)
    }

    fn include(&mut self, line: &Rc<SourceLine>, content: &str, start: usize) {
        let whole = start..start + content.len();
        let rest = &content["include".len()..];
        let name = rest.strip_prefix([' ', '\t', '=']).unwrap_or_default();
        if name.is_empty() || name.starts_with(char::is_whitespace) {
            let message = "write: include FILE, with one blank between";
            let meant = (!name.is_empty()).then(|| format!("include {}", name.trim()));
            self.report
                .add(Severity::Error, line, whole, message, meant);
            return;
        }
        let at = start + content.len() - name.len()..start + content.len();
        let (path, bytes) = self.find(name, line);
        if self.open.contains(&path) {
            self.report
                .error(line, at, format!("{} includes itself", path.display()));
            return;
        }
        if self.open.len() > MAX_DEPTH {
            self.report.error(
                line,
                at,
                format!("files include each other more than {MAX_DEPTH} deep"),
            );
            return;
        }
        match bytes {
            Ok(bytes) => {
                self.comment(&format!("; include {name}"));
                self.open.push(path.clone());
                self.read(&bytes, &path);
                self.open.pop();
            }
            Err(error) => {
                let why = match error.kind() {
                    ErrorKind::NotFound => "there is no such file".to_owned(),
                    _ => error.to_string(),
                };
                let message = format!("cannot include {}: {why}", path.display());
                self.report.error(line, at, message);
            }
        }
    }

    /// The file as named, else beside the including one.
    fn find(&self, name: &str, line: &SourceLine) -> (PathBuf, std::io::Result<Vec<u8>>) {
        let path = PathBuf::from(name);
        let found = self.sources.file(&path);
        let missing = found
            .as_ref()
            .is_err_and(|e| e.kind() == ErrorKind::NotFound);
        match line.path.parent() {
            Some(folder) if missing && !folder.as_os_str().is_empty() => {
                let beside = folder.join(name.trim_start_matches('/'));
                let found = self.sources.file(&beside);
                (beside, found)
            }
            _ => (path, found),
        }
    }
}

/// Whether the value of an option may name a file. Of what is not known, it may.
fn may_name_files(option: &str) -> bool {
    let mut specs = table().find(option).peekable();
    specs.peek().is_none() || specs.any(|spec| spec.has("file"))
}

/// Name and value of an option.
fn split(content: &str) -> (&str, Option<&str>) {
    match content.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(value)),
        None => (content, None),
    }
}

/// Whether a line means the same when it is read again.
pub fn reads_back(text: &str) -> bool {
    !text.contains([';', '#'])
        && !text.contains("${")
        && !text.contains(char::is_control)
        && text.trim() == text
        && !text.starts_with(['['])
        && !text.starts_with("include")
        && text.len() <= MAX_LINE
        && !super::source::Keyword::ALL
            .iter()
            .any(|(word, _)| text.contains(word))
}

/// Names of sections that stand twice, with the first one's place.
pub fn repeated(sections: &[Section]) -> Vec<(usize, usize)> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut found = Vec::new();
    for (place, section) in sections.iter().enumerate() {
        if section.is_global() {
            continue;
        }
        match first.get(section.name.as_str()) {
            Some(&earlier) => found.push((place, earlier)),
            None => {
                first.insert(&section.name, place);
            }
        }
    }
    found
}
