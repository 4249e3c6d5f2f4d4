//! Which blocks a job comes to, in which sizes and how often, beside the real fio: read
//! from the logs that both write with the offset of every I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use fathom_engine::Outcome;
use fathom_testkit::skip;

use crate::native::{Seen, folder, run, try_run};

/// One I/O: 0 read, 1 write; bytes; offset.
pub(crate) type LoggedIo = (u32, u64, u64);

fn logged(dir: &Path) -> Vec<LoggedIo> {
    let text = std::fs::read_to_string(dir.join("x_lat.1.log")).unwrap();
    let io = |line: &str| {
        let fields: Vec<u64> = line
            .split(',')
            .filter_map(|field| field.trim().parse().ok())
            .collect();
        (fields[2] as u32, fields[3], fields[4])
    };
    text.lines().map(io).collect()
}

/// The I/Os of a job under both engines, native first; `None` without fio.
pub(crate) fn both(options: &str) -> Option<[Vec<LoggedIo>; 2]> {
    let text = format!("[j]\nfilename=f\nwrite_lat_log=x\nlog_offset=1\n{options}\n");
    let (ours, theirs) = (folder(), folder());
    run(ours.path(), &text);
    std::fs::write(theirs.path().join("j.fio"), &text).unwrap();
    let mut fio = Command::new("fio");
    let output = fio.arg("j.fio").current_dir(theirs.path()).output().ok()?;
    assert!(output.status.success(), "{options}: {output:?}");
    Some([logged(ours.path()), logged(theirs.path())])
}

fn distinct(ios: &[LoggedIo]) -> usize {
    ios.iter().map(|io| io.2).collect::<BTreeSet<_>>().len()
}

#[test]
fn a_maximal_lfsr_visits_every_block_without_a_map() {
    let test = "a_maximal_lfsr_visits_every_block_without_a_map";
    let lfsr = "rw=randwrite\nbs=4k\nsize=4m\nnorandommap\nrandom_generator=lfsr";
    let Some(ios) = both(lfsr) else {
        return skip(test, "fio is not installed");
    };
    assert_eq!(
        ios.map(|ios| (ios.len(), distinct(&ios))),
        [(1024, 1024); 2]
    );
    let ios = both("rw=randwrite\nbs=4k\nsize=4m\nnorandommap").unwrap();
    // Of 1024 draws 647 are of blocks of their own (1 - 1/e), give or take 10.
    assert!(ios.iter().all(|ios| (580..720).contains(&distinct(ios))));
}

#[test]
fn sizes_of_two_directions_keep_their_alignment() {
    let options = "rw=randrw\nbs=4k,16k\nsize=4m";
    let Some(ios) = both(options) else {
        return skip(
            "sizes_of_two_directions_keep_their_alignment",
            "fio is not installed",
        );
    };
    for ios in ios {
        let kinds: BTreeSet<_> = ios.iter().map(|io| (io.0, io.1, io.2 % io.1)).collect();
        assert_eq!(kinds, BTreeSet::from([(0, 4096, 0), (1, 16_384, 0)]));
    }
}

#[test]
fn zones_without_a_size_get_the_rest() {
    let options = "ioengine=null\nrw=randread\nbs=4k\nsize=400m\nnumber_ios=20000\nnorandommap\n\
                   random_distribution=zoned:50/5:30/15:20/";
    let Some(ios) = both(options) else {
        return skip("zones_without_a_size_get_the_rest", "fio is not installed");
    };
    for ios in ios {
        let shares = [(0, 5), (5, 20), (20, 100)].map(|(from, to)| {
            let range = from * (4 << 20)..to * (4 << 20);
            let there = ios.iter().filter(|io| range.contains(&io.2)).count();
            there as f64 * 100.0 / ios.len() as f64
        });
        // A standard deviation is 0.35.
        for (share, wanted) in shares.iter().zip([50.0, 30.0, 20.0]) {
            assert!((share - wanted).abs() < 2.5, "{shares:?}");
        }
        let last = ios.iter().map(|io| io.2).max().unwrap();
        assert!(last > 399 << 20, "{last}");
    }
}

/// How many of the I/Os go to the most popular blocks, so many at a time.
fn popularity(ios: &[LoggedIo], ranks: [usize; 4]) -> [f64; 4] {
    let mut counts = BTreeMap::new();
    ios.iter()
        .for_each(|io| *counts.entry(io.2).or_insert(0u32) += 1);
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    ranks.map(|rank| counts.iter().take(rank).sum::<u32>() as f64 / ios.len() as f64)
}

#[test]
fn skewed_distributions_favour_as_many_blocks_as_fios() {
    for distribution in [
        "normal",
        "normal:5",
        "normal:40",
        "normal:99",
        "zipf:1.2",
        "pareto:0.3",
    ] {
        let options = format!(
            "ioengine=null\nrw=randread\nbs=4k\nsize=4m\nnumber_ios=40000\nnorandommap\n\
             io_size=1g\nrandom_distribution={distribution}"
        );
        let Some([ours, theirs]) = both(&options) else {
            return skip(
                "skewed_distributions_favour_as_many_blocks_as_fios",
                "fio is not installed",
            );
        };
        let ranks = [1, 50, 200, 500];
        let (ours, theirs) = (popularity(&ours, ranks), popularity(&theirs, ranks));
        let differ = ours.iter().zip(theirs).any(|(a, b)| (a - b).abs() > 0.04);
        assert!(!differ, "{distribution}: {ours:?}, fio {theirs:?}");
    }
}

#[test]
fn a_seed_repeats_its_sequence_whatever_randrepeat_says() {
    let offsets = |options: &str| {
        let dir = folder();
        let text = format!(
            "[j]\nioengine=null\nwrite_lat_log=x\nlog_offset=1\nrw=randread\nbs=4k\nsize=1m\n{options}\n"
        );
        run(dir.path(), &text);
        logged(dir.path())
    };
    let seeded = "randseed=7\nrandrepeat=0";
    assert_eq!(offsets(seeded), offsets(seeded));
    assert_ne!(offsets(seeded), offsets("randseed=8\nrandrepeat=0"));
    assert_ne!(offsets("randrepeat=0"), offsets("randrepeat=0"));
}

/// `rw=randread:8`: runs from places of the map, in which only those stand.
#[test]
fn runs_begin_and_are_counted_as_fios() {
    let options = "ioengine=null\nrw=randread:8\nbs=4k\nsize=8m";
    let Some(ios) = both(options) else {
        return skip("runs_begin_and_are_counted_as_fios", "fio is not installed");
    };
    for ios in ios {
        assert_eq!(ios.len(), 2048);
        let firsts: Vec<LoggedIo> = ios.iter().step_by(8).copied().collect();
        assert_eq!(distinct(&firsts), firsts.len());
        for run in ios.chunks(8) {
            // A run at the file's end goes on elsewhere.
            let follows = |pair: &[LoggedIo]| pair[1].2 == pair[0].2 + 4096;
            let end = run.iter().any(|io| io.2 == (8 << 20) - 4096);
            assert!(end || run.windows(2).all(follows), "{run:?}");
        }
        let share = distinct(&ios) as f64 / 2048.0;
        assert!((0.55..0.72).contains(&share), "{share}");
    }
}

/// Blocks of several sizes: the sizes are drawn as often, and each is aligned alike.
#[test]
fn mixed_sizes_are_drawn_as_often_as_fios() {
    for sizes in [
        "bssplit=4k/50:16k/30:64k/20",
        "bsrange=4k-16k",
        "bs=4k\nblockalign=16k",
    ] {
        let options = format!(
            "ioengine=null\nrw=randread\nsize=64m\nnorandommap\nnumber_ios=20000\nio_size=4g\n{sizes}"
        );
        let Some(ios) = both(&options) else {
            return skip(
                "mixed_sizes_are_drawn_as_often_as_fios",
                "fio is not installed",
            );
        };
        let [ours, theirs] = ios.map(|ios| {
            let mut shares = BTreeMap::new();
            let part = 1.0 / ios.len() as f64;
            ios.iter()
                .for_each(|io| *shares.entry((io.1, io.2 % 16_384)).or_insert(0.0) += part);
            shares
        });
        assert!(
            ours.keys().eq(theirs.keys()),
            "{sizes}: {ours:?}, fio {theirs:?}"
        );
        for (kind, share) in ours {
            assert!(
                (share - theirs[&kind]).abs() < 0.03,
                "{sizes} {kind:?}: {share}, fio {}",
                theirs[&kind]
            );
        }
    }
}

#[test]
fn a_share_of_random_ios_goes_behind_the_last_one() {
    let test = "a_share_of_random_ios_goes_behind_the_last_one";
    let options = "rw=randread\nbs=4k\nsize=8m\nnorandommap\npercentage_random=30";
    let Some(ios) = both(options) else {
        return skip(test, "fio is not installed");
    };
    for ios in ios {
        let behind = ios.windows(2).filter(|pair| pair[0].2 + 4096 == pair[1].2);
        let share = behind.count() as f64 / ios.len() as f64;
        // 2048 I/Os: 1 percent is the deviation of one, and fio ends a pass early where
        // a run comes to the end.
        assert!(ios.len() > 200, "{}", ios.len());
        assert!((share - 0.7).abs() < 0.12, "{share}");
    }
}

#[test]
fn sizes_need_no_alignment_when_asked_for_none() {
    let test = "sizes_need_no_alignment_when_asked_for_none";
    let options = "rw=write\nbsrange=4k-16k\nsize=16m\nbs_unaligned=1";
    let Some(ios) = both(options) else {
        return skip(test, "fio is not installed");
    };
    let mean = |ios: &[LoggedIo]| ios.iter().map(|io| io.1 as f64).sum::<f64>() / ios.len() as f64;
    let largest = |ios: &[LoggedIo]| {
        let largest = ios.iter().filter(|io| io.1 == 16 << 10).count();
        largest as f64 / ios.len() as f64
    };
    let [ours, theirs] = &ios;
    assert!(ours.iter().any(|io| io.1 % 4096 != 0));
    assert!(ours.iter().all(|io| (4096..=16 << 10).contains(&io.1)));
    assert!(
        (mean(ours) / mean(theirs) - 1.0).abs() < 0.05,
        "{} {}",
        mean(ours),
        mean(theirs)
    );
    assert!((largest(ours) - largest(theirs)).abs() < 0.05);
    // Both go up to where no block fits any more.
    let end = |ios: &[LoggedIo]| ios.iter().map(|io| io.1).sum::<u64>();
    for ios in &ios {
        assert!(
            ((16 << 20) - (16 << 10)..=(16 << 20)).contains(&end(ios)),
            "{}",
            end(ios)
        );
    }
}

#[test]
fn sizes_by_order_are_those_of_random_and_sequential_ios() {
    let test = "sizes_by_order_are_those_of_random_and_sequential_ios";
    let options =
        "rw=randrw\nbs=4k,16k\nsize=4m\nnorandommap\nbs_is_seq_rand=1\npercentage_random=50";
    let Some(ios) = both(options) else {
        return skip(test, "fio is not installed");
    };
    for ios in ios {
        let counts: BTreeMap<_, usize> = ios.iter().fold(BTreeMap::new(), |mut counts, io| {
            *counts.entry(io.1).or_default() += 1;
            counts
        });
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [4096, 16 << 10]);
        let share = counts[&4096] as f64 / ios.len() as f64;
        assert!((share - 0.5).abs() < 0.15, "{share} of {}", ios.len());
    }
}

#[test]
fn popular_files_are_as_popular_as_fios() {
    let test = "popular_files_are_as_popular_as_fios";
    let shares = |order: &str| {
        let text = format!(
            "[j]\nrw=read\nbs=4k\nsize=64m\nnrfiles=8\nfile_service_type={order}\nnumber_ios=2000\nioengine=null\nwrite_iolog=x\n"
        );
        let (ours, theirs) = (folder(), folder());
        run(ours.path(), &text);
        std::fs::write(theirs.path().join("j.fio"), &text).unwrap();
        let mut fio = Command::new("fio");
        let done = fio.arg("j.fio").current_dir(theirs.path()).output().ok()?;
        assert!(done.status.success(), "{done:?}");
        let of = |dir: &Path| {
            let text = std::fs::read_to_string(dir.join("x")).unwrap();
            let reads = text.lines().filter(|line| line.contains(" read "));
            let mut counts = BTreeMap::<String, usize>::new();
            for line in reads {
                let name = line.split_whitespace().find(|word| word.contains("j.0."));
                *counts.entry(name.unwrap().to_owned()).or_default() += 1;
            }
            let mut counts: Vec<_> = counts.into_values().collect();
            counts.sort_unstable();
            counts.reverse();
            counts
        };
        Some([of(ours.path()), of(theirs.path())])
    };
    for order in ["random", "zipf:1.2", "pareto:0.3", "gauss"] {
        let Some([ours, theirs]) = shares(order) else {
            return skip(test, "fio is not installed");
        };
        let most = [&ours, &theirs].map(|counts| counts[0] as f64 / 2000.0);
        assert!(
            (most[0] - most[1]).abs() < 0.08,
            "{order}: {ours:?} {theirs:?}"
        );
    }
}

#[test]
fn a_folder_is_used_with_all_files_below() {
    let dir = folder();
    std::fs::create_dir_all(dir.path().join("tree/below")).unwrap();
    for (name, bytes) in [
        ("tree/a", 8192),
        ("tree/below/b", 16_384),
        ("tree/tiny", 10),
    ] {
        std::fs::write(dir.path().join(name), vec![1; bytes]).unwrap();
    }
    std::os::unix::fs::symlink("/dev/null", dir.path().join("tree/link")).unwrap();
    let text = "[j]\nopendir=tree\nrw=read\nbs=4k\n";
    let seen = run(dir.path(), text);
    assert_eq!((seen.read(0).total_ios, seen.read(0).io_bytes), (6, 24_576));
    let mut seen = Seen::default();
    let text = "[j]\nopendir=nowhere\nrw=read\nbs=4k\n";
    let outcome = try_run(dir.path(), text, &mut seen).unwrap();
    let failure = seen.failures()[0].to_string();
    assert_eq!(outcome, Outcome::Failed);
    assert!(failure.contains("nowhere"), "{failure}");
}
