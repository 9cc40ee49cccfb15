// SPDX-License-Identifier: Apache-2.0
// State of the calling thread: rounding mode, flush-to-zero, traps, sticky flags, x87's control word, errno and
// signal mask. No call changes it, and results do not depend on it, not even on threads created while it was
// set.
#include <fenv.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <locale>
#include <map>
#include <sstream>
#include <thread>

#include "robustness.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace robustness {
namespace {

constexpr int kErrno = EDOM;  // of no call that could fail here

// ---- The world ------------------------------------------------------------------------------------------------------

struct World {
  int rounding = fegetround();
  int traps = fegetexcept();
  int raised = fetestexcept(FE_ALL_EXCEPT);
  int error = errno;
  uint32_t control = 0;
  uint16_t x87_control = 0;
  sigset_t blocked{};

  World() {
#if defined(__x86_64__)
    control = _mm_getcsr();
    asm volatile("fnstcw %0" : "=m"(x87_control));
#endif
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  }
  bool operator==(const World& other) const {
    for (int signal = 1; signal < 65; ++signal) {
      if (sigismember(&blocked, signal) != sigismember(&other.blocked, signal)) return false;
    }
    return rounding == other.rounding && traps == other.traps && raised == other.raised && error == other.error &&
           control == other.control && x87_control == other.x87_control;
  }
};

std::ostream& operator<<(std::ostream& out, const World& world) {
  return out << "rounding " << world.rounding << ", traps " << world.traps << ", raised " << world.raised << ", errno "
             << world.error << ", mxcsr " << std::hex << world.control << ", x87 " << world.x87_control << std::dec;
}

struct Mode {
  const char* name;
  void (*enter)();
};

#if defined(__x86_64__)
void flush() { _mm_setcsr(_mm_getcsr() | 0x8040); }  // subnormal results and operands
void short_x87() {
  const uint16_t control = 0x027f;  // 53 bits
  asm volatile("fldcw %0" : : "m"(control));
}
#endif

constexpr Mode kModes[] = {
    {"default", [] {}},
    {"upward", [] { fesetround(FE_UPWARD); }},
    {"downward", [] { fesetround(FE_DOWNWARD); }},
    {"toward_zero", [] { fesetround(FE_TOWARDZERO); }},
    {"traps",
     [] {
       feclearexcept(FE_ALL_EXCEPT);
       feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT);
     }},
    {"raised", [] { feraiseexcept(FE_INVALID | FE_UNDERFLOW); }},
#if defined(__x86_64__)
    {"flush", flush},
    {"short_x87", short_x87},
#endif
};

// ---- Calls ----------------------------------------------------------------------------------------------------------

// Makes calls in a world, and looks at it after each. Judging happens outside of it, since it computes too.
class Caller {
 public:
  explicit Caller(const Mode& mode) : mode_(mode) { fegetenv(&outside_); }

  template <class F>
  void call(const char* what, const F& function) {
    mode_.enter();
    errno = kErrno;
    const World before;
    compute_error* error = function();
    const World after;
    fesetenv(&outside_);
    EXPECT_TRUE(before == after) << what << " in " << mode_.name << ": " << before << " became " << after;
    EXPECT_OK(error) << what << " in " << mode_.name;
  }
  template <class F>
  void call_void(const char* what, const F& function) {
    call(what, [&]() -> compute_error* {
      function();
      return nullptr;
    });
  }

 private:
  const Mode& mode_;
  fenv_t outside_;
};

using Bytes = std::vector<unsigned char>;
using Results = std::map<std::string, Bytes>;

constexpr int64_t kLarge = 300000;  // spread over threads

// Everything that computes, in one world. Values that rounding and flushing change, and operations that raise every
// flag.
class Program {
 public:
  Program(const Mode& mode, const char* device) : caller_(mode), name_(device) {}

  Results run() {
    caller_.call("open", [&] { return compute_device_open(name_, device_.out()); });
    if (device_.get() == nullptr) return {};
    caller_.call("stream_create", [&] { return compute_stream_create(device_, nullptr, stream_.out()); });
    make_inputs();
    for (compute_stream* stream : {static_cast<compute_stream*>(nullptr), stream_.get()}) {
      prefix_ = stream == nullptr ? "" : "stream ";
      run_ops(stream);
    }
    run_expressions();
    run_scalars();
    run_views();
    run_events();
    run_graph();
    refuse();
    release();
    return std::move(results_);
  }

 private:
  void make_inputs() {
    std::vector<float> small(16), many(kLarge);
    std::vector<double> wide(16);
    std::vector<std::complex<double>> complex(8);
    for (size_t i = 0; i < small.size(); ++i) small[i] = 1e-39f * static_cast<float>(i + 1);
    for (size_t i = 0; i < many.size(); ++i)
      many[i] = i % 5 == 0 ? 3e-40f * static_cast<float>(i % 97) : 0.1f * static_cast<float>(i % 1000 + 1);
    for (size_t i = 0; i < wide.size(); ++i) wide[i] = 0.1 * static_cast<double>(i + 1);
    for (size_t i = 0; i < complex.size(); ++i)
      complex[i] = {0.3 * static_cast<double>(i) - 1.07, 0.28 + static_cast<double>(i) / 7};
    caller_.call_void("from_host", [&] {
      small_ = make_tensor(device_, small);
      many_ = make_tensor(device_, many);
    });
    if (has(COMPUTE_DTYPE_FLOAT64)) wide_ = make_tensor(device_, wide);
    if (has(COMPUTE_DTYPE_COMPLEX128)) complex_ = make(COMPUTE_DTYPE_COMPLEX128, 8, complex.data());
  }

  bool has(compute_dtype dtype) {
    compute_device_info info{};
    info.struct_size = sizeof info;
    EXPECT_OK(compute_device_get_info(device_, &info));
    return dtype < info.dtype_count && (info.dtypes[dtype] & COMPUTE_DTYPE_LEVEL_ARITHMETIC) != 0;
  }

  Tensor make(compute_dtype dtype, int64_t count, const void* data) {
    Tensor tensor;
    caller_.call("from_host", [&] { return compute_tensor_from_host(device_, dtype, 1, &count, data, tensor.out()); });
    return tensor;
  }

  void keep(const std::string& what, compute_tensor* tensor) {
    if (tensor == nullptr) return;
    Bytes bytes(static_cast<size_t>(compute_tensor_size_bytes(tensor)));
    caller_.call(("read of " + what).c_str(),
                 [&] { return compute_tensor_read(tensor, bytes.data(), static_cast<int64_t>(bytes.size())); });
    results_[prefix_ + what] = bytes;
  }

  void op(const char* name, compute_stream* stream, std::vector<compute_tensor*> inputs,
          std::vector<compute_attribute> attributes = {}) {
    for (const compute_tensor* input : inputs) {
      if (input == nullptr) return;  // of a dtype that the device lacks
    }
    Tensor result;
    caller_.call(name, [&] { return run_op(name, stream, inputs, result.out(), attributes); });
    keep(std::string(name) + " of " + std::to_string(compute_tensor_element_count(inputs[0])) + " " +
             compute_dtype_name(compute_tensor_dtype(inputs[0])),
         result);
  }

  void run_ops(compute_stream* stream) {
    for (compute_tensor* x : {small_.get(), many_.get(), wide_.get()}) {
      op("add", stream, {x, x});
      for (const char* name : {"exp", "sin", "log", "tanh", "round", "sqrt", "sum", "prod", "mean"})
        op(name, stream, {x});
    }
    op("divide", stream, {small_, small_});
    op("divide", stream, {many_, many_});
    op("pow", stream, {complex_, complex_});
    op("log2", stream, {complex_});
    const int64_t half = COMPUTE_DTYPE_FLOAT16;
    compute_attribute to_half = int_attribute("dtype", &half, 1);
    const compute_dtype dtype = COMPUTE_DTYPE_FLOAT16;
    to_half.kind = COMPUTE_KIND_DTYPE;
    to_half.values = &dtype;
    if (has(dtype)) op("cast", stream, {many_}, {to_half});
    Tensor square;
    const int64_t shape[] = {4, 4};
    caller_.call("reshape", [&] { return compute_tensor_reshape(small_, 2, shape, square.out()); });
    op("matmul", stream, {square, square});
  }

  void run_expressions() {
    prefix_ = "expression ";
    Expression expression;
    const char* const names[] = {"x"};
    caller_.call("expression_parse", [&] {
      return compute_expression_parse("x * 1.1 + 1e-45 + 2.5e-3 * x", names, 1, nullptr, 0, expression.out());
    });
    Tensor y;
    compute_tensor* x = small_;
    caller_.call("map", [&] { return compute_map(nullptr, expression, &x, 1, nullptr, 0, y.out(), 1); });
    keep("map", y);
  }

  void run_scalars() {
    prefix_ = "scalar ";
    const double value = 0.1;
    const float tiny = 1e-40f;
    Tensor weak, full, sum;
    caller_.call("scalar", [&] { return compute_tensor_scalar(COMPUTE_DTYPE_FLOAT64, &value, 1, weak.out()); });
    const int64_t shape[] = {5};
    caller_.call("full",
                 [&] { return compute_tensor_full(device_, COMPUTE_DTYPE_FLOAT32, 1, shape, &tiny, full.out()); });
    keep("full", full);
    caller_.call("multiply", [&] { return run_op("multiply", nullptr, {many_, weak}, sum.out()); });
    keep("multiply", sum);
  }

  void run_views() {
    prefix_ = "view ";
    const int64_t start[] = {3}, stop[] = {12}, step[] = {2};
    Tensor part, there, packed;
    caller_.call("slice", [&] { return compute_tensor_slice(small_, 1, start, stop, step, part.out()); });
    caller_.call("copy", [&] { return run_op("copy", nullptr, {part}, packed.out()); });
    keep("copy", packed);
    Device host;
    caller_.call("open", [&] { return compute_device_open("cpu", host.out()); });
    caller_.call("to_device", [&] { return compute_tensor_to_device(packed, host, there.out()); });
    keep("to_device", there);
    void* data = nullptr;
    int32_t is_copy = 0;
    caller_.call(
        "map", [&] { return compute_tensor_map(packed, COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE, &data, &is_copy); });
    caller_.call("unmap", [&] { return compute_tensor_unmap(packed, data); });
    caller_.call("set_label", [&] { return compute_tensor_set_label(packed, "packed"); });
  }

  void run_events() {
    Event event;
    caller_.call("event_record", [&] { return compute_event_record(stream_, nullptr, event.out()); });
    caller_.call("event_synchronize", [&] { return compute_event_synchronize(event); });
    for (int i = 0; i < 2; ++i) {
      std::atomic<int> seen{-1};
      const auto look = [](const compute_error*, void* to) {
        const int rounding = fegetround();
        fesetround(FE_UPWARD);  // for itself alone
        static_cast<std::atomic<int>*>(to)->store(rounding);
      };
      caller_.call("notify", [&] { return compute_stream_notify(stream_, look, &seen); });
      caller_.call("synchronize", [&] { return compute_stream_synchronize(stream_); });
      while (seen == -1) std::this_thread::yield();
      EXPECT_EQ(seen, FE_TONEAREST);
    }
    caller_.call("device_synchronize", [&] { return compute_device_synchronize(device_); });
  }

  void run_graph() {
    prefix_ = "graph ";
    Graph graph;
    Tensor y;
    caller_.call("graph_begin", [&] { return compute_graph_begin(stream_, nullptr); });
    caller_.call("add", [&] { return run_op("add", stream_, {small_, small_}, y.out()); });
    caller_.call("graph_end", [&] { return compute_graph_end(stream_, graph.out()); });
    caller_.call("graph_run", [&] { return compute_graph_run(graph, stream_); });
    keep("add", y);
  }

  void refuse() {
    compute_error* error = nullptr;
    const int64_t shape[] = {1000000, -7};
    Tensor none;
    caller_.call_void("empty of a bad shape",
                      [&] { error = compute_tensor_empty(device_, COMPUTE_DTYPE_FLOAT32, 2, shape, none.out()); });
    std::string text = message_of(error);
    Expression expression;
    caller_.call_void("a bad expression",
                      [&] { error = compute_expression_parse("1.5 +", nullptr, 0, nullptr, 0, expression.out()); });
    text += message_of(error);
    caller_.call_void("a bad selector", [&] {
      Device device;
      error = compute_device_open("cpu+mem=1,5G", device.out());
    });
    text += message_of(error);
    results_["messages"] = Bytes(text.begin(), text.end());
  }

  void release() {
    caller_.call_void("release", [&] {
      for (Tensor* tensor : {&small_, &many_, &wide_, &complex_}) tensor->reset();
      stream_.reset();
    });
    caller_.call("trim", [&] { return compute_device_trim(device_, 0); });
  }

  Caller caller_;
  const char* const name_;
  std::string prefix_;
  Device device_;
  Stream stream_;
  Tensor small_, many_, wide_, complex_;
  Results results_;
};

void expect_same(const Results& actual, const Results& expected, const char* what) {
  EXPECT_EQ(actual.size(), expected.size()) << what;
  for (const auto& [name, bytes] : expected) {
    const auto found = actual.find(name);
    if (found == actual.end()) continue;
    EXPECT_TRUE(found->second == bytes) << name << " differs in " << what;
  }
}

// COMPUTE_TEST_DEVICES, or those that every build has.
std::vector<std::string> devices() {
  if (const char* given = std::getenv("COMPUTE_TEST_DEVICES")) {
    std::vector<std::string> names;
    std::istringstream list(given);
    for (std::string name; std::getline(list, name, ',');) names.push_back(name);
    return names;
  }
  const auto names = devices_with_ops();
  return {names.begin(), names.end()};
}

class CallerWorld : public testing::TestWithParam<std::tuple<std::string, Mode>> {};

// The library's first calls, and with them all threads that it makes, come from the mode's world.
TEST_P(CallerWorld, NeitherLeaksInNorChanges) {
  const auto& [device, mode] = GetParam();
  const Outcome outcome = run_in_child([&] {
    use_plugins({"minimal"});
    const Results inside = Program(mode, device.c_str()).run(), outside = Program(kModes[0], device.c_str()).run();
    EXPECT_GT(inside.size(), 30u);
    expect_same(inside, outside, mode.name);
  });
  EXPECT_TRUE(outcome.exited(0)) << "status " << outcome.status << "\n" << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(Each, CallerWorld, testing::Combine(testing::ValuesIn(devices()), testing::ValuesIn(kModes)),
                         [](const auto& each) {
                           std::string name = std::get<0>(each.param) + "_" + std::get<1>(each.param).name;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

// ---- The locale -----------------------------------------------------------------------------------------------------

struct CommaPoint : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

// Both the C library's and the C++ library's, the former where the system has such a locale.
void use_comma_locale() {
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  }
  std::locale::global(std::locale(std::locale(), new CommaPoint));
}

TEST(CallerLocale, ChangesNothing) {
  for (const std::string& device : devices()) {
    const Outcome outcome = run_in_child([&] {
      use_plugins({"minimal"});
      use_comma_locale();
      const Results inside = Program(kModes[0], device.c_str()).run();
      std::locale::global(std::locale::classic());
      expect_same(inside, Program(kModes[0], device.c_str()).run(), "a locale with commas");
    });
    EXPECT_TRUE(outcome.exited(0)) << "status " << outcome.status << "\n" << outcome.output;
  }
}

}  // namespace
}  // namespace robustness
