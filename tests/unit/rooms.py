#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Core is rooms, one above the other.

Reads what core's files include and finds an include that goes up, a cycle among modules, a folder with too many sources, and
the name of a vendor in code. A module is what shares a name in a room: its header and its source. CMake gives each room the
folders that it may know, which this compares with the order.

usage: rooms.py ROOT          ends with 1 where something is found
       rooms.py ROOT --plant  adds a fault of every kind, and ends with 1 where one is not found
"""
import pathlib
import re
import sys

ORDER = ("files", "base", "expressions", "ops", "array_ops", "sorting_ops", "network_ops", "loading", "selection", "observation", "streams", "memory",
         "execution", "interface")
ENDINGS = (".cpp", ".hpp", ".inc", ".def")
MOST_SOURCES = 20  # of a folder
VENDORS = re.compile(r"\w*(?:cuda|opencl|nvidia)\w*", re.I)


class Tree:
    """The project's files; `planted` are texts that are read in place of files, or of files that are not there."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.planted = {}

    def read(self, name):
        return self.planted[name] if name in self.planted else (self.root / name).read_text(encoding="utf-8")

    def names(self, folder):
        found = {str(path.relative_to(self.root)) for path in (self.root / folder).rglob("*") if path.is_file()}
        return sorted(found | {name for name in self.planted if name.startswith(folder + "/")})


def without_comments(text):
    """C's comments go; strings stay, and what looks like a comment in them."""
    pattern = r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/'
    return re.sub(pattern, lambda found: found[0] if found[0][0] == '"' else " ", text, flags=re.S)


def room_of(name):
    parts = name.split("/")
    return parts[1] if len(parts) > 2 else ""


def module_of(name):
    return name.rsplit(".", 1)[0]


def includes(text):
    return re.findall(r'^\s*#\s*include\s*"(core/[^"]+)"', text, re.M)


def knots(edges):
    """Sets of modules of which each includes, through others, all of them."""
    def reached(start):
        seen, left = set(), [start]
        while left:
            for other in edges.get(left.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    left.append(other)
        return seen

    reach = {module: reached(module) for module in edges}
    found = {frozenset(other for other in reach[module] if module in reach.get(other, ()))
             for module in edges if module in reach[module]}
    return sorted(sorted(knot) for knot in found)


def judged(tree):
    faults = []
    edges = {}
    count = 0
    for name in tree.names("core"):
        if not name.endswith(ENDINGS):
            continue
        if room_of(name) not in ORDER:
            faults.append(f"{name} is in no room")
            continue
        text = tree.read(name)
        for word in VENDORS.findall(without_comments(text)):
            faults.append(f"{name} names a vendor in code: {word}")
        own = edges.setdefault(module_of(name), set())
        for other in includes(text):
            count += 1
            if room_of(other) not in ORDER or ORDER.index(room_of(other)) > ORDER.index(room_of(name)):
                faults.append(f"{name} includes {other}, which is above it")
            if module_of(other) != module_of(name):
                own.add(module_of(other))
    for knot in knots(edges):
        faults.append("a cycle of modules: " + ", ".join(knot))

    build = re.sub(r"#[^\n]*", "", tree.read("core/CMakeLists.txt"))
    for word in VENDORS.findall(build):
        faults.append(f"core/CMakeLists.txt names a vendor in code: {word}")
    for room, known in re.findall(r"compute_add_core_room\(\s*(\w+)\s+KNOWS\s+([\w\s]*?)\s+(?:LIBRARIES|SOURCES)", build):
        for other in known.split():
            if ORDER.index(other) >= ORDER.index(room):
                faults.append(f"core/CMakeLists.txt lets {room} know {other}, which is above it")

    folders = {}
    for name in tree.names("core") + tree.names("plugins/cpu"):
        if name.endswith(".cpp"):
            folder = name.rsplit("/", 1)[0]
            folders[folder] = folders.get(folder, 0) + 1
    for folder, sources in sorted(folders.items()):
        if sources > MOST_SOURCES:
            faults.append(f"{folder} holds {sources} sources; a room has at most {MOST_SOURCES}")
    return faults, count


# A fault of each kind: the file, what is put at its end, and what is found.
PLANTS = (
    ("core/base/text.hpp", '#include "core/memory/pool.hpp"\n', "core/base/text.hpp includes core/memory/pool.hpp, which is above it"),
    ("core/files/files.hpp", '#include "core/base/error.hpp"\n', "core/files/files.hpp includes core/base/error.hpp, which is above it"),
    ("core/planted/one.hpp", "\n", "core/planted/one.hpp is in no room"),
    ("core/streams/planted_a.hpp", '#include "core/streams/planted_b.hpp"\n', None),
    ("core/streams/planted_b.cpp", '#include "core/streams/planted_c.hpp"\n', None),
    ("core/streams/planted_c.hpp", '#include "core/streams/planted_a.hpp"\n',
     "a cycle of modules: core/streams/planted_a, core/streams/planted_b, core/streams/planted_c"),
    ("core/loading/planted.cpp", 'const char* const kName = "libCuda.so"; // opencl\n', "core/loading/planted.cpp names a vendor in code: libCuda"),
    ("core/CMakeLists.txt", "compute_add_core_room(\n  ops\n  KNOWS\n  interface\n  SOURCES\n)\n",
     "core/CMakeLists.txt lets ops know interface, which is above it"),
) + tuple((f"core/selection/planted_{i}.cpp", "\n", None) for i in range(MOST_SOURCES)) + tuple(
    (f"plugins/cpu/isa/planted_{i}.cpp", "\n", None) for i in range(MOST_SOURCES))
FOLDERS_PLANTED = ("core/selection", "plugins/cpu/isa")


def plant(tree):
    failures = 0
    if judged(tree)[0]:
        print("there are faults without any that are planted")
        failures += 1
    for name, text, _ in PLANTS:
        exists = (tree.root / name).exists()
        tree.planted[name] = (tree.read(name) if exists else "") + text
    found, _ = judged(tree)
    expected = [fault for _, _, fault in PLANTS if fault]
    for fault in expected:
        if fault not in found:
            print(f"not found: {fault}")
            failures += 1
    for folder in FOLDERS_PLANTED:
        expected.append(folder)
        if not any(fault.startswith(folder + " holds ") for fault in found):
            print(f"not found: too many sources in {folder}")
            failures += 1
    print(f"{len(expected)} faults were planted; {failures} were not found")
    return failures


def main():
    tree = Tree(sys.argv[1])
    if sys.argv[2:] == ["--plant"]:
        return 1 if plant(tree) else 0
    faults, count = judged(tree)
    for fault in faults:
        print(fault)
    print(f"{count} includes, {len(faults)} faults")
    return 1 if faults or count < 300 else 0


if __name__ == "__main__":
    sys.exit(main())
