# SPDX-License-Identifier: Apache-2.0
"""Groups over transports that are written in Python, and over the channels of torch.distributed, Dask and Ray, in processes."""
import importlib.util
import os
import queue
import subprocess
import sys
import textwrap
import threading
import unittest

import numpy as np

import compute
from compute import _messages, distributed

# What every engine must do, as a function of the group.
BODY = """
import numpy as np
import compute

def check(group):
    x = compute.asarray(np.arange(5.0) + group.rank, device="cpu")
    all_x = [np.arange(5.0) + rank for rank in range(group.size)]
    assert np.array_equal(group.all_reduce(x), sum(all_x))
    assert np.array_equal(group.all_gather(x), np.concatenate(all_x))
    assert np.array_equal(group.broadcast(x, 1), all_x[1])
    y = compute.asarray(np.arange(4 * group.size) + 100 * group.rank, device="cpu")
    assert np.array_equal(group.all_to_all(y), np.concatenate([np.arange(4) + 4 * group.rank + 100 * rank for rank in range(group.size)]))
    big = np.float32(np.random.default_rng(group.rank).standard_normal(700_001))
    terms = [np.float32(np.random.default_rng(rank).standard_normal(700_001)).astype(float) for rank in range(group.size)]
    found = np.asarray(group.all_reduce(compute.asarray(big, device="cpu")), dtype=float)
    assert not np.any(~(abs(found - sum(terms)) <= 2 ** -23 * sum(map(abs, terms))))
    if group.rank == 0:
        group.send(x, 1)
    elif group.rank == 1:
        assert np.array_equal(group.recv(5, x.dtype, 0), all_x[0])
    group.barrier()
    return f"rank {group.rank} of {group.size} over {group.description}"
"""


class Queues(_messages.Messages):
    """Messages between the threads of a process."""

    def __init__(self, boxes, rank):
        super().__init__(rank, len(boxes))
        self.boxes, self.arrived, self.reasons = boxes, {}, []

    def __str__(self):
        return "queues"

    def post(self, peer, key, data):
        self.boxes[peer].put((key, bytes(data)))
        return lambda: True

    def take(self, key):
        while True:
            try:
                name, data = self.boxes[self.rank].get_nowait()
            except queue.Empty:
                return self.arrived.pop(key, None)
            self.arrived[name] = data

    def look(self):
        reason = self.take("over")
        if reason is not None:
            raise RuntimeError(reason.decode())

    def abort(self, reason):
        for box in self.boxes:
            box.put(("over", reason.encode()))

    def close(self):
        pass


def on_threads(transports, body):
    results = [None] * len(transports)

    def run(rank):
        try:
            results[rank] = body(distributed.over(transports[rank], "cpu"))
        except BaseException as failure:
            results[rank] = failure

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(transports))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def queues(size):
    boxes = [queue.SimpleQueue() for _ in range(size)]
    return [Queues(boxes, rank) for rank in range(size)]


class Transports(unittest.TestCase):
    def test_every_call(self):
        names = {}
        exec(BODY, names)
        for size in (2, 3):
            self.assertEqual(on_threads(queues(size), names["check"]), [f"rank {rank} of {size} over queues" for rank in range(size)])

    def test_failures(self):
        def body(group):
            if group.rank == 1:
                group.abort()
            group.all_reduce(compute.ones(3, device="cpu"))

        first, second = on_threads(queues(2), body)
        self.assertIsInstance(first, compute.PeerError)
        self.assertRegex(str(first), "all_reduce: call 1 .*rank 0 of 2: .*abort")
        self.assertIsInstance(second, compute.PeerError)

    def test_wrong_transports(self):
        class Wrong(Queues):
            def all_gather(self, src, dst):
                return how(self, src, dst)

        def returns_nothing(self, src, dst):
            return None

        def raises(self, src, dst):
            raise KeyError("the engine is gone")

        def raises_later(self, src, dst):
            return lambda: 1 % 0

        for how, text in ((returns_nothing, "did not return a function"), (raises, "the engine is gone"), (raises_later, "modulo by zero")):
            for failure in on_threads([Wrong([queue.SimpleQueue()] * 2, rank) for rank in range(2)], lambda group: None):
                self.assertIsInstance(failure, compute.PeerError)
                self.assertRegex(str(failure), text)
        one = queues(1)[0]
        one.rank = 7
        with self.assertRaisesRegex(compute.InvalidArgumentError, "rank 7 of 1 ranks"):
            distributed.over(one, "cpu")
        with self.assertRaises(AttributeError):
            distributed.over(object(), "cpu")


class Engines(unittest.TestCase):
    def run_program(self, program, *packages, launcher=()):
        missing = [name for name in packages if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{' and '.join(missing)} not installed: pip install {' '.join(packages)}")
        path = os.path.join(self.enterContext(__import__("tempfile").TemporaryDirectory()), "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(BODY + textwrap.dedent(program))
        done = subprocess.run([sys.executable, *launcher, path], capture_output=True, text=True, timeout=600, check=False,
                              env={**os.environ, "COMPUTE_DEVICE": "cpu", "COMPUTE_LOG": "error", "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_torch(self):
        text = self.run_program("""
            group = compute.distributed.init("cpu")
            part = group.split(group.rank % 2, -group.rank)
            print(check(group) + f", {part.rank} of {part.size}\\n", end="")
        """, "torch", launcher=["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3"])
        self.assertRegex("".join(sorted(text.splitlines(True))), "(?s)rank 0 of 3 over torch.distributed .*, 1 of 2\n"
                         "rank 1 of 3 over torch.distributed .*, 0 of 1\nrank 2 of 3 over torch.distributed .*, 0 of 2\n")

    def test_torch_names_a_rank_that_is_killed(self):
        text = self.run_program("""
            import multiprocessing, os, signal, sys
            from torch import distributed

            def rank(number, store):
                distributed.init_process_group("gloo", init_method="file://" + store, rank=number, world_size=2)
                group = compute.distributed.init("cpu")
                group.barrier()
                if number == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                try:
                    group.all_reduce(compute.ones(9, device="cpu"))
                except compute.PeerError as failure:
                    print(failure, flush=True)
                os._exit(0)

            if __name__ == "__main__":
                processes = [multiprocessing.get_context("spawn").Process(target=rank, args=(number, sys.argv[0] + ".store"))
                             for number in range(2)]
                for process in processes:
                    process.start()
                for process in processes:
                    process.join()
        """, "torch")
        self.assertRegex(text, "all_reduce: call 2 of the group failed on rank 0 of 2: .*rank 1 has (ended|left)")

    def test_torch_tells_of_a_rank_that_exits(self):
        text = self.run_program("""
            import atexit, os, subprocess, sys, time

            told, late = sys.argv[0] + ".told", sys.argv[0] + ".late"

            def stay():  # until rank 0 has told
                end = time.monotonic() + 60
                while not os.path.exists(told):
                    if time.monotonic() > end:
                        open(late, "w").close()
                        return
                    time.sleep(0.1)

            if len(sys.argv) == 1:
                ranks = [subprocess.Popen([sys.executable, sys.argv[0], str(number)]) for number in range(2)]
                sys.exit(max(rank.wait() for rank in ranks))
            if sys.argv[1] == "1":
                atexit.register(stay)  # what is registered first runs last
            from torch import distributed
            distributed.init_process_group("gloo", init_method="file://" + sys.argv[0] + ".store", rank=int(sys.argv[1]), world_size=2)
            group = compute.distributed.init("cpu")
            group.barrier()
            if group.rank == 0:
                try:
                    group.all_reduce(compute.ones(9, device="cpu"))
                except compute.PeerError as failure:
                    print(failure, "late" if os.path.exists(late) else "in time")
                finally:
                    open(told, "w").close()
        """, "torch")
        self.assertRegex(text, "all_reduce: call 2 of the group failed on rank 0 of 2: rank 1 has left the group in time")

    def test_torch_ends_beside_a_message_that_never_came(self):
        # Rank 1 leaves while rank 0 ends: a thread of rank 0 that still waited for the message would abort its process.
        text = self.run_program("""
            import os, subprocess, sys

            if len(sys.argv) == 1:
                ranks = [subprocess.Popen([sys.executable, sys.argv[0], str(number)]) for number in range(2)]
                sys.exit(max(abs(rank.wait()) for rank in ranks))
            from torch import distributed
            distributed.init_process_group("gloo", init_method="file://" + sys.argv[0] + ".store", rank=int(sys.argv[1]), world_size=2)
            distributed.barrier()
            compute.config("COMPUTE_COLLECTIVE_TIMEOUT", 5)
            group = compute.distributed.init("cpu")
            try:
                if group.rank == 0:
                    group.recv((9,), compute.float32, 1).tolist()
                else:
                    group.barrier()
            except compute.PeerError as failure:
                print(failure, flush=True)
            if group.rank == 1:
                os._exit(0)
        """, "torch")
        self.assertRegex(text, "recv: call 1 of the group failed on rank 0 of 2: ")

    def test_dask(self):
        text = self.run_program("""
            import distributed, compute.dask

            def fails(group):
                if group.rank == 1:
                    raise KeyError("lost")
                group.barrier()

            if __name__ == "__main__":
                options = {"nthreads": 1, "preload": ["compute.dask"]}
                scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": None}}
                workers = {rank: {"cls": distributed.Nanny, "options": options} for rank in range(2)}
                with distributed.SpecCluster(workers, scheduler, silence_logs="error") as cluster, cluster.get_client() as client:
                    print(*compute.dask.run(client, check), sep="\\n")
                    try:
                        compute.dask.run(client, fails)
                    except KeyError as error:
                        print("failed:", error)
        """, "dask", "distributed")
        self.assertRegex(text, "rank 0 of 2 over dask.distributed .*\nrank 1 of 2 over dask.distributed .*\nfailed: 'lost'\n")

    def test_dask_arrays(self):
        text = self.run_program("""
            import dask, dask.array as da, compute.dask

            def close(found, right):
                assert type(found) is compute.Array, type(found)
                assert np.allclose(found, right, rtol=1e-4, atol=1e-4), (found, right)

            def main(client):
                with dask.config.set({"array.backend": "compute"}):
                    ones = da.ones((40, 8), chunks=(10, 8), dtype="float32")
                    x = ones * 0.5 + da.random.default_rng(1).normal(size=(40, 8), chunks=(10, 8))
                    close((da.arange(10, chunks=4) * 2).compute(), np.arange(10) * 2)
                x = x.persist()
                right = np.asarray(x.compute())
                u, s, v = da.linalg.svd(x)
                close(s.compute(), np.linalg.svd(right, compute_uv=False))
                close(((u * s) @ v).compute(), right)
                q, r = da.linalg.qr(x)
                close((q @ r).compute(), right)
                close((x.T @ x).compute(), right.T @ right)
                close(da.tensordot(x, x, axes=((0,), (0,))).compute(), right.T @ right)
                close(da.einsum("ij,kj->ik", x, x).compute(), right @ right.T)
                for name in ("sum", "mean", "var", "std", "min", "max", "prod", "argmax", "cumsum"):
                    close(getattr(x, name)(axis=0).compute(), getattr(right, name)(axis=0))
                close(da.nanmean(x, axis=1).compute(), right.mean(axis=1))
                close(da.fft.fft(x, axis=1).compute(), np.fft.fft(right, axis=1))
                close(da.fft.rfft(x, axis=1).compute(), np.fft.rfft(right, axis=1))
                close(da.fft.fft2(x.rechunk(-1)).compute(), np.fft.fft2(right))
                close(x.map_blocks(lambda block: compute.exp(block) + 1).compute(), np.exp(right) + 1)
                close(x[3:30:4, [1, 5]].compute(), right[3:30:4][:, [1, 5]])
                close(x[:, 0][x[:, 0] > 0].compute(), right[:, 0][right[:, 0] > 0])
                close(da.where(x > 0, x, 0).compute(), np.where(right > 0, right, 0))
                moved = da.from_array(right, chunks=(20, 8)).to_backend("compute")
                close(moved.map_overlap(lambda block: block * 2, depth=1, boundary="reflect").compute(), right * 2)
                assert type(moved.to_backend("numpy").compute()) is np.ndarray
                print("all right")

            if __name__ == "__main__":
                with compute.dask.cluster(["cpu"]) as cluster, cluster.get_client() as client:
                    main(client)
        """, "dask", "distributed")
        self.assertEqual(text, "all right\n")

    def test_ray(self):
        text = self.run_program("""
            import ray, compute.ray

            @ray.remote(num_cpus=0)
            class Rank:
                def check(self, rank, size):
                    return check(compute.ray.group("ranks", rank, size))

                def fails(self, rank, size):
                    group = compute.ray.group("failing", rank, size)
                    if rank == 1:
                        raise KeyError("lost")
                    group.barrier()

                @ray.method(tensor_transport="compute")
                def weights(self):
                    return {"w": compute.arange(100_000, dtype=compute.float32), "b": [compute.ones((2, 0)), 3]}

                def total(self, weights):
                    return float(compute.sum(weights["w"], dtype=compute.float64)), weights["b"][0].shape, weights["b"][1]

            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
            ranks = [Rank.remote() for _ in range(2)]
            print(*ray.get([one.check.remote(rank, 2) for rank, one in enumerate(ranks)]), sep="\\n")
            print(ray.get(ranks[1].total.remote(ranks[0].weights.remote())))
            failing = [one.fails.remote(rank, 2) for rank, one in enumerate(ranks)]
            try:
                ray.get(failing[0])
            except compute.PeerError as error:
                print("failed:", error)
        """, "ray")
        self.assertRegex(text, r"rank 0 of 2 over Ray .*\nrank 1 of 2 over Ray .*\n\(4999950000.0, \(2, 0\), 3\)\n(?s:failed: .*rank 1 (is gone|has left))")


if __name__ == "__main__":
    unittest.main()
