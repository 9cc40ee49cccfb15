#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each product source by itself, without code: compile_alone.py BUILD, a build tree configured without joined sources.

Unity builds do not notice that a file lacks an include that its neighbour has.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

FOLDERS = ("api", "core", "plugins", "tools", "bindings", "examples")


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    source = pathlib.Path(__file__).resolve().parents[2]
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.is_relative_to(source) and path.relative_to(source).parts[0] in FOLDERS:
            commands.setdefault(path, entry)
    if not commands:
        sys.exit(f"{build} compiles none of the product's sources")

    def compile_one(path: pathlib.Path) -> str | None:
        words = shlex.split(commands[path]["command"])
        at = words.index("-o")
        del words[at : at + 2]
        done = subprocess.run([*words, "-fsyntax-only"], cwd=commands[path]["directory"], capture_output=True, text=True)
        return None if done.returncode == 0 else f"{path.relative_to(source)}:\n{done.stderr}"

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        failures = [text for text in pool.map(compile_one, sorted(commands)) if text]
    print("\n".join(failures))
    print(f"{len(commands) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
