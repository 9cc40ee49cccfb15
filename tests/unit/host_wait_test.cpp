// SPDX-License-Identifier: Apache-2.0
// Work that waits for the host.
#include "core/streams/host_wait.hpp"

#include <compute/compute.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "core/base/error.hpp"
#include "core/devices/device.hpp"
#include "core/memory/tensor.hpp"
#include "core/streams/stream.hpp"
#include "core/streams/submission.hpp"

namespace compute {
namespace {

constexpr const char* kMinimal = COMPUTE_TEST_PLUGIN_DIR "/minimal/compute_plugin_minimal.so";
constexpr const char* kCpu = COMPUTE_TEST_PLUGIN_DIR "/../../lib/compute/plugins/compute_plugin_cpu.so";

void use_plugins() {
  setenv("COMPUTE_LOG", "off", 1);
  setenv("COMPUTE_PLUGIN_FILES", (std::string(kMinimal) + ":" + kCpu).c_str(), 1);
}

class HostWaits : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    use_plugins();
    throw_if(compute_device_open(GetParam(), &device_));
    throw_if(compute_stream_create(device_, nullptr, &stream_));
    throw_if(compute_stream_create(device_, nullptr, &other_));
    const int64_t shape = 4;
    const float one = 1;
    throw_if(compute_tensor_full(device_, COMPUTE_DTYPE_FLOAT32, 1, &shape, &one, &ones_));
  }
  void TearDown() override {
    compute_tensor_release(ones_);
    compute_stream_release(stream_);
    compute_stream_release(other_);
    compute_device_release(device_);
  }

  HostWait wait_on_stream() {
    const std::lock_guard guard(stream_->timeline.lock);
    return HostWait(stream_->timeline);
  }
  compute_tensor* doubled(compute_stream* stream) {
    compute_tensor* y = nullptr;
    throw_if(compute_add(stream, ones_, ones_, &y));
    return y;
  }
  bool has_finished() {
    int32_t finished = -1;
    throw_if(compute_stream_query(stream_, &finished));
    return finished == 1;
  }
  static float first_of(compute_tensor* tensor) {
    float value = 0;
    const int64_t index = 0;
    throw_if(compute_tensor_read_element(tensor, 1, &index, &value, sizeof value));
    return value;
  }

  compute_device* device_ = nullptr;
  compute_stream *stream_ = nullptr, *other_ = nullptr;
  compute_tensor* ones_ = nullptr;
};

TEST_P(HostWaits, HoldLaterWorkOfTheirStreamAlone) {
  HostWait wait = wait_on_stream();
  const TensorReference held(doubled(stream_));
  const TensorReference free(doubled(other_));
  EXPECT_EQ(first_of(free.get()), 2);
  throw_if(compute_stream_synchronize(other_));
  EXPECT_FALSE(has_finished());
  wait.signal();
  wait.signal();
  EXPECT_EQ(first_of(held.get()), 2);
  throw_if(compute_stream_synchronize(stream_));
}

TEST_P(HostWaits, EndWithTheirOwner) {
  TensorReference held;
  {
    HostWait first = wait_on_stream(), second;
    second = std::move(first);
    held.reset(doubled(stream_));
    EXPECT_FALSE(has_finished());
  }
  EXPECT_EQ(first_of(held.get()), 2);
}

// The host did not do its part: what depends on it has no values, and the stream goes on.
TEST_P(HostWaits, MayFail) {
  const TensorReference result(doubled(stream_));
  throw_if(compute_stream_synchronize(stream_));
  HostWait wait;
  {
    Use use{result->buffer, true, true};
    Submission submission(stream_->timeline, {&use, 1}, "transfer");
    wait = HostWait(stream_->timeline);
    submission.check(nullptr);
    submission.spoil(Error(COMPUTE_ERROR_PEER_FAILED, "transfer: rank 3 is gone"));
  }
  wait.signal();
  float values[4];
  compute_error* error = compute_tensor_read(result.get(), values, sizeof values);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(compute_error_get_code(error), COMPUTE_ERROR_PEER_FAILED) << compute_error_message(error);
  compute_error_free(error);
  compute_error_free(compute_stream_synchronize(stream_));
  const TensorReference next(doubled(stream_));
  EXPECT_EQ(first_of(next.get()), 2);
}

INSTANTIATE_TEST_SUITE_P(On, HostWaits, testing::Values("minimal0", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

TEST(HostWaitsThatThereAreNot, AreUnsupported) {
  use_plugins();
  compute_device* device = nullptr;
  throw_if(compute_device_open("cpu", &device));
  compute_stream* own = nullptr;
  throw_if(compute_device_default_stream(device, &own));
  EXPECT_FALSE(HostWait::is_possible(own->timeline));
  {
    const std::lock_guard guard(own->timeline.lock);
    try {
      const HostWait wait(own->timeline);
      FAIL() << "the thread would wait for itself";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, COMPUTE_ERROR_UNSUPPORTED);
      EXPECT_EQ(error.device, "cpu");
    }
  }
  compute_stream_release(own);
  compute_device_release(device);
}

}  // namespace
}  // namespace compute
