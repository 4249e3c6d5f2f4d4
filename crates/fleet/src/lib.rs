//! Where jobs run: on this machine ([`local`]) or over ssh ([`ssh`]).
//!
//! Knows `model`, `engine` and `record`: it joins an engine to a record.

#[cfg(feature = "kube")]
pub mod kube;
pub mod local;
pub mod ssh;
