// SPDX-License-Identifier: Apache-2.0
// Which engine the CPU's matrix product chooses, and what that does to the process: threads, libraries, environment,
// memory.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <random>
#include <thread>

#include "plugins/common/op/core.hpp"
#include "tests/unit/cpu_matmul_oracle.hpp"

namespace {
std::atomic<int64_t> allocations{0};
}

[[gnu::noinline]] void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace compute::cpu::matmul_test {
namespace {

int64_t task_count() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

// ---- The choice of an engine --------------------------------------------------------------------------------------

MatmulEngine engine_for(compute_dtype dtype, const Shape& shape, Layout layout, const MatmulOptions& options) {
  Product product{Operand(dtype, {}, shape.m, shape.k, layout), Operand(dtype, {}, shape.k, shape.n, layout),
                  Operand(dtype, {}, shape.m, shape.n, layout)};
  return product.run(options);
}

TEST(CpuMatmulEngine, NarrowingIsObeyedWhereTheEngineCan) {
  const MatmulOptions onednn_only = options_of(MatmulEngine::onednn);
  const MatmulOptions openblas_only = options_of(MatmulEngine::openblas);
  const Shape shape = {20, 20, 20};
  if (onednn() != nullptr) {
    EXPECT_EQ(engine_for(COMPUTE_DTYPE_FLOAT32, shape, Layout::row_major, onednn_only), MatmulEngine::onednn);
    EXPECT_EQ(engine_for(COMPUTE_DTYPE_FLOAT32, shape, Layout::transposed, onednn_only), MatmulEngine::onednn);
    EXPECT_EQ(engine_for(COMPUTE_DTYPE_FLOAT32, {1, 9, 30}, Layout::transposed, onednn_only), MatmulEngine::onednn);
  }
  if (openblas() != nullptr) {
    for (const compute_dtype dtype :
         {COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_COMPLEX64, COMPUTE_DTYPE_COMPLEX128}) {
      EXPECT_EQ(engine_for(dtype, shape, Layout::padded, openblas_only), MatmulEngine::openblas);
    }
  }
  // What a library cannot take is ours: dtypes, strides, no terms to add.
  EXPECT_EQ(engine_for(COMPUTE_DTYPE_FLOAT64, shape, Layout::row_major, onednn_only), MatmulEngine::own);
  EXPECT_EQ(engine_for(COMPUTE_DTYPE_INT32, shape, Layout::row_major, openblas_only), MatmulEngine::own);
  EXPECT_EQ(engine_for(COMPUTE_DTYPE_FLOAT32, shape, Layout::reversed, openblas_only), MatmulEngine::own);
  EXPECT_EQ(engine_for(COMPUTE_DTYPE_FLOAT32, shape, Layout::strided, onednn_only), MatmulEngine::own);
  EXPECT_EQ(engine_for(COMPUTE_DTYPE_FLOAT32, {4, 4, 0}, Layout::row_major, onednn_only), MatmulEngine::own);
}

TEST(CpuMatmulEngine, DoesNotDependOnThreads) {
  for (const Shape& shape : {Shape{8, 8, 8}, Shape{300, 300, 300}, Shape{1, 500, 500}, Shape{1100, 1100, 1100}}) {
    for (const compute_dtype dtype : {COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_FLOAT64}) {
      const MatmulView view = {nullptr, shape.k, 1};
      const MatmulProblem problem = {
          dtype,   shape.m, shape.n, shape.k, 0, nullptr, view, {nullptr, shape.n, 1}, {nullptr, shape.n, 1},
          nullptr, nullptr};
      const MatmulEngine alone = MatmulPlan(problem, options_of(MatmulEngine::automatic)).engine();
      for (const int32_t threads : {2, 16, 200}) {
        EXPECT_EQ(MatmulPlan(problem, options_of(MatmulEngine::automatic, widest_instruction_set(), threads)).engine(),
                  alone);
      }
    }
  }
}

TEST(CpuMatmulEngine, TheOwnKernelHasATileForEachThreadWhereTheyComeOutEqual) {
  const auto tasks = [](int64_t side, int32_t threads) {
    const MatmulView view = {nullptr, side, 1};
    const MatmulProblem problem = {
        COMPUTE_DTYPE_FLOAT32, side, side, side, 0, nullptr, view, view, view, nullptr, nullptr};
    return MatmulPlan(problem, options_of(MatmulEngine::own, widest_instruction_set(), threads)).tasks();
  };
  EXPECT_EQ(tasks(128, 2), 2);
  EXPECT_EQ(tasks(256, 16), 16);
  EXPECT_GE(tasks(256, 7), 14);  // 256 rows do not make 7 equal parts
  EXPECT_GE(tasks(256, 4), 12);  // it takes so long that other threads should be able to help a late one
}

TEST(CpuMatmulEngine, ReportsWhatWasTriedAndFound) {
  const std::vector<LibraryReport> reports = engine_library_reports();
  ASSERT_EQ(reports.size(), 2u);
  const bool found[] = {onednn() != nullptr, openblas() != nullptr};
  for (size_t i = 0; i < 2; ++i) {
    const LibraryReport& report = reports[i];
    SCOPED_TRACE(report.library);
    EXPECT_FALSE(report.purpose.empty());
    EXPECT_FALSE(report.remedy.empty());
    ASSERT_FALSE(report.attempts.empty());
    EXPECT_EQ(found[i], !report.path.empty());
    EXPECT_EQ(found[i], !report.version.empty());
    EXPECT_EQ(found[i], report.attempts.back().error.empty());
    for (size_t attempt = 0; attempt + 1 < report.attempts.size(); ++attempt) {
      EXPECT_FALSE(report.attempts[attempt].error.empty()) << report.attempts[attempt].name;
    }
  }
}

TEST(CpuMatmulEngine, AReportPrefersTheReasonOfAFileThatIsThere) {
  LibraryReport report;
  EXPECT_EQ(report.error(), "");
  report.attempts = {{"libfirst.so", "no such file"}, {"liblast.so", "no such file either"}};
  EXPECT_EQ(report.error(), "no such file either");
  report.attempts.insert(report.attempts.begin() + 1, {"libserial.so", "is a serial build", true});
  EXPECT_EQ(report.error(), "libserial.so: is a serial build");
  report.path = "/lib/libfirst.so";
  EXPECT_EQ(report.error(), "");
}

// ---- The process --------------------------------------------------------------------------------------------------

bool is_mapped(const std::string& part) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

/// A separate process, unaffected by libraries and threads of earlier tests.
class CpuMatmulProcess : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

#define IN_A_NEW_PROCESS(...)                             \
  EXPECT_EXIT(                                            \
      {                                                   \
        __VA_ARGS__;                                      \
        std::exit(::testing::Test::HasFailure() ? 1 : 0); \
      },                                                  \
      ::testing::ExitedWithCode(0), "")

MatmulEngine multiply(compute_dtype dtype, int64_t size, const MatmulOptions& options) {
  return engine_for(dtype, {size, size, size}, Layout::row_major, options);
}

void libraries_are_opened_at_first_need() {
  const auto opened = [] { return is_mapped("libdnnl") || is_mapped("libopenblas") || is_mapped("libgomp"); };
  EXPECT_FALSE(opened());
  EXPECT_FALSE(engines_touched());
  multiply(COMPUTE_DTYPE_INT32, 50, options_of(MatmulEngine::automatic));
  multiply(COMPUTE_DTYPE_FLOAT16, 50, options_of(MatmulEngine::automatic));
  multiply(COMPUTE_DTYPE_FLOAT32, 50, options_of(MatmulEngine::own));
  EXPECT_FALSE(opened()) << "by a product that no library can serve";
  EXPECT_FALSE(engines_touched());
  multiply(COMPUTE_DTYPE_FLOAT32, 50, options_of(MatmulEngine::automatic));
  EXPECT_TRUE(engines_touched());
  // One that was refused stays in memory too.
  const std::vector<LibraryReport> reports = engine_library_reports();
  const auto is_there = [](const LibraryReport& report) {
    return !report.path.empty() || std::any_of(report.attempts.begin(), report.attempts.end(),
                                               [](const LibraryReport::Attempt& attempt) { return attempt.refused; });
  };
  EXPECT_EQ(is_mapped("libdnnl"), is_there(reports[0]));
  EXPECT_EQ(is_mapped("libopenblas"), is_there(reports[1]));
}

// After a shortage of descriptors the next call tries again: the failure is not remembered.
void a_shortage_is_no_verdict() {
#if !defined(__SANITIZE_ADDRESS__)  // which needs descriptors itself
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto is_short = [](auto call) {
    try {
      call();
      return false;
    } catch (const common::Error& error) {
      return error.code == COMPUTE_ERROR_OUT_OF_MEMORY;
    }
  };
  const bool onednn_is_short = is_short([] { onednn(); }), openblas_is_short = is_short([] { openblas(); });
  const bool report_is_short = is_short([] { engine_library_reports(); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(report_is_short);
  for (const LibraryReport& report : engine_library_reports()) {
    EXPECT_EQ(report.error().find("Too many open files"), std::string::npos) << report.error();
    const bool is_short = report.library == "oneDNN" ? onednn_is_short : openblas_is_short;
    EXPECT_TRUE(is_short || report.path.empty()) << report.library;
  }
#endif
}

// OpenBLAS would hang, so that products are made without it.
void a_limit_of_memory_keeps_openblas_out() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need address space themselves
  for (const int resource : {RLIMIT_DATA, RLIMIT_AS}) {
    rlimit limit{};
    ASSERT_EQ(getrlimit(static_cast<__rlimit_resource>(resource), &limit), 0);
    limit.rlim_cur = rlim_t{8} << 30;
    ASSERT_EQ(setrlimit(static_cast<__rlimit_resource>(resource), &limit), 0);
  }
  EXPECT_EQ(openblas(), nullptr);
  const LibraryReport report = engine_library_reports()[1];
  EXPECT_NE(report.error().find("RLIMIT_AS"), std::string::npos) << report.error();
  EXPECT_NE(report.remedy.find("ulimit"), std::string::npos) << report.remedy;
  for (const compute_dtype dtype : {COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_COMPLEX128}) {
    for (const MatmulEngine engine : {MatmulEngine::automatic, MatmulEngine::openblas})
      EXPECT_NE(multiply(dtype, 64, options_of(engine)), MatmulEngine::openblas);
  }
#endif
}

TEST_F(CpuMatmulProcess, ALimitOfMemoryKeepsOpenblasOut) { IN_A_NEW_PROCESS(a_limit_of_memory_keeps_openblas_out()); }

TEST_F(CpuMatmulProcess, AShortageIsNoVerdict) { IN_A_NEW_PROCESS(a_shortage_is_no_verdict()); }

TEST_F(CpuMatmulProcess, LibrariesAreOpenedAtFirstNeed) { IN_A_NEW_PROCESS(libraries_are_opened_at_first_need()); }

void no_thread_is_started() {
  setenv("OMP_NUM_THREADS", "8", 1);
  setenv("OPENBLAS_NUM_THREADS", "8", 1);
  const int64_t before = task_count();
  for (const Setting& setting : settings_of(COMPUTE_DTYPE_FLOAT32)) {
    for (const compute_dtype dtype : {COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_COMPLEX64}) {
      for (const int64_t size : {8, 64, 300}) multiply(dtype, size, setting.options);
    }
  }
  EXPECT_EQ(task_count(), before);
  // Nor by threads that enter a library for the first time themselves.
  constexpr int kThreads = 3;
  std::atomic<int64_t> most{0};
  std::vector<std::thread> threads;
  std::atomic<int> finished{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (const MatmulEngine engine : {MatmulEngine::onednn, MatmulEngine::openblas, MatmulEngine::automatic}) {
        multiply(COMPUTE_DTYPE_FLOAT32, 300, options_of(engine));
      }
      const int64_t now = task_count();
      int64_t seen = most.load();
      while (seen < now && !most.compare_exchange_weak(seen, now)) {
      }
      finished.fetch_add(1);
      while (finished.load() < kThreads) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most.load(), before + kThreads);
}

TEST_F(CpuMatmulProcess, NoThreadIsStarted) { IN_A_NEW_PROCESS(no_thread_is_started()); }

void openmp_count_is_given_back() {
  const auto check = [](const Openmp& openmp, MatmulEngine engine) {
    if (openmp.omp_set_num_threads == nullptr) return;
    openmp.omp_set_num_threads(5);
    EXPECT_EQ(multiply(COMPUTE_DTYPE_FLOAT32, 200, options_of(engine)), engine);
    EXPECT_EQ(openmp.omp_get_max_threads(), 5);
  };
  if (onednn() != nullptr) check(onednn()->openmp, MatmulEngine::onednn);
  if (openblas() != nullptr) check(openblas()->openmp, MatmulEngine::openblas);
}

TEST_F(CpuMatmulProcess, OpenmpCountIsGivenBack) { IN_A_NEW_PROCESS(openmp_count_is_given_back()); }

/// The libraries have one table of work memory for all threads; small products meet there most often.
void threads_at_once_get_the_same_products() {
  constexpr int kThreads = 8;
  constexpr int kRuns = 1500;
  std::mt19937_64 random(7);
  for (const compute_dtype dtype :
       {COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_COMPLEX64, COMPUTE_DTYPE_COMPLEX128}) {
    for (const Setting& setting : settings_of(dtype)) {
      SCOPED_TRACE(setting.name + " " + name_of(dtype));
      Product alone{Operand(dtype, {}, 20, 20, Layout::row_major), Operand(dtype, {}, 20, 20, Layout::transposed),
                    Operand(dtype, {}, 20, 20, Layout::row_major)};
      alone.a.fill(random);
      alone.b.fill(random);
      const std::vector<std::byte> before = alone.c.bytes;
      alone.run(setting.options);
      std::atomic<int> started{0};
      std::atomic<int> wrong{0};
      std::vector<std::thread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
          Product product = alone;
          MatmulView views[2];
          const MatmulPlan plan(product.problem(views), setting.options);
          Workspace workspace(plan);
          MatmulRun run{product.a.data(), product.b.data(), product.c.data()};
          run.workspace = workspace.data();
          started.fetch_add(1);
          while (started.load() < kThreads) std::this_thread::yield();
          for (int repeat = 0; repeat < kRuns; ++repeat) {
            product.c.bytes.assign(before.begin(), before.end());
            plan.run(run);
            if (product.c.bytes != alone.c.bytes) wrong.fetch_add(1);
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(wrong.load(), 0) << "of " << kThreads * kRuns;
    }
  }
}

TEST_F(CpuMatmulProcess, ThreadsAtOnceGetTheSameProducts) { IN_A_NEW_PROCESS(threads_at_once_get_the_same_products()); }

/// A serial OpenBLAS that the program has loaded globally, and that several threads must not call.
constexpr const char* kSerialOpenblas = "/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0";

void an_openblas_of_the_program_is_not_used() {
  dlopen(kSerialOpenblas, RTLD_NOW | RTLD_GLOBAL);
  threads_at_once_get_the_same_products();
}

TEST_F(CpuMatmulProcess, AnOpenblasOfTheProgramIsNotUsed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers refuse RTLD_DEEPBIND";
#endif
  if (!std::filesystem::exists(kSerialOpenblas)) GTEST_SKIP() << "there is no " << kSerialOpenblas;
  IN_A_NEW_PROCESS(an_openblas_of_the_program_is_not_used());
}

TEST_F(CpuMatmulProcess, ASerialOpenblasIsRefused) {
  const LibraryReport report = engine_library_reports()[1];
  for (const LibraryReport::Attempt& attempt : report.attempts) {
    if (attempt.name.find("serial") != std::string::npos) {
      EXPECT_FALSE(attempt.error.empty());
    }
  }
  EXPECT_EQ(report.path.find("serial"), std::string::npos);
}

std::string openblas_version() { return engine_library_reports()[1].version; }

void kernels_are_chosen_for_this_processor() {
  unsetenv("OPENBLAS_CORETYPE");
  prepare_engine_environment();
  const char* const chosen = std::getenv("OPENBLAS_CORETYPE");
  switch (widest_instruction_set()) {
    case InstructionSet::avx512:
      EXPECT_STREQ(chosen, "SkylakeX");
      break;
    case InstructionSet::avx2:
      EXPECT_STREQ(chosen, "Haswell");
      break;
    default:
      EXPECT_EQ(chosen, nullptr);
      break;
  }
  if (openblas() == nullptr) return;
  EXPECT_TRUE(openblas()->suits_processor) << openblas_version();
  if (chosen != nullptr) {
    EXPECT_NE(openblas_version().find(chosen), std::string::npos) << openblas_version();
  }
}

TEST_F(CpuMatmulProcess, KernelsAreChosenForThisProcessor) {
  IN_A_NEW_PROCESS(kernels_are_chosen_for_this_processor());
}

void the_users_choice_of_kernels_stands() {
  setenv("OPENBLAS_CORETYPE", "Prescott", 1);
  prepare_engine_environment();
  EXPECT_STREQ(std::getenv("OPENBLAS_CORETYPE"), "Prescott");
  if (openblas() == nullptr || widest_instruction_set() == InstructionSet::baseline) return;
  // Then they are slower than ours, and used only where they are asked for.
  EXPECT_FALSE(openblas()->suits_processor) << openblas_version();
  EXPECT_EQ(multiply(COMPUTE_DTYPE_FLOAT64, 20, options_of(MatmulEngine::automatic)), MatmulEngine::own);
  EXPECT_EQ(multiply(COMPUTE_DTYPE_FLOAT64, 20, options_of(MatmulEngine::openblas)), MatmulEngine::openblas);
}

TEST_F(CpuMatmulProcess, TheUsersChoiceOfKernelsStands) { IN_A_NEW_PROCESS(the_users_choice_of_kernels_stands()); }

TEST_F(CpuMatmulProcess, ARunAllocatesNothing) {
  for (const compute_dtype dtype : kDtypes) {
    for (const Setting& setting : settings_of(dtype)) {
      SCOPED_TRACE(setting.name + " " + name_of(dtype));
      Product product{Operand(dtype, {4}, 30, 30, Layout::row_major), Operand(dtype, {4}, 30, 30, Layout::row_major),
                      Operand(dtype, {4}, 30, 30, Layout::strided)};
      MatmulView views[2];
      const MatmulPlan plan(product.problem(views), setting.options);
      Workspace workspace(plan);
      MatmulRun run{product.a.data(), product.b.data(), product.c.data()};
      run.workspace = workspace.data();
      plan.run(run);
      const int64_t before = allocations.load();
      for (int repeat = 0; repeat < 3; ++repeat) plan.run(run);
      EXPECT_EQ(allocations.load(), before);
    }
  }
}

}  // namespace
}  // namespace compute::cpu::matmul_test
