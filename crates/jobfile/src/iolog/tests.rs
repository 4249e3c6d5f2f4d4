//! What a log says, and what of it is refused.

use super::*;

fn read(log: &[u8]) -> Result<(Vec<IologEntry>, IologReader), String> {
    let input = Box::new(Cursor::new(log.to_vec()));
    let fault = |fault: IologFault| fault.to_string();
    let mut reader = IologReader::new("log", input, device_numbers).map_err(fault)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry().map_err(fault)? {
        entries.push(entry);
    }
    Ok((entries, reader))
}

fn fault(log: &[u8]) -> String {
    read(log).err().unwrap_or_default()
}

#[test]
fn both_versions_of_a_text_log_are_read() {
    let timed = b"fio version 3 iolog\n0 /x add\n0 /x open\n7 /x write 4096 512\n9 /x sync 0 0\n\
        fio version 3 iolog\n1 /x close\r\n";
    let (entries, reader) = read(timed).unwrap();
    assert_eq!(reader.files(), ["/x"]);
    let of: Vec<_> = entries.iter().map(|e| (e.op, e.at_ns)).collect();
    use IologOp::{Add, Close, Open, Sync, Wait, Write};
    let wanted = [
        (Add, 0),
        (Open, 0),
        (Write, 7000),
        (Sync, 9000),
        (Close, 1000),
    ];
    assert_eq!(of, wanted);
    assert_eq!((entries[2].offset, entries[2].len), (4096, 512));

    let (entries, _) = read(b"fio version 2 iolog\nx add\nx wait 20 0\nx datasync 0 0").unwrap();
    assert_eq!((entries[1].op, entries[1].offset), (Wait, 20));
    assert!(fault(b"fio version 3 iolog\n0 x add\n0 x wait 2 0\n").contains("log:3:5: 'wait'"));
}

#[test]
fn a_hostile_text_log_is_refused_with_its_place() {
    let of = |line: &str| fault(format!("fio version 2 iolog\nx add\n{line}\n").as_bytes());
    for (line, what) in [
        ("x", "log:3:1: needs a file"),
        ("x write 0", "log:3:1: a number is missing"),
        ("x write -4 4096", "log:3:9: '-4' is not a number"),
        ("x write 0 4294967296", "log:3:9: is larger"),
        ("x write 9223372036854775807 1", "log:3:9: is larger"),
        (
            "x read 18446744073709551616 1",
            "log:3:8: '18446744073709551616'",
        ),
        ("x read 0 1 2", "log:3:12: nothing is expected"),
        ("x open 0 1", "log:3:8: 'open' has no offset"),
        ("y read 0 1", "log:3:1: 'y' was not added"),
        ("x\u{7}y read 0 1", "log:3:1: holds control characters"),
        ("x\u{b}read 0 1", "log:3:1: holds control characters"),
        ("", "log:3:1: needs a file"),
    ] {
        assert!(of(line).starts_with(what), "{line}: {}", of(line));
    }
    assert!(of(&"x".repeat(4095)).contains("longer than 4094"));
    assert!(of(&format!("{} add", "n".repeat(257))).contains("at most 256"));
    assert!(fault(b"fio version 2 iolog\n\xff\xfe add\n").contains("log:2:1: is no text"));
    assert!(fault(b"fio version 1 iolog\n").contains("neither"));
    // What a terminal would obey is not shown.
    assert!(!of("x \u{202e}zap 0 1").contains('\u{202e}'));
    let many: String = (0..=MOST_FILES).map(|n| format!("f{n} add\n")).collect();
    assert!(fault(format!("fio version 2 iolog\n{many}").as_bytes()).contains("4096 files"));
}

/// A line of megabytes costs no more memory than one that is refused.
#[test]
fn a_line_without_an_end_is_not_waited_for() {
    let endless = std::io::repeat(b'x');
    let reader = IologReader::new("log", Box::new(endless), device_numbers);
    assert!(reader.is_err());
}

/// A record as a machine of this byte order writes it.
fn record(swap: bool, time: u64, sector: u64, bytes: u32, action: u32, more: &[u8]) -> Vec<u8> {
    let four = |n: u32| {
        if swap {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    };
    let eight = |n: u64| {
        if swap {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    };
    let two = |n: u16| {
        if swap {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    };
    let mut all = Vec::new();
    all.extend(four(0x6561_7407));
    all.extend(four(1));
    all.extend(eight(time));
    all.extend(eight(sector));
    all.extend(four(bytes));
    all.extend(four(action));
    all.extend(four(77));
    all.extend(four(8 << 20 | 16));
    all.extend(four(0));
    all.extend(two(0));
    all.extend(two(more.len() as u16));
    all.extend(more);
    all
}

#[test]
fn block_traces_of_both_byte_orders_are_read() {
    for swap in [false, true] {
        let queued = |kind: u32| kind | 1;
        let log = [
            // A message, a queued write with data behind it, its merge, a read, a flush,
            // a discard; a completion of the reads.
            record(swap, 1, 0, 0, 1 << 26 | 2, b"hello"),
            record(swap, 1000, 8, 4096, queued(1 << 17), b"pdu"),
            record(swap, 1500, 16, 4096, queued(1 << 17), b""),
            record(swap, 1600, 16, 4096, 1 << 17 | 2, b""),
            record(swap, 2000, 24, 512, queued(1 << 16), b""),
            record(swap, 2500, 0, 0, queued(1 << 18), b""),
            record(swap, 3000, 32, 1 << 20, queued(1 << 29), b""),
            record(swap, 4000, 8, 8192, 1 << 17 | 8, b""),
        ]
        .concat();
        let (entries, reader) = read(&log).unwrap();
        assert_eq!(reader.files(), ["8:16"]);
        let of: Vec<_> = entries.iter().map(|e| (e.op, e.offset, e.len)).collect();
        use IologOp::{Read, Sync, Trim, Write};
        let wanted = [
            (Write, 4096, 4096),
            (Write, 8192, 4096),
            (Read, 12_288, 512),
            (Sync, 0, 0),
            (Trim, 16_384, 1 << 20),
        ];
        assert_eq!(of, wanted);
        assert!(reader.is_block_trace() && reader.depth() == 1);
        let cut = log.len() - 1;
        assert!(fault(&log[..cut]).contains("record 8: the trace ends within it"));
    }
    let mut other = record(false, 1, 0, 512, 1 << 16 | 1, b"");
    other.extend(vec![b'?'; 48]);
    assert!(fault(&other).contains("record 2: is none of a block trace"));
    let far = record(false, 1, u64::MAX / 2, 512, 1 << 16 | 1, b"");
    assert!(fault(&far).contains("behind the end"));
}
