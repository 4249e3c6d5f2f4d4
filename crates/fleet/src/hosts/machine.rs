//! The machines of a run on several, and the ways to them: over ssh, or into a
//! pod of a cluster. Whatever carries them, lines go there and lines come back.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use fathom_device::threads;
use fathom_engine::Control;

use super::wire::Say;
use crate::ssh::carry::{Far, read_program, receive, take_lines};
use crate::ssh::{Session, SshError, open_all};

/// The connection to a `fathom agent`. When it is dropped, so is the agent's
/// input, at which it ends by itself.
pub trait Connection: Send {
    /// Says something; who cannot be told is found out by its silence.
    fn say(&self, say: &Say);
    /// Asks the agent to end.
    fn end_input(&mut self);
    /// Waits, not for long, for the agent's end; gives its exit status, `None`
    /// when it never came.
    fn finish(&mut self) -> Option<i32>;
    /// Cuts the line to a machine that is heard no further.
    fn cut(&mut self) {}
    /// Lets go of a machine that was lost, and sees to it that nothing stays there
    /// where that can be done from here. Takes its time.
    fn give_up(self: Box<Self>) {
        drop(self);
    }
}

/// A line of a machine, or `None` at the end of its connection.
pub(super) type Told = (usize, Option<String>);

/// Where the lines of a machine go.
#[derive(Debug, Clone)]
pub struct Lines {
    pub(super) place: usize,
    pub(super) to: SyncSender<Told>,
}

impl Lines {
    /// Gives a line; whether more are wanted.
    pub fn line(&self, line: String) -> bool {
        self.to.send((self.place, Some(line))).is_ok()
    }

    /// Says that there are no more.
    pub fn end(self) {
        // Whoever wants no lines wants no end of them either.
        let _ = self.to.send((self.place, None));
    }
}

/// Starts the agent on a machine.
pub type Begin = Box<dyn FnOnce(Lines) -> Result<Box<dyn Connection>, String>>;

/// A machine, and the way to it.
pub struct Machine {
    /// As the figures of its jobs have it.
    pub name: String,
    /// The node of a cluster that it runs on, where it is a pod.
    pub node: Option<String>,
    /// The way to it, or that there is none.
    pub begin: Begin,
}

/// Connects to all machines without asking anything on the terminal: of several
/// at a time nobody could tell whose question it is.
#[must_use]
pub fn connect(names: &[String], control: &Control) -> Vec<Machine> {
    let program = read_program().map(Arc::new);
    let program = Arc::new(program);
    let sessions = open_all(names, control).into_iter();
    let machine = |(session, name): (Result<Session, SshError>, &String)| {
        let program = Arc::clone(&program);
        Machine {
            name: name.clone(),
            node: None,
            begin: Box::new(move |lines| {
                let far = over_ssh(session, &program, lines);
                far.map_err(|error| error.to_string())
            }),
        }
    };
    sessions.zip(names).map(machine).collect()
}

/// Sends the program to a machine and starts it there.
fn over_ssh(
    session: Result<Session, SshError>,
    program: &Result<Arc<Vec<u8>>, SshError>,
    lines: Lines,
) -> Result<Box<dyn Connection>, SshError> {
    let session = session?;
    let program = program.as_ref().map_err(SshError::again)?;
    let mut child = receive(&session, program.len(), &["agent"])?;
    let stdout = child.stdout.take().expect("spawned with a pipe");
    threads::spawn("host-lines", move || {
        if take_lines(stdout, |line| lines.line(line)) {
            lines.end();
        }
    })?;
    let stop = session.stop().clone();
    let far = Far::new(child, Arc::clone(program), &stop, Some(session))?;
    Ok(Box::new(far))
}
