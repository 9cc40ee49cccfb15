// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/products/matrix_units.hpp"

#include <algorithm>

namespace compute::common {
namespace {

#include "plugins/common/source/products/matrix_units.inc"

// Nanoseconds of a multiprocessor of compute capability 9.0, the only one with these units, at 1.8 GHz. The devices of
// this family differ in how many multiprocessors they have, which choose_unit_tiles is told, and in their clocks, which
// move all times but the launch of a kernel.
constexpr UnitTile kUnitTiles[] = {
    {128, 128, 1500, 5000}, {128, 64, 1040, 3200}, {128, 32, 700, 2500},
    {64, 256, 1720, 5000},  {64, 128, 1120, 3200}, {64, 64, 630, 2000},
};

constexpr int kGroup = 256;
constexpr int kQuads = kUnitDepth / 4;
constexpr int kMostLocalBytes = 208 << 10;

// Of local memory for a step.
int stage_elements(const UnitTile& tile) { return kQuads * (unit_pitch(tile.m) + 2 * unit_pitch(tile.n)); }
int stages_of(const UnitTile& tile) { return 3 * stage_elements(tile) * 4 <= kMostLocalBytes ? 3 : 2; }

struct SideText {
  std::string first, fetch, store;
};

SideText side_text(const UnitSide& side, const char* name, int extent, int at, bool has_parts, const UnitTile& tile) {
  const bool one = side.loads == UnitLoads::kAlongDepth, quads = side.loads == UnitLoads::kQuadsAlongDepth;
  const int count = extent / 8 / (one ? 1 : 4);
  const int skip_d = std::max(kGroup / extent, 1);  // words, along the side
  SideText text;
  text.first = one     ? cat("const int ", name, "_t = id / 32, ", name, "_d = id % 32;\n")
               : quads ? cat("const int ", name, "_t = id / 8, ", name, "_d = id % 8 * 4;\n")
                       : cat("const int ", name, "_t = id % ", extent, ", ", name, "_d = id / ", extent, " * 4;\n");
  std::vector<Value> fetch = {{"count", count}, {"one", one},       {"quads", quads}, {"along_side", !one && !quads},
                              {"side", name},   {"load", side.load}};
  if (!one && !quads) fetch.emplace_back("skip", skip_d * 4);
  text.fetch = fill(kUnitFetch, fetch);
  const int low = kQuads * unit_pitch(extent);
  const std::string store_low =
      !has_parts ? std::string()
      : one      ? cat("place[", low, "] = low[0];\n")
                 : cat("*(float4*)(place + ", low, ") = make_float4(low[0], low[1], low[2], low[3]);\n");
  text.store = fill(kUnitStore, {{"stage", stage_elements(tile)},
                                 {"at", at},
                                 {"side", name},
                                 {"pitch", unit_pitch(extent)},
                                 {"count", count},
                                 {"values", one ? 1 : 4},
                                 {"skip", one     ? 8 * 4
                                          : quads ? 32 * 4
                                                  : skip_d * unit_pitch(extent)},
                                 {"one", one},
                                 {"has_parts", has_parts},
                                 {"store_low", store_low}});
  return text;
}

}  // namespace

std::string UnitTile::row_of_i() const {
  return cat(m == 128 ? "id / 128 * 64 + " : "", "id / 32 % 4 * 16 + id / 4 % 8 + i * 8");
}
std::string UnitTile::column_of_j() const {
  return cat(m == 128 ? "" : cat("id / 128 * ", width(), " + "), "j / 2 * 8 + id % 4 * 2 + j % 2");
}
int64_t UnitTile::local_bytes() const { return int64_t{stages_of(*this)} * stage_elements(*this) * 4; }

UnitTiles choose_unit_tiles(int64_t batch, int64_t rows, int64_t columns, int64_t depth, int32_t compute_units) {
  constexpr double kOfJoin = 4000;   // to launch the kernel that adds up parts
  constexpr double kOfPart = 0.003;  // to store and to add up a result of one part
  constexpr int64_t kMostParts = 256, kLeastSteps = 4;
  const int64_t units = std::max(compute_units, 1), results = batch * rows * columns;
  const int64_t most_parts = std::clamp<int64_t>(
      std::min(depth / (kLeastSteps * kUnitDepth), INT32_MAX / 8 / std::max<int64_t>(results, 1)), 1, kMostParts);
  UnitTiles best;
  double best_time = 0;
  for (const UnitTile& tile : kUnitTiles) {
    for (const bool is_swapped : {false, true}) {
      if (is_swapped && tile.m <= tile.n) continue;
      UnitTiles tiles{tile, is_swapped};
      const int64_t count = batch * divide_up(rows, tiles.rows()) * divide_up(columns, tiles.columns());
      for (int64_t turns = 0; turns <= 4; ++turns) {  // of all compute units
        tiles.parts = std::clamp<int64_t>(turns * units / count, 1, most_parts);
        const int64_t steps = divide_up(divide_up(depth, tiles.parts), kUnitDepth);
        tiles.part_depth = steps * kUnitDepth;
        tiles.parts = divide_up(depth, tiles.part_depth);
        double time = static_cast<double>(divide_up(count * tiles.parts, units)) *
                      (static_cast<double>(steps) * tile.of_step + tile.of_tile);
        if (tiles.parts > 1) time += kOfJoin + kOfPart * static_cast<double>(results * tiles.parts);
        if (best_time != 0 && time >= best_time) continue;
        best = tiles;
        best_time = time;
      }
    }
  }
  return best;
}

std::string unit_multiply_text(const UnitMultiply& given) {
  const int64_t registers = given.width / 2, left = given.is_of_registers ? 4 : 1;
  std::string names, operands, left_names, left_operands;
  for (int64_t i = 0; i < registers; ++i) {
    names += cat(i == 0 ? "" : ", ", "%", i);
    operands += cat(i == 0 ? "" : ", ", "\"+f\"(c[", i, "])");
  }
  for (int64_t i = 0; i < left; ++i) {
    left_names += cat(i == 0 ? "" : ", ", "%", registers + i);
    left_operands += given.is_of_registers ? cat(i == 0 ? "" : ", ", "\"r\"(a[", i, "])") : "\"l\"(a)";
  }
  return fill(kUnitMultiply, {{"name", given.name},
                              {"left_type", given.is_of_registers ? "const u32*" : "u64"},
                              {"types", given.types},
                              {"width", given.width},
                              {"registers", names},
                              {"operands", operands},
                              {"left", given.is_of_registers ? cat("{", left_names, "}") : left_names},
                              {"left_operands", left_operands},
                              {"orders", given.orders},
                              {"b_number", registers + left},
                              {"adds_number", registers + left + 1}});
}

std::string unit_functions(std::initializer_list<int> widths) {
  std::string out(kUnitFunctions);
  for (const int width : widths) out += unit_multiply_text({cat("tile_", width), width, "k8.f32.tf32.tf32"});
  return out;
}

std::string unit_text(const UnitLoop& loop, KernelBuilder& builder) {
  const UnitTile& tile = loop.tile;
  const int registers = tile.width() / 2, right_at = kQuads * unit_pitch(tile.m);
  builder.globals += unit_functions({tile.width()});
  builder.globals += kUnitBarriers;
  const SideText left = side_text(loop.left, "left", tile.m, 0, false, tile);
  const SideText right = side_text(loop.right, "right", tile.n, right_at, true, tile);
  return fill(kUnitLoop, {{"stages", stages_of(tile)},
                          {"stage", stage_elements(tile)},
                          {"left_first", left.first},
                          {"right_first", right.first},
                          {"left_elements", tile.m / 8},
                          {"right_elements", tile.n / 8},
                          {"item_columns", tile.item_columns()},
                          {"row_of_0", cat(tile.m == 128 ? "id / 128 * 64 + " : "", "id / 32 % 4 * 16 + id / 4 % 8")},
                          {"half_column", tile.m == 128 ? "0" : "id / 128"},
                          {"left_pitch", unit_pitch(tile.m)},
                          {"right_pitch", unit_pitch(tile.n)},
                          {"right_at", right_at},
                          {"width", tile.width()},
                          {"begin", loop.begin},
                          {"fetch", left.fetch + right.fetch},
                          {"store", left.store + right.store},
                          {"registers_count", registers},
                          {"depth", kUnitDepth},
                          {"right_low", kQuads * unit_pitch(tile.n)},
                          {"each_step", loop.each_step},
                          {"row_of_i", tile.row_of_i()},
                          {"column_of_j", tile.column_of_j()}});
}

}  // namespace compute::common
