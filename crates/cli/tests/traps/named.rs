//! Files that a user names and a command writes: never a device, never what stands behind
//! one, never what a link leads to in another folder.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;

use fathom_testkit::{LoopDevice, ProgramUnderTest, require};

const JOB: &str = "[a]\nrw=randread\nfilename=x\nsize=1g\nbs=4k\ntime_based\nruntime=3\n";

/// Every command that writes a file of a name that it is given, which stands at `@`.
const WRITERS: [&str; 12] = [
    "config savedefconfig @",
    "job run a.fio --engine sim -q --output-format=json --output @",
    "job run a.fio --engine sim -q --metrics-file @",
    "find a.fio --knee --to 2 --look 6s --probe 6s --engine sim -q --metrics-file @",
    "compare RUN1 RUN2 --html @",
    "history a --html @",
    "history a --svg @",
    "report RUN1 -o @",
    "report RUN1 --redact -o @",
    "runs archive RUN1 -o @",
    "query --db @ SELECT(1)",
    "cluster image @",
];

/// What a name can be that must stay as it is.
struct Traps {
    names: Vec<String>,
    device: LoopDevice,
    precious: std::path::PathBuf,
}

impl Traps {
    fn new(program: &ProgramUnderTest) -> Result<Self, String> {
        let device = LoopDevice::new(1 << 20)?;
        let elsewhere = program.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let precious = elsewhere.join("precious");
        fs::write(&precious, "precious").unwrap();
        symlink(&precious, program.path().join("away")).unwrap();
        symlink(device.path(), program.path().join("to-device")).unwrap();
        let name = device.path().file_name().unwrap();
        let backing = Path::new("/sys/block").join(name).join("loop/backing_file");
        let backing = fs::read_to_string(backing).unwrap().trim().to_owned();
        let names = vec![
            device.path().display().to_string(),
            backing,
            "away".to_owned(),
            "to-device".to_owned(),
        ];
        Ok(Self {
            names,
            device,
            precious,
        })
    }

    /// What is not as it was, if anything.
    fn fault(&self) -> Option<&'static str> {
        let kind = fs::symlink_metadata(self.device.path()).map(|meta| meta.file_type());
        let is_device = kind.is_ok_and(|kind| kind.is_block_device());
        let is_blank = || {
            fs::read(self.device.path())
                .unwrap()
                .iter()
                .all(|byte| *byte == 0)
        };
        match () {
            () if !is_device => Some("the device's node is gone"),
            () if !is_blank() => Some("the device was written to"),
            () if fs::metadata(&self.names[1]).map_or(0, |meta| meta.len()) != 1 << 20 => {
                Some("the file behind the device was replaced")
            }
            () if fs::read(&self.precious).unwrap() != b"precious" => {
                Some("what a link leads to was replaced")
            }
            () => None,
        }
    }
}

#[test]
fn no_command_writes_what_it_makes_over_a_device_or_through_a_link() {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.good(&["init", "."]);
    program.good(&["config", "defconfig", "debug-quick"]);
    program.file("a.fio", JOB);
    for _ in 0..2 {
        program.good(&["job", "run", "a.fio", "--engine", "sim", "-q"]);
    }
    let traps = require!(Traps::new(&program));
    let runs = program.records();
    let run = |n: usize| runs[n].file_name().unwrap().to_str().unwrap().to_owned();
    for writer in WRITERS {
        let line = writer.replace("RUN1", &run(0)).replace("RUN2", &run(1));
        for trap in &traps.names {
            let words: Vec<String> = line
                .split(' ')
                .map(|word| word.replace('@', trap))
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = program.run(&words);
            assert!(!output.status.success(), "{words:?}: {output:?}");
            assert_eq!(traps.fault(), None, "{words:?}: {output:?}");
        }
    }
    // The configuration itself is a link.
    for trap in &traps.names {
        let config = program.path().join(".config");
        fs::remove_file(&config).unwrap();
        symlink(trap, &config).unwrap();
        for words in [
            &["config", "defconfig", "debug-quick"][..],
            &["config", "set", "DUT_RUNTIME=3s"],
            &["config", "olddefconfig"],
        ] {
            let output = program.run(words);
            assert_eq!(traps.fault(), None, "{words:?} {trap}: {output:?}");
            assert!(!output.status.success(), "{words:?} {trap}: {output:?}");
        }
    }
}

#[test]
fn what_goes_to_the_standard_output_by_its_name_replaces_nothing() {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.file("a.fio", JOB);
    program.good(&["job", "run", "a.fio", "--engine", "sim", "-q"]);
    let before = fs::read_link("/dev/stdout").unwrap();
    let to = program.path().join("page.html");
    let mut report = program.command(&["report", "-q", "-o", "/dev/stdout"]);
    let report = report.stdout(fs::File::create(&to).unwrap()).status();
    assert!(report.unwrap().success());
    assert_eq!(fs::read_link("/dev/stdout").unwrap(), before);
    let page = fs::read_to_string(to).unwrap().to_lowercase();
    assert!(page.starts_with("<!doctype html>"), "{page:.100}");
}
