//! I/Os that begin at times of their own, whether the device keeps up or not.

use std::time::Duration;

use fathom_jobfile::spec::{self, JobWorkload};
use fathom_model::JobSpec;
use fathom_model::value;

use super::device::IntervalService;

/// Nearer to its most a queue is taken for so full that the rest shows in what is left
/// behind.
const BUSY_MOST: f64 = 0.99;

/// The rate of a job, and what the device has not done of it.
#[derive(Debug)]
pub(super) struct OfferedRate {
    /// I/Os per second of all directions and clones.
    iops: f64,
    /// Share of the reads among them.
    pub(super) reads: f64,
    /// I/Os that were to begin and have not been done.
    behind: f64,
}

impl OfferedRate {
    /// `rate_iops` of a job, where it has one for each direction that it uses.
    ///
    /// # Errors
    /// That it cannot be read.
    pub(super) fn of(
        spec: &JobSpec,
        rw: &JobWorkload,
        clones: u64,
    ) -> Result<Option<Self>, String> {
        let Some(text) = spec::option(spec, "rate_iops").and_then(|it| it.value.as_deref()) else {
            return Ok(None);
        };
        let base = spec::base(spec);
        let rates = value::triple(text, |part| value::size(part, base));
        let rates = rates.map_err(|_| "does not understand its rate_iops".to_owned())?;
        let of = |is_used: bool, rate: Option<i64>| match (is_used, rate.unwrap_or(0)) {
            (false, _) => Some(0.0),
            // 0 is no rate (fio's HOWTO).
            (true, rate) => (rate > 0).then_some(rate as f64 * clones as f64),
        };
        let each = of(rw.reads, rates[0]).zip(of(rw.writes, rates[1]));
        Ok(each.map(|(reads, writes)| Self {
            iops: reads + writes,
            reads: reads / (reads + writes),
            behind: 0.0,
        }))
    }

    /// I/Os per second that are done of it by a device that does `most`.
    pub(super) fn done(&self, most: f64) -> f64 {
        match self.behind > 0.0 {
            true => most,
            false => self.iops.min(most),
        }
    }

    /// What becomes of it in a time in which the device does `most` I/Os per second at
    /// the most, one alone in `alone_ns`, `parallel` of them side by side.
    pub(super) fn serve(
        &mut self,
        most: f64,
        alone_ns: f64,
        parallel: f64,
        span: Duration,
    ) -> IntervalService {
        let seconds = span.as_secs_f64();
        let before = self.behind;
        let all = before + self.iops * seconds;
        let done = all.min(most * seconds);
        self.behind = all - done;
        let late_s = match most > 0.0 {
            true => (before + self.behind) / 2.0 / most,
            false => 0.0,
        };
        let queue_ns = waiting(self.iops / most.max(f64::MIN_POSITIVE), parallel) * alone_ns;
        IntervalService {
            iops: done / seconds.max(f64::MIN_POSITIVE),
            latency_ns: alone_ns + queue_ns + late_s * 1e9,
        }
    }
}

/// Mean wait in a queue with so many servers, in times of service (Sakasegawa, Annals of
/// the Institute of Statistical Mathematics 29, 1977).
fn waiting(busy: f64, servers: f64) -> f64 {
    let busy = busy.min(BUSY_MOST);
    let servers = servers.max(1.0);
    busy.powf((2.0 * (servers + 1.0)).sqrt() - 1.0) / (servers * (1.0 - busy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_the_load_and_one_server_waits_as_the_formula_says() {
        assert!((waiting(0.5, 1.0) - 1.0).abs() < 1e-9);
        assert!((waiting(0.9, 1.0) - 9.0).abs() < 1e-9);
        assert!(waiting(0.9, 8.0) < waiting(0.9, 1.0));
        assert!(waiting(3.0, 1.0).is_finite());
    }

    #[test]
    fn what_the_device_does_not_do_waits_longer_and_longer() {
        let mut rate = OfferedRate {
            iops: 1200.0,
            reads: 1.0,
            behind: 0.0,
        };
        let second = Duration::from_secs(1);
        let served = [(); 3].map(|()| rate.serve(1000.0, 1e6, 1.0, second));
        assert!(served.iter().all(|it| (it.iops - 1000.0).abs() < 1e-9));
        assert!(
            served
                .windows(2)
                .all(|two| two[1].latency_ns > two[0].latency_ns + 1e8)
        );
        assert!((rate.done(1000.0), rate.behind) == (1000.0, 600.0));
    }
}
