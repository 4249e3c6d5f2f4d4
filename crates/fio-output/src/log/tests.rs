use std::io::{Cursor, Read, Write as _};
use std::path::Path;
use std::sync::Mutex;

use fathom_model::{Direction, LogEntry, PrioColumn};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::line::fast;
use super::*;

/// Keeps every line.
struct Kept<'k> {
    lines: Vec<LogEntry>,
    all: &'k Mutex<usize>,
}

impl Collect for Kept<'_> {
    fn add(&mut self, entry: &LogEntry) {
        self.lines.push(*entry);
    }

    fn end(&mut self) {
        *self.all.lock().unwrap() += self.lines.len();
    }
}

const STRICT: Options = Options {
    threads: 1,
    skip_bad: false,
    origin: TimeOrigin::Told,
    unit_ns: 1,
};
const LENIENT: Options = Options {
    threads: 3,
    skip_bad: true,
    ..STRICT
};

/// One byte at a time, as the worst pipe would give it.
struct Drops<R>(R);

impl<R: Read> Read for Drops<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(1);
        self.0.read(&mut buffer[..len])
    }
}

fn read_text(text: &[u8], options: Options) -> Result<(Vec<LogEntry>, Log<()>), LogError> {
    let all = Mutex::new(0);
    let log = read_from(Drops(text), Path::new("x.log"), options, |_| Kept {
        lines: Vec::new(),
        all: &all,
    })?;
    Ok(without_parts(log, &all))
}

fn without_parts(log: Log<Kept>, all: &Mutex<usize>) -> (Vec<LogEntry>, Log<()>) {
    let lines: Vec<LogEntry> = log.parts.into_iter().flat_map(|part| part.lines).collect();
    let ended = *all.lock().unwrap();
    let counted = [lines.len(), 2 * lines.len()];
    assert!(
        counted.contains(&ended),
        "every part was ended, counted both ways or not"
    );
    assert_eq!(log.lines, lines.len() as u64);
    let log = Log {
        parts: vec![()],
        form: log.form,
        origin_ms: log.origin_ms,
        first_ms: log.first_ms,
        lines: log.lines,
        skipped: log.skipped,
        first_skipped: log.first_skipped,
        cut_bytes: log.cut_bytes,
        cut_gzip: log.cut_gzip,
        traced: log.traced,
    };
    (lines, log)
}

/// The line as fio writes it.
fn written(form: LogColumns, entry: &LogEntry) -> String {
    let dir = entry.dir as u8;
    let mut line = format!("{}, {}", entry.time_ms, entry.value);
    if form.max {
        line += &format!(", {}", entry.max.unwrap());
    }
    line += &format!(", {dir}, {}", entry.bs);
    if form.offset {
        line += &format!(", {}", entry.offset.unwrap());
    }
    match form.prio {
        PrioColumn::Value => line += &format!(", 0x{:04x}", entry.prio),
        PrioColumn::RealTime => line += &format!(", {}", entry.prio),
        PrioColumn::Absent => {}
    }
    if form.issue {
        line += &format!(", {}", entry.issue_ns.unwrap());
    }
    line
}

/// Numbers of every length.
fn any_number() -> impl Strategy<Value = u64> {
    (0u32..63, any::<u64>()).prop_map(|(bits, number)| number >> (63 - bits) >> 1)
}

fn any_line() -> impl Strategy<Value = (LogColumns, LogEntry)> {
    let direction = prop::sample::select(vec![Direction::Read, Direction::Write, Direction::Trim]);
    (
        prop::sample::select(FORMS.to_vec()),
        (any_number(), any_number(), any_number(), any_number()),
        (any_number(), any_number()),
        direction,
        any::<u16>(),
    )
        .prop_map(
            |(form, (time_ms, value, over, bs), (at, issue), dir, prio)| {
                let entry = LogEntry {
                    time_ms,
                    value,
                    // A largest of 0 stands where fio has none.
                    max: form.max.then(|| value.max(over).max(1)),
                    dir,
                    bs,
                    offset: form.offset.then_some(at),
                    prio: match form.prio {
                        PrioColumn::Value => prio,
                        PrioColumn::RealTime => prio & 1,
                        PrioColumn::Absent => 0,
                    },
                    issue_ns: form.issue.then_some(issue),
                };
                (form, entry)
            },
        )
}

proptest! {
    #[test]
    fn what_fio_writes_reads_back_both_ways((form, entry) in any_line()) {
        let line = written(form, &entry);
        prop_assert_eq!(parse(form, line.as_bytes()), Ok(entry));
        let block = format!("{line}\n            ");
        if let Some((quick, next)) = fast(form, block.as_bytes(), 0) {
            prop_assert_eq!(quick, entry);
            prop_assert_eq!(next, line.len() + 1);
        }
    }

    #[test]
    fn what_the_fast_way_takes_the_plain_way_takes_alike(
        (form, entry) in any_line(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"0123456789abcdefxX, \t\n\r-+.\0\x80\xff".to_vec()),
        insert in any::<bool>(),
    ) {
        let mut line = written(form, &entry).into_bytes();
        let at = at.index(line.len());
        if insert { line.insert(at, byte) } else { line[at] = byte }
        line.extend_from_slice(b"\n            ");
        if let Some((quick, next)) = fast(form, &line, 0) {
            prop_assert_eq!(parse(form, &line[..next - 1]), Ok(quick));
            prop_assert_eq!(line[next - 1], b'\n');
        }
    }
}

/// A line of a single I/O, or of a window, as fio can have meant it.
fn real_line(form: LogColumns, window: bool) -> impl Strategy<Value = LogEntry> {
    let directions = vec![Direction::Read, Direction::Write, Direction::Trim];
    let dir = prop::sample::select(directions);
    let class = prop::sample::select(vec![0u16, 0x2000, 0x4003, 0x4008]);
    (
        (0u64..9_000, 20u64..1 << 33, 0u64..1 << 20),
        (1u64..300, 0u64..1 << 20),
        dir,
        class,
    )
        .prop_map(move |((time_ms, value, over), (blocks, at), dir, prio)| {
            let bs = if window { 0 } else { blocks * 512 };
            LogEntry {
                time_ms,
                value,
                max: (form.max && window).then_some(value + over),
                dir,
                bs,
                offset: form.offset.then_some(at * bs),
                prio: match (form.prio, window) {
                    (PrioColumn::Value, false) => prio,
                    (PrioColumn::RealTime, false) => prio >> 13 & 1,
                    _ => 0,
                },
                issue_ns: form.issue.then_some(if window { 0 } else { value / 2 }),
            }
        })
}

/// A log of lines as fio writes them: windows, or single I/Os, which in a log with a
/// column for the largest latency have 0 there.
fn real_log() -> impl Strategy<Value = (LogColumns, Vec<LogEntry>)> {
    // fio gives issue times with offsets only, and 0 or 1 since it gives any.
    let forms = FORMS.into_iter().filter(|form| form.offset || !form.issue);
    let forms: Vec<LogColumns> = forms
        .filter(|form| form.prio != PrioColumn::Absent)
        .collect();
    (prop::sample::select(forms), any::<bool>()).prop_flat_map(|(form, window)| {
        let lines = prop::collection::vec(real_line(form, window), 1..60);
        lines.prop_map(move |lines| (form, lines))
    })
}

proptest! {
    #[test]
    fn the_columns_of_a_log_are_told_right((form, entries) in real_log()) {
        let line = |entry: &LogEntry| {
            let max = entry.max.or(form.max.then_some(0));
            written(form, &LogEntry { max, ..*entry }) + "\n"
        };
        let text: String = entries.iter().map(line).collect();
        let (lines, log) = read_text(text.as_bytes(), STRICT).unwrap();
        prop_assert_eq!(log.form, Some(form), "{}", text);
        prop_assert_eq!(lines, entries);
    }
}

#[test]
fn a_largest_latency_of_single_ios_is_not_taken_for_a_direction() {
    // fio 3.39 with log_window_value=both and without log_avg_msec.
    for (text, dir) in [
        (
            "0, 7251, 0, 0, 4096, 0\n0, 40, 0, 1, 4096, 0\n",
            Direction::Read,
        ),
        (
            "0, 40, 0, 1, 4096, 0\n0, 20, 0, 1, 4096, 0\n",
            Direction::Write,
        ),
        (
            "0, 40, 0, 1, 4096, 0x4003\n0, 20, 0, 1, 4096, 0x4003\n",
            Direction::Write,
        ),
    ] {
        let (lines, log) = read_text(text.as_bytes(), STRICT).unwrap();
        assert!(log.form.unwrap().max, "{text}");
        assert_eq!((lines[0].dir, lines[0].bs, lines[0].max), (dir, 4096, None));
    }
    // Windows keep theirs, and one below its mean is wrong.
    let windows = "0, 59, 9525, 0, 0, 0\n1, 28, 180, 1, 0, 0\n";
    let (lines, _) = read_text(windows.as_bytes(), STRICT).unwrap();
    assert_eq!((lines[1].max, lines[1].dir), (Some(180), Direction::Write));
    let below = format!("{windows}2, 28, 27, 1, 0, 0\n");
    let error = read_text(below.as_bytes(), STRICT).unwrap_err().to_string();
    assert!(
        error.contains("line 3") && error.contains("below the mean"),
        "{error}"
    );
}

#[test]
fn times_since_1970_are_counted_from_the_first_line() {
    let text = "1795288900472, 9875, 0, 4096, 0\n1795288900470, 1, 0, 4096, 0\n\
                1795288900502, 40, 0, 4096, 0\n";
    let (lines, log) = read_text(text.as_bytes(), STRICT).unwrap();
    let times: Vec<u64> = lines.iter().map(|line| line.time_ms).collect();
    assert_eq!((times, log.origin_ms), (vec![0, 0, 30], 1_795_288_900_472));
    let (_, log) = read_text(b"5, 1, 0, 4096, 0\n", STRICT).unwrap();
    assert_eq!(log.origin_ms, 0);
}

/// Times of a log that is read from a pipe, and as parts of a file.
fn times(text: &str, options: Options) -> (Vec<u64>, u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x_lat.log");
    std::fs::write(&path, text).unwrap();
    let (lines, log) = read_text(text.as_bytes(), options).unwrap();
    let all = Mutex::new(0);
    let new = |_| Kept {
        lines: Vec::new(),
        all: &all,
    };
    let (in_parts, parts) = without_parts(read(&path, options, new).unwrap(), &all);
    assert!(lines == in_parts && log.origin_ms == parts.origin_ms);
    (
        lines.iter().map(|line| line.time_ms).collect(),
        log.origin_ms,
    )
}

#[test]
fn times_since_boot_are_counted_from_the_first_line() {
    // Long lines: it is bytes that parts are made of.
    let log = |times: &[u64]| -> String {
        let line = |time: &u64| {
            format!("{time}, 98750000000000000, 0, 4096, 9007199254740992000, 0x4001\n")
        };
        times.iter().map(line).collect()
    };
    let boot = [1_471_754, 1_471_755, 1_472_754];
    assert_eq!(times(&log(&boot), STRICT), (vec![0, 1, 1000], boot[0]));
    // Behind a ramp of 2 min, and behind one of an hour that a minute follows.
    for ramp in [
        [120_000, 120_001, 121_000],
        [3_600_000, 3_600_001, 3_660_000],
    ] {
        assert_eq!(times(&log(&ramp), STRICT), (ramp.to_vec(), 0));
        let first = Options {
            origin: TimeOrigin::First,
            ..STRICT
        };
        assert_eq!(times(&log(&ramp), first).1, ramp[0]);
    }
    let zero = Options {
        origin: TimeOrigin::Zero,
        ..STRICT
    };
    assert_eq!(times(&log(&boot), zero), (boot.to_vec(), 0));
    // Only the end, 8 MB behind, tells.
    let long = |span: u64| {
        log(&(0..140_000)
            .map(|n| 1_471_754 + n * span / 139_999)
            .collect::<Vec<_>>())
    };
    let parts = Options {
        threads: 2,
        ..STRICT
    };
    assert_eq!(times(&long(14_000), parts).1, 1_471_754);
    assert_eq!(times(&long(15_000), parts).1, 0);
}

#[test]
fn a_byte_order_mark_does_not_refuse_a_log() {
    let text = "\u{feff}5, 1, 0, 4096, 0\n6, 2, 0, 4096, 0\n";
    assert_eq!(times(text, STRICT), (vec![5, 6], 0));
    assert_eq!(times("\u{feff}", STRICT).0.len(), 0);
}

#[test]
fn a_file_without_an_end_of_line_is_no_log() {
    for text in [
        vec![b'7'; 70_000],
        vec![0; 100],
        b"hello".to_vec(),
        vec![b'1'; 300],
    ] {
        for options in [STRICT, LENIENT] {
            let error = read_text(&text, options).unwrap_err().to_string();
            let wanted = format!(
                "x.log is not a log of fio: no end of line in its first {} bytes",
                text.len().min(65_536)
            );
            assert_eq!(error, wanted);
        }
    }
}

#[test]
fn latencies_of_fio_2_are_in_us() {
    let micros = Options {
        unit_ns: 1000,
        ..STRICT
    };
    let text = "5, 7, 9, 0, 0, 0\n6, 8, 8, 0, 0, 0\n";
    let (lines, _) = read_text(text.as_bytes(), micros).unwrap();
    assert_eq!((lines[0].value, lines[0].max), (7000, Some(9000)));
}

proptest! {
    // Megabytes each: only large files have parts.
    #![proptest_config(ProptestConfig::with_cases(3))]

    #[test]
    fn any_number_of_threads_reads_the_same(lines in prop::collection::vec(any_line(), 1..40)) {
        // One form for all, which the first line tells whatever the others are;
        // enough bytes that there are parts.
        let form = FORMS[1];
        let mut text = "1, 2, 0, 4096, 7, 0x0000\n".to_owned();
        for (_, entry) in lines.iter().cycle().take(200_000) {
            let entry = LogEntry { offset: Some(entry.offset.unwrap_or(7)), ..*entry };
            text += &written(form, &entry);
            text.push('\n');
            if text.len() > 9 << 20 { break; }
        }
        text += "1, 2, 0, 4";
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x_lat.log");
        std::fs::write(&path, &text).unwrap();
        let read_with = |threads| {
            let all = Mutex::new(0);
            let options = Options { threads, ..STRICT };
            let log = read(&path, options, |_| Kept { lines: Vec::new(), all: &all }).unwrap();
            assert_eq!(log.parts.len(), threads.min(text.len() / (4 << 20)).max(1));
            without_parts(log, &all)
        };
        let (one, log) = read_with(1);
        prop_assert_eq!(log.cut_bytes, 10);
        prop_assert!(read_with(2).0 == one);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_it_panic(text in prop::collection::vec(
        prop::sample::select(b"0123456789x, \n\r-".to_vec()), 0..200)) {
        let _ = read_text(&text, STRICT);
        let (lines, log) = match read_text(&text, LENIENT) {
            Ok(read) => read,
            Err(
                LogError::Histograms { .. }
                | LogError::NoLines { .. }
                | LogError::Line { line: 1, .. },
            ) => return Ok(()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let whole = text.iter().filter(|&&b| b == b'\n').count() as u64;
        prop_assert_eq!(lines.len() as u64 + log.skipped, whole);
    }
}

fn form_of(text: &str) -> LogColumns {
    LogColumns::of(text.as_bytes()).unwrap().unwrap()
}

#[test]
fn every_form_is_told_from_its_lines() {
    use PrioColumn::{Absent, RealTime, Value};
    let cases = [
        ("0, 603856, 0, 4096, 0x2003\n", FORMS[0]),
        ("0, 164864, 0, 4096, 1049071616, 0x400f, 0\n", FORMS[2]),
        ("0, 603856, 1, 4096, 1\n", FORMS[8]),
        ("0, 603856, 1, 4096, 8192, 1\n", FORMS[9]),
        ("500, 10, 12, 0, 0, 0\n", FORMS[10]),
        ("500, 10, 12, 0, 0, 0, 0x0000\n", FORMS[4]),
        ("0, 603856, 1, 4096\n", FORMS[16]),
        ("0, 603856, 1, 4096, 0\n7, 9, 0, 4096, 8192\n", FORMS[17]),
        ("0, 5, 0, 512, 512, 1, 100\n", FORMS[11]),
    ];
    for (text, form) in cases {
        assert_eq!(form_of(text), form, "{text}");
    }
    assert_eq!(FORMS[17].prio, Absent);
    assert_eq!((FORMS[8].prio, FORMS[0].prio), (RealTime, Value));
    assert_eq!(LogColumns::of(b"0, 1, 0, 51"), Ok(None), "no whole line");
}

#[test]
fn a_malformed_line_is_told_by_line_and_column() {
    let line = |bad: &str| {
        let text = format!("0, 1, 0, 512, 0x0000\n{bad}\n1, 2, 0, 512, 0x0000\n");
        match read_text(text.as_bytes(), STRICT) {
            Err(LogError::Line { line, error, .. }) => {
                assert_eq!(line, 2, "{bad}");
                let (lines, log) = read_text(text.as_bytes(), LENIENT).unwrap();
                assert_eq!((lines.len(), log.skipped), (2, 1));
                assert_eq!(log.first_skipped, Some((2, error)));
                (error.column, error.fault)
            }
            other => panic!("{bad}: {other:?}"),
        }
    };
    assert_eq!(
        line("x, 2, 0, 512, 0x0000"),
        (1, LineFault::NotANumber(Field::Time))
    );
    assert_eq!(
        line("1 2, 0, 512, 0x0000"),
        (3, LineFault::NotANumber(Field::Time))
    );
    assert_eq!(
        line("1, -2, 0, 512, 0x0000"),
        (4, LineFault::NotANumber(Field::Latency))
    );
    assert_eq!(line("1, 2, 3, 512, 0x0000"), (7, LineFault::Direction));
    assert_eq!(
        line("1, 2, 0, 512"),
        (13, LineFault::Missing(Field::Priority))
    );
    assert_eq!(
        line("1, 2, 0, 512, 1"),
        (15, LineFault::Priority(PrioColumn::Value))
    );
    assert_eq!(
        line("1, 2, 0, 512, 0x12345"),
        (15, LineFault::Priority(PrioColumn::Value))
    );
    assert_eq!(line("1, 2, 0, 512, 0x0000, 7"), (21, LineFault::TooMany));
    assert_eq!(line(""), (1, LineFault::Missing(Field::Time)));
    let huge = "1, 9223372036854775808, 0, 512, 0x0000";
    assert_eq!(line(huge), (4, LineFault::TooLarge(Field::Latency)));
    let shown = read_text(b"0, 1, 0, 512, 0x0000\n1, 2, 9, 5, 0x0\n", STRICT);
    assert_eq!(
        shown.unwrap_err().to_string(),
        "x.log, line 2, column 7: the direction is not 0, 1 or 2"
    );
}

#[test]
fn the_first_malformed_line_is_told_whatever_part_it_is_in() {
    let mut text = "12345, 603856, 0, 4096, 0x2003\n".repeat(400_000);
    let at = text.len() - 31 * 1000;
    text.replace_range(at..at + 1, "x");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x_lat.log");
    std::fs::write(&path, text).unwrap();
    let all = Mutex::new(0);
    let kept = |_| Kept {
        lines: Vec::new(),
        all: &all,
    };
    let error = read(
        &path,
        Options {
            threads: 2,
            ..STRICT
        },
        kept,
    )
    .err()
    .unwrap();
    let LogError::Line { line, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(line, 399_001);
    let log = read(&path, LENIENT, kept).unwrap();
    assert_eq!(log.first_skipped.unwrap().0, 399_001);
    assert_eq!((log.lines, log.skipped), (399_999, 1));
}

#[test]
fn the_largest_number_of_fio_and_carriage_returns_are_read() {
    let text = b"9223372036854775807, 9223372036854775807, 2, 4096, 0x2003\r\n1,2,0,4,0x1\r\n";
    let (lines, _) = read_text(text, STRICT).unwrap();
    assert_eq!(lines[0].value, i64::MAX as u64);
    assert_eq!((lines[0].prio, lines[1].prio), (0x2003, 1));
}

#[test]
fn an_empty_log_has_no_lines_and_no_form() {
    for text in ["", "0, 1", "1"] {
        let (lines, log) = read_text(text.as_bytes(), STRICT).unwrap();
        assert_eq!((lines.len(), log.form), (0, None));
        assert_eq!(log.cut_bytes, text.len() as u64);
    }
}

#[test]
fn a_line_without_end_is_one_malformed_line() {
    let mut text = b"0, 1, 0, 512, 0x0000\n".to_vec();
    text.extend(std::iter::repeat_n(b'7', 700_000));
    text.extend_from_slice(b"\n5, 1, 0, 512, 0x0000\n");
    let path = Path::new("x");
    let all = Mutex::new(0);
    let kept = |_| Kept {
        lines: Vec::new(),
        all: &all,
    };
    let error = read_from(Cursor::new(&text), path, STRICT, kept)
        .err()
        .unwrap();
    assert!(error.to_string().contains("line 2, column 1"), "{error}");
    let log = read_from(Cursor::new(&text), path, LENIENT, kept).unwrap();
    assert_eq!((log.lines, log.skipped), (2, 1));
}

#[test]
fn histogram_logs_are_refused_by_their_look() {
    let line = format!("500, 0, 4096{}\n", ", 0".repeat(1856));
    let error = read_text(line.as_bytes(), STRICT).unwrap_err();
    assert!(matches!(error, LogError::Histograms { .. }), "{error}");
}

#[test]
fn gzip_is_read_as_far_as_it_goes() {
    let text: String = (0..50_000)
        .map(|n| format!("{n}, {}, 0, 4096, 0x4008\n", n * 7919 % 100_003))
        .collect();
    let mut packed = Vec::new();
    // Two members: what 'cat a.gz b.gz' makes.
    for half in [&text[..text.len() / 2], &text[text.len() / 2..]] {
        let mut encoder = GzEncoder::new(&mut packed, Compression::fast());
        encoder.write_all(half.as_bytes()).unwrap();
        encoder.finish().unwrap();
    }
    let (plain, _) = read_text(text.as_bytes(), STRICT).unwrap();
    let (lines, log) = read_text(&packed, STRICT).unwrap();
    assert!(lines == plain && !log.cut_gzip && log.cut_bytes == 0);
    let (lines, log) = read_text(&packed[..packed.len() * 2 / 3], STRICT).unwrap();
    assert!(log.cut_gzip && lines.len() > 25_000 && lines.len() < 50_000);
    assert!(plain.starts_with(&lines));
}

/// As blkparse prints it, with what is none of our business around it.
const TRACE: &str = "\
  8,0    1        1     0.000100000   697  Q   R 2048 + 8 [fio]
  8,0    1        2     0.000150000   697  D   R 2048 + 8 [fio]
  8,0    1        3     0.000200000   697  D  WS 4096 + 16 [fio]
  8,0    0        1     0.001150000     0  C   R 2048 + 8 [0]
  8,0    1        4     0.002000000   697  D   D 8192 + 2048 [fio]
  8,0    0        2     0.002200000     0  C  WS 4096 + 8 [0]
  8,0    0        3     0.005200000     0  C  WS 4104 + 8 [0]
  8,0    0        4     1.002000000     0  C   D 8192 + 2048 [0]
  8,0    0        5     1.003000000     0  C   R 16 + 8 [0]
  8,0    1        5     1.004000000   697  D  FN [fio]
  8,0    1        6     1.005000000   697  D   R 32 + 8 [fio]
  8,0    0        6     1.006000000     0  C   R 32 + 8 [65531]
  8,16   1        7     1.007000000   697  D   R 64 + 8 [fio]
  8,0    0        7     1.008000000     0  C   R 64 + 8 [0]
CPU0 (sda):
 Reads Queued:           2,        8KiB\t Writes Queued:           1,        8KiB
";

#[test]
fn a_trace_is_read_from_the_issue_of_each_request_to_its_completion() {
    let (lines, log) = read_text(TRACE.as_bytes(), STRICT).unwrap();
    let told: Vec<_> = lines
        .iter()
        .map(|entry| (entry.time_ms, entry.value, entry.dir, entry.bs))
        .collect();
    // Completed in two parts, with both between its issue and the second.
    assert_eq!(
        told,
        [
            (1, 1_000_000, Direction::Read, 4096),
            (5, 5_000_000, Direction::Write, 8192),
            (1002, 1_000_000_000, Direction::Trim, 1 << 20),
        ]
    );
    let tally = TraceTally {
        ios: 3,
        not_issued: 2,
        not_completed: 1,
        failed: 1,
    };
    assert_eq!(log.traced, Some(tally));
    assert_eq!((log.skipped, log.cut_bytes), (0, 0));
    // Of a file it is the same, in one part whatever the threads.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), TRACE).unwrap();
    let all = Mutex::new(0);
    let read = read(file.path(), LENIENT, |_| Kept {
        lines: Vec::new(),
        all: &all,
    });
    assert_eq!(without_parts(read.unwrap(), &all).0, lines);
}

#[test]
fn a_trace_without_completions_is_empty_and_no_line_is_too_long() {
    let begin: String = TRACE
        .lines()
        .take(3)
        .map(|line| format!("{line}\n"))
        .collect();
    let long = format!("{begin}{}\n", "8,0 1 1 0.1 1 D R 5 + ".repeat(10_000));
    for text in [&begin, &long] {
        let (lines, log) = read_text(text.as_bytes(), STRICT).unwrap();
        assert!(lines.is_empty());
        assert_eq!(log.traced.unwrap().not_completed, 2);
    }
}

proptest! {
    #[test]
    fn no_bytes_in_a_trace_make_it_panic(
        places in prop::collection::vec((0..TRACE.len(), any::<u8>()), 0..30),
    ) {
        let mut bytes = TRACE.as_bytes().to_vec();
        for (place, byte) in places {
            bytes[place] = byte;
        }
        let _ = read_text(&bytes, LENIENT);
    }
}
