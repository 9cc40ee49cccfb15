// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/convolution/convolution_forms.hpp"

#include <algorithm>
#include <cstdlib>

#include "plugins/common/source/convolution/ops.hpp"

namespace compute::common::convolutions {
namespace {

constexpr int64_t kMostParts = 512;
constexpr int64_t kFew = 8;              // rows, columns or terms that are not worth a tile
constexpr int64_t kMostRowColumns = 32;  // sums of a work item
constexpr int64_t kMostTaps = 30;        // that have a bit of a mask
constexpr int64_t kMostSums = 64;        // of a work item that computes columns
constexpr int64_t kMostSteps = 512;      // of one channel that a text contains

// Of a CPU core:
constexpr int64_t kLeastBlockColumns = 4, kLeastBlockResults = 32;
constexpr int64_t kLeastBlockWork = 64;  // products of a column, worth gathering its terms for
constexpr int64_t kLeastItemRows = 8;
constexpr int kBlocksPerUnit = 4;  // for balance

// What a kernel of tiles keeps in local memory.
int64_t tile_bytes(const Op& op, const WindowProduct& p, const Dialect& dialect, const Tiles& tiles) {
  const int64_t word_size = is_wide(op, p, tiles.parts) ? 8 : 4, words = place_words(choose_taps(p));
  const int64_t value_size = dtype_size(computed_in(op.output(0).dtype));
  const int64_t terms = std::min(dialect.group_size, kMostTerms);
  return int64_t{2} * tiles.depth * (tiles.m + tiles.n + 8) * value_size + tiles.n * words * word_size +
         2 * terms * (words + 1) * word_size;
}

// How much of a compute unit's arithmetic the tiles keep busy, by the results of a work item.
double tile_rate(int results) {
  return results >= 64 ? 1 : results >= 32 ? 0.8 : results >= 16 ? 0.7 : results >= 8 ? 0.58 : 0.25;
}

// The time of the products with these tiles, in products of one compute unit.
double tile_time(const WindowProduct& p, const Dialect& dialect, const Tiles& tiles) {
  constexpr double kOfPart = 10;       // to store and to add up a result of one part, on all units
  constexpr double kOfJoin = 5 << 18;  // to launch the kernel that does so
  constexpr int64_t kOfTile = 60;      // terms, to begin and to end a tile
  constexpr double kOfOneGroup = 1.2;  // a unit with one group waits more
  const int64_t units = std::max(dialect.compute_units, 1);
  const int64_t per_unit = divide_up(p.groups * tiles.rows * tiles.columns * tiles.parts, units);
  double time = static_cast<double>(per_unit) * tiles.m * tiles.n * static_cast<double>(tiles.part_depth + kOfTile) /
                tile_rate(tiles.item_rows * tiles.item_columns);
  if (per_unit == 1) time *= kOfOneGroup;
  if (tiles.parts > 1) {
    const auto results = static_cast<double>(p.groups * p.rows * p.columns());
    time += kOfJoin + kOfPart * results * static_cast<double>(tiles.parts) / static_cast<double>(units);
  }
  return time;
}

// Tiles of matrix units, if these multiply.
std::optional<Tiles> choose_units(const Op& op, const WindowProduct& p, const Dialect& dialect) {
  constexpr int64_t kLeastShare = 4;  // of a tile, whose rest is empty
  if (!dialect.has_tile_units || dialect.group_size != 256 || op.output(0).dtype != COMPUTE_DTYPE_FLOAT32 ||
      p.depth_points() < kUnitDepth || choose_taps(p) == Taps::kNone || is_wide(op, p, 1))
    return std::nullopt;
  const UnitTiles units = choose_unit_tiles(p.groups, p.rows, p.columns(), p.depth_points(), dialect.compute_units);
  Tiles tiles{.m = units.rows(),
              .n = units.columns(),
              .depth = kUnitDepth,
              .item_rows = units.is_swapped ? units.tile.item_columns() : 2,
              .item_columns = units.is_swapped ? 2 : units.tile.item_columns(),
              .units = units,
              .rows = divide_up(p.rows, units.rows()),
              .columns = divide_up(p.columns(), units.columns()),
              .parts = units.parts,
              .part_depth = units.part_depth};
  if (tiles.rows * tiles.m * tiles.columns * tiles.n > kLeastShare * p.rows * p.columns()) return std::nullopt;
  return tiles;
}

// Nothing if the positions of one product lie between another's.
std::optional<Phases> join_phases(const std::vector<WindowProduct>& products) {
  Phases phases{products.front(), {}};
  WindowProduct& p = phases.product;
  std::array<int64_t, kMaxSpatial> last{};
  for (size_t i = 0; i < kMaxSpatial; ++i) {
    // The first tap of all has the position that is foremost against the step.
    const bool is_forward = p.depth_step[i] > 0;
    bool has_taps = false;
    for (const WindowProduct& one : products) {
      p.column[1 + i] = std::max(p.column[1 + i], one.column[1 + i]);
      if (one.depth[1 + i] == 0) continue;
      p.start[i] = !has_taps    ? one.start[i]
                   : is_forward ? std::min(p.start[i], one.start[i])
                                : std::max(p.start[i], one.start[i]);
      has_taps = true;
    }
  }
  for (const WindowProduct& one : products) {
    Phase phase{{}, {}, {}, one.a_offset, one.c_offset};
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      phase.taps[i] = one.depth[1 + i];
      phase.columns[i] = one.column[1 + i];
      if (phase.taps[i] == 0) continue;
      const int64_t move = one.start[i] - p.start[i];
      if (move % p.depth_step[i] != 0) return std::nullopt;
      phase.first[i] = move / p.depth_step[i];
      last[i] = std::max(last[i], phase.first[i] + phase.taps[i]);
    }
    phases.all.push_back(phase);
  }
  for (size_t i = 0; i < kMaxSpatial; ++i) p.depth[1 + i] = last[i];
  p.a_offset = p.c_offset = 0;
  return phases;
}

}  // namespace

Form choose_form(const WindowProduct& p, const Dialect& dialect) {
  const int64_t depth = p.depth_points(), columns = p.columns(), results = p.groups * p.rows * columns;
  if (dialect.is_host && columns >= kLeastBlockColumns && p.rows * columns >= kLeastBlockResults &&
      p.rows * depth >= kLeastBlockWork)
    return Form::kBlock;
  const bool tiles = !dialect.is_host && dialect.group_size >= 64 && dialect.group_size <= 256;
  if (tiles && std::min({p.rows, columns, depth}) >= kFew) return Form::kTiles;
  const bool few = results < static_cast<int64_t>(dialect.compute_units) * dialect.group_size;
  if (!few || depth < 4 * dialect.group_size) {
    const bool many = columns >= dialect.group_size && depth > 1;
    return !dialect.is_host && p.rows < kFew && many ? Form::kColumns : Form::kItem;
  }
  return !dialect.is_host && columns > 1 && columns <= kMostRowColumns ? Form::kRow : Form::kGroup;
}

bool is_wide(const Op& op, const WindowProduct& p, int64_t parts) {
  if (p.groups * p.rows * p.columns() * parts > INT32_MAX / 8 || p.depth_points() > INT32_MAX / 8) return true;
  const WindowOperands operands = window_operands(op);
  for (const int32_t i : {operands.a, operands.b, operands.c}) {
    const compute_plugin_tensor& tensor = op.tensor(i);
    int64_t span = 1;
    for (int32_t axis = 0; axis < tensor.rank; ++axis)
      span += std::llabs(tensor.strides[axis]) * (tensor.shape[axis] - 1);
    if (span * dtype_size(tensor.dtype) > INT32_MAX / 2) return true;
  }
  for (size_t i = 0; i < kMaxSpatial; ++i) {
    const int64_t greatest = std::llabs(p.start[i]) + std::llabs(p.depth_step[i]) * p.depth[1 + i] +
                             std::llabs(p.column_step[i]) * p.column[1 + i];
    if (greatest > INT32_MAX / 2) return true;
  }
  return false;
}

Taps choose_taps(const WindowProduct& p) {
  int64_t of_terms = 0, of_windows = 0;
  for (size_t i = 0; i < kMaxSpatial; ++i) {
    if (is_single(p, i)) continue;
    of_terms += p.depth[1 + i];
    of_windows += p.column[1 + i];
  }
  if (std::min(of_terms, of_windows) > kMostTaps) return Taps::kNone;
  return of_terms <= of_windows ? Taps::kOfTerms : Taps::kOfWindows;
}

Tiles choose_tiles(const Op& op, const WindowProduct& p, const Dialect& dialect) {
  if (const std::optional<Tiles> units = choose_units(op, p, dialect)) return *units;
  const int32_t value_size = dtype_size(computed_in(op.output(0).dtype));
  const int64_t most_bytes = std::min<int64_t>(dialect.local_memory_bytes, 48 << 10);
  const int64_t columns = p.columns(), depth = p.depth_points(), units = std::max(dialect.compute_units, 1);
  Tiles best;
  double best_time = 0;
  for (int m = 32; m <= std::min(256, dialect.group_size); m *= 2) {
    for (int n = 32; n <= std::min(256, dialect.group_size); n *= 2) {
      Tiles tiles{m, n, value_size > 4 ? 8 : 16};
      const int results = m * n / dialect.group_size;
      tiles.item_rows = results >= 64 ? 8 : results >= 16 ? 4 : results >= 4 ? 2 : 1;
      tiles.item_columns = results / tiles.item_rows;
      // Eight by four work items are neighbours.
      if (results == 0 || results > 64 || n / tiles.item_columns < 8 || m / tiles.item_rows < 4) continue;
      tiles.rows = divide_up(p.rows, m);
      tiles.columns = divide_up(columns, n);
      const int64_t count = p.groups * tiles.rows * tiles.columns;
      const int64_t most = std::clamp<int64_t>(depth / (8 * tiles.depth), 1, kMostParts);
      for (int64_t turns = 0; turns <= 8; ++turns) {  // of all units
        tiles.parts = std::clamp<int64_t>(turns * units / count, 1, most);
        tiles.part_depth = divide_up(divide_up(depth, tiles.parts), tiles.depth) * tiles.depth;
        tiles.parts = divide_up(depth, tiles.part_depth);
        const double time = tile_time(p, dialect, tiles);
        if (best_time != 0 && (time >= best_time || tile_bytes(op, p, dialect, tiles) > most_bytes)) continue;
        best = tiles;
        best_time = time;
      }
    }
  }
  return best;
}

Tiles choose_columns(const WindowProduct& p, const Dialect& dialect) {
  Tiles tiles;
  tiles.item_rows = static_cast<int>(p.rows);
  const int64_t at_once = int64_t{2} * std::max(dialect.compute_units, 1);
  for (tiles.item_columns = 4; tiles.item_columns > 1; tiles.item_columns /= 2) {
    if (p.groups * p.columns() >= at_once * dialect.group_size * tiles.item_columns) break;
  }
  tiles.n = tiles.item_columns * dialect.group_size;
  tiles.columns = divide_up(p.columns(), tiles.n);
  return tiles;
}

Tiles choose_blocks(const WindowProduct& p, const Dialect& dialect) {
  constexpr int64_t kLeastTerms = 1024;  // of a part
  Tiles tiles;
  tiles.m = 64;
  tiles.item_rows = p.rows > 2 ? 4 : static_cast<int>(p.rows);
  tiles.item_columns = 16;
  tiles.columns = divide_up(p.columns(), tiles.item_columns);
  const int64_t wanted = int64_t{kBlocksPerUnit} * std::max(dialect.compute_units, 1),
                across = p.groups * tiles.columns;
  int64_t rows = tiles.m;
  while (rows > kLeastItemRows && across * divide_up(p.rows, rows) < wanted) rows /= 2;
  tiles.rows = divide_up(p.rows, rows);
  const int64_t depth = p.depth_points(), items = std::max<int64_t>(across * tiles.rows, 1);
  tiles.parts = std::clamp<int64_t>(wanted / items, 1, std::clamp<int64_t>(depth / kLeastTerms, 1, kMostParts));
  tiles.part_depth = divide_up(depth, tiles.parts);
  tiles.parts = divide_up(depth, tiles.part_depth);
  return tiles;
}

Tiles choose_row_parts(const WindowProduct& p, const Dialect& dialect) {
  Tiles tiles;
  const int64_t depth = p.depth_points(),
                at_once = int64_t{std::max(dialect.compute_units, 1)} * dialect.groups_per_unit;
  const int64_t most = std::clamp<int64_t>(depth / (4 * dialect.group_size), 1, kMostParts);
  tiles.parts = std::clamp<int64_t>(at_once / std::max<int64_t>(p.groups * p.rows, 1), 1, most);
  tiles.part_depth = divide_up(depth, tiles.parts);
  tiles.parts = divide_up(depth, tiles.part_depth);
  return tiles;
}

int64_t phase_channels(const Phases& phases, int32_t value_size) {
  constexpr int64_t kBytes = 16 << 10;
  return std::clamp<int64_t>(
      kBytes / std::max<int64_t>(phases.steps() * left_words(phases.product.rows) * value_size, 1), 1, 16);
}

// Whole rounds of groups, whose work items have `item_columns` each, decide.
Tiles choose_phase_columns(const Phases& phases, const Dialect& dialect) {
  constexpr double kOfElement = 6;  // instructions, to load an element of b
  const WindowProduct& p = phases.product;
  const int64_t rows = p.rows * static_cast<int64_t>(phases.all.size());
  const int64_t at_once = int64_t{kPhaseGroups} * std::max(dialect.compute_units, 1);
  Tiles best;
  double best_time = 0;
  for (int item_columns = 4; item_columns >= 1; item_columns /= 2) {
    if (item_columns > 1 && rows * item_columns > kMostSums) continue;
    Tiles tiles;
    tiles.item_rows = static_cast<int>(rows);
    tiles.item_columns = item_columns;
    tiles.n = item_columns * dialect.group_size;
    tiles.columns = divide_up(p.columns(), tiles.n);
    const auto rounds = static_cast<double>(divide_up(p.groups * tiles.columns, at_once));
    const auto steps = static_cast<double>(phases.steps());
    const double time =
        rounds *
        (item_columns * (steps * static_cast<double>(p.rows) + kOfElement * static_cast<double>(phases.taps())) +
         steps * static_cast<double>(divide_up(p.rows, 4)));
    if (best_time != 0 && time >= best_time) continue;
    best = tiles;
    best_time = time;
  }
  return best;
}

std::optional<Phases> choose_phases(const Op& op, const std::vector<WindowProduct>& products, const Dialect& dialect) {
  if (dialect.is_host || products.size() < 2) return std::nullopt;
  std::optional<Phases> phases = join_phases(products);
  if (!phases) return std::nullopt;
  const WindowProduct& p = phases->product;
  const int64_t rows = p.rows * static_cast<int64_t>(phases->all.size()), steps = phases->steps();
  const int32_t value_size = dtype_size(computed_in(op.output(0).dtype));
  if (rows > kMostSums || steps * p.rows > kMostSteps || choose_taps(p) != Taps::kOfTerms ||
      choose_form(p, dialect) != Form::kColumns)
    return std::nullopt;
  const int64_t local_bytes = phase_channels(*phases, value_size) * steps * left_words(p.rows) * value_size;
  if (local_bytes > std::min<int64_t>(dialect.local_memory_bytes, 32 << 10)) return std::nullopt;
  return phases->taps() < steps ? phases : std::nullopt;
}

}  // namespace compute::common::convolutions
