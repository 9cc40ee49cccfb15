// SPDX-License-Identifier: Apache-2.0
// The profile: times per op and per transfer, and hints.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/observation/work.hpp"

namespace compute {

class Profile {
 public:
  explicit Profile(int64_t begin) : begin_(begin), wall_(begin) {}

  void add(const Work& work);
  // For a device without times: its work shows up in the waits for it.
  void add_wait(TimeSpan span);
  void add_preparation(std::string_view device, TimeSpan span);
  // Whether settle() is worth its time. No work that began before `horizon` will be added after it.
  bool is_due() const noexcept { return wall_.is_due(); }
  void settle(int64_t horizon) { wall_.settle(horizon); }

  std::string text(int64_t end) const;
  std::string json(int64_t end) const;

 private:
  struct OpKey {
    const char* name;
    const compute_device* device;
    int32_t dtype;
    int32_t rank;
    int32_t size_class;  // the number of elements, rounded up to a power of two

    auto operator<=>(const OpKey&) const = default;
  };
  struct OpRow {
    std::vector<int64_t> shape;  // of the first call
    bool has_one_shape = true;
    const char* how = "";
    int64_t calls = 0, ops = 0, total_ns = 0, bytes = 0, flops = 0;
    int64_t untimed = 0;  // calls with only a host time
  };
  struct TransferKey {
    const compute_device* from;
    const compute_device* to;
    const char* cause;
    std::string tensor;
    bool is_implicit;
    std::string scope;
    const void* address;

    auto operator<=>(const TransferKey&) const = default;
  };
  struct TransferRow {
    ProgramPlace place;
    int64_t count = 0, bytes = 0, total_ns = 0;
  };
  struct Sum {
    int64_t total_ns = 0, count = 0;
  };
  using OpEntry = std::pair<const OpKey, OpRow>;
  using TransferEntry = std::pair<const TransferKey, TransferRow>;
  struct OpHash {
    size_t operator()(const OpKey& key) const noexcept;
  };

  void add_op(const Work& work, int64_t time_ns);
  void add_transfer(const TransferWork& transfer, int64_t time_ns);
  std::vector<const OpEntry*> sorted_ops() const;
  std::vector<const TransferEntry*> sorted_transfers() const;
  std::string ops_text(int64_t wall_ns) const;
  std::string transfers_text() const;
  std::vector<std::string> hints(int64_t wall_ns) const;
  void add_transfer_hints(int64_t wall_ns, std::vector<std::string>& out) const;

  const int64_t begin_;
  WallTime wall_;
  std::unordered_map<OpKey, OpRow, OpHash> ops_;
  std::map<TransferKey, TransferRow> transfers_;
  std::map<std::string, Sum, std::less<>> preparations_;  // by device
};

}  // namespace compute
