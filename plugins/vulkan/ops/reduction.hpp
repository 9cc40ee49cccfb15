// SPDX-License-Identifier: Apache-2.0
// What reductions are made of: stages, and the axes that they keep and reduce.
#pragma once

#include <functional>
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

// Results that several groups share: each group stores the state of its part, and the last one to end combines all of
// them, in the order of the parts. A counter of each result tells who is the last.
class PartStates {
 public:
  void allocate(KernelBuilder& k, Plan& plan, const Accumulator& state, int64_t count);
  static void declare_shared(KernelBuilder& k);
  using Index = std::function<std::string(const std::string& part, size_t column)>;  // of all states
  // Stores the states <names>, of one column each, as those of the part `part`.
  void store_states(KernelBuilder& k, const Accumulator& state, const std::vector<std::string>& names,
                    const Index& index) const;
  // Begins a block that the last of `parts` groups executes. `counter` is the number of the result, below
  // Stream::kMostCounters. The block declares the states <names>, and merges the states of the parts first,
  // first + step, … into them.
  void begin_last(KernelBuilder& k, const std::string& counter, const std::string& parts, const Accumulator& state,
                  const std::vector<std::string>& names, const Index& index, const std::string& first, int step) const;

 private:
  std::string place(const Accumulator& state, size_t part, const std::string& index) const;

  std::vector<int> slots_;  // of arrays, one for each part of a state
  int counters_ = 0;
};

// The layout by columns: the kept axis is contiguous. Returns false if it does not fit.
bool reduce_by_columns(const Request& request, const Reduction& r);

}  // namespace vulkan
