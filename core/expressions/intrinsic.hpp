// SPDX-License-Identifier: Apache-2.0
// The list of intrinsics.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/expressions/dtype.hpp"

namespace compute {

enum class IntrinsicResult : uint8_t { kSame, kBool, kPart, kPair, kNode };

// A row of intrinsics.def.
struct IntrinsicInfo {
  int32_t id;
  const char* name;
  int32_t arity;
  DtypeClass operands;
  IntrinsicResult result;
  int32_t ulp;
  const char* definition;
  const char* gradient;
  const char* summary;
  bool commutative;
  bool composed = false;  // of others by core; plugins never see it
};

// In the order of ids; ids are 1…size().
std::span<const IntrinsicInfo> intrinsics() noexcept;
// NULL for an unknown id or name.
const IntrinsicInfo* find_intrinsic(int32_t id) noexcept;
const IntrinsicInfo* find_intrinsic(std::string_view name) noexcept;

}  // namespace compute
