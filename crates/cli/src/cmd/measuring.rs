//! What everything that measures is asked beside its load: what its figures must be, who is
//! told of its end, where it says what it does.

use clap::ArgMatches;
use clap::error::ErrorKind;

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
    #[command(flatten)]
    _exports: ExportArg,
}

/// `--no-export-check`, in the definition of a command that writes to devices.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ExportArg {
    /// Write to devices although the kernel may serve them to others, and its list of what it
    /// serves (configfs) is not visible
    #[arg(long = EXPORTS)]
    no_export_check: bool,
}

/// The option of that name.
const EXPORTS: &str = "no-export-check";

/// Takes what the command line says of exports.
///
/// # Errors
/// That it is not for other machines.
pub fn take_exports(matches: &ArgMatches) -> Result<(), clap::Error> {
    let is_set = |at: &ArgMatches| {
        let flag = at.try_get_one::<bool>("no_export_check").ok().flatten();
        flag.copied().filter(|flag| *flag)
    };
    if innermost(matches, &is_set).is_none() {
        return Ok(());
    }
    if matches.subcommand_name() == Some("cluster") {
        let why =
            format!("--{EXPORTS} is about the kernel of this machine, and pods write to volumes\n");
        return Err(clap::Error::raw(ErrorKind::ArgumentConflict, why));
    }
    let hosts = |at: &ArgMatches| at.try_get_many::<String>("hosts").ok().flatten().map(drop);
    if innermost(matches, &hosts).is_some() {
        let why = format!(
            "--{EXPORTS} is about the kernel of this machine, and the jobs run elsewhere\n"
        );
        return Err(clap::Error::raw(ErrorKind::ArgumentConflict, why));
    }
    fathom_device::usage::ignore_unseen_exports();
    Ok(())
}

/// What the command says, or the one that it is part of.
pub fn innermost<T>(matches: &ArgMatches, read: &dyn Fn(&ArgMatches) -> Option<T>) -> Option<T> {
    let below = matches.subcommand();
    let said = below.and_then(|(_, matches)| innermost(matches, read));
    said.or_else(|| read(matches))
}
