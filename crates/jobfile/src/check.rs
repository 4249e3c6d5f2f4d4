//! What a job file says against what fio takes: names, engines, repetitions,
//! and what a job lacks. Values are [`super::kind`]'s business.

use std::collections::HashMap;
use std::collections::HashSet;
use std::rc::Rc;

use super::diagnostic::Severity;
use super::kind;
use super::syntax::repeated;
use super::table::{Spec, ValueKind, nearest, table};
use super::written::{FindingList, SourceLine, WrittenOption};
use super::{JobFile, Section};
use fathom_model::io_engine::{Access, DEFAULT_IO_ENGINE, io_engine};
use fathom_model::value::{Base, size};

/// What an option's meaning depends on, as the options so far leave it.
#[derive(Debug, Clone)]
struct OptionContext {
    engine: String,
    profile: Option<String>,
    base: Base,
}

impl Default for OptionContext {
    fn default() -> Self {
        Self {
            // The default of fio's option ioengine on Linux.
            engine: DEFAULT_IO_ENGINE.to_owned(),
            profile: None,
            base: Base::default(),
        }
    }
}

impl OptionContext {
    /// fio takes these before the others, wherever they stand in the section.
    fn after(&self, options: &[WrittenOption]) -> Self {
        let mut context = self.clone();
        for option in options.iter().map(|written| &written.option) {
            match (option.name.as_str(), option.value.as_deref()) {
                ("ioengine", Some(value)) => context.engine = kind::engine_name(value).to_owned(),
                ("profile", Some(value)) => context.profile = Some(value.to_owned()),
                ("kb_base", Some("1000")) => context.base = Base::Decimal,
                ("kb_base", Some(_)) => context.base = Base::Binary,
                _ => {}
            }
        }
        context
    }

    fn applies(&self, spec: &Spec) -> bool {
        let profile = self.profile.as_deref();
        spec.is_general()
            || spec.engines.iter().any(|&owner| {
                owner == self.engine
                    || owner
                        .strip_prefix("profile:")
                        .is_some_and(|p| Some(p) == profile)
            })
    }
}

/// Checks every section, and every job as its globals leave it.
pub fn sections(
    file: &JobFile,
    headers: &[Rc<SourceLine>],
    written: &[Vec<WrittenOption>],
    report: &mut FindingList,
) {
    for (place, earlier) in repeated(&file.sections) {
        let name = &file.sections[place].name;
        let first = headers[earlier].number;
        let line = &headers[place];
        let message =
            format!("a second section [{name}], the first stands on line {first}: both run");
        report.add(Severity::Mistake, line, whole(line), message, None);
    }
    let mut globals: Vec<&WrittenOption> = Vec::new();
    let mut context = OptionContext::default();
    let mut told = HashSet::new();
    for ((section, header), options) in file.sections.iter().zip(headers).zip(written) {
        let inside = context.after(options);
        for written in options {
            option(written, &inside, report);
        }
        repeats(section, options, report);
        if section.is_global() {
            if section.name != "global" {
                let message = "fio takes every section that begins with 'global' for a global one";
                report.warning(header, whole(header), message);
            }
            globals.extend(options);
            context = inside;
        } else {
            let job = CheckedJob {
                section,
                header,
                options,
                globals: &globals,
            };
            job.check(&inside, &mut told, report);
        }
    }
}

/// The whole line without the blanks around it.
fn whole(line: &SourceLine) -> std::ops::Range<usize> {
    let start = line.text.len() - line.text.trim_start().len();
    start..line.text.trim_end().len().max(start)
}

fn option(written: &WrittenOption, context: &OptionContext, report: &mut FindingList) {
    let name = written.option.name.as_str();
    let mut specs = table().find(name).peekable();
    if specs.peek().is_none() {
        unknown(written, context, report);
        return;
    }
    let Some(spec) = table().find(name).find(|spec| context.applies(spec)) else {
        foreign(written, context, report);
        return;
    };
    if let Some(version) = spec.since {
        let later = if version == "?" {
            "later than 3.33".to_owned()
        } else {
            format!("{version} or later")
        };
        let message = format!("{name} needs a fio of version {later}");
        report.warning(&written.line, written.name.clone(), message);
    }
    let value = written.option.value.as_deref();
    for finding in kind::check(spec, name, value, context.base) {
        let at = match spec.kind {
            ValueKind::Deprecated => written.name.clone(),
            _ => written.part(&finding.fault),
        };
        let fault = finding.fault;
        report.add(
            finding.severity,
            &written.line,
            at,
            fault.message,
            fault.suggestion,
        );
    }
}

fn unknown(written: &WrittenOption, context: &OptionContext, report: &mut FindingList) {
    let name = written.option.name.as_str();
    let at = written.name.clone();
    if name.is_empty() {
        report.error(&written.line, at, "an option without a name");
        return;
    }
    // Options of engines this table does not know cannot be told from mistakes.
    let custom = io_engine(&context.engine).is_none();
    let meant = if report.is_full() {
        None
    } else {
        nearest(name, table().names())
    };
    let message = match (custom, meant) {
        (true, None) => format!(
            "unknown option {name} (of the engine {}?); kept as it is",
            context.engine
        ),
        (_, None) if written.line.on_command_line => format!(
            "unknown option {name}; kept as it is. Options behind '--' are fio's; those of \
             fathom itself stand before it"
        ),
        _ => format!("unknown option {name}; kept as it is"),
    };
    report.add(
        Severity::Warning,
        &written.line,
        at,
        message,
        meant.map(str::to_owned),
    );
}

/// An option of another engine or profile.
fn foreign(written: &WrittenOption, context: &OptionContext, report: &mut FindingList) {
    let name = &written.option.name;
    let owners: Vec<&str> = table()
        .find(name)
        .flat_map(|spec| spec.engines.iter().copied())
        .collect();
    let at = written.name.clone();
    if io_engine(&context.engine).is_none() {
        let message = format!(
            "{name} is an option of {}; kept for {}",
            listed(&owners),
            context.engine
        );
        report.warning(&written.line, at, message);
        return;
    }
    // fio takes the options of its profiles in any job; fio-tests' job files have
    // threads=1.
    if owners.iter().all(|owner| owner.starts_with("profile:")) {
        let message = format!(
            "{name} is an option of {}; it does nothing here",
            listed(&owners)
        );
        report.warning(&written.line, at, message);
        return;
    }
    let message = format!(
        "{name} is an option of {}, and this section uses {}",
        listed(&owners),
        context.engine
    );
    report.error(&written.line, at, message);
}

fn listed(owners: &[&str]) -> String {
    let mut words: Vec<String> = owners
        .iter()
        .map(|owner| match owner.strip_prefix("profile:") {
            Some(profile) => format!("the profile {profile}"),
            None => (*owner).to_owned(),
        })
        .collect();
    match words.pop() {
        Some(last) if words.is_empty() => last,
        Some(last) => format!("{} and {last}", words.join(", ")),
        None => String::new(),
    }
}

/// Options that set the same thing twice in one section.
fn repeats(section: &Section, options: &[WrittenOption], report: &mut FindingList) {
    let mut first: HashMap<&str, &WrittenOption> = HashMap::new();
    for written in options {
        let name = table().canonical(&written.option.name);
        // Each is the negation of the other.
        let name = if name == "buffered" { "direct" } else { name };
        let Some(earlier) = first.insert(name, written) else {
            continue;
        };
        if negation(written, earlier) {
            continue;
        }
        let spec = table().find(name).next();
        let then = place(&earlier.line, &written.line);
        let message = if spec.is_some_and(|spec| spec.has("adds")) {
            format!("{name} is given again: fio uses both, this one and that {then}")
        } else {
            format!(
                "set twice in [{}]: this overrides {} {then}",
                section.name, earlier.option.name
            )
        };
        report.warning(&written.line, written.name.clone(), message);
    }
}

/// Whether one is `direct`, the other `buffered`, and both say the same:
/// fio-tests' job files have `direct=1` and `buffered=0`.
fn negation(one: &WrittenOption, other: &WrittenOption) -> bool {
    let set = |written: &WrittenOption| match written.option.value.as_deref().map(str::trim) {
        None | Some("1") => Some(true),
        Some("0") => Some(false),
        Some(_) => None,
    };
    one.option.name != other.option.name
        && matches!((set(one), set(other)), (Some(one), Some(other)) if one != other)
}

fn place(line: &SourceLine, from: &SourceLine) -> String {
    match (line.on_command_line, line.path == from.path) {
        (true, _) => format!("in argument {}", line.number),
        (false, true) => format!("on line {}", line.number),
        (false, false) => format!("on line {} of {}", line.number, line.path.display()),
    }
}

/// A job with the globals above it.
struct CheckedJob<'w> {
    section: &'w Section,
    header: &'w SourceLine,
    options: &'w [WrittenOption],
    globals: &'w [&'w WrittenOption],
}

impl<'w> CheckedJob<'w> {
    fn all(&self) -> impl DoubleEndedIterator<Item = &'w WrittenOption> {
        self.globals.iter().copied().chain(self.options)
    }

    /// The option in effect, by its name or an alias.
    fn last(&self, name: &str) -> Option<&'w WrittenOption> {
        self.all()
            .rev()
            .find(|written| table().canonical(&written.option.name) == name)
    }

    /// What a job lacks as a whole. `told` keeps a global option from being
    /// reported once for every job.
    fn check(&self, context: &OptionContext, told: &mut HashSet<usize>, report: &mut FindingList) {
        self.size(context, report);
        self.files(report);
        let access = io_engine(&context.engine).map(|row| row.access);
        if let (Some(depth), Some(Access::Sync)) = (self.last("iodepth"), access)
            && depth
                .option
                .value
                .as_deref()
                .is_some_and(|v| size(v, Base::Binary).is_ok_and(|depth| depth > 1))
            && self.last("io_submit_mode").is_none()
            && told.insert(depth.line.order)
        {
            let message = format!("no effect: {} does one I/O at a time", context.engine);
            report.warning(&depth.line, depth.name.clone(), message);
        }
        if let Some(time_based) = self.last("time_based")
            && matches!(time_based.option.value.as_deref(), None | Some("1"))
            && self.last("runtime").is_none()
            && told.insert(time_based.line.order)
        {
            let message = "no effect without runtime";
            report.warning(&time_based.line, time_based.name.clone(), message);
        }
        if let (Some(percentage), Some(split)) = (
            self.last("cmdprio_percentage"),
            self.last("cmdprio_bssplit"),
        ) && told.insert(split.line.order)
        {
            let message = format!(
                "cannot be combined with cmdprio_percentage {}",
                place(&percentage.line, &split.line)
            );
            report.error(&split.line, split.name.clone(), message);
        }
    }

    /// Without a size and a file that could give one, fio can only go on with
    /// files of an earlier run.
    fn size(&self, context: &OptionContext, report: &mut FindingList) {
        const SOURCES: [&str; 9] = [
            "size",
            "filesize",
            "io_size",
            "filename",
            "opendir",
            "read_iolog",
            "fill_device",
            "profile",
            "filename_format",
        ];
        let access = io_engine(&context.engine).map(|row| row.access);
        let files = matches!(access, Some(Access::Sync | Access::Async));
        if files && !SOURCES.iter().any(|name| self.last(name).is_some()) {
            let name = &self.section.name;
            let message = format!(
                "[{name}] has neither size nor filename: fio fails unless the files of an earlier run are there"
            );
            report.warning(self.header, whole(self.header), message);
        }
    }

    /// Files of a global section stay in use beside the job's own.
    fn files(&self, report: &mut FindingList) {
        let named = |written: &&WrittenOption| written.option.name == "filename";
        if let (Some(own), Some(global)) = (
            self.options.iter().find(named),
            self.globals.iter().find(|written| named(written)),
        ) {
            let then = place(&global.line, &own.line);
            let message = format!("fio uses this file and the global one {then}");
            report.warning(&own.line, own.name.clone(), message);
        }
    }
}
