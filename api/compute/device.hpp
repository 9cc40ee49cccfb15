// SPDX-License-Identifier: Apache-2.0
//
// device.hpp: devices, what is known of them, and the tensors that they make. Include compute.hpp.
#ifndef COMPUTE_DEVICE_HPP_
#define COMPUTE_DEVICE_HPP_

#include <functional>

#include "compute/tensor.hpp"

namespace compute {

/// A program takes an unknown kind as any other device.
enum class DeviceKind : int32_t {
  cpu = COMPUTE_DEVICE_KIND_CPU,
  discrete_gpu = COMPUTE_DEVICE_KIND_DISCRETE_GPU,
  integrated_gpu = COMPUTE_DEVICE_KIND_INTEGRATED_GPU,
  accelerator = COMPUTE_DEVICE_KIND_ACCELERATOR
};

/// Whether a device works. A program takes an unknown value as unusable.
enum class Health : int32_t {
  unknown = COMPUTE_HEALTH_UNKNOWN,
  good = COMPUTE_HEALTH_GOOD,
  context_lost = COMPUTE_HEALTH_CONTEXT_LOST,
  device_lost = COMPUTE_HEALTH_DEVICE_LOST,
  restart_required = COMPUTE_HEALTH_RESTART_REQUIRED,
  forked = COMPUTE_HEALTH_FORKED
};

/// How far a device supports a dtype: bits.
enum class DTypeSupport : uint32_t {
  storage = COMPUTE_DTYPE_LEVEL_STORAGE,
  convert = COMPUTE_DTYPE_LEVEL_CONVERT,
  arithmetic = COMPUTE_DTYPE_LEVEL_ARITHMETIC,
  matmul = COMPUTE_DTYPE_LEVEL_MATMUL
};

/// How a device treats subnormal numbers of float32.
enum class Subnormals : int32_t {
  unknown = COMPUTE_SUBNORMALS_UNKNOWN,
  kept = COMPUTE_SUBNORMALS_KEPT,
  flushed = COMPUTE_SUBNORMALS_FLUSHED
};

/// What is known of a device without opening it. Strings live as long as the process.
struct DeviceInfo {
  std::string_view name;            ///< canonical: cpu, cuda0, opencl0:1
  std::string_view plugin;          ///< cpu, cuda, opencl, …
  std::string_view description;     ///< the model, as the vendor spells it
  std::string_view vendor;          ///<
  std::string_view driver_version;  ///<
  std::string_view pci_address;     ///< 0000:65:00.0; "" if it has none
  std::string_view uuid;            ///< "" if it has none
  std::string_view same_as;         ///< the same card or processor under another plugin, or ""
  std::string_view libraries;       ///< vendor libraries found, one a line: name, version, path
  std::string_view unusable;        ///< why it cannot be opened; "" if it can
  int64_t memory_bytes = -1;        ///< total; -1 if unknown
  DeviceKind kind{};
  int32_t platform_index = -1;  ///< of devices numbered in two levels; else -1
  int32_t device_index = 0;
  int32_t flat_index = 0;            ///< over the plugin's devices
  std::span<const uint32_t> dtypes;  ///< bits of DTypeSupport by dtype id
  Subnormals subnormals{};
  // Limits of kernels, as in compute.h; 0 if unknown.
  int32_t subgroup_size_min = 0;
  int32_t subgroup_size_max = 0;
  int64_t local_memory_bytes = 0;
  int64_t argument_bytes = 0;
  int32_t max_group_size = 0;
  int32_t atomic_alignment = 0;

  [[nodiscard]] bool supports(DType dtype, DTypeSupport level) const noexcept {
    const auto id = static_cast<size_t>(dtype.id());
    return id < dtypes.size() && (dtypes[id] & static_cast<uint32_t>(level)) != 0;
  }

  DeviceInfo() = default;
  explicit DeviceInfo(const compute_device_info& from)
      : name(detail::string_of(from.name, from.name_size)),
        plugin(detail::string_of(from.plugin, from.plugin_size)),
        description(detail::string_of(from.description, from.description_size)),
        vendor(detail::string_of(from.vendor, from.vendor_size)),
        driver_version(detail::string_of(from.driver_version, from.driver_version_size)),
        pci_address(detail::string_of(from.pci_address, from.pci_address_size)),
        uuid(detail::string_of(from.uuid, from.uuid_size)),
        same_as(detail::string_of(from.same_as, from.same_as_size)),
        libraries(detail::string_of(from.libraries, from.libraries_size)),
        unusable(detail::string_of(from.unusable, from.unusable_size)),
        memory_bytes(from.memory_bytes),
        kind(static_cast<DeviceKind>(from.kind)),
        platform_index(from.platform_index),
        device_index(from.device_index),
        flat_index(from.flat_index),
        dtypes(from.dtypes, from.dtypes != nullptr ? static_cast<size_t>(from.dtype_count) : 0),
        subnormals(static_cast<Subnormals>(from.subnormals)),
        subgroup_size_min(from.subgroup_size_min),
        subgroup_size_max(from.subgroup_size_max),
        local_memory_bytes(from.local_memory_bytes),
        argument_bytes(from.argument_bytes),
        max_group_size(from.max_group_size),
        atomic_alignment(from.atomic_alignment) {}
};

/// A further property of a device, as text. Strings live as long as the process.
struct DeviceAttribute {
  std::string_view name;  ///< multiprocessors, l2_cache_bytes, …
  std::string_view value;
};

/// Counters since a device was opened: memory, ops, plans, transfers. The fields are those of compute.h.
using DeviceStatistics = compute_device_statistics;

/// Measurements of a device by its driver; -1: unknown. The fields are those of compute.h.
using DeviceTelemetry = compute_device_telemetry;

/// Memory of the program for the tensors of a device; see Device::set_allocator and compute_device_set_allocator.
///
/// Threads: the library calls both functions from any thread, also several at once. They must not call the library.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// At least `size_bytes` at a multiple of `alignment`. nullptr or an exception: there is not enough.
  virtual void* allocate(int64_t size_bytes, int64_t alignment) = 0;
  /// Takes back what allocate() returned for `size_bytes`. An exception is dropped.
  virtual void release(void* address, int64_t size_bytes) = 0;
};

/// What ops run on. Threads: any.
class Device : public Reference<compute_device, compute_device_retain, compute_device_release> {
 public:
  using Reference::Reference;

  /// The device that COMPUTE_DEVICE, the config file or `auto` names. The same device twice is the same handle.
  [[nodiscard]] static Device open() { return open_text(nullptr); }
  /// The device that `selector` names: "cpu", "cuda0", "opencl0:1", "cuda,cpu", "auto,-opencl". Throws INVALID_ARGUMENT
  /// for a malformed one, NOT_FOUND with the load report.
  [[nodiscard]] static Device open(const std::string& selector) { return open_text(selector.c_str()); }
  /// Which device would be opened, who chose it, and why not the others; opens nothing.
  [[nodiscard]] static std::string which(Format format = Format::text) { return which_text(nullptr, format); }
  [[nodiscard]] static std::string which(const std::string& selector, Format format = Format::text) {
    return which_text(selector.c_str(), format);
  }
  /// Every device of every plugin, `cpu` first; opens none.
  [[nodiscard]] static std::vector<DeviceInfo> list() {
    const auto infos = detail::list_of<compute_device_info>(compute_device_list);
    return std::vector<DeviceInfo>(infos.begin(), infos.end());
  }
  /// The further properties of the device with that canonical name, opened or not.
  [[nodiscard]] static std::vector<DeviceAttribute> attributes_of(const std::string& name) {
    std::vector<DeviceAttribute> all;
    for (const auto& one : detail::list_of<compute_device_attribute>([&](auto*list, int64_t capacity, int64_t*count) {
           return compute_device_attributes(name.c_str(), list, capacity, count);
         })) {
      all.push_back({detail::string_of(one.name, one.name_size), detail::string_of(one.value, one.value_size)});
    }
    return all;
  }

  /// Canonical: cpu, cuda0, opencl0:1.
  [[nodiscard]] std::string name() const { return compute_device_name(get()); }
  [[nodiscard]] DeviceInfo info() const {
    auto info = sized<compute_device_info>();
    check(compute_device_get_info(get(), &info));
    return DeviceInfo(info);
  }
  [[nodiscard]] std::vector<DeviceAttribute> attributes() const { return attributes_of(name()); }
  [[nodiscard]] DeviceStatistics statistics() const {
    auto statistics = sized<DeviceStatistics>();
    check(compute_device_get_statistics(get(), &statistics));
    return statistics;
  }
  [[nodiscard]] DeviceTelemetry telemetry() const {
    auto telemetry = sized<DeviceTelemetry>();
    check(compute_device_get_telemetry(get(), &telemetry));
    return telemetry;
  }
  /// The processes that use the device, as far as its driver knows them.
  [[nodiscard]] std::vector<compute_device_process> processes() const {
    return detail::list_of<compute_device_process>([&](auto* list, int64_t capacity, int64_t* count) {
      return compute_device_processes(get(), list, capacity, count);
    });
  }
  [[nodiscard]] Health health() const {
    int32_t health = 0;
    check(compute_device_health(get(), &health));
    return static_cast<Health>(health);
  }
  /// The objects below the device, as native<compute_native_cuda>().context, borrowed; see compute.h. UNSUPPORTED if it
  /// has none of this kind.
  template <class Handle>
  [[nodiscard]] Handle native() const {
    auto handle = sized<Handle>();
    check(compute_device_native_handle(get(), detail::native_kind<Handle>, &handle));
    return handle;
  }
  /// Waits for all work of all streams that was queued before. Throws a failure that no other call has reported yet.
  void synchronize() const { check(compute_device_synchronize(get())); }
  /// Gives cached memory and mirrors back until at most `keep_bytes` are cached.
  void trim(int64_t keep_bytes = 0) const { check(compute_device_trim(get(), keep_bytes)); }
  /// Memory for tensors, temporaries and mirrors comes from `allocator` from now on. With `cached`, the library keeps
  /// freed blocks. INVALID_ARGUMENT while the device has live tensors.
  ///
  /// Ownership: `allocator` stays the caller's. It must live until reset_allocator, shutdown or the end of the process.
  template <std::same_as<bool> B = bool>
  void set_allocator(Allocator& allocator, B cached = false) const {
    compute_allocator given{};
    given.struct_size = sizeof given;
    given.struct_type = COMPUTE_STRUCT_ALLOCATOR;
    given.flags = cached ? COMPUTE_ALLOCATOR_CACHED : 0u;
    given.allocate = [](int64_t size_bytes, int64_t alignment, void* self) -> void* {
      try {
        return static_cast<Allocator*>(self)->allocate(size_bytes, alignment);
      } catch (...) {  // std::bad_alloc above all
        return nullptr;
      }
    };
    given.release = [](void* address, int64_t size_bytes, void* self) {
      try {
        static_cast<Allocator*>(self)->release(address, size_bytes);
      } catch (...) {  // nobody could catch it
      }
    };
    given.user_data = &allocator;
    check(compute_device_set_allocator(get(), &given));
  }
  /// Memory comes from the device itself again.
  void reset_allocator() const { check(compute_device_set_allocator(get(), nullptr)); }

  /// A row-major tensor with undefined contents.
  [[nodiscard]] Tensor empty(DType dtype, List<int64_t> shape) const {
    return Tensor::make([&](compute_tensor** out) {
      return compute_tensor_empty(get(), dtype.id(), static_cast<int32_t>(shape.size()), shape.data(), out);
    });
  }
  /// The same in memory that others can import, and the description of that memory; see compute.h. Its descriptor, if
  /// it has one, is the caller's.
  [[nodiscard]] std::pair<Tensor, compute_external> empty_external(uint32_t kind, DType dtype,
                                                                   List<int64_t> shape) const {
    auto external = sized<compute_external>();
    Tensor tensor = Tensor::make([&](compute_tensor** out) {
      return compute_tensor_empty_external(get(), kind, dtype.id(), static_cast<int32_t>(shape.size()), shape.data(),
                                           &external, out);
    });
    return {std::move(tensor), external};
  }
  /// A row-major tensor in memory that others share.
  [[nodiscard]] Tensor from_external(const compute_external& external, DType dtype, List<int64_t> shape,
                                     int64_t offset_bytes = 0) const {
    return Tensor::make([&](compute_tensor** out) {
      return compute_tensor_from_external(get(), &external, dtype.id(), static_cast<int32_t>(shape.size()),
                                          shape.data(), nullptr, offset_bytes, out);
    });
  }
  /// Every element is `value`, whose type is the dtype.
  template <Element T>
  [[nodiscard]] Tensor full(List<int64_t> shape, T value) const {
    return Tensor::make([&](compute_tensor** out) {
      return compute_tensor_full(get(), dtype_of<T>.id(), static_cast<int32_t>(shape.size()), shape.data(), &value,
                                 out);
    });
  }
  [[nodiscard]] Tensor zeros(DType dtype, List<int64_t> shape) const {
    static constexpr std::array<std::byte, 16> kZero{};  // of every dtype
    return Tensor::make([&](compute_tensor** out) {
      return compute_tensor_full(get(), dtype.id(), static_cast<int32_t>(shape.size()), shape.data(), kZero.data(),
                                 out);
    });
  }
  /// A copy of row-major values, whose type is the dtype.
  template <Element T>
  [[nodiscard]] Tensor from_host(std::span<const T> values, List<int64_t> shape) const {
    Tensor::require_count("from_host", values.size(), shape);
    return from_bytes(dtype_of<T>, shape, values.data());
  }
  template <ArrayElement T>
  [[nodiscard]] Tensor from_host(const std::vector<T>& values, List<int64_t> shape) const {
    return from_host(std::span<const T>(values), shape);
  }
  /// Of rank 1.
  template <ArrayElement T>
  [[nodiscard]] Tensor from_host(const std::vector<T>& values) const {
    return from_host(std::span<const T>(values), {static_cast<int64_t>(values.size())});
  }
  /// Of rank 1: device.from_host({1.0f, 2.0f}).
  template <Element T>
  [[nodiscard]] Tensor from_host(std::initializer_list<T> values) const {
    return from_host(std::span<const T>(values.begin(), values.size()), {static_cast<int64_t>(values.size())});
  }
  template <Element T>
  [[nodiscard]] Tensor from_host(std::initializer_list<T> values, List<int64_t> shape) const {
    return from_host(std::span<const T>(values.begin(), values.size()), shape);
  }
  /// A copy of row-major elements of a dtype that C++ has no type for.
  [[nodiscard]] Tensor from_host(DType dtype, std::span<const std::byte> bytes, List<int64_t> shape) const {
    const auto size = static_cast<size_t>(dtype.size());
    if (size == 0 || bytes.size() % size != 0)
      detail::throw_invalid("from_host: the number of bytes is not a multiple of the element size");
    Tensor::require_count("from_host", bytes.size() / size, shape);
    return from_bytes(dtype, shape, bytes.data());
  }

 private:
  static Device open_text(const char* selector) {
    return Device(
        detail::made<compute_device>([&](compute_device** out) { return compute_device_open(selector, out); }));
  }
  static std::string which_text(const char* selector, Format format) {
    return detail::text_of(
        [&](compute_text** out) { return compute_device_which(selector, static_cast<int32_t>(format), out); });
  }
  Tensor from_bytes(DType dtype, List<int64_t> shape, const void* data) const {
    return Tensor::make([&](compute_tensor** out) {
      return compute_tensor_from_host(get(), dtype.id(), static_cast<int32_t>(shape.size()), shape.data(), data, out);
    });
  }
};

/// A number that only rises, which streams of several plugins, libraries and processes signal and wait for.
class Semaphore : public Reference<compute_semaphore, compute_semaphore_retain, compute_semaphore_release> {
 public:
  using Reference::Reference;
  /// One that others can import, as *out_external describes it. Its descriptor is the caller's.
  Semaphore(const Device& device, uint32_t kind, compute_external* out_external)
      : Reference(detail::made<compute_semaphore>([&](compute_semaphore** out) {
          *out_external = sized<compute_external>();
          return compute_semaphore_create(device.get(), kind, out_external, out);
        })) {}
  /// One that another side made.
  Semaphore(const Device& device, const compute_external& external)
      : Reference(detail::made<compute_semaphore>(
            [&](compute_semaphore** out) { return compute_semaphore_from_external(device.get(), &external, out); })) {}

  /// Has the value when all work that was queued on the stream before has ended.
  void signal(const Stream& stream, uint64_t value) const {
    check(compute_semaphore_signal(get(), stream.get(), value));
  }
  /// Work that is queued on the stream later waits until the semaphore has at least the value.
  void wait(const Stream& stream, uint64_t value) const { check(compute_semaphore_wait(get(), stream.get(), value)); }
};

namespace detail {

// A reference of its own to a device that something else owns.
inline Device shared(compute_device* device) {
  if (device != nullptr) compute_device_retain(device);
  return Device(device);
}

}  // namespace detail

inline Device Tensor::device() const { return detail::shared(compute_tensor_device(get())); }

inline Tensor Tensor::to(const Device& device) const {
  return make([&](compute_tensor** out) { return compute_tensor_to_device(get(), device.get(), out); });
}

inline Stream::Stream(const Device& device, const StreamOptions& options)
    : Reference(detail::made<compute_stream>([&](compute_stream** out) {
        compute_stream_options given{};
        given.struct_size = sizeof given;
        given.struct_type = COMPUTE_STRUCT_STREAM_OPTIONS;
        given.flags = options.untracked ? COMPUTE_STREAM_UNTRACKED : 0u;
        given.priority = options.priority;
        return compute_stream_create(device.get(), &given, out);
      })) {}

inline Stream Stream::default_of(const Device& device) {
  return Stream(detail::made<compute_stream>(
      [&](compute_stream** out) { return compute_device_default_stream(device.get(), out); }));
}

inline Device Stream::device() const { return detail::shared(compute_stream_device(get())); }

/// Is called before an allocation fails for want of memory, until it goes. A process can have several.
///
/// The callback gets the device and the bytes that are wanted. It may release tensors and trim the device; it runs on
/// the thread that allocates, and may run on several at once. An exception that leaves it is dropped.
class PressureHandler {
 public:
  using Callback = std::function<void(const Device& device, int64_t size_bytes)>;

  explicit PressureHandler(Callback callback) : callback_(std::move(callback)) {
    check(compute_memory_add_pressure_callback(&PressureHandler::take, this));
  }
  PressureHandler(const PressureHandler&) = delete;
  PressureHandler& operator=(const PressureHandler&) = delete;
  ~PressureHandler() { compute_error_free(compute_memory_remove_pressure_callback(&PressureHandler::take, this)); }

 private:
  static void take(compute_device* device, int64_t size_bytes, void* self) {
    try {
      compute_device_retain(device);
      static_cast<PressureHandler*>(self)->callback_(Device(device), size_bytes);
    } catch (...) {  // the call that allocates fails by itself
    }
  }

  Callback callback_;
};

}  // namespace compute

#endif  // COMPUTE_DEVICE_HPP_
