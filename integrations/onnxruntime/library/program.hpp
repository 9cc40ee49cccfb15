// SPDX-License-Identifier: Apache-2.0
// A fused graph, compiled for each tuple of shapes that it meets.
#pragma once

#include <compute/compute.hpp>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "op_table.hpp"

namespace onnxruntime_compute {

/// Memory for the values inside a graph, which one run at a time uses, and the operands of programs in it.
struct Arena;
struct Operands;

/// A tape with its values laid out: those that are not in use at the same time share memory.
struct Program {
  uint64_t id = 0;
  Tape tape;
  std::vector<int64_t> offsets;              // by storage
  std::map<int64_t, int64_t> bytes_by_size;  // of the arena, by element size
  std::vector<std::vector<int>> externals;   // layouts of each storage that is ONNX Runtime's, by storage
  bool is_on_host = false;                   // the graph's copy on the host runs it, and this is empty
};

struct FusedInput {
  int value = -1;
  bool reads_elements = false;  // the trace reads them: they are part of what a program is for
};

/// Of a session.
struct Options {
  size_t program_limit = 16;                    // how many programs are kept
  bool chooses_host = true;                     // for what is too small for the device
  std::function<void(const std::string&)> log;  // of such choices
};

class CompiledGraph {
 public:
  /// `graph` has its ops found.
  CompiledGraph(std::string name, const compute::Device& device, Graph graph, std::vector<std::string> inputs,
                const std::vector<std::string>& outputs, Options options);
  /// The same graph on another device, the host.
  CompiledGraph(const CompiledGraph& other, const compute::Device& host);
  ~CompiledGraph();

  void run(OrtKernelContext* context);

 private:
  struct Given;
  // Of the graph, or of a branch.
  struct Prepared {
    std::vector<int> uses;  // of each value, by nodes and as outputs
    std::vector<std::pair<int, Value>> initializers;
  };
  void run(OrtKernelContext* context, const std::vector<Given>& given, const std::string& key);
  std::shared_ptr<Program> find(const std::string& key);
  void add(const std::string& key, std::shared_ptr<Program> program);
  void trace(OrtKernelContext* context, const std::vector<Given>& given, const std::string& key);
  void replay(OrtKernelContext* context, const std::vector<Given>& given, const Program& program,
              bool by_steps = false);
  void replay_on_host(const std::vector<Given>& given, const Program& program, const std::vector<void*>& addresses,
                      Operands& operands);
  void replay_on_device(const std::vector<Given>& given, const Program& program, const std::vector<void*>& addresses,
                        const compute::Stream& stream, Operands& operands, bool by_steps);
  CompiledGraph& on_host();
  std::unique_ptr<Arena> take_arena(const Program& program, bool is_new);
  void give_arena(std::unique_ptr<Arena> arena);
  void note_value_inputs();
  void prepare(Graph& graph, const std::vector<int>& outputs, const Graph* around);
  void trace_nodes(Tracer& tracer, const Graph& graph, std::vector<Value>& values) const;
  void trace_branch(Tracer& tracer, const Graph& graph, const Node& node, std::vector<Value>& values) const;

  std::string name_;
  compute::Device device_;
  bool on_host_;
  Graph graph_;
  std::vector<FusedInput> inputs_;
  std::vector<int> outputs_;
  std::unordered_map<const Graph*, Prepared> prepared_;
  Options options_;

  std::once_flag makes_host_;
  std::unique_ptr<CompiledGraph> host_;  // once it is needed

  std::mutex lock_;                                                       // of what follows
  std::list<std::pair<std::string, std::shared_ptr<Program>>> programs_;  // the last used one first
  std::unordered_map<std::string, decltype(programs_)::iterator> by_key_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  uint64_t next_id_ = 1;
};

/// Counts of this process, for tests and reports.
struct Counters {
  std::atomic<int64_t> runs = 0;
  std::atomic<int64_t> traces = 0;
  std::atomic<int64_t> copied_inputs = 0;  // that could not be taken where they are
};
extern Counters counters;

}  // namespace onnxruntime_compute
