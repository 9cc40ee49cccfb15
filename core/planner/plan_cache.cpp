// SPDX-License-Identifier: Apache-2.0
#include "core/planner/plan_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "core/base/per_thread.hpp"
#include "core/base/sized.hpp"
#include "core/devices/device.hpp"
#include "core/loading/plugin_core.hpp"
#include "core/process/process_config.hpp"
#include "core/streams/timeline.hpp"

namespace compute {
namespace {

// The calling thread's table, searched before the shared one without a lock.
struct ThreadPlans {
  static constexpr size_t kEntries = 64;
  std::array<Plan*, kEntries> entries{};

  ~ThreadPlans() {
    const InUse in_use;
    if (is_shut_down()) return;
    for (Plan* plan : entries) {
      if (plan != nullptr) plan->release();
    }
  }
  Plan* at(uint64_t hash) const { return entries[hash % kEntries]; }
  // Takes over a reference.
  void keep(Plan* plan) {
    if (Plan* previous = std::exchange(entries[plan->hash % kEntries], plan)) previous->release();
  }
};

using MyPlans = PerThread<ThreadPlans>;

bool same_key(const Plan& plan, std::span<const uint64_t> key, uint64_t hash) noexcept {
  return plan.hash == hash && plan.key.size() == key.size() &&
         std::memcmp(plan.key.data(), key.data(), key.size() * 8) == 0;
}

}  // namespace

void Plan::drop_steps() noexcept {
  for (const PlannedStep& step : steps) {
    if (!step.shares_plan) device.table.plan_release(step.plan);
  }
  steps.clear();
  capturable = true;
  checks_faults = false;
  work_bytes = 0;
}

void Plan::destroy() noexcept {
  std::vector<uint64_t> plans;
  try {
    for (const PlannedStep& step : steps) {
      if (step.plan != 0 && !step.shares_plan) plans.push_back(step.plan);
    }
    if (device.plans) {
      device.plans->count_gone(name, runs());
      device.plans->dispose(std::move(plans));
    }
  } catch (const std::bad_alloc&) {
    // The plugin keeps them until it is closed.
  }
  delete this;
}

Plan* PlanCache::of_thread(uint64_t hash) noexcept {
  const ThreadPlans* mine = MyPlans::find();
  return mine != nullptr ? mine->at(hash) : nullptr;
}

Plan* PlanCache::find(std::span<const uint64_t> key, uint64_t hash) {
  Plan* found = nullptr;
  {
    std::lock_guard guard(lock_);
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last && found == nullptr; ++it) {
      if (!same_key(**it->second, key, hash)) continue;
      by_age_.splice(by_age_.begin(), by_age_, it->second);
      found = *it->second;
      found->retain();
    }
  }
  if (found != nullptr) MyPlans::get().keep(found);
  return found;
}

Plan* PlanCache::insert(PlanReference plan) {
  std::vector<Plan*> evicted;
  {
    std::lock_guard guard(lock_);
    const auto [first, last] = by_hash_.equal_range(plan->hash);
    Plan* other = nullptr;  // another thread was faster
    for (auto it = first; it != last && other == nullptr; ++it) {
      if (same_key(**it->second, plan->key, plan->hash)) other = *it->second;
    }
    if (other != nullptr) {
      evicted.push_back(plan.get());
      plan.release();
      other->retain();
      plan.reset(other);
    } else {
      by_age_.push_front(plan.get());
      try {
        by_hash_.emplace(plan->hash, by_age_.begin());
      } catch (...) {
        by_age_.pop_front();
        throw;
      }
      plan->retain();
      plugin_plans_ += plan->plugin_plans();
      device_.counters.plans_live.fetch_add(plan->plugin_plans());
      evict_locked(evicted);
    }
  }
  for (Plan* gone : evicted) gone->release();
  Plan* kept = plan.release();
  MyPlans::get().keep(kept);
  return kept;
}

void PlanCache::evict_locked(std::vector<Plan*>& out) {
  while (plugin_plans_ > kLimit && by_age_.size() > 1) {
    const auto oldest = std::prev(by_age_.end());
    Plan* plan = *oldest;
    const auto [first, last] = by_hash_.equal_range(plan->hash);
    for (auto it = first; it != last; ++it) {
      if (it->second != oldest) continue;
      by_hash_.erase(it);
      break;
    }
    by_age_.erase(oldest);
    plugin_plans_ -= plan->plugin_plans();
    device_.counters.plans_live.fetch_sub(plan->plugin_plans());
    out.push_back(plan);
  }
}

void PlanCache::dispose(std::vector<uint64_t> plans) noexcept {
  std::vector<Access> accesses;
  try {
    for (Timeline* timeline : timelines_of(device_)) {
      if (!timeline->immediate && timeline->reached() < timeline->submitted()) {
        accesses.push_back({timeline, timeline->submitted()});
      }
    }
    std::lock_guard guard(lock_);
    for (const uint64_t plan : plans) disposed_.push_back({plan, accesses});
    // Scanned each time it has doubled: a slow device makes a long list.
    if (disposed_.size() >= settle_from_) {
      settle_locked();
      settle_from_ = 2 * disposed_.size() + 16;
    }
  } catch (const std::bad_alloc&) {
    // The plugin keeps them until it is closed.
  }
}

void PlanCache::settle_locked() noexcept {
  std::erase_if(disposed_, [&](const Disposed& entry) {
    for (const Access& access : entry.accesses) {
      if (!access.timeline->has_ended(access.number)) return false;
    }
    if (device_.health.load() != COMPUTE_HEALTH_FORKED) device_.table.plan_release(entry.plan);
    return true;
  });
}

void PlanCache::clear() noexcept {
  std::lock_guard guard(lock_);
  for (Plan* plan : by_age_) {
    for (PlannedStep& step : plan->steps) {
      if (step.plan != 0 && !step.shares_plan) device_.table.plan_release(step.plan);
      step.plan = 0;
    }
  }
  settle_locked();
}

void PlanCache::for_each(void (*visit)(const Plan& plan, void* context), void* context) {
  std::lock_guard guard(lock_);
  for (const Plan* plan : by_age_) visit(*plan, context);
}

void PlanCache::count_gone(const char* name, int64_t runs) noexcept {
  if (runs == 0) return;
  std::lock_guard guard(gone_lock_);
  try {
    gone_[name] += runs;
  } catch (const std::bad_alloc&) {
    // The report loses them.
  }
}

void PlanCache::for_each_gone(void (*visit)(const char* name, int64_t runs, const char* device, void* context),
                              void* context) {
  std::lock_guard guard(gone_lock_);
  for (const auto& [name, runs] : gone_) visit(name, runs, device_.name.c_str(), context);
}

}  // namespace compute
