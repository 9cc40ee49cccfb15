// SPDX-License-Identifier: Apache-2.0
// Attributes: the normal form of a call's attributes, and the parsing of a caller's array.
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/sized.hpp"
#include "core/ops/schema.hpp"
#include "core/text/nearest_name.hpp"
#include "core/text/printable.hpp"

namespace compute {

// ---- In normal form -------------------------------------------------------------------------------------------------

namespace {
constexpr uint64_t kAbsent = UINT64_MAX;
}

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

std::vector<double> Attributes::float64_list(int32_t index) const {
  std::vector<double> values;
  for (const int64_t word : int64_list(index)) values.push_back(std::bit_cast<double>(word));
  return values;
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

// ---- Reading --------------------------------------------------------------------------------------------------------

namespace {

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
    case AttributeKind::kHandle:
      return "a handle";
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
    case COMPUTE_KIND_HANDLE:
      return "a handle";
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
    case AttributeKind::kHandle:
      return kind == COMPUTE_KIND_HANDLE;
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
    case AttributeKind::kHandle:
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
      const auto word_of = [&](size_t index) {
        double value;
        std::memcpy(&value, static_cast<const unsigned char*>(given->values) + index * sizeof value, sizeof value);
        return std::bit_cast<int64_t>(value == 0 ? 0.0 : value);  // one word for both zeros
      };
      if (given->count == 1) {
        const int64_t word = word_of(0);
        return out.append(std::span<const int64_t>(&word, 1));
      }
      std::vector<int64_t> words;
      for (int64_t i = 0; i < given->count; ++i) words.push_back(word_of(static_cast<size_t>(i)));
      return out.append(words);
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

std::optional<Attributes> default_attributes(const OpSchema& op) {
  Attributes defaults;
  for (const AttributeSchema& attribute : op.attributes) {
    if (attribute.required || attribute.run_time) return std::nullopt;
    append_static(op, attribute, nullptr, defaults);
  }
  return defaults;
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

// Finds the given attributes' places in the schema. `out` has an entry per attribute of the schema, NULL if it is
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
    if (attribute.struct_type != COMPUTE_STRUCT_NONE && attribute.struct_type != COMPUTE_STRUCT_ATTRIBUTE) {
      refuse(schema, {},
             fmt::format("attribute {} has struct_type {}; expected {} or 0", i, attribute.struct_type,
                         static_cast<uint32_t>(COMPUTE_STRUCT_ATTRIBUTE)));
    }
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
