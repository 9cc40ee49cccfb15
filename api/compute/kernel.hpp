// SPDX-License-Identifier: Apache-2.0
//
// kernel.hpp: kernels of the program's own. Include compute.hpp.
#ifndef COMPUTE_KERNEL_HPP_
#define COMPUTE_KERNEL_HPP_

#include <cstring>

#include "compute/device.hpp"

namespace compute {

/// How a kernel is launched.
struct Launch {
  std::array<int64_t, 3> groups{1, 1, 1};      ///< work-groups (CUDA: blocks) per axis
  std::array<int64_t, 3> group_size{1, 1, 1};  ///< work-items (CUDA: threads) of a group per axis
  int64_t local_memory_bytes = 0;
};

/// What a kernel takes by value.
template <class T>
concept KernelValue = std::is_trivially_copyable_v<T> && sizeof(T) <= 16;

/// An argument of a kernel: reads(x), writes(y), updates(z), a number, local_memory(bytes).
class KernelArgument {
 public:
  /// By value; its C++ type is the kernel's.
  template <KernelValue T>
  KernelArgument(const T& value) : kind_(COMPUTE_ARGUMENT_VALUE), size_(sizeof value) {  // NOLINT: implicit on purpose
    std::memcpy(value_.data(), &value, sizeof value);
  }

  friend KernelArgument reads(const Tensor& tensor);
  friend KernelArgument writes(const Tensor& tensor);
  friend KernelArgument updates(const Tensor& tensor);
  friend KernelArgument local_memory(int64_t bytes_per_group);

  /// As compute.h takes it. Valid as long as this object.
  [[nodiscard]] compute_kernel_argument raw() const noexcept {
    compute_kernel_argument to{};
    to.struct_size = sizeof to;
    to.struct_type = COMPUTE_STRUCT_KERNEL_ARGUMENT;
    to.kind = kind_;
    to.access = access_;
    to.tensor = tensor_.get();
    to.value = kind_ == COMPUTE_ARGUMENT_VALUE ? value_.data() : nullptr;
    to.value_size = size_;
    return to;
  }

 private:
  KernelArgument(int32_t kind, const Tensor& tensor, Access access, int64_t size)
      : kind_(kind), access_(tensor.defined() ? static_cast<int32_t>(access) : 0), tensor_(tensor), size_(size) {}

  int32_t kind_;
  int32_t access_ = 0;
  Tensor tensor_;
  int64_t size_ = 0;
  alignas(16) std::array<std::byte, 16> value_{};
};

/// A tensor that the kernel only reads. The kernel gets the address of its first element.
[[nodiscard]] inline KernelArgument reads(const Tensor& tensor) {
  return {COMPUTE_ARGUMENT_TENSOR, tensor, Access::read, 0};
}
/// A tensor that the kernel only writes.
[[nodiscard]] inline KernelArgument writes(const Tensor& tensor) {
  return {COMPUTE_ARGUMENT_TENSOR, tensor, Access::write, 0};
}
/// A tensor that the kernel reads and writes.
[[nodiscard]] inline KernelArgument updates(const Tensor& tensor) {
  return {COMPUTE_ARGUMENT_TENSOR, tensor, Access::read_write, 0};
}
/// Memory of each work-group.
[[nodiscard]] inline KernelArgument local_memory(int64_t bytes_per_group) {
  return {COMPUTE_ARGUMENT_LOCAL_MEMORY, Tensor(), Access::read, bytes_per_group};
}

/// A compiled kernel. Threads: any.
class Kernel : public Reference<compute_kernel, compute_kernel_retain, compute_kernel_release> {
 public:
  using Reference::Reference;
  /// Compiles `name` of `source`, which may be binary. `language` is "cuda-c", "opencl-c", "portable" or another one of
  /// the device (docs/kernels.md); `compiler_options` go to the compiler as they are. COMPILE_FAILED has the compiler's
  /// log, UNSUPPORTED: the device takes no such source.
  Kernel(const Device& device, const std::string& language, const std::string& source, const std::string& name,
         std::optional<std::string> compiler_options = none)
      : Reference(detail::made<compute_kernel>([&](compute_kernel** out) {
          compute_kernel_options options{};
          options.struct_size = sizeof options;
          options.struct_type = COMPUTE_STRUCT_KERNEL_OPTIONS;
          if (compiler_options) {
            options.compiler_options = compiler_options->c_str();
            options.compiler_options_size = static_cast<int64_t>(compiler_options->size());
          }
          // An empty source is a string too.
          const int64_t size = source.empty() ? -1 : static_cast<int64_t>(source.size());
          return compute_kernel_compile(device.get(), language.c_str(), source.c_str(), size, name.c_str(), &options,
                                        out);
        })) {}

  /// Queues the kernel: kernel.launch({.groups = {4, 1, 1}, .group_size = {64, 1, 1}}, {reads(x), writes(y), 2.0f}).
  void launch(const Launch& launch, List<KernelArgument> arguments, const Stream& stream = {}) const {
    compute_launch given{};
    given.struct_size = sizeof given;
    given.struct_type = COMPUTE_STRUCT_LAUNCH;
    for (size_t axis = 0; axis < 3; ++axis) {
      given.groups[axis] = launch.groups[axis];
      given.group_size[axis] = launch.group_size[axis];
    }
    given.local_memory_bytes = launch.local_memory_bytes;
    std::vector<compute_kernel_argument> all(arguments.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = arguments[i].raw();
    check(compute_kernel_launch(get(), stream.get(), &given, all.data(), static_cast<int64_t>(all.size())));
  }
};

}  // namespace compute

#endif  // COMPUTE_KERNEL_HPP_
