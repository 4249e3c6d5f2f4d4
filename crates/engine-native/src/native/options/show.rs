//! What the results show, and the logs of I/Os.

use super::value::{self, OptionValue};
use super::{OptionRow, differs, idle, same};
use crate::native::clock::system_clock_ms;
use crate::native::job::{NativeJob, Unified};

pub(super) const SHOW: &[OptionRow] = &[
    field!(["group_reporting"], show.group = flag),
    differs(
        &["disable_lat"],
        "with a rate measured all the same, for the samples",
        |job, v| {
            job.show.lat = !v.flag()?;
            Ok(())
        },
    ),
    differs(
        &["disable_clat"],
        "with write_hist_log or a steadystate measured all the same",
        |job, v| {
            job.show.clat = !v.flag()?;
            Ok(())
        },
    ),
    same(&["disable_slat"], |job, v| {
        job.show.slat = !v.flag()?;
        Ok(())
    }),
    field!(
        ["disable_bw_measurement", "disable_bw"],
        logs.no_bw = flag,
        "no line for each I/O in the log; measured all the same"
    ),
    differs(
        &["gtod_reduce"],
        "disable_lat, disable_clat and disable_slat",
        |job, v| {
            if v.flag()? {
                (job.show.lat, job.show.clat, job.show.slat) = (false, false, false);
            }
            Ok(())
        },
    ),
    idle(
        &["clocksource"],
        "no effect: the engine chooses, TSC where the kernel trusts it, else CLOCK_MONOTONIC",
        |_, v| match v.text()? {
            "gettimeofday" | "clock_gettime" | "cpu" => Ok(()),
            other => Err(format!(
                "'{other}' is not one of gettimeofday, clock_gettime, cpu"
            )),
        },
    ),
    field!(["clat_percentiles"], show.clat_percentiles = flag),
    field!(["lat_percentiles"], show.lat_percentiles = flag),
    field!(["slat_percentiles"], show.slat_percentiles = flag),
    same(&["unified_rw_reporting"], |job, v| {
        // stat.h, UNIFIED_SPLIT and its neighbours.
        job.show.unified = match v.0.map(str::trim) {
            Some("none" | "0") => Unified::No,
            None | Some("" | "mixed" | "1") => Unified::Mixed,
            Some("both" | "2") => Unified::Both,
            Some(other) => {
                return Err(format!(
                    "'{other}' is not one of none, mixed, both, 0, 1, 2"
                ));
            }
        };
        Ok(())
    }),
    same(&["percentile_list"], |job, v| {
        let mut list = Vec::new();
        for part in v.text()?.split([':', ',']) {
            match value::plain::<f64>(part)? {
                percent if (0.0..=100.0).contains(&percent) => list.push(percent),
                other => return Err(format!("{other} is not a percentile")),
            }
        }
        list.sort_by(f64::total_cmp);
        job.show.percentiles = list;
        Ok(())
    }),
    differs(
        &["write_lat_log"],
        "written while the job runs, not from memory at its end",
        |job, v| {
            job.logs.lat = Some(log_prefix(job, v));
            Ok(())
        },
    ),
    differs(&["write_bw_log"], "as write_lat_log", |job, v| {
        job.logs.bw = Some(log_prefix(job, v));
        Ok(())
    }),
    differs(&["write_iops_log"], "as write_lat_log", |job, v| {
        job.logs.iops = Some(log_prefix(job, v));
        Ok(())
    }),
    differs(&["write_hist_log"], "as write_lat_log", |job, v| {
        job.logs.hist = Some(log_prefix(job, v));
        Ok(())
    }),
    field!(["log_avg_msec"], logs.avg_ms = number),
    field!(
        ["bwavgtime"],
        logs.bw_avg_ms = some number,
        "of the log; what the figures of a bandwidth are made of, Fathom's interval says"
    ),
    field!(
        ["iopsavgtime"],
        logs.iops_avg_ms = some number,
        "as bwavgtime"
    ),
    field!(["log_max_value"], logs.maxima = flag),
    field!(["log_unix_epoch"], logs.unix_epoch = flag),
    field!(["log_alternate_epoch"], logs.other_epoch = flag),
    same(&["log_alternate_epoch_clock_id"], |job, v| {
        let clock = v.number()?;
        job.logs.epoch_clock = clock;
        let known = system_clock_ms(clock).map(|_| ());
        known.ok_or_else(|| format!("there is no clock {clock} (clock_gettime(2))"))
    }),
    idle(
        &["log_entries"],
        "no effect: entries do not wait in memory",
        |_, v| match v.number::<u64>()? {
            1024..=1_048_576 => Ok(()),
            other => Err(format!("{other} is not between 1024 and 1048576")),
        },
    ),
    field!(["log_hist_msec"], logs.hist_ms = number),
    same(&["log_hist_coarseness"], |job, v| {
        job.logs.hist_coarseness = v.number()?;
        match job.logs.hist_coarseness {
            0..=6 => Ok(()),
            other => Err(format!("{other} is more than 6")),
        }
    }),
    field!(["log_prio"], logs.prio = flag),
    field!(["log_offset"], logs.offset = flag),
    field!(["per_job_logs"], logs.per_job = flag),
    field!(
        ["log_compression"],
        logs.compression = number,
        "nothing waits in memory to be compressed: lines are written while the job runs"
    ),
    field!(["log_store_compressed"], logs.store_compressed = flag),
    same(&["description"], |job, v| {
        job.show.description = v.0.map(|text| text.trim().to_owned());
        Ok(())
    }),
    // Every job file of fio-tests has one in [global], where fio ignores it too.
    idle(
        &["name"],
        "no effect: a job keeps the name of its section",
        |_, _| Ok(()),
    ),
    same(&["kb_base"], |_, v| match v.text()? {
        // What it means is known before the first option is read (resolve).
        "1000" | "1024" => Ok(()),
        other => Err(format!("'{other}' is neither 1000 nor 1024")),
    }),
    idle(
        &["unit_base"],
        "no effect: bandwidths are shown in bytes",
        |_, v| match v.text()? {
            "0" | "1" | "8" => Ok(()),
            other => Err(format!("'{other}' is not one of 0, 1, 8")),
        },
    ),
];

/// What log names begin with: the value, or the job's name.
fn log_prefix(job: &NativeJob, v: OptionValue<'_>) -> String {
    match v.0.map(str::trim) {
        Some(prefix) if !prefix.is_empty() => prefix.to_owned(),
        _ => job.name.clone(),
    }
}
