//! A gate: whether conditions on comparisons hold, or cannot be judged. What could not be
//! judged has not passed.

use fathom_analysis::compare::{CompareVerdict, FigureComparison, WhyNot};
use serde::Serialize;

use crate::compare::{CompareCondition, CompareDocument, CompareRow};

/// Most reasons that are told one by one.
const REASONS_TOLD: usize = 20;

/// What a gate came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateResult {
    /// No condition holds.
    Passed,
    /// A condition holds.
    Regressed,
    /// No condition holds for certain, and one may: figures are missing or not clear.
    CannotJudge,
}

/// What a gate came to, and why.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Gate {
    /// The result.
    pub result: GateResult,
    /// What holds, or what is missing, a sentence each.
    pub reasons: Vec<String>,
    /// Whether any figure could be compared at all.
    pub has_common: bool,
}

/// How a condition stands with a figure.
enum Standing {
    Holds,
    Clear,
    /// It may hold or not.
    Open,
}

impl Gate {
    /// Judges conditions by the figures that both sides have, each with its name; `missing`
    /// says what one side lacks, or all of them.
    pub fn of(
        conditions: &[CompareCondition],
        rows: &[(String, FigureComparison)],
        missing: Vec<String>,
    ) -> Self {
        let (mut holds, mut open) = (Vec::new(), Vec::new());
        for (name, found) in rows {
            for condition in conditions {
                match condition.stands(found) {
                    Standing::Holds => holds.push(format!("{name} is {}", said(found))),
                    Standing::Open => open.push(format!("{name}: {}", why(found))),
                    Standing::Clear => {}
                }
            }
        }
        open.extend(missing);
        let (result, mut reasons) = match (holds.is_empty(), open.is_empty()) {
            (false, _) => (GateResult::Regressed, holds),
            (true, false) => (GateResult::CannotJudge, open),
            (true, true) => (GateResult::Passed, Vec::new()),
        };
        reasons.dedup();
        let more = reasons.len().saturating_sub(REASONS_TOLD);
        reasons.truncate(REASONS_TOLD);
        if more > 0 {
            reasons.push(format!("and {more} more"));
        }
        Self {
            result,
            reasons,
            has_common: !rows.is_empty(),
        }
    }

    /// The gate of a comparison.
    pub fn of_comparison(conditions: &[CompareCondition], doc: &CompareDocument) -> Self {
        let named = |row: &CompareRow| {
            let name = format!("{} {}", crate::compare::title(row), row.figure.name());
            (name, row.comparison)
        };
        let (renamed, common): (Vec<_>, Vec<_>) = doc.rows.iter().partition(|row| row.is_renamed);
        let rows: Vec<_> = common.into_iter().map(named).collect();
        let mut missing = crate::compare::unmatched(doc);
        let names = renamed.iter().map(|row| {
            let jobs = &row.job;
            format!("the job has another name on each side: {jobs}")
        });
        missing.extend(names);
        missing.dedup();
        if rows.is_empty() {
            missing.insert(0, "no job is in both sides".to_owned());
        }
        Self::of(conditions, &rows, missing)
    }

    /// Whether it lets pass; `allow_inconclusive`: also what cannot be judged, as long as
    /// anything could be compared.
    pub fn passes(&self, allow_inconclusive: bool) -> bool {
        match self.result {
            GateResult::Passed => true,
            GateResult::Regressed => false,
            GateResult::CannotJudge => allow_inconclusive && self.has_common,
        }
    }

    /// Its line in a text, which comes first.
    pub fn line(&self) -> String {
        let why = self.reasons.join("; ");
        match self.result {
            GateResult::Passed => "passed".to_owned(),
            GateResult::Regressed => format!("regressed: {why}"),
            GateResult::CannotJudge => format!("cannot judge: {why}"),
        }
    }
}

fn said(found: &FigureComparison) -> String {
    let verdict = match found.verdict {
        CompareVerdict::Faster => "faster",
        CompareVerdict::Slower => "slower",
        CompareVerdict::Same => "the same",
        CompareVerdict::CannotTell => return "not clear".to_owned(),
    };
    match found.ratio {
        Some(ratio) => format!("{verdict} ({:+.1} %)", 100.0 * (ratio - 1.0)),
        None => verdict.to_owned(),
    }
}

/// Why a figure cannot be judged, or not be told apart from the limit.
fn why(found: &FigureComparison) -> String {
    let more = match found.more_runs {
        Some(more) => format!("; {more} more of each side would probably tell"),
        None => String::new(),
    };
    let why = match (found.why_not, found.ratio_low, found.ratio_high) {
        (Some(WhyNot::SpreadUnknown), ..) => "one run of each side does not tell".to_owned(),
        (Some(WhyNot::Drift), ..) => "it drifts".to_owned(),
        (Some(WhyNot::Invalid), ..) => "it is missing or not valid on one side".to_owned(),
        (_, Some(low), Some(high)) => {
            let percent = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
            format!("between {} and {}", percent(low), percent(high))
        }
        _ => "the runs of a side differ by too much".to_owned(),
    };
    why + &more
}

impl CompareCondition {
    /// A size is judged by the whole interval: it holds beyond its nearest end, and does
    /// not hold before its farthest.
    fn stands(&self, found: &FigureComparison) -> Standing {
        if self.holds_for(found) {
            return Standing::Holds;
        }
        match (self.verdict, found.verdict) {
            (CompareVerdict::CannotTell, _) | (_, CompareVerdict::Same) => Standing::Clear,
            (CompareVerdict::Same, CompareVerdict::Faster | CompareVerdict::Slower) => {
                Standing::Clear
            }
            (CompareVerdict::Faster, CompareVerdict::Slower)
            | (CompareVerdict::Slower, CompareVerdict::Faster) => Standing::Clear,
            _ => match (found.ratio_low, found.ratio_high) {
                (Some(low), Some(high)) if self.beyond > 0.0 => {
                    let within = low >= 1.0 - self.beyond && high <= 1.0 + self.beyond;
                    if within {
                        Standing::Clear
                    } else {
                        Standing::Open
                    }
                }
                _ => Standing::Open,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(verdict: CompareVerdict, interval: Option<(f64, f64)>) -> FigureComparison {
        let (low, high) = interval.unzip();
        FigureComparison {
            a: Some(100.0),
            b: Some(100.0),
            ratio: low.zip(high).map(|(low, high)| (low + high) / 2.0),
            ratio_low: low,
            ratio_high: high,
            verdict,
            why_not: interval.is_none().then_some(WhyNot::SpreadUnknown),
            more_runs: None,
        }
    }

    use GateResult::{CannotJudge, Passed, Regressed};

    /// What each condition comes to with each of the [`figures`].
    const STANDINGS: [(&str, [GateResult; 8]); 5] = [
        (
            "slower > 5%",
            [
                Regressed,
                Passed,
                CannotJudge,
                Passed,
                Passed,
                CannotJudge,
                Passed,
                CannotJudge,
            ],
        ),
        (
            "slower",
            [
                Regressed,
                Regressed,
                Regressed,
                Passed,
                Passed,
                CannotJudge,
                CannotJudge,
                CannotJudge,
            ],
        ),
        (
            "faster",
            [
                Passed,
                Passed,
                Passed,
                Regressed,
                Passed,
                CannotJudge,
                CannotJudge,
                CannotJudge,
            ],
        ),
        (
            "same",
            [
                Passed,
                Passed,
                Passed,
                Passed,
                Regressed,
                CannotJudge,
                CannotJudge,
                CannotJudge,
            ],
        ),
        (
            "cannot_tell",
            [
                Passed, Passed, Passed, Passed, Passed, Regressed, Regressed, Regressed,
            ],
        ),
    ];

    /// Every way in which a figure can stand.
    fn figures() -> [FigureComparison; 8] {
        use CompareVerdict::{CannotTell, Faster, Same, Slower};
        [
            found(Slower, Some((0.85, 0.90))),
            found(Slower, Some((0.96, 0.98))),
            found(Slower, Some((0.93, 0.97))),
            found(Faster, Some((1.1, 1.2))),
            found(Same, Some((0.99, 1.01))),
            found(CannotTell, Some((0.9, 1.1))),
            found(CannotTell, Some((0.97, 1.03))),
            found(CannotTell, None),
        ]
    }

    #[test]
    fn what_cannot_be_judged_does_not_pass() {
        let same = figures()[4];
        for (condition, results) in STANDINGS {
            for (found, expected) in figures().into_iter().zip(results) {
                let conditions = [condition.parse().unwrap()];
                let gate = Gate::of(&conditions, &[("a read IOPS".into(), found)], Vec::new());
                assert_eq!(gate.result, expected, "{condition}: {found:?}");
                assert_eq!(gate.passes(false), expected == Passed);
                assert_eq!(gate.passes(true), expected != Regressed);
                assert_eq!(gate.reasons.is_empty(), expected == Passed);
            }
            let conditions = [condition.parse().unwrap()];
            let nothing = Gate::of(&conditions, &[], vec!["only A has x".into()]);
            assert_eq!(nothing.result, CannotJudge);
            assert!(!nothing.passes(true), "{condition}: nothing in common");
            let rows = [("a read IOPS".to_owned(), same)];
            let missing = Gate::of(&conditions, &rows, vec!["only A has b write".into()]);
            let expected = if condition == "same" {
                Regressed
            } else {
                CannotJudge
            };
            assert_eq!(missing.result, expected, "{condition}");
        }
    }
}
