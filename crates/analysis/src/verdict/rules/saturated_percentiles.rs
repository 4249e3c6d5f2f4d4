//! A latency lies in or beyond the last bucket of fio's histogram.

use fathom_model::histogram::FIO_SATURATION_NS;
use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// The threshold is fio's own: `FIO_IO_U_PLAT_NR` buckets (stat.h) end at 2^34 ns.
pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let result = figure.result;
    let latencies = [&result.lag, &result.slat, &result.clat, &result.lat]
        .into_iter()
        .flatten();
    let is_beyond = latencies
        .into_iter()
        .any(|latency| latency.max_ns >= FIO_SATURATION_NS - 1);
    (is_beyond && figure.doc.engine == "fio")
        .then(|| VerdictReason::of(ReasonKind::SaturatedPercentiles))
}
