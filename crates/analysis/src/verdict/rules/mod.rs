//! The rules, one file each.

use fathom_model::VerdictReason;

use super::JudgedFigure;

mod behind_rate;
mod cached_below;
mod cached_reads;
mod clock_frequency;
mod clock_source;
mod compressed;
mod cpu_bound;
mod cpu_taken;
mod depth_not_reached;
mod device_errors;
mod device_memory;
mod failed_ios_counted;
mod far_cpus;
mod few_beyond;
mod foreign_io;
mod in_memory;
mod interrupt_bound;
mod level_shift;
mod link;
mod maintenance;
mod memory_pressure;
mod misaligned;
mod nothing_read;
mod own_limit;
mod record_on_target;
mod requests_split;
mod saturated_percentiles;
mod settings_changed;
mod shared_blocks;
mod short;
mod stalls;
mod still_changing;
mod thermal;
mod throttled;
mod unknown_history;
mod unsynced_writes;
mod volatile_cache;
mod write_cache;

pub(super) use cpu_taken::waiting_share;
pub(super) use link::link_use;

/// A rule.
pub(super) type VerdictRule = fn(&JudgedFigure) -> Option<VerdictReason>;

/// Every rule that looks at one figure. What sums over hosts have beside is in
/// [`super::across`], what the counters of a cluster's volumes say in [`crate::volumes`].
pub(super) const ALL: &[VerdictRule] = &[
    failed_ios_counted::rule,
    cached_reads::rule,
    nothing_read::rule,
    cached_below::rule,
    compressed::rule,
    shared_blocks::rule,
    device_memory::rule,
    write_cache::rule,
    unknown_history::rule,
    unsynced_writes::rule,
    in_memory::rule,
    foreign_io::rule,
    depth_not_reached::rule,
    cpu_bound::rule,
    cpu_taken::rule,
    interrupt_bound::rule,
    far_cpus::rule,
    throttled::rule,
    thermal::rule,
    clock_frequency::rule,
    link::narrow,
    link::limit,
    level_shift::rule,
    still_changing::rule,
    stalls::rule,
    device_errors::rule,
    volatile_cache::rule,
    requests_split::rule,
    misaligned::rule,
    settings_changed::rule,
    maintenance::rule,
    memory_pressure::rule,
    record_on_target::rule,
    clock_source::rule,
    few_beyond::rule,
    own_limit::rule,
    saturated_percentiles::rule,
    behind_rate::rule,
    short::rule,
];
