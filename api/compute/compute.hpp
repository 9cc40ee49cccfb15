// SPDX-License-Identifier: Apache-2.0
//
// compute.hpp: the client interface for C++20. Header-only, exceptions and ownership over compute.h; nothing is
// implemented twice.
//
//   compute::Device device = compute::Device::open();            // COMPUTE_DEVICE, or the best there is
//   compute::Tensor x = device.from_host(std::vector<float>{1, 2, 3});
//   compute::Tensor y = compute::exp(x) + 1.0f;
//   std::vector<float> values = y.to_vector<float>();
//
// Every class holds one reference to its handle: copies share the object. A moved-from object holds none. Threads and
// errors are those of compute.h; an error is thrown as compute::Error.
#ifndef COMPUTE_COMPUTE_HPP_
#define COMPUTE_COMPUTE_HPP_

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "compute/compute.h"

namespace compute {

/// What a call of compute.h reported.
class Error : public std::runtime_error {
 public:
  /// Takes over `error`, which is not NULL.
  explicit Error(compute_error* error)
      : std::runtime_error(compute_error_message(error)),
        code_(compute_error_get_code(error)),
        argument_(compute_error_argument(error)),
        op_(compute_error_op(error)),
        device_(compute_error_device(error)),
        native_code_(compute_error_native_code(error)),
        error_(error, compute_error_free) {}

  compute_error_code code() const noexcept { return code_; }
  int32_t argument() const noexcept { return argument_; }
  const std::string& op() const noexcept { return op_; }
  const std::string& device() const noexcept { return device_; }
  int64_t native_code() const noexcept { return native_code_; }
  /// What it comes from, or NULL: borrowed, and read with compute_error_message and its like.
  const compute_error* cause() const noexcept { return compute_error_cause(error_.get()); }

 private:
  compute_error_code code_;
  int32_t argument_;
  std::string op_, device_;
  int64_t native_code_;
  std::shared_ptr<const compute_error> error_;
};

/// Throws what a call of compute.h reported, if anything.
inline void check(compute_error* error) {
  if (error != nullptr) throw Error(error);
}

namespace detail {

// A counted reference to a handle of compute.h.
template <class T, void (*kRetain)(T*), void (*kRelease)(T*)>
class Reference {
 public:
  Reference() = default;
  /// Takes over one reference.
  explicit Reference(T* handle) noexcept : handle_(handle) {}
  Reference(const Reference& other) noexcept : handle_(other.handle_) {
    if (handle_ != nullptr) kRetain(handle_);
  }
  Reference(Reference&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Reference& operator=(Reference other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Reference() { kRelease(handle_); }

  /// The handle, still owned by this object.
  T* get() const noexcept { return handle_; }
  /// Gives the reference up: the caller releases it.
  T* detach() noexcept { return std::exchange(handle_, nullptr); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  T* handle_ = nullptr;
};

struct TextFree {
  compute_text* text = nullptr;
  ~TextFree() { compute_text_free(text); }
  std::string str() const { return {compute_text_data(text), static_cast<size_t>(compute_text_size(text))}; }
};

}  // namespace detail

/// The dtype of a C++ type: compute::dtype_of<float>.
template <class T>
inline constexpr compute_dtype dtype_of = COMPUTE_DTYPE_NONE;
template <>
inline constexpr compute_dtype dtype_of<bool> = COMPUTE_DTYPE_BOOL;
template <>
inline constexpr compute_dtype dtype_of<int8_t> = COMPUTE_DTYPE_INT8;
template <>
inline constexpr compute_dtype dtype_of<int16_t> = COMPUTE_DTYPE_INT16;
template <>
inline constexpr compute_dtype dtype_of<int32_t> = COMPUTE_DTYPE_INT32;
template <>
inline constexpr compute_dtype dtype_of<int64_t> = COMPUTE_DTYPE_INT64;
template <>
inline constexpr compute_dtype dtype_of<uint8_t> = COMPUTE_DTYPE_UINT8;
template <>
inline constexpr compute_dtype dtype_of<uint16_t> = COMPUTE_DTYPE_UINT16;
template <>
inline constexpr compute_dtype dtype_of<uint32_t> = COMPUTE_DTYPE_UINT32;
template <>
inline constexpr compute_dtype dtype_of<uint64_t> = COMPUTE_DTYPE_UINT64;
template <>
inline constexpr compute_dtype dtype_of<float> = COMPUTE_DTYPE_FLOAT32;
template <>
inline constexpr compute_dtype dtype_of<double> = COMPUTE_DTYPE_FLOAT64;
template <>
inline constexpr compute_dtype dtype_of<std::complex<float>> = COMPUTE_DTYPE_COMPLEX64;
template <>
inline constexpr compute_dtype dtype_of<std::complex<double>> = COMPUTE_DTYPE_COMPLEX128;

template <class T>
concept Element = dtype_of<T>
!= COMPUTE_DTYPE_NONE;

using Shape = std::vector<int64_t>;

class Device;

/// A dtype, a shape and strides over memory on a device. Copies share the memory.
class Tensor : public detail::Reference<compute_tensor, compute_tensor_retain, compute_tensor_release> {
 public:
  using Reference::Reference;

  /// A number for ops, without memory. A weak one takes the dtype of the other operands.
  template <Element T>
  static Tensor scalar(T value, bool weak = false) {
    compute_tensor* tensor = nullptr;
    check(compute_tensor_scalar(dtype_of<T>, &value, weak ? 1 : 0, &tensor));
    return Tensor(tensor);
  }
  /// A number literal: x + 1.0f keeps x's dtype.
  template <Element T>
  requires std::is_arithmetic_v<T> Tensor(T value) : Tensor(scalar(value, true)) {}  // NOLINT: implicit on purpose

  compute_dtype dtype() const noexcept { return compute_tensor_dtype(get()); }
  int32_t rank() const noexcept { return compute_tensor_rank(get()); }
  std::span<const int64_t> shape() const noexcept { return {compute_tensor_shape(get()), static_cast<size_t>(rank())}; }
  std::span<const int64_t> strides() const noexcept {
    return {compute_tensor_strides(get()), static_cast<size_t>(rank())};
  }
  int64_t size() const noexcept { return compute_tensor_element_count(get()); }
  int64_t size_bytes() const noexcept { return compute_tensor_size_bytes(get()); }
  inline Device device() const;
  void set_label(const std::string& label) { check(compute_tensor_set_label(get(), label.c_str())); }

  Tensor reshape(std::span<const int64_t> shape) const {
    return make([&](compute_tensor** out) {
      return compute_tensor_reshape(get(), static_cast<int32_t>(shape.size()), shape.data(), out);
    });
  }
  Tensor reshape(std::initializer_list<int64_t> shape) const { return reshape(std::span(shape.begin(), shape.size())); }
  Tensor permute(std::span<const int32_t> axes) const {
    return make([&](compute_tensor** out) {
      return compute_tensor_permute(get(), static_cast<int32_t>(axes.size()), axes.data(), out);
    });
  }
  Tensor permute(std::initializer_list<int32_t> axes) const { return permute(std::span(axes.begin(), axes.size())); }
  Tensor transpose() const {
    return make([&](compute_tensor** out) { return compute_tensor_permute(get(), rank(), nullptr, out); });
  }
  /// Python's x[start:stop:step] along one axis; other axes stay whole.
  Tensor slice(int32_t axis, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step = 1) const {
    const auto count = static_cast<size_t>(rank());
    std::vector<int64_t> starts(count, std::numeric_limits<int64_t>::min()),
        stops(count, std::numeric_limits<int64_t>::max()), steps(count, 1);
    const int32_t at = axis < 0 ? axis + rank() : axis;
    if (at < 0 || at >= rank()) throw std::out_of_range("compute::Tensor::slice: axis " + std::to_string(axis));
    if (start) starts[static_cast<size_t>(at)] = *start;
    if (stop) stops[static_cast<size_t>(at)] = *stop;
    steps[static_cast<size_t>(at)] = step;
    return make([&](compute_tensor** out) {
      return compute_tensor_slice(get(), rank(), starts.data(), stops.data(), steps.data(), out);
    });
  }
  Tensor broadcast_to(std::span<const int64_t> shape) const {
    return make([&](compute_tensor** out) {
      return compute_tensor_broadcast(get(), static_cast<int32_t>(shape.size()), shape.data(), out);
    });
  }
  Tensor expand_dims(int32_t axis) const {
    return make([&](compute_tensor** out) { return compute_tensor_expand(get(), axis, out); });
  }
  Tensor squeeze(int32_t axis) const {
    return make([&](compute_tensor** out) { return compute_tensor_squeeze(get(), axis, out); });
  }

  /// All elements in row-major order; waits for the work that writes them. uint8_t takes bool too, as 0 and 1.
  template <Element T>
  std::vector<T> to_vector() const {
    static_assert(!std::is_same_v<T, bool>,
                  "std::vector<bool> has no elements to copy to: read into a std::vector<uint8_t>");
    if (!(std::is_same_v<T, uint8_t> && dtype() == COMPUTE_DTYPE_BOOL)) require_dtype(dtype_of<T>);
    std::vector<T> values(static_cast<size_t>(size()));
    check(compute_tensor_read(get(), values.data(), size_bytes()));
    return values;
  }
  /// The only element of a tensor that has one.
  template <Element T>
  T item() const {
    require_dtype(dtype_of<T>);
    if (size() != 1)
      throw std::invalid_argument("compute::Tensor::item: the tensor has " + std::to_string(size()) + " elements");
    T value{};
    check(compute_tensor_read(get(), &value, size_bytes()));
    return value;
  }
  void read(void* dst, int64_t size_bytes) const { check(compute_tensor_read(get(), dst, size_bytes)); }
  void write(const void* src, int64_t size_bytes) { check(compute_tensor_write(get(), src, size_bytes)); }
  inline Tensor to(const Device& device) const;
  void synchronize() const { check(compute_tensor_synchronize(get())); }

 private:
  template <class F>
  static Tensor make(F&& call) {
    compute_tensor* tensor = nullptr;
    check(call(&tensor));
    return Tensor(tensor);
  }
  void require_dtype(compute_dtype wanted) const {
    if (get() == nullptr) throw std::invalid_argument("compute::Tensor is empty");
    if (dtype() != wanted) {
      throw std::invalid_argument(std::string("compute::Tensor holds ") + compute_dtype_name(dtype()) + ", not " +
                                  compute_dtype_name(wanted));
    }
  }
};

/// What ops run on.
class Device : public detail::Reference<compute_device, compute_device_retain, compute_device_release> {
 public:
  using Reference::Reference;

  /// The device that COMPUTE_DEVICE, the config file or `auto` names.
  static Device open() { return open_text(nullptr); }
  static Device open(const std::string& selector) { return open_text(selector.c_str()); }
  /// Every device of every plugin, opened or not.
  static std::vector<compute_device_info> list() {
    int64_t count = 0;
    check(compute_device_list(nullptr, 0, &count));
    std::vector<compute_device_info> infos(static_cast<size_t>(count));
    if (count > 0) {
      infos[0].struct_size = sizeof(compute_device_info);
      check(compute_device_list(infos.data(), count, &count));
    }
    return infos;
  }

  std::string name() const { return compute_device_name(get()); }
  compute_device_info info() const {
    compute_device_info info{};
    info.struct_size = sizeof info;
    check(compute_device_get_info(get(), &info));
    return info;
  }
  compute_device_statistics statistics() const {
    compute_device_statistics statistics{};
    statistics.struct_size = sizeof statistics;
    check(compute_device_get_statistics(get(), &statistics));
    return statistics;
  }
  void synchronize() const { check(compute_device_synchronize(get())); }
  void trim(int64_t keep_bytes = 0) const { check(compute_device_trim(get(), keep_bytes)); }

  Tensor empty(compute_dtype dtype, std::span<const int64_t> shape) const {
    compute_tensor* tensor = nullptr;
    check(compute_tensor_empty(get(), dtype, static_cast<int32_t>(shape.size()), shape.data(), &tensor));
    return Tensor(tensor);
  }
  Tensor empty(compute_dtype dtype, std::initializer_list<int64_t> shape) const {
    return empty(dtype, std::span(shape.begin(), shape.size()));
  }
  template <Element T>
  Tensor full(std::span<const int64_t> shape, T value) const {
    compute_tensor* tensor = nullptr;
    check(compute_tensor_full(get(), dtype_of<T>, static_cast<int32_t>(shape.size()), shape.data(), &value, &tensor));
    return Tensor(tensor);
  }
  template <Element T>
  Tensor full(std::initializer_list<int64_t> shape, T value) const {
    return full(std::span(shape.begin(), shape.size()), value);
  }
  /// A copy of row-major values.
  template <Element T>
  Tensor from_host(std::span<const T> values, std::span<const int64_t> shape) const {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    if (count != static_cast<int64_t>(values.size())) {
      throw std::invalid_argument("compute::Device::from_host: " + std::to_string(values.size()) +
                                  " values for a shape of " + std::to_string(count));
    }
    compute_tensor* tensor = nullptr;
    check(compute_tensor_from_host(get(), dtype_of<T>, static_cast<int32_t>(shape.size()), shape.data(), values.data(),
                                   &tensor));
    return Tensor(tensor);
  }
  template <Element T>
  Tensor from_host(const std::vector<T>& values, std::initializer_list<int64_t> shape) const {
    return from_host(std::span<const T>(values), std::span(shape.begin(), shape.size()));
  }
  template <Element T>
  Tensor from_host(const std::vector<T>& values) const {
    return from_host(values, {static_cast<int64_t>(values.size())});
  }

 private:
  static Device open_text(const char* selector) {
    compute_device* device = nullptr;
    check(compute_device_open(selector, &device));
    return Device(device);
  }
};

inline Device Tensor::device() const {
  compute_device* device = compute_tensor_device(get());
  if (device != nullptr) compute_device_retain(device);
  return Device(device);
}

inline Tensor Tensor::to(const Device& device) const {
  return make([&](compute_tensor** out) { return compute_tensor_to_device(get(), device.get(), out); });
}

/// An in-order queue of work. A default-constructed one is the device's default stream.
class Stream : public detail::Reference<compute_stream, compute_stream_retain, compute_stream_release> {
 public:
  using Reference::Reference;
  explicit Stream(const Device& device) {
    compute_stream* stream = nullptr;
    check(compute_stream_create(device.get(), nullptr, &stream));
    *this = Stream(stream);
  }
  /// The stream that a default-constructed one stands for, for what concerns the stream itself. `cpu` has none.
  static Stream default_of(const Device& device) {
    compute_stream* stream = nullptr;
    check(compute_device_default_stream(device.get(), &stream));
    return Stream(stream);
  }
  void synchronize() const { check(compute_stream_synchronize(get())); }
  bool finished() const {
    int32_t finished = 0;
    check(compute_stream_query(get(), &finished));
    return finished != 0;
  }
  bool wait_for(int64_t timeout_ns) const {
    int32_t reached = 0;
    check(compute_stream_wait_until(get(), timeout_ns, &reached));
    return reached != 0;
  }
};

/// A point on a stream.
class Event : public detail::Reference<compute_event, compute_event_retain, compute_event_release> {
 public:
  using Reference::Reference;
  explicit Event(const Stream& stream) {
    compute_event* event = nullptr;
    check(compute_event_record(stream.get(), nullptr, &event));
    *this = Event(event);
  }
  /// Work queued on `stream` from now on runs after the event.
  void hold(const Stream& stream) const { check(compute_event_wait(get(), stream.get())); }
  void synchronize() const { check(compute_event_synchronize(get())); }
};

/// A recorded list of work, run as one.
class Graph : public detail::Reference<compute_graph, compute_graph_retain, compute_graph_release> {
 public:
  using Reference::Reference;
  /// Records what `body` queues on `stream`.
  template <class F>
  static Graph record(const Stream& stream, F&& body) {
    check(compute_graph_begin(stream.get()));
    compute_graph* graph = nullptr;
    try {
      body();
    } catch (...) {
      compute_error_free(compute_graph_end(stream.get(), &graph));
      compute_graph_release(graph);
      throw;
    }
    check(compute_graph_end(stream.get(), &graph));
    return Graph(graph);
  }
  void run(const Stream& stream = {}) const { check(compute_graph_run(get(), stream.get())); }
  template <Element T>
  void set_scalar(const Tensor& slot, T value) const {
    if (slot.dtype() != dtype_of<T>)
      throw std::invalid_argument("compute::Graph::set_scalar: the slot has another dtype");
    check(compute_graph_set_scalar(get(), slot.get(), &value));
  }
};

/// An elementwise expression over named inputs, run in one pass: Expression("tanh(a*b + 1)", {"a", "b"})(x, y).
class Expression : public detail::Reference<compute_expression, compute_expression_retain, compute_expression_release> {
 public:
  using Reference::Reference;
  Expression(const std::string& text, std::initializer_list<const char*> inputs,
             std::initializer_list<const char*> scalars = {}) {
    compute_expression* expression = nullptr;
    check(compute_expression_parse(text.c_str(), inputs.begin(), static_cast<int64_t>(inputs.size()), scalars.begin(),
                                   static_cast<int64_t>(scalars.size()), &expression));
    *this = Expression(expression);
  }
  /// All outputs; `inputs` and `scalars` in the order of the names.
  std::vector<Tensor> run(std::span<const Tensor> inputs, std::span<const Tensor> scalars, size_t output_count,
                          const Stream& stream = {}) const {
    const auto handles = [](std::span<const Tensor> tensors) {
      std::vector<compute_tensor*> all;
      for (const Tensor& tensor : tensors) all.push_back(tensor.get());
      return all;
    };
    const std::vector<compute_tensor*> in = handles(inputs), values = handles(scalars);
    std::vector<compute_tensor*> out(output_count, nullptr);
    check(compute_map(stream.get(), get(), in.data(), static_cast<int64_t>(in.size()), values.data(),
                      static_cast<int64_t>(values.size()), out.data(), static_cast<int64_t>(out.size())));
    return std::vector<Tensor>(out.begin(), out.end());
  }
  template <class... Inputs>
  Tensor operator()(const Inputs&... inputs) const {
    const std::array<Tensor, sizeof...(inputs)> all{inputs...};
    return std::move(run(all, {}, 1)[0]);
  }
};

inline std::string load_report() {
  detail::TextFree text;
  check(compute_load_report(COMPUTE_FORMAT_TEXT, &text.text));
  return text.str();
}

// ---- Ops: one function per elementwise row of ops.def, then the others ----------------------------------------------

// A function keeps its meaning: the second version of an op has a name of its own, in ops.h too.
#define COMPUTE_HPP_NAME_1(name) name
#define COMPUTE_HPP_NAME_2(name) name##_v2
#define COMPUTE_HPP_CALL_1(name) compute_##name
#define COMPUTE_HPP_CALL_2(name) compute_##name##_v2
#define COMPUTE_UNARY(name, version, inputs, result, expression, ulp, summary)                 \
  inline Tensor COMPUTE_HPP_NAME_##version(name)(const Tensor& x, const Stream& stream = {}) { \
    compute_tensor* y = nullptr;                                                               \
    check(COMPUTE_HPP_CALL_##version(name)(stream.get(), x.get(), &y));                        \
    return Tensor(y);                                                                          \
  }
#define COMPUTE_BINARY(name, version, inputs, result, expression, ulp, summary)                                 \
  inline Tensor COMPUTE_HPP_NAME_##version(name)(const Tensor& x, const Tensor& y, const Stream& stream = {}) { \
    compute_tensor* z = nullptr;                                                                                \
    check(COMPUTE_HPP_CALL_##version(name)(stream.get(), x.get(), y.get(), &z));                                \
    return Tensor(z);                                                                                           \
  }
#define COMPUTE_TERNARY(name, version, inputs, result, expression, ulp, summary)                    \
  inline Tensor COMPUTE_HPP_NAME_##version(name)(const Tensor& x, const Tensor& y, const Tensor& z, \
                                                 const Stream& stream = {}) {                       \
    compute_tensor* out = nullptr;                                                                  \
    check(COMPUTE_HPP_CALL_##version(name)(stream.get(), x.get(), y.get(), z.get(), &out));         \
    return Tensor(out);                                                                             \
  }
#define COMPUTE_OP(name, version, inputs, attributes, dtype_rule, shape_rule, bound, flags, summary)
#include "compute/ops.def"
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP
#undef COMPUTE_HPP_NAME_1
#undef COMPUTE_HPP_NAME_2
#undef COMPUTE_HPP_CALL_1
#undef COMPUTE_HPP_CALL_2

inline Tensor operator+(const Tensor& x, const Tensor& y) { return add(x, y); }
inline Tensor operator-(const Tensor& x, const Tensor& y) { return subtract(x, y); }
inline Tensor operator*(const Tensor& x, const Tensor& y) { return multiply(x, y); }
inline Tensor operator/(const Tensor& x, const Tensor& y) { return divide(x, y); }
inline Tensor operator-(const Tensor& x) { return negative(x); }

inline Tensor matmul(const Tensor& a, const Tensor& b, const Stream& stream = {}) {
  compute_tensor* out = nullptr;
  check(compute_matmul(stream.get(), a.get(), b.get(), nullptr, &out));
  return Tensor(out);
}

namespace detail {

inline compute_attribute attribute(const char* name, int32_t kind, int64_t count, const void* values) {
  compute_attribute attribute{};
  attribute.struct_size = sizeof attribute;
  attribute.struct_type = 0;
  attribute.name = name;
  attribute.name_size = static_cast<int64_t>(std::strlen(name));
  attribute.kind = kind;
  attribute.count = count;
  attribute.values = values;
  return attribute;
}

inline Tensor run(const char* name, std::span<compute_tensor* const> inputs,
                  std::span<const compute_attribute> attributes, const Stream& stream) {
  const compute_op* op = nullptr;
  check(compute_op_find(name, 0, &op));
  compute_tensor* out = nullptr;
  check(compute_op_run(op, stream.get(), attributes.data(), static_cast<int64_t>(attributes.size()), inputs.data(),
                       static_cast<int64_t>(inputs.size()), &out, 1));
  return Tensor(out);
}

inline Tensor reduce(const char* name, const Tensor& x, std::optional<std::vector<int64_t>> axes, bool keepdims,
                     const Stream& stream) {
  std::vector<compute_attribute> attributes;
  if (axes)
    attributes.push_back(attribute("axes", COMPUTE_KIND_INT64, static_cast<int64_t>(axes->size()), axes->data()));
  const int64_t keep = keepdims ? 1 : 0;
  if (keepdims) attributes.push_back(attribute("keepdims", COMPUTE_KIND_INT64, 1, &keep));
  compute_tensor* const inputs[] = {x.get()};
  return run(name, inputs, attributes, stream);
}

}  // namespace detail

#define COMPUTE_REDUCTION_(name)                                                                                      \
  inline Tensor name(const Tensor& x, std::optional<std::vector<int64_t>> axes = std::nullopt, bool keepdims = false, \
                     const Stream& stream = {}) {                                                                     \
    return detail::reduce(#name, x, std::move(axes), keepdims, stream);                                               \
  }
COMPUTE_REDUCTION_(sum)
COMPUTE_REDUCTION_(prod)
COMPUTE_REDUCTION_(min)
COMPUTE_REDUCTION_(max)
COMPUTE_REDUCTION_(mean)
COMPUTE_REDUCTION_(var)
COMPUTE_REDUCTION_(std)
COMPUTE_REDUCTION_(any)
COMPUTE_REDUCTION_(all)
#undef COMPUTE_REDUCTION_

inline Tensor cast(const Tensor& x, compute_dtype dtype, const Stream& stream = {}) {
  const compute_attribute attributes[] = {detail::attribute("dtype", COMPUTE_KIND_DTYPE, 1, &dtype)};
  compute_tensor* const inputs[] = {x.get()};
  return detail::run("cast", inputs, attributes, stream);
}

inline Tensor copy(const Tensor& x, const Stream& stream = {}) {
  compute_tensor* const inputs[] = {x.get()};
  return detail::run("copy", inputs, {}, stream);
}

inline Tensor take(const Tensor& x, const Tensor& indices, int64_t axis = 0, const Stream& stream = {}) {
  const compute_attribute attributes[] = {detail::attribute("axis", COMPUTE_KIND_INT64, 1, &axis)};
  compute_tensor* const inputs[] = {x.get(), indices.get()};
  return detail::run("take", inputs, attributes, stream);
}

inline Tensor concat(std::span<const Tensor> tensors, int64_t axis = 0, const Stream& stream = {}) {
  const compute_attribute attributes[] = {detail::attribute("axis", COMPUTE_KIND_INT64, 1, &axis)};
  std::vector<compute_tensor*> inputs;
  for (const Tensor& tensor : tensors) inputs.push_back(tensor.get());
  return detail::run("concat", inputs, attributes, stream);
}

}  // namespace compute

#endif  // COMPUTE_COMPUTE_HPP_
