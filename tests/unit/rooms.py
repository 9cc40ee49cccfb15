#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Core, plugins/common and plugins/cpu are rooms, one above the other.

Reads what their files include and finds an include that goes up, a cycle of files, a folder with too many sources, and the
name of a vendor in core's code. A header and its source count as one file. CMake gives each room the rooms that it may know,
which this compares with the order.

usage: rooms.py ROOT          exits with 1 if it finds something
       rooms.py ROOT --plant  plants a fault of every kind, and exits with 1 if one is not found
"""
import pathlib
import re
import sys

# The rooms of each house from the lowest to the highest; "" is the house's own folder.
ORDER = {
    "core": ("trusted_files", "text", "base", "settings", "process", "expressions", "ops", "array_ops", "sorting_ops", "linalg_ops", "network_ops", "loading",
             "devices", "observation", "streams", "memory", "planner", "lifetime", "runner", "collective", "interface"),
    "plugins/common": ("op", "table", "driver", "source/expressions", "source/builder", "source/map", "source/reduce", "source/order", "source/move", "source/products",
                       "source/convolution", "source/attention", "source"),
    "plugins/cpu": ("base", "threads", "vector", "kernels", "isa", "map", "reduce", "move", "order", "contract", "fourier", "linalg", "user_kernels", ""),
}
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


def room_of(house, name):
    return name.rsplit("/", 1)[0][len(house) + 1:]


def stem_of(name):
    return name.rsplit(".", 1)[0]


def includes(house, text):
    return re.findall(rf'^\s*#\s*include\s*"({house}/[^"]+)"', text, re.M)


def knots(edges):
    """Sets of files of which each includes, through others, all of them."""
    def reached(start):
        seen, left = set(), [start]
        while left:
            for other in edges.get(left.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    left.append(other)
        return seen

    reach = {stem: reached(stem) for stem in edges}
    found = {frozenset(other for other in reach[stem] if stem in reach.get(other, ()))
             for stem in edges if stem in reach[stem]}
    return sorted(sorted(knot) for knot in found)


def judged_house(tree, house, order):
    faults = []
    edges = {}
    count = 0
    for name in tree.names(house):
        if not name.endswith(ENDINGS):
            continue
        room = room_of(house, name)
        if room not in order:
            faults.append(f"{name} is in no room")
            continue
        text = tree.read(name)
        if house == "core":
            for word in VENDORS.findall(without_comments(text)):
                faults.append(f"{name} names a vendor in code: {word}")
        own = edges.setdefault(stem_of(name), set())
        for other in includes(house, text):
            count += 1
            if room_of(house, other) not in order or order.index(room_of(house, other)) > order.index(room):
                faults.append(f"{name} includes {other}, which is above it")
            if stem_of(other) != stem_of(name):
                own.add(stem_of(other))
    for knot in knots(edges):
        faults.append("a cycle of files: " + ", ".join(knot))

    build = re.sub(r"#[^\n]*", "", tree.read(f"{house}/CMakeLists.txt"))
    if house == "core":
        for word in VENDORS.findall(build):
            faults.append(f"core/CMakeLists.txt names a vendor in code: {word}")
    for room, known in re.findall(r"(?:compute_add_c\w+_room|add_primitives)\(\s*([\w/]+)\s+KNOWS\s+([\w/\s]*?)\s*(?:LIBRARIES|SOURCES|\))", build):
        for other in known.split():
            if order.index(other) >= order.index(room):
                faults.append(f"{house}/CMakeLists.txt lets {room} know {other}, which is above it")
    return faults, count


def judged(tree):
    faults, count = [], 0
    for house, order in ORDER.items():
        found, includes_found = judged_house(tree, house, order)
        faults += found
        count += includes_found

    folders = {}
    for name in tree.names("core") + tree.names("plugins"):
        if name.endswith(".cpp"):
            folder = name.rsplit("/", 1)[0]
            folders[folder] = folders.get(folder, 0) + 1
    for folder, sources in sorted(folders.items()):
        if sources > MOST_SOURCES:
            faults.append(f"{folder} holds {sources} sources; a room has at most {MOST_SOURCES}")
    return faults, count


# A fault of each kind: the file, what is put at its end, and what is found.
PLANTS = (
    ("core/text/text.hpp", '#include "core/memory/pool.hpp"\n', "core/text/text.hpp includes core/memory/pool.hpp, which is above it"),
    ("core/trusted_files/trusted_files.hpp", '#include "core/base/error.hpp"\n', "core/trusted_files/trusted_files.hpp includes core/base/error.hpp, which is above it"),
    ("core/planted/one.hpp", "\n", "core/planted/one.hpp is in no room"),
    ("core/streams/planted_a.hpp", '#include "core/streams/planted_b.hpp"\n', None),
    ("core/streams/planted_b.cpp", '#include "core/streams/planted_c.hpp"\n', None),
    ("core/streams/planted_c.hpp", '#include "core/streams/planted_a.hpp"\n',
     "a cycle of files: core/streams/planted_a, core/streams/planted_b, core/streams/planted_c"),
    ("core/loading/planted.cpp", 'const char* const kName = "libCuda.so"; // opencl\n', "core/loading/planted.cpp names a vendor in code: libCuda"),
    ("core/CMakeLists.txt", "compute_add_core_room(\n  ops\n  KNOWS\n  interface)\n",
     "core/CMakeLists.txt lets ops know interface, which is above it"),
    ("plugins/common/CMakeLists.txt", "compute_add_common_room(op KNOWS source/map SOURCES)\n",
     "plugins/common/CMakeLists.txt lets op know source/map, which is above it"),
) + tuple((f"core/devices/planted_{i}.cpp", "\n", None) for i in range(MOST_SOURCES)) + tuple(
    (f"plugins/cpu/isa/planted_{i}.cpp", "\n", None) for i in range(MOST_SOURCES))
FOLDERS_PLANTED = ("core/devices", "plugins/cpu/isa")


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
