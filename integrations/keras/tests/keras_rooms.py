# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that runs Keras' own tests on this backend: pytest -p keras_rooms --pyargs keras.src.ops

Tests that keras_skips.txt lists are skipped with the reason there. KERAS_ROOMS_REPORT names a file that gets a line for
each test, and whose tests are not run again. KERAS_ROOMS_SECONDS is the time after which no more tests are started.
"""
import fnmatch
import os
import pathlib
import sys
import time
import types

os.environ["KERAS_BACKEND"] = "compute"

import keras_compute  # noqa: E402, F401  before keras
from keras_compute import _hook  # noqa: E402
import keras_report  # noqa: E402
import pytest  # noqa: E402

# Tests import this from Keras' conftest.py, which is not in the package.
_conftest = types.ModuleType("conftest")
_conftest.skip_if_backend = lambda given, reason: pytest.mark.skipif(given == "compute", reason=reason)
sys.modules["conftest"] = _conftest

# ---- Tests that ask which backend they run on get a branch for this one ----------------------------------------------

_TORCH = '        elif backend.backend() == "torch":\n'
_COMPUTE = '''\
        elif backend.backend() == "compute":
            from keras_compute.src.gradients import gradients_of

'''


def _before(found, branch):
    """What the hook replaces so that a branch stands before a text."""
    return found, branch + found


def _sparse(before, *lines, indent=8, after=""):
    """What the hook replaces so that a branch that makes sparse tensors stands behind a text."""
    space = " " * indent
    lines = "from keras_compute.src.sparse import SparseTensor", "", *lines
    branch = [f'{space}elif backend.backend() == "compute":', *(f"{space}    {line}".rstrip() for line in lines)]
    return before + after, before + "\n".join(branch) + "\n" + after


_STEP = _before(_TORCH + "\n            def train_one_step(x, dy):\n", _COMPUTE + """\
            def train_one_step(x, dy):
                _, grads = gradients_of(lambda: loss_fn(x, dy), layer.trainable_variables)
                optimizer.apply(grads, layer.trainable_variables)

""")
_ELSE = '        else:\n            self.fail(f"Sparse is unsupported with backend {backend.backend()}")\n\n'
_hook.CHANGES.update({
    "keras.src.testing.test_case": [
        _sparse("                self.assertNotIsInstance(x, jax_sparse.JAXSparse)\n",
                "self.assertEqual(isinstance(x, SparseTensor), sparse)"),
        _sparse("                return jax_sparse.BCOO.fromdense(x, n_batch=1)\n\n", "def create_fn(shape, dt):",
                "    rng = np.random.default_rng(0)", "    x = (4 * rng.standard_normal(shape)).astype(dt)",
                "    return SparseTensor.from_dense(np.multiply(x, rng.random(shape) < 0.7))", "")],
    "keras.src.layers.reshaping.flatten_test": _sparse("                dense_to_sparse = jax_sparse.BCOO.fromdense\n",
                                                       "dense_to_sparse = SparseTensor.from_dense", indent=12),
    "keras.src.layers.reshaping.permute_test": _sparse(
        "                expected_output = jax_sparse.BCOO.fromdense(expected_output)\n",
        "inputs, expected_output = map(SparseTensor.from_dense, (inputs, expected_output))", indent=12),
    "keras.src.layers.merging.merging_test": _sparse(
        "            x3 = jax_sparse.BCOO(([[4.0, 5.0]], [[[0], [1]]]), shape=(2, 3))\n",
        "x1 = SparseTensor.of([[0, 0], [1, 2]], [1.0, 2.0], (2, 3))",
        "x3 = SparseTensor.of([[0, 0], [1, 1]], [4.0, 5.0], (2, 3))"),
    "keras.src.layers.core.embedding_test": _sparse(
        "            x = jax_sparse.BCOO(([2, 1], [[0, 0], [1, 2]]), shape=(2, 3))\n",
        "x = SparseTensor.of([[0, 0], [1, 2]], [2, 1], (2, 3))"),
    "keras.src.optimizers.optimizer_sparse_test": [
        _sparse("            variable_class = model_variable.__class__\n",
                "rows = np.array([0.5, 0, 0.5, 0, 0.5], np.float32).reshape(5, 1)",
                "grad = SparseTensor.from_dense(np.broadcast_to(rows, (5, 10)))",
                "sparse_class, variable_class = SparseTensor, model_variable.__class__"),
        _sparse("                    shape=(5, 3, 2),\n                )\n",
                "rows = np.array([1, 0, 1, 0, 1], np.float32).reshape(5, 1, 1)",
                "grad_sparse = SparseTensor.from_dense(np.broadcast_to(rows * (10.0 - i), (5, 3, 2)))",
                indent=12, after="            else:\n"),
        ("from unittest import mock\n", "from unittest import mock\n\nimport numpy as np\n")],
    "keras.src.trainers.data_adapters.generator_data_adapter_test": _sparse(
        "            expected_class = jax_sparse.BCOO\n", "from keras_compute.src.trainer import _tensors",
        "it = map(_tensors, adapter.get_numpy_iterator())", "expected_class = SparseTensor"),
    "keras.src.trainers.data_adapters.tf_dataset_adapter_test": _sparse(
        "            expected_class = jax.experimental.sparse.BCOO\n", "it = adapter.get_numpy_iterator()",
        "expected_class = np.ndarray"),
    "keras.src.quantizers.quantizers_test": [
        _before("        gradients = test_op(\n", """\
        if backend.backend() == "compute":
            from keras_compute.src.gradients import gradients_of

            def test_op(inputs, *options):
                x = backend.Variable(inputs)
                _, (found,) = gradients_of(
                    lambda: ops.sum(quantizers.fake_quant_with_min_max_vars(x.value, *options)), [x])
                return initial_gradients * found

"""), ('"torch"),\n        reason=f"{backend.backend()} doesn\'t support `cust',
       '"torch", "compute"),\n        reason=f"{backend.backend()} doesn\'t support `cust')],
    "keras.src.trainers.trainer_test": [_before("else:\n    raise ImportError(", """\
elif backend.backend() == "compute":
    from keras_compute.src.trainer import ComputeTrainer as Trainer
"""), _before('            "torch": "cpu",\n', '            "compute": "cpu",\n'),
        ('        if backend.backend() != "jax":\n            # Verify tensors did',
         '        if backend.backend() not in ("jax", "compute"):\n            # Verify tensors did')],
    "keras.src.layers.core.dense_test": [_STEP, _sparse("            inputs = jax_sparse.BCOO.fromdense(inputs)\n",
                                                        "inputs = SparseTensor.from_dense(inputs)")],
    "keras.src.layers.core.einsum_dense_test": _STEP,
    "keras.src.ops.numpy_test": [_before(_TORCH + """\
            import torch

            x1 = torch.tensor([1.0, 2.0], requires_grad=True)
""", _COMPUTE + """\
            given = [backend.Variable(x) for x in ([1.0, 2.0], [0.0, 2.0])]
            _, (x1_grad, x2_grad) = gradients_of(lambda: knp.sum(knp.divide_no_nan(*given)), given)
"""), ('"torch"),\n        reason=f"{backend.backend()} backend does not support gradients."',
      '"torch", "compute"),\n        reason="no gradients"'),
        _sparse("        values = x[tuple(jax.numpy.moveaxis(indices, -1, 0))]\n"
                "        return jax_sparse.BCOO((values, indices), shape=x.shape)\n",
                "values = backend.convert_to_numpy(x)[tuple(np.moveaxis(indices, -1, 0))]",
                "return SparseTensor.of(indices, values, x.shape)", indent=4),
        _sparse("        values = jax.numpy.take(x, jax.numpy.squeeze(indices, axis=1), axis=0)\n"
                "        return jax_sparse.BCOO((values, indices), shape=x.shape)\n",
                "is_listed = np.zeros(x.shape, bool)", "is_listed[indices] = True",
                "indices = indices_from.indices if indices_from is not None else np.argwhere(is_listed)",
                "values = backend.convert_to_numpy(x)[tuple(np.moveaxis(indices, -1, 0))]",
                "return SparseTensor.of(indices, values, x.shape)", indent=4),
        _sparse("                jax_sparse.BCOO.fromdense, n_batch=len(x_shape) - 2\n            )\n",
                "dense_to_sparse = SparseTensor.from_dense"),
        _sparse("            indices = jax_sparse.BCOO(([-1, 2], [[0, 0], [1, 2]]), shape=(2, 3))\n",
                "indices = SparseTensor.of([[0, 0], [1, 2]], [-1, 2], (2, 3))"),
        _sparse("                weights = jax_sparse.BCOO((weights, indices), shape=(16,))\n",
                "x, weights = (SparseTensor.of(indices, one, (16,)) for one in (x, weights))", indent=12),
        _sparse("            y = jax_sparse.BCOO(([4.0, 5.0], [[0, 0], [1, 1]]), shape=(2, 3))\n",
                "x = SparseTensor.of([[0, 0], [1, 2]], [1.0, 2.0], (2, 3))",
                "y = SparseTensor.of([[0, 0], [1, 1]], [4.0, 5.0], (2, 3))")],
    "keras.src.ops.core_test": [*(
        _sparse("            x = jax_sparse.BCOO(([1.0, 2.0], [[0, 0], [1, 2]]), shape=(2, 3))\n",
                "x = SparseTensor.of([[0, 0], [1, 2]], [1.0, 2.0], (2, 3))",
                after=_ELSE + after)
        for after in ("        x_default =", "        self.assertEqual(core.shape(x)")), _before(_TORCH + """\
            import torch

            x = torch.tensor(100.0, requires_grad=True)
""", _COMPUTE + """\
            x = backend.Variable(100.0)
            _, (dy_dx,) = gradients_of(lambda: to_derive(x.value), [x])
            _, (dz_dx,) = gradients_of(lambda: log1pexp_nan(x.value), [x])
            self.assertEqual(ops.convert_to_numpy(dy_dx), 1.0)
            self.assertTrue(ops.isnan(dz_dx))
""")],
})


# ---- Outcomes --------------------------------------------------------------------------------------------------------

REPORT = os.environ.get("KERAS_ROOMS_REPORT")
END = time.monotonic() + float(os.environ.get("KERAS_ROOMS_SECONDS", "inf"))


def _listed():
    lines = pathlib.Path(__file__).with_name("keras_skips.txt").read_text(encoding="utf-8").splitlines()
    parts = [line.partition(" # ") for line in lines if line.strip() and not line.startswith("#")]
    return {test.strip(): reason.strip() for test, _, reason in parts}


def pytest_configure(config):
    config.addinivalue_line("markers", "requires_trainable_backend: a test that trains")


def _id(nodeid):
    return nodeid[nodeid.find("keras/src/") + len("keras/src/"):]


def _note(nodeid, outcome, text=""):
    if REPORT:
        keras_report.note(REPORT, _id(nodeid), outcome, text)


def _said(report):
    """The reason of a skip, or the message of a failure."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    return str(crash.message if crash else report.longrepr)


def pytest_collection_modifyitems(config, items):
    reasons, done = _listed(), keras_report.outcomes(REPORT) if REPORT else {}
    items[:] = [item for item in items if _id(item.nodeid) not in done]
    for item in items:
        name = _id(item.nodeid)
        reason = next((text for test, text in reasons.items() if fnmatch.fnmatchcase(name, test)), None)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_logstart(nodeid, location):
    if REPORT:
        keras_report.running(REPORT).write_text(_id(nodeid), encoding="utf-8")


def pytest_runtest_logreport(report):
    if report.failed:
        _note(report.nodeid, "failed", _said(report))
    elif report.skipped:
        _note(report.nodeid, "xfailed" if hasattr(report, "wasxfail") else "skipped", _said(report))
    elif report.when == "call":
        _note(report.nodeid, "passed")


def pytest_collectreport(report):
    if report.nodeid.endswith(".py") and not report.passed:
        _note(report.nodeid, "failed" if report.failed else "skipped", _said(report))


def pytest_runtest_teardown(item, nextitem):
    if time.monotonic() > END and nextitem is not None:
        item.session.shouldstop = "the time is over"


def pytest_sessionfinish(session, exitstatus):
    if REPORT:
        keras_report.running(REPORT).unlink(missing_ok=True)
