//! Whether a phase has written what later phases read: what was never written is
//! read without asking the storage, and the figures would say so much more.

use std::collections::BTreeMap;

use fathom_model::{Results, units};

/// Bytes that each server has written, by its name in the figures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WrittenBytes(BTreeMap<String, u64>);

impl WrittenBytes {
    /// Adds the figures of a phase.
    pub(super) fn take(&mut self, results: &Results) {
        // fio's sum of all clients carries the name of the last one.
        let jobs = results.jobs.iter().filter(|job| job.name != "All clients");
        for job in jobs {
            let host = job.hostname.clone().unwrap_or_default();
            let bytes = job.write.as_ref().map_or(0, |write| write.io_bytes);
            *self.0.entry(host).or_default() += bytes;
        }
    }

    /// What is missing of `bytes` on each of the servers, which are named by how
    /// the figures and how people call them.
    pub(super) fn missing<'s>(
        &self,
        bytes: u64,
        servers: impl Iterator<Item = (&'s str, &'s str)>,
    ) -> Vec<String> {
        let of = |name: &str| self.0.get(name).copied().unwrap_or(0);
        let short = servers.filter(|(name, _)| of(name) < bytes);
        short
            .map(|(name, pod)| {
                let (written, all) = (units::bytes(of(name) as f64), units::bytes(bytes as f64));
                format!("{pod} wrote {written} of {all}")
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::{DirectionResult, JobResult};

    #[test]
    fn a_server_that_wrote_less_is_named() {
        let job = |name: &str, host: &str, io_bytes| JobResult {
            name: name.into(),
            hostname: Some(host.into()),
            write: Some(DirectionResult {
                io_bytes,
                ..DirectionResult::default()
            }),
            ..JobResult::default()
        };
        let mut written = WrittenBytes::default();
        let jobs = vec![
            job("a", "1.1.1.1", 1 << 30),
            job("a", "1.1.1.2", 1 << 29),
            job("a", "1.1.1.1", 1 << 30),
            job("All clients", "1.1.1.2", 5 << 29),
        ];
        written.take(&Results {
            jobs,
            ..Results::default()
        });
        let servers = [("1.1.1.1", "s-0"), ("1.1.1.2", "s-1"), ("1.1.1.3", "s-2")];
        let missing = written.missing(2 << 30, servers.into_iter());
        assert_eq!(
            missing,
            ["s-1 wrote 512 MiB of 2 GiB", "s-2 wrote 0 B of 2 GiB"]
        );
    }
}
