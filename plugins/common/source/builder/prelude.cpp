// SPDX-License-Identifier: Apache-2.0
// The portable dialect as text, and the options that it relies on.
#include "plugins/common/source/builder/prelude.hpp"

#include "plugins/common/source/builder/template.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/builder/prelude.inc"

}  // namespace

std::string portable_prelude(const Dialect& dialect) {
  const bool is_cuda = dialect.language == Language::kCudaC;
  return fill(kPrelude, {{"is_cuda", is_cuda},
                         {"has_fp64", dialect.has_fp64},
                         {"has_int64_atomics", dialect.has_int64_atomics},
                         {"has_half_io", is_cuda || dialect.has_half_io}});
}

std::vector<std::string> compile_options(const Dialect& dialect) {
  // Every node rounds once: no contraction. Division and square root are correctly rounded, subnormals count.
  if (dialect.language == Language::kCudaC) {
    return {"--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"};
  }
  std::vector<std::string> options = {"-cl-std=CL1.2"};
  if (dialect.has_rounded_division) options.push_back("-cl-fp32-correctly-rounded-divide-sqrt");
  return options;
}

}  // namespace compute::common
