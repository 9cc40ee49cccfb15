# SPDX-License-Identifier: Apache-2.0
"""Memory that several libraries share is freed once, after its last user, in whatever order and on whatever thread."""
import gc
import importlib
import importlib.util
import threading
import unittest
import weakref

import compute as cp
import numpy as np

from case import Case

DEVICE = cp.device()
ON_HOST, ON_CUDA = DEVICE.name == "cpu", DEVICE.name.startswith("cuda")
SIZE = 1000


class Owner(np.ndarray):
    """An array of NumPy that can be referred to weakly."""


def module(name):
    """A library, if it is installed; on a machine without it its tests are skipped."""
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def from_compute():
    """What makes an object of another library over the memory of an array, for each library that can."""
    makers = {"compute": lambda x: x[::-1][::-1]}
    if ON_HOST:
        makers |= {"numpy by buffer": np.asarray, "memoryview": memoryview}
        if np.from_dlpack(cp.zeros(1)).flags.writeable:  # NumPy 2
            makers["numpy by DLPack"] = np.from_dlpack
    if (ON_HOST or ON_CUDA) and module("torch") is not None and (ON_HOST or module("torch").cuda.is_available()):
        makers["torch"] = module("torch").from_dlpack
    if ON_CUDA and module("cupy") is not None:
        makers["cupy"] = module("cupy").from_dlpack
    return makers


def value(x):
    """The first element, wherever it is. Other libraries are made to copy it: the address sanitizer sees copies, not their own code."""
    if not ON_HOST or isinstance(x, cp.Array):
        return float(x[0])
    return float(np.frombuffer(np.asarray(x)[:1].tobytes(), np.asarray(x).dtype)[0])


class Lifetimes(Case):
    def test_any_order_on_any_thread(self):
        makers = from_compute()
        for round_number in range(30 if ON_HOST else 6):
            number = float(round_number + 1)
            first = cp.full((SIZE,), number)
            chain = [first]
            for _ in range(6):  # each from one that is there already
                source = chain[int(self.random.integers(len(chain)))]
                if type(source) is memoryview:
                    source = np.asarray(source)
                if not isinstance(source, cp.Array):
                    source = cp.from_dlpack(source) if self.random.random() < 0.5 or not ON_HOST else cp.asarray(source)
                chain.append(list(makers.values())[int(self.random.integers(len(makers)))](source))
                chain.append(source)
            first[0:1] = -number  # all see it
            DEVICE.synchronize()
            del first, source
            self.random.shuffle(chain)
            while chain:
                self.assertEqual({value(x) for x in chain}, {-number})
                gone = [chain.pop() for _ in range(min(3, len(chain)))]
                thread = threading.Thread(target=gone.clear)
                thread.start()
                thread.join()
        gc.collect()

    def test_owners_die_with_the_last_user(self):
        for keep in range(4):
            owner = np.full(SIZE, 7.0).view(Owner)
            alive = weakref.ref(owner)
            array = cp.from_dlpack(owner)
            users = [array, np.from_dlpack(array), cp.asarray(np.asarray(array), device="cpu"), memoryview(array)]
            last = users[keep]
            del owner, array, users
            gc.collect()
            self.assertIsNotNone(alive())
            self.assertEqual(value(last), 7)
            del last
            gc.collect()
            cp.zeros(1, device="cpu")  # frees what was given back elsewhere
            self.assertIsNone(alive(), keep)

    def test_many_threads(self):
        shared = cp.full((SIZE,), 3.0)
        makers = list(from_compute().values())
        wrong = []

        def work(seed):
            random = np.random.default_rng(seed)
            for _ in range(100 if ON_HOST else 10):
                x = makers[int(random.integers(len(makers)))](shared)
                y = cp.from_dlpack(np.full(8, float(seed)))
                if value(x) != 3 or value(y) != seed:
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_capsules_that_nobody_uses(self):
        for options in ({}, {"max_version": (1, 0)}):
            array = cp.full((SIZE,), 2.0)
            capsules = [array.__dlpack__(**options) for _ in range(3)]
            kept = cp.from_dlpack(capsules[1])
            del array
            thread = threading.Thread(target=capsules.clear)
            thread.start()
            thread.join()
            self.assertEqual(value(kept), 2)

    @unittest.skipUnless(ON_CUDA and module("torch") is not None, "needs a CUDA device and PyTorch")
    def test_order_of_streams(self):
        torch = module("torch")
        for _ in range(20):
            with cp.stream(DEVICE):
                x = cp.full((1 << 22,), 1.0)
                for _ in range(50):
                    x = x * 1.0 + 1.0
                theirs = torch.cuda.Stream()
                with torch.cuda.stream(theirs):
                    t = torch.from_dlpack(x)  # waits for our stream on theirs
                    t.add_(1.0)
                    for _ in range(50):
                        t.mul_(1.0)
                    y = cp.from_dlpack(t) * 2.0  # waits for theirs on ours
                self.assertEqual((float(y[0]), float(y[-1])), (104.0, 104.0))
