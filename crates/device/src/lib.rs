//! What a storage target is, and what it may be used for.
//!
//! - [`identity`] names a target: the device with its serial and settings, or the
//!   file system with the disk under it. [`mod@environment`] describes the machine.
//! - [`safety`] decides whether a target may be written to, from what [`usage`]
//!   (mounts, swap, holders, loop devices, processes) and [`signature`] (file
//!   systems, partition tables) find; a [`Hold`] tells others that it is measured,
//!   and a [`Claim`] keeps them from taking it into use while it is written to.
//! - [`space`] tells what room a folder has.
//! - [`drives`] finds the drives of a machine.
//! - [`Scratch`] is a folder for temporary files that says whose it is.
//! - [`command`] is the way to the device itself; by it [`health`] asks what it
//!   says of itself, and [`purge`] takes all data away from it.
//! - [`node`] tells what a machine does and what its volumes move; [`evidence`] what it
//!   did and was set to while a step was measured on it.
//! - [`write_cache`]: its write cache; a [`WriteCounter`]: what the kernel counted as
//!   written.
//! - [`cdl`]: its Command Duration Limits; [`priority`] tells what it knows of
//!   these and of priorities, [`switches`] how they are switched and put back;
//!   [`settings`]: those of a queue and of the machine that can be compared.
//!
//! Everything is read from /proc, /sys and /dev under a [`Sys`], which can be a
//! recorded tree; what a system does not have there is absent, never invented.
//! Knows only `model`.

pub mod bounded;
pub mod cdl;
pub mod cgroup;
mod claim;
pub mod command;
pub mod content;
pub mod cow;
mod direct;
pub mod drives;
pub mod environment;
pub mod evidence;
mod exports;
mod extents;
pub mod health;
mod hold;
pub mod identity;
pub mod ids;
mod loop_status;
pub mod mounts;
pub mod names;
pub mod node;
pub mod open_files;
mod openers;
mod paths;
pub mod priority;
pub mod process;
pub mod purge;
pub mod regular;
pub mod safety;
pub mod scratch;
pub mod settings;
pub mod signature;
pub mod space;
pub mod stack;
pub mod switches;
mod sys;
pub mod threads;
pub mod usage;
pub mod write_cache;
mod write_counter;
pub mod writeback;

pub use claim::Claim;
pub use environment::{booted, capture as environment};
pub use health::Health;
pub use hold::Hold;
pub use paths::lead_to_one_drive;
pub use scratch::Scratch;
pub use sys::{Sys, SysBlock};
pub use write_cache::DeviceWriteCache;
pub use write_counter::WriteCounter;
