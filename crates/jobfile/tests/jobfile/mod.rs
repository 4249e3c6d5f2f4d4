//! Job files against the real fio, and against everything else one can write.

#![allow(clippy::unwrap_used)] // a test that cannot go on fails

mod corpus;
mod fio;
mod properties;
mod targets;
mod values;
