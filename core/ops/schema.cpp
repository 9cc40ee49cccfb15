// SPDX-License-Identifier: Apache-2.0
#include "core/ops/schema.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <charconv>
#include <mutex>

#include "core/base/error.hpp"
#include "core/text/ascii.hpp"
#include "core/text/nearest_name.hpp"
#include "core/text/printable.hpp"

namespace compute {

// ---- Parts of rows --------------------------------------------------------------------------------------------------

DtypeClass class_from_text(std::string_view text) {
  constexpr std::pair<std::string_view, DtypeClass> kClasses[] = {
      {"ANY", DtypeClass::kAny},         {"BOOL", DtypeClass::kBool},       {"INTEGER", DtypeClass::kInteger},
      {"BITS", DtypeClass::kBits},       {"REAL", DtypeClass::kReal},       {"FLOAT", DtypeClass::kFloat},
      {"COMPLEX", DtypeClass::kComplex}, {"INEXACT", DtypeClass::kInexact}, {"NUMERIC", DtypeClass::kNumeric}};
  for (const auto& [name, value] : kClasses) {
    if (name == text) return value;
  }
  throw Error(COMPUTE_ERROR_INTERNAL, "ops.def: no dtype class is called " + std::string(text));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    const std::string_view part = trimmed(text.substr(0, end));
    if (!part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

AttributeSchema parse_attribute(std::string_view text) {
  AttributeSchema attribute;
  if (text.ends_with('!')) {
    attribute.run_time = true;
    text = trimmed(text.substr(0, text.size() - 1));
  }
  const size_t colon = text.find(':');
  attribute.name = trimmed(text.substr(0, colon));
  std::string_view kind = text.substr(colon + 1);
  if (const size_t equals = kind.find('='); equals != std::string_view::npos) {
    attribute.default_text = trimmed(kind.substr(equals + 1));
    kind = kind.substr(0, equals);
  } else {
    attribute.required = true;
  }
  kind = trimmed(kind);
  if (kind.ends_with("[]")) {
    attribute.is_list = true;
    kind.remove_suffix(2);
  }
  constexpr std::pair<std::string_view, AttributeKind> kKinds[] = {
      {"int64", AttributeKind::kInt64}, {"float64", AttributeKind::kFloat64}, {"string", AttributeKind::kString},
      {"dtype", AttributeKind::kDtype}, {"number", AttributeKind::kNumber},   {"handle", AttributeKind::kHandle}};
  const auto* found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& x) { return x.first == kind; });
  if (found == std::end(kKinds)) throw Error(COMPUTE_ERROR_INTERNAL, "ops.def: attribute " + std::string(text));
  attribute.kind = found->second;
  const std::string& value = attribute.default_text;
  if (attribute.required || value == "all" || value == "none") return attribute;
  attribute.has_default = true;
  if (attribute.kind == AttributeKind::kString) return attribute;
  const auto result = std::from_chars(value.data(), value.data() + value.size(), attribute.default_float64);
  if (result.ptr != value.data() + value.size()) throw Error(COMPUTE_ERROR_INTERNAL, "ops.def: default " + value);
  attribute.default_int64 = static_cast<int64_t>(attribute.default_float64);
  return attribute;
}

OpSchema elementwise(OpId id, std::string_view name, int32_t version, std::span<const std::string_view> names,
                     std::string_view inputs, std::string_view expression, std::string_view summary) {
  OpSchema op{};
  op.id = id;
  op.name = name;
  op.version = version;
  op.summary = summary;
  op.flags = kOpInPlace;
  op.inputs.assign(names.begin(), names.end());
  op.optional.resize(op.inputs.size());
  for (const std::string& input : op.inputs) op.inputs_text += (op.inputs_text.empty() ? "" : " ") + input;
  op.dtype_rule = "elementwise";
  op.shape_rule = "broadcast";
  op.is_elementwise = true;
  op.expression_text = expression;
  op.input_class = class_from_text(inputs);
  op.input_class_text = inputs;
  return op;
}

namespace {

// What the one result is called where the row does not say it.
const char* default_output(const OpSchema& op) {
  const bool has_y = std::find(op.inputs.begin(), op.inputs.end(), "y") != op.inputs.end();
  return has_y || op.inputs.empty() || op.inputs[0] != "x" ? "result" : "y";
}

}  // namespace

void complete(OpSchema& op) {
  if (op.outputs.empty()) op.outputs.emplace_back(default_output(op));
  op.output_count = static_cast<int32_t>(op.outputs.size());
  for (const std::string& output : op.outputs) op.outputs_text += (op.outputs_text.empty() ? "" : " ") + output;
  op.defaults = default_attributes(op);
  if (op.defaults) op.defaults_hash = op.defaults->hash();
  op.least_inputs = static_cast<int32_t>(op.inputs.size());
  while (op.least_inputs > 0 && op.optional[static_cast<size_t>(op.least_inputs - 1)]) --op.least_inputs;
}

// ---- The table ------------------------------------------------------------------------------------------------------

namespace {

constexpr size_t kOpCount = static_cast<size_t>(OpId::kCount);

// The flags as ops.def spells them. DECOMPOSED and LIBRARY are for docs/ops.md alone.
namespace flag {
[[maybe_unused]] constexpr int32_t NONE = 0, IN_PLACE = kOpInPlace, GROUPS = kOpGroups, HOST = kOpHost, DECOMPOSED = 0,
                                   LIBRARY = 0;
}

RowResult result_from_text(std::string_view text) {
  if (text == "SAME") return RowResult::kSame;
  if (text == "BOOL") return RowResult::kBool;
  if (text == "PART") return RowResult::kPart;
  if (text == "SECOND") return RowResult::kSecond;
  throw Error(COMPUTE_ERROR_INTERNAL, "ops.def: no result rule is called " + std::string(text));
}

OpSchema row(OpId id, const char* name, int32_t version, int32_t arity, const char* inputs, const char* result,
             const char* expression, int32_t ulp, const char* summary) {
  constexpr std::string_view kNames[] = {"x", "y", "z"};
  const std::span names = std::span(kNames).first(static_cast<size_t>(arity));
  OpSchema op = elementwise(id, name, version, names, inputs, expression, summary);
  op.bound = "ulp:" + std::to_string(ulp);
  op.expression = parse(expression, names);
  op.result = result_from_text(result);
  op.ulp = ulp;
  return op;
}

// The inputs and the outputs of "x -> values indices".
std::pair<std::string_view, std::string_view> sides_of(std::string_view text) {
  const size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) return {text, {}};
  return {trimmed(text.substr(0, arrow)), trimmed(text.substr(arrow + 2))};
}

// Whether op_rules.def has a rule.
consteval bool is_dtype_rule(std::string_view given) {
#define COMPUTE_DTYPE_RULE(name, text) \
  if (given == #name) return true;
#define COMPUTE_SHAPE_RULE(name, text)
#include "core/ops/op_rules.def"
#undef COMPUTE_DTYPE_RULE
#undef COMPUTE_SHAPE_RULE
  return false;
}
consteval bool is_shape_rule(std::string_view given) {
#define COMPUTE_DTYPE_RULE(name, text)
#define COMPUTE_SHAPE_RULE(name, text) \
  if (given == #name) return true;
#include "core/ops/op_rules.def"
#undef COMPUTE_DTYPE_RULE
#undef COMPUTE_SHAPE_RULE
  return false;
}

OpSchema other(OpId id, const char* name, int32_t version, const char* inputs, const char* attributes,
               const char* dtype_rule, const char* shape_rule, const char* bound, int32_t flags, const char* summary) {
  OpSchema op{};
  op.id = id;
  op.name = name;
  op.version = version;
  op.summary = summary;
  op.flags = flags;
  const auto [inputs_text, outputs_text] = sides_of(inputs);
  op.inputs_text = inputs_text;
  op.attributes_text = attributes;
  op.dtype_rule = dtype_rule;
  op.shape_rule = shape_rule;
  op.bound = bound;
  for (const std::string_view output : split(outputs_text, ' ')) op.outputs.emplace_back(output);
  for (std::string_view input : split(inputs_text, ' ')) {
    op.optional.push_back(input.ends_with('?'));
    if (input.ends_with('?')) input.remove_suffix(1);
    op.is_variadic = input.ends_with("...");
    if (op.is_variadic) input.remove_suffix(3);
    op.inputs.emplace_back(input);
  }
  for (const std::string_view attribute : split(attributes, ';')) {
    if (attribute.ends_with('!')) op.run_time.push_back(static_cast<int32_t>(op.attributes.size()));
    op.attributes.push_back(parse_attribute(attribute));
  }
  assert(op.attributes.size() <= kMaxAttributes && op.run_time.size() <= kMaxRunTimeAttributes);
  return op;
}

bool precedes(const OpSchema* a, const OpSchema* b) {
  return std::tie(a->name, a->version) < std::tie(b->name, b->version);
}

using Sorted = std::vector<const OpSchema*>;

struct Tables {
  std::vector<OpSchema> ops;  // by OpId
  // With the registered ones. Readers take no lock, so that a list stays when the next one takes its place.
  std::atomic<const Sorted*> sorted;
  std::vector<std::unique_ptr<const Sorted>> lists;        // (registering)
  std::vector<std::unique_ptr<const OpSchema>> additions;  // (registering)
  std::mutex registering;

  Tables() {
    ops.reserve(kOpCount);
#define COMPUTE_ELEMENTWISE(arity, name, version, inputs, result, expression, ulp, summary, ...) \
  ops.push_back(row(OpId::k_##name##_##version, #name, version, arity, #inputs, #result, expression, ulp, summary));
#define COMPUTE_UNARY(...) COMPUTE_ELEMENTWISE(1, __VA_ARGS__)
#define COMPUTE_BINARY(...) COMPUTE_ELEMENTWISE(2, __VA_ARGS__)
#define COMPUTE_TERNARY(...) COMPUTE_ELEMENTWISE(3, __VA_ARGS__)
#define COMPUTE_OP(name, version, inputs, attributes, dtype_rule, shape_rule, bound, flags, summary, ...)              \
  {                                                                                                                    \
    using namespace flag;                                                                                              \
    static_assert(is_dtype_rule(dtype_rule) && is_shape_rule(shape_rule), "op_rules.def lacks a rule of " #name);      \
    ops.push_back(other(OpId::k_##name##_##version, #name, version, inputs, attributes, dtype_rule, shape_rule, bound, \
                        flags, summary));                                                                              \
  }
#include <compute/ops.def>
#undef COMPUTE_ELEMENTWISE
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP
    auto all = std::make_unique<Sorted>();
    for (OpSchema& op : ops) {
      complete(op);
      all->push_back(&op);
    }
    std::sort(all->begin(), all->end(), precedes);
    sorted = all.get();
    lists.push_back(std::move(all));
  }
};

// Never destroyed: handles of ops outlive everything.
Tables& tables() {
  static Tables& instance = *new Tables;
  return instance;
}

}  // namespace

const OpSchema& add_schema(std::unique_ptr<const OpSchema> op) {
  Tables& all_ops = tables();
  const std::lock_guard guard(all_ops.registering);
  const Sorted& known = *all_ops.sorted.load(std::memory_order_relaxed);
  auto longer = std::make_unique<Sorted>(known);
  const auto place = std::lower_bound(longer->begin(), longer->end(), op.get(), precedes);
  if (place != longer->end() && (*place)->name == op->name && (*place)->version == op->version)
    refuse_registration(op->name, "version " + std::to_string(op->version) + " is already registered");
  if (all_ops.additions.size() == static_cast<size_t>(kMaxRegisteredOps))
    refuse_registration(op->name,
                        std::to_string(kMaxRegisteredOps) + " ops are already registered, which is the limit");
  longer->insert(place, op.get());
  all_ops.lists.reserve(all_ops.lists.size() + 1);
  all_ops.additions.push_back(std::move(op));
  all_ops.sorted.store(longer.get(), std::memory_order_release);
  all_ops.lists.push_back(std::move(longer));
  return *all_ops.additions.back();
}

// ---- Ops ------------------------------------------------------------------------------------------------------------

std::string OpSchema::input_name(int32_t index) const {
  const auto i = static_cast<size_t>(index);
  if (takes_groups()) return "input " + std::to_string(index);
  if (!is_variadic || i + 1 < inputs.size()) return i < inputs.size() ? inputs[i] : "input " + std::to_string(index);
  return inputs.back() + "[" + std::to_string(i - (inputs.size() - 1)) + "]";
}

std::span<const OpSchema* const> op_schemas() { return *tables().sorted.load(std::memory_order_acquire); }
const OpSchema& op_schema(OpId id) { return tables().ops[static_cast<size_t>(id)]; }

bool has_op(std::string_view name) {
  return std::ranges::any_of(op_schemas(), [&](const OpSchema* op) { return op->name == name; });
}

const OpSchema& find_op(std::string_view name, int32_t version) {
  const std::span sorted = op_schemas();
  const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), name, [](const auto& a, const auto& b) {
    if constexpr (std::is_same_v<std::decay_t<decltype(a)>, std::string_view>) {
      return a < b->name;
    } else {
      return a->name < b;
    }
  });
  if (first == last) {
    std::vector<std::string> known;
    for (const OpSchema* op : sorted) known.push_back(op->name);
    throw Error(COMPUTE_ERROR_NOT_FOUND, "unknown op " + in_quotes(name) + did_you_mean(name, known));
  }
  if (version == 0) return **(last - 1);
  std::string versions;
  for (auto op = first; op != last; ++op) {
    if ((*op)->version == version) return **op;
    versions += (versions.empty() ? "" : ", ") + std::to_string((*op)->version);
  }
  throw Error(COMPUTE_ERROR_NOT_FOUND,
              std::string(name) + " has no version " + std::to_string(version) + "; known: " + versions);
}

[[noreturn]] void refuse(const OpSchema& schema, std::string_view attribute, const std::string& what) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, schema.name + ": " + what).with_attribute(std::string(attribute));
}

void check_unusual_counts(const OpSchema& schema, int64_t input_count, int64_t output_count) {
  const auto most = static_cast<int64_t>(schema.inputs.size());
  const int64_t least = schema.least_inputs;
  constexpr int64_t kMostVariadic = 65536;
  if (schema.takes_groups()) {
    const int64_t groups = input_count / most;
    if (groups >= 1 && input_count % most == 0 && input_count <= kMostVariadic &&
        output_count == groups * schema.output_count)
      return;
    refuse(schema, {},
           "expected groups of " + std::to_string(most) + " inputs and " + std::to_string(schema.output_count) +
               " outputs, got " + std::to_string(input_count) + " inputs and " + std::to_string(output_count) +
               " outputs");
  }
  if (input_count < least || input_count > (schema.is_variadic ? kMostVariadic : most)) {
    std::string takes = std::to_string(least);
    if (schema.is_variadic) {
      takes += " or more";
    } else if (least != most) {
      takes += " to " + std::to_string(most);
    }
    refuse(schema, {},
           "expected " + takes + (takes == "1" ? " input" : " inputs") + ", got " + std::to_string(input_count));
  }
  if (output_count != schema.output_count) {
    refuse(schema, {},
           "expected " + std::to_string(schema.output_count) + (schema.output_count == 1 ? " output" : " outputs") +
               ", got " + std::to_string(output_count));
  }
}

}  // namespace compute
