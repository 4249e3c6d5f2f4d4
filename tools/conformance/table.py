"""docs/CONFORMANCE.md: what fio's tests and job files say of fio, and of the native engine."""

import os
import re

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = f"{TOP}/docs/CONFORMANCE.md"
REASONS = os.path.dirname(os.path.abspath(__file__)) + "/reasons"
BEGIN, END = "<!-- {}: made by tools/conformance/run.py -->", "<!-- {}: end -->"
SIGNS = {"✓": True, "✗": False, "–": None}
CHECKS = ("accepted", "--showcmd", "run")


def sign(passed):
    return next(sign for sign, meaning in SIGNS.items() if meaning == passed)


def reasons():
    """Why tests do not pass, by their names, from the file beside this one."""
    found = {}
    with open(REASONS, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.strip().partition(" | ")
                found[name] = reason
    return found


def part(text, name):
    """What stands before, in, and behind a made part of the page."""
    before, begin, rest = text.partition(BEGIN.format(name))
    inside, end, behind = rest.partition(END.format(name))
    if not begin or not end:
        raise SystemExit(f"{PAGE}: there is no part '{name}'")
    return before + begin, inside, end + behind


def expected(name, column=2):
    """What an engine does by the page: True, False or None by the name of a row. fio's
    column is the first."""
    with open(PAGE, encoding="utf-8") as file:
        inside = part(file.read(), name)[1]
    rows = {}
    for line in inside.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        test = cells[0].strip("`")
        if len(cells) == 4 and cells[column] in SIGNS:
            rows[test] = SIGNS[cells[column]]
        elif len(cells) == 5 and cells[1] in SIGNS:
            rows |= {f"{test} {check}": SIGNS[cell] for check, cell in zip(CHECKS, cells[1:4])}
    return rows


def why(rows, found, by_fio):
    """The reasons of rows that do not pass, from the file or else as a test said it."""
    given, said = reasons(), []
    for row in rows:
        passed, words = found[row]
        if passed is not True or by_fio.get(row) is False:
            words = re.sub(r"[|\s]+", " ", given.get(row, words)).strip()[:240]
            if words and words not in said:
                said.append(words)
    return "; ".join(said) or "–"


def suite(found, by_fio):
    """The lines of fio's own tests."""
    yield "| test | fio | native | reason |"
    yield "|---|---|---|---|"
    for test, (passed, _) in found.items():
        yield f"| `{test}` | {sign(by_fio.get(test))} | {sign(passed)} | {why([test], found, by_fio)} |"


def examples(found, _):
    """The lines of the job files: a row of three checks each."""
    yield f"| job file | {' | '.join(CHECKS)} | reason |"
    yield "|---|---|---|---|---|"
    for name in dict.fromkeys(row.rsplit(" ", 1)[0] for row in found):
        rows = [f"{name} {check}" for check in CHECKS]
        signs = " | ".join(sign(found[row][0]) for row in rows)
        yield f"| `{name}` | {signs} | {why(rows, found, {})} |"


LAYOUTS = {"suite": suite, "examples": examples}


def write(name, found, by_fio):
    """All rows of a part anew."""
    put(name, list(LAYOUTS[name](found, by_fio)))


def rewrite(name, found, by_fio):
    """Only the rows of what was run; the others stay."""
    def test(line):
        return line.split("|")[1].strip() if line.startswith("|") else None

    new = {test(line): line for line in LAYOUTS[name](found, by_fio)}
    with open(PAGE, encoding="utf-8") as file:
        inside = part(file.read(), name)[1]
    put(name, [new.get(test(line), line) for line in inside.splitlines() if line.startswith("|")])


def put(name, lines):
    """The lines of a table, and how many of its checks pass."""
    # Of the suite fio's column does not count.
    first = {"suite": 2, "examples": 1}[name]
    cells = [cell.strip() for line in lines for cell in line.strip("|").split("|")[first:-1]]
    signs = [SIGNS[cell] for cell in cells if cell in SIGNS]
    run = sum(passed is not None for passed in signs)
    text = ["", f"{sum(map(bool, signs))} of {run} pass.", "", *lines]
    with open(PAGE, encoding="utf-8") as file:
        before, _, behind = part(file.read(), name)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(before + "\n".join(text) + "\n" + behind)
