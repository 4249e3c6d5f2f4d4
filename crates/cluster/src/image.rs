//! A container image that holds one static file: Fathom.
//!
//! An OCI image layout in a tar (image-spec 1.0, image-layout.md), as
//! `ctr images import`, `podman load` and `skopeo copy oci-archive:` take it.

use std::io::{self, Write};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Where the file stands in the image.
pub const PROGRAM: &str = "/fathom";

/// Writes an image of `program`, to be known as `tag` (`localhost/fathom:0.1`),
/// for the processors that the program is for, as Go names them (`amd64`).
///
/// # Errors
/// Those of writing.
pub fn write(program: &[u8], tag: &str, architecture: &str, out: impl Write) -> io::Result<()> {
    let layer = layer(program)?;
    let config = json!({
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": [PROGRAM], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
    });
    let config = config.to_string().into_bytes();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &layer)],
    });
    let manifest = manifest.to_string().into_bytes();
    let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    entry["annotations"] = json!({
        // What containerd's importer takes for the whole name.
        "io.containerd.image.name": tag,
        "org.opencontainers.image.ref.name": tag.rsplit_once(':').map_or("latest", |(_, name)| name),
    });
    let index = json!({"schemaVersion": 2, "manifests": [entry]});
    let mut image = tar::Builder::new(out);
    let layout = json!({"imageLayoutVersion": "1.0.0"});
    add(
        &mut image,
        "oci-layout",
        layout.to_string().as_bytes(),
        0o644,
    )?;
    add(
        &mut image,
        "index.json",
        index.to_string().as_bytes(),
        0o644,
    )?;
    for blob in [&config, &manifest, &layer] {
        let name = format!("blobs/sha256/{}", &digest(blob)["sha256:".len()..]);
        add(&mut image, &name, blob, 0o644)?;
    }
    image.into_inner()?.flush()
}

/// The file system: the program, and a folder for what it writes meanwhile.
fn layer(program: &[u8]) -> io::Result<Vec<u8>> {
    let mut layer = tar::Builder::new(Vec::new());
    let mut folder = header(0, 0o1777);
    folder.set_entry_type(tar::EntryType::Directory);
    layer.append_data(&mut folder, "tmp/", io::empty())?;
    add(&mut layer, PROGRAM.trim_start_matches('/'), program, 0o755)?;
    layer.into_inner()
}

fn header(bytes: usize, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes as u64);
    header.set_mode(mode);
    // The same program gives the same image.
    header.set_mtime(0);
    header
}

fn add(to: &mut tar::Builder<impl Write>, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    to.append_data(&mut header(bytes.len(), mode), name, bytes)
}

fn descriptor(media_type: &str, blob: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(blob), "size": blob.len()})
}

fn digest(blob: &[u8]) -> String {
    let hex: String = Sha256::digest(blob)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// Whether a program runs without a loader and libraries, which an image of one
/// file does not have: an ELF file without PT_INTERP (System V ABI, chapter 5).
pub fn is_static(program: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let number = |at: usize, bytes: usize| {
        let bytes = program.get(at..at + bytes)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0u64, |all, &byte| all << 8 | u64::from(byte)) as usize,
        )
    };
    let interpreted = || {
        // 64-bit, little-endian: e_phoff, e_phentsize, e_phnum (elf(5)).
        let (begin, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
        let kinds = (0..count).map(|place| number(begin + place * size, 4));
        Some(kinds.flatten().any(|kind| kind == PT_INTERP as usize))
    };
    program.starts_with(b"\x7fELF\x02\x01") && interpreted() == Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn the_image_holds_the_program_under_its_digest() {
        let mut image = Vec::new();
        write(b"program", "localhost/fathom:0.1", "amd64", &mut image).unwrap();
        let mut names = Vec::new();
        let mut layers = 0;
        for entry in tar::Archive::new(&image[..]).entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            if let Some(hex) = name.strip_prefix("blobs/sha256/") {
                assert_eq!(digest(&bytes), format!("sha256:{hex}"));
                layers += usize::from(bytes.windows(7).any(|window| window == b"program"));
            }
            names.push(name);
        }
        assert_eq!((names.len(), layers), (5, 1), "{names:?}");
        let mut again = Vec::new();
        write(b"program", "localhost/fathom:0.1", "amd64", &mut again).unwrap();
        assert!(image == again);
    }

    #[test]
    fn a_program_with_a_loader_is_not_static() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(!is_static(&own));
        assert!(!is_static(b"#!/bin/sh"));
    }
}
