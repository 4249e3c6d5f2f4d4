//! Whether something has to be done to a drive at all, on a machine that is
//! recorded: a serial number is what ledgers are kept by.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use fathom_device::Sys;
use fathom_device::command::Played;
use fathom_engines::EngineName;
use fathom_flow::RunOptions;
use fathom_model::LedgerEvent;

use super::*;
use crate::precondition::DeviceFacts;
use crate::preparation::Preparation;
use crate::settings::{self, Overrides};
use crate::shipped;

const PATH: &str = "/dev/nvme0n1";
const BYTES: u64 = 1 << 30;

struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        let write = |path: &str, text: &str| {
            let path = machine.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("sys/devices/nvme/nvme0n1/dev", "259:0\n");
        write("sys/devices/nvme/nvme0n1/size", "2097152\n");
        write("sys/devices/nvme/nvme0n1/serial", "S1\n");
        write("dev/nvme0n1", "");
        let node = fs::File::options()
            .write(true)
            .open(machine.0.path().join("dev/nvme0n1"));
        node.unwrap().set_len(BYTES).unwrap();
        let to = machine.0.path().join("sys/devices/nvme/nvme0n1");
        for link in [
            "sys/class/block/nvme0n1",
            "sys/block/nvme0n1",
            "sys/dev/block/259:0",
        ] {
            let link = machine.0.path().join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(&to, link).unwrap();
        }
        machine
    }

    fn ledgers(&self) -> Ledgers {
        let sys = Sys::recorded(self.0.path());
        Ledgers::at(
            self.0.path().join("ledgers"),
            sys,
            Arc::new(Played::default()),
        )
    }

    fn provision(
        &self,
        workload: SteadyFor,
        change: impl FnOnce(&mut ProvisionMethod),
    ) -> Provision {
        let mut how = ProvisionMethod {
            workload,
            method: PreconditionMethod::SantaClara,
            purge: None,
            no_purge: false,
            force: false,
            options: RunOptions {
                engine: Some(EngineName::Native),
                ..RunOptions::default()
            },
            campaign: None,
            logs: None,
        };
        change(&mut how);
        let config = shipped::config(&|_| None).unwrap();
        let options = ProvisionOptions {
            runs_dir: self.0.path().join("runs"),
            settings: settings::settings(
                &config,
                &Overrides {
                    options: how.options.clone(),
                    ..Overrides::default()
                },
            )
            .unwrap(),
            ledgers: self.ledgers(),
        };
        Provision::new(
            how,
            vec![ProvisionDrive::simulated(Path::new(PATH))],
            config,
            options,
        )
    }
}

fn preparation(provision: &Provision) -> Preparation {
    provision.preparation(&provision.drives[0]).unwrap()
}

fn needless(provision: &Provision) -> Option<String> {
    let here = DeviceFacts {
        capacity_bytes: Some(BYTES),
        has_sprandom: false,
    };
    let one = &provision.drives[0];
    provision.needless(one, &preparation(provision), here)
}

#[test]
fn a_drive_that_is_steady_for_the_load_is_left_as_it_is_unless_it_is_forced() {
    let machine = Machine::new();
    let sequential = machine.provision(SteadyFor::Sequential, |_| {});
    assert_eq!(needless(&sequential), None, "nothing is known yet");
    let settings = preparation(&sequential).precondition.unwrap();
    let deed = LedgerEvent::Settled {
        pattern: Pattern::Sequential,
        bs_bytes: settings.bs_of(fathom_model::DevicePhase::Sequential),
        range_percent: 100.0,
        bytes: BYTES,
        rule: settings.rule_text(fathom_model::DevicePhase::Sequential),
        attained: true,
    };
    let notes = machine.ledgers().did(Path::new(PATH), "run", None, deed);
    assert!(notes.is_empty(), "{notes:?}");
    let reason = needless(&sequential).unwrap();
    assert!(
        reason.contains("it became steady in sequential"),
        "{reason}"
    );
    let random = machine.provision(SteadyFor::Random, |_| {});
    assert_eq!(needless(&random), None);
    let forced = machine.provision(SteadyFor::Sequential, |how| how.force = true);
    assert_eq!(needless(&forced), None);
}

#[test]
fn the_purge_is_the_one_that_was_named_or_that_the_campaign_says_or_any() {
    let machine = Machine::new();
    let choice = |change: fn(&mut ProvisionMethod)| {
        let provision = machine.provision(SteadyFor::Random, change);
        let purge = preparation(&provision).purge;
        purge.map(|want| want.choice)
    };
    let auto = "auto".parse().ok();
    assert_eq!(choice(|_| {}), auto);
    let named = choice(|how| how.purge = Some("blkdiscard".to_owned()));
    assert_eq!(named, "blkdiscard".parse().ok());
    assert_eq!(choice(|how| how.no_purge = true), None);
    // Of the shipped configuration only NVMe drives have commands of their own.
    let campaign = choice(|how| how.campaign = Some("/campaign".into()));
    assert!(campaign.is_some() && campaign != auto);
}
