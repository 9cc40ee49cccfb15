// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and linear algebra for any processor; includes no shared inline code.
#define COMPUTE_FOURIER_NAMESPACE baseline
#define COMPUTE_FOURIER_VECTOR_BYTES 16
#include "plugins/cpu/kernels/fourier_kernel.inc"

#define COMPUTE_CPU_ISA_NAMESPACE baseline
#define COMPUTE_CPU_VECTOR_BYTES 16
#include "plugins/cpu/isa/linalg.inc"
