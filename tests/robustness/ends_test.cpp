// SPDX-License-Identifier: Apache-2.0
// The promises of docs/contract.md about exit and fork, on every available device: with work in flight and graphs
// running, with empty and filled caches. COMPUTE_TEST_ROUNDS repeats each case; COMPUTE_TEST_DEVICES narrows the
// devices.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "robustness.hpp"
#include "tests/dlpack/dlpack.hpp"

namespace robustness {
namespace {

constexpr int kNoSuchDevice = 77;
constexpr const char* kKept = "what stdio had not written yet";

int rounds() {
  const char* text = std::getenv("COMPUTE_TEST_ROUNDS");
  return text != nullptr ? std::max(1, std::atoi(text)) : 1;
}

// A temporary cache folder for drivers and plugins, deleted with the object.
class CacheFolder {
 public:
  CacheFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "compute-ends-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  void use() const {
    for (const char* name : {"COMPUTE_CACHE_DIR", "POCL_CACHE_DIR", "CUDA_CACHE_PATH"}) setenv(name, path_.c_str(), 1);
  }

 private:
  std::string path_;
};

// What a process does before it ends: never released, as in a program that just returns.
struct Workload {
  compute_device* device = nullptr;
  compute_stream* stream = nullptr;
  compute_tensor* x = nullptr;

  explicit Workload(const char* name) {
    std::printf("%s", kKept);
    if (code_of(compute_device_open(name, &device)) != COMPUTE_OK) _exit(kNoSuchDevice);
    stream = make_stream(device).release();
    x = make_full(device, {20000}, 0.5f).release();
  }

  void run(const char* op, compute_stream* on) const {
    compute_tensor* y = nullptr;
    // Refused when another thread ends the process.
    const compute_error_code code = code_of(run_op(op, on, {x}, &y));
    EXPECT_TRUE(code == COMPUTE_OK || code == COMPUTE_ERROR_SHUT_DOWN) << op << ": " << code;
  }
  // Ops that need a kernel each.
  void queue(int count) const {
    for (int i = 0; i < count; ++i) run(kOps[static_cast<size_t>(i) % std::size(kOps)], stream);
  }
  void queue_graph(int runs) const {
    compute_graph* graph = nullptr;
    EXPECT_OK(compute_graph_begin(stream, nullptr));
    compute_tensor *y = nullptr, *z = nullptr;
    EXPECT_OK(run_op("exp", stream, {x}, &y));
    EXPECT_OK(run_op("sqrt", stream, {y}, &z));
    EXPECT_OK(compute_graph_end(stream, &graph));
    for (int i = 0; i < runs; ++i) EXPECT_OK(compute_graph_run(graph, stream));
  }

  static constexpr const char* kOps[] = {"exp", "sin", "cos", "tanh", "sqrt", "log", "erf", "sinh"};
};

// A different moment in each round.
void sleep_before_the_end(int round) { std::this_thread::sleep_for(std::chrono::milliseconds(round * 7 % 60)); }

class Ends : public testing::TestWithParam<const char*> {
 protected:
  // Runs `body(device name, round)` in a child process, which exits when the body returns.
  void expect_clean_end(const std::function<void(const char*, int)>& body, int cases = rounds(), bool cold = true) {
    double longest = 0;
    CacheFolder kept;
    for (int round = 0; round < cases; ++round) {
      const CacheFolder own;
      const auto begin = std::chrono::steady_clock::now();
      const Outcome outcome = run_in_child([&] {
        (cold ? own : kept).use();
        body(GetParam(), round);
      });
      if (WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == kNoSuchDevice)
        GTEST_SKIP() << "there is no " << GetParam();
      ASSERT_TRUE(outcome.exited(0)) << "round " << round << ", status " << outcome.status << "\n" << outcome.output;
      ASSERT_NE(outcome.output.find(kKept), std::string::npos) << "round " << round << ": what stdio held was lost";
      longest = std::max(longest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    if (cases > 1) std::printf("%d rounds, the longest of %.2f s\n", cases, longest);
  }

  void SetUp() override {
    use_plugins({"minimal"});
    const char* wanted = std::getenv("COMPUTE_TEST_DEVICES");
    if (wanted != nullptr &&
        ("," + std::string(wanted) + ",").find("," + std::string(GetParam()) + ",") == std::string::npos) {
      GTEST_SKIP() << "COMPUTE_TEST_DEVICES does not name " << GetParam();
    }
  }
};

INSTANTIATE_TEST_SUITE_P(On, Ends, testing::Values("cpu", "minimal0", "opencl0:0", "cuda0"), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
});

// ---- From where -----------------------------------------------------------------------------------------------------

TEST_P(Ends, ReturnFromMainWithWorkInFlight) {
  expect_clean_end([](const char* name, int round) {
    const Workload work(name);
    work.queue(1 + round % 4);
    if (round % 2 == 1) sleep_before_the_end(round);
  });
}

TEST_P(Ends, ReturnFromMainWithFilledCaches) {
  expect_clean_end(
      [](const char* name, int round) {
        const Workload work(name);
        work.queue(4);
        if (round % 2 == 0) {
          EXPECT_OK(compute_stream_synchronize(work.stream));
        }
      },
      rounds() + 1, false);
}

TEST_P(Ends, ReturnFromMainWithAGraphRunning) {
  expect_clean_end([](const char* name, int) { Workload(name).queue_graph(20); });
}

// The device takes work and never reports that it ended. COMPUTE_BETWEEN_CELL has the kinds.
TEST_P(Ends, ExitWithADeviceThatHangs) {
  expect_clean_end([](const char* name, int) {
    constexpr int kHang = 5;
    static std::atomic<int> armed{0};
    const std::string_view device(name);
    put_between(
        device.starts_with("minimal") ? "minimal" : std::string(device.substr(0, device.find_first_of("0123456789"))),
        &armed);
    const Workload work(name);
    work.queue(1);
    EXPECT_OK(compute_stream_synchronize(work.stream));
    armed = kHang;
    work.queue(1);
    EXPECT_EQ(armed, 0);
    EXPECT_OK(compute_stream_notify(
        work.stream, [](const compute_error*, void*) {}, nullptr));
  });
}

// ---- What comes after -----------------------------------------------------------------------------------------------

const Workload* at_the_end = nullptr;

// An op and a read while the process ends: they work, or are refused.
void use_device_at_the_end() {
  Tensor y;
  const compute_error_code code = code_of(run_op("exp", nullptr, {at_the_end->x}, y.out()));
  if (code == COMPUTE_ERROR_SHUT_DOWN) return;
  if (code != COMPUTE_OK) _exit(3);
  float values[20000];
  const compute_error_code read = code_of(compute_tensor_read(y, values, sizeof values));
  if (read == COMPUTE_ERROR_SHUT_DOWN) return;
  if (read != COMPUTE_OK || values[19999] < 1.6f || values[19999] > 1.7f) _exit(4);
}

struct UsesDeviceWhenDestroyed {
  bool armed = false;
  ~UsesDeviceWhenDestroyed() {
    if (armed) use_device_at_the_end();
  }
};

TEST_P(Ends, OpsInExitHandlersAndDestructors) {
  expect_clean_end([](const char* name, int round) {
    std::atexit(use_device_at_the_end);  // registered before the library's own handler
    static UsesDeviceWhenDestroyed early;
    thread_local UsesDeviceWhenDestroyed of_thread;
    of_thread.armed = early.armed = true;
    const Workload* work = at_the_end = new Workload(name);
    std::atexit(use_device_at_the_end);  // and after it
    static UsesDeviceWhenDestroyed late;
    late.armed = true;
    std::thread([] {
      thread_local UsesDeviceWhenDestroyed of_other;  // made before the library's own for this thread
      of_other.armed = true;
      use_device_at_the_end();
    }).join();
    work->run("exp", nullptr);
    if (round % 2 == 1) work->queue(2);
  });
}

// ---- Shutdown -------------------------------------------------------------------------------------------------------

TEST_P(Ends, ShutdownBesideEveryOtherCall) {
  expect_clean_end([](const char* name, int round) {
    const Workload work(name);
    static std::atomic<bool> is_over;
    is_over = false;
    const auto repeat = [&](auto call) {
      return std::thread([call] {
        while (!is_over) {
          const compute_error_code code = call();
          if (code != COMPUTE_OK && code != COMPUTE_ERROR_SHUT_DOWN) _exit(3);
        }
      });
    };
    std::vector<std::thread> threads;
    threads.push_back(repeat([name] {
      Device device;
      return code_of(compute_device_open(name, device.out()));
    }));
    threads.push_back(repeat([] {
      compute_text* text = nullptr;
      const compute_error_code code = code_of(compute_placement_report(COMPUTE_FORMAT_JSON, &text));
      compute_text_free(text);
      return code;
    }));
    threads.push_back(repeat([&work] {
      Stream stream;
      const compute_error_code code = code_of(compute_stream_create(work.device, nullptr, stream.out()));
      Tensor y;
      return code != COMPUTE_OK ? code : code_of(run_op("exp", stream, {work.x}, y.out()));
    }));
    threads.push_back(repeat([&work] { return code_of(compute_device_synchronize(work.device)); }));
    threads.push_back(repeat([&work] {
      return code_of(compute_stream_notify(
          work.stream, [](const compute_error*, void*) {}, nullptr));
    }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + round % 5 * 10));
    std::vector<std::thread> enders;
    std::atomic<int> closed = 0;
    for (int i = 0; i < 8; ++i) {
      enders.emplace_back([&] {
        int32_t drained = -1;
        EXPECT_OK(compute_shutdown(COMPUTE_TIMEOUT_NONE, &drained));
        closed += drained;
      });
    }
    for (std::thread& ender : enders) ender.join();
    EXPECT_EQ(closed, 8);
    is_over = true;
    for (std::thread& thread : threads) thread.join();
  });
}

// ---- Fork -----------------------------------------------------------------------------------------------------------

// What a child of the workload's process finds: an exit code, 0 if all is as promised. The cpu works there, other
// devices say FORKED.
int use_device_in_child(const char* name, const Workload& work) {
  const bool works = std::string_view(name) == "cpu";
  const compute_error_code wanted = works ? compute_error_code{COMPUTE_OK} : compute_error_code{COMPUTE_ERROR_FORKED};
  Tensor x, y, z;
  float values[20000] = {};
  const std::vector<float> halves(20000, 0.5f);
  const int64_t shape[] = {20000};
  if (code_of(compute_tensor_from_host(work.device, COMPUTE_DTYPE_FLOAT32, 1, shape, halves.data(), x.out())) != wanted)
    return 10;
  if (code_of(run_op("exp", nullptr, {work.x}, y.out())) != wanted) return 11;
  if (code_of(compute_tensor_read(work.x, values, sizeof values)) != wanted) return 12;
  Device again;
  if (code_of(compute_device_open(name, again.out())) != wanted) return 13;
  compute_text* text = nullptr;
  if (code_of(compute_config_describe(COMPUTE_FORMAT_TEXT, &text)) != COMPUTE_OK) return 14;
  compute_text_free(text);
  if (!works) return 0;
  Stream stream;
  if (code_of(compute_stream_create(work.device, nullptr, stream.out())) != COMPUTE_OK) return 15;
  if (code_of(run_op("exp", stream, {y}, z.out())) != COMPUTE_OK) return 16;
  if (code_of(compute_tensor_read(z, values, sizeof values)) != COMPUTE_OK) return 17;
  return values[19999] > 5.1f && values[19999] < 5.3f ? 0 : 18;
}

// Between calls, while work is queued and the library's own threads exist.
TEST_P(Ends, ForkBetweenCalls) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer's allocator may stay locked in the child of a process with threads";
  expect_clean_end([](const char* name, int) {
    const Workload work(name);
    work.run("exp", nullptr);
    EXPECT_OK(compute_stream_notify(
        work.stream, [](const compute_error*, void*) {}, nullptr));
    std::fflush(nullptr);
    for (int i = 0; i < 5; ++i) {
      work.queue(2);
      const pid_t child = fork();
      if (child == 0) {
        alarm(120);
        _exit(use_device_in_child(name, work));
      }
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "fork " << i << ", status " << status;
    }
  });
}

// ---- Only the library ------------------------------------------------------------------------------------------

ISOLATED_TEST(EndsOfCalls, ANotificationWithoutAThreadIsRefusedWhole) {
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  Stream stream = make_stream(device);
  static std::atomic<int> calls = 0;
  const auto count = [](const compute_error*, void*) { ++calls; };
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 46), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  Error refused(compute_stream_notify(stream, count, nullptr));
  EXPECT_NE(refused, nullptr);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_OK(compute_stream_notify(stream, count, nullptr));  // that of before is not called with it
  stream.reset();
  int32_t drained = 0;
  EXPECT_OK(compute_shutdown(COMPUTE_TIMEOUT_NONE, &drained));
  EXPECT_EQ(drained, 1);
  EXPECT_EQ(calls, 1);
}

// A thread that waits at the limit of submissions does not block other threads.
ISOLATED_TEST(EndsOfCalls, LimitsOfTimeHoldBesideAThreadThatIsHeldBack) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer takes too long for as many submissions";
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  const Stream stream = make_stream(device);
  const Tensor x = make_full(device, {2000, 200}, 1.0f);
  std::atomic<int64_t> submitted = 0;
  std::thread feeder([&] {
    Tensor y;
    EXPECT_OK(run_op("erf", stream, {x}, y.out()));
    compute_tensor* into = y;
    while (code_of(run_op("erf", stream, {x}, &into)) == COMPUTE_OK) ++submitted;
  });
  while (submitted < 4090) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  int32_t reached = -1;
  EXPECT_OK(compute_stream_wait_for(stream, 1'000'000, &reached));
  EXPECT_EQ(reached, 0);  // it came back long before the work was done
  int32_t drained = -1;
  EXPECT_OK(compute_shutdown(1'000'000, &drained));
  EXPECT_EQ(drained, 0);
  std::fflush(nullptr);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

ISOLATED_TEST(EndsOfCalls, ExportedMemoryOutlivesShutdown) {
  for (const char* name : devices_with_ops()) {
    if (std::string_view(name) != "cpu") continue;
    const Device device = open(name);
    Tensor x = make_full(device, {1 << 20}, 3.0f);
    DLManagedTensorVersioned* managed = nullptr;
    ASSERT_OK(compute_tensor_to_dlpack(x, -1, &managed));
    x.reset();
    int32_t drained = 0;
    EXPECT_OK(compute_shutdown(COMPUTE_TIMEOUT_NONE, &drained));
    EXPECT_EQ(drained, 1);
    float* values = static_cast<float*>(managed->dl_tensor.data);
    EXPECT_EQ(values[0] + values[(1 << 20) - 1], 6.0f);
    values[5] = 1;
    managed->deleter(managed);
  }
}

ISOLATED_TEST(EndsOfCalls, ShutdownAgainSaysTheSame) {
  use_plugins({"minimal"});
  const Workload work("minimal0");
  work.queue(2);
  int32_t drained = -1;
  EXPECT_OK(compute_shutdown(0, &drained));
  EXPECT_OK(compute_shutdown(COMPUTE_TIMEOUT_NONE, &drained));
  EXPECT_EQ(drained, 1);
  EXPECT_OK(compute_shutdown(0, &drained));
  EXPECT_EQ(drained, 1);
}

ISOLATED_TEST(EndsOfCalls, ShutdownInADeleterIsRefused) {
  use_plugins({"minimal"});
  static float memory[10];
  const int64_t shape[] = {10};
  static compute_error_code code = COMPUTE_OK;
  Tensor wrapped;
  EXPECT_OK(compute_tensor_wrap_host(
      COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, memory, COMPUTE_WRAP_IMMUTABLE,
      [](void*, void*) {
        int32_t drained = 0;
        code = code_of(compute_shutdown(COMPUTE_TIMEOUT_NONE, &drained));
      },
      nullptr, wrapped.out()));
  wrapped.reset();
  EXPECT_EQ(code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

// Threads of the library take no signals, and the program's threads keep their masks.
ISOLATED_TEST(EndsOfCalls, SignalsAreTheProgramsOwn) {
  use_plugins({"minimal"});
  sigset_t before, after;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  for (const char* name : devices_with_ops()) {
    const Device device = open(name);
    const Stream stream = make_stream(device);
    const Tensor x = make_full(device, {300000}, 1.0f);
    Tensor y, z;
    EXPECT_OK(run_op("exp", stream, {x}, y.out()));
    EXPECT_OK(run_op("exp", nullptr, {x}, z.out()));
    static sigset_t in_callback;
    static std::atomic<bool> called;
    called = false;
    EXPECT_OK(compute_stream_notify(
        stream,
        [](const compute_error*, void*) {
          pthread_sigmask(SIG_SETMASK, nullptr, &in_callback);
          called = true;
          called.notify_all();
        },
        nullptr));
    called.wait(false);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM})
      EXPECT_EQ(sigismember(&in_callback, signal), 1) << signal;
    EXPECT_OK(compute_stream_synchronize(stream));
  }
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
  for (int signal = 1; signal < NSIG; ++signal)
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
}

// As seen from outside, after work that is spread over threads and streams with threads of their own.
ISOLATED_TEST(EndsOfCalls, EveryThreadOfTheLibraryBlocksSignals) {
  for (const char* name : devices_with_ops()) {
    if (std::string_view(name) != "cpu") continue;
    const Device device = open(name);
    const Stream stream = make_stream(device);
    const Tensor x = make_full(device, {1 << 20}, 1.0f);
    const Tensor rows = make_full(device, {1 << 10, 1 << 10}, 1.0f);
    std::vector<int64_t> places;
    for (int64_t place = 0; place <= 1 << 10; place += 8) places.push_back(place);
    const Tensor offsets = make_tensor(device, places, {static_cast<int64_t>(places.size())});
    Tensor y, z, sums;
    EXPECT_OK(run_op("exp", nullptr, {x}, y.out()));
    EXPECT_OK(run_op("exp", stream, {x}, z.out()));
    EXPECT_OK(run_op("segment_reduce", nullptr, {rows, offsets}, sums.out()));
    EXPECT_OK(compute_stream_notify(
        stream, [](const compute_error*, void*) {}, nullptr));
    EXPECT_OK(compute_stream_synchronize(stream));
    int others = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      if (task.path().filename() == std::to_string(getpid())) continue;
      ++others;
      std::ifstream status(task.path() / "status");
      std::string blocked;
      for (std::string line; std::getline(status, line);) {
        if (line.starts_with("SigBlk:")) blocked = line.substr(7);
      }
      const uint64_t mask = std::strtoull(blocked.c_str(), nullptr, 16);
      for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM}) {
        EXPECT_NE(mask & (uint64_t{1} << (signal - 1)), 0u)
            << name << ": signal " << signal << " in thread " << task.path();
      }
    }
    EXPECT_GT(others, 1) << name;
  }
}

}  // namespace
}  // namespace robustness
