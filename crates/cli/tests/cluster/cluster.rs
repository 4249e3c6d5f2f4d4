//! The cluster that tools/cluster/up.sh has started: reached only from inside its
//! network namespace.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fathom_testkit::Exclusive;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Folder of the cluster's state, as tools/cluster/env.sh names it.
fn state() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = || named("XDG_CACHE_HOME").unwrap_or_else(|| named("HOME").unwrap().join(".cache"));
    named("FATHOM_CLUSTER").unwrap_or_else(|| cache().join("fathom-cluster"))
}

/// A namespace of the cluster of one test, and a folder for its runs.
pub struct Place {
    pub namespace: String,
    /// Kubeconfig of another way to the cluster than from inside its network.
    pub way: Option<String>,
    folder: TempDir,
    /// The node, with the others or alone.
    _turn: Exclusive,
}

/// What is judged by the counters of the whole node, and what works on it.
const NODE: &str = "cluster-node";

impl Place {
    /// A place of this name, with a storage class that the cluster provides. The
    /// namespace is not made.
    pub fn new(name: &str) -> Self {
        Self::in_turn(name, fathom_testkit::shared(NODE))
    }

    /// As [`Self::new`], and no other test works on the node meanwhile: for what is
    /// judged by its counters and its page cache.
    pub fn alone(name: &str) -> Self {
        Self::in_turn(name, fathom_testkit::exclusive(NODE))
    }

    fn in_turn(name: &str, turn: Exclusive) -> Self {
        let place = Self {
            namespace: format!("{name}-{}", std::process::id()),
            way: None,
            folder: tempfile::tempdir().unwrap(),
            _turn: turn,
        };
        place.apply(&json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "hostpath"},
            "provisioner": "kubernetes.io/host-path",
        }));
        place
    }

    /// As [`Self::new`], in a namespace that is there already.
    pub fn made(name: &str) -> Self {
        let place = Self::new(name);
        place.kubectl(&["create", "namespace", &place.namespace]);
        place
    }

    /// Makes an object. (By the server: others may make the same one now.)
    pub fn apply(&self, object: &Value) {
        let mut command = Self::inside(&state().join("bin/kubectl"));
        let mut child = command
            .args(["apply", "--server-side", "--force-conflicts", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(object.to_string().as_bytes()).unwrap();
        drop(input);
        assert!(child.wait().unwrap().success(), "{object}");
    }

    fn inside(program: &Path) -> Command {
        let pids = fs::read_to_string(state().join("run/pids"))
            .expect("the cluster is up: make test-cluster starts it");
        let holder = pids
            .lines()
            .find_map(|line| line.strip_prefix("holder "))
            .unwrap();
        let mut command = Command::new("nsenter");
        command.args(["-t", holder, "-n", "--"]).arg(program);
        command.env("KUBECONFIG", state().join("run/admin.kubeconfig"));
        command
    }

    /// A daemon of the cluster, by its name.
    pub fn pid(&self, name: &str) -> String {
        let pids = fs::read_to_string(state().join("run/pids")).unwrap();
        let mut lines = pids.lines().filter_map(|line| line.split_once(' '));
        let (_, pid) = lines.find(|(daemon, _)| *daemon == name).unwrap();
        pid.trim().to_owned()
    }

    pub fn kubectl_command(&self, args: &[&str]) -> Command {
        let mut command = Self::inside(&state().join("bin/kubectl"));
        command.args(["-n", &self.namespace]).args(args);
        command
    }

    pub fn kubectl(&self, args: &[&str]) -> String {
        let output = self.kubectl_command(args).output().unwrap();
        assert!(output.status.success(), "kubectl {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What kubectl says, whether it could or not.
    pub fn tries(&self, args: &[&str]) -> String {
        let output = self.kubectl_command(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is left of Fathom in the namespace.
    pub fn left(&self) -> String {
        let kinds = "statefulsets,daemonsets,services,pods,persistentvolumeclaims";
        let ours = "app.kubernetes.io/managed-by=fathom";
        self.kubectl(&["get", kinds, "-l", ours, "-o", "name"])
    }

    /// Waits until nothing is left: objects go some time after they are removed.
    pub fn wait_for_nothing(&self) {
        self.wait_for("nothing is left", || self.left().is_empty());
    }

    pub fn wait_for(&self, what: &str, mut come: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(180);
        while !come() {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    pub fn fathom(&self, args: &[&str]) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_fathom"));
        let mut command = match &self.way {
            None => Self::inside(program),
            Some(_) => Command::new(program),
        };
        command
            .arg("--runs")
            .arg(self.folder.path().join("runs"))
            .arg("cluster")
            .args(args);
        command.args(["--namespace", &self.namespace]);
        let way = self.way.iter().flat_map(|file| ["--kubeconfig", file]);
        command.args(way);
        command
    }

    /// A small benchmark of this kind; what `more` says stands above it.
    pub fn small(&self, kind: &str, more: &[&str]) -> Command {
        self.with_image(kind, "localhost/fio:test", more)
    }

    /// As [`Place::small`], with another image.
    pub fn with_image(&self, kind: &str, image: &str, more: &[&str]) -> Command {
        let mut command = self.fathom(&[kind]);
        let small = [
            ["--image", image],
            ["--storageclass", "hostpath"],
            ["--ninstances", "2"],
            ["--fsz-gb", "1"],
            ["--njobs", "1"],
            ["--pvcsz-req-gb", "2"],
        ];
        // What a job file says itself is not for flags.
        let of_files = |flag: &str| kind == "job" && matches!(flag, "--fsz-gb" | "--njobs");
        let is_said = |pair: &&[&str; 2]| !more.contains(&pair[0]) && !of_files(pair[0]);
        command.args(small.iter().filter(is_said).flatten());
        command.args(more);
        command
    }

    pub fn run(&self, kind: &str, more: &[&str]) -> Output {
        self.small(kind, more).output().unwrap()
    }

    pub fn start(&self, kind: &str, more: &[&str]) -> Child {
        let mut command = self.small(kind, more);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// A record's document, as `fathom show --json` gives it.
    pub fn show(&self, record: &Path) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        let output = command.arg("show").arg(record).arg("--json").output();
        output.unwrap()
    }

    /// A job file on two servers.
    pub fn job(&self, file: &str, more: &[&str]) -> Output {
        let mut command = self.small("job", more);
        command.arg(file).output().unwrap()
    }

    /// The report of the only record.
    pub fn report(&self) -> String {
        let page = self.folder.path().join("report.html");
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        command.arg("report").arg(self.record());
        let output = command.arg("--out").arg(&page).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        fs::read_to_string(page).unwrap()
    }

    /// Starts a small job on every server that goes on for minutes, and waits
    /// until all of them are at work.
    pub fn start_endless(&self) -> Child {
        let job = self.file(
            "endless.fio",
            "[endless]\nrw=randread\ndirectory=/dataset\nsize=16m\nbs=4k\nioengine=libaio\ndirect=1\n\
             rate_iops=50\ntime_based=1\nruntime=300\n",
        );
        let child = self.start("job", &[&job]);
        for server in ["server-fio-0", "server-fio-1"] {
            self.wait_for("the servers are at work", || {
                let look = ["exec", server, "--", "ls", "/dataset"];
                self.tries(&look).contains("endless.0.0")
            });
        }
        child
    }

    /// The only record.
    pub fn record(&self) -> PathBuf {
        self.try_record().unwrap()
    }

    /// The only record, once it is there.
    pub fn try_record(&self) -> Option<PathBuf> {
        let mut runs = fs::read_dir(self.folder.path().join("runs")).ok()?;
        Some(runs.next()?.unwrap().path())
    }

    /// A path in the folder of this place.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file; gives its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut command = Self::inside(&state().join("bin/kubectl"));
        let args = ["delete", "namespace", &self.namespace, "--wait=false"];
        let _ = command.args(args).output();
    }
}

pub fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
