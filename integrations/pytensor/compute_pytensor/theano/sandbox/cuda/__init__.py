# SPDX-License-Identifier: Apache-2.0
"""`theano.sandbox.cuda`, the oldest names of what runs on a device."""
from ....values import is_host_device
from . import basic_ops  # noqa: F401
from .basic_ops import gpu_from_host, host_from_gpu  # noqa: F401

cuda_available = cuda_enabled = not is_host_device()
