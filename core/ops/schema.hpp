// SPDX-License-Identifier: Apache-2.0
// Schemas: the rows of ops.def as data, and the checking of a caller's attributes against them.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/expressions/dtype.hpp"
#include "core/expressions/expression.hpp"

namespace compute {

// Every row of ops.def, in its order.
enum class OpId : int32_t {
#define COMPUTE_UNARY(name, version, ...) k_##name##_##version,
#define COMPUTE_BINARY(name, version, ...) k_##name##_##version,
#define COMPUTE_TERNARY(name, version, ...) k_##name##_##version,
#define COMPUTE_OP(name, version, ...) k_##name##_##version,
#include <compute/ops.def>
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP
  kCount
};

enum class AttributeKind : uint8_t { kInt64, kFloat64, kString, kDtype, kNumber, kHandle };

struct AttributeSchema {
  std::string name;
  AttributeKind kind;
  bool is_list = false;
  bool required = false;
  bool run_time = false;     // a scalar of each run, never part of a plan
  std::string default_text;  // "0", "all", "none", "set"; "" if required
  // The default as a value, if it is one. "all" and "none" are not values: an absent attribute stays absent.
  bool has_default = false;
  int64_t default_int64 = 0;
  double default_float64 = 0;
};

// ---- Attribute values -----------------------------------------------------------------------------------------------

// The static attributes of one call in normal form: equal values give equal words, and every default is filled in.
// Usual calls need no allocation.
class Attributes {
 public:
  static constexpr int32_t kInlineWords = 20;

  Attributes() noexcept {}  // leaves inline_ as it is
  Attributes(const Attributes& other) { *this = other; }
  Attributes& operator=(const Attributes& other);
  Attributes(Attributes&& other) noexcept { *this = std::move(other); }
  Attributes& operator=(Attributes&& other) noexcept;

  std::span<const uint64_t> words() const noexcept { return {data(), static_cast<size_t>(size_)}; }
  bool operator==(const Attributes& other) const noexcept {
    return size_ == other.size_ && std::memcmp(data(), other.data(), static_cast<size_t>(size_) * 8) == 0;
  }
  uint64_t hash() const noexcept;

  // `index` is an index into OpSchema::attributes. False if the attribute was not given and its default is not a value.
  bool has(int32_t index) const noexcept;
  int64_t int64(int32_t index) const noexcept;
  std::span<const int64_t> int64_list(int32_t index) const noexcept;
  double float64(int32_t index) const noexcept;
  std::vector<double> float64_list(int32_t index) const;
  std::string_view string(int32_t index) const noexcept;
  compute_dtype dtype(int32_t index) const noexcept;

  // Used by read_attributes: values are appended in schema order. A run-time attribute gets an empty entry.
  void clear() noexcept { size_ = 0; }
  void append_absent();
  void append(std::span<const int64_t> values);
  void append(std::string_view value);

 private:
  // For each attribute one word with the count of values (or the size of a string), UINT64_MAX if absent, followed by
  // the values.
  const uint64_t* data() const noexcept { return heap_ ? heap_.get() : inline_; }
  // The position of `words` more words.
  uint64_t* grow(int32_t words) {
    if (size_ + words > capacity_) reallocate(size_ + words);
    uint64_t* place = (heap_ ? heap_.get() : inline_) + size_;
    size_ += words;
    return place;
  }
  void reallocate(int32_t needed);
  const uint64_t* find(int32_t index) const noexcept;

  uint64_t inline_[kInlineWords];  // the first size_ of them have values
  std::unique_ptr<uint64_t[]> heap_;
  int32_t size_ = 0;
  int32_t capacity_ = kInlineWords;
};

// ---- Rows -----------------------------------------------------------------------------------------------------------

enum class RowResult : uint8_t { kSame, kBool, kPart, kSecond };

// compute_op_info.flags and OpSchema::flags.
enum : int32_t { kOpInPlace = COMPUTE_OP_IN_PLACE, kOpGroups = COMPUTE_OP_GROUPS, kOpHost = COMPUTE_OP_HOST };

struct Composition;
struct OpKernels;

// A row of ops.def, or a registered op. Immutable and immortal: the address is the op's identity.
struct OpSchema {
  OpId id;  // kCount for registered ops
  std::string name;
  int32_t version;
  std::string summary;
  int32_t flags = 0;  // every elementwise op has kOpInPlace

  std::vector<std::string> inputs;   // names; a variadic input without the dots
  bool is_variadic = false;          // the last input may be given once or more
  std::vector<bool> optional;        // by input
  int32_t least_inputs = 0;          // the optional ones are last
  std::vector<std::string> outputs;  // names; "y" or "result" where the row gives none
  int32_t output_count = 1;
  std::vector<AttributeSchema> attributes;
  std::vector<int32_t> run_time;                           // indices of the run-time attributes, in schema order
  std::optional<Attributes> defaults;                      // without attributes; none if one is required or run-time
  uint64_t defaults_hash = 0;                              // theirs
  std::string inputs_text, outputs_text, attributes_text;  // as in ops.def
  std::string dtype_rule, shape_rule, bound;

  bool is_registered = false;                 // by a program; offered to plugins by its name first
  DtypeClass input_class = DtypeClass::kAny;  // of elementwise ops, and of those that have kernels only

  // Elementwise ops only.
  bool is_elementwise = false;
  std::string expression_text;
  ExpressionTemplate expression;
  std::string input_class_text;
  RowResult result = RowResult::kSame;
  int32_t ulp = 0;

  std::shared_ptr<const Composition> composition;  // of a registered composition; else NULL
  std::shared_ptr<const OpKernels> kernels;        // of a registered op that has kernels; else NULL

  bool in_place() const noexcept { return (flags & kOpInPlace) != 0; }
  // It runs on the host where a device does not support it.
  bool runs_on_host() const noexcept { return (flags & kOpHost) != 0; }
  // A call may have k groups of operands: k first inputs, then k second ones, ...; the outputs likewise.
  bool takes_groups() const noexcept { return (flags & kOpGroups) != 0; }
  int64_t group_count(int64_t input_count) const noexcept {
    return takes_groups() ? input_count / static_cast<int64_t>(inputs.size()) : 1;
  }
  // "x", "xs[3]": how messages call input i.
  std::string input_name(int32_t index) const;
};

// Sorted by name, then version. Built at first use.
std::span<const OpSchema* const> op_schemas();
const OpSchema& op_schema(OpId id);
// Version 0 means the newest. Throws NOT_FOUND with the nearest name or the versions that exist.
const OpSchema& find_op(std::string_view name, int32_t version);
// Whether there is a version of the op.
bool has_op(std::string_view name);

inline constexpr size_t kMaxRowInputs = 16;  // of an elementwise op
inline constexpr int32_t kMaxRegisteredOps = 4096;

// compute_op_kernel.
struct RegisteredKernel {
  std::string_view language, source, name, options, items, values;
  int64_t group_size[3];
  bool is_strided;
};

// compute_op_registration, or an op of a plugin. The former has an expression, a composition or kernels, or kernels
// together with one of the first two; the latter has none of them.
struct RegisteredOp {
  std::string_view name, summary, inputs, outputs, attributes, dtypes, expression, composition, shapes, result_dtypes;
  std::vector<RegisteredKernel> kernels = {};
  std::shared_ptr<const Composition> (*parse_composition)(std::string_view text, const OpSchema& schema) = nullptr;
  std::shared_ptr<const OpKernels> (*parse_kernels)(const RegisteredOp& given, const OpSchema& schema) = nullptr;
  int32_t version = 1;
  bool is_vendors = false;
};

// Adds the op permanently. Throws INVALID_ARGUMENT for an invalid description and for a name that exists in this
// version.
const OpSchema& register_op(const RegisteredOp& given);

// Throws INVALID_ARGUMENT if the op does not have this number of inputs or outputs.
void check_unusual_counts(const OpSchema& schema, int64_t input_count, int64_t output_count);
inline void check_operand_counts(const OpSchema& schema, int64_t input_count, int64_t output_count) {
  const bool is_usual =
      input_count == schema.least_inputs && output_count == schema.output_count && !schema.takes_groups();
  if (!is_usual) [[unlikely]]
    check_unusual_counts(schema, input_count, output_count);
}

// The value of a run-time attribute in one call.
struct RunTimeValue {
  int32_t kind = 0;                          // COMPUTE_KIND_INT64, _FLOAT64, _COMPLEX128 or _SCALAR
  compute_dtype dtype = COMPUTE_DTYPE_NONE;  // of bits: int64, float64, complex128; for SCALAR the caller fills it in
  ScalarBits bits{};
  compute_tensor* scalar = nullptr;  // SCALAR: the operand, unchecked
};

inline constexpr int32_t kMaxRunTimeAttributes = 8;

// Checks `attributes` (an array of C structs, stepped by the first one's struct_size) against the schema. Throws
// INVALID_ARGUMENT that names the op and the attribute. Writes one value per run-time attribute of the schema to
// out_run_time.
void read_attributes(const OpSchema& schema, const compute_attribute* attributes, int64_t count, Attributes& out_static,
                     RunTimeValue* out_run_time);

// Replaces values in `run_time`, which has one value per run-time attribute of the schema, by the given ones. Throws as
// above, and for a static attribute.
void change_run_time(const OpSchema& schema, const compute_attribute* attributes, int64_t count,
                     RunTimeValue* run_time);

// Whether attribute `index` has the schema's default value, so that a plugin does not see it.
bool is_default(const OpSchema& schema, const Attributes& attributes, int32_t index);

// A run-time attribute's value as `dtype`. Throws INVALID_ARGUMENT if that would change its meaning (a fraction as an
// integer, a complex number as a real one), and OUT_OF_RANGE for an integer that does not fit.
ScalarBits run_time_scalar(const OpSchema& schema, int32_t run_time_index, const RunTimeValue& value,
                           compute_dtype dtype);

// ---- Making schemas: schema.cpp, registration.cpp and attributes.cpp ------------------------------------------------

inline constexpr size_t kMaxAttributes = 16;

// The parts of `text` without the space around them. Empty ones are left out.
std::vector<std::string_view> split(std::string_view text, char separator);

// Both throw INTERNAL for values that ops.def cannot contain.
DtypeClass class_from_text(std::string_view text);
AttributeSchema parse_attribute(std::string_view text);  // "name: kind = default !"

// An elementwise op with one result. `names` are its inputs, and `inputs` is their class.
OpSchema elementwise(OpId id, std::string_view name, int32_t version, std::span<const std::string_view> names,
                     std::string_view inputs, std::string_view expression, std::string_view summary);

// Fills in derived members.
void complete(OpSchema& op);

// The values of the attributes that a call without attributes has; none if one is required or run-time.
std::optional<Attributes> default_attributes(const OpSchema& op);

// Throws INVALID_ARGUMENT: "op 'name': what".
[[noreturn]] void refuse_registration(std::string_view name, const std::string& what);

// Adds an op permanently, unless there is one of this name and version, or too many are registered.
const OpSchema& add_schema(std::unique_ptr<const OpSchema> op);

// Throws INVALID_ARGUMENT: "name: what".
[[noreturn]] void refuse(const OpSchema& schema, std::string_view attribute, const std::string& what);

}  // namespace compute
