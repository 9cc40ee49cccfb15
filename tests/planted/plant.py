#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults in the product, one at a time, and says which test finds each.

    plant.py BUILD [--seed N] [--count N] [--list] [--only I,J] [--stages room|all]

BUILD is a configured and built tree (preset ci). A fault is a kind and a place, both drawn with the seed: the same seed draws the same faults in
the same sources. For each, the file is changed, what depends on it is built, and the tests of its room run until one fails; then the file is put
back. Draws that do not compile do not count. A fault that no test of its room finds is run
against the whole gate (--stages all), and listed as survived if that passes as well. A survivor may be equivalent to the original: look at it.
"""
import argparse
import pathlib
import random
import re
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]

# Where faults go, and the tests of that room, in the order in which they run. `ctest -R` takes each.
CORE_TESTS = [r"^unit_core[.]", r"^(runtime|cxx)[.]", r"^conformance[.]cpu_full", r"^conformance[.]minimal_quick", r"^robustness"]
ROOMS = {f"core/{room.name}": CORE_TESTS for room in sorted((SOURCE / "core").iterdir()) if room.is_dir()} | {
    "plugins/cpu": [r"^unit_plugins_", r"^unit_cpu", r"^conformance[.]cpu_full", r"^robustness"],
    "plugins/common": [r"^unit_plugins_", r"^conformance[.]opencl_quick", r"^cuda[.]"],
    "plugins/opencl": [r"^opencl[.]", r"^conformance[.]opencl_quick"],
    "plugins/cuda": [r"^unit_plugins_", r"^cuda[.]"],
    "bindings/python/src": [r"^python[.]cpu"],
}
GATE = ["--label-exclude", "^(instrumented|devices|drivers|smoke|repeat)$"]


def lost_statement(pattern):
    """A call that stands alone on its line, left out."""
    return (re.compile(r"^(\s*)([\w.\->]*" + pattern + r"[\w]*\([^;{}]*\);)$"), lambda m: m[1] + ";")


def replaced(pattern, text):
    return (re.compile(pattern), text)


KINDS = {
    "wrong stride": [replaced(r"\bstrides\[(\w+)\]", r"(strides[\1] + 1)"), replaced(r"\* (\w*stride)\b", r"* (\1 + 1)")],
    "lost mark or wait": [lost_statement(r"(?:mark|wait|note|publish)")],
    "off by one in a tail": [replaced(r"(for \([^;]*; \w+ < )(\w+)(;)", r"\1\2 - 1\3"), replaced(r"(\w+) \+ 1\b", r"\1")],
    "swapped operands": [replaced(r"\b([a-z]\w*) - ([a-z]\w*)\b", r"\2 - \1"), replaced(r"\((\w+), (\w+)\)(?= const|;| \{)", r"(\2, \1)")],
    "missing retain": [lost_statement(r"(?:retain|push_back|emplace_back|insert)")],
    "wrong bound of a dtype": [replaced(r"numeric_limits<(\w+)>::max\(\)", r"numeric_limits<\1>::lowest()"), replaced(r"\b65504\b", "65536")],
    "wrong comparison": [replaced(r"(?<= )<(?= \w)", "<="), replaced(r"(?<= )>=(?= )", ">"), replaced(r"(?<= )==(?= )", "!=")],
    "negated condition": [replaced(r"\bif \(([^()]+)\)", r"if (!(\1))")],
    "lost check": [(re.compile(r"^(\s*)if \(.*\) (?:throw|refuse|return fail).*;$"), lambda m: m[1] + ";")],
    "wrong constant": [replaced(r"= 0;", "= 1;"), replaced(r"\b1\b(?=[;,)])", "2")],
}


def draw(chooser: random.Random):
    """A kind, a file, a line and its new text."""
    while True:
        kind = chooser.choice(sorted(KINDS))
        room = chooser.choice(sorted(ROOMS))
        files = sorted((SOURCE / room).rglob("*.cpp"))
        path = chooser.choice(files)
        lines = path.read_text().splitlines()
        places = []
        for number, line in enumerate(lines):
            if line.lstrip().startswith(("//", "#", "static_assert")):
                continue
            for pattern, text in KINDS[kind]:
                code = line.split("//")[0].rstrip()
                changed = pattern.sub(text, code, count=1)
                if changed != code:
                    places.append((number, changed))
        if places:
            number, changed = chooser.choice(places)
            return kind, room, path, number, lines[number], changed


def run(words, limit_s):
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=limit_s, cwd=SOURCE).returncode
    except subprocess.TimeoutExpired:
        return -1


def failing_test(build, selection):
    """The first test of a selection that fails, or None."""
    words = ["ctest", "--test-dir", build, "--stop-on-failure", "--timeout", "300", "--parallel", "3", *selection]
    output = subprocess.run(words, capture_output=True, text=True, cwd=SOURCE).stdout
    found = re.search(r"Test +#\d+: (\S+) \.*.*(?:Failed|Timeout|Exception|Child aborted)", output)
    return found[1] if found else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--list", action="store_true", help="draw without planting")
    parser.add_argument("--only", default="", help="numbers of the draws to plant, as --list shows them")
    parser.add_argument("--stages", choices=("room", "all"), default="room")
    arguments = parser.parse_args()
    only = {int(number) for number in arguments.only.split(",") if number}
    chooser = random.Random(arguments.seed)
    survived = planted = number_of_draw = 0
    while (number_of_draw if arguments.list or only else planted) < arguments.count:
        number_of_draw += 1
        kind, room, path, line, old, new = draw(chooser)
        text = f"{number_of_draw:2} {kind}, {path.relative_to(SOURCE)}:{line + 1}\n     {old.strip()}\n     {new.strip()}"
        if arguments.list or (only and number_of_draw not in only):
            print(text if arguments.list else "", end="\n" if arguments.list else "")
            continue
        original = path.read_text()
        lines = original.splitlines()
        lines[line] = new
        begin = time.monotonic()
        found = None
        try:
            path.write_text("\n".join(lines) + "\n")
            if run(["cmake", "--build", arguments.build], 1800) != 0:
                print(f"{text}\n     does not compile", flush=True)
                continue
            planted += 1
            for tests in ROOMS[room]:
                found = failing_test(arguments.build, ["--tests-regex", tests, "--label-exclude", "^(devices|instrumented|drivers)$"])
                if found:
                    break
            if not found and arguments.stages == "all":
                found = failing_test(arguments.build, GATE)
        finally:
            path.write_text(original)
        survived += found is None
        print(f"{text}\n     {'found by ' + found if found else 'SURVIVED'} ({time.monotonic() - begin:.0f} s)", flush=True)
    if not arguments.list:
        print(f"{planted - survived} found, {survived} survived")
    return 0


if __name__ == "__main__":
    sys.exit(main())
