// SPDX-License-Identifier: Apache-2.0
#define COMPUTE_CPU_ISA_NAMESPACE avx512
#define COMPUTE_CPU_VECTOR_BYTES 64
#include "plugins/cpu/isa/networks.inc"
