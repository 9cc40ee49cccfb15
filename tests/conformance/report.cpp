// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/oracle/elementwise.hpp"

namespace compute::conformance {

namespace {

// A call of an op that is as good as any other to ask about.
struct Example {
  std::vector<Dtype> inputs;  // of shape [8, 8] each
  Attributes attributes;
};

Example example_of(const std::string& op, Dtype dtype) {
  if (const oracle::Elementwise* row = oracle::find_elementwise(op)) {
    Example example{std::vector<Dtype>(static_cast<size_t>(row->arity), dtype), {}};
    if (row->output == oracle::Elementwise::SECOND) example.inputs[0] = dtype::BOOL;
    return example;
  }
  const int64_t eight = 8, id = dtype;
  if (op == "matmul" || op == "concat" || op == "stack") return {{dtype, dtype}, {}};
  if (op == "take" || op == "take_along_axis") return {{dtype, dtype::INT64}, {}};
  if (op == "scatter") return {{dtype, dtype::INT64, dtype}, {}};
  if (op == "cast")
    return {{dtype}, {{"dtype", int64_t{oracle::is_complex(dtype) ? dtype::COMPLEX64 : dtype::FLOAT32}}}};
  if (op == "arange") return {{}, {{"size", eight}, {"dtype", id}}};
  if (op == "eye") return {{}, {{"rows", eight}, {"columns", eight}, {"dtype", id}}};
  if (op == "fill") return {{}, {{"shape", Shape{8, 8}}, {"dtype", id}}};
  if (op == "linspace") return {{}, {{"start", int64_t{0}}, {"stop", eight}, {"size", eight}, {"dtype", id}}};
  return {{dtype}, {}};
}

nlohmann::ordered_json support_of(const Session& session, const std::string& op, Dtype dtype) {
  const compute_op* handle = nullptr;
  check(compute_op_find(op.c_str(), 0, &handle));
  const Example example = example_of(op, dtype);
  const AttributeList attributes(example.attributes);
  const int64_t shape[] = {8, 8};
  std::vector<compute_tensor_spec> specs;
  for (Dtype input : example.inputs) {
    compute_tensor_spec spec{};
    spec.struct_size = sizeof spec;
    spec.struct_type = COMPUTE_STRUCT_TENSOR_SPEC;
    spec.dtype = input;
    spec.rank = 2;
    spec.shape = shape;
    specs.push_back(spec);
  }
  compute_support answer = {};
  answer.struct_size = sizeof answer;
  const Error error(compute_op_query(session.device(), handle, attributes.data(), attributes.size(), specs.data(),
                                     static_cast<int64_t>(specs.size()), nullptr, 0, &answer));
  static constexpr const char* kSupport[] = {"none", "native", "decomposed", "host"};
  nlohmann::ordered_json entry;
  entry["support"] = error || answer.support < 0 || answer.support > 3 ? "none" : kSupport[answer.support];
  const std::string text = error ? error.message() : compute_text_data(answer.text);
  if (!text.empty()) entry["reason"] = text;
  compute_text_free(answer.text);
  return entry;
}

}  // namespace

const char* ending_name(Ending ending) {
  static constexpr const char* kNames[] = {"pass", "fail", "unsupported", "xfail"};
  return kNames[static_cast<int>(ending)];
}

nlohmann::ordered_json support_matrix(const std::vector<Target>& targets, const std::vector<Test>& tests) {
  nlohmann::ordered_json root;
  root["devices"] = nlohmann::ordered_json::array();
  for (const Target& target : targets) {
    nlohmann::ordered_json device;
    device["name"] = target.session->name();
    device["plugin"] = target.session->plugin();
    device["description"] = target.description;
    nlohmann::ordered_json ops = nlohmann::ordered_json::object(), others = nlohmann::ordered_json::object();
    for (const Test& test : tests) {
      const std::string name = test.group + "." + test.name;
      const auto ending = target.endings.find(name);
      if (ending == target.endings.end()) continue;
      nlohmann::ordered_json entry;
      if (!test.op.empty() && test.dtypes.size() == 1) entry = support_of(*target.session, test.op, test.dtypes[0]);
      entry["result"] = ending_name(ending->second);
      if (const auto reason = target.reasons.find(name); reason != target.reasons.end()) entry["why"] = reason->second;
      if (!test.op.empty() && test.dtypes.size() == 1) {
        ops[test.op][oracle::info(test.dtypes[0]).name] = entry;
      } else {
        others[name] = entry;
      }
    }
    device["ops"] = ops;
    device["tests"] = others;
    root["devices"].push_back(device);
  }
  return root;
}

namespace {

void write(const std::string& text, const std::string& path) {
  if (path.empty()) return;
  if (path == "-") {
    std::cout << text;
    return;
  }
  std::ofstream file(path);
  file << text;
  if (!file) throw std::runtime_error("cannot write " + path);
}

// A line per op and a column per dtype.
std::string table_of(const nlohmann::ordered_json& matrix) {
  std::ostringstream out;
  for (const auto& device : matrix["devices"]) {
    out << device["name"].get<std::string>() << " (" << device["description"].get<std::string>()
        << "): n native, d decomposed, h on the host, - not supported; ! the test failed, x it is expected to fail\n";
    size_t width = 0;
    for (const auto& [op, dtypes] : device["ops"].items()) width = std::max(width, op.size());
    out << std::string(width, ' ');
    for (const oracle::DtypeInfo& info : oracle::kDtypes) out << " " << info.name;
    out << "\n";
    for (const auto& [op, dtypes] : device["ops"].items()) {
      std::string line = op + std::string(width - op.size(), ' ');
      for (const oracle::DtypeInfo& info : oracle::kDtypes) {
        std::string cell;
        if (const auto entry = dtypes.find(info.name); entry != dtypes.end()) {
          const std::string support = entry->value("support", "none"), result = entry->value("result", "");
          cell = support == "none" || result == "unsupported" ? "-" : support.substr(0, 1);
          if (result == "fail") cell += "!";
          if (result == "xfail") cell += "x";
        }
        line += " " + cell + std::string(std::string_view(info.name).size() - cell.size(), ' ');
      }
      out << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
    }
  }
  return out.str();
}

}  // namespace

void write_matrix(const nlohmann::ordered_json& matrix, const std::string& json_path, const std::string& text_path) {
  write(matrix.dump(1) + "\n", json_path);
  write(table_of(matrix), text_path);
}

}  // namespace compute::conformance
