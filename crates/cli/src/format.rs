//! fio's output formats as the command line names them.

use fathom_fio_output::stream::OutputFormat;

/// One of fio's output formats, by fio's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FioOutputFormat {
    /// Text for people
    Normal,
    /// Semicolons, a line per job
    Terse,
    /// JSON
    Json,
    /// JSON with histograms
    #[value(name = "json+")]
    JsonPlus,
}

impl From<FioOutputFormat> for OutputFormat {
    fn from(format: FioOutputFormat) -> Self {
        match format {
            FioOutputFormat::Normal => Self::Normal,
            FioOutputFormat::Terse => Self::Terse,
            FioOutputFormat::Json => Self::Json,
            FioOutputFormat::JsonPlus => Self::JsonPlus,
        }
    }
}
