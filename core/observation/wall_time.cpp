// SPDX-License-Identifier: Apache-2.0
#include "core/observation/wall_time.hpp"

#include <algorithm>

namespace compute {

void WallTime::add(TimeUse use, TimeSpan span) {
  span.begin = std::max(span.begin, settled_until_);
  if (span.length() > 0) spans_.push_back({span, use});
}

// Walks along the ends of all spans and counts how many of each use are open.
void WallTime::sweep(std::vector<Piece>& pieces, std::array<int64_t, 3>& sums) {
  struct End {
    int64_t time;
    int32_t step;
    TimeUse use;
  };
  std::vector<End> ends;
  ends.reserve(2 * pieces.size());
  for (const Piece& piece : pieces) {
    ends.push_back({piece.span.begin, 1, piece.use});
    ends.push_back({piece.span.end, -1, piece.use});
  }
  std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.time < b.time; });
  std::array<int32_t, 3> open{};
  int64_t before = 0;
  for (const End& end : ends) {
    for (size_t use = 0; use < open.size(); ++use) {
      if (open[use] == 0) continue;
      sums[use] += end.time - before;
      break;
    }
    before = end.time;
    open[static_cast<size_t>(end.use)] += end.step;
  }
}

void WallTime::settle(int64_t horizon) {
  std::vector<Piece> done, rest;
  for (const Piece& piece : spans_) {
    if (piece.span.begin < horizon) done.push_back({{piece.span.begin, std::min(piece.span.end, horizon)}, piece.use});
    if (piece.span.end > horizon) rest.push_back({{std::max(piece.span.begin, horizon), piece.span.end}, piece.use});
  }
  sweep(done, sums_);
  spans_ = std::move(rest);
  settled_until_ = std::max(settled_until_, horizon);
  due_ = std::max(kLeastDue, 2 * spans_.size());
}

std::array<int64_t, 3> WallTime::sums() const {
  std::array<int64_t, 3> sums = sums_;
  std::vector<Piece> pieces = spans_;
  sweep(pieces, sums);
  return sums;
}

}  // namespace compute
