// SPDX-License-Identifier: Apache-2.0
// One device under test, and the public interface as tests use it: owned handles, errors as exceptions, arrays up and
// down.
#pragma once

#include <compute/compute.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/oracle/inputs.hpp"
#include "tests/oracle/judge.hpp"
#include "tests/oracle/ops.hpp"

namespace compute::conformance {

using oracle::Array;
using oracle::Attributes;
using oracle::Bound;
using oracle::Dtype;
using oracle::Real;
using oracle::Shape;
using oracle::Value;
namespace dtype = oracle::dtype;

/// How much is tested: smoke is every op once; quick every op once per category of dtypes; full everything.
enum class Level { SMOKE, QUICK, FULL };

/// The device refuses a request of the test: the test counts as UNSUPPORTED if the device's dtypes or the known list
/// say so.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The same for an optional feature, which needs no entry in a list.
struct Lacking : Unsupported {
  using Unsupported::Unsupported;
};

/// Any other error where none was expected.
struct UnexpectedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Ends a test that has failed already.
struct Stop {};

/// Throws Unsupported or UnexpectedError for an error object, which it frees.
void check(compute_error* error);

/// An error object whose fields the test reads.
class Error {
 public:
  Error(compute_error* error) : error_(error) {}
  Error(Error&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  Error& operator=(Error other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~Error() { compute_error_free(error_); }

  explicit operator bool() const { return error_ != nullptr; }
  const compute_error* get() const { return error_; }
  compute_error_code code() const { return error_ ? compute_error_get_code(error_) : COMPUTE_OK; }
  std::string message() const { return error_ ? compute_error_message(error_) : ""; }
  bool mentions(std::string_view text) const { return message().find(text) != std::string::npos; }

 private:
  compute_error* error_;
};

/// A counted reference to a handle.
template <typename T, void (*retain)(T*), void (*release)(T*)>
class Handle {
 public:
  Handle() = default;
  Handle(const Handle& other) : handle_(other.handle_) {
    if (handle_) retain(handle_);
  }
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() { release(handle_); }

  T* get() const { return handle_; }
  operator T*() const { return handle_; }
  /// For an out-parameter; releases the previous object.
  T** out() {
    release(std::exchange(handle_, nullptr));
    return &handle_;
  }

 private:
  T* handle_ = nullptr;
};

using Device = Handle<compute_device, compute_device_retain, compute_device_release>;
using Tensor = Handle<compute_tensor, compute_tensor_retain, compute_tensor_release>;
using Stream = Handle<compute_stream, compute_stream_retain, compute_stream_release>;
using Event = Handle<compute_event, compute_event_retain, compute_event_release>;
using Plan = Handle<compute_plan, compute_plan_retain, compute_plan_release>;
using Graph = Handle<compute_graph, compute_graph_retain, compute_graph_release>;
using Expression = Handle<compute_expression, compute_expression_retain, compute_expression_release>;

/// Attributes as the interface takes them. Lives as long as the call that it is given to.
class AttributeList {
 public:
  explicit AttributeList(const Attributes& attributes);
  AttributeList(const AttributeList&) = delete;
  AttributeList& operator=(const AttributeList&) = delete;
  const compute_attribute* data() const { return structs_.data(); }
  int64_t size() const { return static_cast<int64_t>(structs_.size()); }

 private:
  struct Storage {
    std::vector<int64_t> integers;
    std::vector<double> reals;
    compute_dtype dtype = 0;
    compute_string text{};
  };
  std::vector<Storage> storage_;
  std::vector<compute_attribute> structs_;
};

/// A tensor with the array that it should equal.
struct Operand {
  Array array;
  Tensor tensor;
};

// Views, of the tensor and of its array alike.
Operand permuted(const Operand& x, const std::vector<int>& axes);
/// `count` elements along every axis from `starts` in `steps`.
Operand sliced(const Operand& x, const Shape& starts, const Shape& counts, const Shape& steps);
Operand broadcast(const Operand& x, const Shape& shape);
/// Complex elements that begin half an element into a vector, which has one more.
Operand halfway(const Operand& x, const Shape& shape);

/// The layouts in which every op meets its operands and its result.
enum class Layout {
  CONTIGUOUS,
  TRANSPOSED,  // axes reversed in memory
  STEPPED,     // every third element
  NEGATIVE,    // every second element of every axis, backwards
  BROADCAST,   // every other axis repeats with stride 0
  OFFSET,      // starts three elements into each row
  PERMUTED,    // axes rotated, one of them backwards
};
inline constexpr Layout kEveryLayout[] = {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE,
                                          Layout::BROADCAST,  Layout::OFFSET,     Layout::PERMUTED};
const char* name(Layout layout);
/// The shape of the memory of a view of `shape`, and that view of a tensor of this shape.
Shape base_shape(Layout layout, const Shape& shape);
Operand view(Layout layout, const Operand& base, const Shape& shape);

class Session {
 public:
  Session(Device device, const compute_device_info& info, Level level);

  compute_device* device() const { return device_; }
  const std::string& name() const { return name_; }
  const std::string& plugin() const { return plugin_; }
  Level level() const { return level_; }
  bool supports(Dtype dtype, uint32_t bits) const {
    use(dtype);
    return states(dtype, bits);
  }
  /// For what has no use without the dtype. Throws Lacking if the device cannot do that much with it.
  void need(Dtype dtype, uint32_t bits) const;

  /// What the present test asked about or put on the device, in any thread of it. From this it is known whether a
  /// refusal, or that nothing was run, comes of a dtype that the device does not state.
  void forget_uses() const { used_ = 0; }
  bool was_used(Dtype dtype) const { return (used_ >> dtype & 1) != 0; }
  bool states(Dtype dtype, uint32_t bits) const {
    return static_cast<size_t>(dtype) < dtypes_.size() && (dtypes_[static_cast<size_t>(dtype)] & bits) == bits;
  }
  compute_device_statistics statistics() const;
  /// The device takes subnormal numbers of float32 for zero and says so.
  bool flushes_subnormals() const { return flushes_subnormals_; }
  /// The oracle's result of any op, with what such a device may do left open.
  oracle::Result reference(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs) const;

  Stream stream() const;
  Tensor empty(Dtype dtype, const Shape& shape) const;
  /// A row-major tensor of the array's elements.
  Operand upload(const Array& array) const;
  /// The array in that layout of memory: an operand whose view equals `array`, over memory filled with a pattern.
  Operand upload(const Array& array, Layout layout) const;
  Array download(compute_tensor* tensor) const;

  /// Runs a built-in op and keeps only the first output; the library makes a NULL `output`. An absent optional input is
  /// Operand{}.
  Tensor run(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs,
             compute_stream* stream = nullptr, Tensor output = {}) const;
  /// With all outputs; NULL ones are made.
  void run_all(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs,
               compute_stream* stream, std::span<Tensor> outputs) const;
  Error try_run(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs,
                compute_stream* stream, Tensor& output) const;

  /// Runs the op and judges the result; `what` names the case in a failure. `output` is a view to write
  /// into.
  void expect(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs, const Bound& bound,
              const std::string& what, compute_stream* stream = nullptr, Tensor output = {}) const;
  /// The same into memory of another layout, in which only the result's elements may change.
  void expect_into(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs,
                   const Bound& bound, const std::string& what, Layout layout) const;
  void judge(compute_tensor* actual, const oracle::Result& expected, const Bound& bound, const std::string& what) const;

 private:
  void use_given(const Operand& x) const {
    if (x.tensor) use(x.array.dtype());
  }
  void use_all(const oracle::Result& expected) const {
    for (const oracle::Result& each : expected.more) use_all(each);
    use(expected.dtype);
    use(expected.accumulator);
  }
  void use(Dtype dtype) const { used_ |= uint32_t{1} << dtype; }

  Device device_;
  std::string name_;
  std::string plugin_;
  mutable std::atomic<uint32_t> used_{0};
  std::vector<uint32_t> dtypes_;
  Level level_;
  bool flushes_subnormals_ = false;
};

/// The oracle's result of any op; the caller knows that it has one.
oracle::Result reference(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs);

/// A seed that depends on the text alone, printed with every failure.
uint64_t seed_of(std::string_view text);

}  // namespace compute::conformance
