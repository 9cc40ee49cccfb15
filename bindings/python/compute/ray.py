# SPDX-License-Identifier: Apache-2.0
"""Ray: groups of actors, and results of actors that stay on their devices until another actor needs them.

    import compute.ray

    @ray.remote(num_gpus=1)
    class Trainer:
        def train(self, rank, size):
            group = compute.ray.group("train", rank, size)      # as compute.distributed.init()

        @ray.method(tensor_transport="compute")
        def weights(self):
            return self.model                                   # arrays in any structure of Python

Needs the package ray. The module is imported before actors are created.
"""
from __future__ import annotations

import asyncio
import math
import mmap
import pickle
import time
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory as SharedMemoryBlock

import ray
from ray.experimental import register_tensor_transport
from ray.experimental.rdt import tensor_transport_manager as rdt

import compute
from . import _core, _messages, distributed

_SMALL = 50_000  # bytes; Ray passes so many beside a call, without its object store


# ---- Groups ---------------------------------------------------------------------------------------------------------

class _Mailbox:
    """An actor that keeps what has arrived for a rank. It ends with the rank, which owns it."""

    def __init__(self):
        self.messages = {}  # by key: a future of the data
        self.taken = {}     # by key: a future that is done once they have been taken
        self.over = asyncio.Event()
        self.reason = ""

    def _future(self, futures, key):
        return futures.setdefault(key, asyncio.get_running_loop().create_future())

    async def deliver(self, key, data):
        self._future(self.messages, key).set_result(data)
        await self._future(self.taken, key)
        del self.taken[key]

    async def take(self, key):
        data = await self._future(self.messages, key)
        del self.messages[key]
        self._future(self.taken, key).set_result(None)
        return data

    async def watch(self):
        await self.over.wait()
        return self.reason

    async def end(self, reason):
        if not self.over.is_set():
            self.reason = reason
            self.over.set()


class _Transport(_messages.Messages):
    """Messages by calls of mailboxes; large ones lie in Ray's object store, which is shared memory on one machine."""

    def __init__(self, name, rank, size, patience):
        super().__init__(rank, size)
        names = [f"compute {name} {peer}" for peer in range(size)]
        self._own = ray.remote(_Mailbox).options(name=names[rank], num_cpus=0, max_concurrency=1_000_000).remote()
        end = time.monotonic() + patience
        self._peers = [self._own if peer == rank else _find(names[peer], end) for peer in range(size)]
        self._watches = {self._peers[peer].watch.remote(): peer for peer in range(size) if peer != rank}
        self._waiting = {}  # by key: what `take` has called
        self._looked_at, self._gone = 0.0, None

    def __str__(self):
        return f"Ray {ray.__version__}"

    def post(self, peer, key, data):
        parcel = bytes(data) if len(data) <= _SMALL else [ray.put(pickle.PickleBuffer(data))]
        sent = self._peers[peer].deliver.remote(key, parcel)

        def has_arrived():
            if not _is_ready(sent):
                return False
            _result(sent, peer)
            parcel  # keeps the object until then
            return True
        return has_arrived

    def take(self, key):
        if key not in self._waiting:
            self._waiting[key] = self._own.take.remote(key)
        if not _is_ready(self._waiting[key]):
            return None
        parcel = ray.get(self._waiting.pop(key))
        return parcel if isinstance(parcel, bytes) else ray.get(parcel[0])

    def look(self):
        """Raises if a rank has left or ended the group, or is gone. Asks ten times a second."""
        now = time.monotonic()
        if now - self._looked_at < 0.1 or not self._watches:
            return
        self._looked_at = now
        ended, _ = ray.wait(list(self._watches), num_returns=len(self._watches), timeout=0)
        for watch in ended:
            peer = self._watches[watch]
            reason = _result(watch, peer)
            if reason:
                raise RuntimeError(f"rank {peer} has ended the group: {reason}")
            self._gone = self._gone or now
            if now - self._gone > 1:  # what this rank waits for may still be on its way
                raise RuntimeError(f"rank {peer} has left the group")

    def abort(self, reason):
        self._own.end.remote(reason)

    def close(self):
        self._own.end.remote("")


def _is_ready(reference):
    return bool(ray.wait([reference], timeout=0)[0])


def _result(reference, peer):
    try:
        return ray.get(reference)
    except ray.exceptions.RayError as error:
        raise RuntimeError(f"rank {peer} is gone: {str(error).splitlines()[0]}") from None


def _find(name, end):
    """The actor of this name, once it exists."""
    while True:
        try:
            return ray.get_actor(name)
        except ValueError:
            if time.monotonic() > end:
                raise TimeoutError(f"no rank has made {name!r} in time") from None
            time.sleep(0.05)


def group(name, rank, size, device=None, patience=60):
    """The group of the `size` actors that call it with the same name. Waits `patience` seconds for them. A name serves once."""
    return distributed.over(_Transport(name, rank, size, patience), device)


# ---- The tensor transport -------------------------------------------------------------------------------------------

@dataclass
class _Metadata(rdt.TensorTransportMetadata):
    name: str = ""  # of the shared memory
    node: str = ""  # the machine


class SharedMemory(rdt.TensorTransportManager):
    """Copies arrays between actors of one machine through shared memory. They arrive on the receiver's default device."""

    tensor_transport_backend = property(lambda self: "COMPUTE")
    is_one_sided = staticmethod(lambda: True)
    can_abort_transport = staticmethod(lambda: False)

    def __init__(self):
        self._blocks = {}  # by the id of an object

    def actor_has_tensor_transport(self, actor):
        return True

    def extract_tensor_transport_metadata(self, obj_id, rdt_object):
        block = self._blocks.get(obj_id)
        if block is None:
            block = self._blocks[obj_id] = SharedMemoryBlock(create=True, size=max(1, sum(x.nbytes for x in rdt_object)))
            at = 0
            for x in rdt_object:
                if x.nbytes:
                    _core.read_into(x, block.buf[at:at + x.nbytes])
                at += x.nbytes
        return _Metadata([(x.shape, x.dtype) for x in rdt_object], "cpu" if rdt_object else None, block.name, _node())

    def get_communicator_metadata(self, src_actor, dst_actor, backend=None):
        return rdt.CommunicatorMetadata()

    def recv_multiple_tensors(self, obj_id, tensor_transport_metadata, communicator_metadata, target_buffers=None):
        if tensor_transport_metadata.node != _node():
            raise ValueError('the arrays are on another machine; call ray.put there, or method(tensor_transport="object_store")')
        found, at = [], 0
        with open(f"/dev/shm/{tensor_transport_metadata.name.lstrip('/')}", "rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        for i, (shape, dtype) in enumerate(tensor_transport_metadata.tensor_meta):
            size = math.prod(shape) * dtype.itemsize
            x = _core.from_bytes(data[at:at + size], shape, dtype.name, None)
            if target_buffers:
                target_buffers[i][...] = x
            found.append(target_buffers[i] if target_buffers else x)
            at += size
        return found

    def send_multiple_tensors(self, tensors, tensor_transport_metadata, communicator_metadata):
        raise NotImplementedError("receivers read the shared memory")

    def garbage_collect(self, obj_id, tensor_transport_meta, tensors):
        block = self._blocks.pop(obj_id, None)
        if block is not None:
            block.close()
            block.unlink()

    def abort_transport(self, obj_id, communicator_metadata):
        raise NotImplementedError("there is nothing to abort")


def _node():
    return ray.get_runtime_context().get_node_id()


register_tensor_transport("COMPUTE", ["cpu"], SharedMemory, compute.Array)
