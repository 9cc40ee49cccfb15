// SPDX-License-Identifier: Apache-2.0
// A plain call of each op, as ops.def states it: operands that fit it, and the attributes that it needs.
#pragma once

#include <compute/compute.hpp>

#include <string>
#include <string_view>
#include <vector>

struct PlainCall {
  std::vector<compute::TensorSpec> inputs;
  std::vector<compute::Attribute> attributes;
};

// Operands have `dtype`, unless the op requires another. `makes_dtype`: an op without operands makes a result of
// `dtype`, even if ops.def names another.
PlainCall plain_call(const compute::OpInfo& info, compute::DType dtype, bool makes_dtype = false);

// Throws std::invalid_argument if there is none.
compute::DType dtype_named(const std::string& name);

// Without empty ones.
std::vector<std::string> words_of(std::string_view text, char separator = ' ');
