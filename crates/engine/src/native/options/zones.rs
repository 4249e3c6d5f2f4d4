//! Zones of a file, one after the other.

use super::{OptionRow, differs, same};

pub(super) const ZONES: &[OptionRow] = &[
    differs(
        &["zonemode"],
        "none and strided; a zone that the file's end cuts short is left out (fio: the job ends there)",
        |job, v| {
            job.extent.zones.strided = match v.text()? {
                "none" => Some(false),
                "strided" => Some(true),
                "zbd" => {
                    return Err(
                        "the native engine has no 'zbd'; use --engine fio for it".to_owned()
                    );
                }
                other => return Err(format!("'{other}' is not one of none, strided, zbd")),
            };
            Ok(())
        },
    ),
    same(&["zonesize"], |job, v| {
        job.extent.zones.size = v.number()?;
        Ok(())
    }),
    same(&["zonerange"], |job, v| {
        job.extent.zones.range = v.number()?;
        Ok(())
    }),
    same(&["zoneskip"], |job, v| {
        job.extent.zones.skip = v.number()?;
        Ok(())
    }),
];
