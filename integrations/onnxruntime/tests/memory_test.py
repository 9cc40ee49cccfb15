# SPDX-License-Identifier: Apache-2.0
"""Ten thousand runs with changing shapes leave memory as it was."""
import gc
import os

from case import helper, model_of, np, onnxruntime_compute, session_of, unittest
from session_test import network, resident_bytes

RUNS = 10_000


def layers():
    """A recurrent layer behind an If that looks at the number of times."""
    random = np.random.default_rng(1)
    branches = {}
    for name, op in (("then_branch", "Tanh"), ("else_branch", "Relu")):
        result = helper.make_tensor_value_info("r_" + name, 1, None)
        branches[name] = helper.make_graph([helper.make_node(op, ["x"], ["r_" + name])], name, [], [result])
    nodes = [helper.make_node("Shape", ["x"], ["s"], end=1), helper.make_node("Greater", ["s", "limit"], ["c"]),
             helper.make_node("If", ["c"], ["a"], **branches),
             helper.make_node("LSTM", ["a", "w", "r"], ["y"], hidden_size=16, direction="bidirectional")]
    constants = {"limit": np.array([9]), "w": random.normal(size=(2, 64, 8)).astype(np.float32),
                 "r": random.normal(size=(2, 64, 16)).astype(np.float32)}
    return model_of(nodes, {"x": (np.float32, ["t", "n", 8])}, {"y": (np.float32, None)}, constants)


class Memory(unittest.TestCase):
    def check(self, session, shapes):
        random = np.random.default_rng(7)
        feeds = [{"x": random.normal(size=shape).astype(np.float32)} for shape in shapes]
        traces = onnxruntime_compute.counters()["traces"]

        def runs(count):
            for i in random.integers(0, len(feeds), count):
                session.run(None, feeds[i])
            gc.collect()
            return resident_bytes()

        before = runs(RUNS // 5)
        after = runs(RUNS)
        traces = onnxruntime_compute.counters()["traces"] - traces
        print(f"{before >> 10} KiB before {RUNS} runs, {after >> 10} KiB after; {traces} traces", flush=True)
        self.assertGreater(traces, RUNS // 2)
        self.assertLess(after - before, 8 << 20)

    def test_a_network(self):
        self.check(session_of(network()), [(1, 3, height, width) for height in range(4, 44) for width in (5, 12, 17)])

    def test_layers(self):
        self.check(session_of(layers(), alone=os.environ.get("COMPUTE_DEVICE", "cpu") == "cpu"),
                   [(time, batch, 8) for time in range(1, 21) for batch in range(1, 7)])


if __name__ == "__main__":
    unittest.main()
