//! The flags of a load in the background.

use fathom_cluster::GibSize;
use fathom_cluster::background_load::GivenBackgroundLoad;

/// A load in the background (CALM); a flag of it is enough to have one
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load in the background")]
pub struct BackgroundLoadArgs {
    /// Random reads and writes at a fixed rate, on servers of their own, all the time
    #[arg(long)]
    calm: bool,
    /// Its servers, each with a volume of its own [default: 1]
    #[arg(long, value_name = "N")]
    calm_ninstances: Option<u32>,
    /// I/Os per second of a server, reads and writes together [default: 256]
    #[arg(long, value_name = "N")]
    calm_iops: Option<u32>,
    /// Its block size [default: 8k]
    #[arg(long, value_name = "SIZE")]
    calm_bs: Option<String>,
    /// Its share of reads in percent [default: 50]
    #[arg(long, value_name = "PERCENT")]
    calm_rwmixread: Option<u32>,
    /// Its queue depth [default: 32]
    #[arg(long, value_name = "N")]
    calm_iodepth: Option<u32>,
    /// Size of a server's file in GiB, or with a unit, written first [default: 1]
    #[arg(long, value_name = "SIZE")]
    calm_fsz_gb: Option<GibSize>,
    /// Size of a claim of it, likewise [default: room for the file, and 1]
    #[arg(long, value_name = "SIZE")]
    calm_pvcsz_req_gb: Option<GibSize>,
    /// Storage class of its claims [default: the benchmark's]
    #[arg(long, value_name = "NAME")]
    calm_storageclass: Option<String>,
    /// Label of the nodes that its servers may run on
    #[arg(long, value_name = "KEY=VALUE")]
    calm_node_label: Option<String>,
    /// Image of its pods: one with fio in it [default: the benchmark's]
    #[arg(long, value_name = "NAME")]
    calm_image: Option<String>,
}

impl BackgroundLoadArgs {
    /// What was said; `None` when nothing was.
    pub fn given(&self) -> Option<GivenBackgroundLoad> {
        let given = GivenBackgroundLoad {
            enabled: None,
            ninstances: self.calm_ninstances,
            iops: self.calm_iops,
            bs: self.calm_bs.clone(),
            rwmixread: self.calm_rwmixread,
            iodepth: self.calm_iodepth,
            fsz_gb: self.calm_fsz_gb,
            pvcsz_req_gb: self.calm_pvcsz_req_gb,
            storageclass: self.calm_storageclass.clone(),
            node_label: self.calm_node_label.clone(),
            image: self.calm_image.clone(),
        };
        let is_wanted = self.calm || given != GivenBackgroundLoad::default();
        is_wanted.then_some(GivenBackgroundLoad {
            enabled: Some(true),
            ..given
        })
    }
}
