//! Tasks waited for a CPU, or the hypervisor had it.

use fathom_model::{EvidenceSum, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// Share of the time in which a task that could run had no CPU (pressure stall
/// information, Documentation/accounting/psi.rst). A task that wakes another one on its
/// own CPU waits some µs for it, so that a little is always there: 10 % is where a
/// completion waits for a CPU as often as one in ten.
const WAITING_SHARE: f64 = 0.10;
/// Share of all CPU time that the hypervisor took (`steal` of proc_stat(5)): what two
/// runs differ by.
const STEAL_SHARE: f64 = 0.05;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    let steal = steal_share(evidence).unwrap_or(0.0);
    let waiting = evidence.count("pressure.cpu_some_us");
    let waiting = waiting.map_or(0.0, |us| {
        us as f64 / 1000.0 / evidence.span_ms.max(1) as f64
    });
    let numbers = [
        ("steal_percent", steal * 100.0),
        ("waiting_percent", waiting * 100.0),
    ];
    let text = if steal >= STEAL_SHARE {
        format!(
            "the hypervisor took {:.0} % of the CPU time away",
            steal * 100.0
        )
    } else if waiting >= WAITING_SHARE {
        format!(
            "for {:.0} % of the time tasks waited for a CPU",
            waiting * 100.0
        )
    } else {
        return None;
    };
    Some(VerdictReason::found(ReasonKind::CpuTaken, text, numbers))
}

fn steal_share(evidence: &EvidenceSum) -> Option<f64> {
    let all = [
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    ];
    let ms = |name: &str| evidence.count(&format!("cpu.{name}_ms"));
    let sum: u64 = all.iter().filter_map(|name| ms(name)).sum();
    (sum > 0).then_some(ms("steal")? as f64 / sum as f64)
}
