// SPDX-License-Identifier: Apache-2.0
// GLSL to SPIR-V, by glslang, which is linked into the plugin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "physical.hpp"

namespace vulkan {

// Compiles a compute shader of the plugin. No operation on floats is contracted, and floats keep what the device can
// keep: subnormals, rounding to nearest even, signed zeros, infinities and NaN. Throws COMPILE_FAILED with the log.
std::vector<uint32_t> compile_glsl(const std::string& source, const Features& features);

// Compiles a shader of a program, and changes nothing.
std::vector<uint32_t> compile_user_glsl(const std::string& source);

}  // namespace vulkan
