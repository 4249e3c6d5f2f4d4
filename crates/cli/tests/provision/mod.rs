//! `fathom provision`: many drives at once, on devices of this machine and on
//! simulated ones.

mod budgets;
mod drives;
mod refused;
mod resumed;
mod screen;
mod support;
