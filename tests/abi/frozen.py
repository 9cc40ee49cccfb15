#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the interfaces with those of the last release, which tests/abi/released describes. They may only grow.

usage: frozen.py ROOT WORK           ends with 1 if something that a program or plugin may rely on has changed
       frozen.py ROOT WORK --plant   plants one break of each kind, and ends with 1 if one is not found
       frozen.py ROOT WORK --update  writes tests/abi/released; part of a release

  client.abi, plugin.abi  functions, and the layout of structs: abidw's description of the headers, read by abidiff
  constants.txt           enumerators and macros, with their values
  ops.txt                 op, version, and all of the row in ops.def but its texts
  settings.txt            name, kind and default of each setting

Needs a C compiler with DWARF (CC, default cc), and abidw and abidiff (abigail-tools).
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

HEADERS = {"client": "compute.h", "plugin": "plugin.h"}
TABLES = ("constants", "ops", "settings")
ADDED_FUNCTIONS = 4  # bits of abidiff's exit status
INCOMPATIBLE = 8


def run(*command, check=True, stdin=None):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, input=stdin)
    if check and result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


class Sources:
    """The files that state the interfaces. `changes` are (file, old, new) to read in place of what is there."""

    def __init__(self, root, work, changes=()):
        self.api = work / "api"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(root / "api/compute", self.api / "compute")
        shutil.copy(root / "core/settings/settings.def", self.api / "settings.def")
        for file, old, new in changes:
            text = self.read(file)
            if old not in text:
                sys.exit(f"{file} has no {old!r} to plant a break in")
            (self.api / file).write_text(text.replace(old, new, 1), encoding="utf-8")

    def read(self, file):
        return (self.api / file).read_text(encoding="utf-8")

    def included(self, header):
        """The text of a header and of those that it includes."""
        text = without_comments(self.read(f"compute/{header}"))
        for other in re.findall(r'#include "(?:compute/)?(\w+\.h)"', text):
            text += without_comments(self.read(f"compute/{other}"))
        return text

    def describe_layout(self, header, file):
        """A library whose functions do nothing, and which has a variable of each struct: its types are the interface."""
        text = self.included(header)
        functions = re.findall(r"^(?:COMPUTE_API|COMPUTE_PLUGIN_EXPORT)\s+([\w\s*]+?\(.*?\))\s*;", text, re.S | re.M)
        structs = re.findall(r"typedef struct (\w+) \{", text)
        program = [f'#include "compute/{header}"']
        program += [f"__attribute__((visibility(\"default\"))) struct {name} variable_{name};" for name in structs]
        program += [f"{function} {{ __builtin_trap(); }}" for function in functions]
        library = self.api / f"{header[:-2]}.so"
        run(os.environ.get("CC", "cc"), "-std=c11", "-g", "-O0", "-shared", "-fPIC", "-w", f"-I{self.api}", "-x", "c", "-", "-o",
            library, stdin="\n".join(program) + "\n")
        run("abidw", "--no-show-locs", "--no-comp-dir-path", "--no-corpus-path", "--no-elf-needed", "--type-id-style", "hash",
            "--out-file", file, library)

    def constants(self):
        found = {}
        for header in HEADERS.values():
            text = self.included(header)
            names = re.findall(r"^\s*(COMPUTE_\w+)\s*=", text, re.M) + re.findall(r"^#define (COMPUTE_[A-Z0-9_]+) +\S", text, re.M)
            # Versions change, and attributes of compilers have no value.
            names = [name for name in dict.fromkeys(names)
                     if not re.match(r"COMPUTE_(VERSION|API$|UNDERLYING|PLUGIN_EXPORT)", name) and not name.endswith("_")]
            program = f'#include <stdio.h>\n#include "compute/{header}"\nint main(void) {{\n'
            program += "".join(
                f'  printf(_Generic(({name}), const char*: "{name} = %s\\n", char*: "{name} = %s\\n", '
                f'default: "{name} = %lld\\n"), _Generic(({name}), const char*: ({name}), char*: ({name}), '
                f'default: (long long)({name})));\n' for name in names)
            binary = self.api / f"constants_{header[:-2]}"
            run(os.environ.get("CC", "cc"), "-std=c11", "-w", f"-I{self.api}", "-x", "c", "-", "-o", binary, stdin=program + "}\n")
            for line in run(binary).stdout.splitlines():
                name, value = line.split(" = ", 1)
                found[name] = value
        return found

    def ops(self):
        """Rows without their texts (summary, operands' prose, gradient, sources, plain call)."""
        found = {}
        text = re.sub(r"^\s*//.*$", "", self.read("compute/ops.def"), flags=re.M)
        for kind, row in re.findall(r"^COMPUTE_(UNARY|BINARY|TERNARY|OP) *\((.*?)\)\s*$", text, re.M | re.S):
            fields = [field.strip() for field in re.findall(r'\s*("(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*|[^,"]+)\s*(?:,|$)', row)]
            name, version, *rest = fields
            rest = [re.sub(r'"\s*"', "", field) for field in rest]
            found[f"{name} {version}"] = " ".join([kind, *(rest[:6] if kind == "OP" else rest[:4])])
        return found

    def settings(self):
        row = re.compile(r'^COMPUTE_SETTING\((\w+),\s*"(\w+)",\s*"([\w.]*)",\s*(\w+),\s*"([^"]*)"', re.M)
        return {name: f"{kind} {default}" for _, name, _, kind, default in row.findall(self.read("settings.def"))}

    def describe(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, header in HEADERS.items():
            self.describe_layout(header, folder / f"{name}.abi")
        for name in TABLES:
            rows = getattr(self, name)()
            (folder / f"{name}.txt").write_text("".join(f"{key} = {value}\n" for key, value in rows.items()), encoding="utf-8")


def rows_of(file):
    return dict(line.split(" = ", 1) for line in file.read_text(encoding="utf-8").splitlines())


def differences(released, today):
    """What a program or plugin of the release may trip over."""
    found = []
    for name in HEADERS:
        result = run("abidiff", "--no-show-locs", "--suppressions", released / "growth.suppr", released / f"{name}.abi", today / f"{name}.abi",
                     check=False)
        if result.returncode & ~ADDED_FUNCTIONS:
            found.append(f"{HEADERS[name]}:\n{result.stdout}{result.stderr}")
    for name in TABLES:
        before, now = rows_of(released / f"{name}.txt"), rows_of(today / f"{name}.txt")
        for key, value in before.items():
            if key not in now:
                found.append(f"{name}: {key} is gone")
            elif now[key] != value:
                found.append(f"{name}: {key} was {value} and is {now[key]}")
    return found


PLANTS = {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    released = options.root / "tests/abi/released"
    for program in ("abidw", "abidiff"):
        if not shutil.which(program):
            sys.exit(f"{program} is missing: install abigail-tools")
    today = options.work / "today"
    sources = Sources(options.root, options.work / "sources")
    if options.update:
        sources.describe(released)
        return
    sources.describe(today)
    found = differences(released, today)
    if found:
        sys.exit("\n".join(found))
    print("the interfaces have what the last release had")


if __name__ == "__main__":
    main()
