# SPDX-License-Identifier: Apache-2.0
"""Sessions: shapes that change, threads, memory, options, and what stays with ONNX Runtime."""
import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import threading

from case import CPU, OURS, helper, model_of, np, onnxruntime, onnxruntime_compute, session_of, session_on_cpu, unittest

DEVICE = os.environ.get("COMPUTE_DEVICE", "cpu")


def network(seed=0):
    """A convolution, a norm, elementwise ops, shapes that are computed, and a product."""
    random = np.random.default_rng(seed)
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("Mul", ["r", "half"], ["m"]),
        node("Add", ["m", "r"], ["a"]),
        node("GlobalAveragePool", ["a"], ["g"]),
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Unsqueeze", ["n", "axes"], ["n1"]),
        node("Concat", ["n1", "rest"], ["to"], axis=0),
        node("Reshape", ["g", "to"], ["f"]),
        node("Gemm", ["f", "v", "u"], ["y"], transB=1),
        node("Softmax", ["y"], ["p"]),
    ]
    constants = {
        "w": random.normal(size=(8, 3, 3, 3)).astype(np.float32), "b": random.normal(size=8).astype(np.float32),
        "half": np.float32(0.5), "zero": np.int64(0), "axes": np.array([0]), "rest": np.array([-1]),
        "v": random.normal(size=(5, 8)).astype(np.float32), "u": random.normal(size=5).astype(np.float32),
    }
    outputs = {"p": (np.float32, ["n", 5]), "a": (np.float32, ["n", 8, "h", "w_"])}
    return model_of(nodes, {"x": (np.float32, ["n", 3, "h", "w_"])}, outputs, constants)


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Sessions(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(1)

    def image(self, *shape):
        return self.random.normal(size=shape).astype(np.float32)

    def check(self, session, other, feed):
        for one, expected in zip(session.run(None, feed), other.run(None, feed)):
            np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)

    def test_nodes_at_their_edges(self):
        """Empty parts, roundings of extents and coordinates, and starts beyond the ends."""
        i64, f32, row = np.int64, np.float32, np.arange(12, dtype=np.float32).reshape(1, 12)
        cases = [
            ("Concat", {"axis": 1}, {"x": np.empty((0, 4), f32), "y": np.empty((0, 1), f32)}, {}, 17),
            ("Concat", {"axis": 1}, {"x": np.empty((2, 0), f32), "y": np.ones((2, 3), f32)}, {}, 17),
            ("Slice", {}, {"x": row}, {"a": np.array([-20]), "b": np.array([-30]), "c": np.array([1]), "d": np.array([-1])}, 17),
            ("Squeeze", {}, {"x": row}, {"a": np.array([], i64)}, 17),
            ("Range", {}, {name: np.array(at, f32) for name, at in zip("xyz", (0.1, 0.4, 0.1))}, {}, 17),
            ("Resize", {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
             {"x": row[:, :10]}, {"": None, "a": np.array([1, 0.7], f32)}, 17),
            ("Resize", {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
             {"x": row[:, :9]}, {"": None, "a": np.array([1, 0.6666667], f32)}, 17),
            ("Resize", {"mode": "nearest"}, {"x": row[:, :4]}, {"a": np.array([1, 0.6], f32)}, 10),
            ("DynamicQuantizeLinear", {}, {"x": np.zeros((2, 3), f32)}, {}, 17),
        ]
        for op, attributes, feed, constants, opset in cases:
            with self.subTest(op=op, shapes=[value.shape for value in feed.values()]):
                results = ["p", "q", "r"] if op == "DynamicQuantizeLinear" else ["p"]
                dtypes = [np.uint8, f32, np.uint8] if op == "DynamicQuantizeLinear" else [f32]
                model = model_of([helper.make_node(op, [*feed, *constants], results, **attributes)],
                                 {name: (value.dtype, value.shape) for name, value in feed.items()},
                                 {name: (dtype, None) for name, dtype in zip(results, dtypes)},
                                 {name: value for name, value in constants.items() if name}, opset)
                session, other = session_of(model, alone=True), session_on_cpu(model)
                for one, expected in zip(session.run(None, feed), other.run(None, feed)):
                    self.assertEqual(one.shape, expected.shape)
                    np.testing.assert_allclose(one, expected, rtol=1e-6)

    def test_no_step_is_a_failure(self):
        model = model_of([helper.make_node("Range", ["x", "y", "z"], ["p"])], {name: (np.int64, []) for name in "xyz"},
                         {"p": (np.int64, None)})
        session = session_of(model, alone=True)
        with self.assertRaisesRegex(Exception, "delta is 0"):
            session.run(None, {name: np.array(at) for name, at in zip("xyz", (0, 5, 0))})

    def test_a_network(self):
        model = network()
        session, other = session_of(model), session_on_cpu(model)
        self.assertEqual(session.get_providers()[0], OURS)
        for shape in ((1, 3, 8, 8), (1, 3, 8, 8), (2, 3, 5, 9), (1, 3, 8, 8), (2, 3, 5, 9)):
            self.check(session, other, {"x": self.image(*shape)})

    def test_memory_that_is_not_aligned_or_shared(self):
        model = network()
        session, other = session_of(model), session_on_cpu(model)
        for _ in range(3):
            whole = self.image(3 * 3 * 6 * 7 + 1)
            self.check(session, other, {"x": whole[1:].reshape(3, 3, 6, 7)})
            unaligned = np.frombuffer(b"\0" * 5 + whole.tobytes(), np.uint8)[5:-4].view(np.float32)
            self.check(session, other, {"x": unaligned.reshape(3, 3, 6, 7)})

    def test_changing_shapes_keep_memory_flat(self):
        session = session_of(network(), provider_options={"graphs": "4"})
        shapes = [(1, 3, height, width) for height in range(4, 24) for width in (5, 17)]
        feeds = [{"x": self.image(*shape)} for shape in shapes]

        def rounds(count):
            for _ in range(count):
                for feed in feeds:
                    session.run(None, feed)
            gc.collect()
            return resident_bytes()

        rounds(8)
        before = rounds(2)
        after = rounds(12)
        self.assertLess(after - before, 8 << 20)

    def test_threads(self):
        model = network()
        shared, other = session_of(model), session_on_cpu(model)
        feeds = [{"x": self.image(1, 3, 6 + i % 3, 8)} for i in range(8)]
        expected = [other.run(None, feed) for feed in feeds]
        faults = []

        def work(i):
            try:
                own = session_of(model) if i % 2 else shared
                for _ in range(40):
                    for one, wanted in zip(own.run(None, feeds[i]), expected[i]):
                        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)
            except Exception as error:  # noqa: BLE001
                faults.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(faults)

    def test_a_session_is_closed_while_another_runs(self):
        model = network()
        kept, other = session_of(model), session_on_cpu(model)
        feed = {"x": self.image(1, 3, 16, 16)}
        stop, faults = threading.Event(), []

        def run():
            try:
                while not stop.is_set():
                    self.check(kept, other, feed)
            except Exception as error:  # noqa: BLE001
                faults.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        for _ in range(20):
            session = session_of(model)
            session.run(None, feed)
            del session
            gc.collect()
        stop.set()
        thread.join()
        self.assertFalse(faults)

    def test_elements_that_decide_shapes(self):
        nodes = [helper.make_node("Reshape", ["x", "s"], ["y"]), helper.make_node("Slice", ["y", "b", "e"], ["z"])]
        model = model_of(nodes,
                         {"x": (np.float32, ["n"]), "s": (np.int64, [2]), "b": (np.int64, [1]), "e": (np.int64, [1])},
                         {"z": (np.float32, ["a", "b_"])})
        session = session_of(model, alone=True)
        x = np.arange(24, dtype=np.float32)
        for rows, begin, end in ((2, 0, 1), (3, 1, 3), (4, 0, 4), (2, 0, 1), (3, -2, 3)):
            feed = {"x": x, "s": np.array([rows, -1]), "b": np.array([begin]), "e": np.array([end])}
            found, = session.run(None, feed)
            np.testing.assert_array_equal(found, x.reshape(rows, -1)[begin:end])

    def test_results_whose_shapes_are_computed(self):
        model = model_of([helper.make_node("NonZero", ["x"], ["y"])], {"x": (np.float32, ["n", "m"])},
                         {"y": (np.int64, [2, "k"])})
        session = session_of(model, alone=True)
        for _ in range(4):
            x = self.random.integers(0, 2, (4, 5)).astype(np.float32)
            np.testing.assert_array_equal(session.run(None, {"x": x})[0], np.array(np.nonzero(x)))

    def test_what_is_not_supported_stays_and_is_named(self):
        program = """
import numpy as np, onnxruntime
from case import helper, model_of, session_of
model = model_of([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"]),
                  helper.make_node("StringNormalizer", ["t"], ["u"], name="the_strings")],
                 {"x": (np.float32, [4]), "t": (object, [1])}, {"y": (np.float32, [4]), "u": (object, [None])})
onnxruntime.set_default_logger_severity(1)
session = session_of(model)
print(session.run(None, {"x": np.array([-1, 2, -3, 4], np.float32), "t": np.array(["a"], object)}))
"""
        result = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 of 3 nodes run on", result.stderr)
        self.assertIn("the_strings", result.stderr)

    def test_branches(self):
        """An If whose condition follows from shapes, inside one whose condition is an input."""
        def branch(name, nodes, result):
            return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(result, 1, None)])

        inner = helper.make_node(
            "If", ["d"], ["i"],
            then_branch=branch("then", [helper.make_node("Mul", ["a", "w"], ["it"])], "it"),
            else_branch=branch("else", [helper.make_node("Add", ["a", "w"], ["ie"])], "ie"))
        outer = helper.make_node(
            "If", ["c"], ["o"],
            then_branch=branch("then", [helper.make_node("Exp", ["a"], ["ot"])], "ot"),
            else_branch=branch("else", [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Equal", ["s", "two"], ["d"]),
                                        inner, helper.make_node("Tanh", ["i"], ["oe"])], "oe"))
        nodes = [helper.make_node("Neg", ["x"], ["a"]), outer, helper.make_node("Add", ["o", "a"], ["y"])]
        model = model_of(nodes, {"x": (np.float32, ["n"]), "c": (np.bool_, [])}, {"y": (np.float32, None)},
                         {"w": np.array([3], np.float32), "two": np.array([2])})
        session, other = session_of(model, alone=True), session_on_cpu(model)
        for size in (2, 3, 2, 3):
            for condition in (True, False, True, False):
                self.check(session, other, {"x": self.image(size), "c": np.array(condition)})

    def test_a_branch_that_depends_on_computed_elements_stays(self):
        branches = {}
        for name, op in (("then_branch", "Exp"), ("else_branch", "Neg")):
            result = helper.make_tensor_value_info("r_" + name, 1, [3])
            branches[name] = helper.make_graph([helper.make_node(op, ["a"], ["r_" + name])], name, [], [result])
        nodes = [helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("ReduceMax", ["a"], ["m"], keepdims=0),
                 helper.make_node("Greater", ["m", "zero"], ["c"]), helper.make_node("If", ["c"], ["y"], **branches)]
        model = model_of(nodes, {"x": (np.float32, [300])}, {"y": (np.float32, [300])}, {"zero": np.float32(0)})
        session, other = session_of(model), session_on_cpu(model)
        for sign in (1, -1, 1, -1):
            self.check(session, other, {"x": sign * np.abs(self.image(300)) + sign * np.float32(0.1)})

    def test_products_with_a_bias(self):
        """Also products that are results, or are used twice."""
        node = helper.make_node
        nodes = [node("MatMul", ["x", "w"], ["p"]), node("Add", ["b", "p"], ["q"]), node("MatMul", ["q", "v"], ["r"]),
                 node("Add", ["r", "b"], ["s"]), node("Mul", ["r", "s"], ["y"]), node("MatMul", ["x", "w"], ["t"]),
                 node("Add", ["t", "b"], ["z"])]
        model = model_of(nodes, {"x": (np.float32, ["n", 3, 4])},
                         {"y": (np.float32, None), "z": (np.float32, None), "t": (np.float32, None)},
                         {"w": self.image(4, 5), "v": self.image(5, 5), "b": self.image(5)})
        session, other = session_of(model, alone=True), session_on_cpu(model)
        for rows in (1, 2, 1, 2):
            self.check(session, other, {"x": self.image(rows, 3, 4)})

    def test_activations_that_are_the_defaults(self):
        for op, gates, names in (("LSTM", 4, ["Sigmoid", "Tanh", "Tanh"]), ("GRU", 3, ["Sigmoid", "tanh"])):
            node = helper.make_node(op, ["x", "w", "r"], ["y"], hidden_size=6, direction="bidirectional",
                                    activations=2 * names)
            model = model_of([node], {"x": (np.float32, ["t", 2, 3])}, {"y": (np.float32, None)},
                             {"w": self.image(2, 6 * gates, 3), "r": self.image(2, 6 * gates, 6)})
            session, other = session_of(model, alone=True), session_on_cpu(model)
            for time in (1, 9, 1, 9):
                self.check(session, other, {"x": self.image(time, 2, 3)})
            next(one for one in node.attribute if one.name == "activations").strings[0] = b"Relu"
            with self.assertRaisesRegex(Exception, "fallback"):
                session_of(model_of([node], {"x": (np.float32, ["t", 2, 3])}, {"y": (np.float32, None)},
                                    {"w": self.image(2, 6 * gates, 3), "r": self.image(2, 6 * gates, 6)}), alone=True)

    def test_weights_that_are_subnormal_count_as_zeros(self):
        weights = self.image(8, 8)
        weights[::2] *= np.float32(1e-40)
        model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (np.float32, [4, 8])},
                         {"y": (np.float32, None)}, {"w": weights})
        session, other = session_of(model, alone=True), session_on_cpu(model)
        for _ in range(2):
            self.check(session, other, {"x": self.image(4, 8)})

    def test_options(self):
        session = session_of(network(), provider_options={"device": DEVICE, "placement": "always"})
        self.assertEqual(session.get_providers()[0], OURS)
        with self.assertRaisesRegex(Exception, "no_such_device"):
            session_of(network(), provider_options={"device": "no_such_device"})
        with self.assertRaisesRegex(Exception, "elsewhere"):
            session_of(network(), provider_options={"placement": "elsewhere"})

    def test_faults_name_the_node(self):
        nodes = [helper.make_node("Softmax", ["x"], ["a"], name="before", axis=0),
                 helper.make_node("Gather", ["a", "i"], ["b"], name="the_node"),
                 helper.make_node("Softmax", ["b"], ["y"], name="behind", axis=0)]
        model = model_of(nodes, {"x": (np.float32, [3]), "i": (np.int64, ["n"])}, {"y": (np.float32, ["n"])})
        for placement in ("auto", "always"):
            session = session_of(model, alone=True, provider_options={"placement": placement})
            for _ in range(3):  # traced, and repeated
                with self.assertRaisesRegex(Exception, "Gather the_node: "):
                    session.run(None, {"x": np.zeros(3, np.float32), "i": np.array([1, 7])})
                found, = session.run(None, {"x": np.arange(3, dtype=np.float32), "i": np.array([2, -1])})
                np.testing.assert_allclose(found, [0.5, 0.5], rtol=1e-6)


class Interface(unittest.TestCase):
    def test_another_interface_is_refused(self):
        """A table that offers interface 22 at most, as an older ONNX Runtime's."""
        library = ctypes.CDLL(onnxruntime_compute.library_path())
        messages = []
        create_status = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)(
            lambda code, text: messages.append(text.decode()) or 1)
        table = (ctypes.c_void_p * 400)(ctypes.cast(create_status, ctypes.c_void_p))
        get_api = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(
            lambda version: ctypes.addressof(table) if version <= 22 else None)
        version_text = ctypes.create_string_buffer(b"1.22.1")
        get_version = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: ctypes.addressof(version_text))
        base = (ctypes.c_void_p * 2)(ctypes.cast(get_api, ctypes.c_void_p), ctypes.cast(get_version, ctypes.c_void_p))
        factories, count = (ctypes.c_void_p * 4)(), ctypes.c_size_t()
        library.CreateEpFactories.restype = ctypes.c_void_p
        status = library.CreateEpFactories(b"name", base, None, factories, ctypes.c_size_t(4), ctypes.byref(count))
        self.assertEqual((status, count.value), (1, 0))
        self.assertIn("23", messages[0])
        self.assertIn("22", messages[0])

    def branch(self):
        """Branches of an If, which ONNX Runtime runs, with nodes of ours that use values from outside."""
        branches = {}
        for name, op in (("then_branch", "Exp"), ("else_branch", "Tanh")):
            result = helper.make_tensor_value_info("r_" + name, 1, [3])
            branches[name] = helper.make_graph([helper.make_node(op, ["a"], ["r_" + name])], name, [], [result])
        nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("If", ["c"], ["b"], **branches),
                 helper.make_node("Add", ["a", "b"], ["y"])]
        model = model_of(nodes, {"x": (np.float32, [3]), "c": (np.bool_, [])}, {"y": (np.float32, [3])})
        session = session_of(model)
        x = np.array([0.5, -1, 2], np.float32)
        for condition, function in ((True, np.exp), (False, np.tanh), (True, np.exp)):
            found, = session.run(None, {"x": x, "c": np.array(condition)})
            np.testing.assert_allclose(found, function(-x) - x, rtol=1e-5, atol=1e-6)

    def test_every_function_is_called(self):
        """On a device other than cpu also those for its memory; they are left out here."""
        random = np.random.default_rng(2)
        feed = {"x": random.normal(size=(1, 3, 8, 8)).astype(np.float32)}
        session = session_of(network(), provider_options={"device": DEVICE})
        session.run(None, feed)
        session.run(None, feed)
        value = helper.make_tensor("value", 1, [1], [2.0])
        fill = model_of([helper.make_node("ConstantOfShape", ["s"], ["y"], value=value)], {"s": (np.int64, [1])},
                        {"y": (np.float32, ["n"])})
        np.testing.assert_array_equal(session_of(fill, alone=True).run(None, {"s": np.array([3])})[0], [2, 2, 2])
        with self.assertRaises(Exception):
            session_of(network(), provider_options={"device": "no_such_device"})
        self.branch()
        left = {"ReleaseMemoryInfo", "CreateMemoryInfo_V2", "EpDevice_AddAllocatorInfo", "MemoryInfo_GetMemoryDevice",
                "MemoryDevice_AreEqual", "MemoryDevice_GetDeviceType", "GetTensorSizeInBytes", "GetErrorMessage"}
        self.assertEqual(set(onnxruntime_compute.uncalled_functions()) - left, set())


class Launcher(unittest.TestCase):
    def test_a_program_that_names_the_processor(self):
        folder = pathlib.Path(os.environ.get("COMPUTE_CACHE_DIR", "/tmp"))
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / "names_cpu.py"
        program.write_text(f"""
import sys
import numpy as np, onnxruntime
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from session_test import network
session = onnxruntime.InferenceSession(network().SerializeToString(), providers=["{CPU}"])
print(session.get_providers(), session.run(None, {{"x": np.ones((1, 3, 4, 4), np.float32)}})[0].shape, sys.argv[1:])
""")
        result = subprocess.run([sys.executable, "-B", "-m", "onnxruntime_compute", str(program), "word"],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"['{OURS}', '{CPU}'] (1, 5) ['word']", result.stdout)


if __name__ == "__main__":
    unittest.main()
