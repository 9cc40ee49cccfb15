// SPDX-License-Identifier: Apache-2.0
// Profile, trace, placement and leaks of one random program, against the counters of the devices. Every test is a
// separate process, because observations start when the first device is opened.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

#include "runtime.hpp"
#include "tests/gate/gate.hpp"

namespace {

using compute::Format;
using compute::Gate;
using compute::Graph;
using compute::Stream;
using compute::Tensor;
using nlohmann::json;
using namespace runtime;

// A line of this file where debug information can be read, else a symbol or an offset of this program.
const char* const kOwnPlace =
    dlopen("libdw.so.1", RTLD_NOW) != nullptr || dlopen("libbacktrace.so.0", RTLD_NOW) != nullptr
        ? "observation_test.cpp:"
        : "runtime_observation_tests";

class ObservationSettings : public ::testing::Environment {
 public:
  void SetUp() override {
    setenv("COMPUTE_MINIMAL_WITHOUT", "float16-arithmetic", 1);
    compute::config_set("COMPUTE_LEAKS", "1");
    compute::config_set("COMPUTE_PLACEMENT", "1");
    compute::config_set("COMPUTE_FALLBACK", "allow");
  }
};
const auto* const environment = ::testing::AddGlobalTestEnvironment(new ObservationSettings);

// Ops on both devices, transfers of each kind, decomposed ops, ops that fall back, a graph.
void run_program(uint32_t seed, std::vector<Tensor>& kept) {
  std::mt19937 random(seed);
  const Stream stream(remote());
  std::vector<Tensor> here, there;
  for (int i = 0; i < 4; ++i) {
    here.push_back(host().from_host(iota(64)));
    here.back().set_label("host" + std::to_string(i));
    there.push_back(remote().from_host(iota(64)));
    there.back().set_label("remote" + std::to_string(i));
  }
  const Tensor halves = compute::cast(host().full({8}, 1.f), compute::float16);
  const auto pick = [&](std::vector<Tensor>& list) -> Tensor& { return list[random() % list.size()]; };
  for (int step = 0; step < 200; ++step) {
    switch (random() % 9) {
      case 0:
        pick(there) = compute::add(pick(there), pick(there));
        break;
      case 1:
        pick(there) = compute::add(pick(here), pick(there), stream);
        break;
      case 2:
        pick(here) = compute::multiply(pick(here), pick(here));
        break;
      case 3:
        EXPECT_EQ(pick(there).to_vector<float>().size(), 64u);
        break;
      case 4:
        pick(there) = pick(here).to(remote());
        break;
      case 5:
        pick(here).write(iota(64).data(), 256);
        break;
      case 6:
        pick(there) = compute::softmax(pick(there));
        break;
      case 7:
        kept.push_back(compute::sum(pick(there)));
        break;
      case 8:
        static_cast<void>(compute::add(halves, halves, stream));
        break;
    }
  }
  Tensor x = there[0], y;
  const Graph graph = Graph::record(stream, [&] { y = compute::exp(compute::negative(x, stream), stream); });
  for (int i = 0; i < 3; ++i) graph.run(stream);
  stream.synchronize();
}

struct Counters {
  compute_device_statistics here, there;
};
Counters counters() { return {host().statistics(), remote().statistics()}; }

TEST(Profile, AgreesWithTheStatistics) {
  std::vector<Tensor> kept;
  run_program(1, kept);  // not profiled
  const Counters before = counters();
  compute::profile_start();
  run_program(2, kept);
  const json profile = json::parse(compute::profile_report(Format::json));
  const Counters after = counters();
  std::map<std::string, int64_t> ops;
  for (const json& row : profile["ops"]) {
    ops[row["device"]] += row["ops"].get<int64_t>();
    EXPECT_EQ(row["untimed_calls"], 0) << row;
    EXPECT_GT(row["total_ns"], 0) << row;
  }
  EXPECT_EQ(ops["minimal0"], after.there.ops_run - before.there.ops_run);
  EXPECT_EQ(ops["cpu"], after.here.ops_run - before.here.ops_run);
  int64_t to = 0, to_bytes = 0, from = 0, from_bytes = 0, implicit = 0, implicit_bytes = 0;
  for (const json& row : profile["transfers"]) {
    const int64_t count = row["count"], bytes = row["bytes"];
    (row["to"] == "minimal0" ? to : from) += count;
    (row["to"] == "minimal0" ? to_bytes : from_bytes) += bytes;
    if (row["implicit"]) {
      implicit += count;
      implicit_bytes += bytes;
    }
  }
  EXPECT_EQ(to, after.there.transfers_to_device - before.there.transfers_to_device);
  EXPECT_EQ(to_bytes, after.there.transfers_to_device_bytes - before.there.transfers_to_device_bytes);
  EXPECT_EQ(from, after.there.transfers_from_device - before.there.transfers_from_device);
  EXPECT_EQ(from_bytes, after.there.transfers_from_device_bytes - before.there.transfers_from_device_bytes);
  EXPECT_EQ(implicit, after.there.transfers_implicit - before.there.transfers_implicit);
  EXPECT_EQ(implicit_bytes, after.there.transfers_implicit_bytes - before.there.transfers_implicit_bytes);
  EXPECT_GT(implicit, 0);
  const int64_t parts = profile["cpu_ns"].get<int64_t>() + profile["device_ns"].get<int64_t>() +
                        profile["transfer_ns"].get<int64_t>() + profile["elsewhere_ns"].get<int64_t>();
  EXPECT_EQ(parts, profile["wall_ns"].get<int64_t>()) << "each instant counts once";
  // The last line takes no more than the tables.
  std::map<std::string, int64_t> total;
  for (const json& row : profile["transfers"]) total["transfer"] += row["total_ns"].get<int64_t>();
  for (const json& row : profile["ops"])
    total[row["device"] == "cpu" ? "cpu" : "device"] += row["total_ns"].get<int64_t>();
  for (const auto& [part, ns] : total) EXPECT_LE(profile[part + "_ns"].get<int64_t>(), ns) << part;
}

TEST(Profile, NamesTensorsPlacesAndHints) {
  Tensor m = host().from_host(iota(1 << 20));
  m.set_label("m");
  compute::profile_start();
  compute::check(compute_scope_push("loop", "affine.py", 12));
  for (int i = 0; i < 20; ++i) static_cast<void>(m.to(remote()));
  compute::check(compute_scope_pop());
  compute_tensor* moved = nullptr;
  compute::check(compute_tensor_to_device(m.get(), remote().get(), &moved));
  compute_tensor_release(moved);
  const std::string text = compute::profile_report();
  EXPECT_NE(text.find("m (4.2 MB) went host→minimal0 20 times from loop (affine.py:12); keep it on the device "
                      "(to_device) to save about "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(kOwnPlace), std::string::npos) << "the caller's address has a line\n" << text;
  const size_t last = text.rfind("\nSpent ");
  ASSERT_NE(last, std::string::npos) << text;
  EXPECT_NE(text.find("s(0.0%) in gpu Op and ", last), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(" in transfer Op\n")) << text;
}

TEST(Profile, StopsAndStartsAgain) {
  compute::profile_start();
  const Tensor x = remote().from_host(iota(8));
  compute::profile_stop();
  static_cast<void>(compute::add(x, x));
  EXPECT_TRUE(json::parse(compute::profile_report(Format::json))["ops"].empty());
  compute::profile_start();
  static_cast<void>(compute::add(x, x));
  const json profile = json::parse(compute::profile_report(Format::json));
  ASSERT_EQ(profile["ops"].size(), 1u);
  EXPECT_EQ(profile["ops"][0]["op"], "add");
  EXPECT_EQ(profile["ops"][0]["bytes"], 96);
  EXPECT_TRUE(profile["transfers"].empty());
}

TEST(Profile, IsNotThereBeforeItIsStarted) {
  static_cast<void>(remote());
  EXPECT_EQ(thrown_by([] { static_cast<void>(compute::profile_report()); }).code, COMPUTE_ERROR_NOT_FOUND);
}

TEST(Profile, CountsTheOperationsOfProducts) {
  const auto ones = [](const compute::Shape& shape) { return remote().full(shape, 1.f); };
  const Tensor image = ones({2, 4, 6, 6}), weight = ones({8, 4, 3, 3}), kernel = ones({4, 8, 3, 3});
  const Tensor q = ones({1, 2, 5, 4}), k = ones({1, 2, 7, 4}), v = ones({1, 2, 7, 3});
  const int64_t convolved = int64_t{2} * 2 * 8 * 4 * 4 * 4 * 9;  // 8 channels of 4x4 results, 4 channels of 3x3 weights
  const int64_t scores = int64_t{1} * 2 * 5 * 7;
  const std::vector<std::tuple<std::string, int64_t, std::vector<Tensor>, std::vector<compute::Attribute>>> calls = {
      {"matmul", 2 * 8 * 32 * 4, {ones({8, 32}), ones({32, 4})}, {}},
      {"matmul", 2 * 3 * 8 * 32 * 4, {ones({3, 8, 32}), ones({32, 4})}, {}},
      {"affine", 2 * 8 * 32 * 4, {ones({8, 32}), ones({32, 4}), ones({4})}, {}},
      {"gemm", 2 * 8 * 32 * 4, {ones({8, 4}), ones({8, 32}), ones({32, 4})}, {}},
      {"tensordot",
       2 * 5 * 2 * 3 * 4,
       {ones({5, 2, 3}), ones({3, 4, 2})},
       {{"axes_a", compute::Shape{1, 2}}, {"axes_b", compute::Shape{2, 0}}}},
      {"einsum", 2 * 3 * 8 * 32 * 4, {ones({3, 8, 32}), ones({3, 4, 32})}, {{"equation", "bij,bkj->bik"}}},
      {"einsum", 2 * 3 * 8 * 32 * 4, {ones({3, 8, 32}), ones({32, 4})}, {{"equation", "...ij, jk"}}},
      {"convolution", convolved, {image, weight}, {}},
      {"convolution_grad_weight", convolved, {ones({2, 8, 4, 4}), image}, {{"kernel", compute::Shape{3, 3}}}},
      {"convolution_grad_input", convolved, {ones({2, 8, 4, 4}), weight}, {{"shape", compute::Shape{6, 6}}}},
      {"convolution_transpose", 2 * 2 * 4 * 36 * 8 * 9, {image, kernel}, {}},
      {"attention", 2 * scores * (4 + 3), {q, k, v}, {}},
      {"attention_grad",
       2 * scores * (3 * 4 + 2 * 3),
       {ones({1, 2, 5, 3}), q, k, v, ones({1, 2, 5, 3}), ones({1, 2, 5})},
       {}}};
  for (const auto& [op, flops, inputs, attributes] : calls) {
    compute::profile_start();
    static_cast<void>(compute::Op(op).run(inputs, attributes));
    const json profile = json::parse(compute::profile_report(Format::json));
    ASSERT_EQ(profile["ops"].size(), 1u) << op;
    EXPECT_EQ(profile["ops"][0]["flops"], flops) << op;
  }
  compute::profile_start();
  static_cast<void>(compute::exp(image));
  EXPECT_EQ(json::parse(compute::profile_report(Format::json))["ops"][0]["flops"], 0);
}

TEST(Profile, ExpressionsAreToldApart) {
  const Tensor x = remote().full({8}, 1.f);
  const compute::Expression first("tanh(a * a + 1)", {"a"}), second("exp(a) - a", {"a"});
  compute::profile_start();
  static_cast<void>(first(x));
  static_cast<void>(second(x));
  const json profile = json::parse(compute::profile_report(Format::json));
  std::set<std::string> names;
  for (const json& row : profile["ops"]) names.insert(row["op"]);
  EXPECT_EQ(names, (std::set<std::string>{"map tanh(a*a+1)", "map exp(a)-a"}));
}

TEST(Profile, AGraphIsOneRow) {
  const Stream stream(remote());
  Tensor x = remote().from_host(iota(8)), y;
  const Graph graph = Graph::record(stream, [&] { y = compute::exp(compute::negative(x, stream), stream); });
  compute::profile_start();
  for (int i = 0; i < 5; ++i) graph.run(stream);
  const json profile = json::parse(compute::profile_report(Format::json));
  ASSERT_EQ(profile["ops"].size(), 1u);
  EXPECT_EQ(profile["ops"][0]["op"], "graph of 2: negative exp");
  EXPECT_EQ(profile["ops"][0]["calls"], 5);
  EXPECT_EQ(profile["ops"][0]["ops"], 10);
  const std::string text = compute::profile_report();
  EXPECT_NE(text.find("\ngraph of 2: negative exp  minimal0  "), std::string::npos) << text;
}

// They share the mark between them, and are recorded while other work is submitted.
TEST(Profile, OpsInARowTakeTheTimeBetweenThem) {
  const Stream stream(remote());
  const Tensor x = remote().from_host(iota(8));
  compute::profile_start();
  for (int i = 0; i < 3000; ++i) static_cast<void>(compute::negative(x, stream));
  const json profile = json::parse(compute::profile_report(Format::json));
  ASSERT_EQ(profile["ops"].size(), 1u);
  EXPECT_EQ(profile["ops"][0]["calls"], 3000);
  EXPECT_EQ(profile["ops"][0]["untimed_calls"], 0);
  EXPECT_GT(profile["ops"][0]["total_ns"], 0);
  EXPECT_LE(profile["ops"][0]["total_ns"], profile["wall_ns"]);
}

TEST(Profile, AWaitForAnotherStreamBelongsToNoOp) {
  const Stream stream(remote()), other(remote());
  const Tensor x = remote().from_host(iota(8)), y = remote().from_host(iota(8));
  static_cast<void>(compute::negative(x, stream));
  static_cast<void>(compute::exp(y, stream));
  // The ops themselves may take long on a busy machine, but some wait is longer than they are.
  int64_t longest_ns = 0, waited_ns = 0;
  for (auto delay = std::chrono::milliseconds(30); delay < std::chrono::seconds(10); delay *= 3) {
    Gate gate;
    compute::profile_start();
    gate.hold(other, remote());
    const compute::Event held = other.record();
    static_cast<void>(compute::negative(x, stream));
    stream.wait(held);
    static_cast<void>(compute::exp(y, stream));
    gate.open_soon(delay);
    const json profile = json::parse(compute::profile_report(Format::json));
    EXPECT_GE(profile["ops"].size(), 2u);
    longest_ns = 0;
    for (const json& row : profile["ops"]) {
      EXPECT_EQ(row["untimed_calls"], 0) << row;
      longest_ns = std::max(longest_ns, row["total_ns"].get<int64_t>());
    }
    waited_ns = std::chrono::nanoseconds(delay).count();
    if (longest_ns < waited_ns) break;
  }
  EXPECT_LT(longest_ns, waited_ns) << "the wait is part of an op";
}

// ---- The trace ------------------------------------------------------------------------------------------------------

// What `schema`, in the part of JSON Schema that tests/runtime/trace_schema.json uses, finds wrong with `value`.
std::string fault_of(const json& schema, const json& value) {
  const std::map<std::string, bool> types = {{"object", value.is_object()},
                                             {"array", value.is_array()},
                                             {"string", value.is_string()},
                                             {"integer", value.is_number_integer()},
                                             {"number", value.is_number()}};
  if (schema.contains("type") && !types.at(schema["type"])) return value.dump() + " is no " + schema["type"].dump();
  if (schema.contains("const") && value != schema["const"]) return value.dump() + " is not " + schema["const"].dump();
  if (schema.contains("enum")) {
    bool found = false;
    for (const json& one : schema["enum"]) found = found || one == value;
    if (!found) return value.dump() + " is not one of " + schema["enum"].dump();
  }
  if (schema.contains("minimum") && value < schema["minimum"]) return value.dump() + " is too small";
  const json required = schema.value("required", json::array());
  const json properties = schema.value("properties", json::object());
  for (const json& name : required) {
    if (!value.contains(name)) return value.dump() + " lacks " + name.dump();
  }
  for (const auto& [name, part] : properties.items()) {
    if (!value.contains(name)) continue;
    if (const std::string fault = fault_of(part, value[name]); !fault.empty()) return fault;
  }
  if (schema.contains("items")) {
    for (const json& item : value) {
      if (const std::string fault = fault_of(schema["items"], item); !fault.empty()) return fault;
    }
  }
  if (!schema.contains("oneOf")) return "";
  std::string faults;
  for (const json& one : schema["oneOf"]) {
    const std::string fault = fault_of(one, value);
    if (fault.empty()) return "";
    faults += "\n  " + fault;
  }
  return "none of these fits:" + faults;
}

json read_json(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

TEST(Trace, FitsTheSchemaAndTheStatistics) {
  const std::string path = ::testing::TempDir() + "compute_trace.json";
  std::vector<Tensor> kept;
  run_program(3, kept);
  const Counters before = counters();
  compute::trace_start(path);
  run_program(4, kept);
  compute::trace_stop();
  const Counters after = counters();
  const json trace = read_json(path);
  EXPECT_EQ(fault_of(read_json(TRACE_SCHEMA), trace), "");
  int64_t ops = 0, transfers = 0, bytes = 0, allocations = 0;
  for (const json& event : trace) {
    const std::string category = event.value("cat", "");
    if (category == "op" || category == "graph") ops += event["args"]["ops"].get<int64_t>();
    if (category == "allocate" && event["name"].get<std::string>().find("pinned") == std::string::npos) ++allocations;
    if (category != "transfer") continue;
    ++transfers;
    bytes += event["args"]["bytes"].get<int64_t>();
  }
  const auto sum_of = [&](int64_t compute_device_statistics::*counter) {
    return after.here.*counter - before.here.*counter + after.there.*counter - before.there.*counter;
  };
  EXPECT_EQ(ops, sum_of(&compute_device_statistics::ops_run));
  EXPECT_EQ(transfers, sum_of(&compute_device_statistics::transfers_to_device) +
                           sum_of(&compute_device_statistics::transfers_from_device));
  EXPECT_EQ(bytes, sum_of(&compute_device_statistics::transfers_to_device_bytes) +
                       sum_of(&compute_device_statistics::transfers_from_device_bytes));
  EXPECT_EQ(allocations, sum_of(&compute_device_statistics::allocations));
  std::filesystem::remove(path);
}

TEST(Trace, TheSchemaFindsFaults) {
  const json schema = read_json(TRACE_SCHEMA);
  const json good = {{"name", "add"}, {"cat", "op"}, {"ph", "X"}, {"ts", 1.5},
                     {"dur", 2.0},    {"pid", 1},    {"tid", 2},  {"args", json::object()}};
  EXPECT_EQ(fault_of(schema, json::array({good})), "");
  for (const char* name : {"name", "ph", "ts", "dur", "pid", "tid"}) {
    json bad = good;
    bad.erase(name);
    EXPECT_NE(fault_of(schema, json::array({bad})), "") << name;
  }
  json bad = good;
  bad["dur"] = -1;
  EXPECT_NE(fault_of(schema, json::array({bad})), "");
}

TEST(Trace, NeedsAFileThatCanBeWritten) {
  const Thrown thrown = thrown_by([] { compute::trace_start("/nowhere/trace.json"); });
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_IO);
  EXPECT_NE(thrown.message.find("/nowhere/trace.json"), std::string::npos) << thrown.message;
  compute::trace_stop();  // there is none
  // A file that is not complete, as on a full disk.
  compute::trace_start("/dev/full");
  const Thrown full = thrown_by([] { compute::trace_stop(); });
  EXPECT_EQ(full.code, COMPUTE_ERROR_IO);
  EXPECT_NE(full.message.find("No space left on device"), std::string::npos) << full.message;
}

// ---- Leaks and placement --------------------------------------------------------------------------------------------

TEST(Leaks, AgreeWithTheStatistics) {
  std::vector<Tensor> kept;
  run_program(5, kept);
  const int64_t shape[] = {1000};
  compute_tensor* made = nullptr;
  compute::check(compute_tensor_empty(remote().get(), COMPUTE_DTYPE_FLOAT32, 1, shape, &made));
  kept.emplace_back(made);
  kept.back().set_label("kept");
  kept.push_back(kept.back().slice(0, 0, 10));
  const json report = json::parse(compute::leak_report(Format::json));
  EXPECT_EQ(report["tensors"].size(), kept.size());
  const Counters now = counters();
  ASSERT_EQ(report["devices"].size(), 1u);
  EXPECT_EQ(report["devices"][0]["device"], "minimal0");
  EXPECT_EQ(report["devices"][0]["bytes"], now.there.memory_used - now.there.memory_mirrors);
  EXPECT_EQ(report["devices"][0]["blocks"], now.there.blocks_live);
  const json& tensor = report["tensors"][kept.size() - 2];
  EXPECT_EQ(tensor["label"], "kept");
  EXPECT_NE(tensor["place"].get<std::string>().find(kOwnPlace), std::string::npos) << tensor;
  ASSERT_EQ(report["cached"].size(), 2u);
  for (const json& row : report["cached"]) {
    const compute_device_statistics& device = row["device"] == "cpu" ? now.here : now.there;
    EXPECT_EQ(row["bytes"], device.memory_reserved - device.memory_used) << row;
    EXPECT_LE(row["largest_bytes"], row["bytes"]) << row;
  }
  kept.clear();
  EXPECT_TRUE(json::parse(compute::leak_report(Format::json))["tensors"].empty());
}

// Sums of a placement report, by the names of the counters that they must equal.
std::map<std::string, int64_t> placement_sums() {
  std::map<std::string, int64_t> sums;
  const json report = json::parse(compute::placement_report(Format::json));
  for (const json& row : report["ops"]) sums["ops " + row["device"].get<std::string>()] += row["runs"].get<int64_t>();
  for (const json& row : report["fallbacks"]) sums["fallbacks"] += row["count"].get<int64_t>();
  for (const json& row : report["inputs"]) sums[row["was"].get<std::string>()] += row["count"].get<int64_t>();
  for (const json& row : report["devices"]) {
    for (const auto& [name, value] : row.items()) {
      if (value.is_number()) sums[name] += value.get<int64_t>();
    }
  }
  return sums;
}

TEST(Placement, AgreesWithTheStatistics) {
  std::vector<Tensor> kept;
  run_program(6, kept);
  const Counters before = counters();
  std::map<std::string, int64_t> sums = placement_sums();
  run_program(7, kept);
  const Counters after = counters();
  for (const auto& [name, value] : placement_sums()) sums[name] = value - sums[name];
  EXPECT_EQ(sums["ops cpu"], after.here.ops_run - before.here.ops_run);
  EXPECT_EQ(sums["ops minimal0"], after.there.ops_run - before.there.ops_run);
  const auto there = [&](int64_t compute_device_statistics::*counter) {
    return after.there.*counter - before.there.*counter;
  };
  EXPECT_GT(sums["fallbacks"], 0);
  EXPECT_EQ(sums["fallbacks"], there(&compute_device_statistics::ops_fallback));
  EXPECT_EQ(sums["ops_fallback"], there(&compute_device_statistics::ops_fallback));
  EXPECT_EQ(sums["mirror"], there(&compute_device_statistics::mirror_hits));
  EXPECT_EQ(sums["mirror_hits"], there(&compute_device_statistics::mirror_hits));
  EXPECT_EQ(sums["copied"], there(&compute_device_statistics::transfers_implicit));
  EXPECT_EQ(sums["transfers_implicit"], there(&compute_device_statistics::transfers_implicit));
  EXPECT_EQ(sums["transfers_to_device"], there(&compute_device_statistics::transfers_to_device));
  EXPECT_EQ(sums["transfers_to_device_bytes"], there(&compute_device_statistics::transfers_to_device_bytes));
  EXPECT_EQ(sums["transfers_from_device"], there(&compute_device_statistics::transfers_from_device));
  EXPECT_EQ(sums["transfers_from_device_bytes"], there(&compute_device_statistics::transfers_from_device_bytes));
}

TEST(Placement, TellsWhereInputsCameFrom) {
  const Stream stream(remote());
  const Tensor x = host().from_host(iota(8)), y = remote().from_host(iota(8));
  for (int i = 0; i < 3; ++i) static_cast<void>(compute::subtract(x, y, stream));
  std::map<std::string, int64_t> inputs;
  const json report = json::parse(compute::placement_report(Format::json));
  for (const json& row : report["inputs"]) {
    if (row["op"] != "subtract") continue;
    inputs[std::to_string(row["input"].get<int>()) + row["was"].get<std::string>()] = row["count"];
    EXPECT_NE(row["place"].get<std::string>().empty(), row["was"] == "copied") << row;
  }
  EXPECT_EQ(inputs, (std::map<std::string, int64_t>{{"0copied", 1}, {"0mirror", 2}, {"1there", 3}}));
}

// ---- Settings and devices ------------------------------------------------------------------------------------------

TEST(Descriptions, NameEverySetting) {
  bool found = false;
  for (const json& row : json::parse(compute::config_describe(Format::json))) {
    EXPECT_FALSE(row["summary"].get<std::string>().empty()) << row;
    if (row["name"] != "COMPUTE_TRANSFERS") continue;
    found = true;
    EXPECT_EQ(row["flag"], "--compute-transfers");
    EXPECT_EQ(row["kind"], "choice");
    EXPECT_EQ(row["default"], "allow");
    EXPECT_EQ(row["values"], "allow warn error break");
    EXPECT_EQ(row["origin"], "default");
  }
  EXPECT_TRUE(found);
  EXPECT_NE(compute::config_describe().find("COMPUTE_PLACEMENT\n"), std::string::npos);
}

}  // namespace
