//! What is known of the machine and the device before it is made ready.

use std::path::Path;

use fathom_engines::select::EngineHandle;

use crate::precondition::{DeviceFacts, PreconditionSettings};
use crate::preparation::Preparation;

/// The first fio that has sprandom (its release notes).
const SPRANDOM: (u32, u32) = (3, 41);

/// What is known of the machine for pre-conditioning.
pub fn device_facts(selected: &EngineHandle, dut: &Path, preparation: &Preparation) -> DeviceFacts {
    let wants = |p: &PreconditionSettings| p.sprandom;
    let has_sprandom = match selected {
        EngineHandle::Fio(fio) if preparation.precondition.as_ref().is_some_and(wants) => {
            let version = fio.program().version();
            version.is_ok_and(|version| version.is_at_least(SPRANDOM.0, SPRANDOM.1))
        }
        _ => false,
    };
    let capacity_bytes = match selected {
        EngineHandle::Sim(sim) => Some(sim.capacity_bytes()),
        _ => capacity(dut),
    };
    DeviceFacts {
        capacity_bytes,
        has_sprandom,
    }
}

/// Logical blocks of a device in bytes; a simulation and a file have the least.
pub fn logical_block(dut: &Path, simulated: bool) -> u64 {
    const LEAST: u64 = 512;
    let environment = (!simulated).then(|| fathom_device::environment(&[dut.to_owned()]));
    let targets = environment.into_iter().flat_map(|found| found.targets);
    let device = targets.into_iter().find_map(|target| target.device);
    device.map_or(LEAST, |device| u64::from(device.logical_block_bytes))
}

/// Size of a device (or file) in bytes.
pub fn capacity(dut: &Path) -> Option<u64> {
    match fathom_device::Sys::live().by_path(dut) {
        Some(node) => Some(node.size_bytes()).filter(|bytes| *bytes > 0),
        None => Some(std::fs::metadata(dut).ok()?.len()).filter(|bytes| *bytes > 0),
    }
}
