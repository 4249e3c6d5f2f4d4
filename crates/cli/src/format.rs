//! fio's output formats as the command line names them.

use fathom_engine::fio::stream::OutputFormat;

/// One of fio's output formats, by fio's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
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

impl From<Format> for OutputFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Normal => Self::Normal,
            Format::Terse => Self::Terse,
            Format::Json => Self::Json,
            Format::JsonPlus => Self::JsonPlus,
        }
    }
}
