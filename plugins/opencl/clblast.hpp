// SPDX-License-Identifier: Apache-2.0
// CLBlast for this plugin: its own declarations, and the library opened at first need.
#pragma once

#include <mutex>

#include "plugins/opencl/api.hpp"

namespace compute::opencl {

// Passed like cl_float2 and cl_double2.
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

/// NULL if no library can be used; clblast_report() has the reason. The first call opens the library, which then stays
/// loaded.
const ClblastApi* clblast();

LibraryReport clblast_report();

/// Held around every call: up to version 1.6.0, concurrent calls corrupt its cache of programs (CLBlast's issue 486).
std::mutex& clblast_mutex();

}  // namespace compute::opencl
