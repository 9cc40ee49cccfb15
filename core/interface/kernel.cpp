// SPDX-License-Identifier: Apache-2.0
// The C interface of user kernels.
#include <fmt/format.h>

#include <cstring>

#include "core/base/sized.hpp"
#include "core/interface/about.hpp"
#include "core/observation/observed.hpp"
#include "core/observation/work.hpp"
#include "core/runner/graph.hpp"
#include "core/runner/observed_op.hpp"
#include "core/runner/run_op.hpp"
#include "core/streams/stream.hpp"
#include "core/streams/submission.hpp"
#include "core/text/printable.hpp"

struct compute_kernel : compute::Handle<compute::HandleKind::kKernel> {
  explicit compute_kernel(compute::Device& device) : device(device) {}
  ~compute_kernel() {
    if (plugin_kernel == 0 || device.health.load() == COMPUTE_HEALTH_FORKED) return;
    for (compute::Timeline* timeline : compute::timelines_of(device)) {
      const uint64_t number = timeline->submitted();
      if (!timeline->immediate && number > 0 && !timeline->wait_quietly(number)) return;
    }
    table.release(plugin_kernel);
  }

  compute::Device& device;
  compute::KernelTable table;
  std::string name;  // as messages show it
  compute_plugin_kernel_info info{};
  uint64_t plugin_kernel = 0;
};

using namespace compute;

namespace {

compute_string string_of(const char* text) { return {text, static_cast<int64_t>(std::strlen(text))}; }

// Shortens and escapes what the plugin's message quotes from the program, as in other messages.
void shorten(std::string& message, const char* given) {
  const std::string whole = printable_lines(given), shown = printable(given);
  if (whole == shown) return;
  for (size_t at = 0; (at = message.find(whole, at)) != std::string::npos; at += shown.size())
    message.replace(at, whole.size(), shown);
}

void check_launch(const compute_kernel& kernel, const compute_launch& shape) {
  int64_t items = 1;
  for (int i = 0; i < 3; ++i) {
    const auto refuse = [&](compute_error_code code, const char* why) {
      throw Error(code, fmt::format("kernel {}: axis {} has {} groups of {} work-items{}", kernel.name, i,
                                    shape.groups[i], shape.group_size[i], why));
    };
    if (shape.groups[i] < 1 || shape.group_size[i] < 1) refuse(COMPUTE_ERROR_INVALID_ARGUMENT, "; both are at least 1");
    if (__builtin_mul_overflow(items, shape.groups[i], &items) ||
        __builtin_mul_overflow(items, shape.group_size[i], &items)) {
      refuse(COMPUTE_ERROR_OUT_OF_RANGE, ", which makes more than fit in 64 bits");
    }
  }
  const int64_t group_items = shape.group_size[0] * shape.group_size[1] * shape.group_size[2];  // fits: `items` does
  if (kernel.info.max_group_size > 0 && group_items > kernel.info.max_group_size) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("kernel {}: group size {} exceeds the limit of {}",
                                                            kernel.name, group_items, kernel.info.max_group_size));
  }
  if (shape.local_memory_bytes < 0) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("kernel {}: local_memory_bytes is {}; it must not be negative", kernel.name,
                            shape.local_memory_bytes));
  }
}

// Where a launch on `stream`, which may be NULL, is queued.
Timeline& launch_timeline(const compute_kernel& kernel, compute_stream* stream) {
  if (stream != nullptr && &checked(stream).device != &kernel.device) {
    throw Error(COMPUTE_ERROR_DEVICE_MISMATCH, fmt::format("kernel {}: it was compiled for {}, but the stream is on {}",
                                                           kernel.name, kernel.device.name, stream->device.name));
  }
  Timeline& timeline = stream != nullptr ? stream->timeline : default_timeline(kernel.device);
  if (timeline.recording.load() != nullptr) {
    Error error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("kernel {}: user kernels cannot be recorded in graphs", kernel.name));
    note_recording_error(timeline, error);
    throw error;
  }
  return timeline;
}

// The arguments of a launch, checked, as the plugin takes them; and the buffers that they use.
class LaunchArguments {
 public:
  LaunchArguments(const compute_kernel& kernel, const compute_kernel_argument* arguments, int64_t count)
      : kernel_(kernel) {
    for (int64_t i = 0; i < count; ++i) add(read_sized_at(arguments, i, "arguments"), i);
  }

  // One more argument, behind the others.
  void add_local_memory(int64_t size_bytes) {
    compute_plugin_kernel_argument value{};
    value.struct_size = sizeof value;
    value.struct_type = COMPUTE_PLUGIN_STRUCT_KERNEL_ARGUMENT;
    value.kind = COMPUTE_PLUGIN_ARGUMENT_LOCAL_MEMORY;
    value.value_size = size_bytes;
    values.push_back(value);
  }

  SmallVector<Use, 8> uses;
  SmallVector<compute_plugin_kernel_argument, 8> values;
  int64_t tensor_bytes = 0;

 private:
  void add(const compute_kernel_argument& argument, int64_t i) {
    compute_plugin_kernel_argument value{};
    value.struct_size = sizeof value;
    value.struct_type = COMPUTE_PLUGIN_STRUCT_KERNEL_ARGUMENT;
    static_assert(COMPUTE_ARGUMENT_TENSOR == int32_t{COMPUTE_PLUGIN_ARGUMENT_TENSOR} &&
                  COMPUTE_ARGUMENT_VALUE == int32_t{COMPUTE_PLUGIN_ARGUMENT_VALUE} &&
                  COMPUTE_ARGUMENT_LOCAL_MEMORY == int32_t{COMPUTE_PLUGIN_ARGUMENT_LOCAL_MEMORY});
    value.kind = argument.kind;
    value.value_size = argument.value_size;
    switch (argument.kind) {
      case COMPUTE_ARGUMENT_TENSOR:
        add_tensor(argument, i, value);
        break;
      case COMPUTE_ARGUMENT_VALUE:
        if (argument.value == nullptr || argument.value_size < 1) {
          throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                      fmt::format("kernel {}: argument {} has no value", kernel_.name, i));
        }
        value.value = argument.value;
        break;
      case COMPUTE_ARGUMENT_LOCAL_MEMORY:
        if (argument.value_size < 1) {
          throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("kernel {}: argument {} has {} bytes of local memory",
                                                                  kernel_.name, i, argument.value_size))
              .with_argument(static_cast<int32_t>(i));
        }
        break;
      default:
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                    fmt::format("kernel {}: argument {} has kind {}, which is not a COMPUTE_ARGUMENT_ value",
                                kernel_.name, i, argument.kind));
    }
    values.push_back(value);
  }

  void add_tensor(const compute_kernel_argument& argument, int64_t i, compute_plugin_kernel_argument& value) {
    Tensor& tensor = checked(argument.tensor);
    tensor_bytes += tensor.size_bytes();
    if (tensor.buffer == nullptr || &tensor.buffer->device != &kernel_.device) {
      throw Error(COMPUTE_ERROR_DEVICE_MISMATCH,
                  fmt::format("kernel {}: argument {} is not on {}", kernel_.name, i, kernel_.device.name))
          .with_argument(static_cast<int32_t>(i));
    }
    if (const compute_error_code code = access_error(argument.access)) {
      throw Error(code, fmt::format("kernel {}: argument {} has access {:#x}, which is not of COMPUTE_ACCESS_",
                                    kernel_.name, i, argument.access))
          .with_argument(static_cast<int32_t>(i));
    }
    // Kernels load whole elements; only the host can load misaligned ones.
    if (!kernel_.device.is_host && tensor.buffer->alignment(tensor.offset_bytes) < dtype_size(tensor.dtype)) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED,
                  fmt::format("kernel {}: argument {}: elements of {} are not aligned to {} bytes; copy the tensor",
                              kernel_.name, i, dtype_name(tensor.dtype), dtype_size(tensor.dtype)))
          .with_argument(static_cast<int32_t>(i));
    }
    const bool writes = (argument.access & COMPUTE_ACCESS_WRITE) != 0;
    value.access = (argument.access & COMPUTE_ACCESS_READ) != 0 ? COMPUTE_PLUGIN_ACCESS_READ : 0;
    value.access |= writes ? COMPUTE_PLUGIN_ACCESS_WRITE : 0;
    value.tensor = operand_at(*tensor.buffer, tensor.offset_bytes);
    uses.push_back({tensor.buffer, writes, false});
  }

  const compute_kernel& kernel_;
};

void submit_launch(const compute_kernel& kernel, Timeline& timeline, const compute_launch& shape,
                   LaunchArguments& arguments) {
  compute_plugin_launch order{};
  order.struct_size = sizeof order;
  order.struct_type = COMPUTE_PLUGIN_STRUCT_LAUNCH;
  std::copy(std::begin(shape.groups), std::end(shape.groups), order.groups);
  std::copy(std::begin(shape.group_size), std::end(shape.group_size), order.group_size);
  if (shape.local_memory_bytes > 0) arguments.add_local_memory(shape.local_memory_bytes);
  order.arguments = arguments.values.data();
  order.argument_count = static_cast<int32_t>(arguments.values.size());
  Submission submission(timeline, arguments.uses, "user kernel", 1, arguments.tensor_bytes);
  order.stream = timeline.plugin_stream;
  submission.check(kernel.table.launch(kernel.plugin_kernel, order));
  if (Work* const work = submission.observed()) [[unlikely]]
    tell_of_launch(*work, kernel.name);
}

}  // namespace

extern "C" {

compute_error* compute_kernel_compile(compute_device* device, const char* language, const void* source,
                                      int64_t source_size, const char* name, const compute_kernel_options* options,
                                      compute_kernel** out_kernel) {
  if (out_kernel != nullptr) *out_kernel = nullptr;
  return guard(about(device), [&] {
    require_not_null(out_kernel, "out_kernel");
    Device& self = checked(device);
    require_not_null(language, "language");
    require_not_null(source, "source");
    const compute_string code = string_in(static_cast<const char*>(source), source_size, "source");
    require_not_null(name, "name");
    const Running running;
    self.require_usable();
    compute_kernel_options given{};
    if (options != nullptr) given = read_sized(options, "options");
    const compute_string compiler_options =
        string_in(given.compiler_options, given.compiler_options_size, "options.compiler_options");
    struct Release {
      void operator()(compute_kernel* kernel) const { release_handle(kernel); }
    };
    std::unique_ptr<compute_kernel, Release> kernel(new compute_kernel(self));
    if (self.plugin == nullptr || !self.table.kernels(kernel->table)) {
      throw Error(
          COMPUTE_ERROR_UNSUPPORTED,
          fmt::format("kernel {} on {}: the device does not compile kernels from source", printable(name), self.name));
    }
    kernel->name = printable(name);
    compute_plugin_kernel_source text{};
    text.struct_size = sizeof text;
    text.struct_type = COMPUTE_PLUGIN_STRUCT_KERNEL_SOURCE;
    text.language = string_of(language);
    text.source = code;
    text.name = string_of(name);
    text.options = compiler_options;
    const int64_t begin = host_now();
    try {
      self.check(kernel->table.compile(text, &kernel->plugin_kernel, &kernel->info));
    } catch (Error& error) {
      shorten(error.message, name);
      shorten(error.message, language);
      error.message = fmt::format("kernel {} on {}: {}", kernel->name, self.name, error.message);
      throw;
    }
    self.counters.kernels_compiled.fetch_add(1, std::memory_order_relaxed);
    if (observes(kWatchesWork)) record_preparation(kernel->name, self, begin);
    *out_kernel = kernel.release();
  });
}

compute_error* compute_kernel_launch(compute_kernel* kernel, compute_stream* stream, const compute_launch* launch,
                                     const compute_kernel_argument* arguments, int64_t argument_count) {
  return guard(about(kernel, stream), [&] {
    compute_kernel& self = checked(kernel);
    const Running running;
    self.device.require_usable();
    require_not_null(launch, "launch");
    if (argument_count < 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("kernel {}: argument_count is {}", self.name, argument_count));
    }
    if (argument_count > 0) require_not_null(arguments, "arguments");
    const compute_launch shape = read_sized(launch, "launch");
    const int64_t given_count = argument_count + (shape.local_memory_bytes > 0 ? 1 : 0);
    if (self.info.argument_count >= 0 && given_count != self.info.argument_count) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("kernel {}: expected {} arguments, got {}", self.name,
                                                              self.info.argument_count, given_count));
    }
    check_launch(self, shape);
    Timeline& timeline = launch_timeline(self, stream);
    LaunchArguments given(self, arguments, argument_count);
    submit_launch(self, timeline, shape, given);
  });
}

void compute_kernel_retain(compute_kernel* kernel) {
  if (kernel != nullptr && kernel->is_alive()) kernel->retain();
}
void compute_kernel_release(compute_kernel* kernel) { release_handle(kernel); }

}  // extern "C"
