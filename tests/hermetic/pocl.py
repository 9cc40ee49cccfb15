#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a tree of links to an installed PoCL, with a header that declares fewer functions.

    pocl.py LIBRARY TREE

For each program PoCL reads the declarations of 14,500 functions, most of them on images and on vectors, which takes half of the time of compiling a
small kernel. Of the header's own lines, the copy has those that kernels of this project use; a kernel that calls another function does not compile.
PoCL finds its files relative to its library: TREE/lib/pocl/LIBRARY, TREE/share/pocl. Prints the library's path, or nothing if this is not how it is
installed.
"""
import pathlib
import re
import shutil
import sys

VECTORS = re.compile(r"\b(?:u?char|u?short|u?int|u?long|half|float|double)(?:2|3|4|8|16)\b")
USED_VECTORS = {"float2", "float4", "int2", "int4", "uint2", "uint4", "double2"}
UNUSED = re.compile(r"image|sub_group|ndrange|pipe|intel|arm_|amd_")


def declarations(text):
    """The header with declarations of scalars and of few vectors. Directives stay."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S).replace("\\\n", " ")
    lines, statement = [], ""
    for line in text.split("\n"):
        if not statement and (not line.strip() or line.lstrip().startswith("#")):
            lines += [line] if line.strip() else []
            continue
        statement += line + "\n"
        if ";" in line or "}" in line:
            if not UNUSED.search(statement) and USED_VECTORS.issuperset(VECTORS.findall(statement)):
                lines.append(statement.rstrip())
            statement = ""
    return "\n".join(lines) + "\n"


library, tree = (pathlib.Path(argument) for argument in sys.argv[1:])
share = library.parent / "../../share/pocl"
if not (share / "include/opencl-c.h").exists():
    sys.exit()
shutil.rmtree(tree, ignore_errors=True)
(tree / "lib/pocl").mkdir(parents=True)
(tree / "share/pocl/include").mkdir(parents=True)
(tree / "lib/pocl" / library.name).symlink_to(library)
if (library.parent / "pocl").is_dir():
    (tree / "lib/pocl/pocl").symlink_to(library.parent / "pocl")  # the devices
for folder in ("", "include"):
    for file in (share / folder).iterdir():
        if file.is_file():
            (tree / "share/pocl" / folder / file.name).symlink_to(file.resolve())
header = tree / "share/pocl/include/opencl-c.h"
text = declarations(header.read_text())
header.unlink()
header.write_text(text)
print(tree / "lib/pocl" / library.name)
