//! What `fathom engines --json` prints.

use fathom_engine_fio::inventory::EngineOption;
use schemars::JsonSchema;
use serde::Serialize;

/// Of `fathom engines`: all of them.
#[derive(Serialize, JsonSchema)]
pub struct EnginesDocument<'a> {
    pub schema: &'static str,
    /// Version of the installed fio; null: there is none.
    pub fio: Option<String>,
    /// Version of the native engine.
    pub native: String,
    pub engines: Vec<EngineOfList<'a>>,
}

/// An I/O engine.
#[derive(Serialize, JsonSchema)]
pub struct EngineOfList<'a> {
    pub name: &'a str,
    /// `yes`, `no`, `cannot be loaded`
    pub fio: &'static str,
    /// Whether the native engine has it.
    pub native: bool,
    /// Its own options; null where fio cannot tell.
    pub options: Option<&'a [EngineOption]>,
}

/// Of `fathom engines ENGINE`: one of fio's, or the native one.
#[derive(Serialize, JsonSchema)]
pub struct EngineDocument<'a> {
    pub schema: &'static str,
    pub name: &'a str,
    /// Whether the native engine has it; absent of the native engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<bool>,
    /// Of the native engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The I/O engines that the native engine has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_engines: Option<Vec<&'static str>>,
    /// Null: fio is not installed, and they are not known.
    pub options: Option<Vec<OptionRow>>,
}

impl<'a> EngineDocument<'a> {
    /// Of which only the name is known.
    pub fn new(name: &'a str) -> Self {
        Self {
            schema: "fathom.engine/1",
            name,
            native: None,
            version: None,
            io_engines: None,
            options: None,
        }
    }
}

/// An option.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OptionRow {
    /// Of one of fio's engines.
    OfFio {
        name: String,
        /// In fio's words.
        help: String,
        /// Whether the native engine takes it.
        native: bool,
    },
    /// Of the native engine.
    Native {
        group: &'static str,
        name: &'static str,
        aliases: &'static [&'static str],
        /// Where it means something else than in fio; empty: nowhere.
        differs: &'static str,
    },
}

/// Of `fathom engines ENGINE,OPTION`.
#[derive(Serialize, JsonSchema)]
pub struct OptionDocument<'a> {
    pub schema: &'static str,
    pub engine: &'a str,
    /// What fio says of it; null: fio is not installed.
    pub option: Option<&'a EngineOption>,
    /// Whether the native engine takes it.
    pub native: bool,
}
