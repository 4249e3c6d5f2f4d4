//! The integration tests of this crate in one binary: each that is linked costs
//! more than most of its tests take.
#![allow(clippy::disallowed_methods)] // a test that gets no thread fails by panicking
#![allow(clippy::unwrap_used)] // a test fails by panicking

#[cfg(target_os = "linux")]
mod ab;
mod advice;
mod architecture;
mod campaign;
mod campaign_results;
mod clients;
mod command_line;
mod compare;
mod completing;
mod config;
#[cfg(feature = "kube")]
mod exchanges;
mod figures;
mod find;
mod foreign_words;
mod golden;
mod graph;
#[cfg(target_os = "linux")]
mod guest;
#[cfg(target_os = "linux")]
mod guest_identity;
mod guest_nvme;
#[cfg(target_os = "linux")]
mod guest_preparing;
#[cfg(target_os = "linux")]
mod guest_prio;
#[cfg(target_os = "linux")]
mod guest_purge;
mod guest_stacks;
#[cfg(target_os = "linux")]
mod guest_zoned;
#[cfg(target_os = "linux")]
mod guests;
mod hosts;
mod import;
mod job;
mod job_run;
mod keeping;
#[cfg(target_os = "linux")]
mod kills;
mod lat;
mod lat_several;
#[cfg(target_os = "linux")]
mod ledger;
mod live;
mod manifests;
mod matrix;
mod metrics;
mod moments;
mod native;
mod plot;
mod prio;
mod prio_plot;
#[cfg(target_os = "linux")]
mod proof;
mod provision;
#[cfg(target_os = "linux")]
mod purge;
#[cfg(feature = "query")]
mod query;
mod quick;
mod report;
#[cfg(target_os = "linux")]
mod resume;
mod running;
mod schemas;
mod show;
mod snia;
#[cfg(target_os = "linux")]
mod stacks;
mod steady;
mod study;
#[cfg(target_os = "linux")]
mod threads;
#[cfg(target_os = "linux")]
mod traps;
#[cfg(target_os = "linux")]
mod verdict;
#[cfg(target_os = "linux")]
mod writers;
