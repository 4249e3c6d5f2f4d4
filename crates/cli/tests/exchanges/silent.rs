//! Nodes and API servers that have stopped answering: an interrupt ends the run at
//! every moment, and what was made is removed.

use std::process::{Child, Stdio};

use fathom_testkit::{await_that, signal};

use super::player::NEVER;
use super::{Played, SMALL};

/// A recording in which some questions are never answered.
fn silent(at: &'static [&'static str]) -> Played {
    Played::with("seq", |exchanges| {
        for exchange in exchanges {
            if at.iter().any(|at| exchange.asked.contains(at)) {
                exchange.status = NEVER;
            }
        }
    })
}

fn start(played: &Played) -> Child {
    let image = ["--image", "localhost/fio:test"];
    let mut command = played.command(&[&SMALL[..], &image].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until something is asked, interrupts, and gives what was removed.
#[track_caller]
fn is_interrupted(at: &'static [&'static str]) -> Vec<String> {
    let played = silent(at);
    let child = start(&played);
    let is_asked = |asked: &String| asked.contains(at[0]);
    await_that(at[0], || played.player.asked().iter().any(is_asked));
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{at:?}: {output:?}");
    played.removed()
}

/// The kubelet answers neither commands nor logs.
#[test]
fn a_run_on_a_stopped_node_is_interrupted_while_a_phase_runs() {
    let removed = is_interrupted(&["%3B+cat+exit+2", "/log?"]);
    assert!(
        removed.join("\n").contains("statefulsets/server-fio"),
        "{removed:?}"
    );
}

#[test]
fn a_run_on_a_stopped_node_is_interrupted_before_its_first_phase() {
    let removed = is_interrupted(&["server-fio-0/exec?", "server-fio-1/exec?", "/log?"]);
    assert!(
        removed.join("\n").contains("statefulsets/server-fio"),
        "{removed:?}"
    );
}

/// The API server itself hangs: nothing was made yet.
#[test]
fn a_run_is_interrupted_while_the_api_server_does_not_answer() {
    is_interrupted(&["/services?&fieldSelector=&labelSelector="]);
}
