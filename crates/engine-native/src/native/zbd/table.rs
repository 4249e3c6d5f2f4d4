//! The zones of a device and what jobs do to them: which one an I/O goes to, which are
//! open, how much is in them. Knows no device; whoever asks does what it says
//! (zbd.c of fio 3.33).

use std::ops::Range;

use crate::native::job::DirIndex;

/// One zone; places in bytes from the device's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) struct Zone {
    pub(in crate::native) start: u64,
    /// Where the next write goes; of a zone that has none, behind its capacity.
    pub(in crate::native) pointer: u64,
    /// Bytes that can be used of it.
    pub(in crate::native) capacity: u64,
    /// It is written from its start on, one write behind the other.
    pub(in crate::native) sequential: bool,
    /// Neither read nor written.
    pub(in crate::native) offline: bool,
    /// Open on the device already.
    pub(in crate::native) was_open: bool,
}

/// A zone with what jobs have to do with it.
#[derive(Debug)]
struct ZoneCell {
    zone: Zone,
    /// Which user counts it as open.
    opener: Option<u32>,
    /// It is to be reset before it is written again.
    reset_due: bool,
    /// The user whose I/Os are under way in it, and how many.
    holder: u32,
    holds: u32,
}

impl ZoneCell {
    fn end(&self) -> u64 {
        self.zone.start + self.zone.capacity
    }

    fn is_full(&self, least: u64) -> bool {
        self.zone.sequential && self.zone.pointer + least > self.end()
    }

    fn data(&self) -> u64 {
        self.zone.pointer - self.zone.start
    }
}

/// One job with a part of the device.
#[derive(Debug, Clone)]
pub(in crate::native) struct ZoneUser {
    /// No other has it.
    pub(in crate::native) id: u32,
    pub(in crate::native) zones: Range<usize>,
    /// The job's part, in bytes.
    pub(in crate::native) start: u64,
    pub(in crate::native) len: u64,
    pub(in crate::native) random: bool,
    pub(in crate::native) least: [u32; 3],
    /// Zones that it alone may have open; 0: as many as all together.
    pub(in crate::native) most_open: usize,
    /// What it writes is read back: nothing is reset in between.
    pub(in crate::native) verifies: bool,
    pub(in crate::native) reads_beyond: bool,
    /// Of the writes to a device that holds so much of the job's part, the share before
    /// which a zone is reset.
    pub(in crate::native) reset_share: f64,
    pub(in crate::native) reset_from: f64,
}

/// An I/O before it has found its place.
#[derive(Debug, Clone, Copy)]
pub(in crate::native) struct ZoneAsk {
    pub(in crate::native) dir: DirIndex,
    pub(in crate::native) offset: u64,
    pub(in crate::native) len: u32,
    /// The user has no I/O under way.
    pub(in crate::native) quiet: bool,
}

/// What becomes of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum ZoneChoice {
    /// It goes there; a zone that is held is to be let go when it is over.
    Go {
        offset: u64,
        len: u32,
        zone: Option<usize>,
    },
    /// This zone, now held, is to be reset first.
    Reset(usize),
    /// Once all of the user's I/Os are over it is to be asked again.
    Quiesce,
    /// Another user has the zone, or may close one: to be asked again soon.
    Busy,
    /// There is no place for it.
    End,
    Fault(ZoneFault),
}

/// Why an I/O has no place anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum ZoneFault {
    LongerThanZones,
    SmallCapacity,
    PointerOutside,
    SmallRest,
}

/// Search was broken off: what to tell.
type Found = Result<usize, ZoneChoice>;

/// All zones of a device.
#[derive(Debug)]
pub(in crate::native) struct ZoneTable {
    cells: Vec<ZoneCell>,
    zone_size: u64,
    end: u64,
    /// Zones that may be open; 0: any number, and none is counted.
    most_open: usize,
    open: Vec<usize>,
    /// Bytes in all zones of the part that was looked at last, and in sequential ones.
    data: u64,
    sequential_data: u64,
    /// Writes until the next reset that the share of resets asks for.
    until_reset: u64,
}

impl ZoneTable {
    pub(in crate::native) fn new(zones: Vec<Zone>, zone_size: u64, most_open: usize) -> Self {
        let end = zones.len() as u64 * zone_size;
        let cell = |zone| ZoneCell {
            zone,
            opener: None,
            reset_due: false,
            holder: 0,
            holds: 0,
        };
        Self {
            cells: zones.into_iter().map(cell).collect(),
            zone_size,
            end,
            most_open,
            open: Vec::with_capacity(most_open),
            data: 0,
            sequential_data: 0,
            until_reset: u64::MAX,
        }
    }

    pub(in crate::native) fn most_open(&self) -> usize {
        self.most_open
    }

    pub(in crate::native) fn zone(&self, place: usize) -> Zone {
        self.cells[place].zone
    }

    /// The zone of an offset; behind the last one as many as there are.
    pub(in crate::native) fn at(&self, offset: u64) -> usize {
        let place = offset / self.zone_size;
        usize::try_from(place).map_or(self.cells.len(), |place| place.min(self.cells.len()))
    }

    /// Where a zone begins, or the device ends.
    pub(in crate::native) fn start_of(&self, place: usize) -> u64 {
        self.cells
            .get(place)
            .map_or(self.end, |cell| cell.zone.start)
    }

    /// Whether a zone of a part is sequential.
    pub(in crate::native) fn has_sequential(&self, zones: Range<usize>) -> bool {
        let cells = self.cells.get(zones).unwrap_or_default();
        cells.iter().any(|cell| cell.zone.sequential)
    }

    /// A writer begins: the zones of its part that are open on the device are open, those
    /// beyond the limits are to be reset.
    pub(in crate::native) fn begin(&mut self, user: &ZoneUser) -> Vec<usize> {
        let open = |cell: &ZoneCell| cell.zone.was_open && cell.opener.is_none();
        let places = user.zones.clone().filter(|&place| open(&self.cells[place]));
        let places: Vec<usize> = places.collect();
        places
            .into_iter()
            .filter(|&place| !self.open(user, place))
            .collect()
    }

    /// A pass of a writer begins: counts what its part holds. The zones that are to be
    /// reset before it, if it reads back what it writes.
    pub(in crate::native) fn begin_pass(&mut self, user: &ZoneUser) -> Vec<usize> {
        let cells = &self.cells[user.zones.clone()];
        self.data = cells.iter().map(ZoneCell::data).sum();
        let sequential = cells.iter().filter(|cell| cell.zone.sequential);
        self.sequential_data = sequential.map(ZoneCell::data).sum();
        self.count_down(user);
        if !user.verifies {
            return Vec::new();
        }
        let zones = user.zones.clone();
        let zones: Vec<_> = zones
            .filter(|&place| self.cells[place].zone.sequential)
            .collect();
        zones.iter().for_each(|&place| self.close(place));
        let full = |place: &usize| self.cells[*place].data() > 0;
        zones.into_iter().filter(full).collect()
    }

    fn count_down(&mut self, user: &ZoneUser) {
        self.until_reset = match user.reset_share {
            share if share > 0.0 => ((1.0 / share) as u64).max(1),
            _ => u64::MAX,
        };
    }

    /// Whether anything can be read of the device.
    pub(in crate::native) fn has_data(&self) -> bool {
        self.data > 0
    }

    /// Where an I/O goes.
    pub(in crate::native) fn choose(&mut self, user: &ZoneUser, ask: ZoneAsk) -> ZoneChoice {
        let place = self.at(ask.offset);
        let Some(cell) = self.cells.get(place) else {
            return ZoneChoice::End;
        };
        let as_asked = ZoneChoice::Go {
            offset: ask.offset,
            len: ask.len,
            zone: None,
        };
        if !cell.zone.sequential {
            return match ask.dir {
                DirIndex::Write => self.write_anywhere(user, ask, place),
                _ => as_asked,
            };
        }
        match ask.dir {
            DirIndex::Read if user.reads_beyond && !cell.zone.offline => as_asked,
            _ if !self.is_free(user, place) => ZoneChoice::Busy,
            DirIndex::Read => self.read(user, ask, place),
            DirIndex::Write => self.write(user, ask, place),
            DirIndex::Trim => self.trim(user, ask, place),
        }
    }

    /// A write to a conventional zone ends before the next sequential one.
    fn write_anywhere(&self, user: &ZoneUser, ask: ZoneAsk, place: usize) -> ZoneChoice {
        let least = u64::from(user.least[DirIndex::Write as usize]);
        let (start, next) = (self.start_of(place), self.start_of(place + 1));
        let meets = self
            .cells
            .get(place + 1)
            .is_some_and(|next| next.zone.sequential);
        let (mut offset, mut len) = (ask.offset, u64::from(ask.len));
        if meets && offset + len > next {
            if offset + least > next {
                offset = start + (next - offset);
            }
            len = len.min(next - offset) / least * least;
        }
        ZoneChoice::Go {
            offset,
            len: len as u32,
            zone: None,
        }
    }

    fn read(&mut self, user: &ZoneUser, ask: ZoneAsk, asked: usize) -> ZoneChoice {
        let least = u64::from(user.least[DirIndex::Read as usize]);
        let len = u64::from(ask.len);
        let readable = |cell: &ZoneCell| match cell.zone.offline {
            true => 0,
            false => cell.data(),
        };
        let (mut place, mut offset) = (asked, ask.offset);
        let cell = &self.cells[place];
        let is_behind = !user.random && offset + least > cell.zone.pointer;
        if readable(cell) < least || is_behind {
            place = match self.nearest_with(user, least, asked) {
                Ok(place) => place,
                Err(choice) => return choice,
            };
            if !user.random {
                offset = self.cells[place].zone.start;
            }
        }
        let cell = &self.cells[place];
        let (start, range) = (cell.zone.start, cell.data());
        if range <= len {
            offset = start;
        } else if user.random {
            let within = (ask.offset - self.start_of(asked)) % (range - len);
            offset = start + within / least * least;
        }
        if !cell.zone.sequential {
            return ZoneChoice::Go {
                offset,
                len: ask.len,
                zone: None,
            };
        }
        let len = len.min(cell.zone.pointer - offset) / least * least;
        self.go(user, place, offset, len as u32)
    }

    fn trim(&mut self, user: &ZoneUser, ask: ZoneAsk, asked: usize) -> ZoneChoice {
        // Its own I/Os there would fail.
        if !ask.quiet {
            return ZoneChoice::Quiesce;
        }
        if !user.random || self.cells[asked].data() > 0 {
            return self.go(user, asked, ask.offset, ask.len);
        }
        match self.nearest_with(user, 1, asked) {
            Ok(place) if self.cells[place].zone.sequential => {
                self.go(user, place, self.start_of(place), ask.len)
            }
            Ok(_) => ZoneChoice::End,
            Err(choice) => choice,
        }
    }

    /// The next zone of the part that holds so much; of a random job the nearest, on
    /// either side.
    fn nearest_with(&self, user: &ZoneUser, bytes: u64, from: usize) -> Found {
        let holds = |place: usize| {
            let cell = &self.cells[place];
            if cell.zone.offline {
                None
            } else if !self.is_free(user, place) {
                Some(Err(ZoneChoice::Busy))
            } else {
                (cell.data() >= bytes).then_some(Ok(place))
            }
        };
        let mut above = (from + 1..user.zones.end).map(holds);
        let mut below = (user.zones.start..from).rev().map(holds);
        for _ in user.zones.clone() {
            if let Some(Some(found)) = above.next() {
                return found;
            }
            if user.random
                && let Some(Some(found)) = below.next()
            {
                return found;
            }
        }
        Err(ZoneChoice::End)
    }

    fn write(&mut self, user: &ZoneUser, ask: ZoneAsk, asked: usize) -> ZoneChoice {
        if u64::from(ask.len) > self.zone_size {
            return ZoneChoice::Fault(ZoneFault::LongerThanZones);
        }
        let place = match self.open(user, asked) {
            true => asked,
            false => match self.open_instead(user, ask, asked) {
                Ok(place) => place,
                Err(choice) => return choice,
            },
        };
        let least = u64::from(user.least[DirIndex::Write as usize]);
        let much = user.len as f64 * user.reset_from;
        if user.reset_share > 0.0
            && !self.cells[place].reset_due
            && self.sequential_data as f64 >= much
        {
            self.until_reset -= 1;
            if self.until_reset == 0 {
                self.count_down(user);
                self.cells[place].reset_due = true;
            }
        }
        let cell = &mut self.cells[place];
        if cell.data() == 0 {
            cell.reset_due = false;
        }
        if cell.reset_due || cell.is_full(least) {
            if user.verifies {
                return ZoneChoice::End;
            }
            if cell.data() > 0 {
                if !ask.quiet {
                    if self.cells[place].is_full(least) {
                        // The write that filled it is over and closed it; it has just been
                        // opened for a reset, and no write would close it again.
                        self.close(place);
                    }
                    return ZoneChoice::Quiesce;
                }
                self.hold(user, place);
                return ZoneChoice::Reset(place);
            }
        }
        self.write_at(user, place, ask.len)
    }

    /// A write to a zone that has been reset for it.
    pub(in crate::native) fn after_reset(
        &mut self,
        user: &ZoneUser,
        place: usize,
        len: u32,
    ) -> ZoneChoice {
        self.let_go(place);
        self.write_at(user, place, len)
    }

    /// All writes are at the pointer.
    fn write_at(&mut self, user: &ZoneUser, place: usize, len: u32) -> ZoneChoice {
        let least = u64::from(user.least[DirIndex::Write as usize]);
        let cell = &self.cells[place];
        let offset = cell.zone.pointer;
        let len = u64::from(len).min(cell.end() - offset) / least * least;
        let fault = if cell.zone.capacity < least {
            Some(ZoneFault::SmallCapacity)
        } else if offset.wrapping_sub(user.start) >= user.len {
            Some(ZoneFault::PointerOutside)
        } else if len < least {
            Some(ZoneFault::SmallRest)
        } else {
            None
        };
        if let Some(fault) = fault {
            return ZoneChoice::Fault(fault);
        }
        self.cells[place].zone.pointer += len;
        self.data += len;
        self.sequential_data += len;
        self.go(user, place, offset, len as u32)
    }

    fn go(&mut self, user: &ZoneUser, place: usize, offset: u64, len: u32) -> ZoneChoice {
        self.hold(user, place);
        ZoneChoice::Go {
            offset,
            len,
            zone: Some(place),
        }
    }

    /// Counts a zone as open, if it is not and may be; whether it can be written.
    fn open(&mut self, user: &ZoneUser, place: usize) -> bool {
        let least = u64::from(user.least[DirIndex::Write as usize]);
        let cell = &self.cells[place];
        if cell.zone.offline || (user.verifies && cell.is_full(least)) {
            return false;
        }
        if self.most_open == 0 {
            return true;
        }
        if cell.opener.is_some() {
            // One that the writes under way fill counts as full.
            return cell.zone.pointer < cell.end();
        }
        if !self.may_open(user) {
            return false;
        }
        self.open.push(place);
        self.cells[place].opener = Some(user.id);
        true
    }

    fn may_open(&self, user: &ZoneUser) -> bool {
        let own = || {
            let opener = |&&place: &&usize| self.cells[place].opener == Some(user.id);
            self.open.iter().filter(opener).count()
        };
        let within = user.most_open == 0 || own() < user.most_open;
        within && self.open.len() < self.most_open
    }

    fn close(&mut self, place: usize) {
        if self.cells[place].opener.take().is_some() {
            self.open.retain(|&open| open != place);
        }
    }

    /// A zone for a write whose own can not be opened: one that is open, or another that
    /// is opened for it.
    fn open_instead(&mut self, user: &ZoneUser, ask: ZoneAsk, asked: usize) -> Found {
        let least = u64::from(user.least[DirIndex::Write as usize]);
        let mut from = asked;
        if self.most_open > 0 && !self.open.is_empty() {
            let count = self.open.len();
            let part = u128::from(ask.offset - user.start) * count as u128;
            let first = (part / u128::from(user.len)) as usize % count;
            let around = (0..count).map(|step| self.open[(first + step) % count]);
            let mut own = around.filter(|place| user.zones.contains(place));
            // Others have all that may be open, elsewhere.
            from = own.next().ok_or(ZoneChoice::End)?;
            if !self.is_free(user, from) {
                return Err(ZoneChoice::Busy);
            }
        }
        if self.has_room(from, least) && (self.most_open == 0 || self.cells[from].opener.is_some())
        {
            return Ok(from);
        }
        let all_open = self.open.len() == user.zones.len() || !self.may_open(user);
        if all_open && self.most_open > 0 && !ask.quiet {
            return Err(ZoneChoice::Quiesce);
        }
        if let Some(found) = self.open_next(user, from) {
            return found;
        }
        for &place in self.open.iter().filter(|place| user.zones.contains(place)) {
            if !self.is_free(user, place) {
                return Err(ZoneChoice::Busy);
            }
            if self.has_room(place, least) {
                return Ok(place);
            }
        }
        if !ask.quiet {
            return Err(ZoneChoice::Quiesce);
        }
        // What others have under way may close a zone.
        let others = self.cells.iter().any(|cell| cell.holds > 0);
        Err(if others {
            ZoneChoice::Busy
        } else {
            ZoneChoice::End
        })
    }

    /// Opens the first zone of the part behind one that can be opened.
    fn open_next(&mut self, user: &ZoneUser, from: usize) -> Option<Found> {
        let count = user.zones.len();
        for step in 1..=count {
            let place = user.zones.start + (from - user.zones.start + step) % count;
            let cell = &self.cells[place];
            if !cell.zone.sequential || cell.opener.is_some() {
                continue;
            }
            if !self.is_free(user, place) {
                return Some(Err(ZoneChoice::Busy));
            }
            if self.open(user, place) {
                return Some(Ok(place));
            }
        }
        None
    }

    fn has_room(&self, place: usize, least: u64) -> bool {
        let cell = &self.cells[place];
        !cell.zone.offline && cell.zone.pointer + least <= cell.end()
    }

    /// Whether no other user has I/Os in it.
    fn is_free(&self, user: &ZoneUser, place: usize) -> bool {
        let cell = &self.cells[place];
        cell.holds == 0 || cell.holder == user.id
    }

    fn hold(&mut self, user: &ZoneUser, place: usize) {
        let cell = &mut self.cells[place];
        cell.holder = user.id;
        cell.holds += 1;
    }

    fn let_go(&mut self, place: usize) {
        let holds = &mut self.cells[place].holds;
        *holds = holds.saturating_sub(1);
    }

    /// An I/O that held a zone is over; a write that filled it closes it.
    pub(in crate::native) fn over(&mut self, place: usize, dir: DirIndex, end: u64) {
        self.let_go(place);
        if dir == DirIndex::Write && end >= self.cells[place].end() {
            self.close(place);
        }
    }

    /// A zone is empty again; whether it was not.
    pub(in crate::native) fn was_reset(&mut self, place: usize) -> bool {
        let cell = &mut self.cells[place];
        let data = cell.data();
        cell.zone.pointer = cell.zone.start;
        cell.reset_due = false;
        self.data = self.data.saturating_sub(data);
        self.sequential_data = self.sequential_data.saturating_sub(data);
        data > 0
    }

    /// Zones that are open and counted.
    #[cfg(test)]
    pub(super) fn open_zones(&self, of: Option<u32>) -> usize {
        let by = |place: &&usize| of.is_none() || self.cells[**place].opener == of;
        self.open.iter().filter(by).count()
    }
}
