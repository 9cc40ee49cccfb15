// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and linear algebra for x86-64-v3 processors. Compiled with -march=x86-64-v3; includes
// no shared inline code.
#define COMPUTE_FOURIER_NAMESPACE avx2
#define COMPUTE_FOURIER_VECTOR_BYTES 32
#include "plugins/cpu/kernels/fourier_kernel.inc"

#define COMPUTE_CPU_ISA_NAMESPACE avx2
#define COMPUTE_CPU_VECTOR_BYTES 32
#include "plugins/cpu/isa/linalg.inc"
