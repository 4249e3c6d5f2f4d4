//! The engines as the command line names them.

use fathom_engine::choice::Wish;

/// Which engine runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineName {
    /// fio where it is installed and has every option, else native where it has
    #[default]
    Auto,
    /// The fio that is installed
    Fio,
    /// Fathom's own; needs nothing installed
    Native,
}

impl From<EngineName> for Wish {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Auto => Self::Auto,
            EngineName::Fio => Self::Fio,
            EngineName::Native => Self::Native,
        }
    }
}
