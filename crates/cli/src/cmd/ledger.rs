//! `fathom ledger`: what was done to devices.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_device::Health;
use fathom_document::rfc3339;
use fathom_flow::device_state::{self, DeviceState};
use fathom_flow::ledger::{Known, Ledgers};
use fathom_model::environment::BlockDevice;
use fathom_model::{Exit, LedgerEntry, LedgerEvent, Pattern, units};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::Tone;
use serde::Serialize;

use super::{ExitError, Global};
use crate::out;

/// Show what Fathom has done to devices, and what state they are in
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every command that writes to a device with a serial number enters it into that device's ledger,
one file each in $XDG_STATE_HOME/fathom/devices. Devices without one, such as loop and zram, have
none. What a killed run has written is entered now, from its record.

Examples:
  fathom ledger                     all devices
  fathom ledger /dev/nvme0n1        what was done to one
  fathom ledger S676NX0R123456      the same, by its serial number
  fathom ledger --json | jq '.devices[] | select(.state == \"steady\") | .serial'")]
pub struct Args {
    /// Show the history of this device: a path, a serial number, a by-id name
    #[arg(value_name = "DEVICE")]
    device: Option<String>,
}

/// What `--json` prints of all devices.
#[derive(Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct DeviceList<'l> {
    /// `fathom.ledger-list/1`
    schema: &'static str,
    /// Where the ledgers are.
    folder: Option<&'l Path>,
    devices: Vec<Device<'l>>,
}

/// What `--json` prints of one device.
#[derive(Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct DeviceHistory<'l> {
    /// `fathom.ledger-device/1`
    schema: &'static str,
    #[serde(flatten)]
    device: Device<'l>,
    /// What the device says of itself now; null when it is not here.
    health: Option<Said<'l>>,
    entries: &'l [LedgerEntry],
}

#[derive(Serialize, schemars::JsonSchema)]
struct Device<'l> {
    model: Option<&'l str>,
    serial: Option<&'l str>,
    nsid: Option<u32>,
    /// Its kernel name now; null when it is not here.
    name: Option<&'l str>,
    /// `unknown`, `purged`, `filled`, `steady`, `unsteady`, `used`
    state: &'static str,
    /// The deed that made the state, in words.
    state_text: Option<String>,
    /// RFC 3339 UTC.
    state_since: Option<String>,
    /// Since Fathom wrote to it the last time.
    idle_ms: Option<u64>,
    /// By Fathom since the state was made.
    written_since_bytes: u64,
    /// By others since then; null: nobody counts them.
    others_since_bytes: Option<u64>,
    /// By Fathom altogether.
    fathom_written_bytes: u64,
    /// By all hosts, in all its life.
    host_written_bytes: Option<u64>,
    used_percent: Option<f64>,
    entries_count: usize,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Said<'l> {
    host_written_bytes: Option<u64>,
    host_read_bytes: Option<u64>,
    used_percent: Option<f64>,
    spare_percent: Option<f64>,
    power_on_hours: Option<f64>,
    power_cycles: Option<u64>,
    unsafe_shutdowns: Option<u64>,
    media_errors: Option<u64>,
    temperature_celsius: Option<f64>,
    warnings: &'l [&'static str],
    /// By this boot's kernel.
    kernel_written_bytes: Option<u64>,
}

/// Shows the ledgers.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let ledgers = Ledgers::of_user();
    for note in ledgers.catch_up() {
        out::note(format_args!("note: {note}"));
    }
    let mut known = ledgers.known()?;
    let Some(name) = &args.device else {
        return list(global, &ledgers, &known);
    };
    known.retain(|device| device.is_called(name));
    match &known[..] {
        [] => return Err(not_known(name)),
        // One document: namespaces of a drive share its serial number.
        [_, _, ..] if global.json => return Err(ambiguous(name, &known)),
        _ => {}
    }
    for (place, device) in known.iter().enumerate() {
        if place > 0 {
            out::line("");
        }
        history(global, device)?;
    }
    Ok(Exit::Success)
}

fn not_known(name: &str) -> anyhow::Error {
    let what = format!(
        "there is no ledger of {name}: no Fathom of this user has written to it, or it has no serial \
         number\n  to do: fathom ledger shows the devices there are"
    );
    ExitError::new(Exit::Missing, what).into()
}

fn ambiguous(name: &str, devices: &[Known]) -> anyhow::Error {
    let named = devices.iter().map(|known| label(&known.device));
    let named: Vec<String> = named.collect();
    ExitError::new(
        Exit::Input,
        format!(
            "{name} names {}\n  to do: name one by its path or its name in /dev/disk/by-id",
            named.join(" and ")
        ),
    )
    .into()
}

fn list(global: &Global, ledgers: &Ledgers, known: &[Known]) -> anyhow::Result<Exit> {
    if global.json {
        out::json(&DeviceList {
            schema: "fathom.ledger-list/1",
            folder: ledgers.folder(),
            devices: known.iter().map(device).collect(),
        })?;
        return Ok(Exit::Success);
    }
    if known.is_empty() {
        let folder = ledgers.folder().unwrap_or(Path::new("(no folder)"));
        out::note(format_args!(
            "There are no ledgers in {}: no device with a serial number was written to.",
            folder.display()
        ));
        return Ok(Exit::Success);
    }
    out::text(table(known).render(out::style(global.color)));
    Ok(Exit::Success)
}

fn table(known: &[Known]) -> Grid {
    let mut grid = Grid::new([
        words("device", 0),
        words("serial", 0),
        words("here", 2),
        words("state", 0),
        figures("idle", 1),
        figures("by Fathom", 1),
        figures("by all", 2),
        figures("used", 3),
    ]);
    let bytes = |bytes: Option<u64>| {
        bytes.map_or_else(GridCell::default, |bytes| units::bytes(bytes as f64).into())
    };
    for known in known {
        let device = &known.device;
        let (tone, state) = state_cell(&known.state);
        let idle = idle_ms(&known.state).map(units::duration);
        let here = known.here.as_ref().map(|device| device.name.as_str());
        grid.line([
            GridCell::from(device.model.as_deref().unwrap_or("unknown")),
            GridCell::from(serial(device)),
            GridCell::from(here.unwrap_or("–")),
            GridCell::new(tone, state),
            idle.map_or_else(GridCell::default, GridCell::from),
            bytes(Some(known.own_bytes())),
            bytes(known.host_bytes()),
            known
                .used_percent()
                .map_or_else(GridCell::default, |used| format!("{used} %").into()),
        ]);
    }
    grid
}

fn serial(device: &BlockDevice) -> String {
    let serial = device.serial.as_deref().unwrap_or_default();
    match device.nsid {
        Some(nsid) if nsid != 1 => format!("{serial} n{nsid}"),
        _ => serial.to_owned(),
    }
}

fn label(device: &BlockDevice) -> String {
    let model = device.model.as_deref().unwrap_or("unknown");
    format!("{model} {}", serial(device))
}

fn idle_ms(state: &DeviceState) -> Option<u64> {
    Some(fathom_record::now_ms().saturating_sub(state.touched_ms?))
}

/// A state in a word, as documents have it.
fn word(state: &DeviceState) -> &'static str {
    match state.made.as_ref().map(|entry| &entry.deed) {
        None if state.touched_ms.is_some() || state.begun_by.is_some() => "used",
        None => "unknown",
        Some(_) if state.is_disturbed() => "used",
        Some(LedgerEvent::Purged { .. }) => "purged",
        Some(LedgerEvent::Interrupted { .. }) => "interrupted",
        Some(LedgerEvent::Filled { .. }) => "filled",
        Some(LedgerEvent::Settled { attained: true, .. }) => "steady",
        Some(LedgerEvent::Settled { .. }) => "unsteady",
        Some(LedgerEvent::Written { .. } | LedgerEvent::Seen { .. }) => "used",
        Some(LedgerEvent::Duplicate) => "unknown",
    }
}

/// A deed in a column: `steady, random 4 KiB`.
fn short(deed: &LedgerEvent) -> String {
    let load = |is: &str, pattern: Pattern, bs: u64| {
        format!("{is}, {pattern} {}", units::bytes(bs as f64))
    };
    match deed {
        LedgerEvent::Purged {
            method,
            verified: true,
            ..
        } => format!("purged ({method})"),
        LedgerEvent::Purged { method, .. } => format!("purged, not verified ({method})"),
        LedgerEvent::Interrupted { what } => format!("{what} interrupted"),
        LedgerEvent::Duplicate => "another drive has its identifier".to_owned(),
        LedgerEvent::Filled {
            pattern, bs_bytes, ..
        } => load("filled", *pattern, *bs_bytes),
        LedgerEvent::Settled {
            pattern,
            bs_bytes,
            attained,
            ..
        } => load(
            if *attained { "steady" } else { "not steady" },
            *pattern,
            *bs_bytes,
        ),
        LedgerEvent::Written { .. } | LedgerEvent::Seen { .. } => "other writes".to_owned(),
    }
}

/// A state in a column.
fn state_cell(state: &DeviceState) -> (Tone, String) {
    let Some(made) = &state.made else {
        return (Tone::Plain, word(state).to_owned());
    };
    let is = short(&made.deed);
    match word(state) {
        _ if state.is_disturbed() => (Tone::Doubtful, format!("{is}, used since")),
        "steady" | "purged" => (Tone::Good, is),
        _ => (Tone::Plain, is),
    }
}

fn device(known: &Known) -> Device<'_> {
    let (device, state) = (&known.device, &known.state);
    Device {
        model: device.model.as_deref(),
        serial: device.serial.as_deref(),
        nsid: device.nsid,
        name: known.here.as_ref().map(|device| device.name.as_str()),
        state: word(state),
        state_text: state
            .made
            .as_ref()
            .map(|made| device_state::describe(&made.deed)),
        state_since: state.made.as_ref().map(|made| rfc3339(made.at_ms)),
        idle_ms: idle_ms(state),
        written_since_bytes: state.written_bytes,
        others_since_bytes: state.others_bytes,
        fathom_written_bytes: known.own_bytes(),
        host_written_bytes: known.host_bytes(),
        used_percent: known.used_percent(),
        entries_count: known.entries.len(),
    }
}

fn said(health: &Health) -> Said<'_> {
    Said {
        host_written_bytes: health.host_written_bytes,
        host_read_bytes: health.host_read_bytes,
        used_percent: health.used_percent,
        spare_percent: health.spare_percent,
        power_on_hours: health.powered.map(|powered| powered.as_secs_f64() / 3600.0),
        power_cycles: health.power_cycles,
        unsafe_shutdowns: health.unsafe_shutdowns,
        media_errors: health.media_errors,
        temperature_celsius: health.temperature_celsius,
        warnings: &health.warnings,
        kernel_written_bytes: health.kernel_written_bytes,
    }
}

fn history(global: &Global, known: &Known) -> anyhow::Result<()> {
    if global.json {
        return out::json(&DeviceHistory {
            schema: "fathom.ledger-device/1",
            device: device(known),
            health: known.health.as_ref().map(said),
            entries: &known.entries,
        });
    }
    let style = out::style(global.color);
    out::text(facts(known).render(style));
    out::line("");
    out::text(deeds(known).render(style));
    Ok(())
}

fn facts(known: &Known) -> Grid {
    let mut grid = Grid::new([words("", 0), words("", 0)]);
    let mut line = |name: &str, text: Option<String>| {
        if let Some(text) = text {
            grid.line([GridCell::new(Tone::Faint, name), GridCell::from(text)]);
        }
    };
    let bytes = |bytes: u64| units::bytes(bytes as f64);
    let state = &known.state;
    let here = known.here.as_ref();
    line("device", Some(label(&known.device)));
    let place = here.map_or("not on this machine".to_owned(), |device| {
        format!("/dev/{}", device.name)
    });
    line("here", Some(place));
    line("state", Some(sentence(state)));
    let own = format!("{} by Fathom", bytes(known.own_bytes()));
    let all = known
        .host_bytes()
        .map(|all| format!("{} by all hosts", bytes(all)));
    let written: Vec<String> = [Some(own), all].into_iter().flatten().collect();
    line("written", Some(written.join(", ")));
    line(
        "endurance",
        known.used_percent().map(|used| format!("{used} % used")),
    );
    let health = known.health.as_ref();
    line("power", health.and_then(power));
    let celsius = health.and_then(|health| health.temperature_celsius);
    line(
        "temperature",
        celsius.map(|degrees| format!("{degrees} °C")),
    );
    let errors = health.and_then(|health| health.media_errors);
    line("media errors", errors.map(|errors| errors.to_string()));
    for warning in health.map_or(&[][..], |health| &health.warnings) {
        line("warning", Some((*warning).to_owned()));
    }
    grid
}

/// What is known of a device's state, in a sentence.
fn sentence(state: &DeviceState) -> String {
    let Some(made) = &state.made else {
        return match state.touched_ms {
            Some(_) => "it was used".to_owned(),
            None => "unknown".to_owned(),
        };
    };
    let mut text = device_state::describe(&made.deed);
    let since =
        |bytes: u64, by: &str| format!(", {} written {by} since", units::bytes(bytes as f64));
    if state.written_bytes > 0 {
        text += &since(state.written_bytes, "by Fathom");
    }
    if let Some(others) = state.others_bytes.filter(|others| *others > 0) {
        text += &since(others, "by others");
    }
    if let Some(by) = &state.begun_by {
        text += &format!(", and fathom {by} began to write to it");
    }
    if let Some(idle) = idle_ms(state) {
        text += &format!("; idle for {}", units::duration(idle));
    }
    text
}

fn power(health: &Health) -> Option<String> {
    let hours = health.powered?.as_secs() / 3600;
    let mut text = format!("{hours} hours");
    if let Some(cycles) = health.power_cycles {
        text += &format!(", switched on {cycles} times");
    }
    if let Some(shutdowns) = health.unsafe_shutdowns {
        text += &format!(", {shutdowns} times without notice off");
    }
    Some(text)
}

/// What was done, a line each; what the device said of itself behind it.
fn deeds(known: &Known) -> Grid {
    let mut grid = Grid::new([
        words("when (UTC)", 0),
        words("command", 0),
        words("what", 0),
        figures("written", 0),
        figures("all hosts", 2),
        figures("used", 3),
        words("record", 4),
    ]);
    let mut begun: BTreeMap<&Path, &LedgerEntry> = BTreeMap::new();
    let entries = &known.entries;
    for (place, entry) in entries.iter().enumerate() {
        let record = entry.record.as_deref();
        if let (LedgerEvent::Seen { .. }, Some(record)) = (&entry.deed, record) {
            begun.insert(record, entry);
        }
        if matches!(entry.deed, LedgerEvent::Seen { .. }) {
            continue;
        }
        if let (true, Some(record)) = (entry.deed.is_end(), record) {
            begun.remove(record);
        }
        if matches!(entry.deed, LedgerEvent::Written { bytes: 0 }) {
            continue;
        }
        grid.line(deed_line(entry, entries.get(place + 1)));
    }
    for entry in begun.into_values() {
        let [when, command, _, written, all, used, record] = deed_line(entry, Some(entry));
        let what = GridCell::new(Tone::Doubtful, "begun, and not told how much was written");
        grid.line([when, command, what, written, all, used, record]);
    }
    grid
}

fn deed_line(entry: &LedgerEntry, behind: Option<&LedgerEntry>) -> [GridCell; 7] {
    let (all, used) = match behind.map(|entry| &entry.deed) {
        Some(LedgerEvent::Seen {
            host_written_bytes,
            used_percent,
            ..
        }) => (*host_written_bytes, *used_percent),
        _ => (None, None),
    };
    let bytes = |bytes: Option<u64>| {
        bytes.map_or_else(GridCell::default, |bytes| units::bytes(bytes as f64).into())
    };
    let record = entry.record.as_deref().and_then(Path::file_name);
    [
        GridCell::from(rfc3339(entry.at_ms).replace('T', " ")[..16].to_owned()),
        GridCell::from(entry.command.as_str()),
        GridCell::from(short(&entry.deed)),
        bytes(entry.deed.bytes()),
        bytes(all),
        used.map_or_else(GridCell::default, |used| format!("{used} %").into()),
        record.map_or_else(GridCell::default, |name| {
            name.to_string_lossy().into_owned().into()
        }),
    ]
}
