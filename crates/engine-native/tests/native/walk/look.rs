//! What can be seen of a job: its I/Os, files, results and system calls.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_engine::{Control, Engine as _, Outcome, Sink};
use fathom_engine_native::Native;
use fathom_model::{Event, JobResult, Latency};
use fathom_testkit::program;
use tempfile::TempDir;

use crate::native::iolog::{READ, WRITE, record};
use crate::native::{Seen, folder, request, try_run};

/// What an error begins with when this machine cannot show something.
pub(super) const CANNOT: &str = "cannot: ";

/// The folder of the job that [`one_job`] is to run.
const JOB: &str = "FATHOM_WALK_JOB";

/// What is looked at.
pub(super) enum See {
    /// Every I/O in its order: lines of the latency log without times.
    Ios,
    /// Lengths and content of the files it leaves, logs apart.
    Files,
    /// Names of the files it leaves.
    Names,
    /// How many different blocks of 4 KiB it leaves.
    Blocks,
    /// System calls of these names, each that differs once.
    Calls(&'static str),
    /// Whether there are any, and which.
    Figures,
    /// How it ends, and how many I/Os its jobs do.
    End,
    /// Of its first job.
    Result(fn(&JobResult) -> String),
    /// Nothing here, but in a test of this file below the crates' folder: what needs a
    /// machine with such a disk.
    Elsewhere(&'static str, &'static str),
    /// Anything else.
    Own(fn(&Case) -> Result<String, String>),
}

impl See {
    pub(super) fn look(&self, case: &Case) -> Result<String, String> {
        Ok(match self {
            Self::Ios => case.run_logged().ios(),
            Self::Files => case.run().files(),
            Self::Names => case.run().names().join(" "),
            Self::Blocks => case
                .run()
                .blocks()
                .iter()
                .collect::<BTreeSet<_>>()
                .len()
                .to_string(),
            Self::Calls(names) => {
                let calls: BTreeSet<String> = case.calls(names)?.into_iter().collect();
                calls.into_iter().collect::<Vec<_>>().join("\n")
            }
            Self::Figures => case.run().jobs().map(figures).collect(),
            Self::End => case.run().end(),
            Self::Result(of) => case.run().jobs().map(of).next().unwrap_or_default(),
            Self::Elsewhere(..) => return Err(format!("{CANNOT}it is another test's")),
            Self::Own(look) => look(case)?,
        })
    }
}

/// Looks at each event.
struct Watched<'a>(&'a mut dyn FnMut());

impl Sink for Watched<'_> {
    fn event(&mut self, _: Event) -> ControlFlow<()> {
        (self.0)();
        ControlFlow::Continue(())
    }
}

/// A job file.
pub(super) struct Case {
    text: String,
}

impl Case {
    pub(super) fn new(text: String) -> Self {
        Self { text }
    }

    pub(super) fn run(&self) -> Ran {
        self.run_in(folder())
    }

    /// Whether files must be there before the job.
    fn needs_files(&self) -> bool {
        ["iolog", "file_append"]
            .iter()
            .any(|name| self.text.contains(name))
    }

    fn run_in(&self, dir: TempDir) -> Ran {
        if self.needs_files() {
            lay_logs(dir.path());
        }
        let mut seen = Seen::default();
        let outcome = try_run(dir.path(), &self.text, &mut seen)
            .unwrap_or_else(|error| panic!("{}: {error}", self.text));
        Ran { dir, outcome, seen }
    }

    fn run_logged(&self) -> Ran {
        let logs = "[j]\nwrite_lat_log=x\nlog_offset=1\nlog_prio=1";
        Self::new(self.text.replace("[j]", logs)).run()
    }

    /// Runs it, and calls with each event.
    pub(super) fn run_watched(&self, look: &mut dyn FnMut()) {
        let dir = folder();
        let job_file = dir.path().join("job.fio");
        std::fs::write(&job_file, &self.text).unwrap();
        let request = request(job_file, dir.path());
        let outcome = Native::new().run(&request, &Control::default(), &mut Watched(look));
        assert_eq!(outcome.unwrap(), Outcome::Complete);
    }

    pub(super) fn with(&self, what: &str, instead: &str) -> Self {
        Self::new(self.text.replace(what, instead))
    }

    /// The system calls of these names, of each thread in its order, without what differs
    /// between two runs.
    pub(super) fn calls(&self, names: &str) -> Result<Vec<String>, String> {
        let strace = program("strace").map_err(|why| format!("{CANNOT}{why}"))?;
        let (dir, traces) = (folder(), folder());
        if self.needs_files() {
            lay_logs(dir.path());
        }
        std::fs::write(dir.path().join("job.fio"), &self.text).unwrap();
        // A name with a question mark may be unknown to this processor.
        let names: Vec<_> = names.split(',').map(|name| format!("?{name}")).collect();
        let output = Command::new(strace)
            .args(["-ff", "-qq", "-s", "24", "-e", "signal=none", "-e"])
            .arg(format!("trace={}", names.join(",")))
            .arg("-o")
            .arg(traces.path().join("t"))
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "native::walk::look::one_job", "--test-threads=1"])
            .env(JOB, dir.path())
            .output()
            .unwrap();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(match said.contains("ptrace") {
                true => format!("{CANNOT}{}", said.trim()),
                false => format!("{}{said}", String::from_utf8_lossy(&output.stdout)),
            });
        }
        let place = dir.path().to_str().unwrap();
        let mut files: Vec<_> = std::fs::read_dir(traces.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort_unstable();
        let texts = files.iter().map(|file| std::fs::read(file).unwrap());
        let text: Vec<String> = texts
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .collect();
        let lines = text.iter().flat_map(|text| text.lines());
        Ok(lines.filter_map(|line| call(line, place)).collect())
    }

    /// The largest number that stands as an argument of these calls.
    pub(super) fn largest(&self, name: &str, argument: usize) -> Result<String, String> {
        let calls = self.calls(name)?;
        let number = |call: &String| call.split(", ").nth(argument)?.parse::<u64>().ok();
        Ok(format!("{:?}", calls.iter().filter_map(number).max()))
    }
}

/// Logs of I/Os: `ios` over 0.3 s, and two block traces.
fn lay_logs(dir: &Path) {
    let ios = "9 f add\n9 f open\n9 f write 8192 4096\n300009 f write 0 4096\n300009 f close\n";
    let trace = |kind, ios: [(u32, u32); 2]| {
        ios.map(|(sector, at)| record(u32::to_le_bytes, kind, sector, 512, at))
            .concat()
    };
    let files = [
        ("ios", format!("fio version 3 iolog\n{ios}").into_bytes()),
        ("early", trace(WRITE, [(1, 1000), (24, 3000)])),
        ("late", trace(READ, [(11, 1500), (41, 2000)])),
        ("f", vec![7; 128 << 10]),
        ("g", vec![7; 128 << 10]),
    ];
    for (name, content) in files {
        std::fs::write(dir.join(name), content).unwrap();
    }
}

/// A line of strace as it is in every run; `None`: of something that is not the job.
fn call(line: &str, place: &str) -> Option<String> {
    let name = line.split('(').next()?;
    let by_path = ["open", "stat", "unlink", "access", "mkdir"];
    if by_path.iter().any(|part| name.contains(part)) {
        // In a folder that is held, or what is held itself.
        let below = line[name.len()..].trim_start_matches('(');
        let held = below.starts_with(|first: char| first.is_ascii_digit())
            || line.contains("/proc/self/fd/");
        let own = held || line.contains(&format!("{place}/")) || line.contains("/scheduler");
        let ours = ["job.fio", "fio.out", ".log"]
            .iter()
            .any(|name| line.contains(name));
        if !own || ours {
            return None;
        }
    }
    match name {
        "read" | "write" if !line.contains(", 4096)") => return None,
        "mmap"
            if !["MAP_SHARED,", "MAP_HUGETLB"]
                .iter()
                .any(|flag| line.contains(flag)) =>
        {
            return None;
        }
        _ => {}
    }
    let mut line = line
        .rsplit_once(" = ")
        .map_or(line, |(call, _)| call)
        .trim_end()
        .replace(place, "DIR");
    if line.contains("/sys/") {
        line = line.split("/sys/").next().unwrap().to_owned()
            + line.rsplit_once("scheduler").unwrap().1;
    }
    if let Some((before, number)) = line.split_once("/proc/self/fd/") {
        let behind = number.trim_start_matches(|digit: char| digit.is_ascii_digit());
        line = format!("{before}HELD{behind}");
    }
    let mut shown = String::new();
    let mut rest = line.as_str();
    if name.starts_with('p') && name != "prctl" || matches!(name, "read" | "write") {
        // Data.
        if let (Some(from), Some(to)) = (rest.find('"'), rest.rfind('"')) {
            line.replace_range(from..=to, "D");
        }
        rest = &line;
    }
    while let Some(at) = rest.find("0x") {
        let behind = rest[at + 2..].trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
        write!(shown, "{}P", &rest[..at]).unwrap();
        rest = behind;
    }
    shown += rest;
    // Descriptors.
    let (head, tail) = shown.split_once('(')?;
    let number = tail.bytes().take_while(u8::is_ascii_digit).count();
    let descriptor = !matches!(
        name,
        "io_setup" | "io_uring_setup" | "sched_setaffinity" | "setpriority"
    );
    Some(match descriptor {
        true if number > 0 => format!("{head}(F{}", &tail[number..]),
        _ => shown,
    })
}

/// What [`Case::calls`] runs under strace.
#[test]
fn one_job() {
    if let Some(dir) = std::env::var_os(JOB) {
        let dir = Path::new(&dir);
        let text = std::fs::read_to_string(dir.join("job.fio")).unwrap();
        try_run(dir, &text, &mut Seen::default()).unwrap();
    }
}

/// What a run left.
pub(super) struct Ran {
    dir: TempDir,
    outcome: Outcome,
    seen: Seen,
}

impl Ran {
    pub(super) fn jobs(&self) -> impl Iterator<Item = &JobResult> {
        self.seen.results().jobs.iter()
    }

    pub(super) fn job(&self, place: usize) -> &JobResult {
        &self.seen.results().jobs[place]
    }

    /// A line of fio's normal output.
    pub(super) fn line(&self, with: &str) -> String {
        let text = std::fs::read_to_string(self.dir.path().join("fio.out")).unwrap();
        let line = text.lines().find(|line| line.contains(with));
        line.unwrap_or_default().to_owned()
    }

    pub(super) fn outcome(&self) -> Outcome {
        self.outcome
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| name != "job.fio" && name != "fio.out");
        names.sort_unstable();
        names
    }

    /// Names and content of the files that are no logs.
    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let names = self
            .names()
            .into_iter()
            .filter(|name| !name.contains(".log"));
        let with = |name: String| {
            let content = std::fs::read(self.dir.path().join(&name)).ok()?;
            Some((name, content))
        };
        names.filter_map(with).collect()
    }

    pub(super) fn blocks(&self) -> Vec<Vec<u8>> {
        let contents = self.contents();
        let blocks = contents
            .iter()
            .flat_map(|(_, content)| content.chunks(4096));
        blocks.map(<[u8]>::to_vec).collect()
    }

    fn files(&self) -> String {
        let mut text = String::new();
        for (name, content) in self.contents() {
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            writeln!(text, "{name} {} {:x}", content.len(), hasher.finish()).unwrap();
        }
        text
    }

    /// All lines of logs whose names begin with this, each as its fields.
    pub(super) fn log(&self, prefix: &str) -> Vec<Vec<String>> {
        let names = self
            .names()
            .into_iter()
            .filter(|name| name.starts_with(prefix));
        let texts = names.map(|name| std::fs::read_to_string(self.dir.path().join(name)).unwrap());
        let fields = |line: &str| {
            line.split(',')
                .map(|field| field.trim().to_owned())
                .collect()
        };
        texts
            .flat_map(|text| text.lines().map(fields).collect::<Vec<_>>())
            .collect()
    }

    fn ios(&self) -> String {
        let lines = self.log("x_lat");
        lines
            .iter()
            .map(|line| line[2..].join(",") + "\n")
            .collect()
    }

    fn end(&self) -> String {
        let mut text = format!("{:?}", self.outcome);
        for job in self.jobs() {
            let ios: Vec<_> = job
                .directions()
                .map(|(dir, of)| (dir, of.total_ios, of.io_bytes))
                .collect();
            write!(
                text,
                "\n{} {} {:?} {ios:?}",
                job.name, job.error, job.total_errors
            )
            .unwrap();
        }
        text
    }
}

/// Which figures a job shows.
fn figures(job: &JobResult) -> String {
    let kind = |latency: &Option<Latency>| match latency {
        None => "no",
        Some(latency) if latency.percentiles_ns.is_empty() => "yes",
        Some(_) => "percentiles",
    };
    let mut text = String::new();
    for (name, of) in [
        ("read", &job.read),
        ("write", &job.write),
        ("trim", &job.trim),
        ("mixed", &job.mixed),
    ] {
        let shown = of
            .as_ref()
            .map(|of| [&of.slat, &of.clat, &of.lat].map(kind));
        writeln!(text, "{name} {shown:?}").unwrap();
    }
    text
}
