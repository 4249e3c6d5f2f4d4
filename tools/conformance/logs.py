"""What two runs of one job file did, by the log of every I/O, and how far they are apart."""

import glob
import json
import math
import re
from collections import Counter

# Bounds. Shares (of directions, block sizes, blocks touched) may differ by this and three standard deviations of a share.
SHARE = 0.03
# How offsets go with time, and three standard deviations of a correlation.
ORDER = 0.1
# Bytes, where a job ends by its size and not by its time.
BYTES = 0.02
# I/Os under way on average: latencies added up, by the time.
DEPTH, DEPTH_LEAST = 0.25, 0.75
# Kolmogorov and Smirnov's distance that two samples of one distribution exceed once
# in a thousand times is 1.95 * sqrt((n + m) / nm); besides, what is no difference.
KS, KS_LEAST = 1.95, 0.03


class Side:
    """The threads of one run, in fio's order."""

    def __init__(self, folder):
        with open(f"{folder}/out.json", encoding="utf-8", errors="replace") as file:
            said = file.read()
        document = json.loads(said[said.index("{\n"):])
        self.jobs = document["jobs"]
        self.threads = []
        for number, job in enumerate(self.jobs, 1):
            # In order of issue: a log has them as they came back.
            entries = []
            for path in glob.glob(f"{folder}/log_lat.{number}.log"):
                with open(path, encoding="utf-8") as file:
                    entries = [tuple(int(cell, 0) for cell in line.split(",")[:5]) for line in file]
            self.threads.append((job, entries))


def differences(fio, native, text):
    """Sentences; none where both did the same."""
    if [job["jobname"] for job in fio.jobs] != [job["jobname"] for job in native.jobs]:
        return [f"jobs {[job['jobname'] for job in fio.jobs]} and {[job['jobname'] for job in native.jobs]}"]
    timed = bool(re.search(r"^(runtime|timeout)=", text, re.MULTILINE))
    skewed = bool(re.search(r"random_distribution=(zipf|pareto)", text))
    found = []
    for (job, theirs), (ours_job, ours) in zip(fio.threads, native.threads):
        for what in of_thread(job, theirs, ours_job, ours, timed, skewed):
            found.append(f"{job['jobname']}: {what}")
    return found


def of_thread(job, theirs, ours_job, ours, timed, skewed):
    if not theirs or not ours:
        if bool(theirs) != bool(ours):
            yield f"{len(theirs)} and {len(ours)} I/Os"
        return
    if not timed:
        sums = [sum(entry[3] for entry in side) for side in (theirs, ours)]
        if abs(sums[0] - sums[1]) > BYTES * max(sums):
            yield f"{sums[0]} and {sums[1]} bytes"
    yield from depths(job, theirs, ours_job, ours)
    for what, kind in (("direction", lambda e: e[2]), ("block size", lambda e: e[3])):
        yield from shares(what, Counter(map(kind, theirs)), Counter(map(kind, ours)))
    for direction in {entry[2] for entry in theirs}:
        both = [[entry for entry in side if entry[2] == direction] for side in (theirs, ours)]
        least = min(map(len, both))
        if least >= 50:
            # As much of the one as of the other.
            yield from offsets(direction, both[0][:least], both[1][:least], skewed)


def depths(job, theirs, ours_job, ours):
    def depth(job, entries):
        busy = max((job[way]["runtime"] for way in ("read", "write", "trim") if way in job), default=0)
        return sum(entry[1] for entry in entries) / 1e6 / busy if busy >= 200 else None

    one, other = depth(job, theirs), depth(ours_job, ours)
    if one is None or other is None:
        return
    if abs(one - other) > max(DEPTH_LEAST, DEPTH * max(one, other)):
        yield f"a depth of {one:.1f} and {other:.1f}"


def bound(share, n, m):
    return SHARE + 3 * math.sqrt(max(share * (1 - share), 0.01) * (1 / n + 1 / m))


def shares(what, one, other):
    n, m = sum(one.values()), sum(other.values())
    for key in sorted(set(one) | set(other)):
        a, b = one[key] / n, other[key] / m
        if abs(a - b) > bound((a + b) / 2, n, m):
            yield f"{what} {key}: {a:.3f} and {b:.3f} of all I/Os"


def offsets(direction, theirs, ours, skewed):
    n = len(theirs)
    touched = [len({entry[4] for entry in side}) / n for side in (theirs, ours)]
    order = [in_order([entry[4] for entry in side]) for side in (theirs, ours)]
    for what, (a, b), limit in (("blocks touched", touched, bound(sum(touched) / 2, n, n)),
                                ("offsets against time", order, ORDER + 3 / math.sqrt(n))):
        if abs(a - b) > limit:
            yield f"direction {direction}: {what}: {a:.3f} and {b:.3f}"
    places = [sorted(entry[4] for entry in side) for side in (theirs, ours)]
    if skewed:
        # Which blocks are the popular ones comes from the seed; how popular they are does not.
        places = [sorted(Counter(side).values()) for side in places]
    distance = kolmogorov_smirnov(*places)
    limit = KS_LEAST + KS * math.sqrt((len(places[0]) + len(places[1])) / (len(places[0]) * len(places[1])))
    if distance > limit:
        yield f"direction {direction}: offsets are {distance:.3f} apart, more than {limit:.3f}"


def in_order(places):
    """How offsets go with time: 1 forwards, -1 backwards, 0 anywhere (Pearson). The logs have
    I/Os as they came back, so that no two neighbours of a deep queue can be compared."""
    mean, middle = sum(places) / len(places), (len(places) - 1) / 2
    both = sum((index - middle) * (place - mean) for index, place in enumerate(places))
    square = sum((place - mean) ** 2 for place in places) * sum((i - middle) ** 2 for i in range(len(places)))
    return both / math.sqrt(square) if square else 0.0


def kolmogorov_smirnov(one, other):
    """The greatest distance of two samples' distributions; both sorted."""
    i = j = 0
    distance = 0.0
    while i < len(one) and j < len(other):
        value = min(one[i], other[j])
        while i < len(one) and one[i] == value:
            i += 1
        while j < len(other) and other[j] == value:
            j += 1
        distance = max(distance, abs(i / len(one) - j / len(other)))
    return distance
