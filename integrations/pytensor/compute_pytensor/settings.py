# SPDX-License-Identifier: Apache-2.0
"""The settings of Theano: THEANO_FLAGS and .theanorc, as those of PyTensor and of `compute`.

This module imports neither, since both read the environment when they are imported.
"""
from __future__ import annotations

import configparser
import os
import re
import sys

# Settings of Theano that PyTensor has under the same name; others are ignored, as those of parts that PyTensor does not have.
_KEPT = ("floatX", "cast_policy", "profile", "profile_memory", "profiling.destination", "profiling.n_apply", "profiling.n_ops",
         "profiling.time_thunks", "profiling.debugprint", "on_unused_input", "exception_verbosity", "optimizer_excluding",
         "optimizer_including", "warn_float64", "base_compiledir", "compiledir", "cxx", "on_opt_error")

spelling = None  # of the device in Theano's settings, if they name one
is_profiled = False


def _from_files():
    home = os.path.expanduser("~")
    paths = os.environ.get("THEANORC", os.path.join(home, ".theanorc")).split(os.pathsep)
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # floatX
    parser.read([os.path.expanduser(path) for path in paths])
    found = {}
    for section in parser.sections():
        for name, value in parser.items(section):
            found[name if section == "global" else f"{section}.{name}"] = value
    return found


def _from_flags():
    found = {}
    for part in re.split(r",(?![^\[]*\])", os.environ.get("THEANO_FLAGS", "")):
        name, has_value, value = part.strip().partition("=")
        if has_value:
            found[name.strip()] = value.strip()
    return found


def selector(name):
    """What COMPUTE_DEVICE is for a device of Theano: gpu and gpu0 are its oldest names of CUDA's devices."""
    if name.startswith("gpu"):
        return "cuda" + name[3:]
    return name


def is_launched():
    """Whether Python looks for this package to run it, by `python -m compute_pytensor`: then argv does not name a file yet."""
    given = sys.orig_argv
    return sys.argv[:1] == ["-m"] and any(given[i:i + 2] == ["-m", "compute_pytensor"] for i in range(len(given)))


def apply():
    """Sets the environment variables of `compute` and PyTensor, unless they are set already."""
    global spelling, is_profiled
    files, flags = _from_files(), _from_flags()
    given = {**files, **flags}
    # Of two that name a device, the nearer to the call decides: the flags, COMPUTE_DEVICE, the file.
    if "device" in flags or ("device" in files and not os.environ.get("COMPUTE_DEVICE")):
        spelling = given["device"]
        os.environ["COMPUTE_DEVICE"] = selector(spelling)
    is_profiled = given.get("profile", "").lower() in ("true", "1")
    kept = [f"{name.replace('.', '__')}={given[name]}" for name in _KEPT if name in given]
    own = os.environ.get("PYTENSOR_FLAGS", "")
    os.environ["PYTENSOR_FLAGS"] = ",".join([*kept, *([own] if own else [])])
