// SPDX-License-Identifier: Apache-2.0
// Threads of the CPU plugin that run out of memory during an op or a kernel: the call returns an error, and later calls
// work.
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "robustness.hpp"

namespace {

std::atomic<bool> workers_have_no_frames{false};

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Stands before the C library's for every library of the process. Scratch memory of a thread has this size.
extern "C" [[gnu::visibility("default")]] void* aligned_alloc(size_t alignment, size_t size) noexcept {
  static const auto real = reinterpret_cast<void* (*)(size_t, size_t)>(dlsym(RTLD_NEXT, "aligned_alloc"));
  const bool is_first_thread = syscall(SYS_gettid) == getpid();
  if (workers_have_no_frames && alignment == 64 && size == 64 << 10 && !is_first_thread) return nullptr;
  return real(alignment, size);
}
#endif

namespace robustness {
namespace {

#if defined(COMPUTE_HAS_CPU_PLUGIN)
using Clock = std::chrono::steady_clock;
using Kernel = Handle<compute_kernel, compute_kernel_release>;

constexpr auto kPatience = std::chrono::minutes(1);

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool has_other_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks)) > 1;
}

// Whether other threads take part in large ops, which on a busy machine may be late. Those that still look for work of
// earlier calls do not count.
bool others_help(compute_device* device) {
  const Tensor x = make_full(device, {1 << 22}, 1.0f);
  Tensor first;
  EXPECT_OK(run_op("exp", nullptr, {x}, first.out()));
  if (!has_other_threads()) return false;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto others = [] { return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID); };
  const double before = others();
  for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
    Tensor y;
    EXPECT_OK(run_op("exp", nullptr, {x}, y.out()));
    if (others() - before > 0.05) return true;
  }
  return false;
}

// False without a compiler.
bool compile(compute_device* device, const char* source, Kernel* out) {
  Error error(compute_kernel_compile(device, "portable", source, -1, "f", nullptr, out->out()));
  if (error == nullptr) return true;
  EXPECT_EQ(compute_error_get_code(error.get()), COMPUTE_ERROR_UNSUPPORTED) << compute_error_message(error.get());
  return false;
}

compute_kernel_argument argument(int32_t kind, compute_tensor* tensor, int64_t size) {
  compute_kernel_argument argument = {};
  argument.struct_size = sizeof argument;
  argument.kind = kind;
  argument.access = COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE;
  argument.tensor = tensor;
  argument.value_size = size;
  return argument;
}

compute_error* launch(compute_kernel* kernel, compute_stream* stream, int64_t groups, int64_t group_size,
                      const std::vector<compute_kernel_argument>& arguments) {
  compute_launch launch = {};
  launch.struct_size = sizeof launch;
  std::fill_n(launch.groups, 3, 1);
  std::fill_n(launch.group_size, 3, 1);
  launch.groups[0] = groups;
  launch.group_size[0] = group_size;
  return compute_kernel_launch(kernel, stream, &launch, arguments.data(), static_cast<int64_t>(arguments.size()));
}

// ---- Local memory ---------------------------------------------------------------------------------------------------

constexpr const char* kWithLocalMemory =
    "COMPUTE_KERNEL f(COMPUTE_GLOBAL f32* x, COMPUTE_LOCAL_POINTER f32* l) {\n"
    "  l[COMPUTE_LOCAL_ID(0)] = 1;\n"
    "  x[COMPUTE_GLOBAL_ID(0)] = 1 + l[COMPUTE_LOCAL_ID(0)];\n"
    "}\n";

constexpr int64_t kGroups = 1000, kGroupSize = 64;

ISOLATED_TEST(WorkerMemory, LocalMemoryThatCannotBeHadIsNamed) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer ends the process instead";
  const Device device = open("cpu");
  Kernel kernel;
  if (!compile(device, kWithLocalMemory, &kernel)) GTEST_SKIP() << "there is no compiler";
  const bool has_helpers = others_help(device);
  const Tensor x = make_full(device, {kGroups * kGroupSize}, 0.0f);
  const auto run = [&](int64_t size) {
    return launch(kernel, nullptr, kGroups, kGroupSize,
                  {argument(COMPUTE_ARGUMENT_TENSOR, x, 0), argument(COMPUTE_ARGUMENT_LOCAL_MEMORY, nullptr, size)});
  };
  for (int round = 0; round < 20; ++round) {
    for (const int64_t size : {int64_t{1'000'000'000'000'000}, INT64_MAX - 8, INT64_MAX}) {
      Error error(run(size));
      ASSERT_NE(error, nullptr);
      EXPECT_EQ(compute_error_argument(error.get()), 1);
      EXPECT_FAILS(error.release(), COMPUTE_ERROR_OUT_OF_MEMORY,
                   "kernel f: argument 1: no memory for " + std::to_string(size) + " bytes of local memory");
    }
  }
  EXPECT_EQ(others_help(device), has_helpers);
  EXPECT_OK(run(kGroupSize * int64_t{sizeof(float)}));
  EXPECT_EQ(read<float>(x), std::vector<float>(kGroups * kGroupSize, 2.0f));
}

// The failing launches come while the threads work for another caller, whose results are not touched.
ISOLATED_TEST(WorkerMemory, LaunchesThatFailHarmNoOtherCaller) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer ends the process instead";
  const Device device = open("cpu");
  Kernel kernel;
  if (!compile(device, kWithLocalMemory, &kernel)) GTEST_SKIP() << "there is no compiler";
  std::atomic<bool> has_ended{false};
  std::atomic<int> calls{0};
  std::thread other([&] {
    const Tensor x = make_full(device, {1 << 20}, 4.0f);
    while (!has_ended) {
      Tensor y;
      EXPECT_OK(run_op("sqrt", nullptr, {x}, y.out()));
      const std::vector<float> roots = read<float>(y);
      EXPECT_EQ(std::count(roots.begin(), roots.end(), 2.0f), 1 << 20);
      ++calls;
    }
  });
  const Tensor x = make_full(device, {kGroups * kGroupSize}, 0.0f);
  for (int round = 0; round < 200 || calls < 20; ++round) {
    EXPECT_FAILS(launch(kernel, nullptr, kGroups, kGroupSize,
                        {argument(COMPUTE_ARGUMENT_TENSOR, x, 0),
                         argument(COMPUTE_ARGUMENT_LOCAL_MEMORY, nullptr, int64_t{1} << 50)}),
                 COMPUTE_ERROR_OUT_OF_MEMORY, "local memory");
  }
  has_ended = true;
  other.join();
}

// Arrays of fixed size come from the C library, which ends the process where it has no memory for them.
ISOLATED_TEST(WorkerMemory, LocalArraysThatCannotBeHadAreAnError) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer needs address space of its own";
  const Device device = open("cpu");
  Kernel kernel;
  if (!compile(device,
               "COMPUTE_KERNEL f(COMPUTE_GLOBAL i32* x) {\n"
               "  COMPUTE_LOCAL i32 l[1 << 18];\n"
               "  l[x[0]] = 3;\n"
               "  x[1] = l[x[1]] + 1;\n"
               "}\n",
               &kernel)) {
    GTEST_SKIP() << "there is no compiler";
  }
  const Tensor x = make_full(device, {2}, int32_t{(1 << 18) - 1});
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit tight = {static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  std::vector<void*> taken;  // the allocator's remaining memory
  while (void* const some = std::malloc(1 << 19)) taken.push_back(some);
  compute_error* const error = launch(kernel, nullptr, 1, 1, {argument(COMPUTE_ARGUMENT_TENSOR, x, 0)});
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  for (void* const some : taken) std::free(some);
  EXPECT_FAILS(error, COMPUTE_ERROR_OUT_OF_MEMORY, "kernel f: no memory for a group's local memory");
  ASSERT_OK(launch(kernel, nullptr, 1, 1, {argument(COMPUTE_ARGUMENT_TENSOR, x, 0)}));
  EXPECT_EQ(read<int32_t>(x), (std::vector<int32_t>{(1 << 18) - 1, 4}));
}

// ---- The limits of a kernel -----------------------------------------------------------------------------------------

// `kOwn` bytes of private memory that no compiler removes, in the kernel or in a function of it.
std::string with_private_memory(int own, bool has_barrier, bool calls) {
  const std::string array = "  u8 a[" + std::to_string(own) +
                            "];\n"
                            "  for (i32 i = 0; i < " +
                            std::to_string(own) +
                            "; ++i) a[i] = (u8)(x[i % 2] + i);\n"
                            "  *(volatile u8*)(a + x[0]) = 1;\n";
  return "COMPUTE_FUNCTION i32 g(COMPUTE_GLOBAL i32* x) {\n" + array +
         "  return a[x[1]];\n"
         "}\n"
         "COMPUTE_KERNEL f(COMPUTE_GLOBAL i32* x) {\n" +
         array + (has_barrier ? "  COMPUTE_BARRIER();\n" : "") + (calls ? "  const i32 more = g(x);\n" : "") +
         "  x[1] = a[x[1]] + " + (calls ? "more" : "2") + ";\n}\n";
}

ISOLATED_TEST(WorkerMemory, KernelsBeyondTheLimitsAreRefused) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer has stacks of its own";
  const Device device = open("cpu");
  Kernel kernel;
  const auto refused = [&](const std::string& source) {
    return compute_kernel_compile(device, "portable", source.c_str(), -1, "f", nullptr, kernel.out());
  };
  const auto run = [&](const std::string& source) {
    if (!compile(device, source.c_str(), &kernel)) return;
    const Tensor x = make_full(device, {2}, int32_t{0});
    EXPECT_OK(launch(kernel, nullptr, 1, 1, {argument(COMPUTE_ARGUMENT_TENSOR, x, 0)}));
    EXPECT_EQ(read<int32_t>(x), (std::vector<int32_t>{0, 3}));
  };
  if (!compile(device, kWithLocalMemory, &kernel)) GTEST_SKIP() << "there is no compiler";
  run(with_private_memory(60'000, true, false));
  run(with_private_memory(500'000, false, false));
  EXPECT_FAILS(refused(with_private_memory(80'000, true, false)), COMPUTE_ERROR_COMPILE_FAILED,
               "kernel f: a work-item needs more private memory than the 65536 bytes", "kernels with barriers");
  EXPECT_FAILS(refused(with_private_memory(600'000, false, false)), COMPUTE_ERROR_COMPILE_FAILED,
               "kernel f: a work-item needs more private memory than the 524288 bytes", "kernels without barriers");
  EXPECT_FAILS(refused("COMPUTE_KERNEL f(COMPUTE_GLOBAL i32* x) {\n"
                       "  f32 a[x[0]];\n"
                       "  a[0] = 1;\n"
                       "  x[0] = (i32)a[0];\n"
                       "}\n"),
               COMPUTE_ERROR_COMPILE_FAILED, "kernel f: ", "array");
  EXPECT_FAILS(refused("COMPUTE_KERNEL f(COMPUTE_GLOBAL i32* x) {\n"
                       "  COMPUTE_LOCAL i32 l[1 << 28];\n"
                       "  l[COMPUTE_LOCAL_ID(0)] = 1;\n"
                       "  x[0] = l[x[1]];\n"
                       "}\n"),
               COMPUTE_ERROR_COMPILE_FAILED, "kernel f: a group needs more local memory than the 1048576 bytes");
  // Functions of a kernel have their memory in its own.
  EXPECT_FAILS(refused(with_private_memory(40'000, true, true)), COMPUTE_ERROR_COMPILE_FAILED, "private memory");
}

// With and without a barrier.
ISOLATED_TEST(WorkerMemory, GroupsOfBadSizesAreRefused) {
  const Device device = open("cpu");
  for (const char* barrier : {"", "COMPUTE_BARRIER();"}) {
    Kernel kernel;
    const std::string source =
        std::string("COMPUTE_KERNEL f(COMPUTE_GLOBAL i32* x) { ") + barrier + " COMPUTE_ATOMIC_ADD_I32(x, 1); }";
    if (!compile(device, source.c_str(), &kernel)) GTEST_SKIP() << "there is no compiler";
    const Tensor x = make_full(device, {1}, int32_t{0});
    const auto run = [&](int64_t size) {
      return launch(kernel, nullptr, 1, size, {argument(COMPUTE_ARGUMENT_TENSOR, x, 0)});
    };
    for (const int64_t size : {int64_t{1025}, int64_t{1} << 20, int64_t{1} << 40}) {
      EXPECT_FAILS(run(size), COMPUTE_ERROR_INVALID_ARGUMENT, "kernel f: group size " + std::to_string(size),
                   "exceeds the limit of 1024");
    }
    for (const int64_t size : {0, -1})
      EXPECT_FAILS(run(size), COMPUTE_ERROR_INVALID_ARGUMENT, "1 groups of " + std::to_string(size) + " work-items");
    ASSERT_OK(run(1024));
    EXPECT_EQ(read<int32_t>(x), std::vector<int32_t>{1024});
  }
}

// ---- Scratch memory of threads --------------------------------------------------------------------------------------

// Until a worker takes part, the call succeeds. Afterwards it does so with memory.
void run_without_scratch_memory(const char* op) {
  const Device device = open("cpu");
  const Tensor x = make_full(device, {1 << 12, 1 << 10}, 1.0f);
  const int64_t axis = 0;
  const auto run = [&] {
    Tensor y;
    return std::string_view(op) == "argmax" ? run_op(op, nullptr, {x}, y.out(), {int_attribute("axis", &axis, 1)})
                                            : run_op(op, nullptr, {x}, y.out());
  };
  workers_have_no_frames = true;
  compute_error* error = nullptr;
  for (const auto end = Clock::now() + kPatience; error == nullptr && Clock::now() < end;) error = run();
  EXPECT_FAILS(error, COMPUTE_ERROR_OUT_OF_MEMORY) << op;
  workers_have_no_frames = false;
  EXPECT_OK(run());
  EXPECT_TRUE(others_help(device));
}

TEST(WorkerMemory, AWorkerWithoutScratchMemoryIsAnError) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  const Outcome helped = run_in_child([] { EXPECT_TRUE(others_help(open("cpu"))); });
  if (!helped.exited(0)) GTEST_SKIP() << "there is one thread";
  for (const char* op : {"softplus", "sum", "softmax", "var", "argmax", "sort"}) {
    const Outcome outcome = run_in_child([op] { run_without_scratch_memory(op); });
    EXPECT_TRUE(outcome.exited(0)) << op << ": status " << outcome.status << "\n" << outcome.output;
  }
}

// ---- Stacks of work-items -------------------------------------------------------------------------------------------

constexpr const char* kWithBarrier =
    "COMPUTE_KERNEL f(COMPUTE_GLOBAL i32* x) {\n"
    "  const i64 i = COMPUTE_LOCAL_ID(0), n = COMPUTE_GROUP_SIZE(0);\n"
    "  x[i] = (i32)i;\n"
    "  COMPUTE_BARRIER();\n"
    "  const i32 other = x[n - 1 - i];\n"
    "  COMPUTE_BARRIER();\n"
    "  x[i] = other;\n"
    "}\n";

constexpr int64_t kItems = 1024;

void expect_turned(compute_tensor* x) {
  const std::vector<int32_t> values = read<int32_t>(x);
  for (int64_t i = 0; i < kItems; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], kItems - 1 - i) << i;
}

int64_t mapping_count() {
  std::ifstream maps("/proc/self/maps");
  int64_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// A process has 65530 mappings.
ISOLATED_TEST(WorkerMemory, StacksOfManyThreadsAreFewMappings) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer has mappings of its own";
  const Device device = open("cpu");
  Kernel kernel;
  if (!compile(device, kWithBarrier, &kernel)) GTEST_SKIP() << "there is no compiler";
  const int64_t before = mapping_count();
  std::vector<Stream> streams;  // each with a thread, which keeps its stacks
  for (int i = 0; i < 16; ++i) {
    const Tensor x = make_full(device, {kItems}, int32_t{0});
    streams.push_back(make_stream(device));
    ASSERT_OK(launch(kernel, streams.back(), 1, kItems, {argument(COMPUTE_ARGUMENT_TENSOR, x, 0)}));
    expect_turned(x);
    ASSERT_LT(mapping_count() - before, 20'000) << i;
  }
  streams.clear();
}

// The address space ends while a thread of a stream makes its stacks.
ISOLATED_TEST(WorkerMemory, StacksThatCannotBeHadAreAnError) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer needs address space of its own";
  const Device device = open("cpu");
  Kernel kernel;
  if (!compile(device, kWithBarrier, &kernel)) GTEST_SKIP() << "there is no compiler";
  const Tensor x = make_full(device, {kItems}, int32_t{0});
  const std::vector<compute_kernel_argument> arguments = {argument(COMPUTE_ARGUMENT_TENSOR, x, 0)};
  ASSERT_OK(launch(kernel, nullptr, 1, kItems, arguments));
  expect_turned(x);
  Stream stream = make_stream(device);
  ASSERT_OK(compute_stream_synchronize(stream));
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit tight = {static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (32 << 20)), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  compute_error* error = launch(kernel, stream, 1, kItems, arguments);
  if (error == nullptr) error = compute_stream_synchronize(stream);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  EXPECT_FAILS(error, COMPUTE_ERROR_STREAM_FAILED, "kernel f: no memory for the stacks of 1024 work-items");
  stream = make_stream(device);
  const Tensor y = make_full(device, {kItems}, int32_t{0});
  ASSERT_OK(launch(kernel, stream, 1, kItems, {argument(COMPUTE_ARGUMENT_TENSOR, y, 0)}));
  expect_turned(y);
}
#endif

}  // namespace
}  // namespace robustness
