//! What an NVMe namespace says of its blocks.

/// The blocks of a namespace, as Identify Namespace has them (NVM Command Set
/// Specification 1.0, figure 97).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmeNamespace {
    /// Its number on its controller.
    pub nsid: u32,
    /// How many blocks it has (NSZE).
    pub blocks: u64,
    /// Bytes of data in a block, a power of two.
    pub block_bytes: u32,
    /// Bytes of metadata of a block.
    pub metadata_bytes: u16,
}

impl NvmeNamespace {
    /// From the structure; `None` for one without a format that can be used.
    pub fn read(nsid: u32, identity: &[u8]) -> Option<Self> {
        // FLBAS: bits 3:0 and, above them, 6:5 are the format in force. The formats are
        // four bytes each from 128 on: metadata in two, the power of two of the data.
        let flbas = *identity.get(26)?;
        let format = 128 + 4 * usize::from(flbas & 0xf | flbas >> 1 & 0x30);
        let format = identity.get(format..format + 4)?;
        let blocks = identity.get(..8)?.try_into().ok()?;
        Some(Self {
            nsid,
            blocks: u64::from_le_bytes(blocks),
            block_bytes: 1u32.checked_shl(format[2].into()).filter(|&n| n >= 512)?,
            metadata_bytes: u16::from_le_bytes([format[0], format[1]]),
        })
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks.saturating_mul(self.block_bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_in_force_tells_the_blocks() {
        let mut identity = [0u8; 4096];
        identity[..8].copy_from_slice(&0x1000u64.to_le_bytes());
        identity[128..132].copy_from_slice(&[0, 0, 9, 0]);
        identity[132..136].copy_from_slice(&[8, 0, 12, 0]);
        // Format 16 + 1.
        identity[128 + 68..128 + 72].copy_from_slice(&[0, 0, 12, 0]);
        let of = |flbas: u8, identity: &mut [u8; 4096]| {
            identity[26] = flbas;
            let found = NvmeNamespace::read(3, identity).unwrap();
            (found.block_bytes, found.metadata_bytes, found.bytes())
        };
        assert_eq!(of(0, &mut identity), (512, 0, 0x1000 * 512));
        assert_eq!(of(1, &mut identity), (4096, 8, 0x1000 * 4096));
        // Bit 4 is where the metadata are.
        assert_eq!(of(0x11, &mut identity), (4096, 8, 0x1000 * 4096));
        assert_eq!(of(0x21, &mut identity), (4096, 0, 0x1000 * 4096));
        identity[26] = 2;
        assert_eq!(NvmeNamespace::read(3, &identity), None, "an unused format");
        assert_eq!(NvmeNamespace::read(3, &identity[..20]), None);
    }
}
