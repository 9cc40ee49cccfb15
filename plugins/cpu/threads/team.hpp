// SPDX-License-Identifier: Apache-2.0
// Threads for plain loops. Each thread gets the same pieces of a loop each time, so that its cache still holds their
// data. After a loop, threads spin for a while and start the next one at once; then they sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace compute::cpu {

/// Pieces [0, pieces) of work. Each runs once, on any thread.
struct Loop {
  int32_t pieces = 0;   // at most Team::kMostPieces
  int32_t threads = 1;  // that may take part, with the caller
  int32_t wakes = 0;    // sleeping threads among them that the work justifies waking, unless many loops follow closely
  void (*body)(const void* user, int64_t piece) = nullptr;
  const void* user = nullptr;
};

class Team {
 public:
  static constexpr int32_t kMostPieces = 65535;

  /// Starts `workers` threads, or as many as the system grants. A thread without work, or one that waits for others,
  /// spins for `spin_ns` before it sleeps, or for a few times that while a loop is running. Throws std::bad_alloc.
  Team(int32_t workers, int64_t spin_ns);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Ends the workers. No loop is running.
  ~Team();

  int32_t workers() const { return static_cast<int32_t>(threads_.size()); }

  /// Runs all pieces and returns when they have ended. Any number of threads may call it concurrently: if together they
  /// could use more threads than exist, each gets an equal share. A call from within a piece runs on the calling thread
  /// alone. If a piece throws, pieces that have not begun are skipped, and run() throws the first exception once the
  /// others have ended.
  void run(const Loop& loop);

  /// Keeps all workers asleep for a pool that runs as many threads of its own; false if one of them, or another caller,
  /// is busy. A thread that reserved counts as a caller until unreserve().
  bool reserve();
  void unreserve();

 private:
  struct Job;
  struct Slot;

  static void* enter(void* slot);
  void work(Slot& slot);
  uintptr_t await(Slot& slot, int64_t& spin_ns);
  template <class F>
  bool look(int64_t spin_ns, const F& has_news) const;
  bool add_to_another(Slot& slot, uintptr_t state, uintptr_t flags);
  bool join_another(Slot& slot, uintptr_t state);
  void hand_over();
  int32_t allowance(const Job& job) const;
  void claim(Job& job);
  bool choose(Job& job, int32_t most);
  void assign(Job& job);
  void steal(Job& job, int32_t position) const;
  void fail(Job& job) const noexcept;
  void unlist(Job& job);
  void settle(Job& job);

  const int64_t spin_ns_;
  std::unique_ptr<Slot[]> slots_;  // of the workers
  std::vector<unsigned long> threads_;
  alignas(64) std::atomic<int32_t> callers_{0};
  std::atomic<int32_t> demand_{0};                   // threads that they could use
  std::atomic<int64_t> last_end_ns_{INT64_MIN / 2};  // of a loop
  alignas(64) std::atomic<int32_t> listed_{0};

  alignas(64) std::mutex mutex_;  // guards the members below, and the assignment of workers
  uint32_t tag_ = 0;
  int32_t streak_ = 0;   // loops that each began right after another, up to kStreak
  Job* list_ = nullptr;  // jobs that could use more workers
  std::vector<int32_t> chosen_, sleepers_;
};

}  // namespace compute::cpu
