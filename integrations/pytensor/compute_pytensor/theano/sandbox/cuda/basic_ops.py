# SPDX-License-Identifier: Apache-2.0
"""`theano.sandbox.cuda.basic_ops`."""
from ....transfer import GpuFromHost, HostFromGpu, gpu_from_host, host_from_gpu  # noqa: F401
