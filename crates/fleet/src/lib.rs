//! Where jobs run: on this machine ([`local`]).
//!
//! Knows `model`, `engine` and `record`: it joins an engine to a record.

pub mod local;
