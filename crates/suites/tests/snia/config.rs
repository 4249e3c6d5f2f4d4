use std::time::Duration;

use fathom_analysis::snia::{DriveClass, Setup, SniaTest, TrackedVariable};
use fathom_prepare::shipped;
use fathom_suites::snia::{SniaChoices, from_config};

const CAPACITY: u64 = 1 << 30;

/// The tests that a configuration asks for, on a device of a GiB.
fn tests(config: &str) -> Result<Vec<(SniaTest, Setup)>, String> {
    let mut shipped = shipped::config(&|_| None).unwrap();
    shipped.read(config, ".config");
    let tests = from_config(&shipped).map_err(|error| error.to_string())?;
    let setup = |(test, class, wanted): (SniaTest, DriveClass, SniaChoices)| {
        Ok((test, wanted.setup(test, class, CAPACITY)?))
    };
    tests.into_iter().map(setup).collect()
}

#[test]
fn the_defaults_of_a_campaign_are_the_specifications() {
    assert!(tests("").unwrap().is_empty());
    let found = tests("CONFIG_SNIA_TESTS=y\n").unwrap();
    let own = Setup::specified(SniaTest::Iops, DriveClass::Enterprise, CAPACITY);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].1.deviations().is_empty(),
        "{:?}",
        found[0].1.deviations()
    );
    assert_eq!(found[0].1.cells(""), own.cells(""));
    let client = "CONFIG_SNIA_TESTS=y\n# CONFIG_ENTERPRISE_SSD_TESTING is not set\n";
    let found = tests(client).unwrap();
    assert!(
        found[0].1.deviations().is_empty(),
        "{:?}",
        found[0].1.deviations()
    );
    assert_eq!(
        (found[0].1.class, found[0].1.iodepth),
        (DriveClass::Client, 16)
    );
}

#[test]
fn every_symbol_of_fio_tests_has_its_effect() {
    let found = tests(
        "CONFIG_SNIA_TESTS=y\nCONFIG_SNIA_IOPS_ACTIVE_RANGE=\"50%\"\nCONFIG_SNIA_IOPS_IODEPTH=\"8\"\n\
         CONFIG_SNIA_IOPS_JOBS=\"3\"\nCONFIG_SNIA_IOPS_WI_LOOPS=\"1\"\nCONFIG_SNIA_IOPS_WI_BS=\"64k\"\n\
         CONFIG_SNIA_IOPS_WD_ROUND_LIMIT=\"10\"\nCONFIG_SNIA_IOPS_WD_ROUND_MIN_COUNT=\"4\"\n\
         CONFIG_SNIA_IOPS_WD_ROUND_LIMIT_SOFT=y\nCONFIG_SNIA_IOPS_WD_RANDRW_STEP=\"100/0,0/100\"\n\
         CONFIG_SNIA_IOPS_WD_BS_STEP=\"4k,512\"\nCONFIG_SNIA_IOPS_WD_RUNTIME=\"30s\"\n\
         CONFIG_SNIA_IOPS_WD_SS_MEAN_LIMIT=\"15%\"\nCONFIG_SNIA_IOPS_WD_SS_MEAN_LIMIT_DUR=\"20s\"\n\
         CONFIG_SNIA_IOPS_WD_SS_SLOPE=\"5%\"\nCONFIG_SNIA_IOPS_WD_SS_SLOPE_DUR=\"25s\"\n\
         CONFIG_SNIA_CRITERION_ALL_CELLS=y\n",
    );
    let setup = &found.unwrap()[0].1;
    assert_eq!(setup.active_bytes, CAPACITY / 2);
    assert_eq!((setup.iodepth, setup.jobs), (8, 3));
    assert_eq!((setup.fill_loops, setup.fill_block_bytes), (1, 65536));
    let limits = setup.limits;
    assert_eq!(
        (limits.window, limits.max_rounds, limits.soft),
        (4, 10, true)
    );
    assert_eq!((limits.data_percent, limits.slope_percent), (15.0, 5.0));
    assert_eq!(setup.cells("").len(), 4);
    assert_eq!(setup.cell_ms, 30_000);
    assert_eq!(
        (setup.cell_rule.mean_ms, setup.cell_rule.slope_ms),
        (20_000, 25_000)
    );
    assert_eq!(setup.criterion, TrackedVariable::AllCells);
}

#[test]
fn the_quick_settings_make_all_of_them_short() {
    let found = tests(
        "CONFIG_SNIA_TESTS=y\nCONFIG_SNIA_THROUGHPUT=y\nCONFIG_SNIA_LATENCY=y\nCONFIG_SNIA_WSAT=y\n\
         CONFIG_DEBUG=y\nCONFIG_DEBUG_QUICK_DEFAULTS=y\n",
    );
    let found = found.unwrap();
    assert_eq!(found.len(), 4);
    for (test, setup) in found {
        assert_eq!(
            (setup.cell_ms, setup.active_bytes),
            (1000, 4 << 20),
            "{test:?}"
        );
        assert!(setup.limits.window >= 2 && setup.limits.max_rounds >= setup.limits.window);
        assert_eq!(setup.limits.data_percent, 100.0, "{test:?}");
        assert!(
            setup.histogram_ms <= 1000 && setup.fill_loops <= 1,
            "{test:?}"
        );
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_name() {
    let wrong = |line: &str| tests(&format!("CONFIG_SNIA_TESTS=y\n{line}\n")).unwrap_err();
    let told = wrong("CONFIG_SNIA_IOPS_WD_RUNTIME=\"soon\"");
    assert!(told.contains("SNIA_IOPS_WD_RUNTIME"), "{told}");
    let told = wrong("CONFIG_SNIA_IOPS_WD_RANDRW_STEP=\"60/60\"");
    assert!(told.contains("60/60"), "{told}");
    let told = wrong("CONFIG_SNIA_IOPS_WD_BS_STEP=\"8k\"");
    assert!(told.contains("tracked"), "{told}");
    let told = wrong("CONFIG_SNIA_IOPS_ACTIVE_RANGE=\"2g\"");
    assert!(told.contains("larger than the device"), "{told}");
    let interval = SniaChoices {
        cell: Some(Duration::from_millis(500)),
        ..SniaChoices::default()
    };
    let setup = interval
        .setup(SniaTest::Iops, DriveClass::Client, CAPACITY)
        .unwrap();
    assert_eq!(setup.interval_ms, 100);
}
