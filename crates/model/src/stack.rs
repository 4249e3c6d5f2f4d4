//! What lies under a target: file systems, devices and files, down to what keeps the data.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{text, units};

/// A file system, device or file, with what lies under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StackLayer {
    /// What it is.
    pub kind: LayerKind,
    /// A file system's type, or a device's kernel name: `ext4`, `loop3`, `vda1`.
    pub name: String,
    /// What stands behind it: the file of a loop device, what a mapped device is for and its
    /// name, where another machine keeps the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing: Option<String>,
    /// How a file system that copies on write keeps the data: `raid0`, `zstd:3`, `nocow`,
    /// `no checksums`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<String>,
    /// How a disk is attached: `nvme`, `scsi`, `virtio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// Size in bytes, of what keeps the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// What lies right under it; nothing under what keeps the data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under: Vec<StackLayer>,
}

/// What btrfs compresses with (btrfs(5), `compress`), and files that were marked for it.
const COMPRESSIONS: [&str; 4] = ["zlib", "lzo", "zstd", "compressed"];

/// Kinds of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// A file system on devices.
    FileSystem,
    /// One that merges folders of others.
    Overlay,
    /// One that a process serves (FUSE).
    Fuse,
    /// A part of a disk.
    Partition,
    /// A loop device.
    Loop,
    /// A device that the kernel makes of others: device mapper, MD.
    Mapped,
    /// A file system that keeps its files in memory: tmpfs, ramfs.
    Memory,
    /// A device that keeps its data in memory, or none at all: zram, brd, `null_blk`, pmem.
    MemoryDevice,
    /// Another machine, or the host of this one, keeps the data.
    Network,
    /// A disk.
    Disk,
    /// It cannot be told.
    Unknown,
}

impl StackLayer {
    /// A layer with nothing under it yet.
    pub fn new(kind: LayerKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            backing: None,
            data: Vec::new(),
            bus: None,
            size_bytes: None,
            under: Vec::new(),
        }
    }

    /// Itself and everything under it, from the top down.
    pub fn layers(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        let under = self.under.iter().flat_map(Self::layers);
        Box::new(std::iter::once(self).chain(under))
    }

    /// What keeps the data.
    pub fn leaves(&self) -> impl Iterator<Item = &Self> {
        self.layers().filter(|layer| layer.under.is_empty())
    }

    /// The first devices on the way down; of partitions their disks.
    pub fn first_devices(&self) -> Vec<&Self> {
        match self.is_device() && self.kind != LayerKind::Partition {
            true => vec![self],
            false => self.under.iter().flat_map(Self::first_devices).collect(),
        }
    }

    /// Whether a file system in memory keeps some of the data. Not asked of a device that
    /// was named itself: it is what it is.
    pub fn is_in_memory(&self) -> bool {
        self.leaves().any(|leaf| leaf.kind == LayerKind::Memory)
    }

    /// How it compresses what is written; `None` where it does not.
    pub fn compression(&self) -> Option<&str> {
        let is_one = |how: &&String| COMPRESSIONS.iter().any(|name| how.starts_with(name));
        self.data.iter().find(is_one).map(String::as_str)
    }

    /// Whether it is a device, and no file system.
    pub fn is_device(&self) -> bool {
        matches!(
            self.kind,
            LayerKind::Partition
                | LayerKind::Loop
                | LayerKind::Mapped
                | LayerKind::MemoryDevice
                | LayerKind::Disk
        )
    }
}

/// `ext4 → loop3 (/img/a) → ext4 → vda1 → vda (virtio, 256 GiB)`; members on the
/// same device are listed together: `btrfs → loop8, loop9, loop10 → ext4 → vda`.
impl fmt::Display for StackLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.label(), below(&self.under))
    }
}

impl StackLayer {
    /// What it is, without what lies under it.
    fn label(&self) -> String {
        let name = text::line(&self.name);
        let words = self.backing.iter().chain(&self.data).chain(&self.bus);
        let words = words.map(|word| text::line(word).into_owned());
        let size = self.size_bytes.map(|bytes| units::bytes(bytes as f64));
        let known: Vec<String> = words.chain(size).collect();
        match known.is_empty() {
            true => name.into_owned(),
            false => format!("{name} ({})", known.join(", ")),
        }
    }
}

/// The rest of a line, behind the layer that lies on these.
fn below(layers: &[StackLayer]) -> String {
    let each = |one: fn(&StackLayer) -> String, between| {
        let all: Vec<String> = layers.iter().map(one).collect();
        format!(" → {}", all.join(between))
    };
    match layers {
        [] => String::new(),
        [first, others @ ..] if others.iter().all(|it| it.under == first.under) => {
            each(StackLayer::label, ", ") + &below(&first.under)
        }
        _ => each(|layer| format!("[{layer}]"), " + "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(kind: LayerKind, name: &str, under: Vec<StackLayer>) -> StackLayer {
        StackLayer {
            under,
            ..StackLayer::new(kind, name)
        }
    }

    fn disk() -> StackLayer {
        StackLayer {
            bus: Some("virtio".to_owned()),
            size_bytes: Some(256 << 30),
            ..StackLayer::new(LayerKind::Disk, "vda")
        }
    }

    #[test]
    fn a_stack_is_one_line() {
        let mut of_loop = layer(
            LayerKind::Loop,
            "loop3",
            vec![layer(LayerKind::FileSystem, "ext4", vec![disk()])],
        );
        of_loop.backing = Some("/img/a".to_owned());
        let overlay = layer(LayerKind::Overlay, "overlay", vec![of_loop.clone()]);
        assert_eq!(
            overlay.to_string(),
            "overlay → loop3 (/img/a) → ext4 → vda (virtio, 256 GiB)"
        );
        let mut other = of_loop.clone();
        other.name = "loop4".to_owned();
        let btrfs = layer(LayerKind::FileSystem, "btrfs", vec![of_loop, other.clone()]);
        assert_eq!(
            btrfs.to_string(),
            "btrfs → loop3 (/img/a), loop4 (/img/a) → ext4 → vda (virtio, 256 GiB)"
        );
        let memory = StackLayer::new(LayerKind::Memory, "tmpfs");
        let both = layer(LayerKind::Overlay, "overlay", vec![other, memory]);
        assert!(both.is_in_memory());
        assert_eq!(
            both.to_string(),
            "overlay → [loop4 (/img/a) → ext4 → vda (virtio, 256 GiB)] + [tmpfs]"
        );
    }
}
