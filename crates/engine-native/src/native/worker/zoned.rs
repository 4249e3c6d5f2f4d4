//! zonemode=zbd: I/Os go where the zones of their device let them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use fathom_model::{Failure, FailureKind};

use super::{InFlight, Worker};
use crate::native::files::MemberFiles;
use crate::native::job::{DirIndex, NativeJob};
use crate::native::source::NextIo;
use crate::native::stats::bump;
use crate::native::zbd::{ZoneAsk, ZoneChoice, ZoneFault, ZoneUser, ZonedDevice};

/// How soon an I/O looks again whose zone another job has.
const AGAIN: Duration = Duration::from_micros(20);

/// The zones that a worker has to do with.
#[derive(Debug)]
pub(super) struct ZonedPart {
    files: Vec<(Arc<ZonedDevice>, ZoneUser)>,
    /// Bytes left out behind each zone that is done, and where the zones after which
    /// they are begin.
    skip: u64,
    base: u64,
    /// Bytes done in the zone.
    done: u64,
    /// Whether this pass did anything.
    began: bool,
}

/// Where an I/O goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZonePlace {
    /// There, with the zone that it holds.
    Here(Option<u32>),
    /// Later.
    NotYet,
    /// Nowhere.
    Nowhere,
}

impl ZonedPart {
    /// `None` without zones.
    pub(super) fn new(job: &NativeJob, plan: &MemberFiles) -> Option<Self> {
        let files: Option<Vec<_>> = plan
            .files
            .iter()
            .map(|file| {
                let device = file.zones.as_ref()?;
                let user = device.user(job, file.start, file.len);
                Some((Arc::clone(device), user))
            })
            .collect();
        let files = files.filter(|files| !files.is_empty())?;
        Some(Self {
            base: files[0].1.start,
            skip: match job.extent.zones {
                zones if zones.skip_zones > 0 => zones.skip_zones * files[0].0.zone_size(),
                zones => zones.skip,
            },
            files,
            done: 0,
            began: false,
        })
    }

    /// Where an I/O in order goes on from: behind the zone that is done, or the one that
    /// is to be skipped (zbd.c, setup_zbd_zone_mode).
    fn next_in_order(&mut self, dir: DirIndex, mut position: u64) -> u64 {
        let (device, user) = &self.files[0];
        let table = device.table();
        let place = table.at(position);
        if place >= user.zones.end {
            return position;
        }
        let (zone, end) = (table.zone(place), table.start_of(place + 1));
        if dir == DirIndex::Write && position >= zone.start + zone.capacity {
            position = end;
        }
        let read_up = dir == DirIndex::Read && !user.reads_beyond && position >= zone.pointer;
        if self.skip == 0 || !(self.done >= device.zone_size() || position >= end || read_up) {
            return position;
        }
        self.done = 0;
        self.base += device.zone_size() + self.skip;
        if self.base >= user.start + user.len {
            self.base = user.start;
        }
        self.base
    }
}

/// How many zones of a job's part were reset before its pass.
fn begin_zones_of(
    job: &NativeJob,
    device: &ZonedDevice,
    user: &ZoneUser,
    at_start: bool,
) -> io::Result<u64> {
    let mut due = Vec::new();
    if at_start {
        device.open_for_resets()?;
    }
    if at_start && job.writes() {
        due = device.table().begin(user);
    }
    if job.writes() {
        due.extend(device.table().begin_pass(user));
    }
    let mut resets = 0;
    for place in due {
        resets += u64::from(device.reset(place)?);
    }
    Ok(resets)
}

impl Worker {
    /// Zones that are open beyond the limits are reset, and before each pass those that
    /// are to be verified (zbd.c, zbd_setup_files, zbd_file_reset).
    pub(super) fn begin_zones(&mut self, at_start: bool) {
        let Some(zoned) = &mut self.zoned else { return };
        (zoned.began, zoned.done, zoned.base) = (false, 0, zoned.files[0].1.start);
        if !(self.job.writes() || self.job.trims()) {
            return;
        }
        let mut files = zoned.files.iter().zip(0..);
        let failed = files.find_map(|((device, user), file)| {
            let begun = begin_zones_of(&self.job, device, user, at_start);
            match begun {
                Ok(resets) => {
                    bump(&self.stats.zone_resets, resets);
                    None
                }
                Err(error) => Some((file, error)),
            }
        });
        if let Some((file, error)) = failed {
            self.fail_reset(file, &error);
        }
    }

    #[cold]
    fn fail_reset(&mut self, file: u32, error: &io::Error) {
        let path = &self.plan.files[file as usize].path;
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let first = &self.stats.first_error;
        let _ = first.compare_exchange(0, errno, Relaxed, Relaxed);
        let failure = Failure::new(FailureKind::Io, format!("a zone cannot be reset: {error}"));
        let failure = failure.about(path.display().to_string()).with_errno(errno);
        self.give_up(failure);
    }

    /// A job that mixes begins with a write where there is nothing to read.
    #[inline]
    pub(super) fn zoned_direction(&self, dir: DirIndex) -> DirIndex {
        let Some(zoned) = &self.zoned else { return dir };
        let mixes =
            self.job.pattern.uses(DirIndex::Read) && self.job.pattern.has_share(DirIndex::Write);
        let nothing = |(device, user): &(Arc<ZonedDevice>, ZoneUser)| {
            !user.reads_beyond && !device.table().has_data()
        };
        match dir == DirIndex::Read && mixes && zoned.files.iter().all(nothing) {
            true => DirIndex::Write,
            false => dir,
        }
    }

    /// The next I/O in order begins behind a zone that is done; `false` at the end of
    /// the job's part.
    pub(super) fn go_in_order(&mut self, dir: DirIndex) -> bool {
        if self.job.pattern.random {
            return true;
        }
        let Some(zoned) = &mut self.zoned else {
            return true;
        };
        let at = zoned.next_in_order(dir, self.source.position(dir));
        let user = &zoned.files[0].1;
        let (start, end) = (user.start, user.start + user.len);
        let mut next = at;
        if at + u64::from(user.least[dir as usize]) > end {
            if !self.goes_round() {
                self.end_pass_early();
                return false;
            }
            next = start;
        }
        self.source.went(dir, 0, next);
        true
    }

    /// Nothing is left to do in this pass; the bytes that could not be done count as
    /// done, but for those that `io_size` asks for.
    pub(super) fn end_pass_early(&mut self) {
        let rest = std::mem::take(&mut self.pass_left);
        if self.job.extent.io_size.is_none() {
            self.issued_bytes += rest;
        }
        let idle = self
            .zoned
            .as_mut()
            .is_some_and(|zoned| !std::mem::take(&mut zoned.began));
        self.draining |= idle;
    }

    /// Finds the place of an I/O among the zones of its file.
    pub(super) fn place(&mut self, next: &mut NextIo) -> ZonePlace {
        let Some(zoned) = &mut self.zoned else {
            return ZonePlace::Here(None);
        };
        let (device, user) = &zoned.files[next.file as usize];
        let ask = ZoneAsk {
            dir: next.dir,
            offset: next.offset,
            len: next.len,
            quiet: self.free.len() == self.depth,
        };
        let mut choice = device.table().choose(user, ask);
        if let ZoneChoice::Reset(place) = choice {
            match device.reset(place) {
                Ok(was_used) => bump(&self.stats.zone_resets, was_used.into()),
                Err(error) => {
                    device.table().over(place, DirIndex::Read, 0);
                    self.fail_reset(next.file, &error);
                    return ZonePlace::Nowhere;
                }
            }
            choice = device.table().after_reset(user, place, next.len);
        }
        match choice {
            ZoneChoice::Go { offset, len, zone } => {
                (next.offset, next.len) = (offset, len);
                zoned.began = true;
                zoned.done += u64::from(len);
                self.source
                    .went(next.dir, next.file, offset + u64::from(len));
                ZonePlace::Here(zone.map(|zone| zone as u32))
            }
            ZoneChoice::Busy | ZoneChoice::Quiesce | ZoneChoice::Reset(_) => ZonePlace::NotYet,
            ZoneChoice::End => {
                self.end_pass_early();
                ZonePlace::Nowhere
            }
            ZoneChoice::Fault(fault) => {
                self.fail_place(next, fault);
                ZonePlace::Nowhere
            }
        }
    }

    #[cold]
    fn fail_place(&mut self, next: &NextIo, fault: ZoneFault) {
        let what = match fault {
            ZoneFault::LongerThanZones => "it is longer than a zone",
            ZoneFault::SmallCapacity => "the capacity of a zone is less than the smallest block",
            ZoneFault::PointerOutside => "the zone's write pointer is outside of the job's part",
            ZoneFault::SmallRest => "the rest of the zone is less than the smallest block",
        };
        let message = format!(
            "a write of {} bytes has no place at offset {}: {what}",
            next.len, next.offset
        );
        let path = &self.plan.files[next.file as usize].path;
        let failure = Failure::new(FailureKind::BadOption, message);
        self.give_up(failure.about(path.display().to_string()));
    }

    /// When an I/O that waits for a zone of another job asks again.
    pub(super) fn look_again(&self, now: u64) -> Option<u64> {
        let waits = self.zoned.is_some() && self.held.is_some();
        (waits && self.free.len() == self.depth).then(|| now.saturating_add(self.ticks(AGAIN)))
    }

    /// A trim of a zone is its reset (zbd.c, zbd_do_io_u_trim).
    pub(super) fn reset_zone(&self, file: u32, zone: u32, len: u32) -> i64 {
        let Some(zoned) = &self.zoned else { return 0 };
        match zoned.files[file as usize].0.reset(zone as usize) {
            Ok(was_used) => {
                bump(&self.stats.zone_resets, was_used.into());
                len.into()
            }
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// An I/O that held a zone is over.
    #[inline]
    pub(super) fn leave_zone(&self, under: &InFlight) {
        let (Some(zoned), Some(zone)) = (&self.zoned, under.zone) else {
            return;
        };
        let dir = super::data_direction(under.op).unwrap_or(DirIndex::Read);
        let end = under.offset + u64::from(under.len);
        let device = &zoned.files[under.file as usize].0;
        device.table().over(zone as usize, dir, end);
    }
}
