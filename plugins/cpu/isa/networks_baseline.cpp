// SPDX-License-Identifier: Apache-2.0
#define COMPUTE_CPU_ISA_NAMESPACE baseline
#define COMPUTE_CPU_VECTOR_BYTES 16
#include "plugins/cpu/isa/networks.inc"
