// SPDX-License-Identifier: Apache-2.0
// The functions of compute.h on graphs.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/sized.hpp"
#include "core/interface/about.hpp"
#include "core/runner/graph.hpp"
#include "core/streams/stream.hpp"

using namespace compute;

extern "C" {

compute_error* compute_graph_begin(compute_stream* stream, const compute_graph_options* options) {
  return guard(about(stream), [&] {
    compute_stream& self = checked(stream);
    if (options != nullptr) {
      const compute_graph_options given = read_sized(options, "options");
      require_known_flags(given.flags, 0, "options");
      require_zero(given.reserved, "options");
    }
    const Running running;
    self.device.require_usable();
    if (self.is_borrowed()) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED,
                  fmt::format("the default stream of {} is shared and cannot record graphs; create a stream",
                              self.device.name));
    }
    auto recording = std::make_unique<Recording>();
    std::lock_guard guard(self.timeline.lock);
    if (self.timeline.recording.load() != nullptr) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the stream is already recording");
    }
    self.timeline.recording.store(recording.release());
  });
}

compute_error* compute_graph_end(compute_stream* stream, compute_graph** out_graph) {
  if (out_graph != nullptr) *out_graph = nullptr;
  return guard(about(stream), [&] {
    require_not_null(out_graph, "out_graph");
    compute_stream& self = checked(stream);
    const Running running;
    std::unique_ptr<Recording> recording;
    {
      std::lock_guard guard(self.timeline.lock);
      recording.reset(self.timeline.recording.exchange(nullptr));
    }
    if (!recording) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the stream is not recording");
    if (recording->error != nullptr) throw Error::adopt(std::exchange(recording->error, nullptr));
    struct Release {
      void operator()(compute_graph* graph) const { release_handle(graph); }
    };
    std::unique_ptr<compute_graph, Release> graph(new compute_graph(self.device));
    graph->recording = std::move(recording);
    for (const RecordedSlot& slot : graph->recording->slots) {
      const ScalarBits bits = convert_scalar(scalar_from_memory(slot.tensor->dtype, slot.tensor->bits.data()),
                                             slot.tensor->dtype, slot.dtype);
      auto& value = graph->slot_values.emplace_back();
      std::memcpy(value.data(), bits.bits, 16);
    }
    finish_graph(*graph);
    *out_graph = graph.release();
  });
}

compute_error* compute_graph_run(compute_graph* graph, compute_stream* stream) {
  return guard(about(graph, stream), [&] {
    compute_graph& self = checked(graph);
    const Running running;
    self.device.require_usable();
    if (stream != nullptr && &checked(stream).device != &self.device) {
      throw Error(COMPUTE_ERROR_DEVICE_MISMATCH, fmt::format("the graph was recorded on {}, but the stream is on {}",
                                                             self.device.name, stream->device.name));
    }
    Timeline& timeline = stream != nullptr ? stream->timeline : default_timeline(self.device);
    if (timeline.recording.load() != nullptr) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "a graph cannot be run on a stream that is recording");
    }
    run_graph(self, timeline);
  });
}

compute_error* compute_graph_set_slot(compute_graph* graph, compute_tensor* slot, const void* value) {
  return guard(about(graph, slot), [&] {
    compute_graph& self = checked(graph);
    const Tensor& given = checked(slot);
    require_not_null(value, "value");
    const Running running;
    bool found = false;
    std::lock_guard guard(self.lock);
    for (size_t i = 0; i < self.recording->slots.size(); ++i) {
      const RecordedSlot& known = self.recording->slots[i];
      if (known.tensor != &given) continue;
      const ScalarBits bits = convert_scalar(scalar_from_memory(given.dtype, value), given.dtype, known.dtype);
      std::memcpy(self.slot_values[i].data(), bits.bits, 16);
      found = true;
    }
    if (!found) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the graph does not use this scalar as a slot");
  });
}

compute_error* compute_graph_get_info(compute_graph* graph, compute_graph_info* out_info) {
  clear_sized(out_info);
  return guard(about(graph), [&] {
    require_not_null(out_info, "out_info");
    compute_graph& self = checked(graph);
    compute_graph_info info{};
    info.nodes = static_cast<int64_t>(self.recording->runs.size() + self.recording->other_work.size());
    info.temporary_bytes = self.recording->block_bytes;
    info.native = self.native.empty() ? 0 : 1;
    write_sized(info, out_info, "out_info");
  });
}

void compute_graph_retain(compute_graph* graph) {
  if (graph != nullptr && graph->is_alive()) graph->retain();
}
void compute_graph_release(compute_graph* graph) { release_handle(graph); }

}  // extern "C"
