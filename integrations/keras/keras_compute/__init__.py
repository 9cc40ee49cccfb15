# SPDX-License-Identifier: Apache-2.0
"""A backend of Keras 3 on the devices of `compute`: KERAS_BACKEND=compute.

Where the package is installed, nothing needs to be imported. In other places, import it before keras, or start programs
with `python -m keras_compute program.py`. COMPUTE_DEVICE chooses the device.
"""
from ._hook import install as _install
from ._version import __version__

_install()

__all__ = ["__version__"]
