# SPDX-License-Identifier: Apache-2.0
"""Process-wide behaviour: exceptions, threads, fork, signals, interpreters, memory."""
import gc
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import compute as cp
import numpy as np

from case import Case


def run_python(code, **settings):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False, env=os.environ | settings)


class Promotion(Case):
    def test_strict_promotion_refuses_mixed_kinds(self):
        result = run_python("""
import compute as cp
x, i, m = cp.ones(2), cp.asarray([1, 2]), cp.asarray([True, False])
for call in (lambda: i + x, lambda: i + 0.5, lambda: m * x, lambda: m + 1, lambda: i / 2, lambda: cp.exp(i), lambda: cp.where(m, i, x),
             lambda: cp.concat([i, x]), lambda: x.__iadd__(i), lambda: x.__setitem__(0, i[0]), lambda: i.__setitem__(0, 0.5), lambda: cp.result_type(i, x),
             lambda: cp.result_type(m, 1), lambda: cp.isin(i, 1.5)):
    try:
        call()
    except TypeError as error:
        print(error)
print((x + 1j).dtype.name, cp.can_cast(cp.int8, cp.float32))
""", COMPUTE_PROMOTION="strict")
        self.assertEqual(result.returncode, 0, result.stderr)
        *refusals, last = result.stdout.splitlines()
        self.assertEqual((len(refusals), last), (14, "complex64 False"), result.stdout)
        self.assertEqual(refusals[0], "add: int64 and float32 have no common dtype; convert one of them (astype(x, float32)), or set COMPUTE_PROMOTION=mixed")


class Selection(Case):
    """The line that names the device: whoever chose one sees it."""
    def lines(self, code="cp.ones(1)", **settings):
        result = run_python("import compute as cp\n" + code, **{"COMPUTE_DEVICE": "", "COMPUTE_LOG": "", "COMPUTE_CONFIG": ""} | settings)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.splitlines()

    def test_what_was_chosen_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write('device = "cpu"\n')
            for settings, by in (({"COMPUTE_DEVICE": "cpu"}, "COMPUTE_DEVICE"), ({"COMPUTE_LOG": "info"}, "auto"), ({"COMPUTE_CONFIG": path}, f"{path}:1")):
                line, = self.lines(**settings)
                self.assertRegex(line, rf"^compute: using \w+: .*, chosen by {re.escape(by)}$")
        warning, line = self.lines(COMPUTE_DEVICE="cuda77,cpu")
        self.assertRegex(warning, "^compute: warning: .*cuda.*; using cpu instead$")
        self.assertRegex(line, "^compute: using cpu: .*, chosen by COMPUTE_DEVICE$")

    def test_a_file_that_cannot_be_read_is_an_os_error(self):
        self.assertEqual(self.lines("""
try:
    cp.devices()
except OSError as error:
    assert isinstance(error, cp.FileError) and error.code == "IO", error
else:
    raise AssertionError("it was read")
""", COMPUTE_CONFIG="/nowhere/config.toml"), [])

    def test_config_returns_one_setting_or_all(self):
        settings = cp.config()
        self.assertGreater(len(settings), 20)
        for name in ("COMPUTE_DEVICE", "COMPUTE_MATH", "COMPUTE_LOG"):
            self.assertEqual(settings[name], cp.config(name))

    def test_the_plain_cpu_is_not_mentioned(self):
        by_auto = cp.which("auto")
        self.assertEqual(len(self.lines()), 0 if by_auto.startswith("cpu:") else 1, by_auto)
        self.assertEqual(self.lines("cp.ones(1, device='cpu'); print(cp.config('COMPUTE_LOG'))"), [])
        self.assertEqual(self.lines("cp.device('cpu'); assert cp.config('COMPUTE_LOG') == 'info'"), [])
        self.assertEqual(len(self.lines("cp.config('COMPUTE_LOG', 'info'); cp.ones(1)")), 1)
        for code in ("cp.device('cpu'); cp.ones(1)", "cp.devices(); cp.ones(1)"):  # the user's choice is not forgotten
            line, = self.lines(code, COMPUTE_DEVICE="cpu")
            self.assertRegex(line, "chosen by COMPUTE_DEVICE$")
        self.assertEqual(len(self.lines("cp.devices(); cp.ones(1)")), 0 if by_auto.startswith("cpu:") else 1)


class Errors(Case):
    def test_types_and_fields(self):
        with self.assertRaises(ValueError) as caught:
            cp.zeros((2, 3)) + cp.zeros((4,))
        error = caught.exception
        self.assertIsInstance(error, cp.Error)
        self.assertEqual((error.code, error.op), ("INVALID_ARGUMENT", "add"))
        self.assertIn("[2,3]", str(error))
        for expected, call in {
            cp.InvalidTypeError: lambda: cp.logical_not(cp.asarray([1])),
            cp.NotFoundError: lambda: cp.device("cpu7"),
            ValueError: lambda: cp.device("nonsense!"),
            MemoryError: lambda: cp.empty((2 ** 40, 2 ** 10)),
            TypeError: lambda: cp.sum("text"),
            IndexError: lambda: np.asarray(cp.take(cp.zeros(2), cp.asarray([5]))),
        }.items():
            with self.assertRaises(expected):
                call()

    def test_names(self):
        self.assertEqual(cp.InvalidTypeError.__module__, "compute")

    def test_a_failure_leaves_the_library_usable(self):
        with self.assertRaises(cp.Error):
            np.asarray(cp.take(cp.zeros(2), cp.asarray([5])))
        self.assertEqual(float(cp.sum(cp.ones(3))), 3)


class Profiles(Case):
    def test_profile_has_what_ran(self):
        x = self.device_array(np.ones((50, 50), "float32"))
        with cp.profile() as p:
            for _ in range(3):
                y = x @ x
            cp.tanh(y)
        self.assertIn("Spent ", str(p))
        calls = {row["op"]: row["calls"] for row in p.ops}
        self.assertEqual((calls["matmul"], calls["tanh"]), (3, 1))
        parts = p.seconds
        self.assertAlmostEqual(parts.pop("total"), sum(parts.values()), places=6)
        self.assertEqual(p.transfers, [])
        cp.tanh(y)
        self.assertEqual(calls, {row["op"]: row["calls"] for row in p.ops}, "the block has ended")

    def test_profile_has_transfers(self):
        device = cp.device()
        if device.name == "cpu":
            self.skipTest("cpu has no transfers")
        host = cp.asarray(np.ones(1000, "float32"), device="cpu")
        with cp.profile() as p:
            host.to_device(device)
        self.assertEqual([(row["from"], row["to"], row["count"], row["bytes"]) for row in p.transfers],
                         [("host", device.name, 1, 4000)])
        line = sys._getframe().f_lineno + 2
        with cp.profile() as p:
            np.asarray(host.to_device(device) + host)
        place = f"test_profile_has_transfers ({__file__}:{line})"
        self.assertEqual({row["place"] for row in p.transfers}, {place})


class Places(Case):
    """Reports and errors name lines of the program, never of the extension."""
    PROGRAM = """
import ctypes, json, sys
import compute as cp, numpy as np
kept = []
def work(device):
    x, y, i = cp.ones((3, 4)), cp.asarray([[1.0] * 4] * 3), cp.asarray([2, 0])
    host, shared = cp.ones((3, 4), device="cpu"), cp.asarray(np.ones((3, 4), "float32"), device="cpu")
    kept.extend([x, y, i, host, shared, cp.empty(3), cp.full(3, 2.5), cp.arange(5), cp.random.uniform(3)])
    kept.extend([x[1], x[1:, ::2], x[:, None], x.T, x.mT, x[i], x[x > 0], cp.reshape(x, (4, 3)), cp.permute_dims(x, (1, 0)), cp.broadcast_to(x, (2, 3, 4))])
    kept.extend([x + host, x * shared, x + 1, -x, x @ host.T, cp.exp(x), cp.sum(x), cp.sum(host), np.sum(x), np.exp(x), np.sum(x, initial=1.0) + x])
    kept.extend([cp.from_dlpack(np.ones(3)), cp.from_dlpack(host), cp.from_dlpack(x.__dlpack__()), cp.asarray((ctypes.c_int * 3)()), cp.asarray(b"abc")])
    kept.extend([cp.expression("x * y + 1")(x, host), cp.expression("x * y").reduce("sum", x, host), x.to_device("cpu"), host.to_device(device), x.copy()])
    x[1, 2] = 3; x[0] = host[0]; x[i] = y[i]; x += host; host += x; host[0] = 1; host[1] = x[1]
    float(x[1, 2]), float(host[0, 1]), x.tolist(), str(x), np.asarray(x), np.asarray(host), memoryview(host), host.tolist()
    kept.append(cp.grad.value_and_gradients(lambda x: cp.sum(cp.tanh(x) * host))(x))
    if device.name != "cpu":
        with cp.graph.record(device) as graph:
            kept.append(cp.tanh(x))
        graph.run()
        for one in cp._ops.TABLE["add"], cp._ops.TABLE["sum"]:
            arguments = (x, x) if one["name"] == "add" else (x,)
            result = cp.zeros(one["run"](*arguments).shape, device="cpu")
            kept.append(one["run"](*arguments, out=result))
            result.tolist()
    try:
        x + cp.ones((5, 5))
    except ValueError as error:
        print(str(error))
work(cp.device())
with cp.scope("the end"):
    kept.append(cp.ones(7))
for one in kept:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))
print(json.dumps(cp.placement_report()["inputs"]))
"""

    def test_all_are_lines_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            settings = {"COMPUTE_PROFILE": f"{folder}/profile.json", "COMPUTE_PLACEMENT": "1", "COMPUTE_LEAKS": "1", "COMPUTE_TRANSFERS": "warn", "COMPUTE_LOG": "warn"}
            result = run_python(self.PROGRAM, **settings)
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(f"{folder}/profile.json", encoding="utf-8") as file:
                transfers = json.load(file)["transfers"]
        error, inputs = result.stdout.rstrip().rsplit("\n", 1)
        places = [row["place"] for row in transfers] + [row["place"] for row in json.loads(inputs) if row["was"] == "copied"]
        places += re.findall(r"^  \S+ +\d+ bytes  .*  from (.*)$", result.stderr, re.MULTILINE)
        places += re.findall(r"copied .*, from (.*)$", result.stderr, re.MULTILINE) + [error]
        self.assertGreater(len(places), 30)
        for place in places:
            self.assertRegex(place, r"(work|<lambda>|<module>) \(<string>:\d+\)$")
        if cp.device().name != "cpu":
            self.assertTrue({row["op"] for row in transfers} >= {"read", "write", "write back", "add", "multiply", "copy", "to_device"}, transfers)
        self.assertRegex(result.stderr, r"float32 \[7\] .* from the end \(<string>:\d+\) > <module> \(<string>:\d+\)")

    @unittest.skipIf(cp.device().name == "cpu", "faults on cpu are found in the call")
    def test_late_faults_name_the_line_of_their_op(self):
        table, wrong = cp.zeros(5), cp.asarray([7, 0])
        with self.assertRaisesRegex(cp.KernelError, "^take: index 7 is out of range .*; COMPUTE_SYNC=1 raises this where the op is called$"):
            np.asarray(cp.take(table, wrong))
        cp.config("COMPUTE_TRANSFERS", "warn")
        try:
            line = sys._getframe().f_lineno + 1
            found = cp.take(table, wrong)
            with self.assertRaisesRegex(cp.KernelError, rf"\nscope: test_late_faults_name_the_line_of_their_op \(.*process_test.py:{line}\)$"):
                np.asarray(found)
        finally:
            cp.config("COMPUTE_TRANSFERS", None)

    def test_nothing_is_looked_up_without_a_reason(self):
        with self.assertRaises(ValueError) as caught:
            cp.zeros((2, 3)) + cp.zeros((4,))
        self.assertNotIn("scope", str(caught.exception))
        cp.config("COMPUTE_TRANSFERS", "warn")
        try:
            with self.assertRaisesRegex(ValueError, r"\nscope: test_nothing_is_looked_up_without_a_reason \(.*process_test.py:\d+\)$"):
                cp.zeros((2, 3)) + cp.zeros((4,))
        finally:
            cp.config("COMPUTE_TRANSFERS", None)
        with self.assertRaises(ValueError) as caught:
            cp.zeros((2, 3)) + cp.zeros((4,))
        self.assertNotIn("scope", str(caught.exception))
        # Settings are read when they are needed, not when the package is imported.
        code = "import compute as cp, os\nos.environ['COMPUTE_PROFILE'] = '1'\ncp.ones(3) + cp.ones(3)"
        self.assertIn("compute: profile of", run_python(code).stderr)


@unittest.skipIf(cp.device().name == "cpu", "cpu has no mirrors")
class Mirrors(Case):
    """y = m @ x + b in a loop, with b on the host: how often it is copied."""
    def copies(self, b, change=None):
        device, m = cp.device(), cp.ones((8, 8))
        before = device.statistics()["transfers_to_device"]
        for turn in range(20):
            y = m @ m + b
            if change is not None:
                change(turn)
        self.assertEqual(float(y[0, 0]), 8 + float(b[0, 0]))
        return device.statistics()["transfers_to_device"] - before

    def test_memory_that_the_array_owns_is_copied_once(self):
        x = np.full((8, 8), 0.5, "float32")
        frozen = x.copy()
        frozen.flags.writeable = False
        for b in (cp.asarray(x, device="cpu", copy=True), cp.asarray(frozen, device="cpu"), cp.asarray(x.tolist(), device="cpu"), cp.full((8, 8), 0.5, device="cpu"),
                  cp.asarray(x, device="cpu", dtype="float32", copy=True)[:, :], cp.asarray(np.float64(x), device="cpu", dtype="float32")):
            self.assertEqual(self.copies(b), 1)
        self.assertEqual(self.copies(cp.asarray(x)), 0)
        b = cp.asarray(x, device="cpu", copy=True)
        self.assertEqual(self.copies(b, lambda turn: b.__setitem__((0, 0), turn) if turn in (5, 10) else None), 3)

    def test_memory_that_numpy_may_write_is_never_stale(self):
        x = np.full((8, 8), 0.5, "float32")
        b, m = cp.asarray(x, device="cpu"), cp.zeros((8, 8))
        for turn in range(5):
            x[...] = turn
            self.assertEqual(float((m + b)[3, 3]), turn)
        owned = cp.zeros((8, 8), device="cpu")
        view = np.asarray(owned)
        for turn in range(5):
            view[...] = turn
            self.assertEqual(float((m + owned)[3, 3]), turn)
        del view
        self.assertEqual(self.copies(owned), 1)

    def test_hints_say_how_to_copy_once(self):
        b = cp.asarray(np.ones((400, 400), "float32"), device="cpu")
        cp.config("COMPUTE_TRANSFERS", "error")
        try:
            with self.assertRaisesRegex(NotImplementedError, r"^add: .* at every call, .*; use asarray\(x, copy=True\), which is copied once"):
                cp.ones((400, 400)) + b
        finally:
            cp.config("COMPUTE_TRANSFERS", None)


class Process(Case):
    def test_threads(self):
        wrong = []

        def work(seed):
            x = np.random.default_rng(seed).random(2000).astype("float32")
            a = cp.asarray(x, copy=True)
            for _ in range(50):
                if not np.array_equal(np.asarray(a + a), x + x):
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_the_interpreter_runs_while_an_op_runs(self):
        ticks = []
        stop = threading.Event()

        def tick():
            while not stop.wait(0.001):
                ticks.append(1)

        thread = threading.Thread(target=tick)
        thread.start()
        a = cp.ones((1000, 1000))
        while not ticks:
            float(cp.sum(a @ a))
        stop.set()
        thread.join()
        self.assertTrue(ticks)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_fork(self):
        a = cp.ones(3)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                result = str(float(cp.sum(a)))
            except cp.ForkedError:
                result = "forked"
            except BaseException as error:  # whatever it is, the parent compares it
                result = repr(error)
            os.write(writer, result.encode())
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(os.read(reader, 1000).decode(), "3.0" if a.device.name == "cpu" else "forked")

    def test_spawn(self):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            self.assert_same(pool.apply(cp.negative, (cp.asarray([1.0]),)), np.float32([-1]))

    def test_an_interrupt_ends_a_wait(self):
        # Python 3.11 raises an interrupt at a jump to the start of a loop as if in front of the loop, which must be inside `try` then.
        code = ("import compute as cp, signal, threading, _thread, time\n"
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which a process in the background ignores
                "x = cp.ones((64,))\n"
                "try:\n"
                "    threading.Timer(0.5, _thread.interrupt_main).start()\n"
                "    while True: float(cp.sum(x))\n"
                "except KeyboardInterrupt:\n"
                "    print('interrupted', float(cp.sum(x)))\n")
        result = run_python(code)
        self.assertIn("interrupted 64.0", result.stdout, result.stderr)

    def test_an_interrupt_ends_a_long_call_on_cpu(self):
        code = ("import compute as cp, os, signal, threading\n"
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                "x = cp.full((1 << 24,), 2.5, dtype=cp.float64, device='cpu')\n"
                "long = cp.expression('lgamma(x) + digamma(x) + erfinv(1 / x) + lgamma(x + 1) + digamma(x + 1)')\n"
                "y = None\n"
                "try:\n"
                "    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                "    while True:\n"
                "        y = None\n"
                "        y = long(x)\n"
                "except KeyboardInterrupt:\n"
                "    print('interrupted', y, float(cp.negative(x)[-1]))\n")
        result = run_python(code)
        self.assertIn("interrupted None -2.5", result.stdout, result.stderr)

    @unittest.skipIf(cp.device().name == "cpu", "work on cpu is not waited for")
    def test_an_interrupt_ends_a_wait_for_queued_work(self):
        code = ("import compute as cp, math, signal, threading, _thread, time\n"
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                "x, n, waiting = cp.ones((1 << 22,)), 8, False\n"
                "while not waiting:\n"  # until the work is longer than the time before the interrupt
                "    y, n, waiting = x, n * 2, True\n"
                "    for _ in range(n): y = cp.sin(y)\n"
                "    try:\n"
                "        threading.Timer(0.2, _thread.interrupt_main).start()\n"
                "        float(y[-1])\n"
                "        waiting = False\n"
                "        time.sleep(30)\n"
                "    except KeyboardInterrupt: pass\n"
                "expected = 1\n"
                "for _ in range(n): expected = math.sin(expected)\n"
                "print('interrupted', abs(float(y[-1]) - expected) < 1e-5)\n")
        result = run_python(code)
        self.assertIn("interrupted True", result.stdout, result.stderr)

    def test_sub_interpreters_are_refused(self):
        names = ("_xxsubinterpreters", "_interpreters")
        code = ("import importlib\n"
                f"for name in {names!r}:\n"
                "    try: module = importlib.import_module(name)\n"
                "    except ImportError: continue\n"
                "    one = module.create()\n"
                "    run = getattr(module, 'run_string')\n"
                "    try:\n"
                "        failure = run(one, 'try:\\n import compute\\n print(\"loaded\")\\n"
                "except ImportError as e:\\n print(\"refused\", e)')\n"
                "    except Exception as error: print('refused', error)\n"
                "    break\n"
                "else: print('refused')\n")
        self.assertIn("refused", run_python(code).stdout)

    def test_arrays_at_exit(self):
        result = run_python("import compute as cp\nx = cp.ones(3)\nclass A: pass\na = A(); a.a = a; a.x = x\n"
                            "import numpy\ny = cp.from_dlpack(numpy.ones(3))\nz = numpy.asarray(x.to_device('cpu'))")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_daemon_threads_at_exit(self):
        # Each is somewhere else when the interpreter ends: in an op, in a wait, in a function of the package that is written in Python.
        code = ("import compute as cp, numpy, threading, time\n"
                "x, small, index = cp.ones((16, 16)), cp.arange(50), cp.asarray([1, 2, 3])\n"
                "def ops():\n"
                "    while True: x @ x\n"
                "def waits():\n"
                "    while True: float(cp.sum(x @ x)); numpy.asarray(x.to_device('cpu'))\n"
                "def hooks():\n"
                "    while True:\n"
                "        small[index]; str(small); cp.asarray([[1, 2], [3, 4]])\n"
                "        try: small + cp.ones((3, 3))\n"
                "        except (TypeError, ValueError): pass\n"
                "def gradients():\n"
                "    while True: cp.grad.value_and_gradients(lambda a: cp.sum(cp.exp(a) * a))(x)\n"
                "threads = [threading.Thread(target=one, daemon=True) for one in (ops, waits, hooks, gradients)]\n"
                "for thread in threads: thread.start()\n"
                "time.sleep(0.2)\n"
                "assert all(thread.is_alive() for thread in threads)\n")
        with tempfile.TemporaryDirectory() as empty:  # there the threads are compiling
            for caches in {}, {}, {"COMPUTE_CACHE_DIR": empty, "POCL_CACHE_DIR": empty}:
                result = run_python(code, **caches)
                self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_weak_references(self):
        a = cp.zeros(3)
        alive = weakref.ref(a)
        del a
        gc.collect()
        self.assertIsNone(alive())

    def test_cycles_give_memory_back_under_pressure(self):
        code = ("import compute as cp, gc\n"
                "cp.config('COMPUTE_MEMORY_LIMIT', '64M')\n"
                "gc.disable()\n"
                "class Node: pass\n"
                "for i in range(20):\n"
                "    node = Node(); node.me = node; node.x = cp.empty((2 ** 21,))\n"
                "print('done')\n")
        result = run_python(code)
        self.assertIn("done", result.stdout, result.stderr)

