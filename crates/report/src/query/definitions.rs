//! Every table and column: name, kind, unit, meaning, and where its values are from.

use fathom_model::host::Host;
use fathom_model::result::Latency;
use fathom_model::{Failure, Sample, VerdictReason};

use super::run::{
    EnvironmentRow, FigureRow, HistogramRow, JobRow, PercentileRow, RunRow, StepFacts, word,
};
use super::samples::SamplePlace;
use super::{ColumnDef, Datum, DatumKind, TableDef};

macro_rules! tables {
    ($($def:ident $of:ident($row:ident: $type:ty) = $name:literal, $meaning:literal;
        $([$column:ident $kind:ident $unit:literal $text:literal] $value:expr;)*)*) => {
        $(
            #[doc = concat!("The table `", $name, "`: a row is ", $meaning, ".")]
            pub static $def: TableDef = TableDef {
                name: $name,
                meaning: $meaning,
                columns: &[$(ColumnDef {
                    name: stringify!($column),
                    kind: DatumKind::$kind,
                    unit: $unit,
                    meaning: $text,
                }),*],
            };

            #[doc = concat!("A row of `", $name, "`.")]
            pub(super) fn $of<'v>($row: $type) -> Vec<Datum<'v>> {
                vec![$(Datum::from($value)),*]
            }
        )*
    };
}

tables! {
    RUNS run(row: &'v RunRow<'v>) = "runs", "a run";
    [run Text "" "its name: that of the record's folder; every table has it"] row.id;
    [name Text "" "the name of its job file or command"] row.name;
    [command Text "" "the command that made it: job run, quick, run, import …"] row.command;
    [label Text "" "what its user calls it"] row.doc.and_then(|doc| doc.label.as_deref());
    [status Text "" "complete, interrupted, failed, running; unreadable where its record cannot be read"] row.status.as_str();
    [started Text "UTC" "when it began, RFC 3339; of an import when it was imported"] row.started.as_str();
    [ended Text "UTC" "when it ended; null for a run that was killed or still goes on"] row.doc.and_then(|doc| doc.ended.as_deref());
    [duration_ms Integer "ms" "how long it took; null of an import"] row.duration_ms;
    [engine Text "" "fio, native or sim"] row.doc.map(|doc| doc.engine.as_str());
    [engine_version Text "" "its version"] row.doc.and_then(|doc| doc.engine_version.as_deref());
    [verdict Text "" "valid, suspect or invalid: the worst of its figures; null without figures"] row.doc.and_then(|doc| Some(doc.verdict.as_ref()?.level.name()));
    [from_samples Integer "" "1: figures are counted from samples, for the run did not end by itself"] row.doc.map(|doc| doc.from_samples);
    [reason Text "" "why its record cannot be read"] row.reason.as_deref();
    [note Text "" "what was said of it later, a line each, oldest first"] row.note;

    TAGS tag(row: (&'v str, &'v str, &'v str)) = "tags", "a tag of a run";
    [run Text "" "the run"] row.0;
    [name Text "" "before the ="] row.1;
    [value Text "" "behind it"] row.2;

    ENVIRONMENT environment(row: &EnvironmentRow<'v>) = "environment", "a target of a run on a machine, or the machine where no target is known";
    [run Text "" "the run"] row.run;
    [host Text "" "the machine's name among the run's hosts; null: the machine that drove the run"] row.host.map(Host::label);
    [hostname Text "" "the name it gives itself"] &row.machine.hostname;
    [fathom_version Text "" "the version of Fathom"] &row.machine.fathom_version;
    [os Text "" "its operating system"] &row.machine.os;
    [kernel Text "" "its kernel"] &row.machine.kernel;
    [arch Text "" "its architecture"] &row.machine.arch;
    [cpu_model Text "" "its CPU"] row.machine.cpu_model.as_deref();
    [cpus Integer "" "CPUs that could be used"] row.machine.cpus;
    [cpu_governor Text "" "the frequency governor"] row.machine.cpu_governor.as_deref();
    [memory_bytes Integer "bytes" "its memory"] row.machine.memory_bytes;
    [target Text "" "the file or device, as the job names it"] row.target.map(|target| target.path.to_string_lossy().into_owned());
    [device Text "" "the block device: the target, or what is under its file system"] row.device.map(|device| device.name.as_str());
    [model Text "" "its model"] row.device.and_then(|device| device.model.as_deref());
    [serial Text "" "its serial number"] row.device.and_then(|device| device.serial.as_deref());
    [firmware Text "" "its firmware"] row.device.and_then(|device| device.firmware.as_deref());
    [capacity_bytes Integer "bytes" "its capacity"] row.device.map(|device| device.capacity_bytes);
    [logical_block_bytes Integer "bytes" "its logical block"] row.device.map(|device| device.logical_block_bytes);
    [physical_block_bytes Integer "bytes" "its physical block"] row.device.map(|device| device.physical_block_bytes);
    [rotational Integer "" "1: it rotates"] row.device.and_then(|device| device.rotational);
    [scheduler Text "" "its I/O scheduler"] row.device.and_then(|device| device.scheduler.as_deref());
    [nr_requests Integer "" "requests that the scheduler may hold"] row.device.and_then(|device| device.nr_requests);
    [write_cache Text "" "its write cache: write back or write through"] row.device.and_then(|device| device.write_cache.as_deref());
    [pcie_link Text "" "its PCIe link"] row.device.and_then(|device| device.pcie_link.as_deref());
    [file_system Text "" "type of the file system that the target lies on"] row.target.and_then(|target| Some(target.file_system.as_ref()?.kind.as_str()));
    [stack Text "" "what lies under the target, down to the disks"] row.target.and_then(|target| Some(target.stack.as_ref()?.to_string()));

    STEPS step(row: (&'v str, &'v StepFacts)) = "steps", "a part of a run with figures of its own";
    [run Text "" "the run"] row.0;
    [n Integer "" "its place in the record, counted from 1: a step that was done again stands twice"] row.1.n;
    [counts Integer "" "1: its figures are those of the step; 0: it was broken off and done again, and its figures and samples stand nowhere"] row.1.counts;
    [step Text "" "its name, as figures have it"] row.1.name.as_deref();
    [outcome Text "" "complete, interrupted or failed; skipped: it was left out; null: it was broken off"] row.1.outcome;
    [reason Text "" "why it was left out"] row.1.reason.as_deref();
    [preparation Integer "" "1: it made the device ready, its figures are no results"] row.1.preparation;
    [started_ms Integer "ms" "when it began, since 1970 UTC"] row.1.started_ms;
    [ended_ms Integer "ms" "when it ended, since 1970 UTC"] row.1.ended_ms;
    [series Text "" "the series of a campaign that it is a point of"] row.1.point.as_ref().map(|point| point.series.as_str());
    [x Text "" "the option on the x axis of that series"] row.1.point.as_ref().map(|point| point.x.as_str());
    [x_value Integer "" "the place on that axis, where it is a number"] row.1.point.as_ref().and_then(|point| point.x_value());
    [repetition Integer "" "which measurement of the point, counted from 1"] row.1.point.as_ref().map(|point| point.repetition);

    JOBS job(row: &JobRow<'v>) = "jobs", "a job of a step, or a group of jobs that reports as one";
    [run Text "" "the run"] row.run;
    [job Integer "" "its place in the run, counted from 1"] row.n;
    [step Text "" "the step it belongs to; null where the run has but one"] row.job.step.as_deref();
    [job_name Text "" "its name"] &row.job.name;
    [host Text "" "the host that ran it, in a run on several"] row.job.hostname.as_deref();
    [port Integer "" "the port of the fio server there"] row.job.port.map(u32::from);
    [clients Integer "" "of a sum over hosts: how many; their parts stand beside it"] row.job.clients;
    [preparation Integer "" "1: it made the device ready, its figures are no results"] row.preparation;
    [reporting_group Integer "" "its reporting group, counted from 0"] row.job.group;
    [members Integer "" "how many jobs it is"] row.job.members;
    [rw Text "" "the option rw"] row.option("rw");
    [bs Text "" "the option bs"] row.option("bs");
    [iodepth Integer "" "the option iodepth"] row.number("iodepth");
    [numjobs Integer "" "the option numjobs"] row.number("numjobs");
    [ioengine Text "" "the option ioengine"] row.option("ioengine");
    [filename Text "" "the option filename"] row.option("filename");
    [runtime_ms Integer "ms" "how long it ran"] row.job.runtime_ms;
    [error Integer "errno" "its first error; 0: none"] row.job.error;
    [total_errors Integer "" "I/Os that failed, where it went on after errors"] row.job.total_errors;
    [cpu_user_percent Real "percent" "CPU time in user space"] row.job.cpu.as_ref().map(|cpu| cpu.user_percent);
    [cpu_system_percent Real "percent" "CPU time in the kernel"] row.job.cpu.as_ref().map(|cpu| cpu.system_percent);
    [context_switches Integer "" "context switches"] row.job.cpu.as_ref().map(|cpu| cpu.context_switches);

    OPTIONS option(row: (&JobRow<'v>, &'v str, &'v str)) = "options", "an option of a job, as the engine was told it";
    [run Text "" "the run"] row.0.run;
    [job Integer "" "the job's place in the run"] row.0.n;
    [name Text "" "the option, as job files have it"] row.1;
    [value Text "" "its value, as it was written"] row.2;

    FIGURES figure(row: &FigureRow<'v>) = "figures", "what one job did in one direction, over its whole run";
    [run Text "" "the run"] row.of.run;
    [figure Integer "" "its place in the run, counted from 1"] row.n;
    [job Integer "" "the job's place in the run"] row.of.n;
    [started Text "UTC" "when the run began, RFC 3339"] row.started;
    [engine Text "" "fio, native or sim"] row.engine;
    [step Text "" "the step it belongs to; null where the run has but one"] row.of.job.step.as_deref();
    [job_name Text "" "the job's name"] &row.of.job.name;
    [host Text "" "the host that ran it, in a run on several"] row.of.job.hostname.as_deref();
    [clients Integer "" "of a sum over hosts: how many; their parts stand beside it"] row.of.job.clients;
    [preparation Integer "" "1: the step made the device ready, this is no result"] row.of.preparation;
    [rw Text "" "the option rw"] row.of.option("rw");
    [bs Text "" "the option bs"] row.of.option("bs");
    [iodepth Integer "" "the option iodepth"] row.of.number("iodepth");
    [numjobs Integer "" "the option numjobs"] row.of.number("numjobs");
    [dir Text "" "read, write, trim; mixed: all as one; sync: latencies alone"] row.dir.name();
    [verdict Text "" "valid, suspect or invalid: whether the figure is true; null where nobody has judged it"] row.level();
    [reasons Text "" "kinds of the reasons against it, between spaces"] row.reasons();
    [iops Real "1/s" "I/Os per second"] row.result.map(|it| it.iops);
    [iops_low Real "1/s" "lower end of its 95 % interval"] row.interval(|rates| rates.iops).map(|(low, _)| low);
    [iops_high Real "1/s" "upper end of it"] row.interval(|rates| rates.iops).map(|(_, high)| high);
    [bw_bytes Real "bytes/s" "bytes per second"] row.result.map(|it| it.bw_bytes);
    [bw_bytes_low Real "bytes/s" "lower end of its 95 % interval"] row.interval(|rates| rates.bw_bytes).map(|(low, _)| low);
    [bw_bytes_high Real "bytes/s" "upper end of it"] row.interval(|rates| rates.bw_bytes).map(|(_, high)| high);
    [total_ios Integer "" "I/Os completed"] row.result.map(|it| it.total_ios);
    [io_bytes Integer "bytes" "bytes moved"] row.result.map(|it| it.io_bytes);
    [runtime_ms Integer "ms" "how long the direction ran"] row.result.map(|it| it.runtime_ms);
    [slat_mean_ns Real "ns" "mean time to submit"] row.slat().map(|it| it.mean_ns);
    [clat_n Integer "" "how many completion latencies were measured"] row.clat().and_then(|it| it.n);
    [clat_min_ns Integer "ns" "shortest completion latency"] row.clat().map(|it| it.min_ns);
    [clat_mean_ns Real "ns" "mean completion latency"] row.clat().map(|it| it.mean_ns);
    [clat_stddev_ns Real "ns" "standard deviation of single completion latencies"] row.clat().and_then(|it| it.stddev_ns);
    [clat_max_ns Integer "ns" "longest completion latency"] row.clat().map(|it| it.max_ns);
    [clat_p50_ns Integer "ns" "half of the completion latencies are within it"] percentile(row.clat(), 50.0);
    [clat_p90_ns Integer "ns" "90 % are"] percentile(row.clat(), 90.0);
    [clat_p99_ns Integer "ns" "99 % are"] percentile(row.clat(), 99.0);
    [clat_p99_9_ns Integer "ns" "99.9 % are"] percentile(row.clat(), 99.9);
    [clat_p99_99_ns Integer "ns" "99.99 % are"] percentile(row.clat(), 99.99);
    [lat_mean_ns Real "ns" "mean latency from the intended start; of syncs their own"] row.lat().map(|it| it.mean_ns);
    [lat_p99_ns Integer "ns" "99 % of these are within it"] percentile(row.lat(), 99.0);
    [lat_max_ns Integer "ns" "longest of these"] row.lat().map(|it| it.max_ns);

    PERCENTILES percentile_row(row: &PercentileRow<'v>) = "percentiles", "a percentile of a figure";
    [run Text "" "the run"] row.of.of.run;
    [figure Integer "" "the figure's place in the run"] row.of.n;
    [dir Text "" "its direction"] row.of.dir.name();
    [kind Text "" "slat, clat, lat, or lag: how far I/Os under a rate began behind their intended start"] row.kind;
    [priority Integer "" "of the I/Os of this priority (class << 13 | hint << 3 | level); null: of all"] row.priority.map(u32::from);
    [percent Real "percent" "so many of the latencies …"] row.percent;
    [ns Integer "ns" "… are within this"] row.ns;

    VERDICTS verdict(row: (&FigureRow<'v>, &'v VerdictReason)) = "verdicts", "a reason that decides what a figure is worth";
    [run Text "" "the run"] row.0.of.run;
    [figure Integer "" "the figure's place in the run"] row.0.n;
    [kind Text "" "which rule found it"] word(&row.1.kind);
    [level Text "" "suspect or invalid; valid: it says what the figure is a figure of"] row.1.level.name();
    [sentence Text "" "what was found"] &row.1.sentence;
    [to_do Text "" "what would give a better figure"] &row.1.to_do;
    [evidence Text "" "the numbers it rests on, name=value, between spaces"] row.1.evidence.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");

    FAILURES failure(row: (&'v str, &'v Failure)) = "failures", "something that went wrong";
    [run Text "" "the run"] row.0;
    [kind Text "" "its kind"] word(&row.1.kind);
    [subject Text "" "the job, device or file it happened to"] row.1.subject.as_deref();
    [message Text "" "what happened"] &row.1.message;
    [errno Integer "errno" "the error behind it"] row.1.errno;
    [to_do Text "" "what can be done about it"] row.1.to_be_done();

    HOSTS host(row: (&'v str, &'v Host)) = "hosts", "a machine's part in a step of a run on several";
    [run Text "" "the run"] row.0;
    [step Text "" "the step; null where the run has but one"] row.1.step.as_deref();
    [host Text "" "its name or address, with its port behind a comma where it has one"] row.1.label();
    [hostname Text "" "the name it gives itself"] row.1.hostname.as_deref();
    [node Text "" "the node of a cluster that it runs on"] row.1.node.as_deref();
    [engine_version Text "" "engine and version there"] row.1.engine_version.as_deref();
    [start_ms Real "ms" "when its jobs began, since the start of the step"] row.1.start_ms;
    [end_ms Real "ms" "when they had ended"] row.1.end_ms;
    [clock_offset_ms Real "ms" "how far its clock is ahead"] row.1.clock.map(|clock| clock.offset_ms);
    [clock_error_ms Real "ms" "largest error of that"] row.1.clock.map(|clock| clock.error_ms);
    [lost Text "" "why it has no whole part in the figures; null when it has"] row.1.lost.as_deref();

    HISTOGRAMS histogram(row: &HistogramRow<'v>) = "histograms", "a bucket of a figure's latencies that holds some";
    [run Text "" "the run"] row.of.of.run;
    [figure Integer "" "the figure's place in the run"] row.of.n;
    [dir Text "" "its direction"] row.of.dir.name();
    [kind Text "" "slat, clat, lat or lag"] row.kind;
    [priority Integer "" "of the I/Os of this priority; null: of all"] row.priority.map(u32::from);
    [low_ns Integer "ns" "smallest value of the bucket"] row.low_ns;
    [high_ns Integer "ns" "largest value of it"] row.high_ns;
    [n Integer "" "how many latencies lie in it"] row.count;

    SAMPLES sample(row: (&'v str, &'v SamplePlace, &'v Sample)) = "samples", "what one job did in one direction in one interval";
    [run Text "" "the run"] row.0;
    [step Text "" "the step it belongs to; null where the run has but one"] row.1.step();
    [place Integer "" "the job's place in its step, counted from 0"] row.2.job;
    [job_name Text "" "the job's name"] row.1.name(row.2);
    [host Text "" "the host that ran it, in a run on several"] row.1.host(row.2);
    [dir Text "" "read, write, trim or mixed"] row.2.dir.name();
    [t_ms Integer "ms" "end of the interval, since the run's start"] row.2.t_ms;
    [span_ms Integer "ms" "its length"] row.2.span_ms;
    [ios Integer "" "I/Os completed in it"] row.2.ios;
    [bytes Integer "bytes" "bytes moved in it"] row.2.bytes;
    [iops Real "1/s" "I/Os per second; null where the interval has no length"] row.2.iops();
    [bw_bytes Real "bytes/s" "bytes per second"] row.2.bw_bytes();
    [clat_n Integer "" "how many completion latencies were measured in it"] row.2.clat.as_ref().map(|it| it.total());
    [clat_mean_ns Real "ns" "their mean"] row.2.clat.as_ref().and_then(|it| it.mean_ns());
    [clat_p50_ns Integer "ns" "half of them are within it"] row.2.clat.as_ref().and_then(|it| it.percentile_ns(50.0));
    [clat_p90_ns Integer "ns" "90 % are"] row.2.clat.as_ref().and_then(|it| it.percentile_ns(90.0));
    [clat_p99_ns Integer "ns" "99 % are"] row.2.clat.as_ref().and_then(|it| it.percentile_ns(99.0));
    [clat_p99_9_ns Integer "ns" "99.9 % are"] row.2.clat.as_ref().and_then(|it| it.percentile_ns(99.9));
}

fn percentile(latency: Option<&Latency>, percent: f64) -> Option<u64> {
    latency?.percentile_ns(percent)
}
