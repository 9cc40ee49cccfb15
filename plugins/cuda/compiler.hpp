// SPDX-License-Identifier: Apache-2.0
// Compiles source text to code for one architecture, by NVRTC and the cache on disk.
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
  std::string entry;                                       // the linker's name of the requested kernel
  std::optional<std::vector<KernelParameter>> parameters;  // if the compiler's text shows them
  bool was_compiled = false;
};

/// The architecture for which programs are compiled on a device of this compute capability: the same one, or the
/// nearest older one that NVRTC supports, whose PTX the driver compiles. Throws UNSUPPORTED without NVRTC, or if NVRTC
/// supports only newer architectures.
int target_architecture(int compute_capability);

/// Whether code for the device may contain wgmma, which only the architecture 9.0a has. CUDA 11 does not know it.
constexpr bool has_tile_units(int compute_capability, int nvrtc_major) {
  return compute_capability == 90 && nvrtc_major >= 12;
}

/// Compiles for devices of this compute capability (90 for 9.0): to a cubin, or to PTX if NVRTC is older than the
/// device.
///
/// `expression` names the kernel: the name of a function, also of a C++ template (`scale<float>`). Throws
/// COMPILE_FAILED with the compiler's whole log, UNSUPPORTED without NVRTC.
Program compile(std::string_view text, std::string_view expression, int compute_capability,
                const std::vector<std::string>& options);

/// The parameters of the entry `name` in PTX text; nothing if the text is not understood.
std::optional<std::vector<KernelParameter>> parameters_of(std::string_view ptx, std::string_view name);

}  // namespace compute::cuda
