// SPDX-License-Identifier: Apache-2.0
//
// tensor.hpp: tensors, their views, and their memory on the host. Include compute.hpp.
#ifndef COMPUTE_TENSOR_HPP_
#define COMPUTE_TENSOR_HPP_

#include <algorithm>
#include <array>

#include "compute/stream.hpp"

namespace compute {

template <MemoryElement T>
class Mapped;

// ---- Indices --------------------------------------------------------------------------------------------------------

/// Part of an axis: Python's start:stop:step.
struct Slice {
  int64_t start = std::numeric_limits<int64_t>::min();
  int64_t stop = std::numeric_limits<int64_t>::max();
  int64_t step = 1;
};

/// A whole axis: Python's `:`.
[[nodiscard]] constexpr Slice slice() noexcept { return {}; }
/// Python's start:stop:step. `none` is the respective end of the direction of `step`; negative positions count from the
/// end; positions out of range are clipped.
[[nodiscard]] constexpr Slice slice(std::optional<Integer> start, std::optional<Integer> stop, Integer step = 1) {
  Slice part;
  if (start) part.start = start->value();
  if (stop) part.stop = stop->value();
  part.step = step.value();
  return part;
}

struct NewAxis {};
/// A new axis of extent 1.
inline constexpr NewAxis newaxis{};

struct Ellipsis {};
/// As many whole axes as the other indices leave; at most one.
inline constexpr Ellipsis ellipsis{};

/// An index of Tensor::operator(): a position, a slice, newaxis or ellipsis.
class Index {
 public:
  template <IntegerType T>
  constexpr Index(T position) : kind_(Kind::kPosition) {  // NOLINT: implicit on purpose
    slice_.start = Integer(position).value();
  }
  constexpr Index(Slice part) noexcept : slice_(part), kind_(Kind::kSlice) {}  // NOLINT: implicit on purpose
  constexpr Index(NewAxis) noexcept : kind_(Kind::kNewAxis) {}                 // NOLINT: implicit on purpose
  constexpr Index(Ellipsis) noexcept : kind_(Kind::kEllipsis) {}               // NOLINT: implicit on purpose

 private:
  friend class Tensor;
  enum class Kind : uint8_t { kPosition, kSlice, kNewAxis, kEllipsis };

  Slice slice_;
  Kind kind_;
};

// ---- Tensors --------------------------------------------------------------------------------------------------------

/// What a mapping is for.
enum class Access : int32_t {
  read = COMPUTE_ACCESS_READ,
  write = COMPUTE_ACCESS_WRITE,
  read_write = COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE
};

/// What set_transfers allows.
enum class Transfers : int32_t {
  by_setting = COMPUTE_TRANSFERS_DEFAULT,  ///< as the setting COMPUTE_TRANSFERS says
  allow = COMPUTE_TRANSFERS_ALLOW,
  warn = COMPUTE_TRANSFERS_WARN,
  error = COMPUTE_TRANSFERS_ERROR
};

/// What a program promises about host memory that it wraps; see COMPUTE_WRAP_ in compute.h.
enum class Wrap : int32_t {
  immutable = COMPUTE_WRAP_IMMUTABLE,  ///< never written while wrapped
  tracked = COMPUTE_WRAP_TRACKED,      ///< written only between calls of touch()
  exposed = COMPUTE_WRAP_EXPOSED       ///< written at any time between calls
};

/// Calls the deleter of a DLPack tensor. Needs DLPack's header where it is used.
struct DlpackDeleter {
  template <class Managed>
  void operator()(Managed* managed) const noexcept {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};

/// Sets the entries of a DLPackExchangeAPI that need no Python: managed_tensor_allocator and current_work_stream. Needs
/// the header of DLPack 1.2.
template <class ExchangeApi>
void fill_dlpack_exchange(ExchangeApi& table) noexcept {
  table.managed_tensor_allocator = [](auto* prototype, auto** out_managed, void* error_context, auto set_error) {
    return static_cast<int>(compute_dlpack_allocate(prototype, out_managed, error_context, set_error));
  };
  table.current_work_stream = [](auto device_type, int32_t device_id, void** out_stream) {
    return static_cast<int>(compute_dlpack_current_work_stream(device_type, device_id, out_stream));
  };
}

/// A dtype, a shape and strides over memory on a device.
///
/// A Tensor is a handle. Copying one copies no elements: both are the same tensor. Assigning to a named Tensor makes it
/// another handle; assigning to a view that an expression makes, x[0] = y, writes elements (see below).
///
/// Threads: any.
/// Errors:  calls on a default-constructed or moved-from Tensor throw INVALID_ARGUMENT; its rank, size and shape are
///          those of no elements.
class Tensor : public Reference<compute_tensor, compute_tensor_retain, compute_tensor_release> {
 public:
  using Reference::Reference;
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  ~Tensor() = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;
  /// The truth of a tensor is not defined: `if (x == y)` does not compile. See any(), all(), item() and defined().
  explicit operator bool() const = delete;

  // -- Creation. Device has empty(), full(), from_host() and others.

  /// A number literal as an operand: a weak scalar. x + 1.0f keeps the dtype of x.
  template <Element T>
  Tensor(T value) : Tensor(scalar(value, true)) {}  // NOLINT: implicit on purpose

  /// An immutable operand of rank 0, without memory. A weak one takes the dtype of the other operands.
  template <Element T, std::same_as<bool> B = bool>
  [[nodiscard]] static Tensor scalar(T value, B weak = false) {
    return make([&](compute_tensor** out) {
      return compute_tensor_scalar(dtype_of<T>.id(), &value, weak ? COMPUTE_SCALAR_WEAK : 0u, out);
    });
  }
  /// A scalar whose value in a recorded graph is changed by Graph::set_slot. Starts as 0.
  [[nodiscard]] static Tensor slot(DType dtype) {
    return make([&](compute_tensor** out) { return compute_tensor_slot(dtype.id(), out); });
  }

  /// A host tensor over memory of the program, without a copy.
  ///
  /// `data` is the element with all indices 0; `strides` in elements, row-major without them. Elements that are const
  /// need Wrap::immutable.
  ///
  /// Ownership: the memory stays the program's, and must outlive the tensor and the work that uses it.
  template <MemoryElement T>
  [[nodiscard]] static Tensor wrap_host(T* data, List<int64_t> shape, Wrap promise,
                                        std::optional<List<int64_t>> strides = none) {
    return wrap(data, shape, promise, strides, nullptr, nullptr);
  }
  /// The same. `deleter` is called once with `data`, from any thread, when nothing uses the memory any more; it must
  /// not call this library, and an exception that leaves it is dropped. If this call throws, it is not called.
  template <MemoryElement T, std::invocable<T*> F>
  [[nodiscard]] static Tensor wrap_host(T* data, List<int64_t> shape, Wrap promise, F deleter,
                                        std::optional<List<int64_t>> strides = none) {
    auto kept = std::make_unique<F>(std::move(deleter));
    const auto call = [](void* memory, void* user_data) {
      const std::unique_ptr<F> owned(static_cast<F*>(user_data));
      try {
        (*owned)(static_cast<T*>(memory));
      } catch (...) {  // the thread is the library's: nobody could catch it
      }
    };
    Tensor tensor = wrap(data, shape, promise, strides, call, kept.get());
    static_cast<void>(kept.release());
    return tensor;
  }
  /// A host tensor that owns `values`, without a copy.
  template <ArrayElement T>
  [[nodiscard]] static Tensor wrap_host(std::vector<T>&& values, List<int64_t> shape, Wrap promise = Wrap::immutable) {
    require_count("wrap_host", values.size(), shape);
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* const data = kept->data();
    return wrap_host(data, shape, promise, [owned = std::move(kept)](T*) {});
  }
  /// Says that the program wrote memory that it wrapped: mirrors of it are stale from now on.
  void touch() const { check(compute_tensor_touch(get())); }

  /// A tensor over what another library exported. The tensor owns `managed` on success, the caller on error.
  [[nodiscard]] static Tensor from_dlpack(DLManagedTensorVersioned* managed) {
    return make([&](compute_tensor** out) { return compute_tensor_from_dlpack(managed, out); });
  }
  /// The same for the struct of DLPack before 1.0.
  [[nodiscard]] static Tensor from_dlpack(DLManagedTensor* managed) {
    return make([&](compute_tensor** out) { return compute_tensor_from_dlpack_unversioned(managed, out); });
  }
  template <class Managed, class Deleter>
  [[nodiscard]] static Tensor from_dlpack(std::unique_ptr<Managed, Deleter>&& managed) {
    Tensor tensor = from_dlpack(managed.get());
    static_cast<void>(managed.release());
    return tensor;
  }
  /// The memory for another library. `stream` is the consumer's in DLPack's numbering; -1: no synchronization. The
  /// buffer is exposed until the result's deleter is called. Needs DLPack's header.
  template <std::same_as<DLManagedTensorVersioned> Managed = DLManagedTensorVersioned>
  [[nodiscard]] std::unique_ptr<Managed, DlpackDeleter> to_dlpack(int64_t stream = -1) const {
    Managed* managed = nullptr;
    check(compute_tensor_to_dlpack(get(), stream, &managed));
    return std::unique_ptr<Managed, DlpackDeleter>(managed);
  }
  /// The same as the struct of DLPack before 1.0. UNSUPPORTED for immutable memory.
  template <std::same_as<DLManagedTensor> Managed = DLManagedTensor>
  [[nodiscard]] std::unique_ptr<Managed, DlpackDeleter> to_dlpack_unversioned(int64_t stream = -1) const {
    Managed* managed = nullptr;
    check(compute_tensor_to_dlpack_unversioned(get(), stream, &managed));
    return std::unique_ptr<Managed, DlpackDeleter>(managed);
  }
  /// A borrowed view: x.to_dltensor<DLTensor>(). It is valid as long as the tensor. See compute.h for its limits.
  template <class View>
  [[nodiscard]] View to_dltensor() const {
    static_assert(sizeof(View) == 48, "DLPack's DLTensor has 48 bytes");
    View view{};
    check(compute_tensor_to_dltensor(get(), &view));
    return view;
  }

  // -- Properties

  [[nodiscard]] DType dtype() const noexcept { return DType(compute_tensor_dtype(get())); }
  [[nodiscard]] int32_t rank() const noexcept { return compute_tensor_rank(get()); }
  /// Extents, outermost first. Valid as long as the tensor.
  [[nodiscard]] std::span<const int64_t> shape() const noexcept {
    return {compute_tensor_shape(get()), static_cast<size_t>(rank())};
  }
  /// In elements. Valid as long as the tensor.
  [[nodiscard]] std::span<const int64_t> strides() const noexcept {
    return {compute_tensor_strides(get()), static_cast<size_t>(rank())};
  }
  /// The extent of an axis; a negative one counts from the end.
  [[nodiscard]] int64_t extent(Integer axis) const { return shape()[axis_index("extent", axis.value())]; }
  /// Where in the buffer the element with all indices 0 lies.
  [[nodiscard]] int64_t offset_bytes() const noexcept { return compute_tensor_offset_bytes(get()); }
  /// The number of elements.
  [[nodiscard]] int64_t size() const noexcept { return compute_tensor_element_count(get()); }
  [[nodiscard]] int64_t size_bytes() const noexcept { return compute_tensor_size_bytes(get()); }
  [[nodiscard]] Device device() const;
  [[nodiscard]] bool shares_buffer(const Tensor& other) const noexcept {
    return compute_tensor_shares_buffer(get(), other.get()) != 0;
  }
  /// A name for reports and messages.
  [[nodiscard]] std::string_view label() const noexcept { return compute_tensor_label(get()); }
  void set_label(const std::string& label) const { check(compute_tensor_set_label(get(), label.c_str())); }
  /// What happens if an op needs an implicit copy of the elements to or from another device.
  void set_transfers(Transfers transfers) const {
    check(compute_tensor_set_transfers(get(), static_cast<int32_t>(transfers)));
  }
  /// Where the element with all indices 0 lies, as native<compute_native_cuda>().address, borrowed; see compute.h.
  /// UNSUPPORTED if the device has no handles of this kind.
  template <class Handle>
  [[nodiscard]] Handle native() const {
    auto handle = sized<Handle>();
    check(compute_tensor_native_handle(get(), detail::native_kind<Handle>, &handle));
    return handle;
  }

  // -- Views. They share the buffer and never call a device.

  /// Part of the tensor, as in NumPy: x(1, slice(2, none), newaxis). A position takes its axis away; axes behind the
  /// last index stay whole. OUT_OF_RANGE for a position that the axis does not have, INVALID_ARGUMENT for more indices
  /// than axes.
  template <std::convertible_to<Index>... Indices>
  [[nodiscard]] Tensor operator()(const Indices&... indices) const {
    const std::array<Index, sizeof...(indices)> all{Index(indices)...};
    return part(all);
  }
  /// The same with one index: x[3], x[slice(1, 5)].
  [[nodiscard]] Tensor operator[](const Index& index) const { return part({&index, 1}); }
  /// Python's x[start:stop:step] along one axis; other axes stay whole.
  [[nodiscard]] Tensor slice(Integer axis, std::optional<Integer> start, std::optional<Integer> stop,
                             Integer step = 1) const {
    Dims starts, stops, steps;
    whole(starts, stops, steps);
    const size_t at = axis_index("slice", axis.value());
    const Slice along = compute::slice(start, stop, step);
    starts[at] = along.start;
    stops[at] = along.stop;
    steps[at] = along.step;
    return sliced(starts, stops, steps);
  }
  /// Row-major. One extent may be -1. UNSUPPORTED for a layout that cannot be viewed so: copy(x) can.
  [[nodiscard]] Tensor reshape(List<int64_t> shape) const {
    return make([&](compute_tensor** out) {
      return compute_tensor_reshape(get(), static_cast<int32_t>(shape.size()), shape.data(), out);
    });
  }
  /// Axis i of the view is axis axes[i] of the tensor.
  [[nodiscard]] Tensor permute(List<int32_t> axes) const {
    return make([&](compute_tensor** out) {
      const int32_t no_axis = 0;  // NULL would reverse
      return compute_tensor_permute(get(), static_cast<int32_t>(axes.size()), axes.size() == 0 ? &no_axis : axes.data(),
                                    out);
    });
  }
  /// All axes reversed.
  [[nodiscard]] Tensor transpose() const {
    return make([&](compute_tensor** out) { return compute_tensor_permute(get(), rank(), nullptr, out); });
  }
  /// Extents of 1, and missing leading axes, repeat.
  [[nodiscard]] Tensor broadcast_to(List<int64_t> shape) const {
    return make([&](compute_tensor** out) {
      return compute_tensor_broadcast(get(), static_cast<int32_t>(shape.size()), shape.data(), out);
    });
  }
  /// With a new axis of extent 1 in front of axis `axis` of the result; a negative one counts from the end.
  [[nodiscard]] Tensor expand_dims(int32_t axis) const {
    return make([&](compute_tensor** out) { return compute_tensor_expand(get(), axis, out); });
  }
  /// Without axis `axis`, which has extent 1.
  [[nodiscard]] Tensor squeeze(int32_t axis) const {
    return make([&](compute_tensor** out) { return compute_tensor_squeeze(get(), axis, out); });
  }
  /// The buffer with a dtype of the same size, and any layout that stays inside the buffer.
  [[nodiscard]] Tensor view(DType dtype, List<int64_t> shape, List<int64_t> strides, int64_t offset_bytes) const {
    if (shape.size() != strides.size()) detail::throw_invalid("view: the numbers of strides and extents differ");
    return make([&](compute_tensor** out) {
      return compute_tensor_view(get(), dtype.id(), static_cast<int32_t>(shape.size()), shape.data(), strides.data(),
                                 offset_bytes, out);
    });
  }

  // -- Elements

  /// All elements in row-major order; waits for the work that writes them. T is the tensor's dtype; uint8_t takes bool
  /// too, as 0 and 1.
  template <Element T>
  [[nodiscard]] std::vector<T> to_vector() const {
    static_assert(!std::is_same_v<T, bool>,
                  "std::vector<bool> has no elements to copy to: read into a std::vector<uint8_t>");
    require_readable_as<T>();
    std::vector<T> values(static_cast<size_t>(size()));
    read_elements(values.data(), size_bytes());
    return values;
  }
  /// The only element of a tensor that has one. T is the tensor's dtype.
  template <Element T>
  [[nodiscard]] T item() const {
    require_dtype(dtype_of<T>);
    if (size() != 1) detail::throw_invalid("item: the tensor has " + std::to_string(size()) + " elements");
    T value{};
    read_elements(&value, size_bytes());
    return value;
  }
  /// The element with these indices, one for each axis. T is the tensor's dtype.
  template <Element T>
  [[nodiscard]] T item(List<int64_t> indices) const {
    require_dtype(dtype_of<T>);
    T value{};
    check(compute_tensor_read_element(get(), static_cast<int32_t>(indices.size()), indices.data(), &value,
                                      static_cast<int64_t>(sizeof value)));
    if (dtype() == bool_) make_truths(&value, sizeof value);
    return value;
  }
  /// Copies all elements to `dst` in row-major order; waits for the work that writes them.
  template <Element T>
  void read(std::span<T> dst) const {
    require_readable_as<T>();
    read_elements(dst.data(), static_cast<int64_t>(dst.size_bytes()));
  }
  void read(void* dst, int64_t size_bytes) const { check(compute_tensor_read(get(), dst, size_bytes)); }
  /// Copies row-major elements into the tensor, after the work that uses it. `src` may be reused on return.
  template <Element T>
  void write(std::span<const T> src) const {
    require_readable_as<T>();
    check(compute_tensor_write(get(), src.data(), static_cast<int64_t>(src.size_bytes())));
  }
  template <ArrayElement T>
  void write(const std::vector<T>& src) const {
    write(std::span<const T>(src));
  }
  void write(const void* src, int64_t size_bytes) const { check(compute_tensor_write(get(), src, size_bytes)); }
  /// The same in stream order. The memory must stay until the stream has passed this point.
  template <Element T>
  void read_async(std::span<T> dst, const Stream& stream) const {
    require_readable_as<T>();
    read_async(dst.data(), static_cast<int64_t>(dst.size_bytes()), stream);
  }
  void read_async(void* dst, int64_t size_bytes, const Stream& stream) const {
    check(compute_tensor_read_async(get(), dst, size_bytes, stream.get()));
  }
  template <Element T>
  void write_async(std::span<const T> src, const Stream& stream) const {
    require_readable_as<T>();
    write_async(src.data(), static_cast<int64_t>(src.size_bytes()), stream);
  }
  void write_async(const void* src, int64_t size_bytes, const Stream& stream) const {
    check(compute_tensor_write_async(get(), src, size_bytes, stream.get()));
  }
  /// A row-major copy on `device`; on the tensor's own device the tensor itself.
  [[nodiscard]] Tensor to(const Device& device) const;
  /// Waits for exactly the work that writes the tensor. Throws what it failed with.
  void synchronize() const { check(compute_tensor_synchronize(get())); }
  /// The elements in host memory until the result goes: map<const float>() to read, map<float>() to read and write.
  template <MemoryElement T>
  [[nodiscard]] Mapped<T> map(Access access = std::is_const_v<T> ? Access::read : Access::read_write) const;

  // -- Writing elements

  /// Copies the elements of `src`, broadcast to this shape, into this memory. The dtypes are the same.
  void assign(const Tensor& src, const Stream& stream = {}) const {
    const bool same_shape = std::ranges::equal(src.shape(), shape());
    const Tensor from = same_shape ? src : src.broadcast_to(shape());
    check(compute_copy_into(stream.get(), from.get(), nullptr, get()));
  }
  /// Writes `value` to every element. INVALID_ARGUMENT if the dtype cannot hold it.
  void fill(const Number& value, const Stream& stream = {}) const {
    compute_fill_options options{};
    options.struct_size = sizeof options;
    options.value = value.get();
    check(compute_fill_into(stream.get(), shape().data(), rank(), dtype().id(), &options, get()));
  }
  template <std::same_as<bool> T>
  void fill(T value, const Stream& stream = {}) const {
    require_dtype(bool_);
    fill(Number(value ? 1 : 0), stream);
  }
  /// Assignment to what an expression made writes elements, as in NumPy: x[0] = y, x(slice(), 1) = 0.0f.
  void operator=(const Tensor& src) && { assign(src); }
  template <Element T>
  void operator=(T value) && {
    fill(value);
  }

  /// x += y and its like write into the memory of x: whatever shares it sees the result. The result has the shape and
  /// the dtype of x, else the call throws. % is remainder, with the sign of y.
#define COMPUTE_ASSIGNMENT_(symbol, name)                         \
  Tensor& operator symbol(const Tensor& y)& {                     \
    check(compute_##name##_into(nullptr, get(), y.get(), get())); \
    return *this;                                                 \
  }                                                               \
  void operator symbol(const Tensor& y)&& { check(compute_##name##_into(nullptr, get(), y.get(), get())); }
  COMPUTE_ASSIGNMENT_(+=, add)
  COMPUTE_ASSIGNMENT_(-=, subtract)
  COMPUTE_ASSIGNMENT_(*=, multiply)
  COMPUTE_ASSIGNMENT_(/=, divide)
  COMPUTE_ASSIGNMENT_(%=, remainder)
  COMPUTE_ASSIGNMENT_(&=, bitwise_and)
  COMPUTE_ASSIGNMENT_(|=, bitwise_or)
  COMPUTE_ASSIGNMENT_(^=, bitwise_xor)
  COMPUTE_ASSIGNMENT_(<<=, bitwise_left_shift)
  COMPUTE_ASSIGNMENT_(>>=, bitwise_right_shift)
#undef COMPUTE_ASSIGNMENT_

 private:
  template <MemoryElement T>
  friend class Mapped;
  friend class Device;
  using Dims = std::array<int64_t, COMPUTE_MAX_RANK>;

  // Memory from elsewhere may hold any byte for true; a bool of C++ may not.
  static void make_truths(void* data, int64_t size_bytes) {
    auto* const bytes = static_cast<unsigned char*>(data);
    std::transform(bytes, bytes + size_bytes, bytes,
                   [](unsigned char byte) { return static_cast<unsigned char>(byte != 0); });
  }
  void read_elements(void* dst, int64_t size_bytes) const {
    check(compute_tensor_read(get(), dst, size_bytes));
    if (dtype() == bool_) make_truths(dst, size_bytes);
  }

  template <class F>
  [[nodiscard]] static Tensor make(F&& call) {
    return Tensor(detail::made<compute_tensor>(call));
  }

  template <class T>
  [[nodiscard]] static Tensor wrap(T* data, List<int64_t> shape, Wrap promise,
                                   const std::optional<List<int64_t>>& strides, compute_deleter deleter,
                                   void* user_data) {
    if (std::is_const_v<T> && promise != Wrap::immutable) {
      detail::throw_invalid("wrap_host: const elements require Wrap::immutable");
    }
    if (strides && strides->size() != shape.size()) {
      detail::throw_invalid("wrap_host: the numbers of strides and extents differ");
    }
    return make([&](compute_tensor** out) {
      return compute_tensor_wrap_host(dtype_of<std::remove_const_t<T>>.id(), static_cast<int32_t>(shape.size()),
                                      shape.data(), strides ? strides->data() : nullptr,
                                      const_cast<std::remove_const_t<T>*>(data), static_cast<int32_t>(promise), deleter,
                                      user_data, out);
    });
  }

  // Throws unless `count` values fill `shape`.
  static void require_count(const char* call, size_t count, List<int64_t> shape) {
    int64_t size = 1;
    for (const int64_t extent : shape) {
      if (extent < 0) return;  // for the library to refuse
      if (extent != 0 && size > std::numeric_limits<int64_t>::max() / extent) return;
      size *= extent;
    }
    if (size != static_cast<int64_t>(count)) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(call) + ": " + std::to_string(count) +
                                                      " values for a shape of " + std::to_string(size) + " elements");
    }
  }
  void require_dtype(DType wanted) const {
    if (!defined()) detail::throw_invalid("the tensor is empty");
    if (dtype() != wanted) {
      detail::throw_invalid("the tensor holds " + std::string(dtype().name()) + ", not " + std::string(wanted.name()));
    }
  }
  template <class T>
  void require_readable_as() const {
    if (!(std::is_same_v<T, uint8_t> && dtype() == bool_)) require_dtype(dtype_of<T>);
  }
  [[nodiscard]] size_t axis_index(const char* call, int64_t axis) const {
    const int64_t at = axis < 0 ? axis + rank() : axis;
    if (at < 0 || at >= rank()) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(call) + ": axis " + std::to_string(axis) +
                                                      " is out of range for a tensor of rank " +
                                                      std::to_string(rank()));
    }
    return static_cast<size_t>(at);
  }

  void whole(Dims& starts, Dims& stops, Dims& steps) const noexcept {
    starts.fill(Slice().start);
    stops.fill(Slice().stop);
    steps.fill(1);
  }
  [[nodiscard]] Tensor sliced(const Dims& starts, const Dims& stops, const Dims& steps) const {
    return make([&](compute_tensor** out) {
      return compute_tensor_slice(get(), rank(), starts.data(), stops.data(), steps.data(), out);
    });
  }
  // A slice of every axis, then a reshape that takes axes of extent 1 away and puts new ones in.
  [[nodiscard]] Tensor part(std::span<const Index> indices) const;
};

inline Tensor Tensor::part(std::span<const Index> indices) const {
  using Kind = Index::Kind;
  Dims starts, stops, steps;
  whole(starts, stops, steps);
  size_t used = 0, ellipses = 0;
  int32_t result_rank = rank();
  for (const Index& index : indices) {
    used += index.kind_ == Kind::kPosition || index.kind_ == Kind::kSlice;
    ellipses += index.kind_ == Kind::kEllipsis;
    result_rank += (index.kind_ == Kind::kNewAxis) - (index.kind_ == Kind::kPosition);
  }
  const auto axes = static_cast<size_t>(rank());
  if (used > axes || ellipses > 1 || result_rank > COMPUTE_MAX_RANK) {
    detail::throw_invalid("index: " + std::to_string(indices.size()) + " indices given for a tensor of rank " +
                          std::to_string(rank()));
  }
  // By axis of the result: the axis of the tensor, or kNew.
  constexpr size_t kNew = COMPUTE_MAX_RANK;
  std::array<size_t, COMPUTE_MAX_RANK> from;
  size_t axis = 0, count = 0;
  bool reshapes = false;
  for (const Index& index : indices) {
    if (index.kind_ == Kind::kNewAxis) {
      from[count++] = kNew;
      reshapes = true;
    } else if (index.kind_ == Kind::kEllipsis) {
      for (size_t left = axes - used; left > 0; --left) from[count++] = axis++;
    } else if (index.kind_ == Kind::kSlice) {
      starts[axis] = index.slice_.start;
      stops[axis] = index.slice_.stop;
      steps[axis] = index.slice_.step;
      from[count++] = axis++;
    } else {
      const int64_t extent = shape()[axis], position = index.slice_.start;
      const int64_t at = position < 0 ? position + extent : position;
      if (at < 0 || at >= extent) {
        throw Error(COMPUTE_ERROR_OUT_OF_RANGE, "index: " + std::to_string(position) + " is outside axis " +
                                                    std::to_string(axis) + " of extent " + std::to_string(extent));
      }
      starts[axis] = at;
      stops[axis] = at + 1;
      ++axis;
      reshapes = true;
    }
  }
  while (axis < axes) from[count++] = axis++;
  Tensor view = sliced(starts, stops, steps);
  if (!reshapes) return view;
  Dims shape;
  for (size_t i = 0; i < count; ++i) shape[i] = from[i] == kNew ? 1 : view.shape()[from[i]];
  return view.reshape(std::span<const int64_t>(shape.data(), count));
}

/// The elements of a tensor in host memory, from Tensor::map until this object goes. Not copyable; moved-from objects
/// map nothing.
///
/// The memory is the tensor's own where the host can address it, else a copy, which is written back when the mapping
/// ends. Meanwhile the buffer is exposed: work that conflicts is not synchronized.
template <MemoryElement T>
class Mapped {
 public:
  Mapped() = default;
  Mapped(Mapped&& other) noexcept { swap(other); }
  Mapped& operator=(Mapped&& other) noexcept {
    Mapped(std::move(other)).swap(*this);
    return *this;
  }
  /// Ends the mapping. An error is dropped: unmap() reports it.
  ~Mapped() {
    if (tensor_.defined()) compute_error_free(compute_tensor_unmap(tensor_.get(), address()));
  }
  /// Ends the mapping. Throws if elements could not be written back.
  void unmap() {
    const Tensor tensor = std::move(tensor_);
    check(compute_tensor_unmap(tensor.get(), address()));
    data_ = nullptr;
  }

  /// The element with all indices 0. NULL for a tensor without elements.
  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] bool is_copy() const noexcept { return is_copy_; }
  [[nodiscard]] std::span<const int64_t> shape() const noexcept { return tensor_.shape(); }
  /// In elements: the tensor's, or row-major ones of a copy.
  [[nodiscard]] std::span<const int64_t> strides() const noexcept { return {strides_.data(), shape().size()}; }
  [[nodiscard]] bool is_row_major() const noexcept {
    int64_t stride = 1;
    for (size_t axis = shape().size(); axis-- > 0; stride *= shape()[axis]) {
      if (shape()[axis] != 1 && strides_[axis] != stride) return false;
    }
    return true;
  }
  /// All elements. UNSUPPORTED unless they are row-major.
  [[nodiscard]] std::span<T> values() const {
    if (tensor_.size() != 0 && !is_row_major()) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED, "map: the elements are not row-major; index them, or copy the tensor");
    }
    return {data_, static_cast<size_t>(tensor_.size())};
  }
  /// An element; one index per axis, from 0. Not checked.
  template <IntegerType... Indices>
  [[nodiscard]] T& operator()(Indices... indices) const noexcept {
    int64_t offset = 0;
    size_t axis = 0;
    ((offset += static_cast<int64_t>(indices) * strides_[axis++]), ...);
    return data_[offset];
  }

 private:
  friend class Tensor;

  Mapped(const Tensor& tensor, Access access) {
    void* data = nullptr;
    int32_t is_copy = 0;
    check(compute_tensor_map(tensor.get(), static_cast<uint32_t>(access), &data, &is_copy));
    tensor_ = tensor;
    data_ = static_cast<T*>(data);
    is_copy_ = is_copy != 0;
    int64_t stride = 1;
    for (size_t axis = tensor.shape().size(); axis-- > 0; stride *= tensor.shape()[axis]) {
      strides_[axis] = is_copy_ ? stride : tensor.strides()[axis];
    }
  }
  [[nodiscard]] void* address() const noexcept { return const_cast<std::remove_const_t<T>*>(data_); }
  void swap(Mapped& other) noexcept {
    std::swap(tensor_, other.tensor_);
    std::swap(data_, other.data_);
    std::swap(is_copy_, other.is_copy_);
    std::swap(strides_, other.strides_);
  }

  Tensor tensor_;
  T* data_ = nullptr;
  bool is_copy_ = false;
  std::array<int64_t, COMPUTE_MAX_RANK> strides_{};
};

template <MemoryElement T>
Mapped<T> Tensor::map(Access access) const {
  if (std::is_const_v<T> && access != Access::read)
    detail::throw_invalid("map: const elements can only be mapped with Access::read");
  require_readable_as<std::remove_const_t<T>>();
  return Mapped<T>(*this, access);
}

namespace detail {

static_assert(sizeof(Tensor) == sizeof(compute_tensor*));

// The handles of a list of tensors; up to 16 without allocating.
class Handles {
 public:
  explicit Handles(List<Tensor> tensors) : size_(tensors.size()) {
    if (size_ > few_.size()) many_.resize(size_);
    for (size_t i = 0; i < size_; ++i) data()[i] = tensors[i].get();
  }
  [[nodiscard]] compute_tensor** data() noexcept { return many_.empty() ? few_.data() : many_.data(); }
  [[nodiscard]] int64_t size() const noexcept { return static_cast<int64_t>(size_); }

 private:
  std::array<compute_tensor*, 16> few_;
  std::vector<compute_tensor*> many_;
  size_t size_;
};

}  // namespace detail

}  // namespace compute

#endif  // COMPUTE_TENSOR_HPP_
