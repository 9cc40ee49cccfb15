# SPDX-License-Identifier: Apache-2.0
"""`import theano` as `compute_pytensor.theano`."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys

_PACKAGE = "compute_pytensor.theano"


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `theano.x` as the module `compute_pytensor.theano.x`, or as `pytensor.x`."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != "theano":
            return None
        module = self._module(name)
        if module is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=hasattr(module, "__path__"))

    @staticmethod
    def _module(name):
        rest = name[len("theano"):]
        for candidate in (_PACKAGE + rest, "pytensor" + rest):
            try:
                return importlib.import_module(candidate)
            except ModuleNotFoundError as error:
                if not (error.name or "").startswith(candidate.rpartition(".")[0] or candidate):
                    raise
        return None

    def create_module(self, spec):
        module = self._module(spec.name)
        self._kept = getattr(self, "_kept", {})
        self._kept[spec.name] = (module.__spec__, getattr(module, "__loader__", None))
        return module

    def exec_module(self, module):
        for name, (spec, loader) in list(self._kept.items()):
            if sys.modules.get(name) is module:  # the module keeps its own name and loader
                module.__spec__, module.__loader__ = spec, loader
                del self._kept[name]


def install():
    """Puts the finder in front of others."""
    if not any(isinstance(one, Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, Finder())
