// SPDX-License-Identifier: Apache-2.0
// The CPU plugin's team of threads.
#include "plugins/cpu/threads/team.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace compute::cpu {
namespace {

constexpr int32_t kWorkers = 3;
constexpr int64_t kSpinNs = 50'000;

template <class F>
Loop loop_of(int32_t pieces, int32_t threads, int32_t wakes, const F& f) {
  return {pieces, threads, wakes, [](const void* user, int64_t piece) { (*static_cast<const F*>(user))(piece); }, &f};
}

template <class F>
void run(Team& team, int32_t pieces, const F& f) {
  team.run(loop_of(pieces, team.workers() + 1, team.workers(), f));
}

// Waits until `condition` holds, and gives other threads the processor meanwhile.
template <class F>
void wait_until(const F& condition) {
  while (!condition()) std::this_thread::yield();
}

// Runs one piece on each of the team's threads at the same time.
template <class F>
void run_on_all(Team& team, const F& f) {
  std::atomic<int32_t> here{0};
  run(team, team.workers() + 1, [&](int64_t piece) {
    here.fetch_add(1);
    wait_until([&] { return here.load() == team.workers() + 1; });
    f(piece);
  });
}

// For the letter, see proc(5). A thread that has ended has none, and waits for nothing.
bool sleeps(const std::filesystem::path& task) {
  std::ifstream file(task / "stat");
  std::string text;
  std::getline(file, text);
  const size_t end_of_name = text.rfind(')');
  return end_of_name == std::string::npos || text.compare(end_of_name, 4, ") S ") == 0;
}

// Waits until all other threads of the process sleep: until then a worker may still be looking for work, also for long
// where it gets no processor.
void let_workers_sleep() {
  const std::string own = std::to_string(gettid());
  wait_until([&] {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      if (task.path().filename() != own && !sleeps(task.path())) return false;
    }
    return true;
  });
}

TEST(CpuTeam, RunsEachPieceOnce) {
  Team team(kWorkers, kSpinNs);
  ASSERT_EQ(team.workers(), kWorkers);
  for (const int32_t pieces : {0, 1, 2, 3, 4, 5, 16, 17, 1000, Team::kMostPieces}) {
    std::vector<std::atomic<int32_t>> runs(static_cast<size_t>(pieces));
    run(team, pieces, [&](int64_t piece) { runs[static_cast<size_t>(piece)].fetch_add(1, std::memory_order_relaxed); });
    for (const auto& count : runs) ASSERT_EQ(count.load(), 1) << pieces;
  }
}

TEST(CpuTeam, WhatPiecesWroteIsSeenAfterwards) {
  Team team(kWorkers, kSpinNs);
  std::vector<int64_t> values(64);  // plain memory, for the thread sanitizer
  for (int64_t round = 1; round <= 2000; ++round) {
    run(team, 64, [&](int64_t piece) { values[static_cast<size_t>(piece)] += piece + round; });
    for (int64_t piece = 0; piece < 64; ++piece) {
      ASSERT_EQ(values[static_cast<size_t>(piece)], piece * round + round * (round + 1) / 2);
    }
    if (round % 500 == 0) let_workers_sleep();
  }
}

TEST(CpuTeam, EveryThreadTakesPart) {
  Team team(kWorkers, kSpinNs);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread::id> threads(kWorkers + 1);
    run_on_all(team, [&](int64_t piece) { threads[static_cast<size_t>(piece)] = std::this_thread::get_id(); });
    EXPECT_EQ(std::set<std::thread::id>(threads.begin(), threads.end()).size(), threads.size());
    EXPECT_EQ(threads[0], std::this_thread::get_id());  // the first piece is the caller's
    let_workers_sleep();
  }
}

TEST(CpuTeam, APieceGoesToTheSameThreadEachTime) {
  Team team(kWorkers, kSpinNs);
  std::vector<std::thread::id> first(kWorkers + 1), later(kWorkers + 1);
  run_on_all(team, [&](int64_t piece) { first[static_cast<size_t>(piece)] = std::this_thread::get_id(); });
  for (int round = 0; round < 100; ++round) {
    if (round == 50) let_workers_sleep();
    run_on_all(team, [&](int64_t piece) { later[static_cast<size_t>(piece)] = std::this_thread::get_id(); });
    ASSERT_EQ(first, later) << round;
  }
}

TEST(CpuTeam, NoMoreThreadsThanTheLoopAllows) {
  Team team(kWorkers, kSpinNs);
  for (const int32_t allowed : {1, 2, 3}) {
    for (int round = 0; round < 50; ++round) {
      std::atomic<int32_t> inside{0}, most{0};
      const auto body = [&](int64_t) {
        const int32_t now = inside.fetch_add(1) + 1;
        for (int32_t seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        inside.fetch_sub(1);
      };
      team.run(loop_of(20, allowed, allowed, body));
      ASSERT_LE(most.load(), allowed);
    }
  }
}

TEST(CpuTeam, SleepersAreLeftAsleepByWorkThatIsNotWorthIt) {
  Team team(kWorkers, 0);
  let_workers_sleep();
  const auto caller = std::this_thread::get_id();
  const auto body = [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); };
  team.run(loop_of(8, kWorkers + 1, 0, body));
}

TEST(CpuTeam, ManySmallLoopsOneAfterAnotherWakeSleepers) {
  Team team(kWorkers, 10 * kSpinNs);
  let_workers_sleep();
  std::atomic<bool> has_helped{false};
  const auto caller = std::this_thread::get_id();
  const auto body = [&](int64_t) {
    if (std::this_thread::get_id() != caller) has_helped = true;
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!has_helped && std::chrono::steady_clock::now() < end) team.run(loop_of(8, kWorkers + 1, 0, body));
  EXPECT_TRUE(has_helped);
}

TEST(CpuTeam, ANestedLoopRunsOnItsCaller) {
  Team team(kWorkers, kSpinNs);
  std::atomic<int32_t> runs{0};
  run_on_all(team, [&](int64_t) {
    const auto outer = std::this_thread::get_id();
    run(team, 10, [&](int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      runs.fetch_add(1);
    });
    EXPECT_FALSE(team.reserve());
  });
  EXPECT_EQ(runs.load(), 10 * (kWorkers + 1));
  run_on_all(team, [](int64_t) {});  // and loops are shared again
}

TEST(CpuTeam, ACallerDoesNotWaitForWorkersThatHaveNotStarted) {
  Team team(1, kSpinNs);
  // The only worker is kept by another caller's loop, until this one has ended without it.
  std::atomic<bool> ended{false};
  std::atomic<int32_t> held{0};
  std::thread other([&] {
    run(team, 2, [&](int64_t) {
      held.fetch_add(1);
      wait_until([&] { return ended.load(); });
    });
  });
  wait_until([&] { return held.load() == 2; });
  int32_t runs = 0;
  const auto caller = std::this_thread::get_id();
  run(team, 5, [&](int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++runs;
  });
  EXPECT_EQ(runs, 5);
  ended = true;
  other.join();
}

TEST(CpuTeam, AWorkerJoinsACallerThatGotNone) {
  Team team(1, kSpinNs);
  std::atomic<bool> release{false};
  std::atomic<int32_t> held{0};
  std::thread other([&] {
    run(team, 2, [&](int64_t) {
      held.fetch_add(1);
      wait_until([&] { return release.load(); });
    });
  });
  wait_until([&] { return held.load() == 2; });
  // The caller begins alone; both its pieces can only end once a second thread has come.
  std::atomic<int32_t> here{0};
  run(team, 2, [&](int64_t) {
    here.fetch_add(1);
    release = true;
    wait_until([&] { return here.load() == 2; });
  });
  EXPECT_EQ(here.load(), 2);
  other.join();
}

TEST(CpuTeam, CallersShareTheWorkers) {
  Team team(kWorkers, kSpinNs);
  // All threads are in the first caller's loop when the second one comes. Its workers leave then, and it stays.
  std::atomic<int32_t> first{0}, second{0}, most{0};
  std::atomic<bool> has_ended{false};
  std::thread other([&] {
    wait_until([&] { return first.load() == kWorkers + 1; });
    run(team, 40, [&](int64_t) {
      const int32_t here = second.fetch_add(1) + 1;
      for (int32_t seen = most.load(); seen < here && !most.compare_exchange_weak(seen, here);) {
      }
      wait_until([&] { return most.load() == 2; });
      second.fetch_sub(1);
    });
    has_ended = true;
  });
  run_on_all(team, [&](int64_t piece) {
    first.fetch_add(1);
    wait_until([&] { return has_ended.load() || (piece != 0 && second.load() > 0); });
  });
  other.join();
  EXPECT_EQ(most.load(), 2) << "of " << kWorkers + 1 << " threads for two callers";
}

TEST(CpuTeam, ReservedWorkersGetNoWork) {
  Team team(kWorkers, kSpinNs);
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(team.reserve());
    EXPECT_FALSE(team.reserve());
    const auto caller = std::this_thread::get_id();
    run(team, 8, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
    team.unreserve();
    run_on_all(team, [](int64_t) {});
    if (round % 7 == 0) let_workers_sleep();
  }
}

TEST(CpuTeam, PiecesComputeInTheModesOfTheirCaller) {
  Team team(kWorkers, kSpinNs);
  for (const int mode : {FE_UPWARD, FE_TONEAREST, FE_DOWNWARD}) {
    std::fesetround(mode);
    run_on_all(team, [&](int64_t) { EXPECT_EQ(std::fegetround(), mode); });
  }
  std::fesetround(FE_TONEAREST);
}

TEST(CpuTeam, WithoutWorkNothingRuns) {
  Team team(kWorkers, kSpinNs);
  run_on_all(team, [](int64_t) {});
  let_workers_sleep();
  // A virtual machine may count time that its host takes, so the least of several counts.
  double least = 1e9;
  for (int round = 0; round < 100 && least > 10; ++round) {
    timespec before{}, after{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const double used = static_cast<double>(after.tv_sec - before.tv_sec) * 1e3 +
                        static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-6;
    least = std::min(least, used);
  }
  EXPECT_LE(least, 10) << "milliseconds of processor time, of 100 that passed";
}

TEST(CpuTeam, ManyCallersAtOnce) {
  Team team(kWorkers, kSpinNs);
  constexpr int kCallers = 6;
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      std::vector<int64_t> sums(97);
      for (int64_t round = 0; round < 400; ++round) {
        const auto pieces = static_cast<int32_t>(1 + (caller * 31 + round * 7) % 97);
        std::fill(sums.begin(), sums.end(), 0);
        const auto body = [&](int64_t piece) { sums[static_cast<size_t>(piece)] += piece + 1; };
        team.run(loop_of(pieces, static_cast<int32_t>(2 + round % kWorkers), static_cast<int32_t>(round % 4), body));
        int64_t sum = 0;
        for (const int64_t value : sums) sum += value;
        if (sum != int64_t{pieces} * (pieces + 1) / 2) ADD_FAILURE() << caller << " " << round;
        total.fetch_add(1);
        if (round % 100 == 99) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (round % 50 == 0 && team.reserve()) team.unreserve();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), kCallers * 400);
}

// ---- Pieces that throw ----------------------------------------------------------------------------------------------

// Runs a loop in which piece `at` throws, and expects its exception.
void expect_throws(Team& team, int32_t pieces, int64_t at, std::vector<std::atomic<int32_t>>& runs) {
  try {
    run(team, pieces, [&](int64_t piece) {
      runs[static_cast<size_t>(piece)].fetch_add(1);
      if (piece == at) throw std::runtime_error("piece " + std::to_string(at));
    });
    ADD_FAILURE() << "piece " << at << " of " << pieces << " did not throw";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), "piece " + std::to_string(at));
  }
}

TEST(CpuTeam, TheCallerGetsWhatAPieceThrows) {
  Team team(kWorkers, kSpinNs);
  for (const int32_t pieces : {2, 4, 40}) {
    for (int32_t at = 0; at < pieces; ++at) {
      std::vector<std::atomic<int32_t>> runs(static_cast<size_t>(pieces));
      expect_throws(team, pieces, at, runs);
      EXPECT_EQ(runs[static_cast<size_t>(at)].load(), 1);
      for (const auto& count : runs) EXPECT_LE(count.load(), 1);
      if (at % 7 == 0) let_workers_sleep();
    }
    run_on_all(team, [](int64_t) {});  // the team is whole
  }
}

TEST(CpuTeam, APieceOfEachThreadThrowsAtTheSameTime) {
  Team team(kWorkers, kSpinNs);
  for (int round = 0; round < 50; ++round) {
    std::set<std::string> thrown;
    std::mutex mutex;
    std::string caught;
    try {
      run_on_all(team, [&](int64_t piece) {
        const std::string what = "round " + std::to_string(round) + ", piece " + std::to_string(piece);
        {
          const std::lock_guard lock(mutex);
          thrown.insert(what);
        }
        throw std::runtime_error(what);
      });
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(thrown.size(), kWorkers + 1u);
    EXPECT_EQ(thrown.count(caught), 1u) << caught;
    run_on_all(team, [](int64_t) {});
  }
}

TEST(CpuTeam, PiecesThatNobodyHasBegunAreLeftOut) {
  Team team(kWorkers, kSpinNs);
  // Each thread throws at its first piece, so that none begins a second.
  std::atomic<int32_t> runs{0};
  const auto body = [&](int64_t) {
    runs.fetch_add(1);
    throw std::bad_alloc();
  };
  EXPECT_THROW(run(team, Team::kMostPieces, body), std::bad_alloc);
  EXPECT_GE(runs.load(), 1);
  EXPECT_LE(runs.load(), kWorkers + 1);
}

TEST(CpuTeam, WithoutWorkersTheCallerGetsItToo) {
  Team team(0, 0);
  std::vector<std::atomic<int32_t>> runs(8);
  expect_throws(team, 8, 3, runs);
  // Nor is a nested loop's exception lost.
  Team other(kWorkers, kSpinNs);
  EXPECT_THROW(run(other, 4, [&](int64_t) { run(other, 4, [](int64_t) { throw std::bad_alloc(); }); }), std::bad_alloc);
  run_on_all(other, [](int64_t) {});
}

// A job that waits for more workers is listed, and must not stay so.
TEST(CpuTeam, ALoopThatFailsBesideOthersLeavesNothingBehind) {
  Team team(kWorkers, kSpinNs);
  constexpr int kCallers = 4;
  std::atomic<int32_t> failures{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      std::vector<int64_t> sums(64);
      for (int round = 0; round < 300; ++round) {
        const bool fails = (round + caller) % 3 == 0;
        std::fill(sums.begin(), sums.end(), 0);
        try {
          run(team, 64, [&](int64_t piece) {
            sums[static_cast<size_t>(piece)] += piece + 1;
            if (fails && piece % 8 == caller) throw std::runtime_error(std::to_string(caller));
          });
          int64_t sum = 0;
          for (const int64_t value : sums) sum += value;
          if (fails || sum != 64 * 65 / 2) ADD_FAILURE() << caller << " " << round << " " << sum;
        } catch (const std::runtime_error& error) {
          if (!fails || error.what() != std::to_string(caller)) ADD_FAILURE() << caller << " " << error.what();
          failures.fetch_add(1);
        }
        if (round % 50 == 0 && team.reserve()) team.unreserve();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(failures.load(), kCallers * 100);
  ASSERT_TRUE(team.reserve());  // no thread counts as a caller any more
  team.unreserve();
  run_on_all(team, [](int64_t) {});
}

TEST(CpuTeam, TeamsComeAndGo) {
  for (int round = 0; round < 30; ++round) {
    Team team(round % 5, round % 2 == 0 ? kSpinNs : 0);
    std::atomic<int32_t> runs{0};
    if (round % 3 != 0) run(team, 9, [&](int64_t) { runs.fetch_add(1); });
    EXPECT_EQ(runs.load(), round % 3 != 0 ? 9 : 0);
  }
}

TEST(CpuTeam, AChildMakesANewOne) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer starts no threads after a fork";
#endif
  auto team = std::make_unique<Team>(kWorkers, kSpinNs);
  run_on_all(*team, [](int64_t) {});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    static_cast<void>(team.release());  // its threads do not exist here
    Team own(kWorkers, kSpinNs);
    std::atomic<int32_t> runs{0};
    run_on_all(own, [&](int64_t) { runs.fetch_add(1); });
    _exit(runs.load() == kWorkers + 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  run_on_all(*team, [](int64_t) {});
}

}  // namespace
}  // namespace compute::cpu
