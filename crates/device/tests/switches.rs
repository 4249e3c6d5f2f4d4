//! Switches of NCQ priority and duration limits: the commands and the writes to
//! sysfs that a disk gets, against recorded trees of disks that no test machine
//! has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fathom_device::cdl::{CdlPage, Page, file};
use fathom_device::command::{Command, CommandData, Issue, Reply};
use fathom_device::priority::{self, Interface};
use fathom_device::switches::{PriorityMode, SwitchError, Switches};
use fathom_device::{Sys, SysBlock};
use fathom_model::SwitchState;
use tempfile::TempDir;

/// A SATA disk as the kernel shows it, which follows what is written to its
/// switches, with a `cdladm` that knows two pages.
struct Disk {
    tree: TempDir,
    issued: Mutex<Vec<String>>,
    cdladm: bool,
}

const ATTRIBUTES: [(&str, &str); 11] = [
    ("size", "42970644480"),
    ("queue/scheduler", "none [mq-deadline] kyber"),
    ("device/vendor", "ATA     "),
    ("device/model", "WDC  WUH722222AL"),
    ("device/rev", "WTS2"),
    ("device/scsi_level", "6"),
    ("device/timeout", "30"),
    ("device/ncq_prio_supported", "1"),
    ("device/ncq_prio_enable", "0"),
    ("device/cdl_supported", "1"),
    ("device/cdl_enable", "0"),
];

impl Disk {
    fn new(cdladm: bool) -> Self {
        let tree = tempfile::tempdir().unwrap();
        let disk = tree.path().join("sys/class/block/sdz");
        for (name, value) in ATTRIBUTES {
            let path = disk.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        }
        let mut page = vec![0; 36];
        page[1] = 0x89;
        page[8..16].copy_from_slice(b"linux   ");
        page[16..32].copy_from_slice(b"libata          ");
        page[32..36].copy_from_slice(b"3.00");
        fs::write(disk.join("device/vpd_pg89"), page).unwrap();
        for kind in CdlPage::ALL {
            let page = file::render(&Page::empty(kind));
            fs::write(tree.path().join(kind.name()), page).unwrap();
        }
        let issued = Mutex::default();
        Self {
            tree,
            issued,
            cdladm,
        }
    }

    fn node(&self) -> SysBlock {
        Sys::recorded(self.tree.path()).by_name("sdz").unwrap()
    }

    fn switches(&self) -> Switches<'_> {
        Switches::new(self.node(), true, self.tree.path().join("state"), self)
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.issued.lock().unwrap())
    }

    fn attribute(&self, name: &str) -> String {
        self.node().text(name).unwrap()
    }

    fn program(&self, argv: &[String]) -> io::Result<Reply> {
        if !self.cdladm {
            return Err(io::ErrorKind::NotFound.into());
        }
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let mut reply = Reply::default();
        match words[1..] {
            ["save", "--page", page, "--file", to, _] => {
                fs::copy(self.tree.path().join(page), to).unwrap();
            }
            ["upload", "--file", from, _] => {
                let page = file::read(Path::new(from)).unwrap();
                fs::copy(from, self.tree.path().join(page.kind.name())).unwrap();
            }
            ["info", _] => {
                reply.data = b"Device: /dev/sdz\n    Command duration guidelines: supported\n    \
                    Duration minimum limit: 20000000 ns\nSystem:\n    Duration minimum limit: 1 ns\n"
                    .to_vec();
            }
            _ => panic!("cdladm {words:?}"),
        }
        Ok(reply)
    }
}

impl Issue for Disk {
    fn issue(&self, _: &Path, command: &Command) -> io::Result<Reply> {
        let root = self.tree.path().display().to_string();
        let said = command.to_string().replace(&root, "");
        self.issued.lock().unwrap().push(said);
        match command {
            Command::Attribute { path, value } => {
                let path = Sys::recorded(self.tree.path()).path(path);
                let value = match path.ends_with("scheduler") {
                    true => "none mq-deadline kyber".replace(value, &format!("[{value}]")),
                    false => value.clone(),
                };
                fs::write(path, value)?;
                Ok(Reply::default())
            }
            Command::Program { argv } => self.program(argv),
            Command::Scsi {
                data: CommandData::None,
                ..
            } => Ok(Reply::default()),
            other => panic!("{other}"),
        }
    }
}

const ON: &str = "echo 1 > /sys/class/block/sdz/device/";
const OFF: &str = "echo 0 > /sys/class/block/sdz/device/";

/// SET FEATURES in ATA PASS-THROUGH(16).
fn feature(code: u8, count: u8) -> String {
    format!("SG_IO 85 06 00 00 {code:02x} 00 {count:02x} 00 00 00 00 00 00 00 ef 00")
}

fn ncq_on() -> [String; 3] {
    [
        feature(0x57, 0),
        feature(0x58, 200),
        format!("{ON}ncq_prio_enable"),
    ]
}

fn ncq_off() -> [String; 2] {
    [format!("{OFF}ncq_prio_enable"), feature(0x56, 0)]
}

#[test]
fn ncq_priority_is_switched_on_and_off_again() {
    let disk = Disk::new(false);
    let switches = disk.switches();
    let found = switches.found(&[]).unwrap();
    assert_eq!(
        found,
        SwitchState {
            ncq_priority: Some(false),
            cdl: Some(false),
            scheduler: Some("mq-deadline".into()),
            pages: Vec::new(),
        }
    );
    switches.scheduler("none").unwrap();
    switches.set(PriorityMode::Plain).unwrap();
    assert_eq!(
        disk.take(),
        ["echo none > /sys/class/block/sdz/queue/scheduler"]
    );
    switches.set(PriorityMode::NcqPriority).unwrap();
    assert_eq!(disk.take(), ncq_on());
    assert!(switches.put_back(&found).is_empty());
    let back = ["echo mq-deadline > /sys/class/block/sdz/queue/scheduler".to_owned()];
    let off = [format!("{OFF}cdl_enable")];
    assert_eq!(disk.take(), [&off[..], &ncq_off()[..], &back[..]].concat());
}

#[test]
fn priority_and_limits_exclude_each_other_and_come_back_as_they_were() {
    let disk = Disk::new(true);
    let switches = disk.switches();
    switches.set(PriorityMode::NcqPriority).unwrap();
    let found = switches.found(&[]).unwrap();
    assert_eq!(found.ncq_priority, Some(true));
    disk.take();
    switches.set(PriorityMode::Limits).unwrap();
    let on = [format!("{ON}cdl_enable")];
    assert_eq!(disk.take(), [&ncq_off()[..], &on[..]].concat());
    assert!(switches.put_back(&found).is_empty());
    let said = disk.take();
    assert_eq!(said[0], format!("{OFF}cdl_enable"));
    assert_eq!(said[said.len() - 3..], ncq_on());
    assert_eq!(disk.attribute("device/ncq_prio_enable"), "1");
    assert_eq!(disk.attribute("device/cdl_enable"), "0");
}

#[test]
fn pages_of_an_ata_disk_go_through_cdladm_and_come_back() {
    let disk = Disk::new(true);
    let switches = disk.switches();
    let found = switches.found(&CdlPage::ALL).unwrap();
    assert_eq!(found.pages.len(), 2);
    let kept: PathBuf = found.pages[0].file.clone().unwrap();
    assert!(kept.ends_with("state/sdz.T2A.cdl"), "{kept:?}");
    disk.take();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns/cdl/T2A.cdl");
    let page = file::read(&shipped).unwrap();
    switches.upload(&page, &shipped).unwrap();
    assert_eq!(
        disk.take(),
        [
            format!("cdladm upload --file {} /dev/sdz", shipped.display()),
            "cdladm save --page T2A --file /state/sdz.T2A.now.cdl /dev/sdz".to_owned(),
        ]
    );
    let has = |kind: CdlPage| file::read(&disk.tree.path().join(kind.name())).unwrap();
    assert_eq!(has(CdlPage::T2a), page);
    assert!(switches.put_back(&found).is_empty());
    assert_eq!(has(CdlPage::T2a), Page::empty(CdlPage::T2a));
    assert!(!kept.exists());
}

#[test]
fn without_cdladm_pages_of_an_ata_disk_are_out_of_reach() {
    let disk = Disk::new(false);
    let error = disk.switches().found(&[CdlPage::T2a]).unwrap_err();
    assert!(matches!(error, SwitchError::NoCdladm), "{error}");
    assert!(error.to_string().contains("install cdl-tools"), "{error}");
}

/// What cannot be put back is told, and all else is put back.
#[test]
fn one_refusal_keeps_nothing_else_from_coming_back() {
    let disk = Disk::new(true);
    let switches = disk.switches();
    let mut found = switches.found(&[CdlPage::T2b]).unwrap();
    found.pages[0].page = "T2X".to_owned();
    switches.scheduler("none").unwrap();
    switches.set(PriorityMode::Limits).unwrap();
    let failed = switches.put_back(&found);
    assert_eq!(failed.len(), 1);
    assert!(
        failed[0]
            .to_string()
            .contains("page T2X cannot be put back")
    );
    assert_eq!(disk.attribute("device/cdl_enable"), "0");
    assert_eq!(
        disk.attribute("queue/scheduler"),
        "none [mq-deadline] kyber"
    );
    assert!(found.pages[0].file.as_ref().unwrap().exists());
}

#[test]
fn what_a_disk_knows_is_told_by_sysfs_and_cdladm() {
    let disk = Disk::new(true);
    let info = priority::info(&disk.node(), Path::new("/dev/sdz"), &disk);
    assert_eq!(info.interface, Interface::Ata);
    let sat = info.sat.unwrap();
    assert_eq!(
        (&*sat.vendor, &*sat.product, &*sat.revision),
        ("linux", "libata", "3.00")
    );
    assert_eq!(info.bytes, 42_970_644_480 * 512);
    assert_eq!(info.cdl.unwrap().words(), "supported, disabled");
    assert_eq!(info.ncq_priority.unwrap().words(), "supported, disabled");
    assert_eq!((info.guidelines, info.timeout_s), (Some(true), Some(30)));
    assert_eq!(
        (info.min_limit_ns, info.max_limit_ns),
        (Some(20_000_000), None)
    );
    let without = Disk::new(false);
    let info = priority::info(&without.node(), Path::new("/dev/sdz"), &without);
    assert_eq!((info.guidelines, info.min_limit_ns), (None, None));
}
