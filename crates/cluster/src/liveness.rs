//! Who has answered when while a phase runs: a pod of a node that has stopped
//! stays "running" for the cluster for minutes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fathom_fleet::kube::KubeError;

use super::error::ClusterError;

/// Stands for the API server among the pods.
pub(super) const API: &str = "the API server";
/// Time between two words with who answers.
const BEAT: Duration = Duration::from_secs(10);
/// Who has not answered for so long is told of: the first time that an answer does
/// not come, which with the time between two words is within half a minute.
const TELL: Duration = Duration::from_secs(10);
/// Who has not answered for so long is given up.
const GIVE_UP: Duration = Duration::from_secs(120);

/// The answers of pods, and of the API server.
#[derive(Debug)]
pub(super) struct Liveness {
    began: Instant,
    of: BTreeMap<String, Answers>,
}

#[derive(Debug)]
struct Answers {
    /// When it was last heard.
    last: Instant,
    /// Why it was not heard since.
    why: Option<String>,
    is_told: bool,
}

impl Liveness {
    pub(super) fn new(began: Instant) -> Self {
        Self {
            began,
            of: BTreeMap::new(),
        }
    }

    /// Whether a pod is to be spoken to: who did not answer, at once again.
    pub(super) fn is_due(&self, pod: &str, now: Instant) -> bool {
        self.of.get(pod).is_none_or(|answers| {
            answers.why.is_some() || now.saturating_duration_since(answers.last) >= BEAT
        })
    }

    pub(super) fn is_silent(&self, pod: &str) -> bool {
        let answers = self.of.get(pod);
        answers.is_some_and(|answers| answers.why.is_some())
    }

    /// That somebody has answered, or why not.
    ///
    /// # Errors
    /// When the run was told to stop meanwhile, or it says far too much.
    pub(super) fn take(
        &mut self,
        who: &str,
        answer: Result<(), KubeError>,
        now: Instant,
    ) -> Result<(), ClusterError> {
        let began = self.began;
        let answers = self.of.entry(who.to_owned()).or_insert(Answers {
            last: began,
            why: None,
            is_told: false,
        });
        match answer {
            Ok(()) => {
                *answers = Answers {
                    last: now,
                    why: None,
                    is_told: false,
                };
            }
            Err(error @ (KubeError::Interrupted | KubeError::TooMuch { .. })) => {
                return Err(error.into());
            }
            Err(error) => answers.why = Some(error.to_string()),
        }
        Ok(())
    }

    /// Who does not answer, each told once.
    ///
    /// # Errors
    /// Who has not answered for too long.
    pub(super) fn news(&mut self, now: Instant) -> Result<Vec<String>, ClusterError> {
        let mut told = Vec::new();
        for (who, answers) in &mut self.of {
            let Some(why) = &answers.why else { continue };
            let silent = now.saturating_duration_since(answers.last);
            let text = format!("{who} has not answered for {} s ({why})", silent.as_secs());
            if silent >= GIVE_UP {
                return Err(ClusterError::Command(format!(
                    "{text}\n  to do: look at its node (kubectl get nodes)"
                )));
            }
            if silent >= TELL && !answers.is_told {
                answers.is_told = true;
                let limit = GIVE_UP.as_secs();
                told.push(format!(
                    "{text}; the run ends after {limit} s without a word"
                ));
            }
        }
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late() -> Result<(), KubeError> {
        Err(KubeError::Late {
            what: "sh in client".to_owned(),
            after: Duration::from_secs(10),
        })
    }

    #[test]
    fn a_node_that_has_stopped_is_told_of_within_half_a_minute_and_given_up() {
        let began = Instant::now();
        let at = |s| began + Duration::from_secs(s);
        let mut heard = Liveness::new(began);
        heard.take("client", Ok(()), at(1)).unwrap();
        // It stops right after it was heard; each answer is waited for 10 s.
        let mut told = Vec::new();
        let mut s = 1;
        let end = loop {
            s += 10;
            heard.take("client", late(), at(s)).unwrap();
            assert!(heard.is_due("client", at(s)), "at once again");
            match heard.news(at(s)) {
                Ok(news) => told.extend(news.into_iter().map(|text| (s, text))),
                Err(end) => break (s, end.to_string()),
            }
        };
        let [(at_s, text)] = &told[..] else {
            panic!("{told:?}")
        };
        assert!(
            *at_s <= 11 && text.starts_with("client has not answered for 10 s"),
            "{told:?}"
        );
        assert!(
            end.0 <= 131 && end.1.contains("client has not answered"),
            "{end:?}"
        );
    }

    #[test]
    fn who_answers_again_is_forgiven() {
        let began = Instant::now();
        let at = |s| began + Duration::from_secs(s);
        let mut heard = Liveness::new(began);
        for s in [20, 50, 80, 110, 140] {
            heard.take(API, late(), at(s)).unwrap();
            assert_eq!(heard.news(at(s)).unwrap().len(), 1, "told anew each time");
            heard.take(API, Ok(()), at(s + 1)).unwrap();
            assert!(!heard.is_silent(API) && !heard.is_due(API, at(s + 2)));
        }
        assert!(heard.is_due(API, at(160)));
    }

    #[test]
    fn an_interrupt_is_not_a_silence() {
        let mut heard = Liveness::new(Instant::now());
        let stopped = heard.take("client", Err(KubeError::Interrupted), Instant::now());
        assert!(matches!(stopped, Err(ClusterError::Interrupted)));
    }
}
