//! fio's job options: the one table of what this engine takes.
//!
//! Each row holds an option's names, what differs from fio, and how its value
//! becomes part of a [`NativeJob`]. What has no row is refused by name. The table in
//! the docs is made from the rows ([`markdown`]).

/// A row of an option whose value goes into one field of the job:
/// `field!(["name", "alias"], field = method of OptionValue)`, `= some method` of a field that
/// may be empty; what differs from fio may stand behind it.
macro_rules! field {
    ([$($name:literal),+], $($field:ident).+ = some $read:ident $(, $differs:literal)?) => {
        $crate::native::options::differs(&[$($name),+], concat!("" $(, $differs)?), |job, v| {
            job.$($field).+ = Some(v.$read()?);
            Ok(())
        })
    };
    ([$($name:literal),+], $($field:ident).+ = $read:ident $(, $differs:literal)?) => {
        $crate::native::options::differs(&[$($name),+], concat!("" $(, $differs)?), |job, v| {
            job.$($field).+ = v.$read()?;
            Ok(())
        })
    };
}

mod cpuio;
mod files;
mod io;
mod iolog;
mod listed;
mod memory;
mod order;
mod pattern;
mod refused;
mod show;
pub(in crate::native) mod value;
mod verify;
mod zones;

use fathom_model::JobSpec;

use super::job::{DirIndex, FileAmount, NativeJob, Sizes};
use crate::unsupported::Unsupported;
pub use listed::{Listed, io_engines, options};
pub(super) use order::{USE_CMDPRIO, number_list, priority};
use value::{OptionValue, Outcome};

/// One option.
pub(super) struct OptionRow {
    /// The name in the docs first, then fio's aliases.
    names: &'static [&'static str],
    /// What differs from fio; empty: nothing.
    differs: &'static str,
    /// The value is checked and changes nothing: `differs` says why.
    idle: bool,
    set: fn(&mut NativeJob, OptionValue<'_>) -> Outcome<()>,
}

const fn same(
    names: &'static [&'static str],
    set: fn(&mut NativeJob, OptionValue<'_>) -> Outcome<()>,
) -> OptionRow {
    differs(names, "", set)
}

const fn differs(
    names: &'static [&'static str],
    differs: &'static str,
    set: fn(&mut NativeJob, OptionValue<'_>) -> Outcome<()>,
) -> OptionRow {
    OptionRow {
        names,
        differs,
        idle: false,
        set,
    }
}

/// An option that has nothing to do here, for a reason that begins with "no effect".
const fn idle(
    names: &'static [&'static str],
    why: &'static str,
    check: fn(&mut NativeJob, OptionValue<'_>) -> Outcome<()>,
) -> OptionRow {
    OptionRow {
        idle: true,
        ..differs(names, why, check)
    }
}

/// Every option there is, by subject.
const GROUPS: [(&str, &[OptionRow]); 13] = [
    ("I/O", io::PATTERN),
    ("Queue and engines", io::QUEUE),
    ("Load of a processor", cpuio::LOAD),
    ("Memory", memory::MEMORY),
    ("Data", io::CONTENT),
    ("Verify", verify::VERIFY),
    ("Files", files::FILES),
    ("Amount and time", order::TIMES),
    ("Zones", zones::ZONES),
    ("Logs of I/Os", iolog::IOLOGS),
    ("Steady state", order::STEADY),
    ("Order, errors and priorities", order::ORDER),
    ("What is shown", show::SHOW),
];

fn find(name: &str) -> Option<&'static OptionRow> {
    GROUPS
        .iter()
        .flat_map(|(_, rows)| rows.iter())
        .find(|row| row.names.contains(&name))
}

/// A job as this engine runs it, or everything in it that it does not take.
pub(super) fn resolve(spec: &JobSpec) -> Result<NativeJob, Vec<Unsupported>> {
    let mut job = NativeJob::new(&spec.name);
    let mut refused = Vec::new();
    let base = fathom_jobfile::spec::base(spec);
    for option in &spec.options {
        let outcome = match find(&option.name) {
            Some(row) => (row.set)(&mut job, OptionValue(option.value.as_deref(), base)),
            None => Err(refused::reason(&option.name)),
        };
        if let Err(reason) = outcome {
            refused.push(Unsupported {
                job: spec.name.clone(),
                option: option.name.clone(),
                origin: Some(option.origin.clone()),
                reason,
            });
        }
    }
    for (option, reason) in contradictions(&job) {
        refused.push(Unsupported {
            job: spec.name.clone(),
            option: option.to_owned(),
            origin: spec.option(option).map(|option| option.origin.clone()),
            reason,
        });
    }
    if job.verify.sum.is_some() {
        // verify.c, fill_verify_pattern: whatever else is asked for, each block is new.
        job.content.refill = true;
        job.content.zero = false;
    }
    cpuio::settle(&mut job);
    job.pattern.settle();
    // fio passes it on to buffered I/O only.
    job.queue.uncached &= !job.files.direct;
    if refused.is_empty() {
        Ok(job)
    } else {
        Err(refused)
    }
}

/// Options that do not go together, each named with the reason.
fn contradictions(job: &NativeJob) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if job.times.time_based && job.times.runtime.is_none() {
        found.push(("time_based", "needs a runtime".to_owned()));
    }
    found.extend(of_threads(job));
    found.extend(of_zones(job));
    found.extend(iolog::faults(job));
    if job.steady.is_some() && job.steady_seconds == 0 {
        found.push((
            "ss",
            "needs ss_dur, the seconds that must be steady".to_owned(),
        ));
    }
    let async_priorities = job.priority.percent.iter().any(|&p| p > 0)
        || job.priority.split.iter().any(|split| !split.is_empty());
    let has_split = job.priority.split.iter().any(|split| !split.is_empty());
    if has_split && job.priority.percent.iter().any(|&p| p > 0) {
        found.push((
            "cmdprio_percentage",
            "cmdprio_percentage and cmdprio_bssplit exclude each other".to_owned(),
        ));
    }
    use super::job::IoEngine::{IoUring, Libaio, Null};
    if async_priorities && !matches!(job.engine, IoUring | Libaio | Null) {
        found.push((
            if has_split {
                "cmdprio_bssplit"
            } else {
                "cmdprio_percentage"
            },
            "only io_uring and libaio have a priority for each I/O".to_owned(),
        ));
    }
    let polls = job.engine.is_ring() || job.engine == super::job::IoEngine::Pvsync2;
    if job.queue.hipri && !polls {
        found.push((
            "hipri",
            "only io_uring, io_uring_cmd and pvsync2 poll".to_owned(),
        ));
    }
    if job.trims() && job.engine == super::job::IoEngine::Mmap {
        found.push(("rw", "a mapping cannot be trimmed".to_owned()));
    }
    found.extend(verify::fault(job));
    found.extend(cpuio::fault(job));
    found.extend(engine_faults(job));
    found.extend(rate_fault(job));
    found.extend(size_fault(job));
    found.extend(dedupe_fault(job));
    found.extend(odd_sizes_fault(job));
    let of_files = files::faults(job).into_iter();
    found.extend(of_files.map(|(option, what)| (option, what.to_owned())));
    for dir in DirIndex::ALL {
        if let Sizes::Range(low, high) = &job.pattern.sizes[dir as usize]
            && low > high
        {
            found.push(("bsrange", format!("{low} is more than {high}")));
            break;
        }
    }
    found
}

/// What does not go with I/Os that threads of their own do.
fn of_threads(job: &NativeJob) -> Option<(&'static str, String)> {
    let against = match job.engine {
        super::job::IoEngine::Mmap => "a mapping is copied by the job's own thread",
        super::job::IoEngine::IoUringCmd => "commands wait in the job's own ring",
        super::job::IoEngine::Cpuio => "there is no I/O",
        engine if engine.file_op().is_some() => "a file as a whole is done by the job's own thread",
        _ if job.queue.fixed_buffers => "threads of their own register no buffers",
        _ => return None,
    };
    job.queue
        .offload
        .then(|| ("io_submit_mode", against.to_owned()))
}

/// What does not go with zones, and what zones need.
fn of_zones(job: &NativeJob) -> Option<(&'static str, String)> {
    let zones = job.extent.zones;
    if zones.is_zbd() {
        return zbd_fault(job).map(|(option, what)| (option, what.to_owned()));
    }
    let extent = &job.extent;
    let amounts = [
        extent.size,
        extent.io_size,
        extent.offset,
        extent.offset_increment,
    ];
    let of_zones = |amount: &Option<FileAmount>| matches!(amount, Some(FileAmount::Zones(_)));
    if zones.size == 0 && (amounts.iter().any(of_zones) || zones.skip_zones > 0) {
        return Some(("zonesize", "an amount of zones needs it".to_owned()));
    }
    let (option, what) = match (zones.is_strided(), zones.size) {
        (false, 0) => return None,
        (false, _) => ("zonesize", "zonemode=none has no zones"),
        (true, 0) => ("zonemode", "strided needs zonesize"),
        (true, _) if job.engine == super::job::IoEngine::Mmap => {
            ("zonemode", "a mapping ends where the job's extent does")
        }
        (true, _) if job.verify.sum.is_some() => ("verify", "zones are not verified"),
        (true, _) => return None,
    };
    Some((option, what.to_owned()))
}

/// What does not go with the zones of a zoned device.
fn zbd_fault(job: &NativeJob) -> Option<(&'static str, &'static str)> {
    use super::job::IoEngine;
    let files = job.files.names.len().max(job.files.count as usize);
    let is_other = |engine: IoEngine| {
        engine.file_op().is_some()
            || matches!(
                engine,
                IoEngine::Mmap | IoEngine::Falloc | IoEngine::Ftruncate
            )
    };
    let replays = !job.replay.logs.is_empty();
    let zones = &job.extent.zones;
    if is_other(job.engine) {
        Some(("ioengine", "does not write zones from their start on"))
    } else if replays {
        Some(("zonemode", "a log says itself where its I/Os go"))
    } else if !job.pattern.random && files > 1 {
        Some(("zonemode", "the zones of several files are for random jobs"))
    } else if job.pattern.trimwrite {
        Some(("rw", "a zone that is trimmed is empty"))
    } else if job.verify.only || job.verify.state_load {
        Some((
            "verify",
            "where the writes of another run went nobody knows",
        ))
    } else if job.pattern.skip != 0 {
        Some(("rw", "writes leave no holes in zones"))
    } else if zones.range > 0 {
        Some(("zonerange", "is of zonemode=strided"))
    } else {
        None
    }
}

/// Rates in bytes and in I/Os at once, or a least rate above the rate itself (init.c,
/// fixup_options).
fn rate_fault(job: &NativeJob) -> Option<(&'static str, String)> {
    let pace = &job.pace;
    let any = |rates: &[Option<u64>; 3]| rates.iter().any(Option::is_some);
    for (option, bytes, ios) in [
        ("rate_iops", &pace.bytes_per_second, &pace.ios_per_second),
        (
            "rate_iops_min",
            &pace.least_bytes_per_second,
            &pace.least_ios_per_second,
        ),
    ] {
        if any(bytes) && any(ios) {
            return Some((option, "excludes a rate in bytes".to_owned()));
        }
    }
    let above = |least: &[Option<u64>; 3], rate: &[Option<u64>; 3]| {
        let pairs = least.iter().zip(rate);
        pairs
            .filter_map(|(least, rate)| Some((*least)? > (*rate)?))
            .any(|above| above)
    };
    let option = if above(&pace.least_bytes_per_second, &pace.bytes_per_second) {
        "rate_min"
    } else if above(&pace.least_ios_per_second, &pace.ios_per_second) {
        "rate_iops_min"
    } else {
        return None;
    };
    Some((
        option,
        "is more than the rate that the job may have".to_owned(),
    ))
}

/// A size in which no block has room.
fn size_fault(job: &NativeJob) -> Option<(&'static str, String)> {
    let Some(FileAmount::Bytes(size @ 1..)) = job.extent.size else {
        return None;
    };
    let block = job.pattern.min_block();
    let small = size < block.into();
    small.then(|| ("size", format!("{size} is less than a block of {block}")))
}

/// Blocks of any length have no parts to verify, and zones end in whole blocks.
fn odd_sizes_fault(job: &NativeJob) -> Option<(&'static str, String)> {
    let (option, what) = match (job.pattern.unaligned, job.pattern.sizes_by_order) {
        (true, _) => ("bs_unaligned", "blocks of any length"),
        (false, true) => ("bs_is_seq_rand", "sizes by order"),
        (false, false) => return None,
    };
    let against = if job.verify.sum.is_some() {
        "are not verified"
    } else if job.extent.zones.is_zbd() {
        "do not fill zones"
    } else {
        return None;
    };
    Some((option, format!("{what} {against}")))
}

/// A set of buffers to repeat needs a size to be a share of.
fn dedupe_fault(job: &NativeJob) -> Option<(&'static str, String)> {
    let content = &job.content;
    if content.dedupe_percent == 0 || !content.dedupe_from_set {
        return None;
    }
    let sum = u32::from(content.dedupe_percent) + u32::from(content.dedupe_set_percent);
    let what = match (
        &job.extent.size,
        job.files.count.max(job.files.names.len() as u32),
    ) {
        (None, _) => "working_set needs a size".to_owned(),
        (_, 2..) => "working_set is for one file".to_owned(),
        _ if sum > 100 => {
            format!("dedupe_percentage and dedupe_working_set_percentage add up to {sum}")
        }
        _ => return None,
    };
    Some(("dedupe_mode", what))
}

/// What an engine cannot do.
fn engine_faults(job: &NativeJob) -> Vec<(&'static str, String)> {
    use super::job::IoEngine::{Ftruncate, IoUringCmd, Null};
    let mut found = Vec::new();
    if job.verify.sum.is_some() && !job.engine.moves_data() && job.engine != Null {
        found.push(("verify", "this ioengine moves no data".to_owned()));
    }
    if job.engine == Ftruncate && job.pattern.dirs != [false, true, false] {
        found.push(("rw", "ftruncate only writes".to_owned()));
    }
    if job.engine.file_op().is_some() && job.trims() {
        found.push(("rw", "a file as a whole is not trimmed".to_owned()));
    }
    if job.engine == IoUringCmd {
        found.extend(passthrough_faults(job));
    }
    if job.files.open_at_once.is_some() && job.engine.file_op().is_none() {
        found.push((
            "openfiles",
            "the native engine keeps all files of a job open".to_owned(),
        ));
    }
    found
}

/// What a generic NVMe device does not do: nothing but its commands goes through it.
fn passthrough_faults(job: &NativeJob) -> Vec<(&'static str, String)> {
    let files = &job.files;
    let syncs = "io_uring_cmd reads and writes only";
    let opens = "a generic NVMe device is always read and written directly";
    let kernel = "the kernel has it for reads and writes of files only";
    let faults = [
        (job.trims(), "rw", syncs),
        (files.fsync_every > 0, "fsync", syncs),
        (files.fdatasync_every > 0, "fdatasync", syncs),
        (files.end_fsync, "end_fsync", syncs),
        (files.fsync_on_close, "fsync_on_close", syncs),
        (files.sync_range_every > 0, "sync_file_range", syncs),
        (files.direct, "direct", opens),
        (files.pre_read, "pre_read", syncs),
        (job.queue.nowait, "nowait", kernel),
        (job.queue.uncached, "uncached", kernel),
    ];
    let faults = faults.into_iter().filter(|fault| fault.0);
    faults
        .map(|(_, option, what)| (option, what.to_owned()))
        .collect()
}

/// Checks jobs without touching anything: every option that this engine does not take.
///
/// # Errors
/// All of them, in the order of the jobs and their options.
pub fn supports(jobs: &[JobSpec]) -> Result<(), Vec<Unsupported>> {
    let refused: Vec<_> = jobs
        .iter()
        .filter_map(|job| resolve(job).err())
        .flatten()
        .collect();
    if refused.is_empty() {
        Ok(())
    } else {
        Err(refused)
    }
}

/// The table of options as Markdown, for the docs.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Options of the native engine\n\n\
         Made from the engine's own table; `cargo test -p fathom-engine-native` checks that it is current.\n\
         An option that is not here is refused by name, with its line, before anything is touched.\n\
         What has no effect here says why; of all else a test shows what it changes.\n",
    );
    for (title, rows) in GROUPS {
        text.push_str(&format!(
            "\n## {title}\n\n| option | difference from fio |\n|---|---|\n"
        ));
        for row in rows {
            let names: Vec<_> = row.names.iter().map(|name| format!("`{name}`")).collect();
            text.push_str(&format!(
                "| {} | {} |\n",
                names.join(", "),
                if row.differs.is_empty() {
                    "–"
                } else {
                    row.differs
                }
            ));
        }
    }
    text.push_str(&refused::markdown());
    text
}

#[cfg(test)]
mod tests;
