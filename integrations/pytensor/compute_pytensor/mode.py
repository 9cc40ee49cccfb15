# SPDX-License-Identifier: Apache-2.0
"""The mode COMPUTE, and what PyTensor has to know of it."""
from __future__ import annotations

import functools

from pytensor.compile.mode import Mode, predefined_linkers, predefined_modes, register_linker, register_mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.configdefaults import config
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.tensor.sharedvar import TensorSharedVariable
from pytensor.tensor.type import TensorType

import compute as cp
from compute import Array

from .linker import ComputeLinker
from .values import Storage, dtype_of

NAME = "COMPUTE"


def _registered():
    if "compute" not in predefined_linkers:
        register_linker("compute", ComputeLinker())
    if NAME not in predefined_modes:
        register_mode(NAME, Mode(ComputeLinker(), RewriteDatabaseQuery(include=["fast_run"])))
    return predefined_modes[NAME]


COMPUTE = _registered()


@functools.lru_cache(maxsize=None)
def inner_rewriter():
    """The rewrites of graphs inside of ops: those of the mode, but for ones that write in place."""
    return Mode(ComputeLinker(), RewriteDatabaseQuery(include=["fast_run"], exclude=["inplace", "add_destroy_handler"])).optimizer


def activate(mode=COMPUTE):
    """Makes COMPUTE the mode of functions that name none, and of `eval`."""
    config.mode = mode


# ---- Shared variables, whose storage has a side on the device

def _has_storage(variable):
    return isinstance(variable.container.storage, Storage)


def _init(self, *args, _init=SharedVariable.__init__, **kwargs):
    _init(self, *args, **kwargs)
    storage = self.container.storage
    if type(storage) is list and isinstance(self.type, TensorType):
        self.container.storage = Storage(storage)


def _get_value(self, borrow=False, return_internal_type=False, _get=SharedVariable.get_value):
    if return_internal_type and _has_storage(self):
        array = self.container.storage.on_device()
        return array if borrow else cp.asarray(array, copy=True)
    return _get(self, borrow=borrow, return_internal_type=return_internal_type)


def _set_value(self, new_value, borrow=False, _set=SharedVariable.set_value):
    if isinstance(new_value, Array) and _has_storage(self):
        kind = self.type
        if new_value.dtype is not dtype_of(kind.dtype) or new_value.ndim != kind.ndim or not all(
                have is None or have == one for have, one in zip(kind.shape, new_value.shape)):
            raise TypeError(f"an array of {new_value.dtype.name} and the shape {new_value.shape} is no value of {kind}")
        self.container.storage[0] = new_value if borrow else cp.asarray(new_value, copy=True)
        return
    _set(self, new_value, borrow=borrow)


def _zero(self, borrow=False, _zero=TensorSharedVariable.zero):
    if _has_storage(self) and self.container.storage.array is not None:
        array = self.container.storage.array
        if borrow:
            array[...] = 0
            self.container.storage[0] = array
        else:
            self.container.storage[0] = cp.zeros_like(array)
        return
    _zero(self, borrow=borrow)


SharedVariable.__init__ = _init
SharedVariable.get_value = _get_value
SharedVariable.set_value = _set_value
TensorSharedVariable.zero = _zero
