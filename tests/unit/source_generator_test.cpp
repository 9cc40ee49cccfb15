// SPDX-License-Identifier: Apache-2.0
// Generated kernels: what their keys and arguments depend on, and that their texts compile.
#include "tests/unit/generated_kernels.hpp"

#include <map>
#include <regex>
#include <sstream>
#include <utility>

namespace compute::common::generated {
namespace {

LaunchPlan add_launches(std::vector<int64_t> shape, std::vector<int64_t> y_strides = {}) {
  TestOp op("map");
  op.tensor(kF32, shape).tensor(kF32, shape, std::move(y_strides)).output(kF32, shape).expression(sum_of_two());
  return plan_launches(op.view(), gpu());
}

TEST(SourceGenerator, KeysHoldNoSize) {
  const KernelKey key = add_launches({1000}).launches[0].key;
  EXPECT_EQ(add_launches({1001}).launches[0].key, key);
  EXPECT_EQ(add_launches({40, 25}).launches[0].key, key) << "contiguous operands collapse to one loop";
  EXPECT_EQ(add_launches({17, 3, 5}).launches[0].key, key);
  const KernelKey row = add_launches({40, 24}, {0, 1}).launches[0].key;
  EXPECT_NE(row, key);
  EXPECT_EQ(add_launches({7, 1024}, {0, 1}).launches[0].key, row);
  EXPECT_NE(add_launches({3'000'000'000}).launches[0].key, key) << "positions that need 64 bits";
}

TEST(SourceGenerator, ManySizesMakeAHandfulOfKernels) {
  std::set<uint64_t> keys;
  for (int64_t n = 1; n < 3000; ++n) {
    keys.insert(add_launches({n}).launches[0].key.low);
    TestOp op("reduce");
    op.tensor(kF32, {n, 5000 - n})
        .output(kF32, {n, 1})
        .expression(identity())
        .expression(identity())
        .text("kind", "sum")
        .integers("axes", {1});
    for (const Launch& launch : plan_launches(op.view(), gpu()).launches) keys.insert(launch.key.low);
  }
  EXPECT_LE(keys.size(), 24u);
}

TEST(SourceGenerator, PreparesFromKeysAlone) {
  TestOp op("map");
  op.tensor(kF32, {64, 100}, {1, 64}).tensor(kF32, {64, 100}).output(kF32, {64, 100}).expression(sum_of_two());
  const Op view = op.view();
  const LaunchPlan plan = plan_launches(view, gpu());
  ASSERT_EQ(plan.launches.size(), 1u);
  const KernelSource source = kernel_source(view, gpu(), plan.launches[0]);
  EXPECT_EQ(source.name, plan.launches[0].name);
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
  const LaunchPlan plan = plan_launches(op.view(), gpu());
  const Launch& launch = plan.launches[0];
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
    const LaunchPlan plan = plan_launches(op.view(), gpu());
    ASSERT_FALSE(plan.launches.empty());
    EXPECT_GE(plan.launches[0].groups, 132 * 4) << rows;
    EXPECT_GT(plan.workspace_bytes, 0);
    EXPECT_EQ(plan.launches.size(), 1u) << "the last group of an output combines what all have found";
    Dialect without_counters = gpu();
    without_counters.counters = 0;
    EXPECT_EQ(plan_launches(op.view(), without_counters).launches.size(), 2u);
  }
}

// On a CPU core an item goes down the rows with a block of outputs, whatever their number is divisible by.
TEST(SourceGenerator, SumsOfColumnsOnCpuCoresReadWholeRows) {
  Dialect cores = cpu_cores();
  std::set<std::string> texts;
  for (const int64_t columns : {1000, 1001, 4096, 20, 10}) {
    for (const int32_t units : {1, 2, 64}) {
      cores.compute_units = units;
      TestOp op("reduce");
      op.tensor(kF32, {3, 4000, columns}).output(kF32, {3, 1, columns});
      op.expression(identity()).expression(identity()).text("kind", "sum").integers("axes", {1});
      const Op view = op.view();
      const LaunchPlan plan = plan_launches(view, cores);
      const bool is_block = columns >= 16;
      EXPECT_EQ(plan.launches[0].group_size, is_block ? 1 : cores.group_size);
      if (!is_block) continue;
      const int64_t blocks = 3 * ((columns + 255) / 256);
      EXPECT_GE(plan.launches[0].groups, std::min(blocks * 200, int64_t{units} * 2)) << columns << " on " << units;
      EXPECT_EQ(plan.launches.size(), plan.workspace_bytes > 0 ? 2u : 1u);
      texts.insert(kernel_source(view, cores, plan.launches[0]).text);
    }
  }
  EXPECT_LE(texts.size(), 2u);  // of partial sums and of results
}

// The first position of the greatest of an axis.
struct ArgmaxOp {
  ArgmaxOp(const std::vector<int64_t>& shape, int64_t axis, compute_dtype dtype = kF32,
           const std::vector<int64_t>& strides = {}) {
    std::vector<int64_t> reduced = shape;
    reduced[static_cast<size_t>(axis)] = 1;
    op.tensor(dtype, shape, strides).output(COMPUTE_DTYPE_INT64, reduced).text("kind", "max").integers("axis", {axis});
  }
  TestOp op{"arg_reduce"};
};

TEST(SourceGenerator, PlacesOfFewOutputsAreFoundInOneLaunch) {
  ArgmaxOp op({1, 1 << 24}, 1);
  const LaunchPlan plan = plan_launches(op.op.view(), gpu());
  EXPECT_GT(plan.workspace_bytes, 0);
  EXPECT_EQ(plan.launches.size(), 1u);
  Dialect without_counters = gpu();
  without_counters.counters = 0;
  EXPECT_EQ(plan_launches(op.op.view(), without_counters).launches.size(), 2u);
}

// No vector holds the same element again and again.
TEST(SourceGenerator, PlacesOfRepeatedElementsAreFoundOneByOne) {
  Dialect host = gpu();
  host.is_host = true;
  const auto has_vectors = [](ArgmaxOp op, const Dialect& dialect) {
    const Op view = op.op.view();
    return kernel_source(view, dialect, plan_launches(view, dialect).launches.at(0)).text.find("vector_f32") !=
           std::string::npos;
  };
  EXPECT_TRUE(has_vectors(ArgmaxOp({256}, 0), gpu()));
  EXPECT_FALSE(has_vectors(ArgmaxOp({256}, 0, kF32, {0}), gpu()));
  EXPECT_FALSE(has_vectors(ArgmaxOp({8, 64, 64}, 2, kF32, {1, 0, 0}), gpu()));
  EXPECT_FALSE(has_vectors(ArgmaxOp({8, 64}, 1, kF32, {0, 0}), gpu()));
  for (const Dialect& dialect : {gpu(), host}) {
    EXPECT_TRUE(has_vectors(ArgmaxOp({8, 64}, 0), dialect));
    EXPECT_FALSE(has_vectors(ArgmaxOp({64, 1}, 1, kF32, {0, 1}), dialect));
  }
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
    op.texts("kinds", {kinds.begin(), kinds.end()}).integers("axes", {axis}).integers("stored", {stages - 1});
  }
  Expression last;
  TestOp op{"row"};
};

TEST(SourceGenerator, RowsOfAllSizesMakeAHandfulOfKernels) {
  std::set<uint64_t> keys;
  for (int64_t n = 2; n < 3000; ++n) {
    for (const int64_t axis : {0, 1}) {
      RowOp row(5000 - n, n, axis);
      const LaunchPlan plan = plan_launches(row.op.view(), gpu());
      ASSERT_EQ(plan.launches.size(), 1u);
      EXPECT_EQ(plan.workspace_bytes, 0);
      keys.insert(plan.launches[0].key.low);
    }
  }
  EXPECT_LE(keys.size(), 12u);
}

TEST(SourceGenerator, ShortRowsShareAGroup) {
  RowOp row(1 << 20, 64, 1);
  EXPECT_LE(plan_launches(row.op.view(), gpu()).launches[0].groups, (1 << 20) / 8);
}

// Such as the channels of a small batch of images.
TEST_F(GeneratedText, FewRowsHaveLargeGroups) {
  Expression last;
  TestOp channels("row");
  channels.tensor(kF32, {32, 16, 784}).output(kF32, {32, 16, 784}).output(kF32, {1, 16, 1});
  channels.expression(identity()).expression(identity());
  channels.expression(
      last.view({last.call(COMPUTE_PLUGIN_INTRINSIC_SUB, kF32, {last.input(0, kF32), last.input(1, kF32)})}));
  channels.texts("kinds", {"sum"}).integers("axes", {0, 2}).integers("stored", {0});
  RowOp along(16, 30000, 1), across(4000, 16, 0), many(1000, 30000, 1), brief(16, 1000, 1);
  for (TestOp* op : {&channels, &along.op, &across.op}) {
    const Op view = op->view();
    const Launch launch = plan_launches(view, gpu()).launches[0];
    EXPECT_EQ(launch.group_size, 1024);
    if (!kCompiles || !nvrtc.is_there()) continue;
    EXPECT_EQ(nvrtc.errors_of(kernel_source(view, gpu(), launch)), "");
  }
  for (RowOp* row : {&many, &brief}) EXPECT_EQ(plan_launches(row->op.view(), gpu()).launches[0].group_size, 256);
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
  Dialect small = opencl::dialect();
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

// Complex elements that are aligned to half their size are copied part by part, and refused by every other op.
TEST(SourceGenerator, MovesUnalignedElementsAsParts) {
  constexpr compute_dtype kC64 = COMPUTE_DTYPE_COMPLEX64;
  for (const int32_t unaligned : {0, 1, 2}) {
    TestOp op("map");
    op.tensor(kC64, {50}).alignment(unaligned == 0 ? 4 : 8).tensor(kC64, {50}).alignment(unaligned == 1 ? 4 : 8);
    op.output(kC64, {50}).alignment(unaligned == 2 ? 4 : 8).expression(sum_of_two(kC64));
    const std::optional<Refusal> refusal = refuse_op(op.view(), gpu());
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->reason, COMPUTE_PLUGIN_REFUSE_LAYOUT);
    EXPECT_EQ(refusal->argument, unaligned);
  }
  for (const std::array<int32_t, 2> alignments : {std::array{8, 8}, {4, 8}, {8, 4}, {4, 4}}) {
    TestOp copy("copy"), identical("map");
    for (TestOp* op : {&copy, &identical})
      op->tensor(kC64, {50, 1}).alignment(alignments[0]).output(kC64, {50, 1}, {2, 1}).alignment(alignments[1]);
    identical.expression(identity(kC64));
    for (TestOp* op : {&copy, &identical}) {
      const Op view = op->view();
      ASSERT_FALSE(refuse_op(view, gpu()));
      const Launch launch = plan_launches(view, gpu()).launches.at(0);
      const std::string text = kernel_source(view, gpu(), launch).text;
      const bool in_halves = text.find("COMPUTE_GLOBAL u32* x1") != std::string::npos;
      EXPECT_EQ(in_halves, alignments[0] + alignments[1] < 16) << text;
    }
  }
  TestOp cast("copy");
  cast.tensor(kC64, {50}).alignment(4).output(COMPUTE_DTYPE_COMPLEX128, {50});
  EXPECT_TRUE(refuse_op(cast.view(), gpu()));
}

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
        EXPECT_EQ(plan_launches(op.view(), gpu()).launches.size(), 1u);
        expect_compiles(op);
      }
    }
  }
}

// Of lines that a group sorts or selects from, and of longer ones, which top_k leaves to core.
TEST_F(GeneratedText, CompilesSorts) {
  TestOp top("top_k");
  top.tensor(kF32, {3, 100}).output(kF32, {3, 7}).output(COMPUTE_DTYPE_INT64, {3, 7}).integers("k", {7});
  expect_compiles(top);
  TestOp selected("top_k");
  selected.tensor(kF32, {3, 3000}).output(kF32, {3, 7}).output(COMPUTE_DTYPE_INT64, {3, 7}).integers("k", {7});
  expect_compiles(selected);
  TestOp selected_of_more("top_k");
  selected_of_more.tensor(kF32, {3, 9000}).output(kF32, {3, 7}).output(COMPUTE_DTYPE_INT64, {3, 7}).integers("k", {7});
  EXPECT_FALSE(refuse_op(selected_of_more.view(), gpu()));
  TestOp long_line("top_k");
  long_line.tensor(kF32, {3, 100000}).output(kF32, {3, 7}).output(COMPUTE_DTYPE_INT64, {3, 7}).integers("k", {7});
  EXPECT_TRUE(refuse_op(long_line.view(), gpu()));
  for (const int64_t extent : {100, 100000}) {
    TestOp permutation("random_permutation");
    permutation.output(COMPUTE_DTYPE_INT32, {extent}).scalars({COMPUTE_DTYPE_INT64, COMPUTE_DTYPE_INT64});
    expect_compiles(permutation);
    // Keys by their highest digit: counts, starts, moves; then buckets.
    EXPECT_EQ(plan_launches(permutation.view(), gpu()).launches.size(), extent == 100 ? 1u : 4u);
  }
}

// Bytes of the arrays that a kernel has in local memory, whose extents are sums of products and quotients.
int64_t local_bytes(const std::string& text) {
  static const std::map<std::string, int64_t> kSizes = {{"u8", 1},  {"u16", 2}, {"i32", 4}, {"u32", 4}, {"f32", 4},
                                                        {"i64", 8}, {"u64", 8}, {"f64", 8}, {"ix", 8},  {"int", 4}};
  static const std::regex kArray("COMPUTE_LOCAL (\\w+) \\w+\\[([^\\]]+)\\]");
  int64_t bytes = 0;
  for (size_t at = text.find("COMPUTE_LOCAL"); at != text.npos; at = text.find("COMPUTE_LOCAL", at + 1)) {
    std::cmatch found;
    if (!std::regex_search(text.c_str() + at, found, kArray, std::regex_constants::match_continuous)) continue;
    std::istringstream extent(found[2].str());
    int64_t sum = 0, product = 0, number = 0;
    char operation = '+';
    do {
      extent >> number;
      if (operation == '+') sum += std::exchange(product, number);
      if (operation == '*') product *= number;
      if (operation == '/') product /= number;
    } while (extent >> operation);
    bytes += kSizes.at(found[1].str()) * (sum + product);
  }
  return bytes;
}

TEST(SourceGenerator, SortsFitIntoLocalMemory) {
  EXPECT_EQ(local_bytes("COMPUTE_LOCAL u64 a[64 + 64 / 32]; COMPUTE_LOCAL u16 b[17 * 4];"), 66 * 8 + 68 * 2);
  for (const int64_t kibibytes : {32, 40, 48, 64}) {
    Dialect dialect = opencl_gpu();
    dialect.local_memory_bytes = kibibytes << 10;
    for (const compute_dtype dtype : std::initializer_list<compute_dtype>{
             COMPUTE_DTYPE_INT8, COMPUTE_DTYPE_FLOAT16, kF32, COMPUTE_DTYPE_INT64, COMPUTE_DTYPE_FLOAT64}) {
      for (const int64_t extent : {1000, 2000, 4000, 100000}) {
        SCOPED_TRACE(cat(kibibytes, " KiB, ", extent, " of ", dtype_name(dtype)));
        TestOp op("sort");
        op.tensor(dtype, {extent}).output(dtype, {extent}).text("outputs", "values").integers("axis", {0});
        const Op view = op.view();
        ASSERT_FALSE(refuse_op(view, dialect));
        int64_t most = 0;
        for (const Launch& launch : plan_launches(view, dialect).launches)
          most = std::max(most, local_bytes(kernel_source(view, dialect, launch).text));
        EXPECT_GT(most, 0);
        EXPECT_LE(most, dialect.local_memory_bytes);
      }
    }
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
    return plan_launches(take_grad(kF32, 30000, size, 24).view(), gpu()).launches.size();
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

// Updates [lines, terms] of an output [lines, length] along axis 1, or of [length, terms] along axis 0.
TestOp scatter(compute_dtype dtype, int64_t lines, int64_t length, int64_t terms, const char* reduction,
               int64_t axis = 1) {
  TestOp op("scatter");
  op.tensor(COMPUTE_DTYPE_INT64, {lines, terms}).tensor(dtype, {lines, terms});
  op.tensor(dtype, axis == 1 ? std::vector<int64_t>{lines, length} : std::vector<int64_t>{length, terms}, {},
            COMPUTE_PLUGIN_TENSOR_INPUT | COMPUTE_PLUGIN_TENSOR_OUTPUT);
  op.text("reduction", reduction).integers("axis", {axis});
  return op;
}

std::vector<std::string> kernel_names(TestOp& op, const Dialect& dialect = gpu()) {
  std::vector<std::string> names;
  for (const Launch& launch : plan_launches(op.view(), dialect).launches) names.push_back(launch.name);
  return names;
}
using Names = std::vector<std::string>;

// Lines that have many updates and few places, which one group each combines in local memory; and elements.
TEST_F(GeneratedText, CompilesScattersByTables) {
  const Names tables = {"compute_scatter_tables"}, joined = {"compute_scatter_tables", "compute_scatter_join"},
              plain = {"compute_scatter"}, lines = {"compute_scatter_lines"};
  for (compute_dtype dtype = COMPUTE_DTYPE_INT8; dtype < kDtypeLimit; ++dtype) {
    SCOPED_TRACE(dtype_name(dtype));
    const auto wide_lines = static_cast<int64_t>(4096 / std::max(dtype_size(dtype), 4));
    for (const char* reduction : {"add", "mul", "min", "max"}) {
      const std::string_view name = reduction;
      if (is_complex(dtype) && name != "add") continue;
      SCOPED_TRACE(reduction);
      TestOp many = scatter(dtype, 4096, wide_lines, 1024, reduction);
      EXPECT_EQ(kernel_names(many), tables);
      const bool has_sum =
          name == "add" && dtype_size(dtype) >= 4 && part_of(dtype) != COMPUTE_DTYPE_FLOAT64 && !is_half(dtype);
      const bool is_native = has_sum || (dtype == COMPUTE_DTYPE_INT32 && name != "mul");
      for (const bool in_order : {false, true}) {
        TestOp few = scatter(dtype, 100000, 64, 1, reduction, 0);
        TestOp rows = scatter(dtype, 100000, 10, 64, reduction, 0);
        for (TestOp* op : {&few, &rows}) {
          op->deterministic(in_order);
          EXPECT_EQ(kernel_names(*op), is_native && !in_order ? tables : joined);
          if (op == &rows || dtype == kF32) expect_compiles(*op);
        }
      }
    }
  }
  const auto names = [](TestOp op) { return kernel_names(op); };
  EXPECT_EQ(names(scatter(kF32, 4096, 1000, 1024, "set")), plain);
  EXPECT_EQ(names(scatter(kF32, 100, 1000, 1024, "add")), plain);
  EXPECT_EQ(names(scatter(kF32, 4096, 1000, 200, "add")), plain);
  EXPECT_EQ(names(scatter(kF32, 4096, 10000, 10000, "add")), plain);
  EXPECT_EQ(names(scatter(kF32, 20000, 300, 64, "add", 0)), plain);
  EXPECT_EQ(names(scatter(COMPUTE_DTYPE_COMPLEX64, 4096, 100, 1024, "mul")), plain);
}

// Sums of float32 in memory: NVIDIA's instruction where it can be written, and an exchange elsewhere.
TEST(SourceGenerator, SumsInMemoryUseTheInstructionForThem) {
  TestOp op = scatter(kF32, 100, 1000, 100, "add");
  const Op view = op.view();
  const auto text = [&](const Dialect& dialect) {
    return kernel_source(view, dialect, plan_launches(view, dialect).launches.front()).text;
  };
  Dialect opencl = opencl_gpu();
  EXPECT_NE(text(gpu()).find("red.global.add.f32"), std::string::npos);
  EXPECT_EQ(text(opencl).find("red.global.add.f32"), std::string::npos);
  opencl.has_ptx = true;
  EXPECT_NE(text(opencl).find("red.global.add.f32"), std::string::npos);
}

TestOp scan(compute_dtype accumulator, std::vector<int64_t> shape, int64_t step, bool is_reverse) {
  TestOp op("scan");
  op.tensor(accumulator, shape, {shape[1] * step, step}).output(accumulator, shape);
  op.text("kind", "sum").integers("axis", {1}).integers("exclusive", {is_reverse}).integers("reverse", {is_reverse});
  op.dtype("accumulator", accumulator);
  return op;
}

TEST_F(GeneratedText, CompilesScans) {
  for (const compute_dtype accumulator :
       std::initializer_list<compute_dtype>{kF32, COMPUTE_DTYPE_INT64, COMPUTE_DTYPE_COMPLEX128}) {
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{1, 1 << 22}, {5000, 3000}, {3, 20}}) {
      for (const int64_t step : {1, 2}) {
        TestOp op = scan(accumulator, shape, step, step == 2);
        SCOPED_TRACE(dtype_name(accumulator));
        expect_compiles(op);
      }
      TestOp backwards = scan(accumulator, shape, 1, true);
      SCOPED_TRACE("backwards");
      expect_compiles(backwards);
    }
  }
}

// Along memory steps are numbers in the text, forwards and backwards. Their kernels serve all sizes.
TEST(SourceGenerator, ScansKnowTheirStepsAlongMemory) {
  const auto key = [](int64_t terms, int64_t step, bool is_reverse) {
    return plan_launches(scan(kF32, {5000, terms}, step, is_reverse).view(), gpu()).launches[0].key;
  };
  EXPECT_EQ(key(3000, 1, false), key(4000, 1, false));
  EXPECT_EQ(key(3000, 2, false), key(3000, 3, false));
  EXPECT_FALSE(key(3000, 1, false) == key(3000, 2, false));
  EXPECT_FALSE(key(3000, 1, false) == key(3000, 1, true));
  const auto most_registers = [](compute_dtype accumulator, int64_t step) {
    TestOp op = scan(accumulator, {5000, 3000}, step, false);
    const Op view = op.view();
    return kernel_source(view, gpu(), plan_launches(view, gpu()).launches[0]).most_registers;
  };
  EXPECT_EQ(most_registers(kF32, 1), 32);  // 8 groups of 256 items
  EXPECT_EQ(most_registers(kF32, 2), 0);
  EXPECT_EQ(most_registers(COMPUTE_DTYPE_FLOAT64, 1), 0);
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
      EXPECT_EQ(plan_launches(nonzero.view(), gpu()).launches.size(), 2u);
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

// Two of three axes, and all of them, at 20 x 30 places. A source that is turned is not taken.
TEST_F(GeneratedText, CompilesGathersBySeveralIndices) {
  for (const compute_dtype dtype : {COMPUTE_DTYPE_BOOL, COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_COMPLEX128}) {
    SCOPED_TRACE(dtype_name(dtype));
    TestOp pairs("gather_nd"), triples("gather_nd"), apart("gather_at"), turned("gather_nd");
    pairs.tensor(dtype, {5, 6, 8}).tensor(COMPUTE_DTYPE_INT64, {20, 30, 2}, {1, 20, 600}).output(dtype, {20, 30, 8});
    expect_compiles(pairs);
    triples.tensor(dtype, {5, 6, 8}).tensor(COMPUTE_DTYPE_INT32, {20, 30, 3}).output(dtype, {20, 30});
    expect_compiles(triples);
    apart.tensor(dtype, {3, 5, 6, 8}).tensor(COMPUTE_DTYPE_INT64, {20, 1}).tensor(COMPUTE_DTYPE_INT32, {30});
    apart.absent().absent().output(dtype, {3, 20, 30, 8}).integers("axis", {-3});
    expect_compiles(apart);
    turned.tensor(dtype, {5, 6}, {-6, 1}).tensor(COMPUTE_DTYPE_INT64, {9, 2}).output(dtype, {9});
    EXPECT_TRUE(refuse_op(turned.view(), gpu()));
  }
}

TEST_F(GeneratedText, CompilesHistograms) {
  const auto histogram = [](compute_dtype dtype, int64_t rows, int64_t bins) {
    TestOp op("histogram");
    op.tensor(dtype, {rows, 1000}).output(COMPUTE_DTYPE_INT64, {bins});
    op.scalars({COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_FLOAT64});
    return op;
  };
  for (const compute_dtype dtype : {COMPUTE_DTYPE_UINT8, COMPUTE_DTYPE_INT64, COMPUTE_DTYPE_BFLOAT16,
                                    COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_FLOAT64}) {
    SCOPED_TRACE(dtype_name(dtype));
    TestOp op = histogram(dtype, 700, 100);
    expect_compiles(op, {gpu(), opencl_gpu()});
  }
  EXPECT_TRUE(refuse_op(histogram(kF32, 700, 100).view(), cpu_cores()));
  EXPECT_TRUE(refuse_op(histogram(kF32, 700, 5000).view(), gpu()));
  const auto key = [&](int64_t rows, int64_t bins) {
    return plan_launches(histogram(kF32, rows, bins).view(), gpu()).launches[1].key;
  };
  EXPECT_EQ(key(700, 100), key(9000, 300));
}

TEST_F(GeneratedText, CompilesTriangularSystems) {
  for (const compute_dtype dtype : {kF32, compute_dtype{COMPUTE_DTYPE_COMPLEX128}}) {
    SCOPED_TRACE(dtype_name(dtype));
    for (const int64_t rows : {5, 20, 128}) {
      TestOp op("triangular_solve");
      op.tensor(dtype, {3, rows, rows}).tensor(dtype, {3, rows, 40}).output(dtype, {3, rows, 40});
      op.integers("upper", {rows == 20}).integers("unit_diagonal", {rows == 128});
      expect_compiles(op);
    }
  }
}

TEST(SourceGenerator, SelectionsOfAllSizesMakeAHandfulOfKernels) {
  std::set<uint64_t> keys;
  for (int64_t n = 2; n < 3000; ++n) {
    TestOp op("nonzero");
    op.tensor(kF32, {n, 3000 - n}).output(COMPUTE_DTYPE_INT64, {2, n * (3000 - n)}).output(COMPUTE_DTYPE_INT64, {});
    for (const Launch& launch : plan_launches(op.view(), gpu()).launches) keys.insert(launch.key.low);
  }
  EXPECT_LE(keys.size(), 4u);
}

// Operands of small elements whose loops reach less than 2^31 bytes one by one, and more together: in the nest of
// `outer` steps, and along an axis or in a matrix. All are too large to run.
struct FarOp {
  static std::deque<FarOp> all(int64_t outer) {
    constexpr compute_dtype kI8 = COMPUTE_DTYPE_INT8, kF16 = COMPUTE_DTYPE_FLOAT16, kI64 = COMPUTE_DTYPE_INT64;
    const int64_t lines = 9, terms = 2683000, step = 100, half_step = 50;
    std::deque<FarOp> ops;
    const auto add = [&](const char* name) -> TestOp& { return ops.emplace_back(name).op; };
    const auto add_along = [&](const char* name) -> TestOp& {
      return add(name).tensor(kI8, {lines, terms}, {outer, step}).integers("axis", {1});
    };
    const std::vector<int64_t> far = {lines, 10 * terms}, far_strides = {outer, 10};
    add("gather").tensor(kI8, far, far_strides).tensor(kI64, {lines, 2}).output(kI8, {lines, 2}).integers("axis", {1});
    add("scatter").tensor(kI64, {lines, 2}).tensor(kI8, {lines, 2}).output(kI8, far, far_strides);
    ops.back().op.text("reduction", "set").integers("axis", {1});
    add_along("scan").output(kI8, {lines, terms}).text("kind", "max").dtype("accumulator", kI8);
    add_along("sort").output(kI8, {lines, terms}).text("outputs", "values");
    add("segmented_reduce").tensor(kI8, {terms, lines}, {step, outer}).tensor(kI64, {4}).output(kI8, {3, lines});
    ops.back().op.text("kind", "max").dtype("accumulator", kI8);
    add("take_grad")
        .tensor(kF16, {terms, lines}, {half_step, outer / 2})
        .tensor(kI64, {terms})
        .output(kF16, {7, lines});
    ops.back().op.integers("size", {7}).integers("deterministic", {1});
    add("contraction").tensor(kI8, {lines, 30, 30}, {outer, 8000000, 1000});
    ops.back().op.tensor(kI8, {lines, 30, 2}).output(kI8, {lines, 30, 2});
    return ops;
  }
  explicit FarOp(const char* name) : op(name), name(name) {}
  TestOp op;
  const char* name;
};

TEST(SourceGenerator, OffsetsOfAllLoopsTogetherDecideTheirWidth) {
  constexpr int64_t kFar = 268300000;
  for (const int64_t outer : {kFar / 2, kFar}) {
    std::deque<FarOp> ops = FarOp::all(outer);
    for (FarOp& far : ops) {
      SCOPED_TRACE(far.name);
      const Op op = far.op.view();
      ASSERT_FALSE(refuse_op(op, gpu()));
      // The one that reads what reaches far.
      const Launch launch = plan_launches(op, gpu()).launches.back();
      const bool is_wide = kernel_source(op, gpu(), launch).text.find("typedef i64 ix;") != std::string::npos;
      EXPECT_EQ(is_wide, outer == kFar);
    }
  }
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
}  // namespace compute::common::generated
