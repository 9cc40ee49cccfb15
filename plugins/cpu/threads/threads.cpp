// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/threads/threads.hpp"

#include <sched.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>

#include "plugins/common/driver/signals_blocked.hpp"
#include "plugins/cpu/base/host.hpp"
#include "plugins/cpu/threads/first_exception.hpp"
#include "plugins/cpu/threads/team.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kPiecesPerThread = 4;  // at most: one that the system runs late holds up a piece, not its share
constexpr int64_t kGrainsPerPiece = 4;   // at least, where a thread has several pieces
constexpr int64_t kGrainsPerWake = 8;    // that justify waking a thread
constexpr int64_t kUnevenPieces = 16;    // per thread

#if defined(COMPUTE_TSAN_THREADS)
constexpr bool kHasArena = false;  // ThreadSanitizer does not understand how oneTBB's tasks change threads
#else
constexpr bool kHasArena = true;
#endif

std::atomic<bool> is_ending{false};

// oneTBB's threads receive none of the program's signals.
class BlocksSignals final : public tbb::task_scheduler_observer {
 public:
  explicit BlocksSignals(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena) { observe(true); }
  ~BlocksSignals() override { observe(false); }
  void on_scheduler_entry(bool is_worker) override {
    if (is_worker) common::SignalsBlocked::block();
  }
};

struct Arena {
  explicit Arena(int32_t threads) : arena(threads), observer(arena) {}
  tbb::task_arena arena;
  BlocksSignals observer;
};

struct Pool {
  int32_t threads = 1;
  int64_t spin_ns = 0;
  bool has_arena = kHasArena;
  std::mutex mutex;                    // for starting threads
  std::atomic<Team*> team{nullptr};    // from the first piece of work on that is large enough
  std::atomic<Arena*> arena{nullptr};  // from the first uneven one on
};

// Never destroyed: a thread may still be inside when the process exits.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

struct Work {
  int64_t count, grain, pieces;
  void (*body)(void*, int64_t, int64_t);
  void* user;
  const std::atomic<bool>* cancel = cancel_request;

  void run(int64_t piece) const {
    stop_if_ending();
    throw_if(cancel);
    const int64_t grains = (count + grain - 1) / grain;
    const int64_t share = grains / pieces, rest = grains % pieces;
    const int64_t first = piece * share + std::min(piece, rest);
    const int64_t last = first + share + (piece < rest ? 1 : 0);
    body(user, first * grain, std::min(last * grain, count));
  }
};

// NULL if no threads can be created: the next caller tries again.
Team* start_team(Pool& pool) {
  const std::lock_guard guard(pool.mutex);
  if (pool.team.load() == nullptr) {
    try {
      auto team = std::make_unique<Team>(pool.threads - 1, pool.spin_ns);
      if (team->workers() > 0) pool.team.store(team.release());
    } catch (const std::exception&) {
      // Out of memory: no team.
    }
  }
  return pool.team.load();
}

Arena& start_arena(Pool& pool) {
  const std::lock_guard guard(pool.mutex);
  if (pool.arena.load() == nullptr) pool.arena.store(new Arena(pool.threads));
  return *pool.arena.load();
}

// The team's workers sleep while it lives. The team has been reserved.
class Reservation {
 public:
  explicit Reservation(Team& team) : team_(team) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() { team_.unreserve(); }

 private:
  Team& team_;
};

// oneTBB passes exceptions on, too, but needs memory for that.
void run_in_arena(tbb::task_arena& arena, const Work& work) {
  FirstException exception;
  const auto run_pieces = [&](const tbb::blocked_range<int64_t>& pieces) {
    if (exception.is_kept()) return;
    try {
      for (int64_t piece = pieces.begin(); piece != pieces.end(); ++piece) work.run(piece);
    } catch (...) {
      exception.keep();
    }
  };
  arena.execute([&] {
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(tbb::blocked_range<int64_t>(0, work.pieces, 1), run_pieces, tbb::simple_partitioner());
    });
  });
  exception.rethrow();
}

void run_in_team(Pool& pool, const Work& work, int64_t threads, int64_t wakes) {
  Team* team = pool.team.load(std::memory_order_acquire);
  if (team == nullptr) [[unlikely]]
    team = start_team(pool);
  if (team == nullptr) [[unlikely]] {
    for (int64_t piece = 0; piece < work.pieces; ++piece) work.run(piece);
    return;
  }
  Loop loop;
  loop.pieces = static_cast<int32_t>(work.pieces);
  loop.threads = static_cast<int32_t>(threads);
  loop.wakes = static_cast<int32_t>(std::min<int64_t>(wakes, pool.threads));
  loop.body = [](const void* user, int64_t piece) { static_cast<const Work*>(user)->run(piece); };
  loop.user = &work;
  team->run(loop);
}

// The first line of a file; "" if there is none.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Independent of the locale. 0 if there is no number, as in "max".
double number_in(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return static_cast<double>(std::max<int64_t>(number, 0));
}

// The limit in one control group's folder, as a share of one processor's time; 0 without a limit.
double quota_in(const std::string& folder) {
  std::string quota = line_of(folder + "/cpu.max"), period;
  if (const size_t space = quota.find(' '); space != std::string::npos) {
    period = quota.substr(space + 1);
  } else {
    quota = line_of(folder + "/cpu.cfs_quota_us");
    period = line_of(folder + "/cpu.cfs_period_us");
  }
  const double length = number_in(period);
  return length > 0 ? number_in(quota) / length : 0;
}

}  // namespace

constinit thread_local const std::atomic<bool>* cancel_request = nullptr;

void throw_cancelled() { throw Error(COMPUTE_ERROR_CANCELLED, "the work was cancelled"); }

void stop_if_ending() {
  while (is_ending.load(std::memory_order_relaxed)) std::this_thread::sleep_for(std::chrono::hours(1));
}

int32_t affinity_count() {
  for (int processors = 1024; processors <= 1 << 20; processors *= 2) {
    const auto bytes = CPU_ALLOC_SIZE(processors);
    cpu_set_t* set = CPU_ALLOC(processors);
    if (set == nullptr) break;
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(count, 1);
  }
  return std::max<int32_t>(static_cast<int32_t>(std::thread::hardware_concurrency()), 1);
}

std::optional<int32_t> cgroup_cpu_limit(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  double least = 0;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string mount = root + "/sys/fs/cgroup";
    if (!controllers.empty()) {
      if (("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
      mount += std::ifstream(mount + "/cpu/cpu.cfs_period_us") ? "/cpu" : "/" + controllers;
    }
    // The group's own folder is not visible in every container; its parents' limits hold in any case.
    for (std::string path = line.substr(second + 1);;) {
      const double quota = quota_in(path == "/" ? mount : mount + path);
      if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  if (least <= 0) return std::nullopt;
  return static_cast<int32_t>(std::clamp(least + 0.999, 1.0, 1e6));
}

int32_t usable_threads() {
  int32_t threads = affinity_count();
  if (const auto limit = cgroup_cpu_limit()) threads = std::min(threads, *limit);
  if (const auto wanted = integer_setting("COMPUTE_CPU_THREADS", 1, 1 << 20)) {
    threads = std::min(threads, static_cast<int32_t>(*wanted));
  }
  return std::max(threads, 1);
}

int64_t spin_time_ns() {
  if (affinity_count() < 2) return 0;
  return integer_setting("COMPUTE_SPIN_US", 0, 1'000'000).value_or(50) * 1000;
}

void threads_open() {
  Pool& p = pool();
  const int32_t threads = usable_threads();
  const int64_t spin_ns = spin_time_ns();
  if (threads != p.threads) delete p.arena.exchange(nullptr);
  if (threads != p.threads || spin_ns != p.spin_ns) delete p.team.exchange(nullptr);
  p.threads = threads;
  p.spin_ns = spin_ns;
}

void threads_ending() { is_ending.store(true, std::memory_order_relaxed); }

int32_t thread_count() { return pool().threads; }

void threads_forked() {
  Pool& p = pool();
  new (&p.mutex) std::mutex;  // a thread that does not exist here may hold it
  // The destructors would wait for threads that do not exist here.
  p.team.store(nullptr);
  p.arena.store(nullptr);
  p.has_arena = false;
}

void parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* user) {
  parallel_for(count, Grain{grain, 1}, body, user);
}

void parallel_for(int64_t count, Grain grain, void (*body)(void*, int64_t, int64_t), void* user) {
  if (count <= grain.units) {
    if (count > 0) body(user, 0, count);
    return;
  }
  throw_if(cancel_request);
  Pool& p = pool();
  const int64_t grains = (count + grain.units - 1) / grain.units, threads = std::min<int64_t>(p.threads, grains);
  if (threads == 1) return body(user, 0, count);
  const int64_t each = std::clamp<int64_t>(grains / (threads * kGrainsPerPiece), 1, kPiecesPerThread);
  const Work work{count, grain.units, std::min<int64_t>(threads * each, Team::kMostPieces), body, user};
  run_in_team(p, work, threads, grains * std::min(grain.weight, kGrainsPerWake) / kGrainsPerWake);
}

void parallel_tasks(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* user) {
  Pool& p = pool();
  const int64_t grains = (count + grain - 1) / grain, threads = std::min<int64_t>(p.threads, grains);
  if (threads < 2) {
    if (count > 0) body(user, 0, count);
    return;
  }
  const Work work{count, grain,
                  std::min<int64_t>(threads * kPiecesPerThread, std::min<int64_t>(grains, Team::kMostPieces)), body,
                  user};
  run_in_team(p, work, threads, threads);
}

void parallel_for_uneven(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* user) {
  Pool& p = pool();
  const int64_t grains = (count + grain - 1) / grain, threads = std::min<int64_t>(p.threads, grains);
  if (threads < 2) {
    if (count > 0) body(user, 0, count);
    return;
  }
  const Work work{count, grain, std::min({kUnevenPieces * p.threads, grains, int64_t{Team::kMostPieces}}), body, user};
  Team* team = p.team.load(std::memory_order_acquire);
  if (team == nullptr) team = start_team(p);
  if (!p.has_arena || team == nullptr || !team->reserve()) return run_in_team(p, work, threads, threads);
  const Reservation reservation(*team);
  Arena* const arena = p.arena.load(std::memory_order_acquire);
  run_in_arena(arena != nullptr ? arena->arena : start_arena(p).arena, work);
}

}  // namespace compute::cpu
