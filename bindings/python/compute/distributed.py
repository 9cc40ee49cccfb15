# SPDX-License-Identifier: Apache-2.0
"""Groups of processes or devices, which exchange the contents of arrays.

    group = compute.distributed.init()              # all processes that mpiexec or `compute run` has started
    total = group.all_reduce(x)                     # the sum of x of all processes

All ranks of a group make the same calls in the same order, also while gradients are computed: these are of the sum of
the losses of all ranks. all_reduce and reduce_scatter have gradients for "sum" and "mean". Calls are in the order of their stream, as other functions
are. If a rank fails, the group ends on all ranks: calls raise PeerError, which names the rank and the call.
"""
from __future__ import annotations

import os
import sys

from . import _core, _creation, _ops, grad
from ._errors import InvalidArgumentError

_REDUCTIONS = {"sum": 1, "prod": 2, "min": 3, "max": 4, "mean": 5}

# What launchers set in the processes that they start.
_LAUNCHED = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")


class Group:
    """One rank's side of a group. Made by init, groups and Group.split."""

    def __init__(self, handle):
        self._handle = handle
        self.rank, self.size, self.device, self.description = handle.info()

    def __repr__(self):
        return f"<rank {self.rank} of {self.size} on {self.device.name}: {self.description}>"

    def _run(self, name, x, out, number=0, deterministic=False):
        if not isinstance(x, grad.Variable):
            return self._handle.run(name, x, out, number, deterministic)
        rule = _GRADIENTS.get(name)
        if rule is None or out is not None or (name in ("all_reduce", "reduce_scatter") and number not in _LINEAR):
            raise TypeError(f"the gradient of this {name} is not known; pass the value of the variable")
        value = self._handle.run(name, x.value, None, number, deterministic)
        return grad.Variable(value, (x,), lambda dy: [rule(self, dy, x.value, number, deterministic)], name)

    def all_reduce(self, x, op="sum", *, out=None, deterministic=False):
        """x of all ranks, combined element by element: "sum", "prod", "min", "max" or "mean".

        With `deterministic` the bits of the result do not depend on the kind of the devices.
        """
        return self._run("all_reduce", x, out, _reduction(op), deterministic)

    def reduce_scatter(self, x, op="sum", *, out=None, deterministic=False):
        """This rank's part of what all_reduce gives: axis 0 is divided among the ranks."""
        return self._run("reduce_scatter", x, out, _reduction(op), deterministic)

    def all_gather(self, x, *, out=None, deterministic=False):
        """x of all ranks, joined along axis 0."""
        return self._run("all_gather", x, out, 0, deterministic)

    def broadcast(self, x, root=0, *, out=None, deterministic=False):
        """x of the rank `root`; on other ranks only the shape and dtype of x count."""
        return self._run("broadcast", x, out, root, deterministic)

    def all_to_all(self, x, *, out=None, deterministic=False):
        """Part i, along axis 0, is this rank's part of x of rank i."""
        return self._run("all_to_all", x, out, 0, deterministic)

    def send(self, x, peer, *, deterministic=False):
        """Sends x to the rank `peer`, which calls recv."""
        self._run("send", x, None, peer, deterministic)

    def recv(self, shape, dtype, peer, *, deterministic=False):
        """Receives an array of this shape and dtype from the rank `peer`."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return self._handle.recv(shape, dtype, None, peer, deterministic)

    def recv_into(self, out, peer, *, deterministic=False):
        """Receives into the array `out` from the rank `peer`."""
        return self._handle.recv(None, None, out, peer, deterministic)

    def barrier(self):
        """Waits until all ranks have called it."""
        self._handle.barrier()

    def split(self, color, key=0):
        """The group of the ranks that pass the same color, ordered by key. All ranks call it."""
        return Group(self._handle.split(color, key))

    def abort(self):
        """Ends the group on all ranks. Calls in progress and later ones raise PeerError."""
        self._handle.abort()


class Average:
    """The means of arrays over a group, computed on a stream of its own while the program goes on.

        average = compute.distributed.Average(group)
        average.add("weights", x)                       # the same keys in the same order on all ranks
        means = average.results()                       # a dict

    Arrays are exchanged as soon as they have `size_bytes` together.
    """

    def __init__(self, group, size_bytes=4 << 20):
        self._group, self._size_bytes = group, size_bytes
        if not hasattr(group, "_stream"):
            group._stream = _core.stream(group.device, 0)
        self._waiting, self._bytes, self._found = [], 0, {}

    def add(self, key, x):
        """Adds an array."""
        if self._waiting and (self._waiting[0][1].dtype is not x.dtype or self._bytes + x.nbytes > self._size_bytes):
            self._exchange()
        self._waiting.append((key, x))
        self._bytes += x.nbytes
        if self._bytes >= self._size_bytes:
            self._exchange()

    def results(self):
        """The means by key."""
        self._exchange()
        found, self._found = self._found, {}
        return found

    def _exchange(self):
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        with self._group._stream:
            if len(waiting) == 1:
                self._found[waiting[0][0]] = self._group.all_reduce(waiting[0][1], "mean")
            elif waiting:
                mean, at = self._group.all_reduce(_ops.concat(*(x.reshape((x.size,)) for _, x in waiting), axis=0), "mean"), 0
                for key, x in waiting:
                    self._found[key] = mean[at:at + x.size].reshape(x.shape)
                    at += x.size


_LINEAR = (_REDUCTIONS["sum"], _REDUCTIONS["mean"])


def _gradient_of_reduce_scatter(group, dy, x, number, deterministic):
    dx = group.all_gather(dy, deterministic=deterministic)
    return dx / group.size if number == _REDUCTIONS["mean"] else dx


def _gradient_of_broadcast(group, dy, x, root, deterministic):
    total = group.all_reduce(dy, deterministic=deterministic)
    return total if group.rank == root else _creation.zeros_like(total)


# Of the sum of the losses of all ranks. All ranks take part.
_GRADIENTS = {
    "all_reduce": lambda group, dy, x, number, deterministic: group._run("all_reduce", dy, None, number, deterministic),
    "reduce_scatter": _gradient_of_reduce_scatter,
    "all_gather": lambda group, dy, x, number, deterministic: group.reduce_scatter(
        dy, deterministic=deterministic).reshape(x.shape),
    "broadcast": _gradient_of_broadcast,
    "all_to_all": lambda group, dy, x, number, deterministic: group.all_to_all(dy, deterministic=deterministic),
}


def _reduction(op):
    if op in _REDUCTIONS:
        return _REDUCTIONS[op]
    raise InvalidArgumentError(f"op is {op!r}; it is one of {', '.join(_REDUCTIONS)}")


def _prepare_mpi():
    """Opens the MPI of this environment, unless the program or its launcher brings one."""
    if "mpi4py.MPI" in sys.modules:
        return
    library = os.path.join(sys.prefix, "lib/libmpi_abi.so.1")
    if os.path.exists(library):
        import ctypes

        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)


def over(transport, device=None):
    """A group over a transport of bytes: an object that reaches the other ranks in a way of its own.

    rank, size                 the place of this rank
    all_gather(src, dst)       `dst` receives the bytes `src` of each rank, in the order of the ranks
    all_to_all(src, dst)       the same of the parts of `src`, one for each rank
    broadcast(data, root)      fills `data` on all ranks from `root`
    send(data, peer)           and recv(data, peer): messages of a rank arrive in the order in which they were sent
    look()                     raises if another rank is gone
    abort(reason), close()     end the calls of the other ranks; leave the group
    split(color, key)          optional: the transport of the ranks that pass the same color

    The arguments are memoryviews. The first five start an exchange and return a function, which is called until it
    returns True, and raises if another rank is gone. It must not wait. str() describes the transport. docs/guides/several-devices.md
    says more.
    """
    return Group(_core.make_group_over(device, transport))


def _is_torchs():
    """Whether the processes belong to torch.distributed."""
    torch = sys.modules.get("torch")
    return "TORCHELASTIC_RUN_ID" in os.environ or (torch is not None and torch.distributed.is_available()
                                                   and torch.distributed.is_initialized())


def init(device=None):
    """The group of all processes that mpiexec, srun, torchrun or `compute run` has started; else one of this process alone.

    >>> group = compute.distributed.init("cpu")
    >>> group.size
    1
    >>> group.all_reduce(compute.asarray([1.0, 2.0], device="cpu"))
    Array([1., 2.], dtype=float32)
    """
    if _is_torchs():
        from ._torch import Transport

        return over(Transport(), device)
    over_mpi = "mpi4py.MPI" in sys.modules or any(name in os.environ for name in _LAUNCHED)
    if over_mpi:
        _prepare_mpi()
    return Group(_core.make_group(device, over_mpi))


def groups(devices):
    """A group of devices of this process, as a list: element i belongs to rank i, which is devices[i].

    Calls may wait for the other ranks, so each rank needs a thread of its own.
    """
    return [Group(handle) for handle in _core.make_groups(list(devices))]
