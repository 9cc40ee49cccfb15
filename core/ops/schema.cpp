// SPDX-License-Identifier: Apache-2.0
#include "core/ops/schema.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <charconv>
#include <cmath>
#include <mutex>

#include "core/base/ascii.hpp"
#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/printable.hpp"
#include "core/base/sized.hpp"

namespace compute {

namespace {

constexpr size_t kOpCount = static_cast<size_t>(OpId::kCount);
constexpr int32_t kMaxAttributes = 16;
constexpr uint64_t kAbsent = UINT64_MAX;

// The flags as ops.def spells them.
namespace flag {
[[maybe_unused]] constexpr int32_t NONE = 0, IN_PLACE = kOpInPlace, GROUPS = kOpGroups;
}

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

RowResult result_from_text(std::string_view text) {
  if (text == "SAME") return RowResult::kSame;
  if (text == "BOOL") return RowResult::kBool;
  if (text == "PART") return RowResult::kPart;
  if (text == "SECOND") return RowResult::kSecond;
  throw Error(COMPUTE_ERROR_INTERNAL, "ops.def: no result rule is called " + std::string(text));
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
  constexpr std::pair<std::string_view, AttributeKind> kKinds[] = {{"int64", AttributeKind::kInt64},
                                                                   {"float64", AttributeKind::kFloat64},
                                                                   {"string", AttributeKind::kString},
                                                                   {"dtype", AttributeKind::kDtype},
                                                                   {"number", AttributeKind::kNumber}};
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

// `names` are the inputs.
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

void append_static(const OpSchema& schema, const AttributeSchema& attribute, const compute_attribute* given,
                   Attributes& out);

std::optional<Attributes> defaults_of(const OpSchema& op) {
  Attributes defaults;
  for (const AttributeSchema& attribute : op.attributes) {
    if (attribute.required || attribute.run_time) return std::nullopt;
    append_static(op, attribute, nullptr, defaults);
  }
  return defaults;
}

// What the one result is called where the row does not say it.
const char* default_output(const OpSchema& op) {
  const bool has_y = std::find(op.inputs.begin(), op.inputs.end(), "y") != op.inputs.end();
  return has_y || op.inputs.empty() || op.inputs[0] != "x" ? "result" : "y";
}

void complete(OpSchema& op) {
  if (op.outputs.empty()) op.outputs.emplace_back(default_output(op));
  op.output_count = static_cast<int32_t>(op.outputs.size());
  for (const std::string& output : op.outputs) op.outputs_text += (op.outputs_text.empty() ? "" : " ") + output;
  op.defaults = defaults_of(op);
  if (op.defaults) op.defaults_hash = op.defaults->hash();
  op.least_inputs = static_cast<int32_t>(op.inputs.size());
  while (op.least_inputs > 0 && op.optional[static_cast<size_t>(op.least_inputs - 1)]) --op.least_inputs;
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
#define COMPUTE_ELEMENTWISE(arity, name, version, inputs, result, expression, ulp, summary) \
  ops.push_back(row(OpId::k_##name##_##version, #name, version, arity, #inputs, #result, expression, ulp, summary));
#define COMPUTE_UNARY(...) COMPUTE_ELEMENTWISE(1, __VA_ARGS__)
#define COMPUTE_BINARY(...) COMPUTE_ELEMENTWISE(2, __VA_ARGS__)
#define COMPUTE_TERNARY(...) COMPUTE_ELEMENTWISE(3, __VA_ARGS__)
#define COMPUTE_OP(name, version, inputs, attributes, dtype_rule, shape_rule, bound, flags, summary)                   \
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

// ---- Attributes -----------------------------------------------------------------------------------------------------

[[noreturn]] void refuse(const OpSchema& schema, std::string_view attribute, const std::string& what) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, schema.name + ": " + what).with_attribute(std::string(attribute));
}

const char* kind_text(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kInt64:
      return "an int64";
    case AttributeKind::kFloat64:
      return "a float64";
    case AttributeKind::kString:
      return "a string";
    case AttributeKind::kDtype:
      return "a dtype";
    default:
      return "a number";
  }
}

std::string kind_text(int32_t kind) {
  switch (kind) {
    case COMPUTE_KIND_INT64:
      return "an int64";
    case COMPUTE_KIND_FLOAT64:
      return "a float64";
    case COMPUTE_KIND_COMPLEX128:
      return "a complex128";
    case COMPUTE_KIND_STRING:
      return "a string";
    case COMPUTE_KIND_DTYPE:
      return "a dtype";
    case COMPUTE_KIND_SCALAR:
      return "a scalar";
    default:
      return "kind " + std::to_string(kind);
  }
}

bool kind_fits(const AttributeSchema& attribute, int32_t kind) {
  if (kind == COMPUTE_KIND_SCALAR) return attribute.run_time;
  switch (attribute.kind) {
    case AttributeKind::kInt64:
      return kind == COMPUTE_KIND_INT64;
    case AttributeKind::kFloat64:
      return kind == COMPUTE_KIND_FLOAT64;
    case AttributeKind::kString:
      return kind == COMPUTE_KIND_STRING;
    case AttributeKind::kDtype:
      return kind == COMPUTE_KIND_DTYPE;
    case AttributeKind::kNumber:
      return kind == COMPUTE_KIND_INT64 || kind == COMPUTE_KIND_FLOAT64 || kind == COMPUTE_KIND_COMPLEX128;
  }
  return false;
}

// The attribute's place in the schema.
int32_t find_attribute(const OpSchema& schema, std::string_view name) {
  for (size_t i = 0; i < schema.attributes.size(); ++i) {
    if (schema.attributes[i].name == name) return static_cast<int32_t>(i);
  }
  std::vector<std::string> known;
  for (const AttributeSchema& attribute : schema.attributes) known.push_back(attribute.name);
  std::string what = "unknown attribute " + in_quotes(name) + did_you_mean(name, known);
  if (known.empty()) what += "; the op takes no attributes";
  refuse(schema, name, what);
}

void check_given(const OpSchema& schema, const AttributeSchema& attribute, const compute_attribute& given) {
  const auto refuse_given = [&](const std::string& what) {
    refuse(schema, attribute.name, "attribute " + attribute.name + what);
  };
  if (!kind_fits(attribute, given.kind)) {
    refuse_given(std::string(" takes ") + kind_text(attribute.kind) + ", not " + kind_text(given.kind));
  }
  if (given.count < 0 || (!attribute.is_list && given.count != 1)) {
    refuse_given(std::string(" takes ") + (attribute.is_list ? "a list" : "one value") + ", not " +
                 std::to_string(given.count) + " values");
  }
  if (given.count > 4096) refuse_given(" has " + std::to_string(given.count) + " values; the limit is 4096");
  if (given.values == nullptr && given.count > 0) refuse_given(": values is NULL");
}

RunTimeValue run_time_value(const OpSchema& schema, const AttributeSchema& attribute, const compute_attribute* given) {
  RunTimeValue value;
  if (given == nullptr) {
    const bool integer = attribute.kind != AttributeKind::kFloat64 &&
                         static_cast<double>(attribute.default_int64) == attribute.default_float64;
    value.kind = integer ? COMPUTE_KIND_INT64 : COMPUTE_KIND_FLOAT64;
    value.dtype = integer ? COMPUTE_DTYPE_INT64 : COMPUTE_DTYPE_FLOAT64;
    value.bits = integer ? scalar_from_int64(attribute.default_int64, value.dtype)
                         : scalar_from_double(attribute.default_float64, value.dtype);
    return value;
  }
  value.kind = given->kind;
  switch (given->kind) {
    case COMPUTE_KIND_INT64:
      value.dtype = COMPUTE_DTYPE_INT64;
      break;
    case COMPUTE_KIND_FLOAT64:
      value.dtype = COMPUTE_DTYPE_FLOAT64;
      break;
    case COMPUTE_KIND_COMPLEX128:
      value.dtype = COMPUTE_DTYPE_COMPLEX128;
      break;
    default:
      std::memcpy(&value.scalar, given->values, sizeof value.scalar);
      if (value.scalar == nullptr)
        refuse(schema, attribute.name, "attribute " + attribute.name + ": the scalar is NULL");
      return value;
  }
  value.bits = scalar_from_memory(value.dtype, given->values);
  return value;
}

void append_static(const OpSchema& schema, const AttributeSchema& attribute, const compute_attribute* given,
                   Attributes& out) {
  if (given == nullptr) {
    if (attribute.required) refuse(schema, attribute.name, "attribute " + attribute.name + " is required");
    if (!attribute.has_default) return out.append_absent();
    if (attribute.kind == AttributeKind::kString) return out.append(std::string_view(attribute.default_text));
    int64_t word = attribute.default_int64;
    if (attribute.kind == AttributeKind::kFloat64) std::memcpy(&word, &attribute.default_float64, sizeof word);
    return out.append(std::span<const int64_t>(&word, 1));
  }
  switch (attribute.kind) {
    case AttributeKind::kInt64: {
      // The caller's memory need not be aligned for int64_t; it is copied by bytes.
      const auto count = static_cast<size_t>(given->count);
      if (count == 0) return out.append(std::span<const int64_t>());
      if (count <= COMPUTE_MAX_RANK) {
        int64_t values[COMPUTE_MAX_RANK];
        std::memcpy(values, given->values, count * sizeof(int64_t));
        return out.append(std::span<const int64_t>(values, count));
      }
      std::vector<int64_t> values(count);
      std::memcpy(values.data(), given->values, count * sizeof(int64_t));
      return out.append(values);
    }
    case AttributeKind::kFloat64: {
      double value;
      std::memcpy(&value, given->values, sizeof value);
      value = value == 0 ? 0 : value;  // one word for both zeros
      int64_t word;
      std::memcpy(&word, &value, sizeof word);
      return out.append(std::span<const int64_t>(&word, 1));
    }
    case AttributeKind::kString: {
      compute_string text;
      std::memcpy(&text, given->values, sizeof text);
      if (text.size == -1 && text.data != nullptr) text.size = static_cast<int64_t>(std::strlen(text.data));
      if (text.size < 0 || text.size > 4096 || (text.data == nullptr && text.size > 0)) {
        refuse(schema, attribute.name,
               "attribute " + attribute.name + ": invalid string size " + std::to_string(text.size));
      }
      return out.append(std::string_view(text.data, static_cast<size_t>(text.size)));
    }
    case AttributeKind::kDtype: {
      compute_dtype dtype;
      std::memcpy(&dtype, given->values, sizeof dtype);
      if (!is_dtype(dtype))
        refuse(schema, attribute.name,
               "attribute " + attribute.name + ": " + std::to_string(dtype) + " is not a dtype");
      const int64_t word = dtype;
      return out.append(std::span<const int64_t>(&word, 1));
    }
    case AttributeKind::kNumber:
      break;
  }
  throw Error(COMPUTE_ERROR_INTERNAL, schema.name + ": a static number attribute");
}

}  // namespace

// ---- Ops ------------------------------------------------------------------------------------------------------------

std::string OpSchema::input_name(int32_t index) const {
  const auto i = static_cast<size_t>(index);
  if (takes_groups()) return "input " + std::to_string(index);
  if (!is_variadic || i + 1 < inputs.size()) return i < inputs.size() ? inputs[i] : "input " + std::to_string(index);
  return inputs.back() + "[" + std::to_string(i - (inputs.size() - 1)) + "]";
}

std::span<const OpSchema* const> op_schemas() { return *tables().sorted.load(std::memory_order_acquire); }
const OpSchema& op_schema(OpId id) { return tables().ops[static_cast<size_t>(id)]; }

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

namespace {

[[noreturn]] void refuse_registration(std::string_view name, const std::string& what) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "op " + in_quotes(name) + ": " + what);
}

bool is_word(std::string_view text) {
  const auto in_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' && std::ranges::all_of(text, in_word);
}

void check_names(std::string_view op, std::span<const std::string_view> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (!is_word(names[i]))
      refuse_registration(op, in_quotes(names[i]) + " is not a valid name of an input or attribute");
    for (size_t k = 0; k < i; ++k) {
      if (names[k] == names[i]) refuse_registration(op, in_quotes(names[i]) + " is used twice");
    }
  }
}

AttributeSchema registered_attribute(std::string_view op, std::string_view text) {
  AttributeSchema attribute;
  try {
    if (text.find(':') == std::string_view::npos) throw Error(COMPUTE_ERROR_INTERNAL, "");
    attribute = parse_attribute(text);
  } catch (const Error&) {
    refuse_registration(op, "the attribute " + in_quotes(text) + " is not of the form \"name: float64 = 1!\"");
  }
  const bool is_number = attribute.kind == AttributeKind::kInt64 || attribute.kind == AttributeKind::kFloat64 ||
                         attribute.kind == AttributeKind::kNumber;
  if (!attribute.run_time || attribute.is_list || !is_number)
    refuse_registration(op, "the attribute " + in_quotes(attribute.name) + " is not a single number marked with !");
  return attribute;
}

}  // namespace

namespace {

void check_registered_name(const RegisteredOp& given) {
  const size_t dot = given.name.find('.');
  if (dot == std::string_view::npos || !is_word(given.name.substr(0, dot)) || !is_word(given.name.substr(dot + 1)) ||
      given.name.size() > 128)
    refuse_registration(given.name, "the name must be two words separated by a dot, such as acme.double");
  if (given.version < 1)
    refuse_registration(given.name, "version " + std::to_string(given.version) + " is invalid; versions start at 1");
  if (!given.expression.empty() && !given.composition.empty())
    refuse_registration(given.name, "an expression and a composition are given");
  if (given.expression.empty() && given.composition.empty() && given.kernels.empty())
    refuse_registration(given.name, "an expression, a composition or kernels must be given");
}

void check_class(const RegisteredOp& given) {
  constexpr std::string_view kClasses[] = {"ANY",   "BOOL",    "INTEGER", "BITS",   "REAL",
                                           "FLOAT", "COMPLEX", "INEXACT", "NUMERIC"};
  if (std::ranges::find(kClasses, given.dtypes) == std::end(kClasses))
    refuse_registration(given.name, in_quotes(given.dtypes) + " is not a class of dtypes");
}

std::unique_ptr<OpSchema> expressed_op(const RegisteredOp& given) {
  std::vector<std::string_view> names = split(given.inputs, ' ');
  if (!given.outputs.empty()) refuse_registration(given.name, "an op with an expression has one output without a name");
  if (names.empty() || names.size() > kMaxRowInputs) {
    refuse_registration(
        given.name, "it has " + std::to_string(names.size()) + " inputs, not 1 to " + std::to_string(kMaxRowInputs));
  }
  check_class(given);
  auto op = std::make_unique<OpSchema>(
      elementwise(OpId::kCount, given.name, given.version, names, given.dtypes, given.expression, given.summary));
  op->is_registered = true;
  op->attributes_text = given.attributes;
  for (const std::string_view text : split(given.attributes, ';')) {
    op->run_time.push_back(static_cast<int32_t>(op->attributes.size()));
    op->attributes.push_back(registered_attribute(given.name, text));
  }
  if (op->attributes.size() > static_cast<size_t>(kMaxRunTimeAttributes))
    refuse_registration(given.name, "it has more than " + std::to_string(kMaxRunTimeAttributes) + " attributes");
  std::vector<std::string_view> scalars;
  for (const AttributeSchema& attribute : op->attributes) scalars.push_back(attribute.name);
  std::vector<std::string_view> all = names;
  all.insert(all.end(), scalars.begin(), scalars.end());
  check_names(given.name, all);
  op->expression = parse(given.expression, names, scalars);
  if (op->expression.output_count() != 1)
    refuse_registration(given.name,
                        "the expression has " + std::to_string(op->expression.output_count()) + " outputs, not 1");
  complete(*op);
  return op;
}

// Attributes of any kind: the calls of the composition get them.
AttributeSchema composed_attribute(std::string_view op, std::string_view text) {
  AttributeSchema attribute;
  try {
    if (text.find(':') == std::string_view::npos) throw Error(COMPUTE_ERROR_INTERNAL, "");
    attribute = parse_attribute(text);
  } catch (const Error&) {
    refuse_registration(op, "the attribute " + in_quotes(text) + " is not of the form \"name: kind = default\"");
  }
  const bool is_number = attribute.kind == AttributeKind::kInt64 || attribute.kind == AttributeKind::kFloat64 ||
                         attribute.kind == AttributeKind::kNumber;
  if (attribute.run_time ? attribute.is_list || !is_number : attribute.kind == AttributeKind::kNumber)
    refuse_registration(op, "the attribute " + in_quotes(attribute.name) + " cannot be of this kind");
  return attribute;
}

// An op with a composition or with kernels only.
std::unique_ptr<OpSchema> composed_op(const RegisteredOp& given) {
  auto op = std::make_unique<OpSchema>();
  op->id = OpId::kCount;
  op->name = given.name;
  op->version = given.version;
  op->summary = given.summary;
  op->is_registered = true;
  op->inputs_text = given.inputs;
  op->attributes_text = given.attributes;
  op->dtype_rule = op->shape_rule = given.composition.empty() ? "kernel" : "composition";
  if (given.composition.empty() && !given.dtypes.empty()) {
    check_class(given);
    op->input_class = class_from_text(given.dtypes);
  }
  std::vector<std::string_view> all;
  for (const std::string_view input : split(given.inputs, ' ')) {
    op->inputs.emplace_back(input);
    op->optional.push_back(false);
    all.push_back(input);
  }
  for (const std::string_view output : split(given.outputs, ' ')) op->outputs.emplace_back(output);
  for (const std::string_view text : split(given.attributes, ';')) {
    op->attributes.push_back(composed_attribute(given.name, text));
    if (op->attributes.back().run_time) op->run_time.push_back(static_cast<int32_t>(op->attributes.size()) - 1);
  }
  if (op->inputs.empty() || op->inputs.size() > kMaxRowInputs)
    refuse_registration(given.name, "it has " + std::to_string(op->inputs.size()) + " inputs, not 1 to " +
                                        std::to_string(kMaxRowInputs));
  if (op->attributes.size() > kMaxAttributes || op->run_time.size() > kMaxRunTimeAttributes)
    refuse_registration(given.name, "it has too many attributes");
  for (const AttributeSchema& attribute : op->attributes) all.push_back(attribute.name);
  check_names(given.name, all);
  complete(*op);
  if (!given.composition.empty()) op->composition = given.parse_composition(given.composition, *op);
  return op;
}

}  // namespace

const OpSchema& register_op(const RegisteredOp& given) {
  check_registered_name(given);
  std::unique_ptr<OpSchema> op = given.expression.empty() ? composed_op(given) : expressed_op(given);
  if (!given.kernels.empty()) op->kernels = given.parse_kernels(given, *op);

  Tables& all_ops = tables();
  const std::lock_guard guard(all_ops.registering);
  const Sorted& known = *all_ops.sorted.load(std::memory_order_relaxed);
  auto longer = std::make_unique<Sorted>(known);
  const auto place = std::lower_bound(longer->begin(), longer->end(), op.get(), precedes);
  if (place != longer->end() && (*place)->name == op->name && (*place)->version == op->version)
    refuse_registration(given.name, "version " + std::to_string(op->version) + " is already registered");
  if (all_ops.additions.size() == static_cast<size_t>(kMaxRegisteredOps))
    refuse_registration(given.name,
                        std::to_string(kMaxRegisteredOps) + " ops are already registered, which is the limit");
  longer->insert(place, op.get());
  all_ops.lists.reserve(all_ops.lists.size() + 1);
  all_ops.additions.push_back(std::move(op));
  all_ops.sorted.store(longer.get(), std::memory_order_release);
  all_ops.lists.push_back(std::move(longer));
  return *all_ops.additions.back();
}

void check_operand_counts(const OpSchema& schema, int64_t input_count, int64_t output_count) {
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

// ---- Attribute values -----------------------------------------------------------------------------------------------

Attributes& Attributes::operator=(const Attributes& other) {
  if (this == &other) return *this;
  size_ = 0;
  const std::span<const uint64_t> words = other.words();
  std::copy(words.begin(), words.end(), grow(static_cast<int32_t>(words.size())));
  return *this;
}

Attributes& Attributes::operator=(Attributes&& other) noexcept {
  if (this == &other) return *this;
  heap_ = std::move(other.heap_);
  size_ = std::exchange(other.size_, 0);
  capacity_ = std::exchange(other.capacity_, kInlineWords);
  if (!heap_) std::copy_n(other.inline_, size_, inline_);
  return *this;
}

void Attributes::reallocate(int32_t needed) {
  const int32_t capacity = std::max(needed, capacity_ * 2);
  auto larger = std::make_unique<uint64_t[]>(static_cast<size_t>(capacity));
  std::copy_n(data(), size_, larger.get());
  heap_ = std::move(larger);
  capacity_ = capacity;
}

uint64_t Attributes::hash() const noexcept {
  return XXH3_64bits(data(), static_cast<size_t>(size_) * sizeof(uint64_t));
}

namespace {

// Words that follow the count: a string's count is bytes, marked by the top bit.
constexpr uint64_t kStringMark = uint64_t{1} << 62;

size_t words_after(uint64_t count) {
  if (count == kAbsent) return 0;
  return count & kStringMark ? (static_cast<size_t>(count & ~kStringMark) + 7) / 8 : static_cast<size_t>(count);
}

}  // namespace

const uint64_t* Attributes::find(int32_t index) const noexcept {
  const uint64_t* word = data();
  for (; index > 0; --index) word += 1 + words_after(*word);
  assert(word < data() + size_);
  return word;
}

bool Attributes::has(int32_t index) const noexcept { return *find(index) != kAbsent; }

int64_t Attributes::int64(int32_t index) const noexcept { return static_cast<int64_t>(find(index)[1]); }

std::span<const int64_t> Attributes::int64_list(int32_t index) const noexcept {
  const uint64_t* word = find(index);
  // int64_t and uint64_t may alias.
  return {reinterpret_cast<const int64_t*>(word + 1), words_after(*word)};
}

double Attributes::float64(int32_t index) const noexcept {
  double value;
  std::memcpy(&value, find(index) + 1, sizeof value);
  return value;
}

std::string_view Attributes::string(int32_t index) const noexcept {
  const uint64_t* word = find(index);
  return {reinterpret_cast<const char*>(word + 1), static_cast<size_t>(*word & ~kStringMark)};
}

compute_dtype Attributes::dtype(int32_t index) const noexcept { return static_cast<compute_dtype>(int64(index)); }

void Attributes::append_absent() { *grow(1) = kAbsent; }

void Attributes::append(std::span<const int64_t> values) {
  uint64_t* word = grow(static_cast<int32_t>(values.size()) + 1);
  *word = values.size();
  for (const int64_t value : values) *++word = static_cast<uint64_t>(value);
}

void Attributes::append(std::string_view value) {
  const uint64_t count = value.size() | kStringMark;
  uint64_t* word = grow(static_cast<int32_t>(words_after(count)) + 1);
  *word = count;
  if (value.empty()) return;
  word[words_after(count)] = 0;
  std::memcpy(word + 1, value.data(), value.size());
}

namespace {

// For the attribute at `index` of an array, compiled with another compute.h or not a struct at all.
void check_step(const OpSchema& schema, const compute_attribute& first, const compute_attribute& attribute,
                int64_t index) {
  const uint32_t size = attribute.struct_size;
  if (size < COMPUTE_ATTRIBUTE_SIZE_1 || size > kGreatestStruct || size % alignof(compute_attribute) != 0 ||
      size != first.struct_size) {
    refuse(schema, {}, "attribute " + std::to_string(index) + " has an invalid struct_size of " + std::to_string(size));
  }
  check_tail(&attribute, size, "an attribute");
}

// Finds the given attributes' places in the schema. `out` has an entry per attribute of the schema, NULL where it is
// not given.
void find_given(const OpSchema& schema, const compute_attribute* attributes, int64_t count,
                const compute_attribute** out) {
  if (count < 0 || (attributes == nullptr && count > 0)) {
    refuse(schema, {}, count < 0 ? "attribute_count is " + std::to_string(count) : "attributes is NULL");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(attributes);
  for (int64_t i = 0; i < count; ++i) {
    const auto& attribute = *reinterpret_cast<const compute_attribute*>(bytes + i * attributes->struct_size);
    if (attribute.struct_size != sizeof attribute || attributes->struct_size != sizeof attribute) [[unlikely]]
      check_step(schema, *attributes, attribute, i);
    check_chain(attribute.next, "an attribute");
    require_zero(attribute.reserved, "an attribute");
    if (attribute.name == nullptr || attribute.name_size < -1) {
      refuse(schema, {}, "attribute " + std::to_string(i) + " has no name");
    }
    if (attribute.name_size == 0) {
      refuse(schema, {}, "attribute " + std::to_string(i) + " has a name_size of 0; use -1 for a NUL-terminated name");
    }
    const size_t name_size =
        attribute.name_size < 0 ? std::strlen(attribute.name) : static_cast<size_t>(attribute.name_size);
    const int32_t index = find_attribute(schema, {attribute.name, name_size});
    const AttributeSchema& known = schema.attributes[static_cast<size_t>(index)];
    if (out[index] != nullptr) refuse(schema, known.name, "attribute " + known.name + " is given twice");
    check_given(schema, known, attribute);
    out[index] = &attribute;
  }
}

}  // namespace

void read_attributes(const OpSchema& schema, const compute_attribute* attributes, int64_t count, Attributes& out_static,
                     RunTimeValue* out_run_time) {
  if (count == 0 && schema.defaults) {
    out_static = *schema.defaults;
    return;
  }
  const compute_attribute* given[kMaxAttributes] = {};
  find_given(schema, attributes, count, given);
  out_static.clear();
  for (size_t i = 0; i < schema.attributes.size(); ++i) {
    const AttributeSchema& attribute = schema.attributes[i];
    if (attribute.run_time) {
      if (given[i] == nullptr && attribute.required)
        refuse(schema, attribute.name, "attribute " + attribute.name + " is required");
      *out_run_time++ = run_time_value(schema, attribute, given[i]);
      out_static.append_absent();
    } else {
      append_static(schema, attribute, given[i], out_static);
    }
  }
}

void change_run_time(const OpSchema& schema, const compute_attribute* attributes, int64_t count,
                     RunTimeValue* run_time) {
  const compute_attribute* given[kMaxAttributes] = {};
  find_given(schema, attributes, count, given);
  for (size_t i = 0; i < schema.attributes.size(); ++i) {
    const AttributeSchema& attribute = schema.attributes[i];
    if (attribute.run_time) {
      if (given[i] != nullptr) *run_time = run_time_value(schema, attribute, given[i]);
      ++run_time;
    } else if (given[i] != nullptr) {
      refuse(schema, attribute.name,
             "attribute " + attribute.name + " is static; a different value requires a different plan");
    }
  }
}

bool is_default(const OpSchema& schema, const Attributes& attributes, int32_t index) {
  const AttributeSchema& attribute = schema.attributes[static_cast<size_t>(index)];
  if (!attributes.has(index)) return true;
  if (!attribute.has_default) return false;
  switch (attribute.kind) {
    case AttributeKind::kString:
      return attributes.string(index) == attribute.default_text;
    case AttributeKind::kFloat64:
      return attributes.float64(index) == attribute.default_float64;
    default:
      return !attribute.is_list && attributes.int64(index) == attribute.default_int64;
  }
}

ScalarBits run_time_scalar(const OpSchema& schema, int32_t run_time_index, const RunTimeValue& value,
                           compute_dtype dtype) {
  const auto refuse_value = [&](compute_error_code code) {
    const std::string& name =
        schema.attributes[static_cast<size_t>(schema.run_time[static_cast<size_t>(run_time_index)])].name;
    throw Error(code, schema.name + ": " + name + " is " + scalar_text(value.bits, value.dtype) +
                          ", which does not fit in " + dtype_name(dtype))
        .with_attribute(name);
  };
  if (is_complex(value.dtype) && !is_complex(dtype)) {
    const ScalarBits wide = convert_scalar(value.bits, value.dtype, COMPUTE_DTYPE_COMPLEX128);
    double imaginary;
    std::memcpy(&imaginary, wide.bits + sizeof(double), sizeof imaginary);
    if (imaginary != 0) refuse_value(COMPUTE_ERROR_INVALID_ARGUMENT);
  }
  if (is_integer(dtype)) {
    const int digits = static_cast<int>(dtype_size(dtype)) * 8 - (is_signed_integer(dtype) ? 1 : 0);
    bool fits = true;
    if (is_signed_integer(value.dtype)) {
      int64_t integer;
      std::memcpy(&integer, convert_scalar(value.bits, value.dtype, COMPUTE_DTYPE_INT64).bits, sizeof integer);
      fits = integer < 0 ? is_signed_integer(dtype) && (digits == 63 || integer >= -(int64_t{1} << digits))
                         : digits >= 63 || integer >> digits == 0;
    } else if (!is_float(value.dtype) && !is_complex(value.dtype)) {
      uint64_t integer;
      std::memcpy(&integer, convert_scalar(value.bits, value.dtype, COMPUTE_DTYPE_UINT64).bits, sizeof integer);
      fits = digits == 64 || integer >> digits == 0;
    } else {
      double real;
      std::memcpy(&real, convert_scalar(value.bits, value.dtype, COMPUTE_DTYPE_COMPLEX128).bits, sizeof real);
      if (!(real == std::trunc(real))) refuse_value(COMPUTE_ERROR_INVALID_ARGUMENT);
      const double limit = std::ldexp(1.0, digits);
      fits = real < limit && real >= (is_signed_integer(dtype) ? -limit : 0);
    }
    if (!fits) refuse_value(COMPUTE_ERROR_OUT_OF_RANGE);
  }
  return convert_scalar(value.bits, value.dtype, dtype);
}

}  // namespace compute
