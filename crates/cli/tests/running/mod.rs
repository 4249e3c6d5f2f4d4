//! `fathom run`, `resume`, `status` and `watch` as a user meets them, with the
//! real engines on loop devices and zram, and with the simulation.

mod devices;
mod killed;
mod preparing;
mod refused;
mod screens;
mod support;
