//! The script of one drive: the configuration that holds for all, with the
//! drive's own load and path laid over it.

use fathom_kconfig::Config;
use fathom_model::ledger::Pattern;

use super::{How, Method, One, Provision};
use crate::flow::Script;
use crate::plan::Phase;
use crate::precondition::{Here, Precondition, Settings};
use crate::run::RunError;

impl Provision {
    /// What is done to one drive.
    ///
    /// # Errors
    /// A setting that makes no sense, and a way to purge it that it cannot go.
    pub fn script(&self, one: &One) -> Result<Box<dyn Script>, RunError> {
        let wrong = |error: crate::CampaignError| RunError::Input(error.to_string());
        let config = self.config_of(one);
        let settings = Settings::of(&config, &one.drive.path).map_err(wrong)?;
        let capacity = one.drive.device.as_ref().map(|device| {
            let part = device.partition.as_ref();
            part.map_or(device.capacity_bytes, |part| part.size_bytes)
        });
        Ok(Box::new(Precondition {
            settings,
            here: Here {
                capacity_bytes: capacity,
                has_sprandom: false,
            },
            first: Vec::new(),
            phase: match one.load {
                Pattern::Sequential => Phase::Sequential,
                _ => Phase::Random,
            },
            pass: 1,
            skip: None,
        }))
    }

    /// The configuration of one drive.
    fn config_of(&self, one: &One) -> Config {
        let mut config = self.config.clone();
        for (symbol, value) in symbols(&self.how, one) {
            // A tree of the user's own may do without some of them: what is not
            // there has its usual value.
            let _ = config.set_by_name(symbol, &value);
        }
        config
    }
}

/// What the command line says of a drive, as symbols.
fn symbols(how: &How, one: &One) -> Vec<(&'static str, String)> {
    let yes = |on: bool| if on { "y" } else { "n" }.to_owned();
    let sequential = one.load == Pattern::Sequential;
    let load = match sequential {
        true => "PROVISION_SC_SEQUENTIAL",
        false => "PROVISION_SC_RANDOM",
    };
    let method = match how.method {
        Method::Sc => "PRECONDITION_GENERIC_SC",
        Method::Snia => "PRECONDITION_SNIA_IOPS",
    };
    let mut symbols = vec![
        ("STEADY_STATE_PROVISIONING", yes(true)),
        ("PRECONDITIONING", yes(true)),
        ("PRECONDITION_PROVISION_SC", yes(true)),
        (load, yes(true)),
        (method, yes(true)),
        ("DUT_FILENAME", one.drive.path.display().to_string()),
    ];
    if how.no_purge {
        symbols.push(("PURGING", yes(false)));
    }
    if how.force {
        symbols.push(("FORCE_PRECONDITION", yes(true)));
    }
    symbols
}
