// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/isa/isa.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "plugins/common/op/core.hpp"
#include "plugins/cpu/kernels/fourier_kernel.hpp"
#include "plugins/cpu/kernels/jacobi_kernel.hpp"
#include "plugins/cpu/kernels/network_kernel.hpp"
#include "plugins/cpu/kernels/order_kernel.hpp"
#include "plugins/cpu/kernels/pool_kernel.hpp"
#include "plugins/cpu/kernels/quantized_kernel.hpp"
#include "plugins/cpu/kernels/recurrent_kernel.hpp"
#include "plugins/cpu/kernels/sets.hpp"
#include "plugins/cpu/kernels/triangle_kernel.hpp"
#include "plugins/cpu/kernels/window_kernel.hpp"

namespace compute::cpu {
namespace {

// Filled at the first call, by code of the set itself.
template <void (*fill_vector)(BlockKernels*)>
const BlockKernels* block_kernels() {
  static const BlockKernels table = [] {
    BlockKernels t{};
    fill_scalar(&t);
    fill_vector(&t);
    return t;
  }();
  return &table;
}

#if COMPUTE_CPU_AVX512
bool has_tiles() {
  constexpr uint32_t kBfloat16 = 1u << 22, kTiles = 1u << 24;
  uint32_t eax, ebx, ecx, edx;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kBfloat16) != 0 && (edx & kTiles) != 0;
}

// It holds for the process. The system refuses if a thread has a signal stack that is too small for the registers.
bool is_permitted_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  static const bool is_permitted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return is_permitted;
}
#endif

const Isa* chosen = nullptr;

}  // namespace

InstructionSet widest_instruction_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // The levels of the x86-64 ABI, which include that the system saves the registers.
#if COMPUTE_CPU_AVX512
  if (__builtin_cpu_supports("x86-64-v4")) return has_tiles() ? InstructionSet::amx : InstructionSet::avx512;
#endif
  if (__builtin_cpu_supports("x86-64-v3")) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

const Isa& isa_of(InstructionSet set) {
#if defined(__x86_64__)
  set = std::min(set, widest_instruction_set());
#if COMPUTE_CPU_AVX512
  if (set == InstructionSet::amx) {
    static const Isa isa = [] {
      Isa tiles = isa_of(InstructionSet::avx512);
      tiles.set = InstructionSet::amx;
      tiles.name = "amx";
      return tiles;
    }();
    return isa;
  }
  if (set == InstructionSet::avx512) {
    static const Isa isa{set,
                         "avx512",
                         block_kernels<avx512::fill>(),
                         &avx512::reduce_kernels,
                         &avx512::copy_kernels,
                         &avx512::gemm_kernels,
                         &avx512::window_kernels,
                         &avx512::network_kernels,
                         &avx512::pool_kernels,
                         &avx512::order_kernels,
                         &avx512::fourier_kernels,
                         &avx512::jacobi_kernels,
                         &avx512::triangle_kernels,
                         &avx512::quantized_kernels,
                         &avx512::recurrent_kernels,
                         &avx512::gate_kernels};
    return isa;
  }
#endif
  if (set == InstructionSet::avx2) {
    static const Isa isa{set,
                         "avx2",
                         block_kernels<avx2::fill>(),
                         &avx2::reduce_kernels,
                         &avx2::copy_kernels,
                         &avx2::gemm_kernels,
                         &avx2::window_kernels,
                         &avx2::network_kernels,
                         &avx2::pool_kernels,
                         &avx2::order_kernels,
                         &avx2::fourier_kernels,
                         &avx2::jacobi_kernels,
                         &avx2::triangle_kernels,
                         &avx2::quantized_kernels,
                         &avx2::recurrent_kernels,
                         &avx2::gate_kernels};
    return isa;
  }
#endif
  static const Isa isa{InstructionSet::baseline,        "baseline",
                       block_kernels<baseline::fill>(), &baseline::reduce_kernels,
                       &baseline::copy_kernels,         &baseline::gemm_kernels,
                       &baseline::window_kernels,       &baseline::network_kernels,
                       &baseline::pool_kernels,         &baseline::order_kernels,
                       &baseline::fourier_kernels,      &baseline::jacobi_kernels,
                       &baseline::triangle_kernels,     &baseline::quantized_kernels,
                       &baseline::recurrent_kernels,    &baseline::gate_kernels};
  return isa;
}

const GemmKernel* tile_kernel([[maybe_unused]] InstructionSet set) {
#if COMPUTE_CPU_AVX512
  if (isa_of(set).set == InstructionSet::amx && is_permitted_tiles()) return &amx::tile_kernel;
#endif
  return nullptr;
}

const Isa* select_isa(const char* narrow) {
  const std::string_view name = narrow != nullptr ? narrow : "amx";
  if (name == "baseline" || name == "sse2") return &isa_of(InstructionSet::baseline);
  if (name == "avx2") return &isa_of(InstructionSet::avx2);
  if (name == "avx512") return &isa_of(InstructionSet::avx512);
  if (name == "amx") return &isa_of(InstructionSet::amx);
  return nullptr;
}

void choose_isa() {
  const std::optional<std::string> narrow = common::setting("COMPUTE_CPU_ISA");
  chosen = nullptr;
  if (narrow && !narrow->empty()) {
    chosen = select_isa(narrow->c_str());
    if (chosen == nullptr) {
      common::log(COMPUTE_LOG_WARNING, "load",
                  "COMPUTE_CPU_ISA=" + *narrow + " is ignored; expected baseline, sse2, avx2, avx512 or amx");
    }
  }
  if (chosen == nullptr) chosen = select_isa(nullptr);
}

const Isa& isa() { return *chosen; }

}  // namespace compute::cpu
