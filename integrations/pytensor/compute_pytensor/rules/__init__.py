# SPDX-License-Identifier: Apache-2.0
"""The rules by which ops run; see lowering.py."""
from . import control, elementwise, indexing, linear, loops, random, shapes, signals  # noqa: F401
