//! Zones one after the other, and passes that go where the first one went, beside the
//! real fio.

use std::collections::BTreeSet;

use fathom_testkit::skip;

use crate::native::places::both;

/// Of each run of so many I/Os, the zone it is in; `None` when it is in several.
fn zones(ios: &[(u32, u64, u64)], per_zone: usize, range: u64) -> Vec<Option<u64>> {
    let zone = |ios: &[(u32, u64, u64)]| {
        let zones: BTreeSet<u64> = ios.iter().map(|io| io.2 / range).collect();
        (zones.len() == 1).then(|| zones.first().copied()).flatten()
    };
    ios.chunks(per_zone).map(zone).collect()
}

#[test]
fn zones_are_done_in_their_order_and_each_block_of_one_once() {
    let test = "zones_are_done_in_their_order_and_each_block_of_one_once";
    let strided = "ioengine=null\nbs=4k\nsize=1m\nzonemode=strided";
    let jobs = [
        ("rw=read\nzonesize=64k", 16),
        ("rw=read\nzonesize=64k\nzoneskip=64k", 16),
        ("rw=randread\nzonesize=64k", 16),
        ("rw=randread\nzonesize=32k\nzonerange=64k", 8),
        ("rw=randread\nzonesize=128k\nzonerange=64k", 32),
        (
            "rw=randread\nzonesize=64k\nnorandommap\nrandom_generator=lfsr",
            16,
        ),
        ("rw=randread\nzonesize=128k\nzonerange=64k\noffset=512k", 32),
    ];
    for (options, per_zone) in jobs {
        let Some([ours, theirs]) = both(&format!("{strided}\nfilesize=1m\n{options}")) else {
            return skip(test, "fio is not installed");
        };
        let [native, fio] = [&ours, &theirs].map(|ios| zones(ios, per_zone, 64 << 10));
        assert_eq!(native, fio, "{options}");
        assert!(native.iter().all(Option::is_some), "{options}: {native:?}");
        for zone in ours.chunks(16) {
            let blocks: BTreeSet<u64> = zone.iter().map(|io| io.2).collect();
            let expected = if per_zone == 8 { 8 } else { 16 };
            assert!(blocks.len() >= expected, "{options}: {blocks:?}");
        }
    }
}

#[test]
fn zones_lie_beyond_the_size_of_a_job_where_its_file_goes_on() {
    let test = "zones_lie_beyond_the_size_of_a_job_where_its_file_goes_on";
    // A file of 1 MiB, of which a quarter is read.
    let options =
        "rw=read\nbs=64k\nfilesize=1m\nsize=256k\nzonemode=strided\nzonesize=64k\nzoneskip=192k";
    let Some(ios) = both(options) else {
        return skip(test, "fio is not installed");
    };
    let [ours, theirs] = ios.map(|ios| ios.iter().map(|io| io.2 >> 10).collect::<Vec<_>>());
    assert_eq!(ours, theirs);
    assert_eq!(ours, [0, 256, 512, 768]);
}

#[test]
fn each_loop_comes_to_the_blocks_of_the_first_one_in_its_order() {
    let test = "each_loop_comes_to_the_blocks_of_the_first_one_in_its_order";
    // A job without a map whose I/Os are over when they are called has no passes.
    let jobs = [
        ("ioengine=psync", true),
        ("ioengine=psync\nnorandommap", false),
        ("ioengine=null\nnorandommap", false),
        ("ioengine=posixaio\nnorandommap", true),
        ("ioengine=posixaio\nnorandommap\nrandrepeat=0", false),
    ];
    for (options, repeats) in jobs {
        let Some(ios) = both(&format!("rw=randread\nbs=4k\nsize=1m\nloops=4\n{options}")) else {
            return skip(test, "fio is not installed");
        };
        for ios in ios {
            let passes: Vec<_> = ios.chunks(256).collect();
            assert_eq!(ios.len(), 1024, "{options}");
            let same = passes.iter().all(|pass| *pass == passes[0]);
            assert_eq!(same, repeats, "{options}");
        }
    }
}

#[test]
fn a_block_that_is_trimmed_is_written_next_wherever_it_lies() {
    let test = "a_block_that_is_trimmed_is_written_next_wherever_it_lies";
    let options = "ioengine=null\nrw=randtrimwrite\nbsrange=4k-16k\nsize=1m";
    let Some(ios) = both(options) else {
        return skip(test, "fio is not installed");
    };
    for ios in ios {
        let trims: u64 = ios.iter().filter(|io| io.0 == 2).map(|io| io.1).sum();
        assert_eq!(trims, 1 << 20);
        let in_pairs = |pair: &[(u32, u64, u64)]| {
            let [trim, write] = pair else { return false };
            (trim.0, write.0) == (2, 1) && (trim.1, trim.2) == (write.1, write.2)
        };
        assert!(ios.chunks(2).all(in_pairs), "{:?}", &ios[..8]);
    }
}

/// On a device that has none the zones are those of the job: every I/O goes where fio's
/// does while nothing is random.
#[test]
fn zones_of_zoned_devices_are_written_where_fio_writes_them() {
    let test = "zones_of_zoned_devices_are_written_where_fio_writes_them";
    let zbd = "ioengine=null\nbs=4k\nsize=1m\nzonemode=zbd\nzonesize=64k\nzonecapacity=32k";
    for options in [
        "rw=write",
        "rw=write\nloops=3",
        "rw=write\nbs=8k",
        "rw=write\nio_size=900k",
        "rw=write\nzoneskip=64k",
        "rw=write\nmax_open_zones=1",
        "rw=write\niodepth=8",
        "rw=read\nread_beyond_wp=1",
        "rw=read",
        "rw=trim\nbs=64k",
    ] {
        let Some([ours, theirs]) = both(&format!("{zbd}\n{options}")) else {
            return skip(test, "fio is not installed");
        };
        assert_eq!(ours, theirs, "{options}");
    }
}
