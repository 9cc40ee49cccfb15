// SPDX-License-Identifier: Apache-2.0
// Launches of kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/common/source/expressions/dialect.hpp"

namespace compute::common {

/// Counters of a stream, on devices that have them. More than the number of concurrent groups, because groups of few
/// outputs count each other.
inline constexpr int32_t kGroupCounters = 2048;

/// Identifies a kernel: a digest of op and version, expression digests, dtypes, layout class, collapsed rank, alignment
/// class and index width. It contains no size.
struct KernelKey {
  uint64_t high = 0, low = 0;
  friend bool operator==(const KernelKey&, const KernelKey&) = default;
};
struct KernelKeyHash {
  size_t operator()(const KernelKey& key) const { return static_cast<size_t>(key.low); }
};

/// A kernel's pointer parameter. Parameters are the pointers in order, then the block by value.
struct Pointer {
  enum Kind : int32_t {
    kTensor,     // run.tensors[index]
    kWorkspace,  // run.workspace; the word already contains the offset in it
    kFault,      // the run's fault record, else 64 zeroed bytes of the plugin
    kTable,      // the launch's table: Launch::table uploaded at prepare
    kCounters    // 32-bit counters of the stream, which are 0 between launches
  };
  Kind kind = kTensor;
  int32_t index = 0;
};

/// The position of a run-time scalar: its 16 bytes are words `word` and `word` + 1 of the block.
struct ScalarSlot {
  int32_t word = 0;
  int32_t scalar = 0;  // of run.scalars
};

/// One kernel launch of a plan.
///
/// The block is an array of int64. Word i, for pointer parameter i, is a byte offset that the kernel adds to that
/// pointer. If the device has addresses (CUDA), pass buffer + offset_bytes and leave the word unchanged. If it has
/// opaque buffers (OpenCL), pass the buffer and add offset_bytes to the word in the run's copy of the block.
///
/// Launches of a plan run in order; each sees the results of the earlier ones.
struct Launch {
  KernelKey key;
  std::string name;         // the kernel's entry point
  int64_t groups = 0;       // one-dimensional, at most dialect.max_groups
  int32_t group_size = 0;   // work items per group
  int64_t local_bytes = 0;  // of local memory that the text does not declare with a size; CUDA C only
  std::vector<Pointer> pointers;
  std::vector<int64_t> block;
  std::vector<ScalarSlot> scalars;
  std::vector<int64_t> table;  // for Pointer::kTable; empty if the block contains everything
};

/// How to run an op: its launches, in order.
struct LaunchPlan {
  std::vector<Launch> launches;
  int64_t workspace_bytes = 0;
  bool reports_faults = false;
};

struct KernelSource {
  std::string name;  // entry point
  std::string text;  // with the prelude; complete
  // Per work item, so that as many groups run concurrently as the kernel is made for; 0: unlimited. CUDA C states it in
  // the source.
  int32_t most_registers = 0;
};

}  // namespace compute::common
