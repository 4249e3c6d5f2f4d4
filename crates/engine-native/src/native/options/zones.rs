//! Zones of a file, one after the other, and those of zoned devices.

use crate::native::job::{FileAmount, ZoneMode};

use super::value::{self, OptionValue, Outcome};
use super::{OptionRow, differs, same};

pub(super) const ZONES: &[OptionRow] = &[
    differs(
        &["zonemode"],
        "strided: a zone that the file's end cuts short is left out (fio: the job ends there); zbd: random jobs only of several files; where no zone has anything to do a time-based job ends, too",
        |job, v| {
            job.extent.zones.mode = Some(match v.text()? {
                "none" => ZoneMode::None,
                "strided" => ZoneMode::Strided,
                "zbd" => ZoneMode::Zbd,
                other => return Err(format!("'{other}' is not one of none, strided, zbd")),
            });
            Ok(())
        },
    ),
    field!(["zonesize"], extent.zones.size = number),
    field!(["zonecapacity"], extent.zones.capacity = number),
    field!(["zonerange"], extent.zones.range = number),
    differs(
        &["zoneskip"],
        "with zonemode=zbd it goes round within the job's part (fio 3.33: on behind it)",
        |job, v| {
            let zones = &mut job.extent.zones;
            (zones.skip, zones.skip_zones) = match v.amount()? {
                FileAmount::Bytes(bytes) => (bytes, 0),
                FileAmount::Zones(number) => (0, number),
                FileAmount::Percent(_) => return Err("is no share".to_owned()),
            };
            Ok(())
        },
    ),
    field!(["read_beyond_wp"], extent.zones.reads_beyond = flag),
    same(&["max_open_zones"], |job, v| {
        job.extent.zones.most_open = open_zones(v)?;
        Ok(())
    }),
    same(&["job_max_open_zones"], |job, v| {
        job.extent.zones.job_most_open = open_zones(v)?;
        Ok(())
    }),
    field!(["ignore_zone_limits"], extent.zones.ignores_limits = flag),
    same(&["zone_reset_threshold"], |job, v| {
        job.extent.zones.reset_from = share(v)?;
        Ok(())
    }),
    same(&["zone_reset_frequency"], |job, v| {
        job.extent.zones.reset_share = share(v)?;
        Ok(())
    }),
];

/// No more than fio can count (zbd_types.h, ZBD_MAX_OPEN_ZONES).
fn open_zones(v: OptionValue<'_>) -> Outcome<u32> {
    match v.number()? {
        zones @ 0..=4096 => Ok(zones),
        zones => Err(format!("{zones} is more than 4096")),
    }
}

fn share(v: OptionValue<'_>) -> Outcome<f64> {
    match value::plain::<f64>(v.text()?)? {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        other => Err(format!("{other} is not between 0 and 1")),
    }
}
