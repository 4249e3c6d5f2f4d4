//! Machines that run each job file together while this one decides what comes next.

use std::collections::BTreeSet;

use fathom_engine::{Control, Request};
use fathom_fleet::hosts::HostsJob;
use fathom_fleet::hosts::engine::HostsEngine;
use fathom_flow::RunOptions;
use serde::{Deserialize, Serialize};

use super::{HostArgs, HostVariables, connections, may_have_open, refuse, usage};
use crate::cmd::dry::{DryHosts, DryRun};
use crate::cmd::job::request::{JobPlan, JobText};
use crate::cmd::planned::sent;

/// The machines of a plan whose steps are decided here, from the figures of all.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SharedHosts {
    /// As ssh takes them.
    pub names: Vec<String>,
    /// Whether one of them may take part under several names.
    pub allow_same_host: bool,
    /// What each is told of the variables of the job files.
    pub variables: HostVariables,
}

impl SharedHosts {
    /// Those that a command line names, if it names any.
    ///
    /// # Errors
    /// What makes no sense on several machines.
    pub fn of(args: &HostArgs, options: &RunOptions) -> anyhow::Result<Option<Self>> {
        if !args.is_given() {
            return Ok(None);
        }
        if options.is_simulated() {
            return Err(usage("a simulation needs no other machines"));
        }
        refuse(&[(
            args.min_hosts.is_some(),
            "--min-hosts makes no sense here: measurements of some machines and of all are compared with each other",
        )])?;
        let (names, _) = args.names()?;
        Ok(Some(Self {
            variables: args.variables()?,
            names,
            allow_same_host: args.allow_same_host,
        }))
    }

    /// How many they are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    /// With the values that are sent of the variables that job files name.
    pub fn knowing(mut self, named: &BTreeSet<String>) -> Self {
        self.variables = self.variables.sent(&self.names, named);
        self
    }

    /// Refuses to go on with others.
    ///
    /// # Errors
    /// That these are not those of the record.
    pub fn must_be(&self, args: &HostArgs) -> anyhow::Result<()> {
        let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
        match !args.is_given() || sorted(&args.names()?.0) == sorted(&self.names) {
            true => Ok(()),
            false => Err(usage(format!(
                "the record is of {}: figures of other machines cannot be compared with theirs",
                self.names.join(", ")
            ))),
        }
    }

    /// Shows how each is reached, in a dry run of what they do together.
    ///
    /// # Errors
    /// When the document cannot hold it.
    pub fn tell(&self, dry: &mut DryRun<'_>) -> anyhow::Result<()> {
        let words = ["fathom", "agent"].map(str::to_owned).to_vec();
        let variables = self.variables.clone().into_map();
        connections(dry, &self.names, &words, &variables);
        dry.document.hosts = Some(DryHosts {
            hosts: self.names.clone(),
            command: words,
            plan: serde_json::Value::Null,
            variables: serde_json::to_value(&variables)?,
            files: Vec::new(),
        });
        Ok(())
    }

    /// They as what runs the job files of a plan.
    ///
    /// # Errors
    /// When there are more than this process may have connections to.
    pub fn engine(&self, plan: &JobPlan) -> anyhow::Result<HostsEngine> {
        may_have_open(self.names.len())?;
        let engine = plan.options.engine();
        let names = self.names.clone();
        let job = HostsJob {
            least: names.len(),
            allow_same_host: self.allow_same_host,
            variables: self.variables.clone().into_map(),
            ..HostsJob::default()
        };
        let each = JobPlan {
            // Of all of them together, and told here.
            options: plan.options.of_part(),
            notes: Vec::new(),
            work_dir: None,
            hosts: None,
            ..plan.clone()
        };
        let plan_of = move |request: &Request, name: &str, text: String| {
            let file = JobText {
                name: name.to_owned(),
                file_name: format!("{name}.fio"),
                text,
            };
            sent(&JobPlan {
                name: name.to_owned(),
                files: vec![file],
                interval: request.interval,
                timeout: request.deadline,
                ..each.clone()
            })
        };
        let connect = move |control: &Control| fathom_fleet::ssh::connect(&names, control);
        Ok(HostsEngine::new(
            engine.name(),
            job,
            Box::new(plan_of),
            Box::new(connect),
        ))
    }
}
