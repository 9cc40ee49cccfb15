// SPDX-License-Identifier: Apache-2.0
// The cache in which plans are found again.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/base/lock.hpp"
#include "core/memory/pool.hpp"
#include "core/planner/plan.hpp"

struct compute_device;

namespace compute {

// At most 4096 plugin plans of a device; the least recently used ones are dropped first.
class PlanCache {
 public:
  explicit PlanCache(compute_device& device) : device_(device) {}

  // The entry of the calling thread's table of 64 at the position of `hash`, or NULL. The caller must check that the
  // key is the right one. The table keeps the plan alive until the thread's next call of find or insert.
  static Plan* of_thread(uint64_t hash) noexcept;
  // The plan, or NULL. Also puts it into the thread's table.
  Plan* find(std::span<const uint64_t> key, uint64_t hash);
  // Stores the plan, or returns the one that another thread has stored first; borrowed as from find.
  Plan* insert(PlanReference plan);
  // Drops everything: at shutdown.
  void clear() noexcept;
  // Every plan that ran since the device was opened, for the placement report.
  void for_each(void (*visit)(const Plan& plan, void* context), void* context);

  // Runs of plans that the cache has dropped.
  void for_each_gone(void (*visit)(const char* name, int64_t runs, const char* device, void* context), void* context);

  // Releases plugin plans that queued work no longer uses.
  void dispose(std::vector<uint64_t> plans) noexcept;

  // Runs of plans that were dropped from the cache, by op.
  void count_gone(const char* name, int64_t runs) noexcept;

 private:
  struct Hash {
    size_t operator()(uint64_t hash) const noexcept { return hash; }
  };
  struct Disposed {
    uint64_t plan;
    std::vector<Access> accesses;
  };
  void evict_locked(std::vector<Plan*>& out);
  void settle_locked() noexcept;

  static constexpr int64_t kLimit = 4096;

  compute_device& device_;
  Lock lock_;
  std::list<Plan*> by_age_;  // most recently used first
  std::unordered_multimap<uint64_t, std::list<Plan*>::iterator, Hash> by_hash_;
  int64_t plugin_plans_ = 0;
  std::vector<Disposed> disposed_;
  size_t settle_from_ = 16;
  Lock gone_lock_;
  std::unordered_map<const char*, int64_t> gone_;
};

}  // namespace compute
