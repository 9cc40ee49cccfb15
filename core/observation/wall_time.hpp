// SPDX-License-Identifier: Apache-2.0
// How wall time divides into transfers, ops on devices and ops on cpu. Each instant counts once, for the first of these
// three that is active.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace compute {

// A range of the host's clock, in nanoseconds.
struct TimeSpan {
  int64_t begin = 0, end = 0;

  int64_t length() const noexcept { return end > begin ? end - begin : 0; }
};

enum class TimeUse : uint8_t { kTransfer, kDeviceOp, kCpuOp };

class WallTime {
 public:
  explicit WallTime(int64_t begin = 0) : settled_until_(begin) {}

  void add(TimeUse use, TimeSpan span);
  // Whether enough has been added for settle() to be worth its time.
  bool is_due() const noexcept { return spans_.size() >= due_; }
  // No span that begins before `horizon` will follow; earlier spans are summed.
  void settle(int64_t horizon);

  // Nanoseconds by TimeUse, of all that was added.
  std::array<int64_t, 3> sums() const;

 private:
  struct Piece {
    TimeSpan span;
    TimeUse use;
  };

  static void sweep(std::vector<Piece>& pieces, std::array<int64_t, 3>& sums);

  static constexpr size_t kLeastDue = 8192;

  std::vector<Piece> spans_;
  std::array<int64_t, 3> sums_{};
  int64_t settled_until_;
  size_t due_ = kLeastDue;
};

}  // namespace compute
