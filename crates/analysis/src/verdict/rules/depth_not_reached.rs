//! Fewer I/Os were under way than the job was to keep under way.

use fathom_model::io_engine::{DEFAULT_IO_ENGINE, IoEngineRow, io_engine};
use fathom_model::{Direction, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;
use crate::verdict::rules::own_limit;

/// Below this share of `iodepth`. Little's law (Little, A Proof for the Queuing Formula
/// L = λW, Operations Research 9, 1961): the mean number under way is rate × time. A
/// fourth is more than filling the queue in batches takes away.
const SHARE: f64 = 0.75;

/// Share of an I/O's time spent in its submission above which the device's own queue depth
/// counts: an engine that waits in `io_submit` appears to keep a deep queue, while the device
/// sees one I/O at a time. Below it, job and device differ only by the layers between them.
const SUBMITTING_SHARE: f64 = 0.25;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    if own_limit::is_limited(figure) {
        return None;
    }
    let depth = figure.number("iodepth")?;
    if depth <= 1.0 {
        return None;
    }
    let wanted = depth * figure.clones();
    let least = SHARE * full_queue(figure, wanted)?;
    let by_job = by_latency(figure)?;
    let submitting = submitting_share(figure).unwrap_or(0.0);
    let at_device = by_device(figure).filter(|_| submitting >= SUBMITTING_SHARE);
    let (reached, text) = match at_device {
        _ if by_job < least => {
            let text = format!("the job kept {by_job:.1} of {wanted:.0} I/Os in flight");
            (by_job, text)
        }
        Some(at_device) if at_device < least => {
            let text = format!(
                "{at_device:.1} of {wanted:.0} I/Os were at the device: the engine spent {:.0} % of their time submitting them",
                100.0 * submitting
            );
            (at_device, text)
        }
        _ => return None,
    };
    let numbers = [
        ("wanted_depth", wanted),
        ("mean_depth", reached),
        ("submitting_percent", 100.0 * submitting),
        (
            "one_at_a_time",
            f64::from(u8::from(is_one_at_a_time(figure))),
        ),
    ];
    Some(VerdictReason {
        to_do: to_do(figure).to_owned(),
        ..VerdictReason::found(ReasonKind::DepthNotReached, text, numbers)
    })
}

/// Whether the engine waits for each I/O before the next.
fn is_one_at_a_time(figure: &JudgedFigure) -> bool {
    let engine = figure.option("ioengine").unwrap_or(DEFAULT_IO_ENGINE);
    io_engine(engine).is_some_and(IoEngineRow::is_one_at_a_time)
}

/// What would keep more I/Os in flight, by the engine that the job has.
fn to_do(figure: &JudgedFigure) -> &'static str {
    match figure.option("ioengine") {
        None => "set ioengine=io_uring: fio's default waits for each I/O",
        Some(_) if is_one_at_a_time(figure) => {
            "set ioengine=io_uring: this engine waits for each I/O"
        }
        Some("libaio") if !figure.is_set("direct") => {
            "set direct=1: libaio waits for I/O through the page cache"
        }
        Some(_) => "give the job a CPU of its own, or spread the depth over more jobs",
    }
}

/// How many I/Os are under way on average where the queue is kept full to the last I/O:
/// while those `wanted` come back that nothing replaces, half of them are. `None`: the job
/// has not as many I/Os as it may have under way.
fn full_queue(figure: &JudgedFigure, wanted: f64) -> Option<f64> {
    let of = figure.job.directions().map(|(_, result)| result.total_ios);
    let ios = of.sum::<u64>() as f64;
    (ios > wanted).then(|| wanted * (1.0 - wanted / (2.0 * ios)))
}

/// Of all directions of the job, which share its depth.
fn by_latency(figure: &JudgedFigure) -> Option<f64> {
    let mut sum = 0.0;
    for (_, result) in figure
        .job
        .directions()
        .filter(|(_, result)| result.total_ios > 0)
    {
        let latency = result.clat.as_ref().or(result.lat.as_ref())?;
        sum += result.iops * latency.mean_ns / 1e9;
    }
    Some(sum)
}

/// Of the time from the first attempt to submit an I/O to its end.
fn submitting_share(figure: &JudgedFigure) -> Option<f64> {
    let slat = figure.result.slat.as_ref()?.mean_ns;
    let clat = figure.result.clat.as_ref()?.mean_ns;
    (slat + clat > 0.0).then(|| slat / (slat + clat))
}

/// What the kernel counted for the device, where the job had it for itself.
fn by_device(figure: &JudgedFigure) -> Option<f64> {
    let only = figure.siblings().count() == 1 && figure.own().is_some();
    let only = only && matches!(figure.dir, Direction::Read | Direction::Write);
    let evidence = figure.evidence().filter(|_| only)?;
    let mut targets = evidence.devices("target");
    let device = targets.next().filter(|_| targets.next().is_none())?;
    let queue_ms = evidence
        .count(&format!("{device}.queue_ms"))
        .filter(|&ms| ms > 0)?;
    Some(queue_ms as f64 / figure.io_ms(evidence))
}
