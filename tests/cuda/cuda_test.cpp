// SPDX-License-Identifier: Apache-2.0
// The CUDA plugin without a GPU: on a fake driver, which accepts kernels but does not run them, with the real NVRTC if
// it is found.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fake_cuda.hpp"
#include "runs_kernels.hpp"

namespace {

using compute::Device;
using compute::Graph;
using compute::Stream;
using compute::Tensor;

template <class Function>
Function fake(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library != nullptr ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

std::vector<FakeLaunch> take_launches() {
  const auto take = fake<FakeTakeLaunches>("fake_cuda_take_launches");
  if (take == nullptr) return {};  // the driver is real
  const std::unique_ptr<std::vector<FakeLaunch>> launches(take());
  return *launches;
}

// Why kernels cannot be compiled here; "" if they can.
std::string missing_nvrtc() {
  try {
    const Device device = Device::open("cuda0");
    const Tensor x = device.from_host(std::vector<float>{1, 2});
    static_cast<void>(compute::negative(x));
    return "";
  } catch (const compute::Error& error) {
    return std::string(error.what()).find("NVRTC") != std::string::npos ? error.what() : "";
  }
}

#define NEEDS_NVRTC() \
  if (const std::string missing = missing_nvrtc(); !missing.empty()) GTEST_SKIP() << missing

// The error that a call throws, with its code in front.
template <class F>
std::pair<compute_error_code, std::string> thrown_by(F&& call) {
  try {
    call();
  } catch (const compute::Error& error) {
    return {static_cast<compute_error_code>(error.code()), error.what()};
  }
  return {COMPUTE_OK, ""};
}

// ---- Devices and memory ---------------------------------------------------------------------------------------------

TEST(CudaDevice, IsNumberedByItsPlaceOnTheBus) {
  const auto devices = Device::list();
  std::vector<std::string> names, addresses;
  for (const auto& info : devices) {
    if (std::string(info.name).rfind("cuda", 0) != 0) continue;
    names.emplace_back(info.name);
    addresses.emplace_back(info.pci_address);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"cuda0", "cuda1"}));
  EXPECT_EQ(addresses,
            (std::vector<std::string>{"0000:0c:00.0", "0000:ab:00.0"}));  // the driver lists them the other way
}

TEST(CudaDevice, GoesByItsAddressAndUuidToo) {
  EXPECT_STREQ(compute_device_name(Device::open("cuda@pci=0000:ab:00.0").get()), "cuda1");
  EXPECT_STREQ(compute_device_name(Device::open("cuda@uuid=GPU-10111213-1415-1617-1819-1a1b1c1d1e1f").get()), "cuda0");
}

TEST(CudaDevice, StatesItsProperties) { EXPECT_GE(Device::attributes_of("cuda0").size(), 10u); }

TEST(CudaMemory, HoldsWhatIsWritten) {
  const Device device = Device::open("cuda0");
  std::vector<double> values(100'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  EXPECT_EQ(device.from_host(values).to_vector<double>(), values);
}

TEST(CudaMemory, MovesBetweenDevices) {
  const Device first = Device::open("cuda0"), second = Device::open("cuda1");
  const Tensor x = first.from_host(std::vector<float>{1, 2, 3});
  EXPECT_EQ(x.to(second).to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(x.to(Device::open("cpu")).to_vector<float>(), (std::vector<float>{1, 2, 3}));
}

TEST(CudaMemory, RunsOutAndRecovers) {
  const Device device = Device::open("cuda0");
  const auto [code, message] = thrown_by([&] { return device.empty(compute::float32, {int64_t{1} << 30}); });
  EXPECT_EQ(code, COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY) << message;
  EXPECT_EQ(device.from_host(std::vector<float>{7}).to_vector<float>(), std::vector<float>{7});
}

// ---- Streams --------------------------------------------------------------------------------------------------------

TEST(CudaStream, OrdersWorkAcrossStreams) {
  const Device device = Device::open("cuda0");
  const Stream a(device), b(device);
  const std::vector<float> values = {1, 2, 3, 4};
  const Tensor x = device.empty(COMPUTE_DTYPE_FLOAT32, {4});
  compute::check(compute_tensor_write_async(x.get(), values.data(), 16, a.get()));
  std::vector<float> read(4);
  compute::check(compute_tensor_read_async(x.get(), read.data(), 16, b.get()));
  compute::check(compute_stream_synchronize(b.get()));
  EXPECT_EQ(read, values);
}

// ---- Kernels --------------------------------------------------------------------------------------------------------

TEST(CudaKernel, IsLaunchedWithTheAddressesOfItsTensors) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  const Tensor x = device.from_host(std::vector<float>(1000, 1));
  take_launches();
  const Tensor y = compute::exp(x);
  compute::check(compute_tensor_synchronize(y.get()));
  const auto launches = take_launches();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_GE(launches[0].words.size(), 4u);
}

TEST(CudaKernel, IsMadeOnceForAllSizes) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  static_cast<void>(compute::tanh(device.from_host(std::vector<float>(1000, 1))));
  const int64_t before = device.statistics().kernels_compiled;
  for (int64_t n = 1; n < 200; n += 7)
    static_cast<void>(compute::tanh(device.from_host(std::vector<float>(static_cast<size_t>(n) * 4, 1))));
  EXPECT_LE(device.statistics().kernels_compiled - before, 3);
}

// A sum of many broadcast operands with many axes: the words of its launch do not fit in the kernel's parameters, so
// they are a table in device memory. Each shape has a separate plan.
class SumOfMany {
 public:
  SumOfMany(const Device& device, size_t longer) : shape_(kRank, 2) {
    shape_[longer] = 3;
    for (size_t i = 0; i < kInputs; ++i) {
      // Along other axes each, so that no two axes are one.
      std::vector<int64_t> extents = shape_;
      for (size_t axis = 0; axis < kRank; ++axis) {
        if ((axis * 5 + i * 3) % 7 < 3) extents[axis] = 1;
      }
      std::vector<int64_t>& steps = strides_.emplace_back(kRank, 0);
      int64_t count = 1;
      for (size_t axis = kRank; axis-- > 0; count *= extents[axis]) steps[axis] = extents[axis] == 1 ? 0 : count;
      std::vector<float>& data = values_.emplace_back(static_cast<size_t>(count));
      for (size_t at = 0; at < data.size(); ++at) data[at] = static_cast<float>((at * 7 + i + longer) % 32);
      inputs_.push_back(device.from_host(data, extents));
    }
  }

  Tensor run(const Stream& stream) const { return compute::map(expression(), inputs_, {}, stream); }

  std::vector<float> expected() const {
    std::vector<float> sums;
    std::vector<int64_t> index(kRank, 0);
    for (size_t axis = 1; axis > 0;) {
      float sum = 0;
      for (size_t i = 0; i < kInputs; ++i) {
        int64_t place = 0;
        for (size_t a = 0; a < kRank; ++a) place += index[a] * strides_[i][a];
        sum += values_[i][static_cast<size_t>(place)];
      }
      sums.push_back(sum);
      axis = kRank;
      while (axis > 0 && ++index[axis - 1] == shape_[axis - 1]) index[--axis] = 0;
    }
    return sums;
  }

  static constexpr size_t kRank = 16;

 private:
  static constexpr size_t kInputs = 32;

  static compute::Expression expression() {
    std::string text;
    std::vector<std::string> names;
    for (size_t i = 0; i < kInputs; ++i) {
      names.push_back("a" + std::to_string(i));
      text += (i > 0 ? " + " : "") + names.back();
    }
    std::vector<const char*> pointers;
    for (const std::string& name : names) pointers.push_back(name.c_str());
    return compute::Expression(text, pointers);
  }

  std::vector<int64_t> shape_;
  std::vector<Tensor> inputs_;
  std::vector<std::vector<int64_t>> strides_;
  std::vector<std::vector<float>> values_;
};

TEST(CudaKernel, HasItsTableWhenItRuns) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  for (size_t longer = 0; longer < SumOfMany::kRank; ++longer) {
    const SumOfMany sum(device, longer);
    const Stream stream(device);
    const auto copies = fake<FakeCopies>("fake_cuda_copies");
    const int64_t before = copies != nullptr ? copies() : 0;
    take_launches();
    const Tensor y = sum.run(stream);
    compute::check(compute_stream_synchronize(stream.get()));
    if (copies == nullptr) {  // a GPU
      EXPECT_EQ(y.to_vector<float>(), sum.expected()) << longer;
      continue;
    }
    EXPECT_EQ(copies() - before, 1) << "the kernel has no table";
    const std::vector<FakeLaunch> launches = take_launches();
    EXPECT_EQ(launches.size(), 1u);
    for (const FakeLaunch& launch : launches) EXPECT_FALSE(launch.is_before_a_copy);
  }
}

TEST(CudaKernel, LeavesNoTableIfItIsNotMade) {
  NEEDS_NVRTC();
  const auto fail = fake<FakeFail>("fake_cuda_fail");
  if (fail == nullptr) GTEST_SKIP() << "needs the fake driver";
  const Device device = Device::open("cuda0");
  const Stream stream(device);
  const SumOfMany sum(device, 0), other(device, SumOfMany::kRank - 1);
  static_cast<void>(sum.run(stream));  // compiles, and leaves memory of the size in core's pool
  compute::check(compute_stream_synchronize(stream.get()));
  const auto used = fake<FakeUsedBytes>("fake_cuda_used_bytes");
  const int64_t before = used();
  for (const char* function : {"cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuStreamSynchronize"}) {
    fail(function, 1);
    EXPECT_EQ(thrown_by([&] { return other.run(stream); }).first, COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY) << function;
    EXPECT_EQ(used(), before) << function;
  }
  static_cast<void>(other.run(stream));
}

Tensor float_slot() {
  compute_tensor* made = nullptr;
  compute::check(compute_tensor_slot(COMPUTE_DTYPE_FLOAT32, &made));
  return Tensor(made);
}

bool passes(const FakeLaunch& launch, float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return std::find(launch.words.begin(), launch.words.end(), bits) != launch.words.end();
}

TEST(CudaGraph, PutsSlotsIntoItsNodes) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  const Stream stream(device);
  const Tensor x = device.from_host(std::vector<float>(64, 1));
  const Tensor slot = float_slot();
  Tensor y;
  const Graph graph = Graph::record(stream, [&] { y = compute::negative(compute::multiply(x, slot, stream), stream); });
  compute_graph_info info{};
  info.struct_size = sizeof info;
  compute::check(compute_graph_get_info(graph.get(), &info));
  EXPECT_EQ(info.native, 1);
  take_launches();
  for (const float factor : {2.5f, 2.5f, -3.0f}) {
    graph.set_slot(slot, factor);
    graph.run(stream);
    compute::check(compute_stream_synchronize(stream.get()));
    const auto launches = take_launches();
    ASSERT_EQ(launches.size(), 2u);
    EXPECT_TRUE(passes(launches[0], factor)) << factor;
  }
}

// A run that failed after it had set some of its nodes does not leave them with that run's values.
TEST(CudaGraph, SetsEveryNodeAfterAFailure) {
  NEEDS_NVRTC();
  const auto fail = fake<FakeFail>("fake_cuda_fail");
  if (fail == nullptr) GTEST_SKIP() << "needs the fake driver";
  const Device device = Device::open("cuda0");
  const Stream stream(device);
  const Tensor x = device.from_host(std::vector<float>(64, 1));
  const Tensor slot = float_slot();
  Tensor y;
  const Graph graph =
      Graph::record(stream, [&] { y = compute::multiply(compute::add(x, slot, stream), slot, stream); });
  const auto nodes_with = [&](float value) {
    const std::vector<FakeLaunch> launches = take_launches();
    return std::count_if(launches.begin(), launches.end(),
                         [value](const FakeLaunch& launch) { return passes(launch, value); });
  };
  take_launches();
  graph.set_slot(slot, 2.5f);
  graph.run(stream);
  compute::check(compute_stream_synchronize(stream.get()));
  EXPECT_EQ(nodes_with(2.5f), 2);
  graph.set_slot(slot, 3.5f);
  fail("cuGraphExecKernelNodeSetParams_v2", 2);
  EXPECT_EQ(thrown_by([&] { graph.run(stream); }).first, COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
  graph.set_slot(slot, 2.5f);
  graph.run(stream);
  compute::check(compute_stream_synchronize(stream.get()));
  EXPECT_EQ(nodes_with(2.5f), 2);
}

// Graphs have memory for the fault records of their kernels: 8 KiB each.
TEST(CudaGraph, GivesItsMemoryBack) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  const Stream stream(device);
  const Tensor x = device.from_host(std::vector<float>{1, 2, 3, 4}),
               indices = device.from_host(std::vector<int64_t>{2, 0});
  const auto record_and_run = [&](int times) {
    for (int i = 0; i < times; ++i) {
      Tensor y;
      const Graph graph = Graph::record(stream, [&] { y = compute::take(x, indices, 0, stream); });
      graph.run(stream);
      compute::check(compute_stream_synchronize(stream.get()));
      if (!runs_kernels(device)) continue;
      EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{3, 1}));
    }
  };
  constexpr int kGraphs = 640;
  record_and_run(kGraphs / 10);
  const int64_t before = device.statistics().memory_available;
  record_and_run(kGraphs);
  EXPECT_LT(before - device.statistics().memory_available, kGraphs * 4096);
}

// ---- User kernels ---------------------------------------------------------------------------------------------------

class UserKernel {
 public:
  UserKernel(const Device& device, const char* language, const char* source, const char* name) {
    compute::check(compute_kernel_compile(device.get(), language, source, -1, name, nullptr, &kernel_));
  }
  ~UserKernel() { compute_kernel_release(kernel_); }
  UserKernel(const UserKernel&) = delete;
  UserKernel& operator=(const UserKernel&) = delete;

  void launch(const std::vector<compute_kernel_argument>& arguments, int64_t group_size = 64) const {
    compute_launch shape{};
    shape.struct_size = sizeof shape;
    for (int i = 0; i < 3; ++i) shape.groups[i] = shape.group_size[i] = 1;
    shape.group_size[0] = group_size;
    compute::check(
        compute_kernel_launch(kernel_, nullptr, &shape, arguments.data(), static_cast<int64_t>(arguments.size())));
  }

 private:
  compute_kernel* kernel_ = nullptr;
};

compute_kernel_argument tensor(const Tensor& x, int32_t access) {
  compute_kernel_argument argument{};
  argument.struct_size = sizeof argument;
  argument.kind = COMPUTE_ARGUMENT_TENSOR;
  argument.access = access;
  argument.tensor = x.get();
  return argument;
}

template <class T>
compute_kernel_argument value(const T& x) {
  compute_kernel_argument argument{};
  argument.struct_size = sizeof argument;
  argument.kind = COMPUTE_ARGUMENT_VALUE;
  argument.value = &x;
  argument.value_size = sizeof x;
  return argument;
}

constexpr const char* kScale =
    "extern \"C\" __global__ void scale(float* x, float factor, int count) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < count) x[i] *= factor;\n"
    "}\n"
    "template <class T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }\n";

TEST(CudaUserKernel, ChecksItsArguments) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  const Tensor x = device.from_host(std::vector<float>(64, 1));
  const UserKernel scale(device, "cuda-c", kScale, "scale");
  const int32_t both = COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE;
  const float factor = 2;
  const int32_t count = 64;
  scale.launch({tensor(x, both), value(factor), value(count)});
  EXPECT_EQ(thrown_by([&] { scale.launch({tensor(x, both), value(factor)}); }).first, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] {
              scale.launch({value(factor), value(factor), value(count)});
            }).first,
            COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] {
              scale.launch({tensor(x, both), tensor(x, both), value(count)});
            }).first,
            COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] {
              scale.launch({tensor(x, both), value(factor), value(count)}, 4096);
            }).first,
            COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST(CudaUserKernel, TakesThePortableDialect) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  const Tensor x = device.from_host(std::vector<float>(64, 1));
  const UserKernel halve(device, "portable",
                         "COMPUTE_KERNEL halve(COMPUTE_GLOBAL f32* x, const i64 n) {\n"
                         "  const i64 i = COMPUTE_GLOBAL_ID(0);\n"
                         "  if (i < n) x[i] = x[i] / 2;\n"
                         "}\n",
                         "halve");
  const int64_t count = 64;
  halve.launch({tensor(x, COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE), value(count)});
}

TEST(CudaUserKernel, MayBeATemplate) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  const Tensor x = device.from_host(std::vector<float>(64, 1));
  UserKernel(device, "cuda-c", kScale, "twice<float>").launch({tensor(x, COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE)});
}

TEST(CudaUserKernel, ShowsTheCompilersLog) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  const auto [code, message] = thrown_by(
      [&] { UserKernel(device, "cuda-c", "extern \"C\" __global__ void f(int* x) { *x = undeclared; }", "f"); });
  EXPECT_EQ(code, COMPUTE_ERROR_COMPILE_FAILED);
  EXPECT_NE(message.find("undeclared"), std::string::npos) << message;
  EXPECT_EQ(thrown_by([&] { UserKernel(device, "opencl-c", "kernel void f() {}", "f"); }).first,
            COMPUTE_ERROR_UNSUPPORTED);
}

// ---- Failures -------------------------------------------------------------------------------------------------------

// Runs in a separate process, with FAKE_CUDA_FAULT_AFTER=1: the second kernel accesses an illegal address.
TEST(CudaFault, IsFinalForCudaAlone) {
  if (std::getenv("FAKE_CUDA_FAULT_AFTER") == nullptr) GTEST_SKIP() << "for FAKE_CUDA_FAULT_AFTER=1";
  const Device device = Device::open("cuda0");
  const Tensor x = device.from_host(std::vector<float>(64, 1));
  const auto [refused, why] = thrown_by([&] { UserKernel(device, "cuda-c", kScale, "scale"); });
  if (refused == COMPUTE_ERROR_UNSUPPORTED) GTEST_SKIP() << why;  // NVRTC is missing; a launch would count
  const UserKernel scale(device, "cuda-c", kScale, "scale");
  const float factor = 2;
  const int32_t count = 64;
  const auto launch = [&] {
    scale.launch({tensor(x, COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE), value(factor), value(count)});
    compute::check(compute_tensor_synchronize(x.get()));
  };
  launch();
  const auto [code, message] = thrown_by(launch);
  EXPECT_EQ(code, COMPUTE_ERROR_RESTART_REQUIRED);
  for (const char* part : {"700", "ILLEGAL_ADDRESS", "scale", "restart the process to use CUDA again"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  }
  EXPECT_EQ(thrown_by([&] { return device.from_host({1.0f}); }).first, COMPUTE_ERROR_RESTART_REQUIRED);
  EXPECT_EQ(thrown_by([&] { return Device::open("cuda0"); }).first, COMPUTE_ERROR_RESTART_REQUIRED);
  const Device cpu = Device::open("cpu");
  EXPECT_EQ(cpu.from_host(std::vector<float>{1}).to_vector<float>(), std::vector<float>{1});
}

// ---- Every op compiles ----------------------------------------------------------------------------------------------

bool takes(const std::string& inputs, compute_dtype dtype) {
  const bool is_bool = dtype == COMPUTE_DTYPE_BOOL;
  const bool is_integer = dtype >= COMPUTE_DTYPE_INT8 && dtype <= COMPUTE_DTYPE_UINT64;
  const bool is_float = dtype >= COMPUTE_DTYPE_FLOAT16 && dtype <= COMPUTE_DTYPE_FLOAT64;
  const bool is_complex = dtype == COMPUTE_DTYPE_COMPLEX64 || dtype == COMPUTE_DTYPE_COMPLEX128;
  if (inputs == "BOOL") return is_bool;
  if (inputs == "INTEGER") return is_integer;
  if (inputs == "BITS") return is_integer || is_bool;
  if (inputs == "REAL") return is_integer || is_float;
  if (inputs == "FLOAT") return is_float;
  if (inputs == "COMPLEX") return is_complex;
  if (inputs == "INEXACT") return is_float || is_complex;
  if (inputs == "NUMERIC") return is_integer || is_float || is_complex;
  return true;  // ANY
}

struct Row {
  const char* name;
  const char* inputs;
  int arity;
};

constexpr Row kRows[] = {
#define COMPUTE_UNARY(name, version, inputs, ...) {#name, #inputs, 1},
#define COMPUTE_BINARY(name, version, inputs, ...) {#name, #inputs, 2},
#define COMPUTE_TERNARY(name, version, inputs, ...) {#name, #inputs, 3},
#define COMPUTE_OP(...)
#include <compute/ops.def>
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP
};

// One dtype of each category.
constexpr compute_dtype kDtypes[] = {COMPUTE_DTYPE_BOOL,    COMPUTE_DTYPE_INT32,   COMPUTE_DTYPE_UINT64,
                                     COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_COMPLEX64};

// Records what run() throws, and continues with the next op.
class Sweep {
 public:
  template <class F>
  void run(const std::string& what, F&& call) {
    const auto [code, message] = thrown_by(call);
    ++tried_;
    EXPECT_EQ(code, COMPUTE_OK) << what << ": " << message;
  }
  ~Sweep() {
    EXPECT_GT(tried_, 0);
    std::printf("%d ops and dtypes compiled\n", tried_);
  }

 private:
  int tried_ = 0;
};

void compile_elementwise_rows(std::span<const compute_dtype> dtypes) {
  const Device device = Device::open("cuda0");
  Sweep sweep;
  for (const Row& row : kRows) {
    const compute_op* op = nullptr;
    compute::check(compute_op_find(row.name, 1, &op));
    for (const compute_dtype dtype : dtypes) {
      if (!takes(row.inputs, dtype)) continue;
      const Tensor x = device.empty(compute::DType(dtype), {8, 33});
      const Tensor condition = device.empty(COMPUTE_DTYPE_BOOL, {8, 33});
      const std::vector<compute_tensor*> inputs = std::string_view(row.name) == "where"
                                                      ? std::vector{condition.get(), x.get(), x.get()}
                                                      : std::vector(static_cast<size_t>(row.arity), x.get());
      sweep.run(std::string(row.name) + " of dtype " + std::to_string(dtype), [&] {
        compute_tensor* out = nullptr;
        compute::check(compute_op_run(op, nullptr, nullptr, 0, inputs.data(), row.arity, &out, 1));
        compute_tensor_release(out);
      });
    }
  }
}

// Every intrinsic of every dtype is compiled by GeneratedText.CompilesEveryIntrinsic.
TEST(CudaCompile, TakesElementwiseRows) {
  NEEDS_NVRTC();
  compile_elementwise_rows(std::array<compute_dtype, 2>{COMPUTE_DTYPE_INT32, COMPUTE_DTYPE_FLOAT32});
}

TEST(CudaCompile, TakesEveryElementwiseRow) {
  NEEDS_NVRTC();
  compile_elementwise_rows(kDtypes);
}

TEST(CudaCompile, TakesTheOtherPrimitives) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  Sweep sweep;
  const Tensor indices = device.from_host(std::vector<int64_t>{0, 2, 1}, {3});
  for (const compute_dtype dtype : kDtypes) {
    const Tensor x = device.empty(compute::DType(dtype), {6, 40});
    const std::string suffix = " of dtype " + std::to_string(dtype);
    sweep.run("transposed copy" + suffix, [&] { return compute::copy(x.permute({1, 0})); });
    sweep.run("copy" + suffix, [&] { return compute::copy(x); });
    sweep.run("all" + suffix, [&] { return compute::all(x); });
    sweep.run("take" + suffix, [&] { return compute::take(x, indices, 1); });
    for (const compute_dtype other :
         {COMPUTE_DTYPE_BOOL, COMPUTE_DTYPE_INT16, COMPUTE_DTYPE_BFLOAT16, COMPUTE_DTYPE_COMPLEX128}) {
      const bool loses =
          dtype == COMPUTE_DTYPE_COMPLEX64 && other != COMPUTE_DTYPE_COMPLEX128 && other != COMPUTE_DTYPE_BOOL;
      if (!loses)
        sweep.run("cast to " + std::to_string(other) + suffix, [&] { return compute::cast(x, compute::DType(other)); });
    }
    if (!takes("NUMERIC", dtype)) continue;
    for (const int64_t axis : {0, 1}) {
      sweep.run("sum" + suffix, [&] { return compute::sum(x, axis); });
      sweep.run("prod" + suffix, [&] { return compute::prod(x, axis); });
      if (!takes("REAL", dtype)) continue;
      sweep.run("max" + suffix, [&] { return compute::max(x, axis); });
    }
    sweep.run("sum of all" + suffix, [&] { return compute::sum(x); });
    if (takes("INEXACT", dtype)) continue;  // cuBLASLt's, which asks the driver more than the fake one answers
    sweep.run("matmul" + suffix, [&] { return compute::matmul(x, x.permute({1, 0})); });
  }
}

// float8 comes as bytes, with expressions that decode and encode.
TEST(CudaCompile, TakesFloat8) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  Sweep sweep;
  for (const compute::DType dtype : {compute::float8_e4m3fn, compute::float8_e5m2}) {
    const Tensor x = device.empty(dtype, {6, 40});
    const std::string suffix = " of " + std::string(dtype.name());
    for (const compute::DType other : {compute::float16, compute::float64}) {
      sweep.run("cast from" + suffix, [&] { return compute::cast(x, other); });
      sweep.run("cast to" + suffix, [&] { return compute::cast(device.empty(other, {6, 40}), dtype); });
    }
    sweep.run("equal" + suffix, [&] { return compute::equal(x, x); });
  }
}

// ---- Cost -----------------------------------------------------------------------------------------------------------

TEST(CudaCost, OfACachedOpIsStated) {
  NEEDS_NVRTC();
  const Device device = Device::open("cuda0");
  const Stream stream(device);
  const Tensor x = device.from_host(std::vector<float>(16, 1)), y = device.from_host(std::vector<float>(16, 1));
  const auto call = [&] { compute::check(compute_add_into(stream.get(), x.get(), x.get(), y.get())); };
  fake<FakeKeepLaunches>("fake_cuda_keep_launches")(0);
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    constexpr int kCalls = 2000;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / kCalls);
    compute::check(compute_stream_synchronize(stream.get()));
  }
  fake<FakeKeepLaunches>("fake_cuda_keep_launches")(1);
  RecordProperty("ns", static_cast<int>(best));
  std::printf("core and plugin: %.0f ns a call beside the launch\n", best);
  EXPECT_LT(best, 20'000);
}

}  // namespace
