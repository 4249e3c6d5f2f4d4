//! Capacity of a drive that lies beyond what the device shows: a purge does not reach it,
//! and the drive may use it to spread its writes.

use fathom_model::HiddenCapacity;

use super::ata::Ata;
use super::nvme::Nvme;
use crate::command::Issue;
use crate::sys::SysBlock;

/// Asks the drive that the disk is. Changes nothing.
pub(crate) fn of(disk: &SysBlock, issue: &dyn Issue) -> Vec<HiddenCapacity> {
    let nvme = Nvme::unallocated(disk, issue);
    let ata = || Ata::behind(disk, issue).map(|ata| of_ata(&ata, disk, issue));
    nvme.or_else(ata).unwrap_or_default()
}

/// What commands, in the order in which one hides it from the next, say to be the size.
pub(super) fn of_ata(ata: &Ata, disk: &SysBlock, issue: &dyn Issue) -> Vec<HiddenCapacity> {
    let block: u64 = disk.value("queue/logical_block_size").unwrap_or(512);
    let mut shown = ata.sectors();
    let mut hidden = Vec::new();
    for (what, sectors) in ata.native_sectors(&disk.dev_path(), issue) {
        if sectors > shown {
            hidden.push(HiddenCapacity {
                what: what.to_owned(),
                bytes: (sectors - shown).saturating_mul(block),
            });
            shown = sectors;
        }
    }
    hidden
}
