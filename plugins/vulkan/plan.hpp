// SPDX-License-Identifier: Apache-2.0
// Plans: ops as launches of kernels.
#pragma once

#include <compute/plugin.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace vulkan {

struct Device;
struct Kernel;
struct Stream;
struct UserKernel;

// What a run writes into word `slot` of the arguments of a launch: the address of a tensor, of a byte of the workspace,
// of the fault record or of the stream's counters, or a scalar (two words).
struct Binding {
  enum Kind : int32_t { kTensor, kWorkspace, kScalar, kFault, kCounters };
  int32_t slot = 0;
  Kind kind = kTensor;
  int64_t value = 0;  // tensor: its position; workspace: the offset; scalar: its position
};

struct Launch {
  const Kernel* kernel = nullptr;
  std::vector<int64_t> words;
  std::vector<Binding> bindings;
  std::array<uint32_t, 3> groups = {1, 1, 1};
  uint64_t weight = 1;  // of a group, in groups that copy some thousand elements
};

// A launch of a kernel of the program, which gets the addresses of all tensors, then the scalars.
struct UserLaunch {
  std::shared_ptr<UserKernel> kernel;
  std::array<int64_t, 3> groups, group_size;
  std::vector<int64_t> scalar_bytes;
};

struct Plan {
  std::vector<Launch> launches;
  std::optional<UserLaunch> user;
  int64_t workspace_bytes = 0;
  int64_t kernels_compiled = 0;
  bool reports_faults = false;
  // The bytes around the first element of each tensor that lie between its elements; none for absent tensors.
  std::vector<std::pair<int64_t, int64_t>> spans;
  size_t input_count = 0;

  // Adds an array to the workspace, and returns its offset.
  int64_t reserve(int64_t bytes) {
    const int64_t at = (workspace_bytes + 255) & ~int64_t{255};
    workspace_bytes = at + bytes;
    return at;
  }
};

// Throws Refused. With `query` nothing is compiled, and the plan cannot run.
std::unique_ptr<Plan> make_plan(Device& device, const compute_plugin_op& op, bool query);

// Queues a run. With the lock of the stream held.
void run_plan(const Plan& plan, Stream& stream, const compute_plugin_run& run);

}  // namespace vulkan
