//! Shows the display of a run, fed by a made-up one: `cargo run --example live`.
//! Its purpose is to be looked at, on a terminal and piped.

use std::time::Duration;

use fathom_model::{Direction, Event, Failure, FailureKind, Histogram, Sample};

#[allow(dead_code)]
#[path = "../src/live.rs"]
mod live;
#[allow(dead_code)]
#[path = "../src/out.rs"]
mod out;

fn sample(t_ms: u64, dir: Direction, ios: u64, clat_ns: u64) -> Event {
    let mut clat = Histogram::new();
    clat.add(clat_ns, ios);
    clat.add(clat_ns * 4, ios / 50);
    Event::Sample(Sample {
        t_ms,
        span_ms: 1000,
        job: 0,
        dir,
        ios,
        bytes: ios * 4096,
        clat: Some(clat),
    })
}

#[allow(clippy::print_stderr)] // plays the terminal
fn main() {
    let mut live = live::Live::new(live::LiveOptions::new(false, out::Color::Auto));
    let pause = || std::thread::sleep(Duration::from_millis(300));
    for (step, name) in (1..).zip(["warm-up.fio", "measure-random-mixed-70-30.fio"]) {
        let name = name.to_owned();
        live.observe(&Event::Step {
            step,
            of: 2,
            name,
            point: None,
        });
        pause();
        let what = "laying out /mnt/scratch/test.0.0 (1.00 GiB)".to_owned();
        live.observe(&Event::Preparing { what });
        pause();
        for second in 1..=8 {
            let t_ms = (u64::from(step) - 1) * 8000 + second * 1000;
            live.observe(&sample(
                t_ms,
                Direction::Read,
                140_000 - second * 999,
                226_000,
            ));
            live.observe(&sample(t_ms, Direction::Write, 812 * second, 8_100_000));
            let remaining_ms = Some((8 - second) * 1000);
            live.observe(&Event::Interval { t_ms, remaining_ms });
            if second == 4 {
                let text = "both iodepth >= 1 and a synchronous I/O engine are selected".to_owned();
                live.observe(&Event::Note { text });
                let failure = Failure::new(FailureKind::Io, "read failed: Input/output error");
                live.observe(&Event::Failure(failure.about("job1")));
            }
            pause();
        }
    }
    // As after Ctrl-C: the terminal has echoed it.
    eprint!("^C");
    live.finish();
}
