//! What is under way in one slot: the worker's own notes of it, where whoever looks for
//! stuck I/Os sees them.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::backend::Op;

/// An I/O under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFlight {
    pub(super) op: Op,
    pub(super) file: u32,
    pub(super) offset: u64,
    /// Bytes of the whole I/O, and of them those already moved.
    pub(super) len: u32,
    pub(super) moved: u32,
    pub(super) class: u8,
    /// The zone that it holds.
    pub(super) zone: Option<u32>,
    /// With verify: which write of its pass it is or reads back.
    pub(super) number: u32,
    /// When it should have begun, in ticks; without a rate as `drawn`.
    pub(super) intended: u64,
    /// When the worker took it up.
    pub(super) drawn: u64,
    /// When it was handed over.
    pub(super) issued: u64,
}

impl InFlight {
    pub(super) const NOTHING: Self = Self {
        op: Op::Read,
        file: 0,
        offset: 0,
        len: 0,
        moved: 0,
        class: 0,
        zone: None,
        number: 0,
        intended: 0,
        drawn: 0,
        issued: 0,
    };
}

/// Where an [`InFlight`] is kept: one line of the cache, which the copies of a device's
/// data push out between two I/Os. The worker alone writes it, as everywhere in its
/// statistics.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct SlotCell {
    /// 0: free; else the code of what is under way.
    kind: AtomicU8,
    class: AtomicU8,
    file: AtomicU32,
    len: AtomicU32,
    moved: AtomicU32,
    /// [`NO_ZONE`]: none.
    zone: AtomicU32,
    number: AtomicU32,
    offset: AtomicU64,
    intended: AtomicU64,
    drawn: AtomicU64,
    issued: AtomicU64,
}

const NO_ZONE: u32 = u32::MAX;
const _: () = assert!(size_of::<SlotCell>() == 64);

impl SlotCell {
    /// What is under way, or was before the slot became free.
    #[inline]
    pub(super) fn get(&self) -> InFlight {
        let zone = self.zone.load(Relaxed);
        InFlight {
            op: Op::of(self.kind.load(Relaxed)).unwrap_or(Op::Read),
            file: self.file.load(Relaxed),
            offset: self.offset.load(Relaxed),
            len: self.len.load(Relaxed),
            moved: self.moved.load(Relaxed),
            class: self.class.load(Relaxed),
            zone: (zone != NO_ZONE).then_some(zone),
            number: self.number.load(Relaxed),
            intended: self.intended.load(Relaxed),
            drawn: self.drawn.load(Relaxed),
            issued: self.issued.load(Relaxed),
        }
    }

    #[inline]
    pub(super) fn set(&self, under: &InFlight) {
        self.file.store(under.file, Relaxed);
        self.offset.store(under.offset, Relaxed);
        self.len.store(under.len, Relaxed);
        self.moved.store(under.moved, Relaxed);
        self.class.store(under.class, Relaxed);
        self.zone.store(under.zone.unwrap_or(NO_ZONE), Relaxed);
        self.number.store(under.number, Relaxed);
        self.intended.store(under.intended, Relaxed);
        self.drawn.store(under.drawn, Relaxed);
        self.issued.store(under.issued, Relaxed);
        self.kind.store(under.op.code(), Relaxed);
    }

    /// It is over.
    #[inline]
    pub(super) fn clear(&self) {
        self.kind.store(0, Relaxed);
    }

    /// What it does, if anything is under way.
    #[inline]
    pub(super) fn op(&self) -> Option<Op> {
        Op::of(self.kind.load(Relaxed))
    }

    /// When it was taken up last.
    #[inline]
    pub(super) fn drawn(&self) -> u64 {
        self.drawn.load(Relaxed)
    }

    /// Now it was handed over.
    #[inline]
    pub(super) fn issue(&self, at: u64) {
        self.issued.store(at, Relaxed);
    }

    /// So much of it is done.
    pub(super) fn moved(&self, bytes: u32) {
        self.moved.store(bytes, Relaxed);
    }
}

impl Default for SlotCell {
    fn default() -> Self {
        Self {
            kind: AtomicU8::default(),
            class: AtomicU8::default(),
            file: AtomicU32::default(),
            len: AtomicU32::default(),
            moved: AtomicU32::default(),
            zone: AtomicU32::new(NO_ZONE),
            number: AtomicU32::default(),
            offset: AtomicU64::default(),
            intended: AtomicU64::default(),
            drawn: AtomicU64::default(),
            issued: AtomicU64::default(),
        }
    }
}
