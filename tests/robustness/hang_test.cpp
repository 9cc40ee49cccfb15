// SPDX-License-Identifier: Apache-2.0
// COMPUTE_HANG_SECONDS: a wait for a device that makes no progress ends with an error, and nothing that the device may
// still use is used again.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "robustness.hpp"

namespace robustness {
namespace {

constexpr int kHang = 4;

// minimal0, whose next op never ends once it is armed.
struct Stuck {
  Stuck() {
    setenv("COMPUTE_HANG_SECONDS", "3", 1);  // more than work that does not hang takes, also on a busy machine
    put_between("minimal", &armed());
    device = open("minimal0");
    stream = make_stream(device);
    x = make_full(device, {1000}, 0.5f);
  }
  static std::atomic<int>& armed() {
    static std::atomic<int> cell{0};
    return cell;
  }
  // Queues square, which hangs, then exp.
  void hang() {
    EXPECT_OK(compute_stream_synchronize(stream));
    armed() = kHang;
    EXPECT_OK(run_op("square", stream, {x}, y.out()));
    EXPECT_OK(run_op("exp", stream, {y}, z.out()));
  }

  Device device;
  Stream stream;
  Tensor x, y, z;
};

void expect_hang(compute_error* raw) {
  const Error error(raw);
  ASSERT_NE(error, nullptr);
  const std::string message = compute_error_message(error.get());
  EXPECT_EQ(compute_error_get_code(error.get()), COMPUTE_ERROR_STREAM_FAILED) << message;
  EXPECT_STREQ(compute_error_device(error.get()), "minimal0") << message;
  for (const char* part : {"minimal0", "square", "exp", "3 s (COMPUTE_HANG_SECONDS)"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " is missing in: " << message;
}

ISOLATED_TEST(Hang, EndsEveryKindOfWait) {
  Stuck stuck;
  Event event;
  stuck.hang();
  EXPECT_OK(compute_event_record(stuck.stream, nullptr, event.out()));
  expect_hang(compute_stream_synchronize(stuck.stream));
  expect_hang(compute_event_synchronize(event));
  std::vector<float> values(1000);
  expect_hang(compute_tensor_read(stuck.z, values.data(), 4000));
  expect_hang(compute_stream_synchronize(stuck.stream));
  // It takes no more work; other streams do.
  expect_hang(run_op("square", stuck.stream, {stuck.x}, stuck.y.out()));
  const Stream other = make_stream(stuck.device);
  Tensor sum;
  EXPECT_OK(run_op("sum", other, {stuck.x}, sum.out()));
  EXPECT_EQ(read<float>(sum), std::vector<float>{500});
}

ISOLATED_TEST(Hang, EndsAWaitForTheDevice) {
  Stuck stuck;
  stuck.hang();
  expect_hang(compute_device_synchronize(stuck.device));
  EXPECT_OK(compute_device_synchronize(stuck.device));  // said once
}

ISOLATED_TEST(Hang, IsToldToACallback) {
  Stuck stuck;
  stuck.hang();
  static std::atomic<compute_error_code> code{-1};
  EXPECT_OK(compute_stream_notify(
      stuck.stream, [](compute_borrowed_error error, void*) { code = compute_error_get_code(error); }, nullptr));
  while (code == -1) std::this_thread::yield();
  EXPECT_EQ(code, COMPUTE_ERROR_STREAM_FAILED);
}

ISOLATED_TEST(Hang, KeepsMemoryThatTheDeviceMayUse) {
  setenv("COMPUTE_MEMORY_LIMIT", "8M", 1);
  Stuck stuck;
  stuck.x = make_full(stuck.device, {750'000}, 0.5f);  // 3 MB, and as much for y
  EXPECT_OK(compute_stream_synchronize(stuck.stream));
  Stuck::armed() = kHang;
  EXPECT_OK(run_op("square", stuck.stream, {stuck.x}, stuck.y.out()));
  EXPECT_EQ(code_of(compute_stream_synchronize(stuck.stream)), COMPUTE_ERROR_STREAM_FAILED);
  stuck.x.reset();
  stuck.y.reset();
  const int64_t shape[] = {750'000};
  Tensor more;
  EXPECT_FAILS(compute_tensor_empty(stuck.device, COMPUTE_DTYPE_FLOAT32, 1, shape, more.out()),
               COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY, "minimal0");
}

ISOLATED_TEST(Hang, KeepsMemoryOfTheProgram) {
  setenv("COMPUTE_MINIMAL_NO_PINNED", "1", 1);  // the device reads it itself
  Stuck stuck;
  static std::vector<float> memory(1000, 1.0f);
  static std::atomic<bool> is_given_back{false};
  const int64_t shape[] = {1000};
  Tensor wrapped;
  EXPECT_OK(compute_tensor_wrap_host(
      COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, memory.data(), COMPUTE_WRAP_IMMUTABLE,
      [](void*, void*) { is_given_back = true; }, nullptr, wrapped.out()));
  Stuck::armed() = kHang;
  EXPECT_OK(run_op("square", stuck.stream, {wrapped}, stuck.y.out()));
  wrapped.reset();
  EXPECT_EQ(code_of(compute_stream_synchronize(stuck.stream)), COMPUTE_ERROR_STREAM_FAILED);
  EXPECT_FALSE(is_given_back);
}

// Long work is not a hang while submissions keep ending.
ISOLATED_TEST(Hang, IsNotAWaitWithProgress) {
  setenv("COMPUTE_HANG_SECONDS", "3", 1);
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  const Stream stream = make_stream(device);
  using Clock = std::chrono::steady_clock;
  Tensor x, y;
  for (int64_t size = 1 << 14;; size *= 2) {
    x = make_full(device, {size}, 0.5f);
    EXPECT_OK(compute_stream_synchronize(stream));
    const auto start = Clock::now();
    EXPECT_OK(run_op("erf", stream, {x}, y.out()));
    EXPECT_OK(compute_stream_synchronize(stream));
    if (Clock::now() - start > std::chrono::milliseconds(100)) break;
  }
  std::vector<Event> events(60);  // a busy machine takes less than 3 s for each, and any takes more for all
  for (Event& event : events) {
    EXPECT_OK(run_op("erf", stream, {x}, y.out()));
    EXPECT_OK(compute_event_record(stream, nullptr, event.out()));
  }
  EXPECT_OK(compute_stream_synchronize(stream));
}

}  // namespace
}  // namespace robustness
