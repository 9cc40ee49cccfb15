# SPDX-License-Identifier: Apache-2.0
"""PyTensor on the devices of `compute`: a linker and a mode.

    import compute_pytensor
    f = pytensor.function([x], y, mode="COMPUTE")   # or, for all functions: compute_pytensor.activate()

COMPUTE_DEVICE chooses the device. Programs need no change: `python -m compute_pytensor program.py`.
"""
from . import settings as _settings

if _settings.is_launched():
    _settings.apply()  # before PyTensor and compute read the environment

from .linker import ComputeLinker  # noqa: E402
from .mode import COMPUTE, activate  # noqa: E402
from .report import placement_report, reset as reset_report  # noqa: E402

from ._version import __version__  # noqa: E402
__all__ = ["COMPUTE", "ComputeLinker", "activate", "placement_report", "reset_report"]
