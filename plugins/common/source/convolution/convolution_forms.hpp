// SPDX-License-Identifier: Apache-2.0
// In which form a convolution is computed, see convolution.cpp, and with which tiles.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "plugins/common/op/windows.hpp"
#include "plugins/common/source/builder/kernel_builder.hpp"
#include "plugins/common/source/products/matrix_units.hpp"

namespace compute::common::convolutions {

inline constexpr int kMostTerms = 128;  // that are worked out at a time
inline constexpr int kPhaseGroups = 2;  // of phases that a compute unit runs at once
inline constexpr int kBlockTerms = 64;  // that an item gathers at a time

enum class Form { kItem, kBlock, kGroup, kRow, kColumns, kPhases, kTiles, kJoin };

struct Tiles {
  int m = 32, n = 32, depth = 16;
  int item_rows = 2, item_columns = 2;
  std::optional<UnitTiles> units = {};  // matrix units multiply
  int64_t rows = 1, columns = 1;        // how many there are
  int64_t parts = 1, part_depth = 0;
};

Form choose_form(const WindowProduct& p, const Dialect& dialect);
Tiles choose_tiles(const Op& op, const WindowProduct& p, const Dialect& dialect);
// The columns of a work item that computes all rows: fewer if there would be too few groups.
Tiles choose_columns(const WindowProduct& p, const Dialect& dialect);
// The rows of a work item of a CPU core, and how the depth is divided: so that there is work for all cores.
Tiles choose_blocks(const WindowProduct& p, const Dialect& dialect);
// How the depth is divided where a group computes a part of a row.
Tiles choose_row_parts(const WindowProduct& p, const Dialect& dialect);

// Whether places of `parts` of the results need 64 bits.
bool is_wide(const Op& op, const WindowProduct& p, int64_t parts);

// A spatial axis with one position, in which nothing moves.
inline bool is_single(const WindowProduct& p, size_t axis) {
  return p.extent[axis] == 1 && p.depth[1 + axis] == 1 && p.column[1 + axis] == 1 && p.start[axis] == 0;
}

// A tap is a coordinate along a spatial axis of depth or of a column. Where there are few, each has a bit.
enum class Taps { kNone, kOfTerms, kOfWindows };

Taps choose_taps(const WindowProduct& p);

// The words that a kernel of tiles keeps of a column or a term.
inline int place_words(Taps taps) { return taps == Taps::kNone ? kWindowAxes : 2; }

// One of the products of a gradient of the input, as a part of all: its tap t is the tap t + first of all, and its
// column j is at the same coordinates.
struct Phase {
  std::array<int64_t, kMaxSpatial> first{}, taps{}, columns{};
  int64_t a_offset = 0, c_offset = 0;
};

// All products of a gradient of the input with strides: of one row of each there is one product, with the taps and the
// columns of all.
struct Phases {
  WindowProduct product{};
  std::vector<Phase> all;

  bool has(const Phase& phase, const std::array<int64_t, kMaxSpatial>& tap) const {
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      if (tap[i] < phase.first[i] || tap[i] >= phase.first[i] + phase.taps[i]) return false;
    }
    return true;
  }
  int64_t taps() const { return product.depth_points() / std::max<int64_t>(product.depth[0], 1); }
  int64_t steps() const {  // of a channel and a row
    int64_t steps = 0;
    for (const Phase& phase : all) steps += phase.taps[0] * phase.taps[1] * phase.taps[2];
    return steps;
  }
};

inline int64_t left_words(int64_t rows) { return rows <= 2 ? rows : divide_up(rows, 4) * 4; }

// How many channels of the kernel local memory keeps at a time.
int64_t phase_channels(const Phases& phases, int32_t value_size);

Tiles choose_phase_columns(const Phases& phases, const Dialect& dialect);

// The products of `op` joined to one, if a work item computes all rows of all products and loads fewer elements of b.
std::optional<Phases> choose_phases(const Op& op, const std::vector<WindowProduct>& products, const Dialect& dialect);

}  // namespace compute::common::convolutions
