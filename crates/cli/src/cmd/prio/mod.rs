//! `fathom prio`: what priorities and Command Duration Limits do, and what they cost.

use fathom_model::Exit;

use super::Global;
use super::planned::KindArgs;

mod args;
mod hosts;
pub mod limits;
mod outcome;
pub mod pages;
pub mod plot;
pub mod restore;
mod run;
pub mod show;

pub use run::PrioPlan;

/// Measure what priorities and Command Duration Limits do, and what they cost
///
/// Every workload is measured at every queue depth, and one table says at the end
/// what share of the I/Os missed their limit or were aborted, and what the limits
/// cost in IOPS against the baseline. All switches of the device and its pages of
/// limits are put back as they were, at the end, after a failure, after Ctrl-C,
/// and after a kill by the next run or 'fathom prio restore'.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
docs/PRIORITIES.md says what is switched, what every figure means, and how pages are written.

Examples:
  fathom prio --dev /dev/sdh --baseline
  fathom prio --dev /dev/sdh --baseline --cdl-single --percentage 20 --dld 1
  fathom prio --dev /dev/sdh --baseline --ncq-prio --cdl-single --cdl-multi \\
      --percentage 20 --dld 1 --dldsplit 2/10,4/20
  fathom prio --dev /dev/sdh --cdl-multi --dldsplit 1/50 --qds \"8 32\" --t2a limits.cdl
  fathom prio --dev /dev/sdh --baseline --hosts bench1,bench2,root@nas
                                     the disks of three machines at once, over ssh
  fathom prio pages T2A.cdl          what a page of limits says, checked
  fathom prio show                   the last run's table again
  fathom prio plot ~/sdh_cdl_bench   its graphs"
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: args::Options,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Pages(pages::Args),
    Plot(plot::Args),
    Restore(restore::Args),
    Show(show::Args),
}

impl KindArgs for Args {
    fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        run(global, self)
    }
}

/// Calls the subcommand, or runs workloads.
fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Some(Command::Pages(args)) => pages::run(global, args),
        Some(Command::Plot(args)) => plot::run(global, args),
        Some(Command::Restore(args)) => restore::run(global, args),
        Some(Command::Show(args)) => show::run(global, args),
        None => run::run(global, &args.options),
    }
}
