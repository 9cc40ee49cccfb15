// SPDX-License-Identifier: Apache-2.0
#include "core/observation/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/mix_hash.hpp"
#include "core/devices/device.hpp"
#include "core/expressions/dtype.hpp"
#include "core/observation/amounts.hpp"
#include "core/observation/text_table.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

int64_t elements_of(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

const char* name_of(const Device* device) { return device != nullptr ? device->name.c_str() : "host"; }

std::string route_of(const Device* from, const Device* to) { return fmt::format("{}→{}", name_of(from), name_of(to)); }

constexpr size_t kWidestName = 56;  // of an op; expressions and graphs have longer ones

// The spans of work by its device's clock and, for a transfer, on the host before or after it, where the host copies to
// and from pinned memory. The profile sums these spans and subtracts them from wall time.
std::array<TimeSpan, 2> spans_of(const Work& work) {
  if (!work.is_timed) return {work.on_host, TimeSpan{}};
  const TimeSpan device = work.on_device;
  TimeSpan host;
  if (work.transfer && work.transfer->from == nullptr)
    host = {work.on_host.begin, std::min(work.on_host.end, device.begin)};
  if (work.transfer && work.transfer->to == nullptr) host = {device.end, work.on_host.end};
  return {device, host};
}

std::string share_text(int64_t part, int64_t whole) {
  return fmt::format("{:.1f}%", whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
}

}  // namespace

size_t Profile::OpHash::operator()(const OpKey& key) const noexcept {
  const uint64_t low = mix_hash(reinterpret_cast<uint64_t>(key.name), reinterpret_cast<uint64_t>(key.device));
  return mix_hash(low, static_cast<uint64_t>(key.dtype) << 48 | static_cast<uint64_t>(key.rank) << 32 |
                           static_cast<uint64_t>(key.size_class));
}

void Profile::add(const Work& work) {
  if (work.begun < begin_) return;         // begun before this profile
  if (!work.op && !work.transfer) return;  // in no table: reads and writes of host memory by the program
  const std::array<TimeSpan, 2> spans = spans_of(work);
  const int64_t time_ns = spans[0].length() + spans[1].length();
  if (work.op) add_op(work, time_ns);
  if (work.transfer) add_transfer(*work.transfer, time_ns);
  TimeUse use = work.device->is_host ? TimeUse::kCpuOp : TimeUse::kDeviceOp;
  if (work.transfer) use = TimeUse::kTransfer;
  for (const TimeSpan& span : spans) wall_.add(use, span);
}

void Profile::add_op(const Work& work, int64_t time_ns) {
  const OpWork& op = *work.op;
  const auto elements = static_cast<uint64_t>(std::max<int64_t>(elements_of(op.shape), 0));
  const OpKey key{work.name, work.device, op.dtype, static_cast<int32_t>(op.shape.size()),
                  elements > 0 ? static_cast<int32_t>(std::bit_width(elements - 1)) : -1};
  const auto [entry, is_new] = ops_.try_emplace(key);
  OpRow& row = entry->second;
  if (is_new) row.shape.assign(op.shape.begin(), op.shape.end());
  row.has_one_shape = row.has_one_shape && std::ranges::equal(row.shape, op.shape);
  row.how = op.how;
  ++row.calls;
  row.ops += op.ops;
  row.total_ns += time_ns;
  row.bytes += op.bytes;
  row.flops += op.flops;
  if (!work.is_timed && !work.is_immediate) ++row.untimed;
}

void Profile::add_transfer(const TransferWork& transfer, int64_t time_ns) {
  TransferKey key{transfer.from,        transfer.to, transfer.cause,        transfer.tensor,
                  transfer.is_implicit, "",          transfer.place.address};
  if (transfer.place.scope != nullptr) key.scope = *transfer.place.scope;
  TransferRow& row = transfers_[std::move(key)];
  row.place = transfer.place;
  ++row.count;
  row.bytes += transfer.size_bytes;
  row.total_ns += time_ns;
}

void Profile::add_wait(TimeSpan span) { wall_.add(TimeUse::kDeviceOp, span); }

void Profile::add_preparation(std::string_view device, TimeSpan span) {
  auto sum = preparations_.find(device);
  if (sum == preparations_.end()) sum = preparations_.emplace(device, Sum{}).first;
  sum->second.total_ns += span.length();
  ++sum->second.count;
}

std::vector<const Profile::OpEntry*> Profile::sorted_ops() const {
  std::vector<const OpEntry*> rows;
  for (const OpEntry& row : ops_) rows.push_back(&row);
  std::sort(rows.begin(), rows.end(), [](const OpEntry* a, const OpEntry* b) {
    if (a->second.total_ns != b->second.total_ns) return a->second.total_ns > b->second.total_ns;
    return std::string_view(a->first.name) < b->first.name;
  });
  return rows;
}

std::vector<const Profile::TransferEntry*> Profile::sorted_transfers() const {
  std::vector<const TransferEntry*> rows;
  for (const TransferEntry& row : transfers_) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const TransferEntry* a, const TransferEntry* b) {
    return a->second.total_ns > b->second.total_ns;
  });
  return rows;
}

std::string Profile::ops_text(int64_t wall_ns) const {
  if (ops_.empty()) return "";
  TextTable table{{"op"},          {"device"},     {"dtype"},      {"shape"},     {"calls", true},
                  {"total", true}, {"mean", true}, {"wall", true}, {"sum", true}, {"rate"}};
  bool has_untimed = false;
  int64_t sum_ns = 0;
  for (const OpEntry* entry : sorted_ops()) {
    const auto& [key, row] = *entry;
    const std::string shape = row.has_one_shape
                                  ? fmt::format("[{}]", fmt::join(row.shape, ","))
                                  : fmt::format("{}d, up to {}", key.rank, count_text(int64_t{1} << key.size_class));
    const char* const mark = row.untimed > 0 ? "*" : "";
    has_untimed = has_untimed || row.untimed > 0;
    sum_ns += row.total_ns;
    table.add(
        {shortened(printable(key.name), kWidestName) + mark, key.device->name,
         key.dtype != 0 ? dtype_name(key.dtype) : "", shape, std::to_string(row.calls), time_text(row.total_ns),
         time_text(row.total_ns / row.calls), share_text(row.total_ns, wall_ns), share_text(sum_ns, wall_ns),
         row.flops > 0 ? rate_text(row.flops, row.total_ns, "FLOP/s") : rate_text(row.bytes, row.total_ns, "B/s")});
  }
  std::string text = table.text();
  if (has_untimed) {
    text +=
        "* the device did not time all of these calls: the host's submission time is shown. Some devices "
        "time\n  only streams created while the profile runs.\n";
  }
  return text + "\n";
}

std::string Profile::transfers_text() const {
  if (transfers_.empty()) return "";
  constexpr size_t kShown = 20;
  TextTable table{{"tensor"},      {"route"},       {"for"},  {"count", true},
                  {"bytes", true}, {"total", true}, {"rate"}, {"from"}};
  const std::vector<const TransferEntry*> rows = sorted_transfers();
  for (size_t i = 0; i < std::min(rows.size(), kShown); ++i) {
    const auto& [key, row] = *rows[i];
    table.add({shortened(printable(key.tensor), kWidestName), route_of(key.from, key.to), key.cause,
               std::to_string(row.count), bytes_text(row.bytes), time_text(row.total_ns),
               rate_text(row.bytes, row.total_ns, "B/s"), printable(place_text(row.place))});
  }
  std::string text = table.text();
  if (rows.size() > kShown) text += fmt::format("and {} more\n", rows.size() - kShown);
  return text + "\n";
}

// A tensor that moves the same way again and again moves once if the program keeps it where it is used.
void Profile::add_transfer_hints(int64_t wall_ns, std::vector<std::string>& out) const {
  constexpr int64_t kOften = 3;
  for (const TransferEntry* entry : sorted_transfers()) {
    const auto& [key, row] = *entry;
    if (row.count < kOften || row.total_ns * 50 < wall_ns || out.size() >= 8) continue;
    const std::string place = place_text(row.place);
    const int64_t saved = row.total_ns / row.count * (row.count - 1);
    std::string advice;
    if (key.from == nullptr) {
      advice = key.is_implicit
                   ? "create it on the device; on the host, memory that it owns (a copy, in Python asarray(x, "
                     "copy=True)) is copied once per change"
                   : "keep it on the device (to_device)";
    } else {
      advice = "leave the result on the device, and read it once";
    }
    out.push_back(fmt::format("{} ({}) went {} {} times{}{}; {} to save about {} of {}", printable(key.tensor),
                              bytes_text(row.bytes / row.count), route_of(key.from, key.to), row.count,
                              place.empty() ? "" : " from ", printable(place), advice, time_text(saved),
                              time_text(wall_ns)));
  }
}

std::vector<std::string> Profile::hints(int64_t wall_ns) const {
  std::vector<std::string> found;
  add_transfer_hints(wall_ns, found);
  for (const auto& [device, sum] : preparations_) {
    if (sum.total_ns * 10 < wall_ns) continue;
    found.push_back(
        fmt::format("preparing {} plans took {} of {} on {}; repeated shapes and attributes are prepared once, and "
                    "the disk cache keeps kernels (compute cache)",
                    sum.count, time_text(sum.total_ns), time_text(wall_ns), device));
  }
  std::map<const Device*, std::pair<int64_t, int64_t>> small;  // calls and time of short ops, by device
  for (const auto& [key, row] : ops_) {
    if (key.device->is_host || row.untimed > 0 || row.total_ns / row.calls > 10'000) continue;
    small[key.device].first += row.calls;
    small[key.device].second += row.total_ns;
  }
  for (const auto& [device, sum] : small) {
    const auto [calls, total_ns] = sum;
    if (calls < 100 || total_ns * 4 > wall_ns) continue;
    found.push_back(fmt::format("{} calls on {} took {} each there; a recorded graph submits many of them at once",
                                calls, device->name, time_text(total_ns / calls)));
  }
  return found;
}

std::string Profile::text(int64_t end) const {
  const int64_t wall_ns = std::max<int64_t>(end - begin_, 1);
  const auto [transfer, on_device, on_cpu] = wall_.sums();
  std::string text = fmt::format("compute: profile of {}\n", time_text(wall_ns));
  text += ops_text(wall_ns) + transfers_text();
  for (const auto& [device, sum] : preparations_) {
    text += fmt::format("{} plans and kernels prepared on {} in {}\n", sum.count, device, time_text(sum.total_ns));
  }
  for (const std::string& hint : hints(wall_ns)) text += "hint: " + hint + "\n";
  const int64_t spent = transfer + on_device + on_cpu;
  text += fmt::format("{} of {} went into ops and transfers, {} elsewhere\n", time_text(spent), time_text(wall_ns),
                      time_text(std::max<int64_t>(wall_ns - spent, 0)));
  const auto part = [&](int64_t ns) {
    const double share = spent > 0 ? 100.0 * static_cast<double>(ns) / static_cast<double>(spent) : 0.0;
    return fmt::format("{:.2f}s({:.1f}%)", static_cast<double>(ns) * 1e-9, share);
  };
  return text + fmt::format("Spent {} in cpu Op, {} in gpu Op and {} in transfer Op\n", part(on_cpu), part(on_device),
                            part(transfer));
}

std::string Profile::json(int64_t end) const {
  const int64_t wall_ns = std::max<int64_t>(end - begin_, 1);
  const auto [transfer, on_device, on_cpu] = wall_.sums();
  JsonWriter out;
  out.begin_object();
  out.field("wall_ns", wall_ns).field("cpu_ns", on_cpu).field("device_ns", on_device).field("transfer_ns", transfer);
  out.field("elsewhere_ns", std::max<int64_t>(wall_ns - transfer - on_device - on_cpu, 0));
  out.key("ops").begin_array();
  for (const OpEntry* entry : sorted_ops()) {
    const auto& [key, row] = *entry;
    out.begin_object().field("op", key.name).field("device", key.device->name).field("how", row.how);
    out.field("dtype", key.dtype != 0 ? dtype_name(key.dtype) : "").key("shape").begin_array();
    for (const int64_t extent : row.shape) out.value(extent);
    out.end_array().field("has_one_shape", row.has_one_shape);
    out.field("calls", row.calls).field("ops", row.ops).field("untimed_calls", row.untimed);
    out.field("total_ns", row.total_ns).field("bytes", row.bytes).field("flops", row.flops).end_object();
  }
  out.end_array().key("transfers").begin_array();
  for (const TransferEntry* entry : sorted_transfers()) {
    const auto& [key, row] = *entry;
    out.begin_object().field("tensor", key.tensor).field("from", name_of(key.from)).field("to", name_of(key.to));
    out.field("op", key.cause).field("implicit", key.is_implicit).field("place", place_text(row.place));
    out.field("count", row.count).field("bytes", row.bytes).field("total_ns", row.total_ns).end_object();
  }
  out.end_array().key("preparations").begin_array();
  for (const auto& [device, sum] : preparations_) {
    out.begin_object().field("device", device).field("count", sum.count).field("total_ns", sum.total_ns).end_object();
  }
  out.end_array().field("hints", hints(wall_ns)).end_object();
  return out.take() + "\n";
}

}  // namespace compute
