//! Some I/Os of the job failed, it went on, and they are counted as done.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// One is enough: fio counts what failed among what it completed (`io_u.c`,
/// `account_io_completion`), the native engine does not.
pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let errors = figure.job.total_errors.filter(|&errors| errors > 0)?;
    if figure.doc.engine == "native" {
        return None;
    }
    let text = format!(
        "{errors} I/Os failed and the job went on, and fio counts them as done, which makes its rates too high"
    );
    let kind = ReasonKind::FailedIosCounted;
    Some(VerdictReason::found(
        kind,
        text,
        [("failed_ios", errors as f64)],
    ))
}
