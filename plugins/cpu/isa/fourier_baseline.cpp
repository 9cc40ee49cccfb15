// SPDX-License-Identifier: Apache-2.0
// Fourier transforms for any processor; includes no shared inline code.
#define COMPUTE_FOURIER_NAMESPACE baseline
#define COMPUTE_FOURIER_VECTOR_BYTES 16
#include "plugins/cpu/kernels/fourier_kernel.inc"
