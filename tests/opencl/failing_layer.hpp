// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer whose calls fail on demand: the loader puts it between the programs and every driver where
// OPENCL_LAYERS names it. With COMPUTE_LAYER_GPU in the environment every device says that it is a GPU, and with
// COMPUTE_LAYER_NAME that it has that name.
#pragma once

#include <cstdint>

extern "C" {

enum compute_layer_call : int32_t { COMPUTE_LAYER_KERNEL, COMPUTE_LAYER_FILL, COMPUTE_LAYER_CALLS };

// The nth call of a kind from now on fails, and the driver is not asked for it; 0: none.
__attribute__((visibility("default"))) void compute_layer_fail(compute_layer_call call, int64_t nth);
// Calls of a kind since the last compute_layer_fail of it, failed ones too.
__attribute__((visibility("default"))) int64_t compute_layer_calls(compute_layer_call call);
}
