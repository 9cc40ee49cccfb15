// SPDX-License-Identifier: Apache-2.0
// The product of bfloat16 for processors with AMX. Compiled like products_avx512, with -mamx-tile -mamx-bf16; includes
// no shared inline code.
#include "plugins/cpu/kernels/tile_kernel.inc"
