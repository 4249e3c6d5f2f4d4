//! What a job is where it does not say otherwise: fio's defaults (options.c).

use super::{
    Advise, Content, ExitWhat, Fallocate, FileOrder, FileService, IoPattern, JobFiles, OpenSync,
    Queue, Show, Sizes, StartOrder, Unified, ZoneOptions,
};
use crate::native::offsets::Distribution;

impl Default for IoPattern {
    fn default() -> Self {
        Self {
            dirs: [true, false, false],
            random: false,
            random_percent: [100; 3],
            run: 1,
            run_stays: false,
            skip: 0,
            trimwrite: false,
            read_percent: 50,
            sizes: [const { Sizes::Fixed(4096) }; 3],
            unaligned: false,
            sizes_by_order: false,
            align: [None; 3],
            repetition: false,
            full_cycle: false,
            distribution: [const { Distribution::Uniform }; 3],
            seed: None,
            repeatable: true,
        }
    }
}

impl Default for JobFiles {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            directories: Vec::new(),
            format: "$jobname.$jobnum.$filenum".to_owned(),
            count: 1,
            service: FileService {
                order: FileOrder::RoundRobin,
                run: 1,
            },
            direct: false,
            open_sync: OpenSync::No,
            fsync_every: 0,
            fdatasync_every: 0,
            end_fsync: false,
            fsync_on_close: false,
            sync_range_every: 0,
            sync_range_flags: 0,
            write_hint: None,
            trees: Vec::new(),
            append: false,
            fill: false,
            create_only: false,
            create_on_open: false,
            allow_create: true,
            create_fsync: true,
            fallocate: Fallocate::Allocate,
            invalidate: true,
            pre_read: false,
            open_at_once: None,
            advise: Advise::AsPattern,
            unlink: false,
            overwrite: false,
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self {
            refill: false,
            scramble: true,
            zero: false,
            pattern: Vec::new(),
            compress_percent: 0,
            compress_chunk: 512,
            dedupe_percent: 0,
            dedupe_from_set: false,
            dedupe_global: false,
            // options.c, dedupe_working_set_percentage.
            dedupe_set_percent: 5,
        }
    }
}

impl Default for ZoneOptions {
    fn default() -> Self {
        Self {
            mode: None,
            size: 0,
            range: 0,
            skip: 0,
            skip_zones: 0,
            capacity: 0,
            most_open: 0,
            job_most_open: 0,
            ignores_limits: false,
            reads_beyond: false,
            reset_share: 0.0,
            reset_from: 1.0,
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            depth: 1,
            submit: None,
            complete_min: 1,
            complete_max: None,
            low: None,
            hipri: false,
            sq_poll: false,
            sq_poll_cpu: None,
            fixed_buffers: false,
            poll_percent: 100,
            nowait: false,
            uncached: false,
            async_every: 0,
            offload: false,
            no_overlap: false,
        }
    }
}

impl Default for StartOrder {
    fn default() -> Self {
        Self {
            clones: 1,
            stonewall: false,
            wait_for: None,
            new_group: false,
            exit_all: false,
            exit_all_on_error: false,
            exit_what: ExitWhat::Group,
            before: None,
            after: None,
        }
    }
}

impl Default for Show {
    fn default() -> Self {
        Self {
            group: false,
            lat: true,
            clat: true,
            slat: true,
            clat_percentiles: true,
            lat_percentiles: false,
            slat_percentiles: false,
            unified: Unified::No,
            description: None,
            // stat.c, DEF_PERCENTILES.
            percentiles: vec![
                1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5,
                99.9, 99.95, 99.99,
            ],
        }
    }
}
