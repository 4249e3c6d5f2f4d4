//! Whatever would be lost is refused: traps in front of every command that writes,
//! with both engines. Contents are compared before and after.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fathom_model::FailureKind;
use fathom_testkit::{LoopDevice, ProgramUnderTest, SmallFs, require};

const SIZE: u64 = 16 << 20;
const ENGINES: [&str; 2] = ["fio", "native"];

mod elsewhere;
mod existing;
mod named;
mod replayed;
mod swapped;

fn program() -> ProgramUnderTest {
    ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"))
}

fn content(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open(path).unwrap();
    file.take(SIZE).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The word that confirms a device of [`SIZE`].
fn word(device: &Path) -> String {
    format!("{}=16M", device.display())
}

/// A process that has a path open for writing until it is dropped.
struct Writer(Child);

impl Writer {
    fn of(path: &Path) -> Self {
        let script = "exec 3<>\"$1\"; echo open; read -r end";
        let mut child = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.as_mut().unwrap());
        out.read_line(&mut line).unwrap();
        Self(child)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.stdin.take();
        let _ = self.0.wait();
    }
}

fn refused(program: &ProgramUnderTest, args: &[&str], reason: &str) {
    let output = program.run(args);
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{args:?}: {output:?}");
    assert!(told.contains(reason), "{args:?}: {told}");
    // It says itself what to do.
    assert!(!told.contains(FailureKind::Refused.advice()), "{told}");
}

/// `job run` on an engine.
fn job_run<'a>(engine: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    [&["job", "run", "--engine", engine], args].concat()
}

/// A job of fio's own options on an engine.
fn job<'a>(engine: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    [&job_run(engine, &["--"]), options].concat()
}

/// The commands that write to a device, each as it would write.
fn commands<'a>(device: &'a str, word: &'a str) -> Vec<Vec<&'a str>> {
    let mut all = vec![vec![
        "purge",
        device,
        "--method",
        "overwrite",
        "--destroy",
        word,
    ]];
    for engine in ENGINES {
        all.push(vec![
            "provision",
            device,
            "--workload",
            "seq",
            "--engine",
            engine,
            "--destroy",
            word,
        ]);
        all.push(vec![
            "snia",
            "iops",
            device,
            "--engine",
            engine,
            "--destroy",
            word,
        ]);
        all.push(vec![
            "prio",
            "--dev",
            device,
            "--baseline",
            "--rw",
            "randwrite",
            "--engine",
            engine,
            "--destroy",
            word,
        ]);
    }
    all
}

/// A job of each way to write to a path, and to read more of it than there is.
fn jobs(path: &str) -> Vec<Vec<String>> {
    let job = |options: &[&str]| -> Vec<String> {
        let start = ["--name=a", "--bs=4k"].iter().chain(options);
        start.map(|option| (*option).to_owned()).collect()
    };
    let of = |options: &[&str]| {
        let filename = format!("--filename={path}");
        job(&[&[filename.as_str()], options].concat())
    };
    vec![
        of(&["--rw=write", "--size=1m"]),
        of(&["--rw=randrw", "--size=1m"]),
        of(&["--rw=randtrim", "--size=1m"]),
        of(&["--rw=randread", "--size=1m", "--unlink=1"]),
    ]
}

fn no_job_writes(program: &ProgramUnderTest, path: &Path, more: &[&str], reason: &str) {
    let before = content(path);
    let shown = path.to_str().unwrap();
    for engine in ENGINES {
        for job in jobs(shown) {
            let job: Vec<&str> = job.iter().map(String::as_str).collect();
            let args = [more, &["--"], &job].concat();
            refused(program, &job_run(engine, &args), reason);
        }
    }
    assert!(content(path) == before, "{shown} has changed");
}

/// A campaign that would fill the device and write to it at random.
fn no_campaign_writes(program: &ProgramUnderTest, device: &str, more: &[&str], reason: &str) {
    if !program.path().join("campaign").exists() {
        program.good(&["init", "campaign"]);
        program.good(&["config", "-C", "campaign", "defconfig", "debug-quick"]);
    }
    let target = format!("DUT_FILENAME={device}");
    program.good(&["config", "-C", "campaign", "set", &target]);
    for engine in ENGINES {
        let args = ["run", "-C", "campaign", "--engine", engine];
        refused(program, &[&args[..], more].concat(), reason);
    }
}

fn nobody_writes(program: &ProgramUnderTest, device: &Path, reason: &str) {
    let before = content(device);
    let (shown, word) = (device.to_str().unwrap(), word(device));
    no_job_writes(program, device, &["--destroy", &word], reason);
    no_campaign_writes(program, shown, &["--destroy", &word], reason);
    for args in commands(shown, &word) {
        refused(program, &args, reason);
    }
    assert!(content(device) == before, "{shown} has changed");
}

#[test]
fn a_device_in_use_is_written_to_by_no_command() {
    let program = program();
    let mounted = require!(SmallFs::new(SIZE, "ro"));
    nobody_writes(&program, mounted.device(), "is mounted on");

    let open = require!(LoopDevice::new(SIZE));
    let writer = Writer::of(open.path());
    nobody_writes(&program, open.path(), "is open for writing in process");
    drop(writer);
    let writer = Writer::of(open.behind());
    no_job_writes(
        &program,
        open.path(),
        &["--destroy", &word(open.path())],
        "(sh)",
    );
    drop(writer);

    let below = require!(LoopDevice::new(SIZE));
    let _above = require!(LoopDevice::over(below.path()));
    nobody_writes(&program, below.path(), "is behind loop device");

    let table = require!(LoopDevice::new(SIZE));
    let made = Command::new("mkfs.ext4")
        .arg("-q")
        .arg(table.path())
        .status();
    assert!(made.unwrap().success());
    nobody_writes(&program, table.path(), "file system");
}

#[test]
fn the_file_behind_a_device_is_written_to_by_no_job() {
    let program = program();
    // Set up, but neither mounted nor open.
    let device = require!(LoopDevice::new(SIZE));
    no_job_writes(&program, device.behind(), &[], "is behind loop device");
    let mounted = require!(SmallFs::new(SIZE, "ro"));
    let behind = fs::read_to_string(
        Path::new("/sys/class/block")
            .join(mounted.device().file_name().unwrap())
            .join("loop/backing_file"),
    );
    let behind = PathBuf::from(behind.unwrap().trim());
    no_job_writes(&program, &behind, &[], "is mounted on");
    // By another name, and through a link.
    let other = behind.with_extension("hard");
    fs::hard_link(&behind, &other).unwrap();
    no_job_writes(&program, &other, &[], "is mounted on");
    let link = program.path().join("link");
    symlink(&other, &link).unwrap();
    no_job_writes(&program, &link, &[], "is mounted on");
    fs::remove_file(&other).unwrap();

    let file = program.file("database", "years of work");
    let _writer = Writer::of(&file);
    for engine in ENGINES {
        let options = ["--name=a", "--rw=write", "--size=1m", "--filename=database"];
        refused(
            &program,
            &job(engine, &options),
            "is open for writing in process",
        );
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "years of work");
}

/// fio unlinks a file that is too short for a reading job.
#[test]
fn a_reading_job_deletes_no_file() {
    let program = program();
    let device = require!(LoopDevice::new(SIZE));
    let image = device.behind().to_str().unwrap();
    let longer = [
        "--name=a",
        "--rw=randread",
        "--size=20m",
        "--filename",
        image,
    ];
    let before = content(device.behind());
    for engine in ENGINES {
        refused(&program, &job(engine, &longer), "is behind loop device");
    }
    assert!(content(device.behind()) == before);

    // A free one is made longer where it stands: it stays the file that it was.
    for engine in ENGINES {
        let free = program.file("free.img", &"x".repeat(1 << 20));
        let inode = fs::metadata(&free).unwrap().ino();
        let reads = [
            "--name=a",
            "--rw=read",
            "--bs=64k",
            "--size=2m",
            "--filename=free.img",
        ];
        let args = [&["job", "run", "--dry-run", "--"][..], &reads].concat();
        let told = program.good(&args);
        let told = String::from_utf8_lossy(&told.stdout);
        assert!(told.contains("1 MiB will be appended"), "{told}");
        program.good(&job(engine, &reads));
        let bytes = fs::read(&free).unwrap();
        assert_eq!(fs::metadata(&free).unwrap().ino(), inode, "{engine}");
        assert_eq!(bytes.len(), 2 << 20, "{engine}");
        assert!(
            bytes[..1 << 20].iter().all(|&byte| byte == b'x'),
            "{engine}"
        );
        fs::remove_file(&free).unwrap();
    }
}

/// A size that no disk has is not tried until the disk is full.
#[test]
fn no_file_is_made_longer_than_there_is_room() {
    let program = program();
    let file = program.file("short", "years of work");
    for engine in ENGINES {
        let told = program.run(&[
            "job",
            "run",
            "--engine",
            engine,
            "--",
            "--name=a",
            "--rw=read",
            "--filename=short",
            "--size=1024p",
        ]);
        let said = String::from_utf8_lossy(&told.stderr);
        assert_eq!(told.status.code(), Some(1), "{said}");
        assert!(said.contains("are free on its disk"), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "years of work");
    }
}

/// How a job can name a file without saying so.
const WAYS: [&[&str]; 10] = [
    &["--rw=write", "--size=1m", "--directory=d", "--filename=x"],
    &["--rw=write", "--size=1m"],
    &[
        "--rw=write",
        "--size=1m",
        "--numjobs=3",
        "--filename_format=x-$jobname-$jobnum",
    ],
    &[
        "--rw=read",
        "--size=1m",
        "--filename=new",
        "--write_iolog=trace",
    ],
    &[
        "--rw=read",
        "--size=1m",
        "--filename=new",
        "--write_lat_log=logs/l",
    ],
    &[
        "--rw=write",
        "--size=1m",
        "--filename=new",
        "--verify=crc32c",
    ],
    &[
        "--rw=read",
        "--size=1m",
        "--filename=new",
        "--exec_prerun=true",
    ],
    &[
        "--rw=read",
        "--size=1m",
        "--filename=new",
        "--verify=crc32c",
        "--verify_dump=1",
    ],
    &["--read_iolog=replay"],
    &["--rw=read", "--size=32m", "--directory=d", "--filename=x"],
];

/// All ways in which a job names files lead to the same judgement.
#[test]
fn however_a_job_names_a_file_it_is_judged() {
    let program = program();
    let device = require!(LoopDevice::new(SIZE));
    let image = device.behind();
    let before = content(image);
    let at = |path: &str| program.path().join(path);
    for folder in ["tree/deep", "d", "logs"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    fs::hard_link(image, at("tree/deep/x")).unwrap_or_else(|_| drop(symlink(image, at("d/tree"))));
    for link in [
        "d/x",
        "a.0.0",
        "x-a-0",
        "trace",
        "logs/l_lat.7.log",
        "local-a-0-verify.state",
        "a.prerun.txt",
        "new.8192.received",
    ] {
        symlink(image, at(link)).unwrap();
    }
    let log = format!(
        "fio version 2 iolog\n{0} add\n{0} open\n{0} write 0 4096\n{0} close\n",
        image.display()
    );
    program.file("replay", &log);
    for way in WAYS {
        let options = [&["--name=a"], way].concat();
        for engine in ["fio", "native"] {
            refused(&program, &job(engine, &options), "is behind loop device");
        }
    }
    if at("tree/deep/x").exists() {
        let options = ["--name=a", "--rw=write", "--size=1m", "--opendir=tree"];
        refused(&program, &job("fio", &options), "is behind loop device");
    }
    assert!(content(image) == before, "the image has changed");
    assert!(
        !at("new").exists(),
        "nothing is laid out before all is judged"
    );
}

#[test]
fn no_output_is_written_to_a_device() {
    let program = program();
    let device = require!(LoopDevice::new(SIZE));
    let before = content(device.path());
    let shown = device.path().to_str().unwrap();
    let job = ["--", "--name=a", "--rw=read", "--size=64k", "--filename=x"];
    let run = ["job", "run", "--output-format=json", "--output"];
    let to = |path: &str| program.run(&[&run[..], &[path], &job].concat());
    let told = to(shown);
    assert_eq!(told.status.code(), Some(4), "{told:?}");
    let missing = to("/dev/fathom-no-such");
    assert_eq!(missing.status.code(), Some(4), "{missing:?}");
    assert!(!Path::new("/dev/fathom-no-such").exists());
    let image = to(device.behind().to_str().unwrap());
    assert_eq!(image.status.code(), Some(4), "{image:?}");
    let read = [
        "job",
        "run",
        "-q",
        "--",
        "--name=a",
        "--rw=read",
        "--size=64k",
        "--filename=x",
    ];
    program.good(&read);
    let pages: [&[&str]; 6] = [
        &["report", "-o"],
        &["history", "--svg"],
        &["history", "--html"],
        &["runs", "archive", "a", "-o"],
        &[
            "cluster",
            "image",
            "--program",
            env!("CARGO_BIN_EXE_fathom"),
        ],
        &["query", "SELECT 1", "--db"],
    ];
    for page in pages {
        for to in [shown, device.behind().to_str().unwrap()] {
            refused(&program, &[page, &[to]].concat(), "");
        }
    }
    assert!(content(device.path()) == before);
    for good in ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1"] {
        let told = to(good);
        assert!(told.status.success(), "{good}: {told:?}");
    }
    let stdout = to("/dev/stdout").stdout;
    assert!(stdout.starts_with(b"{\n  \"fio version\""), "{stdout:?}");
}

/// fio's own options name files, too: a folder for verify states, and a file that it
/// waits for and removes.
#[test]
fn no_option_of_fio_itself_overwrites_or_removes_a_file_of_others() {
    let program = program();
    let device = require!(LoopDevice::new(SIZE));
    let before = content(device.behind());
    let folder = program.path().join("states");
    fs::create_dir(&folder).unwrap();
    symlink(device.behind(), folder.join("local-a-3-verify.state")).unwrap();
    let job = [
        "job",
        "run",
        "--engine",
        "fio",
        "--",
        "--name=a",
        "--rw=write",
        "--size=64k",
        "--filename=x",
        "--verify=crc32c",
    ];
    for aux in [&["--aux-path=states"][..], &["-aux-path", "states"]] {
        refused(&program, &[&job[..], aux].concat(), "is behind loop device");
    }
    assert!(content(device.behind()) == before, "the image has changed");
    let kept = program.file("trigger", "years of work");
    let trigger = [&job[..], &["--trigger-file=trigger"]].concat();
    refused(&program, &trigger, "fio removes its trigger file");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "years of work");
}

/// A folder in which every relative name is one of a device.
#[test]
fn jobs_in_dev_make_no_files_there() {
    let program = program();
    let device = require!(LoopDevice::new(SIZE));
    let runs = program.path().join("runs");
    let in_dev = |job: &[&str]| {
        let start = ["--runs", runs.to_str().unwrap(), "job", "run", "--"];
        let mut command = program.command(&[&start[..], job].concat());
        command.current_dir("/dev").output().unwrap()
    };
    let short = device.path().file_name().unwrap().to_str().unwrap();
    let ways: [&[&str]; 4] = [
        &["--name=fathom-a", "--rw=read", "--size=64k"],
        &["--name=fathom-a", "--rw=write", "--size=64k"],
        &[
            "--name=fathom-a",
            "--rw=read",
            "--size=64k",
            "--filename=/tmp/fathom-trap",
            "--write_bw_log",
        ],
        &["--name=a", "--rw=write", "--size=64k", "--filename", short],
    ];
    for way in ways {
        let told = in_dev(way);
        assert_eq!(told.status.code(), Some(4), "{way:?}: {told:?}");
    }
    let strays = fs::read_dir("/dev").unwrap().flatten();
    let strays: Vec<_> = strays
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("fathom-a"))
        .collect();
    assert!(strays.is_empty(), "{strays:?}");
}

/// The job file's own first job gives everybody time: nobody can take the device
/// into use while a later job waits for it.
#[test]
fn a_device_is_held_from_the_first_step_that_writes_to_it() {
    let program = program();
    let device = require!(LoopDevice::new(SIZE));
    let shown = device.path().to_str().unwrap();
    for engine in ENGINES {
        let text = format!(
            "[slow]\nrw=write\nbs=4k\nrate_iops=50\ntime_based\nruntime=600\nfilename={shown}\nsize=1m\n"
        );
        program.file("slow.fio", &text);
        let word = word(device.path());
        let mut child = program
            .command(&job_run(engine, &["slow.fio", "--destroy", &word]))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Its first line is that of an interval: it writes.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("IOPS")));
        let mkfs = Command::new("mkfs.ext4")
            .arg("-q")
            .arg(shown)
            .output()
            .unwrap();
        assert!(!mkfs.status.success(), "{engine}: {mkfs:?}");
        fathom_testkit::signal(&child, "-INT");
        drop(lines);
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}

/// What has come about since the first check refuses the step that would destroy it.
#[test]
fn what_was_made_during_an_earlier_step_refuses_the_next() {
    let program = program();
    let device = require!(LoopDevice::new(SIZE));
    let shown = device.path().to_str().unwrap();
    program.file(
        "two.fio",
        &format!("[two]\nrw=write\nfilename={shown}\nsize=1m\n"),
    );
    let ways = ["mkfs.ext4 -qF", "mkswap"];
    for (between, engine) in ways.into_iter().zip(ENGINES) {
        let script = program.file(
            "between.sh",
            &format!("#!/bin/sh\nexec {between} {shown}\n"),
        );
        let text = format!(
            "[one]\nrw=read\nfilename=x\nsize=64k\nexec_prerun=sh {}\n",
            script.display()
        );
        program.file("one.fio", &text);
        let word = word(device.path());
        let args = ["one.fio", "two.fio", "--destroy", &word];
        refused(&program, &job_run(engine, &args), "carries");
        let wiped = Command::new("wipefs")
            .args(["-aq", shown])
            .status()
            .unwrap();
        assert!(wiped.success());
    }
    // Without that all steps run.
    program.file("one.fio", "[one]\nrw=read\nfilename=x\nsize=64k\n");
    let word = word(device.path());
    let args = ["one.fio", "two.fio", "two.fio", "--destroy", &word];
    program.good(&job_run("fio", &args));
}

/// What a path led to when it was written to says nothing of what it leads to later.
#[test]
fn another_device_under_the_name_of_one_that_was_written_to_is_judged_anew() {
    let program = program();
    let first = require!(LoopDevice::new(SIZE));
    let other = require!(LoopDevice::new(SIZE));
    let made = Command::new("mkfs.ext4")
        .arg("-q")
        .arg(other.path())
        .status();
    assert!(made.unwrap().success());
    let before = content(other.path());
    let link = program.path().join("disk");
    symlink(first.path(), &link).unwrap();
    let swap = format!(
        "#!/bin/sh\nexec ln -sfn {} {}\n",
        other.path().display(),
        link.display()
    );
    let swap = program.file("swap.sh", &swap);
    let writes = format!("[w]\nrw=write\nfilename={}\nsize=1m\n", link.display());
    program.file("one.fio", &writes);
    program.file("three.fio", &writes);
    let between = format!(
        "[r]\nrw=read\nfilename=x\nsize=64k\nexec_prerun=sh {}\n",
        swap.display()
    );
    program.file("two.fio", &between);
    let word = word(&link);
    let args = [
        "job",
        "run",
        "--engine",
        "fio",
        "one.fio",
        "two.fio",
        "three.fio",
        "--destroy",
        &word,
    ];
    refused(&program, &args, "carries ext");
    assert!(content(other.path()) == before, "the other device changed");
}

/// Programs of a job find the device free.
#[test]
fn a_device_is_free_for_the_programs_of_its_job() {
    let program = program();
    let device = require!(LoopDevice::new(SIZE));
    let shown = device.path().to_str().unwrap();
    let script = program.file("mk.sh", &format!("#!/bin/sh\nmkfs.ext4 -qF {shown}\n"));
    let text = format!(
        "[a]\nrw=write\nbs=1m\nsize=8m\nfilename={shown}\nexec_prerun=sh {}\n",
        script.display()
    );
    program.file("a.fio", &text);
    let word = word(device.path());
    for engine in ENGINES {
        let made = program.path().join("a.prerun.txt");
        let _ = fs::remove_file(&made);
        program.good(&job_run(engine, &["a.fio", "--destroy", &word]));
        assert_eq!(fs::read_to_string(made).unwrap(), "", "{engine}");
        let wiped = Command::new("wipefs").args(["-aq", shown]).status();
        assert!(wiped.unwrap().success());
    }
}
