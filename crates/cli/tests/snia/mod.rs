//! `fathom snia` on real devices: whole tests, killed and resumed, and their
//! pages in a browser.

mod pages;
mod running;
mod support;
