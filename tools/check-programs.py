#!/usr/bin/env python3
"""Finds programs that are called and not in tools/programs, and entries nobody calls.

Scripts and the Makefile's recipes are parsed (by shfmt); in Rust, the forms in which
programs are named are looked for. What runs in a guest is not this machine's: its
scripts are left out. Not seen: scripts that are put together as text, as in Rust.
"""

import glob
import json
import os
import re
import sys
from subprocess import run

os.chdir(os.path.dirname(os.path.abspath(__file__)) + "/..")
TABLE = "tools/programs"
IN_GUEST = ["tools/guest/init", "tools/guest/first-root", "tools/guest/cdl-up"]
# What variables stand for: nothing where it is the program of these sources.
VARIABLES = {"$fathom": "", "$own": "", "$binary": "", "$FATHOM_STATIC": "", "$deny": "", "$0": "", "$cargo": "cargo",
             "$CARGO": "cargo", "$MAKE": "make", "$NICE": "nice -n 10", "$C": "ctr"}
# Ours, what cargo brings, and what Debian has no package of, used where it is there.
OURS = ["fathom", "cargo-deny", "fiologparser.py"]
BUILTINS = """. : [ break cd continue echo eval exit export false hash kill local mapfile printf pwd
    read readonly return set shift source test true type ulimit umask unset wait""".split()
# What runs its arguments, with those of its options that take a value.
WRAPPERS = {"command": "", "env": "-u", "exec": "", "nice": "-n", "nsenter": "-t", "setpriv": "--pdeathsig",
            "setsid": "", "timeout": "-k -s", "unshare": "--propagation", "xargs": "-n -I", "flock": "-w"}
calls = {}  # program: where it is called
problems = []


def nodes(tree, kind):
    if isinstance(tree, dict):
        if tree.get("Type") == kind:
            yield tree
        tree = list(tree.values())
    for branch in tree if isinstance(tree, list) else []:
        yield from nodes(branch, kind)


def text(word):
    """A word as the command gets it; expansions by their names."""
    said = ""
    for part in word["Parts"]:
        if part["Type"] == "ParamExp":
            said += "$" + part["Param"]["Value"]
        elif part["Type"] == "CmdSubst":
            looked_up = [words for _, words in commands(part) if words[:2] == ["command", "-v"]]
            said += looked_up[0][2] if looked_up else "$()"
        elif part["Type"] == "DblQuoted":
            said += re.sub(r'\\(["$`\\])', r"\1", text({"Parts": part.get("Parts", [])}))
        else:
            said += part.get("Value", "")
    return said


def commands(tree):
    for call in nodes(tree, "CallExpr"):
        if call.get("Args"):
            yield call["Args"][0]["Pos"]["Line"], [text(word) for word in call["Args"]]


def parse(source):
    return json.loads(run(["shfmt", "-tojson"], input=source, capture_output=True, text=True, check=True).stdout)


def script(name, source, first=1, functions=None):
    """Notes every program that a script calls."""
    tree = parse(source)
    if functions is None:
        functions = {}
        for _, words in commands(tree):
            if words[0] == ".":
                # Named from the folder of the script: "$here/…".
                sourced = os.path.join(os.path.dirname(name), words[1].partition("/")[2])
                sourced = sourced if os.path.exists(sourced) else words[1]
                functions |= {node["Name"]["Value"]: node for node in nodes(parse(open(sourced).read()), "FuncDecl")}
        functions |= {node["Name"]["Value"]: node for node in nodes(tree, "FuncDecl")}
    for line, words in commands(tree):
        call(words, (name, first + line - 1), functions)


def call(words, where, functions):
    program, rest = words[0], words[1:]
    if program in VARIABLES:
        call(VARIABLES[program].split() + rest if VARIABLES[program] else [""], where, functions)
    elif program in ("", "$@", "$1", *OURS) or "/" in program:
        pass  # what was passed on is looked at where it is passed; with a slash it is a file of ours
    elif program.startswith("$"):
        problems.append(f"{where[0]}:{where[1]}: {program} may be any program: tell in VARIABLES what it is")
    elif program in functions:
        runs, shifts = runs_arguments(program, functions)
        if runs and rest[shifts:]:
            call(rest[shifts:], where, functions)
    elif program == "trap":
        script(where[0], rest[0], where[1], functions)
    elif program not in BUILTINS:
        if program not in ("command", "exec"):
            calls.setdefault(program, f"{where[0]}:{where[1]}")
        if program in ("sh", "bash") and any(re.fullmatch("-[eux]*c", word) for word in rest):
            script(where[0], next(word for word in rest if word[0] != "-"), where[1], functions)
        if program == "find" and "-exec" in rest:
            call(rest[rest.index("-exec") + 1:], where, functions)
        if program in WRAPPERS and started(words):
            call(started(words), where, functions)


def started(words):
    """The command among a wrapper's arguments."""
    options, rest = WRAPPERS[words[0]].split(), words[1:]
    while rest and re.match(r"-|\d+$|\w+=|\$(names|work|old|FATHOM_TEST_SECONDS)\b|\$\(", rest[0]):
        if words[0] == "command":  # -v only looks it up
            return []
        rest = rest[2 if rest[0] in options else 1:]
    return rest


def runs_arguments(function, functions):
    """Whether a function runs its arguments, and how many words it takes off them before."""
    runs, shifts = False, 0
    for _, words in commands(functions[function]):
        if words[0] == "shift":
            shifts += int((words[1:] or ["1"])[0])
        while words and words[0] in WRAPPERS:
            words = started(words)
        name = words[0] if words else ""
        passed = name in ("sh", "bash") and "-c" in words
        passed |= name != function and name in functions and runs_arguments(name, functions)[0]
        runs |= name in ("$@", "$1") or passed and "$@" in words
    return runs, shifts


def makefile(source):
    recipes = r"^\t[-@+]*((?:.*\\\n)*.*)"
    shells = r"\$\(shell ((?:[^()]|\([^()]*\))*)\)"
    for found in [*re.finditer(recipes, source, re.M), *re.finditer(shells, source)]:
        lines = re.sub(r"\$\((\w+)\)", r"${\1}", found[1])
        lines = re.sub(r"\$\([a-z-]+ (?:[^()]|\([^()]*\))*\)", "WORDS", lines)
        script("Makefile", lines.replace("$$", "$"), source.count("\n", 0, found.start()) + 1)


PROGRAM = r'"([a-z][\w.+-]*)"'
RUST = re.compile("|".join([
    rf"(?:(?<!clap::)Command::new|(?<![.\w])(?:program|which|said))\(\s*{PROGRAM}",
    rf"(?<![\w.])run\(\s*{PROGRAM},\s*&\[",
    rf'(?<!\w)\(\s*{PROGRAM},\s*&\[\s*"-',  # of a list of programs with options
    rf'{PROGRAM},\s*\["-',
]))
LIST = re.compile(r'for \w+ in \[((?:\s*"[\w.-]+",?)+)\]\s*\{[^{}]*program\(')


def rust(name):
    source = re.sub(r"^[ \t]*//.*", "", open(name).read(), flags=re.M)
    inside = re.match(r"crates/testkit|crates/[\w-]+/tests|bench", name)
    for found in [*RUST.finditer(source), *LIST.finditer(source)]:
        if inside or found[0].startswith("Command::new"):
            for program in set(re.findall(PROGRAM, found[0])) - set(OURS):
                calls.setdefault(program, f"{name}:{source.count(chr(10), 0, found.start()) + 1}")


def table():
    """Every program beside its callers; gives the lines and groups of the packages."""
    packages, listed = {}, set()
    for number, line in enumerate(open(TABLE), 1):
        line, _, wanted_by = line.partition("#")
        if line.strip():
            groups, package, *programs = line.split()
            packages[package.split("[")[0]] = (number, groups)
            listed |= set(programs)
            for program in set(programs) - set(calls) if not wanted_by else []:
                problems.append(f"{TABLE}:{number}: nobody calls {program}: remove it, or say behind # who wants it")
    for program in set(calls) - listed:
        problems.append(f"{calls[program]}: {program} is not in {TABLE}: add it there with its Debian package")
    return packages


def debian(packages):
    """Whether Debian 12 has each package, and its smallest installation those of base."""
    names = [name for name in packages if name[0] != "("]
    shown = run(["apt-cache", "show", *names], capture_output=True, text=True).stdout
    known = set(re.findall(r"^Package: (\S+)", shown, re.M))
    required = r"^Package: (\S+)\n(?:(?!Package:).+\n)*?(?:Essential: yes|Priority: required)$"
    small = {"apt"} | set(re.findall(required, shown, re.M))  # what debootstrap takes
    for name in names:
        number, groups = packages[name]
        if name not in known:
            problems.append(f"{TABLE}:{number}: Debian 12 has no package {name}")
        if "base" in groups and name not in small:
            problems.append(f"{TABLE}:{number}: not every Debian 12 has {name}: give it another group")


for name in sorted([".ci/run", *glob.glob("tools/*"), *glob.glob("tools/*/*")]):
    if os.path.isfile(name) and name not in IN_GUEST:
        source = open(name).read()
        if re.match(r"#!/bin/(ba)?sh|# shellcheck shell", source):
            script(name, source)
        for program in re.findall(r'\brun\(\["([\w-]+)"', source):
            calls.setdefault(program, name)
makefile(open("Makefile").read())
for name in sorted([*glob.glob("crates/**/*.rs", recursive=True), *glob.glob("bench/**/*.rs", recursive=True)]):
    rust(name)
packages = table()
if glob.glob("/var/lib/apt/lists/*_Packages*") and "bookworm" in open("/etc/os-release").read():
    debian(packages)
print(*sorted(problems), sep="\n", end="\n" if problems else "")
sys.exit(bool(problems))
