// SPDX-License-Identifier: Apache-2.0
// The functions of compute/ops.h: op_wrappers.inc, which is generated and uses the classes and macros below.
#include <compute/compute.h>

#include <array>
#include <bit>
#include <cstddef>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/sized.hpp"
#include "core/ops/schema.hpp"
#include "core/runner/run_op.hpp"

namespace compute {

namespace {

// compute_attribute structs on the stack. A NULL value is left out, and so has its default.
template <int32_t Capacity>
class AttributeList {
 public:
  void int64(std::string_view name, const int64_t* value) {
    add_if(value != nullptr, name, COMPUTE_KIND_INT64, 1, value);
  }
  void float64(std::string_view name, const double* value) {
    add_if(value != nullptr, name, COMPUTE_KIND_FLOAT64, 1, value);
  }
  void dtype(std::string_view name, const compute_dtype* value) {
    add_if(value != nullptr, name, COMPUTE_KIND_DTYPE, 1, value);
  }
  // An empty list is given by any address and a count of 0.
  void list(std::string_view name, const int64_t* values, int64_t count, bool required = false) {
    add_if(required || values != nullptr || count != 0, name, COMPUTE_KIND_INT64, count, values);
  }
  void list(std::string_view name, const double* values, int64_t count, bool required = false) {
    add_if(required || values != nullptr || count != 0, name, COMPUTE_KIND_FLOAT64, count, values);
  }
  // A list or a mask.
  void axes(std::string_view name, const int64_t* values, int64_t count, uint64_t mask) {
    if (mask == 0) return list(name, values, count);
    if (values != nullptr || count != 0)
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "axes and axes_mask are both given").about_parameter();
    int64_t masked = 0;
    for (; mask != 0; mask &= mask - 1) masked_axes_[static_cast<size_t>(masked++)] = std::countr_zero(mask);
    list(name, masked_axes_.data(), masked);
  }
  void string(std::string_view name, const char* data, int64_t size) {
    strings_[static_cast<size_t>(count_)] = {data, size};
    add_if(data != nullptr || size != 0, name, COMPUTE_KIND_STRING, 1, &strings_[static_cast<size_t>(count_)]);
  }
  void number(std::string_view name, const compute_number* value, bool required = false) {
    if (value == nullptr) return;
    require_zero(value->reserved, "a number");
    if (value->kind == 0 && !required) return;
    const void* const values = value->kind == COMPUTE_KIND_INT64    ? static_cast<const void*>(&value->integer)
                               : value->kind == COMPUTE_KIND_SCALAR ? static_cast<const void*>(&value->tensor)
                                                                    : &value->real;
    add_if(true, name, value->kind, 1, values);
  }

  const compute_attribute* data() const { return list_.data(); }
  int64_t size() const { return count_; }

 private:
  void add_if(bool given, std::string_view name, int32_t kind, int64_t count, const void* values) {
    if (!given) return;
    list_[static_cast<size_t>(count_++)] = {sizeof(compute_attribute),
                                            COMPUTE_STRUCT_ATTRIBUTE,
                                            nullptr,
                                            name.data(),
                                            static_cast<int64_t>(name.size()),
                                            kind,
                                            0,
                                            count,
                                            values};
  }

  std::array<compute_attribute, Capacity> list_;
  std::array<compute_string, Capacity> strings_;
  std::array<int64_t, 64> masked_axes_;
  int64_t count_ = 0;
};

// A complex number's parts are adjacent, like the attribute's values.
static_assert(offsetof(compute_number, imaginary) == offsetof(compute_number, real) + sizeof(double));

// The options that were given, with zeros for the rest.
template <class Options>
Options read_options(const Options* options) {
  if (options == nullptr) return Options{};
  const Options given = read_sized(options, "options");
  if constexpr (requires { given.reserved; }) require_zero(given.reserved, "options");
  return given;
}

// Runs `f` with the place of the one output: `into`, or a result made for *out.
template <class F>
compute_error* call_op(OpId op, compute_tensor** out, compute_tensor* into, const char* name, F&& f) noexcept {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    try {
      if (out == nullptr) require_not_null(into, name);
      compute_tensor* output = into;
      f(&output);
      if (out != nullptr) *out = output;
    } catch (Error& error) {
      error.with_op(op_schema(op).name);
      throw;
    }
  });
}

// The places of an op's several results: where those that are made go, or those that are written.
template <size_t Count>
struct Results {
  std::array<compute_tensor**, Count> made{};
  std::array<compute_tensor*, Count> given{};
  bool writes = false;
};

template <size_t Count, class F>
compute_error* call_op(OpId op, const Results<Count>& results, F&& f) noexcept {
  if (!results.writes) {
    for (compute_tensor** made : results.made) {
      if (made != nullptr) *made = nullptr;
    }
  }
  return guard([&] {
    try {
      const OpSchema& schema = op_schema(op);
      for (size_t i = 0; i < Count; ++i) {
        const void* place = results.writes ? static_cast<const void*>(results.given[i]) : results.made[i];
        require_not_null(place, results.writes ? schema.outputs[i].c_str() : ("out_" + schema.outputs[i]).c_str());
      }
      std::array<compute_tensor*, Count> outputs = results.given;
      f(outputs.data());
      for (size_t i = 0; !results.writes && i < Count; ++i) *results.made[i] = outputs[i];
    } catch (Error& error) {
      error.with_op(op_schema(op).name);
      throw;
    }
  });
}

}  // namespace

}  // namespace compute

using namespace compute;

extern "C" {

#define COMPUTE_ELEMENTWISE_1(function, function_into, op)                                     \
  compute_error* function(compute_stream* stream, compute_tensor* x, compute_tensor** out_y) { \
    return run_elementwise(OpId::op, stream, &x, 1, out_y, nullptr);                           \
  }                                                                                            \
  compute_error* function_into(compute_stream* stream, compute_tensor* x, compute_tensor* y) { \
    return run_elementwise(OpId::op, stream, &x, 1, nullptr, y);                               \
  }
#define COMPUTE_ELEMENTWISE_2(function, function_into, op)                                                             \
  compute_error* function(compute_stream* stream, compute_tensor* x, compute_tensor* y, compute_tensor** out_result) { \
    compute_tensor* const inputs[] = {x, y};                                                                           \
    return run_elementwise(OpId::op, stream, inputs, 2, out_result, nullptr);                                          \
  }                                                                                                                    \
  compute_error* function_into(compute_stream* stream, compute_tensor* x, compute_tensor* y, compute_tensor* result) { \
    compute_tensor* const inputs[] = {x, y};                                                                           \
    return run_elementwise(OpId::op, stream, inputs, 2, nullptr, result);                                              \
  }
#define COMPUTE_ELEMENTWISE_3(function, function_into, op)                                                      \
  compute_error* function(compute_stream* stream, compute_tensor* x, compute_tensor* y, compute_tensor* z,      \
                          compute_tensor** out_result) {                                                        \
    compute_tensor* const inputs[] = {x, y, z};                                                                 \
    return run_elementwise(OpId::op, stream, inputs, 3, out_result, nullptr);                                   \
  }                                                                                                             \
  compute_error* function_into(compute_stream* stream, compute_tensor* x, compute_tensor* y, compute_tensor* z, \
                               compute_tensor* result) {                                                        \
    compute_tensor* const inputs[] = {x, y, z};                                                                 \
    return run_elementwise(OpId::op, stream, inputs, 3, nullptr, result);                                       \
  }
#include "core/interface/op_wrappers.inc"

}  // extern "C"
