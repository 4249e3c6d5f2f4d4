//! The engine against the real fio: every way in which a run can go wrong.
#![allow(clippy::unwrap_used)] // a test that cannot go on fails

mod bench;
mod failures;
mod running;
