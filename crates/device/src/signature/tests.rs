use std::collections::BTreeSet;

use super::*;

const SIZE: u64 = 16 << 20;

/// An image of zeros with `bytes` at `offset`.
fn image(parts: &[(u64, &[u8])]) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(SIZE).unwrap();
    for (offset, bytes) in parts {
        file.write_all_at(bytes, *offset).unwrap();
    }
    file
}

fn kinds(parts: &[(u64, &[u8])]) -> Vec<String> {
    let found = read(&image(parts), SIZE).unwrap();
    found.into_iter().map(|it| it.kind.into_owned()).collect()
}

/// Bytes by chance, the same each time.
fn random(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    };
    let words = std::iter::repeat_with(next).take(length / 8);
    words.flatten().collect()
}

/// A device of random bytes, other ones at each offset into `bytes`.
fn of_random(bytes: &[u8], offset: usize) -> DeviceEnds<'_> {
    let (head, tail) = (HEAD_BYTES as usize, TAIL_BYTES as usize);
    DeviceEnds {
        size: 1 << 30,
        head: &bytes[offset..offset + head],
        tail: &bytes[offset + head..offset + head + tail],
    }
}

#[test]
fn an_empty_device_has_no_signature() {
    assert_eq!(kinds(&[]), [""; 0]);
    for size in [0, 1, 511, 512, 4095, 4096, 65_536, (1 << 20) + 1] {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        assert_eq!(read(&file, size).unwrap(), []);
    }
    assert!(read(&tempfile::tempfile().unwrap(), 512).is_err());
}

#[test]
fn random_data_are_no_signature() {
    const IMAGES: usize = 100_000;
    let bytes = random((HEAD_BYTES + TAIL_BYTES) as usize + 8 * IMAGES);
    for image in 0..IMAGES {
        let found = find(&of_random(&bytes, 8 * image + image % 8));
        assert_eq!(found, [], "{image}");
    }
}

/// A magic may stand in anybody's data.
#[test]
fn a_magic_in_random_data_is_no_signature() {
    const IMAGES: usize = 10_000;
    let mut bytes = random((HEAD_BYTES + TAIL_BYTES) as usize + 8 * IMAGES);
    for format in formats() {
        // One place is as good as another.
        let place = format.places[0].at(1 << 30).unwrap();
        let tail = (1 << 30) - TAIL_BYTES;
        let place = match place.checked_sub(tail) {
            Some(behind) => HEAD_BYTES + behind,
            None => place,
        };
        for image in 0..IMAGES {
            let (at, magic) = format.magics[image % format.magics.len()];
            let offset = 8 * image;
            let from = offset + place as usize + at;
            let before = bytes[from..from + magic.len()].to_vec();
            bytes[from..from + magic.len()].copy_from_slice(magic);
            let found = format.find(&of_random(&bytes, offset));
            assert_eq!(found, None, "{} in image {image}", format.kind);
            bytes[from..from + magic.len()].copy_from_slice(&before);
        }
    }
}

/// What a format that no package makes looks like, of what is known of it.
#[test]
fn formats_that_nothing_makes_here_are_found_by_their_fields() {
    let word = |number: u32| number.to_le_bytes();
    type Parts = &'static [(u64, &'static [u8])];
    let cases: [(&str, Parts); 21] = [
        ("btrfs", &[(0x1_0040, b"_BHRfS_M"), (0x1_0030, &[0, 0, 1])]),
        ("refs", &[(0, b"\0\0\0ReFS\0"), (16, b"FSRS")]),
        ("apfs", &[(24, b"\x01\0\0\x80"), (32, b"NXSB")]),
        (
            "hpfs",
            &[(0x2000, b"\x49\xe8\x95\xf9"), (0x2200, b"\x49\x18\x91\xf9")],
        ),
        ("befs", &[(32, b"BFS1BIGE"), (68, b"\xdd\x12\x10\x31")]),
        ("netware", &[(4096, b"SPB5")]),
        ("mpool", &[(0, b"mpoolDevname")]),
        ("Linux RAID 1.1", &[(0, b"\xfc\x4e\x2b\xa9\x01\0\0\0")]),
        (
            "Adaptec RAID",
            &[(SIZE - 512, b"\x37\xfc\x4d\x1e"), (SIZE - 256, b"DPTM")],
        ),
        ("HighPoint RAID", &[(4640, b"\xf0\x16\x78\x5a")]),
        ("JMicron RAID", &[(SIZE - 512, b"JM")]),
        ("LSI RAID", &[(SIZE - 512, b"$XIDE$")]),
        (
            "NVIDIA RAID",
            &[(SIZE - 1024, b"NVIDIA\0\0"), (SIZE - 1016, &[30])],
        ),
        (
            "Promise RAID",
            &[(SIZE - 63 * 512, b"Promise Technology, Inc.")],
        ),
        (
            "Intel RAID",
            &[(SIZE - 1024, b"Intel Raid ISM Cfg Sig. 1.3.00")],
        ),
        (
            "DDF RAID",
            &[(SIZE - 512, b"\xde\x11\xde\x11"), (SIZE - 480, b"01.02.00")],
        ),
        ("VDO", &[(0, b"dmvdo001"), (8, &[5]), (12, &[5])]),
        ("AIX", &[(0, b"\xc9\xc2\xd4\xc1")]),
        ("Sun", &[(508, b"\xda\xbe\xda\xbe")]),
        ("FileVault 2", &[(8, &[1, 0, 0x10]), (88, b"CS\x01\0\0\0")]),
        (
            "LUKS2 (second header)",
            &[(4 << 20, b"SKUL\xba\xbe\0\x02"), ((4 << 20) + 261, &[0x40])],
        ),
    ];
    for (kind, parts) in cases {
        assert_eq!(kinds(parts)[0], kind);
    }
    let md = [&word(0xa92b_4efc)[..], &word(0), &word(90)].concat();
    assert_eq!(kinds(&[(SIZE - 0x1_0000, &md)]), ["Linux RAID 0.90"]);
    let place = ((SIZE - 0x2000) / 512).to_le_bytes();
    let md = [&word(0xa92b_4efc)[..], &word(1), &[0; 136], &place].concat();
    assert_eq!(kinds(&[(SIZE - 0x2000, &md)]), ["Linux RAID 1.0"]);
    let drbd: [(u64, &[u8]); 2] = [
        (SIZE - 4036, b"\x83\x74\x02\x6d"),
        (SIZE - 4016, b"\0\0\x10\0"),
    ];
    assert_eq!(kinds(&drbd), ["DRBD"]);
}

/// A list of names and values in any label is a pool, uberblocks alone are none.
#[test]
fn a_pool_of_zfs_is_known_by_its_labels() {
    let magic = 0x00ba_b10c_u64.to_be_bytes();
    let blocks: Vec<(u64, &[u8])> = (0..8).map(|nth| ((128 + nth) << 10, &magic[..])).collect();
    let own = |parts: &[(u64, &[u8])]| {
        let file = image(parts);
        let mut bytes = vec![0; SIZE as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let tail = &bytes[(SIZE - TAIL_BYTES) as usize..];
        let ends = DeviceEnds {
            size: SIZE,
            head: &bytes[..HEAD_BYTES as usize],
            tail,
        };
        let found = find(&ends);
        found
            .into_iter()
            .map(|it| it.kind.into_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(own(&blocks), [""; 0]);
    let list: &[u8] = b"\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\0\0\x24\0\0\0\x20\0\0\0\x07version\0";
    for label in [0, 256 << 10, SIZE - (512 << 10), SIZE - (256 << 10)] {
        assert_eq!(own(&[(label + (16 << 10), list)]), ["ZFS"]);
    }
}

#[test]
fn two_bytes_alone_are_no_ext_and_no_table() {
    assert_eq!(kinds(&[(1080, b"\x53\xef")])[0], "ext2/3/4");
    let nonsense = [0xff; 64];
    let ext = kinds(&[(1024, &nonsense), (1080, b"\x53\xef")]);
    assert!(!ext.contains(&"ext2/3/4".to_owned()), "{ext:?}");
    assert_eq!(kinds(&[(510, b"\x55\xaa")])[0], "MBR");
    assert_eq!(kinds(&[(446, &nonsense), (510, b"\x55\xaa")]), [""; 0]);
}

#[test]
fn what_is_told_names_kind_and_place() {
    let told: BTreeSet<String> = formats()
        .map(|format| {
            let signature = Signature {
                kind: "x".into(),
                class: format.class,
                offset: Some(7),
            };
            signature.to_string()
        })
        .collect();
    assert!(told.contains("x partition table (byte 7)"));
    assert_eq!(told.len(), 5);
}
