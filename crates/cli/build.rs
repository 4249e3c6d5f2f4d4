//! What the one static binary is spared: schemas of half a MiB in their whole length, and
//! relocations of 24 bytes each.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let docs = Path::new(&var("CARGO_MANIFEST_DIR")).join("../../docs");
    let folder = docs.join("schemas");
    let study = docs.join("study.schema.json");
    for watched in [&folder, &study] {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    let mut schemas =
        BTreeMap::from([("study.schema.json".to_owned(), fs::read_to_string(study)?)]);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        schemas.insert(format!("schemas/{name}"), fs::read_to_string(&path)?);
    }
    let packed = PathBuf::from(var("OUT_DIR")).join("schemas.json.gz");
    let mut packed = GzEncoder::new(File::create(packed)?, Compression::best());
    packed.write_all(serde_json::to_string(&schemas)?.as_bytes())?;
    packed.finish()?;
    // musl's start of a static program knows the short form (DT_RELR, since 1.2.4), and
    // binutils write it for x86 (since 2.38).
    if var("CARGO_CFG_TARGET_ENV") == "musl" && var("CARGO_CFG_TARGET_ARCH") == "x86_64" {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}
