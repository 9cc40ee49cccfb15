// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/isa.hpp"

#include <optional>
#include <string>
#include <string_view>

#include "plugins/cpu/host.hpp"

namespace compute::cpu {
namespace {

Isa chosen;

}  // namespace

void choose_isa() {
  const std::optional<std::string> narrow = setting("COMPUTE_CPU_ISA");
  Isa isa;
  if (narrow && !narrow->empty()) {
    isa.blocks = select_isa(narrow->c_str());
    if (isa.blocks == nullptr) {
      log(COMPUTE_LOG_WARNING, "load",
          "COMPUTE_CPU_ISA=" + *narrow + " is none of baseline, sse2, avx2 and avx512, and is ignored");
    }
  }
  if (isa.blocks == nullptr) isa.blocks = select_isa(nullptr);
  isa.reduce = &baseline::reduce_kernels;
  isa.copy = &baseline::copy_kernels;
#if defined(__x86_64__)
  if (isa.blocks->name == std::string_view("avx2")) {
    isa.reduce = &avx2::reduce_kernels;
    isa.copy = &avx2::copy_kernels;
  } else if (isa.blocks->name == std::string_view("avx512")) {
    isa.reduce = &avx512::reduce_kernels;
    isa.copy = &avx512::copy_kernels;
  }
#endif
  chosen = isa;
}

const Isa& isa() { return chosen; }

}  // namespace compute::cpu
