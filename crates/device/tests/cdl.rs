//! Pages of Command Duration Limits: as files, as bytes, and through a disk that
//! answers from a tape.

use std::path::Path;

use fathom_device::cdl::file::{parse, render};
use fathom_device::cdl::scsi::{self, CdlPages, ScsiError};
use fathom_device::cdl::wire::{BYTES, decode, encode_over};
use fathom_device::cdl::{Bound, CdlPage, CdlUnit, Page, Policy, show};
use fathom_device::command::{Command, CommandData, Played, Reply};

const SHIPPED: [&str; 2] = [
    include_str!("../../../campaigns/cdl/T2A.cdl"),
    include_str!("../../../campaigns/cdl/T2B.cdl"),
];

fn shipped(kind: CdlPage) -> Page {
    let page = parse(SHIPPED[kind as usize]).unwrap();
    assert_eq!(page.kind, kind);
    page
}

#[test]
fn the_shipped_pages_have_the_usual_limits() {
    for kind in CdlPage::ALL {
        let page = shipped(kind);
        let ms: Vec<_> = page
            .descriptors
            .iter()
            .map(|d| d.ns(Bound::Duration).map(|ns| ns / 1_000_000))
            .collect();
        let limits = [50, 100, 200, 300, 400, 500].map(Some);
        assert_eq!(ms, [&limits[..], &[None]].concat());
        assert!(page.descriptors.iter().all(|d| !d.may_fail()));
    }
    assert_eq!(shipped(CdlPage::T2a).guideline.percent(), Some(20.0));
}

#[test]
fn a_page_is_the_same_as_file_and_as_bytes() {
    for kind in CdlPage::ALL {
        let page = shipped(kind);
        assert_eq!(parse(&render(&page)).unwrap(), page);
        let mut bytes = [0xff; BYTES];
        encode_over(&page, &mut bytes);
        assert_eq!(decode(kind, &bytes).unwrap(), page);
        // What has no meaning here stays as the disk has it.
        assert_eq!((bytes[8] & 0xf0, bytes[9], bytes[39]), (0xf0, 0xff, 0xff));
        assert_eq!(bytes[0], 0x4a);
        let other = CdlPage::ALL[1 - kind as usize];
        assert!(decode(other, &bytes).is_err());
    }
}

#[test]
fn every_fault_of_a_file_is_told_with_its_line() {
    let text = SHIPPED[0]
        .replacen("t2cdlunits: 0xa", "t2cdlunits: 0x7", 1)
        .replacen("duration-guideline: 10", "duration-guideline: ten", 1)
        .replacen(
            "max-active-time-policy: 0x0",
            "max-active-time-policy: 0x1",
            1,
        )
        .replace("== descriptor: 7", "== descriptor: 8")
        .replace("0xc", "0xd");
    let faults = parse(&text).unwrap_err();
    let told: Vec<String> = faults
        .iter()
        .map(|fault| format!("{}: {}", fault.line, fault.what))
        .collect();
    assert_eq!(told.len(), 6, "{told:#?}");
    let line = |wanted: &str| text.lines().position(|l| l == wanted).unwrap() + 1;
    for (at, what) in [
        (line("t2cdlunits: 0x7"), "is not one of 0x0"),
        (line("duration-guideline: ten"), "'ten' is no number"),
        (line("max-active-time-policy: 0x1"), "0xe (abort-recovery)"),
        (line("== descriptor: 8"), "N from 1 to 7"),
        (
            line("perf-vs-duration-guideline: 0xd"),
            "is not one of 0x0 to 0xc",
        ),
        (1, "there is no descriptor 7"),
    ] {
        let found = told
            .iter()
            .any(|t| t.starts_with(&format!("{at}: ")) && t.contains(what));
        assert!(found, "{at}: {what}: {told:#?}");
    }
    assert!(!parse("").unwrap_err().is_empty());
    let twice = SHIPPED[1].replace("cdlp: T2B", "cdlp: T2B\ncdlp: T2B\nfoo: 1\nbar");
    assert_eq!(parse(&twice).unwrap_err().len(), 3);
}

#[test]
fn limits_are_told_as_cdladm_does() {
    let mut page = shipped(CdlPage::T2a);
    page.descriptors[1].max_active.time = 3;
    page.descriptors[1].max_active.policy = Policy(0xf);
    page.descriptors[1].unit = CdlUnit(0x6);
    let text = show::page(&page);
    for line in [
        "Page T2A:",
        "  perf_vs_duration_guideline : 20%",
        "  Descriptor 1:",
        "    max inactive time       : no limit",
        "    duration guideline      : 50 ms",
        "    duration guideline policy: complete-earliest",
        "    max active time         : 1500 ns",
        "    max active policy       : abort",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(page.descriptors[1].may_fail());
    assert!(!page.descriptors[0].may_fail());
}

fn good(data: Vec<u8>) -> Reply {
    Reply {
        data,
        ..Reply::default()
    }
}

/// What MODE SENSE gives: a head with a block descriptor, and the page.
fn sensed(page: &Page) -> Reply {
    let mut bytes = [0; BYTES];
    encode_over(page, &mut bytes);
    bytes[0] |= 0x80;
    let mut data = vec![0, 246, 0, 0x10, 0, 0, 0, 8];
    data.extend([0; 8]);
    data.extend(bytes);
    good(data)
}

fn refused() -> Reply {
    Reply {
        status: 2,
        sense: vec![0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0],
        ..Reply::default()
    }
}

#[test]
fn a_page_is_uploaded_over_what_is_there_and_read_back() {
    let disk = Path::new("/dev/sdz");
    let page = shipped(CdlPage::T2a);
    let tape = Played::new([
        sensed(&Page::empty(CdlPage::T2a)),
        good(Vec::new()),
        sensed(&page),
    ]);
    scsi::upload(&tape, disk, &page).unwrap();
    let issued = tape.issued();
    let Command::Scsi { cdb, .. } = &issued[0].1 else {
        panic!("{issued:?}")
    };
    assert_eq!(cdb[..], [0x5a, 8, 0x0a, 7, 0, 0, 0, 2, 0, 0]);
    let Command::Scsi {
        cdb,
        data: CommandData::Out(list),
        ..
    } = &issued[1].1
    else {
        panic!("{issued:?}")
    };
    assert_eq!(cdb[..], [0x55, 0x10, 0, 0, 0, 0, 0, 0, 240, 0]);
    // No data length, no block descriptors, no PS bit.
    assert_eq!(list[..8], [0; 8]);
    assert_eq!(list[8..12], [0x4a, 7, 0, 228]);
    assert_eq!(decode(CdlPage::T2a, &list[8..]).unwrap(), page);
}

#[test]
fn a_disk_that_takes_something_else_is_told() {
    let disk = Path::new("/dev/sdz");
    let page = shipped(CdlPage::T2b);
    let mut rounded = page.clone();
    rounded.descriptors[2].duration.time = 21;
    let tape = Played::new([sensed(&rounded), good(Vec::new()), sensed(&rounded)]);
    let error = scsi::upload(&tape, disk, &page).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, ScsiError::Other { .. }), "{said}");
    assert!(
        said.contains("descriptor 3: duration-guideline is 210 ms (complete-earliest), not 200 ms"),
        "{said}"
    );
    let tape = Played::new([refused()]);
    let error = scsi::upload(&tape, disk, &page).unwrap_err();
    assert!(
        error.to_string().contains("illegal request 5h, 24h/00h"),
        "{error}"
    );
}

#[test]
fn a_disk_says_which_page_limits_a_command() {
    let disk = Path::new("/dev/sdz");
    for (rwcdlp, support, limits) in [
        (1, 3 | 1 << 3, CdlPages::Page(CdlPage::T2a)),
        (1, 3 | 2 << 3, CdlPages::Page(CdlPage::T2b)),
        (0, 3 | 1 << 3, CdlPages::Older),
        (0, 3, CdlPages::None),
        (1, 1 | 1 << 3, CdlPages::None),
    ] {
        let tape = Played::new([good([&[rwcdlp, support][..], &[0; 18]].concat())]);
        assert_eq!(scsi::limits(&tape, disk, CdlPage::T2a).unwrap(), limits);
    }
    assert!(scsi::limits(&Played::new([refused()]), disk, CdlPage::T2b).is_err());
}
