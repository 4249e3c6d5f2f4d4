//! What a run of job files was asked for.

use std::path::PathBuf;
use std::time::Duration;

use fathom_engine_fio::client::Servers;
use fathom_flow::RunOptions;
use serde::{Deserialize, Serialize};

use crate::cmd::hosts::SharedHosts;

/// What a record keeps of a run and other machines are sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobPlan {
    /// Name of the run.
    pub name: String,
    pub files: Vec<JobText>,
    /// fio's own options, without its `--section`.
    pub passed: Vec<String>,
    /// Sections that run; all when empty.
    pub sections: Vec<String>,
    /// What is to be known of it.
    pub notes: Vec<String>,
    /// Time between two samples.
    pub interval: Duration,
    /// Longest time of each job file.
    pub timeout: Option<Duration>,
    /// Relative names are meant from here; `None`: from where it runs.
    pub work_dir: Option<PathBuf>,
    pub options: RunOptions,
    /// The fio servers that run it.
    pub servers: Option<Servers>,
    /// The device that holds all files of the jobs, where it is made ready for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<PathBuf>,
    /// The machines that run each job file together, as somebody decides here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<SharedHosts>,
}

/// One job file of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobText {
    pub name: String,
    /// Its name in the record.
    pub file_name: String,
    /// As it is run.
    pub text: String,
}
