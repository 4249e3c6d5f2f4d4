//! What everything that measures is asked beside its load: what its figures must be, who is
//! told of its end, where it says what it does.

use clap::ArgMatches;

use super::metrics::MetricsArgs;
use super::notify::NotifyArg;
use super::require::RequireArg;

/// `--require`, `--notify`, `--metrics`, `--metrics-file`, in the definition of a command.
/// Their values are read from the whole command line, by [`innermost`].
#[derive(Debug, Clone, Default, clap::Args)]
pub struct MeasuringArgs {
    #[command(flatten)]
    _require: RequireArg,
    #[command(flatten)]
    _notify: NotifyArg,
    #[command(flatten)]
    _metrics: MetricsArgs,
}

/// What the command says, or the one that it is part of.
pub fn innermost<T>(matches: &ArgMatches, read: &dyn Fn(&ArgMatches) -> Option<T>) -> Option<T> {
    let below = matches.subcommand();
    let said = below.and_then(|(_, matches)| innermost(matches, read));
    said.or_else(|| read(matches))
}
