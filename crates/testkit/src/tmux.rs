//! A terminal for full-screen programs: tmux without anybody looking.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::children::stat_fields;

/// How long a screen may take to show what is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(30);

/// A tmux server of its own with one window, ended when it is dropped.
#[derive(Debug)]
pub struct Tmux {
    /// Holds the socket, which tmux leaves behind.
    folder: TempDir,
}

impl Tmux {
    /// A window of `width` × `height` characters in which a shell runs
    /// `command` in `dir`.
    ///
    /// # Errors
    /// When tmux is not there or does not start.
    pub fn start(width: u16, height: u16, dir: &Path, command: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let tmux = Self { folder };
        let (width, height) = (width.to_string(), height.to_string());
        let dir = crate::text(dir);
        let size = ["-x", &width, "-y", &height];
        let start = ["-u", "-f", "/dev/null", "new-session", "-d", "-c", dir];
        tmux.run(&[&start[..], &size, &[command]].concat())?;
        Ok(tmux)
    }

    fn run(&self, args: &[&str]) -> Result<String, String> {
        let socket = self.folder.path().join("socket");
        let all = [&["-S", crate::text(&socket)], args].concat();
        let output = Command::new(crate::program("tmux")?)
            // Inside a tmux of the developer, it would be that one.
            .env_remove("TMUX")
            .args(&all)
            .output()
            .map_err(|error| format!("tmux: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!(
                "tmux {}: {}",
                args.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }

    /// Presses keys, by tmux's names (`Enter`, `Escape`, `Down`, `C-c`) or as
    /// characters.
    ///
    /// # Panics
    /// When the window is gone.
    pub fn press(&self, keys: &[&str]) {
        let all = [&["send-keys"], keys].concat();
        self.run(&all).expect("the window is there");
    }

    /// Types text as it is.
    ///
    /// # Panics
    /// When the window is gone.
    pub fn type_text(&self, text: &str) {
        self.run(&["send-keys", "-l", text])
            .expect("the window is there");
    }

    /// What the window shows.
    ///
    /// # Panics
    /// When the window is gone.
    pub fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
            .expect("the window is there")
    }

    /// The same with the escape sequences of colours and styles.
    ///
    /// # Panics
    /// When the window is gone.
    pub fn screen_with_colors(&self) -> String {
        self.run(&["capture-pane", "-p", "-e"])
            .expect("the window is there")
    }

    /// The screen as soon as it holds `text`.
    ///
    /// # Panics
    /// When it does not in good time; with what it shows instead.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// The screen as soon as it is so.
    ///
    /// # Panics
    /// When it does not come to that in good time.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(
                Instant::now() < deadline,
                "waited for {what:?}; the screen shows:\n{screen}"
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Gives the window another size.
    ///
    /// # Panics
    /// When the window is gone.
    pub fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.run(&["resize-window", "-x", &width, "-y", &height])
            .expect("the window is there");
    }

    /// A variable of the window, for example `alternate_on` or `cursor_flag`.
    ///
    /// # Panics
    /// When the window is gone.
    pub fn variable(&self, name: &str) -> String {
        let format = format!("#{{{name}}}");
        let value = self.run(&["display-message", "-p", &format]);
        value.expect("the window is there").trim().to_owned()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let panes = self.run(&["list-panes", "-a", "-F", "#{pane_pid}"]);
        let panes = panes.unwrap_or_default();
        // Its last window may have ended it.
        let _ = self.run(&["kill-server"]);
        // What runs in it is told to end, and still writes into folders that go next.
        let deadline = Instant::now() + PATIENCE;
        while panes.lines().any(has_session) && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }
}

/// Whether a process is left of the session of this leader.
fn has_session(leader: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut stats = processes.flat_map(|it| fs::read_to_string(it.path().join("stat")));
    stats.any(|stat| match stat_fields(&stat)[..] {
        [state, _, _, session, ..] => state != "Z" && session == leader,
        _ => false,
    })
}
