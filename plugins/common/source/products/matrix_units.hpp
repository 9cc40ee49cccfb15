// SPDX-License-Identifier: Apache-2.0
// Tiles of products of float32 by units that multiply TF32, which is float32 with 11 bits of precision: wgmma of
// compute capability 9.0, in CUDA C.
//
// A factor is the sum of two TF32 numbers, up to 2^-23 of it: high is the factor rounded to nearest, low is the rest. A
// product is low * high + high * low + high * high, up to 2^-22 of it. The units add kUnitDepth terms at a time from
// zero, and these sums are added in float32, so that their rounding, which is toward zero, does not add up.
//
// A factor that is not finite makes a sum that is not finite, but not always the right one. A factor below
// COMPUTE_LEAST_FACTOR loses bits of its low part. A group that meets either computes its tile again, with fma.
#pragma once

#include <initializer_list>
#include <string>

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

/// Terms of a step. With far fewer in all, the error of a product, 8 * 2^-24 of it, exceeds the bound of the sum.
inline constexpr int kUnitDepth = 32;

/// Functions and macros for tiles of TF32: compute_size_of(x); compute_matrix(address, stride), which describes the
/// right side in local memory; compute_multiply_tile_<width>(c, a, b, adds) for each of `widths`; and what stands
/// around products, also of other types.
std::string unit_functions(std::initializer_list<int> widths);

/// The function compute_multiply_<name>(c, a, b, adds) for `width` columns.
struct UnitMultiply {
  std::string_view name;
  int64_t width = 0;
  std::string_view types;       // an instruction's terms and dtypes, as its name has them: "k8.f32.tf32.tf32"
  bool is_of_registers = true;  // the left side
  // Of each side in local memory, for halves: ", 0" if words lie along the depth, else ", 1".
  std::string_view orders = {};
};
std::string unit_multiply_text(const UnitMultiply& given);

/// Elements of local memory from four terms to the next four of a side: one word more than the side, so that neighbours
/// along the depth are in different banks.
template <class Integer>
constexpr Integer unit_pitch(Integer side) {
  return (side + 1) * 4;
}

/// A group of 256 work items computes m x n results, in two halves of 64 rows or of n / 2 columns. The layout of an
/// item's results is that of the instruction.
struct UnitTile {
  int m = 128, n = 128;
  // The times of a multiprocessor, of which only ratios matter: of a step, and of the start and end of a tile.
  double of_step = 0, of_tile = 0;

  int width() const { return m == 128 ? n : n / 2; }  // columns of a half
  int item_columns() const { return width() / 4; }    // an item has two rows
  std::string row_of_i() const;
  std::string column_of_j() const;
  int64_t local_bytes() const;  // of Launch::local_bytes
};

/// Tiles, and into how many parts the depth is divided, each of `part_depth` terms but for the last.
struct UnitTiles {
  UnitTile tile;
  bool is_swapped = false;  // the tile's left side, which has m elements, are columns of the product
  int64_t parts = 1, part_depth = 0;

  int rows() const { return is_swapped ? tile.n : tile.m; }
  int columns() const { return is_swapped ? tile.m : tile.n; }
};
UnitTiles choose_unit_tiles(int64_t batch, int64_t rows, int64_t columns, int64_t depth, int32_t compute_units);

/// How the elements of a side, `t` along the tile and `d` along the depth, go from memory to local memory.
enum class UnitLoads : uint8_t {
  kAlongDepth,       // neighbours along the depth by neighbouring items
  kQuadsAlongDepth,  // the same, four at once
  kAlongSide         // neighbours along the tile by neighbouring items
};

/// `load` assigns to `loaded` the element t, d of the step `next`; the four from d on, a float4, if they are loaded at
/// once. Without an assignment it is zero.
struct UnitSide {
  UnitLoads loads = UnitLoads::kAlongDepth;
  std::string load;
};

struct UnitLoop {
  UnitTile tile;
  UnitSide left, right;
  std::string begin;      // statements before the first step, with a barrier after them
  std::string each_step;  // statements in each step, whose results are there from `step` + 3 on
};

/// Declares `sum[2][item_columns]` and computes the sums of the terms from `depth_begin` to `depth_end`, at least one.
/// `id` is the item's number.
std::string unit_text(const UnitLoop& loop, KernelBuilder& builder);

}  // namespace compute::common
