// SPDX-License-Identifier: Apache-2.0
// Philox and draws, for the ops of random numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

// The definitions of the words w0 to w3 of a block, from the scalars a (seed), b (offset) and c. The text `counter` is
// the block's number, which may use them.
std::string philox_text(std::string_view counter);

// What makes elements of the words of one block.
struct Distribution {
  std::string definitions;               // over w0 to w3
  std::vector<std::string> values;       // of the elements of a block: 4, 2 or 1
  std::vector<ScalarTerm> scalars = {};  // d, e, f, g
};

// Evaluates `distribution` for each element of `to`. `input`, if there is one, has its shape; each value mentions its
// element as @, once.
void draw(Steps& steps, const OpCall& call, const Distribution& distribution, const StepOperand& to,
          const StepOperand* input);

// uint64 words.
void draw_words(Steps& steps, const OpCall& call, const StepOperand& to);

// k * 2^-24 as float32, or k * 2^-53 as float64, in [0, 1): element j of the block.
std::string fraction(compute_dtype dtype, size_t j);
// (k + 1/2) * 2^-bits in (0, 1), exact in `dtype`, which is float32 or float64.
std::string open_fraction(compute_dtype dtype, size_t j);

}  // namespace compute
