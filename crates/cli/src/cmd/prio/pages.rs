//! `fathom prio pages`: reads and checks pages of limits.

use std::path::PathBuf;

use fathom_device::cdl::file::{self, FileError};
use fathom_device::cdl::scsi::{self, CdlPages};
use fathom_device::cdl::{Bound, CdlPage, Page};
use fathom_device::command::KernelDevices;
use fathom_device::{Sys, SysBlock};
use fathom_model::Exit;
use fathom_sheet::grid::{Grid, figures, words};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cmd::{ExitError, Global};
use crate::out;

/// Check pages of limits (as cdladm has them), or show those of a disk
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a file, the two pages that fathom prio uploads by default. Every fault of a file is told
with its line.

Examples:
  fathom prio pages
  fathom prio pages T2A.cdl T2B.cdl
  fathom prio pages /dev/sdh
  fathom prio pages T2A.cdl --json")]
pub struct Args {
    /// Page files, or disks
    #[arg(value_name = "FILE|DEVICE")]
    files: Vec<PathBuf>,
}

/// Reads a page file.
pub fn read(path: &std::path::Path) -> anyhow::Result<Page> {
    file::read(path).map_err(|error| {
        let exit = match &error {
            FileError::Io { .. } => Exit::Missing,
            FileError::Faults { .. } => Exit::Input,
        };
        let message = error.to_string();
        ExitError::new(exit, message).into()
    })
}

/// The pages that limit the I/Os of a disk.
fn of_disk(disk: &SysBlock) -> anyhow::Result<Vec<Page>> {
    let dev = disk.dev_path();
    let mut pages = Vec::new();
    let mut why = String::new();
    for kind in CdlPage::ALL {
        match scsi::limits(&KernelDevices, &dev, kind) {
            Ok(CdlPages::Page(page)) if page == kind => {
                pages.push(scsi::read(&KernelDevices, &dev, kind)?.0)
            }
            Ok(_) => {}
            Err(error) => why = format!(" that can be read: {error}"),
        }
    }
    if pages.is_empty() {
        let message = format!("{} has no Command Duration Limits{why}", dev.display());
        return Err(ExitError::new(Exit::Missing, message).into());
    }
    Ok(pages)
}

/// Shows them.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut pages = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        match Sys::live().by_path(path) {
            Some(disk) => {
                let of_disk = of_disk(&disk)?.into_iter();
                pages.extend(of_disk.map(|page| (name.clone(), page)));
            }
            None => pages.push((name, read(path)?)),
        }
    }
    if args.files.is_empty() {
        for page in fathom_suites::prio::shipped() {
            pages.push((format!("{}.cdl, as shipped", page.kind), page));
        }
    }
    if global.json {
        out::json(&PagesDocument {
            schema: "fathom.cdl-pages/1",
            pages: (pages.iter())
                .map(|(name, page)| ShownPage::of(name, page))
                .collect(),
        })?;
        return Ok(Exit::Success);
    }
    for (place, (name, page)) in pages.iter().enumerate() {
        if place > 0 {
            out::line("");
        }
        show(global, name, page);
    }
    Ok(Exit::Success)
}

fn show(global: &Global, name: &str, page: &Page) {
    let percent = match page.guideline.percent() {
        Some(percent) if page.kind == CdlPage::T2a => {
            format!(", up to {percent} % of the performance may go for them")
        }
        _ => String::new(),
    };
    let of = fathom_suites::prio::of(page.kind);
    out::line(format_args!(
        "{name}: page {} (limits of {of}){percent}",
        page.kind
    ));
    let mut grid = Grid::new([
        figures("limit", 0),
        words("wait (max inactive)", 0),
        words("work (max active)", 0),
        words("whole (duration guideline)", 0),
    ]);
    for (number, descriptor) in (1..).zip(&page.descriptors) {
        let [inactive, active, duration] = Bound::ALL.map(|bound| descriptor.told(bound));
        grid.line([
            format!("{number}").into(),
            inactive.into(),
            active.into(),
            duration.into(),
        ]);
    }
    out::text(grid.render(out::style(global.color)));
}

/// What `--json` prints.
#[derive(Serialize, JsonSchema)]
pub struct PagesDocument {
    schema: &'static str,
    pages: Vec<ShownPage>,
}

/// A page of limits.
#[derive(Serialize, JsonSchema)]
pub struct ShownPage {
    /// The file or the disk.
    file: String,
    /// `T2A` or `T2B`
    page: &'static str,
    /// Of T2A: the share of the performance that may go for the limits.
    perf_vs_duration_percent: Option<f64>,
    descriptors: Vec<ShownDescriptor>,
}

/// A descriptor.
#[derive(Serialize, JsonSchema)]
struct ShownDescriptor {
    /// From 1.
    number: u32,
    max_inactive: ShownLimit,
    max_active: ShownLimit,
    duration_guideline: ShownLimit,
}

/// A limit, and what the disk does when it is missed.
#[derive(Serialize, JsonSchema)]
struct ShownLimit {
    /// Null: there is none.
    ms: Option<f64>,
    /// Null: a code that no standard has a name for.
    policy: Option<&'static str>,
    policy_code: u8,
}

impl ShownPage {
    /// Of a page of this name.
    pub fn of(name: &str, page: &Page) -> Self {
        let descriptors = (1..).zip(&page.descriptors).map(|(number, descriptor)| {
            let limit = |bound| {
                let limit = descriptor.limit(bound);
                ShownLimit {
                    ms: descriptor.ns(bound).map(|ns| ns as f64 / 1e6),
                    policy: limit.policy.name(),
                    policy_code: limit.policy.0,
                }
            };
            ShownDescriptor {
                number,
                max_inactive: limit(Bound::Inactive),
                max_active: limit(Bound::Active),
                duration_guideline: limit(Bound::Duration),
            }
        });
        Self {
            file: name.to_owned(),
            page: page.kind.name(),
            perf_vs_duration_percent: match page.kind {
                CdlPage::T2a => page.guideline.percent(),
                CdlPage::T2b => None,
            },
            descriptors: descriptors.collect(),
        }
    }
}
