// SPDX-License-Identifier: Apache-2.0
// Source text to code for one architecture, through NVRTC and the cache on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace compute::cuda {

struct KernelParameter {
  int32_t bytes = 0;  // 0: not known
  char kind = '?';    // 'p' a pointer, 'v' a value, '?' either
};

struct Program {
  std::string code;                                        // a cubin, or PTX that ends with NUL
  std::string entry;                                       // the linker's name of the kernel that was asked for
  std::optional<std::vector<KernelParameter>> parameters;  // where the compiler's text tells
  bool was_compiled = false;
};

/// The architecture that programs for a device of this compute capability are made for: the same, or the nearest older
/// one that NVRTC knows, whose PTX the driver compiles. Throws UNSUPPORTED without NVRTC, or where it knows newer ones
/// alone.
int target_architecture(int compute_capability);

/// Compiles for devices of this compute capability (90 for 9.0): to a cubin, or to PTX where NVRTC is older than the
/// device.
///
/// `expression` names the kernel: a function's name, also of a C++ template (`scale<float>`).
/// Throws COMPILE_FAILED with the compiler's whole log, UNSUPPORTED without NVRTC.
Program compile(std::string_view text, std::string_view expression, int compute_capability,
                const std::vector<std::string>& options);

/// The parameters of the entry `name`, as PTX text shows them; nothing if it is not understood.
std::optional<std::vector<KernelParameter>> parameters_of(std::string_view ptx, std::string_view name);

}  // namespace compute::cuda
