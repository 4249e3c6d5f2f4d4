//! A machine of its own with emulated disks: QEMU without KVM, which answers
//! whether things are right, never how fast they are. Its kernel and files are
//! made by `tools/guest/setup.sh`; it has no fio, unless it is the newer one.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::exclusive::{Exclusive, one_of};
use crate::fetched::fetch;
use crate::{program, run, text};

/// The guest boots in 5 to 25 s and obeys at once; beside much else to do it took
/// more than 120.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often the guest is booted whose kernel falls before it answers: emulated on a
/// busy machine 6.12 does, rarely (an exception in `sched_clock_cpu`).
const BOOTS: u32 = 3;
/// How often a command is sent that does not arrive whole.
const TRIES: u32 = 5;

/// What an emulated processor does it does on one of this machine's: more guests
/// at work than those would only wait for each other, and one of them too long. Who has
/// a turn waits for no other guest, and a guest that nobody uses has none: else tests
/// could wait for each other for ever.
fn turn() -> Exclusive {
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    one_of("guest", most)
}

/// Without `no_timer_check` the kernel gives up when a busy machine lets it wait
/// for its timer (arch/x86/kernel/apic/io_apic.c, `check_timer`).
const KERNEL_OPTIONS: &str =
    "console=ttyS0 panic=-1 mitigations=off random.trust_cpu=on no_timer_check";

/// Everything that QEMU emulates but CMPXCHG16B: QEMU 7.2 forgets its flags when
/// an interrupt comes, and Linux 6.12 allocates memory with it (`__kmalloc`).
const CPU: &str = "max,-cx16";

/// What a guest is made of.
#[derive(Debug, Default)]
pub struct GuestPlan {
    arguments: Vec<String>,
    /// Sizes of the disks, and how QEMU attaches them.
    disks: Vec<(u64, String, String)>,
    /// Size of a disk, and how QEMU attaches it once and once more.
    twice: Vec<(u64, [String; 2])>,
    /// Files brought along, and their names there.
    files: Vec<(PathBuf, String)>,
    /// Names and texts of scripts.
    scripts: Vec<(String, String)>,
    /// Of the newer Debian.
    newer: bool,
}

impl GuestPlan {
    /// A guest with nothing but its root disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// A guest of Debian 13, with its kernel (6.12) and its fio (3.39): `cdl-up
    /// SERVICE_US` makes a disk with Command Duration Limits in it, whose name it
    /// prints, and whose counts stand in /run/cdl-stats (tools/guest/cdl-disk.c).
    pub fn newer() -> Self {
        Self {
            newer: true,
            ..Self::default()
        }
    }

    /// A device of QEMU's, such as a controller: the argument of its `-device`.
    #[must_use]
    pub fn device(mut self, argument: &str) -> Self {
        self.arguments.extend(["-device".into(), argument.into()]);
        self
    }

    /// An empty disk of `bytes`: the argument of its `-device`, without `drive=`,
    /// and options of its `-drive` (`""` for none), such as `iops=200`.
    #[must_use]
    pub fn disk(mut self, bytes: u64, device: &str, drive: &str) -> Self {
        self.disks.push((bytes, device.into(), drive.into()));
        self
    }

    /// One empty disk of `bytes` that is attached twice, as [`GuestPlan::disk`].
    pub fn disk_twice(mut self, bytes: u64, devices: [&str; 2]) -> Self {
        self.twice.push((bytes, devices.map(str::to_owned)));
        self
    }

    /// A file of this machine, as `/guest/NAME` there, which is in its `PATH`.
    #[must_use]
    pub fn file(mut self, path: &Path, name: &str) -> Self {
        self.files.push((path.to_owned(), name.to_owned()));
        self
    }

    /// A script by its text, as [`GuestPlan::file`].
    #[must_use]
    pub fn script(mut self, name: &str, text: &str) -> Self {
        self.scripts.push((name.into(), text.into()));
        self
    }

    /// A program with the libraries it is linked with, as [`GuestPlan::file`].
    ///
    /// # Errors
    /// When this machine does not have it.
    pub fn program(self, name: &str) -> Result<Self, String> {
        let path = program(name)?;
        let mut plan = self.file(&path, &format!("{name}.real"));
        // The guest's own libraries may be others: it runs with its own loader.
        let mut loader = None;
        for line in run("ldd", &[text(&path)])?.lines() {
            let Some(library) = line.split_whitespace().find(|word| word.starts_with('/')) else {
                continue;
            };
            let library = Path::new(library);
            let file = library.file_name().and_then(|name| name.to_str());
            let file = file.ok_or_else(|| format!("ldd {}: {line}", path.display()))?;
            if file.starts_with("ld-linux") {
                loader = Some(file.to_owned());
            }
            plan = plan.file(library, &format!("lib/{file}"));
        }
        let loader = loader.ok_or_else(|| format!("{name} has no loader"))?;
        let script = format!(
            "#!/bin/sh\nexec /guest/lib/{loader} --library-path /guest/lib /guest/{name}.real \"$@\"\n"
        );
        Ok(plan.script(name, &script))
    }

    /// Boots it.
    ///
    /// # Errors
    /// Why this machine cannot have one.
    ///
    /// # Panics
    /// When it is there and does not come up.
    fn boot(self) -> Result<Guest, String> {
        let state = state(self.newer)?;
        let dir = TempDir::with_prefix("fathom-guest-").map_err(|e| e.to_string())?;
        let qemu = program("qemu-system-x86_64").map_err(|e| format!("guest: {e}"))?;
        let setpriv = program("setpriv").map_err(|e| format!("guest: {e}"))?;
        // Whoever shares the processors with it waits for it in the end. Only root may ask.
        let mut command = Command::new(program("nice").map_err(|e| format!("guest: {e}"))?);
        command.args(["-n", "-5", text(&setpriv)]);
        // It must not outlive a test that is killed.
        command.args(["--pdeathsig", "KILL", text(&qemu)]);
        let log = dir.path().join("kernel.log");
        let kernel_log = File::create_new(&log).and_then(|_| File::open(&log));
        let kernel_log = kernel_log.map_err(|e| format!("guest: {}: {e}", log.display()))?;
        command
            .args(["-M", "q35", "-accel", "tcg,thread=multi", "-cpu", CPU])
            .args(["-smp", "1", "-m", "768M", "-display", "none", "-no-reboot"])
            .args(["-nodefaults", "-no-user-config"])
            .arg("-kernel")
            .arg(state.join("vmlinuz"))
            .arg("-initrd")
            .arg(state.join("initrd"))
            .args(["-append", KERNEL_OPTIONS])
            .args(["-serial", &format!("file:{}", text(&log))])
            .args(["-chardev", "stdio,id=commands,signal=off"])
            .args(["-serial", "chardev:commands"])
            .args(drive("root", &state.join("root.ext4"), "snapshot=on"))
            .args(["-device", "nvme,drive=root,serial=GUESTROOT"]);
        let files = dir.path().join("files.ext4");
        self.pack(dir.path(), &files)?;
        command
            .args(drive("files", &files, "readonly=on"))
            .args(["-device", "nvme,drive=files,serial=GUESTFILES"])
            .args(&self.arguments);
        for (at, (bytes, device, options)) in self.disks.iter().enumerate() {
            let image = dir.path().join(format!("disk{at}"));
            let made = File::create(&image).and_then(|file| file.set_len(*bytes));
            made.map_err(|e| format!("guest: {}: {e}", image.display()))?;
            command
                .args(drive(&format!("disk{at}"), &image, options))
                .args(["-device", &format!("{device},drive=disk{at}")]);
        }
        for (at, (bytes, devices)) in self.twice.iter().enumerate() {
            let image = dir.path().join(format!("twice{at}"));
            let made = File::create(&image).and_then(|file| file.set_len(*bytes));
            made.map_err(|e| format!("guest: {}: {e}", image.display()))?;
            let file = format!(
                "driver=file,node-name=file{at},filename={},locking=off",
                text(&image)
            );
            let node = format!("driver=raw,node-name=twice{at},file=file{at}");
            command.args(["-blockdev", &file, "-blockdev", &node]);
            for device in devices {
                command.args(["-device", &format!("{device},drive=twice{at},share-rw=on")]);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let guest = Guest::start(command, kernel_log);
        // QEMU has all files open: nothing is left of them when this process is killed.
        drop(dir);
        Ok(guest)
    }

    /// The disk with the files brought along.
    fn pack(&self, dir: &Path, image: &Path) -> Result<(), String> {
        let folder = dir.join("files");
        let mut bytes = 0;
        for (from, name) in &self.files {
            let to = folder.join(name);
            let parent = to.parent().unwrap_or(&folder);
            let copied = fs::create_dir_all(parent).and_then(|()| fs::copy(from, &to));
            copied.map_err(|e| format!("guest: {}: {e}", from.display()))?;
            bytes += fs::metadata(&to).map_err(|e| format!("guest: {e}"))?.len();
        }
        fs::create_dir_all(&folder).map_err(|e| format!("guest: {e}"))?;
        for (name, script) in &self.scripts {
            let file = folder.join(name);
            fs::write(&file, script).map_err(|e| format!("guest: {e}"))?;
            run("chmod", &["755", text(&file)])?;
        }
        // The file system's own needs, generously.
        let kib = (bytes + bytes / 8).div_ceil(1024) + 4096;
        let size = format!("{kib}k");
        run(
            "mke2fs",
            &[
                "-q",
                "-t",
                "ext4",
                "-O",
                "^has_journal",
                "-d",
                text(&folder),
                text(image),
                &size,
            ],
        )?;
        fs::remove_dir_all(&folder).map_err(|e| format!("guest: {e}"))
    }
}

/// A `-drive` that no device has taken yet.
fn drive(id: &str, image: &Path, options: &str) -> [String; 2] {
    let comma = if options.is_empty() { "" } else { "," };
    let argument = format!(
        "if=none,id={id},file={},format=raw,discard=unmap{comma}{options}",
        text(image)
    );
    ["-drive".to_owned(), argument]
}

/// The folder that `tools/guest/setup.sh` has filled; it fills it now if need be.
fn state(newer: bool) -> Result<PathBuf, String> {
    program("qemu-system-x86_64").map_err(|reason| format!("guest: {reason}"))?;
    let which: &[&str] = if newer { &["newer"] } else { &[] };
    fetch("guest/setup.sh", which).map_err(|why| format!("no guest here: {why}"))
}

/// How a command in the guest ended.
#[derive(Debug)]
pub struct GuestAnswer {
    /// Exit code.
    pub code: i32,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

/// A running guest; ended when dropped.
#[derive(Debug)]
pub struct Guest {
    qemu: Child,
    commands: ChildStdin,
    answers: Receiver<Heard>,
    kernel_log: File,
}

impl Guest {
    fn start(command: Command, kernel_log: File) -> Self {
        let command = Arc::new(Mutex::new(command));
        let mut boots = 0;
        loop {
            boots += 1;
            let (mut qemu, commands, answers) = switch_on(Arc::clone(&command));
            let heard = first_words(&answers, &kernel_log);
            if heard.is_err() && boots < BOOTS && has_fallen(&kernel_log) {
                let _ = qemu.kill();
                let _ = qemu.wait();
                continue;
            }
            let guest = Self {
                qemu,
                commands,
                answers,
                kernel_log,
            };
            heard.unwrap_or_else(|_| guest.silent("boot"));
            return guest;
        }
    }

    /// Runs a line of shell as root, for ten minutes at most.
    ///
    /// # Panics
    /// When the guest does not answer: what its kernel said comes with it.
    pub fn run(&mut self, line: &str) -> GuestAnswer {
        assert!(!line.contains('\n'), "a line: {line}");
        let told = format!("{} {line}\n", line.len());
        for _ in 0..TRIES {
            let written = self.commands.write_all(told.as_bytes());
            written.expect("the guest takes commands");
            match self.answer(line) {
                Heard::Again => {}
                Heard::Answer(answer) => return answer,
            }
        }
        panic!("the guest did not get whole, in {TRIES} tries: {line}")
    }

    /// As [`Guest::run`] for what must succeed; gives its stdout.
    ///
    /// # Panics
    /// When it fails.
    pub fn must(&mut self, line: &str) -> String {
        let answer = self.run(line);
        assert_eq!(answer.code, 0, "{line}: {answer:?}");
        answer.stdout
    }

    fn answer(&self, to: &str) -> Heard {
        let heard = self.answers.recv_timeout(PATIENCE);
        heard.unwrap_or_else(|_| self.silent(to))
    }

    fn silent(&self, to: &str) -> ! {
        let log = whole(&self.kernel_log);
        let from = log.len().saturating_sub(4000);
        let end = log.get(from..).unwrap_or(&log);
        panic!("the guest does not answer to '{to}'; its kernel's last words:\n{end}")
    }
}

/// Waits for the guest to say that it has booted, or for its kernel to fall.
fn first_words(answers: &Receiver<Heard>, kernel_log: &File) -> Result<Heard, RecvTimeoutError> {
    let end = Instant::now() + PATIENCE;
    loop {
        match answers.recv_timeout(Duration::from_secs(1)) {
            Err(RecvTimeoutError::Timeout) if Instant::now() < end && !has_fallen(kernel_log) => {}
            heard => return heard,
        }
    }
}

fn has_fallen(kernel_log: &File) -> bool {
    whole(kernel_log).contains("Kernel panic")
}

/// All that stands in a log, of which another may be writing the next line.
fn whole(mut log: &File) -> String {
    let mut text = Vec::new();
    let read = log.rewind().and_then(|()| log.read_to_end(&mut text));
    read.map_or_else(
        |e| e.to_string(),
        |_| String::from_utf8_lossy(&text).into_owned(),
    )
}

/// Starts QEMU, and listens. It is started by the thread that listens to it: what it
/// must not outlive is a thread (prctl(2), `PR_SET_PDEATHSIG`), and that of a test
/// ends before a guest that others use after it.
fn switch_on(command: Arc<Mutex<Command>>) -> (Child, ChildStdin, Receiver<Heard>) {
    let (tell, answers) = channel();
    let (give, started) = channel();
    std::thread::spawn(move || {
        let qemu = command.lock().map(|mut command| command.spawn());
        let mut qemu = qemu
            .expect("nobody panics with it")
            .expect("qemu was found");
        let commands = qemu.stdin.take().expect("stdin is a pipe");
        let mut output = BufReader::new(qemu.stdout.take().expect("stdout is a pipe"));
        if give.send((qemu, commands)).is_err() {
            return;
        }
        // Nobody listens any more when the guest was dropped.
        while let Some(answer) = read_answer(&mut output) {
            if tell.send(answer).is_err() {
                return;
            }
        }
    });
    let (qemu, commands) = started.recv().expect("qemu was started");
    (qemu, commands, answers)
}

/// What the guest says.
#[derive(Debug)]
enum Heard {
    /// The command lost bytes on its way.
    Again,
    /// What came of it.
    Answer(GuestAnswer),
}

/// Reads `READY`, `AGAIN` or `END code bytes bytes` and what follows; `None` at
/// the end.
fn read_answer(output: &mut impl BufRead) -> Option<Heard> {
    let mut line = String::new();
    output.read_line(&mut line).ok().filter(|&read| read > 0)?;
    if line.trim_end() == "AGAIN" {
        return Some(Heard::Again);
    }
    let mut numbers = line.split_whitespace().skip(1).map(str::parse::<i64>);
    let mut number = || numbers.next().and_then(Result::ok).unwrap_or(0);
    let code = number() as i32;
    let mut text = || {
        let mut bytes = Vec::new();
        let wanted = number().unsigned_abs();
        output.take(wanted).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    Some(Heard::Answer(GuestAnswer {
        code,
        stdout: text()?,
        stderr: text()?,
    }))
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// A guest that tests of a process take in turns: booted for the first, and switched
/// off when the process ends. It is tidied for each; disks are not, so each test has
/// its own. One that a test has failed with is not used again.
#[derive(Debug)]
pub struct SharedGuest {
    plan: fn() -> Result<GuestPlan, String>,
    guest: Mutex<Option<Guest>>,
}

/// What tests leave behind in files, ledgers and settings.
const TIDY: &str = "cd /tmp && umount /mnt 2>/dev/null; rm -rf /tmp/* /tmp/.[!.]* $HOME/.local; \
     echo 65536 >/proc/sys/fs/aio-max-nr";

impl SharedGuest {
    /// Of this plan, when one is wanted.
    pub const fn new(plan: fn() -> Result<GuestPlan, String>) -> Self {
        Self {
            plan,
            guest: Mutex::new(None),
        }
    }

    /// The guest, until the turn is dropped.
    ///
    /// # Errors
    /// Why this machine cannot have one.
    ///
    /// # Panics
    /// When it is there and does not come up.
    pub fn take(&self) -> Result<GuestTurn<'_>, String> {
        let mut guest = self.guest.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turn();
        if self.guest.is_poisoned() {
            *guest = None;
            self.guest.clear_poison();
        }
        if guest.is_none() {
            *guest = Some((self.plan)()?.boot()?);
        }
        let mut guest = GuestTurn { guest, _turn: turn };
        guest.must(TIDY);
        Ok(guest)
    }
}

/// A turn with a [`SharedGuest`].
#[derive(Debug)]
pub struct GuestTurn<'a> {
    guest: MutexGuard<'a, Option<Guest>>,
    _turn: Exclusive,
}

impl Deref for GuestTurn<'_> {
    type Target = Guest;

    fn deref(&self) -> &Guest {
        self.guest.as_ref().expect("a turn has a guest")
    }
}

impl DerefMut for GuestTurn<'_> {
    fn deref_mut(&mut self) -> &mut Guest {
        self.guest.as_mut().expect("a turn has a guest")
    }
}
