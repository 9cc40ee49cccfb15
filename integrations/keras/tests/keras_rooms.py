# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that runs Keras' own tests on this backend: pytest -p keras_rooms --pyargs keras.src.ops

Tests that keras_skips.txt lists are skipped with the reason there. KERAS_ROOMS_REPORT names a file that gets the outcomes
of each file as JSON.
"""
import collections
import json
import os
import pathlib
import sys
import types

os.environ["KERAS_BACKEND"] = "compute"

import keras_compute  # noqa: E402, F401  before keras
from keras_compute import _hook  # noqa: E402
import pytest  # noqa: E402

# Tests import this from Keras' conftest.py, which is not in the package.
_conftest = types.ModuleType("conftest")
_conftest.skip_if_backend = lambda given, reason: pytest.mark.skipif(given == "compute", reason=reason)
sys.modules["conftest"] = _conftest

# ---- Tests that ask which backend they run on get a branch for this one ----------------------------------------------

_TORCH = '        elif backend.backend() == "torch":\n'
_COMPUTE = '        elif backend.backend() == "compute":\n            from keras_compute.src.gradients import gradients_of\n\n'


def _before(found, branch):
    """What the hook replaces so that a branch stands before a text."""
    return found, branch + found


_STEP = _before(_TORCH + "\n            def train_one_step(x, dy):\n", _COMPUTE + """\
            def train_one_step(x, dy):
                _, grads = gradients_of(lambda: loss_fn(x, dy), layer.trainable_variables)
                optimizer.apply(grads, layer.trainable_variables)

""")
_hook.CHANGES.update({
    "keras.src.trainers.trainer_test": [_before("else:\n    raise ImportError(", """\
elif backend.backend() == "compute":
    from keras_compute.src.trainer import ComputeTrainer as Trainer
"""), _before('            "torch": "cpu",\n', '            "compute": "cpu",\n')],
    "keras.src.layers.core.dense_test": _STEP,
    "keras.src.layers.core.einsum_dense_test": _STEP,
    "keras.src.ops.numpy_test": [_before(_TORCH + """\
            import torch

            x1 = torch.tensor([1.0, 2.0], requires_grad=True)
""", _COMPUTE + """\
            given = [backend.Variable(x) for x in ([1.0, 2.0], [0.0, 2.0])]
            _, (x1_grad, x2_grad) = gradients_of(lambda: knp.sum(knp.divide_no_nan(*given)), given)
"""), ('"torch"),\n        reason=f"{backend.backend()} backend does not support gradients."',
      '"torch", "compute"),\n        reason="no gradients"')],
    "keras.src.ops.core_test": _before(_TORCH + """\
            import torch

            x = torch.tensor(100.0, requires_grad=True)
""", _COMPUTE + """\
            x = backend.Variable(100.0)
            _, (dy_dx,) = gradients_of(lambda: to_derive(x.value), [x])
            _, (dz_dx,) = gradients_of(lambda: log1pexp_nan(x.value), [x])
            self.assertEqual(ops.convert_to_numpy(dy_dx), 1.0)
            self.assertTrue(ops.isnan(dz_dx))
"""),
})


# ---- Outcomes --------------------------------------------------------------------------------------------------------

_outcomes = collections.defaultdict(lambda: {"passed": 0, "failed": [], "skipped": []})


def _listed():
    lines = pathlib.Path(__file__).with_name("keras_skips.txt").read_text(encoding="utf-8").splitlines()
    parts = [line.partition(" # ") for line in lines if line.strip() and not line.startswith("#")]
    return {test.strip(): reason.strip() for test, _, reason in parts}


def pytest_configure(config):
    config.addinivalue_line("markers", "requires_trainable_backend: a test that trains")


def _id(nodeid):
    return nodeid[nodeid.find("keras/src/") + len("keras/src/"):]


def pytest_collection_modifyitems(config, items):
    reasons = _listed()
    for item in items:
        name = _id(item.nodeid)
        reason = reasons.get(name) or reasons.get(name.partition("::")[0])
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def _note(name, report):
    """Appends a failure to a file that can be read during the run."""
    if path := os.environ.get("KERAS_ROOMS_REPORT"):
        crash = getattr(report.longrepr, "reprcrash", None)
        with open(f"{path}.failures", "a", encoding="utf-8") as file:
            file.write(f"{name} # {str(crash.message if crash else report.longrepr).strip().partition(chr(10))[0][:300]}\n")


def pytest_runtest_logreport(report):
    found = _outcomes[_id(report.nodeid).partition("::")[0]]
    name = _id(report.nodeid).partition("::")[2]
    if report.failed:
        if name not in found["failed"]:
            found["failed"].append(name)
            _note(_id(report.nodeid), report)
    elif report.skipped:
        found["skipped"].append((name, str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)))
    elif report.when == "call":
        found["passed"] += 1


def pytest_collectreport(report):
    if report.failed:
        _outcomes[_id(report.nodeid)]["failed"].append("collection")
    elif report.skipped and report.nodeid.endswith(".py"):
        _outcomes[_id(report.nodeid)]["skipped"].append(("collection", str(report.longrepr)))


def pytest_runtest_teardown(item, nextitem):
    if (path := os.environ.get("KERAS_ROOMS_REPORT")) and (nextitem is None or nextitem.path != item.path):
        pathlib.Path(path).write_text(json.dumps(_outcomes, indent=1), encoding="utf-8")
