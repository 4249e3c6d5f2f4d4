//! The Kconfig language of the Linux kernel: parse, evaluate, `.config` in and
//! out, and everything a menuconfig shows. Knows nothing of storage and no
//! other crate.
//!
//! A [`Tree`] is what the files say, read by a [`Loader`] from a [`KconfigSource`]; a
//! [`Config`] is a set of values for it. Nothing here prints, asks, or touches
//! the file system except [`DiskFiles`]. Who builds a menu takes [`Config::rows`],
//! [`Config::search`], [`Config::explain`] and [`Config::refusal`]; who asks
//! questions, [`OldConfig`].
//!
//! ```
//! use std::sync::Arc;
//! use fathom_kconfig::{Config, Loader, MemoryFiles};
//!
//! let files = MemoryFiles::from_iter([(
//!     "Kconfig",
//!     "config FAST\n\tbool \"Fast\"\n\nconfig DEPTH\n\tint \"Depth\"\n\tdefault 32 if FAST\n\tdefault 1\n",
//! )]);
//! let tree = Arc::new(Loader::new(&files).load("Kconfig")?);
//! let mut config = Config::new(tree);
//! config.set_by_name("FAST", "y").expect("a bool takes y");
//! let depth = config.tree().named("CONFIG_DEPTH").expect("it is defined above");
//! let refused = config.refusal(depth, "deep").map(|why| why.to_string());
//! assert_eq!(refused.as_deref(), Some("\"deep\" is no value for DEPTH, an int"));
//! assert_eq!(config.get("DEPTH"), Some("32"));
//! assert_eq!(config.write(""), "CONFIG_FAST=y\nCONFIG_DEPTH=32\n");
//! assert_eq!(config.write_min(""), "CONFIG_FAST=y\n");
//! # Ok::<(), fathom_kconfig::Error>(())
//! ```
//!
//! # Which language
//! What `Documentation/kbuild/kconfig-language.rst` and
//! `kconfig-macro-language.rst` describe, and what PyPI's kconfiglib 14.1 adds
//! (`rsource`, `osource`, `orsource`, globs, `def_int` and its kin). Where the
//! two differ, or the kernel has changed over the years, this crate does what
//! kconfiglib does, so that both write the same files:
//!
//! - Choices may be named, optional, and tristate; the kernel has dropped these
//!   in 6.9.
//! - `imply` from a symbol that is `y` keeps a tristate from being `m`; the
//!   kernel lets it be `m` since 5.8.
//! - A symbol with two types has the last one, and warns; the kernel keeps the
//!   first.
//! - A default outside its range is moved to the nearest bound.
//!
//! And where kconfiglib is narrower, what the kernel does:
//!
//! - `depends on A if B` means `depends on A || (B = n)` (Linux 7.0).
//! - `transitional` symbols are read and never written (Linux 6.18).
//! - Any symbol can be marked `modules`; kconfiglib knows only `MODULES`.
//! - A macro that expands to nothing is no token, not an error.
//! - `$NAME` without parentheses is not expanded; kconfiglib still does that in
//!   file names and titles, as kernels before 4.18 did.
//! - Expressions compare numbers as Python reads them (`0o17`, never `017`), as
//!   kconfiglib does; the kernel reads `017` as octal.

#![forbid(unsafe_code)]

mod check;
mod condition;
mod config;
mod dotconfig;
mod error;
mod expr;
mod files;
mod finalize;
mod lexer;
mod limits;
mod loader;
mod macros;
mod menu;
mod number;
mod oldconfig;
mod operations;
mod order;
mod parser;
mod refusal;
mod tree;

pub use config::{Config, SetError};
pub use dotconfig::kernel_header;
pub use error::{Error, ErrorKind, Position, Warning, WarningKind};
pub use expr::{Expr, ExprId, Relation, Tri};
pub use files::{DiskFiles, KconfigSource, MemoryFiles, matches};
pub use loader::Loader;
pub use menu::{ConditionPart, Explanation, Hit, MenuRow};
pub use oldconfig::{AnswerError, AnswerKind, ConfigQuestion, OldConfig};
pub use refusal::ValueRefusal;
pub use tree::{
    Choice, ChoiceId, Default, Item, MenuNode, NodeId, Prompt, Select, SelectedBy, Symbol,
    SymbolId, SymbolKind, Tree, ValueRange,
};
