//! Campaigns on simulated devices: what is run, left out, resumed and refused.

mod endings;
mod guard;
mod many;
mod resume;
mod snia;
mod support;
