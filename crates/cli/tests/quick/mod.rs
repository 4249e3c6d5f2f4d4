//! `fathom quick` and `fathom baseline` as they are used: the real program, the
//! real fio, a real sshd.

mod here;
mod remote;
pub mod support;
