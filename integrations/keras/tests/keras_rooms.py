# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that runs Keras' own tests on this backend: pytest -p keras_rooms --pyargs keras.src.ops

Tests that keras_skips.txt lists are skipped with the reason there. KERAS_ROOMS_REPORT names a file that gets the outcomes
of each file as JSON.
"""
import collections
import json
import os
import pathlib

os.environ["KERAS_BACKEND"] = "compute"

import keras_compute  # noqa: E402, F401  before keras
import pytest  # noqa: E402

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


def pytest_runtest_logreport(report):
    found = _outcomes[_id(report.nodeid).partition("::")[0]]
    name = _id(report.nodeid).partition("::")[2]
    if report.failed:
        if name not in found["failed"]:
            found["failed"].append(name)
    elif report.skipped:
        found["skipped"].append((name, str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)))
    elif report.when == "call":
        found["passed"] += 1


def pytest_collectreport(report):
    if report.failed:
        _outcomes[_id(report.nodeid)]["failed"].append("collection")
    elif report.skipped and report.nodeid.endswith(".py"):
        _outcomes[_id(report.nodeid)]["skipped"].append(("collection", str(report.longrepr)))


def pytest_sessionfinish(session):
    if path := os.environ.get("KERAS_ROOMS_REPORT"):
        pathlib.Path(path).write_text(json.dumps(_outcomes, indent=1), encoding="utf-8")
