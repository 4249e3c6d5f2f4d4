//! A command in a pod that is spoken with as long as it runs, line by line: the
//! way to a `fathom agent` there.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use fathom_device::threads::{self, NoThread};
use futures_util::future::{self, Either};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::AttachParams;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::sync::{mpsc as async_mpsc, oneshot};

use super::{ANSWER, Cluster, ended, exit_of, runtime_and_client};
use crate::hosts::machine::{Connection, HostLines, Machine};
use crate::hosts::wire::Say;

/// How long the agent may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(20);
/// More than any line of an agent: raw outputs are the longest.
const LINE_BYTES_MAX: u64 = 256 << 20;
/// What may be under way in the pipes within this process.
const PIPE_BYTES: usize = 64 << 10;

impl Cluster {
    /// A pod as a machine of a run: `argv` starts the agent there.
    pub fn machine(&self, namespace: &str, pod: &str, argv: &[&str]) -> Machine {
        let config = self.config.clone();
        let (namespace, name) = (namespace.to_owned(), pod.to_owned());
        let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
        Machine {
            name: name.clone(),
            node: None,
            begin: Box::new(move |lines| {
                let talk = Talk::begin(move |said, is_cut| {
                    match runtime_and_client(config) {
                        Ok((runtime, client)) => {
                            let pods: Api<Pod> = Api::namespaced(client, &namespace);
                            let talk = talk(&pods, &name, &argv, &lines, said);
                            let talk = future::select(Box::pin(talk), is_cut);
                            let code = match runtime.block_on(talk) {
                                Either::Left((code, _)) => code,
                                Either::Right(_) => None,
                            };
                            // What is left of the connection ends before its end is told.
                            drop(runtime);
                            lines.end();
                            code
                        }
                        Err(error) => {
                            lines.line(error.to_string());
                            lines.end();
                            None
                        }
                    }
                });
                let talk = talk.map_err(|error| error.to_string())?;
                Ok(Box::new(talk) as Box<dyn Connection>)
            }),
        }
    }
}

/// A conversation, which goes on in a thread of its own: the calls of a
/// [`Cluster`] wait for their answers, and so would everybody else.
struct Talk {
    said: async_mpsc::UnboundedSender<Say>,
    /// Cuts the connection when it is dropped.
    cut: Option<oneshot::Sender<()>>,
    ended: mpsc::Receiver<Option<i32>>,
}

type Said = async_mpsc::UnboundedReceiver<Say>;
type IsCut = oneshot::Receiver<()>;

impl Talk {
    fn begin(
        talk: impl FnOnce(Said, IsCut) -> Option<i32> + Send + 'static,
    ) -> Result<Self, NoThread> {
        let (said, to_say) = async_mpsc::unbounded_channel();
        let (cut, is_cut) = oneshot::channel();
        let (end, ended) = mpsc::channel();
        threads::spawn("pod-talk", move || {
            // Nobody waits for the end of one that was given up.
            let _ = end.send(talk(to_say, is_cut));
        })?;
        let cut = Some(cut);
        Ok(Self { said, cut, ended })
    }
}

impl Connection for Talk {
    fn say(&self, say: &Say) {
        // The end of the conversation is told by its lines' end.
        let _ = self.said.send(say.clone());
    }

    fn end_input(&mut self) {
        // Before version 5 of the protocol an input could not be closed alone.
        self.say(&Say::End);
    }

    fn cut(&mut self) {
        self.cut = None;
    }

    fn finish(&mut self) -> Option<i32> {
        self.end_input();
        let ended = self.ended.recv_timeout(PATIENCE);
        if matches!(ended, Err(RecvTimeoutError::Timeout)) {
            self.cut = None;
        }
        ended.unwrap_or_default()
    }
}

/// Runs the command to its end; gives its exit code, `None` when that never came.
async fn talk(
    pods: &Api<Pod>,
    pod: &str,
    argv: &[String],
    lines: &HostLines,
    mut said: Said,
) -> Option<i32> {
    let parameters = AttachParams::default()
        .stdin(true)
        .stderr(true)
        .max_stdout_buf_size(PIPE_BYTES);
    let begun = tokio::time::timeout(ANSWER, pods.exec(pod, argv, &parameters)).await;
    let mut process = match begun {
        Ok(Ok(process)) => process,
        Ok(Err(error)) => {
            lines.line(error.to_string());
            return None;
        }
        Err(_) => {
            lines.line(format!("no answer within {} s", ANSWER.as_secs()));
            return None;
        }
    };
    let (input, out, err) = (process.stdin(), process.stdout(), process.stderr());
    let status = process.take_status();
    let give = async {
        if let Some(mut input) = input {
            while let Some(say) = said.recv().await {
                // Strings and numbers: there is nothing that JSON cannot hold.
                let mut line = serde_json::to_vec(&say).unwrap_or_default();
                line.push(b'\n');
                if input.write_all(&line).await.is_err() {
                    break;
                }
            }
        }
        // Only its end ends the conversation.
        future::pending::<()>().await;
    };
    let heard = async {
        let both = future::join(hear(out, lines), hear(err, lines));
        future::select(Box::pin(both), Box::pin(give)).await;
    };
    let (code, words) = exit_of(ended(heard, status).await);
    if let Some(words) = words {
        lines.line(words);
    }
    // Dropping it ends what is left of the connection.
    drop(process);
    code
}

/// Gives every whole line on; one without an end was cut.
async fn hear(from: Option<impl AsyncRead + Unpin>, lines: &HostLines) {
    let Some(from) = from else { return };
    let mut from = BufReader::new(from);
    let mut is_wanted = true;
    loop {
        let mut line = Vec::new();
        let mut one = (&mut from).take(LINE_BYTES_MAX);
        let read = one.read_until(b'\n', &mut line).await;
        if read.is_err() || line.last() != Some(&b'\n') {
            return;
        }
        // What nobody wants is read all the same: who cannot write does not end.
        is_wanted = is_wanted && lines.line(String::from_utf8_lossy(&line).into_owned());
    }
}
