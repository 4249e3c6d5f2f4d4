//! Purging a device as the configuration wants it, with fio-tests' progress
//! log: the way itself is [`fathom_device::purge`].

use std::path::Path;
use std::time::Duration;

use fathom_device::command::Issue;
use fathom_device::purge::{
    FormatNvm, OverwriteFill, Purge, PurgeError, PurgeMethod, PurgeMethods, PurgeProgress,
    PurgeSettings, SanitizeAction,
};
use fathom_device::safety::Confirmations;
use fathom_engine::Control;
use fathom_flow::error::RunError;
use fathom_kconfig::Config;
use fathom_model::{Event, LedgerEvent, Purged, StageEnd};

use crate::logs::Logs;
use crate::symbols::SymbolReader;

/// What the configuration wants; `None`: no purge.
///
/// `PURGING_NVME`, `PURGING_ATA` and `PURGING_SCSI` say for which kind of device
/// its own commands are used: for NVMe it is Format NVM with the settings of
/// `PURGE_*`, as in fio-tests. What has no commands of its own, or may not use
/// them, is discarded or overwritten. Another member of the choice
/// `PURGE_METHOD` than `PURGE_METHOD_AUTO` is that way and no other.
///
/// # Errors
/// Values that cannot be used.
pub fn wanted(config: &Config) -> Result<Option<PurgeSettings>, RunError> {
    if !(config.is_on("STEADY_STATE_PROVISIONING") && config.is_on("PURGING")) {
        return Ok(None);
    }
    let samples = number(config, "PURGE_SAMPLES", 1 << 20)?;
    Ok(Some(PurgeSettings {
        choice: choice(config),
        format: format(config)?,
        check: config.is_on("PURGE_NVME_PURGE_VERIFY") || !config.is_on("PURGING_NVME"),
        samples: samples.map_or(PurgeSettings::SAMPLES, |samples| samples.max(1)),
    }))
}

/// The families by the member of the choice that picks them.
const NAMED: [(&str, &str); 9] = [
    ("PURGE_METHOD_NVME_SANITIZE", "nvme-sanitize"),
    ("PURGE_METHOD_ATA_SECURITY_ERASE", "ata-security-erase"),
    (
        "PURGE_METHOD_ATA_SECURITY_ERASE_ENHANCED",
        "ata-security-erase-enhanced",
    ),
    ("PURGE_METHOD_ATA_SANITIZE", "ata-sanitize"),
    ("PURGE_METHOD_SCSI_SANITIZE", "scsi-sanitize"),
    ("PURGE_METHOD_SCSI_FORMAT", "scsi-format"),
    ("PURGE_METHOD_BLKDISCARD", "blkdiscard"),
    ("PURGE_METHOD_OVERWRITE", "overwrite"),
    ("PURGE_METHOD_OVERWRITE_RANDOM", "overwrite-random"),
];

fn choice(config: &Config) -> PurgeMethods {
    let named = NAMED.iter().find(|(symbol, _)| config.is_on(symbol));
    if let Some(choice) = named.and_then(|(_, name)| name.parse().ok()) {
        return choice;
    }
    let allowed = |method: &PurgeMethod| match method {
        PurgeMethod::NvmeFormat => config.is_on("PURGING_NVME"),
        // Format NVM is what PURGING_NVME stands for.
        PurgeMethod::NvmeSanitize(_) => false,
        PurgeMethod::AtaSanitize(SanitizeAction::Block | SanitizeAction::Crypto)
        | PurgeMethod::AtaSecurityErase { .. } => config.is_on("PURGING_ATA"),
        PurgeMethod::ScsiSanitize(SanitizeAction::Block | SanitizeAction::Crypto)
        | PurgeMethod::ScsiFormat => config.is_on("PURGING_SCSI"),
        PurgeMethod::Discard { secure } => !secure,
        PurgeMethod::Overwrite(fill) => *fill == OverwriteFill::Zeros,
        PurgeMethod::AtaSanitize(SanitizeAction::Overwrite)
        | PurgeMethod::ScsiSanitize(SanitizeAction::Overwrite) => false,
    };
    PurgeMethods::of(fathom_device::purge::AUTO.into_iter().filter(allowed))
}

fn format(config: &Config) -> Result<FormatNvm, RunError> {
    let set = |switch: &str, symbol: &'static str, most: u64| match config.is_on(switch) {
        true => number(config, symbol, most),
        false => Ok(None),
    };
    let byte = |value: Option<u64>| value.and_then(|value| u8::try_from(value).ok());
    let ses = (0..=2).find(|ses| config.is_on(&format!("PURGE_SES_{ses}")));
    let pi = config.is_on("PURGE_PI");
    let nsid = set("PURGE_NSID_SPECIFIC", "PURGE_NSID", u32::MAX.into())?;
    let timeout = set("PURGE_TIMEOUT_SET", "PURGE_TIMEOUT_MS", u32::MAX.into())?;
    Ok(FormatNvm {
        nsid: nsid.and_then(|nsid| u32::try_from(nsid).ok()),
        lbaf: byte(set("PURGE_LBAF_SPECIFIC", "PURGE_LBAF", 63)?),
        ms: byte(set("PURGE_MS_SPECIFIC", "PURGE_MS", 1)?),
        // PURGE_PI is type 1 in fio-tests (run-all-fio.sh: --pi=1).
        pi: pi.then_some(1),
        pil: pi.then(|| u8::from(config.is_on("PURGE_PIL_1"))),
        ses,
        timeout: timeout.map(Duration::from_millis),
        reset: config.is_on("PURGE_RESET"),
    })
}

/// A number in decimal or, behind 0x, hexadecimal digits, as nvme-cli takes it.
fn number(config: &Config, symbol: &str, most: u64) -> Result<Option<u64>, RunError> {
    SymbolReader(config).value(symbol, |text| {
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        let number = parsed.ok().filter(|&number| number <= most);
        number.ok_or_else(|| format!("expected a whole number from 0 to {most}"))
    })
}

/// One purge of a campaign or of a person.
pub struct RecordedPurge<'r> {
    /// What is done.
    pub purge: &'r Purge,
    /// The words that name the devices.
    pub confirmed: &'r Confirmations,
    /// Why it is done, for the log and the ledger.
    pub reason: &'r str,
    /// The campaign's folder, whose `logs/purge/DEVICE` gets a line when it
    /// begins and one when it ends, as fio-tests writes them.
    pub folder: Option<&'r Path>,
}

impl RecordedPurge<'_> {
    /// Does it; the caller has called [`Purge::check`] and holds the device.
    ///
    /// # Errors
    /// As [`Purge::run`], and when the log cannot be written.
    pub fn go(
        &self,
        issue: &dyn Issue,
        control: &Control,
        progress: &mut dyn FnMut(PurgeProgress<'_>),
    ) -> Result<Purged, PurgeError> {
        let dut = &self.purge.capabilities.path;
        let logs = self.folder.map(|folder| Logs::new(folder, dut));
        let log = |written: std::io::Result<()>| {
            written.map_err(|source| PurgeError::Io {
                path: dut.clone(),
                doing: "its log (logs/purge) cannot be written".to_owned(),
                source,
            })
        };
        if let Some(logs) = &logs {
            log(logs.start_purge(&self.purge.like(), self.reason))?;
        }
        let stop = || control.stop_requests() > 0;
        let done = self.purge.run(issue, self.confirmed, &stop, progress);
        if let Some(logs) = &logs {
            let code = done
                .as_ref()
                .map_or_else(|error| u32::from(error.exit().code()), |_| 0);
            log(logs.finish_purge(code))?;
        }
        done
    }

    /// What the device's ledger gets, whether the data are gone or not; `None`:
    /// the device was not touched.
    pub fn deed(&self, done: &Result<Purged, PurgeError>) -> Option<LedgerEvent> {
        match done {
            Err(PurgeError::Refused(_)) => None,
            Err(PurgeError::Stopped { .. }) => Some(LedgerEvent::Interrupted {
                what: format!("purge ({})", self.purge.method),
            }),
            _ => Some(LedgerEvent::Purged {
                method: match done {
                    Ok(purged) => purged.method.clone(),
                    Err(_) => self.purge.method.to_string(),
                },
                verified: done.is_ok(),
                reason: self.reason.to_owned(),
            }),
        }
    }
}

/// What of its progress belongs into a record.
pub fn event(progress: &PurgeProgress<'_>) -> Option<Event> {
    match progress {
        PurgeProgress::Begin { step, number, of } => Some(Event::Preparing {
            what: format!("{number}/{of} {}", step.like),
        }),
        PurgeProgress::End { issued } => {
            let bytes = issued.issued.as_deref();
            let bytes = bytes.map_or_else(String::new, |bytes| format!(" [{bytes}]"));
            Some(Event::Note {
                text: format!("{}{bytes}: {}", issued.command, issued.answer),
            })
        }
        PurgeProgress::Part { .. } => None,
    }
}

/// How the stage of a purge has ended; `None`: it was stopped, and is done anew.
pub fn end(done: &Result<Purged, PurgeError>) -> Option<StageEnd> {
    match done {
        Ok(_) => Some(StageEnd::Done),
        Err(PurgeError::Stopped { .. }) => None,
        Err(error) => Some(StageEnd::Failed {
            reason: error.to_string(),
        }),
    }
}
