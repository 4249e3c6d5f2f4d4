"""fio's own tests, each by itself: what they are called, how they are run, what they say."""

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field

# What a test may take at most; the longest of fio's runs for a minute.
LONGEST_S = 240


@dataclass
class Unit:
    """One call of a script of fio's; `rows` are the tests it reports."""

    script: str
    arguments: list
    rows: dict  # the name in the table by what the script calls it
    says: str  # pattern of its lines: the name, then PASSED or FAILED
    seconds: int = 5  # about as long as it takes: the longest begin first

    def run(self, source, program, folder):
        """What came of each row: (passed, what was said)."""
        words = {"fio": program, "source": source, "folder": folder}
        command = [sys.executable, f"{source}/t/{self.script}"] + [a.format(**words) for a in self.arguments]
        # Where steadystate_tests.py finds what it needs of SciPy.
        environment = dict(os.environ, PYTHONPATH=os.path.dirname(__file__) + "/python", PYTHONDONTWRITEBYTECODE="1")
        os.makedirs(folder)
        said = ended(command, folder, environment)
        found = {}
        for match in re.finditer(self.says, said, re.MULTILINE):
            name = self.rows.get(match["name"])
            if name:
                found[name] = (match["result"] == "PASSED", match.groupdict().get("why") or "")
        last = said.strip().splitlines()[-1:] or ["nothing was said"]
        return {row: found.get(row, (False, last[0])) for row in self.rows.values()}


def ended(command, folder, environment, longest=LONGEST_S):
    """What a command and all its children said; none is left behind."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment, text=True, errors="replace", start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        return process.communicate(timeout=longest)[0]
    except subprocess.TimeoutExpired:
        # fio's jobs are in sessions of their own: no group has them all.
        for pid in family(process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.communicate()
        return f"not ended after {longest} s"


def family(pid):
    """A process and all that it has started, the youngest first."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = [int(child) for child in file.read().split()]
    except OSError:
        children = []
    return [one for child in children for one in family(child)] + [pid]


class ZonedUnit(Unit):
    """A test of t/zbd, a shell script that calls fio as ../../fio and a block device by name."""

    IMAGE_MIB = 64

    def run(self, source, program, folder):
        row, = self.rows.values()
        missing = [name for name in ("bash", "blkzone", "losetup") if not shutil.which(name)]
        if os.geteuid() != 0 or missing:
            return {row: (None, "needs root, bash, blkzone and losetup")}
        os.makedirs(f"{folder}/t/zbd")
        for name in ("test-zbd-support", "functions"):
            os.symlink(f"{source}/t/zbd/{name}", f"{folder}/t/zbd/{name}")
        os.symlink(program, f"{folder}/fio")
        with open(f"{folder}/image", "wb") as image:
            image.truncate(self.IMAGE_MIB << 20)
        attached = subprocess.run(["losetup", "-f", "--show", f"{folder}/image"], stdout=subprocess.PIPE, text=True)
        device = attached.stdout.strip()
        if not device:
            return {row: (None, "no loop device can be had")}
        try:
            return {row: self.on(device, folder)}
        finally:
            subprocess.run(["losetup", "-d", device])

    def on(self, device, folder):
        script = f"{folder}/t/zbd/test-zbd-support"
        number, = self.rows
        environment = dict(os.environ, FATHOM_DESTROY=f"{device}={self.IMAGE_MIB}MiB")
        said = ended(["bash", script, "-t", number, device], folder, environment)
        if re.search(self.says, said, re.MULTILINE):
            return True, ""
        with open(f"{script}.log.{number}", encoding="utf-8", errors="replace") as log:
            lines = [line.strip() for line in log if line.strip() not in ("", "FAIL")]
        return False, (lines or said.splitlines() or ["nothing was said"])[-1]


# How long those take that take longer than a few seconds.
SECONDS = {6: 60, 9: 62, 11: 11, 12: 13, 13: 11, 14: 13, 26: 7}
# Those of t/zbd that an ordinary block device is enough for.
ORDINARY = [*range(1, 9), 11, 12, 13, *range(15, 32), *range(33, 39), 42, 43, 44, 46, 47, 49, 56, 58]
JOB_RESULT = r"^Test (?P<name>\d+) (?P<result>PASSED|FAILED):? *(?P<why>.*?),? \S+$"
NUMBERED = r"^Test (?P<name>\d+) (?P<result>PASSED|FAILED)"


def numbered(script, count):
    return {str(number): f"{script} {number}" for number in range(1, count + 1)}


def units():
    found = []
    for number in range(1, 27):
        arguments = ["-k", "-f", "{fio}", "-a", "{folder}/out", "-o", str(number)]
        rows = {str(number): f"run-fio-tests.py {number}"}
        found.append(Unit("run-fio-tests.py", arguments, rows, JOB_RESULT, SECONDS.get(number, 3)))
    for number in range(1, 23):
        arguments = ["-f", "{fio}", "-a", "{folder}/out", "-o", str(number)]
        says = r"^\*+Test (?P<name>\d+) (?P<result>PASSED|FAILED)"
        rows = {str(number): f"latency_percentiles.py {number}"}
        found.append(Unit("latency_percentiles.py", arguments, rows, says, 6))
    found.append(Unit("readonly.py", ["-f", "{fio}"], numbered("readonly.py", 9), NUMBERED, 10))
    found.append(Unit("strided.py", ["{fio}"], numbered("strided.py", 21), NUMBERED, 15))
    found.append(Unit("jsonplus2csv_test.py", ["-f", "{fio}", "-s", "{source}/tools/fio_jsonplus_clat2csv"],
                      numbered("jsonplus2csv_test.py", 1), NUMBERED, 5))
    stored = {"False": "log_compression.py plain", "True": "log_compression.py stored compressed"}
    says = r"^Test with log_store_compressed=(?P<name>\w+) (?P<result>PASSED|FAILED)"
    found.append(Unit("log_compression.py", ["-f", "{fio}"], stored, says))
    # Its lines have a job's name; what --debug=parse prints comes before them.
    jobs = {f"job{number}": f"steadystate_tests.py job{number}" for number in range(4)}
    says = r"^(?P<result>PASSED|FAILED) (?P<name>job\d) *(?P<why>.*)"
    found.append(Unit("steadystate_tests.py", ["{fio}"], jobs, says, 90))
    for number in ORDINARY:
        rows = {str(number): f"t/zbd/test-zbd-support {number}"}
        seconds = 30 if number in (30, 31, 58) else 3
        found.append(ZonedUnit("zbd/test-zbd-support", [], rows, r"^Running test \d+ \.\.\. PASS", seconds))
    return found
