//! What looks like a name of something, wherever it stands.

use std::net::{IpAddr, SocketAddr};

/// Folders that every system has.
const COMMON_FOLDERS: [&str; 8] = [
    "/sys/",
    "/proc/",
    "/usr/",
    "/bin/",
    "/sbin/",
    "/lib/",
    "/lib64/",
    "/dev/shm/",
];

/// The words of a text between blanks, quotes and brackets, each with all that is before it.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_between = |c: char| c.is_whitespace() || "\"'`,;()[]{}<>|=".contains(c);
    let parts = text.split(is_between).filter(|token| !token.is_empty());
    // A part of the text: how far its beginning is from the text's.
    parts.map(move |token| (&text[..token.as_ptr().addr() - text.as_ptr().addr()], token))
}

pub(super) fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || "._-".contains(c)
}

pub(super) fn leading_name(text: &str) -> &str {
    let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
    &text[..end]
}

/// A path that is the same on every machine: of the kernel, of the system, of a plain device.
pub(super) fn is_common(path: &str) -> bool {
    let name = path.strip_prefix("/dev/").unwrap_or("/");
    let is_device = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric());
    let mut common = COMMON_FOLDERS.iter();
    is_device || ["/", "/tmp", "/dev"].contains(&path) || common.any(|it| path.starts_with(it))
}

pub(super) fn is_path(part: &str) -> bool {
    let is_one = part.starts_with('/') || part.starts_with("~/") || part.starts_with("./");
    let is_done = |rest: &str| rest.bytes().all(|c| c.is_ascii_digit());
    is_one
        && part.len() > 2
        && !is_common(part)
        && !part.strip_prefix("/path-").is_some_and(is_done)
}

/// An address of this or another machine, perhaps with a port or a length behind it.
pub(super) fn is_address(word: &str) -> bool {
    let bare = word.trim_matches(['[', ']']);
    let bare = bare.split(['/', '%']).next().unwrap_or(bare);
    let ip = bare.parse::<IpAddr>().ok();
    let ip = ip.or_else(|| word.parse::<SocketAddr>().ok().map(|it| it.ip()));
    let is_ip = ip.is_some_and(|ip| !ip.is_loopback() && !ip.is_unspecified());
    let pairs: Vec<&str> = word.split([':', '-']).collect();
    let is_pair = |it: &&str| it.len() == 2 && it.bytes().all(|c| c.is_ascii_hexdigit());
    is_ip || (pairs.len() == 6 && pairs.iter().all(is_pair))
}

/// What names one thing in the world: a UUID, an NQN, a WWN.
pub(super) fn is_identity(word: &str) -> bool {
    let lower = word.to_lowercase();
    let is_hex = |text: &str| text.bytes().all(|c| c.is_ascii_hexdigit());
    let groups: Vec<&str> = lower.split('-').collect();
    let is_uuid = groups.len() == 5
        && groups.iter().map(|it| it.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|it| is_hex(it));
    let named = ["nqn.", "iqn.", "eui.", "naa.", "wwn-", "uuid.", "t10."];
    let wwn = lower.strip_prefix("0x").unwrap_or(&lower);
    // NAA 2, 3, 5 and 6 (SPC-4, 7.8.6.6): 8 or 16 bytes.
    let is_wwn =
        matches!(wwn.len(), 16 | 32) && is_hex(wwn) && wwn.starts_with(['2', '3', '5', '6']);
    is_uuid
        || is_wwn
        || named
            .iter()
            .any(|name| lower.starts_with(name) && lower.len() > 8)
}
