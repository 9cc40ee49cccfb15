// SPDX-License-Identifier: Apache-2.0
#include "core/lifetime/placement_report.hpp"

#include <compute/compute.h>
#include <fmt/format.h>

#include <map>
#include <tuple>
#include <vector>

#include "core/devices/device.hpp"
#include "core/devices/opened_devices.hpp"
#include "core/memory/pool.hpp"
#include "core/observation/observed.hpp"
#include "core/observation/placement.hpp"
#include "core/observation/text_table.hpp"
#include "core/planner/plan_cache.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

struct PlacementRow {
  std::string device, op, how;
  int64_t runs = 0;
};

std::vector<PlacementRow> placement_rows() {
  std::map<std::tuple<std::string, std::string, std::string>, int64_t> counts;
  for (Device* device : open_devices()) {
    device->plans->for_each(
        [](const Plan& plan, void* context) {
          auto& all = *static_cast<decltype(counts)*>(context);
          const char* how = plan.steps.size() <= 1 ? "native" : "decomposed";
          all[{plan.device.name, plan.name, how}] += plan.runs();
        },
        &counts);
    device->plans->for_each_gone(
        [](const char* name, int64_t runs, const char* device_name, void* context) {
          (*static_cast<decltype(counts)*>(context))[{device_name, name, "evicted plans"}] += runs;
        },
        &counts);
  }
  std::vector<PlacementRow> rows;
  for (const auto& [key, runs] : counts) {
    if (runs > 0) rows.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), runs});
  }
  return rows;
}

std::string placement_text() {
  TextTable ops{{"device"}, {"op"}, {"how"}, {"runs", true}};
  for (const PlacementRow& row : placement_rows()) ops.add({row.device, row.op, row.how, std::to_string(row.runs)});
  std::string text = ops.text();
  for (Device* device : open_devices()) {
    const DeviceCounters& counters = device->counters;
    if (device->is_host) continue;
    text += fmt::format(
        "{}: {} transfers to it ({} bytes), {} from it ({} bytes), {} of them implicit; {} ops fell back to cpu\n",
        device->name, counters.to_device.load(), counters.to_device_bytes.load(), counters.from_device.load(),
        counters.from_device_bytes.load(), counters.implicit.load(), counters.ops_fallback.load());
  }
  for (const Fallback& one : fallbacks())
    text += fmt::format("{}: {} ran on cpu {} times: {}\n", one.device->name, one.op, one.count, one.reason);
  if (!observes(kPlaces)) return text;
  TextTable inputs{{"device"}, {"op"}, {"input", true}, {"was"}, {"times", true}, {"from"}};
  for (const InputCount& one : input_counts()) {
    inputs.add({one.device->name, one.op, std::to_string(one.input), origin_name(one.origin), std::to_string(one.count),
                printable(place_text(one.place))});
  }
  return text + "\n" + inputs.text();
}

std::string placement_json() {
  JsonWriter out;
  out.begin_object().key("ops").begin_array();
  for (const PlacementRow& row : placement_rows()) {
    out.begin_object()
        .field("device", row.device)
        .field("op", row.op)
        .field("how", row.how)
        .field("runs", row.runs)
        .end_object();
  }
  out.end_array().key("devices").begin_array();
  for (Device* device : open_devices()) {
    const DeviceCounters& counters = device->counters;
    out.begin_object().field("name", device->name);
    out.field("transfers_to_device", counters.to_device.load())
        .field("transfers_to_device_bytes", counters.to_device_bytes.load());
    out.field("transfers_from_device", counters.from_device.load())
        .field("transfers_from_device_bytes", counters.from_device_bytes.load());
    out.field("transfers_implicit", counters.implicit.load()).field("mirror_hits", counters.mirror_hits.load());
    out.field("ops_fallback", counters.ops_fallback.load()).end_object();
  }
  out.end_array().key("fallbacks").begin_array();
  for (const Fallback& one : fallbacks()) {
    out.begin_object().field("device", one.device->name).field("op", one.op).field("reason", one.reason);
    out.field("count", one.count).end_object();
  }
  out.end_array().key("inputs").begin_array();
  for (const InputCount& one : input_counts()) {
    out.begin_object().field("device", one.device->name).field("op", one.op);
    out.field("input", static_cast<int64_t>(one.input)).field("was", origin_name(one.origin));
    out.field("place", place_text(one.place)).field("count", one.count).end_object();
  }
  out.end_array().end_object();
  return out.take();
}

}  // namespace

std::string placement_report(int32_t format) {
  return format == COMPUTE_FORMAT_JSON ? placement_json() : placement_text();
}

std::vector<CachedMemory> cached_memory() {
  std::vector<CachedMemory> all;
  for (Device* device : open_devices()) {
    const FreePieces free = device->memory->free_pieces();
    all.push_back({device, free.bytes, free.largest});
  }
  return all;
}

}  // namespace compute
