//! How each kind of run is run shortly.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use fathom_testkit::{Lab, LoopDevice, ProgramUnderTest, skip};

use super::marks::Marks;
use super::values;
use crate::kills::copy;
use crate::writers::files;

const DRIVE: &str =
    "format = \"fathom-sim-device\"\nversion = 1\nbandwidth_mib = 3000\ncapacity_gib = 3\n";
const JOBS: &str = "[a]\nrw=randrw\nfilename=x\nsize=1g\nbs=4k\ntime_based\nruntime=3\n[b]\nrw=read\nfilename=x\nsize=64m\nbs=64k\n";
/// The file that a variable names.
pub const NAMED: &str = "${MYF}";
const SMALL: &str = "[a]\nrw=read\nfilename=x\nsize=64k\n[b]\nrw=read\nfilename=x\nsize=64k\n";
const DEEP: &str = "[a]\nrw=randread\nioengine=io_uring\nfilename=x\nsize=1m\n";
const GROUP: &str = "format = \"fathom-quick-group\"\nversion = 1\nname = \"tiny\"\nsize = \"1M\"\nruntime_s = 1\n[[series]]\ntests = [\n\
  { name = \"writes\", files = 1, engine = \"sync\", depth = 1, bs = \"64k\", rw = \"write\", init = true },\n\
  { name = \"reads\", files = 1, engine = \"sync\", depth = 1, bs = \"64k\", rw = \"read\", options = [\"rate_iops=20\"] },\n\
]\n";
const SNIA: &str = "engine = \"sim\"\nsim = \"sim.toml\"\n[target]\npath = \"/dev/nvme9n1\"\n[[step]]\nsnia = \"TEST\"\ndebug = true\n";
/// A simulated drive under a name that no machine of ours has.
const DEVICE: &str = "/dev/nvme9n1";
const SIM: &str = "--engine sim --sim sim.toml";

/// A kind of run.
pub struct KindOfRun {
    /// Its command.
    pub name: String,
    command: Vec<String>,
    /// What it needs, and a plan file with it as a step.
    base: String,
    pub plan: Option<String>,
    /// Of kinds that know no simulation.
    device: Option<LoopDevice>,
    is_on_hosts: bool,
    /// The options of its command.
    pub options: Vec<String>,
    /// What was left without an option, by the way to run.
    known: BTreeMap<String, Marks>,
}

impl KindOfRun {
    /// As a run on this machine; `None`, and told, where it has not the device for it.
    pub fn of(command: &[String]) -> Option<Self> {
        let name = command.join(" ");
        let is_real = ["prio", "run", "tune", "purge"].contains(&&*name);
        Self::on_a_device(command, is_real)
    }

    fn on_a_device(command: &[String], is_real: bool) -> Option<Self> {
        let name = command.join(" ");
        let (base, plan) = base(&name);
        let device = match is_real.then(|| LoopDevice::new(4 << 20)).transpose() {
            Ok(device) => device,
            Err(reason) => {
                skip(&format!("matrix: fathom {name}"), &reason);
                return None;
            }
        };
        let path = device
            .as_ref()
            .map_or(DEVICE.to_owned(), |it| it.path().display().to_string());
        Some(Self {
            command: command.to_vec(),
            base: base.replace("DEVICE", &path).replace("SIM", SIM),
            device,
            is_on_hosts: false,
            plan: plan.map(|it| {
                it.replace("DEVICE", &path)
                    .replace("TEST", &command[command.len() - 1])
            }),
            known: BTreeMap::new(),
            options: super::options(command),
            name,
        })
    }

    /// Its command line with these words more.
    pub fn words(&self, args: &[String]) -> Vec<String> {
        let option = args.first().map(String::as_str).unwrap_or_default();
        let mut words = self.command.clone();
        let mut given = self.base.split_whitespace().peekable();
        while let Some(word) = given.next() {
            // The value that is tried stands for the one that it has.
            let is_tried = word == option || (option == "--engine" && word == "--sim");
            if is_tried && word.starts_with("--") {
                if given.peek().is_some_and(|next| !next.starts_with("--")) {
                    given.next();
                }
                continue;
            }
            words.push(word.replace('~', " "));
        }
        words.extend(args.iter().cloned());
        words
    }

    /// The device that its words name, if they name one.
    pub fn named_device(&self) -> Option<&Path> {
        let path = self.device.as_ref()?.path();
        let name = path.to_str().unwrap();
        (self.base.contains(name) || self.name == "run").then_some(path)
    }

    /// Whether a run takes minutes, however it is asked for.
    pub fn is_long(&self) -> bool {
        self.name == "tune"
    }

    /// What confirms it once more when it goes on.
    pub fn confirmed(&self) -> Vec<String> {
        let words = self.base.split_whitespace();
        let from = words.skip_while(|word| self.name != "purge" || *word != "--destroy");
        from.take(2).map(str::to_owned).collect()
    }

    /// As a run on hosts, where no simulation runs; `None` where there is none.
    pub fn on_hosts(command: &[String]) -> Option<Self> {
        let mut kind = Self::of(command)?;
        let path = kind
            .device
            .as_ref()
            .map(|it| it.path().display().to_string());
        let base = match &*kind.name {
            "job run" => "small.fio --engine native",
            "repeat" => "small.fio --times 2 --engine native",
            "soak" => "small.fio --hours 0.0003 --period 1s --engine native",
            "find" => "deep.fio --knee --to 1 --look 1s --probe 1s --max-time 2s --engine native",
            "ab" => {
                "small.fio --b a.bs=8k --each 1s --seed 1 --pairs 6 --max-time 2s --engine native"
            }
            "run" => "--engine native --max-time 3s --destroy DEVICE=4MiB",
            "quick" | "prio" => return Some(kind),
            _ => return None,
        };
        kind.base = base.replace("DEVICE", path.as_deref().unwrap_or_default());
        kind.is_on_hosts = true;
        Some(kind)
    }

    /// As a run that has not been told by which engine; `None` where it has none.
    pub fn of_any_engine(command: &[String]) -> Option<Self> {
        let mut kind = Self::on_a_device(command, true)?;
        if !kind.options.iter().any(|option| option == "engine") {
            return None;
        }
        let base = kind.base.replace(SIM, "").replace("--engine native", "");
        kind.base = base.replace("a.fio --knee", "deep.fio --knee");
        if kind.base.contains("/dev/") || kind.name == "run" {
            let device = kind.device.as_ref()?.path().display();
            kind.base = format!("{} --destroy {device}=4MiB", kind.base);
        }
        kind.is_on_hosts = true;
        Some(kind)
    }

    /// A plan file has no such step, and says so.
    pub fn has_no_step(&self) {
        let place = Place::new(self);
        let step = format!("engine = \"native\"\n[[step]]\n{} = \"a.fio\"\n", self.name);
        place.file("study.toml", &step);
        let output = place.run(&["run", "study.toml"].map(str::to_owned));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(told.contains(&format!("not {}", self.name)), "{told}");
    }

    /// The words with which an option is tried.
    pub fn tried(&self, option: &str) -> Vec<String> {
        let own = format!("host {}", self.name);
        let names = [&*own, &self.name];
        values::of(&names[usize::from(!self.is_on_hosts)..], option)
    }

    /// What is left without an option, in this way to run.
    pub fn marks_without(&mut self, way: &str, run: &dyn Fn(&Self, &Place) -> Output) -> Marks {
        if let Some(known) = self.known.get(way) {
            return known.clone();
        }
        let place = Place::new(self);
        let output = run(self, &place);
        let told = || format!("{way} {}: {output:#?}", self.name);
        // A limit may have ended it.
        let is_limited = self.base.contains("--max-time");
        let is_good = output.status.success() || (is_limited && !place.records().is_empty());
        assert!(is_good, "{}", told());
        let marks = Marks::of(&place, &output);
        self.known.insert(way.to_owned(), marks.clone());
        marks
    }

    /// The plan file with a line more: in its step, and in the file.
    pub fn plans_with(&self, line: &str) -> [String; 2] {
        let plan = self.plan.as_deref().unwrap();
        [format!("{plan}{line}\n"), format!("{line}\n{plan}")]
    }
}

/// What each kind needs for a short run, and a plan file with such a step.
fn base(name: &str) -> (&'static str, Option<&'static str>) {
    match name {
        "job run" => (
            "a.fio SIM",
            Some("engine = \"sim\"\nsim = \"sim.toml\"\n[[step]]\njob = \"a.fio\"\n"),
        ),
        "quick" => (
            "here . --group tiny.toml --engine native --no-baseline",
            Some("engine = \"native\"\n[[step]]\nquick = \".\"\ngroup = \"./tiny.toml\"\n"),
        ),
        "run" => (
            "SIM",
            Some(
                "engine = \"sim\"\nsim = \"sim.toml\"\n[target]\npath = \"/dev/nvme9n1\"\n[[step]]\ncampaign = \".\"\nname = \"all\"\n",
            ),
        ),
        "provision" => ("DEVICE SIM", None),
        "snia iops" | "snia throughput" | "snia latency" | "snia wsat" => {
            ("DEVICE --debug SIM", Some(SNIA))
        }
        "prio" => (
            "--dev DEVICE --baseline --bs 4k --ramptime 0 --runtime 1 --qds 1 --engine native",
            Some(
                "engine = \"native\"\n[target]\npath = \"DEVICE\"\n[[step]]\nprio = \"baseline\"\nbs = \"4k\"\nramptime = 0\nruntime = 1\nqds = [1]\n",
            ),
        ),
        "repeat" => ("a.fio --times 2 SIM", None),
        "soak" => ("a.fio --hours 0.01 --period 12s SIM", None),
        "find" => ("a.fio --knee --to 2 --look 2s --probe 4s SIM", None),
        "ab" => (
            "a.fio --b a.iodepth=2 --each 3s --seed 1 --pairs 6 SIM",
            None,
        ),
        "tune" => (
            "DEVICE --for randread~4k~at~iops --each 1s --pairs 6 --engine native",
            None,
        ),
        "purge" => (
            "DEVICE --destroy DEVICE=4MiB",
            Some(
                "engine = \"native\"\ndestroy = [\"DEVICE=4MiB\"]\n[target]\npath = \"DEVICE\"\n[[step]]\npurge = \"auto\"\n",
            ),
        ),
        _ => panic!("how is fathom {name} run shortly?"),
    }
}

/// A folder to run in.
pub struct Place(ProgramUnderTest);

impl Place {
    pub fn new(kind: &KindOfRun) -> Self {
        let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
        program.file("sim.toml", DRIVE);
        program.file("fast.toml", &DRIVE.replace("3000", "5000"));
        program.file("a.fio", JOBS);
        program.file("small.fio", SMALL);
        program.file("deep.fio", DEEP);
        program.file("tiny.toml", GROUP);
        if ["run", "provision"].contains(&&*kind.name) {
            copy(campaign(), program.path());
            if let Some(device) = kind.device.as_ref().filter(|_| kind.is_on_hosts) {
                let dut = format!("DUT_FILENAME={}", device.path().display());
                program.good(&["config", "set", &dut, "STEADY_STATE_PROVISIONING=n"]);
            }
        }
        Self(program)
    }

    pub fn run(&self, words: &[String]) -> Output {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.0.run(&words)
    }

    /// Runs it where variables have these values.
    pub fn run_with(&self, variables: &[(&str, &str)], words: &[String]) -> Output {
        let mut command = self.command(words);
        command.envs(variables.iter().copied()).output().unwrap()
    }

    /// Its command, to be run in some other way.
    pub fn command(&self, words: &[String]) -> Command {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.0.command(&words)
    }

    /// Runs it with the hosts of a lab.
    pub fn run_on(&self, lab: &Lab, words: &[String]) -> Output {
        let mut command = self.command(words);
        command.env("FATHOM_SSH", lab.command()).output().unwrap()
    }

    /// Has the jobs name their file by a variable.
    pub fn name_by_variable(&self) {
        self.0.file(
            "a.fio",
            &JOBS.replace("filename=x", &format!("filename={NAMED}")),
        );
    }

    /// Takes what another one has.
    pub fn be(&self, other: &Self) {
        copy(other.0.path(), self.0.path());
    }

    pub fn file(&self, name: &str, text: &str) {
        self.0.file(name, text);
    }

    pub fn records(&self) -> Vec<PathBuf> {
        self.0.records()
    }

    /// Names of its files but those of records and of the state.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        let mut all = Vec::new();
        files(self.0.path(), Path::new(""), &mut all);
        let is_kept = |name: &PathBuf| name.starts_with("fathom-runs") || name.starts_with("state");
        all.into_iter().filter(|name| !is_kept(name)).collect()
    }
}

/// The folder of a short campaign, made once.
fn campaign() -> &'static Path {
    static MADE: OnceLock<ProgramUnderTest> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
        program.good(&["init", "."]);
        program.good(&["config", "defconfig", "debug-quick"]);
        program.good(&["config", "set", "DUT_TEST_MAX_IODEPTH=2", "DUT_RUNTIME=2s"]);
        program
    });
    made.path()
}
