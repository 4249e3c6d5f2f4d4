"""fio's example job files: taken alike, shown alike, and run side by side with fio.

A file is shortened before it is run: files of 16 MiB in a folder of its own instead of
devices and mounts, few seconds, few loops. Both engines are given the same shortened file.
"""

import glob
import os
import re
import shlex

import logs
from suite import ended

SIZE = 16 << 20
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
# What makes a job take its time, whatever its size.
PACED = ("rate", "rate_iops", "thinktime", "flow", "latency_target", "ss", "steadystate", "time_based")
# Longest values, in the unit that a bare number has.
CAPS = {"runtime": 3, "timeout": 3, "ramp_time": 1, "ss_dur": 3, "ss_ramp": 1, "startdelay": 2, "loops": 10,
        "nrfiles": 64, "latency_window": 500000}
SIZES = ("size", "io_size", "filesize", "zonesize", "zonerange", "zoneskip", "offset_increment")
# Where fio and a job file use two names for one option.
ALIASES = {"ba": "blockalign", "readwrite": "rw", "blocksize": "bs", "nr_files": "nrfiles", "timeout": "runtime",
           "ss": "steadystate", "ss_dur": "steadystate_duration", "ss_ramp": "steadystate_ramp_time",
           "ratemin": "rate_min", "io_limit": "io_size", "mem": "iomem", "threads": "thread",
           "blocksize_range": "bsrange", "io_size": "io_size",
           "iodepth_batch_complete_min": "iodepth_batch_complete"}
# What would fill the disk, or run programs, is not run.
NEVER = {"surface-scan.fio": "it fills a disk", "enospc-pressure.fio": "it fills a disk",
         "exec.fio": "it runs programs that few machines have"}


class Example:
    """One job file, with the rows of its checks."""

    def __init__(self, path, fio):
        self.path, self.fio = path, fio
        self.name = os.path.basename(path)
        self.rows = {check: f"{self.name} {check}" for check in ("accepted", "--showcmd", "run")}
        self.seconds = 8

    def run(self, source, program, folder):
        os.makedirs(folder)
        taken = self.call([self.fio, "--parse-only", self.path], folder)[0] == 0
        by_us = self.call([program, "--parse-only", self.path], folder)[0] == 0
        found = {self.rows["accepted"]: (taken == by_us, f"fio {taken}, native {by_us}")}
        if taken:
            found[self.rows["--showcmd"]] = self.shown_alike(program, folder)
            found[self.rows["run"]] = self.pair(program, folder)
        nothing = (None, "fio does not take it here")
        return {row: found.get(row, nothing) for row in self.rows.values()}

    @staticmethod
    def call(command, folder):
        """Its exit code and what it said."""
        code = ["/bin/sh", "-c", '"$@"; echo "exit $?"', "sh"] + command
        said, _, end = ended(code, folder, os.environ, 60).rpartition("exit ")
        return int(end) if end.strip().isdigit() else -1, said

    def shown_alike(self, program, folder):
        with open(self.path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        sections = re.findall(r"^\[(.+?)\]", text, re.MULTILINE)
        keys = re.findall(r"^\s*(\w+)", text, re.MULTILINE)
        ours = shlex.split(self.call([program, "--showcmd", self.path], folder)[1].splitlines()[-1])[1:]
        names = {word[2:].partition("=")[0] for word in ours} | set(keys) | set(ALIASES) | set(ALIASES.values())
        # fio quotes nothing: an option begins where one has its name.
        said = self.call([self.fio, "--showcmd", self.path], folder)[1].splitlines()[-1].removeprefix("fio ")
        theirs = re.split(rf"\s+(?=--(?:{'|'.join(sorted(names, key=len, reverse=True))})(?:[=\s]|$))", said)
        by_fio, by_us = jobs_of(theirs, sections), jobs_of(ours, sections)
        for (name, one), (our_name, other) in zip(by_fio, by_us):
            differ = sorted(set(one.items()) ^ set(other.items()))
            if name != our_name or differ:
                return False, f"job {name}: {differ}"
        return len(by_fio) == len(by_us), f"{len(by_fio)} and {len(by_us)} jobs"

    def pair(self, program, folder):
        if self.name in NEVER:
            return None, NEVER[self.name]
        with open(self.path, encoding="utf-8", errors="replace") as file:
            text = shortened(file.read())
        for engine in set(re.findall(r"^ioengine=(\S+)", text, re.MULTILINE)):
            if "not loadable" in self.call([self.fio, f"--enghelp={engine}"], folder)[1]:
                return None, f"this fio has no {engine}"
        sides = []
        # What the native engine refuses costs no time.
        for side, command in (("native", program), ("fio", self.fio)):
            place = f"{folder}/{side}"
            os.makedirs(place)
            with open(f"{place}/job.fio", "w", encoding="utf-8") as file:
                file.write(text)
            arguments = [command, "--output-format=json", "--output=out.json", "--eta=never", "job.fio"]
            status, said = self.call(arguments, place)
            if status:
                return (False, refusal(said)) if side == "native" else (None, "fio does not run it here")
            sides.append(logs.Side(place))
            for leftover in glob.glob(f"{place}/log*") + glob.glob(f"{place}/data*"):
                os.remove(leftover)
        differences = logs.differences(*reversed(sides), text)
        return not differences, "; ".join(differences)


def refusal(said):
    """What the native engine lacks, of its own words."""
    lacks = re.findall(r"job .*?: ([a-z_0-9]+): the native engine does not have this option", said)
    lacks += re.findall(r"the native engine has no '(\w+)'", said)
    if lacks:
        return "lacks " + ", ".join(f"`{name}`" for name in sorted(set(lacks)))
    return re.sub(r"\s+", " ", said).strip()[-300:]


def units(source, fio):
    return [Example(path, fio) for path in sorted(glob.glob(f"{source}/examples/*.fio"))]


def jobs_of(words, sections):
    """Each job of a command line with all its options; the last value of one counts."""
    shared, jobs = {}, []
    for word in words:
        name, equals, value = word.strip().removeprefix("--").partition("=")
        value = value.strip().strip("'\"")
        if name == "name" and value in sections and value != "global":
            jobs.append((value, dict(shared)))
        elif name != "name":
            # A name in [global] names no job; a log without a name has its job's.
            options = jobs[-1][1] if jobs else shared
            own = name.startswith("write_") and jobs and value == jobs[-1][0]
            options[ALIASES.get(name, name)] = value if equals and not own else "1"
    return jobs


def number(text):
    match = re.fullmatch(r"(\d+)([kmgt]?)(?:i?b)?", text.strip().lower())
    return int(match[1]) * UNITS[match[2]] if match else None


def shortened(text):
    """The same job file, small, of files in the current folder, with a log of each I/O."""
    lines, paced = [], False
    for line in text.splitlines():
        line = re.split(r"[;#]", line)[0].strip()
        name, equals, value = (part.strip() for part in line.partition("="))
        name = name.lower()
        paced = paced or name in PACED
        if name == "filename" and value not in ("/dev/null", "/dev/zero"):
            line = "filename=data"
        elif name in ("directory", "group_reporting", "write_bw_log", "write_lat_log", "log_prio", "gtod_reduce",
                      "disable_lat", "time_based", "description"):
            line = "time_based" if name == "time_based" else ""
        elif name in SIZES and number(value):
            line = f"{name}={min(number(value), SIZE)}"
        elif name == "offset":
            line = ""
        elif name in CAPS:
            bare = re.match(r"\d*", value)[0] or "1"
            longest = CAPS[name]
            line = f"{name}={min(int(bare), longest)}" if value == bare else f"{name}={longest}"
        lines.append(line)
    limits = f"runtime={CAPS['runtime']}\n" if paced else ""
    # In [global] and in front, so that a job's own counts. A size where a device had its own.
    head = f"[global]\nsize={SIZE}\n{limits}write_lat_log=log\nlog_offset=1\n"
    return head + "\n".join(line for line in lines if line) + "\n"
