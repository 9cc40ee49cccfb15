# SPDX-License-Identifier: Apache-2.0
"""A transport over torch.distributed: its store, and its backend for host memory. torchrun starts the processes."""
from __future__ import annotations

import atexit
import collections
import contextlib
import datetime
import functools
import hashlib
import os
import select
import threading
import time
import warnings
import weakref

from ._process import after_end

_NO_MESSAGE = 1  # a tag that nobody sends
_made = 0  # transports of this process
# The latest requests. PyTorch's thread must not be the last to let go of one: it would ask for the interpreter, and abort
# the process if that ends just then.
_latest = collections.deque(maxlen=16)


class Transport:
    """The ranks of the default group, without arguments."""

    def __init__(self, store=None, rank=None, size=None, name=None):
        import torch
        from torch import distributed

        global _made
        self._torch, self._distributed = torch, distributed
        if store is None:
            if not distributed.is_initialized():
                distributed.init_process_group("gloo")
            _made += 1
            name = f"compute/{_made}"
            store = distributed.distributed_c10d._get_default_store()
            rank, size = distributed.get_rank(), distributed.get_world_size()
        self.rank, self.size = rank, size
        self._name, self._store, self._splits = name, store, 0
        self._notes = distributed.PrefixStore(name + "/notes", store)
        self._looked_at = self._gone_at = 0.0
        self._has_told = False
        # A group of its own: the program's calls do not come between ours.
        self._group = distributed.ProcessGroupGloo(distributed.PrefixStore(name, store), rank, size)
        self._processes, self._poll = {}, select.poll()  # ranks on this machine by the descriptors of their processes
        self._waiting = weakref.WeakSet()  # threads
        self._watch_processes()
        atexit.register(_tell_at_exit, weakref.ref(self))
        after_end.append(functools.partial(_end_waits, weakref.ref(self)))

    def __str__(self):
        return f"torch.distributed (gloo, PyTorch {self._torch.__version__})"

    def _bytes(self, view):
        if not len(view):
            return self._torch.empty(0, dtype=self._torch.uint8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # memory that is not writable is only read here
            return self._torch.frombuffer(view, dtype=self._torch.uint8)

    def _ended(self, work):
        _latest.append(work)

        def has_ended():
            if work.is_completed():
                try:
                    work.wait()  # which raises if it has failed
                except Exception as failure:
                    self._tell_who_failed(failure)
                return True
            self.look()
            return False
        return has_ended

    def _awaited(self, work):
        """The same of a message, whose work does not tell before wait() returns."""
        failures = []

        def wait():
            try:
                work.wait()
            except Exception as failure:
                failures.append(failure)

        thread = threading.Thread(target=wait, daemon=True)
        self._waiting.add(thread)
        thread.start()

        def has_ended():
            if thread.is_alive():
                self.look()
                return False
            for failure in failures:
                self._tell_who_failed(failure)
            return True
        return has_ended

    def all_gather(self, src, dst):
        return self._ended(self._group._allgather_base(self._bytes(dst), self._bytes(src)))

    def all_to_all(self, src, dst):
        return self._ended(self._group.alltoall_base(self._bytes(dst), self._bytes(src), [], []))

    def broadcast(self, data, root):
        return self._ended(self._group.broadcast(self._bytes(data), root))

    def send(self, data, peer):
        return self._awaited(self._group.send([self._bytes(data)], peer, 0))

    def recv(self, data, peer):
        return self._awaited(self._group.recv([self._bytes(data)], peer, 0))

    def look(self):
        """Raises if a rank has noted in the store that it has left or ended the group, or if its process has ended.

        Asks ten times a second, and about the processes of this machine only.
        """
        now = time.monotonic()
        if now - self._looked_at < 0.1:
            return
        self._looked_at = now
        reason = ""
        if self._notes.check(["gone"]):
            rank, reason = self._notes.get("gone").decode().split(" ", 1)
        else:
            rank = self._ended_process()
        if reason:
            raise RuntimeError(f"rank {rank} has ended the group: {reason}")
        if rank is None:
            return
        self._gone_at = self._gone_at or now
        if now - self._gone_at > 1:  # what this rank waits for may still be on its way
            raise RuntimeError(f"rank {rank} has left the group")

    def _watch_processes(self):
        """Finds the other ranks on this machine. All ranks take part."""
        numbers = self._torch.empty(2 * self.size, dtype=self._torch.int64)
        self._group._allgather_base(numbers, self._torch.tensor([_machine(), os.getpid()])).wait()
        for rank, (machine, process) in enumerate(zip(*[iter(numbers.tolist())] * 2)):
            if machine != _machine() or process == os.getpid():
                continue
            try:
                descriptor = os.pidfd_open(process)
            except OSError:
                continue  # it has just ended, or no descriptors are left: the connection will tell
            self._processes[descriptor] = rank
            self._poll.register(descriptor, select.POLLIN)

    def _ended_process(self, wait=0):
        """The rank of a process on this machine that has ended, or ends within `wait` seconds; else None."""
        for descriptor, _ in self._poll.poll(1000 * wait):
            return self._processes[descriptor]
        return None

    def _tell_who_failed(self, failure):
        """Raises the failure of a connection, with the rank whose process ends as well."""
        rank = self._ended_process(wait=0.5)
        if rank is not None:
            raise RuntimeError(f"the process of rank {rank} has ended: {failure}") from failure
        raise failure

    def _note(self, reason):
        if not self._has_told:
            self._has_told = True
            self._notes.compare_set("gone", "", f"{self.rank} {reason}")

    def split(self, color, key):
        self._splits += 1
        name = f"{self._name}/{self._splits}"
        store = self._distributed.PrefixStore(name, self._store)
        store.set(str(self.rank), f"{color} {key}")
        places = [(*map(int, store.get(str(rank)).split()), rank) for rank in range(self.size)]
        members = [rank for one, _, rank in sorted(places, key=lambda place: place[1:]) if one == color]
        return Transport(self._store, members.index(self.rank), len(members), f"{name}/{color}")

    def abort(self, reason):
        self._note(reason)

    def close(self):
        self._note("")
        for descriptor in self._processes:
            self._poll.unregister(descriptor)
            os.close(descriptor)
        self._processes = {}


def _tell_at_exit(reference):
    """Notes that this rank leaves. Ending a process of a GPU takes seconds, and its group may only be closed afterwards."""
    transport = reference()
    if transport is not None and transport._ended_process() is None:  # else that rank ends the group, and perhaps the store
        with contextlib.suppress(Exception):  # the rank that keeps the store may be on another machine
            transport._note("")


def _end_waits(reference):
    """Ends the waits for messages that never came. If PyTorch returns while the interpreter ends, it aborts the process."""
    transport = reference()
    if transport is None or not any(thread.is_alive() for thread in transport._waiting):
        return
    # A wait that times out closes the connections of the group, and with them ends all others. A rank that has left
    # refuses it, so each is asked.
    for peer in range(transport.size):
        with contextlib.suppress(RuntimeError):
            if peer != transport.rank:
                transport._group.recv([transport._torch.empty(1)], peer, _NO_MESSAGE).wait(datetime.timedelta(milliseconds=1))
    for thread in transport._waiting:
        thread.join(1)


@functools.cache
def _machine():
    """A number for what process numbers belong to: the running kernel and its namespace of processes."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        name = file.read() + os.readlink(b"/proc/self/ns/pid")
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "little", signed=True)
