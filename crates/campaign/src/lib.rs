//! From a definition to a plan and its runs. Today: the quick series ([`quick`]).
//!
//! Knows `fleet`, `engine`, `device`, `record` and `model`. Definitions are data
//! (`campaigns/` at the top of the workspace), embedded into the program.

pub mod quick;
