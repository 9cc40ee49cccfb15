#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Line coverage of core and the plugins: coverage.py BUILD

BUILD was configured with -DCMAKE_CXX_FLAGS=--coverage -DCMAKE_C_FLAGS=--coverage, built, and tests have run in it. Prints the share of lines that
ran, by room. `find BUILD -name '*.gcda' -delete` starts anew.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]


def lines_of(data: pathlib.Path) -> list[tuple[str, int, bool]]:
    """The lines that one object file has code for, and whether each ran."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", str(data)], capture_output=True, text=True, cwd=data.parent)
    found = []
    for report in done.stdout.splitlines():
        if not report.startswith("{"):
            continue
        report = json.loads(report)
        for file in report["files"]:
            path = pathlib.Path(os.path.normpath(os.path.join(report["current_working_directory"], file["file"])))
            path = pathlib.Path(os.path.realpath(path))
            if path.is_relative_to(SOURCE):
                name = str(path.relative_to(SOURCE))
                found += [(name, line["line_number"], line["count"] > 0) for line in file["lines"]]
    return found


def main() -> int:
    ran: dict[tuple[str, int], bool] = {}
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for found in pool.map(lines_of, sorted(pathlib.Path(sys.argv[1]).resolve().rglob("*.gcda")), chunksize=4):
            for name, line, did in found:
                ran[name, line] = ran.get((name, line), False) or did
    rooms = collections.defaultdict(lambda: [0, 0])
    for (name, _), did in ran.items():
        parts = name.split("/")
        if parts[0] == "core" or (parts[0] == "plugins" and len(parts) > 2):
            for room in ("/".join(parts[:2]), parts[0] if parts[0] == "core" else "plugins", "all"):
                rooms[room][0] += did
                rooms[room][1] += 1
    for room, (hit, lines) in sorted(rooms.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"{room:24} {100 * hit / lines:6.2f} %  of {lines}")
    return 0 if rooms else 1


if __name__ == "__main__":
    sys.exit(main())
