//! The integration tests of this crate in one binary.
#![allow(clippy::disallowed_methods)] // a test that gets no thread fails by panicking
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod fio_outputs;
mod fio_write;
