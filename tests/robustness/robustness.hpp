// SPDX-License-Identifier: Apache-2.0
// Shared by the robustness tests: child processes, handles, short calls, and checks of errors.
#pragma once

#include <compute/compute.h>
#include <gtest/gtest.h>

#include <atomic>
#include <complex>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sanitizer.hpp"

namespace robustness {

// ---- Processes ------------------------------------------------------------------------------------------------------

struct Outcome {
  int status = 0;      // as of waitpid
  std::string output;  // stdout and stderr

  bool exited(int code) const;
  bool was_killed_by(int signal) const;
};

// Runs `body` in a child of this process, which itself must not have called the library. The child ends with exit(1) if
// an assertion failed and else with exit(0), so that exit handlers run. A child that hangs is killed after 300 s, which
// is longer than a busy machine needs.
Outcome run_in_child(const std::function<void()>& body);

// A test whose body runs in a child process: the library is in its initial state, and leftovers of the body do no harm.
#define ISOLATED_TEST(suite, name)                                                           \
  static void suite##_##name();                                                              \
  TEST(suite, name) {                                                                        \
    const ::robustness::Outcome outcome = ::robustness::run_in_child(suite##_##name);        \
    EXPECT_TRUE(outcome.exited(0)) << "status " << outcome.status << "\n" << outcome.output; \
  }                                                                                          \
  static void suite##_##name()

using compute::kSanitizer;
using compute::kThreadSanitizer;

// The devices that run ops in this build: minimal0, and cpu where its plugin is built.
inline std::vector<const char*> devices_with_ops() {
#if defined(COMPUTE_HAS_CPU_PLUGIN)
  return {"cpu", "minimal0"};
#else
  return {"minimal0"};
#endif
}

// Sets COMPUTE_PLUGIN_PATH to the folders of these test plugins (minimal, faulty, no_query, …).
void use_plugins(std::initializer_list<const char*> names);
// The folder of one.
std::string plugin_folder(std::string_view name);
// Wraps that plugin in tests/plugins/between. `armed` is its cell: see there.
void put_between(const std::string& plugin, std::atomic<int>* armed);
// Sets COMPUTE_FAULTY: see tests/plugins/faulty/README.md.
void set_faults(const std::string& rules);

// ---- Errors ---------------------------------------------------------------------------------------------------------

struct ErrorRelease {
  void operator()(compute_error* error) const { compute_error_free(error); }
};
using Error = std::unique_ptr<compute_error, ErrorRelease>;

// Whether the call failed with that code, its message holding all the parts. Frees the error.
testing::AssertionResult fails_with(compute_error* error, compute_error_code code,
                                    std::initializer_list<std::string_view> parts = {});
// Whether the call succeeded. Frees the error.
testing::AssertionResult succeeds(compute_error* error);

#define EXPECT_OK(call) EXPECT_TRUE(::robustness::succeeds(call))
#define ASSERT_OK(call) ASSERT_TRUE(::robustness::succeeds(call))
// EXPECT_FAILS(call, code [, part …])
#define EXPECT_FAILS(call, code, ...) EXPECT_TRUE(::robustness::fails_with(call, code, {__VA_ARGS__}))

compute_error_code code_of(compute_error* error);  // frees it
std::string message_of(compute_error* error);      // frees it
std::string take_text(compute_text* text);

// ---- Handles --------------------------------------------------------------------------------------------------------

// The owner of one reference.
template <class T, void (*kRelease)(T*)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T* handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept {
    T* handle = other.release();
    reset();
    handle_ = handle;
    return *this;
  }
  ~Handle() { reset(); }

  T* get() const { return handle_; }
  operator T*() const { return handle_; }
  T** out() {
    reset();
    return &handle_;
  }
  T* release() { return std::exchange(handle_, nullptr); }
  void reset() {
    if (handle_ != nullptr) kRelease(release());
  }

 private:
  T* handle_ = nullptr;
};
using Device = Handle<compute_device, compute_device_release>;
using Tensor = Handle<compute_tensor, compute_tensor_release>;
using Stream = Handle<compute_stream, compute_stream_release>;
using Event = Handle<compute_event, compute_event_release>;
using Plan = Handle<compute_plan, compute_plan_release>;
using Graph = Handle<compute_graph, compute_graph_release>;
using Expression = Handle<compute_expression, compute_expression_release>;

Device open(const char* selector);
Stream make_stream(compute_device* device);

// ---- Tensors and ops ------------------------------------------------------------------------------------------------

template <class T>
constexpr compute_dtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return COMPUTE_DTYPE_BOOL;
  if constexpr (std::is_same_v<T, int32_t>) return COMPUTE_DTYPE_INT32;
  if constexpr (std::is_same_v<T, int64_t>) return COMPUTE_DTYPE_INT64;
  if constexpr (std::is_same_v<T, uint64_t>) return COMPUTE_DTYPE_UINT64;
  if constexpr (std::is_same_v<T, float>) return COMPUTE_DTYPE_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return COMPUTE_DTYPE_FLOAT64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return COMPUTE_DTYPE_COMPLEX64;
}

template <class T>
Tensor make_tensor(compute_device* device, const std::vector<T>& values, std::vector<int64_t> shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  Tensor tensor;
  EXPECT_OK(compute_tensor_from_host(device, dtype_of<T>(), static_cast<int32_t>(shape.size()), shape.data(),
                                     values.data(), tensor.out()));
  return tensor;
}

// `shape` filled with one value.
template <class T>
Tensor make_full(compute_device* device, std::vector<int64_t> shape, T value) {
  Tensor tensor;
  EXPECT_OK(compute_tensor_full(device, dtype_of<T>(), static_cast<int32_t>(shape.size()), shape.data(), &value,
                                tensor.out()));
  return tensor;
}

template <class T>
std::vector<T> read(compute_tensor* tensor) {
  std::vector<T> values(static_cast<size_t>(compute_tensor_element_count(tensor)));
  EXPECT_OK(compute_tensor_read(tensor, values.data(), static_cast<int64_t>(values.size() * sizeof(T))));
  return values;
}

compute_attribute int_attribute(const char* name, const int64_t* values, int64_t count);

compute_error* run_op(const char* name, compute_stream* stream, std::vector<compute_tensor*> inputs,
                      compute_tensor** output, std::vector<compute_attribute> attributes = {});

}  // namespace robustness
