// SPDX-License-Identifier: Apache-2.0
// Generated kernels: what their keys and arguments depend on, and that their texts compile where NVRTC is found.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <set>

#include "plugins/common/source/expression.hpp"
#include "plugins/common/source/generator.hpp"
#include "plugins/common/source/matrix_units.hpp"
#include "plugins/common/source/types.hpp"

namespace compute::common {
namespace {

// An expression whose digest is made of its own nodes.
class Expression {
 public:
  int32_t input(int32_t index, compute_dtype dtype) {
    inputs_ = std::max(inputs_, index + 1);
    return add({COMPUTE_PLUGIN_NODE_INPUT, dtype, index, 0, 0, {}});
  }
  int32_t scalar(int32_t index, compute_dtype dtype) {
    scalars_ = std::max(scalars_, index + 1);
    return add({COMPUTE_PLUGIN_NODE_SCALAR, dtype, index, 0, 0, {}});
  }
  int32_t index(int32_t axis) { return add({COMPUTE_PLUGIN_NODE_INDEX, COMPUTE_DTYPE_INT64, axis, 0, 0, {}}); }
  int32_t call(int32_t intrinsic, compute_dtype dtype, const std::vector<int32_t>& operands) {
    compute_plugin_node node{COMPUTE_PLUGIN_NODE_CALL,
                             dtype,
                             intrinsic,
                             static_cast<int32_t>(operands.size()),
                             static_cast<int64_t>(operands_.size()),
                             {}};
    operands_.insert(operands_.end(), operands.begin(), operands.end());
    return add(node);
  }
  const compute_plugin_expression* view(std::vector<int32_t> outputs) {
    outputs_ = std::move(outputs);
    view_ = {};
    view_.struct_size = sizeof view_;
    view_.node_count = static_cast<int32_t>(nodes_.size());
    view_.input_count = inputs_;
    view_.scalar_count = scalars_;
    view_.output_count = static_cast<int32_t>(outputs_.size());
    view_.nodes = nodes_.data();
    view_.operands = operands_.data();
    view_.operand_total = static_cast<int64_t>(operands_.size());
    view_.outputs = outputs_.data();
    uint64_t digest[2] = {14695981039346656037u, 1099511628211u};
    const auto mix = [&](int64_t value) {
      digest[0] = (digest[0] ^ static_cast<uint64_t>(value)) * 1099511628211u;
      digest[1] = (digest[1] + digest[0]) * 31;
    };
    for (const compute_plugin_node& node : nodes_) {
      mix(node.kind);
      mix(node.dtype);
      mix(node.value);
    }
    for (const int32_t operand : operands_) mix(operand);
    for (const int32_t output : outputs_) mix(output);
    std::memcpy(view_.digest, digest, sizeof digest);
    return &view_;
  }

 private:
  int32_t add(const compute_plugin_node& node) {
    nodes_.push_back(node);
    return static_cast<int32_t>(nodes_.size()) - 1;
  }
  std::vector<compute_plugin_node> nodes_;
  std::vector<int32_t> operands_, outputs_;
  int32_t inputs_ = 0, scalars_ = 0;
  compute_plugin_expression view_{};
};

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
  TestOp& expression(const compute_plugin_expression* expression) {
    expressions_.push_back(expression);
    return *this;
  }
  TestOp& scalars(std::vector<int32_t> dtypes) {
    scalar_dtypes_ = std::move(dtypes);
    return *this;
  }
  TestOp& text(const char* name, const char* value) {
    texts_.push_back({value, static_cast<int64_t>(std::strlen(value))});
    return attribute(name, COMPUTE_KIND_STRING, 1, &texts_.back());
  }
  TestOp& texts(const char* name, const std::vector<const char*>& values) {
    std::vector<compute_string>& list = text_lists_.emplace_back();
    for (const char* value : values) list.push_back({value, static_cast<int64_t>(std::strlen(value))});
    return attribute(name, COMPUTE_KIND_STRING, static_cast<int64_t>(list.size()), list.data());
  }
  TestOp& integers(const char* name, std::vector<int64_t> values) {
    integers_.push_back(std::move(values));
    return attribute(name, COMPUTE_KIND_INT64, static_cast<int64_t>(integers_.back().size()), integers_.back().data());
  }
  TestOp& reals(const char* name, std::vector<double> values) {
    reals_.push_back(std::move(values));
    return attribute(name, COMPUTE_KIND_FLOAT64, static_cast<int64_t>(reals_.back().size()), reals_.back().data());
  }
  Op view() {
    description_ = {};
    description_.struct_size = sizeof description_;
    description_.name = {name_, static_cast<int64_t>(std::strlen(name_))};
    description_.version = 1;
    description_.input_count = static_cast<int32_t>(tensors_.size()) - outputs_;
    description_.output_count = outputs_;
    description_.tensors = tensors_.data();
    description_.attributes = attributes_.data();
    description_.attribute_count = static_cast<int32_t>(attributes_.size());
    description_.expressions = expressions_.data();
    description_.expression_count = static_cast<int32_t>(expressions_.size());
    description_.scalar_count = static_cast<int32_t>(scalar_dtypes_.size());
    description_.scalar_dtypes = scalar_dtypes_.data();
    return Op(&description_);
  }

 private:
  TestOp& attribute(const char* name, int32_t kind, int64_t count, const void* values) {
    compute_attribute a{};
    a.struct_size = sizeof a;
    a.name = name;
    a.name_size = static_cast<int64_t>(std::strlen(name));
    a.kind = kind;
    a.count = count;
    a.values = values;
    attributes_.push_back(a);
    return *this;
  }
  const char* name_;
  std::deque<std::vector<int64_t>> shapes_, strides_, integers_;
  std::deque<std::vector<double>> reals_;
  std::deque<compute_string> texts_;
  std::deque<std::vector<compute_string>> text_lists_;
  std::vector<compute_plugin_tensor> tensors_;
  std::vector<compute_attribute> attributes_;
  std::vector<const compute_plugin_expression*> expressions_;
  std::vector<int32_t> scalar_dtypes_;
  int32_t outputs_ = 0;
  compute_plugin_op description_{};
};

constexpr compute_dtype kF32 = COMPUTE_DTYPE_FLOAT32;

Dialect gpu() {
  Dialect dialect;
  dialect.compute_units = 132;
  dialect.counters = 2048;
  return dialect;
}

const compute_plugin_expression* sum_of_two(compute_dtype dtype = kF32) {
  static std::deque<Expression> kept;
  Expression& e = kept.emplace_back();
  const int32_t x = e.input(0, dtype), y = e.input(1, dtype);
  return e.view({e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, dtype, {x, y})});
}

const compute_plugin_expression* identity(compute_dtype dtype = kF32) {
  static std::deque<Expression> kept;
  Expression& e = kept.emplace_back();
  return e.view({e.input(0, dtype)});
}

Recipe add_recipe(std::vector<int64_t> shape, std::vector<int64_t> y_strides = {}) {
  TestOp op("map");
  op.tensor(kF32, shape).tensor(kF32, shape, std::move(y_strides)).output(kF32, shape).expression(sum_of_two());
  return make_recipe(op.view(), gpu());
}

TEST(SourceGenerator, KeysHoldNoSize) {
  const KernelKey key = add_recipe({1000}).launches[0].key;
  EXPECT_EQ(add_recipe({1001}).launches[0].key, key);
  EXPECT_EQ(add_recipe({40, 25}).launches[0].key, key) << "contiguous operands collapse to one loop";
  EXPECT_EQ(add_recipe({17, 3, 5}).launches[0].key, key);
  const KernelKey row = add_recipe({40, 24}, {0, 1}).launches[0].key;
  EXPECT_NE(row, key);
  EXPECT_EQ(add_recipe({7, 1024}, {0, 1}).launches[0].key, row);
  EXPECT_NE(add_recipe({3'000'000'000}).launches[0].key, key) << "positions that need 64 bits";
}

TEST(SourceGenerator, ManySizesMakeAHandfulOfKernels) {
  std::set<uint64_t> keys;
  for (int64_t n = 1; n < 3000; ++n) {
    keys.insert(add_recipe({n}).launches[0].key.low);
    TestOp op("reduce");
    op.tensor(kF32, {n, 5000 - n})
        .output(kF32, {n, 1})
        .expression(identity())
        .expression(identity())
        .text("kind", "sum")
        .integers("axes", {1});
    for (const Launch& launch : make_recipe(op.view(), gpu()).launches) keys.insert(launch.key.low);
  }
  EXPECT_LE(keys.size(), 24u);
}

TEST(SourceGenerator, PreparesFromKeysAlone) {
  TestOp op("map");
  op.tensor(kF32, {64, 100}, {1, 64}).tensor(kF32, {64, 100}).output(kF32, {64, 100}).expression(sum_of_two());
  const Op view = op.view();
  const Recipe recipe = make_recipe(view, gpu());
  ASSERT_EQ(recipe.launches.size(), 1u);
  const KernelSource source = kernel_source(view, gpu(), recipe.launches[0]);
  EXPECT_EQ(source.name, recipe.launches[0].name);
  EXPECT_NE(source.text.find(" t0[64]"), std::string::npos) << "a transposed input goes through a tile";
}

TEST(SourceGenerator, ManyOperandsMoveTheirStridesToATable) {
  std::vector<int64_t> shape(24, 2), strides(24);
  Expression e;
  std::vector<int32_t> inputs;
  TestOp op("map");
  for (int32_t i = 0; i < 30; ++i) {
    inputs.push_back(e.input(i, kF32));
    // no two axes follow from one another
    for (size_t a = 0; a < shape.size(); ++a)
      strides[a] = static_cast<int64_t>((a * 7 + static_cast<size_t>(i) * 13) % 31) * 3 + 1;
    op.tensor(kF32, shape, strides);
  }
  int32_t sum = inputs[0];
  for (int32_t i = 1; i < 30; ++i)
    sum = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, kF32, {sum, inputs[static_cast<size_t>(i)]});
  op.output(kF32, shape).expression(e.view({sum}));
  const Recipe recipe = make_recipe(op.view(), gpu());
  const Launch& launch = recipe.launches[0];
  EXPECT_FALSE(launch.table.empty());
  EXPECT_EQ(launch.pointers.back().kind, Pointer::kTable);
  EXPECT_LE(static_cast<int64_t>(launch.block.size() * 8 + launch.pointers.size() * 8), gpu().max_block_bytes);
}

TEST(SourceGenerator, SumsOverFewOutputsUseTheWholeDevice) {
  for (const bool rows : {false, true}) {
    TestOp op("reduce");
    op.tensor(kF32, {1 << 14, 1 << 14})
        .output(kF32, rows ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{1, 1 << 14});
    op.expression(identity()).expression(identity()).text("kind", "sum");
    op.integers("axes", rows ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0});
    const Recipe recipe = make_recipe(op.view(), gpu());
    ASSERT_FALSE(recipe.launches.empty());
    EXPECT_GE(recipe.launches[0].groups, 132 * 4) << rows;
    EXPECT_GT(recipe.workspace_bytes, 0);
    EXPECT_EQ(recipe.launches.size(), 1u) << "the last group of an output combines what all have found";
    Dialect without_counters = gpu();
    without_counters.counters = 0;
    EXPECT_EQ(make_recipe(op.view(), without_counters).launches.size(), 2u);
  }
}

// The first position of the greatest of an axis.
struct ArgmaxOp {
  ArgmaxOp(const std::vector<int64_t>& shape, int64_t axis, compute_dtype dtype = kF32) {
    std::vector<int64_t> reduced = shape;
    reduced[static_cast<size_t>(axis)] = 1;
    op.tensor(dtype, shape).output(COMPUTE_DTYPE_INT64, reduced).text("kind", "max").integers("axis", {axis});
  }
  TestOp op{"arg_reduce"};
};

TEST(SourceGenerator, PlacesOfFewOutputsAreFoundInOneLaunch) {
  ArgmaxOp op({1, 1 << 24}, 1);
  const Recipe recipe = make_recipe(op.op.view(), gpu());
  EXPECT_GT(recipe.workspace_bytes, 0);
  EXPECT_EQ(recipe.launches.size(), 1u);
  Dialect without_counters = gpu();
  without_counters.counters = 0;
  EXPECT_EQ(make_recipe(op.op.view(), without_counters).launches.size(), 2u);
}

// The first input less the result of the last of `stages`, over a matrix.
struct RowOp {
  RowOp(int64_t rows, int64_t columns, int64_t axis, std::vector<const char*> kinds = {"max", "sum"},
        compute_dtype dtype = kF32) {
    const std::vector<int64_t> shape = {rows, columns};
    const auto stages = static_cast<int32_t>(kinds.size());
    op.tensor(dtype, shape).output(dtype, shape);
    op.output(dtype, axis == 0 ? std::vector<int64_t>{1, columns} : std::vector<int64_t>{rows, 1});
    for (int32_t i = 0; i < 2 * stages; ++i) op.expression(identity(dtype));
    const int32_t intrinsic = dtype == COMPUTE_DTYPE_BOOL ? COMPUTE_PLUGIN_INTRINSIC_NE : COMPUTE_PLUGIN_INTRINSIC_SUB;
    op.expression(last.view({last.call(intrinsic, dtype, {last.input(0, dtype), last.input(stages, dtype)})}));
    op.texts("kinds", kinds).integers("axes", {axis}).integers("stored", {stages - 1});
  }
  Expression last;
  TestOp op{"row"};
};

TEST(SourceGenerator, RowsOfAllSizesMakeAHandfulOfKernels) {
  std::set<uint64_t> keys;
  for (int64_t n = 2; n < 3000; ++n) {
    for (const int64_t axis : {0, 1}) {
      RowOp row(5000 - n, n, axis);
      const Recipe recipe = make_recipe(row.op.view(), gpu());
      ASSERT_EQ(recipe.launches.size(), 1u);
      EXPECT_EQ(recipe.workspace_bytes, 0);
      keys.insert(recipe.launches[0].key.low);
    }
  }
  EXPECT_LE(keys.size(), 12u);
}

TEST(SourceGenerator, ShortRowsShareAGroup) {
  RowOp row(1 << 20, 64, 1);
  EXPECT_LE(make_recipe(row.op.view(), gpu()).launches[0].groups, (1 << 20) / 8);
}

TEST(SourceGenerator, FewLongRowsAreRefused) {
  RowOp few(4, 1 << 20, 1), many(4096, 1 << 16, 1), brief(4, 1000, 1), statistics(10000, 64, 0),
      short_columns(2000, 64, 0);
  const std::optional<Refusal> refusal = refuse_op(few.op.view(), gpu());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, COMPUTE_PLUGIN_REFUSE_SHAPE);
  EXPECT_FALSE(refuse_op(many.op.view(), gpu()));
  EXPECT_TRUE(refuse_op(statistics.op.view(), gpu()));
  EXPECT_FALSE(refuse_op(short_columns.op.view(), gpu()));
  EXPECT_FALSE(refuse_op(brief.op.view(), gpu()));
}

TEST(SourceGenerator, RefusesWhatTheDeviceLacks) {
  Dialect small;
  small.language = Language::kOpenclC;
  small.has_fp64 = false;
  TestOp op("map");
  op.tensor(COMPUTE_DTYPE_FLOAT64, {4}).tensor(COMPUTE_DTYPE_FLOAT64, {4}).output(COMPUTE_DTYPE_FLOAT64, {4});
  op.expression(sum_of_two(COMPUTE_DTYPE_FLOAT64));
  const auto refusal = refuse_op(op.view(), small);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->text, "float64 needs cl_khr_fp64");
  EXPECT_EQ(refusal->reason, COMPUTE_PLUGIN_REFUSE_DTYPE);
  EXPECT_FALSE(refuse_op(op.view(), gpu()));
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
    std::vector<std::string> options = compile_options(gpu());
    options.push_back(std::string("--gpu-architecture=") + architecture);
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    std::string text;
    if (compile(program, static_cast<int>(pointers.size()), pointers.data()) != 0) {
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

constexpr bool kCompiles =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    false;
#else
    true;
#endif

class GeneratedText : public testing::Test {
 protected:
  void TearDown() override {
    if (!kCompiles) GTEST_SKIP() << "texts are the same without a sanitizer, where they are compiled";
    if (!nvrtc.is_there()) GTEST_SKIP() << "NVRTC is not there; tried " << nvrtc.tried;
  }
  // Every kind of device has a text; those in CUDA C compile.
  void expect_compiles(TestOp& op) {
    const Op view = op.view();
    Dialect opencl = gpu(), cores = gpu();
    opencl.language = cores.language = Language::kOpenclC;
    opencl.counters = cores.counters = 0;
    cores.is_host = true;
    for (const Dialect& dialect : {gpu(), opencl, cores}) {
      ASSERT_FALSE(refuse_op(view, dialect));
      for (const Launch& launch : make_recipe(view, dialect).launches) {
        const KernelSource source = kernel_source(view, dialect, launch);
        EXPECT_EQ(source.text.find('$'), std::string::npos) << source.text;
        if (!kCompiles || dialect.language != Language::kCudaC || !nvrtc.is_there()) continue;
        const std::string errors = nvrtc.errors_of(source);
        EXPECT_EQ(errors, "") << source.text;
      }
    }
  }
  // Tiles, of which some divide the depth and some have many taps; columns; rows.
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
  // attention, or its gradient from the same tensors, with a mask of `mask` unless that is none.
  void expect_attention_compiles(bool is_gradient, compute_dtype dtype, compute_dtype mask, int64_t features) {
    const compute_dtype computed = is_half(dtype) ? kF32 : dtype;
    const std::vector<int64_t> q = {2, 4, 70, features}, k = {2, 2, 90, features}, rows = {2, 4, 70};
    TestOp op(is_gradient ? "attention_grad" : "attention");
    if (is_gradient) op.tensor(dtype, q);
    op.tensor(dtype, q).tensor(dtype, k).tensor(dtype, k);
    if (is_gradient) op.tensor(dtype, q).tensor(computed, rows);
    if (mask != COMPUTE_DTYPE_NONE) op.tensor(mask, {70, 90});
    if (is_gradient) {
      op.output(dtype, q).output(dtype, k).output(dtype, k);
    } else {
      op.output(dtype, q).output(computed, rows);
    }
    op.integers("causal", {mask == COMPUTE_DTYPE_BOOL});
    expect_compiles(op);
  }
  // Of halves, which matrix units multiply.
  void expect_attention_of_units_compiles(bool is_gradient, compute_dtype dtype, int64_t features, bool is_causal) {
    const std::vector<int64_t> q = {2, 4, 70, features}, k = {2, 2, 90, features}, rows = {2, 4, 70};
    TestOp op(is_gradient ? "attention_grad" : "attention");
    if (is_gradient) op.tensor(dtype, q);
    op.tensor(dtype, q).tensor(dtype, k).tensor(dtype, k);
    if (is_gradient) {
      op.tensor(dtype, q).tensor(kF32, rows).output(dtype, q).output(dtype, k).output(dtype, k);
    } else {
      op.output(dtype, q).output(kF32, rows);
    }
    op.integers("causal", {is_causal});
    Dialect units = gpu();
    units.has_matrix_units = true;
    const Op view = op.view();
    ASSERT_FALSE(refuse_op(view, units));
    for (const Launch& launch : make_recipe(view, units).launches) {
      const KernelSource source = kernel_source(view, units, launch);
      EXPECT_NE(source.text.find("mma.sync"), std::string::npos);
      EXPECT_EQ(source.text.find('$'), std::string::npos) << source.text;
      if (!kCompiles || !nvrtc.is_there()) continue;
      EXPECT_EQ(nvrtc.errors_of(source), "") << source.text;
    }
  }
  // Of float32, whose parts the units of tiles multiply, in `launches` launches.
  void expect_tile_units_compile(TestOp& op, size_t launches) {
    Dialect units = gpu();
    units.has_tile_units = true;
    const Op view = op.view();
    ASSERT_FALSE(refuse_op(view, units));
    const Recipe recipe = make_recipe(view, units);
    ASSERT_EQ(recipe.launches.size(), launches);
    EXPECT_EQ(recipe.workspace_bytes > 0, launches > 1);
    EXPECT_GT(recipe.launches[0].local_bytes, 0);
    EXPECT_LE(recipe.launches[0].local_bytes, 227 << 10);
    for (const Launch& launch : recipe.launches) {
      const KernelSource source = kernel_source(view, units, launch);
      EXPECT_EQ(source.text.find("wgmma") != std::string::npos, launch.local_bytes > 0);
      EXPECT_EQ(source.text.find('$'), std::string::npos) << source.text;
      if (!kCompiles || !nvrtc.is_there()) continue;
      EXPECT_EQ(nvrtc.errors_of(source, "sm_90a"), "") << source.text;
    }
  }
  Nvrtc nvrtc;
};

// Every intrinsic that takes numbers, in one expression per dtype.
TEST_F(GeneratedText, CompilesEveryIntrinsic) {
  for (const compute_dtype dtype : std::initializer_list<compute_dtype>{
           COMPUTE_DTYPE_INT8, COMPUTE_DTYPE_UINT16, COMPUTE_DTYPE_INT32, COMPUTE_DTYPE_UINT64, kF32,
           COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_COMPLEX64, COMPUTE_DTYPE_COMPLEX128}) {
    Expression e;
    const int32_t x = e.input(0, dtype), y = e.input(1, dtype);
    std::vector<int32_t> outputs;
    std::vector<compute_dtype> dtypes;
    const bool is_complex_dtype = is_complex(dtype), integer = is_integer(dtype);
    struct Row {
      int32_t id;
      const char* name;
      int32_t arity;
      std::string_view operands, result;
    };
    static constexpr Row kRows[] = {
#define COMPUTE_INTRINSIC(id, name, arity, operands, result, ...) {id, #name, arity, #operands, #result},
#include <compute/intrinsics.def>
#undef COMPUTE_INTRINSIC
    };
    for (const Row& row : kRows) {
      const bool takes = row.operands == "NUMERIC" || row.operands == "ANY" ||
                         (row.operands == "REAL" && !is_complex_dtype) || (row.operands == "INEXACT" && !integer) ||
                         (row.operands == "FLOAT" && !integer && !is_complex_dtype) ||
                         (row.operands == "COMPLEX" && is_complex_dtype) ||
                         ((row.operands == "INTEGER" || row.operands == "BITS") && integer);
      if (!takes || row.result == "NODE" || row.id == COMPUTE_PLUGIN_INTRINSIC_WHERE) continue;
      const compute_dtype result = row.result == "BOOL"   ? COMPUTE_DTYPE_BOOL
                                   : row.result == "PART" ? part_of(dtype)
                                   : row.result == "PAIR"
                                       ? (dtype == kF32 ? COMPUTE_DTYPE_COMPLEX64 : COMPUTE_DTYPE_COMPLEX128)
                                       : dtype;
      outputs.push_back(e.call(row.id, result, row.arity == 1 ? std::vector<int32_t>{x} : std::vector<int32_t>{x, y}));
      dtypes.push_back(result);
    }
    TestOp op("map");
    op.tensor(dtype, {64, 3}).tensor(dtype, {64, 3}, {3, -1});
    for (const compute_dtype result : dtypes) op.output(result, {64, 3});
    op.expression(e.view(outputs));
    SCOPED_TRACE(dtype_name(dtype));
    expect_compiles(op);
  }
}

// As in Philox. Both halves come from one multiplication, in whichever order the operands are.
TEST_F(GeneratedText, CompilesProductsWithBothHalves) {
  constexpr compute_dtype kU32 = COMPUTE_DTYPE_UINT32;
  Expression e;
  const int32_t x = e.input(0, kU32), y = e.input(1, kU32);
  const int32_t high = e.call(COMPUTE_PLUGIN_INTRINSIC_MUL_HIGH, kU32, {x, y});
  const int32_t low = e.call(COMPUTE_PLUGIN_INTRINSIC_MUL, kU32, {y, x});
  const int32_t alone = e.call(COMPUTE_PLUGIN_INTRINSIC_MUL, kU32, {x, x});
  const int32_t both = e.call(COMPUTE_PLUGIN_INTRINSIC_BIT_XOR, kU32, {high, low});
  TestOp op("map");
  op.tensor(kU32, {64}).tensor(kU32, {64}).output(kU32, {64});
  op.expression(e.view({e.call(COMPUTE_PLUGIN_INTRINSIC_BIT_XOR, kU32, {both, alone})}));
  expect_compiles(op);
  const Op view = op.view();
  const std::string text = kernel_source(view, gpu(), make_recipe(view, gpu()).launches[0]).text;
  const auto count = [&](std::string_view words) {
    int found = 0;
    for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(" = product_u32("), 1);
}

TEST_F(GeneratedText, CompilesEveryConversion) {
  for (compute_dtype from = COMPUTE_DTYPE_BOOL; from <= COMPUTE_DTYPE_COMPLEX128; ++from) {
    Expression e;
    const int32_t x = e.input(0, from);
    std::vector<int32_t> outputs;
    TestOp op("map");
    op.tensor(from, {1000});
    for (compute_dtype to = COMPUTE_DTYPE_BOOL; to <= COMPUTE_DTYPE_COMPLEX128; ++to) {
      if (is_complex(from) && !is_complex(to) && to != COMPUTE_DTYPE_BOOL) continue;
      outputs.push_back(e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, to, {x}));
      op.output(to, {1000});
    }
    op.expression(e.view(outputs));
    SCOPED_TRACE(dtype_name(from));
    expect_compiles(op);
  }
}

TEST_F(GeneratedText, CompilesProductsOfTileUnits) {
  using Numbers = std::vector<int64_t>;
  const auto multiply = [&](const Numbers& a, const Numbers& a_strides, const Numbers& b, const Numbers& b_strides,
                            size_t launches) {
    TestOp op("contraction");
    Numbers c = a;
    c.back() = b.back();
    op.tensor(kF32, a, a_strides).tensor(kF32, b, b_strides).output(kF32, c);
    expect_tile_units_compile(op, launches);
  };
  multiply({2048, 2048}, {}, {2048, 2048}, {}, 1);
  multiply({1000, 2048}, {}, {2048, 500}, {1, 2048}, 2);
  multiply({1001, 333}, {1, 1001}, {333, 501}, {1, 333}, 1);
  multiply({1000, 333}, {666, 2}, {333, 500}, {}, 1);
  multiply({8, 512, 64}, {}, {8, 64, 512}, {}, 1);
  multiply({384, 16384}, {1, 384}, {16384, 384}, {}, 2);
  multiply({32, 200}, {}, {200, 100000}, {}, 1);
  multiply({40, 333}, {1, 40}, {333, 100000}, {1, 333}, 1);
}

// A tile of which a small part is empty, whichever side of the product is short.
TEST(ProductsOfTileUnits, HaveTilesThatFit) {
  const auto tiles = [](int64_t rows, int64_t columns) { return choose_unit_tiles(1, rows, columns, 1600, 132); };
  EXPECT_EQ(tiles(4096, 4096).rows(), 128);
  EXPECT_EQ(tiles(4096, 4096).columns(), 128);
  for (const int64_t side : {20, 32, 64}) {
    const int64_t extent = side <= 32 ? 32 : 64;
    EXPECT_EQ(tiles(side, 100000).rows(), extent);
    EXPECT_EQ(tiles(side, 100000).is_swapped, side <= 32);
    EXPECT_EQ(tiles(100000, side).rows(), 128);
    EXPECT_EQ(tiles(100000, side).columns(), extent);
    EXPECT_FALSE(tiles(100000, side).is_swapped);
  }
}

// Rows are too few, or fill a fourth of a tile.
TEST(ConvolutionsOfTileUnits, FillAPartOfTheirTiles) {
  Dialect units = gpu();
  units.has_tile_units = true;
  for (const int64_t channels : {7, 8, 24, 64}) {
    TestOp op("convolution_grad_input");
    op.tensor(kF32, {32, 64, 28, 28}).tensor(kF32, {64, channels, 3, 3}).output(kF32, {32, channels, 28, 28});
    op.integers("strides", {1, 1}).integers("dilations", {1, 1}).integers("groups", {1});
    op.integers("pads_begin", {1, 1}).integers("pads_end", {1, 1});
    EXPECT_EQ(make_recipe(op.view(), units).launches.front().local_bytes > 0, channels >= 8) << channels;
  }
}

// The result is behind inputs that are absent.
TEST(VectorProducts, AreReductions) {
  for (const bool is_row : {false, true}) {
    TestOp op("contraction");
    op.tensor(kF32, {is_row ? 1 : 300, 200}).tensor(kF32, {200, is_row ? 300 : 1}).absent().absent();
    op.output(kF32, {is_row ? 1 : 300, is_row ? 300 : 1});
    Dialect dialect = gpu();
    dialect.counters = 1024;
    const Recipe recipe = make_recipe(op.view(), dialect);
    ASSERT_EQ(recipe.launches.size(), 1U);
    const Launch& launch = recipe.launches[0];
    EXPECT_NE(launch.name.find("reduce"), std::string::npos) << launch.name;
    ASSERT_GE(launch.pointers.size(), 3U);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(launch.pointers[i].index, i < 2 ? static_cast<int32_t>(i) : 4);
  }
  // A bias is added by the kernel of contraction.
  TestOp op("contraction");
  op.tensor(kF32, {300, 200}).tensor(kF32, {200, 1}).absent().tensor(kF32, {300, 1}, {0, 1}).output(kF32, {300, 1});
  EXPECT_EQ(make_recipe(op.view(), gpu()).launches[0].name, "compute_contraction");
}

// Few tiles of many terms: parts of them, and a kernel that adds them up.
TEST(Products, DivideTheirDepthWhereTilesAreFew) {
  const auto launches = [](compute_dtype dtype, int64_t side, int64_t depth) {
    TestOp op("contraction");
    op.tensor(dtype, {side, depth}).tensor(dtype, {depth, side}).output(dtype, {side, side});
    return make_recipe(op.view(), gpu()).launches.size();
  };
  EXPECT_EQ(launches(kF32, 64, 2048), 2U);
  EXPECT_EQ(launches(COMPUTE_DTYPE_INT32, 64, 2048), 2U);
  EXPECT_EQ(launches(COMPUTE_DTYPE_COMPLEX64, 64, 2048), 1U);
  EXPECT_EQ(launches(kF32, 64, 200), 1U);
  EXPECT_EQ(launches(kF32, 2048, 2048), 1U);
}

// Where a multiprocessor has registers for two groups, OpenCL's compiler is told so beside the text.
TEST(Products, OfLargeTilesStateTheirRegisters) {
  for (const int64_t side : {64, 4096}) {
    TestOp op("contraction");
    op.tensor(kF32, {side, 64}).tensor(kF32, {64, side}).output(kF32, {side, side});
    for (const Language language : {Language::kCudaC, Language::kOpenclC}) {
      Dialect dialect = gpu();
      dialect.language = language;
      const Op view = op.view();
      const KernelSource source = kernel_source(view, dialect, make_recipe(view, dialect).launches[0]);
      EXPECT_EQ(source.most_registers, side == 4096 ? 128 : 0);
      const bool states_size =
          source.text.find("__attribute__((reqd_work_group_size(size, 1, 1)))") != std::string::npos;
      EXPECT_EQ(states_size, side != 4096);
    }
  }
}

// Places of 64 bits are for the other kernels.
TEST(ProductsOfTileUnits, AreOfPlacesOf32Bits) {
  Dialect units = gpu();
  units.has_tile_units = true;
  for (const int64_t side : {10000, 40000}) {
    TestOp op("contraction");
    op.tensor(kF32, {side, side}).tensor(kF32, {side, side}).output(kF32, {side, side});
    EXPECT_EQ(make_recipe(op.view(), units).launches.front().local_bytes > 0, side == 10000);
  }
}

TEST_F(GeneratedText, CompilesConvolutionsOfTileUnits) {
  for (const int64_t channels : {24, 64}) {
    const std::vector<int64_t> x = {32, channels, 28, 28}, weight = {96, channels, 3, 3}, y = {32, 96, 28, 28};
    const auto attributes = [](TestOp& op) {
      op.integers("strides", {1, 1}).integers("dilations", {1, 1}).integers("groups", {1});
      op.integers("pads_begin", {1, 1}).integers("pads_end", {1, 1});
    };
    TestOp forward("convolution"), of_input("convolution_grad_input"), of_weight("convolution_grad_weight");
    forward.tensor(kF32, x).tensor(kF32, weight).output(kF32, y);
    of_input.tensor(kF32, y).tensor(kF32, weight).output(kF32, x);
    of_weight.tensor(kF32, y).tensor(kF32, x).output(kF32, weight);
    attributes(forward);
    attributes(of_input);
    attributes(of_weight);
    expect_tile_units_compile(forward, 1);
    expect_tile_units_compile(of_input, 1);
    expect_tile_units_compile(of_weight, 2);
  }
}

// The gradient of the input of a convolution of 7x7 elements with strides of 2.
TestOp strided_gradient(compute_dtype dtype, int64_t channels, int64_t dilation = 1) {
  const int64_t side = (75 + 6 - 6 * dilation - 1) / 2 + 1;
  TestOp op("convolution_grad_input");
  op.tensor(dtype, {32, 20, side, side}).tensor(dtype, {20, channels, 7, 7}).output(dtype, {32, channels, 75, 75});
  op.integers("strides", {2, 2}).integers("dilations", {dilation, dilation}).integers("groups", {1});
  op.integers("pads_begin", {3, 3}).integers("pads_end", {3, 3});
  return op;
}

// With few channels all products are one.
TEST_F(GeneratedText, CompilesGradientsWithStrides) {
  for (const compute_dtype dtype :
       std::initializer_list<compute_dtype>{COMPUTE_DTYPE_INT16, COMPUTE_DTYPE_FLOAT16, kF32, COMPUTE_DTYPE_FLOAT64,
                                            COMPUTE_DTYPE_COMPLEX64, COMPUTE_DTYPE_COMPLEX128}) {
    SCOPED_TRACE(dtype_name(dtype));
    TestOp op = strided_gradient(dtype, 3);
    expect_compiles(op);
  }
  const auto launches = [](TestOp op) { return make_recipe(op.view(), gpu()).launches.size(); };
  EXPECT_EQ(launches(strided_gradient(kF32, 3)), 1u);
  EXPECT_EQ(launches(strided_gradient(kF32, 7)), 1u);
  EXPECT_EQ(launches(strided_gradient(kF32, 20)), 4u);
  EXPECT_EQ(launches(strided_gradient(kF32, 3, 2)), 4u);  // one product has all taps
}

TEST_F(GeneratedText, CompilesAttentionOfMatrixUnits) {
  for (const bool is_gradient : {false, true}) {
    expect_attention_of_units_compiles(is_gradient, COMPUTE_DTYPE_FLOAT16, 64, false);
    expect_attention_of_units_compiles(is_gradient, COMPUTE_DTYPE_BFLOAT16, 128, true);
  }
}

// Each kernel of units has one behind it for the rows that they do not suit.
TEST_F(GeneratedText, CompilesAttentionOfFloat32ByUnits) {
  for (const int64_t features : {32, 64, 96, 128}) {
    for (const bool is_gradient : {false, true}) {
      const std::vector<int64_t> q = {2, 4, 200, features}, k = {2, 2, 90, features}, rows = {2, 4, 200};
      TestOp op(is_gradient ? "attention_grad" : "attention");
      if (is_gradient) op.tensor(kF32, q);
      op.tensor(kF32, q).tensor(kF32, k).tensor(kF32, k);
      if (is_gradient) {
        op.tensor(kF32, q).tensor(kF32, rows).output(kF32, q).output(kF32, k).output(kF32, k);
      } else {
        op.output(kF32, q).output(kF32, rows);
      }
      op.integers("causal", {1});
      SCOPED_TRACE(features);
      expect_tile_units_compile(op, is_gradient ? 4 : 2);
    }
  }
}

// Where rows are no words, or a mask is there, items multiply.
TEST(Attention, OfFloat32TakesUnitsWhereRowsAreWords) {
  Dialect units = gpu();
  units.has_tile_units = true;
  const auto launches = [&](int64_t features, int64_t row, bool has_mask, double scale) {
    const std::vector<int64_t> shape = {1, 1, 128, features}, strides = {128 * row, 128 * row, row, 1};
    TestOp op("attention");
    for (int i = 0; i < 3; ++i) op.tensor(kF32, shape, strides);
    if (has_mask) op.tensor(kF32, {128, 128});
    op.output(kF32, shape, strides).output(kF32, {1, 1, 128}).integers("causal", {0}).reals("scale", {scale});
    return make_recipe(op.view(), units).launches.size();
  };
  EXPECT_EQ(launches(64, 64, false, 0.5), 2U);
  EXPECT_EQ(launches(64, 66, false, 0.5), 1U);
  EXPECT_EQ(launches(40, 40, false, 0.5), 1U);
  EXPECT_EQ(launches(160, 160, false, 0.5), 1U);
  EXPECT_EQ(launches(64, 64, true, 0.5), 1U);
  EXPECT_EQ(launches(64, 64, false, -0.5), 1U);
}

TEST_F(GeneratedText, CompilesAttention) {
  for (const compute_dtype dtype : std::initializer_list<compute_dtype>{COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16,
                                                                        kF32, COMPUTE_DTYPE_FLOAT64}) {
    for (const compute_dtype mask :
         std::initializer_list<compute_dtype>{COMPUTE_DTYPE_NONE, COMPUTE_DTYPE_BOOL, dtype}) {
      for (const bool is_gradient : {false, true}) {
        SCOPED_TRACE(dtype_name(dtype));
        expect_attention_compiles(is_gradient, dtype, mask, mask == COMPUTE_DTYPE_BOOL ? 200 : 40);
      }
    }
  }
}

// Windows of three by two with strides of two by one over 9 by 8 elements in memory that they span, or along one axis.
TestOp pooling(const char* name, compute_dtype dtype, bool is_flat, bool has_padding, int64_t dilation = 1) {
  const bool is_max = std::string_view(name).starts_with("max_"), is_grad = std::string_view(name).ends_with("_grad");
  const auto shape = [&](int64_t rows, int64_t columns) {
    return is_flat ? std::vector<int64_t>{2, 3, rows} : std::vector<int64_t>{2, 3, rows, columns};
  };
  const auto list = [&](int64_t first, int64_t second) {
    return is_flat ? std::vector<int64_t>{first} : std::vector<int64_t>{first, second};
  };
  const int64_t rows = (9 + 2 * has_padding - 2 * dilation - 1) / 2 + 1, columns = 8 - dilation;
  const std::vector<int64_t> of_elements = shape(9, 8), of_windows = shape(rows, columns);
  TestOp op(name);
  op.tensor(dtype, is_grad ? of_windows : of_elements);
  if (is_grad && is_max) op.tensor(dtype, of_elements).tensor(dtype, of_windows);
  op.output(dtype, is_grad ? of_elements : of_windows);
  op.integers("window", list(3, 2)).integers("strides", list(2, 1));
  if (dilation > 1) op.integers("dilations", list(dilation, dilation));
  if (has_padding) op.integers("pads_begin", list(1, 0)).integers("pads_end", list(1, 0));
  return op;
}

TEST(SourceGenerator, TakesPoolsThatOtherPrimitivesDoWorse) {
  const auto is_taken = [](TestOp op) { return !refuse_op(op.view(), gpu()).has_value(); };
  for (const bool has_padding : {false, true}) {
    EXPECT_EQ(is_taken(pooling("max_pool", kF32, false, has_padding)), has_padding);
    EXPECT_EQ(is_taken(pooling("average_pool", kF32, false, has_padding)), has_padding);
    EXPECT_TRUE(is_taken(pooling("max_pool_grad", kF32, false, has_padding)));
    EXPECT_TRUE(is_taken(pooling("average_pool_grad", kF32, false, has_padding)));
  }
  TestOp apart("average_pool_grad");
  apart.tensor(kF32, {2, 3, 4}).output(kF32, {2, 3, 8}).integers("window", {2});
  EXPECT_FALSE(is_taken(std::move(apart)));
}

TEST_F(GeneratedText, CompilesPooling) {
  for (const compute_dtype dtype : std::initializer_list<compute_dtype>{
           COMPUTE_DTYPE_INT8, COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16, kF32, COMPUTE_DTYPE_FLOAT64}) {
    for (const bool is_flat : {false, true}) {
      SCOPED_TRACE(dtype_name(dtype));
      TestOp pool = pooling("max_pool", dtype, is_flat, true, 2);
      expect_compiles(pool);
      if (dtype == COMPUTE_DTYPE_INT8) continue;
      for (const char* name : {"average_pool", "average_pool_grad", "max_pool_grad"}) {
        SCOPED_TRACE(name);
        TestOp op = pooling(name, dtype, is_flat, true);
        expect_compiles(op);
      }
      TestOp dilated = pooling("max_pool_grad", dtype, is_flat, false, 2),
             plain = pooling("average_pool_grad", dtype, is_flat, false);
      expect_compiles(dilated);
      expect_compiles(plain);
    }
  }
}

// Of one output, of few columns, and of columns in vectors.
TEST_F(GeneratedText, CompilesReductionsThatGroupsShare) {
  const auto shapes = {std::vector<int64_t>{1, 1 << 22}, {1 << 20, 5}, {1 << 19, 8}};
  for (const compute_dtype dtype :
       std::initializer_list<compute_dtype>{COMPUTE_DTYPE_BOOL, COMPUTE_DTYPE_INT32, COMPUTE_DTYPE_FLOAT16, kF32}) {
    for (const std::vector<int64_t>& shape : shapes) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(shape[1]));
      const int64_t axis = shape[0] == 1 ? 1 : 0;
      ArgmaxOp place(shape, axis, dtype);
      expect_compiles(place.op);
      if (dtype == COMPUTE_DTYPE_FLOAT16) continue;  // its accumulator is float32
      for (const char* kind : {"sum", "max", "any"}) {
        if ((std::string_view(kind) == "any") != (dtype == COMPUTE_DTYPE_BOOL)) continue;
        std::vector<int64_t> reduced = shape;
        reduced[static_cast<size_t>(axis)] = 1;
        TestOp op("reduce");
        op.tensor(dtype, shape).output(dtype, reduced).expression(identity(dtype)).expression(identity(dtype));
        op.text("kind", kind).integers("axes", {axis});
        EXPECT_EQ(make_recipe(op.view(), gpu()).launches.size(), 1u);
        expect_compiles(op);
      }
    }
  }
}

// Of lines that a group sorts, and of longer ones, which top_k leaves to core.
TEST_F(GeneratedText, CompilesSorts) {
  TestOp top("top_k");
  top.tensor(kF32, {3, 100}).output(kF32, {3, 7}).output(COMPUTE_DTYPE_INT64, {3, 7}).integers("k", {7});
  expect_compiles(top);
  TestOp long_line("top_k");
  long_line.tensor(kF32, {3, 100000}).output(kF32, {3, 7}).output(COMPUTE_DTYPE_INT64, {3, 7}).integers("k", {7});
  EXPECT_TRUE(refuse_op(long_line.view(), gpu()));
  for (const int64_t extent : {100, 100000}) {
    TestOp permutation("random_permutation");
    permutation.output(COMPUTE_DTYPE_INT32, {extent}).scalars({COMPUTE_DTYPE_INT64, COMPUTE_DTYPE_INT64});
    expect_compiles(permutation);
  }
}

TestOp take_grad(compute_dtype dtype, int64_t count, int64_t size, int64_t columns, int64_t deterministic = 1) {
  TestOp op("take_grad");
  op.tensor(dtype, {count, columns}).tensor(COMPUTE_DTYPE_INT64, {count}).output(dtype, {size, columns});
  op.integers("size", {size}).integers("deterministic", {deterministic});
  return op;
}

// Of indices that a group sorts, and of more.
TEST_F(GeneratedText, CompilesGradientsOfTake) {
  for (const compute_dtype dtype : std::initializer_list<compute_dtype>{
           COMPUTE_DTYPE_FLOAT16, kF32, COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_COMPLEX64, COMPUTE_DTYPE_COMPLEX128}) {
    SCOPED_TRACE(dtype_name(dtype));
    for (const int64_t count : {1, 20, 3000, 30000}) {
      TestOp op = take_grad(dtype, count, 50000, 24);
      expect_compiles(op);
    }
  }
}

// As many passes over the indices as rows have bytes. Only sums in order are taken, and only indices in a line.
TEST(SourceGenerator, GradientsOfTakeSortByTheBytesOfRows) {
  const auto launches = [](int64_t size) {
    return make_recipe(take_grad(kF32, 30000, size, 24).view(), gpu()).launches.size();
  };
  const size_t one = launches(256), more = launches(257) - one;
  EXPECT_GT(more, 0u);
  EXPECT_EQ(launches(1), one);
  EXPECT_EQ(launches(65536), one + more);
  EXPECT_EQ(launches(65537), one + 2 * more);
  EXPECT_TRUE(refuse_op(take_grad(kF32, 30000, 50, 24, 0).view(), gpu()));
  EXPECT_TRUE(refuse_op(take_grad(COMPUTE_DTYPE_INT32, 30000, 50, 24).view(), gpu()));
  TestOp turned("take_grad");
  turned.tensor(kF32, {30, 20, 4}).tensor(COMPUTE_DTYPE_INT64, {30, 20}, {1, 30}).output(kF32, {50, 4});
  turned.integers("size", {50}).integers("deterministic", {1});
  const std::optional<Refusal> refusal = refuse_op(turned.view(), gpu());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, COMPUTE_PLUGIN_REFUSE_LAYOUT);
  EXPECT_EQ(refusal->argument, 1);
}

TestOp scatter(compute_dtype dtype, int64_t lines, int64_t length, int64_t terms, const char* reduction,
               int64_t axis = 1) {
  TestOp op("scatter");
  op.tensor(COMPUTE_DTYPE_INT64, {lines, terms}).tensor(dtype, {lines, terms});
  op.tensor(dtype, {lines, length}, {}, COMPUTE_PLUGIN_TENSOR_INPUT | COMPUTE_PLUGIN_TENSOR_OUTPUT);
  op.text("reduction", reduction).integers("axis", {axis});
  return op;
}

// Many long lines of words that have many updates.
TEST_F(GeneratedText, CompilesScattersInLocalMemory) {
  const auto name = [](TestOp op) { return make_recipe(op.view(), gpu()).launches.front().name; };
  const std::string local = "compute_scatter_local";
  for (const char* reduction : {"add", "mul", "min", "max"}) {
    for (const compute_dtype dtype : std::initializer_list<compute_dtype>{kF32, COMPUTE_DTYPE_INT32}) {
      EXPECT_EQ(name(scatter(dtype, 4096, 1000, 1024, reduction)), local);
      TestOp op = scatter(dtype, 4096, 1000, 1024, reduction);
      expect_compiles(op);
    }
    EXPECT_NE(name(scatter(COMPUTE_DTYPE_FLOAT16, 4096, 1000, 1024, reduction)), local);
  }
  EXPECT_NE(name(scatter(kF32, 4096, 1000, 1024, "set")), local);
  EXPECT_NE(name(scatter(kF32, 100, 1000, 1024, "add")), local);
  EXPECT_NE(name(scatter(kF32, 4096, 1000, 200, "add")), local);
  EXPECT_NE(name(scatter(kF32, 4096, 10000, 10000, "add")), local);
  EXPECT_NE(name(scatter(kF32, 1024, 4096, 1024, "add", 0)), local);
}

// Sums of float32 in memory: NVIDIA's instruction where it can be written, and an exchange elsewhere.
TEST(SourceGenerator, SumsInMemoryUseTheInstructionForThem) {
  TestOp op = scatter(kF32, 100, 1000, 100, "add");
  const Op view = op.view();
  const auto text = [&](const Dialect& dialect) {
    return kernel_source(view, dialect, make_recipe(view, dialect).launches.front()).text;
  };
  Dialect opencl = gpu();
  opencl.language = Language::kOpenclC;
  EXPECT_NE(text(gpu()).find("red.global.add.f32"), std::string::npos);
  EXPECT_EQ(text(opencl).find("red.global.add.f32"), std::string::npos);
  opencl.has_ptx = true;
  EXPECT_NE(text(opencl).find("red.global.add.f32"), std::string::npos);
}

// Of lines that a group sorts, and of longer ones. Floating-point zeros have two forms, and NaN is not itself.
TEST_F(GeneratedText, CompilesSelections) {
  for (const compute_dtype dtype :
       std::initializer_list<compute_dtype>{COMPUTE_DTYPE_BOOL, COMPUTE_DTYPE_INT64, COMPUTE_DTYPE_FLOAT16, kF32,
                                            COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_COMPLEX64, COMPUTE_DTYPE_COMPLEX128}) {
    SCOPED_TRACE(dtype_name(dtype));
    for (const int64_t rows : {5, 10000}) {
      const int64_t count = rows * 20;
      TestOp nonzero("nonzero"), unique("unique");
      nonzero.tensor(dtype, {rows, 20}).output(COMPUTE_DTYPE_INT64, {2, count}).output(COMPUTE_DTYPE_INT64, {});
      EXPECT_EQ(make_recipe(nonzero.view(), gpu()).launches.size(), 2u);
      expect_compiles(nonzero);
      unique.tensor(dtype, {rows, 20}).output(dtype, {count}).output(COMPUTE_DTYPE_INT64, {count});
      unique.output(COMPUTE_DTYPE_INT64, {rows, 20}, {1, rows}).output(COMPUTE_DTYPE_INT64, {count});
      unique.output(COMPUTE_DTYPE_INT64, {});
      if (dtype == COMPUTE_DTYPE_COMPLEX64 || dtype == COMPUTE_DTYPE_COMPLEX128) {
        EXPECT_TRUE(refuse_op(unique.view(), gpu()));
      } else {
        expect_compiles(unique);
      }
    }
  }
}

TEST(SourceGenerator, SelectionsOfAllSizesMakeAHandfulOfKernels) {
  std::set<uint64_t> keys;
  for (int64_t n = 2; n < 3000; ++n) {
    TestOp op("nonzero");
    op.tensor(kF32, {n, 3000 - n}).output(COMPUTE_DTYPE_INT64, {2, n * (3000 - n)}).output(COMPUTE_DTYPE_INT64, {});
    for (const Launch& launch : make_recipe(op.view(), gpu()).launches) keys.insert(launch.key.low);
  }
  EXPECT_LE(keys.size(), 4u);
}

TEST_F(GeneratedText, CompilesEveryForm) {
  const std::vector<int64_t> square = {256, 256}, turned = {1, 256};
  for (const compute_dtype dtype : std::initializer_list<compute_dtype>{
           COMPUTE_DTYPE_BOOL, COMPUTE_DTYPE_INT8, COMPUTE_DTYPE_FLOAT16, kF32, COMPUTE_DTYPE_COMPLEX128}) {
    SCOPED_TRACE(dtype_name(dtype));
    TestOp copy("copy");
    copy.tensor(dtype, square, turned).output(dtype, square);
    expect_compiles(copy);
    for (const compute_dtype index : std::initializer_list<compute_dtype>{COMPUTE_DTYPE_INT32, COMPUTE_DTYPE_INT64}) {
      TestOp gather("gather");
      gather.tensor(dtype, {50, 256}).tensor(index, square, {1, 0}).output(dtype, square).integers("axis", {0});
      expect_compiles(gather);
    }
    for (const char* reduction : {"set", "add", "mul", "min", "max"}) {
      if (is_complex(dtype) && (std::string_view(reduction) == "min" || std::string_view(reduction) == "max")) continue;
      TestOp scatter("scatter");
      scatter.tensor(COMPUTE_DTYPE_INT64, {64, 256}).tensor(dtype, {64, 256});
      scatter.tensor(dtype, {50, 256}, {}, COMPUTE_PLUGIN_TENSOR_INPUT | COMPUTE_PLUGIN_TENSOR_OUTPUT)
          .text("reduction", reduction)
          .integers("axis", {0});
      expect_compiles(scatter);
    }
    TestOp product("contraction");
    product.tensor(dtype, {100, 30}, {1, 100}).tensor(dtype, {30, 70}).output(dtype, {100, 70});
    expect_compiles(product);
    if (dtype != COMPUTE_DTYPE_BOOL) expect_convolutions_compile(dtype);
  }
  for (const char* kind : {"sum", "prod", "min", "max"}) {
    for (const bool first : {false, true}) {
      for (const bool is_float_kind : {false, true}) {
        const compute_dtype dtype = is_float_kind ? kF32 : COMPUTE_DTYPE_INT64;
        TestOp reduce("reduce");
        reduce.tensor(dtype, {4096, 4096});
        reduce.output(dtype, first ? std::vector<int64_t>{1, 4096} : std::vector<int64_t>{4096, 1});
        reduce.expression(identity(dtype))
            .expression(identity(dtype))
            .text("kind", kind)
            .integers("axes", {first ? 0 : 1});
        SCOPED_TRACE(kind);
        expect_compiles(reduce);
      }
    }
  }
}

}  // namespace
}  // namespace compute::common
