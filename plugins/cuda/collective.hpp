// SPDX-License-Identifier: Apache-2.0
// Collectives between GPUs: each is one call of NCCL.
#pragma once

#include <compute/plugin.h>

#include <future>
#include <mutex>
#include <string>

#include "plugins/cuda/device.hpp"
#include "plugins/cuda/stream.hpp"

namespace compute::cuda {

/// Writes the id of a new group, and returns its size. Throws NOT_FOUND without NCCL.
int64_t make_group_id(void* id, int64_t capacity);

/// A rank of a group.
class Group {
 public:
  /// Waits for all ranks. Throws UNSUPPORTED if two of them are one GPU, and PEER_FAILED after the time limit.
  Group(Device& device, const compute_plugin_group_options& options);
  /// Leaves the other ranks, and waits a second at most until they have left, too.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const std::string& description() const { return description_; }
  void run(Stream& stream, const compute_plugin_collective* list, int32_t count);
  /// Throws the failure of queued work, as far as NCCL knows it.
  void require_success() const;
  /// Any thread: ends queued work. Does not wait for other ranks.
  void abort();

 private:
  ncclResult submit(CUstream queue, const compute_plugin_collective& collective);
  void free_by(ncclResult (*end)(ncclComm));

  Device& device_;
  const int32_t size_;
  ncclComm comm_ = nullptr;
  std::string description_;
  mutable std::mutex mutex_;  // guards the members below
  bool is_aborted_ = false;
  std::future<void> freed_;  // of comm_
};

/// For the end of the process, when the clean-up of NCCL and CUDA must find no thread inside NCCL: waits for those that
/// end groups, ten seconds at most.
void finish_groups();

/// Whether Group::run can make it. Depends only on kind, dtype and reduction.
bool supports_collective(const compute_plugin_collective& collective);

}  // namespace compute::cuda
