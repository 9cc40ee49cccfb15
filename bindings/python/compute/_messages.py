# SPDX-License-Identifier: Apache-2.0
"""A transport over messages, for engines that have nothing else. Dask and Ray use it."""
from __future__ import annotations

import collections


class Messages:
    """The exchanges of a transport, see compute.distributed.over. A subclass has

    post(peer, key, data)   starts to send bytes; returns a function that says whether they have arrived
    take(key)               what has arrived under a key, once; else None
    look()                  raises if another rank is gone
    """

    def __init__(self, rank, size):
        self.rank, self.size = rank, size
        self._exchanges = 0
        self._sent, self._received = collections.Counter(), collections.Counter()  # by peer

    def all_gather(self, src, dst):
        return self._exchange([src] * self.size, dst, len(src))

    def all_to_all(self, src, dst):
        size = len(src) // self.size
        return self._exchange([src[i * size:(i + 1) * size] for i in range(self.size)], dst, size)

    def _exchange(self, parts, dst, size):
        self._exchanges += 1
        places = [dst[i * size:(i + 1) * size] for i in range(self.size)]
        places[self.rank][:] = parts[self.rank]
        others = [peer for peer in range(self.size) if peer != self.rank]
        sent = [self.post(peer, (self._exchanges, self.rank), parts[peer]) for peer in others]
        return self._ended(sent, {(self._exchanges, peer): places[peer] for peer in others})

    def broadcast(self, data, root):
        self._exchanges += 1
        key = self._exchanges, root
        if self.rank != root:
            return self._ended([], {key: data})
        return self._ended([self.post(peer, key, data) for peer in range(self.size) if peer != root], {})

    def send(self, data, peer):
        self._sent[peer] += 1
        return self._ended([self.post(peer, ("send", self._sent[peer], self.rank), data)], {})

    def recv(self, data, peer):
        self._received[peer] += 1
        return self._ended([], {("send", self._received[peer], peer): data})

    def _ended(self, sent, places):
        """A function that stores what arrives for the keys of `places`, and says whether everything has ended."""
        def has_ended():
            for key, place in list(places.items()):
                data = self.take(key)
                if data is not None:
                    place[:] = memoryview(data).cast("B")
                    del places[key]
            sent[:] = [has_arrived for has_arrived in sent if not has_arrived()]
            if not places and not sent:
                return True
            self.look()
            return False
        return has_ended
