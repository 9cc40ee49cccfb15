// SPDX-License-Identifier: Apache-2.0
//
// graph.hpp: recorded work. Include compute.hpp.
#ifndef COMPUTE_GRAPH_HPP_
#define COMPUTE_GRAPH_HPP_

#include "compute/device.hpp"

namespace compute {

/// What a graph holds.
struct GraphInfo {
  int64_t nodes = 0;            ///< recorded plan runs
  int64_t temporary_bytes = 0;  ///< reserved for values inside the graph
  bool native = false;          ///< the plugin made an executable of it; else it is replayed op by op
};

/// A recorded list of work, run as one.
///
/// Outputs that are made while recording hold no values before the first run. Host operands other than scalars, and
/// reading, mapping or waiting on the stream, are errors meanwhile; other streams are unaffected.
///
/// Threads: any. Runs of one graph are ordered.
class Graph : public Reference<compute_graph, compute_graph_retain, compute_graph_release> {
 public:
  using Reference::Reference;

  /// Records what `body` queues on `stream`, which is not the default stream. Recording ends as well if `body` throws.
  template <std::invocable F>
  [[nodiscard]] static Graph record(const Stream& stream, F&& body) {
    begin(stream);
    try {
      body();
    } catch (...) {
      compute_graph* graph = nullptr;
      compute_error_free(compute_graph_end(stream.get(), &graph));
      compute_graph_release(graph);
      throw;
    }
    return end(stream);
  }
  /// Records what is queued on `stream` from now on instead of running it.
  static void begin(const Stream& stream) { check(compute_graph_begin(stream.get(), nullptr)); }
  /// Ends recording. After an error while recording it throws that error.
  [[nodiscard]] static Graph end(const Stream& stream) {
    return Graph(
        detail::made<compute_graph>([&](compute_graph** out) { return compute_graph_end(stream.get(), out); }));
  }

  /// Runs the graph as one submission, on any stream of the device.
  void run(const Stream& stream = {}) const { check(compute_graph_run(get(), stream.get())); }
  /// Sets the value that later runs use for `slot` (Tensor::slot). T is the slot's dtype.
  template <Element T>
  void set_slot(const Tensor& slot, T value) const {
    if (slot.dtype() != dtype_of<T>) {
      detail::throw_invalid("set_slot: the slot holds " + std::string(slot.dtype().name()) + ", not " +
                            std::string(dtype_of<T>.name()));
    }
    check(compute_graph_set_slot(get(), slot.get(), &value));
  }
  [[nodiscard]] GraphInfo info() const {
    compute_graph_info info{};
    info.struct_size = sizeof info;
    check(compute_graph_get_info(get(), &info));
    return {info.nodes, info.temporary_bytes, info.native != 0};
  }
};

}  // namespace compute

#endif  // COMPUTE_GRAPH_HPP_
