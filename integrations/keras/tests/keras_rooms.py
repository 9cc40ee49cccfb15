# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that runs Keras' own tests on this backend: pytest -p keras_rooms --pyargs keras.src.ops

Tests that keras_skips.txt lists are skipped with the reason there. KERAS_ROOMS_REPORT names a file that gets a line for
each test, and whose tests are not run again. KERAS_ROOMS_SECONDS is the time after which no more tests are started.
"""
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
    return str(crash.message if crash else report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)


def pytest_collection_modifyitems(config, items):
    reasons, done = _listed(), keras_report.outcomes(REPORT) if REPORT else {}
    items[:] = [item for item in items if _id(item.nodeid) not in done]
    for item in items:
        name = _id(item.nodeid)
        reason = reasons.get(name) or reasons.get(name.partition("::")[0])
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
