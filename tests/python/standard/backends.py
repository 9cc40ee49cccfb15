# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest: the tests that scikit-learn and SciPy have for libraries of the array API standard run on this
one, and on no other. docs/python.md says how to call it.
"""
import os
import pathlib
import re
import sys

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # SciPy reads it when it is imported

import pytest

import compute

NAME = "compute"

# SciPy expects float64 where no dtype is given, of all libraries but PyTorch.
if "float64" in compute.__array_namespace_info__().dtypes():
    compute.set_default_dtype(compute.float64)


def _patch_scikit_learn():
    try:
        from sklearn.utils import _array_api
    except ImportError:
        return

    def combinations(include_numpy_namespaces=True):
        floats = compute.__array_namespace_info__().dtypes(kind="real floating")
        for dtype in ("float64", "float32"):
            if dtype in floats:
                yield NAME, None, dtype

    _array_api.yield_namespaces = lambda include_numpy_namespaces=True: iter([NAME])
    _array_api.yield_namespace_device_dtype_combinations = combinations
    _array_api.yield_mixed_namespace_input_permutations = lambda: iter(
        [(_array_api.NamespaceAndDevice(NAME, None), _array_api.NamespaceAndDevice("numpy", None), "compute to numpy"),
         (_array_api.NamespaceAndDevice("numpy", None), _array_api.NamespaceAndDevice(NAME, None), "numpy to compute")])


def _patch_scipy():
    """SciPy's conftest.py makes its fixture `xp` for the libraries that it knows."""
    original = pytest.fixture

    def fixture(function=None, *args, params=None, **options):
        names = sys._getframe(1).f_globals
        if params is not None and params is names.get("xp_available_backends"):
            names["xp_known_backends"].add(NAME)
            params = [pytest.param(compute, id=NAME, marks=pytest.mark.array_api_backends)]
        if function is not None:
            return original(function, *args, **options)
        return original(*args, params=params, **options)

    pytest.fixture = fixture


_patch_scikit_learn()
_patch_scipy()


def _expected_failures():
    """Parts of the names of tests, and the reasons why they are expected to fail."""
    found, reason = {}, ""
    for line in pathlib.Path(__file__).with_name("scipy_xfails.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason = line[1:].strip()
        else:
            found[f"scipy/{line}"] = reason
    return found


def pytest_collection_modifyitems(config, items):
    """Of scikit-learn's and SciPy's tests, those with an array library stay."""
    named = re.compile(rf"\b{NAME}\b")
    chosen = [hasattr(item, "callspec") and named.search(item.callspec.id) is not None for item in items]
    config.hook.pytest_deselected(items=[item for item, stays in zip(items, chosen) if not stays])
    items[:] = [item for item, stays in zip(items, chosen) if stays]
    expected = _expected_failures()
    for item in items:
        for name, reason in expected.items():
            if name in item.nodeid:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))
