//! The jobs of a run as members: clones, their groups, what each waits for.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use fathom_model::{Failure, JobSpec};

use super::files::{self, FilePlace, MemberFiles};
use super::iolog_file::IssuedIo;
use super::job::NativeJob;
use super::prio::PriorityDraw;
use super::replay;
use super::ring::{Logged, Ring};
use super::rng::mix;
use super::stats::WorkerStats;
use super::worker::{FlowGroup, FlowShare};
use super::zbd::ZonedDevices;

/// One clone of one job: one worker.
pub(super) struct Member {
    pub(super) job: Arc<NativeJob>,
    pub(super) spec: Arc<JobSpec>,
    /// Place of its section among the jobs, and its number among the clones.
    pub(super) section: usize,
    pub(super) clone: u32,
    /// Reporting group, from 0.
    pub(super) group: u32,
    /// Members before this place must have ended before it starts (stonewall).
    pub(super) after: usize,
    pub(super) plan: Result<Arc<MemberFiles>, Failure>,
    pub(super) classes: Arc<PriorityDraw>,
    pub(super) stats: Arc<WorkerStats>,
    pub(super) seed: u64,
    /// Tells the worker to end.
    pub(super) stop: Arc<AtomicBool>,
    /// Its part of a flow, until its worker has it.
    pub(super) flow: Mutex<Option<FlowShare>>,
    /// Where the worker leaves its I/Os for the logs.
    pub(super) ring: Option<Arc<Ring<Logged>>>,
    /// The same for write_iolog.
    pub(super) iolog: Option<Arc<Ring<IssuedIo>>>,
}

/// Members that report as one.
#[derive(Debug, Clone)]
pub(super) struct ReportUnit {
    pub(super) name: String,
    pub(super) members: Vec<usize>,
}

/// All members in the order of the job file.
pub(super) fn expand(
    jobs: &[(JobSpec, NativeJob)],
    place: &FilePlace,
    entropy: u64,
) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    let (mut group, mut after) = (0, 0);
    let mut zoned = ZonedDevices::default();
    let mut flows: BTreeMap<u64, Arc<FlowGroup>> = BTreeMap::new();
    for (section, (spec, job)) in jobs.iter().enumerate() {
        // init.c, add_job: a wall or new_group begins a group, unless it is the first job.
        if (job.order.stonewall || job.order.new_group) && !members.is_empty() {
            group += 1;
        }
        if job.order.stonewall {
            after = members.len();
        }
        let (job, spec) = (Arc::new(job.clone()), Arc::new(spec.clone()));
        // init.c, setup_random_seeds: whoever gives a seed wants its sequence again.
        let seed = match (job.pattern.seed, job.pattern.repeatable) {
            (Some(seed), _) => seed,
            (None, true) => 0,
            (None, false) => entropy,
        };
        for clone in 0..job.order.clones {
            let seed = mix(mix(seed, section as u64), u64::from(clone));
            let (job, plan) = planned(&job, &spec, clone, place, mix(seed, 6), &mut zoned);
            let classes = Arc::new(PriorityDraw::new(&job));
            let stats = WorkerStats::new(&job, classes.values().len(), job.depth() as usize);
            members.push(Member {
                plan: plan.map(Arc::new),
                seed,
                stop: Arc::default(),
                flow: Mutex::new((job.pace.flow > 0).then(|| {
                    let group = flows.entry(job.pace.flow_id).or_default();
                    FlowShare::join(group, job.pace.flow)
                })),
                ring: job.logs.any().then(|| Arc::new(Ring::new())),
                iolog: job.logs.iolog.as_ref().map(|_| Arc::new(Ring::new())),
                job,
                spec: Arc::clone(&spec),
                section,
                clone,
                group,
                after,
                classes,
                stats: Arc::new(stats),
            });
        }
    }
    members
}

/// The job of a clone, which a log that it replays makes another, and its files.
fn planned(
    job: &Arc<NativeJob>,
    spec: &JobSpec,
    clone: u32,
    place: &FilePlace,
    seed: u64,
    zoned: &mut ZonedDevices,
) -> (Arc<NativeJob>, Result<MemberFiles, Failure>) {
    if job.replay.logs.is_empty() {
        return (Arc::clone(job), files::plan(job, clone, place, seed, zoned));
    }
    match replay::prepare(job, spec, clone, place) {
        Ok((replayed, plan)) => (Arc::new(replayed), Ok(plan)),
        Err(failure) => (Arc::clone(job), Err(failure)),
    }
}

/// What reports together: with group_reporting the members of a group.
pub(super) fn units(members: &[Member]) -> Vec<ReportUnit> {
    let mut units: Vec<ReportUnit> = Vec::new();
    for (place, member) in members.iter().enumerate() {
        let last = units.last_mut().filter(|unit| {
            let first = &members[unit.members[0]];
            member.job.show.group && first.job.show.group && first.group == member.group
        });
        match last {
            Some(unit) => unit.members.push(place),
            None => units.push(ReportUnit {
                name: member.job.name.clone(),
                members: vec![place],
            }),
        }
    }
    units
}
