# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that runs tests of PyTensor in the mode COMPUTE: PYTHONPATH=... pytest -p compute_mode

COMPUTE_PYTENSOR_XFAILS names a file with the ids of tests that fail, one a line, each with its reason after ` # `. They
count as expected failures, and one that passes is an error.
"""
import os

import pytest


def _listed():
    path = os.environ.get("COMPUTE_PYTENSOR_XFAILS")
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        lines = [line.partition(" # ") for line in file if line.strip() and not line.startswith("#")]
    return {test.strip(): reason.strip() for test, _, reason in lines}


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    import compute_pytensor  # after conftest.py of PyTensor has set the flags that PyTensor reads when it is imported

    compute_pytensor.activate()


def pytest_collection_modifyitems(config, items):
    reasons = _listed()
    for item in items:
        if item.nodeid in reasons:
            item.add_marker(pytest.mark.xfail(reason=reasons[item.nodeid], strict=True))
