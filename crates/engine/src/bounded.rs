//! Text of others, of which no more is taken than somebody would read.

/// Most text that is taken from another side.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Text that grows to [`TEXT_BYTES_MAX`] and no further.
#[derive(Debug, Default)]
pub struct Bounded {
    taken: usize,
}

impl Bounded {
    /// The part of `bytes` that still has room, and whether the rest was the
    /// first that had none.
    pub fn fit<'b>(&mut self, bytes: &'b [u8]) -> (&'b [u8], bool) {
        let was_full = self.taken > TEXT_BYTES_MAX;
        let room = TEXT_BYTES_MAX.saturating_sub(self.taken);
        self.taken = self.taken.saturating_add(bytes.len());
        let is_full = self.taken > TEXT_BYTES_MAX;
        (&bytes[..bytes.len().min(room)], is_full && !was_full)
    }
}

/// What stands where text was left out.
pub const LEFT_OUT: &str = "(more than 1 MiB of text: the rest is left out)";
