//! A Kubernetes cluster: objects made, watched and removed, commands run in its
//! pods. Every call waits for its answer, no longer than it says.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fathom_device::bounded::{LEFT_OUT, TEXT_BYTES_MAX};
use fathom_engine::Control;
use futures_util::future::{self, Either};
use futures_util::stream::{self, StreamExt as _};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{
    Api, ApiResource, AttachParams, AttachedProcess, DeleteParams, DynamicObject, GroupVersionKind,
    ListParams, LogParams, PostParams, Preconditions,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

mod talk;

/// Longest wait for an answer of the API server.
const ANSWER: Duration = Duration::from_secs(30);
/// What a broken connection has left in this process's own pipes is read by then.
const LEFT_IN_PIPES: Duration = Duration::from_secs(1);
/// Commands in pods that run side by side.
const AT_ONCE: usize = 16;
/// How soon an interrupt is noticed while an answer is waited for.
const NOTICE: Duration = Duration::from_millis(50);
/// More than any output of a command: the figures of a phase are the longest.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;
/// More than any output of one of many commands that run side by side.
const SMALL_BYTES_MAX: u64 = 16 << 20;
/// More than anybody reads of what a pod wrote.
const LOG_BYTES_MAX: i64 = 1 << 20;
/// Who made an object, for the API server's records.
const FIELD_MANAGER: &str = "fathom";

/// Why something in a cluster did not work.
#[derive(Debug, thiserror::Error)]
pub enum KubeError {
    /// There is no configuration for a cluster, or it cannot be used.
    #[error("{0}\n  to do: name a kubeconfig with --kubeconfig, a context with --context")]
    Config(String),
    /// The API server refused, or could not be reached.
    #[error("{what}: {reason}")]
    Api {
        /// What was asked of it.
        what: String,
        /// What it said.
        reason: String,
        /// Its status code; 0 when it gave none.
        code: u16,
    },
    /// No answer came in time.
    #[error("{what}: no answer within {} s", .after.as_secs())]
    Late {
        /// What was asked.
        what: String,
        /// The time that was waited.
        after: Duration,
    },
    /// A command says more than any of its kind does, and is heard no further.
    #[error("{what}: it says far more than was asked for (over {mib} MiB)")]
    TooMuch {
        /// What was asked.
        what: String,
        /// What was heard of it.
        mib: u64,
    },
    /// The wait was cut short: the run was told to stop.
    #[error("interrupted")]
    Interrupted,
}

impl KubeError {
    /// Whether what was asked for is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Api { code: 404, .. })
    }

    /// Whether something of the name, or another object under it, stands in the way.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { code: 409, .. })
    }

    /// Names the server where none has answered.
    fn of(self, server: &str) -> Self {
        match self {
            Self::Api {
                what,
                reason,
                code: 0,
            } => Self::Api {
                what,
                reason: format!("cannot talk to the API server at {server}: {reason}"),
                code: 0,
            },
            answered => answered,
        }
    }

    fn api(what: &str, error: kube::Error) -> Self {
        let (reason, code) = match error {
            kube::Error::Api(status) => (status.message.clone(), status.code),
            other => (whole(&other), 0),
        };
        Self::Api {
            what: what.to_owned(),
            reason,
            code,
        }
    }
}

/// An error with all that lies behind it: the outermost says the least. What
/// repeats what was said before it is left out.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(error) = behind {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        behind = error.source();
    }
    text
}

/// What a command in a pod gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodCommand {
    /// Its exit code; `None` when it could not be started or was cut off.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error; what the cluster says where it did not run.
    pub stderr: Vec<u8>,
}

/// A kind of object: `v1`, `Pod`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectKind {
    /// Group and version as manifests have them.
    pub api_version: &'static str,
    /// Name of the kind.
    pub kind: &'static str,
}

impl ObjectKind {
    /// A kind by its group and version, and its name.
    pub const fn new(api_version: &'static str, kind: &'static str) -> Self {
        Self { api_version, kind }
    }
}

/// What ends a wait before its own limit.
#[derive(Debug, Clone, Default)]
struct Waits {
    control: Option<Control>,
    /// Requests to stop that have been heeded already.
    heeded: u8,
    /// When every wait is over.
    end: Option<Instant>,
}

impl Waits {
    /// The time that is left of a limit.
    fn left(&self, limit: Duration) -> Duration {
        let left = self
            .end
            .map(|end| end.saturating_duration_since(Instant::now()));
        left.map_or(limit, |left| left.min(limit))
    }

    fn is_stopped(&self) -> bool {
        let control = self.control.as_ref();
        control.is_some_and(|control| control.stop_requests() > self.heeded)
    }

    async fn stopped(&self) {
        while !self.is_stopped() {
            tokio::time::sleep(NOTICE).await;
        }
    }
}

/// A connection to a cluster.
pub struct Cluster {
    runtime: tokio::runtime::Runtime,
    client: Client,
    /// For connections beside that of the client.
    config: Config,
    /// The API server's address.
    server: String,
    /// Namespace of the context.
    namespace: String,
    waits: Mutex<Waits>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Takes the kubeconfig that is named, else the one that kubectl would take
    /// (`KUBECONFIG`, `~/.kube/config`, the account of the pod it runs in).
    ///
    /// # Errors
    /// When there is none, or it is wrong. The cluster is not spoken to yet.
    pub fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Self, KubeError> {
        let wrong = |error: &dyn std::fmt::Display| KubeError::Config(error.to_string());
        let options = KubeConfigOptions {
            context: context.map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        let config = runtime()?.block_on(async {
            match (kubeconfig, context) {
                (Some(path), _) => {
                    let file = Kubeconfig::read_from(path).map_err(|e| wrong(&e))?;
                    Config::from_custom_kubeconfig(file, &options)
                        .await
                        .map_err(|e| wrong(&e))
                }
                (None, Some(_)) => Config::from_kubeconfig(&options)
                    .await
                    .map_err(|e| wrong(&e)),
                (None, None) => Config::infer().await.map_err(|error| {
                    let path = std::env::var("KUBECONFIG").ok().filter(|path| !path.is_empty());
                    let path = path.as_deref().unwrap_or("~/.kube/config");
                    let text = format!("no way to a cluster: {path} cannot be read, and this is not a pod ({error})");
                    KubeError::Config(text)
                }),
            }
        })?;
        let server = config.cluster_url.to_string();
        let namespace = config.default_namespace.clone();
        let (runtime, client) = runtime_and_client(config.clone())?;
        Ok(Self {
            runtime,
            client,
            config,
            server,
            namespace,
            waits: Mutex::default(),
        })
    }

    /// From now on every call ends at once, as [`KubeError::Interrupted`], when
    /// this control is told to stop.
    pub fn heed(&self, control: &Control) {
        self.set_waits(Waits {
            control: Some(control.clone()),
            ..Waits::default()
        });
    }

    /// A run ends: what has stopped it is heeded, and only a further request to
    /// stop cuts a call short. All calls from now on have this time together.
    pub fn wind_up(&self, time: Duration) {
        let control = self.waits().control;
        self.set_waits(Waits {
            heeded: control.as_ref().map_or(0, Control::stop_requests),
            end: Instant::now().checked_add(time),
            control,
        });
    }

    fn waits(&self) -> Waits {
        let waits = self.waits.lock();
        waits.map_or_else(|lock| lock.into_inner().clone(), |waits| waits.clone())
    }

    fn set_waits(&self, new: Waits) {
        match self.waits.lock() {
            Ok(mut waits) => *waits = new,
            Err(lock) => *lock.into_inner() = new,
        }
    }

    /// The API server's address.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The version that the API server says it is: `v1.32.0 (linux/amd64)`.
    ///
    /// # Errors
    /// What the API server says.
    pub fn version(&self) -> Result<String, KubeError> {
        let info = self.ask(
            "asking for the version",
            ANSWER,
            self.client.apiserver_version(),
        )?;
        Ok(format!("{} ({})", info.git_version, info.platform))
    }

    /// The namespace of the context.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Makes an object. One that is there already, whoever made it, is an error
    /// ([`KubeError::is_conflict`]) and stays as it is.
    ///
    /// # Errors
    /// What the API server says against it.
    pub fn create(&self, manifest: &Value) -> Result<(), KubeError> {
        let text = |pointer: &str| {
            manifest
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let what = format!("making {kind} {name}");
        let object: DynamicObject =
            serde_json::from_value(manifest.clone()).map_err(|error| KubeError::Api {
                what: what.clone(),
                reason: error.to_string(),
                code: 0,
            })?;
        let api = self.api(text("/apiVersion"), kind, Some(text("/metadata/namespace")));
        let parameters = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        self.ask(&what, ANSWER, api.create(&parameters, &object))?;
        Ok(())
    }

    /// An object as it is; `None` when there is none of this name.
    ///
    /// # Errors
    /// What the API server says.
    pub fn get(
        &self,
        kind: ObjectKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, KubeError> {
        let api = self.api(kind.api_version, kind.kind, namespace);
        let what = format!("looking for {} {name}", kind.kind);
        let found = self.ask(&what, ANSWER, api.get_opt(name))?;
        Ok(found.as_ref().map(plain))
    }

    /// The objects that carry labels, and `field=value` pairs where they are asked for.
    ///
    /// # Errors
    /// What the API server says.
    pub fn list(
        &self,
        kind: ObjectKind,
        namespace: Option<&str>,
        labels: &str,
        fields: &str,
    ) -> Result<Vec<Value>, KubeError> {
        let api = self.api(kind.api_version, kind.kind, namespace);
        let what = format!("listing {}s", kind.kind);
        let parameters = ListParams::default().labels(labels).fields(fields);
        let found = self.ask(&what, ANSWER, api.list(&parameters))?;
        Ok(found.items.iter().map(plain).collect())
    }

    /// Removes this very object and what belongs to it; one that is not there is
    /// gone already. Another one of its name, with another id, stays.
    ///
    /// # Errors
    /// What the API server says.
    pub fn delete(
        &self,
        kind: ObjectKind,
        namespace: Option<&str>,
        name: &str,
        uid: &str,
    ) -> Result<(), KubeError> {
        let api = self.api(kind.api_version, kind.kind, namespace);
        let what = format!("removing {} {name}", kind.kind);
        let parameters = DeleteParams::background().preconditions(Preconditions {
            uid: Some(uid.to_owned()),
            ..Preconditions::default()
        });
        match self.ask(&what, ANSWER, api.delete(name, &parameters)) {
            Err(error) if !error.is_missing() && !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether one may do this here.
    ///
    /// # Errors
    /// What the API server says.
    pub fn may(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        namespace: Option<&str>,
    ) -> Result<bool, KubeError> {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    verb: some(verb),
                    group: some(group),
                    resource: some(resource),
                    subresource: some(subresource),
                    namespace: namespace.and_then(some),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let what = format!("asking whether one may {verb} {resource}");
        let answer = self.ask(&what, ANSWER, api.create(&PostParams::default(), &review))?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// What containers have written so far, as the cluster keeps it, of several
    /// pods side by side; what cannot be had is an error in its place.
    pub fn logs_each(&self, namespace: &str, pods: &[&str]) -> Vec<Result<String, KubeError>> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let parameters = LogParams {
            limit_bytes: Some(LOG_BYTES_MAX),
            ..LogParams::default()
        };
        let waits = self.waits();
        let each = pods.iter().map(|pod| {
            let (api, parameters, waits) = (&api, &parameters, &waits);
            async move {
                let what = format!("logs of {pod}");
                in_time(&what, ANSWER, waits, api.logs(pod, parameters)).await
            }
        });
        let all = stream::iter(each).buffered(AT_ONCE).collect();
        self.runtime.block_on(all)
    }

    /// Runs a command in a pod, with this input, to its end.
    ///
    /// # Errors
    /// When the cluster does not run it, or it takes longer than `limit`; it may
    /// go on there then.
    pub fn exec(
        &self,
        namespace: &str,
        pod: &str,
        argv: &[&str],
        stdin: Option<&[u8]>,
        limit: Duration,
    ) -> Result<PodCommand, KubeError> {
        let command = self.command(namespace, pod, argv, stdin, (limit, OUTPUT_BYTES_MAX));
        self.runtime.block_on(command)
    }

    /// As [`Self::exec`], without input, several side by side; the answers are in
    /// the order of the commands. Whoever does not answer holds up nobody else.
    pub fn exec_each(
        &self,
        namespace: &str,
        commands: &[(&str, &[&str])],
        limit: Duration,
    ) -> Vec<Result<PodCommand, KubeError>> {
        let each = commands
            .iter()
            .map(|(pod, argv)| self.command(namespace, pod, argv, None, (limit, SMALL_BYTES_MAX)));
        let all = stream::iter(each).buffered(AT_ONCE).collect();
        self.runtime.block_on(all)
    }

    /// As [`Self::exec_each`], where all have to answer.
    ///
    /// # Errors
    /// As [`Self::exec`], the first.
    pub fn exec_all(
        &self,
        namespace: &str,
        commands: &[(&str, &[&str])],
        limit: Duration,
    ) -> Result<Vec<PodCommand>, KubeError> {
        self.exec_each(namespace, commands, limit)
            .into_iter()
            .collect()
    }

    /// As [`Self::exec_all`]; what takes longer than `slow` is told of, and waited
    /// for further.
    ///
    /// # Errors
    /// As [`Self::exec`], the first.
    pub fn exec_slowly(
        &self,
        namespace: &str,
        commands: &[(&str, &[&str])],
        limit: Duration,
        (slow, tell): (Duration, &mut dyn FnMut()),
    ) -> Result<Vec<PodCommand>, KubeError> {
        let each = commands
            .iter()
            .map(|(pod, argv)| self.command(namespace, pod, argv, None, (limit, SMALL_BYTES_MAX)));
        let all = stream::iter(each).buffered(AT_ONCE).collect::<Vec<_>>();
        let ran = self.runtime.block_on(async {
            match future::select(Box::pin(all), Box::pin(tokio::time::sleep(slow))).await {
                Either::Left((ran, _)) => ran,
                Either::Right(((), all)) => {
                    tell();
                    all.await
                }
            }
        });
        ran.into_iter().collect()
    }

    async fn command(
        &self,
        namespace: &str,
        pod: &str,
        argv: &[&str],
        stdin: Option<&[u8]>,
        (limit, most): (Duration, u64),
    ) -> Result<PodCommand, KubeError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let parameters = AttachParams::default().stdin(stdin.is_some()).stderr(true);
        let what = format!("{} in {pod}", argv.first().unwrap_or(&"nothing"));
        let waits = self.waits();
        let ran = in_time(&what, limit, &waits, async {
            let process = pods.exec(pod, argv.iter().copied(), &parameters).await?;
            Ok(to_end(process, stdin, most).await)
        });
        // Its connection has ended with the answer.
        ran.await?.ok_or(KubeError::TooMuch {
            what,
            mib: most >> 20,
        })
    }

    fn api(&self, api_version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace.filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    fn ask<T>(
        &self,
        what: &str,
        limit: Duration,
        question: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, KubeError> {
        let waits = self.waits();
        let answer = self
            .runtime
            .block_on(in_time(what, limit, &waits, question));
        answer.map_err(|error| error.of(&self.server))
    }
}

async fn in_time<T>(
    what: &str,
    limit: Duration,
    waits: &Waits,
    question: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, KubeError> {
    let answer = tokio::time::timeout(waits.left(limit), question);
    match future::select(Box::pin(answer), Box::pin(waits.stopped())).await {
        Either::Left((Ok(answer), _)) => answer.map_err(|error| KubeError::api(what, error)),
        Either::Left((Err(_), _)) => Err(KubeError::Late {
            what: what.to_owned(),
            after: limit,
        }),
        Either::Right(_) => Err(KubeError::Interrupted),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, KubeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| KubeError::Config(error.to_string()))
}

/// A client, and the runtime that its connections live in.
fn runtime_and_client(config: Config) -> Result<(tokio::runtime::Runtime, Client), KubeError> {
    let runtime = runtime()?;
    let client = {
        let _inside = runtime.enter();
        Client::try_from(config).map_err(|error| KubeError::Config(error.to_string()))?
    };
    Ok((runtime, client))
}

/// Gives a process its input and takes all its outputs at once: whichever waited
/// for the other could wait for ever. `None`: it says more than `most` bytes.
async fn to_end(
    mut process: AttachedProcess,
    stdin: Option<&[u8]>,
    most: u64,
) -> Option<PodCommand> {
    let (input, out, err) = (process.stdin(), process.stdout(), process.stderr());
    let status = process.take_status();
    let give = async {
        if let (Some(mut input), Some(bytes)) = (input, stdin) {
            // Whoever does not read to the end says why by its exit.
            let _ = input.write_all(bytes).await;
            let _ = input.shutdown().await;
        }
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let text = TEXT_BYTES_MAX as u64;
    let (floods, is_flooded) = mpsc::unbounded_channel();
    let heard = future::join3(
        give,
        all(out, &mut stdout, (most, most), &floods),
        all(err, &mut stderr, (text, most), &floods),
    );
    let ended = Box::pin(ended(heard, status));
    let status = match future::select(ended, Box::pin(flood(is_flooded))).await {
        Either::Left((status, _)) => Some(status),
        Either::Right(_) => None,
    };
    // What came before a cut is kept.
    drop(process);
    let (code, words) = exit_of(status?);
    stderr.extend(words.unwrap_or_default().into_bytes());
    Some(PodCommand {
        code,
        stdout,
        stderr,
    })
}

/// Waits until an output says too much.
async fn flood(mut is_flooded: mpsc::UnboundedReceiver<()>) {
    if is_flooded.recv().await.is_none() {
        future::pending::<()>().await;
    }
}

/// The exit code of a command, and the cluster's words where it has none.
fn exit_of(status: Option<Status>) -> (Option<i32>, Option<String>) {
    let Some(status) = status else {
        return (None, None);
    };
    if status.status.as_deref() == Some("Success") {
        return (Some(0), None);
    }
    let causes = status.details.and_then(|details| details.causes);
    let causes = causes.unwrap_or_default();
    let exit = causes
        .iter()
        .find(|cause| cause.reason.as_deref() == Some("ExitCode"));
    match exit.and_then(|cause| cause.message.as_deref()?.parse().ok()) {
        Some(code) => (Some(code), None),
        None => (None, status.message),
    }
}

/// Keeps so many bytes of an output, and hears so many; more is a flood.
async fn all(
    input: Option<impl AsyncRead + Unpin>,
    bytes: &mut Vec<u8>,
    (kept, most): (u64, u64),
    floods: &mpsc::UnboundedSender<()>,
) {
    let Some(mut input) = input else { return };
    // How it ended is told by the status.
    let _ = (&mut input).take(kept).read_to_end(bytes).await;
    // Who cannot write does not end.
    let rest = most - kept + 1;
    let mut rest_of_it = input.take(rest);
    let further = tokio::io::copy(&mut rest_of_it, &mut tokio::io::sink()).await;
    let further = further.unwrap_or(0);
    if further > 0 && kept < most {
        bytes.extend_from_slice(format!("\n{LEFT_OUT}\n").as_bytes());
    }
    if further == rest {
        // Who waits for it ends with this.
        let _ = floods.send(());
    }
}

/// Waits until a command has ended and everything it wrote is heard. When its
/// connection breaks there is no status, and its outputs stay open for ever: the
/// task that feeds them ends without closing them (kube-client 5.0,
/// remote_command.rs, start_message_loop).
async fn ended(
    heard: impl Future,
    status: Option<impl Future<Output = Option<Status>>>,
) -> Option<Status> {
    let status = async {
        match status {
            Some(status) => status.await,
            None => None,
        }
    };
    match future::select(Box::pin(heard), Box::pin(status)).await {
        Either::Left((_, status)) => status.await,
        Either::Right((status, heard)) => {
            let limit = status.as_ref().map_or(LEFT_IN_PIPES, |_| ANSWER);
            // What was under way in the pipes is all that can still be heard.
            let _ = tokio::time::timeout(limit, heard).await;
            status
        }
    }
}

/// Without the fields that only the API server wants.
fn plain(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    value
}

/// A selector of all these labels.
pub fn selector(labels: &BTreeMap<&str, &str>) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(",")
}
