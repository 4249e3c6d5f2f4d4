//! `--client`: the fio servers that run the jobs.

use std::fs;
use std::path::{Component, Path, PathBuf};

use fathom_engine_fio::client::{Servers, address};
use fathom_flow::error::RunError;
use fathom_jobfile::{is_write, shell_quote, targets};
use fathom_model::{Exit, JobSpec};

use super::Args;
use super::plan::JobFileStep;
use crate::cmd::ExitError;
use crate::cmd::hosts::HostVariable;

/// Where the jobs run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Jobs on other machines")]
pub struct ClientArgs {
    /// Let the fio servers there run the jobs: HOST, HOST,PORT, ip6:ADDR,
    /// sock:PATH, or a file with one of these a line (may be repeated)
    #[arg(long, value_name = "HOST", num_args = 1..)]
    pub client: Vec<String>,
    /// Run the jobs on these machines at once, over ssh: hosts with commas, or a
    /// file with one a line; nothing has to be installed there but what the
    /// engine needs
    #[arg(
        long,
        value_name = "HOST,…",
        value_delimiter = ',',
        conflicts_with = "client"
    )]
    pub hosts: Vec<String>,
    /// A variable of the job files for all of these machines, or HOST:NAME=VALUE
    /// for one of them (may be repeated) [default: the value here, else each
    /// host's own]
    #[arg(long, value_name = "NAME=VALUE", requires = "hosts")]
    pub var: Vec<HostVariable>,
    /// Go on when machines are lost, as long as so many take part to the end
    /// [default: all]
    #[arg(long, value_name = "N", visible_alias = "min-hosts")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub min_clients: Option<u32>,
    /// Let one machine take part under several names: it counts several times
    #[arg(long, requires = "hosts")]
    pub allow_same_host: bool,
    /// Run this job file, which lies on the servers, instead of one from here
    #[arg(long, value_name = "PATH", requires = "client")]
    pub remote_config: Option<String>,
}

/// The servers, and the job files: those in front, and those behind `--client
/// HOST`, as fio's own command line has them.
pub fn resolve(args: &Args) -> anyhow::Result<(Option<Servers>, Vec<PathBuf>)> {
    let given = &args.clients;
    let mut files = args.files.clone();
    if given.client.is_empty() {
        if given.min_clients.is_some() {
            let message = "--min-clients is for --client and --hosts".to_owned();
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        return Ok((None, files));
    }
    let (behind, hosts): (Vec<String>, Vec<String>) = given
        .client
        .iter()
        .cloned()
        .partition(|value| is_job_file(value));
    files.extend(behind.into_iter().map(PathBuf::from));
    let wrong = |message: String| ExitError::new(Exit::Usage, message);
    let addresses = address::servers(&hosts).map_err(|what| wrong(format!("--client: {what}")))?;
    if addresses.is_empty() {
        return Err(wrong("--client names no server".to_owned()).into());
    }
    let least = given.min_clients.map_or(addresses.len(), |n| n as usize);
    if least > addresses.len() {
        let what = format!(
            "--min-clients {least}: there are {} servers",
            addresses.len()
        );
        return Err(wrong(what).into());
    }
    if given.remote_config.is_some() && !(files.is_empty() && args.fio_options.is_empty()) {
        let what = "--remote-config names the job file of the servers: give no other";
        return Err(wrong(what.to_owned()).into());
    }
    let servers = Servers {
        addresses,
        least,
        remote_job: given.remote_config.clone(),
    };
    Ok((Some(servers), files))
}

/// Whether a file has a section: files of hosts have none.
fn is_job_file(value: &str) -> bool {
    let path = Path::new(value);
    let text = match path.is_file() {
        true => fs::read(path).unwrap_or_default(),
        false => return false,
    };
    text.split(|&byte| byte == b'\n')
        .any(|line| line.trim_ascii_start().starts_with(b"["))
}

/// Refuses what may overwrite devices of servers and is not confirmed for each of
/// them: Fathom cannot look at what they hold. Gives what is to be known besides.
pub fn check_devices(
    servers: &Servers,
    steps: &[JobFileStep],
    confirmed: &[String],
) -> Result<Vec<String>, RunError> {
    let jobs = steps.iter().flat_map(|step| &step.jobs);
    let mut unseen: Vec<String> = servers.remote_job.iter().cloned().collect();
    for job in jobs.clone() {
        unseen.extend(unseen_writes(job));
    }
    unseen.sort();
    unseen.dedup();
    let mut words = Vec::new();
    for server in &servers.addresses {
        let of = |what: &String| format!("{}:{what}", server.name());
        words.extend(
            unseen
                .iter()
                .map(of)
                .filter(|word| !confirmed.contains(word)),
        );
    }
    // Several servers of one machine have one name.
    words.dedup();
    if words.is_empty() {
        return Ok(jobs.filter_map(may_delete).collect());
    }
    let confirm: Vec<String> = words
        .iter()
        .map(|word| format!("  --destroy {}", shell_quote(word)))
        .collect();
    let message = format!(
        "the jobs may write to devices of servers, where Fathom cannot see what they hold: {}\n  to do: look at it there, then confirm it for each server:\n{}",
        unseen.join(", "),
        confirm.join("\n")
    );
    Err(RunError::Refused(message.into()))
}

/// What of a job may be a device that is written to: paths in /dev, those that lead
/// upwards from a folder nobody knows here, and logs that name the targets themselves.
fn unseen_writes(job: &JobSpec) -> Vec<String> {
    let harmless = ["/dev/null", "/dev/zero"].map(Path::new);
    let mut unseen: Vec<String> = targets(job)
        .into_iter()
        .filter(|target| target.writes && may_be_device(&target.path))
        .filter(|target| !harmless.contains(&target.path.as_path()))
        .map(|target| target.path.display().to_string())
        .collect();
    if let (Some(log), None) = (job.value("read_iolog"), job.value("replay_redirect")) {
        unseen.push(log.to_owned());
    }
    unseen
}

/// Whether a path of another machine may lead into its /dev; links are not known here.
fn may_be_device(path: &Path) -> bool {
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !real.pop() => return true,
            Component::ParentDir | Component::CurDir => {}
            other => real.push(other),
        }
    }
    real.starts_with("/dev") && !real.starts_with("/dev/shm")
}

/// A file that a server's fio would delete where it is shorter than a reading job
/// wants it.
fn may_delete(job: &JobSpec) -> Option<String> {
    let reads = !is_write(job) && job.value("filename").is_some();
    let size = job.value("size").or_else(|| job.value("filesize"))?;
    (reads && !size.ends_with('%')).then(|| {
        format!(
            "{}: where {} is shorter than {size} on a server, its fio deletes it and lays it out again; Fathom cannot check",
            job.name,
            job.value("filename").unwrap_or_default()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_may_be_devices_are_known_however_they_are_written() {
        let device = [
            "/dev/sda",
            "//dev/./sda",
            "/mnt/../dev/sda",
            "../dev/sda",
            "a/../../x",
            "/dev/shm/../sda",
        ];
        assert!(device.iter().all(|path| may_be_device(Path::new(path))));
        let files = ["/mnt/x", "x", "a/../x", "/dev/shm/x", "/devices/x"];
        assert!(!files.iter().any(|path| may_be_device(Path::new(path))));
    }
}
