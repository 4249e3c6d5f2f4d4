//! Formats as programs of Debian make them: what Fathom finds, what blkid finds, and whether
//! the device is accepted after the command that is advised.

use std::path::Path;
use std::process::{Command, Stdio};

use fathom_device::safety::{Confirmations, Refusal, check_write};
use fathom_testkit::{LoopDevice, program, require, skip};

/// How it is made in a folder with `files`, on a device of so many MiB; Fathom's finding, and
/// blkid's.
const MADE: &[(&str, u64, &str, &str)] = &[
    (
        "mkfs.ext4 -q $DEV",
        32,
        "ext2/3/4 file system (byte 1080)",
        "ext4",
    ),
    ("mkfs.xfs -q $DEV", 320, "xfs file system (byte 0)", "xfs"),
    (
        "truncate -s 320M data && mkfs.xfs -q -f -l logdev=$DEV,size=64m data",
        96,
        "xfs (external log) file system (byte 0)",
        "xfs_external_log",
    ),
    ("mkswap -q $DEV", 32, "swap space (byte 4086)", "swap"),
    (
        "mkfs.btrfs -q $DEV",
        128,
        "btrfs file system (byte 65600)",
        "btrfs",
    ),
    (
        "mkfs.vfat -F12 $DEV",
        8,
        "vfat file system (byte 54)",
        "vfat",
    ),
    (
        "mkfs.vfat -F16 $DEV",
        32,
        "vfat file system (byte 54)",
        "vfat",
    ),
    (
        "mkfs.vfat -F32 $DEV",
        64,
        "vfat file system (byte 82)",
        "vfat",
    ),
    (
        "mkfs.f2fs -q $DEV",
        64,
        "f2fs file system (byte 1024)",
        "f2fs",
    ),
    (
        "mkfs.exfat $DEV",
        32,
        "exfat file system (byte 3)",
        "exfat, dos",
    ),
    (
        "mkfs.ntfs -q -Q -F $DEV",
        32,
        "ntfs file system (byte 3)",
        "ntfs",
    ),
    (
        "mkfs.nilfs2 -q $DEV",
        256,
        "nilfs2 file system (byte 1024)",
        "nilfs2",
    ),
    (
        "mkfs.jfs -q $DEV",
        32,
        "jfs file system (byte 32768)",
        "jfs",
    ),
    (
        "mkfs.reiserfs -q -f -f $DEV",
        64,
        "reiserfs file system (byte 65588)",
        "reiserfs",
    ),
    (
        "mkfs.reiser4 -y -f $DEV",
        32,
        "reiser4 file system (byte 65536)",
        "reiser4",
    ),
    (
        "mkfs.minix -1 $DEV",
        8,
        "minix file system (byte 1040)",
        "minix",
    ),
    (
        "mkfs.minix -2 $DEV",
        8,
        "minix file system (byte 1040)",
        "minix",
    ),
    (
        "mkfs.minix -3 $DEV",
        8,
        "minix (version 3) file system (byte 1048)",
        "minix",
    ),
    (
        "mkfs.cramfs files $DEV",
        8,
        "cramfs file system (byte 16)",
        "cramfs",
    ),
    ("mkfs.bfs $DEV", 8, "bfs file system (byte 0)", "bfs"),
    ("hformat $DEV", 32, "hfs file system (byte 1024)", "hfs"),
    (
        "makefs -t ffs -o version=1 -s 8m image files && dd if=image of=$DEV bs=1M status=none",
        16,
        "ufs file system (byte 9564)",
        "ufs",
    ),
    (
        "makefs -t ffs -o version=2 -s 8m image files && dd if=image of=$DEV bs=1M status=none",
        16,
        "ufs file system (byte 9564)",
        "ufs",
    ),
    (
        "rm -f image && mksquashfs files image -quiet -no-progress && dd if=image of=$DEV status=none",
        8,
        "squashfs file system (byte 0)",
        "squashfs",
    ),
    (
        "mkfs.erofs image files && dd if=image of=$DEV status=none",
        8,
        "erofs file system (byte 1024)",
        "erofs",
    ),
    (
        "mkudffs $DEV",
        32,
        "udf file system (byte 32769), MBR partition table (byte 510)",
        "udf, dos",
    ),
    (
        "genisoimage -quiet -o image files && dd if=image of=$DEV status=none",
        8,
        "iso9660 file system (byte 32769)",
        "iso9660",
    ),
    (
        "mkfs.ocfs2 -q -M local $DEV",
        256,
        "ocfs2 file system (byte 2048)",
        "ocfs2",
    ),
    (
        "mkfs.gfs2 -q -O -p lock_nolock -t a:b $DEV",
        256,
        "gfs2 file system (byte 65536)",
        "gfs2",
    ),
    (
        "genromfs -f image -d files && dd if=image of=$DEV status=none",
        8,
        "romfs file system (byte 0)",
        "romfs",
    ),
    (
        "mkfs.ubifs -m 2048 -e 126976 -c 100 -r files -o image && dd if=image of=$DEV status=none",
        32,
        "ubifs file system (byte 0)",
        "ubifs",
    ),
    (
        "mkfs.ubifs -m 2048 -e 126976 -c 100 -r files -o image && printf '[a]\\nmode=ubi\\nimage=image\\nvol_id=0\\nvol_type=dynamic\\nvol_name=a\\n' >ubi.ini && ubinize -o ubi -m 2048 -p 128KiB ubi.ini && dd if=ubi of=$DEV status=none",
        32,
        "ubi member (byte 0)",
        "ubi",
    ),
    (
        "make-bcache -B $DEV",
        32,
        "bcache member (byte 4120)",
        "bcache",
    ),
    (
        "pvcreate -q $DEV",
        32,
        "LVM2 member (byte 536)",
        "LVM2_member",
    ),
    (
        "cryptsetup -q luksFormat --type luks1 --key-file=/proc/self/exe --pbkdf=pbkdf2 $DEV",
        32,
        "LUKS encrypted volume (byte 0)",
        "crypto_LUKS",
    ),
    (
        "cryptsetup -q luksFormat --type luks2 --key-file=/proc/self/exe --pbkdf=pbkdf2 $DEV",
        32,
        "LUKS encrypted volume (byte 0), LUKS2 (second header) encrypted volume (byte 16384)",
        "crypto_LUKS",
    ),
    (
        "truncate -s 8M data && veritysetup format data $DEV",
        32,
        "dm-verity member (byte 0)",
        "DM_verity_hash",
    ),
    (
        "echo 'label: gpt' | sfdisk -q $DEV",
        32,
        "GPT partition table (byte 512), GPT (backup) partition table (byte 33553920), MBR partition table (byte 510)",
        "gpt",
    ),
    (
        "echo 'label: dos' | sfdisk -q $DEV",
        32,
        "MBR partition table (byte 510)",
        "dos",
    ),
    (
        "echo 'label: sgi' | sfdisk -q $DEV",
        32,
        "SGI partition table (byte 0)",
        "sgi",
    ),
    (
        "echo 'label: sun' | sfdisk -q $DEV",
        32,
        "Sun partition table (byte 508)",
        "sun",
    ),
    (
        "parted -s $DEV mklabel mac",
        32,
        "Apple partition table (byte 512)",
        "mac",
    ),
    (
        "parted -s $DEV mklabel atari mkpart primary 1MiB 8MiB",
        32,
        "Atari partition table (byte 454)",
        "atari",
    ),
    (
        "drbdmeta 0 v08 $DEV internal create-md --force",
        32,
        "DRBD member (byte 33550396)",
        "drbd",
    ),
];

fn shell(command: &str, device: &Path, folder: &Path) -> Result<String, String> {
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("DEV", device)
        .env("HOME", folder)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        other => Err(format!("{command}: {other:?}")),
    }
}

/// The programs that a command calls and that no Debian is without are not asked for.
fn lacks(command: &str) -> Option<String> {
    const OWN: [&str; 7] = ["truncate", "dd", "rm", "printf", "echo", "mkdir", "sh"];
    let parts = command.split("&&").flat_map(|part| part.split('|'));
    let names = parts.filter_map(|part| part.split_whitespace().next());
    let mut foreign = names.filter(|name| !OWN.contains(name));
    foreign.find_map(|name| program(name).err())
}

#[test]
fn what_debian_makes_is_found_and_the_advice_gives_it_up() {
    let test = "what_debian_makes_is_found_and_the_advice_gives_it_up";
    let mut table = Vec::new();
    for (command, mib, ..) in MADE {
        if let Some(reason) = lacks(command) {
            return skip(test, &reason);
        }
        let device = require!(LoopDevice::new(mib << 20));
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("files")).unwrap();
        std::fs::write(dir.path().join("files/a"), [7; 9000]).unwrap();
        let path = device.path();
        shell(command, path, dir.path()).unwrap();
        let words = Confirmations(vec![format!("{}={mib}MiB", path.display())]);
        let uses = || match check_write(path, &words) {
            Err(Refusal::InUse(refusal)) => refusal.uses,
            Ok(()) => Vec::new(),
            other => panic!("{command}: {other:?}"),
        };
        let told = uses().iter().map(ToString::to_string).collect::<Vec<_>>();
        let carries = format!("{} carries ", path.display());
        let own = told.join(", ").replace(&carries, "");
        let blkid = shell("blkid --probe --output export $DEV", path, dir.path());
        let blkid = blkid.unwrap_or_default();
        let kinds = blkid.lines().filter_map(|line| {
            let line = line.strip_prefix("PT").unwrap_or(line);
            line.strip_prefix("TYPE=")
        });
        let blkid = kinds.collect::<Vec<_>>().join(", ");
        for found in uses() {
            let advised = found.remedy();
            let (advised, _) = advised.split_once(" (gives up").unwrap();
            shell(advised, path, dir.path()).unwrap();
        }
        assert!(
            uses().is_empty(),
            "{command}: after what is advised: {:?}",
            uses()
        );
        table.push((*command, *mib, own, blkid));
    }
    let rows = |(command, mib, own, blkid): &(&str, u64, String, String)| {
        format!("    ({command:?}, {mib}, {own:?}, {blkid:?}),\n")
    };
    let made: String = table.iter().map(rows).collect();
    let known = MADE
        .iter()
        .map(|(command, mib, own, blkid)| (*command, *mib, (*own).to_owned(), (*blkid).to_owned()));
    assert_eq!(table, known.collect::<Vec<_>>(), "{made}");
}
