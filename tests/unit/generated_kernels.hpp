// SPDX-License-Identifier: Apache-2.0
// Ops as core describes them, and a compiler for generated kernels where NVRTC is found.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <set>

#include "plugins/common/source/expressions/expression.hpp"
#include "plugins/common/source/expressions/types.hpp"
#include "plugins/common/source/generator.hpp"
#include "plugins/cuda/dialect/dialect.hpp"
#include "plugins/opencl/dialect/dialect.hpp"
#include "sanitizer.hpp"
#include "tests/unit/expression_builder.hpp"
#include "tests/unit/test_attributes.hpp"

namespace compute::common::generated {

using Expression = ExpressionBuilder;

// An op with everything that it points to.
class TestOp {
 public:
  explicit TestOp(const char* name) : name_(name) {}
  TestOp& tensor(compute_dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides = {},
                 int32_t access = COMPUTE_PLUGIN_TENSOR_INPUT) {
    if (strides.empty()) {
      strides.resize(shape.size());
      int64_t stride = 1;
      for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
    }
    shapes_.push_back(std::move(shape));
    strides_.push_back(std::move(strides));
    compute_plugin_tensor tensor{};
    tensor.struct_size = sizeof tensor;
    tensor.dtype = dtype;
    tensor.rank = static_cast<int32_t>(shapes_.back().size());
    tensor.shape = shapes_.back().data();
    tensor.strides = strides_.back().data();
    tensor.access = access;
    tensor.alignment = 64;
    tensors_.push_back(tensor);
    outputs_ += (access & COMPUTE_PLUGIN_TENSOR_OUTPUT) != 0;
    return *this;
  }
  TestOp& absent() {
    tensor(COMPUTE_DTYPE_NONE, {});
    tensors_.back().rank = -1;
    return *this;
  }
  TestOp& output(compute_dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides = {}) {
    return tensor(dtype, std::move(shape), std::move(strides), COMPUTE_PLUGIN_TENSOR_OUTPUT);
  }
  // Of the last tensor.
  TestOp& alignment(int32_t bytes) {
    tensors_.back().alignment = bytes;
    return *this;
  }
  TestOp& expression(const compute_plugin_expression* expression) {
    expressions_.push_back(expression);
    return *this;
  }
  TestOp& scalars(std::vector<int32_t> dtypes) {
    scalar_dtypes_ = std::move(dtypes);
    return *this;
  }
  TestOp& text(const char* name, const char* value) {
    attributes_.string(name, value);
    return *this;
  }
  TestOp& texts(const char* name, const std::vector<std::string>& values) {
    attributes_.strings(name, values);
    return *this;
  }
  TestOp& integers(const char* name, std::vector<int64_t> values) {
    attributes_.ints(name, std::move(values));
    return *this;
  }
  TestOp& dtype(const char* name, compute_dtype value) {
    attributes_.dtype(name, value);
    return *this;
  }
  TestOp& deterministic(bool is_deterministic) {
    flags_ = is_deterministic ? uint32_t{COMPUTE_PLUGIN_OP_DETERMINISTIC} : 0;
    return *this;
  }
  TestOp& reals(const char* name, std::vector<double> values) {
    attributes_.float64s(name, std::move(values));
    return *this;
  }
  Op view() {
    description_ = {};
    description_.struct_size = sizeof description_;
    description_.name = {name_, static_cast<int64_t>(std::strlen(name_))};
    description_.version = 1;
    description_.flags = flags_;
    description_.input_count = static_cast<int32_t>(tensors_.size()) - outputs_;
    description_.output_count = outputs_;
    description_.tensors = tensors_.data();
    description_.attributes = attributes_.list().data();
    description_.attribute_count = static_cast<int32_t>(attributes_.list().size());
    description_.expressions = expressions_.data();
    description_.expression_count = static_cast<int32_t>(expressions_.size());
    description_.scalar_count = static_cast<int32_t>(scalar_dtypes_.size());
    description_.scalar_dtypes = scalar_dtypes_.data();
    return Op(&description_);
  }

 private:
  const char* name_;
  std::deque<std::vector<int64_t>> shapes_, strides_;
  std::vector<compute_plugin_tensor> tensors_;
  TestAttributes attributes_;
  std::vector<const compute_plugin_expression*> expressions_;
  std::vector<int32_t> scalar_dtypes_;
  int32_t outputs_ = 0;
  uint32_t flags_ = 0;
  compute_plugin_op description_{};
};

inline constexpr compute_dtype kF32 = COMPUTE_DTYPE_FLOAT32;

inline Dialect gpu() {
  Dialect dialect = cuda::dialect();
  dialect.compute_units = 132;
  dialect.counters = 2048;
  return dialect;
}

// The same device in OpenCL C, and CPU cores.
inline Dialect opencl_gpu() {
  Dialect dialect = opencl::dialect();
  dialect.compute_units = 132;
  return dialect;
}
inline Dialect cpu_cores() {
  Dialect dialect = opencl::dialect_of_cores();
  dialect.compute_units = 132;
  return dialect;
}

inline const compute_plugin_expression* sum_of_two(compute_dtype dtype = kF32) {
  static std::deque<Expression> kept;
  Expression& e = kept.emplace_back();
  const int32_t x = e.input(0, dtype), y = e.input(1, dtype);
  return e.view({e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, dtype, {x, y})});
}

inline const compute_plugin_expression* identity(compute_dtype dtype = kF32) {
  static std::deque<Expression> kept;
  Expression& e = kept.emplace_back();
  return e.view({e.input(0, dtype)});
}

// attention of 90 keys, or its gradient from the same tensors, with a mask of `mask` unless that is none.
inline TestOp attention(bool is_gradient, compute_dtype dtype, int64_t queries, int64_t features, bool is_causal,
                        compute_dtype mask = COMPUTE_DTYPE_NONE) {
  const compute_dtype computed = is_half(dtype) ? kF32 : dtype;
  const std::vector<int64_t> q = {2, 4, queries, features}, k = {2, 2, 90, features}, rows = {2, 4, queries};
  TestOp op(is_gradient ? "attention_grad" : "attention");
  if (is_gradient) op.tensor(dtype, q);
  op.tensor(dtype, q).tensor(dtype, k).tensor(dtype, k);
  if (is_gradient) op.tensor(dtype, q).tensor(computed, rows);
  if (mask != COMPUTE_DTYPE_NONE) op.tensor(mask, {queries, 90});
  if (is_gradient) {
    op.output(dtype, q).output(dtype, k).output(dtype, k);
  } else {
    op.output(dtype, q).output(computed, rows);
  }
  op.integers("causal", {is_causal});
  return op;
}

// ---- NVRTC ----------------------------------------------------------------------------------------------------------

class Nvrtc {
 public:
  Nvrtc() {
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"}) {
      tried += std::string(name) + " ";
      library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library_ != nullptr) break;
    }
    if (library_ == nullptr) return;
    find(create, "nvrtcCreateProgram");
    find(compile, "nvrtcCompileProgram");
    find(log_size, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
    find(destroy, "nvrtcDestroyProgram");
  }
  bool is_there() const { return library_ != nullptr && create != nullptr; }

  // The compiler's log, or "" if it compiles.
  std::string errors_of(const KernelSource& source, const char* architecture = "compute_90") const {
    void* program = nullptr;
    if (create(&program, source.text.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0)
      return "nvrtcCreateProgram failed";
    std::vector<std::string> options = cuda::compile_options();
    options.push_back(std::string("--gpu-architecture=") + architecture);
    // Most of the time goes into optimising, which later compilers can leave out; tests/cuda compile kernels as the
    // plugin does.
    options.emplace_back("--Ofast-compile=max");
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    std::string text;
    const auto count = static_cast<int>(pointers.size());
    int status = compile(program, count, pointers.data());
    if (status == kInvalidOption) status = compile(program, count - 1, pointers.data());
    if (status != 0) {
      size_t size = 0;
      log_size(program, &size);
      text.resize(size);
      log(program, text.data());
      if (text.empty()) text = "it failed without a word";
    }
    destroy(&program);
    return text;
  }

  std::string tried;

 private:
  static constexpr int kInvalidOption = 5;
  template <class F>
  void find(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library_, name));
  }
  void* library_ = nullptr;
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*log_size)(void*, size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*destroy)(void**) = nullptr;
};

inline const bool kCompiles = !kSanitizer;

class GeneratedText : public testing::Test {
 protected:
  void TearDown() override {
    if (!kCompiles) GTEST_SKIP() << "texts are the same without a sanitizer, where they are compiled";
    if (!nvrtc.is_there()) GTEST_SKIP() << "NVRTC is not there; tried " << nvrtc.tried;
  }
  // Every kind of device has a text; those in CUDA C compile.
  void expect_compiles(TestOp& op, const std::vector<Dialect>& dialects = {gpu(), opencl_gpu(), cpu_cores()}) {
    const Op view = op.view();
    for (const Dialect& dialect : dialects) {
      ASSERT_FALSE(refuse_op(view, dialect));
      for (const Launch& launch : plan_launches(view, dialect).launches) {
        const KernelSource source = kernel_source(view, dialect, launch);
        EXPECT_EQ(source.text.find('$'), std::string::npos) << source.text;
        if (!kCompiles || !dialect.has_warps || !nvrtc.is_there()) continue;
        const std::string errors = nvrtc.errors_of(source);
        EXPECT_EQ(errors, "") << source.text;
      }
    }
  }
  // Tiles, some with a divided depth and some with many taps; columns; rows.
  void expect_convolutions_compile(compute_dtype dtype) {
    struct Form {
      std::vector<int64_t> x, weight, y;
      int64_t groups;
    };
    const Form forms[] = {{{4, 16, 30, 30}, {32, 16, 3, 3}, {4, 32, 28, 28}, 1},
                          {{64, 3, 12, 12}, {16, 3, 5, 5}, {64, 16, 8, 8}, 1},
                          {{8, 16, 1, 90}, {16, 16, 1, 40}, {8, 16, 1, 51}, 1},
                          {{300, 3, 1, 90}, {3, 3, 1, 40}, {300, 3, 1, 51}, 1},
                          {{64, 8, 30, 30}, {8, 1, 3, 3}, {64, 8, 28, 28}, 8}};
    for (const Form& form : forms) {
      for (const char* name : {"convolution", "convolution_grad_input", "convolution_grad_weight"}) {
        const std::string_view kind(name);
        TestOp op(name);
        op.tensor(dtype, kind == "convolution" ? form.x : form.y);
        op.tensor(dtype, kind == "convolution_grad_weight" ? form.x : form.weight);
        op.output(dtype, kind == "convolution" ? form.y : kind == "convolution_grad_input" ? form.x : form.weight);
        op.integers("strides", {1, 1}).integers("dilations", {1, 1}).integers("groups", {form.groups});
        op.integers("pads_begin", {0, 0}).integers("pads_end", {0, 0});
        SCOPED_TRACE(name);
        expect_compiles(op);
      }
    }
  }
  void expect_attention_compiles(bool is_gradient, compute_dtype dtype, compute_dtype mask, int64_t features) {
    TestOp op = attention(is_gradient, dtype, 70, features, mask == COMPUTE_DTYPE_BOOL, mask);
    expect_compiles(op);
  }
  // Of few queries of many keys, whose results are combined.
  void expect_few_queries_compile(TestOp& op, std::initializer_list<bool> with_warps) {
    for (const bool has_warps : with_warps) {
      Dialect dialect = gpu();
      dialect.has_warps = has_warps;
      const Op view = op.view();
      ASSERT_FALSE(refuse_op(view, dialect));
      const LaunchPlan plan = plan_launches(view, dialect);
      ASSERT_EQ(plan.launches.size(), 2U);
      EXPECT_GT(plan.workspace_bytes, 0);
      for (const Launch& launch : plan.launches) {
        const KernelSource source = kernel_source(view, dialect, launch);
        EXPECT_EQ(source.text.find('$'), std::string::npos) << source.text;
        if (!kCompiles || !nvrtc.is_there()) continue;
        EXPECT_EQ(nvrtc.errors_of(source), "") << source.text;
      }
    }
  }
  // Of halves, which matrix units multiply.
  void expect_attention_of_units_compiles(bool is_gradient, compute_dtype dtype, int64_t features, bool is_causal) {
    TestOp op = attention(is_gradient, dtype, 70, features, is_causal);
    Dialect units = gpu();
    units.has_matrix_units = true;
    const Op view = op.view();
    ASSERT_FALSE(refuse_op(view, units));
    for (const Launch& launch : plan_launches(view, units).launches) {
      const KernelSource source = kernel_source(view, units, launch);
      EXPECT_NE(source.text.find("mma.sync"), std::string::npos);
      EXPECT_EQ(source.text.find('$'), std::string::npos) << source.text;
      if (!kCompiles || !nvrtc.is_there()) continue;
      EXPECT_EQ(nvrtc.errors_of(source), "") << source.text;
    }
  }
  // Half types, which the matrix units multiply.
  void expect_attention_of_tile_units_compiles(bool is_gradient, compute_dtype dtype, int64_t features) {
    TestOp op = attention(is_gradient, dtype, 300, features, true);
    Dialect units = gpu();
    units.has_matrix_units = units.has_tile_units = true;
    const Op view = op.view();
    ASSERT_FALSE(refuse_op(view, units));
    const LaunchPlan plan = plan_launches(view, units);
    ASSERT_EQ(plan.launches.size(), is_gradient ? 2U : 1U);
    for (const Launch& launch : plan.launches) {
      EXPECT_GT(launch.local_bytes, 48 << 10);
      EXPECT_LE(launch.local_bytes, 227 << 10);
      const KernelSource source = kernel_source(view, units, launch);
      EXPECT_NE(source.text.find("wgmma"), std::string::npos);
      EXPECT_EQ(source.text.find('$'), std::string::npos) << source.text;
      if (!kCompiles || !nvrtc.is_there()) continue;
      EXPECT_EQ(nvrtc.errors_of(source, "sm_90a"), "") << source.text;
    }
  }
  // Of float32, whose parts the units of tiles multiply, in `launches` launches.
  void expect_tile_units_compile(TestOp& op, size_t launches) {
    Dialect units = gpu();
    units.has_tile_units = true;
    const Op view = op.view();
    ASSERT_FALSE(refuse_op(view, units));
    const LaunchPlan plan = plan_launches(view, units);
    ASSERT_EQ(plan.launches.size(), launches);
    EXPECT_EQ(plan.workspace_bytes > 0, launches > 1);
    EXPECT_GT(plan.launches[0].local_bytes, 0);
    EXPECT_LE(plan.launches[0].local_bytes, 227 << 10);
    for (const Launch& launch : plan.launches) {
      const KernelSource source = kernel_source(view, units, launch);
      EXPECT_EQ(source.text.find("wgmma") != std::string::npos, launch.local_bytes > 0);
      EXPECT_EQ(source.text.find('$'), std::string::npos) << source.text;
      if (!kCompiles || !nvrtc.is_there()) continue;
      EXPECT_EQ(nvrtc.errors_of(source, "sm_90a"), "") << source.text;
    }
  }
  Nvrtc nvrtc;
};

}  // namespace compute::common::generated
