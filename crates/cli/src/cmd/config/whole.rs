//! The commands that set everything at once.

use fathom_kconfig::Config;
use fathom_model::Exit;

use super::ConfigSession;
use crate::out;

/// Write .config with what it says and the defaults for the rest
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom config olddefconfig
  DEV=/dev/nvme1n1 fathom config olddefconfig    the device, where .config names none")]
pub struct OldDef {}

/// Set as much as possible to y
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom config allyesconfig")]
pub struct AllYes {}

/// Set as much as possible to n
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom config allnoconfig")]
pub struct AllNo {}

/// Set everything to its default
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom config alldefconfig")]
pub struct AllDef {}

/// Set every switch and choice at random
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom config randconfig              says which seed it took
  fathom config randconfig --seed 7     the same again")]
pub struct Rand {
    /// What the random values follow from [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Sets everything by one of the crate's operations.
pub fn all(mut session: ConfigSession, set: impl FnOnce(&mut Config)) -> anyhow::Result<Exit> {
    set(&mut session.config);
    session.finish(&[])
}

/// Sets everything at random.
pub fn random(session: ConfigSession, args: &Rand) -> anyhow::Result<Exit> {
    let now = || jiff::Timestamp::now().as_nanosecond();
    // Any bits will do; few digits are easier to note down.
    let seed = args
        .seed
        .unwrap_or_else(|| now().unsigned_abs() as u64 % 1_000_000);
    if !session.global.quiet {
        out::note(format_args!("seed {seed}"));
    }
    all(session, |config| config.randomize(seed))
}
