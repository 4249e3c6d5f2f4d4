//! What blkid finds on a device: it knows formats that are not known here.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::{Signature, SignatureClass};

/// A device that does not answer keeps nobody waiting for longer.
const LONGEST: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);
/// It tells a few hundred bytes.
const MOST_BYTES: u64 = 64 << 10;
/// It found several things that exclude one another (blkid(8)).
const AMBIVALENT: i32 = 8;

/// What it finds on the device that is open here; `None`: nothing, or there is no blkid.
pub(super) fn of(file: &File) -> Option<Signature> {
    let process = std::process::id();
    let mut blkid = Command::new("blkid")
        .args(["--probe", "--output", "export"])
        .arg(format!("/proc/{process}/fd/{}", file.as_raw_fd()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let status = ended(&mut blkid)?;
    let mut text = String::new();
    let told = blkid.stdout.take()?.take(MOST_BYTES);
    // What is no text says nothing.
    let _ = { told }.read_to_string(&mut text);
    judge(status.code(), &text)
}

fn ended(blkid: &mut Child) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match blkid.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begun.elapsed() < LONGEST => std::thread::sleep(LOOK),
            Ok(None) | Err(_) => {
                let _ = blkid.kill();
                let _ = blkid.wait();
                return None;
            }
        }
    }
}

/// What a partition is to the table around it (`PART_ENTRY_…`) is not on it.
fn judge(code: Option<i32>, text: &str) -> Option<Signature> {
    let value = |name: &str| {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
        let value: String = value.chars().filter(|c| is_plain(*c)).take(40).collect();
        (!value.is_empty()).then_some(value)
    };
    let class = match value("USAGE").as_deref() {
        Some("raid") => SignatureClass::Member,
        Some("crypto") => SignatureClass::Encrypted,
        Some("other") => SignatureClass::Swap,
        _ => SignatureClass::FileSystem,
    };
    let (kind, class) = match (value("TYPE"), value("PTTYPE")) {
        (Some(kind), _) => (kind, class),
        (None, Some(kind)) => (kind, SignatureClass::PartitionTable),
        (None, None) if code == Some(AMBIVALENT) => {
            ("more than one format".to_owned(), SignatureClass::Swap)
        }
        (None, None) => return None,
    };
    Some(Signature {
        kind: Cow::Owned(kind),
        class,
        offset: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_tables_are_signatures_and_entries_of_a_table_are_none() {
        let told = |code: i32, text: &str| judge(Some(code), text).map(|it| it.to_string());
        let minix = "DEVNAME=/proc/self/fd/3\nTYPE=minix\nUSAGE=filesystem\n";
        let wanted = Some("minix file system (by blkid)".to_owned());
        assert_eq!(told(0, minix), wanted);
        let entry = "PART_ENTRY_SCHEME=gpt\nPART_ENTRY_TYPE=x\n";
        assert_eq!(told(0, entry), None);
        assert_eq!(told(2, ""), None);
        let both = told(0, &format!("PTTYPE=dos\n{entry}"));
        assert_eq!(both.as_deref(), Some("dos partition table (by blkid)"));
        let ambivalent = told(8, "");
        assert_eq!(
            ambivalent.as_deref(),
            Some("more than one format (by blkid)")
        );
        let hostile = told(0, "TYPE=\u{1b}[2J\u{7}x y\n");
        assert_eq!(hostile.as_deref(), Some("2Jxy file system (by blkid)"));
    }
}
