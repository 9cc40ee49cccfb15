// SPDX-License-Identifier: Apache-2.0
// What reductions are made of: stages, and the axes that they keep and reduce.
#pragma once

#include <string>
#include <vector>

#include "accumulator.hpp"
#include "ops.hpp"

namespace vulkan {

struct Stage {
  const compute_plugin_expression* before;
  const compute_plugin_expression* after;
  std::string kind;
  int32_t accumulator;
  int32_t before_scalars, after_scalars;  // positions of the first
};

struct Reduction {
  const Op& op;
  std::vector<Stage> stages;
  const compute_plugin_expression* final = nullptr;  // evaluated at every point
  int32_t final_scalars = 0;
  std::vector<int64_t> stored;  // stages whose results are outputs; of reduce, all outputs are those of `after`
  bool is_row = false;

  Space kept, reduced;
  std::vector<int> place;  // of an axis: its position among the kept ones, or -1 - that among the reduced ones
  bool positions = false;

  size_t input_count() const { return static_cast<size_t>(op.input_count()); }
  size_t final_outputs() const { return final == nullptr ? 0 : static_cast<size_t>(final->output_count); }
};

// Signs dtypes, stages and what is stored.
void sign_reduction(KernelBuilder& k, const Reduction& r);

// Where the states of parts are: one array per part of a state, of [points][parts].
struct PartStates {
  int64_t parts = 1;
  std::vector<int64_t> offsets;  // in the workspace
  std::vector<int> slots;        // of the kernel that writes them

  void allocate(KernelBuilder& k, Plan& plan, const Accumulator& state, int64_t points);
};
std::string state_place(const std::vector<int>& slots, size_t part, const Accumulator& state, const std::string& index);
// The launch that combines the states of each point, for the kept axes as they were given.
void combine_parts(const Request& request, const Reduction& r, const PartStates& states);

// The layout by columns: the kept axis is contiguous. Returns false if it does not fit.
bool reduce_by_columns(const Request& request, const Reduction& r);

}  // namespace vulkan
