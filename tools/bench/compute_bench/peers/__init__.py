# SPDX-License-Identifier: Apache-2.0
"""The libraries that rows are compared with, one module each: `PEER(device, threads, lib)` raises ImportError if it cannot be used.

A peer has arrays and a few functions under one name; its other attributes are those of its module."""
import ctypes
import importlib

ALL = "numpy,torch,cupy,openblas,onednn,clblast,cublas,cuda_driver"


class Peer:
    name = module = None
    renamed = {}  # elementwise ops that have another name there

    def __getattr__(self, name):
        return getattr(self.module, name)

    def elementwise(self, op):
        return getattr(self.module, self.renamed.get(op, op))

    def version(self):
        return str(getattr(self.module, "__version__", "")) if self.module is not None else ""

    def synchronize(self):
        pass


def open_library(*files):
    """The first of the files that is there."""
    problem = None
    for file in files:
        try:
            return ctypes.CDLL(file)
        except OSError as reason:
            problem = reason
    raise ImportError(str(problem))


def installed(names, device, threads, lib):
    """The peers among `names` that can be compared with `device`, and why the others cannot."""
    found, missing = [], {}
    for name in names:
        try:
            found.append(importlib.import_module(f"{__name__}.{name}").PEER(device, threads, lib))
        except (ImportError, OSError, RuntimeError) as reason:
            missing[name] = str(reason).splitlines()[0]
    return found, missing
