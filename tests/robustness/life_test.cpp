// SPDX-License-Identifier: Apache-2.0
// The life of a process: shutdown, exit with work in flight, fork, and what may still be called afterwards.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "robustness.hpp"
#include "tests/gate/gate.hpp"

namespace robustness {
namespace {

// Seconds of work for the interpreter.
void queue_long_work(compute_device* device, compute_stream* stream, int64_t extent = 1500) {
  const Tensor x = make_full(device, {extent}, 1.0f);
  const int64_t columns[] = {extent, 1}, rows[] = {1, extent};
  Tensor a, b;
  ASSERT_OK(compute_tensor_reshape(x, 2, columns, a.out()));
  ASSERT_OK(compute_tensor_reshape(x, 2, rows, b.out()));
  for (int i = 0; i < 8; ++i) {
    Tensor sum;
    ASSERT_OK(run_op("add", stream, {a, b}, sum.out()));  // released while it runs
  }
}

// ---- Shutdown -------------------------------------------------------------------------------------------------------

ISOLATED_TEST(Life, AfterShutdownEverythingButReleaseReportsIt) {
  use_plugins({"minimal"});
  Device device = open("minimal0");
  Stream stream = make_stream(device);
  Tensor x = make_full(device, {3}, 1.0f), y;
  Event event;
  ASSERT_OK(compute_event_record(stream, nullptr, event.out()));
  int32_t drained = -1;
  EXPECT_OK(compute_shutdown(COMPUTE_TIMEOUT_NONE, &drained));
  EXPECT_EQ(drained, 1);
  constexpr compute_error_code kShutDown = COMPUTE_ERROR_SHUT_DOWN;
  Device other;
  Stream another;
  compute_text* text = nullptr;
  int64_t count = 0;
  int32_t number = 0;
  float values[3];
  const int64_t shape[] = {3};
  EXPECT_FAILS(compute_device_open("cpu", other.out()), kShutDown, "shut down");
  EXPECT_FAILS(compute_device_list(nullptr, 0, &count), kShutDown);
  EXPECT_FAILS(compute_device_synchronize(device), kShutDown);
  EXPECT_FAILS(compute_load_report(COMPUTE_FORMAT_TEXT, &text), kShutDown);
  EXPECT_FAILS(compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, 1, shape, y.out()), kShutDown);
  EXPECT_FAILS(compute_tensor_read(x, values, sizeof values), kShutDown);
  EXPECT_FAILS(compute_tensor_write(x, values, sizeof values), kShutDown);
  EXPECT_FAILS(run_op("square", nullptr, {x}, y.out()), kShutDown);
  EXPECT_FAILS(compute_stream_create(device, nullptr, another.out()), kShutDown);
  EXPECT_FAILS(compute_stream_synchronize(stream), kShutDown);
  EXPECT_FAILS(compute_stream_query(stream, &number), kShutDown);
  EXPECT_FAILS(compute_event_synchronize(event), kShutDown);
  EXPECT_FAILS(compute_event_wait(event, stream), kShutDown);
  EXPECT_FAILS(compute_graph_begin(stream, nullptr), kShutDown);
  Graph graph;
  EXPECT_FAILS(compute_graph_end(stream, graph.out()), kShutDown);
  // Functions that need no device still work.
  const compute_op* op = nullptr;
  EXPECT_OK(compute_op_find("add", 0, &op));
  EXPECT_OK(compute_config_get("COMPUTE_DEVICE", &text, nullptr));
  compute_text_free(text);
  compute_device_statistics statistics = {};
  statistics.struct_size = sizeof statistics;
  EXPECT_OK(compute_device_get_statistics(device, &statistics));
  EXPECT_EQ(statistics.memory_total, -1);  // the plugin is asked nothing any more
  EXPECT_OK(compute_tensor_expand(x, 0, y.out()));
  EXPECT_EQ(compute_tensor_rank(y), 2);
  // Releases do nothing, from any thread; so does exit.
  std::thread([&] {
    x.reset();
    stream.reset();
    event.reset();
    device.reset();
  }).join();
}

ISOLATED_TEST(Life, ShutdownWaitsNoLongerThanItIsTold) {
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  const Stream stream = make_stream(device);
  auto* const gate = new compute::Gate;  // which exit may still need
  gate->hold(stream, device);
  queue_long_work(device, stream, 100);
  int32_t drained = -1;
  EXPECT_OK(compute_shutdown(1'000'000, &drained));
  EXPECT_EQ(drained, 0);
  gate->open();
}

ISOLATED_TEST(Life, ShutdownWaitsNoLongerForACallbackEither) {
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  const Stream stream = make_stream(device);
  static std::atomic<bool> begun = false, may_end = false;
  EXPECT_OK(compute_stream_notify(
      stream,
      [](const compute_error*, void*) {
        begun = true;
        begun.notify_all();
        may_end.wait(false);
      },
      nullptr));
  begun.wait(false);
  int32_t drained = -1;
  EXPECT_OK(compute_shutdown(20'000'000, &drained));
  EXPECT_EQ(drained, 0);
  may_end = true;
  may_end.notify_all();
}

// Exit waits two seconds for them. Where a busy machine let the callback's thread wait as long, the process exits with
// 4 and is run again.
TEST(Life, CallbacksRunBeforeTheProcessEnds) {
  Outcome outcome;
  for (int i = 0; i < 5 && (i == 0 || outcome.exited(4)); ++i) {
    outcome = run_in_child([] {
      use_plugins({"minimal"});
      using Clock = std::chrono::steady_clock;
      static std::atomic<bool> called = false;
      static Clock::time_point end;
      std::atexit([] {
        if (!called) _exit(Clock::now() - end < std::chrono::seconds(2) ? 3 : 4);
      });
      const Device device = open("minimal0");
      const Stream stream = make_stream(device);
      EXPECT_OK(compute_stream_notify(
          stream,
          [](const compute_error*, void*) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            called = true;
          },
          nullptr));
      end = Clock::now();
    });
  }
  EXPECT_TRUE(outcome.exited(0)) << outcome.status << "\n" << outcome.output;
}

ISOLATED_TEST(Life, ShutdownInsideACallbackIsRefused) {
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  const Stream stream = make_stream(device);
  std::atomic<int32_t> code = -1;
  EXPECT_OK(compute_stream_notify(
      stream,
      [](const compute_error*, void* user_data) {
        int32_t drained = 0;
        *static_cast<std::atomic<int32_t>*>(user_data) = code_of(compute_shutdown(COMPUTE_TIMEOUT_NONE, &drained));
      },
      &code));
  while (code == -1) std::this_thread::yield();
  EXPECT_EQ(code, COMPUTE_ERROR_INVALID_ARGUMENT);
  int32_t drained = -1;
  EXPECT_OK(compute_shutdown(COMPUTE_TIMEOUT_NONE, &drained));
  EXPECT_EQ(drained, 1);
}

ISOLATED_TEST(Life, ShutdownWhileOthersWork) {
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  std::atomic<int> running = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Stream stream = make_stream(device);
      const Tensor x = make_full(device, {100}, 1.0f);
      ++running;
      for (compute_error_code code = COMPUTE_OK; code != COMPUTE_ERROR_SHUT_DOWN;) {
        Tensor y;
        code = code_of(run_op("square", stream, {x}, y.out()));
        ASSERT_TRUE(code == COMPUTE_OK || code == COMPUTE_ERROR_SHUT_DOWN) << code;
      }
    });
  }
  while (running < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  int32_t drained = -1;
  EXPECT_OK(compute_shutdown(COMPUTE_TIMEOUT_NONE, &drained));
  for (std::thread& thread : threads) thread.join();
}

// A device that has lost its context is closed before its plugin is.
TEST(Life, ShutdownClosesLostDevicesToo) {
  const Outcome outcome = run_in_child([] {
    use_plugins({"faulty"});
    setenv("COMPUTE_LOG", "trace", 1);
    const Device device = open("faulty0");
    const Tensor x = make_full(device, {3}, 1.0f);
    set_faults("plan_run=error:CONTEXT_LOST");
    Tensor y;
    EXPECT_FAILS(run_op("square", nullptr, {x}, y.out()), COMPUTE_ERROR_CONTEXT_LOST);
    int32_t drained = 0;
    EXPECT_OK(compute_shutdown(60'000'000'000, &drained));
    set_faults("memory_info=crash");  // it is closed: nothing is asked any more
    compute_device_statistics statistics = {};
    statistics.struct_size = sizeof statistics;
    EXPECT_OK(compute_device_get_statistics(device, &statistics));
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
  const size_t of_device = outcome.output.find("entering plugin faulty: close of faulty0"),
               of_plugin = outcome.output.find("entering plugin faulty: close\n");
  EXPECT_NE(of_device, std::string::npos) << outcome.output;
  EXPECT_NE(of_plugin, std::string::npos) << outcome.output;
  EXPECT_LT(of_device, of_plugin) << outcome.output;
}

ISOLATED_TEST(Life, ShutdownTwiceAndWithoutUse) {
  int32_t drained = -1;
  EXPECT_OK(compute_shutdown(0, &drained));
  EXPECT_EQ(drained, 1);
  compute_error_free(compute_shutdown(0, &drained));
}

// ---- Exit -----------------------------------------------------------------------------------------------------------

TEST(Life, ExitWithWorkInFlightIsCleanAndBounded) {
  for (const char* name : devices_with_ops()) {
    const Outcome outcome = run_in_child([&] {
      use_plugins({"minimal"});
      // Never released: the process just ends.
      compute_device* device = open(name).release();
      compute_stream* stream = make_stream(device).release();
      queue_long_work(device, stream, kThreadSanitizer ? 600 : 6000);
    });
    EXPECT_TRUE(outcome.exited(0)) << name << " status " << outcome.status << "\n" << outcome.output;
  }
}

TEST(Life, ExitWithAHangingDeviceIsBounded) {
  const Outcome outcome = run_in_child([] {
    use_plugins({"faulty"});
    compute_device* device = open("faulty0").release();
    compute_stream* stream = make_stream(device).release();
    queue_long_work(device, stream, 100);
    set_faults("stream_sync=error:DEVICE_LOST;stream_reached=error:DEVICE_LOST");
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

TEST(Life, ExitFromAnotherThread) {
  const Outcome outcome = run_in_child([] {
    use_plugins({"minimal"});
    compute_device* device = open("minimal0").release();
    std::thread([device] {
      compute_stream* stream = make_stream(device).release();
      queue_long_work(device, stream, 200);
      std::exit(testing::Test::HasFailure() ? 1 : 0);
    }).join();
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

// A static object of the program that outlives the library's own exit handler.
TEST(Life, StaticObjectsMayReleaseTheirHandlesAtExit) {
  const Outcome outcome = run_in_child([] {
    use_plugins({"minimal"});
    struct Keeper {
      Tensor tensor;
      Stream stream;
      Device device;
    };
    static Keeper early;  // its destructor is registered before the library's handler
    early.device = open("minimal0");
    static Keeper late;  // and this one after it
    late.device = open("minimal0");
    early.stream = make_stream(early.device);
    early.tensor = make_full(early.device, {3}, 1.0f);
    late.stream = make_stream(late.device);
    late.tensor = make_full(late.device, {3}, 1.0f);
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

// ---- Fork -----------------------------------------------------------------------------------------------------------

// Runs `body` in a fork of a process that uses the library; its assertions count.
void expect_in_fork(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    body();
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

ISOLATED_TEST(Life, DevicesOpenedBeforeAForkAreForkedInTheChild) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer's allocator may stay locked in the child of a process with threads";
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  const Stream stream = make_stream(device);
  const Tensor x = make_full(device, {3}, 2.0f);
  Tensor y;
  EXPECT_OK(run_op("square", stream, {x}, y.out()));
  EXPECT_EQ(read<float>(y)[0], 4);
  expect_in_fork([&] {
    int32_t health = -1;
    EXPECT_OK(compute_device_health(device, &health));
    EXPECT_EQ(health, COMPUTE_HEALTH_FORKED);
    Tensor z;
    float values[3];
    EXPECT_FAILS(run_op("square", stream, {x}, z.out()), COMPUTE_ERROR_FORKED, "minimal0", "fork");
    EXPECT_FAILS(run_op("square", nullptr, {x}, z.out()), COMPUTE_ERROR_FORKED, "minimal0");
    EXPECT_FAILS(compute_tensor_read(x, values, sizeof values), COMPUTE_ERROR_FORKED);
    EXPECT_FAILS(compute_stream_synchronize(stream), COMPUTE_ERROR_FORKED);
    Device again;
    EXPECT_FAILS(compute_device_open("minimal0", again.out()), COMPUTE_ERROR_FORKED, "minimal0", "before fork()");
    EXPECT_OK(compute_device_open("minimal0,cpu", again.out()));  // a list falls through
    EXPECT_STREQ(compute_device_name(again), "cpu");
  });
  Tensor z;
  EXPECT_OK(run_op("square", stream, {y}, z.out()));  // the parent does not notice
  EXPECT_EQ(read<float>(z)[0], 16);
}

#if defined(COMPUTE_HAS_CPU_PLUGIN)
ISOLATED_TEST(Life, TheCpuWorksInTheChild) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer's allocator may stay locked in the child of a process with threads";
  const Device cpu = open("cpu");
  const Tensor x = make_full(cpu, {300000}, 2.0f);
  Tensor y;
  EXPECT_OK(run_op("square", nullptr, {x}, y.out()));
  expect_in_fork([&] {
    Tensor z;
    EXPECT_OK(run_op("square", nullptr, {y}, z.out()));
    EXPECT_EQ(read<float>(z)[299999], 16);
    const Stream stream = make_stream(cpu);
    EXPECT_OK(run_op("square", stream, {y}, z.out()));
    EXPECT_EQ(read<float>(z)[0], 16);
  });
}
#endif

ISOLATED_TEST(Life, DevicesOpenedInTheChildWork) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer's allocator may stay locked in the child of a process with threads";
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  const Tensor x = make_full(device, {3}, 2.0f);
  EXPECT_EQ(read<float>(x)[0],
            2);  // nothing is in flight: a lock that another thread holds would stay locked in the child
  expect_in_fork([] {
    const Device other = open("minimal1");
    const Tensor y = make_full(other, {3}, 3.0f);
    EXPECT_EQ(read<float>(y)[0], 3);
  });
}

// Under pressure a device gives up its copies of host tensors, and these may go afterwards.
ISOLATED_TEST(Life, HostTensorsOutliveTheirCopiesOnADevice) {
  use_plugins({"minimal"});
  const Device device = open("minimal0+mem=1M"), host = open("cpu");
  const Stream stream = make_stream(device);
  for (int round = 0; round < 30; ++round) {
    // At its end a thread frees the storage of handles that it released.
    std::thread([&] {
      std::vector<Tensor> tensors;
      for (int64_t i = 0; i < 16; ++i) {
        tensors.push_back(make_full<int64_t>(host, {1000}, i));
        Tensor copy;
        ASSERT_OK(run_op("copy", stream, {tensors.back()}, copy.out()));
        ASSERT_EQ(read<int64_t>(copy), std::vector<int64_t>(1000, i)) << "round " << round;
      }
      const Tensor large = make_full<int64_t>(device, {120000}, round);  // for which the copies have to go
      ASSERT_EQ(read<int64_t>(large), std::vector<int64_t>(120000, round));
      if (round % 2 == 0) return;
      Tensor copy;  // one is made again
      ASSERT_OK(run_op("copy", stream, {tensors.front()}, copy.out()));
      ASSERT_EQ(read<int64_t>(copy), std::vector<int64_t>(1000, 0)) << "round " << round;
    }).join();
    if (testing::Test::HasFatalFailure()) return;
  }
}

// All blocks have different sizes, and no call waits for the streams that used them.
ISOLATED_TEST(Life, MemoryOfFinishedWorkIsFreeAlthoughNobodyAsked) {
  use_plugins({"minimal"});
  const Device device = open("minimal0+mem=1M");
  const Stream stream = make_stream(device), other = make_stream(device);
  Tensor sum;
  for (int64_t size = 5000; size < 30000; size += 500) {
    const Tensor x = make_full<int64_t>(device, {size}, size);
    Tensor copy;
    ASSERT_OK(run_op("copy", stream, {x}, copy.out())) << size;
    ASSERT_OK(run_op("add", other, {x, copy}, sum.out())) << size;
  }
  EXPECT_EQ(read<int64_t>(sum), std::vector<int64_t>(29500, 59000));
}

}  // namespace
}  // namespace robustness
