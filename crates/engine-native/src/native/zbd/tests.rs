//! Properties of zones whatever jobs do: writes are at write pointers only, no more zones
//! are open than may be, and what is reset was full or due.

use proptest::prelude::*;

use super::table::Zone;
use super::{ZoneAsk, ZoneChoice, ZoneFault, ZoneTable, ZoneUser, emulated};
use crate::native::job::{DirIndex, ZoneOptions};

const SIZE: u64 = 64 << 10;
const BLOCK: u64 = 4096;

fn table(zones: u64, capacity: u64, most_open: usize) -> ZoneTable {
    let zone = |n: u64| Zone {
        start: n * SIZE,
        pointer: n * SIZE,
        capacity,
        sequential: true,
        offline: false,
        was_open: false,
    };
    ZoneTable::new((0..zones).map(zone).collect(), SIZE, most_open)
}

fn user(id: u32, zones: std::ops::Range<usize>) -> ZoneUser {
    ZoneUser {
        id,
        start: zones.start as u64 * SIZE,
        len: zones.len() as u64 * SIZE,
        zones,
        random: true,
        least: [BLOCK as u32; 3],
        most_open: 0,
        verifies: false,
        reads_beyond: false,
        reset_share: 0.0,
        reset_from: 1.0,
    }
}

fn write(offset: u64, len: u64) -> ZoneAsk {
    ZoneAsk {
        dir: DirIndex::Write,
        offset,
        len: len as u32,
        quiet: true,
    }
}

/// A device that knows no more than a drive does: pointers.
#[derive(Debug)]
struct Drive(Vec<u64>);

impl Drive {
    fn write(&mut self, offset: u64, len: u64, capacity: u64) {
        let place = (offset / SIZE) as usize;
        assert_eq!(self.0[place], offset % SIZE, "a write off the pointer");
        self.0[place] += len;
        assert!(self.0[place] <= capacity, "a write beyond the capacity");
    }
}

/// An I/O under way: user, zone, direction, its end.
type UnderWay = (usize, usize, DirIndex, u64);

proptest! {
    #[test]
    fn writes_are_at_pointers_and_open_zones_within_limits(
        zones in 2u64..9,
        capacity in 1u64..=16,
        most_open in 0usize..5,
        job_most in 0usize..3,
        share in prop::sample::select(vec![0.0, 0.1, 1.0]),
        steps in prop::collection::vec((0usize..3, 0usize..3, any::<u32>(), 1u64..5, any::<bool>()), 1..400),
    ) {
        let capacity = capacity * BLOCK;
        let mut table = table(zones, capacity, most_open);
        let users: Vec<ZoneUser> = (0..3).map(|id| ZoneUser {
            most_open: if most_open > 0 { job_most } else { 0 },
            reset_share: share,
            reset_from: 0.5,
            ..user(id + 1, 0..zones as usize)
        }).collect();
        for user in &users {
            prop_assert!(table.begin_pass(user).is_empty());
        }
        let mut drive = Drive(vec![0; zones as usize]);
        let mut under: Vec<UnderWay> = Vec::new();
        let (mut resets, mut counted) = (0u64, 0u64);
        for (who, kind, at, blocks, ends) in steps {
            let dir = DirIndex::ALL[kind];
            let offset = u64::from(at) % (zones * SIZE / BLOCK) * BLOCK;
            let offset = if dir == DirIndex::Trim { offset / SIZE * SIZE } else { offset };
            let quiet = under.iter().all(|it| it.0 != who);
            let ask = ZoneAsk { dir, offset, len: (blocks * BLOCK) as u32, quiet };
            let mut choice = table.choose(&users[who], ask);
            if let ZoneChoice::Reset(place) = choice {
                prop_assert!(quiet, "a reset beside own I/Os");
                prop_assert!(under.iter().all(|it| it.1 != place), "a reset beside others'");
                prop_assert!(drive.0[place] > 0, "an empty zone is reset");
                prop_assert!(share > 0.0 || drive.0[place] + BLOCK > capacity);
                drive.0[place] = 0;
                resets += 1;
                counted += u64::from(table.was_reset(place));
                choice = table.after_reset(&users[who], place, ask.len);
            }
            match choice {
                ZoneChoice::Go { offset, len, zone } => {
                    let zone = zone.unwrap();
                    prop_assert_eq!(zone as u64, offset / SIZE);
                    let len = u64::from(len);
                    match dir {
                        DirIndex::Write => drive.write(offset, len, capacity),
                        DirIndex::Read => prop_assert!(
                            offset % SIZE + len <= drive.0[zone], "a read beyond the pointer"
                        ),
                        DirIndex::Trim => {
                            prop_assert!(offset.is_multiple_of(SIZE));
                            resets += u64::from(drive.0[zone] > 0);
                            drive.0[zone] = 0;
                            counted += u64::from(table.was_reset(zone));
                        }
                    }
                    prop_assert!(under.iter().all(|it| it.1 != zone || it.0 == who), "two jobs in a zone");
                    under.push((who, zone, dir, offset + len));
                }
                ZoneChoice::Quiesce => prop_assert!(!quiet),
                ZoneChoice::Busy => prop_assert!(under.iter().any(|it| it.0 != who)),
                ZoneChoice::End | ZoneChoice::Fault(_) => {}
                ZoneChoice::Reset(_) => prop_assert!(false),
            }
            prop_assert!(most_open == 0 || table.open_zones(None) <= most_open);
            for user in &users {
                let own = table.open_zones(Some(user.id));
                prop_assert!(user.most_open == 0 || own <= user.most_open);
            }
            if ends || !quiet {
                for (_, zone, dir, end) in under.extract_if(.., |it| it.0 == who) {
                    table.over(zone, dir, end);
                }
            }
        }
        prop_assert_eq!(resets, counted);
        for (place, pointer) in drive.0.iter().enumerate() {
            prop_assert_eq!(table.zone(place).pointer, place as u64 * SIZE + pointer);
        }
    }

    /// One job alone comes to an end only where nothing is left, and then at once.
    #[test]
    fn what_is_read_back_fills_every_zone_once(zones in 1u64..6, most_open in 0usize..3, seed in any::<u32>()) {
        let mut table = table(zones, 3 * BLOCK, most_open);
        let user = ZoneUser { verifies: true, ..user(1, 0..zones as usize) };
        prop_assert!(table.begin_pass(&user).is_empty());
        let mut at = u64::from(seed);
        let mut written = 0;
        loop {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) >> 3;
            match table.choose(&user, write(at % (zones * 16) * BLOCK, BLOCK)) {
                ZoneChoice::Go { offset, len, zone } => {
                    written += 1;
                    table.over(zone.unwrap(), DirIndex::Write, offset + u64::from(len));
                }
                choice => {
                    prop_assert_eq!(choice, ZoneChoice::End);
                    break;
                }
            }
        }
        prop_assert_eq!(written, zones * 3);
        prop_assert_eq!(table.begin_pass(&user).len() as u64, zones);
    }
}

#[test]
fn zones_of_two_jobs_are_closed_by_whoever_fills_them() {
    let mut table = table(4, 2 * BLOCK, 1);
    let users = [user(1, 0..4), user(2, 0..4)];
    let first = table.choose(&users[0], write(0, BLOCK));
    assert!(matches!(
        first,
        ZoneChoice::Go {
            offset: 0,
            zone: Some(0),
            ..
        }
    ));
    // Zone 2 cannot be opened; the open one is held by the other job.
    let ask = write(2 * SIZE, 2 * BLOCK);
    assert_eq!(table.choose(&users[1], ask), ZoneChoice::Busy);
    table.over(0, DirIndex::Write, BLOCK);
    // It is shortened to the room that there is.
    let ZoneChoice::Go { offset, len, zone } = table.choose(&users[1], ask) else {
        panic!("the zone is free");
    };
    assert_eq!((offset, u64::from(len), zone), (BLOCK, BLOCK, Some(0)));
    assert_eq!(table.choose(&users[0], write(0, BLOCK)), ZoneChoice::Busy);
    table.over(0, DirIndex::Write, 2 * BLOCK);
    assert_eq!(table.open_zones(None), 0);
    let next = table.choose(&users[0], write(SIZE, BLOCK));
    assert!(
        matches!(next, ZoneChoice::Go { zone: Some(1), .. }),
        "{next:?}"
    );
}

#[test]
fn a_full_zone_is_reset_whichever_of_its_writes_is_over_first() {
    let (mut table, user) = (table(1, SIZE, 4), user(1, 0..1));
    let asked = |quiet| ZoneAsk {
        quiet,
        ..write(0, BLOCK)
    };
    for _ in 0..SIZE / BLOCK {
        let choice = table.choose(&user, asked(false));
        assert!(matches!(choice, ZoneChoice::Go { .. }), "{choice:?}");
    }
    table.over(0, DirIndex::Write, SIZE);
    assert_eq!(table.choose(&user, asked(false)), ZoneChoice::Quiesce);
    for end in 1..SIZE / BLOCK {
        table.over(0, DirIndex::Write, end * BLOCK);
    }
    assert_eq!(table.choose(&user, asked(true)), ZoneChoice::Reset(0));
}

#[test]
fn open_zones_elsewhere_leave_no_place() {
    let mut table = table(4, SIZE, 1);
    let users = [user(1, 0..2), user(2, 2..4)];
    assert!(matches!(
        table.choose(&users[0], write(0, BLOCK)),
        ZoneChoice::Go { .. }
    ));
    let asked = table.choose(&users[1], write(3 * SIZE, BLOCK));
    assert_eq!(asked, ZoneChoice::End);
}

#[test]
fn what_never_fits_is_a_fault() {
    let mut small = table(2, BLOCK / 2, 0);
    let of = user(1, 0..2);
    let long = small.choose(&of, write(0, 2 * SIZE));
    assert_eq!(long, ZoneChoice::Fault(ZoneFault::LongerThanZones));
    let none = small.choose(&of, write(0, BLOCK));
    assert_eq!(none, ZoneChoice::Fault(ZoneFault::SmallCapacity));
}

#[test]
fn sequential_reads_go_on_in_the_next_zone_with_data() {
    let mut table = table(4, SIZE, 0);
    let of = ZoneUser {
        random: false,
        ..user(1, 0..4)
    };
    let wrote = table.choose(&of, write(2 * SIZE, 2 * BLOCK));
    assert!(matches!(wrote, ZoneChoice::Go { .. }));
    table.over(2, DirIndex::Write, 0);
    let read = |offset| ZoneAsk {
        dir: DirIndex::Read,
        ..write(offset, BLOCK)
    };
    for asked in [0, 2 * SIZE] {
        let found = table.choose(&of, read(asked));
        assert!(
            matches!(found, ZoneChoice::Go { offset, .. } if offset == 2 * SIZE),
            "{found:?}"
        );
        table.over(2, DirIndex::Read, 0);
    }
    assert_eq!(
        table.choose(&of, read(2 * SIZE + 2 * BLOCK)),
        ZoneChoice::End
    );
    let beyond = ZoneUser {
        reads_beyond: true,
        ..of
    };
    let anywhere = table.choose(&beyond, read(SIZE));
    assert!(matches!(
        anywhere,
        ZoneChoice::Go {
            offset: SIZE,
            zone: None,
            ..
        }
    ));
}

#[test]
fn open_zones_of_the_device_count_or_are_reset() {
    let open = |n: u64, was_open| Zone {
        start: n * SIZE,
        pointer: n * SIZE + BLOCK,
        capacity: SIZE,
        sequential: true,
        offline: false,
        was_open,
    };
    let zones = vec![open(0, true), open(1, false), open(2, true), open(3, true)];
    let mut table = ZoneTable::new(zones, SIZE, 2);
    assert_eq!(table.begin(&user(1, 0..4)), [3]);
    assert_eq!(table.open_zones(Some(1)), 2);
    assert!(table.was_reset(3) && !table.was_reset(3));
}

#[test]
fn emulated_zones_are_as_large_as_they_say() {
    let options = |size, capacity| ZoneOptions {
        size,
        capacity,
        ..ZoneOptions::default()
    };
    let (zones, size) = emulated(&options(SIZE, BLOCK), 3 * SIZE - 1).unwrap();
    assert_eq!((zones.len(), size, zones[2].capacity), (3, SIZE, BLOCK));
    for (size, capacity, bytes) in [
        (0, 0, SIZE),
        (256, 0, SIZE),
        (SIZE, SIZE + 1, SIZE),
        (SIZE, 0, SIZE - 1),
    ] {
        assert!(
            emulated(&options(size, capacity), bytes).is_err(),
            "{size} {capacity}"
        );
    }
}
