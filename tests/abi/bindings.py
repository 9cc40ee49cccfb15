# SPDX-License-Identifier: Apache-2.0
"""Constants have the types of the fields that hold them, as bindgen sees them.

Usage: bindings.py API WORK. Skipped where bindgen is not installed."""
import pathlib
import re
import shutil
import subprocess
import sys

RUST = {"int32_t": "i32", "uint32_t": "u32", "compute_dtype": "i32", "compute_error_code": "i32"}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def declared(text):
    """The constants of every enum with its written type."""
    types = {}
    text = without_comments(text)
    for head, body in re.findall(r"^enum([^{;]*)\{(.*?)\}", text, re.S | re.M):
        written = re.fullmatch(r" COMPUTE_UNDERLYING\((\w+)\) ", head)
        for name in re.findall(r"\b(COMPUTE_\w+)\s*=", body):
            types[name] = written[1] if written else None
    return types


def holders(text, names):
    """(constants, type) of every field whose comment says which constants it holds: one, or all that begin so."""
    found = [(name, of) for of, name in re.findall(r"^  (\w+) \w+;\s*/\* (COMPUTE_[A-Z_]+)[ *:]", text, re.M) if of in RUST]
    single = {name for name, _ in found if name in names}
    return [([name], of) for name, of in found if name in single] + [
        ([name for name in names if name.startswith(prefix) and name not in single], of) for prefix, of in found if prefix.endswith("_")]


def generated(bindgen, header, work):
    """The Rust type of every constant of the header, macros apart."""
    out = work / "bindings.rs"
    command = [bindgen, "--allowlist-var", "COMPUTE_.*", "--no-layout-tests", "--no-rustfmt-bindings", "-o", str(out), str(header), "--", f"-I{header.parent.parent}"]
    subprocess.run(command, check=True)
    text = out.read_text()
    aliases = {name: of.replace(" ", "") for name, of in re.findall(r"pub type (\w+) = ([\w: ]+?) ?;", text)}

    def resolved(name):
        while name in aliases:
            name = aliases[name]
        return {"::std::os::raw::c_uint": "u32", "::std::os::raw::c_int": "i32"}.get(name, name)

    return {name: resolved(of) for name, of in re.findall(r"pub const (\w+) ?: (\w+) =", text)}


def main():
    api, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    bindgen = shutil.which("bindgen")
    if bindgen is None:
        print("-- skipped: bindgen is not installed")
        return 0
    work.mkdir(parents=True, exist_ok=True)
    faults, held = [], 0
    for header in ("compute", "plugin"):
        path = api / "compute" / f"{header}.h"
        text = path.read_text()
        types, seen = declared(text), generated(bindgen, path, work)
        for name, of in types.items():
            if of is None:
                faults.append(f"{header}.h: {name} has no type")
            elif seen.get(name) != RUST[of]:
                faults.append(f"{header}.h: {name} is {of}; bindgen makes it {seen.get(name)}")
        for names, of in holders(text, types):
            for name in names:
                held += 1
                if seen.get(name) != RUST[of]:
                    faults.append(f"{header}.h: {name} is {seen.get(name)}; a field for it is {of}")
    if held < 20:
        faults.append(f"only {held} constants were compared with fields that hold them")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
