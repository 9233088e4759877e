#!/usr/bin/env python3
"""Writes a software bill of materials (CycloneDX 1.5, JSON) of the program: every crate that is compiled into it, with version,
licence and checksum.

usage: scripts/sbom.py FILE
"""

import json
import os
import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]


def cargo(*arguments: str) -> str:
    command = [os.environ.get("CARGO", "cargo"), *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def compiled_in(metadata: dict, name: str) -> list[dict]:
    """The package of this name and what it depends on, without what only tests and build scripts need."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found, todo = {}, [next(place for place, package in packages.items() if package["name"] == name)]
    while todo:
        place = todo.pop()
        if place in found:
            continue
        found[place] = packages[place]
        for dependency in nodes[place]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    return sorted(found.values(), key=lambda package: (package["name"], package["version"]))


def component(package: dict, sums: dict[tuple[str, str], str]) -> dict:
    name, version = package["name"], package["version"]
    one = {"type": "library", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}"}
    if package["license"]:
        one["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := sums.get((name, version)):
        one["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return one


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    host = next(line for line in cargo("-vV").splitlines() if line.startswith("host: ")).removeprefix("host: ")
    metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", host))
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    sums = {(one["name"], one["version"]): one["checksum"] for one in lock["package"] if "checksum" in one}
    packages = compiled_in(metadata, "incast")
    program = component(next(package for package in packages if package["name"] == "incast"), sums)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {**program, "type": "application"}},
        "components": [component(package, sums) for package in packages if package["name"] != "incast"],
    }
    pathlib.Path(sys.argv[1]).write_text(json.dumps(bill, indent=1) + "\n")
    print(f"{sys.argv[1]}: {len(packages) - 1} crates")
    return 0


if __name__ == "__main__":
    sys.exit(main())
