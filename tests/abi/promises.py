#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that everything the project declares has code that reads it and a test that mentions it.

Collects the declared names ("promises"): settings, their choices and the variables that are read, functions, constants and
fields of the headers, slots of the plugin tables, keys of manifests, keys and options of selectors, commands and options of
the programs, and all of these in the documentation. promises.txt lists exceptions with their state; an unnecessary line there
is a failure too, unless its state is "in progress".

Code and tests are searched by name, so this finds unread names; the required tests check how they are read.

usage: promises.py ROOT          compares; exits with 1 if a promise lacks code or a test
       promises.py ROOT --plant  plants an unkept promise of every kind, and exits with 1 if one is not found
"""
import functools
import json
import pathlib
import re
import sys


class Tree:
    """The project's files; `planted` are texts that are read in place of files."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.planted = {}

    @functools.lru_cache(maxsize=None)
    def stored(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def read(self, name):
        return self.planted.get(name) or self.stored(name)

    @functools.lru_cache(maxsize=None)
    def names(self, folder, endings):
        found = sorted((self.root / folder).rglob("*"))
        return [str(path.relative_to(self.root)) for path in found if path.name.endswith(endings) and path.is_file()]

    def texts(self, *folders, endings=(".cpp", ".hpp", ".h", ".c", ".inc"), without=()):
        names = [name for folder in folders for name in self.names(folder, endings) if name not in without]
        return "\n".join(without_comments(self.read(name)) for name in names)


@functools.lru_cache(maxsize=None)
def without_comments(text):
    """C's comments go; strings stay, and what looks like a comment in them."""
    pattern = r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/'
    return re.sub(pattern, lambda found: found[0] if found[0][0] == '"' else " ", text, flags=re.S)


@functools.lru_cache(maxsize=None)
def words(text):
    return frozenset(re.findall(r"\w+", text))


@functools.lru_cache(maxsize=None)
def members(text):
    """Names behind `.`, `->` or `::`: what is read or set of an object, or named of a type."""
    return frozenset(re.findall(r"(?:\.|->|::)\s*(\w+)", text))


class Check:
    def __init__(self, tree):
        self.tree = tree
        self.count = 0
        self.faults = []  # (kind, name, what)
        self.core = tree.texts("core", "files")
        self.plugins = tree.texts("plugins")
        self.tools = tree.texts("tools")
        self.bindings = tree.texts("bindings", endings=(".py",))
        self.tests = tree.texts("tests", endings=(".cpp", ".hpp", ".h", ".c", ".inc", ".cmake", "CMakeLists.txt"))

    def promise(self, kind, name, reader, test):
        self.count += 1
        if not reader:
            self.faults.append((kind, name, "no code reads it"))
        elif not test:
            self.faults.append((kind, name, "no test mentions it"))

    # ---- Settings

    def settings(self):
        rows = re.findall(r'^COMPUTE_SETTING\((\w+),\s*"(\w+)",\s*"([\w.]*)",\s*(\w+),\s*"([^"]*)",\s*"([^"]*)"',
                          self.tree.read("core/settings/settings.def"), re.M)
        rows += self.declared_settings()
        strings = frozenset(re.findall(r'"([^"\n]*)"', self.core + self.plugins))
        for identifier, variable, key, kind, default, values in rows:
            reader = re.search(rf"SettingId::{identifier}\b", self.core) or f'"{variable}"' in self.plugins + self.bindings
            self.promise("setting", variable, reader, variable in words(self.tests) or key and f'"{key}"' in self.tests)
            if kind in ("kChoice", "kWords"):
                for value in values.split():
                    tested = re.search(rf"\b{variable}\b[^;]*\b{value}\b", self.tests)  # in one statement
                    self.promise("choice", f"{variable}={value}", value == default or value in strings, value == default or tested)
        return {row[1] for row in rows}

    def declared_settings(self):
        """Those of plugins, in their manifests, in the form of the rows of settings.def."""
        rows = []
        for name in self.tree.names("plugins", (".json",)):
            manifest = json.loads(self.tree.read(name))
            for one in manifest.get("settings", []):
                key = manifest["name"] + "." + one["name"].removeprefix("COMPUTE_" + manifest["name"].upper() + "_").lower()
                kind = {"choice": "kChoice", "words": "kWords"}.get(one["kind"], "")
                rows.append(("no_id", one["name"], key, kind, one.get("default", ""), " ".join(one.get("choices", []))))
        return rows

    def environment(self, settings):
        """A variable that is read past the settings is one that nobody checks: each stands in the list with its reason, and `compute doctor --env` shows those
        that the library reads."""
        shown = words(self.tree.read("tools/compute/doctor.cpp"))
        for variable in sorted(set(re.findall(r'\b(?:(?:secure_)?getenv|environment)\(\s*"(\w+)"', self.core + self.plugins))):
            self.promise("shown", variable, variable in shown, True)
        text = self.core + self.plugins + self.tools + self.tree.texts("tests/conformance")
        for variable in sorted(set(re.findall(r'\b(?:secure_)?getenv\(\s*"(\w+)"', text))):
            self.promise("variable", variable, False, True)
        for call in sorted(set(re.findall(r'\b(?:secure_)?getenv\(\s*([^")][^)]*)\)', text))):
            self.promise("variable", call, False, True)
        for variable in sorted(set(re.findall(r'setting\(\s*"(COMPUTE_\w+)"', self.plugins))):
            self.promise("variable", variable, variable in settings, True)

    # ---- Headers

    def functions(self):
        text = without_comments(self.tree.read("api/compute/compute.h"))
        for name in re.findall(r"COMPUTE_API [\w* ]*?\b(compute_\w+)\(", text):
            self.promise("function", name, name in words(self.core), name in words(self.tests))

    def constants(self):
        shared = words(self.tree.read("api/compute/compute.h"))
        for header, readers in (("compute", self.core + self.tools), ("plugin", self.core + self.plugins)):
            text = without_comments(self.tree.read(f"api/compute/{header}.h"))
            names = re.findall(r"^\s*#define (COMPUTE_\w+)[ \t]+\S", text, re.M)
            for body in re.findall(r"enum (?:COMPUTE_UNDERLYING\(\w+\) )?\{(.*?)\}", text, re.S):
                names += re.findall(r"\b(COMPUTE_\w+)\s*=", body)
            for name in names:
                if name == "COMPUTE_API" or header == "plugin" and name in shared:
                    continue
                # What core and a plugin both name is between them, which every run of the conformance suite exercises.
                both = name in words(self.core) and name in words(self.plugins)
                both = both or name.endswith("_SIZE_1")  # frozen.py compares them with the structs
                self.promise("constant", name, name in words(readers), both or name in words(self.tests))

    def fields(self):
        """What a struct of the plugin interface holds: core sets or reads it, and so do a plugin and a test."""
        text = without_comments(self.tree.read("api/compute/plugin.h"))
        outside = self.plugins + self.tree.texts("tests/plugins")
        for struct, body in re.findall(r"typedef struct (compute_plugin_\w+) \{(.*?)\n\} \1;", text, re.S):
            # Core hands these out as a whole; plugins read them.
            is_cores = struct in ("compute_plugin_core", "compute_plugin_sink")
            slots = re.findall(r"\(\*(\w+)\)\(", body)
            fields = re.findall(r"(\w+)(?:\[\d+\])?;", re.sub(r"\(\*\w+\)\([^;]*;", "", body))
            for name in slots + fields:
                if name in ("struct_size", "struct_type", "next", "table_size", "reserved"):
                    continue
                both = name in members(self.core) and name in members(self.plugins)
                reader = name in members(outside + self.tests if is_cores else self.core)
                self.promise("slot" if name in slots else "field", f"{struct}.{name}", reader, both or name in members(self.tests))

    # ---- Manifests, selectors, programs

    def manifests(self):
        header = without_comments(self.tree.read("core/loading/manifest.hpp"))
        readers = self.tree.texts("core", without=("core/loading/manifest.cpp", "core/loading/manifest.hpp"))
        test = self.tree.read("tests/unit/manifest_test.cpp")
        for struct, body in re.findall(r"struct (Manifest\w*) \{(.*?)\n\};", header, re.S):
            for name in re.findall(r"(\w+)(?: = [^;]*)?;", body):
                self.promise("manifest", f"{struct}.{name}", name in members(readers), name in members(test))
        for key in re.findall(r'members\.\w+(?:<\w+>)?\("(\w+)"', self.tree.read("core/loading/manifest.cpp")):
            self.promise("manifest", key, True, f'"{key}"' in test)

    def selectors(self):
        text = self.tree.read("core/devices/selector.cpp")
        test = self.tree.read("tests/unit/selector_test.cpp")
        page = self.tree.read("docs/selecting-devices.md")
        for kind, array, sign in (("condition", "kKeys", "@"), ("option", "kOptions", r"\+")):
            for name in re.findall(r'"(\w+)"', re.search(rf"{array} = \{{([^}}]*)\}}", text)[1]):
                reader = f"DeviceKey::k{name.capitalize()}:" in self.core if kind == "condition" else f'"{name}"' in text
                self.promise(kind, name, reader, re.search(sign + name + "[=~]", test) and re.search(sign + name + "[=~]", page))
        options = re.search(r"struct DeviceOptions \{(.*?)\n\};", self.tree.read("core/devices/selector.hpp"), re.S)[1]
        for name in re.findall(r"> (\w+);", options):
            readers = self.tree.texts("core", without=("core/devices/selector.cpp", "core/devices/selector.hpp"))
            self.promise("option", f"DeviceOptions::{name}", name in members(readers), name in members(test))

    def programs(self):
        text = without_comments(self.tree.read("tools/compute/main.cpp"))
        test = self.tree.read("tests/abi/commands.cmake")
        commands = re.findall(r'\badd\(\*(\w+), "([\w-]+)"|\badd\(app_, "([\w-]+)"', text)
        for parent, inner, outer in commands:
            name = f"{parent} {inner}" if inner else outer
            self.promise("command", name, True, re.search(rf"\bexpect\([^)]*\b{name}\b", test))
        for command, names in re.findall(r'(\w+)->add_(?:flag|option)\("([\w,-]+)"', text):
            option = names.split(",")[-1]
            if not option.startswith("-"):
                continue  # a positional argument
            self.promise("option", f"{command} {option}", True, re.search(rf"\bexpect\([^)]*\b{command}\b[^)]*{option}\b", test))
        for command in re.findall(r"add_json\((\w+)\);", text):
            self.promise("option", f"{command} --json", True, re.search(rf"\bexpect\([^)]*\b{command}\b[^)]*--json\b", test))
        usage = self.tree.read("tests/conformance/options.cpp")
        others = self.tree.texts("tests", endings=(".cpp", ".cmake", "CMakeLists.txt"), without=("tests/conformance/options.cpp",))
        for option in sorted(set(re.findall(r"^  (--[a-z-]+) ", usage, re.M))):
            self.promise("option", f"compute-cts {option}", f'"{option}"' in usage, option in others)
        return {name.split()[-1] for parent, inner, outer in commands for name in (inner or outer,)}

    # ---- Documentation

    def documents(self, settings, commands):
        code = self.core + self.plugins + self.tools + self.bindings + self.tests + self.tree.texts("api")
        build = self.tree.read("CMakeLists.txt") + self.tree.texts("cmake", endings=(".cmake",)) + self.tree.texts(
            "bindings", "plugins", "tests", "tools", endings=("CMakeLists.txt",))
        scripts = "".join(self.tree.read(name) for name in ("tools/run", "tools/test", "tools/bench/compute-bench"))
        for name in ["README.md"] + self.tree.names("docs", (".md",)) + self.tree.names("tools", (".md",)):
            if name.startswith("docs/decisions"):
                continue  # what was thought at a time
            text = self.tree.read(name)
            for word in sorted(set(re.findall(r"\bCOMPUTE_[A-Z0-9_]*[A-Z0-9]\b", text))):
                self.promise("document", f"{name}: {word}", word in words(code) or word in words(build), True)
            for flag in sorted(set(re.findall(r"--compute-[a-z-]+", text))):
                self.promise("document", f"{name}: {flag}", "COMPUTE_" + flag[10:].upper().replace("-", "_") in settings, True)
            for command in sorted(set(re.findall(r"(?:`|\n)compute ([a-z]+)", text))):
                self.promise("document", f"{name}: compute {command}", command in commands, True)
            for option in sorted(set(re.findall(r"`(?:compute|compute-cts|compute-bench|exp_loop|tools/\w+)[^`\n]* (--[a-z-]+)", text))):
                known = f"{option}\"" in code or option in scripts or option in code or option.startswith("--compute-")
                self.promise("document", f"{name}: {option}", known, True)

    def run(self):
        settings = self.settings()
        self.environment(settings)
        self.functions()
        self.constants()
        self.fields()
        self.manifests()
        self.selectors()
        commands = self.programs()
        self.documents(settings, commands)
        return self.faults


def excused(tree):
    """The lines of promises.txt: kind, name and state. A name may end in `*`."""
    rows = []
    for line in tree.read("tests/abi/promises.txt").splitlines():
        if line.strip() and not line.startswith("#"):
            left, state = line.split(": ", 1)
            kind, name = left.split(" ", 1)
            rows.append((kind, name, state.strip()))
    return rows


def judged(tree):
    """Promises without a keeper, and lines of the list without a promise; and how many were looked at."""
    check = Check(tree)
    faults = check.run()
    rows = excused(tree)
    used = set()
    left = []
    for kind, name, what in faults:
        matching = [row for row in rows
                    if row[0] == kind and (row[1] == name or row[1].endswith("*") and name.startswith(row[1][:-1]))]
        used.update(matching)
        if not matching:
            left.append(f"{kind} {name}: {what}")
    for row in rows:
        if row not in used and not row[2].startswith("in progress"):
            left.append(f"promises.txt: {row[0]} {row[1]} is kept by now, or is not promised any more")
    return left, check.count


# A promise of each kind that nobody keeps: the file, what stands there, what is put in its place, and the fault.
PLANTS = (
    ("core/settings/settings.def", "COMPUTE_SETTING(kSync,", 'COMPUTE_SETTING(kFake, "COMPUTE_FAKE", "fake", kFlag, "0", "", 0, "")\nCOMPUTE_SETTING(kSync,',
     "setting COMPUTE_FAKE: no code reads it"),
    ("core/settings/settings.def", '"strict tf32 fast"', '"strict tf32 fast faked"', "choice COMPUTE_MATH=faked: no code reads it"),
    ("plugins/opencl/compute_plugin_opencl.json", '"settings": [', '"settings": [{"name": "COMPUTE_OPENCL_FAKE", "kind": "flag", "help": "-"},',
     "setting COMPUTE_OPENCL_FAKE: no code reads it"),
    ("core/settings/config.cpp", 'std::getenv(name)', 'std::getenv("COMPUTE_FAKE")', "variable COMPUTE_FAKE: no code reads it"),
    ("plugins/cuda/libraries.cpp", 'std::getenv("CUDNN_PATH")', 'std::getenv("COMPUTE_HIDDEN")', "shown COMPUTE_HIDDEN: no code reads it"),
    ("api/compute/compute.h", "COMPUTE_API void compute_error_free", "COMPUTE_API void compute_fake(void);\nCOMPUTE_API void compute_error_free",
     "function compute_fake: no code reads it"),
    ("api/compute/compute.h", "{ COMPUTE_ACCESS_READ = 1,", "{ COMPUTE_ACCESS_FAKE = 4, COMPUTE_ACCESS_READ = 1,",
     "constant COMPUTE_ACCESS_FAKE: no code reads it"),
    ("api/compute/plugin.h", "COMPUTE_PLUGIN_HEAP_HOST_SPACE = 2,", "COMPUTE_PLUGIN_HEAP_HOST_SPACE = 2,\n  COMPUTE_PLUGIN_HEAP_FAKE = 32,",
     "constant COMPUTE_PLUGIN_HEAP_FAKE: no code reads it"),
    ("api/compute/plugin.h", "  void (*plan_release)", "  void (*op_fake)(uint64_t plan);\n  void (*plan_release)",
     "slot compute_plugin_device_table.op_fake: no code reads it"),
    ("api/compute/plugin.h", "  int64_t (*setting)", "  void (*fake)(void);\n  int64_t (*setting)", "slot compute_plugin_core.fake: no code reads it"),
    ("api/compute/plugin.h", "  compute_string unusable; ", "  compute_string fake_field;\n  compute_string unusable; ",
     "field compute_plugin_device_info.fake_field: no code reads it"),
    ("core/loading/manifest.hpp", "  std::string vendor;", "  std::string vendor;\n  std::string fake_key;", "manifest Manifest.fake_key: no code reads it"),
    ("core/devices/selector.cpp", '{"pci", "uuid"', '{"fake", "pci", "uuid"', "condition fake: no code reads it"),
    ("core/devices/selector.cpp", '{"mem", "without"}', '{"mem", "without", "fake"}', "option fake: no test mentions it"),
    ("core/devices/selector.hpp", "std::optional<ByteAmount> memory_limit;", "std::optional<ByteAmount> memory_limit;\n  std::optional<int32_t> fake;",
     "option DeviceOptions::fake: no code reads it"),
    ("tools/compute/main.cpp", 'auto* version = add(', 'auto* fake = add(app_, "fake", "", [] { return 0; });\n    auto* version = add(',
     "command fake: no test mentions it"),
    ("tools/compute/main.cpp", 'which->add_option("selector,', 'which->add_flag("--fake");\n    which->add_option("selector,',
     "option which --fake: no test mentions it"),
    ("README.md", "# ", "COMPUTE_FAKED `compute fake` --compute-fake\n# ", "document README.md: COMPUTE_FAKED: no code reads it"),
    ("tests/abi/promises.txt", "# ", "setting COMPUTE_SYNC: some day\n# ",
     "promises.txt: setting COMPUTE_SYNC is kept by now, or is not promised any more"),
)


def plant(tree):
    failures = 0
    for name, old, new, _ in PLANTS:
        text = tree.read(name)
        if old not in text:
            print(f"{name} holds no {old!r} to plant at")
            failures += 1
        tree.planted[name] = text.replace(old, new, 1)
    found, _ = judged(tree)
    for fault in (row[3] for row in PLANTS):
        if fault not in found:
            print(f"not found: {fault}")
            failures += 1
    print(f"{len(PLANTS)} promises were planted; {failures} faults")
    return failures


def main():
    tree = Tree(sys.argv[1])
    if sys.argv[2:] == ["--plant"]:
        return 1 if plant(tree) else 0
    faults, count = judged(tree)
    for fault in faults:
        print(fault)
    print(f"{count} promises, {len(faults)} without a keeper")
    return 1 if faults or count < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
