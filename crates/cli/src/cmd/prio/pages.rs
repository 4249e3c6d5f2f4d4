//! `fathom prio pages`: reads and checks pages of limits.

use std::path::PathBuf;

use fathom_device::cdl::file::{self, FileError};
use fathom_device::cdl::scsi::{self, CdlPages};
use fathom_device::cdl::{Bound, CdlPage, Page};
use fathom_device::command::KernelDevices;
use fathom_device::{Sys, SysBlock};
use fathom_model::Exit;
use fathom_report::grid::{Grid, figures, words};
use serde_json::{Value, json};

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
        for page in fathom_campaign::prio::shipped() {
            pages.push((format!("{}.cdl, as shipped", page.kind), page));
        }
    }
    if global.json {
        let pages: Vec<Value> = pages
            .iter()
            .map(|(name, page)| document(name, page))
            .collect();
        out::json(&json!({ "schema": "fathom.cdl-pages/1", "pages": pages }))?;
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
    let of = fathom_campaign::prio::of(page.kind);
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

/// The document of a page, as `fathom.cdl-pages/1` holds it.
pub fn document(name: &str, page: &Page) -> Value {
    let ms = |ns: u64| ns as f64 / 1e6;
    let descriptors: Vec<Value> = (1..)
        .zip(&page.descriptors)
        .map(|(number, descriptor)| {
            let limit = |bound| {
                let limit = descriptor.limit(bound);
                json!({
                    "ms": descriptor.ns(bound).map(ms),
                    "policy": limit.policy.name(),
                    "policy_code": limit.policy.0,
                })
            };
            json!({
                "number": number,
                "max_inactive": limit(Bound::Inactive),
                "max_active": limit(Bound::Active),
                "duration_guideline": limit(Bound::Duration),
            })
        })
        .collect();
    json!({
        "file": name,
        "page": page.kind.name(),
        "perf_vs_duration_percent": match page.kind {
            CdlPage::T2a => page.guideline.percent(),
            CdlPage::T2b => None,
        },
        "descriptors": descriptors,
    })
}
