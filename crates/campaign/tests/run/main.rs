//! Campaigns on simulated devices: what is run, left out, resumed and refused.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod endings;
mod guard;
mod many;
mod resume;
mod snia;
mod support;
