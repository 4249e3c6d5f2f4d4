//! `fathom provision`: many drives at once, on devices of this machine and on
//! simulated ones.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod drives;
mod refused;
mod resumed;
mod screen;
mod support;
