# SPDX-License-Identifier: Apache-2.0
"""The command `compute` of a package that carries the library."""
import os
import pathlib
import sys


def main():
    program = pathlib.Path(__file__).parent / "bin/compute"
    if not program.exists():
        sys.exit("compute: this package uses the library of the system, whose own command is in its folder bin "
                 "(Debian: the package compute-tools)")
    os.execv(program, ["compute", *sys.argv[1:]])
