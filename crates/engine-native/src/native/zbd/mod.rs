//! `zonemode=zbd`: devices whose zones are written from their start on, and files and
//! other devices as if they were such.

mod report;
mod table;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use fathom_device::Sys;
use fathom_model::{Failure, FailureKind};

use super::job::{DirIndex, FileAmount, IoEngine, NativeJob, Sizes, ZoneOptions};
use table::Zone;
pub(super) use table::{ZoneAsk, ZoneChoice, ZoneFault, ZoneTable, ZoneUser};

/// Most zones that can be counted as open (fio 3.33, zbd_types.h, ZBD_MAX_OPEN_ZONES).
const MOST_OPEN: usize = 4096;

/// What makes a device's zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ZoneModel {
    /// Nothing but the job: the device has none.
    Emulated,
    Aware,
    Managed,
}

/// A device, with its zones, that jobs share.
#[derive(Debug)]
pub(super) struct ZonedDevice {
    table: Mutex<ZoneTable>,
    model: ZoneModel,
    zone_size: u64,
    /// The block device: resets are none of a generic one's commands.
    block: PathBuf,
    /// Where resets go; opened by the first job that writes.
    resets: OnceLock<File>,
    users: AtomicU32,
}

/// The devices of a run.
#[derive(Debug, Default)]
pub(super) struct ZonedDevices(BTreeMap<PathBuf, Arc<ZonedDevice>>);

impl ZonedDevices {
    /// The one behind a path, of `bytes`; `None` where the job has no such zones.
    pub(super) fn of(
        &mut self,
        job: &NativeJob,
        path: &Path,
        bytes: u64,
    ) -> Result<Option<Arc<ZonedDevice>>, Failure> {
        if !job.extent.zones.is_zbd() {
            return Ok(None);
        }
        let block = Sys::live().block_path(path);
        let block = std::fs::canonicalize(&block).unwrap_or(block);
        let device = match self.0.get(&block) {
            Some(known) => Arc::clone(known),
            None => {
                let made = ZonedDevice::new(job, &block, bytes);
                let made = made.map_err(|failure| failure.about(path.display().to_string()))?;
                let made = Arc::new(made);
                self.0.insert(block, Arc::clone(&made));
                made
            }
        };
        let asked = job.extent.zones.most_open as usize;
        if asked > 0 && asked != device.table().most_open() {
            let what = "max_open_zones: another job of the same device has another value";
            return Err(refused(what).about(path.display().to_string()));
        }
        Ok(Some(device))
    }
}

fn refused(what: impl Into<String>) -> Failure {
    Failure::new(FailureKind::BadOption, what)
}

impl ZonedDevice {
    fn new(job: &NativeJob, block: &Path, bytes: u64) -> Result<Self, Failure> {
        let options = &job.extent.zones;
        let is_block = std::fs::metadata(block).is_ok_and(|it| it.file_type().is_block_device());
        let node = Sys::live()
            .by_path(block)
            .filter(|_| is_block && job.engine.opens_files());
        let disk = node.map(|node| node.whole());
        let of_disk = |name: &str| disk.as_ref().and_then(|disk| disk.text(name));
        let model = match of_disk("queue/zoned").as_deref() {
            Some("host-managed") => ZoneModel::Managed,
            Some("host-aware") => ZoneModel::Aware,
            _ => ZoneModel::Emulated,
        };
        let (zones, zone_size) = match model {
            ZoneModel::Emulated => emulated(options, bytes)?,
            _ => report::zones(block, bytes).map_err(|error| {
                let what = format!("its zones cannot be asked for: {error}");
                Failure::new(FailureKind::Open, what)
            })?,
        };
        if options.size > 0 && options.size != zone_size {
            let size = options.size;
            let what = format!("zonesize: {size} bytes, the device's zones have {zone_size}");
            return Err(refused(what));
        }
        let limit = of_disk("queue/max_open_zones").and_then(|text| text.parse().ok());
        let limit = limit.filter(|_| model == ZoneModel::Managed && !options.ignores_limits);
        let most_open = match (options.most_open as usize, limit.unwrap_or(0)) {
            (asked, 0) => asked,
            (0, limit) => limit,
            (asked, limit) if asked <= limit => asked,
            (asked, limit) => {
                return Err(refused(format!(
                    "max_open_zones: {asked} is more than the device has, {limit}"
                )));
            }
        };
        if most_open > MOST_OPEN {
            return Err(refused(format!("max_open_zones: at most {MOST_OPEN}")));
        }
        Ok(Self {
            table: Mutex::new(ZoneTable::new(zones, zone_size, most_open)),
            model,
            zone_size,
            block: block.to_owned(),
            resets: OnceLock::new(),
            users: AtomicU32::new(1),
        })
    }

    pub(super) fn table(&self) -> MutexGuard<'_, ZoneTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of a job that begins and is as long as it says, in whole zones if it
    /// does more than read them (zbd.c, zbd_zone_align_file_sizes).
    pub(super) fn fit(&self, job: &NativeJob, start: u64, len: u64) -> Result<(u64, u64), Failure> {
        self.suits(job)?;
        let table = self.table();
        let zones = table.at(start)..table.at(start + len.max(1) - 1) + 1;
        let only_reads = job.pattern.dirs == [true, false, false];
        if only_reads || !table.has_sequential(zones) {
            return Ok((start, len));
        }
        let first = table.at(start);
        let begin = match table.start_of(first) {
            begin if begin == start => start,
            _ => table.start_of(first + 1),
        };
        let end = table.start_of(table.at(start + len));
        if end <= begin {
            return Err(refused(
                "the job's part holds no whole zone: size and io_size must be at least one zone, from its start on",
            ));
        }
        Ok((begin, end - begin))
    }

    /// What a job may not ask of such a device (zbd.c, zbd_verify_bs, zbd_using_direct_io).
    fn suits(&self, job: &NativeJob) -> Result<(), Failure> {
        let size = self.zone_size;
        let is_whole = |sizes: &Sizes| *sizes == Sizes::Fixed(u32::try_from(size).unwrap_or(0));
        let divides = |sizes: &Sizes| {
            let largest = u64::from(sizes.max().max(1));
            size.is_multiple_of(largest)
        };
        let options = &job.extent.zones;
        let sizes = &job.pattern.sizes;
        let on_block = job.engine != IoEngine::IoUringCmd;
        let what = if self.model == ZoneModel::Managed
            && on_block
            && job.writes()
            && !job.files.direct
        {
            "direct: a host-managed device is written with direct=1 only".to_owned()
        } else if job.trims() && !is_whole(&sizes[DirIndex::Trim as usize]) {
            format!("bs: trims are of whole zones, {size} bytes")
        } else if job.verify.sum.is_some() && !sizes.iter().all(divides) {
            format!(
                "bs: to be verified, {} is not a divisor of the zone size, {size} bytes: such blocks are not verified",
                job.pattern.max_block()
            )
        } else if !options.skip.is_multiple_of(size) {
            format!(
                "zoneskip {} is not a multiple of the device zone size, {size} bytes",
                options.skip
            )
        } else if options.job_most_open > 0 && self.table().most_open() == 0 {
            "job_max_open_zones: needs max_open_zones, the device has no limit".to_owned()
        } else {
            return Ok(());
        };
        Err(refused(what))
    }

    /// A job's part of it, as its table knows it.
    pub(super) fn user(&self, job: &NativeJob, start: u64, len: u64) -> ZoneUser {
        let options = &job.extent.zones;
        let table = self.table();
        // What only reads, or only conventional zones, may end within one.
        let end = table.at(start + len.max(1) - 1) + 1;
        ZoneUser {
            id: self.users.fetch_add(1, Relaxed),
            zones: table.at(start)..end,
            start,
            len,
            random: job.pattern.random,
            least: std::array::from_fn(|dir| job.pattern.sizes[dir].min().max(1)),
            most_open: options.job_most_open as usize,
            verifies: job.verify.sum.is_some(),
            reads_beyond: options.reads_beyond,
            reset_share: options.reset_share,
            reset_from: options.reset_from,
        }
    }

    /// Gets ready for resets.
    pub(super) fn open_for_resets(&self) -> io::Result<()> {
        if self.model != ZoneModel::Emulated && self.resets.get().is_none() {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(&self.block)?;
            // Another job may have been first.
            let _ = self.resets.set(file);
        }
        Ok(())
    }

    /// Resets a zone that the caller holds, on the device and in the table; whether
    /// there was anything in it.
    pub(super) fn reset(&self, place: usize) -> io::Result<bool> {
        let (zone, end) = {
            let table = self.table();
            (table.zone(place), table.start_of(place + 1))
        };
        if zone.pointer == zone.start {
            return Ok(false);
        }
        if let Some(file) = self.resets.get() {
            report::reset(file, zone.start, end - zone.start)?;
        }
        Ok(self.table().was_reset(place))
    }

    pub(super) fn zone_size(&self) -> u64 {
        self.zone_size
    }
}

/// Zones of a device that has none, all empty (zbd.c, init_zone_info).
fn emulated(options: &ZoneOptions, bytes: u64) -> Result<(Vec<Zone>, u64), Failure> {
    /// More would fill memory with zones, not with data.
    const MOST_ZONES: u64 = 1 << 24;
    let (size, capacity) = match (options.size, options.capacity) {
        (size, 0) => (size, size),
        both => both,
    };
    let what = if size == 0 {
        "zonesize: a device without zones of its own needs one".to_owned()
    } else if size < 512 {
        "zonesize: at least 512 bytes".to_owned()
    } else if capacity > size {
        format!("zonecapacity: {capacity} is more than the zone size, {size}")
    } else if bytes < size {
        format!("has {bytes} bytes, less than a zone of {size}")
    } else if bytes / size > MOST_ZONES {
        format!("zonesize: more than {MOST_ZONES} zones")
    } else {
        let zone = |n: u64| Zone {
            start: n * size,
            pointer: n * size,
            capacity,
            sequential: true,
            offline: false,
            was_open: false,
        };
        return Ok(((0..bytes.div_ceil(size)).map(zone).collect(), size));
    };
    Err(refused(what))
}

/// Amounts in zones as bytes: the zones of the job's own device, or those of zonesize
/// (zbd.c, zbd_recalc_options_with_zone_granularity).
pub(super) fn in_bytes(job: &NativeJob, zone_size: u64) -> Result<NativeJob, Failure> {
    let mut job = job.clone();
    let extent = &mut job.extent;
    let amounts = [
        &mut extent.size,
        &mut extent.io_size,
        &mut extent.offset,
        &mut extent.offset_increment,
    ];
    for amount in amounts {
        if let Some(FileAmount::Zones(zones)) = *amount {
            let bytes = zones.checked_mul(zone_size).filter(|_| zone_size > 0);
            let bytes = bytes.ok_or_else(|| refused("an amount of zones needs a zone size"))?;
            *amount = Some(FileAmount::Bytes(bytes));
        }
    }
    let skip = &mut extent.zones.skip_zones;
    extent.zones.skip += skip.saturating_mul(zone_size);
    *skip = 0;
    Ok(job)
}

#[cfg(test)]
mod tests;
