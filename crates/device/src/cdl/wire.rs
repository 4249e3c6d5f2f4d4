//! The mode pages as they go over the wire (SPC-6, Command Duration Limit T2A
//! and T2B mode pages; Linux builds the same in `ata_msense_control_spgt2`,
//! drivers/ata/libata-scsi.c).
//!
//! Eight bytes of head (page code with the SPF bit, subpage, length, byte 7 with
//! the guideline in its upper half), then seven descriptors of 32 bytes: unit in
//! byte 0, times in bytes 2, 4 and 10, their policies in both halves of byte 6
//! and in byte 14.

use super::{CdlLimit, CdlPage, CdlUnit, Guideline, Page, Policy};

/// Control mode page (SPC-6 table of mode page codes).
pub const CONTROL: u8 = 0x0a;
/// Bytes of a page with its head.
pub const BYTES: usize = HEAD + super::DESCRIPTORS * DESCRIPTOR;
const HEAD: usize = 8;
const DESCRIPTOR: usize = 32;
/// Bit of byte 0: the page has a subpage code.
const SPF: u8 = 0x40;

/// Why bytes are no such page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("these are not the bytes of page {kind}: {what}")]
pub struct NotAPage {
    /// The page that was expected.
    pub kind: CdlPage,
    /// What stands against it.
    pub what: String,
}

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

/// Reads a page.
///
/// # Errors
/// When it is another one, or too short.
pub fn decode(kind: CdlPage, bytes: &[u8]) -> Result<Page, NotAPage> {
    let not = |what: String| Err(NotAPage { kind, what });
    if bytes.len() < BYTES {
        return not(format!("{} bytes instead of {BYTES}", bytes.len()));
    }
    if bytes[0] & 0x3f != CONTROL || bytes[0] & SPF == 0 || bytes[1] != kind.subpage() {
        return not(format!(
            "page {:02x}h, subpage {:02x}h",
            bytes[0] & 0x3f,
            bytes[1]
        ));
    }
    let mut page = Page::empty(kind);
    if kind == CdlPage::T2a {
        page.guideline = Guideline(bytes[7] >> 4);
    }
    for (descriptor, raw) in page
        .descriptors
        .iter_mut()
        .zip(bytes[HEAD..].chunks_exact(DESCRIPTOR))
    {
        let limit = |at: usize, policy: u8| CdlLimit {
            time: be16(&raw[at..]),
            policy: Policy(policy & 0xf),
        };
        descriptor.unit = CdlUnit(raw[0] & 0xf);
        descriptor.max_inactive = limit(2, raw[6] >> 4);
        descriptor.max_active = limit(4, raw[6]);
        descriptor.duration = limit(10, raw[14]);
    }
    Ok(page)
}

/// Writes a page over one that was read, whose other bits stay.
pub fn encode_over(page: &Page, bytes: &mut [u8; BYTES]) {
    // The PS bit is reserved when a page is sent (SPC-6 7.5.7).
    bytes[0] = CONTROL | SPF;
    bytes[1] = page.kind.subpage();
    bytes[2..4].copy_from_slice(&((BYTES - 4) as u16).to_be_bytes());
    if page.kind == CdlPage::T2a {
        bytes[7] = bytes[7] & 0xf | page.guideline.0 << 4;
    }
    for (descriptor, raw) in page
        .descriptors
        .iter()
        .zip(bytes[HEAD..].chunks_exact_mut(DESCRIPTOR))
    {
        raw[0] = raw[0] & 0xf0 | descriptor.unit.0;
        raw[2..4].copy_from_slice(&descriptor.max_inactive.time.to_be_bytes());
        raw[4..6].copy_from_slice(&descriptor.max_active.time.to_be_bytes());
        raw[6] = descriptor.max_inactive.policy.0 << 4 | descriptor.max_active.policy.0;
        raw[10..12].copy_from_slice(&descriptor.duration.time.to_be_bytes());
        raw[14] = raw[14] & 0xf0 | descriptor.duration.policy.0;
    }
}
