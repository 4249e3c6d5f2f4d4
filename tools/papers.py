#!/usr/bin/env python3
"""Writes the SBOM (CycloneDX 1.5) and the licences of what is linked into the binary.

usage: tools/papers.py VERSION SBOM.json LICENCES.txt

Both come from `cargo metadata`: the packages that fathom-cli reaches by other than
development dependencies, of Linux on x86-64 and aarch64. Nothing of this machine or of
today is in them.
"""

import json
import os
import re
import sys
from subprocess import run

os.chdir(os.path.dirname(os.path.abspath(__file__)) + "/..")
version, sbom, licences = sys.argv[1:]
CARGO = os.environ.get("CARGO", "cargo")
TARGETS = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]
LICENCE_FILE = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|UNLICENSE)", re.I)


def metadata():
    filters = [word for target in TARGETS for word in ("--filter-platform", target)]
    said = run([CARGO, "metadata", "--format-version", "1", "--locked", *filters],
               capture_output=True, text=True, check=True).stdout
    return json.loads(said)


def linked(data):
    """Identifiers of the packages in the binary, and what each depends on."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    root = next(package["id"] for package in data["packages"] if package["name"] == "fathom-cli")
    edges, open_ids = {}, [root]
    while open_ids:
        at = open_ids.pop()
        if at in edges:
            continue
        kinds = lambda dep: any(kind["kind"] != "dev" for kind in dep["dep_kinds"])
        edges[at] = sorted(dep["pkg"] for dep in nodes[at]["deps"] if kinds(dep))
        open_ids += edges[at]
    return root, edges


def checksums():
    """What Cargo.lock says of every package of a registry."""
    found = re.findall(r'name = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "(\w+)"', open("Cargo.lock").read())
    return {(name, number): checksum for name, number, checksum in found}


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, sums):
    entry = {"type": "library", "bom-ref": purl(package), "name": package["name"], "version": package["version"]}
    if package.get("description"):
        entry["description"] = " ".join(package["description"].split())
    checksum = sums.get((package["name"], package["version"]))
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package.get("license"):
        # "/" is what "OR" was written as before (Cargo's manual, `license`).
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    entry["purl"] = purl(package)
    if package.get("repository"):
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return entry


def texts(package):
    folder = os.path.dirname(package["manifest_path"])
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if LICENCE_FILE.match(name) and os.path.isfile(path):
            yield name, open(path, encoding="utf-8", errors="replace").read().strip()


data = metadata()
root, edges = linked(data)
packages = {package["id"]: package for package in data["packages"]}
sums = checksums()
ordered = sorted((packages[at] for at in edges), key=lambda it: (it["name"], it["version"]))
main = packages[root]
bom = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "version": 1,
    "metadata": {"component": component(main, sums) | {"type": "application", "name": "fathom", "version": version}},
    "components": [component(package, sums) for package in ordered if package is not main],
    "dependencies": [
        {"ref": purl(package), "dependsOn": sorted({purl(packages[at]) for at in edges[package["id"]]})}
        for package in ordered
    ],
}
with open(sbom, "w") as out:
    json.dump(bom, out, indent=1, ensure_ascii=False)
    out.write("\n")

# Each text once, with all whose it is.
whose, missing = {}, []
for package in ordered:
    if package["source"] is None:
        continue
    found = list(texts(package))
    if not found:
        missing.append(package)
    for name, text in found:
        whose.setdefault(text, []).append(f"{package['name']} {package['version']}")
third_party = sorted(os.path.join(at, name) for at, _, names in os.walk("third_party") for name in names
                     if LICENCE_FILE.search(name) or name.upper().startswith("OFL"))
for path in third_party:
    whose.setdefault(open(path, encoding="utf-8", errors="replace").read().strip(), []).append(path)
with open(licences, "w") as out:
    out.write("What is linked into or shipped with Fathom, and on which terms.\n\n")
    for package in ordered:
        if package["source"] is not None:
            out.write(f"{package['name']} {package['version']}: {package.get('license') or 'see below'}\n")
    for package in missing:
        out.write(f"\n{package['name']} {package['version']} brings no text of its licence ({package.get('license')}).\n")
    for text, names in whose.items():
        out.write(f"\n{'-' * 78}\n{', '.join(sorted(set(names)))}\n\n{text}\n")
print(f"{len(ordered)} packages, {len(whose)} texts of licences")
