//! What nodes did in the steps of a run, from the samples of each.

use std::collections::BTreeMap;

use fathom_model::node::{
    CpuTime, DeviceCounts, DeviceUse, FigureRange, InterfaceUse, Memory, ProcessUse,
};
use fathom_model::{Entry, Event, NodeSample, NodeUse};

/// Devices, interfaces and processes that are told of: of a node with hundreds
/// of disks the others are in the record.
const MOST: usize = 8;

/// The time in which a step's jobs ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepWindow {
    /// The step; `None` where the run has none.
    pub step: Option<String>,
    /// Begin, ms since 1970 UTC.
    pub begin_ms: u64,
    /// End.
    pub end_ms: u64,
}

impl StepWindow {
    /// Whether more than half of a sample lies in it.
    pub fn has(&self, sample: &NodeSample) -> bool {
        let begin_ms = sample.at_ms.saturating_sub(sample.span_ms);
        let within = (sample.at_ms.min(self.end_ms)).saturating_sub(begin_ms.max(self.begin_ms));
        within * 2 > sample.span_ms
    }
}

/// The windows of a run, from its events: a step's begins with its engine and
/// ends with its figures. What stands before and behind is preparation.
#[derive(Debug, Clone, Default)]
pub struct Windows {
    done: Vec<StepWindow>,
    current: Option<StepWindow>,
    /// The engine of the current one has started.
    started: bool,
    /// The current one has ended.
    closed: bool,
}

impl Windows {
    /// Takes the next event.
    pub fn take(&mut self, entry: &Entry) {
        let at_ms = entry.at_ms;
        match &entry.event {
            Event::Step { of, name, .. } => {
                self.done.extend(self.current.take());
                self.current = Some(StepWindow {
                    step: (*of > 1).then(|| name.clone()),
                    begin_ms: at_ms,
                    end_ms: at_ms,
                });
                (self.started, self.closed) = (false, false);
            }
            // On several machines it starts several times.
            Event::EngineStarted { .. } if !self.started => {
                if let Some(window) = &mut self.current {
                    (window.begin_ms, window.end_ms) = (at_ms, at_ms);
                }
                self.started = true;
            }
            event => {
                if let Some(window) = self.current.as_mut().filter(|_| !self.closed) {
                    window.end_ms = at_ms;
                }
                self.closed |= matches!(event, Event::Finished { .. });
            }
        }
    }

    /// All of them.
    pub fn finish(mut self) -> Vec<StepWindow> {
        self.done.extend(self.current);
        self.done
    }
}

/// Adds an interval to the one before it.
pub fn then(sample: &mut NodeSample, next: &NodeSample) {
    sample.at_ms = next.at_ms;
    sample.span_ms += next.span_ms;
    let (cpu, more) = (&mut sample.cpu, &next.cpu);
    cpu.user_ms += more.user_ms;
    cpu.system_ms += more.system_ms;
    cpu.iowait_ms += more.iowait_ms;
    cpu.steal_ms += more.steal_ms;
    cpu.idle_ms += more.idle_ms;
    sample.memory = next.memory;
    for more in &next.devices {
        match sample.devices.iter_mut().find(|one| one.name == more.name) {
            Some(one) => add(one, more),
            None => sample.devices.push(more.clone()),
        }
    }
    for more in &next.interfaces {
        match sample
            .interfaces
            .iter_mut()
            .find(|one| one.name == more.name)
        {
            Some(one) => {
                one.rx_bytes += more.rx_bytes;
                one.tx_bytes += more.tx_bytes;
            }
            None => sample.interfaces.push(more.clone()),
        }
    }
    for more in &next.processes {
        let same = |one: &&mut fathom_model::node::ProcessTime| {
            one.pid == more.pid && one.name == more.name
        };
        match sample.processes.iter_mut().find(same) {
            Some(one) => one.cpu_ms += more.cpu_ms,
            None => sample.processes.push(more.clone()),
        }
    }
}

fn add(one: &mut DeviceCounts, more: &DeviceCounts) {
    one.read_ios += more.read_ios;
    one.read_bytes += more.read_bytes;
    one.read_ms += more.read_ms;
    one.write_ios += more.write_ios;
    one.write_bytes += more.write_bytes;
    one.write_ms += more.write_ms;
    one.busy_ms += more.busy_ms;
    one.queue_ms += more.queue_ms;
}

/// A part of the CPUs' time in percent.
pub fn percent(part_ms: u64, cpu: &CpuTime) -> f64 {
    match cpu.total_ms() {
        0 => 0.0,
        total_ms => part_ms as f64 * 100.0 / total_ms as f64,
    }
}

/// A count of an interval in one second.
pub fn a_second(count: u64, span_ms: u64) -> f64 {
    match span_ms {
        0 => 0.0,
        span_ms => count as f64 * 1000.0 / span_ms as f64,
    }
}

/// Share of an interval in which a device was busy, in percent. The kernel counts
/// whole ticks, so that it can come to a little more than all.
pub fn util_percent(device: &DeviceCounts, span_ms: u64) -> f64 {
    (a_second(device.busy_ms, span_ms) / 10.0).min(100.0)
}

/// The lowest and the highest of a figure, and in how many intervals it was there.
#[derive(Debug, Clone, Copy)]
struct LowHigh {
    least: f64,
    most: f64,
    n: u32,
}

impl Default for LowHigh {
    fn default() -> Self {
        Self {
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
            n: 0,
        }
    }
}

impl LowHigh {
    fn add(&mut self, value: f64) {
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        self.n += 1;
    }
}

/// What a node did in one window.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    samples: u32,
    missed: u32,
    /// All intervals as one.
    all: NodeSample,
    /// Extents by name of the figure, and of what it is.
    extents: BTreeMap<(&'static str, String), LowHigh>,
    /// Sums of memory figures times their ms: they hold for their interval.
    memory: BTreeMap<&'static str, f64>,
}

/// The figures of memory with their names.
fn figures(memory: &Memory) -> [(&'static str, u64); 3] {
    [
        ("available", memory.available_bytes),
        ("cache", memory.page_cache_bytes),
        ("dirty", memory.dirty_bytes),
    ]
}

impl Summary {
    /// Counts that the node could not be read once.
    pub fn miss(&mut self) {
        self.missed += 1;
    }

    /// Adds an interval.
    pub fn take(&mut self, sample: &NodeSample) {
        let span_ms = sample.span_ms;
        let cpu = &sample.cpu;
        let has_cpu = cpu.total_ms() > 0;
        for (figure, part_ms) in parts(cpu).into_iter().filter(|_| has_cpu) {
            self.see(figure, "", percent(part_ms, cpu));
        }
        let has_memory = sample.memory.total_bytes > 0;
        for (figure, bytes) in figures(&sample.memory).into_iter().filter(|_| has_memory) {
            self.see(figure, "", bytes as f64);
            *self.memory.entry(figure).or_default() += bytes as f64 * span_ms as f64;
        }
        for device in &sample.devices {
            for (figure, value) in rates(device, span_ms) {
                self.see(figure, &device.name, value);
            }
            for (figure, value) in waits(device) {
                if let Some(value) = value {
                    self.see(figure, &device.name, value);
                }
            }
        }
        for one in &sample.interfaces {
            self.see("rx", &one.name, a_second(one.rx_bytes, span_ms));
            self.see("tx", &one.name, a_second(one.tx_bytes, span_ms));
        }
        self.samples += 1;
        then(&mut self.all, sample);
    }

    fn see(&mut self, figure: &'static str, of: &str, value: f64) {
        let extent = self.extents.entry((figure, of.to_owned())).or_default();
        extent.add(value);
    }

    /// The figure over all intervals in which it is known.
    fn range(&self, figure: &'static str, of: &str, mean: f64) -> Option<FigureRange> {
        let extent = self.extents.get(&(figure, of.to_owned()))?;
        Some(FigureRange {
            mean,
            min: extent.least,
            max: extent.most,
        })
    }

    /// A rate of what is in a sample only when it did something: it was 0 in the
    /// others.
    fn rate(&self, figure: &'static str, of: &str, mean: f64) -> FigureRange {
        let extent = self.extents.get(&(figure, of.to_owned()));
        let extent = extent.copied().unwrap_or_default();
        let idle = extent.n < self.samples;
        FigureRange {
            mean,
            min: if idle { 0.0 } else { extent.least },
            max: extent.most.max(0.0),
        }
    }

    /// The figures; `None` when the node was neither read nor missed.
    pub fn finish(self, node: &str, step: Option<String>) -> Option<NodeUse> {
        if self.samples == 0 && self.missed == 0 {
            return None;
        }
        let cpu = self.all.cpu;
        let [user, system, iowait, steal] =
            parts(&cpu).map(|(figure, part_ms)| self.range(figure, "", percent(part_ms, &cpu)));
        let [available, cache, dirty] = ["available", "cache", "dirty"].map(|figure| {
            let sum = self.memory.get(figure).copied().unwrap_or(0.0);
            let mean = sum / self.all.span_ms.max(1) as f64;
            self.range(figure, "", mean)
        });
        Some(NodeUse {
            node: node.to_owned(),
            step,
            samples: self.samples,
            missed: self.missed,
            user_percent: user,
            system_percent: system,
            iowait_percent: iowait,
            steal_percent: steal,
            memory_bytes: Some(self.all.memory.total_bytes).filter(|bytes| *bytes > 0),
            available_bytes: available,
            page_cache_bytes: cache,
            dirty_bytes: dirty,
            devices: self.devices(),
            interfaces: self.interfaces(),
            processes: self.processes(),
        })
    }

    fn devices(&self) -> Vec<DeviceUse> {
        let moved = |one: &DeviceCounts| one.read_bytes + one.write_bytes;
        let worked = |one: &&DeviceCounts| one.read_ios + one.write_ios > 0;
        let mut devices: Vec<&DeviceCounts> = self.all.devices.iter().filter(worked).collect();
        devices.sort_by_key(|one| std::cmp::Reverse(moved(one)));
        let used = |one: &&DeviceCounts| {
            let range = |(figure, mean)| self.range(figure, &one.name, mean);
            let rate = |(figure, mean)| self.rate(figure, &one.name, mean);
            let [riops, wiops, rbw, wbw, queue, util] = rates(one, self.all.span_ms).map(rate);
            let [read_await_ns, write_await_ns] =
                waits(one).map(|(figure, mean)| range((figure, mean?)));
            DeviceUse {
                name: one.name.clone(),
                read_iops: riops,
                write_iops: wiops,
                read_bw_bytes: rbw,
                write_bw_bytes: wbw,
                read_await_ns,
                write_await_ns,
                queue,
                util_percent: util,
            }
        };
        devices.iter().take(MOST).map(used).collect()
    }

    fn interfaces(&self) -> Vec<InterfaceUse> {
        let mut all: Vec<_> = self.all.interfaces.iter().collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.rx_bytes + one.tx_bytes));
        let used = |one: &&fathom_model::node::InterfaceCounts| {
            let range = |figure, bytes| {
                let mean = a_second(bytes, self.all.span_ms);
                self.rate(figure, &one.name, mean)
            };
            InterfaceUse {
                name: one.name.clone(),
                rx_bw_bytes: range("rx", one.rx_bytes),
                tx_bw_bytes: range("tx", one.tx_bytes),
            }
        };
        all.iter().take(MOST).map(used).collect()
    }

    fn processes(&self) -> Vec<ProcessUse> {
        let mut all: Vec<_> = self.all.processes.iter().collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.cpu_ms));
        let used = |one: &&fathom_model::node::ProcessTime| ProcessUse {
            pid: one.pid,
            name: one.name.clone(),
            cpu_percent: a_second(one.cpu_ms, self.all.span_ms) / 10.0,
        };
        all.iter().take(MOST).map(used).collect()
    }
}

fn parts(cpu: &CpuTime) -> [(&'static str, u64); 4] {
    [
        ("user", cpu.user_ms),
        ("system", cpu.system_ms),
        ("iowait", cpu.iowait_ms),
        ("steal", cpu.steal_ms),
    ]
}

/// What a device did in a second of an interval.
fn rates(device: &DeviceCounts, span_ms: u64) -> [(&'static str, f64); 6] {
    [
        ("riops", a_second(device.read_ios, span_ms)),
        ("wiops", a_second(device.write_ios, span_ms)),
        ("rbw", a_second(device.read_bytes, span_ms)),
        ("wbw", a_second(device.write_bytes, span_ms)),
        // Little's law: time of all requests over the time they took.
        ("queue", a_second(device.queue_ms, span_ms) / 1000.0),
        ("util", util_percent(device, span_ms)),
    ]
}

/// How long a read and a write of a device took, in ns; `None` when there was none.
pub fn waits(device: &DeviceCounts) -> [(&'static str, Option<f64>); 2] {
    let each = |ms: u64, ios: u64| (ios > 0).then(|| ms as f64 * 1e6 / ios as f64);
    [
        ("rawait", each(device.read_ms, device.read_ios)),
        ("wawait", each(device.write_ms, device.write_ios)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, span_ms: u64, user_ms: u64, read_ios: u64) -> NodeSample {
        NodeSample {
            at_ms,
            span_ms,
            cpu: CpuTime {
                user_ms,
                idle_ms: span_ms - user_ms,
                ..CpuTime::default()
            },
            devices: vec![DeviceCounts {
                name: "sda".to_owned(),
                read_ios,
                read_ms: read_ios * 3,
                busy_ms: span_ms / 2,
                ..DeviceCounts::default()
            }],
            ..NodeSample::default()
        }
    }

    #[test]
    fn means_are_over_the_time_and_not_over_the_intervals() {
        let mut summary = Summary::default();
        let mut idle = sample(1000, 1000, 1000, 0);
        idle.devices.clear();
        summary.take(&idle);
        summary.take(&sample(10_000, 9000, 0, 900));
        let used = summary.finish("a", None).unwrap();
        let range = |mean, min, max| FigureRange { mean, min, max };
        assert_eq!(used.user_percent, Some(range(10.0, 0.0, 100.0)));
        let sda = &used.devices[0];
        assert_eq!(sda.read_iops, range(90.0, 0.0, 100.0));
        assert_eq!(sda.util_percent, range(45.0, 0.0, 50.0));
        // In the first interval nothing was read: there is no time of a read.
        assert_eq!(sda.read_await_ns, Some(range(3e6, 3e6, 3e6)));
        assert_eq!(sda.write_await_ns, None);
        assert_eq!(Summary::default().finish("a", None), None);
    }

    #[test]
    fn a_window_is_the_time_of_its_jobs() {
        let started = Event::EngineStarted {
            engine: "fio".to_owned(),
            version: None,
            argv: Vec::new(),
            pid: None,
        };
        let step = Event::Step {
            step: 1,
            of: 2,
            name: "seqwr".to_owned(),
            point: None,
        };
        let results = Box::default();
        let note = Event::Note {
            text: "behind".to_owned(),
        };
        let mut windows = Windows::default();
        let events = [step, started, Event::Finished { results }, note];
        for (at_ms, event) in (1..).map(|at| at * 100).zip(events) {
            windows.take(&Entry { at_ms, event });
        }
        let [window] = &windows.finish()[..] else {
            panic!("one");
        };
        assert_eq!((window.begin_ms, window.end_ms), (200, 300));
        assert!(window.has(&sample(300, 150, 0, 0)));
        assert!(!window.has(&sample(300, 200, 0, 0)));
    }
}
