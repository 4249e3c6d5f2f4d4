//! Dropping caches before a phase that wants them cold.

use std::fs;
use std::io::Read as _;
use std::time::Duration;

use fathom_engine::Sink as _;
use fathom_model::Event;

use super::cluster_run::{ClusterRun, SAID_BYTES_MAX, well};
use super::error::ClusterError;
use super::image::PROGRAM;
use super::start::PollPace;
use super::trouble::text;
use super::{DropCaches, ceph};

/// What takes longer in pods is told of.
const SLOW: Duration = Duration::from_secs(20);
/// Dirty pages of a node may take long to be written.
const SYNC: Duration = Duration::from_secs(600);

impl ClusterRun<'_, '_> {
    pub(super) fn drop_caches(&mut self) -> Result<(), ClusterError> {
        let parameters = self.objects.parameters;
        for way in &parameters.dropcaches {
            match way {
                DropCaches::PageCache => self.drop_page_cache()?,
                DropCaches::Ceph => ceph::drop_caches(self.cluster)?,
                DropCaches::Command(command) => self.run_here(command)?,
            }
            let text = format!("caches dropped: {way}");
            let _ = self.session.event(Event::Note { text });
        }
        Ok(())
    }

    fn drop_page_cache(&mut self) -> Result<(), ClusterError> {
        let pods = self.wait_for_daemons("pods that drop caches", "drop-caches")?;
        // 3: page cache, dentries and inodes (Documentation/admin-guide/sysctl/vm.rst).
        let argv: &[&str] = match self.objects.parameters.is_by_agent() {
            true => &[PROGRAM, "pod", "drop-caches"],
            false => &["sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"],
        };
        let commands: Vec<_> = pods
            .iter()
            .map(|pod| (text(pod, "/metadata/name"), argv))
            .collect();
        let nodes = pods.iter().map(|pod| text(pod, "/spec/nodeName"));
        let nodes: Vec<&str> = nodes.collect();
        let slow = format!(
            "caches are still being dropped after {} s (on {}): dirty pages are written, or a node has stopped",
            SLOW.as_secs(),
            nodes.join(", ")
        );
        let (cluster, namespace) = (self.cluster, self.namespace().to_owned());
        let mut tell = || self.tell(Event::Note { text: slow.clone() });
        let told = cluster.exec_slowly(&namespace, &commands, SYNC, (SLOW, &mut tell))?;
        for ((pod, argv), ran) in commands.iter().zip(&told) {
            well(pod, argv, ran)?;
        }
        Ok(())
    }

    /// A command of the user's on this machine, which an interrupt ends too.
    fn run_here(&self, command: &str) -> Result<(), ClusterError> {
        use std::os::unix::process::CommandExt as _;
        let wrong = |error| ClusterError::Command(format!("{command}: {error}"));
        let said = self.dir.join("drop_caches.txt");
        let out = fs::File::create(&said).map_err(wrong)?;
        let mut child = std::process::Command::new("sh")
            .args(["-c", command])
            .stdin(std::process::Stdio::null())
            .stdout(out.try_clone().map_err(wrong)?)
            .stderr(out)
            .process_group(0)
            .spawn()
            .map_err(wrong)?;
        let mut pace = PollPace::new();
        loop {
            if let Some(status) = child.try_wait().map_err(wrong)? {
                if status.success() {
                    return Ok(());
                }
                let said = fs::File::open(&said).and_then(|file| {
                    let mut said = String::new();
                    file.take(SAID_BYTES_MAX).read_to_string(&mut said)?;
                    Ok(said)
                });
                let said = said.unwrap_or_default();
                let what = format!("{command}: {status}: {}", said.trim());
                return Err(ClusterError::Command(what));
            }
            if let Err(stopped) = self.go_on() {
                end_group(&mut child);
                return Err(stopped);
            }
            pace.wait();
        }
    }
}

/// Ends a command with all that it began.
fn end_group(child: &mut std::process::Child) {
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        // It may have ended just now.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}
