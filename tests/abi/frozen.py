#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the interfaces with tests/abi/baseline, which describes those of the last release. They may only grow.

Until a version is released, the baseline is the last state that a commit has stated in CHANGELOG.md.

usage: frozen.py ROOT WORK           ends with 1 if something that a program or plugin may rely on has changed
       frozen.py ROOT WORK --plant   plants one break of each kind, and ends with 1 if one is not found
       frozen.py ROOT WORK --update  writes tests/abi/baseline
       frozen.py ROOT WORK --release the same, and writes core/symbols/VERSION.txt: what the version adds is released

  client.abi, plugin.abi  abidw's description of the headers, read by abidiff: functions and their types
  structs.txt             fields with their types and offsets
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
TABLES = ("structs", "constants", "ops", "settings")
GROWTH = pathlib.Path(__file__).with_name("growth.suppr")


def run(*command, check=True, stdin=None):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, input=stdin)
    if check and result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result


DECLARATION = r"^(?:COMPUTE_API|COMPUTE_PLUGIN_EXPORT)\s+([\w\s*]+?\(.*?\))\s*;"


def functions_of(text):
    """The names of the functions that a header declares."""
    return [re.search(r"(\w+)\(", declared)[1] for declared in re.findall(DECLARATION, text, re.S | re.M)]


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
        """A library whose functions do nothing, and one more function for each struct: its types are the interface."""
        text = self.included(header)
        functions = re.findall(DECLARATION, text, re.S | re.M)
        structs = re.findall(r"typedef struct (\w+) \{", text)
        program = [f'#include "compute/{header}"']
        program += [f"void abi_of_{name}(const struct {name}* value) {{ (void)value; }}" for name in structs]
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
                found[f"{header} {name}"] = value
        return found

    def structs(self):
        rows, program = [], "#include <stddef.h>\n#include <stdio.h>\n"
        for header in HEADERS.values():
            program += f'#include "compute/{header}"\n'
            for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", self.included(header), re.S):
                for field in filter(None, (" ".join(part.split()) for part in body.split(";"))):
                    at = re.search(r"\(\*(\w+)\)\(|(\w+)(?:\[\w+\])*$", field)
                    rows.append((name, at[1] or at[2], field))
        rows = list(dict.fromkeys(rows))
        program += "int main(void) {\n" + "".join(f'  printf("%zu\\n", offsetof({name}, {at}));\n' for name, at, _ in rows) + "}\n"
        binary = self.api / "structs"
        run(os.environ.get("CC", "cc"), "-std=c11", f"-I{self.api}", "-x", "c", "-", "-o", binary, stdin=program)
        return {f"{name}.{at}": f"{field} at {offset}" for (name, at, field), offset in zip(rows, run(binary).stdout.split())}

    def wrong_sizes(self):
        """COMPUTE_…_SIZE_1 is the size of the struct in version 1; later versions may make the struct larger."""
        text = "".join(self.included(header) for header in HEADERS.values())
        names = sorted(set(re.findall(r"#define COMPUTE_(\w+)_SIZE_1\b", text)))
        program = "#include <stdio.h>\n" + "".join(f'#include "compute/{header}"\n' for header in HEADERS.values())
        program += "int main(void) {\n" + "".join(
            f'  printf("%zu %zu\\n", (size_t)COMPUTE_{name}_SIZE_1, sizeof(compute_{name.lower()}));\n' for name in names) + "}\n"
        binary = self.api / "sizes"
        run(os.environ.get("CC", "cc"), "-std=c11", f"-I{self.api}", "-x", "c", "-", "-o", binary, stdin=program)
        is_first = re.search(r"#define COMPUTE_INTERFACE_MINOR 0\b", text) is not None
        for name, line in zip(names, run(binary).stdout.splitlines()):
            least, size = map(int, line.split())
            if least > size or (is_first and least != size):
                yield f"COMPUTE_{name}_SIZE_1 is {least}, and the size of compute_{name.lower()} is {size}"

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

    def describe(self, folder, file=None):
        """Writes the descriptions, or only those that depend on one of the files."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        tables = {"compute/ops.def": ["ops"], "settings.def": ["settings"]}.get(file, TABLES)
        for name, header in HEADERS.items():
            if file in (None, f"compute/{header}"):
                self.describe_layout(header, folder / f"{name}.abi")
        for name in tables:
            rows = getattr(self, name)()
            (folder / f"{name}.txt").write_text("".join(f"{key} = {value}\n" for key, value in rows.items()), encoding="utf-8")


def rows_of(file):
    return dict(line.split(" = ", 1) for line in file.read_text(encoding="utf-8").splitlines())


def differences(baseline, today):
    """What a program or plugin of the release may trip over."""
    found = []
    for name in HEADERS:
        if not (today / f"{name}.abi").exists():
            continue
        result = run("abidiff", "--no-show-locs", "--no-added-syms", "--suppressions", GROWTH, baseline / f"{name}.abi",
                     today / f"{name}.abi", check=False)
        if result.returncode != 0:
            found.append(f"{HEADERS[name]}:\n{result.stdout}{result.stderr}")
    for name in TABLES:
        if not (today / f"{name}.txt").exists():
            continue
        before, now = rows_of(baseline / f"{name}.txt"), rows_of(today / f"{name}.txt")
        for key, value in before.items():
            if key not in now:
                found.append(f"{name}: {key} is gone")
            elif now[key] != value:
                found.append(f"{name}: {key} was {value} and is {now[key]}")
    return found


def release(root, sources):
    """Lists the functions that no released version has as those of the version in compute.h."""
    symbols = root / "core/symbols"
    symbols.mkdir(exist_ok=True)
    text = sources.included("compute.h")
    number = {part: re.search(rf"#define COMPUTE_INTERFACE_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR")}
    released = {name for file in symbols.glob("*.txt") for name in file.read_text(encoding="utf-8").split()}
    added = [name for name in functions_of(text) if name not in released]
    if added:
        (symbols / "{MAJOR}.{MINOR}.txt".format(**number)).write_text("\n".join(added) + "\n", encoding="utf-8")


# Breaks, one of each kind: (what, file, old text, new text).
PLANTS = [
    ("a field that moved", "compute/compute.h", "  int64_t groups[3]; ", "  int64_t local_memory_bytes_; int64_t groups[3]; "),
    ("two fields that were swapped", "compute/compute.h", "  const char* plugin; /* cpu, cuda, opencl, … */\n  int64_t plugin_size;",
     "  int64_t plugin_size;\n  const char* plugin;"),
    ("a field of another type", "compute/compute.h", "  int64_t nodes; ", "  int32_t nodes; "),
    ("a function that is gone", "compute/compute.h", "void compute_version(", "void compute_versions("),
    ("a parameter that was added", "compute/compute.h", "compute_dtype_size(compute_dtype dtype)",
     "compute_dtype_size(compute_dtype dtype, int32_t kind)"),
    ("a slot in the middle", "compute/plugin.h", "  void (*close)(uint64_t device);",
     "  void (*rest)(uint64_t device);\n  void (*close)(uint64_t device);"),
    ("another value of a constant", "compute/compute.h", "COMPUTE_DTYPE_FLOAT32 = 12", "COMPUTE_DTYPE_FLOAT32 = 16"),
    ("another default of a setting", "settings.def", '"mixed", "mixed strict"', '"strict", "mixed strict"'),
    ("another default of an attribute", "compute/ops.def", "axis: int64 = -1; epsilon: number = 1e-5 !",
     "axis: int64 = -1; epsilon: number = 1e-6 !"),
    ("another meaning of an op", "compute/ops.def", '"where(x <= 0, 0, x)"', '"where(x < 0, 0, x)"'),
    ("another bound of an op", "compute/ops.def", '"exp(x)",                              1,', '"exp(x)",                              4,'),
    ("an op that is gone", "compute/ops.def", "COMPUTE_UNARY (expm1,               1,", "COMPUTE_UNARY (expm1,               2,"),
]
WRONG_SIZE = ("compute/compute.h", "COMPUTE_LAUNCH_SIZE_1 72u", "COMPUTE_LAUNCH_SIZE_1 80u")
# What a later version may do.
GROWTHS = [
    ("compute/compute.h", "} compute_launch;", "  int64_t priority;\n} compute_launch;"),
    ("compute/compute.h", "  COMPUTE_DTYPE_FLOAT8_E5M2 = 17\n", "  COMPUTE_DTYPE_FLOAT8_E5M2 = 17,\n  COMPUTE_DTYPE_LATER = 18\n"),
    ("compute/compute.h", "COMPUTE_API void compute_version(", "COMPUTE_API void compute_later(void);\nCOMPUTE_API void compute_version("),
    ("compute/plugin.h", "} compute_plugin_device_table;", "  void (*later)(uint64_t device);\n} compute_plugin_device_table;"),
    ("compute/plugin.h", "} compute_plugin_caps;", "  int64_t later;\n} compute_plugin_caps;"),
    ("compute/ops.def", "COMPUTE_UNARY (expm1,", 'COMPUTE_UNARY (exp,                 2,      INEXACT, SAME,   "exp(x)", 2,  "later", "C")\nCOMPUTE_UNARY (expm1,'),
]


def plant(root, work, baseline):
    """Every break is found, and growth is none."""
    missed = []
    for what, *change in PLANTS:
        Sources(root, work / "sources", [change]).describe(work / "planted", change[0])
        if not differences(baseline, work / "planted"):
            missed.append(what)
    if not list(Sources(root, work / "sources", [WRONG_SIZE]).wrong_sizes()):
        missed.append("a wrong size in version 1")
    Sources(root, work / "sources", GROWTHS).describe(work / "grown")
    found = differences(baseline, work / "grown")
    if found:
        missed.append("growth, which is allowed:\n" + "\n".join(found))
    if missed:
        sys.exit("not found: " + "; ".join(missed))
    print(f"{len(PLANTS) + 1} breaks were found, and {len(GROWTHS)} additions allowed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--release", action="store_true")
    options = parser.parse_args()
    baseline = options.root / "tests/abi/baseline"
    for program in ("abidw", "abidiff"):
        if not shutil.which(program):
            sys.exit(f"{program} is missing: install abigail-tools")
    options.work.mkdir(parents=True, exist_ok=True)
    today = options.work / "today"
    if options.plant:
        return plant(options.root, options.work, baseline)
    sources = Sources(options.root, options.work / "sources")
    if options.release:
        release(options.root, sources)
    if options.update or options.release:
        return sources.describe(baseline)
    sources.describe(today)
    found = [*sources.wrong_sizes(), *differences(baseline, today)]
    if found:
        sys.exit("\n".join(found))
    print("the interfaces have what the last release had")


if __name__ == "__main__":
    main()
