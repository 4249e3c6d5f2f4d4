//! The job files of pre-conditioning.

use std::fmt::Write as _;
use std::time::Duration;

use fathom_model::DevicePhase;

use fathom_model::units::format_size;

use super::{ActiveRange, DeviceFacts, PreconditionSettings};

/// A job file that writes the range once and ends.
pub(super) fn fill(
    settings: &PreconditionSettings,
    phase: DevicePhase,
    here: DeviceFacts,
) -> String {
    let mut text = head(settings, phase);
    if settings.is_fast(phase, here) {
        // One job: sprandom plans the whole range.
        let _ = writeln!(text, "\n[fill]\n{}\nsprandom=1", size(settings, here));
    } else {
        parts(settings, phase, here, "fill", "", &mut text);
    }
    text
}

/// A job file whose load runs for at most so long.
pub(super) fn settle(
    settings: &PreconditionSettings,
    phase: DevicePhase,
    here: DeviceFacts,
    most: Duration,
) -> String {
    let mut text = head(settings, phase);
    let runtime = match most.subsec_millis() {
        0 => format!("{}s", most.as_secs()),
        _ => format!("{}ms", most.as_millis()),
    };
    let time = format!("time_based\nruntime={runtime}\n");
    match phase {
        DevicePhase::Sequential => parts(settings, phase, here, "settle", &time, &mut text),
        DevicePhase::Random => {
            let _ = write!(
                text,
                "\n[settle]\nnumjobs={}\nnorandommap\n{}\n{time}",
                settings.numjobs,
                size(settings, here)
            );
        }
    }
    text
}

/// Different data for each run, so that a drive can be identified by its content.
pub const NEW_DATA: &str = "randrepeat=0\n";

fn head(settings: &PreconditionSettings, phase: DevicePhase) -> String {
    let rw = match phase {
        DevicePhase::Sequential => "write",
        DevicePhase::Random => "randwrite",
    };
    // In `filename=` a colon separates names.
    let dut = settings.dut.to_string_lossy().replace(':', "\\:");
    format!(
        "[global]\nthread\ngroup_reporting\nioengine={}\ndirect=1\nbuffered=0\nrefill_buffers\n{NEW_DATA}\
         rw={rw}\nbs={}\niodepth={}\nfilename={dut}\n\nexitall_on_error\ncontinue_on_error=none\n",
        settings.ioengine,
        format_size(settings.bs_of(phase)),
        settings.iodepth,
    )
}

/// The whole range.
fn size(settings: &PreconditionSettings, here: DeviceFacts) -> String {
    match (settings.range, here.capacity_bytes) {
        (ActiveRange::Percent(percent), None) => format!("size={percent}%"),
        (range, capacity) => {
            let bytes = range.bytes(capacity, settings.random_bs_bytes);
            format!("size={}", bytes.unwrap_or_default())
        }
    }
}

/// A job for each part of the range: several that begin at one place would write
/// the same blocks.
fn parts(
    settings: &PreconditionSettings,
    phase: DevicePhase,
    here: DeviceFacts,
    name: &str,
    more: &str,
    text: &mut String,
) {
    let jobs = u64::from(settings.numjobs.max(1));
    let bs = settings.bs_of(phase).max(1);
    let (all, step, unit) = match settings.range.bytes(here.capacity_bytes, bs) {
        Some(bytes) => (bytes / bs, bs, ""),
        None => match settings.range {
            ActiveRange::Percent(percent) => (u64::from(percent), 1, "%"),
            ActiveRange::Bytes(bytes) => (bytes / bs, bs, ""),
        },
    };
    let jobs = jobs.min(all.max(1));
    for job in 0..jobs {
        let (begin, end) = (all * job / jobs, all * (job + 1) / jobs);
        let (offset, size) = (begin * step, (end - begin) * step);
        let number = job + 1;
        // No share of anything, in fio's language too.
        let offset = match offset {
            0 => "0".to_owned(),
            offset => format!("{offset}{unit}"),
        };
        let _ = write!(
            text,
            "\n[{name}-{number}]\noffset={offset}\nsize={size}{unit}\n{more}"
        );
    }
}
