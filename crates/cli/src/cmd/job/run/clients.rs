//! `--client`: the fio servers that run the jobs.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_engine::fio::client::Servers;
use fathom_engine::fio::client::address::{self, Address};
use fathom_engine::jobfile::targets;
use fathom_model::Exit;

use super::Args;
use super::plan::Step;
use crate::cmd::ExitError;

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
    /// Go on when machines are lost, as long as so many take part to the end
    /// [default: all]
    #[arg(long, value_name = "N", visible_alias = "min-hosts")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub min_clients: Option<u32>,
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
            let exit = Exit::Usage;
            return Err(ExitError { exit, message }.into());
        }
        return Ok((None, files));
    }
    let (behind, hosts): (Vec<String>, Vec<String>) = given
        .client
        .iter()
        .cloned()
        .partition(|value| is_job_file(value));
    files.extend(behind.into_iter().map(PathBuf::from));
    let wrong = |message: String| ExitError {
        exit: Exit::Usage,
        message,
    };
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

/// Refuses to write to devices of servers that are not confirmed one by one:
/// Fathom cannot look at what they hold.
pub fn check_devices(
    servers: &[Address],
    steps: &[Step],
    confirmed: &[String],
) -> anyhow::Result<()> {
    let mut refusals = Vec::new();
    let jobs = steps.iter().flat_map(|step| &step.jobs);
    let written = jobs.flat_map(targets).filter(|target| target.writes);
    let mut devices: Vec<String> = written
        .filter(|target| target.path.starts_with("/dev"))
        .map(|target| target.path.display().to_string())
        .filter(|path| !["/dev/null", "/dev/zero"].contains(&path.as_str()))
        .collect();
    devices.sort();
    devices.dedup();
    for device in &devices {
        for server in servers {
            let words = format!("{}:{device}", server.name());
            if !confirmed.contains(&words) {
                refusals.push(format!("  --destroy {words}"));
            }
        }
    }
    if refusals.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the jobs write to {} on servers, where Fathom cannot see what it holds\n  to do: look at it there, then confirm it for each server:\n{}",
        devices.join(", "),
        refusals.join("\n")
    );
    Err(ExitError {
        exit: Exit::Refused,
        message,
    }
    .into())
}
