//! Where jobs run: on this machine ([`local`]) or over ssh ([`ssh`], several machines as one ([`hosts`])).
//!
//! Knows `model`, `engine` and `record`: it joins an engine to a record.

#![forbid(unsafe_code)]

mod device_errors;
pub mod hosts;
#[cfg(feature = "kube")]
pub mod kube;
pub mod local;
mod max_errors;
pub mod named_file;
pub mod ssh;
mod targets;

pub use max_errors::MaxErrors;
pub use targets::TargetCheck;
