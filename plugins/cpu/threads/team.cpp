// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/threads/team.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "plugins/common/driver/signals_blocked.hpp"
#include "plugins/cpu/threads/first_exception.hpp"
#include "plugins/cpu/threads/spin.hpp"

namespace compute::cpu {
namespace {

constexpr size_t kLine = 128;               // two cores never share this much: the processor fetches lines in pairs
constexpr size_t kStackBytes = 4 << 20;     // as oneTBB's
constexpr int64_t kLeastSpinFraction = 16;  // least fraction of the spin time, after unsuccessful spins
constexpr int64_t kMostSpins = 4;           // of these times a worker waits at most for the end of another's pieces
constexpr int32_t kStreak = 4;              // loops in close succession from which on it pays to wake all threads
constexpr size_t kRoots = 8;                // sleepers that a caller wakes itself: they wake up at the same time
// How long a woken worker may take to run. Until then nobody wakes it again: in a virtual machine a call takes 10 us.
constexpr int64_t kWakeNs = 200'000;
constexpr int64_t kNever = INT64_MIN / 2;

// What a worker's word says: one of the states, or a job's address with flags.
constexpr uintptr_t kIdle = 0;       // it looks for work
constexpr uintptr_t kAsleep = 8;     // somebody has to wake it
constexpr uintptr_t kReserved = 16;  // asleep, and gets no work
constexpr uintptr_t kQuit = 24;
constexpr uintptr_t kStarted = 1;  // the job; until then its caller may take it back
constexpr uintptr_t kAwaited = 2;  // the caller sleeps until the worker has finished
constexpr uintptr_t kFlags = 63;

static_assert(std::endian::native == std::endian::little, "the futex is the word's first half");

// True if it was woken.
bool futex_wait(std::atomic<uintptr_t>& word, uintptr_t value) {
  return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(value), nullptr, nullptr, 0) == 0;
}

void futex_wake(std::atomic<uintptr_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

// Prefetches lines that other cores have written.
void prefetch_to_write(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

// Rounding, flush-to-zero and traps of a thread.
struct FloatModes {
#if defined(__x86_64__)
  uint32_t mxcsr = 0;
  uint16_t x87 = 0;

  static FloatModes of_this_thread() {
    FloatModes modes;
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(modes.mxcsr), "=m"(modes.x87));
    modes.mxcsr &= ~0x3fu;  // flags
    return modes;
  }
  void set() const { asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(x87)); }
#elif defined(__aarch64__)
  uint64_t fpcr = 0;

  static FloatModes of_this_thread() {
    FloatModes modes;
    asm volatile("mrs %0, fpcr" : "=r"(modes.fpcr));
    return modes;
  }
  void set() const { asm volatile("msr fpcr, %0" : : "r"(fpcr)); }
#else
  static FloatModes of_this_thread() { return {}; }
  void set() const {}
#endif
  bool operator==(const FloatModes&) const = default;
};

// Pieces [next, end) of a job that no thread has taken yet. The tag identifies the job, because a worker may have got
// another one meanwhile.
class Share {
 public:
  void set(uint32_t tag, int32_t next, int32_t end) {
    word_.store(uint64_t{tag} << 32 | static_cast<uint64_t>(end) << 16 | static_cast<uint64_t>(next),
                std::memory_order_relaxed);
  }

  // The next piece, for the share's owner; -1 if there is none.
  int32_t take_first(uint32_t tag) {
    return take(tag, 1, [](uint64_t next, uint64_t) { return next; });
  }
  // The last piece, for other threads.
  int32_t take_last(uint32_t tag) {
    return take(tag, ~uint64_t{0xffff}, [](uint64_t, uint64_t end) { return end - 1; });
  }
  void take_all(uint32_t tag) {
    while (take_last(tag) >= 0) {
    }
  }

 private:
  template <class F>
  int32_t take(uint32_t tag, uint64_t change, const F& piece) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      const uint64_t next = word & 0xffff, end = word >> 16 & 0xffff;
      if (word >> 32 != tag || next >= end) return -1;
      if (word_.compare_exchange_weak(word, word + change, std::memory_order_relaxed))
        return static_cast<int32_t>(piece(next, end));
    }
  }

  std::atomic<uint64_t> word_{0};
};

// A team's own threads never wait for a team.
constinit thread_local bool is_inside = false;

class Inside {
 public:
  Inside() { is_inside = true; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { is_inside = false; }
};

}  // namespace

// A loop that is running, on its caller's stack.
struct alignas(kLine) Team::Job {
  const Loop& loop;
  FloatModes modes = FloatModes::of_this_thread();
  uint32_t tag = 0;
  int32_t demand = 0;      // threads that it could use
  int32_t wakes = 0;       // sleepers among them
  bool is_busy = false;    // another loop is running, or has just ended
  int32_t last_slot = -1;  // of those that have a share
  bool has_sleepers = false;
  bool workers_steal = false;
  bool is_listed = false;
  int32_t workers = 0;  // that have been given to it; guarded by the team's mutex
  Job* next = nullptr;
  FirstException exception = {};
  alignas(kLine) Share share = {};  // the caller's

  void run(int32_t piece) const { loop.body(loop.user, piece); }
  void run_all(Share& own) const {
    for (int32_t piece; (piece = own.take_first(tag)) >= 0;) run(piece);
  }
};

struct alignas(kLine) Team::Slot {
  Team* team = nullptr;
  int32_t index = 0;
  std::atomic<uintptr_t> word{kIdle};
  Share share;
  // Of the job's caller until the worker has started.
  std::atomic<bool> was_asleep{false};
  std::atomic<bool> is_busy{false};       // the job came so soon that it would have found the worker looking for work
  int32_t wakes[2] = {-1, -1};            // sleepers that this one wakes
  std::atomic<int64_t> woken_ns{kNever};  // when it was last woken, until it runs

  bool is_waking(int64_t now) const { return now - woken_ns.load(std::memory_order_relaxed) < kWakeNs; }
  void wake() {
    woken_ns.store(now_ns(), std::memory_order_relaxed);
    futex_wake(word);
  }
};

Team::Team(int32_t workers, int64_t spin_ns) : spin_ns_(spin_ns) {
  const int32_t most = std::clamp(workers, 0, kMostPieces - 1);
  slots_ = std::make_unique<Slot[]>(static_cast<size_t>(most));
  threads_.reserve(static_cast<size_t>(most));
  chosen_.reserve(static_cast<size_t>(most));
  sleepers_.reserve(static_cast<size_t>(most));
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const common::SignalsBlocked blocked;
  for (int32_t i = 0; i < most; ++i) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    slot.team = this;
    slot.index = i;
    pthread_t thread;
    if (pthread_create(&thread, &attributes, &Team::enter, &slot) != 0) break;
    threads_.push_back(thread);
  }
  pthread_attr_destroy(&attributes);
}

Team::~Team() {
  for (size_t i = 0; i < threads_.size(); ++i) {
    slots_[i].word.exchange(kQuit, std::memory_order_acq_rel);
    futex_wake(slots_[i].word);
  }
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
}

void* Team::enter(void* given) {
  Slot& slot = *static_cast<Slot*>(given);
  slot.team->work(slot);
  return nullptr;
}

// ---- Callers --------------------------------------------------------------------------------------------------------

void Team::run(const Loop& loop) {
  if (loop.threads < 2 || loop.pieces < 2 || is_inside) {
    for (int32_t piece = 0; piece < loop.pieces; ++piece) loop.body(loop.user, piece);
    return;
  }
  const Inside inside;
  Job job{loop};
  claim(job);
  try {
    job.run_all(job.share);
    steal(job, 0);
  } catch (...) {
    fail(job);
  }
  if (job.is_listed) unlist(job);
  settle(job);
  demand_.fetch_sub(job.demand);
  last_end_ns_.store(now_ns(), std::memory_order_relaxed);
  callers_.fetch_sub(1);
  if (listed_.load() != 0) hand_over();
  job.exception.rethrow();
}

// Gives the job its workers and each of them its pieces.
void Team::claim(Job& job) {
  const int32_t all = workers();
  job.demand = std::min({job.loop.threads, job.loop.pieces, all + 1});
  for (int32_t i = 0; i < job.demand - 1; ++i) prefetch_to_write(&slots_[static_cast<size_t>(i)]);
  int32_t roots[kRoots];
  size_t root_count = 0;
  const int64_t idle_ns = now_ns() - last_end_ns_.load(std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    job.tag = ++tag_;
    job.is_busy = callers_.fetch_add(1) > 0 || idle_ns < spin_ns_;
    streak_ = job.is_busy && spin_ns_ > 0 ? std::min(streak_ + 1, kStreak) : 0;
    job.wakes = streak_ == kStreak ? job.demand : job.loop.wakes;
    demand_.fetch_add(job.demand);
    const int32_t most = allowance(job);
    const bool some_are_busy = choose(job, most);
    if ((some_are_busy || most < job.demand - 1) && job.workers < job.demand - 1) {
      job.is_listed = true;
      job.next = list_;
      list_ = &job;
      listed_.fetch_add(1);
      // Callers that have left since then did not see the job.
      if (const int32_t now = allowance(job); now > most) choose(job, now);
    }
    for (; root_count < std::min(sleepers_.size(), kRoots); ++root_count) roots[root_count] = sleepers_[root_count];
    assign(job);
  }
  for (size_t i = 0; i < root_count; ++i) slots_[static_cast<size_t>(roots[i])].wake();
}

// Chooses up to `most` workers; true if some are busy. Sleepers are those of them that have to be woken.
bool Team::choose(Job& job, int32_t most) {
  chosen_.clear();
  sleepers_.clear();
  bool some_are_busy = false;
  const int64_t now = now_ns();
  for (int32_t i = 0; i < workers() && static_cast<int32_t>(chosen_.size()) < most; ++i) {
    const Slot& slot = slots_[static_cast<size_t>(i)];
    const uintptr_t word = slot.word.load(std::memory_order_acquire);
    if (word == kAsleep) {
      if (!slot.is_waking(now)) {
        if (static_cast<int32_t>(sleepers_.size()) == job.wakes) continue;
        sleepers_.push_back(i);
      }
      job.has_sleepers = true;
    } else if (word != kIdle) {
      some_are_busy = true;
      continue;
    }
    chosen_.push_back(i);
  }
  job.workers = static_cast<int32_t>(chosen_.size());
  return some_are_busy;
}

// How many workers the job may have: those that other callers do not need, or an equal share.
int32_t Team::allowance(const Job& job) const {
  const int32_t all = workers() + 1;
  const int32_t callers = std::max(callers_.load(), 1);
  const int32_t others = demand_.load() - job.demand;
  return std::min(job.demand, std::max(all / callers, all - others)) - 1;
}

// The caller wakes the first sleepers, and each of these wakes two more, so that the caller can start its own work.
void Team::assign(Job& job) {
  const auto shares = static_cast<int64_t>(chosen_.size()) + 1;
  const int64_t pieces = job.loop.pieces;
  const auto begin_of = [&](int64_t share) { return static_cast<int32_t>(pieces * share / shares); };
  job.share.set(job.tag, 0, begin_of(1));
  job.last_slot = chosen_.empty() ? -1 : chosen_.back();
  job.workers_steal = pieces > shares || job.has_sleepers;
  size_t sleeper = 0;
  for (int64_t i = 1; i < shares; ++i) {
    const int32_t index = chosen_[static_cast<size_t>(i - 1)];
    Slot& slot = slots_[static_cast<size_t>(index)];
    slot.share.set(job.tag, begin_of(i), begin_of(i + 1));
    slot.is_busy.store(job.is_busy, std::memory_order_relaxed);
    slot.wakes[0] = slot.wakes[1] = -1;
    const bool is_to_be_woken = sleeper < sleepers_.size() && sleepers_[sleeper] == index;
    if (is_to_be_woken) {
      for (size_t child = 0; child < 2; ++child) {
        const size_t at = 2 * sleeper + kRoots + child;
        if (at < sleepers_.size()) slot.wakes[child] = sleepers_[at];
      }
      ++sleeper;
    }
    slot.was_asleep = slot.word.exchange(reinterpret_cast<uintptr_t>(&job), std::memory_order_acq_rel) == kAsleep;
    // It may have gone to sleep in this moment.
    if (slot.was_asleep && !is_to_be_woken && !slot.is_waking(now_ns())) slot.wake();
  }
}

// Takes pieces that other threads have not begun. Position 0 is the caller's, the next ones are those of the slots.
void Team::steal(Job& job, int32_t position) const {
  const int32_t shares = job.last_slot + 2;
  for (int32_t step = 1; step <= shares; ++step) {
    const int32_t at = (position + step) % shares;
    Share& share = at == 0 ? job.share : slots_[static_cast<size_t>(at - 1)].share;
    for (int32_t piece; (piece = share.take_last(job.tag)) >= 0;) job.run(piece);
  }
}

// Called in a catch block: keeps the exception, and discards the pieces that have not begun.
void Team::fail(Job& job) const noexcept {
  job.exception.keep();
  job.share.take_all(job.tag);
  for (int32_t i = 0; i <= job.last_slot; ++i) slots_[static_cast<size_t>(i)].share.take_all(job.tag);
}

void Team::unlist(Job& job) {
  const std::lock_guard lock(mutex_);
  Job** at = &list_;
  while (*at != &job) at = &(*at)->next;
  *at = job.next;
  listed_.fetch_sub(1, std::memory_order_relaxed);
}

// After all pieces have been taken: takes the job back from workers that have not started, and waits for the rest.
void Team::settle(Job& job) {
  const auto self = reinterpret_cast<uintptr_t>(&job);
  const int32_t slots = job.is_listed ? workers() : job.last_slot + 1;
  for (int32_t i = 0; i < slots; ++i) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    uintptr_t word = slot.word.load(std::memory_order_acquire);
    if ((word & ~kFlags) != self) continue;
    if (word == self && slot.word.compare_exchange_strong(word, slot.was_asleep ? kAsleep : kIdle,
                                                          std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    const auto has_finished = [&] { return (slot.word.load(std::memory_order_acquire) & ~kFlags) != self; };
    if (spin(spin_ns_, has_finished)) continue;
    word = self | kStarted;
    slot.word.compare_exchange_strong(word, self | kStarted | kAwaited, std::memory_order_acq_rel);
    while (!has_finished()) futex_wait(slot.word, self | kStarted | kAwaited);
  }
}

bool Team::reserve() {
  if (is_inside) return false;
  const std::lock_guard lock(mutex_);
  if (callers_.load(std::memory_order_acquire) != 0) return false;
  for (int32_t i = 0; i < workers(); ++i) {
    std::atomic<uintptr_t>& word = slots_[static_cast<size_t>(i)].word;
    // Without callers a worker is idle or asleep, or goes to sleep.
    uintptr_t state = word.load(std::memory_order_relaxed);
    while (!word.compare_exchange_weak(state, kReserved, std::memory_order_acq_rel)) {
    }
  }
  callers_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Team::unreserve() {
  const std::lock_guard lock(mutex_);
  for (int32_t i = 0; i < workers(); ++i) slots_[static_cast<size_t>(i)].word.store(kAsleep, std::memory_order_release);
  callers_.fetch_sub(1, std::memory_order_relaxed);
}

// ---- Workers --------------------------------------------------------------------------------------------------------

void Team::work(Slot& slot) {
  is_inside = true;
  int64_t spin_ns = spin_ns_;
  for (;;) {
    uintptr_t word = await(slot, spin_ns);
    if (word == kQuit) return;
    // Its caller may have taken it back.
    if ((word & kStarted) == 0 && !slot.word.compare_exchange_strong(word, word | kStarted, std::memory_order_acq_rel))
      continue;
    do {
      Job& job = *reinterpret_cast<Job*>(slot.word.load(std::memory_order_relaxed) & ~kFlags);
      for (int32_t& sleeper : slot.wakes) {
        if (sleeper >= 0) slots_[static_cast<size_t>(sleeper)].wake();
        sleeper = -1;
      }
      if (FloatModes::of_this_thread() != job.modes) job.modes.set();
      try {
        job.run_all(slot.share);
        if (job.workers_steal || job.is_listed) steal(job, slot.index + 1);
      } catch (...) {
        fail(job);
      }
      if ((slot.word.exchange(kIdle, std::memory_order_acq_rel) & kAwaited) != 0) futex_wake(slot.word);
    } while (join_another(slot, kIdle));
  }
}

// True if the worker, if it is in `state`, has been added to a job that could use more. The caller holds the mutex.
bool Team::add_to_another(Slot& slot, uintptr_t state, uintptr_t flags) {
  if (slot.word.load(std::memory_order_acquire) != state) return false;  // somebody else has given it work
  Job* neediest = nullptr;
  for (Job* job = list_; job != nullptr; job = job->next) {
    if (job->workers < allowance(*job) && (neediest == nullptr || job->workers < neediest->workers)) neediest = job;
  }
  if (neediest == nullptr) return false;
  slot.share.set(neediest->tag, 0, 0);
  slot.was_asleep = state == kAsleep;
  if (slot.was_asleep) slot.is_busy.store(true, std::memory_order_relaxed);
  slot.wakes[0] = slot.wakes[1] = -1;
  slot.word.exchange(reinterpret_cast<uintptr_t>(neediest) | flags, std::memory_order_acq_rel);
  ++neediest->workers;
  return true;
}

bool Team::join_another(Slot& slot, uintptr_t state) {
  if (listed_.load() == 0) return false;
  const std::lock_guard lock(mutex_);
  return add_to_another(slot, state, kStarted);
}

// After a caller has left: sleeping workers help other callers. Spinning workers do so if no new loop begins.
void Team::hand_over() {
  const std::lock_guard lock(mutex_);
  for (int32_t i = 0; i < workers(); ++i) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    if (slot.word.load(std::memory_order_relaxed) != kAsleep) continue;
    if (!add_to_another(slot, kAsleep, 0)) return;
    slot.wake();
  }
}

// Waits for the worker's next job or kQuit. After an unsuccessful spin a worker spins for a shorter time, until work
// arrives again within the full time. The time is measured to the hand-out of work, not to the wake-up: the system may
// take longer than the whole spin time to run a woken worker, which would then sleep before each loop of a busy
// program.
uintptr_t Team::await(Slot& slot, int64_t& spin_ns) {
  uintptr_t word = kIdle;
  const auto has_news = [&] { return (word = slot.word.load(std::memory_order_acquire)) != kIdle; };
  for (;;) {
    if (!look(spin_ns, has_news)) {
      word = kIdle;
      if (slot.word.compare_exchange_strong(word, kAsleep)) {
        // The callers that it has worked for seem to stay away.
        if (join_another(slot, kAsleep)) return slot.word.load(std::memory_order_relaxed);
        word = kAsleep;
      }
    }
    if (word != kAsleep && word != kReserved) return word;
    bool is_woken = false;
    while (word == kAsleep || word == kReserved) {
      is_woken = futex_wait(slot.word, word);
      slot.woken_ns.store(kNever, std::memory_order_relaxed);
      word = slot.word.load(std::memory_order_acquire);
      if (is_woken && word == kAsleep) break;
    }
    if (word != kAsleep) {
      const bool is_busy = slot.is_busy.load(std::memory_order_relaxed);
      spin_ns = is_busy ? spin_ns_ : std::max(spin_ns / 2, spin_ns_ / kLeastSpinFraction);
      return word;
    }
    // It came too late, and its caller has taken the job back. The next one will find it awake.
    spin_ns = spin_ns_;
    slot.word.compare_exchange_strong(word, kIdle, std::memory_order_acq_rel);
  }
}

// Spins on `has_news` until no loop has been running for spin_ns, so that a worker that finishes early does not use up
// its time while others still work.
template <class F>
bool Team::look(int64_t spin_ns, const F& has_news) const {
  const int64_t start = now_ns(), last = start + kMostSpins * spin_ns_;
  for (int64_t until = start + spin_ns, now = start; now < until;) {
    if (spin(until - now, has_news)) return true;
    now = now_ns();
    if (listed_.load(std::memory_order_relaxed) != 0) break;
    const int64_t end =
        callers_.load(std::memory_order_relaxed) != 0 ? now : last_end_ns_.load(std::memory_order_relaxed);
    until = std::min(end + spin_ns, last);
  }
  return has_news();
}

}  // namespace compute::cpu
