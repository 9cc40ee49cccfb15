// SPDX-License-Identifier: Apache-2.0
// CLBlast as this plugin sees it: its own declarations, and the library opened at first need.
#pragma once

#include <mutex>

#include "plugins/opencl/api.hpp"

namespace compute::opencl {

// As cl_float2 and cl_double2 are passed.
struct ComplexFloat {
  alignas(8) float parts[2];
};
struct ComplexDouble {
  alignas(16) double parts[2];
};

enum : int32_t {
#define CONSTANT(name, value) name = value,
#include "plugins/opencl/clblast.inc"
#undef CONSTANT
};

struct ClblastApi {
#define FUNCTION(name, result, parameters) result(*name) parameters;
#include "plugins/opencl/clblast.inc"
#undef FUNCTION
};

/// NULL if there is none that can be used; clblast_report() says why. The first call opens the library, which then
/// stays.
const ClblastApi* clblast();

LibraryReport clblast_report();

/// Held around every call: up to 1.6.0 its cache of programs is damaged by threads that call at once (CLBlast's issue
/// 486).
std::mutex& clblast_mutex();

}  // namespace compute::opencl
