// SPDX-License-Identifier: Apache-2.0
// A stream: an in-order queue of work. It records commands and submits many of them at once, because a submission costs
// several microseconds. Its timeline semaphore has one value per submission.
#pragma once

#include <compute/plugin.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api.hpp"
#include "core.hpp"

namespace vulkan {

struct Buffer;
struct Device;
struct Launch;

struct Stream {
  explicit Stream(Device& device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device;
  std::mutex mutex;  // of everything below; never held while the device is waited for

  bool failed() const { return failure_.has_value(); }
  bool is_retired = false;  // destroyed by core; used again when its work has ended

  // Memory that a command reads, or writes.
  struct Access {
    uint64_t begin, end;  // device addresses
    bool writes;
  };

  // Commands. Each begins after all earlier ones have ended, or at once, if `accesses` are all that it uses and none of
  // them conflicts with the commands that may still run.
  void dispatch(VkPipeline pipeline, VkPipelineLayout layout, const void* push, uint32_t push_bytes,
                const uint32_t* groups, uint64_t weight = 1,  // of a work-group
                const std::vector<Access>* accesses = nullptr);
  void copy(const Buffer& src, int64_t src_offset, const Buffer& dst, int64_t dst_offset, int64_t bytes);
  void fill_words(const Buffer& dst, int64_t offset, int64_t bytes, uint32_t word);
  std::vector<Access> accesses;  // of the run that is being recorded
  // Submits what is recorded if it takes longer than a submission and the device would soon be idle. Called after the
  // launches that belong together.
  void offer();
  // Memory that the host writes now, and commands recorded until the next submission read.
  std::pair<uint64_t, std::byte*> arguments(int64_t bytes);
  // A buffer of a host heap that is freed when the work recorded so far has ended.
  Buffer& staging(int64_t bytes, int32_t heap);
  uint64_t own_fault();  // the address of a record for runs that have none
  // The address of kMostCounters numbers of 32 bits that are 0 between launches.
  uint64_t counters();
  static constexpr int64_t kMostCounters = 1024;

  void mark(uint64_t number, bool timed);
  void wait_for(Stream& other, uint64_t number);  // locks both, one after the other
  // Submits what is recorded. Returns the value of the timeline that is reached when it has ended.
  uint64_t flush();
  // The value at which `number` is reached, submitted; 0 if it is reached.
  uint64_t value_of(uint64_t number);
  uint64_t all_submitted() const { return last_; }
  // The largest number reached. Throws the failure once nothing can run any more.
  uint64_t progress();
  bool wait_until(uint64_t value, int64_t timeout_ns) const;  // without the lock
  std::optional<int64_t> take_time(uint64_t number, bool wanted, std::unique_lock<std::mutex>& lock);

  VkSemaphore semaphore() const { return semaphore_; }
  VkQueue queue() const { return queue_; }
  std::mutex* queue_mutex() const { return queue_mutex_; }

  bool is_idle() const;
  void begin_again();
  void fail(const Failure& failure);

 private:
  struct Wait {
    VkSemaphore semaphore;
    uint64_t value;
  };
  struct Mark {
    uint64_t number, value;
  };
  struct Chunk {
    Buffer* buffer;
    int64_t used;
    uint64_t value;
  };
  struct Query {
    VkQueryPool pool;
    uint32_t index;
  };

  uint64_t counter() const;
  VkCommandBuffer record();
  enum class Command { kNone, kLaunch, kTransfer };
  void order(Command next, const std::vector<Access>* accesses = nullptr);
  bool may_overlap(const std::vector<Access>& accesses) const;
  void count(uint64_t weight);
  bool has_room();  // the device would soon be idle
  void collect();
  Query take_query();
  void read_own_fault();

  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::mutex* queue_mutex_ = nullptr;

  uint64_t last_ = 0;                      // value of the last submission
  VkCommandBuffer open_ = VK_NULL_HANDLE;  // with recorded commands
  int recorded_ = 0;
  uint64_t weight_ = 0;
  Command previous_ = Command::kNone;
  bool knows_running_ = false;
  std::vector<Access> running_;  // of the commands since the last barrier
  uint64_t ended_ = 0;           // a value of the timeline that was reached
  std::deque<std::pair<VkCommandBuffer, uint64_t>> used_;
  std::vector<Wait> waits_;  // of the next submission
  std::deque<Mark> marks_;
  uint64_t reached_ = 0;
  std::deque<Chunk> chunks_;  // of arguments; the last one is in use
  std::deque<std::pair<Buffer*, uint64_t>> staged_;
  std::optional<Failure> failure_;
  std::vector<VkQueryPool> query_pools_;
  std::vector<Query> free_queries_;
  std::unordered_map<uint64_t, Query> times_;
  Buffer* own_fault_ = nullptr;
  Buffer* counters_ = nullptr;
  bool uses_own_fault_ = false;
};

}  // namespace vulkan
