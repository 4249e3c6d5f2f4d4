//! How long a command takes to its first I/O.

use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use serde::Serialize;

use crate::Lab;
use crate::contenders::Contender;
use crate::timing::median;

/// Medians in ms.
#[derive(Debug, Serialize)]
pub struct Start {
    pub contender: Contender,
    /// From the process's start to the first read of the file, as the kernel tells.
    pub first_io_ms: f64,
    /// To the end of the process.
    pub whole_ms: f64,
    pub rounds: usize,
}

/// A job of one read of a cached file; native and fio take turns, on any core.
pub fn measure(lab: &Lab) -> Vec<Start> {
    let rounds = if lab.size.rounds > 1 { 31 } else { 1 };
    let file = lab.dir.path().join("one-read");
    fs::write(&file, [0; 4096]).unwrap();
    let job = lab.dir.path().join("one-read.fio");
    let text = format!(
        "[read]\nrw=read\nbs=4k\nsize=4k\nioengine=psync\ninvalidate=0\nfilename={}\n",
        file.display()
    );
    fs::write(&job, text).unwrap();
    let contenders = [Contender::Native, Contender::Fio];
    let mut times = [const { (Vec::new(), Vec::new()) }; 2];
    for _ in 0..rounds {
        for (contender, (first, whole)) in contenders.iter().zip(&mut times) {
            let times = watch(&mut contender.command(lab, &job), &file);
            first.push(times[0]);
            whole.push(times[1]);
        }
    }
    contenders
        .into_iter()
        .zip(&mut times)
        .map(|(contender, (first, whole))| Start {
            contender,
            first_io_ms: median(first),
            whole_ms: median(whole),
            rounds,
        })
        .collect()
}

/// Milliseconds to the first read of the file, and to the end.
fn watch(command: &mut Command, file: &Path) -> [f64; 2] {
    let watch = inotify::init(CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, file, WatchFlags::ACCESS).unwrap();
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A command that never reads ends all the same, and closes nothing of ours:
    // it is the reason why its end is watched, too.
    let ended = rustix::process::pidfd_open(
        rustix::process::Pid::from_child(&child),
        rustix::process::PidfdFlags::empty(),
    )
    .unwrap();
    let mut wait = [
        rustix::event::PollFd::new(&watch, rustix::event::PollFlags::IN),
        rustix::event::PollFd::new(&ended, rustix::event::PollFlags::IN),
    ];
    rustix::event::poll(&mut wait, None).unwrap();
    let first = begin.elapsed();
    assert!(child.wait().unwrap().success(), "{command:?}");
    let whole = begin.elapsed();
    let mut buffer = [MaybeUninit::uninit(); 512];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    assert!(events.next().is_ok(), "{command:?} read nothing");
    [first, whole].map(|time| time.as_secs_f64() * 1000.0)
}
