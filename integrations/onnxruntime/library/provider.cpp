// SPDX-License-Identifier: Apache-2.0
// The execution provider: what ONNX Runtime loads, asks and runs.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>

#include "memory.hpp"
#include "op_table.hpp"
#include "program.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace onnxruntime_compute {

Ort ort;

void check_ort(OrtStatus* status) {
  if (status == nullptr) return;
  const std::string message = ort.GetErrorMessage(status);
  ort.ReleaseStatus(status);
  throw std::runtime_error(message);
}

namespace {

constexpr const char* kName = "ComputeExecutionProvider";
constexpr const char* kVersion = COMPUTE_PROVIDER_VERSION;
constexpr uint32_t kVendor = 0xc0de;  // of memory of our devices; no vendor of PCI devices has this number
// Since this version 1.x a fused node gets the values that graphs inside its nodes use.
constexpr int kBranchesSince = 30;

void log(const OrtLogger* logger, int32_t level, const std::string& message) {
  OrtStatus* const status = ort.Logger_LogMessage(logger, level, message.c_str(), __FILE__, __LINE__, "compute");
  if (status != nullptr) ort.ReleaseStatus(status);
}

struct Provider : OrtEp {
  compute::Device device;
  const OrtLogger* logger = nullptr;
  Options options;
  bool takes_branches = false;

  void claim(const OrtGraph* graph, OrtEpGraphSupportInfo* info);
};

struct Compiled : OrtNodeComputeInfo {
  std::unique_ptr<CompiledGraph> graph;
};

// Nodes of one number may become one node. The number rises on the way from a node that is ours through one that is not
// to one that is, so there is none that is not ours between two nodes of one number.
std::vector<int> group_numbers(const Graph& graph) {
  std::vector<int> of_value(graph.values.size(), 0), of_node;
  std::vector<bool> is_ours(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    int number = 0;
    const auto take = [&](int value) {
      if (value < 0) return;
      const auto at = static_cast<size_t>(value);
      number = std::max(number, of_value[at] + (is_ours[at] && node.op == nullptr ? 1 : 0));
    };
    for (const int value : node.inputs) take(value);
    for (const int value : node.implicit_inputs) take(value);
    for (const int value : node.outputs) {
      if (value < 0) continue;
      of_value[static_cast<size_t>(value)] = number;
      is_ours[static_cast<size_t>(value)] = node.op != nullptr;
    }
    of_node.push_back(number);
  }
  return of_node;
}

// Whether a trace may read the elements of a value from outside: they are few, or a list of integers as shapes are.
bool may_be_read(const ValueFacts& facts) {
  if (facts.is_initializer || !facts.shape) return true;
  if (facts.shape->size() == 1 && !is_real(facts.dtype)) return true;
  int64_t size = 1;
  for (const int64_t extent : *facts.shape) {
    if (extent < 0) return false;
    size *= extent;
  }
  return size <= 64;
}

using Refused = std::map<std::string, std::vector<std::string>>;

// Finds the ops of nodes, and of those in branches.
void find_ops(Graph& graph, const compute::Device& device, bool takes_branches, Refused& refused) {
  for (Node& node : graph.nodes) {
    if (!takes_branches) node.branches.clear();
    Refused inside;
    for (const auto& branch : node.branches) find_ops(*branch, device, takes_branches, inside);
    std::string reason;
    node.op = find_op(Claim(graph, node), device, &reason);
    if (node.op == nullptr) refused[node.type + " (" + reason + ")"].push_back(node.name);
  }
}

// Takes back claims on nodes that read elements, unless these follow from shapes, initializers and what may be read.
// `around` has this of values around a branch. Returns whether the elements of each value are known.
std::vector<bool> drop_unknown(Graph& graph, Refused& refused, const std::map<std::string, bool>& around = {}) {
  std::vector<bool> is_known(graph.values.size());
  for (size_t i = 0; i < is_known.size(); ++i) {
    const auto outside = around.find(graph.values[i].name);
    is_known[i] = outside != around.end() ? outside->second : may_be_read(graph.values[i]);
  }
  for (Node& node : graph.nodes) {
    if (node.op == nullptr) continue;  // its results come from outside
    bool all_known = true;
    std::vector<bool> branch_known(node.outputs.size(), true);
    for (const auto& branch : node.branches) {
      std::map<std::string, bool> here;
      for (const int value : node.implicit_inputs) {
        if (value >= 0) here[graph.values[static_cast<size_t>(value)].name] = is_known[static_cast<size_t>(value)];
      }
      Refused inside;
      const std::vector<bool> known = drop_unknown(*branch, inside, here);
      for (size_t i = 0; i < branch_known.size() && i < branch->outputs.size(); ++i)
        branch_known[i] = branch_known[i] && known[static_cast<size_t>(branch->outputs[i])];
      if (inside.empty()) continue;
      refused[node.type + " (nodes of its branches read elements that other nodes compute)"].push_back(node.name);
      node.op = nullptr;
      break;
    }
    if (node.op == nullptr) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] < 0) continue;
      const bool known = is_known[static_cast<size_t>(node.inputs[i])];
      all_known = all_known && known;
      if (!known && i < 32 && (node.op->value_inputs >> i & 1) != 0) {
        refused[node.type + " (it reads elements that other nodes compute)"].push_back(node.name);
        node.op = nullptr;
        break;
      }
    }
    if (node.op == nullptr) continue;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.has_output(i))
        is_known[static_cast<size_t>(node.outputs[i])] = (node.op->is_shape || all_known) && branch_known[i];
    }
  }
  return is_known;
}

// Whether a node moves elements, or computes integers as shapes are: a call of ours costs more than it.
bool is_light(const Graph& graph, const Node& node) {
  static const std::set<std::string> kMoving = {
      "Cast",    "CastLike", "Concat", "Constant", "ConstantOfShape", "Expand",  "Flatten", "Gather",    "Identity",
      "Reshape", "Shape",    "Size",   "Slice",    "Split",           "Squeeze", "Tile",    "Transpose", "Unsqueeze"};
  if (kMoving.contains(node.type)) return true;
  for (const int output : node.outputs) {
    if (output >= 0 && is_real(graph.values[static_cast<size_t>(output)].dtype)) return false;
  }
  return true;
}

void Provider::claim(const OrtGraph* from, OrtEpGraphSupportInfo* info) {
  Graph graph = read_graph(from);
  if (graph.nodes.empty()) return;
  Refused refused;
  find_ops(graph, device, takes_branches, refused);
  drop_unknown(graph, refused);
  const OrtNode* parent = nullptr;
  check_ort(ort.Graph_GetParentNode(from, &parent));
  const bool is_whole = refused.empty();
  // ONNX Runtime asks for branches first: this one may come with its If.
  if (parent != nullptr && is_whole && takes_branches && type_of(parent) == "If") return;
  const std::vector<int> numbers = group_numbers(graph);
  std::map<int, std::vector<const Node*>> groups;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op != nullptr) groups[numbers[i]].push_back(&graph.nodes[i]);
  }
  if ((!is_whole || parent != nullptr) && device.name() == "cpu") {
    std::erase_if(groups, [&](const auto& group) {
      // A branch that both providers share changes threads at every border, which costs more than it gains.
      const bool goes =
          (parent != nullptr && !is_whole) || std::all_of(group.second.begin(), group.second.end(),
                                                          [&](const Node* node) { return is_light(graph, *node); });
      for (const Node* node : group.second) {
        if (goes) refused[node->type + " (not worth a call of ours)"].push_back(node->name);
      }
      return goes;
    });
  }
  const OrtNodeFusionOptions options{kInterface, true};
  size_t count = 0;
  for (const auto& [number, nodes] : groups) {
    std::vector<const OrtNode*> originals;
    for (const Node* node : nodes) originals.push_back(node->original);
    check_ort(ort.EpGraphSupportInfo_AddNodesToFuse(info, originals.data(), originals.size(), &options));
    count += nodes.size();
  }
  std::string text = std::to_string(count) + " of " + std::to_string(graph.nodes.size()) + " nodes run on " +
                     device.name() + " in " + std::to_string(groups.size()) + " groups";
  if (!refused.empty()) text += "; ONNX Runtime's CPU provider runs";
  for (const auto& [what, names] : refused) {
    text += "\n  " + what + ":";
    for (const std::string& name : names) text += " " + (name.empty() ? std::string("(no name)") : name);
  }
  log(logger, kInfo, text);
}

OrtStatus* get_capability(OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  return guarded([&] { static_cast<Provider*>(self)->claim(graph, info); });
}

OrtStatus* run_compiled(OrtNodeComputeInfo* self, void*, OrtKernelContext* context) {
  return guarded([&] { static_cast<Compiled*>(self)->graph->run(context); });
}

OrtStatus* compile(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count,
                   OrtNodeComputeInfo** infos, OrtNode**) {
  Provider& provider = *static_cast<Provider*>(self);
  return guarded([&] {
    for (size_t i = 0; i < count; ++i) infos[i] = nullptr;
    for (size_t i = 0; i < count; ++i) {
      Graph graph = read_graph(graphs[i]);
      Refused refused;
      find_ops(graph, provider.device, provider.takes_branches, refused);
      if (!refused.empty())
        throw std::runtime_error(refused.begin()->first + " " + refused.begin()->second.front() +
                                 " cannot be compiled");
      auto made = std::make_unique<Compiled>();
      static_cast<OrtNodeComputeInfo&>(*made) = {};
      made->version = kInterface;
      made->CreateState = [](OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) -> OrtStatus* {
        *state = nullptr;
        return nullptr;
      };
      made->ReleaseState = [](OrtNodeComputeInfo*, void*) {};
      made->Compute = run_compiled;
      made->graph =
          std::make_unique<CompiledGraph>(title_of(fused_nodes[i]), provider.device, std::move(graph),
                                          input_names(fused_nodes[i]), output_names(fused_nodes[i]), provider.options);
      infos[i] = made.release();
    }
  });
}

// ---- The factory ----------------------------------------------------------------------------------------------------

struct Factory : OrtEpFactory {
  const OrtLogger* logger = nullptr;
  compute::Device device;  // whose memory is offered; none: the host's is
  OrtMemoryInfo* memory_info = nullptr;
  bool takes_branches = false;
};

// An option of a session for this provider.
std::string option(const OrtSessionOptions* options, const std::string& name) {
  std::string lower = kName;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  const std::string key = "ep." + lower + "." + name;
  int has = 0;
  check_ort(ort.HasSessionConfigEntry(options, key.c_str(), &has));
  if (has == 0) return "";
  size_t size = 0;
  OrtStatus* const status = ort.GetSessionConfigEntry(options, key.c_str(), nullptr, &size);
  if (status != nullptr) ort.ReleaseStatus(status);
  std::string value(size, '\0');
  check_ort(ort.GetSessionConfigEntry(options, key.c_str(), value.data(), &size));
  value.resize(std::strlen(value.c_str()));
  return value;
}

OrtStatus* get_supported_devices(OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t device_count,
                                 OrtEpDevice** ep_devices, size_t max_ep_devices, size_t* ep_device_count) {
  Factory& factory = *static_cast<Factory*>(self);
  *ep_device_count = 0;
  return guarded([&] {
    for (size_t i = 0; i < device_count && max_ep_devices > 0; ++i) {
      if (ort.HardwareDevice_Type(devices[i]) != kCpuHardware) continue;
      OrtKeyValuePairs *metadata = nullptr, *options = nullptr;
      ort.CreateKeyValuePairs(&metadata);
      ort.CreateKeyValuePairs(&options);
      ort.AddKeyValuePair(metadata, "library", "compute");
      OrtEpDevice* made = nullptr;
      OrtStatus* const status = ort.CreateEpDevice(&factory, devices[i], metadata, options, &made);
      ort.ReleaseKeyValuePairs(metadata);
      ort.ReleaseKeyValuePairs(options);
      check_ort(status);
      try {
        factory.device = compute::Device::open();
        if (factory.device.name() == "cpu") factory.device = {};
      } catch (const std::exception& error) {  // a session that names no other device will tell the same
        log(factory.logger, kWarning, error.what());
      }
      if (factory.device.defined()) {
        check_ort(ort.CreateMemoryInfo_V2("Compute", 1, kVendor, 0, 0, 64, 0, &factory.memory_info));
        check_ort(ort.EpDevice_AddAllocatorInfo(made, factory.memory_info));
      }
      ep_devices[0] = made;
      *ep_device_count = 1;
      return;
    }
  });
}

OrtStatus* create_ep(OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                     const OrtSessionOptions* options, const OrtLogger* logger, OrtEp** out) {
  *out = nullptr;
  Factory& factory = *static_cast<Factory*>(self);
  return guarded([&] {
    auto made = std::make_unique<Provider>();
    static_cast<OrtEp&>(*made) = {};
    made->version = kInterface;
    made->GetName = [](const OrtEp*) { return kName; };
    made->GetCapability = get_capability;
    made->Compile = compile;
    made->ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
      for (size_t i = 0; i < count; ++i) delete static_cast<Compiled*>(infos[i]);
    };
    made->logger = logger;
    made->takes_branches = factory.takes_branches;
    const std::string selector = option(options, "device"), limit = option(options, "graphs");
    const std::string placement = option(options, "placement");
    made->device = !selector.empty()          ? compute::Device::open(selector)
                   : factory.device.defined() ? factory.device
                                              : compute::Device::open();
    // ONNX Runtime takes the memory of all sessions from the device that was offered.
    if (factory.device.defined() && made->device.get() != factory.device.get())
      throw std::runtime_error("the option device names " + std::string(made->device.name()) +
                               ", but values lie in memory of " + std::string(factory.device.name()) +
                               ": set COMPUTE_DEVICE instead");
    if (!limit.empty()) made->options.program_limit = static_cast<size_t>(std::max(1, std::atoi(limit.c_str())));
    if (!placement.empty() && placement != "auto" && placement != "always")
      throw std::runtime_error("the option placement is auto or always, not " + placement);
    made->options.chooses_host = placement != "always";
    made->options.log = [logger](const std::string& text) { log(logger, kInfo, text); };
    *out = made.release();
  });
}

OrtStatus* create_allocator(OrtEpFactory* self, const OrtMemoryInfo* info, const OrtKeyValuePairs*,
                            OrtAllocator** out) {
  *out = nullptr;
  Factory& factory = *static_cast<Factory*>(self);
  return guarded([&] {
    if (factory.device.defined()) *out = make_allocator(factory.device, info != nullptr ? info : factory.memory_info);
  });
}

OrtStatus* create_data_transfer(OrtEpFactory* self, OrtDataTransferImpl** out) {
  *out = nullptr;
  Factory& factory = *static_cast<Factory*>(self);
  return guarded([&] {
    if (factory.memory_info != nullptr) *out = make_data_transfer(factory.memory_info);
  });
}

// 32 of 1.32.0: the number of the interface.
int minor_version(const OrtApiBase* base) {
  const char* const dot = std::strchr(base->GetVersionString(), '.');
  return dot == nullptr ? 0 : std::atoi(dot + 1);
}

}  // namespace
}  // namespace onnxruntime_compute

using namespace onnxruntime_compute;

EXPORTED OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger* logger,
                                      OrtEpFactory** factories, size_t max_factories, size_t* factory_count) {
  *factory_count = 0;
  const void* const* const api = base->GetApi(kInterface);
  if (api == nullptr) {
    // Interface 1 is part of every later one: its first function makes a status.
    const void* const* const first = base->GetApi(1);
    const std::string version = base->GetVersionString();
    const std::string theirs = std::to_string(minor_version(base));
    const std::string message = "onnxruntime_compute is made for interface " + std::to_string(kInterface) +
                                " of ONNX Runtime; this is ONNX Runtime " + version + ", whose interface is " + theirs;
    return reinterpret_cast<OrtStatus* (*)(int32_t, const char*)>(const_cast<void*>(first[0]))(kFail, message.c_str());
  }
  ort.set(api);
  return guarded([&] {
    if (max_factories < 1) throw std::runtime_error("no room for a factory");
    auto made = std::make_unique<Factory>();
    static_cast<OrtEpFactory&>(*made) = {};
    made->version = kInterface;
    made->GetName = [](const OrtEpFactory*) { return kName; };
    made->GetVendor = [](const OrtEpFactory*) { return "compute"; };
    made->GetVendorId = [](const OrtEpFactory*) { return kVendor; };
    made->GetVersion = [](const OrtEpFactory*) { return kVersion; };
    made->GetSupportedDevices = get_supported_devices;
    made->CreateEp = create_ep;
    made->ReleaseEp = [](OrtEpFactory*, OrtEp* ep) { delete static_cast<Provider*>(ep); };
    made->CreateAllocator = create_allocator;
    made->ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* allocator) { release_allocator(allocator); };
    made->CreateDataTransfer = create_data_transfer;
    made->takes_branches = minor_version(base) >= kBranchesSince;
    made->IsStreamAware = [](const OrtEpFactory*) { return false; };
    made->logger = logger;
    factories[0] = made.release();
    *factory_count = 1;
  });
}

EXPORTED OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  auto* const ours = static_cast<Factory*>(factory);
  if (ours->memory_info != nullptr) ort.ReleaseMemoryInfo(ours->memory_info);
  delete ours;
  return nullptr;
}

// For tests and reports: runs of fused nodes, traces, and inputs that were copied; names of ops, and of functions of ONNX
// Runtime that were not called, separated by blanks.
EXPORTED void onnxruntime_compute_counters(int64_t* runs, int64_t* traces, int64_t* copied_inputs) {
  *runs = counters.runs.load();
  *traces = counters.traces.load();
  *copied_inputs = counters.copied_inputs.load();
}

EXPORTED int64_t onnxruntime_compute_names(int32_t of_ops, char* text, int64_t capacity) {
  std::string all;
  if (of_ops != 0) {
    for (const std::string& name : op_names()) all += name + " ";
  } else {
    for (const char* const name : ort.uncalled()) all += std::string(name) + " ";
  }
  const auto size = static_cast<int64_t>(all.size());
  if (size < capacity) std::memcpy(text, all.c_str(), all.size() + 1);
  return size;
}
