//! What is written in fio's formats, against what fio itself writes.

#![allow(clippy::unwrap_used)] // a test that cannot go on fails

mod again;
mod arbitrary;
mod facts;
mod live;
