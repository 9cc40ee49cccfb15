# SPDX-License-Identifier: Apache-2.0
"""Dask: blocks of its arrays that are arrays of this package, one worker for each device, and groups of workers.

    import compute.dask
    import dask.array as da

    with compute.dask.cluster(["cuda0", "cuda1"]) as cluster, cluster.get_client() as client:
        with dask.config.set({"array.backend": "compute"}):
            x = da.ones((100_000, 100), chunks=(10_000, 100), dtype="float32")
        u, s, v = da.linalg.svd(x)              # on the workers' devices
        compute.dask.run(client, train)         # train(group) on each worker

Needs the packages dask, distributed and numpy. The import registers the arrays with Dask, in each process: workers of
another cluster need it too, as by `dask worker --preload compute.dask`.
"""
from __future__ import annotations

import asyncio
import time
import uuid

import dask.config
import dask.array as da
import distributed
from dask.array import backends, dispatch
from dask.array.chunk_types import register_chunk_type
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.protocol import to_serialize

import compute
from . import _messages, distributed as collectives


# ---- Arrays ---------------------------------------------------------------------------------------------------------

def _einsum(equation, *operands, dtype=None, order=None, casting=None, **options):
    found = compute.einsum(equation, *operands, **options)
    return found if dtype is None else compute.astype(found, dtype, copy=False)


def _divide(a, b, dtype=None):
    return compute.divide(a, b) if dtype is None else compute.divide(compute.astype(a, dtype, copy=False), b)


def _percentile(a, q, method="linear"):
    if method != "linear":
        raise NotImplementedError(f"percentile by the method {method!r}; only 'linear' is known")
    return compute.percentile(a, q), a.size


def _to_numpy(x, **options):
    import numpy

    return numpy.asarray(x)


def _to_compute(x, **options):
    return compute.asarray(x)


register_chunk_type(compute.Array)
for _lookup, _function in ((dispatch.concatenate_lookup, lambda arrays, axis=0: compute.concat(arrays, axis=axis)),
                           (dispatch.take_lookup, lambda x, indices, axis=0: compute.take(x, compute.asarray(indices), axis=axis)),
                           (dispatch.tensordot_lookup, lambda a, b, axes=2: compute.tensordot(a, b, axes=axes)),
                           (dispatch.einsum_lookup, _einsum), (dispatch.empty_lookup, compute.empty),
                           (dispatch.divide_lookup, _divide), (dispatch.percentile_lookup, _percentile),
                           (dispatch.numel_lookup, backends._numel_arraylike), (dispatch.nannumel_lookup, backends._nannumel),
                           (dispatch.to_numpy_dispatch, _to_numpy)):
    _lookup.register(compute.Array, _function)


def _creation(name, argument):
    def run(*args, **kwargs):
        if kwargs.get(argument) is None:
            kwargs[argument] = compute.empty((0,) * (argument == "meta"))
        with dask.config.set({"array.backend": "numpy"}):
            return getattr(da, name)(*args, **kwargs)
    return staticmethod(run)


class Backend(backends.ArrayBackendEntrypoint):
    """The value "compute" of Dask's setting array.backend."""

    ones, zeros, empty, full = (_creation(name, "meta") for name in ("ones", "zeros", "empty", "full"))
    arange = _creation("arange", "like")

    @classmethod
    def to_backend_dispatch(cls):
        return _to_compute

    @classmethod
    def to_backend(cls, data, **options):
        return data if isinstance(data._meta, compute.Array) else data.map_blocks(_to_compute, **options)

    @property
    def default_bit_generator(self):
        return Bits

    @property
    def RandomState(self):
        raise NotImplementedError("use dask.array.random.default_rng, whose numbers the workers' devices make")


class Bits(int):
    """What Dask's random generators take for the state of compute.random.default_rng."""

    def __new__(cls, seed=None):
        import numpy

        seeds = seed if isinstance(seed, numpy.random.SeedSequence) else numpy.random.SeedSequence(seed)
        self = super().__new__(cls, seeds.generate_state(1, numpy.uint64)[0] >> 1)
        self._seed_seq = seeds
        return self

    def __reduce__(self):
        return Bits, (self._seed_seq,)


backends.array_creation_dispatch.register_backend("compute", Backend())


def cluster(devices=None, **options):
    """A cluster of this machine with one worker for each device; by default, for the default device."""
    names = [compute.device(one).name for one in (devices or [None])]
    workers = {name: {"cls": distributed.Nanny, "options": {"nthreads": 1, "preload": ["compute.dask"], "env": {"COMPUTE_DEVICE": name}, **options}}
               for name in names}
    return distributed.SpecCluster(workers, {"cls": distributed.Scheduler, "options": {"dashboard_address": None}}, silence_logs="error")


# ---- Groups ---------------------------------------------------------------------------------------------------------

class _Box:
    """What has arrived on a worker for a group. Used on the worker's event loop; `messages` by any thread."""

    def __init__(self):
        self.messages = {}  # by key: the bytes, and a future that is done once they have been taken
        self.over = asyncio.get_running_loop().create_future()  # why the rank ended the group; "": it left


_boxes = {}  # by group


def _box(group):
    if group not in _boxes:
        _boxes[group] = _Box()
    return _boxes[group]


async def _deliver(group, key, data):
    taken = asyncio.get_running_loop().create_future()
    _box(group).messages[key] = data, taken
    await taken


async def _watch(group):
    return await asyncio.shield(_box(group).over)


class _Handlers(WorkerPlugin):
    """Lets workers of this process's clients take messages."""

    name = "compute"

    def setup(self, worker):
        worker.handlers.update(compute_deliver=_deliver, compute_watch=_watch)


class _Transport(_messages.Messages):
    """Messages over the connections between workers."""

    def __init__(self, worker, group, rank, addresses):
        super().__init__(rank, len(addresses))
        self._loop, self._group = worker.loop.asyncio_loop, group
        self._peers = [worker.rpc(address) for address in addresses]
        self._box = self._start(self._open()).result()
        self._watches = {peer: self._start(self._peers[peer].compute_watch(group=group))
                         for peer in range(self.size) if peer != rank}
        self._gone_at = None

    def __str__(self):
        return f"dask.distributed {distributed.__version__}"

    def _start(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def _open(self):
        return _box(self._group)

    def post(self, peer, key, data):
        sent = self._start(self._peers[peer].compute_deliver(group=self._group, key=key, data=to_serialize(data)))
        return lambda: sent.done() and (sent.result(), True)[1]

    def take(self, key):
        data, taken = self._box.messages.pop(key, (None, None))
        if taken is not None:
            self._loop.call_soon_threadsafe(taken.set_result, None)
        return data

    def look(self):
        for peer, watch in self._watches.items():
            if not watch.done():
                continue
            try:
                reason = watch.result()
            except OSError as error:
                raise RuntimeError(f"rank {peer} is gone: {error}") from None
            if reason:
                raise RuntimeError(f"rank {peer} has ended the group: {reason}")
            self._gone_at = self._gone_at or time.monotonic()
            if time.monotonic() - self._gone_at > 1:  # what this rank waits for may still be on its way
                raise RuntimeError(f"rank {peer} has left the group")

    def _end(self, reason):
        def end():
            if not self._box.over.done():
                self._box.over.set_result(reason)
            _boxes.pop(self._group, None)
        self._loop.call_soon_threadsafe(end)

    abort = _end

    def close(self):
        self._end("")


def _run_rank(function, group, rank, addresses, arguments):
    transport = _Transport(distributed.get_worker(), group, rank, addresses)
    return function(collectives.over(transport), *arguments)


def run(client, function, *arguments, workers=None):
    """Calls function(group, *arguments) on each worker at the same time, and returns the results in the order of the ranks.

    `workers` are addresses of workers, by default all of the cluster. Each needs a free thread.
    """
    client.register_plugin(_Handlers())
    addresses = list(workers or client.scheduler_info(n_workers=-1)["workers"])
    group = uuid.uuid4().hex
    return client.gather([client.submit(_run_rank, function, group, rank, addresses, arguments, workers=[address],
                                        key=f"compute-rank-{rank}-{group}", pure=False, retries=0)
                          for rank, address in enumerate(addresses)])
