// SPDX-License-Identifier: Apache-2.0
#define COMPUTE_CPU_ISA_NAMESPACE avx2
#define COMPUTE_CPU_VECTOR_BYTES 32
#include "plugins/cpu/isa/networks.inc"
