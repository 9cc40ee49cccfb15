#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows every link of the installed pages, and runs the commands that they show.

    pages.py --prefix TREE --docs share/doc/compute --libraries lib --source REPOSITORY --work FOLDER

The commands of a page run block by block in a separate folder. A block of code whose first line is a comment with the name of a file is written to that file.
Commands that match no entry of RULES must succeed.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
for option in ("prefix", "source", "work"):
    parser.add_argument(f"--{option}", type=pathlib.Path, required=True)
parser.add_argument("--docs", required=True)
parser.add_argument("--libraries", required=True)
options = parser.parse_args()
prefix, source, work = options.prefix, options.source, options.work
docs, shared = prefix / options.docs, prefix / "share/compute"
problems = []

# What a reader replaces, and what would take long.
REPLACED = {"/opt/compute": str(prefix), "--level quick": "--level smoke", "-L quick": "-L smoke", "--jobs 0": "--jobs 2"}

# Enough tests of the conformance program to show that its commands work: install.kit runs the whole smoke level on the template, whose kernels a C
# compiler makes.
FEW_TESTS = "*/device.*:*/memory.*:*/stream.*:*/elementwise.add_*:*/reduce.sum_*"

# Without the network: what scikit-build-core does.
PIP = (f"cmake -S {shared}/bindings/python -B built -DSKBUILD=ON -DPython_EXECUTABLE={sys.executable} && cmake --build built && "
       f"cmake --install built --prefix package && cp {shared}/bindings/python/compute/*.py package/compute")

# Commands that are not run as they are. REPOSITORY: what they name exists there. ELSEWHERE: they download, need what few have, or have a test of their own.
# DEVICE: a machine without the device gets an error that says so. Text: this is run instead.
REPOSITORY, ELSEWHERE, DEVICE = object(), object(), object()
RULES = [
    (r"cmake (--build )?--preset |ctest --preset |cmake --install build/|(mpiexec -n \d )?((/usr/bin/)?python3 )?(tools|bindings)/|.*COMPUTE/tests/", REPOSITORY),
    (r"(sudo )?apt-get |git clone |pip install (scikit-build-core|-r) |bindgen ", ELSEWHERE),
    (r"compute-bench ", ELSEWHERE),  # tests/abi/bench.cmake
    (r"pip install mpich$|compute run ", ELSEWHERE),  # tests/python/distributed_test.py
    (r"gfortran ", ELSEWHERE),  # tests/languages
    (r"(COMPUTE_\w+=\S+ )+python3 (spiral|program|examples/python/llm).py|llm --model=", ELSEWHERE),  # tests/python/{tutorial,llm}_test.py
    (r"pip install /opt/compute/share/compute/bindings/python$", PIP),
    (r"COMPUTE_DEVICE=cuda0 \./program|\./program --compute-device=opencl0:1|compute which auto,-opencl", DEVICE),
    (r"compute doctor", DEVICE),
]
# What commands print.
RESULTS = [
    (r"^compute doctor", "install the package acmert"),
    (r"PWD/build compute devices", "minimal0.*\n.*minimal1"),
    (r"^compute-cts", r" passed, 0 failed, "),
    (r"^ctest .*-L", r"100% tests passed, 0 tests failed out of 1"),
    (r"compute which acme0", "acme0"),
]
# Pages whose commands other tests run: tests/languages, install.kit, and docs/python.md, which has the same ones.
PAGES_OF_OTHER_TESTS = {shared / "examples/languages/README.md", shared / "examples/plugin_template/README.md", shared / "bindings/python/README.md"}


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S))


def anchors(text):
    """The names that GitHub gives to headings."""
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S), re.M):
        yield re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()).replace(" ", "-")


def check_links(pages):
    count = 0
    for page, text in pages.items():
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            path, _, anchor = link.partition("#")
            target = pathlib.Path(os.path.normpath(page.parent / path)) if path else page  # as names say, not where symbolic links lead
            if not target.exists():
                problems.append(f"{page}: the link to {link} is dead")
            elif anchor and anchor not in anchors(target.read_text()):
                problems.append(f"{page}: {target} has no heading {anchor}")
        for path in re.findall(r"`((?:share|docs|examples|bindings|api)/[\w./-]*\w)`", text if page.name != "CHANGELOG.md" else ""):
            if not (prefix / path).exists() and not (docs / path).exists():
                problems.append(f"{page} names {path}, which is not installed")
    print(f"{len(pages)} pages, {count} links")
    if count < 70:
        problems.append("too few links were found")


def check_in_repository(page, command):
    presets = {preset["name"] for preset in json.loads((source / "CMakePresets.json").read_text())["configurePresets"]}
    for name in re.findall(r"--preset (\w+)", command):
        if name not in presets:
            problems.append(f"{page}: {command}: there is no preset {name}")
    for path in re.findall(r"(?:^|[ /=])((?:tools|tests|bindings)/[\w./-]+)", command):
        if not (source / path).exists():
            problems.append(f"{page}: {command}: there is no {path}")


def lines_of(body):
    """The commands of a block, without remarks. A backslash continues a line."""
    for line in body.replace("\\\n", " ").splitlines():
        line = re.sub(r"(^|\s+)#\s.*$", "", line).strip()
        if line:
            yield line


def run(folder, commands, **variables):
    """Runs commands in one shell. Returns the status and the output of each."""
    environment = {name: value for name, value in os.environ.items() if name == "COMPUTE_CACHE_DIR" or not name.startswith("COMPUTE_")}
    environment |= {"PATH": f"{prefix}/bin:{folder}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(prefix / options.libraries),
                    "PKG_CONFIG_PATH": str(prefix / options.libraries / "pkgconfig"), "CMAKE_GENERATOR": "Ninja", "CMAKE_BUILD_PARALLEL_LEVEL": "2",
                    "GTEST_FILTER": FEW_TESTS}
    script = "".join(f"{command}\nstatus=$?; echo; echo @@$status\n" for command in commands)
    output = subprocess.run(["sh", "-c", script], cwd=folder, env=environment | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    return re.findall(r"(.*?)\n@@(\d+)\n", output, re.S)


def prepare(page, text):
    """The folder of a page, with the files that it shows and what stands for the reader's programs."""
    folder = work / re.sub(r"\W", "_", str(page.relative_to(prefix)))
    folder.mkdir(parents=True, exist_ok=True)
    for body in re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S):
        if name := re.match(r"(?:#|//|/\*) (\w[\w.]*\.\w+)\b", body):
            (folder / name[1]).write_text(body)
    (folder / "program.c").write_text("#include <stdio.h>\n" + code_of("docs/languages.md", "c").replace("compute_device* device", "int main(void) {\ncompute_device* device", 1)
                                      + "return error != NULL;\n}\n")
    (folder / "program").write_text('#!/bin/sh\nexec exp_loop --iterations 2 "$@"\n')
    (folder / "program").chmod(0o755)
    return folder


def check_commands(page, text):
    ran = 0
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S):
        shown = [line[2:] for line in body.splitlines() if line.startswith("$ ")] if language == "" else []
        commands, wanted = [], []
        for command in shown or (lines_of(body) if language == "sh" else []):
            rule = next((rule for pattern, rule in RULES if re.match(pattern, command)), None)
            if rule is REPOSITORY:
                check_in_repository(page, command)
            elif rule is not ELSEWHERE:
                command = rule if isinstance(rule, str) else command
                for place, here in REPLACED.items():
                    command = command.replace(place, here)
                commands.append(command)
                wanted.append(rule)
        if not commands:
            continue
        folder = prepare(page, text)
        results = run(folder, commands, **({"COMPUTE_PLUGIN_PATH": str(minimal)} if minimal.exists() else {}))
        for command, rule, (output, status) in zip(commands, wanted, results):
            ran += 1
            if status != "0" and not (rule is DEVICE and re.search("cuda|opencl|acme", output)):
                problems.append(f"{page}: {command}: {status}\n{output}")
            for pattern, result in RESULTS:
                if re.search(pattern, command) and not re.search(result, output):
                    problems.append(f"{page}: {command} does not print {result}, but\n{output}")
            # Where the page shows the output: its lines without numbers, such as the heads of tables.
            for line in body.splitlines()[1:] if shown else []:
                if not re.search(r"\d", line) and " ".join(line.split()) not in " ".join(output.split()):
                    problems.append(f"{page}: {command} does not print\n{line}\nbut\n{output}")
        if len(results) < len(commands):
            problems.append(f"{page}: {commands[len(results)]} ended its shell")
    return ran


def code_of(page, language):
    return re.search(rf"^```{language}\n(.*?)^```", pages[docs / page], re.M | re.S)[1]


shutil.rmtree(work, ignore_errors=True)
pages = {path: path.read_text() for folder in (docs, shared) for path in sorted(folder.rglob("*.md"))}
check_links(pages)

# The page on plugins first: the others use the plugin that it builds.
plugins = docs / "docs/writing-a-plugin.md"
minimal = prepare(plugins, pages[plugins]) / "minimal/build"
ran = sum(check_commands(page, pages[page]) for page in [plugins] + [page for page in pages if page != plugins and page not in PAGES_OF_OTHER_TESTS])
print(f"{ran} commands")
if ran < 15:
    problems.append(f"only {ran} commands were run")

# The examples that building.md builds are all that are installed.
built = prepare(docs / "docs/building.md", "") / "build"
for example in (shared / "examples").glob("*.c*"):
    if not (built / example.stem).exists():
        problems.append(f"{example.name} was not built")

# The README's programs in C++ and Python.
compile_cpp = "c++ -std=c++20 program.cpp $(pkg-config --cflags --libs compute)"
folder = prepare(docs / "README.md", "")
includes, body = code_of("README.md", "cpp").split("\n\n", 1)
(folder / "program.cpp").write_text(f"{includes}\nint main() {{\n{body}}}\n")
(folder / "program.py").write_text(code_of("README.md", "python"))
package = prepare(docs / "docs/python.md", "") / "package"
for command in (compile_cpp, "./a.out", f"PYTHONPATH={package} {sys.executable} program.py"):
    (output, status), = run(folder, [command])
    if status != "0":
        problems.append(f"README.md: {command}: {status}\n{output}")
if compile_cpp not in pages[docs / "README.md"]:
    problems.append("README.md shows another command for C++")

print("\n\n".join(problems))
sys.exit(len(problems) > 0)
