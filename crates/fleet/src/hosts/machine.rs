//! The machines of a run on several, and the ways to them: over ssh, or into a
//! pod of a cluster. Whatever carries them, lines go there and lines come back.

use std::sync::mpsc::SyncSender;

use super::wire::Say;

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
pub(super) type HostLine = (usize, Option<String>);

/// Where the lines of a machine go.
#[derive(Debug, Clone)]
pub struct HostLines {
    pub(super) place: usize,
    pub(super) to: SyncSender<HostLine>,
}

impl HostLines {
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
pub type StartAgent = Box<dyn FnOnce(HostLines) -> Result<Box<dyn Connection>, String>>;

/// A machine, and the way to it.
pub struct Machine {
    /// As the figures of its jobs have it.
    pub name: String,
    /// The node of a cluster that it runs on, where it is a pod.
    pub node: Option<String>,
    /// The way to it, or that there is none.
    pub begin: StartAgent,
}
