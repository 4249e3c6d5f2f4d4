//! The script of one drive: the configuration that holds for all, with the
//! drive's own load and path laid over it.

use std::path::Path;
use std::rc::Rc;

use fathom_device::purge::{PurgeMethods, PurgeSettings};
use fathom_device::safety::Confirmations;
use fathom_flow::device_state::{Judgement, WantedState};
use fathom_flow::error::RunError;
use fathom_flow::{Act, Ready};
use fathom_kconfig::Config;
use fathom_model::DevicePhase;
use fathom_model::Stage;
use fathom_model::ledger::Pattern;

use super::{DriveJob, Provision, ProvisionMethod};
use crate::acts::{Energizing, Purging};
use crate::precondition::{DeviceFacts, Precondition, PreconditionMethod};
use crate::preparation::Preparation;
use crate::{energized, here};

/// Why a drive is purged, for its log and its ledger.
const REASON: &str = "provisioning begins on a purged drive";

impl Provision {
    /// Checks the flow of one drive and gives it, with what it is led by, to
    /// `then`. Nothing is opened but for reading.
    ///
    /// # Errors
    /// A setting that makes no sense; as [`fathom_flow::Flow::look`].
    pub fn look<R>(
        &self,
        place: usize,
        then: impl FnOnce(&Precondition, Ready) -> R,
    ) -> Result<R, RunError> {
        let one = &self.drives[place];
        let preparation = self.preparation(one)?;
        let size = one.drive.device.as_ref().map(|device| {
            let part = device.partition.as_ref();
            part.map_or(device.capacity_bytes, |part| part.size_bytes)
        });
        let here = DeviceFacts {
            capacity_bytes: size,
            has_sprandom: false,
        };
        let script = self.script(one, &preparation, here);
        let ready = self.flow(place, &script).look()?;
        // Only who runs the jobs knows what it has, and how large it makes a
        // simulated drive.
        let here = here::device_facts(ready.selected(), &one.drive.path, &preparation);
        if here == script.here {
            return Ok(then(&script, ready));
        }
        let script = self.script(one, &preparation, here);
        let ready = self.flow(place, &script).look()?;
        Ok(then(&script, ready))
    }

    /// What leads one drive to its state, for who only reads its record.
    ///
    /// # Errors
    /// A setting that makes no sense.
    pub fn reread(&self, one: &DriveJob) -> Result<Precondition, RunError> {
        let preparation = self.preparation(one)?;
        Ok(Precondition {
            settings: preparation.precondition,
            here: DeviceFacts::default(),
            first: Vec::new(),
            phase: phase(one),
            pass: 1,
            skip: None,
            scope: String::new(),
        })
    }

    /// What leads one drive to its state.
    fn script(&self, one: &DriveJob, preparation: &Preparation, here: DeviceFacts) -> Precondition {
        Precondition {
            settings: preparation.precondition.clone(),
            here,
            first: self.first(one, preparation),
            phase: phase(one),
            pass: 1,
            skip: self.needless(one, preparation, here),
            scope: String::new(),
        }
    }

    /// What comes before anything is written.
    fn first(&self, one: &DriveJob, preparation: &Preparation) -> Vec<(Stage, Rc<dyn Act>)> {
        let path = &one.drive.path;
        let mut first: Vec<(Stage, Rc<dyn Act>)> = Vec::new();
        let energized = self.options.settings.care.energized;
        let energizing = Energizing {
            logs: self.how.logs.clone(),
            ..Energizing::new(path, energized, one.drive.device.as_ref())
        };
        if preparation.energize && energizing.need.is_some() {
            first.push((energized::stage(), Rc::new(energizing)));
        }
        if let Some(purging) = self.purging(path, preparation) {
            first.push((Purging::stage(), Rc::new(purging)));
        }
        first
    }

    fn purging(&self, path: &Path, preparation: &Preparation) -> Option<Purging> {
        let want = preparation.purge.clone()?;
        Some(Purging {
            logs: self.how.logs.clone(),
            ..Purging::new(path, want, &self.options.settings.options.destroy, REASON)
        })
    }

    /// What the configuration asks for, for one drive.
    pub(super) fn preparation(&self, one: &DriveJob) -> Result<Preparation, RunError> {
        let config = self.config_of(one);
        let preparation = Preparation::of(&config, &one.drive.path, true);
        let mut preparation = preparation.map_err(|error| RunError::Input(error.to_string()))?;
        let named = match (&self.how.purge, &self.how.campaign) {
            (Some(name), _) => Some(name.parse::<PurgeMethods>().map_err(RunError::Input)?),
            // Without a campaign that says which kinds are purged by their own
            // commands, all are.
            (None, None) => Some(PurgeMethods::default()),
            (None, Some(_)) => None,
        };
        if let Some(choice) = named
            && !self.how.no_purge
        {
            let want = preparation.purge.unwrap_or_default();
            preparation.purge = Some(PurgeSettings { choice, ..want });
        }
        Ok(preparation)
    }

    /// Why nothing has to be done to a drive: it is in the wanted state.
    pub(super) fn needless(
        &self,
        one: &DriveJob,
        preparation: &Preparation,
        here: DeviceFacts,
    ) -> Option<String> {
        let settings = preparation.precondition.as_ref()?;
        // What goes on in its record is on its way there.
        if preparation.force || one.record.is_some() || self.is_simulated() {
            return None;
        }
        let state = self.options.ledgers.state(&one.drive.path, None).ok()?;
        let now_ms = fathom_record::now_ms();
        let wanted = WantedState {
            pattern: one.load,
            bs_bytes: settings.bs_of(phase(one)),
            range_percent: settings.range.percent(here.capacity_bytes),
            rule: &settings.rule_text(phase(one)),
        };
        let idle_limit = self.options.settings.care.idle_limit;
        match state.judge(&wanted, idle_limit, now_ms) {
            Judgement::Holds(reason) => Some(reason),
            Judgement::Stale(_) | Judgement::Lacks(_) => None,
        }
    }

    /// What stands against the purge of one drive, if it is to be purged.
    pub(super) fn against_purge(&self, one: &DriveJob) -> Option<String> {
        if self.is_simulated() {
            return None;
        }
        let preparation = match self.preparation(one) {
            Ok(preparation) => preparation,
            Err(error) => return Some(error.to_string()),
        };
        let purging = self.purging(&one.drive.path, &preparation)?;
        let confirmed = Confirmations(self.options.settings.options.destroy.clone());
        let checked = purging
            .find()
            .and_then(|purge| Ok(purge.check(&confirmed)?));
        checked.err().map(|error| error.to_string())
    }

    /// The configuration of one drive.
    fn config_of(&self, one: &DriveJob) -> Config {
        let mut config = self.config.clone();
        for (symbol, value) in symbols(&self.how, one) {
            // A tree of the user's own may do without some of them: what is not
            // there has its usual value.
            let _ = config.set_by_name(symbol, &value);
        }
        config
    }
}

fn phase(one: &DriveJob) -> DevicePhase {
    match one.load {
        Pattern::Sequential => DevicePhase::Sequential,
        Pattern::Random | Pattern::Mixed => DevicePhase::Random,
    }
}

/// What the command line says of a drive, as symbols.
fn symbols(how: &ProvisionMethod, one: &DriveJob) -> Vec<(&'static str, String)> {
    let load = match phase(one) {
        DevicePhase::Sequential => "PROVISION_SC_SEQUENTIAL",
        DevicePhase::Random => "PROVISION_SC_RANDOM",
    };
    let method = match how.method {
        PreconditionMethod::SantaClara => "PRECONDITION_GENERIC_SC",
        PreconditionMethod::Snia => "PRECONDITION_SNIA_IOPS",
    };
    let mut symbols = vec![
        ("STEADY_STATE_PROVISIONING", "y"),
        ("PRECONDITIONING", "y"),
        ("PRECONDITION_PROVISION_SC", "y"),
        (load, "y"),
        (method, "y"),
    ];
    if how.no_purge {
        symbols.push(("PURGING", "n"));
    }
    if how.force {
        symbols.push(("FORCE_PRECONDITION", "y"));
    }
    let dut = one.drive.path.display().to_string();
    let mut symbols: Vec<_> = symbols
        .into_iter()
        .map(|(symbol, value)| (symbol, value.to_owned()))
        .collect();
    symbols.push(("DUT_FILENAME", dut));
    symbols
}
