// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "memory.hpp"
#include "placement.hpp"

namespace onnxruntime_compute {

Counters counters;

namespace {

constexpr int64_t kAlignment = 64;
// Ends the key of a run with inputs on the device, where it runs in any case.
constexpr std::string_view kThere = "there";

int64_t bytes_of(DType dtype, const Shape& shape) {
  int64_t size = dtype.size();
  for (const int64_t extent : shape) size *= extent;
  return size;
}

std::string text_of(const Shape& shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return "[" + text + "]";
}

// Memory of ONNX Runtime as a tensor, without a copy.
Tensor wrapped(DType dtype, const Shape& shape, const int64_t* strides, void* data) {
  compute_tensor* made = nullptr;
  compute::check(compute_tensor_wrap_host(dtype.id(), static_cast<int32_t>(shape.size()), shape.data(), strides, data,
                                          COMPUTE_WRAP_EXPOSED, nullptr, nullptr, &made));
  return Tensor(made);
}

// Assigns memory to the storages inside: best fit over blocks that are free again after the last step that uses them.
void lay_out(Program& program) {
  const Tape& tape = program.tape;
  program.offsets.assign(tape.storages.size(), -1);
  program.externals.resize(tape.storages.size());
  for (size_t i = 0; i < tape.layouts.size(); ++i) {
    const auto storage = static_cast<size_t>(tape.layouts[i].storage);
    if (tape.storages[storage].input >= 0 || tape.storages[storage].output >= 0)
      program.externals[storage].push_back(static_cast<int>(i));
  }
  struct Free {
    int64_t begin, end;
  };
  std::map<int64_t, std::vector<Free>> free_of;
  std::vector<std::vector<size_t>> begins(tape.steps.size() + 1), ends(tape.steps.size() + 1);
  for (size_t i = 0; i < tape.storages.size(); ++i) {
    const Storage& storage = tape.storages[i];
    if (storage.input >= 0 || storage.output >= 0) continue;
    begins[static_cast<size_t>(storage.first_step)].push_back(i);
    ends[static_cast<size_t>(std::max(storage.first_step, storage.last_step))].push_back(i);
  }
  for (size_t step = 0; step < tape.steps.size(); ++step) {
    for (const size_t i : begins[step]) {
      const Storage& storage = tape.storages[i];
      const int64_t size = (std::max<int64_t>(storage.size_bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
      std::vector<Free>& free = free_of[storage.element_size];
      auto best = free.end();
      for (auto at = free.begin(); at != free.end(); ++at) {
        if (at->end - at->begin >= size && (best == free.end() || at->end - at->begin < best->end - best->begin))
          best = at;
      }
      int64_t& total = program.bytes_by_size[storage.element_size];
      if (best != free.end()) {
        program.offsets[i] = best->begin;
        best->begin += size;
        if (best->begin == best->end) free.erase(best);
        continue;
      }
      // What is free at the end grows.
      const auto last = std::find_if(free.begin(), free.end(), [&](const Free& one) { return one.end == total; });
      program.offsets[i] = last != free.end() ? last->begin : total;
      total = program.offsets[i] + size;
      if (last != free.end()) free.erase(last);
    }
    for (const size_t i : ends[step]) {
      const Storage& storage = tape.storages[i];
      const int64_t size = (std::max<int64_t>(storage.size_bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
      std::vector<Free>& free = free_of[storage.element_size];
      Free freed{program.offsets[i], program.offsets[i] + size};
      for (auto at = free.begin(); at != free.end();) {
        if (at->end == freed.begin || at->begin == freed.end) {
          freed = {std::min(freed.begin, at->begin), std::max(freed.end, at->end)};
          at = free.erase(at);
        } else {
          ++at;
        }
      }
      free.push_back(freed);
    }
  }
}

// Throws what a call threw, with the node.
[[noreturn]] void rethrow_for(const std::string& node, const std::exception& error) {
  throw std::runtime_error(node + ": " + error.what());
}

// Of elements. It belongs to the results; the stream goes on.
bool is_fault(const compute::Error& error) {
  return error.code() == compute::ErrorCode::kernel_failed || error.code() == compute::ErrorCode::numerical;
}

// Waits for a stream, and takes the failures that it has yet to tell, after a result told one. Work that read results
// without values has failed too.
void drain(const compute::Stream& stream) {
  constexpr int kMostFailures = 1000;
  for (int i = 0; i < kMostFailures; ++i) {
    try {
      return stream.synchronize();
    } catch (const compute::Error& error) {
      if (!is_fault(error)) return;  // the stream has failed, and always tells that
    }
  }
}

void run_step(const Step& step, compute_tensor** handles, compute_stream* stream) {
  const auto in = static_cast<int64_t>(step.inputs.size()), out = static_cast<int64_t>(step.outputs.size());
  if (step.plan.defined()) {
    compute::check(compute_plan_run(step.plan.get(), stream, nullptr, 0, handles, in, handles + in, out));
  } else {
    compute::check(compute_map(stream, step.expression.get(), handles, in, nullptr, 0, handles + in, out));
  }
}

}  // namespace

// The operands of a program's steps in an arena.
struct Operands {
  std::vector<Tensor> kept;                 // layouts in the arena; on a device also those of inputs and outputs
  std::vector<compute_tensor*> handles;     // of all steps
  std::vector<size_t> begins;               // where those of a step are: its inputs, then its outputs
  std::vector<std::vector<size_t>> places;  // by layout of ONNX Runtime's memory: which handles it is
  // On a device other than cpu:
  std::map<int, Tensor> inputs, outputs;  // by number
  compute::Graph graph;
  bool is_recorded = false;
};

struct Arena {
  std::map<int64_t, Tensor> memory;  // by element size
  std::map<int64_t, int64_t> size_bytes;
  std::unordered_map<uint64_t, std::unique_ptr<Operands>> operands;  // by program
  compute::Stream stream;                                            // of a device other than cpu
};

// What ONNX Runtime gives as an input.
struct CompiledGraph::Given {
  TensorFacts facts;
  void* data = nullptr;
};

CompiledGraph::CompiledGraph(std::string name, const compute::Device& device, Graph graph,
                             std::vector<std::string> inputs, const std::vector<std::string>& outputs, Options options)
    : name_(std::move(name)),
      device_(device),
      on_host_(device.name() == "cpu"),
      graph_(std::move(graph)),
      options_(std::move(options)) {
  for (const std::string& input : inputs) {
    const auto found = graph_.numbers.find(input);
    inputs_.push_back({found == graph_.numbers.end() ? -1 : found->second});
  }
  for (const std::string& output : outputs) outputs_.push_back(graph_.numbers.at(output));
  prepare(graph_, outputs_, nullptr);
  note_value_inputs();
}

CompiledGraph::CompiledGraph(const CompiledGraph& other, const compute::Device& host)
    : name_(other.name_),
      device_(host),
      on_host_(true),
      graph_(other.graph_),
      inputs_(other.inputs_),
      outputs_(other.outputs_),
      options_(other.options_) {
  for (const auto& [graph, prepared] : other.prepared_) {
    Prepared& here = prepared_[graph == &other.graph_ ? &graph_ : graph];
    here.uses = prepared.uses;
    for (const auto& [number, value] : prepared.initializers) {
      const Tensor weights = value.host.defined() ? value.host : value.tensor.to(host);
      here.initializers.emplace_back(number, Tracer::constant(weights, weights));
    }
  }
}

CompiledGraph::~CompiledGraph() = default;

namespace {

// Whether input `i` of a node is a factor of sums of products.
bool is_factor(const Node& node, size_t i) {
  if (node.type == "Conv" || node.type == "ConvTranspose") return i == 1;
  if (node.type == "MatMul" || node.type == "Gemm") return i < 2;
  return (node.type == "LSTM" || node.type == "GRU") && (i == 1 || i == 2);
}

// Which values are used as such alone.
std::vector<bool> find_factors(const Graph& graph) {
  std::vector<bool> is_one(graph.values.size(), false), is_other(is_one);
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] >= 0) (is_factor(node, i) ? is_one : is_other)[static_cast<size_t>(node.inputs[i])] = true;
    }
    for (const int input : node.implicit_inputs) {
      if (input >= 0) is_other[static_cast<size_t>(input)] = true;
    }
  }
  for (size_t i = 0; i < is_one.size(); ++i) is_one[i] = is_one[i] && !is_other[i];
  return is_one;
}

// Processors take a hundred times longer to multiply subnormal numbers, which trained weights of dead channels are.
Tensor without_subnormals(const Tensor& weights) {
  static const compute::Expression flushed("where(abs(x) < 1.17549435e-38, 0, x)", {"x"});
  return weights.dtype() == compute::float32 && weights.size() > 0 ? compute::map(flushed, {weights}) : weights;
}

// Gives products with a matrix of weights the bias that is added to each of them alone, as a third input.
void join_biases(Graph& graph, const std::vector<int>& outputs) {
  std::vector<int> uses(graph.values.size(), 0), producers(graph.values.size(), -1);
  for (const int output : outputs) ++uses[static_cast<size_t>(output)];
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (const auto* const list : {&node.inputs, &node.implicit_inputs}) {
      for (const int value : *list) {
        if (value >= 0) ++uses[static_cast<size_t>(value)];
      }
    }
    if (node.type == "MatMul" && node.has_output(0))
      producers[static_cast<size_t>(node.outputs[0])] = static_cast<int>(i);
  }
  const auto has_rank = [&](int value, size_t rank) {
    const ValueFacts& facts = graph.values[static_cast<size_t>(value)];
    return facts.is_initializer && is_real(facts.dtype) && facts.shape && facts.shape->size() == rank;
  };
  std::vector<bool> is_joined(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& add = graph.nodes[i];
    for (size_t side = 0; add.type == "Add" && side < 2; ++side) {
      const int sum = add.inputs[side], bias = add.inputs[1 - side];
      const int producer = sum < 0 ? -1 : producers[static_cast<size_t>(sum)];
      if (producer < 0 || uses[static_cast<size_t>(sum)] != 1 || !has_rank(bias, 1)) continue;
      Node& product = graph.nodes[static_cast<size_t>(producer)];
      const int weights = product.inputs[1];
      if (product.inputs.size() > 2 || !has_rank(weights, 2)) continue;
      if ((*graph.values[static_cast<size_t>(weights)].shape)[1] != (*graph.values[static_cast<size_t>(bias)].shape)[0])
        continue;
      product.inputs.push_back(bias);
      product.outputs = add.outputs;
      is_joined[i] = true;
      break;
    }
  }
  size_t at = 0;
  std::erase_if(graph.nodes, [&](const Node&) { return is_joined[at++]; });
}

}  // namespace

// `around`: the graph that has the node whose branch this is.
void CompiledGraph::prepare(Graph& graph, const std::vector<int>& outputs, const Graph* around) {
  join_biases(graph, outputs);
  Prepared& prepared = prepared_[&graph];
  prepared.uses.assign(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (const auto* const list : {&node.inputs, &node.implicit_inputs}) {
      for (const int input : *list) {
        if (input >= 0) ++prepared.uses[static_cast<size_t>(input)];
      }
    }
  }
  for (const int output : outputs) ++prepared.uses[static_cast<size_t>(output)];
  const std::vector<bool> factors = find_factors(graph);
  for (size_t i = 0; i < graph.values.size(); ++i) {
    ValueFacts& facts = graph.values[i];
    if (facts.is_initializer && (around == nullptr || !around->numbers.contains(facts.name))) {
      const OrtValue* value = nullptr;
      check_ort(ort.ValueInfo_GetInitializerValue(facts.info, &value));
      if (value == nullptr) throw std::runtime_error("the initializer " + facts.name + " has no value");
      const Tensor host = factors[i] ? without_subnormals(host_copy(value)) : host_copy(value);
      // Small ones are read while tracing. Large ones stay on the device alone.
      const bool stays = on_host_ || host.size() <= 1024;
      prepared.initializers.emplace_back(static_cast<int>(i),
                                         Tracer::constant(stays ? host : Tensor(), on_host_ ? host : host.to(device_)));
    }
    facts.info = nullptr;
  }
  for (Node& node : graph.nodes) {
    node.original = nullptr;
    for (const auto& branch : node.branches) prepare(*branch, branch->outputs, &graph);
  }
}

namespace {

// Calls f(a value of `graph`, its number in the branch) for what a branch of `node` uses.
template <class F>
void for_captured(const Graph& graph, const Node& node, const Graph& branch, const F& f) {
  for (const int number : node.implicit_inputs) {
    if (number < 0) continue;
    const auto found = branch.numbers.find(graph.values[static_cast<size_t>(number)].name);
    if (found != branch.numbers.end()) f(static_cast<size_t>(number), static_cast<size_t>(found->second));
  }
}

// Which values have elements that a trace reads: besides those that are marked, those that reach an input of a node that
// wants them, but not through a node that looks at shapes.
void mark_read(const Graph& graph, std::vector<bool>& is_read) {
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    for (const auto& branch : node->branches) {
      std::vector<bool> inside(branch->values.size(), false);
      for (size_t i = 0; i < node->outputs.size(); ++i) {
        if (node->has_output(i) && is_read[static_cast<size_t>(node->outputs[i])])
          inside[static_cast<size_t>(branch->outputs.at(i))] = true;
      }
      mark_read(*branch, inside);
      for_captured(graph, *node, *branch, [&](size_t value, size_t captured) {
        if (inside[captured]) is_read[value] = true;
      });
    }
    bool reads_all = false;
    for (const int output : node->outputs)
      reads_all = reads_all || (output >= 0 && is_read[static_cast<size_t>(output)]);
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (node->inputs[i] < 0) continue;
      const bool reads_this = i < 32 && (node->op->value_inputs >> i & 1) != 0;
      if (reads_this || (reads_all && !node->op->is_shape)) is_read[static_cast<size_t>(node->inputs[i])] = true;
    }
  }
}

}  // namespace

void CompiledGraph::note_value_inputs() {
  std::vector<bool> is_read(graph_.values.size(), false);
  mark_read(graph_, is_read);
  for (FusedInput& input : inputs_)
    input.reads_elements = input.value >= 0 && is_read[static_cast<size_t>(input.value)];
}

std::shared_ptr<Program> CompiledGraph::find(const std::string& key) {
  const std::lock_guard guard(lock_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  programs_.splice(programs_.begin(), programs_, found->second);
  return found->second->second;
}

void CompiledGraph::add(const std::string& key, std::shared_ptr<Program> program) {
  const std::lock_guard guard(lock_);
  program->id = next_id_++;
  if (by_key_.contains(key)) return;  // another thread was first
  programs_.emplace_front(key, std::move(program));
  by_key_[key] = programs_.begin();
  while (programs_.size() > options_.program_limit) {
    for (const auto& arena : arenas_) arena->operands.erase(programs_.back().second->id);
    by_key_.erase(programs_.back().first);
    programs_.pop_back();
  }
}

std::unique_ptr<Arena> CompiledGraph::take_arena(const Program& program, bool is_new) {
  std::unique_ptr<Arena> arena;
  if (!is_new) {
    const std::lock_guard guard(lock_);
    if (!arenas_.empty()) {
      arena = std::move(arenas_.back());
      arenas_.pop_back();
    }
  }
  if (arena == nullptr) {
    arena = std::make_unique<Arena>();
    if (!on_host_) arena->stream = compute::Stream(device_);
  }
  for (const auto& [element_size, bytes] : program.bytes_by_size) {
    if (arena->size_bytes[element_size] >= bytes) continue;
    arena->operands.clear();  // they lie in the memory that goes
    arena->memory[element_size] = Tensor();
    arena->memory[element_size] = device_.empty(bits_of(element_size), {(bytes + element_size - 1) / element_size});
    arena->size_bytes[element_size] = bytes;
  }
  return arena;
}

void CompiledGraph::give_arena(std::unique_ptr<Arena> arena) {
  const std::lock_guard guard(lock_);
  std::erase_if(arena->operands, [&](const auto& entry) {
    return std::none_of(programs_.begin(), programs_.end(),
                        [&](const auto& program) { return program.second->id == entry.first; });
  });
  arenas_.push_back(std::move(arena));
}

void CompiledGraph::run(OrtKernelContext* context) {
  counters.runs.fetch_add(1, std::memory_order_relaxed);
  std::vector<Given> given(inputs_.size());
  std::string key;
  bool is_there = false;  // an input lies on the device
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const OrtValue* value = nullptr;
    check_ort(ort.KernelContext_GetInput(context, i, &value));
    if (value == nullptr || inputs_[i].value < 0) continue;
    given[i].facts = tensor_facts(value);
    const void* data = nullptr;
    check_ort(ort.GetTensorData(value, &data));
    given[i].data = const_cast<void*>(data);
    const TensorFacts& facts = given[i].facts;
    const auto rank = static_cast<int64_t>(facts.shape.size());
    key.append(reinterpret_cast<const char*>(&rank), sizeof rank);
    key.append(reinterpret_cast<const char*>(facts.shape.data()), facts.shape.size() * sizeof(int64_t));
    const auto there = on_host_ ? std::nullopt : DeviceMemory::of_process().find_there(data, facts.dtype, facts.shape);
    is_there = is_there || there;
    if (!inputs_[i].reads_elements) continue;
    const auto size_bytes = static_cast<size_t>(bytes_of(facts.dtype, facts.shape));
    if (there) {
      std::string bytes(size_bytes, '\0');
      there->read(bytes.data(), static_cast<int64_t>(size_bytes));
      key += bytes;
    } else if (size_bytes > 0) {
      key.append(static_cast<const char*>(data), size_bytes);
    }
  }
  if (is_there) key += kThere;
  run(context, given, key);
}

void CompiledGraph::run(OrtKernelContext* context, const std::vector<Given>& given, const std::string& key) {
  const std::shared_ptr<Program> program = find(key);
  if (program == nullptr) return trace(context, given, key);
  if (program->is_on_host) return on_host().run(context, given, key);
  replay(context, given, *program);
}

CompiledGraph& CompiledGraph::on_host() {
  std::call_once(makes_host_, [&] { host_ = std::make_unique<CompiledGraph>(*this, compute::Device::open("cpu")); });
  return *host_;
}

namespace {

// Where an output of the graph goes.
void* output_address(OrtKernelContext* context, size_t number, const Shape& shape) {
  OrtValue* value = nullptr;
  check_ort(ort.KernelContext_GetOutput(context, number, shape.data(), shape.size(), &value));
  void* data = nullptr;
  check_ort(ort.GetTensorMutableData(value, &data));
  return data;
}

void write_output(void* address, DType dtype, const Shape& shape, const Tensor& tensor, bool is_on_host,
                  const compute::Stream& stream = {}) {
  const int64_t size_bytes = bytes_of(dtype, shape);
  if (size_bytes == 0) return;
  DeviceMemory& memory = DeviceMemory::of_process();
  const auto there = is_on_host ? memory.find_there(address, dtype, shape) : memory.find(address, dtype, shape);
  if (there) return there->assign(tensor, stream);
  tensor.read(address, size_bytes);
  memory.note_written(address);
}

}  // namespace

void CompiledGraph::trace_nodes(Tracer& tracer, const Graph& graph, std::vector<Value>& values) const {
  const Prepared& prepared = prepared_.at(&graph);
  std::vector<int> uses = prepared.uses;
  for (const auto& [number, value] : prepared.initializers) values[static_cast<size_t>(number)] = value;
  for (const Node& node : graph.nodes) {
    const std::string named = node.type + " " + node.name;
    tracer.enter(named);
    try {
      for (const int input : node.inputs) {
        if (input < 0) continue;
        Value& value = values[static_cast<size_t>(input)];
        if (!value.is_present())
          throw std::runtime_error("the value " + graph.values[static_cast<size_t>(input)].name + " is missing");
        if (prepared.uses[static_cast<size_t>(input)] > 1) value = tracer.settle(value);
      }
      if (node.branches.empty()) {
        Call call(tracer, node, values);
        node.op->run(call);
      } else {
        trace_branch(tracer, graph, node, values);
      }
    } catch (const std::exception& error) {
      rethrow_for(named, error);
    }
    for (const auto* const list : {&node.inputs, &node.implicit_inputs}) {
      for (const int input : *list) {
        if (input >= 0 && --uses[static_cast<size_t>(input)] == 0) values[static_cast<size_t>(input)] = Value();
      }
    }
  }
}

// The condition is known while tracing.
void CompiledGraph::trace_branch(Tracer& tracer, const Graph& graph, const Node& node,
                                 std::vector<Value>& values) const {
  const Value& condition = values[static_cast<size_t>(node.inputs.at(0))];
  const Graph& branch = *node.branches[tracer.to_integers(condition).at(0) != 0 ? 0 : 1];
  std::vector<Value> inside(branch.values.size());
  for_captured(graph, node, branch, [&](size_t value, size_t captured) {
    values[value] = tracer.settle(values[value]);
    inside[captured] = values[value];
  });
  trace_nodes(tracer, branch, inside);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.has_output(i))
      values[static_cast<size_t>(node.outputs[i])] = inside[static_cast<size_t>(branch.outputs.at(i))];
  }
}

void CompiledGraph::trace(OrtKernelContext* context, const std::vector<Given>& given, const std::string& key) {
  counters.traces.fetch_add(1, std::memory_order_relaxed);
  static const compute::Device cpu = compute::Device::open("cpu");
  Tracer tracer(device_);
  std::vector<Value> values(graph_.values.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].value < 0 || given[i].facts.dtype == DType()) continue;
    const TensorFacts& facts = given[i].facts;
    Value& value = values[static_cast<size_t>(inputs_[i].value)];
    const auto there =
        on_host_ ? std::nullopt : DeviceMemory::of_process().find_there(given[i].data, facts.dtype, facts.shape);
    if (inputs_[i].reads_elements) {
      if (there) {
        value = Tracer::constant(there->to(cpu));
        continue;
      }
      compute_tensor* made = nullptr;
      compute::check(compute_tensor_from_host(cpu.get(), facts.dtype.id(), static_cast<int32_t>(facts.shape.size()),
                                              facts.shape.data(), given[i].data, &made));
      value = Tracer::constant(Tensor(made));
      continue;
    }
    // A copy: what is traced may be kept as a constant of nothing, but views of it may live until the end of the trace.
    if (there) {
      value = tracer.input(static_cast<int>(i), compute::copy(*there));
      continue;
    }
    compute_tensor* made = nullptr;
    compute::check(compute_tensor_from_host(device_.get(), facts.dtype.id(), static_cast<int32_t>(facts.shape.size()),
                                            facts.shape.data(), given[i].data, &made));
    value = tracer.input(static_cast<int>(i), Tensor(made));
  }
  trace_nodes(tracer, graph_, values);
  std::vector<Value> results;
  for (const int output : outputs_) results.push_back(values[static_cast<size_t>(output)]);
  values.clear();
  std::vector<Tensor> tensors;
  auto program = std::make_shared<Program>();
  program->tape = tracer.finish(results, &tensors);
  const bool is_complete = program->tape.is_complete;
  if (is_complete) lay_out(*program);
  try {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TapeOutput& output = program->tape.outputs[i];
      write_output(output_address(context, i, output.shape), output.dtype, output.shape, tensors[i], on_host_);
    }
    if (!on_host_) compute::Stream::default_of(device_).synchronize();
  } catch (const compute::Error& error) {
    if (!on_host_) drain(compute::Stream::default_of(device_));
    if (on_host_ || !is_complete || !is_fault(error)) throw;
    return replay(context, given, *program, true);
  }
  if (!is_complete) return;
  if (!on_host_ && options_.chooses_host && !key.ends_with(kThere)) {
    const Placement placement = place(program->tape, device_, [&] { replay(context, given, *program, false); });
    if (placement.is_on_host) {
      std::string text = name_ + " runs on cpu for";
      for (const Given& one : given) text += " " + text_of(one.facts.shape);
      options_.log(text + ": " + placement.reason);
      *program = {};
      program->is_on_host = true;
    }
  }
  add(key, std::move(program));
}

// `by_steps`: after a fault on a device, which is told when results are read. Once more, in new memory, and waiting for
// the results of each step, which tells the node. (A new stream tells faults of work that it waits for.)
void CompiledGraph::replay(OrtKernelContext* context, const std::vector<Given>& given, const Program& program,
                           bool by_steps) {
  const Tape& tape = program.tape;
  std::unique_ptr<Arena> arena = take_arena(program, by_steps);
  std::unique_ptr<Operands>& slot = arena->operands[program.id];
  if (slot == nullptr) {
    auto made = std::make_unique<Operands>();
    std::vector<compute_tensor*> layouts(tape.layouts.size(), nullptr);
    if (!on_host_) {
      for (size_t i = 0; i < tape.storages.size(); ++i) {
        const Storage& storage = tape.storages[i];
        if (storage.input < 0 && storage.output < 0) continue;
        (storage.input >= 0 ? made->inputs : made->outputs)[storage.input >= 0 ? storage.input : storage.output] =
            device_.empty(bits_of(storage.element_size), {storage.size_bytes / storage.element_size});
      }
    }
    for (size_t i = 0; i < tape.layouts.size(); ++i) {
      const Layout& layout = tape.layouts[i];
      const auto number = static_cast<size_t>(layout.storage);
      const Storage& storage = tape.storages[number];
      const bool is_external = storage.input >= 0 || storage.output >= 0;
      if (is_external && on_host_) continue;
      const Tensor& base = storage.input >= 0    ? made->inputs.at(storage.input)
                           : storage.output >= 0 ? made->outputs.at(storage.output)
                                                 : arena->memory.at(storage.element_size);
      const int64_t offset = (is_external ? 0 : program.offsets[number]) + layout.offset_bytes + base.offset_bytes();
      made->kept.push_back(base.view(layout.dtype, layout.shape, layout.strides, offset));
      layouts[i] = made->kept.back().get();
    }
    made->places.resize(tape.layouts.size());
    for (const Step& step : tape.steps) {
      made->begins.push_back(made->handles.size());
      for (const auto* const list : {&step.inputs, &step.outputs}) {
        for (const OperandPlace& place : *list) {
          compute_tensor* handle = nullptr;
          if (place.kind == OperandPlace::kConstant) handle = tape.constants[static_cast<size_t>(place.index)].get();
          if (place.kind == OperandPlace::kLayout) {
            handle = layouts[static_cast<size_t>(place.index)];
            if (handle == nullptr) made->places[static_cast<size_t>(place.index)].push_back(made->handles.size());
          }
          made->handles.push_back(handle);
        }
      }
    }
    slot = std::move(made);
  }
  std::vector<void*> addresses(tape.outputs.size());
  for (size_t i = 0; i < tape.outputs.size(); ++i) addresses[i] = output_address(context, i, tape.outputs[i].shape);
  if (on_host_) {
    replay_on_host(given, program, addresses, *slot);
  } else {
    try {
      replay_on_device(given, program, addresses, arena->stream, *slot, by_steps);
    } catch (const compute::Error& error) {
      if (by_steps || !is_fault(error)) throw;
      return replay(context, given, program, true);
    }
  }
  give_arena(std::move(arena));
}

void CompiledGraph::replay_on_host(const std::vector<Given>& given, const Program& program,
                                   const std::vector<void*>& addresses, Operands& operands) {
  const Tape& tape = program.tape;
  DeviceMemory& memory = DeviceMemory::of_process();
  std::vector<Tensor> held;                               // until the end of the run
  std::vector<std::pair<size_t, Tensor>> not_at_address;  // results that the caller wants on a device
  for (size_t number = 0; number < tape.storages.size(); ++number) {
    if (program.externals[number].empty()) continue;
    const Storage& storage = tape.storages[number];
    void* data = storage.input >= 0 ? given[static_cast<size_t>(storage.input)].data
                                    : addresses[static_cast<size_t>(storage.output)];
    if (storage.size_bytes == 0) data = nullptr;
    const bool is_whole = program.externals[number].size() == 1 &&
                          tape.layouts[static_cast<size_t>(program.externals[number][0])].offset_bytes == 0;
    Tensor base;
    const Shape flat{storage.size_bytes / storage.element_size};
    if (storage.output >= 0 && data != nullptr) {
      const auto output = static_cast<size_t>(storage.output);
      if (memory.find_there(data, tape.outputs[output].dtype, tape.outputs[output].shape)) {
        base = device_.empty(bits_of(storage.element_size), flat);
        not_at_address.emplace_back(output, base);
      } else {
        memory.note_written(data);
      }
    }
    if (!base.defined() &&
        (!is_whole || (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(storage.element_size)) != 0)) {
      try {
        base = wrapped(bits_of(storage.element_size), flat, nullptr, data);
      } catch (const compute::Error&) {
        if (storage.input < 0) throw;
        // Not aligned, or inside other memory that is in use: a copy.
        counters.copied_inputs.fetch_add(1, std::memory_order_relaxed);
        base = device_.empty(bits_of(storage.element_size), flat);
        base.write(data, storage.size_bytes);
      }
      held.push_back(base);
    }
    for (const int index : program.externals[number]) {
      const Layout& layout = tape.layouts[static_cast<size_t>(index)];
      Tensor tensor;
      if (base.defined()) {
        tensor = base.view(layout.dtype, layout.shape, layout.strides, base.offset_bytes() + layout.offset_bytes);
      } else {
        try {
          tensor = wrapped(layout.dtype, layout.shape, layout.strides.data(), data);
        } catch (const compute::Error&) {
          if (storage.input < 0) throw;
          counters.copied_inputs.fetch_add(1, std::memory_order_relaxed);
          base = device_.empty(bits_of(storage.element_size), flat);
          base.write(data, storage.size_bytes);
          tensor = base.view(layout.dtype, layout.shape, layout.strides, base.offset_bytes());
        }
      }
      for (const size_t place : operands.places[static_cast<size_t>(index)]) operands.handles[place] = tensor.get();
      held.push_back(std::move(tensor));
    }
  }
  for (size_t i = 0; i < tape.steps.size(); ++i) {
    try {
      run_step(tape.steps[i], operands.handles.data() + operands.begins[i], nullptr);
    } catch (const compute::Error& error) {
      rethrow_for(tape.steps[i].node, error);
    }
  }
  for (const auto& [i, result] : not_at_address) {
    const TapeOutput& output = tape.outputs[i];
    Shape strides(output.shape.size(), 1);
    for (size_t axis = strides.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * output.shape[axis];
    write_output(addresses[i], output.dtype, output.shape,
                 result.view(output.dtype, output.shape, strides, result.offset_bytes()), true);
  }
  for (size_t i = 0; i < tape.outputs.size(); ++i) {
    if (tape.outputs[i].constant.defined())
      write_output(addresses[i], tape.outputs[i].dtype, tape.outputs[i].shape, tape.outputs[i].constant, true);
  }
}

void CompiledGraph::replay_on_device(const std::vector<Given>& given, const Program& program,
                                     const std::vector<void*>& addresses, const compute::Stream& stream,
                                     Operands& operands, bool by_steps) {
  const Tape& tape = program.tape;
  if (!operands.is_recorded && !by_steps) {
    operands.is_recorded = true;
    try {
      operands.graph = compute::Graph::record(stream, [&] {
        for (size_t i = 0; i < tape.steps.size(); ++i)
          run_step(tape.steps[i], operands.handles.data() + operands.begins[i], stream.get());
      });
    } catch (const compute::Error&) {
      operands.graph = {};  // a step cannot be recorded: they run one by one
    }
  }
  // If a call throws, ONNX Runtime frees its memory, which copies may still read.
  struct Wait {
    const compute::Stream& stream;
    ~Wait() { drain(stream); }
  } const wait{stream};
  for (const auto& [number, tensor] : operands.inputs) {
    const Given& from = given[static_cast<size_t>(number)];
    if (const auto there = DeviceMemory::of_process().find_there(from.data, from.facts.dtype, from.facts.shape)) {
      Shape strides(from.facts.shape.size(), 1);
      for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * from.facts.shape[i];
      tensor.view(from.facts.dtype, from.facts.shape, strides, tensor.offset_bytes()).assign(*there, stream);
    } else if (tensor.size() > 0) {
      tensor.write_async(from.data, tensor.size_bytes(), stream);
    }
  }
  if (operands.graph.defined()) {
    operands.graph.run(stream);
  } else {
    for (size_t i = 0; i < tape.steps.size(); ++i) {
      try {
        run_step(tape.steps[i], operands.handles.data() + operands.begins[i], stream.get());
        for (size_t output = 0; by_steps && output < tape.steps[i].outputs.size(); ++output) {
          compute_tensor* const made = operands.handles[operands.begins[i] + tape.steps[i].inputs.size() + output];
          if (made != nullptr) compute::check(compute_tensor_synchronize(made));
        }
      } catch (const compute::Error& error) {
        if (by_steps) rethrow_for(tape.steps[i].node, error);
        throw;
      }
    }
  }
  for (size_t i = 0; i < tape.outputs.size(); ++i) {
    const TapeOutput& output = tape.outputs[i];
    Tensor tensor = output.constant;
    if (!tensor.defined()) {
      const Tensor& memory = operands.outputs.at(static_cast<int>(i));
      Shape strides(output.shape.size(), 1);
      for (size_t axis = strides.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * output.shape[axis];
      tensor = memory.view(output.dtype, output.shape, strides, memory.offset_bytes());
    }
    write_output(addresses[i], output.dtype, output.shape, tensor, false, stream);
  }
  by_steps ? drain(stream) : stream.synchronize();
}

}  // namespace onnxruntime_compute
