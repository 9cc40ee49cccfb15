// SPDX-License-Identifier: Apache-2.0
// Generated kernels of products, convolutions and attention: which form they take, and that their texts compile.
#include <map>

#include "plugins/common/source/products/matrix_units.hpp"
#include "plugins/common/source/products/ops.hpp"
#include "tests/unit/generated_kernels.hpp"

namespace compute::common::generated {
namespace {

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
  const std::string text = kernel_source(view, gpu(), plan_launches(view, gpu()).launches[0]).text;
  const auto count = [&](std::string_view words) {
    int found = 0;
    for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(" = product_u32("), 1);
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

// Tiles have little empty space, whichever side of the product is short.
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

// Whole and partitioned devices of the family: however many multiprocessors there are, large products are not divided,
// and parts cover the depth and leave few of the multiprocessors without work.
TEST(ProductsOfTileUnits, SuitAnyNumberOfMultiprocessors) {
  for (const int32_t units : {1, 16, 32, 60, 78, 114, 132, 144, 500}) {
    const UnitTiles large = choose_unit_tiles(1, 16384, 16384, 4096, units);
    EXPECT_EQ(large.rows(), 128) << units;
    EXPECT_EQ(large.columns(), 128) << units;
    EXPECT_EQ(large.parts, 1) << units;
    for (const auto& [rows, columns, depth] :
         {std::array<int64_t, 3>{64, 64, 100'000}, {384, 384, 4096}, {1000, 30, 5000}, {30, 1000, 33}, {1, 1, 1}}) {
      const UnitTiles tiles = choose_unit_tiles(1, rows, columns, depth, units);
      const int64_t count = divide_up(rows, tiles.rows()) * divide_up(columns, tiles.columns());
      EXPECT_GE(tiles.parts * tiles.part_depth, depth);
      EXPECT_LT((tiles.parts - 1) * tiles.part_depth, depth);
      EXPECT_TRUE(units > 1 || tiles.parts == 1);
      EXPECT_GE(4 * count * tiles.parts, depth == 100'000 ? 3 * std::min<int64_t>(units, 200) : 1) << units;
    }
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
    EXPECT_EQ(plan_launches(op.view(), units).launches.front().local_bytes > 0, channels >= 8) << channels;
  }
}

// Of devices whose vendor has no library of products: both ways in which a side may lie, with every tile, and in parts.
TEST_F(GeneratedText, CompilesProductsOfWarps) {
  Dialect dialect = gpu();
  dialect.has_matrix_units = dialect.has_float64_units = true;
  dialect.has_vendor_products = false;
  for (const compute_dtype dtype : {COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16, COMPUTE_DTYPE_FLOAT64}) {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{2048, 2048, 256}, {1536, 1536, 256}, {200, 104, 80}, {64, 64, 4096}}) {
      for (const bool left_along_depth : {false, true}) {
        for (const bool right_along_depth : {false, true}) {
          TestOp op("contraction");
          op.tensor(dtype, {m, k}, left_along_depth ? std::vector<int64_t>{k, 1} : std::vector<int64_t>{1, m});
          op.tensor(dtype, {k, n}, right_along_depth ? std::vector<int64_t>{1, k} : std::vector<int64_t>{n, 1});
          op.output(dtype, {m, n});
          const LaunchPlan plan = plan_launches(op.view(), dialect);
          EXPECT_EQ(plan.launches.size(), k == 4096 ? 2U : 1U);
          const KernelSource source = kernel_source(op.view(), dialect, plan.launches[0]);
          EXPECT_EQ(source.text.find('$'), std::string::npos) << source.text;
          EXPECT_NE(source.text.find("mma.sync"), std::string::npos);
          if (!kCompiles || !nvrtc.is_there()) continue;
          EXPECT_EQ(nvrtc.errors_of(source), "") << source.text;
        }
      }
    }
  }
}

// Few rows or columns of operands that lie along the depth: each dtype, batches, and what may follow the product.
TEST_F(GeneratedText, CompilesProductsOfFewLines) {
  const auto is_taken = [](TestOp& op) {
    const LaunchPlan plan = plan_launches(op.view(), gpu());
    return has_few_lines(op.view(), gpu()) && plan.launches.at(0).name == "compute_contraction";
  };
  for (const compute_dtype dtype :
       std::array<compute_dtype, 4>{kF32, COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16, COMPUTE_DTYPE_FLOAT64}) {
    for (const int64_t lines : {1, 2, 3, 4}) {
      TestOp rows("contraction"), columns("contraction"), batch("contraction");
      rows.tensor(dtype, {lines, 512}).tensor(dtype, {512, 300}, {1, 512}).output(dtype, {lines, 300});
      columns.tensor(dtype, {300, 2048}).tensor(dtype, {2048, lines}, {1, 2048}).output(dtype, {300, lines});
      batch.tensor(dtype, {6, lines, 128}).tensor(dtype, {6, 128, 77}, {0, 1, 128}).output(dtype, {6, lines, 77});
      for (TestOp* op : {&rows, &columns, &batch}) {
        EXPECT_EQ(is_taken(*op), !is_half(dtype) || lines <= 2) << dtype << lines;
        expect_compiles(*op);
      }
    }
  }
  // More lines of float32, by small and by large matrices; in batches they are the library's.
  for (const int64_t lines : {5, 8, 9, 16}) {
    for (const int64_t many : {300, 5000}) {
      TestOp rows("contraction"), columns("contraction"), batch("contraction");
      rows.tensor(kF32, {lines, 512}).tensor(kF32, {512, many}, {1, 512}).output(kF32, {lines, many});
      columns.tensor(kF32, {many, 2048}).tensor(kF32, {2048, lines}, {1, 2048}).output(kF32, {many, lines});
      batch.tensor(kF32, {6, lines, 128}).tensor(kF32, {6, 128, many}, {0, 1, 128}).output(kF32, {6, lines, many});
      for (TestOp* op : {&rows, &columns}) {
        EXPECT_TRUE(is_taken(*op)) << lines << " " << many;
        expect_compiles(*op);
      }
      EXPECT_FALSE(has_few_lines(batch.view(), gpu()));
    }
  }
  TestOp biased("contraction");
  biased.tensor(kF32, {4, 512}).tensor(kF32, {512, 300}, {1, 512}).absent().tensor(kF32, {4, 300}, {0, 1});
  biased.output(kF32, {4, 300});
  EXPECT_TRUE(is_taken(biased));
  expect_compiles(biased);
  // More lines, a matrix that lies along its columns, a depth that has no whole words, few terms.
  const auto other = [](int64_t m, int64_t k, std::vector<int64_t> strides) {
    TestOp op("contraction");
    op.tensor(kF32, {m, k}).tensor(kF32, {k, 512}, std::move(strides)).output(kF32, {m, 512});
    return has_few_lines(op.view(), gpu());
  };
  EXPECT_TRUE(other(4, 512, {1, 512}));
  EXPECT_TRUE(other(16, 512, {1, 512}));
  EXPECT_FALSE(other(17, 512, {1, 512}));
  EXPECT_FALSE(other(4, 512, {512, 1}));
  EXPECT_FALSE(other(4, 510, {1, 510}));
  EXPECT_FALSE(other(4, 64, {1, 64}));
  // With asynchronous copies and matrix units, in one piece of local memory or in arrays.
  for (const bool has_tile_units : {false, true}) {
    for (const compute_dtype dtype :
         std::array<compute_dtype, 3>{kF32, COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16}) {
      for (const int64_t lines : {3, 5, 8, 16}) {
        if (dtype == kF32 && lines < 5) continue;
        for (const int64_t many : {int64_t{300}, lines <= 8 ? int64_t{6000} : int64_t{4000}}) {
          TestOp rows("contraction"), columns("contraction");
          rows.tensor(dtype, {lines, 520}).tensor(dtype, {520, many}, {1, 520}).output(dtype, {lines, many});
          columns.tensor(dtype, {many, 2048}).tensor(dtype, {2048, lines}, {1, 2048}).output(dtype, {many, lines});
          for (TestOp* op : {&rows, &columns}) {
            for (Dialect dialect : {gpu(), opencl_gpu()}) {
              dialect.has_matrix_units = true;
              dialect.has_tile_units = has_tile_units && dialect.has_warps;
              const LaunchPlan plan = plan_launches(op->view(), dialect);
              ASSERT_EQ(plan.launches.size(), 1U);
              const KernelSource source = kernel_source(op->view(), dialect, plan.launches[0]);
              EXPECT_EQ(source.text.find('$'), std::string::npos) << source.text;
              EXPECT_NE(source.text.find(dtype == kF32 ? "cp.async" : "mma.sync"), std::string::npos) << many;
              if (!kCompiles || !dialect.has_warps || !nvrtc.is_there()) continue;
              EXPECT_EQ(nvrtc.errors_of(source), "") << source.text;
            }
          }
        }
      }
    }
  }
  // In OpenCL C the sums pass through local memory in parts that fit; devices with small groups.
  Dialect opencl = opencl_gpu();
  opencl.local_memory_bytes = 4 << 10;
  for (const auto& [lines, at_once] : std::map<int64_t, int>{{1, 1}, {5, 2}, {9, 4}, {16, 4}}) {
    TestOp few("contraction");
    few.tensor(kF32, {lines, 512}).tensor(kF32, {512, 5000}, {1, 512}).output(kF32, {lines, 5000});
    EXPECT_TRUE(has_few_lines(few.view(), opencl)) << lines;
    const LaunchPlan plan = plan_launches(few.view(), opencl);
    const std::string text = kernel_source(few.view(), opencl, plan.launches.at(0)).text;
    EXPECT_NE(text.find("sums[" + std::to_string(at_once) + "][256]"), std::string::npos) << text;
    Dialect small = opencl;
    small.group_size = 16;
    EXPECT_FALSE(has_few_lines(few.view(), small));
  }
}

// Quantised weights: each width, group and dtype, with and without offsets, of matrices and rows of several sizes.
TEST_F(GeneratedText, CompilesProductsWithQuantisedWeights) {
  const auto product = [](compute_dtype dtype, compute_dtype scales, int64_t bits, int64_t group, int64_t lines,
                          int64_t n, int64_t k, bool has_offsets) {
    TestOp op("quantized_matmul");
    const int64_t groups = (k + group - 1) / group;
    op.tensor(dtype, {lines, k}).tensor(COMPUTE_DTYPE_UINT8, {n, (k + 31) / 32 * 4 * bits}).tensor(scales, {n, groups});
    has_offsets ? op.tensor(scales, {n, groups}) : op.absent();
    op.output(dtype, {lines, n}).integers("bits", {bits}).integers("group_size", {group});
    return op;
  };
  constexpr compute_dtype kF16 = COMPUTE_DTYPE_FLOAT16, kBf16 = COMPUTE_DTYPE_BFLOAT16;
  for (const compute_dtype dtype : {kF32, kF16, kBf16}) {
    for (const int64_t bits : {4, 8}) {
      TestOp one = product(dtype, kF16, bits, 32, 1, 2048, 2048, false),
             few = product(dtype, kF32, bits, 16, 3, 600, 576, true);
      expect_compiles(one);
      expect_compiles(few);
    }
  }
  TestOp wide = product(kF32, kBf16, 4, 128, 4, 60000, 4096, true),
         narrow = product(kF32, kF32, 8, 64, 1, 40, 128, false);
  expect_compiles(wide);
  expect_compiles(narrow);
  // More lines, and lines that end within a block, which cores take.
  TestOp many = product(kF32, kF32, 4, 32, 5, 64, 64, false), odd = product(kF32, kF32, 4, 32, 2, 64, 100, false);
  for (TestOp* op : {&many, &odd}) EXPECT_TRUE(refuse_op(op->view(), gpu()));
  EXPECT_FALSE(refuse_op(odd.view(), cpu_cores()));
}

// Many small matrices: sides of 2 to 16, in each layout and dtype, with a right side of their own or a common one.
TEST_F(GeneratedText, CompilesProductsOfSmallMatrices) {
  const auto is_taken = [](TestOp& op) {
    return is_of_small_matrices(op.view(), gpu()) && plan_launches(op.view(), gpu()).launches.size() == 1;
  };
  for (const compute_dtype dtype : std::array<compute_dtype, 5>{kF32, COMPUTE_DTYPE_BFLOAT16, COMPUTE_DTYPE_FLOAT64,
                                                                COMPUTE_DTYPE_COMPLEX64, COMPUTE_DTYPE_INT32}) {
    for (const int64_t side : {2, 8, 13, 16}) {
      const int64_t area = side * side;
      TestOp own("contraction"), common("contraction"), turned("contraction");
      own.tensor(dtype, {9000, side, side}).tensor(dtype, {9000, side, side}).output(dtype, {9000, side, side});
      common.tensor(dtype, {300, 30, side, side}).tensor(dtype, {300, 30, side, side}, {0, 0, side, 1});
      common.output(dtype, {300, 30, side, side});
      turned.tensor(dtype, {9000, side, side}, {area, 1, side}).tensor(dtype, {9000, side, side}, {area, 1, side});
      turned.output(dtype, {9000, side, side}, {area, 1, side});
      for (TestOp* op : {&own, &common, &turned}) {
        EXPECT_TRUE(is_taken(*op)) << dtype << side;
        expect_compiles(*op);
      }
    }
  }
  const auto other = [](int64_t count, int64_t m, int64_t k, int64_t n) {
    TestOp op("contraction");
    op.tensor(kF32, {count, m, k}).tensor(kF32, {count, k, n}).output(kF32, {count, m, n});
    return is_of_small_matrices(op.view(), gpu());
  };
  EXPECT_TRUE(other(1000, 16, 16, 16));
  EXPECT_TRUE(other(100, 1000, 5, 7));
  EXPECT_FALSE(other(1000, 16, 17, 16));
  EXPECT_FALSE(other(1000, 16, 16, 17));
  EXPECT_FALSE(other(10, 8, 8, 8));
  EXPECT_TRUE(other(1, 100'000, 16, 16));
  EXPECT_FALSE(other(1, 500, 16, 16));
  TestOp small("contraction");  // 16 KiB of local memory
  small.tensor(COMPUTE_DTYPE_FLOAT64, {9000, 8, 8}).tensor(COMPUTE_DTYPE_FLOAT64, {9000, 8, 8});
  small.output(COMPUTE_DTYPE_FLOAT64, {9000, 8, 8});
  Dialect narrow = gpu();
  narrow.local_memory_bytes = 16 << 10;
  EXPECT_TRUE(is_of_small_matrices(small.view(), narrow));
  narrow.local_memory_bytes = 15 << 10;
  EXPECT_FALSE(is_of_small_matrices(small.view(), narrow));
  EXPECT_FALSE(other(100'000, 1, 8, 8));
}

// The result comes after absent inputs.
TEST(VectorProducts, AreReductions) {
  for (const bool is_row : {false, true}) {
    TestOp op("contraction");
    op.tensor(kF32, {is_row ? 1 : 300, 202}).tensor(kF32, {202, is_row ? 300 : 1}).absent().absent();
    op.output(kF32, {is_row ? 1 : 300, is_row ? 300 : 1});
    Dialect dialect = gpu();
    dialect.counters = 1024;
    const LaunchPlan plan = plan_launches(op.view(), dialect);
    ASSERT_EQ(plan.launches.size(), 1U);
    const Launch& launch = plan.launches[0];
    EXPECT_NE(launch.name.find("reduce"), std::string::npos) << launch.name;
    ASSERT_GE(launch.pointers.size(), 3U);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(launch.pointers[i].index, i < 2 ? static_cast<int32_t>(i) : 4);
  }
  // A bias is added by the kernel of contraction.
  TestOp op("contraction");
  op.tensor(kF32, {300, 200}).tensor(kF32, {200, 1}).absent().tensor(kF32, {300, 1}, {0, 1}).output(kF32, {300, 1});
  EXPECT_EQ(plan_launches(op.view(), gpu()).launches[0].name, "compute_contraction");
}

// Few tiles of many terms: parts of them, and a kernel that adds them up.
TEST(Products, DivideTheirDepthWhereTilesAreFew) {
  const auto launches = [](compute_dtype dtype, int64_t side, int64_t depth) {
    TestOp op("contraction");
    op.tensor(dtype, {side, depth}).tensor(dtype, {depth, side}).output(dtype, {side, side});
    return plan_launches(op.view(), gpu()).launches.size();
  };
  EXPECT_EQ(launches(kF32, 64, 2048), 2U);
  EXPECT_EQ(launches(COMPUTE_DTYPE_INT32, 64, 2048), 2U);
  EXPECT_EQ(launches(COMPUTE_DTYPE_COMPLEX64, 64, 2048), 1U);
  EXPECT_EQ(launches(kF32, 64, 200), 1U);
  EXPECT_EQ(launches(kF32, 2048, 2048), 1U);
}

// Descriptions of other devices: each has a form for every product and convolution that fits its groups and its local
// memory, and divides large ones among most of its units.
TEST(Products, SuitDevicesOfAllSizes) {
  for (const bool is_host : {false, true}) {
    for (const int32_t units : {1, 8, 20, 64, 304}) {
      for (const int32_t group : {64, 128, 256}) {
        for (const int64_t local_bytes : {16 << 10, 32 << 10, 64 << 10}) {
          Dialect dialect = is_host ? opencl::dialect_of_cores() : opencl::dialect();
          dialect.compute_units = units;
          dialect.group_size = group;
          dialect.local_memory_bytes = local_bytes;
          const auto expect_fits = [&](TestOp& op, int64_t least_groups) {
            const Op view = op.view();
            ASSERT_FALSE(refuse_op(view, dialect));
            const Launch launch = plan_launches(view, dialect).launches[0];
            EXPECT_LE(launch.group_size, group);
            EXPECT_GE(4 * launch.groups, 3 * least_groups)
                << units << " units, groups of " << group << ", " << local_bytes;
          };
          for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1'000'000},
                                        {4096, 1, 4096},
                                        {1, 4096, 4096},
                                        {64, 64, 4096},
                                        {4096, 4096, 64},
                                        {2048, 2048, 2048}}) {
            TestOp op("contraction");
            op.tensor(kF32, {m, k}).tensor(kF32, {k, n}).output(kF32, {m, n});
            expect_fits(op, m * n >= 2048 * 2048 ? units : 1);
          }
          for (const char* name : {"convolution", "convolution_grad_input", "convolution_grad_weight"}) {
            TestOp op(name);
            const std::vector<int64_t> image = {8, 64, 56, 56}, weight = {64, 64, 3, 3};
            const bool is_weight = std::string_view(name) == "convolution_grad_weight";
            op.tensor(kF32, image).tensor(kF32, is_weight ? image : weight).output(kF32, is_weight ? weight : image);
            op.integers("strides", {1, 1}).integers("dilations", {1, 1}).integers("groups", {1});
            op.integers("pads_begin", {1, 1}).integers("pads_end", {1, 1});
            expect_fits(op, units);
          }
        }
      }
    }
  }
}

// On a CPU core few rows of few columns do without blocks.
TEST(Convolutions, OnCpuCoresAreBlocks) {
  Dialect cores = opencl::dialect_of_cores();
  cores.compute_units = 2;
  const auto group_size = [&](int64_t channels, int64_t groups) {
    TestOp op("convolution");
    op.tensor(kF32, {2, channels, 30, 30}).tensor(kF32, {channels, channels / groups, 3, 3});
    op.output(kF32, {2, channels, 30, 30}).integers("strides", {1, 1}).integers("dilations", {1, 1});
    op.integers("groups", {groups}).integers("pads_begin", {1, 1}).integers("pads_end", {1, 1});
    return plan_launches(op.view(), cores).launches[0].group_size;
  };
  EXPECT_EQ(group_size(64, 1), 1);
  EXPECT_EQ(group_size(8, 2), 1);
  EXPECT_EQ(group_size(8, 8), cores.group_size);
}

// If a multiprocessor has registers for two groups, a compiler option of OpenCL says so.
TEST(Products, OfLargeTilesStateTheirRegisters) {
  for (const int64_t side : {64, 4096}) {
    TestOp op("contraction");
    op.tensor(kF32, {side, 64}).tensor(kF32, {64, side}).output(kF32, {side, side});
    for (const Dialect& dialect : {gpu(), opencl_gpu()}) {
      const Op view = op.view();
      const KernelSource source = kernel_source(view, dialect, plan_launches(view, dialect).launches[0]);
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
    EXPECT_EQ(plan_launches(op.view(), units).launches.front().local_bytes > 0, side == 10000);
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
  const auto launches = [](TestOp op) { return plan_launches(op.view(), gpu()).launches.size(); };
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

TEST_F(GeneratedText, CompilesAttentionOfHalvesByTileUnits) {
  for (const int64_t features : {48, 64, 96, 128}) {
    for (const bool is_gradient : {false, true}) {
      SCOPED_TRACE(features);
      expect_attention_of_tile_units_compiles(
          is_gradient, features == 64 ? COMPUTE_DTYPE_FLOAT16 : COMPUTE_DTYPE_BFLOAT16, features);
    }
  }
}

// Each kernel of matrix units is followed by one for the rows that they do not suit.
TEST_F(GeneratedText, CompilesAttentionOfFloat32ByUnits) {
  for (const int64_t features : {32, 64, 96, 128}) {
    for (const bool is_gradient : {false, true}) {
      TestOp op = attention(is_gradient, kF32, 200, features, true);
      SCOPED_TRACE(features);
      expect_tile_units_compile(op, is_gradient ? 4 : 2);
    }
  }
}

// If rows are not whole words, or with a mask, items multiply.
TEST(Attention, OfFloat32TakesUnitsWhereRowsAreWords) {
  Dialect units = gpu();
  units.has_tile_units = true;
  const auto launches = [&](int64_t features, int64_t row, bool has_mask, double scale) {
    const std::vector<int64_t> shape = {1, 1, 128, features}, strides = {128 * row, 128 * row, row, 1};
    TestOp op("attention");
    for (int i = 0; i < 3; ++i) op.tensor(kF32, shape, strides);
    if (has_mask) op.tensor(kF32, {128, 128});
    op.output(kF32, shape, strides).output(kF32, {1, 1, 128}).integers("causal", {0}).reals("scale", {scale});
    return plan_launches(op.view(), units).launches.size();
  };
  EXPECT_EQ(launches(64, 64, false, 0.5), 2U);
  EXPECT_EQ(launches(64, 66, false, 0.5), 1U);
  EXPECT_EQ(launches(40, 40, false, 0.5), 1U);
  EXPECT_EQ(launches(160, 160, false, 0.5), 1U);
  EXPECT_EQ(launches(64, 64, true, 0.5), 1U);
  EXPECT_EQ(launches(64, 64, false, -0.5), 1U);
}

// attention of few queries of 4096 keys: 9 heads that share the keys of 3, or 8 those of 2.
TestOp few_queries(compute_dtype dtype, int64_t queries, int64_t features, compute_dtype mask = COMPUTE_DTYPE_NONE) {
  const int64_t heads = features == 64 ? 9 : 8, shared = features == 64 ? 3 : 2, keys = 4096;
  TestOp op("attention");
  op.tensor(dtype, {1, heads, queries, features}).tensor(dtype, {1, shared, keys, features});
  op.tensor(dtype, {1, shared, keys, features});
  if (mask != COMPUTE_DTYPE_NONE) op.tensor(mask, {keys});
  op.output(dtype, {1, heads, queries, features});
  op.output(is_half(dtype) ? kF32 : dtype, {1, heads, queries}).integers("causal", {0});
  return op;
}

TEST_F(GeneratedText, CompilesAttentionOfFewQueries) {
  for (const compute_dtype dtype : std::initializer_list<compute_dtype>{COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16,
                                                                        kF32, COMPUTE_DTYPE_FLOAT64}) {
    SCOPED_TRACE(dtype_name(dtype));
    TestOp op = few_queries(dtype, 5, 128, dtype);
    expect_few_queries_compile(op, {true});
  }
  for (const compute_dtype mask : std::initializer_list<compute_dtype>{COMPUTE_DTYPE_NONE, COMPUTE_DTYPE_BOOL}) {
    TestOp op = few_queries(kF32, 1, 64, mask);
    expect_few_queries_compile(op, {true, false});
  }
}

// The keys are divided until every unit has groups; every form keeps to its local memory.
TEST(Attention, OfFewQueriesFillsTheDevice) {
  for (const int32_t units : {1, 8, 132}) {
    for (const int64_t queries : {1, 4, 16}) {
      Dialect dialect = opencl::dialect();
      dialect.compute_units = units;
      TestOp op = few_queries(kF32, queries, 64);
      const Op view = op.view();
      if (queries == 16) {  // too many rows: products
        EXPECT_TRUE(refuse_op(view, dialect));
        continue;
      }
      const LaunchPlan plan = plan_launches(view, dialect);
      ASSERT_EQ(plan.launches.size(), 2U);
      EXPECT_GE(plan.launches[0].groups, std::min(units, 3 * 4096 / 256));
      EXPECT_EQ(plan.launches[1].groups, 9 * queries);
    }
  }
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

}  // namespace
}  // namespace compute::common::generated
