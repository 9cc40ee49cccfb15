#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs and plugins of one version of the interface against the library of another.

    releases.py ROOT BUILD WORK [--other TREE]

BUILD is a build of ROOT. The other version is the source tree TREE, by default a simulated later one: a copy of ROOT
with a function, a slot, and fields that are added. The conformance program of each side runs, at the smoke level, on
the library of the other, with the plugins of both.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import frozen

LATER = [
    ("api/compute/compute.h", "#define COMPUTE_INTERFACE_MINOR 1", "#define COMPUTE_INTERFACE_MINOR 2"),
    ("api/compute/compute.h", "COMPUTE_API void compute_version(",
     "COMPUTE_API int32_t compute_later(void);\nCOMPUTE_API void compute_version("),
    ("api/compute/compute.h", "} compute_launch;", "  int64_t later;\n} compute_launch;"),
    ("api/compute/compute.h", "} compute_graph_info;", "  int64_t later;\n} compute_graph_info;"),
    ("api/compute/plugin.h", "} compute_plugin_device_table;", "  void (*later)(uint64_t device);\n} compute_plugin_device_table;"),
    ("api/compute/plugin.h", "} compute_plugin_caps;", "  int64_t later;\n} compute_plugin_caps;"),
    ("api/compute/plugin.h", "} compute_plugin_run;", "  int64_t later;\n} compute_plugin_run;"),
    ("core/loading/plugin_slots.def", "COMPUTE_PLUGIN_SLOT(compute_plugin_device_table, caps, ",
     "COMPUTE_PLUGIN_SLOT(compute_plugin_device_table, later, OPTIONAL)\nCOMPUTE_PLUGIN_SLOT(compute_plugin_device_table, caps, "),
]
PROGRAM = """
#include <compute/compute.h>
#include <stdio.h>
int main(void) {
  compute_error* error = compute_require_interface(COMPUTE_INTERFACE_MAJOR, COMPUTE_INTERFACE_MINOR);
  if (error != NULL) printf("%s\\n", compute_error_message(error));
  return error != NULL ? 3 : CALL;
}
"""


def run(*command, check=True, env=None, cwd=None):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=env, cwd=cwd)
    if check and result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {result.returncode}\n{(result.stdout + result.stderr)[-8000:]}")
    return result


def later_tree(root, tree):
    """A copy of the sources in which the interface has grown."""
    shutil.rmtree(tree, ignore_errors=True)
    files = run("git", "-C", root, "ls-files").stdout.split()
    for file in files:
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / file, tree / file)
    for file, old, new in LATER:
        path = tree / file
        text = path.read_text(encoding="utf-8")
        if old not in text:
            sys.exit(f"{file} has no {old!r}")
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
    version = tree / "core/base/version.cpp"
    version.write_text(version.read_text(encoding="utf-8") + "\nint32_t compute_later(void) { return 0; }\n", encoding="utf-8")
    # Today's functions are those of a released version; compute_later is of the next one.
    released = {name for file in (root / "core/symbols").glob("*.txt") for name in file.read_text(encoding="utf-8").split()}
    text = "".join(frozen.without_comments((root / f"api/compute/{header}.h").read_text(encoding="utf-8")) for header in ("compute", "ops"))
    missing = sorted(set(frozen.functions_of(text)) - released)
    if missing:
        sys.exit(f"core/symbols lacks {', '.join(missing)}: frozen.py --release lists them")


def build(tree, folder):
    run("cmake", "-S", tree, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1",
        "-DCMAKE_UNITY_BUILD=ON", "-DCOMPUTE_TESTS=OFF", "-DCOMPUTE_EXAMPLES=OFF", "-DCOMPUTE_CTS=ON",
        *(["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []))
    run("cmake", "--build", folder, "--target", "compute", "compute_plugin_cpu", "compute-cts")


class Side:
    def __init__(self, name, tree, folder):
        self.name, self.tree = name, tree
        self.library = folder / "lib/libcompute.so"
        self.plugin = folder / "lib/compute/plugins/compute_plugin_cpu.so"
        self.cts = folder / "bin/compute-cts"


def environment(library, plugin):
    own = {name: value for name, value in os.environ.items() if not name.startswith("COMPUTE_")}
    return dict(own, LD_PRELOAD=str(library), LD_LIBRARY_PATH=str(library.parent), COMPUTE_PLUGIN_FILES=str(plugin), COMPUTE_LOG="error")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--other", type=pathlib.Path)
    options = parser.parse_args()
    root, work = options.root.resolve(), options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    tree = options.other.resolve() if options.other else work / "tree"
    if not options.other:
        later_tree(root, tree)
    build(tree, work / "build")
    today, other = Side("today's", root, options.build.resolve()), Side("the other", tree, work / "build")
    for program in (today, other):
        for library in (today, other):
            for plugin in (today, other):
                if program is library is plugin:
                    continue
                # The oracle of an older program does not know the ops of a newer library.
                known = [] if program is library else ["--gtest_filter=-*.every_op_has_an_oracle:*.every_op_is_tested"]
                run(program.cts, "--level", "smoke", "--device", "cpu", *known, env=environment(library.library, plugin.plugin))
                print(f"passed: {program.name} program, {library.name} library, {plugin.name} plugin", flush=True)
    if options.other:
        return
    # What needs the later version says so.
    source = work / "later.c"
    for call, expected in (("0", "needs version 1.2"), ("compute_later()", "COMPUTE_1.2")):
        source.write_text(PROGRAM.replace("CALL", call), encoding="utf-8")
        run(os.environ.get("CC", "cc"), f"-I{tree / 'api'}", source, "-o", work / "later", other.library)
        env = environment(today.library, today.plugin)
        del env["LD_PRELOAD"]
        result = run(work / "later", check=False, env=env)
        if result.returncode == 0 or expected not in result.stdout + result.stderr:
            sys.exit(f"a later program on today's library: {result.returncode}\n{result.stdout}{result.stderr}")
        print(f"passed: a later program is refused: {(result.stdout + result.stderr).strip()[:200]}", flush=True)


if __name__ == "__main__":
    main()
