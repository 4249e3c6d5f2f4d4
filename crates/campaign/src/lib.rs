//! From a definition to a plan and its runs: the quick series ([`quick`]) and
//! configured campaigns ([`plan`], [`run`]).
//!
//! Knows `kconfig`, `analysis`, `fleet`, `engine`, `device`, `record` and
//! `model`. Definitions are data (`campaigns/` at the top of the workspace),
//! embedded into the program.

pub mod plan;
pub mod quick;
pub mod run;
