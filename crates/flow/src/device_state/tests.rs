use super::*;

const HOUR_MS: u64 = 3_600_000;
const LIMIT: Duration = Duration::from_secs(3600);
const GIB: u64 = 1 << 30;

fn entry(at_ms: u64, command: &str, deed: LedgerEvent) -> LedgerEntry {
    LedgerEntry {
        at_ms,
        command: command.into(),
        record: Some(format!("/runs/{command}").into()),
        deed,
        content: vec![(0, 0)],
    }
}

fn seen(host_written_bytes: Option<u64>) -> LedgerEvent {
    LedgerEvent::Seen {
        host_written_bytes,
        used_percent: None,
        power_on_hours: None,
        kernel_written_bytes: None,
        boot: None,
    }
}

fn booted(boot: &str, bytes: u64) -> LedgerEvent {
    LedgerEvent::Seen {
        host_written_bytes: None,
        used_percent: None,
        power_on_hours: None,
        kernel_written_bytes: Some(bytes),
        boot: Some(boot.into()),
    }
}

fn settled(pattern: Pattern, attained: bool) -> LedgerEvent {
    LedgerEvent::Settled {
        pattern,
        bs_bytes: 4096,
        range_percent: 100.0,
        bytes: GIB,
        rule: "fio's rule, 20 % and 10 % over 15m".into(),
        attained,
    }
}

fn wanted() -> WantedState<'static> {
    WantedState {
        pattern: Pattern::Random,
        bs_bytes: 4096,
        range_percent: 100.0,
        rule: "fio's rule, 20 % and 10 % over 15m",
    }
}

/// Settled after a look, with a look behind it, as commands leave it.
fn life() -> Vec<LedgerEntry> {
    vec![
        entry(1000, "provision", seen(Some(50 * GIB))),
        entry(2000, "provision", settled(Pattern::Random, true)),
        entry(2000, "provision", LedgerEvent::Written { bytes: 0 }),
        look(2000, seen(Some(51 * GIB + 512_000))),
    ]
}

/// What the device says of itself behind a deed.
fn look(at_ms: u64, deed: LedgerEvent) -> LedgerEntry {
    LedgerEntry {
        record: None,
        ..entry(at_ms, "provision", deed)
    }
}

fn judged(entries: &[LedgerEntry], now: &LedgerEvent, now_ms: u64) -> Judgement {
    let mut state = DeviceState::of(entries, Some(now), None);
    state.compare(|_| Some(true));
    state.judge(&wanted(), LIMIT, now_ms)
}

#[test]
fn a_steady_state_that_was_left_alone_holds_and_is_told() {
    let now = seen(Some(51 * GIB + 512_000));
    let judgement = judged(&life(), &now, 2000 + HOUR_MS / 2);
    assert_eq!(
        judgement,
        Judgement::Holds(
            "it became steady in random writes of 4 KiB (fio's rule, 20 % and 10 % over 15m) \
             30m00s ago, and nothing was written to it since"
                .into()
        )
    );
    let silent = judged(&life()[1..3], &seen(None), 3000);
    assert!(matches!(&silent, Judgement::Holds(reason) if reason.contains("not counted")));
}

#[test]
fn what_others_wrote_is_seen_by_the_drive_or_within_one_boot_by_the_kernel() {
    let now = seen(Some(52 * GIB));
    let judgement = judged(&life(), &now, 3000);
    let Judgement::Stale(reason) = &judgement else {
        panic!("{judgement:?}")
    };
    assert!(reason.contains("others have written 1.00 GiB"), "{reason}");
    // Rounding of the drive's units is no writing.
    let now = seen(Some(51 * GIB + 1_024_000));
    assert!(matches!(judged(&life(), &now, 3000), Judgement::Holds(_)));

    let mut life = vec![
        look(1, settled(Pattern::Random, true)),
        look(2, booted("a", 100)),
    ];
    let later = booted("a", 100 + GIB);
    assert!(matches!(judged(&life, &later, 3), Judgement::Stale(_)));
    let rebooted = booted("b", 5);
    assert_eq!(
        DeviceState::of(&life, Some(&rebooted), None).others_bytes,
        None
    );
    // What was there before the state was made does not count.
    life.push(look(3, booted("a", 100 + GIB)));
    life.push(look(4, settled(Pattern::Random, true)));
    life.push(look(4, booted("a", 100 + 2 * GIB)));
    let now = booted("a", 100 + 2 * GIB);
    assert_eq!(
        DeviceState::of(&life, Some(&now), None).others_bytes,
        Some(0)
    );
}

#[test]
fn what_fathom_wrote_disturbs_unless_it_is_the_same_flow_that_goes_on() {
    let mut life = life();
    life.push(entry(3000, "run", LedgerEvent::Written { bytes: 0 }));
    let now = seen(Some(51 * GIB + 512_000));
    assert!(matches!(judged(&life, &now, 4000), Judgement::Holds(_)));
    life.push(entry(3000, "run", LedgerEvent::Written { bytes: GIB }));
    let now = seen(Some(52 * GIB + 512_000));
    let judgement = judged(&life, &now, 4000);
    let Judgement::Stale(reason) = &judgement else {
        panic!("{judgement:?}")
    };
    assert!(
        reason.contains("1 GiB were written since (fathom run)"),
        "{reason}"
    );
    let own = DeviceState::of(&life, Some(&now), Some(Path::new("/runs/run")));
    assert_eq!(own.written_bytes, 0);
    assert!(matches!(
        own.judge(&wanted(), LIMIT, 4000),
        Judgement::Holds(_)
    ));
}

#[test]
fn idle_for_long_is_stale_and_another_load_or_rule_is_no_state_at_all() {
    let now = seen(Some(51 * GIB + 512_000));
    let late = judged(&life(), &now, 2001 + HOUR_MS);
    assert!(matches!(&late, Judgement::Stale(reason) if reason.contains("idle for 1h00m")));
    let lacks = |deed: LedgerEvent| {
        let judgement = judged(&[look(1, deed)], &seen(None), 2);
        assert!(matches!(judgement, Judgement::Lacks(_)), "{judgement:?}");
        judgement.reason().to_owned()
    };
    lacks(settled(Pattern::Sequential, true));
    let failed = lacks(settled(Pattern::Random, false));
    assert!(failed.starts_with("it did not become steady"), "{failed}");
    let purged = lacks(LedgerEvent::Purged {
        method: "blkdiscard".into(),
        verified: true,
        reason: "asked for".into(),
    });
    assert!(
        purged.starts_with("it was purged (blkdiscard), and random"),
        "{purged}"
    );
    lacks(LedgerEvent::Filled {
        pattern: Pattern::Sequential,
        bs_bytes: 131_072,
        range_percent: 75.0,
        bytes: GIB,
    });
    let other = WantedState {
        rule: "fio's rule, 100 % and 100 % over 1s",
        ..wanted()
    };
    let debug = DeviceState::of(&life(), None, None).judge(&other, LIMIT, 3000);
    assert!(matches!(debug, Judgement::Lacks(_)));
    assert!(matches!(judged(&[], &seen(None), 1), Judgement::Lacks(_)));
}

#[test]
fn a_run_of_which_nobody_knows_what_it_wrote_makes_the_state_stale() {
    let mut life = life();
    life.push(entry(3000, "run", seen(Some(51 * GIB + 512_000))));
    let now = seen(Some(51 * GIB + 512_000));
    let judgement = judged(&life, &now, 4000);
    assert!(
        matches!(&judgement, Judgement::Stale(reason) if reason.contains("fathom run began")),
        "{judgement:?}"
    );
    // But for the run itself.
    let own = DeviceState::of(&life, Some(&now), Some(Path::new("/runs/run")));
    assert_eq!(own.begun_by, None);
    life.push(entry(3500, "run", LedgerEvent::Written { bytes: 0 }));
    assert!(matches!(judged(&life, &now, 4000), Judgement::Holds(_)));
}

/// Bytes that a purge by overwriting or the ramps of jobs have written are in no
/// deed, and not those of others.
#[test]
fn what_fathom_writes_without_telling_is_not_taken_for_others() {
    let purged = LedgerEvent::Purged {
        method: "overwrite".into(),
        verified: true,
        reason: "asked for".into(),
    };
    let life = [
        look(1, seen(Some(GIB))),
        look(2, purged),
        look(3, seen(Some(9 * GIB))),
        look(4, LedgerEvent::Written { bytes: GIB }),
    ];
    let others = |now: u64| DeviceState::of(&life, Some(&seen(Some(now))), None).others_bytes;
    assert_eq!(others(11 * GIB), Some(0));
    assert_eq!(others(12 * GIB), Some(2 * GIB));
}

/// A run that was killed is entered later, at its own time.
#[test]
fn entries_count_in_the_order_of_their_time() {
    let mut life = life();
    life.insert(0, entry(1500, "run", LedgerEvent::Written { bytes: GIB }));
    life.swap(0, 3);
    let state = DeviceState::of(&life, None, None);
    assert_eq!((state.written_bytes, state.touched_ms), (0, Some(2000)));
}

/// Of two drives with one serial number one may have come in place of the other.
#[test]
fn a_state_is_believed_where_the_device_holds_what_was_left_on_it() {
    let now = seen(Some(51 * GIB + 512_000));
    let judged = |life: &[LedgerEntry], holds: Option<bool>| {
        let mut state = DeviceState::of(life, Some(&now), Some(Path::new("/runs/own")));
        state.compare(|_| holds);
        state.judge(&wanted(), LIMIT, 3000)
    };
    let stale = |judgement: Judgement, why: &str| match judgement {
        Judgement::Stale(reason) => assert!(reason.contains(why), "{reason}"),
        other => panic!("{other:?}"),
    };
    assert!(matches!(judged(&life(), Some(true)), Judgement::Holds(_)));
    stale(judged(&life(), Some(false)), "another drive");
    stale(judged(&life(), None), "is not known");
    // Of an older Fathom.
    let mut older = life();
    older.iter_mut().for_each(|entry| entry.content.clear());
    stale(judged(&older, Some(true)), "nothing was noted");
    // What a run has written itself, it cannot compare.
    let mut goes_on = life();
    goes_on.push(LedgerEntry {
        record: Some("/runs/own".into()),
        ..entry(2500, "run", LedgerEvent::Written { bytes: 1 })
    });
    assert!(matches!(judged(&goes_on, Some(false)), Judgement::Holds(_)));
}
