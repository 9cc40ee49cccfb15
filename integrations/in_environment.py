# SPDX-License-Identifier: Apache-2.0
"""Runs Python in an environment: in_environment.py FOLDER ARGUMENTS... The settings of programs there are not the user's."""
import os
import pathlib
import sys

environment = pathlib.Path(sys.argv[1])
python = environment / "bin" / "python"
if not (environment / "requirements.txt").exists():
    print(f"without an environment: {environment} is not there; tools/test --only packages makes it")
    sys.exit(0)
for name in ("THEANO_FLAGS", "THEANORC", "PYTENSORRC", "KERAS_BACKEND"):
    os.environ.pop(name, None)
os.environ["PYTENSOR_FLAGS"] = f"cxx=,base_compiledir={environment / 'compiledir'}"
os.execv(python, [str(python), "-B", *sys.argv[2:]])
