//! Whether a target may be written to. Reading is free; writing is not.
//!
//! Ordinary files and folders may be written. A block device may when nothing
//! uses it, nothing on it looks wanted, and the user has named it by a word
//! that only it answers to. The checks open it for reading at most.
//!
//! Between the check and the first write another program can still take the
//! device into use; from then on a [`Claim`] rules that out.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use fathom_model::units::{self, parse_size};
use fathom_model::{RefusalFinding, split_advice};

use crate::claim::{self, Claim};
use crate::exports;
use crate::names::{self, words};
use crate::openers::{self, Openers};
use crate::paths::{self, block_number, existing};
use crate::signature;
use crate::sys::{Sys, SysBlock, numbers};
use crate::usage::{self, Occupied, Use};

/// The words given to `--destroy`, each of which names a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confirmations(pub Vec<String>);

impl Confirmations {
    /// Whether one of them names the device that answers to `words` (see [`words`]).
    pub fn name(&self, sys: &Sys, node: &SysBlock, words: &[String]) -> bool {
        // `PATH=SIZE`, where that is the word: by any of its paths, in any unit.
        let by_size = |word: &str| {
            matches!(words, [only] if names::is_sized(only))
                && word.rsplit_once('=').is_some_and(|(path, size)| {
                    sys.by_path(Path::new(path)).as_ref() == Some(node)
                        && size_in_bytes(size) == Some(node.size_bytes())
                })
        };
        self.0.iter().any(|word| {
            let word = word.trim();
            words.iter().any(|known| names::is_named(known, word)) || by_size(word)
        })
    }
}

/// Why a target may not be written to. Nothing was written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The device does not exist; writing would make a file of that name.
    #[error(
        "{path} does not exist; writing to it would make a file in /dev\n  to do: check the name (ls -l /dev/disk/by-id)"
    )]
    NoSuchDevice {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A file in /dev, most likely one that a mistyped name once made.
    #[error(
        "{path} is a file in /dev, not a device; it would fill memory\n  to do: remove it and check the name (ls -l /dev/disk/by-id)"
    )]
    FileAmongDevices {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A character device: a controller, a generic SCSI node, memory.
    #[error(
        "{path} is a character device; Fathom writes to block devices and files only\n  to do: name the block device (for /dev/nvme0: /dev/nvme0n1)"
    )]
    CharacterDevice {
        /// The path as it was given.
        path: PathBuf,
    },
    /// Text was to be written to a device.
    #[error(
        "{path} is a device; no output is written there\n  to do: name a file (a terminal, a pipe and /dev/stdout will do)"
    )]
    OutputIsDevice {
        /// The path as it was given.
        path: PathBuf,
    },
    /// It is in use, or carries something that may be wanted.
    #[error("{0}")]
    InUse(Box<InUse>),
    /// Nothing uses it, but it was not named in `--destroy`.
    #[error("{0}")]
    Unconfirmed(Box<Unconfirmed>),
    /// It cannot be found out whether it is in use.
    #[error("{path}: {reason}, so it cannot be checked whether it is in use; nothing was written")]
    Unknown {
        /// The path as it was given.
        path: PathBuf,
        /// What stood in the way.
        reason: String,
    },
}

impl Refusal {
    /// What was found, for programs.
    pub fn findings(&self) -> Vec<RefusalFinding> {
        let (kind, path) = match self {
            Self::InUse(found) => {
                let each = found.uses.iter();
                return each.map(|it| found.finding(it)).collect();
            }
            Self::Unconfirmed(found) => {
                let word = found.words.first();
                return vec![RefusalFinding {
                    kind: "unconfirmed",
                    path: found.path.clone(),
                    what: "it was not named".to_owned(),
                    to_do: word.map(|word| format!("--destroy {}", quoted(word))),
                }];
            }
            Self::NoSuchDevice { path } => ("no_such_device", path),
            Self::FileAmongDevices { path } => ("file_among_devices", path),
            Self::CharacterDevice { path } => ("character_device", path),
            Self::OutputIsDevice { path } => ("output_is_device", path),
            Self::Unknown { path, .. } => ("unknown", path),
        };
        let message = self.to_string();
        let (what, to_do) = split_advice(&message);
        vec![RefusalFinding {
            kind,
            path: path.clone(),
            what: what.to_owned(),
            to_do: to_do.map(str::to_owned),
        }]
    }

    /// The same of a target that the user calls by another path.
    #[must_use]
    pub fn of(mut self, named: &Path) -> Self {
        let path = match &mut self {
            Self::NoSuchDevice { path }
            | Self::FileAmongDevices { path }
            | Self::CharacterDevice { path }
            | Self::OutputIsDevice { path }
            | Self::Unknown { path, .. } => path,
            Self::InUse(found) => &mut found.path,
            Self::Unconfirmed(found) => &mut found.path,
        };
        named.clone_into(path);
        self
    }
}

fn is_data(found: &Use) -> bool {
    matches!(found, Use::Signature { .. })
}

impl InUse {
    /// What ends one of its uses. What a device carries is needed while something uses it, so
    /// that goes first and nothing is advised to erase it.
    fn remedy(&self, found: &Use) -> Option<String> {
        let is_needed = is_data(found) && !self.uses.iter().all(is_data);
        (!is_needed).then(|| found.remedy())
    }

    fn finding(&self, found: &Use) -> RefusalFinding {
        RefusalFinding {
            kind: found.kind(),
            path: found.device().to_owned(),
            what: found.to_string(),
            to_do: self.remedy(found).filter(|_| !found.is_system()),
        }
    }
}

/// What is known of a target that is in use.
#[derive(Debug, PartialEq, Eq)]
pub struct InUse {
    /// The path as it was given.
    pub path: PathBuf,
    /// Everything that was found.
    pub uses: Vec<Use>,
    /// The word that would confirm it afterwards, when it is not confirmed yet.
    pub word: Option<String>,
}

/// A device that would have been overwritten without having been named.
#[derive(Debug, PartialEq, Eq)]
pub struct Unconfirmed {
    /// The path as it was given.
    pub path: PathBuf,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Words that name it; the first is the shortest way.
    pub words: Vec<String>,
    /// The words that were given and do not name it.
    pub given: Vec<String>,
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let why = match self.uses.iter().all(is_data) {
            true => "carries what may still be wanted",
            false => "is in use",
        };
        write!(f, "{} {why}; nothing was written", self.path.display())?;
        for found in &self.uses {
            write!(f, "\n  - {found}")?;
        }
        // No word makes this one free to be written to.
        if let Some(system) = self.uses.iter().find(|found| found.is_system()) {
            return write!(f, "\n  to do: {}", system.remedy());
        }
        let mut remedies: Vec<String> = Vec::new();
        for remedy in self.uses.iter().filter_map(|found| self.remedy(found)) {
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
        write!(
            f,
            "\n  to do: check that it is the right device; then {}",
            remedies.join("; ")
        )?;
        match &self.word {
            Some(word) => write!(f, "; and confirm with --destroy {}", quoted(word)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Unconfirmed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let size = units::bytes(self.size_bytes as f64);
        write!(
            f,
            "{} ({size}) would be overwritten, which needs to be confirmed; nothing was written",
            self.path.display()
        )?;
        for word in &self.given {
            write!(f, "\n  - '{word}' does not name it")?;
        }
        write!(
            f,
            "\n  to do: if all data on it may be lost, add --destroy "
        )?;
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        write!(f, "{}", words.join(", or --destroy "))
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=+,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Decides what may be written to, from how the machine stands when it is asked
/// first.
#[derive(Debug)]
pub struct WriteJudge {
    sys: Sys,
    confirmed: Confirmations,
    /// What processes had open when it was asked last.
    openers: RefCell<Option<Openers>>,
    /// What files were in use for when it was asked first.
    taken: OnceCell<Occupied>,
}

impl WriteJudge {
    /// One that knows these words for devices.
    pub fn new(confirmed: &Confirmations) -> Self {
        Self {
            sys: Sys::live(),
            confirmed: confirmed.clone(),
            openers: RefCell::default(),
            taken: OnceCell::new(),
        }
    }

    /// Whether a target may be written to: `Ok` for ordinary files and folders that
    /// nobody else writes to (also those that do not exist yet), and for block devices
    /// that nothing uses and that one of the words names.
    ///
    /// # Errors
    /// A [`Refusal`] that names everything that was found and what to do.
    pub fn write(&self, path: &Path) -> Result<(), Refusal> {
        self.check(path, Signatures::Matter, &Claim::default())
    }

    /// As [`WriteJudge::write`], for a device that `claim` keeps from others.
    ///
    /// # Errors
    /// As [`WriteJudge::write`].
    pub fn write_claimed(&self, path: &Path, claim: &Claim) -> Result<(), Refusal> {
        self.check(path, Signatures::Matter, claim)
    }

    /// As [`WriteJudge::write`], for a target that has passed it and been written to
    /// since: whether it is still the one that was named and nobody but `claim` has
    /// taken it into use. What has been written there is not searched for signatures.
    ///
    /// # Errors
    /// As [`WriteJudge::write`].
    pub fn write_again(&self, path: &Path, claim: &Claim) -> Result<(), Refusal> {
        self.check(path, Signatures::AreOurs, claim)
    }

    /// Whether text may be written to a path: to a file that is nobody's device or
    /// swap, a terminal, a pipe, /dev/null, but to no block device, nor as a new file
    /// among devices.
    ///
    /// # Errors
    /// The [`Refusal`].
    pub fn output(&self, path: &Path) -> Result<(), Refusal> {
        let meta = match fs::metadata(path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return check_missing(path),
            Err(e) => return Err(unknown(path, &e.to_string())),
        };
        let kind = meta.file_type();
        let is_device = kind.is_block_device() || (kind.is_char_device() && !takes_text(&meta));
        if is_device {
            let path = path.to_owned();
            return Err(Refusal::OutputIsDevice { path });
        }
        match kind.is_file() {
            true => in_use(path, self.uses_of_file(path, &meta)),
            false => Ok(()),
        }
    }

    /// What could not be looked at when a target was judged, in a sentence.
    pub fn unseen(&self) -> Option<String> {
        let unseen = self.openers.borrow().as_ref()?.unseen;
        let exports = exports::unseen(&self.sys).filter(|(_, is_container)| *is_container);
        let exports = exports.map(|(modules, _)| {
            format!(
                "{modules} is loaded outside this container: whether it serves a target to other machines is not known"
            )
        });
        let others = (unseen > 0).then(|| {
            let processes = units::counted(unseen, "process");
            format!(
                "{processes} of other users could not be looked at: whether they have a target open for writing is not known (root sees all)"
            )
        });
        let told: Vec<String> = others.into_iter().chain(exports).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// The processes that have a target open for writing, as `find` names them. udev,
    /// losetup and the like have every device open for moments: who is gone within a
    /// second is nobody.
    fn opened(&self, find: impl Fn(&Openers) -> Vec<Use>) -> Vec<Use> {
        let mut openers = self.openers.borrow_mut();
        let mut uses = find(openers.get_or_insert_with(|| Openers::now(&self.sys)));
        for _ in 0..claim::LOOKS {
            if uses.is_empty() {
                break;
            }
            std::thread::sleep(claim::PAUSE);
            uses = find(openers.insert(Openers::now(&self.sys)));
        }
        uses
    }

    fn check(&self, path: &Path, signatures: Signatures, claim: &Claim) -> Result<(), Refusal> {
        let meta = match fs::metadata(path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return check_missing(path),
            Err(e) => return Err(unknown(path, &e.to_string())),
        };
        let kind = meta.file_type();
        if kind.is_block_device() {
            self.check_block(path, &meta, signatures, claim)
        } else if kind.is_char_device() {
            match self.sys.by_path(path) {
                Some(disk) => self.check_generic(path, &disk, signatures, claim),
                None => check_character(path, &meta),
            }
        } else if kind.is_file() {
            self.check_file(path, &meta)
        } else {
            Ok(())
        }
    }

    /// A generic device is its block device in every respect, and judged there.
    fn check_generic(
        &self,
        path: &Path,
        disk: &SysBlock,
        signatures: Signatures,
        claim: &Claim,
    ) -> Result<(), Refusal> {
        let block = disk.dev_path();
        let meta = fs::metadata(&block).ok();
        match meta.filter(|_| self.sys.by_path(&block).as_ref() == Some(disk)) {
            Some(meta) => self.check_block(&block, &meta, signatures, claim),
            None => Err(unknown(
                path,
                &format!("its block device {} is not here", block.display()),
            )),
        }
    }

    fn check_file(&self, path: &Path, meta: &Metadata) -> Result<(), Refusal> {
        let real = fs::canonicalize(path).map_err(|e| unknown(path, &e.to_string()))?;
        if among_devices(&real) {
            let path = path.to_owned();
            return Err(Refusal::FileAmongDevices { path });
        }
        let mut uses = self.uses_of_file(&real, meta);
        if uses.is_empty() {
            uses = self.opened(|openers| self.openers_of_file(openers, &real));
        }
        in_use(path, uses)
    }

    fn uses_of_file(&self, path: &Path, meta: &Metadata) -> Vec<Use> {
        let taken = self.taken.get_or_init(|| Occupied::now(&self.sys));
        usage::of_file(&self.sys, taken, path, meta)
    }

    /// The processes that have a file open for writing, or that there is one.
    fn openers_of_file(&self, openers: &Openers, path: &Path) -> Vec<Use> {
        let mut uses = usage::openers_of(&self.sys, openers, path);
        if uses.is_empty() && openers::is_written_elsewhere(&self.sys, path) {
            uses.push(Use::OpenElsewhere {
                device: path.to_owned(),
            });
        }
        uses
    }

    fn check_block(
        &self,
        path: &Path,
        meta: &Metadata,
        signatures: Signatures,
        claim: &Claim,
    ) -> Result<(), Refusal> {
        let sys = &self.sys;
        let node = block_number(meta)
            .and_then(|(major, minor)| sys.by_number(major, minor))
            .ok_or_else(|| unknown(path, "this system does not describe it in /sys"))?;
        let size_bytes = node.size_bytes();
        if size_bytes == 0 {
            return Err(unknown(
                path,
                "it has no capacity (no medium, or not set up)",
            ));
        }
        let mut uses = find_uses(sys, path, &node, signatures, claim)?;
        // Whoever has it mounted, or claimed, is told already.
        if uses.is_empty() {
            uses = self.opened(|openers| usage::openers(sys, openers, &node));
        }
        let words = words(sys, path, &node);
        let named = self.confirmed.name(sys, &node, &words);
        if !uses.is_empty() {
            return Err(Refusal::InUse(Box::new(InUse {
                path: path.to_owned(),
                uses,
                word: words.into_iter().next().filter(|_| !named),
            })));
        }
        if named {
            return Ok(());
        }
        Err(Refusal::Unconfirmed(Box::new(Unconfirmed {
            path: path.to_owned(),
            size_bytes,
            words,
            given: self.confirmed.0.clone(),
        })))
    }
}

fn in_use(path: &Path, uses: Vec<Use>) -> Result<(), Refusal> {
    if uses.is_empty() {
        return Ok(());
    }
    Err(Refusal::InUse(Box::new(InUse {
        path: path.to_owned(),
        uses,
        word: None,
    })))
}

/// [`WriteJudge::write`] for a single target.
///
/// # Errors
/// As there.
pub fn check_write(path: &Path, confirmed: &Confirmations) -> Result<(), Refusal> {
    WriteJudge::new(confirmed).write(path)
}

/// Whether data on a device may be wanted by somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signatures {
    Matter,
    /// The data there are our own.
    AreOurs,
}

fn unknown(path: &Path, reason: &str) -> Refusal {
    Refusal::Unknown {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Whether a path without links is where device nodes are, and not one of the
/// file systems for files that are mounted there.
fn among_devices(real: &Path) -> bool {
    const FILES: [&str; 3] = ["/dev/shm", "/dev/mqueue", "/dev/hugepages"];
    real.starts_with("/dev") && !FILES.iter().any(|files| real.starts_with(files))
}

/// A path that does not exist is made as a file, which among devices is never meant.
fn check_missing(path: &Path) -> Result<(), Refusal> {
    let mut real = path.to_owned();
    // A link that leads nowhere is followed to where the file would be made.
    // 40 is what the kernel follows (path_resolution(7)).
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&real) else {
            break;
        };
        real = real.parent().unwrap_or(Path::new("/")).join(next);
    }
    let above = real.parent().and_then(existing).unwrap_or_default();
    if among_devices(&above) {
        let path = path.to_owned();
        return Err(Refusal::NoSuchDevice { path });
    }
    Ok(())
}

/// /dev/null and /dev/zero take every write and keep nothing
/// (kernel, Documentation/admin-guide/devices.txt: 1:3 and 1:5).
fn check_character(path: &Path, meta: &Metadata) -> Result<(), Refusal> {
    let harmless = cfg!(target_os = "linux") && matches!(numbers(meta.rdev()), (1, 3 | 5));
    if harmless {
        return Ok(());
    }
    let path = path.to_owned();
    Err(Refusal::CharacterDevice { path })
}

/// Whether a character device is one that text is written to: /dev/null, zero and
/// full, and terminals (devices.txt: 4 and 5 are consoles, 136 to 143 are those of
/// other programs).
fn takes_text(meta: &Metadata) -> bool {
    !cfg!(target_os = "linux")
        || matches!(
            numbers(meta.rdev()),
            (1, 3 | 5 | 7) | (4 | 5 | 136..=143, _)
        )
}

/// Everything that speaks against writing to a device. That it cannot be read
/// is the refusal only when nothing else is known.
fn find_uses(
    sys: &Sys,
    path: &Path,
    node: &SysBlock,
    signatures: Signatures,
    claim: &Claim,
) -> Result<Vec<Use>, Refusal> {
    let mut uses = usage::of_device(sys, node);
    let mut unread = None;
    // Asked last, because every use above is exclusive as well. With a claim of its own
    // the run would wait for itself.
    if uses.is_empty() && !claim.has(node) {
        match is_exclusive(path) {
            Ok(true) => uses.push(Use::Exclusive {
                device: node.dev_path(),
            }),
            Ok(false) => {}
            Err(e) => unread = Some(cannot_read(path, &e)),
        }
    }
    for other in paths::of(sys, node) {
        let device = other.dev_path();
        let taken = uses.is_empty() && !claim.has(&other) && is_exclusive(&device).unwrap_or(false);
        uses.extend(taken.then_some(Use::Exclusive { device }));
    }
    // Partitions first: wiping the table makes their devices go away.
    let partitions = node.partitions().into_iter();
    let mut examined: Vec<_> = partitions.map(|p| (p.dev_path(), p)).collect();
    examined.push((path.to_owned(), node.clone()));
    if signatures == Signatures::AreOurs {
        examined.clear();
    }
    for (path, node) in examined {
        match File::open(&path).and_then(|file| signature::read(&file, node.size_bytes())) {
            Ok(found) => uses.extend(found.into_iter().map(|signature| Use::Signature {
                device: node.dev_path(),
                size_bytes: node.size_bytes(),
                signature,
            })),
            Err(e) => unread = unread.or_else(|| Some(cannot_read(&path, &e))),
        }
    }
    match unread {
        Some(refusal) if uses.is_empty() => Err(refusal),
        _ => Ok(uses),
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Refusal {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "; devices are read as root",
        _ => "",
    };
    unknown(path, &format!("it cannot be read ({error}{hint})"))
}

/// Whether somebody has claimed a block device: file systems, swap, device mapper
/// and MD do, and programs that open it with O_EXCL.
fn is_exclusive(path: &Path) -> io::Result<bool> {
    Ok(claim::open_in_time(path)?.is_none())
}

/// `MB` is left out: to some it is a power of ten.
fn size_in_bytes(text: &str) -> Option<u64> {
    match text.strip_suffix('B') {
        Some(unit) if !unit.ends_with('i') => None,
        _ => parse_size(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::exact_size;

    #[test]
    fn sizes_are_exact_in_the_largest_unit() {
        for (bytes, text) in [
            (512 << 20, "512MiB"),
            (3 << 40, "3TiB"),
            (1_000_204_886_016, "976762584KiB"),
            (513, "513"),
        ] {
            assert_eq!(exact_size(bytes), text);
            assert_eq!(size_in_bytes(text), Some(bytes));
        }
        assert_eq!(size_in_bytes("536870912"), Some(512 << 20));
        assert_eq!(size_in_bytes("512M"), Some(512 << 20));
        for wrong in [
            "",
            "MiB",
            "-1MiB",
            "0.5GiB",
            "99999999TiB",
            "512 MiB",
            "512MB",
        ] {
            assert_eq!(size_in_bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn no_word_is_offered_for_the_disk_of_the_running_system() {
        let refusal = InUse {
            path: "/dev/vda".into(),
            uses: vec![
                Use::Mounted {
                    device: "/dev/vda".into(),
                    point: "/".into(),
                    pid: None,
                },
                Use::Swap {
                    device: "/dev/vda2".into(),
                },
            ],
            word: Some("serial".into()),
        };
        let told = refusal.to_string();
        let advice = "to do: choose another device: this one holds the running system";
        assert!(told.ends_with(advice), "{told}");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("nvme-eui.0025_x"), "nvme-eui.0025_x");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
