//! `fathom snia` on real devices: whole tests, killed and resumed, and their
//! pages in a browser.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod pages;
mod running;
mod support;
