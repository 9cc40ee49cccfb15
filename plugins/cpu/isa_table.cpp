// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/isa_table.hpp"

#include <cstring>

#include "plugins/cpu/isa/isa_tables.hpp"

namespace compute::cpu {
namespace {

template <void (*fill_vector)(IsaTable*)>
const IsaTable* table_of(const char* name) {
  static const IsaTable table = [name] {
    IsaTable t{};
    t.name = name;
    fill_scalar(&t);
    fill_vector(&t);
    return t;
  }();
  return &table;
}

}  // namespace

const IsaTable* select_isa(const char* narrow) {
  int widest = 2;
  if (narrow != nullptr) {
    if (std::strcmp(narrow, "baseline") == 0 || std::strcmp(narrow, "sse2") == 0)
      widest = 0;
    else if (std::strcmp(narrow, "avx2") == 0)
      widest = 1;
    else if (std::strcmp(narrow, "avx512") != 0)
      return nullptr;
  }
#if defined(__x86_64__)
  // The levels of the x86-64 ABI, which include that the system saves the registers.
  if (widest >= 2 && __builtin_cpu_supports("x86-64-v4")) return table_of<avx512::fill>("avx512");
  if (widest >= 1 && __builtin_cpu_supports("x86-64-v3")) return table_of<avx2::fill>("avx2");
#endif
  return table_of<baseline::fill>("baseline");
}

}  // namespace compute::cpu
