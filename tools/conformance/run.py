#!/usr/bin/env python3
"""fio's own tests and job files against Fathom's native engine.

  run.py --fathom PROGRAM              does what docs/CONFORMANCE.md says still hold?
  run.py --fathom PROGRAM --write      makes its tables anew; with --with-fio fio's column, too
  run.py --fathom PROGRAM --only TEXT  only what has TEXT in its name; with --write, those rows
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import examples
import suite
import table

HERE = os.path.dirname(os.path.abspath(__file__))
# More than there are processors: most of these tests wait, or run for a fixed time.
LANES = 6


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fathom", required=True, help="the program")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--with-fio", action="store_true", help="run fio's tests with fio itself, too")
    parser.add_argument("--log", help="a file for the line with the result")
    parser.add_argument("--only", help="a part of the names of tests")
    parser.add_argument("--fio", default=shutil.which("fio"), help="the fio that job files are held against")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what each test said")
    return parser.parse_args()


class Lanes:
    """Runs units beside each other, the longest first."""

    def __init__(self, units, run):
        self.left = sorted(units, key=lambda unit: -unit.seconds)
        self.run, self.found, self.lock = run, {}, threading.Lock()

    def go(self, lanes):
        threads = [threading.Thread(target=self.lane) for _ in range(lanes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.found

    def lane(self):
        while True:
            with self.lock:
                if not self.left:
                    return
                unit = self.left.pop(0)
            came = self.run(unit)
            with self.lock:
                self.found.update(came)


class Runner:
    def __init__(self, args, source, folder):
        self.args, self.source, self.folder, self.calls = args, source, folder, 0
        self.lock = threading.Lock()

    def place(self):
        with self.lock:
            self.calls += 1
            return f"{self.folder}/{self.calls}"

    def all(self, units, program):
        """What came of every row; what failed beside others is run once more by itself."""
        def run(unit):
            folder = self.place()
            came = unit.run(self.source, program, folder)
            shutil.rmtree(folder, ignore_errors=True)
            return came

        found = Lanes(units, run).go(LANES)
        expected = self.expected(units)
        again = [unit for unit in units if program != self.args.fio and
                 any(expected.get(row) and found[row][0] is False for row in unit.rows.values())]
        for unit in again:
            found.update(run(unit))
        if self.args.verbose:
            for row, (passed, said) in found.items():
                print(f"{'ok  ' if passed else 'FAIL'} {row} {said[:300]}", flush=True)
        return found

    def expected(self, units):
        if self.args.write:
            return {row: True for unit in units for row in unit.rows.values()}
        return table.expected("suite") | table.expected("examples")


def compare(part, found):
    """Says what differs from the table; how many pass, and how many no longer do."""
    passed = failed = 0
    for row, before in table.expected(part).items():
        if row not in found:
            continue
        now, words = found[row]
        if before and now is False:
            failed += 1
            print(f"test {row} ... FAILED: {words[:400]}")
        else:
            passed += now is True
        if now and not before:
            print(f"{row} passes now: make the table anew with --write")
    return passed, failed


def main():
    args = arguments()
    began = time.monotonic()
    got = subprocess.run([f"{HERE}/source.sh"], stdout=subprocess.PIPE, text=True)
    if got.returncode == 3:
        return skipped("fio's sources cannot be had")
    got.check_returncode()
    if not args.fio:
        return skipped("the program fio is not installed")
    source = got.stdout.strip()
    os.environ["FATHOM"] = os.path.abspath(args.fathom)
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="fathom-conformance.") as folder:
        runner = Runner(args, source, folder)
        for part, units in (("suite", suite.units()), ("examples", examples.units(source, args.fio))):
            order = [row for unit in units for row in unit.rows.values()]
            if args.only:
                units = [unit for unit in units if any(args.only in row for row in unit.rows.values())]
            native = runner.all(units, f"{HERE}/fio")
            if args.write and units:
                # Job files are held against fio at once.
                by_fio = table.expected(part, 1)
                if args.with_fio and part == "suite":
                    by_fio |= {row: passed for row, (passed, _) in runner.all(units, args.fio).items()}
                put = table.rewrite if args.only else table.write
                put(part, {row: native[row] for row in order if row in native}, by_fio)
            said = compare(part, native)
            passed, failed = passed + said[0], failed + said[1]
    # As cargo says it: tools/test.sh adds these lines up.
    result = (f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed; 0 ignored; "
              f"finished in {time.monotonic() - began:.0f}s")
    print(result)
    if args.log:
        with open(args.log, "w", encoding="utf-8") as file:
            file.write(result + "\n")
    return 1 if failed else 0


def skipped(reason):
    print(f"fio's own tests are not run: {reason}")
    log = os.environ.get("FATHOM_SKIP_LOG")
    if log:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"SKIP fio's own tests: {reason}\n")
    return 0


sys.exit(main())
