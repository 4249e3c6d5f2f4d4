//! Numbers against what fio says it understood.

use fathom_model::value::{self, Amount, BareTimeUnit, Base};

use crate::jobfile::fio;

const SIZES: [&str; 26] = [
    "1", "4096", "4k", "4K", "4kb", "4kB", "4ki", "4kib", "4KiB", "7b", "7B", "0x1000", "0X10",
    "010", " 12", "+3k", "1m", "3mi", "3mib", "1g", "2gb", "1t", "2ti", "2tib", "4p", "1pib",
];
const TIMES: [&str; 14] = [
    "1", "10", "10s", "10S", "2m", "2M", "3h", "1d", "100ms", "100msec", "100us", "100usec", " 7",
    "0",
];

/// The numbers fio made of `option=VALUE` lines.
fn understood(test: &str, option: &str, values: &[&str], extra: &str) -> Option<Vec<i64>> {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = values
        .iter()
        .map(|value| format!("{option}={value}"))
        .collect();
    let text = format!("[a]\n{extra}\n{}\n", lines.join("\n"));
    std::fs::write(folder.path().join("x.fio"), text).unwrap();
    let output = fio::run(
        test,
        &["--debug=parse", "--parse-only", "x.fio"],
        folder.path(),
    )?;
    let text = fio::text(&output);
    let numbers = text
        .lines()
        .filter_map(|line| line.rsplit_once("ret=0, out="))
        .map(|(_, n)| n.trim().parse().unwrap());
    Some(numbers.collect())
}

#[test]
fn sizes_are_those_of_fio() {
    for (base, extra) in [(Base::Binary, ""), (Base::Decimal, "kb_base=1000")] {
        let Some(theirs) = understood("sizes_are_those_of_fio", "bs", &SIZES, extra) else {
            return;
        };
        let ours: Vec<i64> = SIZES
            .iter()
            .map(|text| value::size(text, base).unwrap())
            .collect();
        assert_eq!(ours, theirs, "{base:?}");
    }
}

#[test]
fn times_are_those_of_fio() {
    for (option, bare) in [
        ("runtime", BareTimeUnit::Seconds),
        ("latency_window", BareTimeUnit::Micros),
    ] {
        let Some(theirs) = understood("times_are_those_of_fio", option, &TIMES, "") else {
            return;
        };
        let ours: Vec<i64> = TIMES
            .iter()
            .map(|text| value::time_us(text, bare).unwrap())
            .collect();
        assert_eq!(ours, theirs, "{option}");
    }
}

#[test]
fn what_fio_misreads_is_refused() {
    for text in [
        "",
        " ",
        "k",
        "-",
        "0x",
        "4q",
        "4 k",
        "1.5g",
        "1e6",
        "4kk",
        "4%",
        "16384p",
        "9".repeat(30).as_str(),
        "4k-8k",
        "(4k)",
        "0x10k",
        "4é",
    ] {
        assert!(value::size(text, Base::Binary).is_err(), "{text}");
    }
    for text in [
        "",
        "10min",
        "10sec",
        "1h30m",
        "0x10",
        "1.5",
        "10k",
        "1w",
        "9999999999999999d",
    ] {
        assert!(
            value::time_us(text, BareTimeUnit::Seconds).is_err(),
            "{text}"
        );
    }
    let sec = value::time_us("10sec", BareTimeUnit::Seconds).unwrap_err();
    assert_eq!(sec.suggestion.as_deref(), Some("10s"));
}

#[test]
fn amounts_can_be_relative() {
    let amount = |text| value::amount(text, Base::Binary);
    assert_eq!(amount("10%"), Ok(Amount::Percent(10)));
    assert_eq!(amount("3z"), Ok(Amount::Zones(3)));
    assert_eq!(amount("1k"), Ok(Amount::Number(1024)));
    for text in [
        "0%",
        "101%",
        "%",
        "-1%",
        "1.5%",
        "99999999999999999999%",
        "z",
    ] {
        assert!(amount(text).is_err(), "{text}");
    }
}

#[test]
fn triples_fill_what_is_left_out() {
    let triple = |text| value::triple(text, |part| value::size(part, Base::Binary));
    assert_eq!(triple("4k"), Ok([Some(4096); 3]));
    assert_eq!(triple("1,2"), Ok([Some(1), Some(2), Some(2)]));
    assert_eq!(triple("1,,3"), Ok([Some(1), Some(1), Some(3)]));
    assert_eq!(triple(",2"), Ok([None, Some(2), Some(2)]));
    assert!(triple("1,2,3,4").is_err());
    assert!(triple("").is_err());
    assert!(triple(",,").is_err());
    assert_eq!(triple("1,x").unwrap_err().at, 2);
}
