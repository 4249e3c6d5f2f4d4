//! The engine against the real fio: every way in which a run can go wrong.

mod bench;
mod failures;
mod running;
