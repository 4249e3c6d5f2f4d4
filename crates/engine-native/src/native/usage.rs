//! What a thread has used of the machine.

/// Scheduling figures of a thread.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    pub(super) user_us: u64,
    pub(super) system_us: u64,
    pub(super) switches: u64,
    pub(super) major_faults: u64,
    pub(super) minor_faults: u64,
}

impl Usage {
    /// What was used since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            user_us: self.user_us.saturating_sub(before.user_us),
            system_us: self.system_us.saturating_sub(before.system_us),
            switches: self.switches.saturating_sub(before.switches),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
        }
    }
}
