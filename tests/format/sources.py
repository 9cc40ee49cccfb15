#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: sources.py SOURCE_DIR [--format CLANG_FORMAT]

Finds lines of C and C++ that are longer than 120 columns (those of raw strings are text, and may be), and with --format files
that clang-format would change.
"""
import pathlib
import subprocess
import sys

COLUMNS = 120
FOLDERS = ("api", "bindings", "core", "examples", "plugins", "tests", "tools")
SUFFIXES = {".c", ".cpp", ".h", ".hpp"}


def long_lines(path):
    in_raw_string = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        opens, closes = line.rfind('R"('), line.rfind(')"')
        touches_raw_string = in_raw_string or opens >= 0
        if len(line) > COLUMNS and not touches_raw_string:
            yield f"{path}:{number}: {len(line)} columns"
        if in_raw_string or opens >= 0:
            in_raw_string = closes <= opens if opens >= 0 else closes < 0


def main():
    source = pathlib.Path(sys.argv[1])
    files = sorted(path for folder in FOLDERS for path in (source / folder).rglob("*") if path.suffix in SUFFIXES)
    if len(files) < 100:
        sys.exit(f"{source} is not the source tree")
    complaints = [complaint for path in files for complaint in long_lines(path)]
    if "--format" in sys.argv:
        command = [sys.argv[sys.argv.index("--format") + 1], "--dry-run", "-Werror", *map(str, files)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            complaints.append(result.stderr)
    print("\n".join(complaints) if complaints else f"{len(files)} files")
    sys.exit(1 if complaints else 0)


main()
