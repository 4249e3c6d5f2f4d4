//! Where files cannot be held and named by /proc, fio opens the names of the job file.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use fathom_engine::Request;

/// The names of the job file.
#[derive(Debug, Default)]
pub(super) struct HeldJob;

impl HeldJob {
    pub(super) fn new(_: &Request) -> io::Result<Option<Self>> {
        Ok(Some(Self))
    }

    pub(super) fn argv(&self, argv: &[OsString]) -> Vec<OsString> {
        argv.to_vec()
    }

    pub(super) fn work_dir(&self) -> Option<PathBuf> {
        None
    }

    pub(super) fn end(&self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn pass(&mut self, _: usize, bytes: &[u8]) -> Vec<u8> {
        bytes.to_vec()
    }

    pub(super) fn rest(&mut self, _: usize) -> Vec<u8> {
        Vec::new()
    }
}
