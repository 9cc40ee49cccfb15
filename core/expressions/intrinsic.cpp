// SPDX-License-Identifier: Apache-2.0
#include "core/expressions/intrinsic.hpp"

#include <algorithm>

namespace compute {
namespace {

consteval DtypeClass class_of(std::string_view text) {
  if (text == "ANY") return DtypeClass::kAny;
  if (text == "BOOL") return DtypeClass::kBool;
  if (text == "INTEGER") return DtypeClass::kInteger;
  if (text == "BITS") return DtypeClass::kBits;
  if (text == "REAL") return DtypeClass::kReal;
  if (text == "FLOAT") return DtypeClass::kFloat;
  if (text == "COMPLEX") return DtypeClass::kComplex;
  if (text == "INEXACT") return DtypeClass::kInexact;
  if (text == "NUMERIC") return DtypeClass::kNumeric;
  throw "a class that intrinsics.def does not know";
}

consteval IntrinsicResult result_of(std::string_view text) {
  if (text == "SAME") return IntrinsicResult::kSame;
  if (text == "BOOL") return IntrinsicResult::kBool;
  if (text == "PART") return IntrinsicResult::kPart;
  if (text == "PAIR") return IntrinsicResult::kPair;
  if (text == "NODE") return IntrinsicResult::kNode;
  throw "a result that intrinsics.def does not know";
}

consteval bool yes_or_no(std::string_view text) {
  if (text == "YES") return true;
  if (text == "NO") return false;
  throw "neither YES nor NO";
}

#include "core/expressions/composed_intrinsics.inc"

constexpr IntrinsicInfo kIntrinsics[] = {
#define COMPUTE_INTRINSIC(id, name, arity, operands, result, ulp, commutes, cost, definition, gradient, summary) \
  {id, #name, arity, class_of(#operands), result_of(#result), ulp, definition, gradient, summary, yes_or_no(#commutes)},
#define COMPUTE_COMPOSED_INTRINSIC(id, name, arity, ulp, gradient, summary)                              \
  {id,      #name, arity, DtypeClass::kFloat, IntrinsicResult::kSame, ulp, kDefinition_##name, gradient, \
   summary, false, true},
#include <compute/intrinsics.def>
#undef COMPUTE_INTRINSIC
};

consteval bool ids_are_positions() {
  for (size_t i = 0; i < std::size(kIntrinsics); ++i) {
    if (kIntrinsics[i].id != static_cast<int32_t>(i) + 1) return false;
  }
  return true;
}
static_assert(ids_are_positions());

}  // namespace

std::span<const IntrinsicInfo> intrinsics() noexcept { return kIntrinsics; }

const IntrinsicInfo* find_intrinsic(int32_t id) noexcept {
  return id >= 1 && id <= static_cast<int32_t>(std::size(kIntrinsics)) ? &kIntrinsics[id - 1] : nullptr;
}

const IntrinsicInfo* find_intrinsic(std::string_view name) noexcept {
  const auto* found = std::find_if(std::begin(kIntrinsics), std::end(kIntrinsics),
                                   [&](const IntrinsicInfo& x) { return name == x.name; });
  return found != std::end(kIntrinsics) ? found : nullptr;
}

}  // namespace compute
