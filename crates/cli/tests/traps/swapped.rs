//! Links that move, and files that change places, while a job is checked and run.
//!
//! 300 runs write while another program swaps their target, folder or log for a device
//! that was not confirmed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use fathom_testkit::{LoopDevice, ProgramUnderTest, skip};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{content, program};

/// Bytes that a job writes.
const BYTES: usize = 64 << 10;
const NAME: &str = "a_run_writes_to_what_was_checked_whatever_a_link_leads_to_later";

/// What changes while a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Swapped {
    /// A link to the device that is confirmed.
    Device,
    /// A link to a file.
    File,
    /// The file itself.
    Name,
    /// A link to the folder of the files.
    Folder,
    /// The file of a log.
    Log,
    /// A link, by a command of the job.
    ByTheJob,
}

/// Each with as many runs as must have written, on each of two engines.
const ALL: [(Swapped, u32); 6] = [
    (Swapped::Device, 40),
    (Swapped::File, 35),
    (Swapped::Name, 10),
    (Swapped::Folder, 35),
    (Swapped::Log, 10),
    (Swapped::ByTheJob, 20),
];

/// Says that a run is over, also where it panics.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// One kind of swap in a folder of its own.
struct Race {
    program: ProgramUnderTest,
    right: LoopDevice,
    wrong: LoopDevice,
    swapped: Swapped,
}

impl Race {
    fn new(swapped: Swapped) -> Result<Self, String> {
        let race = Self {
            program: program(),
            right: LoopDevice::new(1 << 20)?,
            wrong: LoopDevice::new(1 << 20)?,
            swapped,
        };
        let at = |name: &str| race.program.path().join(name);
        let wrong = race.wrong.path();
        fs::write(at("file"), vec![0; BYTES]).unwrap();
        for folder in ["right", "wrong"] {
            fs::create_dir(at(folder)).unwrap();
        }
        symlink(wrong, at("wrong/a.0.0")).unwrap();
        // The second of each takes the place of the first and gives it back.
        let links = match swapped {
            Swapped::Device | Swapped::ByTheJob => [race.right.path(), wrong],
            Swapped::File => [Path::new("file"), wrong],
            Swapped::Folder => [Path::new("right"), Path::new("wrong")],
            Swapped::Name | Swapped::Log => {
                symlink(wrong, at("other")).unwrap();
                return Ok(race);
            }
        };
        for (link, name) in links.iter().zip(["link", "other"]) {
            symlink(link, at(name)).unwrap();
        }
        Ok(race)
    }

    /// What changes places with `other`.
    fn name(&self) -> &'static str {
        match self.swapped {
            Swapped::Name => "file",
            Swapped::Log => "log_bw.1.log",
            _ => "link",
        }
    }

    /// Where the job is to write.
    fn target(&self) -> PathBuf {
        match self.swapped {
            Swapped::Device | Swapped::ByTheJob => self.right.path().to_owned(),
            Swapped::Folder => self.program.path().join("right/a.0.0"),
            _ => self.program.path().join("file"),
        }
    }

    fn swap(&self) {
        let [one, other] = [self.name(), "other"].map(|name| self.program.path().join(name));
        // The log is made by the first run.
        let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
    }

    /// How long each state stands at first, beside runs of this length. A link may move at
    /// any time after the check; a file that has changed places is refused, so some runs
    /// must get through in between.
    fn pause(&self, took: Duration) -> Duration {
        match self.swapped {
            Swapped::Name | Swapped::Log => took / 2,
            _ => Duration::from_micros(500),
        }
    }

    /// As it was at first.
    fn put_right(&self) {
        let link = self.program.path().join("other");
        let leads_wrong = fs::read_link(&link)
            .is_ok_and(|to| to == self.wrong.path() || to == Path::new("wrong"));
        if !leads_wrong && link.symlink_metadata().is_ok() {
            self.swap();
        }
    }

    /// Runs the job once; whether it has written.
    fn run(&self, engine: &str, pattern: u32) -> bool {
        let named = match self.swapped {
            Swapped::Folder => "directory=link\n",
            Swapped::Name | Swapped::Log => "filename=file\n",
            _ => "filename=link\n",
        };
        let more = match self.swapped {
            Swapped::Log => "write_bw_log=log\n".to_owned(),
            Swapped::ByTheJob => {
                let wrong = self.wrong.path().display();
                format!("exec_prerun=ln -sfn {wrong} link\ncreate_on_open=1\n")
            }
            _ => String::new(),
        };
        let job = format!(
            "[a]\n{named}{more}rw=write\nbs=4k\nsize={BYTES}\nbuffer_pattern=0x{pattern:02x}\n"
        );
        self.program.file("a.fio", &job);
        let word = format!("{}=1M", self.right.path().display());
        let args = ["job", "run", "a.fio", "-q", "--engine", engine];
        let args = [&args[..], &["--destroy", &word]].concat();
        let output = self.program.run(&args);
        match (output.status.code(), self.swapped) {
            (Some(0), _) => true,
            (Some(4), _) => false,
            // fio says that it follows no link.
            (Some(1), Swapped::Log | Swapped::Name) if engine == "fio" => false,
            _ => panic!("{engine} {:?}: {output:?}", self.swapped),
        }
    }

    /// Runs until enough have written, each to the right place and to no other.
    fn go(&self, engine: &str, runs: u32) {
        let before = content(self.wrong.path());
        let started = Instant::now();
        assert!(self.swapped == Swapped::ByTheJob || self.run(engine, 251));
        let mut pause = self.pause(started.elapsed());
        let mut written = 0;
        for round in 1..=20 * runs {
            let pattern = 1 + round % 250;
            let [is_over, swaps] = [AtomicBool::new(false), AtomicBool::new(true)];
            let count = AtomicU32::new(0);
            swaps.store(self.swapped != Swapped::ByTheJob, Relaxed);
            let has_written = thread::scope(|scope| {
                scope.spawn(|| {
                    while swaps.load(Relaxed) && !is_over.load(Relaxed) {
                        thread::sleep(pause);
                        self.swap();
                        count.fetch_add(1, Relaxed);
                    }
                });
                let _over = Over(&is_over);
                self.run(engine, pattern)
            });
            let is_raced = !swaps.load(Relaxed) || count.load(Relaxed) > 0;
            let place = format!("{engine} {:?}, round {round}", self.swapped);
            assert!(
                content(self.wrong.path()) == before,
                "{place}: the wrong device"
            );
            if self.swapped == Swapped::ByTheJob {
                let link = self.program.path().join("link");
                assert_eq!(fs::read_link(&link).unwrap(), self.wrong.path());
                fs::remove_file(&link).unwrap();
                symlink(self.right.path(), link).unwrap();
            } else {
                self.put_right();
            }
            if has_written {
                written += u32::from(is_raced);
                let target = content(&self.target());
                let pattern = u8::try_from(pattern).unwrap();
                assert!(
                    target[..BYTES].iter().all(|&byte| byte == pattern),
                    "{place}"
                );
            }
            if written == runs {
                return;
            }
            // The machine may have become slower or faster: swap later after a refusal, and
            // sooner after a run that ended before the first swap.
            if !has_written {
                pause = pause * 9 / 8;
            } else if !is_raced {
                pause = pause * 3 / 4;
            }
        }
        panic!("{engine} {:?}: {written} runs have written", self.swapped);
    }
}

fn race_on(engine: &str) {
    for (swapped, runs) in ALL {
        match Race::new(swapped) {
            Ok(race) => race.go(engine, runs),
            Err(reason) => return skip(NAME, &reason),
        }
    }
}

#[test]
fn a_run_writes_to_what_was_checked_whatever_a_link_leads_to_later() {
    race_on("native");
}

#[test]
fn fio_writes_to_what_was_checked_whatever_a_link_leads_to_later() {
    race_on("fio");
}
