//! What a device can do, and what a purge would do.

use std::path::Path;

use fathom_device::Sys;
use fathom_device::command::KernelDevices;
use fathom_device::purge::{
    Capabilities, MethodSupport, Namespace, Other, Purge, PurgeSettings, PurgeStep,
};
use fathom_model::environment::BlockDevice;
use fathom_model::{Exit, ExpectedContent, HiddenCapacity, units};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone};
use schemars::JsonSchema;
use serde::Serialize;

use super::failed;
use crate::cmd::Global;
use crate::out;

/// Shows the ways to purge a device.
pub fn show(
    global: &Global,
    sys: &Sys,
    want: &PurgeSettings,
    device: &Path,
) -> anyhow::Result<Exit> {
    let can = Capabilities::find(sys, &KernelDevices, device).map_err(failed)?;
    let offers = can.offers(want);
    if global.json {
        let namespace = can.nvme.as_ref().and_then(|nvme| nvme.namespace.as_ref());
        out::json(&MethodList {
            schema: "fathom.purge-methods/1",
            path: device,
            device: &can.device,
            lba_formats: namespace.map(formats),
            hidden: &can.hidden,
            methods: offers.iter().map(ListedMethod::of).collect(),
        })?;
        return Ok(Exit::Success);
    }
    let style = out::style(global.color);
    out::text(text(&can, &offers, style));
    Ok(Exit::Success)
}

/// What `--list --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct MethodList<'c> {
    schema: &'static str,
    /// As it was given.
    path: &'c Path,
    device: &'c BlockDevice,
    /// Of an NVMe namespace; null: it is none.
    lba_formats: Option<Vec<ListedFormat>>,
    /// Capacity of the drive that no method reaches.
    hidden: &'c [HiddenCapacity],
    methods: Vec<ListedMethod<'c>>,
}

/// A way to purge a device.
#[derive(Serialize, JsonSchema)]
struct ListedMethod<'c> {
    method: String,
    about: &'static str,
    possible: bool,
    /// Why it is not possible.
    reason: Option<&'c str>,
    promise: ExpectedContent,
    touches: Vec<TouchedNamespace<'c>>,
    /// What the device itself expects.
    estimate_s: Option<u64>,
}

/// Another namespace of the drive, whose data go as well.
#[derive(Serialize, JsonSchema)]
struct TouchedNamespace<'c> {
    nsid: u32,
    /// Null: this machine has no device for it.
    path: Option<&'c Path>,
}

/// An LBA format of a namespace.
#[derive(Serialize, JsonSchema)]
struct ListedFormat {
    lbaf: usize,
    data_bytes: u64,
    metadata_bytes: u16,
    in_use: bool,
}

impl<'c> ListedMethod<'c> {
    fn of(offer: &'c MethodSupport) -> Self {
        Self {
            method: offer.method.to_string(),
            about: offer.method.about(),
            possible: offer.against.is_none(),
            reason: offer.against.as_deref(),
            promise: offer.promise,
            touches: touched(&offer.touches),
            estimate_s: offer.estimate.map(|time| time.as_secs()),
        }
    }
}

fn touched(others: &[Other]) -> Vec<TouchedNamespace<'_>> {
    others
        .iter()
        .map(|other| TouchedNamespace {
            nsid: other.nsid,
            path: other.path.as_deref(),
        })
        .collect()
}

fn formats(namespace: &Namespace) -> Vec<ListedFormat> {
    let all = namespace.formats.iter().enumerate();
    all.map(|(lbaf, format)| ListedFormat {
        lbaf,
        data_bytes: format.data_bytes,
        metadata_bytes: format.metadata_bytes,
        in_use: lbaf == usize::from(namespace.lbaf),
    })
    .collect()
}

fn promise(promise: ExpectedContent) -> &'static str {
    match promise {
        ExpectedContent::Gone => "data gone",
        ExpectedContent::Zeros => "zeros",
        ExpectedContent::Written => "these bytes",
    }
}

fn text(can: &Capabilities, offers: &[MethodSupport], style: Style) -> String {
    let name = style.paint(Tone::Strong, &can.path.display().to_string());
    let model = can
        .device
        .model
        .as_deref()
        .or(can.device.backing.as_deref());
    let size = units::bytes(can.size_bytes as f64);
    let mut text = format!("{name}  {} {size}\n\n", model.unwrap_or_default());
    let mut grid = Grid::new([
        words("method", 0),
        words("afterwards", 1),
        figures("expected", 2),
        words("what it does", 3),
    ]);
    for offer in offers.iter().filter(|offer| offer.against.is_none()) {
        let estimate = offer.estimate.map_or_else(
            || "–".to_owned(),
            |time| units::duration(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        );
        let mut about = offer.method.about().to_owned();
        if !offer.touches.is_empty() {
            about.push_str(", and with it the data of other namespaces");
        }
        grid.line([
            GridCell::new(Tone::Strong, offer.method.to_string()),
            GridCell::new(Tone::Plain, promise(offer.promise)),
            GridCell::new(Tone::Plain, estimate),
            GridCell::new(Tone::Plain, about),
        ]);
    }
    text.push_str(&grid.render(style));
    text.push_str(&surroundings(can));
    let mut not = offers
        .iter()
        .filter_map(|offer| Some((offer, offer.against.as_deref()?)));
    let first = not.next();
    if first.is_some() {
        text.push_str("\nNot possible:\n");
    }
    for (offer, reason) in first.into_iter().chain(not) {
        let line = format!("  {}: {reason}\n", offer.method);
        text.push_str(&style.paint(Tone::Faint, &line));
    }
    text
}

/// The formats of an NVMe namespace, and the other namespaces of its drive.
fn surroundings(can: &Capabilities) -> String {
    let mut text = String::new();
    if let Some(namespace) = can.nvme.as_ref().and_then(|nvme| nvme.namespace.as_ref()) {
        let all = namespace
            .formats
            .iter()
            .enumerate()
            .filter(|(_, format)| format.data_bytes > 0);
        let all = all.map(|(number, format)| {
            let mark = if number == usize::from(namespace.lbaf) {
                "*"
            } else {
                ""
            };
            format!(
                "{number}{mark}: {}+{}",
                format.data_bytes, format.metadata_bytes
            )
        });
        let all: Vec<String> = all.collect();
        text.push_str(&format!(
            "\nLBA formats (data+metadata bytes, * in use): {}\n",
            all.join("  ")
        ));
    }
    for hidden in &can.hidden {
        let size = units::bytes(hidden.bytes as f64);
        text.push_str(&format!(
            "\nNot reached by any of them: {size}, {}\n",
            hidden.what
        ));
    }
    let others: Vec<String> = can
        .others
        .iter()
        .map(|other| match &other.path {
            Some(path) => format!("{} (namespace {})", path.display(), other.nsid),
            None => format!("namespace {} (no device here)", other.nsid),
        })
        .collect();
    if !others.is_empty() {
        text.push_str(&format!(
            "\nOther namespaces of the drive: {}\n",
            others.join(", ")
        ));
    }
    text
}

/// What `--dry-run --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct PurgePlan<'c> {
    schema: &'static str,
    /// As it was given.
    path: &'c Path,
    method: String,
    promise: ExpectedContent,
    touches: Vec<TouchedNamespace<'c>>,
    steps: Vec<PlannedCommand>,
}

/// A step of a purge.
#[derive(Serialize, JsonSchema)]
struct PlannedCommand {
    what: String,
    /// What a person would type for it.
    command: String,
    /// The command as the drive gets it; null where the kernel or Fathom does it.
    issued: Option<String>,
}

/// Shows every step of a purge.
pub fn steps(global: &Global, purge: &Purge) -> anyhow::Result<()> {
    if global.json {
        let of = |step: &PurgeStep| PlannedCommand {
            what: step.what.clone(),
            command: step.like.clone(),
            issued: step.issued(),
        };
        return out::json(&PurgePlan {
            schema: "fathom.purge-plan/1",
            path: &purge.capabilities.path,
            method: purge.method.to_string(),
            promise: purge.promise,
            touches: touched(&purge.touches),
            steps: purge.commands().iter().map(of).collect(),
        });
    }
    for (method, reason) in &purge.passed_over {
        out::line(format_args!("# {method} was passed over: {reason}"));
    }
    for step in purge.commands() {
        out::line(format_args!("# {}", step.what));
        out::line(&step.like);
        if let Some(issued) = step.issued().filter(|issued| *issued != step.like) {
            out::line(format_args!("#   issued: {issued}"));
        }
    }
    Ok(())
}
