#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates all-reduces of many ranks from the latency and bandwidth of few.

    mpiexec -n 2 python3 tools/scaling.py --measure machine.json    # writes what two ranks measure
    mpiexec -n 4 python3 tools/scaling.py --compare machine.json    # times all-reduces, and simulates the same
    python3 tools/scaling.py machine.json --ranks 8,64,1024         # simulates alone

The first two need the package `compute` on PYTHONPATH. A rank has a clock. A message begins when both of its ranks have
come to it, takes a latency and its bytes over a bandwidth, and moves both clocks. Ranks of one host share its network
link, and its cores if these are fewer. docs/guides/scaling.md has results.
"""
import argparse
import dataclasses
import itertools
import json
import math
import os
import random
import statistics
import time

SMALL = 4 << 10                   # bytes up to which core gathers all values; core/collective/exchange.cpp
DIRECT = 32 << 10, 32             # bytes and ranks of exchanges without steps; core/collective/mpi_transport.cpp
SIZES = (8, 64 << 10, 1 << 20, 64 << 20)


def chunk_of(ranks):
    """Bytes of an all-reduce that core exchanges at once; core/collective/exchange.cpp."""
    return max(min(max(4 << 20, (2 << 20) * ranks), 16 << 20), (64 << 10) * ranks)


@dataclasses.dataclass
class Machine:
    """Times in seconds, rates in bytes per second."""

    latency: float = 1e-6         # of a message within a host
    rate: float = 4e9             # between two ranks of a host, each way
    combine_rate: float = 8e9     # of values that are read and combined
    call: float = 10e-6           # the library's own part of a call
    cores: int = 2                # of a host, as many as ranks where the machine is larger
    net_latency: float = 3e-6     # between hosts
    net_rate: float = 12e9        # of a host's link, each way
    per_host: int = 8             # ranks

    def share(self):
        """By how much ranks slow each other down on the cores of a host."""
        return max(1.0, self.per_host / self.cores)


class Simulation:
    def __init__(self, machine, ranks, delays=None):
        self.m, self.ranks = machine, ranks
        self.clocks = list(delays or [0.0] * ranks)
        self.host = [rank // machine.per_host for rank in range(ranks)]

    def message(self, size, is_local, sharing=1):
        """Time of a message; `sharing` ranks of the host send to others at the same time."""
        if is_local:
            return (self.m.latency + size / self.m.rate) * self.m.share()
        return self.m.net_latency + size * sharing / self.m.net_rate

    def shift(self, k, size):
        """Each rank r sends to r + k, and receives from r - k."""
        ranks, host = self.ranks, self.host
        sharing = min(k, ranks - k, self.m.per_host)
        local, remote = self.message(size, True), self.message(size, False, sharing)
        before = self.clocks[-k:] + self.clocks[:-k]
        if host[-1] == 0:
            self.clocks = [max(own, other) + local for own, other in zip(self.clocks, before)]
        elif k >= self.m.per_host and ranks - k >= self.m.per_host:
            self.clocks = [max(own, other) + remote for own, other in zip(self.clocks, before)]
        else:
            self.clocks = [max(own, other) + (local if host[rank] == host[rank - k] else remote)
                           for rank, (own, other) in enumerate(zip(self.clocks, before))]

    def work(self, seconds):
        seconds *= self.m.share()
        self.clocks = [clock + seconds for clock in self.clocks]

    def all_to_all(self, part):
        few = part <= 256 and self.ranks >= 8  # MPI then passes on half of all parts in rounds that double
        for k in [2 ** i for i in range(math.ceil(math.log2(self.ranks)))] if few else range(1, self.ranks):
            self.shift(k, part * self.ranks / 2 if few else part)

    def all_gather(self, part):
        """To all at once; among many ranks a ring; few bytes in rounds that double."""
        if part >= DIRECT[0] and self.ranks <= DIRECT[1]:
            for k in range(1, self.ranks):
                self.shift(k, part)
            return
        if part * self.ranks > 1 << 19:
            for _ in range(1, self.ranks):
                self.shift(1, part)
            return
        for i in range(math.ceil(math.log2(self.ranks)) if self.ranks > 1 else 0):
            self.shift(min(2 ** i, self.ranks - 1), part * min(2 ** i, self.ranks - 2 ** i))

    # ---- Algorithms of an all-reduce of `size` bytes

    def core(self, size, chunk=None):
        """What this library does."""
        self.work(self.m.call)
        if size <= SMALL:
            self.all_gather(size)
            return self.work(size * self.ranks / self.m.combine_rate)
        chunk = chunk or chunk_of(self.ranks)
        for at in range(0, size, chunk):
            part = min(chunk, size - at) / self.ranks
            self.all_to_all(part)
            self.work(part * self.ranks / self.m.combine_rate)
            self.all_gather(part)

    def fixed_chunks(self, size):
        """The same with chunks of one size for any number of ranks."""
        self.core(size, chunk=4 << 20)

    def tree(self, size):
        """All bytes up a binary tree, and down again. Not in the order of the ranks."""
        self.work(self.m.call)
        steps = [2 ** i for i in range(math.ceil(math.log2(self.ranks)))]
        for step, goes_up in [(step, True) for step in steps] + [(step, False) for step in reversed(steps)]:
            for low in range(0, self.ranks - step, 2 * step):
                high = low + step
                end = max(self.clocks[low], self.clocks[high]) + self.message(size, self.host[low] == self.host[high])
                self.clocks[high] = end
                self.clocks[low] = end + (2 * size / self.m.combine_rate * self.m.share() if goes_up else 0)

    def ring(self, size):
        """Partial sums travel around a ring. The order of additions differs from part to part."""
        self.work(self.m.call)
        for _ in range(1, self.ranks):
            self.shift(1, size / self.ranks)
            self.work(2 * size / self.ranks / self.m.combine_rate)
        for _ in range(1, self.ranks):
            self.shift(1, size / self.ranks)

    def hosts(self, size):
        """reduce_scatter in groups of a host, all_reduce between hosts, all_gather in the hosts: three calls of groups."""
        per_host = min(self.m.per_host, self.ranks)
        hosts = self.ranks // per_host
        inner = Simulation(dataclasses.replace(self.m, per_host=per_host), per_host, self.clocks[:per_host])
        inner.work(self.m.call)
        chunk = chunk_of(per_host)
        for at in range(0, size, chunk):
            part = min(chunk, size - at) / per_host
            inner.all_to_all(part)
            inner.work(part * per_host / self.m.combine_rate)
        # One group for each place in a host; all of a host share its link.
        link = dataclasses.replace(self.m, per_host=1, cores=1, net_rate=self.m.net_rate / per_host)
        outer = Simulation(link, hosts, [max(self.clocks[i:i + per_host]) for i in range(0, self.ranks, per_host)])
        outer.clocks = [clock + max(inner.clocks) - max(self.clocks[:per_host]) for clock in outer.clocks]
        outer.core(math.ceil(size / per_host))
        inner.clocks = [0.0] * per_host
        inner.work(self.m.call)
        inner.all_gather(size / per_host)
        self.clocks = [clock + max(inner.clocks) for clock in outer.clocks for _ in range(per_host)]


ALGORITHMS = ("core", "fixed_chunks", "tree", "ring", "hosts")


def simulate(machine, ranks, algorithm, size, delays=None):
    simulation = Simulation(machine, ranks, delays)
    getattr(simulation, algorithm)(size)
    return max(simulation.clocks)


def text_of(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def size_of(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


def table(machine, ranks):
    print("| ranks | bytes | " + " | ".join(ALGORITHMS) + " |\n|" + " --- |" * (len(ALGORITHMS) + 2))
    for count, size in itertools.product(ranks, SIZES):
        print(f"| {count} | {size_of(size)} | " + " | ".join(text_of(simulate(machine, count, name, size)) for name in ALGORITHMS) + " |")


def stragglers(machine, ranks, mean, size=1 << 20):
    """Each rank comes late by an exponentially distributed time."""
    print(f"\nranks that come late by {text_of(mean)} on average, all_reduce of {size_of(size)}:\n")
    print("| ranks | without | with | the last rank comes after |\n| --- | --- | --- | --- |")
    draw = random.Random(7)
    for count in ranks:
        rounds = [[draw.expovariate(1 / mean) for _ in range(count)] for _ in range(5)]
        late = statistics.median(simulate(machine, count, "core", size, delays) for delays in rounds)
        last = statistics.median(max(delays) for delays in rounds)
        print(f"| {count} | {text_of(simulate(machine, count, 'core', size))} | {text_of(late)} | {text_of(last)} |")


# ---- Measurements ---------------------------------------------------------------------------------------------------

def timed(group, call, rounds):
    """Median over the rounds of the slowest rank's time."""
    import compute

    found = []
    for i in range(rounds + 1):
        group.barrier()
        begin = time.perf_counter()
        call()
        group.device.synchronize()
        slowest = group.all_reduce(compute.asarray([time.perf_counter() - begin], dtype=compute.float64, device="cpu"), "max")
        found.append(float(slowest[0]))
    return statistics.median(found[1:])


def times_of_all_reduce(group):
    import compute

    found = {}
    for size in SIZES:
        x, y = (compute.ones(size // 4, dtype=compute.float32, device=group.device) for _ in range(2))
        calls = max(1, min(200, (1 << 20) // size))

        def call(x=x, y=y, calls=calls):
            for _ in range(calls):
                group.all_reduce(x, out=y)
        found[size] = timed(group, call, 9) / calls
    return found


def measure(group):
    """The machine as two ranks see it."""
    import compute

    size, calls = 64 << 20, 300
    small = compute.ones(2, dtype=compute.float32, device=group.device)
    big, result = (compute.ones(size // 4, dtype=compute.float32, device=group.device) for _ in range(2))
    alone = compute.distributed.groups([group.device])[0]

    def repeat(call):
        return lambda: [call() for _ in range(calls)]

    def send():
        return group.send(big, 1) if group.rank == 0 else group.recv_into(result, 0)
    call = timed(group, repeat(lambda: alone.all_reduce(small, out=small)), 9) / calls
    gather = timed(group, repeat(lambda: group.all_gather(small)), 9) / calls
    one_way = timed(group, send, 9)
    combine = timed(group, lambda: alone.all_reduce(big, out=result), 9)  # a copy, and a pass of the combination
    return Machine(latency=max(gather - call, 1e-7), rate=size / one_way, combine_rate=2 * size / combine, call=call,
                   cores=os.cpu_count(), per_host=2)


def compare(group, machine):
    machine = dataclasses.replace(machine, per_host=group.size, cores=os.cpu_count())
    found = times_of_all_reduce(group)
    if group.rank == 0:
        print("| ranks | bytes | measured | simulated |\n| --- | --- | --- | --- |")
        for size, seconds in found.items():
            print(f"| {group.size} | {size_of(size)} | {text_of(seconds)} | {text_of(simulate(machine, group.size, 'core', size))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("machine", nargs="?", help="a file of --measure; without it, assumed figures")
    parser.add_argument("--measure", metavar="FILE", help="with two ranks")
    parser.add_argument("--compare", metavar="FILE", help="with any number of ranks of one host")
    parser.add_argument("--ranks", default="2,4,8,64,1024")
    parser.add_argument("--per-host", type=int, default=8)
    parser.add_argument("--late-us", type=float, default=200)
    options = parser.parse_args()
    if options.measure or options.compare:
        import compute

        group = compute.distributed.init("cpu")
        if options.compare:
            with open(options.compare, encoding="utf-8") as file:
                return compare(group, Machine(**json.load(file)))
        machine = measure(group)
        if group.rank == 0:
            with open(options.measure, "w", encoding="utf-8") as file:
                json.dump(dataclasses.asdict(machine), file, indent=1)
        return None
    machine = Machine()
    if options.machine:
        with open(options.machine, encoding="utf-8") as file:
            machine = Machine(**json.load(file))
    machine = dataclasses.replace(machine, per_host=options.per_host, cores=options.per_host)
    ranks = [int(count) for count in options.ranks.split(",")]
    table(machine, ranks)
    stragglers(machine, ranks, options.late_us * 1e-6)
    return None


if __name__ == "__main__":
    main()
