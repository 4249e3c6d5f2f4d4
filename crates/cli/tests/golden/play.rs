//! A folder in which commands are run, and the transcript of what came of them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use fathom_record::Record;
use fathom_testkit::ProgramUnderTest;
use serde_json::Value;

use super::normal::{hash, normal};

/// Of a longer event the rest is a hash.
const LINE_MAX: usize = 400;
/// Of lines of samples behind each other the rest is a hash.
const SAMPLES_MAX: usize = 4;
/// Of the steps of a stage the rest is a hash each.
const STEPS_MAX: usize = 2;
/// Of a longer document or file the rest is a hash.
const OUTPUT_MAX: usize = 6 << 10;

/// A healthy device, and what is written behind its first lines.
pub const SIM: &str = "format = \"fathom-sim-device\"\nversion = 1\n";

/// The fio that measures nothing.
pub fn played_fio() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/played-fio.sh")
}

/// Records of version 1, and the files with which they were made.
pub fn recorded(name: &str) -> PathBuf {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/records");
    records.join(name)
}

/// What is run, and what was said so far.
pub struct Play {
    program: ProgramUnderTest,
    told: String,
    /// What a device of this machine is called in the transcript.
    called: Vec<(String, &'static str)>,
    /// Files by their text: one that is there again is named.
    texts: HashMap<String, String>,
}

impl Deref for Play {
    type Target = ProgramUnderTest;

    fn deref(&self) -> &ProgramUnderTest {
        &self.program
    }
}

impl Play {
    /// With the job files and a healthy device `sim.toml`.
    pub fn new() -> Self {
        // Lines are cut by their length, and so is a path in them.
        let mut program = ProgramUnderTest::below(env!("CARGO_BIN_EXE_fathom"), Path::new("/tmp"));
        program.set("FATHOM_FIO", played_fio());
        program.set("DEV", "/dev/nvme9n1");
        program.set("TZ", "UTC");
        // A machine of which nothing can be read: what this one does is in no transcript.
        program.set("FATHOM_SYS", "/nonexistent");
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "COLUMNS", "FATHOM_SSH"] {
            program.unset(name);
        }
        let play = Self {
            program,
            told: String::new(),
            called: Vec::new(),
            texts: HashMap::new(),
        };
        for name in ["one.fio", "two.fio", "null.fio", "group.toml"] {
            fs::copy(recorded(name), play.path().join(name)).unwrap();
        }
        play.device("sim.toml", "");
        play
    }

    /// A simulated device.
    pub fn device(&self, name: &str, how: &str) {
        self.file(name, &format!("{SIM}{how}"));
    }

    /// From here on the transcript has this device, and the file behind it, by
    /// names that every machine gives it.
    pub fn called_loop(&mut self, device: &Path) {
        let name = device.file_name().unwrap().to_str().unwrap();
        let behind = format!("/sys/block/{name}/loop/backing_file");
        let behind = fs::read_to_string(behind).unwrap();
        self.called = vec![
            (behind.trim_end().to_owned(), "IMAGE"),
            (name.to_owned(), "loop"),
        ];
    }

    /// What of a text is the same on every machine.
    fn normal(&self, text: &str) -> String {
        let text = normal(text, self.program.path());
        let called = self.called.iter();
        called.fold(text, |text, (own, name)| text.replace(own, name))
    }

    /// The campaign of eight points in a folder.
    pub fn campaign(&self, folder: &str) {
        self.good(&["init", "--force", folder]);
        self.good(&["config", "-C", folder, "defconfig", "debug-quick"]);
        self.set(
            folder,
            "DUT_TEST_MAX_IODEPTH=2 DUT_RUNTIME=2s GUARD=n PROFILE_RANDWRITE_70_30=n \
             PROFILE_RANDWRITE_97_3=n",
        );
    }

    /// Sets symbols of a campaign.
    pub fn set(&self, folder: &str, symbols: &str) {
        let words = ["config", "-C", folder, "set"];
        self.good(&[&words[..], &symbols.split_whitespace().collect::<Vec<_>>()].concat());
    }

    /// Runs a command to its end; words with blanks stand in quotes.
    pub fn run(&mut self, command: &str) {
        self.told_of(command, str::to_owned);
    }

    /// Runs one whose lines on stderr come in no order.
    pub fn run_of_many(&mut self, command: &str) {
        self.told_of(command, |text| {
            let mut lines: Vec<&str> = text.lines().collect();
            // What one of them says keeps its order.
            lines.sort_by_key(|line| line.split(' ').next());
            lines.join("\n") + "\n"
        });
    }

    fn told_of(&mut self, command: &str, order: impl Fn(&str) -> String) {
        let output = self.program.run(&words(command));
        let text = |bytes: &[u8]| self.normal(std::str::from_utf8(bytes).unwrap());
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let code = output.status.code().unwrap();
        self.head(&format!("fathom {command} → {code}"));
        let told = match stdout.starts_with(['{', '[']) {
            true => flat(&stdout),
            false => without_texts(&stdout),
        };
        self.add(&shortened(&told));
        if !stderr.is_empty() {
            self.head("stderr");
            self.add(&order(&stderr));
        }
    }

    fn head(&mut self, head: &str) {
        let head = self.normal(head);
        writeln!(self.told, "=== {head}").unwrap();
    }

    fn add(&mut self, text: &str) {
        self.told += text;
        if !text.is_empty() && !text.ends_with('\n') {
            self.told += "\n=== (without a newline)\n";
        }
    }

    /// The names of all files below a folder.
    pub fn tree(&mut self, below: &str) {
        self.head(&format!("files of {below}"));
        for file in self.files(below) {
            let name = self.normal(&file);
            self.add(&format!("{name}\n"));
        }
    }

    /// The text of all files below a folder whose names end so.
    pub fn texts(&mut self, below: &str, ending: &str) {
        for file in self.files(below) {
            if file.ends_with(ending) {
                let bytes = fs::read(self.path().join(&file)).unwrap();
                let text = String::from_utf8(bytes).unwrap();
                self.head(&format!("file {file}"));
                let is_second = text.len() == 11 && text.trim_end().parse::<u64>().is_ok();
                // Times in it are the same by now.
                let text = self.normal(&text);
                if let Some(same) = self.texts.get(&text) {
                    self.add(&format!("as {same}\n"));
                    continue;
                }
                if text.lines().count() > 1 {
                    let name = self.normal(&file);
                    self.texts.insert(text.clone(), name);
                }
                self.add(&if is_second {
                    "EPOCH\n".to_owned()
                } else {
                    shortened(&text)
                });
            }
        }
    }

    /// Paths of the files below a folder, sorted by what the transcript calls them.
    fn files(&self, below: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().join(below)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let below = path.strip_prefix(self.path()).unwrap();
                    found.push(below.to_str().unwrap().to_owned());
                }
            }
        }
        found.sort_by_key(|file| self.normal(file));
        found
    }

    /// The path of the only record in a folder.
    pub fn record(&self, runs: &str) -> String {
        let record = fs::read_dir(self.path().join(runs)).unwrap().next();
        record.unwrap().unwrap().path().to_str().unwrap().to_owned()
    }

    /// The events of all records in a folder, in the order of their names.
    pub fn events(&mut self, runs: &str) {
        let dir = self.path().join(runs);
        let mut records: Vec<PathBuf> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        // Those that began together may have begun in two seconds.
        records.sort_by_key(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.split_once('-').map(|(_, name)| name.to_owned())
        });
        for record in records {
            let record = Record::open(&record).unwrap();
            self.head(&format!("events of {}", record.id()));
            let told = self.normal(&events(&record));
            self.add(&compact(&told));
        }
    }

    /// Holds everything that was said against the snapshot of this name.
    #[track_caller]
    pub fn ends_as(self, name: &str) {
        insta::with_settings!({
            omit_expression => true,
            prepend_module_to_snapshot => false,
        }, {
            insta::assert_snapshot!(name, self.told);
        });
    }
}

fn words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (nth, part) in command.split('\'').enumerate() {
        match nth % 2 {
            0 => words.extend(part.split_whitespace()),
            _ => words.push(part),
        }
    }
    words
}

/// A document whose lists have a line for each entry, and its objects one for each field; what
/// stands deeper is in that line, of which a long one is a hash at its end.
fn flat(document: &str) -> String {
    const DEEPEST: usize = 4;
    let mut lines: Vec<String> = Vec::new();
    for line in document.lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        let is_end = text.starts_with(['}', ']']);
        match lines.last_mut() {
            Some(last) if depth > DEEPEST || depth == DEEPEST && is_end => {
                last.push(' ');
                last.push_str(text);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.iter().map(|line| within(line)).collect()
}

/// A dry run in which job files behind the first are hashes: their document has them, too.
fn without_texts(told: &str) -> String {
    let mut out = String::new();
    let mut texts = 0;
    let mut hidden = Hidden::default();
    let mut is_text = false;
    for line in told.lines() {
        let is_of_text = line.starts_with("#   ");
        texts += usize::from(is_of_text && !is_text);
        is_text = is_of_text;
        if is_text && texts > 1 {
            hidden.hide(line, 0, &mut out);
        } else {
            hidden.tell(&mut out, "lines of a job file");
            out += &format!("{line}\n");
        }
    }
    hidden.tell(&mut out, "lines of a job file");
    match told.ends_with('\n') {
        true => out,
        false => out.trim_end().to_owned(),
    }
}

/// A document without its middle, where it is long.
fn shortened(text: &str) -> String {
    if text.len() <= OUTPUT_MAX {
        return text.to_owned();
    }
    let begin = text.floor_char_boundary(OUTPUT_MAX);
    let begin = text[..begin].rfind('\n').unwrap_or(begin);
    let (begin, rest) = text.split_at(begin);
    format!("{begin}\n… {} bytes, {:016x}\n", rest.len(), hash(rest))
}

/// Header and events, a line each. Times of samples count from the begin of their step
/// where they are not the simulated device's alone: those of a real engine, and of a
/// job run, whose steps begin when they begin here.
fn events(record: &Record) -> String {
    let mut lines = vec![serde_json::to_string(&record.header).unwrap()];
    let (mut simulated, mut step_ms) = (true, None);
    let of_jobs = record.header.command == "job run";
    for entry in &record.entries {
        let line = serde_json::to_string(entry).unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        match event["event"].as_str() {
            Some("step") => step_ms = None,
            Some("engine_started") => simulated = event["engine"] == "sim" && !of_jobs,
            _ => {}
        }
        let Some(t_ms) = event["t_ms"].as_i64().filter(|_| !simulated) else {
            lines.push(line);
            continue;
        };
        let begin = *step_ms.get_or_insert(t_ms - event["span_ms"].as_i64().unwrap_or(0));
        let since = format!("\"t_ms\":{}", t_ms - begin);
        lines.push(line.replacen(&format!("\"t_ms\":{t_ms}"), &since, 1));
    }
    lines.join("\n") + "\n"
}

/// Long lines, many samples and the later steps of a stage are hashes at their end.
fn compact(events: &str) -> String {
    let is = |line: &str, kind: &str| line.contains(&format!("\"event\":\"{kind}\""));
    let mut out = String::new();
    let mut samples = Hidden::default();
    let mut steps = Hidden::default();
    let mut staged = None;
    for line in events.lines() {
        let begins = is(line, "step");
        if begins || is(line, "stage") || is(line, "stage_ended") || is(line, "ended") {
            samples.tell(&mut out, "samples and intervals");
            steps.tell(&mut out, "lines of the step");
        }
        match &mut staged {
            Some(steps) if begins => *steps += 1,
            _ if is(line, "stage") => staged = Some(0),
            _ if is(line, "stage_ended") => staged = None,
            _ => {}
        }
        let is_hidden = !is(line, "ended") && staged.is_some_and(|steps| steps > STEPS_MAX);
        if is_hidden && !begins {
            steps.hide(line, 0, &mut out);
        } else if is(line, "sample") || is(line, "interval") {
            samples.hide(line, SAMPLES_MAX, &mut out);
        } else {
            samples.tell(&mut out, "samples and intervals");
            out += &cut(line);
        }
    }
    samples.tell(&mut out, "samples and intervals");
    steps.tell(&mut out, "lines of the step");
    out
}

fn cut(line: &str) -> String {
    match line.contains("\"event\":") {
        true => within(line),
        false => format!("{line}\n"),
    }
}

/// A line whose rest is a hash where it is long.
fn within(line: &str) -> String {
    if line.len() <= LINE_MAX {
        return format!("{line}\n");
    }
    let (begin, rest) = line.split_at(line.floor_char_boundary(LINE_MAX));
    format!("{begin} … {} bytes, {:016x}\n", rest.len(), hash(rest))
}

/// Lines of a kind of which only the first are shown.
#[derive(Default)]
struct Hidden {
    shown: usize,
    lines: String,
}

impl Hidden {
    fn hide(&mut self, line: &str, shown_max: usize, out: &mut String) {
        if self.shown < shown_max {
            self.shown += 1;
            *out += &cut(line);
        } else {
            self.lines += line;
            self.lines.push('\n');
        }
    }

    fn tell(&mut self, out: &mut String, what: &str) {
        let Self { lines, .. } = std::mem::take(self);
        if !lines.is_empty() {
            let n = lines.lines().count();
            writeln!(out, "… {n} more {what}, {:016x}", hash(&lines)).unwrap();
        }
    }
}
