//! `fathom quick` and `fathom baseline` as they are used: the real program, the
//! real fio, a real sshd.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod here;
mod remote;
mod support;
