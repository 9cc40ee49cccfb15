// SPDX-License-Identifier: Apache-2.0
//
// Any text is an expression or is refused with a caret; what is one is typed or refused, in every dtype.
#include "core/expressions/expression.hpp"

#include <compute/compute.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr std::string_view kInputs[] = {"a", "b"}, kScalars[] = {"s"};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const compute::ExpressionTemplate expression = compute::parse(text, kInputs, kScalars);
    for (compute_dtype dtype = 1; dtype < compute::kDtypeCount; ++dtype) {
      const compute::LeafDesc leaves[] = {{dtype}, {dtype}, {COMPUTE_DTYPE_FLOAT64, true}};
      try {
        const compute::TypedExpression typed = compute::type_expression(expression, leaves);
        if (typed.output_count() != expression.output_count()) std::abort();
        if (typed.digest() != compute::type_expression(expression, leaves).digest()) std::abort();
      } catch (const compute::Error& error) {
        if (error.code != COMPUTE_ERROR_INVALID_ARGUMENT || error.message.find("\n  ") == std::string::npos)
          std::abort();
      }
    }
  } catch (const compute::Error& error) {
    if (error.code != COMPUTE_ERROR_INVALID_ARGUMENT) std::abort();
    if (!error.message.ends_with("^") && size <= compute::kMaxExpressionText) std::abort();
  }
  return 0;
}
