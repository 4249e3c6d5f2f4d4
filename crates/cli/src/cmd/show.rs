//! `fathom show`: one recorded run, ended or not.

mod raw;
mod samples;

use fathom_model::Exit;

use super::{Global, missing};
use crate::format::Format;
use crate::out;

/// Show a recorded run: its figures, its samples, or what the engine wrote
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A run that was killed is shown as interrupted, with figures counted from its samples; one that
goes on as running, with figures so far.

Examples:
  fathom show                              the last run
  fathom show 20261121T130737Z-randread    that one; the beginning of its name is enough
  fathom show --json | jq '.jobs[].read.iops'
  fathom show --samples=csv > run.csv      one line per interval, job and direction
  fathom show --output-format=terse        what fio itself would have printed")]
pub struct Args {
    /// A record folder, or its name or the beginning of it; without, the last run
    run: Option<String>,
    /// Print the time series
    #[arg(
        long,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table",
        value_enum,
        conflicts_with = "output_format"
    )]
    samples: Option<samples::Form>,
    /// Print exactly what fio wrote, in one of its formats
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with = "json")]
    output_format: Option<Format>,
    /// With --json: add the latency histograms, where there are any
    #[arg(long)]
    histograms: bool,
}

/// Shows one run.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let dir = fathom_record::find(&global.runs, args.run.as_deref()).map_err(missing)?;
    if let Some(format) = args.output_format {
        return raw::show(&dir, format);
    }
    if let Some(form) = args.samples {
        let form = if global.json {
            samples::Form::Json
        } else {
            form
        };
        return samples::show(&dir, form, out::style(global.color));
    }
    let mut doc = fathom_report::read(&dir)?;
    if global.json {
        if !args.histograms {
            fathom_report::drop_histograms(&mut doc);
        }
        out::json(&doc)?;
    } else {
        out::text(fathom_report::table(&doc, out::style(global.color)));
    }
    Ok(Exit::Success)
}
