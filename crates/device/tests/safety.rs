//! Every reason to refuse a write, on real devices.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fathom_device::Hold;
use fathom_device::safety::{Confirmations, Refusal, check_write};
use fathom_device::usage::Use;
use fathom_testkit::{LoopDevice, SmallFs, require, root};

const SIZE: u64 = 32 << 20;

fn run(program: &str, args: &[&Path]) -> Result<(), String> {
    match Command::new(program).args(args).output() {
        Ok(output) if output.status.success() => Ok(()),
        other => Err(format!("{program} {args:?}: {other:?}")),
    }
}

fn mkfs(device: &Path) {
    run("mkfs.ext4", &[Path::new("-q"), device]).unwrap();
}

fn words(words: &[&str]) -> Confirmations {
    Confirmations(words.iter().map(|&word| word.to_owned()).collect())
}

/// The word that confirms a device of [`SIZE`] without serial and by-id name.
fn by_size(device: &Path) -> Confirmations {
    words(&[&format!("{}=32MiB", device.display())])
}

/// What a refusal found, as it is told; panics when nothing was refused.
fn found(path: &Path) -> Vec<String> {
    match check_write(path, &by_size(path)) {
        Err(Refusal::InUse(refusal)) => refusal.uses.iter().map(Use::to_string).collect(),
        other => panic!("{}: {other:?}", path.display()),
    }
}

/// The refusal of a write that nobody confirmed, as the user reads it.
fn told(path: &Path) -> String {
    let refusal = check_write(path, &Confirmations::default()).unwrap_err();
    refusal.to_string()
}

fn is_mounted_on(device: &Path, point: &Path) -> String {
    format!("{} is mounted on {}", device.display(), point.display())
}

struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(device: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        run("mount", &[device, dir.path()]).unwrap();
        Self(dir)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run("umount", &[self.0.path()]);
    }
}

#[test]
fn a_plain_device_needs_its_name_and_exact_size() {
    let disk = require!(LoopDevice::new(SIZE));
    let path = disk.path();
    let name = path.display();
    let text = told(path);
    assert!(text.contains("would be overwritten"), "{text}");
    assert!(
        text.ends_with(&format!("add --destroy {name}=32MiB")),
        "{text}"
    );

    for wrong in [
        format!("{name}=31MiB"),
        format!("{name}="),
        format!("{name}"),
        "/dev/loop-control=32MiB".into(),
        "=32MiB".into(),
        "32MiB".into(),
        String::new(),
    ] {
        let refusal = check_write(path, &words(&[&wrong])).unwrap_err();
        assert!(matches!(refusal, Refusal::Unconfirmed(_)), "{wrong}");
        let told = refusal.to_string();
        assert!(
            told.contains(&format!("'{wrong}' does not name it")),
            "{told}"
        );
    }
    for size in ["32MiB", "33554432", "32768KiB"] {
        check_write(path, &words(&["other", &format!("{name}={size}")])).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("disk");
    symlink(path, &link).unwrap();
    check_write(&link, &by_size(path)).unwrap();
    check_write(path, &by_size(&link)).unwrap();
    assert!(told(&link).contains("would be overwritten"));
}

#[test]
fn a_word_for_one_device_does_not_open_another() {
    let one = require!(LoopDevice::new(SIZE));
    let other = require!(LoopDevice::new(SIZE));
    check_write(one.path(), &by_size(other.path())).unwrap_err();
}

#[test]
fn a_mounted_device_is_refused_even_when_it_is_confirmed() {
    let small = require!(SmallFs::new(SIZE, ""));
    let device = small.device();
    let mounted = is_mounted_on(device, small.path());
    let uses = found(device);
    assert_eq!(uses[0], mounted);
    assert!(
        uses[1].ends_with("carries ext2/3/4 file system (byte 1080)"),
        "{uses:?}"
    );
    // What is to be erased is not said while somebody needs it.
    let text = told(device);
    for part in [
        mounted,
        format!("umount {}", small.path().display()),
        format!("--destroy {}=32MiB", device.display()),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    assert!(!text.contains("wipefs"), "{text}");
    // Ordinary files on it are the file system's business.
    let file = small.path().join("file");
    fs::write(&file, "x").unwrap();
    check_write(&file, &Confirmations::default()).unwrap();
    check_write(small.path(), &Confirmations::default()).unwrap();
}

/// Holds a device mounted in a mount namespace of its own.
struct Elsewhere(Child);

impl Elsewhere {
    fn mount(device: &Path, dir: &Path) -> Result<Self, String> {
        let script = r#"mount "$1" "$2" && echo mounted && read wait"#;
        let child = Command::new("unshare")
            .args([
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                script,
                "sh",
            ])
            .args([device, dir])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut this = Self(child.map_err(|e| format!("unshare: {e}"))?);
        let stdout = this.0.stdout.as_mut().unwrap();
        match stdout.read_exact(&mut [0; 8]) {
            Ok(()) => Ok(this),
            Err(_) => Err("no mount in another namespace".to_owned()),
        }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_mount_in_another_namespace_is_seen() {
    let disk = require!(LoopDevice::new(SIZE));
    mkfs(disk.path());
    let dir = tempfile::tempdir().unwrap();
    let _held = require!(Elsewhere::mount(disk.path(), dir.path()));
    let uses = found(disk.path());
    let wanted = format!(
        "{} (seen by process ",
        is_mounted_on(disk.path(), dir.path())
    );
    assert!(uses[0].starts_with(&wanted), "{uses:?}");
}

/// A file that another one covers, until it is dropped.
struct Covered<'p>(&'p Path);

impl<'p> Covered<'p> {
    fn by(other: &Path, path: &'p Path) -> Self {
        run("mount", &[Path::new("--bind"), other, path]).unwrap();
        Self(path)
    }
}

impl Drop for Covered<'_> {
    fn drop(&mut self) {
        let _ = run("umount", &[self.0]);
    }
}

/// The path that the kernel shows need not lead to what it has open.
#[test]
fn the_file_behind_a_loop_device_is_known_by_any_name() {
    let none = &Confirmations::default();
    let dir = tempfile::tempdir().unwrap();
    let [image, twin, other] = ["image", "twin", "other"].map(|name| dir.path().join(name));
    File::create(&image).unwrap().set_len(SIZE).unwrap();
    fs::write(&other, "free").unwrap();
    fs::hard_link(&image, &twin).unwrap();
    let disk = require!(LoopDevice::over(&image));
    let behind = format!(
        "{} is behind loop device {}",
        twin.display(),
        disk.path().display()
    );
    assert_eq!(found(&twin), [behind.as_str()]);
    // As another mount namespace may see it.
    let covered = Covered::by(&other, &image);
    assert_eq!(found(&twin), [behind.as_str()]);
    check_write(&other, none).unwrap();
    drop(covered);
    fs::remove_file(&image).unwrap();
    assert_eq!(found(&twin), [behind.as_str()]);
    // Another file by the old name is free.
    fs::write(&image, "free").unwrap();
    check_write(&image, none).unwrap();
}

#[test]
fn a_file_that_is_only_mapped_is_refused() {
    let none = &Confirmations::default();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("database");
    fs::write(&file, "years of work").unwrap();
    check_write(&file, none).unwrap();
    let script = "import mmap, os, sys\n\
        fd = os.open(sys.argv[1], os.O_RDWR)\n\
        kept = mmap.mmap(fd, 0)\n\
        os.closerange(3, 64)\n\
        print('mapped', flush=True)\n\
        sys.stdin.read()";
    let python = Command::new("python3")
        .args(["-c", script])
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut python = require!(python.map_err(|e| format!("python3: {e}")));
    let mut line = [0; 7];
    python
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut line)
        .unwrap();
    let uses = found(&file);
    let wanted = format!(
        "{} is open for writing, or mapped, by somebody",
        file.display()
    );
    assert!(uses[0].starts_with(&wanted), "{uses:?}");
    drop(python.stdin.take());
    python.wait().unwrap();
    check_write(&file, none).unwrap();
}

/// A partition table with one entry: type 83h, from 1 MiB to the end.
fn write_table(image: &File) {
    let mut sector = [0u8; 512];
    sector[446 + 4] = 0x83;
    sector[446 + 8..][..4].copy_from_slice(&2048u32.to_le_bytes());
    let sectors = u32::try_from(SIZE / 512).unwrap() - 2048;
    sector[446 + 12..][..4].copy_from_slice(&sectors.to_le_bytes());
    sector[510..].copy_from_slice(b"\x55\xaa");
    image.write_all_at(&sector, 0).unwrap();
}

#[test]
fn a_disk_is_refused_for_its_table_and_for_a_mounted_partition() {
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().set_len(SIZE).unwrap();
    write_table(image.as_file());
    let disk = require!(LoopDevice::over(image.path()));
    let disk = disk.path();
    let partition = PathBuf::from(format!("{}p1", disk.display()));
    // A kernel may be built without knowledge of partition tables; partx has its own.
    if !partition.exists() {
        require!(run("partx", &[Path::new("-a"), disk]));
    }

    let table = format!("{} carries MBR partition table (byte 510)", disk.display());
    assert_eq!(found(disk), [table]);
    // The table of the disk does not speak against an empty partition of it.
    let word = format!("{}=31MiB", partition.display());
    check_write(&partition, &words(&[&word])).unwrap();
    check_write(&partition, &by_size(disk)).unwrap_err();

    mkfs(&partition);
    let mounted = Mounted::new(&partition);
    let wanted = is_mounted_on(&partition, mounted.0.path());
    for path in [disk, &partition] {
        let uses = found(path);
        assert!(uses.contains(&wanted), "{}: {uses:?}", path.display());
    }
    drop(mounted);
    let wipe = format!("wipefs -a {} (", partition.display());
    let text = told(disk);
    let (before, after) = text.split_once(&wipe).unwrap();
    let wipe_disk = format!("wipefs -a {} (", disk.display());
    assert!(
        !before.contains(&wipe_disk) && after.contains(&wipe_disk),
        "{text}"
    );
}

struct Swap<'d>(&'d Path);

impl<'d> Swap<'d> {
    fn on(area: &'d Path) -> Result<Self, String> {
        run("mkswap", &[Path::new("-q"), area])?;
        run("swapon", &[area]).map(|()| Self(area))
    }
}

impl Drop for Swap<'_> {
    fn drop(&mut self) {
        let _ = run("swapoff", &[self.0]);
    }
}

#[test]
fn active_swap_is_refused_on_devices_and_files() {
    let disk = require!(LoopDevice::new(SIZE));
    let swap = require!(Swap::on(disk.path()));
    let name = disk.path().display();
    assert_eq!(found(disk.path())[0], format!("{name} is in use as swap"));
    assert!(told(disk.path()).contains(&format!("swapoff {name}")));
    drop(swap);

    let small = require!(SmallFs::new(64 << 20, ""));
    let file = small.path().join("swap file");
    let mut options = OpenOptions::new();
    let mut data = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)
        .unwrap();
    data.write_all(&vec![0; 8 << 20]).unwrap();
    let _swap = Swap::on(&file).unwrap();
    assert_eq!(
        found(&file),
        [format!("{} is in use as swap", file.display())]
    );
}

#[test]
fn a_device_under_a_loop_device_is_refused_with_what_stands_on_it() {
    let lower = require!(LoopDevice::new(SIZE));
    let upper = require!(LoopDevice::over(lower.path()));
    let (lower, upper) = (lower.path(), upper.path());
    let behind = format!(
        "{} is behind loop device {}",
        lower.display(),
        upper.display()
    );
    assert_eq!(found(lower)[..], [behind.as_str()]);
    check_write(upper, &by_size(upper)).unwrap();

    mkfs(upper);
    let mounted = Mounted::new(upper);
    let mounted = is_mounted_on(upper, mounted.0.path());
    assert_eq!(found(lower)[..2], [behind, mounted]);
}

fn claim(device: &Path) -> File {
    let excl = i32::try_from(rustix::fs::OFlags::EXCL.bits()).unwrap();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(excl).open(device).unwrap()
}

#[test]
fn a_file_is_refused_while_its_loop_device_is_in_use() {
    let none = &Confirmations::default();
    let disk = require!(LoopDevice::new(SIZE));
    let image = disk.behind();
    let behind = |device: &LoopDevice| {
        let device = device.path().display();
        format!("{} is behind loop device {device}", image.display())
    };
    assert_eq!(found(image), [behind(&disk)]);
    mkfs(disk.path());
    // A second device over the same file shares its fate.
    let twin = require!(LoopDevice::over(image));
    let mounted = Mounted::new(disk.path());
    let wanted = is_mounted_on(disk.path(), mounted.0.path());
    let uses = found(image);
    assert!(
        uses.contains(&wanted) && uses.contains(&behind(&disk)),
        "{uses:?}"
    );
    assert!(uses.contains(&behind(&twin)), "{uses:?}");
    assert_eq!(found(twin.path())[0], wanted);
    drop((mounted, twin));
    assert_eq!(found(image), [behind(&disk)]);
    let copy = image.with_extension("copy");
    fs::copy(image, &copy).unwrap();
    check_write(&copy, none).unwrap();
}

#[test]
fn a_device_that_is_open_exclusively_is_refused() {
    let disk = require!(LoopDevice::new(SIZE));
    let held = claim(disk.path());
    let wanted = format!(
        "{} is open exclusively in another program",
        disk.path().display()
    );
    assert_eq!(found(disk.path()), [wanted]);
    drop(held);
    check_write(disk.path(), &by_size(disk.path())).unwrap();
}

/// A zram device of its own; removed when dropped.
struct Zram(u32);

impl Zram {
    fn new() -> Result<Self, String> {
        root()?;
        let number = fs::read_to_string("/sys/class/zram-control/hot_add")
            .map_err(|e| format!("no zram device can be added: {e}"))?;
        Ok(Self(number.trim().parse().unwrap()))
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let _ = fs::write("/sys/class/zram-control/hot_remove", self.0.to_string());
    }
}

#[test]
fn a_zram_device_is_confirmed_by_its_size_and_refused_without_one() {
    let zram = require!(Zram::new());
    let path = PathBuf::from(format!("/dev/zram{}", zram.0));
    let refusal = check_write(&path, &by_size(&path)).unwrap_err();
    assert!(matches!(refusal, Refusal::Unknown { .. }), "{refusal}");
    assert!(refusal.to_string().contains("no capacity"), "{refusal}");
    fs::write(format!("/sys/block/zram{}/disksize", zram.0), "32M").unwrap();
    let refusal = check_write(&path, &Confirmations::default()).unwrap_err();
    assert!(matches!(refusal, Refusal::Unconfirmed(_)), "{refusal}");
    check_write(&path, &by_size(&path)).unwrap();
}

#[test]
fn what_is_not_a_block_device_in_dev_is_refused() {
    let none = &Confirmations::default();
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("disk");
    symlink("/dev/fathom-no-such-device", &link).unwrap();
    for name in [
        "/dev/fathom-no-such-device",
        "/dev/disk/by-id/nvme-none",
        "/dev/../dev/nvme9n9",
        link.to_str().unwrap(),
    ] {
        let refusal = check_write(Path::new(name), none).unwrap_err();
        assert!(matches!(refusal, Refusal::NoSuchDevice { .. }), "{refusal}");
    }
    for name in ["/dev/mem", "/dev/urandom", "/dev/tty"] {
        if Path::new(name).exists() {
            let refusal = check_write(Path::new(name), none).unwrap_err();
            assert!(
                matches!(refusal, Refusal::CharacterDevice { .. }),
                "{refusal}"
            );
        }
    }
    check_write(Path::new("/dev/null"), none).unwrap();
}

#[test]
fn a_file_that_a_mistyped_device_became_is_refused() {
    require!(root());
    let none = &Confirmations::default();
    let file = |dir| tempfile::NamedTempFile::with_prefix_in("fathom-test-", dir).unwrap();
    let among = file("/dev");
    let refusal = check_write(among.path(), none).unwrap_err();
    assert!(
        matches!(refusal, Refusal::FileAmongDevices { .. }),
        "{refusal}"
    );
    check_write(file("/dev/shm").path(), none).unwrap();
}

#[test]
fn files_and_folders_that_are_yet_to_be_made_may_be_written() {
    let none = &Confirmations::default();
    let dir = tempfile::tempdir().unwrap();
    for path in [
        dir.path().to_owned(),
        dir.path().join("new"),
        dir.path().join("no/such/folder"),
        PathBuf::from("fathom-relative-and-new"),
        PathBuf::from("/dev/shm/fathom-new"),
    ] {
        check_write(&path, none).unwrap();
    }
    let round = dir.path().join("round");
    symlink(&round, &round).unwrap();
    let refusal = check_write(&round, none).unwrap_err();
    assert!(matches!(refusal, Refusal::Unknown { .. }), "{refusal}");
}

#[test]
fn a_device_is_kept_by_one_at_a_time() {
    require!(root());
    let device = require!(LoopDevice::new(SIZE));
    // Named twice it is one device.
    let hold = Hold::of([device.path(), device.path()]).unwrap();
    let refusal = Hold::of([device.path()]).unwrap_err();
    assert!(
        refusal.to_string().contains("is locked by another program"),
        "{refusal}"
    );
    drop(hold);
    drop(Hold::of([device.path()]).unwrap());
    // Files are nobody's alone.
    let file = tempfile::NamedTempFile::new().unwrap();
    let _one = Hold::of([file.path()]).unwrap();
    drop(Hold::of([file.path()]).unwrap());
}
