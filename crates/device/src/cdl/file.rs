//! Page files: the text that `cdladm save` writes and `cdladm upload` reads.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Bound, CdlPage, CdlUnit, DESCRIPTORS, Descriptor, Guideline, Page, Policy};

/// What is wrong in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdlFault {
    /// The line, counted from 1.
    pub line: u32,
    /// A sentence without a full stop.
    pub what: String,
}

/// Why a page file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its text is wrong; every fault is named.
    #[error("{}", CdlListed(path, faults))]
    Faults {
        /// The file.
        path: PathBuf,
        /// In the order of lines; never empty.
        faults: Vec<CdlFault>,
    },
}

struct CdlListed<'f>(&'f Path, &'f [CdlFault]);

impl fmt::Display for CdlListed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (place, fault) in self.1.iter().enumerate() {
            let end = if place == 0 { "" } else { "\n" };
            write!(
                f,
                "{end}{}:{}: {}",
                self.0.display(),
                fault.line,
                fault.what
            )?;
        }
        Ok(())
    }
}

/// Reads a page file.
///
/// # Errors
/// [`FileError`], with every fault of the text.
pub fn read(path: &Path) -> Result<Page, FileError> {
    let text = fs::read(path).map_err(|source| FileError::Io {
        path: path.to_owned(),
        source,
    })?;
    parse(&String::from_utf8_lossy(&text)).map_err(|faults| FileError::Faults {
        path: path.to_owned(),
        faults,
    })
}

/// A value with its line.
type CdlEntry<'t> = (u32, &'t str);

/// Lines of a block by their keys; the block's own line.
#[derive(Default)]
struct CdlBlock<'t> {
    line: u32,
    entries: BTreeMap<&'t str, CdlEntry<'t>>,
}

#[derive(Default)]
struct CdlReader<'t> {
    head: CdlBlock<'t>,
    /// Descriptors by number.
    blocks: BTreeMap<u8, CdlBlock<'t>>,
    faults: Vec<CdlFault>,
}

/// Reads the text of a page file. What follows a `#` is a comment.
///
/// # Errors
/// Every fault, in the order of lines.
pub fn parse(text: &str) -> Result<Page, Vec<CdlFault>> {
    let mut reader = CdlReader::default();
    reader.head.line = 1;
    reader.lines(text);
    let page = reader.page();
    reader.faults.sort_by_key(|fault| fault.line);
    match reader.faults.is_empty() {
        true => Ok(page),
        false => Err(reader.faults),
    }
}

impl<'t> CdlReader<'t> {
    fn fault(&mut self, line: u32, what: impl Into<String>) {
        let what = what.into();
        self.faults.push(CdlFault { line, what });
    }

    fn lines(&mut self, text: &'t str) {
        // The descriptor that lines belong to; of a wrong one they are passed over.
        let mut within: Option<Option<u8>> = None;
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            if let Some(title) = text.strip_prefix("==") {
                within = Some(self.descriptor(line, title.trim()));
                continue;
            }
            let Some((key, value)) = text.split_once(':') else {
                self.fault(line, format!("'{text}' is no 'name: value'"));
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            let block = match within {
                None => Some(&mut self.head),
                Some(Some(number)) => self.blocks.get_mut(&number),
                Some(None) => None,
            };
            let Some(block) = block else { continue };
            let known = match within {
                None => ["cdlp", "perf-vs-duration-guideline"].contains(&key),
                Some(_) => descriptor_keys().any(|known| known == key),
            };
            if !known {
                self.fault(line, format!("'{key}' is not known here"));
            } else if let Some((before, _)) = block.entries.insert(key, (line, value)) {
                self.fault(line, format!("{key} is set on line {before} already"));
            }
        }
    }

    /// The number of a new block.
    fn descriptor(&mut self, line: u32, title: &str) -> Option<u8> {
        let number = title
            .strip_prefix("descriptor:")
            .and_then(|number| number.trim().parse::<u8>().ok());
        let Some(number) = number.filter(|n| (1..=DESCRIPTORS as u8).contains(n)) else {
            self.fault(
                line,
                format!("'{title}' is not 'descriptor: N' with N from 1 to 7"),
            );
            return None;
        };
        let block = CdlBlock {
            line,
            ..CdlBlock::default()
        };
        if let Some(before) = self.blocks.insert(number, block) {
            let what = format!("descriptor {number} begins on line {} already", before.line);
            self.fault(line, what);
        }
        Some(number)
    }

    fn page(&mut self) -> Page {
        let head = std::mem::take(&mut self.head);
        let kind = match head.entries.get("cdlp") {
            Some(&(line, name)) => CdlPage::of_name(name).unwrap_or_else(|| {
                self.fault(line, format!("the page '{name}' is neither T2A nor T2B"));
                CdlPage::T2a
            }),
            None => {
                self.fault(head.line, "there is no 'cdlp: T2A' or 'cdlp: T2B'");
                CdlPage::T2a
            }
        };
        let mut page = Page::empty(kind);
        match (kind, head.entries.get("perf-vs-duration-guideline")) {
            (CdlPage::T2a, None) => self.fault(head.line, "there is no perf-vs-duration-guideline"),
            (CdlPage::T2b, None) => {}
            (CdlPage::T2b, Some(&(line, _))) => {
                self.fault(line, "only page T2A has a perf-vs-duration-guideline");
            }
            (CdlPage::T2a, Some(&entry)) => {
                let code = self.number("perf-vs-duration-guideline", entry, 0xf);
                page.guideline = Guideline(code as u8);
                if page.guideline.percent().is_none() {
                    let what =
                        format!("perf-vs-duration-guideline {code:#x} is not one of 0x0 to 0xc");
                    self.fault(entry.0, what);
                }
            }
        }
        let mut blocks = std::mem::take(&mut self.blocks);
        for (number, descriptor) in (1..).zip(&mut page.descriptors) {
            match blocks.remove(&number) {
                Some(block) => *descriptor = self.limits(&block),
                None => self.fault(head.line, format!("there is no descriptor {number}")),
            }
        }
        page
    }

    fn limits(&mut self, block: &CdlBlock<'t>) -> Descriptor {
        let mut descriptor = Descriptor::default();
        if let Some(entry) = self.entry(block, "t2cdlunits") {
            let unit = CdlUnit(self.number("t2cdlunits", entry, 0xf) as u8);
            if unit.ns().is_none() {
                let what = format!(
                    "t2cdlunits {:#x} is not one of 0x0 (none), 0x6 (500 ns), 0x8 (1 us), 0xa (10 ms), 0xe (500 ms)",
                    unit.0
                );
                self.fault(entry.0, what);
            }
            descriptor.unit = unit;
        }
        for bound in Bound::ALL {
            if let Some(entry) = self.entry(block, bound.name()) {
                let time = self.number(bound.name(), entry, u16::MAX);
                if time > 0 && descriptor.unit.0 == 0 {
                    let what =
                        format!("{} is {time}, but t2cdlunits is 0x0: no unit", bound.name());
                    self.fault(entry.0, what);
                }
                descriptor.limit_mut(bound).time = time;
            }
            let key = policy_key(bound);
            if let Some(entry) = self.entry(block, key) {
                let code = self.number(key, entry, 0xf) as u8;
                if !bound.policies().contains(&code) {
                    let named = |code: &u8| format!("{code:#x} ({})", Policy(*code));
                    let these: Vec<String> = bound.policies().iter().map(named).collect();
                    let what = format!("{key} {code:#x} is not one of {}", these.join(", "));
                    self.fault(entry.0, what);
                }
                descriptor.limit_mut(bound).policy = Policy(code);
            }
        }
        descriptor
    }

    fn entry(&mut self, block: &CdlBlock<'t>, key: &str) -> Option<CdlEntry<'t>> {
        let entry = block.entries.get(key).copied();
        if entry.is_none() {
            self.fault(block.line, format!("this descriptor has no {key}"));
        }
        entry
    }

    /// A number, in hexadecimal with `0x`; a fault and 0 when it is none.
    fn number(&mut self, key: &str, (line, text): CdlEntry, max: u16) -> u16 {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let number = match digits {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        match number.map(u16::try_from) {
            Ok(Ok(number)) if number <= max => number,
            Ok(_) => {
                self.fault(line, format!("{key} {text} is more than {max:#x}"));
                0
            }
            Err(_) => {
                self.fault(line, format!("{key} '{text}' is no number"));
                0
            }
        }
    }
}

fn policy_key(bound: Bound) -> &'static str {
    match bound {
        Bound::Inactive => "max-inactive-time-policy",
        Bound::Active => "max-active-time-policy",
        Bound::Duration => "duration-guideline-policy",
    }
}

fn descriptor_keys() -> impl Iterator<Item = &'static str> {
    let limits = Bound::ALL
        .into_iter()
        .flat_map(|bound| [bound.name(), policy_key(bound)]);
    std::iter::once("t2cdlunits").chain(limits)
}

/// A page as such a file.
pub fn render(page: &Page) -> String {
    let mut text = format!("cdlp: {}\n\n", page.kind);
    if page.kind == CdlPage::T2a {
        let _ = writeln!(
            text,
            "perf-vs-duration-guideline: {:#x}\n",
            page.guideline.0
        );
    }
    for (number, descriptor) in (1..).zip(&page.descriptors) {
        let _ = writeln!(text, "== descriptor: {number}");
        let _ = writeln!(text, "t2cdlunits: {:#x}", descriptor.unit.0);
        for bound in Bound::ALL {
            let limit = descriptor.limit(bound);
            let _ = writeln!(text, "{}: {}", bound.name(), limit.time);
            let _ = writeln!(text, "{}: {:#x}", policy_key(bound), limit.policy.0);
        }
        text.push('\n');
    }
    text
}
