//! `fathom config` as a user meets it: commands, the menu in a terminal, and
//! the same files as kconfiglib writes.

mod commands;
mod menu;
mod oracle;
mod support;
